//===- ModelConfig.cpp - What config.json says of a model -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/ModelConfig.h"

#include "ConfigFields.h"
#include "EncoderConfig.h"
#include "QuantizedTensors.h"
#include "sandwich/Support/ModelLimits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

using namespace sandwich;

namespace {

enum class ModelTask : uint8_t { Generate, Embed, Classify };

struct ArchitectureFacts {
  std::string_view name;
  std::string_view modelType;
  ModelTask task;
  /// What absent token ids mean; none where the family has no default.
  std::optional<int32_t> defaultBosTokenId;
  std::optional<int32_t> defaultEosTokenId;
};

} // namespace

/// In the order of `Architecture`.
static constexpr std::array<ArchitectureFacts, 10> architectures = {{
    {"LlamaForCausalLM", "llama", ModelTask::Generate, 1, 2},
    {"MistralForCausalLM", "mistral", ModelTask::Generate, 1, 2},
    {"Qwen2ForCausalLM", "qwen2", ModelTask::Generate, {}, {}},
    {"Qwen3ForCausalLM", "qwen3", ModelTask::Generate, {}, {}},
    {"BertModel", "bert", ModelTask::Embed, {}, {}},
    {"BertForSequenceClassification", "bert", ModelTask::Classify, {}, {}},
    {"RobertaModel", "roberta", ModelTask::Embed, {}, {}},
    {"RobertaForSequenceClassification",
     "roberta",
     ModelTask::Classify,
     {},
     {}},
    {"XLMRobertaModel", "xlm-roberta", ModelTask::Embed, {}, {}},
    {"XLMRobertaForSequenceClassification",
     "xlm-roberta",
     ModelTask::Classify,
     {},
     {}},
}};

/// What transformers takes when config.json does not say.
static constexpr double defaultRopeTheta = 10000;
static constexpr int64_t defaultSlidingWindow = 4096;
static constexpr int64_t defaultQwenMaxWindowLayers = 28;

static const ArchitectureFacts &factsOf(Architecture architecture) {
  return architectures[static_cast<size_t>(architecture)];
}

std::string_view sandwich::architectureName(Architecture architecture) {
  return factsOf(architecture).name;
}

static Result<Architecture> readArchitecture(const Fields &fields) {
  const Json *names = fields.find("architectures");
  if (!names)
    return fields.missing("architectures");
  if (!names->is_array() || names->size() != 1 || !(*names)[0].is_string())
    return fields.refuse("architectures", "; a list of one name is expected");
  const auto &name = (*names)[0].get_ref<const std::string &>();
  auto known = std::ranges::find(architectures, name, &ArchitectureFacts::name);
  if (known == architectures.end())
    return fields.refuse(
        "architectures",
        ", which is not supported (LlamaForCausalLM, MistralForCausalLM, "
        "Qwen2ForCausalLM and Qwen3ForCausalLM are, and of BERT, RoBERTa and "
        "XLM-RoBERTa models and those for sequence classification)");
  const Json *modelType = fields.find("model_type");
  if (modelType && *modelType != std::string(known->modelType))
    return fields.refuse("model_type", ", which contradicts architectures ",
                         describe(*names));
  return static_cast<Architecture>(known - architectures.begin());
}

static Status readHeadDim(const Fields &fields, ModelConfig &config) {
  if (fields.find("head_dim")) {
    SANDWICH_ASSIGN_OR_RETURN(
        config.headDim, fields.integer("head_dim", 1, model_limits::headDim));
    if (config.headDim % 2 != 0)
      return makeError("head_dim is ", config.headDim,
                       "; rotary embedding needs an even number");
    return {};
  }
  if (config.hiddenSize % config.heads != 0)
    return makeError("hidden_size is ", config.hiddenSize,
                     ", which is not a multiple of num_attention_heads ",
                     config.heads, ", and head_dim is missing");
  config.headDim = config.hiddenSize / config.heads;
  if (config.headDim % 2 != 0 || config.headDim > model_limits::headDim)
    return makeError("hidden_size ", config.hiddenSize,
                     " divided by num_attention_heads ", config.heads, " is ",
                     config.headDim, "; an even head_dim of at most ",
                     model_limits::headDim, " is expected");
  return {};
}

