//===- IntegerDot.cpp - Micro-kernels of integers -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

#include "sandwich/Dialect/Tile/IR/Tile.h"
#include "sandwich/Dialect/Utils/IntegerRounding.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <bit>
#include <limits>

using namespace mlir;
using namespace sandwich;

static_assert(packedGroupLength(0) == 2 * wordBytes);
// The products of a group, a whole row maybe, of numbers without a sign.
static_assert(255 * 127 * largestGroup <= std::numeric_limits<int32_t>::max());

IntegerDotWriter::IntegerDotWriter(
    ImplicitLocOpBuilder &builder,
    const MicroKernelSpecialization &specialization,
    const MicroKernelArguments &arguments)
    : GroupsWriter(builder, specialization, arguments),
      rowsInMemory(packedRows(kernel.isa, kernel.rows)) {}

int64_t IntegerDotWriter::startsOffset() const { return rowsInMemory * group; }

int64_t IntegerDotWriter::scalesOfRowsOffset() const {
  return startsOffset() + rowsInMemory * wordBytes;
}

int64_t IntegerDotWriter::groupStride() const {
  return packedLength(kernel.isa, group, group) * rowsInMemory;
}

int64_t IntegerDotWriter::quadStride() const {
  return numbersOfWord * registerFileOf(kernel.isa).rows;
}

Value IntegerDotWriter::getRows() {
  return addressOf(arguments.input, arguments.firstK);
}

Value IntegerDotWriter::loadWords(Type type, Value rows, int64_t offset,
                                  int64_t block) {
  return broadcast(type, rows, offset + block * wordBytes);
}

Value IntegerDotWriter::loadQuad(Value rows, int64_t row, int64_t number,
                                 int64_t /*part*/) {
  Value word =
      broadcast(builder.getI32Type(), rows, row * group + number * wordBytes);
  return vector::BitCastOp::create(builder, numbersType, word);
}

Value IntegerDotWriter::createGroupSum(Value rows, int64_t block) {
  if (hasMinima())
    return arith::ConstantOp::create(builder, builder.getZeroAttr(wordsType));
  return loadWords(builder.getI32Type(), rows, startsOffset(), block);
}

GroupsWriter::RowScales IntegerDotWriter::loadRowScales(Value rows,
                                                        int64_t block) {
  Type f32 = builder.getF32Type();
  RowScales result;
  result.scales = loadWords(f32, rows, scalesOfRowsOffset(), block);
  if (hasMinima())
    result.sums = loadWords(f32, rows, startsOffset(), block);
  return result;
}

Value IntegerDotWriter::scaleGroupSum(Value sum, const RowScales &rows) {
  Value product = arith::SIToFPOp::create(builder, sumType, sum);
  return arith::MulFOp::create(builder, product, rows.scales);
}

Value IntegerDotWriter::extractUnsigned(Value bytes, bool high) {
  if (storage.number == NumberFormat::Int8)
    return bytes;
  if (high && architectureOf(kernel.isa) == CpuArchitecture::AArch64)
    return arith::ShRUIOp::create(builder, bytes, splatBytes(4));
  if (high) {
    // x86 has no shifts of bytes; the mask takes away what came from others.
    Value words = vector::BitCastOp::create(builder, wordsType, bytes);
    Value distance = arith::ConstantOp::create(
        builder,
        DenseElementsAttr::get(wordsType, builder.getI32IntegerAttr(4)));
    words = arith::ShRUIOp::create(builder, words, distance);
    bytes = vector::BitCastOp::create(builder, numbersType, words);
  }
  return arith::AndIOp::create(builder, bytes, splatBytes(0x0f));
}

int64_t sandwich::signedOffsetOf(const StorageFormat &storage) {
  return storage.number == NumberFormat::Int8 ? storage.storedZero() : 0;
}

//===----------------------------------------------------------------------===//
// The input
//===----------------------------------------------------------------------===//

namespace {

/// Rounds the groups of rows.
class InputRounding {
public:
  InputRounding(LoopBuilder &b, const InputPiece &piece,
                int64_t extractedOffset, RoundedRows layout)
      : b(b), piece(piece), extractedOffset(extractedOffset), layout(layout),
        rows(piece.rows), words(VectorType::get({width}, b.getI32Type())) {
    if (layout == RoundedRows::Pairs)
      rows = b.mul(b.div(b.add(piece.rows, 1), 2), 2);
    if (layout == RoundedRows::Tile)
      rows = b.index(tile::maxRows);
  }

  void write() {
    b.forLoop(b.index(0), b.div(piece.k, piece.group), 1, [&](Value number) {
      b.forLoop(b.index(0), layout == RoundedRows::Tile ? piece.rows : rows, 1,
                [&](Value row) { writeGroup(number, row); });
    });
  }

private:
  static constexpr int64_t width = 16;
  static_assert(smallestGroup % width == 0);

