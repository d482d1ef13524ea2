//===- IntegerDot.h - Micro-kernels of integers ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_INTEGERDOT_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_INTEGERDOT_H

#include "Groups.h"

namespace sandwich {

/// Integers of a weight times integers of an input: products of a group are
/// summed exactly, in i32, and each such sum is scaled by both its scales. Each
/// word of a result adds four products; matrix multiplication has its own
/// `writeGroup`.
class IntegerDotWriter : public GroupsWriter {
public:
  IntegerDotWriter(mlir::ImplicitLocOpBuilder &builder,
                   const MicroKernelSpecialization &specialization,
                   const MicroKernelArguments &arguments);

protected:
  /// Numbers of the weight, bytes, of a line of which `bytes` is what a
  /// register holds; `high` if they are the high halves of bytes that two lines
  /// share.
  virtual mlir::Value extract(mlir::Value bytes, bool high) = 0;
  /// `sum`, with in each word the products of four numbers of the weight and of
  /// the input added.
  virtual mlir::Value dot(mlir::Value sum, mlir::Value weight,
                          mlir::Value input) = 0;

  /// `extract` of numbers without a sign.
  mlir::Value extractUnsigned(mlir::Value bytes, bool high);
  /// In the lanes of each row of register `block` its word of those that begin
  /// `offset` bytes into a group of `rows`.
  virtual mlir::Value loadWords(mlir::Type type, mlir::Value rows,
                                int64_t offset, int64_t block);
  mlir::Value createGroupSum(mlir::Value rows, int64_t block) override;
  RowScales loadRowScales(mlir::Value rows, int64_t block) final;
  bool holdsRowScales() const final { return false; }

private:
  mlir::Value extract(const Line &line, int64_t /*part*/,
                      int64_t /*digit*/) final {
    return extract(line.bytes, line.high);
  }
  mlir::Value multiply(mlir::Value sum, mlir::Value input,
                       mlir::Value weight) final {
    return dot(sum, weight, input);
  }
  mlir::Value loadQuad(mlir::Value rows, int64_t row, int64_t number,
                       int64_t part) final;
  int64_t groupStride() const final;
  int64_t quadStride() const final;
  mlir::Value getRows() final;
  mlir::Value scaleGroupSum(mlir::Value sum, const RowScales &rows) final;

  int64_t startsOffset() const;
  int64_t scalesOfRowsOffset() const;

  /// Rows of the packed input.
  const int64_t rowsInMemory;
};

/// What is taken from stored numbers where instructions want signs: all of 8
/// bits; those of 4 are positive as they are stored.
int64_t signedOffsetOf(const StorageFormat &storage);

/// How the rows of a rounded group lie.
enum class RoundedRows : uint8_t {
  /// `[rows][group]`
  Single,
  /// `[pairs][group / 16][2][row of the pair][2][4]`: of 16 k first the quads 0
  /// and 2 of both rows, then 1 and 3. Of an odd number of rows the last pair
  /// is the last two, or the only one twice.
  Pairs,
  /// `[group / 64][16][64]`: tiles of an input, of which as many rows are
  /// written as there are.
  Tile,
};

/// `emitInputPacking` of integers: groups of rows are rounded to int8. From
/// stored numbers of the weight `extractedOffset` is subtracted before they are
/// multiplied.
void emitRounding(LoopBuilder &builder, const InputPiece &piece,
                  int64_t extractedOffset,
                  RoundedRows layout = RoundedRows::Single);

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_INTEGERDOT_H
