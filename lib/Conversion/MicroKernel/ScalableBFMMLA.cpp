//===- ScalableBFMMLA.cpp - SVE bf16 micro-kernels ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodyWriter.h"
#include "ScalableVector.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// SVE's bfmmla does in each 128 bits what NEON's does: two columns of two
/// rows. MLIR has no operation for it, nor for what arranges 64 bits.
class ScalableBFMMLAWriter final : public BodyWriter {
public:
  ScalableBFMMLAWriter(ImplicitLocOpBuilder &builder,
                       const MicroKernelSpecialization &specialization,
                       const MicroKernelArguments &arguments)
      : BodyWriter(builder, specialization, arguments, /*blockRows=*/2) {
    columnsOfRow = vector::CreateMaskOp::create(
        builder, getVector(4, builder.getI1Type()),
        createColumnsOfVector(builder, kernel.isa));
  }

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

  /// `size` elements in each 128 bits.
  VectorType getVector(int64_t size, Type element) {
    return VectorType::get({size}, element, {true});
  }
  VectorType getSumType() { return getVector(4, builder.getF32Type()); }
  VectorType getOperandType() {
    return getVector(2 * packing.kPack, builder.getBF16Type());
  }
  Value callIntrinsic(StringRef name, Type result, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(
               builder, result,
               builder.getStringAttr("llvm.aarch64.sve." + name), operands)
        .getResults();
  }
  /// `first` and `second`, of any type, arranged by pieces of 64 bits.
  Value arrange(StringRef name, Value first, Value second) {
    Type pieces = getVector(2, builder.getI64Type());
    return vector::BitCastOp::create(
        builder, cast<VectorType>(first.getType()),
        callIntrinsic((name + ".nxv2i64").str(), pieces,
                      {vector::BitCastOp::create(
                           builder, cast<VectorType>(pieces), first),
                       vector::BitCastOp::create(
                           builder, cast<VectorType>(pieces), second)}));
  }

  /// Of a register of f32 the elements that one row of sums has.
  Value columnsOfRow;
  /// Packed input: the element that the step begins at.
  Value step;
};

} // namespace

Value ScalableBFMMLAWriter::loadSum(int64_t row, int64_t column) {
  Value none = createZeroSum();
  auto load = [&](int64_t row) -> Value {
    return vector::MaskedLoadOp::create(
        builder, getSumType(), sumsBlock,
        ValueRange{createIndex(builder, row), createIndex(builder, column)},
        columnsOfRow, none);
  };
  Value first = load(row);
  return arrange("zip1", first, kernel.rows > 1 ? load(row + 1) : first);
}

Value ScalableBFMMLAWriter::createZeroSum() {
  return arith::ConstantOp::create(builder, builder.getZeroAttr(getSumType()));
}

void ScalableBFMMLAWriter::storeSum(Value sum, int64_t row, int64_t column) {
  constexpr StringRef ofRow[] = {"uzp1", "uzp2"};
  for (int64_t half = 0; half < 2 && row + half < kernel.rows; ++half)
    vector::MaskedStoreOp::create(builder, sumsBlock,
                                  ValueRange{createIndex(builder, row + half),
                                             createIndex(builder, column)},
                                  columnsOfRow, arrange(ofRow[half], sum, sum));
}

Value ScalableBFMMLAWriter::loadInput(const InputPlace &place) {
  auto load = [&](Value row) -> Value {
    Value elements = vector::LoadOp::create(
        builder, VectorType::get({packing.kPack}, builder.getBF16Type()), input,
        ValueRange{row, place.k});
    Type i64 = builder.getI64Type();
    Value bits = vector::ExtractOp::create(
        builder,
        vector::BitCastOp::create(builder, VectorType::get({1}, i64), elements),
        0);
    Value all = vector::BroadcastOp::create(builder, getVector(2, i64), bits);
    return vector::BitCastOp::create(builder, getOperandType(), all);
  };
  Value first = load(place.row);
  if (kernel.rows == 1)
    return first;
  return arrange("zip1", first, load(addConstant(builder, place.row, 1)));
}

Value ScalableBFMMLAWriter::loadPackedInput(int64_t row, Value begin) {
  // LLVM would keep an address for each pair that is at too much distance.
  constexpr int64_t rowsInReach = 16;
  if (row == 0)
    step = kernel.rows > rowsInReach ? hide(begin) : begin;
  Value pair = vector::LoadOp::create(
      builder, VectorType::get({2 * packing.kPack}, builder.getBF16Type()),
      input,
      ValueRange{createIndex(builder, 0),
                 addConstant(builder, step, row * packing.kPack)});
  Value anything = LLVM::PoisonOp::create(builder, getOperandType());
  Value first = vector::ScalableInsertOp::create(builder, pair, anything, 0);
  Value zero = arith::ConstantIntOp::create(builder, 0, 64);
  return callIntrinsic("dupq.lane.nxv8bf16", getOperandType(), {first, zero});
}

Value ScalableBFMMLAWriter::loadWeight(Value panel, Value offset) {
  return vector::LoadOp::create(builder, getOperandType(), panel,
                                ValueRange{offset});
}

Value ScalableBFMMLAWriter::multiply(Value sum, Value input, Value weight) {
  return callIntrinsic("bfmmla", getSumType(), {sum, input, weight});
}

const MicroKernelEmitter &sandwich::getScalableBFMMLAEmitter() {
  static const BodyWriterEmitter<InPasses<ScalableBFMMLAWriter>,
                                 emitPairPacking>
      emitter;
  return emitter;
}
