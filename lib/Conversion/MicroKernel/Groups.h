//===- Groups.h - Micro-kernels of quantized weights -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_GROUPS_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_GROUPS_H

#include "Vector.h"

namespace sandwich {

/// Numbers of a column that lie together, a quad.
inline constexpr int64_t numbersOfWord = 4;
inline constexpr int64_t wordBytes = 4;

/// Reads a quantized weight as it is stored, in groups of k: the products of a
/// group are summed, and each such sum is scaled and added up in f32. A
/// register of stored numbers has four k, a quad, of as many columns as a
/// register of sums has lanes.
///
/// A quad is multiplied in one or more parts, for each of which there is an
/// operand of the input and for each of its digits one of the weight.
class GroupsWriter : public VectorWriter {
public:
  GroupsWriter(mlir::ImplicitLocOpBuilder &builder,
               const MicroKernelSpecialization &specialization,
               const MicroKernelArguments &arguments);

protected:
  /// Where a register of numbers as they are stored lies: four k of as many
  /// columns as it has words.
  struct NumbersPlace {
    int64_t panel, byte;
    /// Whether they are the high halves of bytes that two lines share.
    bool high = false;
  };
  /// Stored numbers and which halves of their bytes.
  struct Line {
    mlir::Value bytes;
    bool high = false;
  };
  /// What sums of a group are multiplied by and what is added, in the lanes of
  /// the columns.
  struct ColumnScales {
    /// Minima, of numbers as `extract` gives them, where there are any.
    mlir::Value scales, minima;
  };
  /// The same in the lanes of the rows.
  struct RowScales {
    /// None where the input was not rounded. Sums of the input, where there are
    /// minima.
    mlir::Value scales, sums;
  };

  /// Whether sums stay in registers while those of a group come and go; else
  /// they are in memory, as a group is long enough to hide that.
  virtual bool keepsSums() const { return true; }
  /// Whether registers hold what a group's rows are scaled by, for all columns,
  /// as it takes more than a load.
  virtual bool holdsRowScales() const { return !keepsSums(); }
  /// The parts of a quad, and the digits that a number has in each.
  virtual int64_t parts() const { return 1; }
  virtual int64_t digits() const { return 1; }
  /// What of `line` is multiplied with part `part` of the input.
  virtual mlir::Value extract(const Line &line, int64_t part,
                              int64_t digit) = 0;
  /// What of stored bytes is done once for all that is extracted of them.
  virtual mlir::Value prepare(mlir::Value bytes) { return bytes; }
  /// What `extract` subtracts from a stored number.
  virtual int64_t extractedOffset() const { return 0; }
  /// Part `part` of quad `number` of row `row`, of a group whose rows begin at
  /// the address `rows`.
  virtual mlir::Value loadQuad(mlir::Value rows, int64_t row, int64_t number,
                               int64_t part) = 0;
  /// Bytes from one group of the rows to the next, and from one quad.
  virtual int64_t groupStride() const = 0;
  virtual int64_t quadStride() const = 0;
  /// The address of the first group of the rows.
  virtual mlir::Value getRows() = 0;
  /// What the sums of the rows of register `block` begin with.
  virtual mlir::Value createGroupSum(mlir::Value rows, int64_t block) = 0;
  /// The sum of a group, of what its products were added to.
  virtual mlir::Value finishGroupSum(mlir::Value sum, mlir::Value /*rows*/,
                                     int64_t /*block*/) {
    return sum;
  }
  /// Of the rows of register `block`, of a group whose rows begin at the
  /// address `rows`.
  virtual RowScales loadRowScales(mlir::Value rows, int64_t block) = 0;
  /// The sum of a group but for the weight's scale, in f32.
  virtual mlir::Value scaleGroupSum(mlir::Value sum, const RowScales &rows) = 0;
  /// The scales or minima, which begin `offset` bytes into a group, of the
  /// columns of register `block`, in their lanes.
  virtual mlir::Value loadScales(llvm::ArrayRef<mlir::Value> panels,
                                 int64_t offset, int64_t block);

