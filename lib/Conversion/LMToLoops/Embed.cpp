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
#include "sandwich/Dialect/Utils/Float8.h"

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

/// The same of a quantized weight, `[N / panel][K / group]` pieces of bytes:
/// see `packGroup`. Of one column there are four numbers beside each other.
static void copyQuantizedRow(LoopBuilder &b, WeightOp weightOp,
                             gemm::PackingAttr packing, Value weight,
                             Value from, int64_t channels, Value destination,
                             Value to) {
  const StorageFormat storage = weightOp.getStorageFormat();
  const int64_t panel = packing.getPanel(), pack = packing.getKPack();
  const int64_t group = storage.groupOf(channels);
  const int64_t scaleBytes = bytesOf(storage.scale);
  Value panelNumber = b.div(from, panel), column = b.rem(from, panel);
  auto load = [&](Value groupNumber, Value byte, int64_t count) -> Value {
    return vector::LoadOp::create(b, VectorType::get({count}, b.getI8Type()),
                                  weight,
                                  ValueRange{panelNumber, groupNumber, byte});
  };
  auto loadScale = [&](Value groupNumber, int64_t first) -> Value {
    Value bytes =
        load(groupNumber, b.add(b.mul(column, scaleBytes), first), scaleBytes);
    Type element = storage.scale == ScaleFormat::F16 ? Type(b.getF16Type())
                                                     : Type(b.getF32Type());
    Value one =
        vector::BitCastOp::create(b, VectorType::get({1}, element), bytes);
    Value scale = vector::ExtractOp::create(b, one, int64_t(0));
    if (storage.scale == ScaleFormat::F16)
      scale = arith::ExtFOp::create(b, b.getF32Type(), scale);
    return b.broadcast(scale, pack);
  };
  auto loadNumbers = [&](Value groupNumber, Value quad) -> Value {
    Value place = b.mul(b.add(b.mul(quad, panel), column), pack);
    Value byte = place, shift = b.index(0);
    if (storage.number == NumberFormat::Int4) {
      constexpr int64_t line = sharedLineBytes;
      byte = b.add(b.mul(b.div(place, 2 * line), line), b.rem(place, line));
      shift = b.mul(b.rem(b.div(place, line), 2), storage.bits());
    }
    auto wide = VectorType::get({pack}, b.getI32Type());
    Value numbers =
        arith::ExtUIOp::create(b, wide, load(groupNumber, byte, pack));
    if (storage.number == NumberFormat::FP8)
      return extendFloat8(b, numbers, 0);
    Value shifts = vector::BroadcastOp::create(
        b, wide, arith::IndexCastOp::create(b, b.getI32Type(), shift));
    Value most = arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               wide, b.getI32IntegerAttr((1 << storage.bits()) - 1)));
    Value masked = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, numbers, shifts), most);
    return arith::SIToFPOp::create(b, wide.clone(b.getF32Type()), masked);
  };
  b.forLoop(b.index(0), b.index(channels / group), 1, [&](Value groupNumber) {
    Value scale = loadScale(groupNumber, scalesOffset(storage, panel, group));
    Value base;
    if (storage.offset == GroupOffset::Minimum)
      base = loadScale(groupNumber, minimaOffset(storage, panel, group));
    else
      base = b.mulf(scale,
                    b.splat(-static_cast<float>(storage.storedZero()), pack));
    b.forLoop(b.index(0), b.index(group / pack), 1, [&](Value quad) {
      Value numbers = loadNumbers(groupNumber, quad);
      Value channel = b.add(b.mul(groupNumber, group), b.mul(quad, pack));
      b.storeVector(b.fma(numbers, scale, base), destination, {to, channel});
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
    if (weightOp.getStorage())
      return copyQuantizedRow(builder, weightOp, packing, weight, from,
                              channels, destination, row);
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