Status sandwich::readCommonSizes(const Fields &fields, ModelConfig &config) {
  SANDWICH_ASSIGN_OR_RETURN(
      config.hiddenSize,
      fields.integer("hidden_size", 1, model_limits::hiddenSize));
  SANDWICH_ASSIGN_OR_RETURN(
      config.intermediateSize,
      fields.integer("intermediate_size", 1, model_limits::intermediateSize));
  SANDWICH_ASSIGN_OR_RETURN(
      config.layers,
      fields.integer("num_hidden_layers", 1, model_limits::layers));
  SANDWICH_ASSIGN_OR_RETURN(
      config.heads,
      fields.integer("num_attention_heads", 1, model_limits::heads));
  SANDWICH_ASSIGN_OR_RETURN(
      config.vocabSize,
      fields.integer("vocab_size", 1, model_limits::vocabSize));
  SANDWICH_ASSIGN_OR_RETURN(config.maxPositionEmbeddings,
                            fields.integer("max_position_embeddings", 1,
                                           model_limits::contextLength));
  return {};
}

Status sandwich::checkAttentionStack(const ModelConfig &config) {
  const uint64_t stackBytes =
      model_limits::attentionStackBytes(config.heads, config.headDim);
  if (stackBytes > model_limits::maxAttentionStackBytes)
    return makeError("num_attention_heads is ", config.heads,
                     ", each of head_dim ", config.headDim,
                     ": their attention would need ", stackBytes,
                     " bytes of a thread's stack; at most ",
                     model_limits::maxAttentionStackBytes, " are accepted");
  return {};
}

static Status readSizes(const Fields &fields, ModelConfig &config) {
  SANDWICH_RETURN_IF_ERROR(readCommonSizes(fields, config));
  SANDWICH_ASSIGN_OR_RETURN(
      config.rmsNormEps,
      fields.number("rms_norm_eps", config_limits::smallestRmsNormEps, 1));

  SANDWICH_ASSIGN_OR_RETURN(
      config.kvHeads, fields.integerOr("num_key_value_heads", config.heads, 1,
                                       model_limits::heads));
  if (config.heads % config.kvHeads != 0)
    return makeError("num_attention_heads is ", config.heads,
                     ", which is not a multiple of num_key_value_heads ",
                     config.kvHeads);

  SANDWICH_RETURN_IF_ERROR(readHeadDim(fields, config));
  return checkAttentionStack(config);
}

/// Whether `layer_types`, if there, has layers that attend in a window.
static Result<std::optional<bool>> readLayerTypes(const Fields &fields,
                                                  const ModelConfig &config) {
  const Json *types = fields.find("layer_types");
  if (!types)
    return std::optional<bool>();
  if (!types->is_array() || types->size() != size_t(config.layers))
    return fields.refuse("layer_types", "; a list of num_hidden_layers ",
                         config.layers, " names is expected");
  bool slides = false;
  for (const Json &type : *types) {
    if (type != "full_attention" && type != "sliding_attention")
      return makeError("layer_types has ", describe(type),
                       "; only \"full_attention\" and, within its window, "
                       "\"sliding_attention\" are supported");
    slides |= type == "sliding_attention";
  }
  return std::optional(slides);
}

/// Whether some layers attend in the window that `sliding_window` gives.
static Result<bool> readUseOfWindow(const Fields &fields,
                                    const ModelConfig &config) {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<bool> typesSlide,
                            readLayerTypes(fields, config));
  if (config.architecture == Architecture::Llama)
    return typesSlide.value_or(false);
  if (config.architecture == Architecture::Mistral)
    return true;
  SANDWICH_ASSIGN_OR_RETURN(bool used,
                            fields.booleanOr("use_sliding_window", false));
  if (!used && typesSlide.value_or(false))
    return makeError("layer_types has \"sliding_attention\", but "
                     "use_sliding_window is false");
  SANDWICH_ASSIGN_OR_RETURN(int64_t firstLayer,
                            fields.integerOr("max_window_layers",
                                             defaultQwenMaxWindowLayers, 0,
                                             model_limits::layers));
  return used && typesSlide.value_or(firstLayer < config.layers);
}

static Status readSlidingWindow(const Fields &fields, ModelConfig &config) {
  SANDWICH_ASSIGN_OR_RETURN(bool used, readUseOfWindow(fields, config));
  // Null means no window, but an absent field means the default one.
  if (!used || (fields.has("sliding_window") && !fields.find("sliding_window")))
    return {};
  SANDWICH_ASSIGN_OR_RETURN(
      int64_t window, fields.integerOr("sliding_window", defaultSlidingWindow,
                                       1, model_limits::contextLength));
  if (window < config.maxPositionEmbeddings)
    config.slidingWindow = window;
  return {};
}

