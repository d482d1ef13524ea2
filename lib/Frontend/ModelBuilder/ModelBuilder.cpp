//===- ModelBuilder.cpp - From a configuration to model IR ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PhaseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace sandwich;

PhaseBuilder::PhaseBuilder(MLIRContext *context, const ModelConfig &config,
                           Type elementType, Type cacheElementType)
    : config(config),
      builder(NameLoc::get(StringAttr::get(context, "model")), context),
      elementType(elementType),
      cacheType(lm::KVCacheType::get(
          context, config.encodes() ? 1 : config.layers, config.kvHeads,
          config.headDim, cacheElementType)) {}

std::vector<lm::Phase> sandwich::phasesOf(const ModelConfig &config) {
  if (config.labels > 0)
    return {lm::Phase::Classify};
  if (config.encodes())
    return {lm::Phase::Embed, lm::Phase::EmbedTokens};
  return {lm::Phase::Prefill, lm::Phase::Decode};
}

OwningOpRef<ModuleOp> PhaseBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  addWeights();
  for (lm::Phase phase : phasesOf(config))
    addPhase(phase);
  if (!config.encodes())
    lm::SamplingOp::create(builder, config.vocabSize);
  return module;
}

void PhaseBuilder::locate(StringRef part) {
  builder.setLoc(NameLoc::get(builder.getStringAttr(part)));
}

RankedTensorType PhaseBuilder::activation(int64_t channels) {
  return RankedTensorType::get({ShapedType::kDynamic, channels},
                               builder.getF32Type());
}

FlatSymbolRefAttr PhaseBuilder::symbol(const Twine &name) {
  return FlatSymbolRefAttr::get(builder.getContext(), name.str());
}

void PhaseBuilder::addWeight(StringRef symbol, ArrayRef<int64_t> shape,
                             StringRef source, bool inLayers) {
  locate(source);
  Type type = shape.size() == 1 ? builder.getF32Type() : elementType;
  lm::WeightOp::create(builder, symbol, RankedTensorType::get(shape, type),
                       builder.getStrArrayAttr({source}),
                       inLayers ? std::optional<int64_t>(config.layers)
                                : std::nullopt);
}

Value PhaseBuilder::linear(Value input, FlatSymbolRefAttr weight,
                           int64_t outputs, FlatSymbolRefAttr bias,
                           Value layer) {
  locate(weight.getValue());
  return lm::LinearOp::create(builder, activation(outputs), input, weight, bias,
                              layer);
}

Value PhaseBuilder::add(Value residual, Value value) {
  return lm::AddOp::create(builder, residual.getType(), residual, value,
                           /*destination=*/Value())
      .getResult();
}

Value PhaseBuilder::rotaryTable(Value positions) {
  return lm::RotaryTableOp::create(
             builder, activation(config.headDim), positions,
             builder.getDenseF32ArrayAttr(ropeInverseFrequencies(config)),
             /*destination=*/Value())
      .getResult();
}

Value PhaseBuilder::rotate(Value value, Value table) {
  return lm::RotateOp::create(builder, value.getType(), value, table,
                              /*destination=*/Value())
      .getResult();
}

Value PhaseBuilder::attend(Value query, Value key, Value value, Value layer,
                           bool bidirectional, const Inputs &inputs) {
  if (onlyLayer)
    layer = onlyLayer;
  lm::AppendKVOp::create(builder, key, value, inputs.cache, layer,
                         inputs.slots);
  float scale = 1.0f / std::sqrt(static_cast<float>(config.headDim));
  return lm::AttentionOp::create(
             builder, query.getType(), query, inputs.cache, layer,
             inputs.segments, inputs.blocks, builder.getF32FloatAttr(scale),
             bidirectional ? builder.getUnitAttr() : nullptr,
             /*schedules=*/nullptr, /*partial_sums=*/Value(),
             /*destination=*/Value())
      .getResult();
}

lm::PoolKind PhaseBuilder::poolKind() const {
  // Classifiers read the first token.
  if (!config.embedding)
    return lm::PoolKind::Cls;
  switch (config.embedding->pooling) {
  case Pooling::Cls:
    return lm::PoolKind::Cls;
  case Pooling::Mean:
    return lm::PoolKind::Mean;
  case Pooling::Last:
    return lm::PoolKind::Last;
  }
  llvm_unreachable("every pooling is above");
}

