//===- GemmDialect.cpp - The schedule dialect -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::gemm;

#include "sandwich/Dialect/Gemm/IR/GemmDialect.cpp.inc"

void GemmDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Gemm/IR/GemmOps.cpp.inc"
      >();
}
