//===- X86DotBF16.cpp - AVX512_BF16 micro-kernels -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vector.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// vdpbf16ps: every lane adds the products of a pair of bf16.
class DotBF16Writer final : public VectorWriter {
public:
  using VectorWriter::VectorWriter;

private:
  Value loadInput(const InputPlace &place) override;
  Value multiply(Value sum, Value input, Value weight) override;
  Value pin(Value sum, Value /*streamed*/, bool /*usedOnce*/) override {
    return pinRegisters(sum, "v");
  }
};

} // namespace

Value DotBF16Writer::loadInput(const InputPlace &place) {
  // A pair of bf16 is broadcast as one 32-bit integer.
  Type i32 = builder.getI32Type();
  Value pair = loadElements(i32, place);
  Value all =
      vector::BroadcastOp::create(builder, VectorType::get({lanes}, i32), pair);
  return vector::BitCastOp::create(
      builder, VectorType::get({2 * lanes}, builder.getBF16Type()), all);
}

Value DotBF16Writer::multiply(Value sum, Value input, Value weight) {
  return x86vector::DotBF16Op::create(builder, sumType, sum, input, weight);
}

const MicroKernelEmitter &sandwich::getX86DotBF16Emitter() {
  static const BodyWriterEmitter<DotBF16Writer> emitter;
  return emitter;
}
