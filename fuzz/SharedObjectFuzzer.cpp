//===- SharedObjectFuzzer.cpp - Machine code nobody compiled --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Takes the input as the bytes of `phases.so`.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/SharedObject.h"

#include <cstdint>
#include <cstdlib>

using namespace sandwich;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto object = SharedObject::read(std::as_bytes(std::span(data, size)));
  // What was accepted can be looked at.
  if (object && object->hasFunction("function") &&
      object->findConstant("function"))
    std::abort();
  return 0;
}
