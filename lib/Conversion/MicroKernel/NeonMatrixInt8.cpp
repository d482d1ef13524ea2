//===- NeonMatrixInt8.cpp - NEON micro-kernels of 2 x 2 integers ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>
#include <array>

using namespace mlir;
using namespace sandwich;

/// Where numbers of 8 bits have minima, `sdot` multiplies them with their sign
/// and adds to the minima what that takes away. Both must round alike.
static bool hasSigns(const StorageFormat &storage) {
  return storage.number == NumberFormat::Int8 &&
         storage.offset == GroupOffset::Minimum;
}

/// From stored numbers of the weight this is subtracted.
static int64_t offsetOf(const StorageFormat &storage) {
  return hasSigns(storage) ? signedOffsetOf(storage) : 0;
}

namespace {

/// usmmla, or smmla where numbers have signs: each register holds 2 x 2 sums,
/// of column 0 with both rows, then of column 1; the operands are 8 k of two
/// columns and of two rows.
///
/// A line has four k of each column. Two are zipped to operands as they are
/// stored, quads 0 and 2 of 16 k and 1 and 3, so that those of 4 bits that
/// share lines, both in the same half of their bytes, are zipped once for both.
///
/// Registers hold the group's sums of 8 columns at a time. Those in f32 are
/// in memory between groups, so that a register of the weight meets as many
/// rows as there are registers for.
class NeonMatrixInt8Writer final : public IntegerDotWriter {
public:
  NeonMatrixInt8Writer(ImplicitLocOpBuilder &builder,
                       const MicroKernelSpecialization &specialization,
                       const MicroKernelArguments &arguments)
      : IntegerDotWriter(builder, specialization, arguments) {}

private:
  static constexpr int64_t blocksOfRound = matrixInt8Columns / 2;
  static constexpr int64_t registerBytes = 16;

  Value loadSum(int64_t row, int64_t column) override;
  void storeSum(Value sum, int64_t row, int64_t column) override;
  Sums multiplyAll(Sums sums) override;
  void writeGroup(ArrayRef<Value> panels, Value rows,
                  MutableArrayRef<Value> sums) override;
  /// Multiplies `count` quads of the columns from `firstColumn` on.
  void multiplyQuads(ArrayRef<Value> panels, Value rows, int64_t firstColumn,
                     int64_t count, MutableArrayRef<Value> groupSums);

  Value extract(Value bytes, bool high) override {
    if (hasSigns(storage))
      return arith::XOrIOp::create(builder, bytes, splatBytes(0x80));
    return extractUnsigned(bytes, high);
  }
  int64_t extractedOffset() const override { return offsetOf(storage); }
  Value dot(Value sum, Value weight, Value input) override {
    return call(wordsType,
                hasSigns(storage) ? "llvm.aarch64.neon.smmla.v4i32.v16i8"
                                  : "llvm.aarch64.neon.usmmla.v4i32.v16i8",
                {sum, weight, input});
  }
  Value loadScales(ArrayRef<Value> panels, int64_t offset,
                   int64_t block) override;
  Value loadWords(Type type, Value rows, int64_t offset,
                  int64_t block) override;

  Value shuffle(Value first, Value second, ArrayRef<int64_t> order) {
    return vector::ShuffleOp::create(builder, first, second, order);
  }
  /// Where the f32 sums of register `block` of row block `row` wait.
  int64_t placeOfSum(int64_t row, int64_t block) const {
    return (block * rowBlocks() + row) * registerBytes;
  }
  void keepSum(Value sum, int64_t row, int64_t block) {
    LLVM::StoreOp::create(builder, sum,
                          pointerTo(keptSums, placeOfSum(row, block)),
                          registerBytes);
  }
  Value loadKeptSum(int64_t row, int64_t block) {
    return load(sumType, keptSums, placeOfSum(row, block), registerBytes);
  }

  /// An address.
  Value keptSums;
};

} // namespace

Value NeonMatrixInt8Writer::loadSum(int64_t row, int64_t column) {
  auto type = VectorType::get({2}, builder.getF32Type());
  const int64_t last = std::min(row + 1, kernel.rows - 1);
  auto loadRow = [&](int64_t each) -> Value {
    return vector::LoadOp::create(
        builder, type, sumsBlock,
        ValueRange{createIndex(builder, each), createIndex(builder, column)});
  };
  return shuffle(loadRow(row), loadRow(last), {0, 2, 1, 3});
}

void NeonMatrixInt8Writer::storeSum(Value sum, int64_t row, int64_t column) {
  for (int64_t half = 0; half < 2 && row + half < kernel.rows; ++half)
    vector::StoreOp::create(builder, shuffle(sum, sum, {half, half + 2}),
                            sumsBlock,
                            ValueRange{createIndex(builder, row + half),
                                       createIndex(builder, column)});
}

