//===- X86DotInt8.cpp - AVX512_VNNI micro-kernels -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// vpdpbusd: numbers of the weight have no sign, as they are stored, and those
/// of the input have one.
class DotInt8Writer final : public IntegerDotWriter {
public:
  using IntegerDotWriter::IntegerDotWriter;

private:
  Value extract(Value bytes, bool high) override;
  StringRef intrinsic() const override {
    return "llvm.x86.avx512.vpdpbusd.512";
  }
  Value pin(Value sum, Value /*streamed*/, bool /*usedOnce*/) override {
    return pinRegisters(sum, "v");
  }
};

} // namespace

Value DotInt8Writer::extract(Value bytes, bool high) {
  if (storage.number == NumberFormat::Int8)
    return bytes;
  if (high) {
    // There are no shifts of bytes; the mask takes away what came from others.
    Value words = vector::BitCastOp::create(builder, groupSumType, bytes);
    Value distance = arith::ConstantOp::create(
        builder,
        DenseElementsAttr::get(groupSumType, builder.getI32IntegerAttr(4)));
    words = arith::ShRUIOp::create(builder, words, distance);
    bytes = vector::BitCastOp::create(builder, numbersType, words);
  }
  return arith::AndIOp::create(builder, bytes, splatBytes(0x0f));
}

static void emitUnsignedRounding(LoopBuilder &b, const Packing & /*packing*/,
                                 const InputPiece &piece) {
  emitRounding(b, piece, /*extractedOffset=*/0);
}

const MicroKernelEmitter &sandwich::getX86DotInt8Emitter() {
  static const BodyWriterEmitter<DotInt8Writer, emitUnsignedRounding> emitter;
  return emitter;
}
