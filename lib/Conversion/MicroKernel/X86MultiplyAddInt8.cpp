//===- X86MultiplyAddInt8.cpp - AVX2 micro-kernels of integers ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// vpmaddubsw adds pairs of products of numbers without and with a sign in 16
/// bits, vpmaddwd with ones pairs of these. Of 8 bits the weight's sign is
/// given to the input, as two products of 255 by 127 would not fit: 128 by 127
/// twice does.
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
  Value dot(Value sum, Value weight, Value input) override;
};

} // namespace

Value MultiplyAddInt8Writer::dot(Value sum, Value weight, Value input) {
  if (storage.number == NumberFormat::Int8) {
    input = call(numbersType, "llvm.x86.avx2.psign.b", {input, weight});
    // The magnitude of -128 is 128 without a sign.
    Value wraps = arith::ConstantIntOp::create(builder, 0, 1);
    weight = call(numbersType, "llvm.abs.v32i8", {weight, wraps});
  }
  auto pairsType = VectorType::get({2 * lanes}, builder.getI16Type());
  Value pairs = call(pairsType, "llvm.x86.avx2.pmadd.ub.sw", {weight, input});
  Value ones = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(pairsType, builder.getI16IntegerAttr(1)));
  Value words = call(wordsType, "llvm.x86.avx2.pmadd.wd", {pairs, ones});
  return arith::AddIOp::create(builder, sum, words);
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
