//===- X86MultiplyAddInt8.cpp - AVX2 micro-kernels of integers ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace sandwich;

namespace {

/// vpmaddubsw adds pairs of products of numbers without and with a sign in 16
/// bits, vpmaddwd with ones pairs of these. Of 8 bits the weight's sign is
/// given to the input, as two products of 255 by 127 would not fit: 128 by 127
/// twice does. Of 4 bits the pairs of a short group fit, so that vpmaddwd is
/// needed once for it.
///
/// Where 16 registers do not hold the sums of a group and those in f32, the
/// latter are in memory between groups: four rows then share what is taken out
/// of a line.
class MultiplyAddInt8Writer final : public IntegerDotWriter {
public:
  using IntegerDotWriter::IntegerDotWriter;

private:
  Value extract(Value bytes, bool high) override {
    if (storage.number == NumberFormat::Int8)
      return arith::XOrIOp::create(builder, bytes, splatBytes(0x80));
    return extractUnsigned(bytes, high);
  }
  int64_t extractedOffset() const override { return signedOffsetOf(storage); }
  bool keepsSums() const override {
    return rowBlocks() * columnBlocks <= mostKeptSums;
  }
  Value createGroupSum(Value rows, int64_t block) override {
    if (!sumsPairs())
      return IntegerDotWriter::createGroupSum(rows, block);
    return arith::ConstantOp::create(builder, builder.getZeroAttr(pairsType()));
  }
  Value finishGroupSum(Value sum, Value rows, int64_t block) override {
    if (!sumsPairs())
      return sum;
    return arith::AddIOp::create(
        builder, IntegerDotWriter::createGroupSum(rows, block), addPairs(sum));
  }
  Value dot(Value sum, Value weight, Value input) override;

  /// Whether 16 bits hold the pairs of all quads of a group.
  bool sumsPairs() const {
    constexpr int64_t mostQuads =
        std::numeric_limits<int16_t>::max() / (2 * 15 * 127);
    return storage.number == NumberFormat::Int4 &&
           group <= mostQuads * numbersOfWord;
  }
  VectorType pairsType() const {
    return VectorType::get({2 * lanes}, builder.getI16Type());
  }
  /// The two of each word added.
  Value addPairs(Value pairs) {
    Value ones = arith::ConstantOp::create(
        builder,
        DenseElementsAttr::get(pairsType(), builder.getI16IntegerAttr(1)));
    return call(wordsType, "llvm.x86.avx2.pmadd.wd", {pairs, ones});
  }

  static constexpr int64_t mostKeptSums = 4;
};

} // namespace

Value MultiplyAddInt8Writer::dot(Value sum, Value weight, Value input) {
  if (storage.number == NumberFormat::Int8) {
    input = call(numbersType, "llvm.x86.avx2.psign.b", {input, weight});
    // The magnitude of -128 is 128 without a sign.
    Value wraps = arith::ConstantIntOp::create(builder, 0, 1);
    weight = call(numbersType, "llvm.abs.v32i8", {weight, wraps});
  }
  Value pairs = call(pairsType(), "llvm.x86.avx2.pmadd.ub.sw", {weight, input});
  return arith::AddIOp::create(builder, sum,
                               sumsPairs() ? pairs : addPairs(pairs));
}

static void emitSignedRounding(LoopBuilder &b, const Packing & /*packing*/,
                               const InputPiece &piece) {
  emitRounding(b, piece, signedOffsetOf(piece.storage));
}

const MicroKernelEmitter &sandwich::getX86MultiplyAddInt8Emitter() {
  static const BodyWriterEmitter<MultiplyAddInt8Writer, emitSignedRounding>
      emitter;
  return emitter;
}
