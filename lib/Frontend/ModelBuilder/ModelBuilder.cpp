//===- ModelBuilder.cpp - From a configuration to model IR ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/ModelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Frontend/Checkpoint.h"

#include <cmath>

using namespace mlir;
using namespace sandwich;

namespace {

// Symbols of the weights outside the layers.
constexpr StringLiteral embedding = "embedding", finalNorm = "final_norm",
                        head = "head";

class ModelBuilder {
public:
  ModelBuilder(MLIRContext *context, const ModelConfig &config,
               Type elementType, Type cacheElementType)
      : config(config),
        builder(NameLoc::get(StringAttr::get(context, "model")), context),
        elementType(elementType),
        cacheType(lm::KVCacheType::get(context, config.layers, config.kvHeads,
                                       config.headDim, cacheElementType)) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getLoc());
    builder.setInsertionPointToEnd(module->getBody());
    addWeights();
    addPhase(lm::Phase::Prefill);
    addPhase(lm::Phase::Decode);
    return module;
  }

private:
  /// Names the model's part that the following operations are of, for errors.
  void locate(StringRef part) {
    builder.setLoc(NameLoc::get(builder.getStringAttr(part)));
  }

  RankedTensorType activation(int64_t channels) {
    return RankedTensorType::get({ShapedType::kDynamic, channels},
                                 builder.getF32Type());
  }

  void addWeight(StringRef symbol, ArrayRef<int64_t> shape, StringRef source,
                 bool inLayers) {
    locate(source);
    Type type = shape.size() == 1 ? builder.getF32Type() : elementType;
    lm::WeightOp::create(builder, symbol, RankedTensorType::get(shape, type),
                         builder.getStrArrayAttr({source}),
                         inLayers ? std::optional<int64_t>(config.layers)
                                  : std::nullopt);
  }

  /// Every tensor the checkpoint must hold, from the one list that says so;
  /// layers share a symbol named after the tensor.
  void addWeights() {
    for (const ExpectedTensor &tensor : expectedTensors(config)) {
      std::string_view name = tensor.name;
      if (name == embeddingTensorName) {
        addWeight(embedding, tensor.shape, tensor.name, false);
      } else if (name == finalNormTensorName) {
        addWeight(finalNorm, tensor.shape, tensor.name, false);
      } else if (name == headTensorName) {
        addWeight(head, tensor.shape, tensor.name, false);
      } else {
        StringRef suffix = name;
        if (suffix.consume_front(layerTensorName(0, "")))
          addWeight(layerSymbol(suffix), tensor.shape, layerSource(suffix),
                    true);
      }
    }
  }

  /// "self_attn.q_proj.weight" is @layers.self_attn.q_proj, a bias
  /// @layers.self_attn.q_proj.bias.
  static std::string layerSymbol(StringRef suffix) {
    suffix.consume_back(".weight");
    return ("layers." + suffix).str();
  }

  static std::string layerSource(StringRef suffix) {
    std::string name = layerTensorName(0, suffix.str());
    return name.replace(name.find('0'), 1, "{}");
  }

  FlatSymbolRefAttr symbol(const Twine &name) {
    return FlatSymbolRefAttr::get(builder.getContext(), name.str());
  }
  FlatSymbolRefAttr layerWeight(const Twine &name) {
    return symbol("layers." + name);
  }

  Value norm(Value input, FlatSymbolRefAttr weight, Value layer) {
    locate(weight.getValue());
    return lm::RMSNormOp::create(
               builder, input.getType(), input, weight, layer,
               builder.getF32FloatAttr(static_cast<float>(config.rmsNormEps)),
               Value())
        .getResult();
  }

  Value linear(Value input, StringRef name, int64_t outputs, bool hasBias,
               Value layer) {
    FlatSymbolRefAttr bias =
        hasBias ? layerWeight(name + ".bias") : FlatSymbolRefAttr();
    FlatSymbolRefAttr weight = layerWeight(name);
    locate(weight.getValue());
    return lm::LinearOp::create(builder, activation(outputs), input, weight,
                                bias, layer);
  }

  Value add(Value residual, Value value) {
    return lm::AddOp::create(builder, residual.getType(), residual, value,
                             /*destination=*/Value())
        .getResult();
  }

  /// One decoder layer, from the residual stream to the residual stream.
  Value buildLayer(Value x, Value layer, Value table, Value slots,
                   Value segments, Value blocks, Value cache) {
    Value input = norm(x, layerWeight("input_layernorm"), layer);
    bool bias = config.qkvBias;
    Value query =
        linear(input, "self_attn.q_proj", config.queryWidth(), bias, layer);
    Value key =
        linear(input, "self_attn.k_proj", config.keyValueWidth(), bias, layer);
    Value value =
        linear(input, "self_attn.v_proj", config.keyValueWidth(), bias, layer);
    if (config.qkNorm) {
      query = norm(query, layerWeight("self_attn.q_norm"), layer);
      key = norm(key, layerWeight("self_attn.k_norm"), layer);
    }
    locate("layers.self_attn");
    auto rotate = [&](Value value) {
      return lm::RotateOp::create(builder, value.getType(), value, table,
                                  /*destination=*/Value())
          .getResult();
    };
    query = rotate(query);
    key = rotate(key);
    lm::AppendKVOp::create(builder, key, value, cache, layer, slots);
    float scale = 1.0f / std::sqrt(static_cast<float>(config.headDim));
    Value attention =
        lm::AttentionOp::create(
            builder, query.getType(), query, cache, layer, segments, blocks,
            builder.getF32FloatAttr(scale), /*bidirectional=*/nullptr,
            /*schedules=*/nullptr, /*partial_sums=*/Value(),
            /*destination=*/Value())
            .getResult();
    Value output = linear(attention, "self_attn.o_proj", config.hiddenSize,
                          config.outputBias, layer);
    x = add(x, output);

    input = norm(x, layerWeight("post_attention_layernorm"), layer);
    Value gate =
        linear(input, "mlp.gate_proj", config.intermediateSize, false, layer);
    Value up =
        linear(input, "mlp.up_proj", config.intermediateSize, false, layer);
    locate("layers.mlp");
    Value hidden = lm::SiluMulOp::create(builder, gate.getType(), gate, up,
                                         /*destination=*/Value())
                       .getResult();
    Value down =
        linear(hidden, "mlp.down_proj", config.hiddenSize, false, layer);
    return add(x, down);
  }

  void addPhase(lm::Phase phase) {
    OpBuilder::InsertionGuard guard(builder);
    locate(lm::stringifyPhase(phase));
    Type indices =
        RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
    Type fields =
        RankedTensorType::get({ShapedType::kDynamic, 4}, builder.getI32Type());
    auto type = builder.getFunctionType(
        {indices, indices, indices, fields, indices, indices, cacheType},
        activation(config.vocabSize));
    auto function =
        func::FuncOp::create(builder, lm::stringifyPhase(phase), type);
    function->setAttr(lm::phaseAttributeName,
                      lm::PhaseAttr::get(builder.getContext(), phase));
    builder.setInsertionPointToStart(function.addEntryBlock());
    Value tokenIds = function.getArgument(0);
    Value positions = function.getArgument(1);
    Value slots = function.getArgument(2);
    Value segments = function.getArgument(3);
    Value blocks = function.getArgument(4);
    Value logitRows = function.getArgument(5);
    Value cache = function.getArgument(6);

    Value table =
        lm::RotaryTableOp::create(
            builder, activation(config.headDim), positions,
            builder.getDenseF32ArrayAttr(ropeInverseFrequencies(config)),
            Value())
            .getResult();
    locate(embedding);
    Value x = lm::EmbedOp::create(builder, activation(config.hiddenSize),
                                  tokenIds, symbol(embedding), Value())
                  .getResult();
    locate("layers");
    Value zero = arith::ConstantIndexOp::create(builder, 0);
    Value one = arith::ConstantIndexOp::create(builder, 1);
    Value layers = arith::ConstantIndexOp::create(builder, config.layers);
    auto loop = scf::ForOp::create(
        builder, zero, layers, one, x,
        [&](OpBuilder &, Location, Value layer, ValueRange carried) {
          Value result = buildLayer(carried.front(), layer, table, slots,
                                    segments, blocks, cache);
          scf::YieldOp::create(builder, result);
        });
    x = loop.getResult(0);
    locate(lm::stringifyPhase(phase));
    x = lm::GatherRowsOp::create(builder, x.getType(), x, logitRows, Value())
            .getResult();
    x = norm(x, symbol(finalNorm), Value());
    StringRef logitsWeight = config.tieWordEmbeddings ? embedding : head;
    locate(logitsWeight);
    Value logits = lm::LinearOp::create(builder, activation(config.vocabSize),
                                        x, symbol(logitsWeight),
                                        FlatSymbolRefAttr(), Value());
    func::ReturnOp::create(builder, logits);
  }

  const ModelConfig &config;
  ImplicitLocOpBuilder builder;
  Type elementType;
  lm::KVCacheType cacheType;
};

} // namespace

OwningOpRef<ModuleOp> sandwich::buildModel(MLIRContext *context,
                                           const ModelConfig &config,
                                           Type elementType, Type cacheType) {
  return ModelBuilder(context, config, elementType, cacheType).build();
}