  /// Group `number` of the row that lies at `place`.
  void writeGroup(Value number, Value place);
  /// The row of the input that lies at `place`.
  Value rowAt(Value place);
  /// Stores the `width` bytes of the row at `place` from `k` on of a group
  /// that begins at element `groupPlace`.
  void storeNumbers(Value numbers, Value groupPlace, Value place, Value k);
  Value splat(int32_t value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  }
  Value loadInput(Value row, Value k) {
    return b.loadVector(piece.input,
                        {b.add(piece.firstRow, row), b.add(piece.firstK, k)},
                        width);
  }
  /// The largest magnitude of a group; no number, or infinite, if one is.
  Value findLargest(Value row, Value firstK);
  void storeWord(Value word, Value place) {
    auto one = VectorType::get({1}, word.getType());
    auto bytes = VectorType::get({wordBytes}, b.getI8Type());
    Value vector = vector::BroadcastOp::create(b, one, word);
    vector::StoreOp::create(b, vector::BitCastOp::create(b, bytes, vector),
                            piece.packed, ValueRange{b.index(0), place});
  }

  LoopBuilder &b;
  const InputPiece &piece;
  int64_t extractedOffset;
  RoundedRows layout;
  /// As many as lie in memory.
  Value rows;
  VectorType words;
};

} // namespace

Value InputRounding::findLargest(Value row, Value firstK) {
  Value largest =
      b.forLoop(b.index(0), b.index(piece.group), width, splat(0),
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  Value bits =
                      magnitudeBits(b, loadInput(row, b.add(firstK, k)));
                  return {arith::MaxSIOp::create(b, carried.front(), bits)};
                })
          .front();
  Value bits =
      vector::ReductionOp::create(b, vector::CombiningKind::MAXSI, largest);
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}

Value InputRounding::rowAt(Value place) {
  if (layout != RoundedRows::Pairs)
    return place;
  // The last row of an odd number is the second of its pair.
  Value half = b.rem(place, 2);
  Value second =
      b.min(b.add(b.sub(place, half), 1), b.sub(piece.rows, b.index(1)));
  Value fromSecond = b.sub(b.index(1), half);
  return b.sub(second, b.min(second, fromSecond));
}

void InputRounding::storeNumbers(Value numbers, Value groupPlace, Value place,
                                 Value k) {
  auto store = [&](Value bytes, Value element) {
    vector::StoreOp::create(b, bytes, piece.packed,
                            ValueRange{b.index(0), element});
  };
  if (layout == RoundedRows::Single) {
    store(numbers, b.add(groupPlace, b.add(b.mul(place, piece.group), k)));
    return;
  }
  if (layout == RoundedRows::Tile) {
    const int64_t step = kOfIntegerTiles(piece.group);
    Value inStep = b.add(b.mul(place, step), b.rem(k, step));
    Value number = b.div(k, step);
    store(numbers, b.add(groupPlace,
                         b.add(b.mul(number, tile::maxRows * step), inStep)));
    return;
  }
  constexpr int64_t operandBytes = 16, halfBytes = operandBytes / 2;
  static_assert(width == operandBytes);
  Value half = b.rem(place, 2);
  Value pair = b.add(groupPlace, b.mul(b.sub(place, half), piece.group));
  Value first = b.add(b.add(pair, b.mul(k, 2)), b.mul(half, halfBytes));
  for (int64_t quad : {0, 1}) {
    SmallVector<int64_t> order;
    for (int64_t each : {quad, quad + 2})
      for (int64_t i = 0; i < numbersOfWord; ++i)
        order.push_back(each * numbersOfWord + i);
    store(vector::ShuffleOp::create(b, numbers, numbers, order),
          b.add(first, quad * operandBytes));
  }
}

void InputRounding::writeGroup(Value number, Value place) {
  Value row = rowAt(place);
  Value firstK = b.mul(number, piece.group);
  auto [scale, inverse] = scaleToInt8(b, findLargest(row, firstK));
  Value factor = b.broadcast(inverse, width);
  Value groupPlace = b.add(
      piece.place, b.mul(b.mul(number, packedGroupLength(piece.group)), rows));
  auto bytes = VectorType::get({width}, b.getI8Type());
  Value sums =
      b.forLoop(b.index(0), b.index(piece.group), width, splat(0),
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  Value values = loadInput(row, b.add(firstK, k));
                  Value integers = roundToIntegers(b, values, factor);
                  storeNumbers(arith::TruncIOp::create(b, bytes, integers),
                               groupPlace, place, k);
                  integers = arith::SubIOp::create(b, integers,
                                                   splat(integerRoundingBits));
                  return {arith::AddIOp::create(b, carried.front(), integers)};
                })
          .front();
  Value sum = vector::ReductionOp::create(b, vector::CombiningKind::ADD, sums);
  if (piece.storage.offset == GroupOffset::Minimum) {
    sum = b.mulf(scale, arith::SIToFPOp::create(b, b.getF32Type(), sum));
  } else {
    Value zero = arith::ConstantIntOp::create(
        b, extractedOffset - piece.storage.storedZero(), 32);
    sum = arith::MulIOp::create(b, sum, zero);
  }
  Value startsPlace = b.add(groupPlace, b.mul(rows, piece.group));
  Value startPlace = b.add(startsPlace, b.mul(place, wordBytes));
  storeWord(sum, startPlace);
  storeWord(scale, b.add(startPlace, b.mul(rows, wordBytes)));
}

void sandwich::emitRounding(LoopBuilder &b, const InputPiece &piece,
                            int64_t extractedOffset, RoundedRows layout) {
  InputRounding(b, piece, extractedOffset, layout).write();
}
