//===- KernelDialect.cpp - The dialect of hand-written kernels ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Kernel/IR/Kernel.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

#include "sandwich/Dialect/Kernel/IR/KernelDialect.cpp.inc"

void KernelDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Kernel/IR/KernelOps.cpp.inc"
      >();
}
