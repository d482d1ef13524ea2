//===- ModelConfig.h - What config.json says of a model ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The facts of a model that a compiler needs, read from a Hugging Face
/// `config.json` with the meaning and defaults that `transformers` gives it,
/// and from the files that `sentence-transformers` has beside it. What the
/// compiler cannot honour is refused by field and value.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_MODELCONFIG_H
#define SANDWICH_FRONTEND_MODELCONFIG_H

#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/TensorParallelism.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sandwich {

/// The values accepted, besides those of `model_limits`.
namespace config_limits {
/// What float32 would round to zero divides a row of zeros by zero.
inline constexpr double smallestRmsNormEps = 1e-30;
/// The largest.
inline constexpr double ropeTheta = 1e12;
inline constexpr double ropeFactor = 1e6;
} // namespace config_limits

/// Model families, named as `architectures` names them without `ForCausalLM`
/// and `Model`; classifiers are those `ForSequenceClassification`.
enum class Architecture : uint8_t {
  Llama,
  Mistral,
  Qwen2,
  Qwen3,
  Bert,
  BertClassifier,
  Roberta,
  RobertaClassifier,
  XLMRoberta,
  XLMRobertaClassifier,
};

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

/// Each frequency divided by its own number, in float32: what is left of
/// `Llama3Rope` in a GGUF file.
struct DividedRope {
  std::vector<float> factors;
  bool operator==(const DividedRope &) const = default;
};

using RopeScaling =
    std::variant<DefaultRope, LinearRope, Llama3Rope, DividedRope>;

/// What the layers of BERT and its descendants have otherwise than decoders:
/// attention in both directions, normalization behind the residual connection
/// (post-norm), biases everywhere, and a feed-forward block without a gate.
struct EncoderConfig {
  double layerNormEps = 0;
  /// GELU by its approximation with tanh.
  bool geluTanh = false;
  /// Rows of the table of learned positions; 0 where positions rotate.
  int64_t positionRows = 0;
  /// The row of the first position.
  int64_t firstPosition = 0;
  /// Rows of the table of token types.
  int64_t tokenTypes = 1;
  bool operator==(const EncoderConfig &) const = default;
};

/// What is made of the last layer's rows of a text.
enum class Pooling : uint8_t { Cls, Mean, Last };

/// The name in artifacts: "cls", "mean" or "last".
std::string_view poolingName(Pooling pooling);

/// How a text's vector is made of what the last layer says of its tokens.
struct EmbeddingConfig {
  Pooling pooling = Pooling::Mean;
  /// Vectors get length one.
  bool normalize = false;
  /// Tokens of a text by default, where that is less than positions allow.
  std::optional<int64_t> maxTokens;
  /// What may stand in front of texts, by name.
  std::vector<std::pair<std::string, std::string>> prompts;
  /// The one that stands there by default.
  std::optional<std::string> defaultPrompt;
  /// To how many values a vector may be cut (Matryoshka), ascending.
  std::vector<int64_t> dimensions;
  bool operator==(const EmbeddingConfig &) const = default;
};

/// What is added to every matrix for one task or another (LoRA).
struct AdapterConfig {
  /// The names of the tasks, in the order of their adapters.
  std::vector<std::string> tasks;
  int64_t rank = 0;
  /// By which the product of an adapter's factors is multiplied.
  double scale = 1;
  bool operator==(const AdapterConfig &) const = default;
};

/// The tensors in which a checkpoint has its quantized matrices.
enum class QuantizationMethod : uint8_t {
  Gptq,
  /// With zeros as they are.
  GptqV2,
  Awq,
  CompressedTensors,
  /// transformers' own, and vLLM's.
  FP8,
};

/// How a checkpoint has its quantized matrices.
struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::Gptq;
  /// What its numbers may be, all of them quantized.
  std::vector<NumberFormat> numbers;
  /// Rows and columns of the blocks that share a scale, of FP8 in blocks.
  std::optional<std::array<int64_t, 2>> block = {};
  bool operator==(const QuantizationConfig &) const = default;
};

/// A checked model configuration. All counts are positive.
struct ModelConfig {
  Architecture architecture = Architecture::Llama;
  int64_t hiddenSize = 0;
  int64_t intermediateSize = 0;
  int64_t layers = 0;
  /// Query heads, a multiple of `kvHeads`.
  int64_t heads = 0;
  int64_t kvHeads = 0;
  /// Elements of one head, even where positions rotate. `heads * headDim` need
  /// not be `hiddenSize`.
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
  /// Of BERT and its descendants.
  std::optional<EncoderConfig> encoder;
  /// Of models that embed texts.
  std::optional<EmbeddingConfig> embedding;
  std::optional<AdapterConfig> adapters;
  /// Of checkpoints that have quantized matrices.
  std::optional<QuantizationConfig> quantization;
  /// Scores of models that classify texts, or rank them; 0: it does neither.
  int64_t labels = 0;

  /// Whether it is for whole texts instead of for generating some.
  bool encodes() const { return embedding || labels > 0; }

  /// Rows of the q projection and columns of the output projection.
  int64_t queryWidth() const { return heads * headDim; }
  /// Rows of the k projection and of the v projection.
  int64_t keyValueWidth() const { return kvHeads * headDim; }
  /// Tokens of the longest context in which every layer attends to all: code
  /// for more would need attention in a sliding window.
  int64_t longestContext() const {
    return slidingWindow.value_or(maxPositionEmbeddings);
  }

  /// Tokens of a context where nobody asks for another number of them.
  int64_t usualContext() const {
    return embedding && embedding->maxTokens
               ? std::min(*embedding->maxTokens, longestContext())
               : longestContext();
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

/// The text of a file of `sentence-transformers` by its path in the model's
/// folder; nothing where there is none. Errors begin with that path.
using FolderReader =
    std::function<Result<std::optional<std::string>>(const std::string &path)>;

/// Makes `config` that of an embedding model as `modules.json` and what it
/// names tell; leaves it alone where there is no such file. Errors name the
/// file, the field and its value: modules other than a transformer, pooling and
/// normalization in this order, ways to pool that the compiler does not know,
/// and what would change texts before they are tokens.
Status addSentenceTransformers(ModelConfig &config, const FolderReader &read);

/// The rotary embedding's `headDim / 2` inverse frequencies in radians for each
/// position, scaling included. Computed in float32, operation by operation as
/// PyTorch does, since every program that runs the model does it so.
std::vector<float> ropeInverseFrequencies(const ModelConfig &config);

} // namespace sandwich

#endif // SANDWICH_FRONTEND_MODELCONFIG_H
