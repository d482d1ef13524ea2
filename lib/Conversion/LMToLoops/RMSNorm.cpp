//===- RMSNorm.cpp - lm.rms_norm as loops ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

/// Independent sums of squares: enough to hide the latency of additions.
static constexpr int64_t numSums = 4;

/// The sum of squares of `size` channels of `row` from `begin` on.
static Value sumOfSquares(LoopBuilder &builder, Value input, Value row,
                          Value begin, int64_t size) {
  int64_t unrolled = size / (numSums * vectorWidth) * numSums * vectorWidth;
  auto square = [&](Value channel, int64_t width, Value sum) {
    Value x =
        builder.loadVector(input, {row, builder.add(begin, channel)}, width);
    return builder.fma(x, x, sum);
  };
  SmallVector<Value> sums(numSums, builder.splat(0));
  if (unrolled != 0)
    sums = builder.forLoop(
        builder.index(0), builder.index(unrolled), numSums * vectorWidth, sums,
        [&](Value first, ValueRange carried) {
          SmallVector<Value> next;
          for (auto [i, sum] : llvm::enumerate(carried))
            next.push_back(
                square(builder.add(first, i * vectorWidth), vectorWidth, sum));
          return next;
        });
  Value narrow;
  for (VectorPiece piece : cutIntoVectors(size - unrolled)) {
    Value first = builder.index(unrolled + piece.first);
    if (piece.width == vectorWidth) {
      Value &sum = sums[piece.first / vectorWidth];
      sum = square(first, piece.width, sum);
    } else {
      narrow = square(first, piece.width, builder.splat(0, piece.width));
    }
  }
  Value total = builder.reduceAdd(builder.addf(builder.addf(sums[0], sums[1]),
                                               builder.addf(sums[2], sums[3])));
  return narrow ? builder.addf(total, builder.reduceAdd(narrow)) : total;
}

static void lowerRMSNorm(LoopBuilder &builder, const ProgramContext &program,
                         RMSNormOp op) {
  Value input = op.getInput(), destination = op.getDestination();
  int64_t channels = cast<MemRefType>(input.getType()).getDimSize(1);
  int64_t size = lookupWeight(program.symbols, op, op.getWeightAttr())
                     .getTensorType()
                     .getDimSize(0);
  Value weight = getWeightSlice(builder, program.symbols, op,
                                op.getWeightAttr(), op.getLayer());
  Value epsilon = builder.constant(op.getEpsilon().convertToFloat());
  Value count = builder.constant(static_cast<float>(size));
  forOwnRows(builder, program, input, [&](Value row) {
    builder.forLoop(
        builder.index(0), builder.index(channels), size, [&](Value begin) {
          Value mean = arith::DivFOp::create(
              builder, sumOfSquares(builder, input, row, begin, size), count);
          Value root =
              math::SqrtOp::create(builder, builder.addf(mean, epsilon));
          Value factor =
              arith::DivFOp::create(builder, builder.constant(1), root);
          builder.forVectors(size, [&](Value first, int64_t width) {
            Value channel = builder.add(begin, first);
            Value x =
                builder.mulf(builder.loadVector(input, {row, channel}, width),
                             builder.broadcast(factor, width));
            builder.storeVector(
                builder.mulf(x, builder.loadVector(weight, first, width)),
                destination, {row, channel});
          });
        });
  });
}

void lm::attachRMSNormLowering(MLIRContext &context) {
  RMSNormOp::attachInterface<LoopLoweringModel<RMSNormOp, lowerRMSNorm>>(
      context);
}
