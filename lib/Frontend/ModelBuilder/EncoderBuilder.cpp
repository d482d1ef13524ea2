//===- EncoderBuilder.cpp - BERT and its descendants ----------------------===//
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

class EncoderBuilder : public PhaseBuilder {
public:
  using PhaseBuilder::PhaseBuilder;

private:
  void addWeights() override;
  Value embed(const Inputs &inputs) override;
  Value attendInLayer(Value x, Value layer, const Inputs &inputs) override;
  Value finishLayer(Value x, Value attention, Value layer) override;
  Value finish(Value x, lm::Phase phase, const Inputs &inputs) override;
  bool hasTokenTypes() const override { return true; }

  /// The symbol of a tensor is its name, but for what all have.
  static StringRef symbolName(StringRef tensor) {
    tensor.consume_back(".weight");
    return tensor;
  }

  Value lookUp(Value indices, std::string_view tableName,
               lm::EmbeddedInput input, int64_t offset = 0) {
    StringRef name = symbolName(tableName);
    locate(name);
    return lm::EmbedOp::create(builder, activation(config.hiddenSize), indices,
                               symbol(name), input, offset)
        .getResult();
  }

  Value norm(Value input, FlatSymbolRefAttr weight, Value layer) {
    locate(weight.getValue());
    return lm::LayerNormOp::create(builder, input.getType(), input, weight,
                                   symbol(weight.getValue() + ".bias"), layer,
                                   builder.getF32FloatAttr(static_cast<float>(
                                       config.encoder->layerNormEps)),
                                   /*destination=*/Value())
        .getResult();
  }

  Value project(Value input, StringRef name, int64_t outputs, Value layer) {
    return linear(input, layerWeight(name), outputs,
                  layerWeight(name + ".bias"), layer);
  }

  Value dense(Value input, StringRef name, int64_t outputs) {
    return linear(input, symbol(name), outputs, symbol(name + ".bias"),
                  Value());
  }

  /// Of the phase that is being built; null where positions are learned.
  Value table;
};

} // namespace

void EncoderBuilder::addWeights() {
  const std::string firstLayer = numberLayer(std::string(encoderLayerName), 0);
  for (const ExpectedTensor &tensor : expectedTensors(config)) {
    StringRef name = tensor.name;
    if (name.consume_front(firstLayer))
      addWeight(("layers." + symbolName(name)).str(), tensor.shape,
                std::string(encoderLayerName) + name.str(), true);
    else if (!name.starts_with("encoder."))
      addWeight(symbolName(name), tensor.shape, tensor.name, false);
  }
}

Value EncoderBuilder::embed(const Inputs &inputs) {
  const EncoderConfig &encoder = *config.encoder;
  table = encoder.positionRows ? Value() : rotaryTable(inputs.positions);
  Value x = lookUp(inputs.tokenIds, wordTableName, lm::EmbeddedInput::TokenIds);
  if (encoder.positionRows)
    x = add(x, lookUp(inputs.positions, positionTableName,
                      lm::EmbeddedInput::Positions, encoder.firstPosition));
  x = add(x, lookUp(inputs.tokenTypes, typeTableName,
                    lm::EmbeddedInput::TokenTypes));
  return norm(x, symbol(embeddingNormName), Value());
}

Value EncoderBuilder::attendInLayer(Value x, Value layer,
                                    const Inputs &inputs) {
  Value query = project(x, "attention.self.query", config.queryWidth(), layer);
  Value key = project(x, "attention.self.key", config.keyValueWidth(), layer);
  Value value =
      project(x, "attention.self.value", config.keyValueWidth(), layer);
  locate("layers.attention");
  if (table) {
    query = rotate(query, table);
    key = rotate(key, table);
  }
  return attend(query, key, value, layer, /*bidirectional=*/true, inputs);
}

Value EncoderBuilder::finishLayer(Value x, Value attention, Value layer) {
  x = add(x, project(attention, "attention.output.dense", config.hiddenSize,
                     layer));
  x = norm(x, layerWeight("attention.output.LayerNorm"), layer);
  Value hidden =
      project(x, "intermediate.dense", config.intermediateSize, layer);
  hidden = lm::GeluOp::create(builder, hidden.getType(), hidden,
                              config.encoder->geluTanh ? lm::GeluKind::Tanh
                                                       : lm::GeluKind::Exact,
                              /*destination=*/Value())
               .getResult();
  x = add(x, project(hidden, "output.dense", config.hiddenSize, layer));
  return norm(x, layerWeight("output.LayerNorm"), layer);
}

Value EncoderBuilder::finish(Value x, lm::Phase phase, const Inputs &inputs) {
  if (phase == lm::Phase::EmbedTokens)
    return gather(x, inputs);
  x = pool(x, phase, inputs);
  if (phase == lm::Phase::Embed)
    return x;
  const HeadNames head = classifierNames(config.architecture);
  x = dense(x, head.dense, config.hiddenSize);
  x = lm::TanhOp::create(builder, x.getType(), x, /*destination=*/Value())
          .getResult();
  return dense(x, head.scores, config.labels);
}

std::unique_ptr<PhaseBuilder>
sandwich::createEncoderBuilder(MLIRContext *context, const ModelConfig &config,
                               Type elementType, Type cacheType) {
  return std::make_unique<EncoderBuilder>(context, config, elementType,
                                          cacheType);
}
