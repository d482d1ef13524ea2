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
  explicit EpilogueWriter(gemm::EpilogueOp op) : b(op.getLoc(), op), op(op) {}

  void writeElementwise();
  void writeSiluMul();

private:
  /// Vectors over `count` elements; `body` gets each one's first element and
  /// its size.
  void forEachVector(Value count, bool hasTail,
                     function_ref<void(Value, int64_t)> body);

  LoopBuilder b;
  gemm::EpilogueOp op;
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
  int64_t channels =
      cast<MemRefType>(op.getDestination().getType()).getDimSize(1);
  b.forLoop(b.index(0), op.getRows(), 1, [&](Value blockRow) {
    Value row = b.add(op.getFirstRow(), blockRow);
    forEachVector(
        op.getColumns(), channels % vectorWidth != 0,
        [&](Value blockColumn, int64_t size) {
          Value column = b.add(op.getFirstColumn(), blockColumn);
          Value result =
              b.loadVector(op.getSums(), {blockRow, blockColumn}, size);
          if (bias)
            result = b.addf(result, b.loadVector(bias, column, size));
          if (op.getResidual())
            result = b.addf(b.loadVector(op.getResidual(), {row, column}, size),
                            result);
          b.storeVector(result, op.getDestination(), {row, column});
        });
  });
}

void EpilogueWriter::writeSiluMul() {
  int64_t group = static_cast<int64_t>(*op.getInterleave());
  Value bias;
  if (op.getBiasAttr())
    bias = getWeightSlice(b, op, op.getBiasAttr(), op.getLayer());
  int64_t channels =
      cast<MemRefType>(op.getDestination().getType()).getDimSize(1);
  // A pair of groups takes twice the columns of its result.
  Value pairs = b.div(op.getColumns(), 2 * group);
  Value firstResult = b.div(op.getFirstColumn(), 2);
  bool hasTail = channels % vectorWidth != 0 || group % vectorWidth != 0;
  b.forLoop(b.index(0), op.getRows(), 1, [&](Value blockRow) {
    Value row = b.add(op.getFirstRow(), blockRow);
    b.forLoop(b.index(0), pairs, 1, [&](Value pair) {
      Value firstGate = b.mul(pair, 2 * group);
      Value resultOfPair = b.add(firstResult, b.mul(pair, group));
      // The last group is filled up, its end is no channel of the result.
      Value rest = b.sub(b.index(channels), resultOfPair);
      Value count = b.min(rest, b.index(group));
      forEachVector(count, hasTail, [&](Value first, int64_t size) {
        Value column = b.add(resultOfPair, first);
        Value gateColumn = b.add(firstGate, first);
        Value gate = b.loadVector(op.getSums(), {blockRow, gateColumn}, size);
        Value up = b.loadVector(op.getSums(),
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

void sandwich::emitEpilogue(gemm::EpilogueOp op) {
  switch (op.getEpilogue()) {
  case gemm::Epilogue::None:
  case gemm::Epilogue::AddResidual:
    EpilogueWriter(op).writeElementwise();
    break;
  case gemm::Epilogue::SiluMul:
    EpilogueWriter(op).writeSiluMul();
    break;
  case gemm::Epilogue::RotateAppendKV:
    emitRotateAppendKV(op);
    break;
  }
  op.erase();
}
