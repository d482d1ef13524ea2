//===- EncoderConfig.cpp - Configurations of encoders ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderConfig.h"

#include "sandwich/Support/ModelLimits.h"

#include <algorithm>

using namespace sandwich;

/// What float32 would round to zero divides a row of equal numbers by zero.
static constexpr double smallestLayerNormEps = 1e-30;
/// Labels of any classifier, so that an artifact's scores stay small.
static constexpr int64_t mostLabels = 1 << 16;

static bool isBert(const ModelConfig &config) {
  return config.architecture == Architecture::Bert ||
         config.architecture == Architecture::BertClassifier;
}

/// "gelu" is the exact one; others name the approximation, by who wrote it.
static Status readActivation(const Fields &fields, EncoderConfig &encoder) {
  const Json *activation = fields.find("hidden_act");
  if (!activation || *activation == "gelu")
    return {};
  const std::string_view approximations[] = {"gelu_new", "gelu_fast",
                                             "gelu_pytorch_tanh"};
  if (!activation->is_string() ||
      !std::ranges::count(approximations,
                          activation->get_ref<const std::string &>()))
    return fields.refuse("hidden_act",
                         "; \"gelu\", \"gelu_new\", \"gelu_fast\" and "
                         "\"gelu_pytorch_tanh\" are supported");
  encoder.geluTanh = true;
  return {};
}

/// Learned positions are rows of a table, the first of which RoBERTa keeps for
/// padding; Jina's XLM-RoBERTa rotates instead.
static Status readPositions(const Fields &fields, ModelConfig &config) {
  const Json *type = fields.find("position_embedding_type");
  if (type && *type == "rotary" && !isBert(config)) {
    SANDWICH_ASSIGN_OR_RETURN(
        config.ropeTheta,
        fields.find("rotary_emb_base")
            ? fields.number("rotary_emb_base", 1, config_limits::ropeTheta)
            : Result(10000.0));
    if (config.headDim % 2 != 0)
      return makeError("hidden_size ", config.hiddenSize,
                       " divided by num_attention_heads ", config.heads, " is ",
                       config.headDim,
                       "; rotary embedding needs an even number");
    // The table that the implementation keeps begins as RoBERTa's.
    config.maxPositionEmbeddings =
        std::max<int64_t>(1, config.maxPositionEmbeddings - 2);
    return {};
  }
  if (type && *type != "absolute")
    return fields.refuse("position_embedding_type",
                         isBert(config) ? "; only \"absolute\" is supported"
                                        : "; \"absolute\" and \"rotary\" "
                                          "are supported");
  config.encoder->positionRows = config.maxPositionEmbeddings;
  if (isBert(config))
    return {};
  SANDWICH_ASSIGN_OR_RETURN(
      int64_t padding,
      fields.integerOr("pad_token_id", 1, 0, config.vocabSize - 1));
  config.encoder->firstPosition = padding + 1;
  if (config.encoder->firstPosition >= config.maxPositionEmbeddings)
    return fields.refuse("max_position_embeddings",
                         "; positions begin behind pad_token_id ", padding);
  config.maxPositionEmbeddings -= config.encoder->firstPosition;
  return {};
}

static Status readLabels(const Fields &fields, ModelConfig &config) {
  const Json *names = fields.find("id2label");
  if (names && (!names->is_object() || names->empty() ||
                names->size() > size_t(mostLabels)))
    return fields.refuse("id2label", "; an object with the names of 1 to ",
                         mostLabels, " labels is expected");
  // As transformers counts them: the names, whatever num_labels says beside
  // them, and two where nothing is said.
  if (names) {
    config.labels = static_cast<int64_t>(names->size());
    return {};
  }
  SANDWICH_ASSIGN_OR_RETURN(config.labels,
                            fields.integerOr("num_labels", 2, 1, mostLabels));
  return {};
}

