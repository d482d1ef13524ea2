//===- NeonBFMMLA.cpp - NEON bf16 micro-kernels ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodyWriter.h"

#include "mlir/Dialect/ArmNeon/ArmNeonDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// bfmmla: each register holds 2 x 2 sums; the operands are 4 k of two rows and
/// 4 k of two columns.
class BFMMLAWriter final : public BodyWriter {
public:
  BFMMLAWriter(ImplicitLocOpBuilder &builder,
               const MicroKernelSpecialization &specialization,
               const MicroKernelArguments &arguments)
      : BodyWriter(builder, specialization, arguments, /*blockRows=*/2) {}

private:
  Value loadSum(int64_t row, int64_t column) override;
  Value createZeroSum() override;
  void storeSum(Value sum, int64_t row, int64_t column) override;
  Value loadInput(const InputPlace &place) override;
  Value loadPackedInput(int64_t row, Value begin) override;
  Value loadWeight(Value panel, Value offset) override;
  Value multiply(Value sum, Value input, Value weight) override;

  Value pin(Value sum, Value /*streamed*/, bool /*usedOnce*/) override {
    return pinRegisters(sum, "w");
  }

  VectorType getVector(int64_t size, Type element) {
    return VectorType::get({size}, element);
  }
  /// The `size` elements of two rows from [row, column] on, the second row in
  /// the upper half; of a single row, that row twice.
  Value loadPair(Value matrix, Value row, Value column, int64_t size);
};

} // namespace

/// The `size` elements of two rows of `matrix` from `column` on, one after the
/// other.
static Value loadBoth(ImplicitLocOpBuilder &builder, Value matrix, Value first,
                      Value second, Value column, int64_t size) {
  Type element = cast<MemRefType>(matrix.getType()).getElementType();
  auto load = [&](Value row) -> Value {
    return vector::LoadOp::create(builder, VectorType::get({size}, element),
                                  matrix, ValueRange{row, column});
  };
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(2 * size));
  Value lower = load(first);
  Value upper = first == second ? lower : load(second);
  return vector::ShuffleOp::create(builder, lower, upper, order);
}

Value BFMMLAWriter::loadPair(Value matrix, Value row, Value column,
                             int64_t size) {
  Value second = kernel.rows > 1 ? addConstant(builder, row, 1) : row;
  return loadBoth(builder, matrix, row, second, column, size);
}

void sandwich::emitPairPacking(LoopBuilder &b, const Packing &packing,
                               const InputPiece &piece) {
  const int64_t step = packing.kPack;
  Value pairs = b.div(b.add(piece.rows, 1), 2);
  Value zero = b.index(0), last = b.sub(piece.rows, b.index(1));
  b.forLoop(zero, pairs, 1, [&](Value pair) {
    // The last row of an odd number is the second of its pair.
    Value second = b.min(b.add(b.mul(pair, 2), 1), last);
    Value first = b.sub(second, b.min(second, b.index(1)));
    Value place = b.add(piece.place, b.mul(pair, 2 * step));
    b.forLoop(zero, piece.k, step, [&](Value k) {
      Value both =
          loadBoth(b, piece.input, b.add(piece.firstRow, first),
                   b.add(piece.firstRow, second), b.add(piece.firstK, k), step);
      vector::StoreOp::create(
          b, both, piece.packed,
          ValueRange{zero, b.add(place, b.mul(b.mul(k, pairs), 2))});
    });
  });
}

Value BFMMLAWriter::loadPackedInput(int64_t row, Value begin) {
  return vector::LoadOp::create(
      builder, getVector(2 * packing.kPack, builder.getBF16Type()), input,
      ValueRange{createIndex(builder, 0),
                 addConstant(builder, begin, row * packing.kPack)});
}

Value BFMMLAWriter::loadSum(int64_t row, int64_t column) {
  return loadPair(sumsBlock, createIndex(builder, row),
                  createIndex(builder, column), 2);
}

Value BFMMLAWriter::createZeroSum() {
  return arith::ConstantOp::create(
      builder, builder.getZeroAttr(getVector(4, builder.getF32Type())));
}

void BFMMLAWriter::storeSum(Value sum, int64_t row, int64_t column) {
  for (int64_t half = 0; half < 2 && row + half < kernel.rows; ++half) {
    Value sums = vector::ShuffleOp::create(
        builder, sum, sum, ArrayRef<int64_t>{2 * half, 2 * half + 1});
    vector::StoreOp::create(builder, sums, sumsBlock,
                            ValueRange{createIndex(builder, row + half),
                                       createIndex(builder, column)});
  }
}

Value BFMMLAWriter::loadInput(const InputPlace &place) {
  return loadPair(input, place.row, place.k, packing.kPack);
}

Value BFMMLAWriter::loadWeight(Value panel, Value offset) {
  return vector::LoadOp::create(
      builder, getVector(2 * packing.kPack, builder.getBF16Type()), panel,
      ValueRange{offset});
}

Value BFMMLAWriter::multiply(Value sum, Value input, Value weight) {
  return arm_neon::BfmmlaOp::create(builder, sum.getType(), sum, input, weight);
}

const MicroKernelEmitter &sandwich::getNeonBFMMLAEmitter() {
  static const BodyWriterEmitter<BFMMLAWriter, emitPairPacking> emitter;
  return emitter;
}
