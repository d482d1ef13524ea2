//===- IntegerDot.cpp - Micro-kernels of integers -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

#include "sandwich/Dialect/Utils/IntegerRounding.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <bit>
#include <limits>

using namespace mlir;
using namespace sandwich;

static constexpr int64_t wordBytes = 4;
static_assert(packedGroupLength(0) == 2 * wordBytes);
// The products of a group, a whole row maybe, of numbers without a sign.
static_assert(255 * 127 * largestGroup <= std::numeric_limits<int32_t>::max());

IntegerDotWriter::IntegerDotWriter(
    ImplicitLocOpBuilder &builder,
    const MicroKernelSpecialization &specialization,
    const MicroKernelArguments &arguments)
    : GroupsWriter(builder, specialization, arguments) {}

int64_t IntegerDotWriter::startsOffset() const { return kernel.rows * group; }

int64_t IntegerDotWriter::scalesOfRowsOffset() const {
  return startsOffset() + kernel.rows * wordBytes;
}

int64_t IntegerDotWriter::groupStride() const {
  return packedLength(kernel.isa, group, group) * kernel.rows;
}

int64_t IntegerDotWriter::quadStride() const { return wordBytes; }

Value IntegerDotWriter::getRows() {
  return addressOf(arguments.input, arguments.firstK);
}

Value IntegerDotWriter::loadQuad(Value rows, int64_t row, int64_t number,
                                 int64_t /*part*/) {
  Value word =
      broadcast(builder.getI32Type(), rows, row * group + number * wordBytes);
  return vector::BitCastOp::create(builder, numbersType, word);
}

Value IntegerDotWriter::createGroupSum(Value rows, int64_t row) {
  if (hasMinima())
    return arith::ConstantOp::create(builder, builder.getZeroAttr(wordsType));
  return broadcast(builder.getI32Type(), rows,
                   startsOffset() + row * wordBytes);
}

Value IntegerDotWriter::scaleGroupSum(Value sum, Value rows, int64_t row) {
  Value scaleOfRow = broadcast(builder.getF32Type(), rows,
                               scalesOfRowsOffset() + row * wordBytes);
  Value product = arith::SIToFPOp::create(builder, sumType, sum);
  return arith::MulFOp::create(builder, product, scaleOfRow);
}

Value IntegerDotWriter::sumOfRow(Value rows, int64_t row) {
  return broadcast(builder.getF32Type(), rows,
                   startsOffset() + row * wordBytes);
}

Value IntegerDotWriter::extractUnsigned(Value bytes, bool high) {
  if (storage.number == NumberFormat::Int8)
    return bytes;
  if (high) {
    // There are no shifts of bytes; the mask takes away what came from others.
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
                int64_t extractedOffset)
      : b(b), piece(piece), extractedOffset(extractedOffset),
        words(VectorType::get({width}, b.getI32Type())) {}

  /// Group `number` of row `row`.
  void writeGroup(Value number, Value row);

private:
  static constexpr int64_t width = 16;
  static_assert(smallestGroup % width == 0);

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

void InputRounding::writeGroup(Value number, Value row) {
  Value firstK = b.mul(number, piece.group);
  auto [scale, inverse] = scaleToInt8(b, findLargest(row, firstK));
  Value factor = b.broadcast(inverse, width);
  Value groupPlace =
      b.add(piece.place,
            b.mul(b.mul(number, packedGroupLength(piece.group)), piece.rows));
  Value rowPlace = b.add(groupPlace, b.mul(row, piece.group));
  auto bytes = VectorType::get({width}, b.getI8Type());
  Value sums =
      b.forLoop(b.index(0), b.index(piece.group), width, splat(0),
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  Value values = loadInput(row, b.add(firstK, k));
                  Value integers = roundToIntegers(b, values, factor);
                  vector::StoreOp::create(
                      b, arith::TruncIOp::create(b, bytes, integers),
                      piece.packed, ValueRange{b.index(0), b.add(rowPlace, k)});
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
  Value startsPlace = b.add(groupPlace, b.mul(piece.rows, piece.group));
  Value startPlace = b.add(startsPlace, b.mul(row, wordBytes));
  storeWord(sum, startPlace);
  storeWord(scale, b.add(startPlace, b.mul(piece.rows, wordBytes)));
}

void sandwich::emitRounding(LoopBuilder &b, const InputPiece &piece,
                            int64_t extractedOffset) {
  InputRounding rounding(b, piece, extractedOffset);
  b.forLoop(b.index(0), b.div(piece.k, piece.group), 1, [&](Value number) {
    b.forLoop(b.index(0), piece.rows, 1,
              [&](Value row) { rounding.writeGroup(number, row); });
  });
}
