//===- GgufModel.cpp - What a GGUF file says of a model -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Keys, names of tensors and the order of their rows are those that
/// llama.cpp's `convert_hf_to_gguf.py` writes.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/GgufModel.h"

#include "ConfigFields.h"
#include "EncoderConfig.h"
#include "GgufKeys.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Support/ModelLimits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

using namespace sandwich;

namespace {

struct FamilyFacts {
  std::string_view name;
  Architecture architecture;
};

/// A key of the model's family: "llama.block_count".
class FamilyFields {
public:
  FamilyFields(const GgufContents &contents, const Fields &fields,
               std::string family)
      : contents(contents), fields(fields), family(std::move(family)) {}

  std::string key(const char *name) const { return family + "." + name; }
  bool has(const char *name) const { return fields.has(key(name).c_str()); }

  Result<int64_t> integer(const char *name, int64_t least, int64_t most) const {
    SANDWICH_RETURN_IF_ERROR(checkIsNoList(name));
    return fields.integer(key(name).c_str(), least, most);
  }
  Result<int64_t> integerOr(const char *name, int64_t absent, int64_t least,
                            int64_t most) const {
    SANDWICH_RETURN_IF_ERROR(checkIsNoList(name));
    return fields.integerOr(key(name).c_str(), absent, least, most);
  }
  Result<double> number(const char *name, double least, double most) const {
    return fields.number(key(name).c_str(), least, most);
  }
  Status checkFixed(const char *name, const Json &value) const {
    return sandwich::checkFixed(fields, key(name).c_str(), value);
  }
  template <typename... Parts>
  Error refuse(const char *name, const Parts &...parts) const {
    return fields.refuse(key(name).c_str(), parts...);
  }
  const Json *find(const char *name) const {
    return fields.find(key(name).c_str());
  }

private:
  Status checkIsNoList(const char *name) const {
    if (!contents.arrays.contains(key(name)))
      return {};
    return makeError(key(name), " is a list; one number for all layers is "
                                "expected");
  }

  const GgufContents &contents;
  const Fields &fields;
  std::string family;
};

struct TensorNames {
  std::string_view gguf, ours;
};

} // namespace

static constexpr const char *architectureKey = "general.architecture";
static constexpr std::string_view ropeFactorsName = "rope_freqs.weight";

/// Of Mistral's models, too, files say that they are "llama".
static constexpr auto families = std::to_array<FamilyFacts>({
    {"llama", Architecture::Llama},
    {"qwen2", Architecture::Qwen2},
    {"qwen3", Architecture::Qwen3},
});

/// Tokens that end what a model says, whatever else a file says of them, as
/// llama.cpp has them (`llama-vocab.cpp`), and what Llama 3 ends texts with.
static constexpr auto endsOfText = std::to_array<std::string_view>(
    {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",
     "<|endoftext|>", "<|end_of_text|>", "<EOT>"});

static constexpr auto outerNames = std::to_array<TensorNames>({
    {"token_embd.weight", embeddingTensorName},
    {"output_norm.weight", finalNormTensorName},
    {"output.weight", headTensorName},
});

static constexpr std::string_view ggufLayers = "blk.",
                                  ourLayers = "model.layers.";

/// Of a layer, without ".weight" or ".bias".
static constexpr auto layerNames = std::to_array<TensorNames>({
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
});

/// `name` as the other side calls it; itself if that has none for it.
static std::string rename(std::string_view name,
                          std::string_view TensorNames::*from,
                          std::string_view TensorNames::*to,
                          std::string_view layersFrom,
                          std::string_view layersTo) {
  for (const TensorNames &names : outerNames)
    if (names.*from == name)
      return std::string(names.*to);
  if (!name.starts_with(layersFrom))
    return std::string(name);
  const size_t begin = layersFrom.size(), dot = name.find('.', begin);
  const size_t suffix = name.rfind('.');
  if (dot == name.npos || suffix <= dot)
    return std::string(name);
  const std::string_view stem = name.substr(dot + 1, suffix - dot - 1);
  for (const TensorNames &names : layerNames)
    if (names.*from == stem)
      return std::string(layersTo) +
             std::string(name.substr(begin, dot + 1 - begin)) +
             std::string(names.*to) + std::string(name.substr(suffix));
  return std::string(name);
}