BodyWriter::Sums NeonMatrixInt8Writer::multiplyAll(Sums sums) {
  const int64_t count = std::ssize(sums);
  Type i64 = builder.getI64Type();
  Value memory;
  {
    // The stack grows once, wherever this code lies.
    OpBuilder::InsertionGuard guard(builder);
    auto function = builder.getInsertionBlock()
                        ->getParent()
                        ->getParentOfType<func::FuncOp>();
    builder.setInsertionPointToStart(&function.front());
    Value size = arith::ConstantIntOp::create(builder, count, 64);
    memory = LLVM::AllocaOp::create(
        builder, LLVM::LLVMPointerType::get(builder.getContext()), sumType,
        size, registerBytes);
  }
  // LLVM would take all of them into registers, which they are too many for.
  Value place = arith::IndexCastOp::create(
      builder, builder.getIndexType(),
      LLVM::PtrToIntOp::create(builder, i64, memory));
  keptSums = arith::IndexCastOp::create(builder, i64, hide(place));
  for (int64_t i = 0; i < count; ++i)
    keepSum(sums[i], i / columnBlocks, i % columnBlocks);
  IntegerDotWriter::multiplyAll({});
  for (int64_t i = 0; i < count; ++i)
    sums[i] = loadKeptSum(i / columnBlocks, i % columnBlocks);
  return sums;
}

void NeonMatrixInt8Writer::writeGroup(ArrayRef<Value> panels, Value rows,
                                      MutableArrayRef<Value> /*sums*/) {
  for (int64_t first = 0; first < columnBlocks; first += blocksOfRound) {
    Sums groupSums = createGroupSums(rows, blocksOfRound);
    multiplyGroup(panels, rows, groupSums,
                  [&](ArrayRef<Value> panels, Value rows, int64_t count,
                      MutableArrayRef<Value> groupSums) {
                    if (first == 0)
                      prefetchQuads(panels, count);
                    multiplyQuads(panels, rows, first * blockColumns, count,
                                  groupSums);
                  });
    // To put a word of each row into both halves takes an instruction.
    SmallVector<RowScales> ofRows;
    for (int64_t row = 0; row < rowBlocks(); ++row)
      ofRows.push_back(loadRowScales(rows, row));
    for (int64_t block = 0; block < blocksOfRound; ++block) {
      const ColumnScales ofColumns = loadColumnScales(panels, first + block);
      for (int64_t row = 0; row < rowBlocks(); ++row)
        keepSum(addGroupSum(loadKeptSum(row, first + block),
                            groupSums[row * blocksOfRound + block], ofColumns,
                            ofRows[row]),
                row, first + block);
    }
  }
}

void NeonMatrixInt8Writer::multiplyQuads(ArrayRef<Value> panels, Value rows,
                                         int64_t firstColumn, int64_t count,
                                         MutableArrayRef<Value> groupSums) {
  constexpr int64_t quads = smallestGroup / numbersOfWord;
  constexpr int64_t lines = matrixInt8Columns / 4;
  const int64_t pairBytes = 2 * specialization.group;
  for (int64_t number = 0; number < count; number += quads) {
    // What was zipped last of each four columns: two columns each.
    struct Zipped {
      NumbersPlace place{-1, -1};
      std::array<Value, 2> pairs;
    };
    std::array<Zipped, lines> zipped;
    for (int64_t step = 0; step < 2; ++step) {
      SmallVector<Value> inputs;
      for (int64_t row = 0; row < rowBlocks(); ++row)
        inputs.push_back(load(numbersType, rows,
                              row * pairBytes + 2 * number * numbersOfWord +
                                  step * registerBytes,
                              1));
      for (int64_t line = 0; line < lines; ++line) {
        auto &[stored, pairs] = zipped[line];
        const int64_t column = firstColumn + 4 * line;
        NumbersPlace place = placeOfNumbers(number + step, column);
        NumbersPlace second = placeOfNumbers(number + step + 2, column);
        if (stored.panel != place.panel || stored.byte != place.byte) {
          stored = place;
          Value lower = loadStored(panels, place);
          Value upper = loadStored(panels, second);
          auto words = [&](Value bytes) -> Value {
            return vector::BitCastOp::create(builder, wordsType, bytes);
          };
          auto zip = [&](ArrayRef<int64_t> order) -> Value {
            return vector::BitCastOp::create(
                builder, numbersType,
                shuffle(words(lower), words(upper), order));
          };
          pairs = {zip({0, 4, 1, 5}), zip({2, 6, 3, 7})};
        }
        for (int64_t pair = 0; pair < 2; ++pair) {
          Value numbers = extract(pairs[pair], place.high);
          for (int64_t row = 0; row < rowBlocks(); ++row) {
            Value &sum = groupSums[row * blocksOfRound + 2 * line + pair];
            sum = pin(dot(sum, numbers, inputs[row]), Value(), false);
          }
        }
      }
    }
  }
}

Value NeonMatrixInt8Writer::loadScales(ArrayRef<Value> panels, int64_t offset,
                                       int64_t block) {
  Value both = IntegerDotWriter::loadScales(panels, offset, block);
  return shuffle(both, both, {0, 0, 1, 1});
}

Value NeonMatrixInt8Writer::loadWords(Type type, Value rows, int64_t offset,
                                      int64_t block) {
  Value both = load(VectorType::get({2}, type), rows,
                    offset + 2 * block * wordBytes, wordBytes);
  return shuffle(both, both, {0, 1, 0, 1});
}

static void emitPairRounding(LoopBuilder &b, const Packing & /*packing*/,
                             const InputPiece &piece) {
  emitRounding(b, piece, offsetOf(piece.storage), RoundedRows::Pairs);
}

const MicroKernelEmitter &sandwich::getNeonMatrixInt8Emitter() {
  static const BodyWriterEmitter<NeonMatrixInt8Writer, emitPairRounding>
      emitter;
  return emitter;
}
