//===- Epilogue.cpp - What a matmul does to its sums ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "sandwich/Conversion/WeightAccess.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// Writes an epilogue in vectors, and one by one where columns end in between:
/// masked accesses to bf16 would become calls of a library on CPUs without
/// AVX512_BF16.
class EpilogueWriter {
public:
  EpilogueWriter(LoopBuilder &builder, gemm::MatmulOp op,
                 const SumsBlock &block)
      : b(builder), op(op), block(block) {}

  void writeElementwise();
  void writeSiluMul();

private:
  /// Vectors over `count` elements; `body` gets each one's first element and
  /// its size.
  void forEachVector(Value count, bool hasTail,
                     function_ref<void(Value, int64_t)> body);

  LoopBuilder &b;
  gemm::MatmulOp op;
  const SumsBlock &block;
};

} // namespace

void EpilogueWriter::forEachVector(Value count, bool hasTail,
                                   function_ref<void(Value, int64_t)> body) {
  Value full = hasTail ? b.sub(count, b.rem(count, vectorWidth)) : count;
  b.forLoop(b.index(0), full, vectorWidth,
            [&](Value first) { body(first, vectorWidth); });
  if (hasTail)
    b.forLoop(full, count, 1, [&](Value first) { body(first, 1); });
}

void EpilogueWriter::writeElementwise() {
  Value bias;
  if (op.getBiasAttr())
    bias = getWeightSlice(b, op, op.getBiasAttr(), op.getLayer());
  int64_t channels = lm::getDestinationType(op).getDimSize(1);
  b.forLoop(b.index(0), block.rows, 1, [&](Value blockRow) {
    Value row = b.add(block.firstRow, blockRow);
    forEachVector(block.columns, channels % vectorWidth != 0,
                  [&](Value blockColumn, int64_t size) {
                    Value column = b.add(block.firstColumn, blockColumn);
                    Value result =
                        b.loadVector(block.sums, {blockRow, blockColumn}, size);
                    if (bias)
                      result = b.addf(result, b.loadVector(bias, column, size));
                    if (op.getResidual())
                      result = b.addf(
                          b.loadVector(op.getResidual(), {row, column}, size),
                          result);
                    b.storeVector(result, op.getDestination(), {row, column});
                  });
  });
}

void EpilogueWriter::writeSiluMul() {
  int64_t group = *lm::lookupWeight(op, op.getWeightAttr()).getInterleave();
  Value bias;
  if (op.getBiasAttr())
    bias = getWeightSlice(b, op, op.getBiasAttr(), op.getLayer());
  int64_t channels = lm::getDestinationType(op).getDimSize(1);
  // A pair of groups takes twice the columns of its result.
  Value pairs = b.div(block.columns, 2 * group);
  Value firstResult = b.div(block.firstColumn, 2);
  bool hasTail = channels % vectorWidth != 0 || group % vectorWidth != 0;
  b.forLoop(b.index(0), block.rows, 1, [&](Value blockRow) {
    Value row = b.add(block.firstRow, blockRow);
    b.forLoop(b.index(0), pairs, 1, [&](Value pair) {
      Value firstGate = b.mul(pair, 2 * group);
      Value resultOfPair = b.add(firstResult, b.mul(pair, group));
      // The last group is filled up, its end is no channel of the result.
      Value rest = b.sub(b.index(channels), resultOfPair);
      Value count = b.min(rest, b.index(group));
      forEachVector(count, hasTail, [&](Value first, int64_t size) {
        Value column = b.add(resultOfPair, first);
        Value gateColumn = b.add(firstGate, first);
        Value gate = b.loadVector(block.sums, {blockRow, gateColumn}, size);
        Value up = b.loadVector(block.sums,
                                {blockRow, b.add(gateColumn, group)}, size);
        if (bias) {
          gate = b.addf(gate, b.loadVector(bias, column, size));
          up = b.addf(up, b.loadVector(bias, b.add(column, channels), size));
        }
        Value exponential =
            math::ExpOp::create(b, arith::NegFOp::create(b, gate));
        Value activated = arith::DivFOp::create(
            b, gate, b.addf(b.splat(1, size), exponential));
        b.storeVector(b.mulf(activated, up), op.getDestination(),
                      {row, column});
      });
    });
  });
}

void sandwich::emitEpilogue(LoopBuilder &builder, gemm::MatmulOp op,
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