  Sums multiplyAll(Sums sums) override;
  /// Adds the products of one group, whose columns' panels and rows begin at
  /// the addresses `panels` and `rows`, to `sums`.
  virtual void writeGroup(llvm::ArrayRef<mlir::Value> panels, mlir::Value rows,
                          llvm::MutableArrayRef<mlir::Value> sums);
  /// What sums of the group begin with, `count` beside each other.
  Sums createGroupSums(mlir::Value rows, int64_t count);
  /// Adds the products of `count` quads from the one on that `panels` and
  /// `rows` are of.
  using QuadsWriter = llvm::function_ref<void(
      llvm::ArrayRef<mlir::Value> panels, mlir::Value rows, int64_t count,
      llvm::MutableArrayRef<mlir::Value> groupSums)>;
  /// Multiplies the quads of a group, whole `smallestGroup`s at a time.
  void multiplyGroup(llvm::ArrayRef<mlir::Value> panels, mlir::Value rows,
                     llvm::MutableArrayRef<mlir::Value> groupSums,
                     QuadsWriter multiplyQuads);
  /// Prefetches what lies ahead of the numbers of `count` quads, as far as
  /// `multiplyAll` was told.
  void prefetchQuads(llvm::ArrayRef<mlir::Value> panels, int64_t count);
  ColumnScales loadColumnScales(llvm::ArrayRef<mlir::Value> panels,
                                int64_t block);
  /// `sum` with the scaled `groupSum` added.
  mlir::Value addGroupSum(mlir::Value sum, mlir::Value groupSum,
                          const ColumnScales &columns, const RowScales &rows);

  /// The place of quad `number` of the columns from `column` on.
  NumbersPlace placeOfNumbers(int64_t number, int64_t column) const;
  /// The bytes at `place`.
  mlir::Value loadStored(llvm::ArrayRef<mlir::Value> panels,
                         const NumbersPlace &place) {
    return load(numbersType, panels[place.panel], place.byte, 1);
  }

  mlir::Value pin(mlir::Value sum, mlir::Value streamed, bool usedOnce) final;

  /// The instruction that LLVM calls `name`.
  mlir::Value call(mlir::Type type, llvm::StringRef name,
                   mlir::ValueRange operands);
  mlir::Value splatBytes(int64_t value);
  mlir::Value splatWords(int64_t value);
  mlir::Value pointerTo(mlir::Value address, int64_t offset);
  mlir::Value load(mlir::Type type, mlir::Value address, int64_t offset,
                   int64_t alignment);
  /// In every lane the word `offset` bytes from `address` on.
  mlir::Value broadcast(mlir::Type type, mlir::Value address, int64_t offset);
  /// The address of `element` as an integer, so that loops count it up.
  mlir::Value addressOf(mlir::Value buffer, mlir::Value element);

  bool hasMinima() const { return storage.offset == GroupOffset::Minimum; }

  const StorageFormat storage;
  const int64_t group;
  /// Of a register of numbers, four for each lane; of words, one for each.
  mlir::VectorType numbersType, wordsType;

private:
  void writeQuads(llvm::ArrayRef<mlir::Value> panels, mlir::Value rows,
                  int64_t count, llvm::MutableArrayRef<mlir::Value> groupSums);

  /// The numbers of quad `number` of the columns of register `block`.
  Line loadLine(llvm::ArrayRef<mlir::Value> panels, int64_t number,
                int64_t block);
  /// The minima of the columns of register `block`, of numbers as `extract`
  /// gives them.
  mlir::Value createMinima(llvm::ArrayRef<mlir::Value> panels,
                           mlir::Value scales, int64_t block);
  mlir::Value advance(mlir::Value address, int64_t bytes);
  /// Prefetches `lines` lines of each panel, `distance` bytes ahead of byte
  /// `offset`; none without a distance.
  void prefetchPanels(llvm::ArrayRef<mlir::Value> panels, mlir::Value distance,
                      int64_t offset, int64_t lines);
  /// Of an operand in a vector register.
  llvm::StringRef registerConstraint() const;

  /// The bytes that were loaded last, which two registers of numbers may share:
  /// of which panel, from which byte on.
  std::pair<int64_t, int64_t> loadedPlace;
  mlir::Value loaded;
  /// Bytes from what is read to what is prefetched, if anything is.
  mlir::Value numbersAhead, scalesAhead;
};

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_GROUPS_H