bool PhaseBuilder::selectsTokens(lm::Phase phase) const {
  return (phase == lm::Phase::Embed || phase == lm::Phase::Classify) &&
         poolKind() != lm::PoolKind::Mean;
}

Value PhaseBuilder::poolRows(Value x, const Inputs &inputs) {
  return lm::PoolOp::create(builder, x.getType(), x, inputs.segments,
                            poolKind(), /*destination=*/Value())
      .getResult();
}

Value PhaseBuilder::pool(Value x, lm::Phase phase, const Inputs &inputs) {
  if (!selectsTokens(phase))
    x = poolRows(x, inputs);
  if (!config.embedding || !config.embedding->normalize)
    return x;
  return lm::L2NormalizeOp::create(builder, x.getType(), x,
                                   /*destination=*/Value())
      .getResult();
}

Value PhaseBuilder::gather(Value x, const Inputs &inputs) {
  return lm::GatherRowsOp::create(builder, x.getType(), x, inputs.rows,
                                  /*destination=*/Value())
      .getResult();
}

/// Channels of what `phase` returns.
static int64_t columnsOf(const ModelConfig &config, lm::Phase phase) {
  if (phase == lm::Phase::Classify)
    return config.labels;
  return lm::encodes(phase) ? config.hiddenSize : config.vocabSize;
}

void PhaseBuilder::addPhase(lm::Phase phase) {
  OpBuilder::InsertionGuard guard(builder);
  locate(lm::stringifyPhase(phase));
  Type indices =
      RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  Type fields =
      RankedTensorType::get({ShapedType::kDynamic, 4}, builder.getI32Type());
  SmallVector<Type> types = {indices, indices, indices,  fields,
                             indices, indices, cacheType};
  if (hasTokenTypes())
    types.push_back(indices);
  auto function = func::FuncOp::create(
      builder, lm::stringifyPhase(phase),
      builder.getFunctionType(types, activation(columnsOf(config, phase))));
  function->setAttr(lm::phaseAttributeName,
                    lm::PhaseAttr::get(builder.getContext(), phase));
  builder.setInsertionPointToStart(function.addEntryBlock());
  Inputs inputs{function.getArgument(0),
                function.getArgument(1),
                function.getArgument(2),
                function.getArgument(3),
                function.getArgument(4),
                function.getArgument(5),
                function.getArgument(6),
                hasTokenTypes() ? function.getArgument(7) : Value()};
  Value x = embed(inputs);
  locate("layers");
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  Value one = arith::ConstantIndexOp::create(builder, 1);
  const bool selects = selectsTokens(phase);
  Value layers = arith::ConstantIndexOp::create(builder, config.layers -
                                                             (selects ? 1 : 0));
  if (config.encodes())
    onlyLayer = zero;
  auto loop = scf::ForOp::create(
      builder, zero, layers, one, x,
      [&](OpBuilder &, Location, Value layer, ValueRange carried) {
        Value attention = attendInLayer(carried.front(), layer, inputs);
        scf::YieldOp::create(builder,
                             finishLayer(carried.front(), attention, layer));
      });
  x = loop.getResult(0);
  if (selects) {
    // The last layer's other tokens are there to be attended to. Behind its
    // attention, which is most of its matmuls' work, nobody reads their rows.
    Value attention = attendInLayer(x, layers, inputs);
    locate(lm::stringifyPhase(phase));
    attention = poolRows(attention, inputs);
    x = finishLayer(poolRows(x, inputs), attention, layers);
  }
  locate(lm::stringifyPhase(phase));
  func::ReturnOp::create(builder, finish(x, phase, inputs));
}

OwningOpRef<ModuleOp> sandwich::buildModel(MLIRContext *context,
                                           const ModelConfig &config,
                                           Type elementType, Type cacheType) {
  auto create = config.encoder ? createEncoderBuilder : createDecoderBuilder;
  return create(context, config, elementType, cacheType)->build();
}