std::string sandwich::ggufTensorName(const std::string &name) {
  return rename(name, &TensorNames::ours, &TensorNames::gguf, ourLayers,
                ggufLayers);
}

/// llama.cpp turns pairs of neighbours where `transformers` turns those of the
/// head's halves, so its files have the rows of Llama's queries and keys in
/// pairs.
static bool hasPairedRows(std::string_view name, const ModelConfig &config) {
  return config.architecture == Architecture::Llama &&
         (name.find(".attn_q.") != name.npos ||
          name.find(".attn_k.") != name.npos);
}

Result<TensorTable> sandwich::renameGgufTensors(TensorTable tensors,
                                                const ModelConfig &config) {
  TensorTable renamed;
  for (auto &[name, tensor] : tensors) {
    if (name == ropeFactorsName)
      continue;
    if (hasPairedRows(name, config) && !tensor.shape.empty() &&
        tensor.shape.front() % config.headDim == 0)
      tensor.alternatingRows = config.headDim;
    auto [entry, isNew] =
        renamed.emplace(rename(name, &TensorNames::gguf, &TensorNames::ours,
                               ggufLayers, ourLayers),
                        std::move(tensor));
    if (!isNew)
      return makeError("tensor ", quote(name), ": there is another one for ",
                       quote(entry->first));
  }
  return renamed;
}

static Result<FamilyFacts> readFamily(const Fields &fields) {
  const Json *name = fields.find(architectureKey);
  if (!name)
    return fields.missing(architectureKey);
  for (const FamilyFacts &family : families)
    if (*name == std::string(family.name))
      return family;
  std::string known;
  for (const FamilyFacts &family : families)
    known += (known.empty() ? "" : ", ") + quote(family.name);
  return fields.refuse(architectureKey, ", which is not supported (", known,
                       " are)");
}

static Status readSizes(const FamilyFields &fields, ModelConfig &config) {
  SANDWICH_ASSIGN_OR_RETURN(
      config.hiddenSize,
      fields.integer("embedding_length", 1, model_limits::hiddenSize));
  SANDWICH_ASSIGN_OR_RETURN(
      config.intermediateSize,
      fields.integer("feed_forward_length", 1, model_limits::intermediateSize));
  SANDWICH_ASSIGN_OR_RETURN(
      config.layers, fields.integer("block_count", 1, model_limits::layers));
  SANDWICH_ASSIGN_OR_RETURN(
      config.maxPositionEmbeddings,
      fields.integer("context_length", 1, model_limits::contextLength));
  SANDWICH_ASSIGN_OR_RETURN(
      config.heads,
      fields.integer("attention.head_count", 1, model_limits::heads));
  SANDWICH_ASSIGN_OR_RETURN(
      config.kvHeads, fields.integerOr("attention.head_count_kv", config.heads,
                                       1, model_limits::heads));
  if (config.heads % config.kvHeads != 0)
    return fields.refuse(
        "attention.head_count", ", which is not a multiple of ",
        fields.key("attention.head_count_kv"), " ", config.kvHeads);
  SANDWICH_ASSIGN_OR_RETURN(
      config.rmsNormEps, fields.number("attention.layer_norm_rms_epsilon",
                                       config_limits::smallestRmsNormEps, 1));
  const bool hasHeadDim = fields.has("attention.key_length");
  if (!hasHeadDim && config.hiddenSize % config.heads != 0)
    return fields.refuse("embedding_length", ", which is not a multiple of ",
                         fields.key("attention.head_count"), " ", config.heads,
                         ", and ", fields.key("attention.key_length"),
                         " is missing");
  SANDWICH_ASSIGN_OR_RETURN(config.headDim,
                            fields.integerOr("attention.key_length",
                                             config.hiddenSize / config.heads,
                                             1, model_limits::headDim));
  if (config.headDim % 2 != 0 || config.headDim > model_limits::headDim)
    return makeError(hasHeadDim ? fields.key("attention.key_length")
                                : fields.key("embedding_length") +
                                      " for each "
                                      "of " +
                                      fields.key("attention.head_count"),
                     " is ", config.headDim, "; an even number of at most ",
                     model_limits::headDim, " is expected");
  return checkAttentionStack(config);
}

