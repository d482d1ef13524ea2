//===- Reductions.h - Lanes that become one number --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_REDUCTIONS_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_REDUCTIONS_H

#include "sandwich/Dialect/Block/IR/Block.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sandwich::widening {

/// Two numbers, or vectors lane by lane, that become one.
struct Combination {
  block::ReductionKind kind;
  mlir::Value lhs, rhs;
};

/// What `op` is, if it combines: an addition or a multiplication, or the
/// smaller or larger one, be it chosen by a comparison. Of two numbers of which
/// one is none, any is the smaller and the larger one.
std::optional<Combination> findCombination(mlir::Operation *op);

/// `lhs` and `rhs` as one.
mlir::Value combine(mlir::OpBuilder &builder, mlir::Location location,
                    block::ReductionKind kind, mlir::Value lhs,
                    mlir::Value rhs);

/// The number that changes nothing where it is combined.
mlir::TypedAttr identityOf(block::ReductionKind kind, mlir::Type number);
/// Whether `value` is that number, or a vector of it.
bool isIdentity(block::ReductionKind kind, mlir::Value value);

/// Makes a `vector.reduction` of every number in `function` that all lanes of
/// vectors become, each once, by whatever shuffles, sums of halves or sums of
/// single lanes: only which lanes there are is looked at, as sums of blocks
/// have no order.
void recognizeReductions(mlir::func::FuncOp function);

/// Of a `vector.reduction`, if blocks have that one.
std::optional<block::ReductionKind> kindOf(mlir::vector::ReductionOp reduction);

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_REDUCTIONS_H
