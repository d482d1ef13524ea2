//===- WeightAccess.h - Weights in the artifact's memory --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_UTILS_WEIGHTACCESS_H
#define SANDWICH_DIALECT_LM_UTILS_WEIGHTACCESS_H

#include "mlir/IR/Builders.h"
#include "sandwich/Dialect/LM/IR/LM.h"

namespace sandwich {

/// Bytes that divide the offset of a weight of `rank` dimensions in the
/// artifact: a page for matrices, a cache line for vectors.
int64_t getWeightAlignment(int64_t rank);

/// The slice of the weight `name` for `layer` (null where the weight has no
/// layers), as a view of the weights argument of the phase program that
/// `user` is in. The weight must have its offset.
mlir::Value getWeightSlice(mlir::OpBuilder &builder,
                           mlir::SymbolTableCollection &symbols,
                           mlir::Operation *user, mlir::FlatSymbolRefAttr name,
                           mlir::Value layer);

} // namespace sandwich

#endif // SANDWICH_DIALECT_LM_UTILS_WEIGHTACCESS_H