/// What would change the arithmetic in ways the compiler does not know.
static Status checkArithmetic(const FamilyFields &fields,
                              const ModelConfig &config) {
  const std::pair<const char *, Json> fixed[] = {
      {"attention.value_length", config.headDim},
      {"rope.dimension_count", config.headDim},
      {"rope.scaling.attn_factor", 1},
      {"attention.causal", true},
      {"attention.clamp_kqv", 0},
      {"attention.max_alibi_bias", 0},
      {"attention.scale", nullptr},
      {"expert_count", 0},
      {"use_parallel_residual", false},
      {"logit_scale", 1},
      {"residual_scale", 1},
      {"embedding_scale", 1},
      {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr},
  };
  for (const auto &[name, value] : fixed)
    SANDWICH_RETURN_IF_ERROR(fields.checkFixed(name, value));
  return {};
}

/// What Llama 3.1's scaling divides each frequency by, if the file tells it.
static Result<std::optional<std::vector<float>>>
readRopeFactors(const GgufContents &contents, const ModelConfig &config) {
  auto entry = contents.tensors.find(ropeFactorsName);
  if (entry == contents.tensors.end())
    return std::optional<std::vector<float>>();
  const TensorView &tensor = entry->second;
  const std::vector<int64_t> expected = {config.headDim / 2};
  if (tensor.shape != expected)
    return makeError("tensor ", quote(ropeFactorsName), ": shape is ",
                     describeShape(tensor.shape), ", but ",
                     describeShape(expected), " is expected");
  std::vector<float> factors(expected.front());
  readElements(tensor, 0, factors);
  for (float factor : factors)
    if (!(factor >= 1e-6f && factor <= float(config_limits::ropeFactor)))
      return makeError("tensor ", quote(ropeFactorsName), " has the factor ",
                       factor, "; numbers from 1e-6 to ",
                       config_limits::ropeFactor, " are expected");
  return std::optional(std::move(factors));
}

static Status readRope(const GgufContents &contents, const FamilyFields &fields,
                       ModelConfig &config) {
  constexpr double defaultTheta = 10000;
  config.ropeTheta = defaultTheta;
  if (fields.has("rope.freq_base")) {
    SANDWICH_ASSIGN_OR_RETURN(
        config.ropeTheta,
        fields.number("rope.freq_base", 1, config_limits::ropeTheta));
  }
  const Json *type = fields.find("rope.scaling.type");
  if (type && *type != "none" && *type != "linear")
    return fields.refuse("rope.scaling.type",
                         ", which is not supported (\"none\" and \"linear\" "
                         "are)");
  // Older files have only the factor, under the other name; 0 is none.
  const char *factorName = fields.has("rope.scaling.factor")
                               ? "rope.scaling.factor"
                               : "rope.scale_linear";
  const Json *factor = fields.find(factorName);
  const bool isLinear = factor && *factor != 0 && (!type || *type == "linear");
  SANDWICH_ASSIGN_OR_RETURN(std::optional<std::vector<float>> factors,
                            readRopeFactors(contents, config));
  if (isLinear) {
    SANDWICH_ASSIGN_OR_RETURN(
        double divisor,
        fields.number(factorName, 1, config_limits::ropeFactor));
    if (factors)
      return fields.refuse(factorName, ", and there are factors in ",
                           ropeFactorsName, ", too");
    config.ropeScaling = LinearRope{divisor};
  } else if (factors) {
    config.ropeScaling = DividedRope{*std::move(factors)};
  }
  return {};
}

