//===- LoweredBlock.h - Blocks as vectors -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_BLOCKTOVECTOR_LOWEREDBLOCK_H
#define SANDWICH_LIB_CONVERSION_BLOCKTOVECTOR_LOWEREDBLOCK_H

#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"

#include <variant>

namespace sandwich::block {

/// A block of known sizes: a vector for each row, that is for all of its last
/// dimension, or single numbers where that dimension is 1.
class LoweredBlock {
public:
  LoweredBlock(llvm::ArrayRef<int64_t> sizes, mlir::Type element)
      : sizes(sizes), element(element) {}

  static LoweredBlock ofRows(llvm::ArrayRef<int64_t> sizes, mlir::Type element,
                             llvm::SmallVector<mlir::Value> rows);
  /// Of all its numbers, row by row.
  static LoweredBlock ofNumbers(llvm::ArrayRef<int64_t> sizes,
                                mlir::Type element,
                                llvm::SmallVector<mlir::Value> numbers);

  llvm::ArrayRef<int64_t> getSizes() const { return sizes; }
  mlir::Type getElement() const { return element; }
  int64_t width() const { return sizes.back(); }
  int64_t rowCount() const;
  /// The type of a row.
  mlir::Type rowType() const;
  bool hasRows() const { return !rows.empty(); }
  /// Whether it has numbers that are no values: in tiles, or in memory.
  bool isElsewhere() const { return rows.empty() && numbers.empty(); }
  /// Where the builder is, what it does not have that way is put together.
  llvm::SmallVector<mlir::Value> getRows(LoopBuilder &builder) const;
  llvm::SmallVector<mlir::Value> getNumbers(LoopBuilder &builder) const;

private:
  llvm::SmallVector<int64_t> sizes;
  mlir::Type element;
  /// One of both at least, or none of what is elsewhere.
  llvm::SmallVector<mlir::Value> rows, numbers;
};

/// Neighbors from `start` on, of which the first `count` are there; all, if
/// that is null.
struct LoweredRange {
  mlir::Value start;
  mlir::Value count;
  int64_t size = 0;
  /// Those that are there are from `first` on, whatever turn of a loop it is,
  /// and before each of `ends`.
  mlir::Value first = start;
  llvm::SmallVector<mlir::Value, 2> ends = {};
};

/// What an operation of a kernel became: a number or memory is a value.
using Lowered = std::variant<mlir::Value, LoweredBlock, LoweredRange>;

/// `lhs` and `rhs`, of one type, as `kind` combines them.
mlir::Value combine(LoopBuilder &builder, ReductionKind kind, mlir::Value lhs,
                    mlir::Value rhs);
/// All of a vector's numbers, combined in any order; a number is itself.
mlir::Value reduceRow(LoopBuilder &builder, ReductionKind kind,
                      mlir::Value row);
/// That of each of `rows`, which have one type. Halves of two rows are put
/// together in a vector, so that a step is one for both.
llvm::SmallVector<mlir::Value> reduceRows(LoopBuilder &builder,
                                          ReductionKind kind,
                                          llvm::ArrayRef<mlir::Value> rows);

/// `lhs` and `rhs` interleaved.
mlir::Value interleaveRows(LoopBuilder &builder, mlir::Value lhs,
                           mlir::Value rhs);
/// A row or number of f32, f16 or bf16 as f32.
mlir::Value toF32(LoopBuilder &builder, mlir::Value row);

} // namespace sandwich::block

#endif // SANDWICH_LIB_CONVERSION_BLOCKTOVECTOR_LOWEREDBLOCK_H
