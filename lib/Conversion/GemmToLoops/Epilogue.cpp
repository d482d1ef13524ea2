//===- Epilogue.cpp - What a matmul does to its sums ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sandwich/Conversion/WeightAccess.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// Columns in one vector.
constexpr int64_t lanes = 16;

/// Writes an epilogue in vectors of 16 columns, and one by one where columns
/// end in between: masked accesses to bf16 would become calls of a library on
/// CPUs without AVX512_BF16.
class EpilogueWriter {
public:
  EpilogueWriter(ImplicitLocOpBuilder &builder, gemm::MatmulOp op,
                 const SumsBlock &block)
      : builder(builder), op(op), block(block) {}

  void writeElementwise();
  void writeSiluMul();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, a, b); }

  void forEach(Value begin, Value end, int64_t step,
               function_ref<void(Value)> body);
  /// Vectors over `count` elements; `body` gets each one's first element and
  /// its size.
  void forEachVector(Value count, bool hasTail,
                     function_ref<void(Value, int64_t)> body);

  Value loadSums(Value row, Value column, int64_t size) {
    return load(block.sums, {row, column}, size);
  }
  /// f32, whatever the buffer's element type.
  Value load(Value buffer, ValueRange position, int64_t size);
  void store(Value vector, Value buffer, ValueRange position);

  ImplicitLocOpBuilder &builder;
  gemm::MatmulOp op;
  const SumsBlock &block;
};

} // namespace

void EpilogueWriter::forEach(Value begin, Value end, int64_t step,
                             function_ref<void(Value)> body) {
  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::ForOp::create(builder, begin, end, index(step));
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void EpilogueWriter::forEachVector(Value count, bool hasTail,
                                   function_ref<void(Value, int64_t)> body) {
  Value full = count;
  if (hasTail)
    full = sub(count, arith::RemUIOp::create(builder, count, index(lanes)));
  forEach(index(0), full, lanes, [&](Value first) { body(first, lanes); });
  if (hasTail)
    forEach(full, count, 1, [&](Value first) { body(first, 1); });
}

Value EpilogueWriter::load(Value buffer, ValueRange position, int64_t size) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  Value loaded = vector::LoadOp::create(
      builder, VectorType::get({size}, element), buffer, position);
  if (element.isF32())
    return loaded;
  return arith::ExtFOp::create(
      builder, VectorType::get({size}, builder.getF32Type()), loaded);
}

void EpilogueWriter::store(Value vector, Value buffer, ValueRange position) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  if (!element.isF32()) {
    auto type = cast<VectorType>(vector.getType());
    vector = arith::TruncFOp::create(
        builder, VectorType::get(type.getShape(), element), vector);
  }
  vector::StoreOp::create(builder, vector, buffer, position);
}

void EpilogueWriter::writeElementwise() {
  Value destination = op.getDestination();
  Value bias;
  if (op.getBiasAttr())
    bias = getWeightSlice(builder, op, op.getBiasAttr(), op.getLayer());
  int64_t channels = lm::getDestinationType(op).getDimSize(1);
  forEach(index(0), block.rows, 1, [&](Value blockRow) {
    Value row = add(block.firstRow, blockRow);
    forEachVector(block.columns, channels % lanes != 0,
                  [&](Value blockColumn, int64_t size) {
                    Value column = add(block.firstColumn, blockColumn);
                    Value result = loadSums(blockRow, blockColumn, size);
                    if (bias)
                      result = arith::AddFOp::create(builder, result,
                                                     load(bias, column, size));
                    if (op.getResidual())
                      result = arith::AddFOp::create(
                          builder, load(op.getResidual(), {row, column}, size),
                          result);
                    store(result, destination, {row, column});
                  });
  });
}

void EpilogueWriter::writeSiluMul() {
  int64_t group = *lm::lookupWeight(op, op.getWeightAttr()).getInterleave();
  Value bias;
  if (op.getBiasAttr())
    bias = getWeightSlice(builder, op, op.getBiasAttr(), op.getLayer());
  int64_t channels = lm::getDestinationType(op).getDimSize(1);
  // A pair of groups takes twice the columns of its result.
  Value pairs =
      arith::DivUIOp::create(builder, block.columns, index(2 * group));
  Value firstResult =
      arith::DivUIOp::create(builder, block.firstColumn, index(2));
  bool hasTail = channels % lanes != 0 || group % lanes != 0;
  forEach(index(0), block.rows, 1, [&](Value blockRow) {
    Value row = add(block.firstRow, blockRow);
    forEach(index(0), pairs, 1, [&](Value pair) {
      Value firstGate = arith::MulIOp::create(builder, pair, index(2 * group));
      Value resultOfPair =
          add(firstResult, arith::MulIOp::create(builder, pair, index(group)));
      // The last group is filled up, its end is no channel of the result.
      Value rest = sub(index(channels), resultOfPair);
      Value count = arith::MinSIOp::create(builder, rest, index(group));
      forEachVector(count, hasTail, [&](Value first, int64_t size) {
        Value column = add(resultOfPair, first);
        Value gateColumn = add(firstGate, first);
        Value gate = loadSums(blockRow, gateColumn, size);
        Value up = loadSums(blockRow, add(gateColumn, index(group)), size);
        if (bias) {
          gate = arith::AddFOp::create(builder, gate, load(bias, column, size));
          up = arith::AddFOp::create(
              builder, up, load(bias, add(column, index(channels)), size));
        }
        Value one = arith::ConstantOp::create(
            builder,
            DenseElementsAttr::get(cast<ShapedType>(gate.getType()), 1.0f));
        Value exponential =
            math::ExpOp::create(builder, arith::NegFOp::create(builder, gate));
        Value activated = arith::DivFOp::create(
            builder, gate, arith::AddFOp::create(builder, one, exponential));
        store(arith::MulFOp::create(builder, activated, up),
              op.getDestination(), {row, column});
      });
    });
  });
}

void sandwich::emitEpilogue(ImplicitLocOpBuilder &builder, gemm::MatmulOp op,
                            const SumsBlock &block) {
  switch (op.getEpilogue()) {
  case gemm::Epilogue::None:
  case gemm::Epilogue::AddResidual:
    return EpilogueWriter(builder, op, block).writeElementwise();
  case gemm::Epilogue::SiluMul:
    return EpilogueWriter(builder, op, block).writeSiluMul();
  case gemm::Epilogue::RotateAppendKV:
    return emitRotateAppendKV(builder, op, block);
  }
  llvm_unreachable("an epilogue without a case");
}
