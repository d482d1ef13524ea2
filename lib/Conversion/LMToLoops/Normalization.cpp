//===- Normalization.cpp - Norms of rows as loops -------------------------===//
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

/// Independent sums: enough to hide the latency of additions.
static constexpr int64_t numSums = 4;

/// The sum of `size` channels of `row` from `begin` on; `accumulate` adds the
/// term of a vector of channels to a vector of sums.
static Value
sumChannels(LoopBuilder &builder, Value input, Value row, Value begin,
            int64_t size,
            function_ref<Value(Value channels, Value sum)> accumulate) {
  int64_t unrolled = size / (numSums * vectorWidth) * numSums * vectorWidth;
  auto addVector = [&](Value channel, int64_t width, Value sum) {
    return accumulate(
        builder.loadVector(input, {row, builder.add(begin, channel)}, width),
        sum);
  };
  SmallVector<Value> sums(numSums, builder.splat(0));
  if (unrolled != 0)
    sums = builder.forLoop(
        builder.index(0), builder.index(unrolled), numSums * vectorWidth, sums,
        [&](Value first, ValueRange carried) {
          SmallVector<Value> next;
          for (auto [i, sum] : llvm::enumerate(carried))
            next.push_back(addVector(builder.add(first, i * vectorWidth),
                                     vectorWidth, sum));
          return next;
        });
  Value narrow;
  for (VectorPiece piece : cutIntoVectors(size - unrolled)) {
    Value first = builder.index(unrolled + piece.first);
    if (piece.width == vectorWidth) {
      Value &sum = sums[piece.first / vectorWidth];
      sum = addVector(first, piece.width, sum);
    } else {
      narrow = addVector(first, piece.width, builder.splat(0, piece.width));
    }
  }
  Value total = builder.reduceAdd(builder.addf(builder.addf(sums[0], sums[1]),
                                               builder.addf(sums[2], sums[3])));
  return narrow ? builder.addf(total, builder.reduceAdd(narrow)) : total;
}

/// `1 / sqrt(sum / count + epsilon)`.
static Value inverseRoot(LoopBuilder &builder, Value sum, Value count,
                         Value epsilon) {
  Value mean = arith::DivFOp::create(builder, sum, count);
  Value root = math::SqrtOp::create(builder, builder.addf(mean, epsilon));
  return arith::DivFOp::create(builder, builder.constant(1), root);
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
          Value squares = sumChannels(
              builder, input, row, begin, size,
              [&](Value x, Value sum) { return builder.fma(x, x, sum); });
          Value factor = inverseRoot(builder, squares, count, epsilon);
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

/// In two passes, as the mean square minus the squared mean would lose the
/// variance of a row that is far from zero.
static void lowerLayerNorm(LoopBuilder &builder, const ProgramContext &program,
                           LayerNormOp op) {
  Value input = op.getInput(), destination = op.getDestination();
  int64_t channels = cast<MemRefType>(input.getType()).getDimSize(1);
  auto slice = [&](FlatSymbolRefAttr name) {
    return getWeightSlice(builder, program.symbols, op, name, op.getLayer());
  };
  Value weight = slice(op.getWeightAttr()), bias = slice(op.getBiasAttr());
  Value epsilon = builder.constant(op.getEpsilon().convertToFloat());
  Value count = builder.constant(static_cast<float>(channels));
  forOwnRows(builder, program, input, [&](Value row) {
    auto sumRow = [&](function_ref<Value(Value x, Value sum)> accumulate) {
      return sumChannels(builder, input, row, builder.index(0), channels,
                         accumulate);
    };
    Value total =
        sumRow([&](Value x, Value sum) { return builder.addf(x, sum); });
    Value mean = arith::DivFOp::create(builder, total, count);
    auto center = [&](Value x) {
      return builder.subf(
          x, builder.broadcast(mean,
                               cast<VectorType>(x.getType()).getNumElements()));
    };
    Value squares = sumRow([&](Value x, Value sum) {
      Value distance = center(x);
      return builder.fma(distance, distance, sum);
    });
    Value factor = inverseRoot(builder, squares, count, epsilon);
    builder.forVectors(channels, [&](Value channel, int64_t width) {
      Value x =
          builder.mulf(center(builder.loadVector(input, {row, channel}, width)),
                       builder.broadcast(factor, width));
      builder.storeVector(
          builder.fma(x, builder.loadVector(weight, channel, width),
                      builder.loadVector(bias, channel, width)),
          destination, {row, channel});
    });
  });
}

static void lowerL2Normalize(LoopBuilder &builder,
                             const ProgramContext &program, L2NormalizeOp op) {
  Value input = op.getInput(), destination = op.getDestination();
  int64_t channels = cast<MemRefType>(input.getType()).getDimSize(1);
  // Of torch.nn.functional.normalize.
  Value shortest = builder.constant(1e-12F);
  forOwnRows(builder, program, input, [&](Value row) {
    Value squares =
        sumChannels(builder, input, row, builder.index(0), channels,
                    [&](Value x, Value sum) { return builder.fma(x, x, sum); });
    Value length = arith::MaximumFOp::create(
        builder, math::SqrtOp::create(builder, squares), shortest);
    builder.forVectors(channels, [&](Value channel, int64_t width) {
      Value x = builder.loadVector(input, {row, channel}, width);
      builder.storeVector(
          arith::DivFOp::create(builder, x, builder.broadcast(length, width)),
          destination, {row, channel});
    });
  });
}

void lm::attachNormLowerings(MLIRContext &context) {
  LayerNormOp::attachInterface<LoopLoweringModel<LayerNormOp, lowerLayerNorm>>(
      context);
  RMSNormOp::attachInterface<LoopLoweringModel<RMSNormOp, lowerRMSNorm>>(
      context);
  L2NormalizeOp::attachInterface<
      LoopLoweringModel<L2NormalizeOp, lowerL2Normalize>>(context);
}