/// The adapters of jina-embeddings-v3.
static Status readAdapters(const Fields &fields, ModelConfig &config) {
  const Json *names = fields.find("lora_adaptations");
  if (!names)
    return {};
  constexpr size_t mostTasks = 1 << 10;
  AdapterConfig &adapters = config.adapters.emplace();
  if (!names->is_array() || names->empty() || names->size() > mostTasks)
    return fields.refuse("lora_adaptations", "; a list of 1 to ", mostTasks,
                         " names is expected");
  for (const Json &name : *names) {
    if (!name.is_string() ||
        std::ranges::count(adapters.tasks, name.get<std::string>()))
      return fields.refuse("lora_adaptations",
                           "; a list of different names is expected");
    adapters.tasks.push_back(name.get<std::string>());
  }
  SANDWICH_ASSIGN_OR_RETURN(
      adapters.rank, fields.integer("lora_rank", 1, model_limits::hiddenSize));
  constexpr double largestAlpha = 1e6;
  SANDWICH_ASSIGN_OR_RETURN(double alpha,
                            fields.number("lora_alpha", 0, largestAlpha));
  adapters.scale = alpha / static_cast<double>(adapters.rank);
  return {};
}

/// Refuses what would change the arithmetic.
static Status checkArithmetic(const Fields &fields) {
  const std::pair<const char *, Json> fixed[] = {
      {"is_decoder", false},
      {"add_cross_attention", false},
      {"quantization_config", nullptr},
      {"emb_pooler", nullptr},
      {"rotary_emb_fraction", 1},
      {"rotary_emb_scale_base", nullptr},
      {"rotary_emb_interleaved", false},
      {"prenorm", false},
      {"parallel_block", false},
      {"use_rms_norm", false},
  };
  for (const auto &[name, value] : fixed)
    SANDWICH_RETURN_IF_ERROR(checkFixed(fields, name, value));
  return {};
}

Status sandwich::readEncoder(const Fields &fields, ModelConfig &config,
                             bool classifies) {
  SANDWICH_RETURN_IF_ERROR(readCommonSizes(fields, config));
  config.kvHeads = config.heads;
  if (config.hiddenSize % config.heads != 0 ||
      config.hiddenSize / config.heads > model_limits::headDim)
    return fields.refuse("hidden_size", "; a multiple of num_attention_heads ",
                         config.heads, ", by at most ", model_limits::headDim,
                         ", is expected");
  config.headDim = config.hiddenSize / config.heads;
  SANDWICH_RETURN_IF_ERROR(checkAttentionStack(config));
  EncoderConfig &encoder = config.encoder.emplace();
  encoder.layerNormEps = 1e-12;
  if (fields.find("layer_norm_eps")) {
    SANDWICH_ASSIGN_OR_RETURN(
        encoder.layerNormEps,
        fields.number("layer_norm_eps", smallestLayerNormEps, 1));
  }
  SANDWICH_ASSIGN_OR_RETURN(
      encoder.tokenTypes,
      fields.integerOr("type_vocab_size", 2, 1, model_limits::vocabSize));
  SANDWICH_RETURN_IF_ERROR(readActivation(fields, encoder));
  SANDWICH_RETURN_IF_ERROR(checkArithmetic(fields));
  SANDWICH_RETURN_IF_ERROR(readPositions(fields, config));
  SANDWICH_RETURN_IF_ERROR(readAdapters(fields, config));
  config.qkvBias = config.outputBias = true;
  if (classifies)
    return readLabels(fields, config);
  EmbeddingConfig &embedding = config.embedding.emplace();
  if (const Json *sizes = fields.find("matryoshka_dimensions")) {
    int64_t before = 0;
    if (!sizes->is_array())
      return fields.refuse("matryoshka_dimensions", "; a list is expected");
    for (const Json &size : *sizes) {
      if (!size.is_number_unsigned() ||
          size.get<uint64_t>() > uint64_t(config.hiddenSize) ||
          size.get<int64_t>() <= before)
        return fields.refuse("matryoshka_dimensions",
                             "; ascending numbers from 1 to hidden_size ",
                             config.hiddenSize, " are expected");
      before = size.get<int64_t>();
      embedding.dimensions.push_back(before);
    }
  }
  return {};
}
