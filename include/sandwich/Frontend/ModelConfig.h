//===- ModelConfig.h - What config.json says of a model ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The facts of a decoder-only model that a compiler needs, read from a Hugging
/// Face `config.json` with the meaning and defaults that `transformers` gives
/// it. What the compiler cannot honour is refused by field and value.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_MODELCONFIG_H
#define SANDWICH_FRONTEND_MODELCONFIG_H

#include "sandwich/Support/Result.h"
#include "sandwich/Support/TensorParallelism.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace sandwich {

/// The largest values accepted, besides those of `model_limits`.
namespace config_limits {
inline constexpr double ropeTheta = 1e12;
inline constexpr double ropeFactor = 1e6;
} // namespace config_limits

/// Model families, named as `architectures` names them without `ForCausalLM`.
enum class Architecture : uint8_t { Llama, Mistral, Qwen2, Qwen3 };

/// The name in `architectures`: "LlamaForCausalLM".
std::string_view architectureName(Architecture architecture);

/// Rotary embedding without scaling.
struct DefaultRope {
  bool operator==(const DefaultRope &) const = default;
};

/// Positions divided by `factor`.
struct LinearRope {
  double factor;
  bool operator==(const LinearRope &) const = default;
};

/// Llama 3.1's scaling: wavelengths longer than the original context divided by
/// `lowFrequencyFactor` are stretched by `factor`, those shorter than it
/// divided by `highFrequencyFactor` are kept, and between the two the frequency
/// is interpolated.
struct Llama3Rope {
  double factor;
  double lowFrequencyFactor;
  double highFrequencyFactor;
  int64_t originalMaxPositionEmbeddings;
  bool operator==(const Llama3Rope &) const = default;
};

using RopeScaling = std::variant<DefaultRope, LinearRope, Llama3Rope>;

/// A checked model configuration. All counts are positive.
struct ModelConfig {
  Architecture architecture = Architecture::Llama;
  int64_t hiddenSize = 0;
  int64_t intermediateSize = 0;
  int64_t layers = 0;
  /// Query heads, a multiple of `kvHeads`.
  int64_t heads = 0;
  int64_t kvHeads = 0;
  /// Elements of one head; even. `heads * headDim` need not be `hiddenSize`.
  int64_t headDim = 0;
  int64_t vocabSize = 0;
  /// Tokens of context the model was made for.
  int64_t maxPositionEmbeddings = 0;
  /// Tokens that some layer attends to at most, the newest included; none where
  /// every layer attends to `maxPositionEmbeddings`.
  std::optional<int64_t> slidingWindow;
  double rmsNormEps = 0;
  double ropeTheta = 0;
  RopeScaling ropeScaling;
  /// The output projection is the embedding table.
  bool tieWordEmbeddings = false;
  /// The q, k and v projections add a bias.
  bool qkvBias = false;
  /// The attention's output projection adds a bias.
  bool outputBias = false;
  /// Each head of q and k passes a normalization of `headDim` elements before
  /// the rotary embedding.
  bool qkNorm = false;
  std::optional<int32_t> bosTokenId;
  /// Tokens that end generation; all below `vocabSize`, none twice.
  std::vector<int32_t> eosTokenIds;

  /// Rows of the q projection and columns of the output projection.
  int64_t queryWidth() const { return heads * headDim; }
  /// Rows of the k projection and of the v projection.
  int64_t keyValueWidth() const { return kvHeads * headDim; }
  /// Tokens of the longest context in which every layer attends to all: code
  /// for more would need attention in a sliding window.
  int64_t longestContext() const {
    return slidingWindow.value_or(maxPositionEmbeddings);
  }

  bool operator==(const ModelConfig &) const = default;
};

/// What tensor parallelism divides of a model of `config`.
TensorParallelSizes tensorParallelSizes(const ModelConfig &config);

/// Among how many ranks the model can be divided, ascending.
std::vector<int64_t> allowedTensorParallelDegrees(const ModelConfig &config);

/// Reads the text of a `config.json`. Errors name the field and its value.
Result<ModelConfig> parseModelConfig(std::string_view text);

/// Adds to `config` the end-of-sequence tokens of a `generation_config.json`,
/// whose text is `text`. Errors name the field and its value.
Status addGenerationConfig(ModelConfig &config, std::string_view text);

/// The rotary embedding's `headDim / 2` inverse frequencies in radians for each
/// position, scaling included. Computed in float32, operation by operation as
/// PyTorch does, since every program that runs the model does it so.
std::vector<float> ropeInverseFrequencies(const ModelConfig &config);

} // namespace sandwich

#endif // SANDWICH_FRONTEND_MODELCONFIG_H
