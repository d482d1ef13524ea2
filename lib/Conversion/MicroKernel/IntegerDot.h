//===- IntegerDot.h - Micro-kernels of integers -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_INTEGERDOT_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_INTEGERDOT_H

#include "Vector.h"

namespace sandwich {

/// Integers of a weight times integers of an input, in groups of k: products of
/// a group are summed exactly, in i32, and each such sum is scaled by both its
/// scales and added up in f32. A register holds four k of as many columns as it
/// has words, and each word of the result adds four products.
class IntegerDotWriter : public VectorWriter {
public:
  IntegerDotWriter(mlir::ImplicitLocOpBuilder &builder,
                   const MicroKernelSpecialization &specialization,
                   const MicroKernelArguments &arguments);

protected:
  /// Numbers of the weight, bytes, of a line of which `bytes` is what a
  /// register holds; `high` if they are the high halves of bytes that two lines
  /// share.
  virtual mlir::Value extract(mlir::Value bytes, bool high) = 0;
  /// What `extract` subtracts from a stored number.
  virtual int64_t extractedOffset() const { return 0; }
  /// `sum`, with in each word the products of four numbers of the weight and of
  /// the input added.
  virtual mlir::Value dot(mlir::Value sum, mlir::Value weight,
                          mlir::Value input) = 0;

  /// The instruction that LLVM calls `name`.
  mlir::Value call(mlir::Type type, llvm::StringRef name,
                   mlir::ValueRange operands);
  mlir::Value splatBytes(int64_t value);
  /// `extract` on x86 but for the sign of numbers of 8 bits.
  mlir::Value extractUnsigned(mlir::Value bytes, bool high);

  const StorageFormat storage;
  /// Of a register of numbers, four for each lane; of a group's sums.
  mlir::VectorType numbersType, groupSumType;

private:
  Sums multiplyAll(Sums sums) override;
  mlir::Value multiply(mlir::Value sum, mlir::Value input,
                       mlir::Value weight) final {
    return dot(sum, weight, input);
  }
  /// Adds the products of one group, whose columns' panels and rows begin at
  /// the addresses `panels` and `rows`.
  void writeGroup(llvm::ArrayRef<mlir::Value> panels, mlir::Value rows,
                  llvm::MutableArrayRef<mlir::Value> sums);
  /// What the sums of the group begin with.
  Sums createGroupSums(mlir::Value rows);
  /// Multiplies `count` quads from the one on that `panels` and `rows` are of.
  void writeQuads(llvm::ArrayRef<mlir::Value> panels, mlir::Value rows,
                  int64_t count, llvm::MutableArrayRef<mlir::Value> groupSums);
  void addGroupSums(llvm::ArrayRef<mlir::Value> panels, mlir::Value rows,
                    llvm::ArrayRef<mlir::Value> groupSums,
                    llvm::MutableArrayRef<mlir::Value> sums);

  /// The numbers of quad `number` of the columns of register `block`.
  mlir::Value loadNumbers(llvm::ArrayRef<mlir::Value> panels, int64_t number,
                          int64_t block);
  /// The scales or minima, which begin `offset` bytes into a group, of the
  /// columns of register `block`.
  mlir::Value loadScales(llvm::ArrayRef<mlir::Value> panels, int64_t offset,
                         int64_t block);
  /// The minima of the columns of register `block`, of numbers as `extract`
  /// gives them.
  mlir::Value createMinima(llvm::ArrayRef<mlir::Value> panels,
                           mlir::Value scales, int64_t block);
  /// In every lane the word `offset` bytes from `address` on.
  mlir::Value broadcast(mlir::Type type, mlir::Value address, int64_t offset);

  mlir::Value load(mlir::Type type, mlir::Value address, int64_t offset,
                   int64_t alignment);
  /// `address` as an integer, so that loops count it up.
  mlir::Value addressOf(mlir::Value buffer, mlir::Value element);
  mlir::Value advance(mlir::Value address, int64_t bytes);

  bool hasMinima() const { return storage.offset == GroupOffset::Minimum; }
  bool sharesLines() const { return storage.number == NumberFormat::Int4; }
  /// Registers of a panel.
  int64_t blocksOfPanel() const { return packing.panel / lanes; }
  int64_t startsOffset() const;
  int64_t scalesOfRowsOffset() const;

  const int64_t group;
  /// The bytes that were loaded last, which two registers of numbers may share:
  /// of which panel, from which byte on.
  std::pair<int64_t, int64_t> loadedPlace;
  mlir::Value loaded;
};

/// What is taken from stored numbers where instructions want signs: all of 8
/// bits; those of 4 are positive as they are stored.
int64_t signedOffsetOf(const StorageFormat &storage);

/// `emitInputPacking` of integers: groups of rows are rounded to int8. From
/// stored numbers of the weight `extractedOffset` is subtracted before they are
/// multiplied.
void emitRounding(LoopBuilder &builder, const InputPiece &piece,
                  int64_t extractedOffset);

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_INTEGERDOT_H
