//===- EncoderTensors.cpp - What encoders' tensors are called -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderTensors.h"

using namespace sandwich;

HeadNames sandwich::classifierNames(Architecture architecture) {
  if (architecture == Architecture::BertClassifier)
    return {"pooler.dense", "classifier"};
  return {"classifier.dense", "classifier.out_proj"};
}

std::vector<ExpectedTensor>
sandwich::expectedEncoderTensors(const ModelConfig &config) {
  std::vector<ExpectedTensor> tensors;
  const int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
  auto addLinear = [&](std::string name, int64_t outputs, int64_t inputs) {
    tensors.push_back({name + ".weight", {outputs, inputs}});
    tensors.push_back({name + ".bias", {outputs}});
  };
  auto addNorm = [&](std::string name) {
    tensors.push_back({name + ".weight", {hidden}});
    tensors.push_back({name + ".bias", {hidden}});
  };
  tensors.push_back({std::string(wordTableName), {config.vocabSize, hidden}});
  if (config.encoder->positionRows > 0)
    tensors.push_back({std::string(positionTableName),
                       {config.encoder->positionRows, hidden}});
  tensors.push_back(
      {std::string(typeTableName), {config.encoder->tokenTypes, hidden}});
  addNorm(std::string(embeddingNormName));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix =
        numberLayer(std::string(encoderLayerName), layer);
    for (const char *name : {"query", "key", "value"})
      addLinear(prefix + "attention.self." + name, hidden, hidden);
    addLinear(prefix + "attention.output.dense", hidden, hidden);
    addNorm(prefix + "attention.output.LayerNorm");
    addLinear(prefix + "intermediate.dense", inner, hidden);
    addLinear(prefix + "output.dense", hidden, inner);
    addNorm(prefix + "output.LayerNorm");
  }
  if (config.labels > 0) {
    const HeadNames head = classifierNames(config.architecture);
    addLinear(std::string(head.dense), hidden, hidden);
    addLinear(std::string(head.scores), config.labels, hidden);
  }
  return tensors;
}

/// Whether `text` begins with `prefix`, which is removed then.
static bool consume(std::string_view &text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::vector<std::string> sandwich::encoderTensorNames(std::string_view name) {
  // That of the base model within a larger one.
  consume(name, "bert.") || consume(name, "roberta.");
  // What layer norms had once.
  std::string_view last = name.substr(name.rfind('.') + 1);
  std::string_view stem = name.substr(0, name.size() - last.size());
  if (stem.ends_with("LayerNorm.") && last == "gamma")
    last = "weight";
  else if (stem.ends_with("LayerNorm.") && last == "beta")
    last = "bias";
  const auto whole = [&](std::string_view text) {
    return std::string(text) + std::string(last);
  };
  // Jina's own.
  if (consume(stem, "emb_ln."))
    return {whole("embeddings.LayerNorm.")};
  std::string_view rest = stem;
  if (!consume(rest, "encoder.layers."))
    return {whole(stem)};
  const std::string layer =
      "encoder.layer." + std::string(rest.substr(0, rest.find('.'))) + ".";
  rest.remove_prefix(std::min(rest.size(), rest.find('.') + 1));
  if (rest == "mixer.Wqkv.")
    return {whole(layer + "attention.self.query."),
            whole(layer + "attention.self.key."),
            whole(layer + "attention.self.value.")};
  constexpr std::pair<std::string_view, std::string_view> own[] = {
      {"mixer.out_proj.", "attention.output.dense."},
      {"norm1.", "attention.output.LayerNorm."},
      {"mlp.fc1.", "intermediate.dense."},
      {"mlp.fc2.", "output.dense."},
      {"norm2.", "output.LayerNorm."},
  };
  for (const auto &[theirs, ours] : own)
    if (rest == theirs)
      return {whole(layer + std::string(ours))};
  return {whole(stem)};
}

std::string sandwich::decoderTensorName(const std::string &name) {
  return name.starts_with("model.") || name.starts_with("lm_head.")
             ? name
             : "model." + name;
}

bool sandwich::isTrainingTensor(std::string_view name) {
  return name.starts_with("cls.") || name.starts_with("pooler.") ||
         name.starts_with("lm_head.") || name.ends_with(".position_ids");
}
