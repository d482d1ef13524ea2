//===- Embed.cpp - lm.embed as loops --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

/// Copies row `from` of a weight that is packed for matmuls too (a tied output
/// head). A row's elements lie in pieces of `k_pack`.
static void copyPackedRow(LoopBuilder &builder, gemm::PackingAttr packing,
                          Value weight, Value from, int64_t channels,
                          Value destination, Value to) {
  int64_t pack = packing.getKPack(), step = packing.getKStep();
  Value panel = builder.div(from, packing.getPanel());
  Value tile =
      builder.div(builder.rem(from, packing.getPanel()), packing.getTile());
  Value column = builder.rem(from, packing.getTile());
  // K is a multiple of k_step.
  builder.forLoop(
      builder.index(0), builder.index(channels / step), 1, [&](Value kStep) {
        Value firstOfStep = builder.mul(kStep, step);
        builder.forLoop(
            builder.index(0), builder.index(step / pack), 1, [&](Value kPack) {
              Value first = builder.add(firstOfStep, builder.mul(kPack, pack));
              Value piece = builder.loadVector(
                  weight, {panel, kStep, tile, kPack, column, builder.index(0)},
                  pack);
              builder.storeVector(piece, destination, {to, first});
            });
      });
}

static void lowerEmbed(LoopBuilder &builder, const ProgramContext &program,
                       EmbedOp op) {
  Value destination = op.getDestination();
  WeightOp weightOp = lookupWeight(program.symbols, op, op.getWeightAttr());
  Value weight =
      getWeightSlice(builder, program.symbols, op, op.getWeightAttr(), Value());
  int64_t channels = weightOp.getTensorType().getDimSize(1);
  auto packing = dyn_cast_or_null<gemm::PackingAttr>(weightOp.getPackingAttr());
  forOwnRows(builder, program, op.getIndices(), [&](Value row) {
    Value from = builder.loadIndex(op.getIndices(), row);
    if (const int64_t offset = op.getOffsetAttr().getInt())
      from = builder.add(from, offset);
    if (packing)
      return copyPackedRow(builder, packing, weight, from, channels,
                           destination, row);
    builder.forVectors(channels, [&](Value first, int64_t width) {
      builder.storeVector(builder.loadVector(weight, {from, first}, width),
                          destination, {row, first});
    });
  });
}

void lm::attachEmbedLowering(MLIRContext &context) {
  EmbedOp::attachInterface<LoopLoweringModel<EmbedOp, lowerEmbed>>(context);
}
