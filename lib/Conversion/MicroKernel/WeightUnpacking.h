//===- WeightUnpacking.h - Copies of quantized weights ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_WEIGHTUNPACKING_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_WEIGHTUNPACKING_H

#include "sandwich/Conversion/MicroKernel.h"

namespace sandwich {

/// Columns of a vector, which has four numbers of each.
inline constexpr int64_t columnsOfLine = 16, numbersOfColumn = 4;
inline constexpr int64_t lineBytes = columnsOfLine * numbersOfColumn;
static_assert(lineBytes == sharedLineBytes);

/// Reads groups of a panel as they are stored.
class StoredGroups {
public:
  StoredGroups(LoopBuilder &b, const WeightUnpacking &unpacking,
               mlir::Value weight, mlir::Value copy)
      : b(b), unpacking(unpacking), weight(weight), copy(copy) {}

protected:
  /// Integers that are all `value`, or what they keep of its bits.
  mlir::Value splat(mlir::VectorType type, int64_t value);
  mlir::Value loadBytes(mlir::Value from, int64_t count);
  /// Four numbers of each of 16 columns, or eight of 4 bits, from byte `from`
  /// on.
  mlir::Value loadLine(mlir::Value from);
  /// What a stored number counts for, in f32, and what 0 stands for.
  struct Scales {
    mlir::Value scale, base;
  };
  /// Those of 16 columns from `column` on of the group at byte `from`.
  Scales loadScales(mlir::Value from, int64_t column);

  LoopBuilder &b;
  const WeightUnpacking &unpacking;
  mlir::Value weight, copy;

private:
  /// The scales, or minima, of 16 columns from byte `from` on.
  mlir::Value loadFloats(mlir::Value from);
};

/// Writes what unpacks to floats.
class UnpackingWriter : StoredGroups {
public:
  using StoredGroups::StoredGroups;

  /// The k from `begin` to `end` of a group that begins at byte `from`, in the
  /// copy from the k `firstK` of the panel at element `place` on.
  void writeGroup(mlir::Value from, mlir::Value begin, mlir::Value end,
                  mlir::Value place, mlir::Value firstK);

  /// Loads the scales of the group that begins at byte `from`.
  void beginGroup(mlir::Value from);
  /// Lines of numbers, 64 bytes of numbers of 8 bits, in `k` k of a panel,
  /// whole quads.
  int64_t linesOf(int64_t k) const { return k / numbersOfColumn * quadLines(); }
  /// Stored bytes of a quad.
  int64_t bytesOfQuad() const { return quadLines() * lineBytes / together(); }
  /// Line `line` of those that begin at byte `lines`, of the group that was
  /// begun; to the copy of the panel at element `place`, in which they begin at
  /// `k`.
  void writeLine(mlir::Value lines, int64_t line, mlir::Value place,
                 mlir::Value k);

  /// Asks for what lies `distance` bytes behind the stored line of that line,
  /// if it is the first in it.
  void prefetchLine(mlir::Value lines, int64_t line, int64_t distance,
                    PrefetchHint hint);

private:
  /// The byte of the stored line that has line `line` of those from `lines` on.
  mlir::Value lineAt(mlir::Value lines, int64_t line) {
    return b.add(lines, line / together() * lineBytes);
  }
  /// Lines of four k of a panel; of numbers of four bits, two lines are in one.
  int64_t quadLines() const { return unpacking.to.panel / columnsOfLine; }
  int64_t together() const {
    return unpacking.storage.number == NumberFormat::Int4 ? 2 : 1;
  }
  int64_t quadsTogether() const {
    return quadLines() % together() == 0 ? 1 : together();
  }
  /// Vectors of f32 rounded to bf16, each beside that of the other.
  mlir::Value packBF16(mlir::Value low, mlir::Value high);
  /// Whether `takeByte` takes numbers out of lines: of 4 bits, and of 8 where
  /// what is added to the products has few enough digits that none is lost.
  bool takesBytes() const {
    const StorageFormat &storage = unpacking.storage;
    return unpacking.to.kPack == 2 &&
           (storage.number == NumberFormat::Int4 ||
            (storage.number == NumberFormat::Int8 &&
             storage.scale == ScaleFormat::F16 &&
             storage.offset != GroupOffset::Minimum));
  }
  /// Which byte of an f32 a byte becomes: of 4 bits the one with the highest
  /// bits of the fraction, which leaves a step 17 bits, and the lowest of the
  /// exponent.
  int64_t placeOfByte() const {
    return unpacking.storage.number == NumberFormat::Int4 ? 2 : 1;
  }
  /// What a byte counts for there, and what the float is that has a 0 there.
  float unitOfByte() const { return placeOfByte() == 2 ? 0x1p-8F : 0x1p-15F; }
  float floatOfZero() const { return placeOfByte() == 2 ? 0.5F : 1; }
  /// Of each four bytes one, times `unitOfByte` and added to `floatOfZero`: one
  /// instruction moves it among the bits of 1, where a conversion takes two or
  /// three.
  mlir::Value takeByte(mlir::Value line, int64_t byte);
  /// The numbers in the bits of `mask` of `line >> shift`, as floats.
  mlir::Value extract(mlir::Value line, int64_t shift, int64_t mask);
  /// The numbers of four k of 16 columns, which are `line` shifted by `shift`.
  void storeLine(mlir::Value line, int64_t shift, int64_t columnBlock,
                 mlir::Value place, mlir::Value k);
  /// Where the copy of a panel has column `column` of `k`, a multiple of kPack.
  mlir::Value elementOf(int64_t column, mlir::Value k);

  /// Of each 16 columns.
  llvm::SmallVector<Scales> scales;
};

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_WEIGHTUNPACKING_H