static Status readBiases(const Fields &fields, ModelConfig &config) {
  SANDWICH_ASSIGN_OR_RETURN(bool attentionBias,
                            fields.booleanOr("attention_bias", false));
  SANDWICH_ASSIGN_OR_RETURN(bool mlpBias, fields.booleanOr("mlp_bias", false));
  if (mlpBias)
    return fields.refuse("mlp_bias", ", which is not supported");
  switch (config.architecture) {
  case Architecture::Mistral:
    if (attentionBias)
      return fields.refuse("attention_bias",
                           ", but MistralForCausalLM has no biases");
    return {};
  case Architecture::Qwen2:
    // Fixed by the family, whatever attention_bias says.
    config.qkvBias = true;
    return {};
  case Architecture::Qwen3:
    config.qkNorm = true;
    [[fallthrough]];
  default:
    config.qkvBias = attentionBias;
    config.outputBias = attentionBias;
    return {};
  }
}

/// Refuses what would change the arithmetic in ways the compiler does not know.
/// Not all of these fields are of the families that are read: who writes one
/// into a configuration means it.
static Status checkArithmetic(const Fields &fields, const ModelConfig &config) {
  for (const char *name : {"hidden_act", "hidden_activation"})
    if (const Json *activation = fields.find(name);
        activation && *activation != "silu" && *activation != "swish")
      return fields.refuse(name, "; only \"silu\" is supported");
  if (const Json *layers = fields.find("no_rope_layers")) {
    // The layers that rotate are 1.
    bool all = layers->is_array() &&
               std::ranges::all_of(*layers, [](auto &one) { return one == 1; });
    if (!all)
      return fields.refuse("no_rope_layers",
                           "; only layers with rotary embedding, all 1, are "
                           "supported");
  }
  if (fields.find("attention_multiplier")) {
    SANDWICH_ASSIGN_OR_RETURN(double scale,
                              fields.number("attention_multiplier", 0, 1e6));
    double usual = 1 / std::sqrt(double(config.headDim));
    if (std::abs(scale - usual) > 1e-6 * usual)
      return fields.refuse("attention_multiplier", "; only ", usual,
                           ", of head_dim ", config.headDim, ", is supported");
  }
  const std::pair<const char *, Json> fixed[] = {
      // What tokens attend to.
      {"is_causal", true},
      {"bidirectional", false},
      {"is_bidirectional", false},
      {"use_bidirectional_attention", false},
      {"is_encoder_decoder", false},
      {"add_cross_attention", false},
      {"attention_chunk_size", nullptr},
      // Rotation.
      {"partial_rotary_factor", 1},
      {"rotary_pct", 1},
      {"rotary_dim", config.headDim},
      {"rope_interleave", false},
      {"rope_interleaved", false},
      {"use_mrope", false},
      {"rope_local_base_freq", nullptr},
      {"alibi", false},
      {"use_alibi", false},
      // Attention.
      {"qkv_bias", config.qkvBias},
      {"qk_norm", config.qkNorm},
      {"use_qk_norm", config.qkNorm},
      {"qk_layernorm", config.qkNorm},
      {"clip_qkv", nullptr},
      {"query_pre_attn_scalar", config.headDim},
      {"attn_logit_softcapping", nullptr},
      {"attn_temperature_tuning", false},
      // Layers.
      {"use_parallel_residual", false},
      {"parallel_attn", false},
      {"num_experts", 0},
      {"num_local_experts", 0},
      {"n_routed_experts", 0},
      // Factors of activations and logits.
      {"embedding_multiplier", 1},
      {"residual_multiplier", 1},
      {"scale_emb", 1},
      {"scale_depth", nullptr},
      {"dim_model_base", nullptr},
      {"logit_scale", 1},
      {"logits_scaling", 1},
      {"final_logit_softcapping", nullptr},
      {"lm_head_bias", false},
      // Weights.
      {"quantization", nullptr},
      {"compression_config", nullptr},
  };
  for (const auto &[name, value] : fixed)
    SANDWICH_RETURN_IF_ERROR(checkFixed(fields, name, value));
  return {};
}

static Result<std::string> readRopeType(const Fields &parameters) {
  const Json *type = parameters.find("rope_type");
  const Json *olderName = parameters.find("type");
  if (type && olderName && *type != *olderName)
    return parameters.refuse("rope_type", ", which contradicts type ",
                             describe(*olderName));
  const char *name = type ? "rope_type" : "type";
  if (!type)
    type = olderName;
  if (!type) {
    if (parameters.find("factor"))
      return parameters.missing("rope_type");
    return std::string("default");
  }
  if (!type->is_string() ||
      (*type != "default" && *type != "linear" && *type != "llama3"))
    return parameters.refuse(name, ", which is not supported (\"default\", "
                                   "\"linear\" and \"llama3\" are)");
  return type->get<std::string>();
}

