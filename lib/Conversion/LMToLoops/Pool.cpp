//===- Pool.cpp - lm.pool as loops ----------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "sandwich/Runtime/PhaseABI.h"

#include <cstddef>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

/// The number in `segment` at `offset` bytes of a SandwichSegment.
static Value loadField(LoopBuilder &builder, Value segments, Value segment,
                       size_t offset) {
  Value field = builder.index(static_cast<int64_t>(offset / sizeof(int32_t)));
  return arith::IndexCastOp::create(
      builder, builder.getIndexType(),
      memref::LoadOp::create(builder, segments, ValueRange{segment, field}));
}

static void lowerPool(LoopBuilder &builder, const ProgramContext &program,
                      PoolOp op) {
  Value input = op.getInput(), destination = op.getDestination();
  const int64_t channels =
      cast<MemRefType>(destination.getType()).getDimSize(1);
  forOwnRows(builder, program, destination, [&](Value segment) {
    Value first = loadField(builder, op.getSegments(), segment,
                            offsetof(SandwichSegment, first_token));
    Value tokens = loadField(builder, op.getSegments(), segment,
                             offsetof(SandwichSegment, num_tokens));
    Value end = builder.add(first, tokens);
    auto copy = [&](Value row) {
      builder.forVectors(channels, [&](Value channel, int64_t width) {
        builder.storeVector(builder.loadVector(input, {row, channel}, width),
                            destination, {segment, channel});
      });
    };
    if (op.getKind() == PoolKind::Cls)
      return copy(first);
    if (op.getKind() == PoolKind::Last)
      return copy(builder.sub(end, builder.index(1)));
    // Column by column of vectors: sums stay in a register. Rows of one text
    // are alike, so that rounding errors of thousands of them in f32 need not
    // cancel.
    Type f64 = builder.getF64Type();
    Value count = arith::UIToFPOp::create(
        builder, f64,
        arith::IndexCastOp::create(builder, builder.getI32Type(), tokens));
    builder.forVectors(channels, [&](Value channel, int64_t width) {
      auto wide = VectorType::get({width}, f64);
      Value zero =
          arith::ConstantOp::create(builder, DenseElementsAttr::get(wide, 0.0));
      Value sum =
          builder
              .forLoop(first, end, 1, zero,
                       [&](Value row, ValueRange carried) {
                         Value added = arith::ExtFOp::create(
                             builder, wide,
                             builder.loadVector(input, {row, channel}, width));
                         return SmallVector<Value>{
                             builder.addf(carried.front(), added)};
                       })
              .front();
      Value mean = arith::DivFOp::create(
          builder, sum, vector::BroadcastOp::create(builder, wide, count));
      builder.storeVector(
          arith::TruncFOp::create(
              builder, VectorType::get({width}, builder.getF32Type()), mean),
          destination, {segment, channel});
    });
  });
}

void lm::attachPoolLowering(MLIRContext &context) {
  PoolOp::attachInterface<LoopLoweringModel<PoolOp, lowerPool>>(context);
}