static Status readTokens(const GgufContents &contents, const Fields &fields,
                         ModelConfig &config) {
  auto readToken = [&](const char *key) -> Result<std::optional<int32_t>> {
    if (!fields.has(key))
      return std::optional<int32_t>();
    SANDWICH_ASSIGN_OR_RETURN(int64_t token,
                              fields.integer(key, 0, config.vocabSize - 1));
    return std::optional(static_cast<int32_t>(token));
  };
  auto addEnd = [&](int32_t token) {
    if (!std::ranges::count(config.eosTokenIds, token))
      config.eosTokenIds.push_back(token);
  };
  SANDWICH_ASSIGN_OR_RETURN(config.bosTokenId,
                            readToken("tokenizer.ggml.bos_token_id"));
  for (const char *key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<int32_t> token, readToken(key));
    if (token)
      addEnd(*token);
  }
  if (const Json *model = fields.find(tokenizerModelKey);
      model && *model == "llama") {
    if (!config.bosTokenId && usualTokens.bos < config.vocabSize)
      config.bosTokenId = usualTokens.bos;
    if (!fields.has("tokenizer.ggml.eos_token_id") &&
        usualTokens.eos < config.vocabSize)
      addEnd(usualTokens.eos);
  }
  // Many files name but one of the tokens that end a turn.
  auto entry = contents.arrays.find(tokensKey);
  if (entry == contents.arrays.end())
    return {};
  auto tokens = entry->second.strings();
  if (!tokens)
    return tokens.error().inContext(entry->first);
  const auto count = std::min<size_t>(tokens->size(), config.vocabSize);
  for (size_t i = 0; i < count; ++i)
    if (std::ranges::count(endsOfText, (*tokens)[i]))
      addEnd(static_cast<int32_t>(i));
  return {};
}

Result<ModelConfig> sandwich::readGgufConfig(const GgufContents &contents) {
  const Fields all(contents.values, "");
  // What was merged has 0 parts.
  if (const Json *parts = all.find("split.count");
      parts && *parts != 0 && *parts != 1)
    return all.refuse("split.count", ": the file is a part of a model; merge "
                                     "them with llama-gguf-split --merge");
  SANDWICH_ASSIGN_OR_RETURN(FamilyFacts family, readFamily(all));
  const FamilyFields fields(contents, all, std::string(family.name));
  ModelConfig config;
  config.architecture = family.architecture;
  SANDWICH_RETURN_IF_ERROR(readSizes(fields, config));
  SANDWICH_RETURN_IF_ERROR(checkArithmetic(fields, config));
  SANDWICH_RETURN_IF_ERROR(readRope(contents, fields, config));
  SANDWICH_ASSIGN_OR_RETURN(int64_t window,
                            fields.integerOr("attention.sliding_window", 0, 0,
                                             model_limits::contextLength));
  if (window > 0 && window < config.maxPositionEmbeddings)
    config.slidingWindow = window;

  const std::string table = ggufTensorName(std::string(embeddingTensorName));
  auto embedding = contents.tensors.find(table);
  if (embedding == contents.tensors.end())
    return makeError("tensor ", quote(table), " is missing");
  const std::vector<int64_t> &shape = embedding->second.shape;
  if (shape.size() != 2 || shape[0] < 1 ||
      shape[0] > int64_t(model_limits::vocabSize))
    return makeError("tensor ", quote(table), ": shape is ",
                     describeShape(shape), "; between 1 and ",
                     model_limits::vocabSize, " rows are expected");
  config.vocabSize = shape[0];
  auto hasTensor = [&](const std::string &name) {
    return contents.tensors.contains(ggufTensorName(name));
  };
  config.tieWordEmbeddings = !hasTensor(std::string(headTensorName));
  config.qkvBias = hasTensor(layerTensorName(0, "self_attn.q_proj.bias"));
  config.outputBias = hasTensor(layerTensorName(0, "self_attn.o_proj.bias"));
  config.qkNorm = hasTensor(layerTensorName(0, "self_attn.q_norm.weight"));
  SANDWICH_RETURN_IF_ERROR(readTokens(contents, all, config));
  return config;
}
