//===- DecoderBuilder.cpp - Llama and its descendants ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PhaseBuilder.h"

using namespace mlir;
using namespace sandwich;

namespace {

// Symbols of the weights outside the layers.
constexpr StringLiteral embedding = "embedding", finalNorm = "final_norm",
                        head = "head";

class DecoderBuilder : public PhaseBuilder {
public:
  using PhaseBuilder::PhaseBuilder;

private:
  void addWeights() override;
  Value embed(const Inputs &inputs) override;
  Value attendInLayer(Value x, Value layer, const Inputs &inputs) override;
  Value finishLayer(Value x, Value attention, Value layer) override;
  Value finish(Value x, lm::Phase phase, const Inputs &inputs) override;

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

  Value project(Value input, StringRef name, int64_t outputs, bool hasBias,
                Value layer) {
    return linear(input, layerWeight(name), outputs,
                  hasBias ? layerWeight(name + ".bias") : FlatSymbolRefAttr(),
                  layer);
  }

  Value norm(Value input, FlatSymbolRefAttr weight, Value layer) {
    locate(weight.getValue());
    return lm::RMSNormOp::create(
               builder, input.getType(), input, weight, layer,
               builder.getF32FloatAttr(static_cast<float>(config.rmsNormEps)),
               Value())
        .getResult();
  }

  /// Of the phase that is being built.
  Value table;
};

} // namespace

/// Every tensor the checkpoint must hold, from the one list that says so;
/// layers share a symbol named after the tensor.
void DecoderBuilder::addWeights() {
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
        addWeight(layerSymbol(suffix), tensor.shape, layerSource(suffix), true);
    }
  }
}

Value DecoderBuilder::embed(const Inputs &inputs) {
  table = rotaryTable(inputs.positions);
  locate(embedding);
  return lm::EmbedOp::create(builder, activation(config.hiddenSize),
                             inputs.tokenIds, symbol(embedding))
      .getResult();
}

Value DecoderBuilder::attendInLayer(Value x, Value layer,
                                    const Inputs &inputs) {
  Value input = norm(x, layerWeight("input_layernorm"), layer);
  bool bias = config.qkvBias;
  Value query =
      project(input, "self_attn.q_proj", config.queryWidth(), bias, layer);
  Value key =
      project(input, "self_attn.k_proj", config.keyValueWidth(), bias, layer);
  Value value =
      project(input, "self_attn.v_proj", config.keyValueWidth(), bias, layer);
  if (config.qkNorm) {
    query = norm(query, layerWeight("self_attn.q_norm"), layer);
    key = norm(key, layerWeight("self_attn.k_norm"), layer);
  }
  locate("layers.self_attn");
  query = rotate(query, table);
  key = rotate(key, table);
  return attend(query, key, value, layer, /*bidirectional=*/false, inputs);
}

Value DecoderBuilder::finishLayer(Value x, Value attention, Value layer) {
  Value output = project(attention, "self_attn.o_proj", config.hiddenSize,
                         config.outputBias, layer);
  x = add(x, output);

  Value input = norm(x, layerWeight("post_attention_layernorm"), layer);
  Value gate =
      project(input, "mlp.gate_proj", config.intermediateSize, false, layer);
  Value up =
      project(input, "mlp.up_proj", config.intermediateSize, false, layer);
  locate("layers.mlp");
  Value hidden = lm::SiluMulOp::create(builder, gate.getType(), gate, up,
                                       /*destination=*/Value())
                     .getResult();
  Value down =
      project(hidden, "mlp.down_proj", config.hiddenSize, false, layer);
  return add(x, down);
}

Value DecoderBuilder::finish(Value x, lm::Phase phase, const Inputs &inputs) {
  if (phase == lm::Phase::Embed) {
    x = norm(x, symbol(finalNorm), Value());
    return pool(x, phase, inputs);
  }
  if (phase == lm::Phase::EmbedTokens)
    return gather(norm(x, symbol(finalNorm), Value()), inputs);
  x = norm(gather(x, inputs), symbol(finalNorm), Value());
  return linear(x, symbol(config.tieWordEmbeddings ? embedding : head),
                config.vocabSize, FlatSymbolRefAttr(), Value());
}

std::unique_ptr<PhaseBuilder>
sandwich::createDecoderBuilder(MLIRContext *context, const ModelConfig &config,
                               Type elementType, Type cacheType) {
  return std::make_unique<DecoderBuilder>(context, config, elementType,
                                          cacheType);
}