static Result<RopeScaling> readRopeScaling(const Fields &parameters) {
  SANDWICH_ASSIGN_OR_RETURN(std::string type, readRopeType(parameters));
  if (type == "default")
    return RopeScaling(DefaultRope{});
  SANDWICH_ASSIGN_OR_RETURN(
      double factor, parameters.number("factor", 1, config_limits::ropeFactor));
  if (type == "linear")
    return RopeScaling(LinearRope{factor});

  Llama3Rope rope{factor, 0, 0, 0};
  // The smallest positive value of interest: it only keeps a quotient finite.
  constexpr double leastFrequencyFactor = 1e-6;
  SANDWICH_ASSIGN_OR_RETURN(rope.lowFrequencyFactor,
                            parameters.number("low_freq_factor",
                                              leastFrequencyFactor,
                                              config_limits::ropeFactor));
  SANDWICH_ASSIGN_OR_RETURN(rope.highFrequencyFactor,
                            parameters.number("high_freq_factor",
                                              leastFrequencyFactor,
                                              config_limits::ropeFactor));
  SANDWICH_ASSIGN_OR_RETURN(
      rope.originalMaxPositionEmbeddings,
      parameters.integer("original_max_position_embeddings", 1,
                         model_limits::contextLength));
  if (float(rope.highFrequencyFactor) <= float(rope.lowFrequencyFactor))
    return parameters.refuse("high_freq_factor",
                             ", which is not above low_freq_factor ",
                             rope.lowFrequencyFactor);
  return RopeScaling(rope);
}

static Status readRope(const Fields &fields, ModelConfig &config) {
  config.ropeTheta = defaultRopeTheta;
  bool hasTheta = fields.find("rope_theta");
  if (hasTheta) {
    SANDWICH_ASSIGN_OR_RETURN(
        config.ropeTheta,
        fields.number("rope_theta", 1, config_limits::ropeTheta));
  }

  const Json *older = fields.find("rope_scaling");
  const Json *newer = fields.find("rope_parameters");
  if (older && newer && *older != *newer)
    return fields.refuse("rope_scaling", ", which contradicts rope_parameters ",
                         describe(*newer));
  if (!older && !newer)
    return {};
  const char *name = newer ? "rope_parameters" : "rope_scaling";
  const Json &object = newer ? *newer : *older;
  if (!object.is_object())
    return fields.refuse(name, "; an object is expected");
  for (const auto &[key, value] : object.items())
    if (value.is_object())
      return makeError(name, " has the object ", quote(key),
                       "; parameters for each kind of layer are not supported");

  Fields parameters(object, std::string(name) + ".");
  SANDWICH_RETURN_IF_ERROR(checkFixed(parameters, "partial_rotary_factor", 1));
  if (parameters.find("rope_theta")) {
    SANDWICH_ASSIGN_OR_RETURN(
        double theta,
        parameters.number("rope_theta", 1, config_limits::ropeTheta));
    if (hasTheta && theta != config.ropeTheta)
      return parameters.refuse("rope_theta", ", which contradicts rope_theta ",
                               describe(*fields.find("rope_theta")));
    config.ropeTheta = theta;
  }
  SANDWICH_ASSIGN_OR_RETURN(config.ropeScaling, readRopeScaling(parameters));
  return {};
}

/// The ids of `eos_token_id`: absent, one id or a list of them. Those that
/// `config` has already are not added again.
static Status readEosTokens(const Fields &fields, ModelConfig &config) {
  const Json *field = fields.find("eos_token_id");
  if (!field)
    return {};
  auto add = [&](const Json &id) -> Status {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() >= uint64_t(config.vocabSize))
      return fields.refuse("eos_token_id", "; ids from 0 to ",
                           config.vocabSize - 1, " are expected");
    auto token = id.get<int32_t>();
    if (std::ranges::find(config.eosTokenIds, token) ==
        config.eosTokenIds.end())
      config.eosTokenIds.push_back(token);
    return {};
  };
  if (!field->is_array())
    return add(*field);
  if (field->size() > model_limits::eosTokens)
    return fields.refuse("eos_token_id", "; at most ", model_limits::eosTokens,
                         " ids are accepted");
  for (const Json &id : *field)
    SANDWICH_RETURN_IF_ERROR(add(id));
  return {};
}

