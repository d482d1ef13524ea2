//===- IntrinsicLowering.h - Intrinsics as vector operations ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_KERNELTOVECTOR_INTRINSICLOWERING_H
#define SANDWICH_LIB_CONVERSION_KERNELTOVECTOR_INTRINSICLOWERING_H

#include "sandwich/Kernel/Intrinsics.h"

#include "mlir/IR/Builders.h"

namespace sandwich {

/// An element of memory: number `offset` of `base`, a memref of one dimension.
struct MemoryPlace {
  mlir::Value base, offset;
};

/// The same place as one in memory of `element`. Needs that the memory is of
/// that, or of bytes.
MemoryPlace viewAs(mlir::OpBuilder &builder, mlir::Location location,
                   MemoryPlace place, mlir::Type element);

/// What an intrinsic is called with: a number or a vector, without signs, or
/// memory, or what is known.
struct IntrinsicOperand {
  mlir::Value value;
  MemoryPlace memory = {};
  int64_t immediate = 0;
};

/// The type of a lane without its sign.
mlir::Type loweredType(kernel::LaneType type, mlir::MLIRContext *context);

/// The result of `intrinsic`, a number, a vector or a mask, or null if it has
/// none, built of operations on all lanes at once from the expression of one
/// lane. Vectors have the lanes that the parameters say. Fails, with `reason`,
/// where an expression has none.
mlir::FailureOr<mlir::Value>
lowerIntrinsic(mlir::OpBuilder &builder, mlir::Location location,
               const kernel::Intrinsic &intrinsic,
               llvm::ArrayRef<IntrinsicOperand> operands, std::string &reason);

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_KERNELTOVECTOR_INTRINSICLOWERING_H
