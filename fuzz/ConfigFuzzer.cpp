//===- ConfigFuzzer.cpp - Any bytes as a model's configuration ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/ModelConfig.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

/// Errors are for one line of a terminal.
static void checkMessage(const std::string &message) {
  check(!message.empty() && message.size() < 2000);
  check(std::ranges::none_of(message, [](unsigned char c) { return c < ' '; }));
}

/// Tensors have sizes that do not overflow, and frequencies are numbers.
static void checkSizes(const ModelConfig &config) {
  if (!config.encoder || config.encoder->positionRows == 0)
    for (float frequency : ropeInverseFrequencies(config))
      check(std::isfinite(frequency) && frequency > 0);
  for (const ExpectedTensor &tensor : expectedTensors(config)) {
    int64_t bytes = sizeof(float);
    for (int64_t dimension : tensor.shape)
      check(dimension > 0 && !__builtin_mul_overflow(bytes, dimension, &bytes));
  }
}

static void checkEmbedding(const ModelConfig &config) {
  if (!config.embedding)
    return;
  const EmbeddingConfig &embedding = *config.embedding;
  check(config.labels == 0);
  check(config.usualContext() >= 1 &&
        config.usualContext() <= config.maxPositionEmbeddings);
  check(std::ranges::is_sorted(embedding.dimensions));
  for (int64_t size : embedding.dimensions)
    check(size >= 1 && size <= config.hiddenSize);
  if (embedding.defaultPrompt)
    check(std::ranges::any_of(embedding.prompts, [&](const auto &prompt) {
      return prompt.first == *embedding.defaultPrompt;
    }));
}

/// The texts of config.json, modules.json, its configuration of pooling,
/// sentence_bert_config.json and config_sentence_transformers.json, each up to
/// the next zero; those of which there is nothing are absent. They are refused
/// with a reason, or say what holds together.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  auto next = [&] {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    return text;
  };
  const std::string_view text = next();
  auto config = parseModelConfig(text);
  if (!config) {
    checkMessage(config.error().message);
    return 0;
  }
  checkSizes(*config);
  checkEmbedding(*config);
  // Encoders have not read what ends a text.
  ModelConfig generating = *config;
  if (Status added = addGenerationConfig(generating, text); !added) {
    check(config->encoder.has_value());
    checkMessage(added.error().message);
  }
  std::map<std::string, std::string_view> files;
  for (const char *path : {"modules.json", "", "sentence_bert_config.json",
                           "config_sentence_transformers.json"})
    files[path] = next();
  Status added = addSentenceTransformers(
      *config,
      [&](const std::string &path) -> Result<std::optional<std::string>> {
        check(!path.starts_with('/') && path.find("..") == path.npos);
        // The folder of pooling has any name.
        auto file = files.find(path);
        const std::string_view found =
            file == files.end() ? files[""] : file->second;
        return found.empty() ? std::optional<std::string>()
                             : std::optional<std::string>(found);
      });
  if (!added) {
    checkMessage(added.error().message);
    return 0;
  }
  checkSizes(*config);
  checkEmbedding(*config);
  return 0;
}