static Status readSpecialTokens(const Fields &fields, ModelConfig &config) {
  const ArchitectureFacts &family = factsOf(config.architecture);
  if (fields.find("bos_token_id")) {
    SANDWICH_ASSIGN_OR_RETURN(
        int64_t id, fields.integer("bos_token_id", 0, config.vocabSize - 1));
    config.bosTokenId = int32_t(id);
  } else if (!fields.has("bos_token_id") && family.defaultBosTokenId &&
             *family.defaultBosTokenId < config.vocabSize) {
    config.bosTokenId = family.defaultBosTokenId;
  }
  if (!fields.has("eos_token_id") && family.defaultEosTokenId &&
      *family.defaultEosTokenId < config.vocabSize)
    config.eosTokenIds.push_back(*family.defaultEosTokenId);
  return readEosTokens(fields, config);
}

Result<ModelConfig> sandwich::parseModelConfig(std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseObject(text));
  Fields fields(document, "");
  ModelConfig config;
  SANDWICH_ASSIGN_OR_RETURN(config.architecture, readArchitecture(fields));
  const ModelTask task = factsOf(config.architecture).task;
  if (task != ModelTask::Generate) {
    SANDWICH_RETURN_IF_ERROR(
        readEncoder(fields, config, task == ModelTask::Classify));
    return config;
  }
  SANDWICH_RETURN_IF_ERROR(readSizes(fields, config));
  SANDWICH_RETURN_IF_ERROR(readSlidingWindow(fields, config));
  SANDWICH_RETURN_IF_ERROR(readBiases(fields, config));
  SANDWICH_RETURN_IF_ERROR(checkArithmetic(fields, config));
  SANDWICH_RETURN_IF_ERROR(readRope(fields, config));
  SANDWICH_ASSIGN_OR_RETURN(config.quantization, readQuantization(fields));
  SANDWICH_ASSIGN_OR_RETURN(config.tieWordEmbeddings,
                            fields.booleanOr("tie_word_embeddings", false));
  SANDWICH_RETURN_IF_ERROR(readSpecialTokens(fields, config));
  return config;
}

Status sandwich::addGenerationConfig(ModelConfig &config,
                                     std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseObject(text));
  return readEosTokens(Fields(document, ""), config);
}

static float llama3Frequency(const Llama3Rope &rope, float inverse) {
  // Scalars meet tensors as float32 there, and a scalar over a tensor is the
  // tensor's reciprocal times the scalar.
  auto low = float(rope.lowFrequencyFactor);
  auto original = float(rope.originalMaxPositionEmbeddings);
  auto factor = float(rope.factor);
  float wavelength = (1.0f / inverse) * float(2 * std::numbers::pi_v<double>);
  if (wavelength > float(double(rope.originalMaxPositionEmbeddings) /
                         rope.lowFrequencyFactor))
    return inverse / factor;
  if (wavelength < float(double(rope.originalMaxPositionEmbeddings) /
                         rope.highFrequencyFactor))
    return inverse;
  float smooth = ((1.0f / wavelength) * original - low) /
                 float(rope.highFrequencyFactor - rope.lowFrequencyFactor);
  smooth = std::clamp(smooth, 0.0f, 1.0f);
  return (1.0f - smooth) * inverse / factor + smooth * inverse;
}

std::vector<float> sandwich::ropeInverseFrequencies(const ModelConfig &config) {
  std::vector<float> frequencies(config.headDim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    float exponent = float(2 * i) / float(config.headDim);
    float inverse = 1.0f / std::pow(float(config.ropeTheta), exponent);
    if (const auto *linear = std::get_if<LinearRope>(&config.ropeScaling))
      inverse /= float(linear->factor);
    else if (const auto *llama3 = std::get_if<Llama3Rope>(&config.ropeScaling))
      inverse = llama3Frequency(*llama3, inverse);
    else if (const auto *divided =
                 std::get_if<DividedRope>(&config.ropeScaling))
      inverse /= divided->factors[i];
    frequencies[i] = inverse;
  }
  return frequencies;
}

TensorParallelSizes sandwich::tensorParallelSizes(const ModelConfig &config) {
  return {config.heads, config.kvHeads, config.intermediateSize,
          config.vocabSize};
}

std::vector<int64_t>
sandwich::allowedTensorParallelDegrees(const ModelConfig &config) {
  return tensorParallelSizes(config).allowedDegrees();
}
