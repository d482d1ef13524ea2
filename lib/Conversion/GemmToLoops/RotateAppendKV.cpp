//===- RotateAppendKV.cpp - Queries, keys and values ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"

using namespace mlir;
using namespace sandwich;

LogicalResult sandwich::emitRotateAppendKV(ImplicitLocOpBuilder &builder,
                                           gemm::MatmulOp op,
                                           const SumsBlock &block) {
  return op.emitOpError("epilogue 'rotate_append_kv' cannot be lowered yet");
}
