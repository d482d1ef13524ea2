//===- Elementwise.cpp - Operations on channels as loops ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `lm.deal_rows` row by row, and what is written to the cache.
///
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "sandwich/Dialect/LM/Utils/CacheWriter.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static int64_t channelsOf(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getDimSize(1);
}

/// Writes the thread's rows of `destination`; `compute` gets a row, a channel
/// and a width, and gives that vector of results.
static void forOwnVectors(
    LoopBuilder &builder, const ProgramContext &program, Value destination,
    function_ref<Value(Value row, Value channel, int64_t width)> compute) {
  forOwnRows(builder, program, destination, [&](Value row) {
    builder.forVectors(channelsOf(destination),
                       [&](Value channel, int64_t width) {
                         builder.storeVector(compute(row, channel, width),
                                             destination, {row, channel});
                       });
  });
}

static void lowerDealRows(LoopBuilder &builder, const ProgramContext &program,
                          DealRowsOp op) {
  auto ranks = static_cast<int64_t>(op.getRanks());
  Value rank = phase::RankOp::create(
      builder, builder.getIndexType(),
      phase::getArgument(program.function, phase::ProgramArgument::Team));
  const bool deterministic = isDeterministic(op);
  forOwnVectors(builder, program, op.getDestination(),
                [&](Value row, Value channel, int64_t width) {
                  Value owner = deterministic ? builder.index(0)
                                              : builder.rem(row, ranks);
                  Value isOwn = arith::CmpIOp::create(
                      builder, arith::CmpIPredicate::eq, owner, rank);
                  return Value(arith::SelectOp::create(
                      builder, isOwn,
                      builder.loadVector(op.getInput(), {row, channel}, width),
                      builder.splat(0, width)));
                });
}

static void lowerAppendKV(LoopBuilder &builder, const ProgramContext &program,
                          AppendKVOp op) {
  CacheWriter cache(builder, op.getKvCache(), op.getLayer());
  const int64_t headDim = cache.headDim();
  // Head by head: the keys of a block lie transposed, so that its tokens write
  // the same lines of a head, one after the other, while they are in L1.
  builder.forLoop(
      builder.index(0), builder.index(channelsOf(op.getKey()) / headDim), 1,
      [&](Value head) {
        forOwnRows(builder, program, op.getKey(), [&](Value row) {
          CacheWriter::Place place = cache.locate(op.getSlots(), row);
          Value channel = builder.mul(head, headDim);
          auto channelsOfRow = [&](Value buffer) {
            return
                [&builder, row, channel, buffer](Value first, int64_t width) {
                  return builder.loadVector(
                      buffer, {row, builder.add(channel, first)}, width);
                };
          };
          cache.storeKey(place, head, channelsOfRow(op.getKey()));
          cache.storeValue(place, head, channelsOfRow(op.getValue()));
        });
      });
}

void lm::attachElementwiseLowerings(MLIRContext &context) {
  AppendKVOp::attachInterface<LoopLoweringModel<AppendKVOp, lowerAppendKV>>(
      context);
  DealRowsOp::attachInterface<LoopLoweringModel<DealRowsOp, lowerDealRows>>(
      context);
}
