//===- NeonDotInt8.cpp - NEON micro-kernels of integers -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// sdot: both have signs. Those of 4 bits are positive as they are stored.
class NeonDotInt8Writer final : public IntegerDotWriter {
public:
  using IntegerDotWriter::IntegerDotWriter;

private:
  Value extract(Value bytes, bool high) override {
    if (storage.number == NumberFormat::Int8)
      return arith::XOrIOp::create(builder, bytes, splatBytes(0x80));
    return extractUnsigned(bytes, high);
  }
  int64_t extractedOffset() const override { return signedOffsetOf(storage); }
  Value dot(Value sum, Value weight, Value input) override {
    return call(wordsType, "llvm.aarch64.neon.sdot.v4i32.v16i8",
                {sum, weight, input});
  }
};

} // namespace

static void emitSignedRounding(LoopBuilder &b, const Packing & /*packing*/,
                               const InputPiece &piece) {
  emitRounding(b, piece, signedOffsetOf(piece.storage));
}

const MicroKernelEmitter &sandwich::getNeonDotInt8Emitter() {
  static const BodyWriterEmitter<NeonDotInt8Writer, emitSignedRounding> emitter;
  return emitter;
}
