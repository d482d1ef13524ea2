//===- X86DotInt8.cpp - VNNI micro-kernels --------------------------------===//
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

/// vpdpbusd: numbers of the weight have no sign, as they are stored, and those
/// of the input have one.
class DotInt8Writer final : public IntegerDotWriter {
public:
  using IntegerDotWriter::IntegerDotWriter;

private:
  Value extract(Value bytes, bool high) override {
    return extractUnsigned(bytes, high);
  }
  Value dot(Value sum, Value weight, Value input) override {
    // LLVM's name says AVX-512 of AVX-VNNI's form, too.
    return call(wordsType,
                kernel.isa == MatrixISA::X86_AVX_VNNI
                    ? "llvm.x86.avx512.vpdpbusd.256"
                    : "llvm.x86.avx512.vpdpbusd.512",
                {sum, weight, input});
  }
};

} // namespace

static void emitUnsignedRounding(LoopBuilder &b, const Packing & /*packing*/,
                                 const InputPiece &piece) {
  emitRounding(b, piece, /*extractedOffset=*/0);
}

const MicroKernelEmitter &sandwich::getX86DotInt8Emitter() {
  static const BodyWriterEmitter<DotInt8Writer, emitUnsignedRounding> emitter;
  return emitter;
}
