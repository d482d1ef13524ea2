//===- ModelConfigTest.cpp - What config.json says of a model -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/ModelLimits.h"

#include "ParsedConfig.h"

#include <cmath>

using namespace sandwich;
using namespace sandwich::test;

namespace {

// Beside the one of a single field.
using sandwich::test::refusal;

/// A small configuration that is accepted, for tests to spoil.
Json baseConfig(const std::string &architecture = "LlamaForCausalLM") {
  return {{"architectures", {architecture}},
          {"hidden_size", 64},
          {"intermediate_size", 160},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", 100},
          {"max_position_embeddings", 2048},
          {"rms_norm_eps", 1e-5},
          {"hidden_act", "silu"},
          {"bos_token_id", 3},
          {"eos_token_id", 4}};
}

/// Error of the base configuration with one field set to the JSON `value`.
std::string refusal(const char *field, const std::string &value,
                    const char *architecture = "LlamaForCausalLM") {
  Json config = baseConfig(architecture);
  config[field] = Json::parse(value);
  return refusal(config);
}

ModelConfig acceptWith(const char *field, const std::string &value,
                       const char *architecture = "LlamaForCausalLM") {
  Json config = baseConfig(architecture);
  config[field] = Json::parse(value);
  return accept(config);
}

} // namespace

TEST(ModelConfig, ReadsALlama) {
  ModelConfig expected;
  expected.architecture = Architecture::Llama;
  expected.hiddenSize = 64;
  expected.intermediateSize = 160;
  expected.layers = 2;
  expected.heads = 4;
  expected.kvHeads = 2;
  expected.headDim = 16;
  expected.vocabSize = 100;
  expected.maxPositionEmbeddings = 2048;
  expected.rmsNormEps = 1e-5;
  expected.ropeTheta = 10000;
  expected.bosTokenId = 3;
  expected.eosTokenIds = {4};
  ModelConfig config = accept(baseConfig());
  EXPECT_EQ(config, expected);
  EXPECT_EQ(config.queryWidth(), 64);
  EXPECT_EQ(config.keyValueWidth(), 32);
}

TEST(ModelConfig, TakesTheDefaultsOfTransformers) {
  Json json = baseConfig();
  for (const char *field :
       {"num_key_value_heads", "hidden_act", "bos_token_id", "eos_token_id"})
    json.erase(field);
  json["head_dim"] = nullptr;
  json["rope_scaling"] = nullptr;
  ModelConfig config = accept(json);
  EXPECT_EQ(config.kvHeads, 4);
  EXPECT_EQ(config.headDim, 16);
  EXPECT_EQ(config.ropeTheta, 10000);
  EXPECT_FALSE(config.tieWordEmbeddings);
  EXPECT_EQ(config.bosTokenId, 1);
  EXPECT_EQ(config.eosTokenIds, (std::vector<int32_t>{2}));

  json["architectures"] = {"Qwen2ForCausalLM"};
  config = accept(json);
  EXPECT_FALSE(config.bosTokenId);
  EXPECT_TRUE(config.eosTokenIds.empty());
}

TEST(ModelConfig, ReadsTheFamilies) {
  ModelConfig config = acceptWith("model_type", "\"llama\"");
  EXPECT_FALSE(config.qkvBias || config.outputBias || config.qkNorm);

  config = acceptWith("attention_bias", "true");
  EXPECT_TRUE(config.qkvBias && config.outputBias);
  EXPECT_FALSE(config.qkNorm);

  config = acceptWith("sliding_window", "null", "MistralForCausalLM");
  EXPECT_EQ(config.architecture, Architecture::Mistral);
  EXPECT_FALSE(config.qkvBias || config.outputBias || config.qkNorm);

  config = acceptWith("tie_word_embeddings", "true", "Qwen2ForCausalLM");
  EXPECT_EQ(config.architecture, Architecture::Qwen2);
  EXPECT_TRUE(config.qkvBias && config.tieWordEmbeddings);
  EXPECT_FALSE(config.outputBias || config.qkNorm);

  config = acceptWith("head_dim", "32", "Qwen3ForCausalLM");
  EXPECT_EQ(config.architecture, Architecture::Qwen3);
  EXPECT_TRUE(config.qkNorm);
  EXPECT_FALSE(config.qkvBias || config.outputBias);
  EXPECT_EQ(config.headDim, 32);
  EXPECT_EQ(config.queryWidth(), 128);
  EXPECT_EQ(architectureName(config.architecture), "Qwen3ForCausalLM");
}

TEST(ModelConfig, KnowsAmongHowManyRanksItDivides) {
  EXPECT_EQ(allowedTensorParallelDegrees(accept(baseConfig())),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(
      allowedTensorParallelDegrees(acceptWith("num_key_value_heads", "4")),
      (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(allowedTensorParallelDegrees(acceptWith("vocab_size", "101")),
            (std::vector<int64_t>{1}));
}

TEST(ModelConfig, RefusesOtherArchitectures) {
  EXPECT_EQ(refusal("architectures", R"(["GemmaForCausalLM"])"),
            "architectures is [\"GemmaForCausalLM\"], which is not supported "
            "(LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and "
            "Qwen3ForCausalLM are, and of BERT, RoBERTa and XLM-RoBERTa models "
            "and those for sequence classification)");
  for (const char *value : {"[]", "\"LlamaForCausalLM\"", "[1]",
                            R"(["LlamaForCausalLM", "MistralForCausalLM"])"})
    EXPECT_NE(refusal("architectures", value)
                  .find("; a list of one name is expected"),
              std::string::npos)
        << value;
  EXPECT_EQ(refusal("architectures", "null"), "architectures is missing");
  EXPECT_EQ(refusal("model_type", "\"qwen2\""),
            "model_type is \"qwen2\", which contradicts architectures "
            "[\"LlamaForCausalLM\"]");
}

TEST(ModelConfig, RefusesWhatIsNoObject) {
  EXPECT_EQ(messageOf(parseModelConfig("")), "not valid JSON at byte 1");
  EXPECT_EQ(messageOf(parseModelConfig("[1]")),
            "is [1]; an object is expected");
  EXPECT_EQ(messageOf(parseModelConfig(R"({"a": 1, "a": 1})")),
            "duplicate key \"a\"");
  EXPECT_EQ(messageOf(parseModelConfig(std::string(1 << 20, '['))),
            "JSON nested deeper than 64");
}

TEST(ModelConfig, RefusesMissingFields) {
  for (const char *field :
       {"architectures", "hidden_size", "intermediate_size",
        "num_hidden_layers", "num_attention_heads", "vocab_size",
        "max_position_embeddings", "rms_norm_eps"}) {
    Json config = baseConfig();
    config.erase(field);
    EXPECT_EQ(refusal(config), std::string(field) + " is missing");
    config[field] = nullptr;
    EXPECT_EQ(refusal(config), std::string(field) + " is missing");
  }
}

TEST(ModelConfig, RefusesCountsOutOfRange) {
  const std::pair<const char *, int64_t> fields[] = {
      {"hidden_size", model_limits::hiddenSize},
      {"intermediate_size", model_limits::intermediateSize},
      {"num_hidden_layers", model_limits::layers},
      {"num_attention_heads", model_limits::heads},
      {"num_key_value_heads", model_limits::heads},
      {"head_dim", model_limits::headDim},
      {"vocab_size", model_limits::vocabSize},
      {"max_position_embeddings", model_limits::contextLength},
  };
  for (const auto &[field, limit] : fields)
    for (const std::string &value :
         {std::string("0"), std::string("-1"), std::string("1.5"),
          std::string("64.0"), std::string("\"64\""), std::string("true"),
          std::string("[64]"), std::to_string(limit + 1),
          std::string("9223372036854775807"),
          std::string("18446744073709551615"),
          std::string("-9223372036854775808"), std::string("1e+30")})
      EXPECT_EQ(refusal(field, value), std::string(field) + " is " + value +
                                           "; a whole number from 1 to " +
                                           std::to_string(limit) +
                                           " is expected");
}

TEST(ModelConfig, RefusesNumbersOutOfRange) {
  for (const char *value : {"0", "-1e-05", "2", "\"1e-5\"", "false", "1e-40"})
    EXPECT_EQ(refusal("rms_norm_eps", value),
              std::string("rms_norm_eps is ") + value +
                  "; a number from 1e-30 to 1 is expected");
  for (const char *value : {"0", "-10000", "0.5", "1e+20", "\"1e4\"", "[]"})
    EXPECT_EQ(refusal("rope_theta", value),
              std::string("rope_theta is ") + value +
                  "; a number from 1 to 1e+12 is expected");
}

TEST(ModelConfig, RefusesContradictoryHeads) {
  EXPECT_EQ(refusal("num_key_value_heads", "3"),
            "num_attention_heads is 4, which is not a multiple of "
            "num_key_value_heads 3");
  EXPECT_EQ(refusal("num_key_value_heads", "8"),
            "num_attention_heads is 4, which is not a multiple of "
            "num_key_value_heads 8");
  EXPECT_EQ(refusal("hidden_size", "66"),
            "hidden_size is 66, which is not a multiple of num_attention_heads "
            "4, and head_dim is missing");
  EXPECT_EQ(refusal("head_dim", "15"),
            "head_dim is 15; rotary embedding needs an even number");
  EXPECT_EQ(refusal("hidden_size", "60"),
            "hidden_size 60 divided by num_attention_heads 4 is 15; an even "
            "head_dim of at most 4096 is expected");
  EXPECT_EQ(acceptWith("head_dim", "6").headDim, 6);
}

TEST(ModelConfig, RefusesHeadsThatStacksHaveNoRoomFor) {
  Json config = baseConfig();
  config["num_attention_heads"] = 1024;
  config["num_key_value_heads"] = 1;
  config["head_dim"] = 1024;
  EXPECT_EQ(refusal(config),
            "num_attention_heads is 1024, each of head_dim 1024: their "
            "attention would need 8519680 bytes of a thread's stack; at most "
            "1048576 are accepted");
  config["num_attention_heads"] = 126;
  EXPECT_EQ(accept(config).heads, 126);
  config["num_attention_heads"] = 127;
  EXPECT_TRUE(refusal(config).starts_with("num_attention_heads is 127, each"));
}

TEST(ModelConfig, KnowsHowFarEveryLayerSeesAllTokens) {
  auto longest = [](const Json &config) {
    return accept(config).longestContext();
  };
  Json config = baseConfig("MistralForCausalLM");
  config["max_position_embeddings"] = 32768;
  // Mistral 7B v0.1 says 4096, which an absent field means, too.
  EXPECT_EQ(longest(config), 4096);
  config["sliding_window"] = 1024;
  EXPECT_EQ(longest(config), 1024);
  EXPECT_EQ(accept(config).slidingWindow, 1024);
  for (const Json &none : {Json(), Json(32768), Json(131072)}) {
    config["sliding_window"] = none;
    EXPECT_EQ(longest(config), 32768);
    EXPECT_FALSE(accept(config).slidingWindow);
  }
  EXPECT_EQ(refusal("sliding_window", "-1", "MistralForCausalLM"),
            "sliding_window is -1; a whole number from 1 to 16777216 is "
            "expected");

  // The family has no windows, whatever a converted configuration says.
  config = baseConfig();
  config["sliding_window"] = 1024;
  EXPECT_EQ(longest(config), 2048);
}

TEST(ModelConfig, KnowsWhichLayersOfQwenUseTheWindow) {
  for (const char *family : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    auto longest = [&](const char *fields) {
      Json config = baseConfig(family);
      config.update(Json::parse(fields));
      return accept(config).longestContext();
    };
    EXPECT_EQ(longest(R"({"use_sliding_window": false,
                          "sliding_window": 1024, "max_window_layers": 0})"),
              2048);
    // There are two layers, and those before max_window_layers see everything.
    EXPECT_EQ(longest(R"({"use_sliding_window": true,
                          "sliding_window": 1024, "max_window_layers": 2})"),
              2048);
    EXPECT_EQ(longest(R"({"use_sliding_window": true,
                          "sliding_window": 1024, "max_window_layers": 1})"),
              1024);
    EXPECT_EQ(longest(R"({"use_sliding_window": true,
                          "sliding_window": 1024})"),
              2048);
    EXPECT_EQ(longest(R"({"use_sliding_window": true, "max_window_layers": 0,
                          "max_position_embeddings": 8192})"),
              4096);
    EXPECT_EQ(longest(R"({"use_sliding_window": true, "max_window_layers": 0,
                          "sliding_window": null})"),
              2048);
    // The list of layers is more precise.
    EXPECT_EQ(longest(R"({"use_sliding_window": true, "sliding_window": 1024,
                "max_window_layers": 2,
                "layer_types": ["full_attention", "sliding_attention"]})"),
              1024);
    EXPECT_EQ(longest(R"({"use_sliding_window": true, "sliding_window": 1024,
                "max_window_layers": 0,
                "layer_types": ["full_attention", "full_attention"]})"),
              2048);
    EXPECT_EQ(refusal("layer_types",
                      R"(["full_attention", "sliding_attention"])", family),
              "layer_types has \"sliding_attention\", but use_sliding_window "
              "is false");
    EXPECT_EQ(refusal("use_sliding_window", "1", family),
              "use_sliding_window is 1; true or false is expected");
    EXPECT_EQ(refusal("max_window_layers", "-1", family)
                  .find("max_window_layers is -1; a whole number from 0"),
              0u);
  }
}

TEST(ModelConfig, RefusesOtherLayerTypes) {
  acceptWith("layer_types", R"(["full_attention", "full_attention"])");
  EXPECT_EQ(
      refusal("layer_types", R"(["full_attention", "chunked_attention"])"),
      "layer_types has \"chunked_attention\"; only \"full_attention\" and, "
      "within its window, \"sliding_attention\" are supported");
  EXPECT_EQ(refusal("layer_types", R"(["full_attention"])"),
            "layer_types is [\"full_attention\"]; a list of num_hidden_layers "
            "2 names is expected");
}

/// Fields that change what is computed, at the values that change nothing and
/// at others.
TEST(ModelConfig, RefusesByNameWhatItWouldNotCompute) {
  struct Field {
    const char *name;
    const char *harmless;
    const char *refused;
  };
  for (const Field &field : std::initializer_list<Field>{
           {"is_causal", "true", "false"},
           {"bidirectional", "false", "true"},
           {"is_bidirectional", "false", "true"},
           {"use_bidirectional_attention", "false", "\"all\""},
           {"is_encoder_decoder", "false", "true"},
           {"add_cross_attention", "false", "true"},
           {"attention_chunk_size", "null", "8192"},
           {"rotary_pct", "1.0", "0.25"},
           {"rotary_dim", "16", "8"},
           {"rope_interleave", "false", "true"},
           {"rope_interleaved", "false", "true"},
           {"use_mrope", "false", "true"},
           {"rope_local_base_freq", "null", "10000.0"},
           {"alibi", "false", "true"},
           {"use_alibi", "false", "true"},
           {"qkv_bias", "false", "true"},
           {"qk_norm", "false", "true"},
           {"use_qk_norm", "false", "true"},
           {"qk_layernorm", "false", "true"},
           {"clip_qkv", "null", "8.0"},
           {"query_pre_attn_scalar", "16", "256"},
           {"attention_multiplier", "0.25", "0.0078125"},
           {"attn_logit_softcapping", "null", "50.0"},
           {"attn_temperature_tuning", "false", "true"},
           {"no_rope_layers", "[1, 1]", "[1,0]"},
           {"use_parallel_residual", "false", "true"},
           {"parallel_attn", "false", "true"},
           {"num_experts", "0", "8"},
           {"num_local_experts", "0", "8"},
           {"n_routed_experts", "null", "64"},
           {"embedding_multiplier", "1.0", "12.0"},
           {"residual_multiplier", "1.0", "0.22"},
           {"scale_emb", "1", "12"},
           {"scale_depth", "null", "1.4"},
           {"dim_model_base", "null", "256"},
           {"logit_scale", "1.0", "0.0625"},
           {"logits_scaling", "1", "8.0"},
           {"final_logit_softcapping", "null", "30.0"},
           {"lm_head_bias", "false", "true"},
           {"quantization", "null", R"({"bits":4})"},
           {"compression_config", "null", R"({"format":"int"})"}}) {
    acceptWith(field.name, field.harmless);
    EXPECT_EQ(
        refusal(field.name, field.refused)
            .find(std::string(field.name) + " is " + field.refused + "; only "),
        0u)
        << refusal(field.name, field.refused);
  }
  // What the family has anyway.
  acceptWith("qkv_bias", "true", "Qwen2ForCausalLM");
  acceptWith("qk_norm", "true", "Qwen3ForCausalLM");
  // What changes nothing.
  acceptWith("hidden_act", "\"swish\"");
  acceptWith("pretraining_tp", "2");
  acceptWith("attention_dropout", "0.1");
  acceptWith("something_else", "{\"of\": \"no matter\"}");
}

TEST(ModelConfig, RefusesOtherArithmetic) {
  EXPECT_EQ(refusal("hidden_act", "\"gelu\""),
            "hidden_act is \"gelu\"; only \"silu\" is supported");
  EXPECT_EQ(refusal("mlp_bias", "true"),
            "mlp_bias is true, which is not supported");
  EXPECT_EQ(refusal("attention_bias", "\"yes\""),
            "attention_bias is \"yes\"; true or false is expected");
  EXPECT_EQ(refusal("attention_bias", "true", "MistralForCausalLM"),
            "attention_bias is true, but MistralForCausalLM has no biases");
  EXPECT_EQ(refusal("partial_rotary_factor", "0.5"),
            "partial_rotary_factor is 0.5; only 1 is supported");
  EXPECT_EQ(refusal("rope_parameters", R"({"partial_rotary_factor": 0.25})"),
            "rope_parameters.partial_rotary_factor is 0.25; only 1 is "
            "supported");
  acceptWith("partial_rotary_factor", "1.0");
  EXPECT_EQ(refusal("tie_word_embeddings", "0"),
            "tie_word_embeddings is 0; true or false is expected");
}

TEST(ModelConfig, ReadsHowMatricesAreQuantized) {
  using Quantized = std::optional<QuantizationConfig>;
  using enum QuantizationMethod;
  auto read = [](const char *value) {
    return acceptWith("quantization_config", value).quantization;
  };
  EXPECT_EQ(read("null"), std::nullopt);
  EXPECT_EQ(read(R"({"quant_method": "gptq", "bits": 4})"),
            Quantized({Gptq, {NumberFormat::Int4}}));
  EXPECT_EQ(read(R"({"quant_method": "gptq", "bits": 8,
                     "checkpoint_format": "gptq_v2"})"),
            Quantized({GptqV2, {NumberFormat::Int8}}));
  EXPECT_EQ(read(R"({"quant_method": "awq", "bits": 4, "version": "GEMM"})"),
            Quantized({Awq, {NumberFormat::Int4}}));
  EXPECT_EQ(read(R"({"quant_method": "compressed-tensors",
                     "format": "pack-quantized",
                     "kv_cache_scheme": null, "transform_config": {},
                     "config_groups": {"group_0": {
                       "weights": {"type": "int", "num_bits": 4,
                                   "strategy": "group"},
                       "input_activations": {"type": "int", "num_bits": 8,
                                             "dynamic": true}}}})"),
            Quantized({CompressedTensors, {NumberFormat::Int4}}));
}

TEST(ModelConfig, ReadsHowMatricesAreFloatsOfEightBits) {
  using Quantized = std::optional<QuantizationConfig>;
  using enum QuantizationMethod;
  auto read = [](const char *value) {
    return acceptWith("quantization_config", value).quantization;
  };
  // How inputs would be rounded is no matter.
  EXPECT_EQ(read(R"({"quant_method": "fp8", "activation_scheme": "static"})"),
            Quantized({FP8, {NumberFormat::FP8}}));
  EXPECT_EQ(
      read(R"({"quant_method": "fp8", "activation_scheme": "dynamic",
                     "fmt": "e4m3", "weight_block_size": [128, 128]})"),
      Quantized({FP8, {NumberFormat::FP8}, std::array<int64_t, 2>{128, 128}}));
  EXPECT_EQ(read(R"({"quant_method": "compressed-tensors",
                     "format": "float-quantized",
                     "config_groups": {"group_0": {
                       "weights": {"type": "float", "num_bits": 8,
                                   "strategy": "channel", "symmetric": true},
                       "input_activations": {"type": "float", "num_bits": 8,
                                             "dynamic": false}}}})"),
            Quantized({CompressedTensors, {NumberFormat::FP8}}));
  EXPECT_EQ(read(R"({"quant_method": "compressed-tensors",
                     "format": "naive-quantized",
                     "config_groups": {
                       "group_0": {"weights": {
                         "type": "float", "num_bits": 8, "strategy": "block",
                         "block_structure": [64, 32]}},
                       "group_1": {"weights": {"type": "int",
                                               "num_bits": 8}}}})"),
            Quantized({CompressedTensors,
                       {NumberFormat::FP8, NumberFormat::Int8},
                       std::array<int64_t, 2>{64, 32}}));
}

TEST(ModelConfig, RefusesOtherQuantization) {
  auto refuse = [](const char *value) {
    return refusal("quantization_config", value);
  };
  EXPECT_EQ(refuse("4"), "quantization_config is 4; an object is expected");
  EXPECT_EQ(refuse("{}"), "quantization_config.quant_method is missing");
  EXPECT_EQ(refuse(R"({"quant_method": "hqq"})"),
            "quantization_config.quant_method is \"hqq\", which is not "
            "supported (\"gptq\", \"awq\", \"compressed-tensors\" and "
            "\"fp8\" are)");
  EXPECT_EQ(refuse(R"({"quant_method": "fp8", "fmt": "e5m2"})"),
            "quantization_config.fmt is \"e5m2\"; only \"e4m3\" is supported");
  for (const char *block : {"[128]", "[128,24]", "[0,128]", "[128,131072]",
                            "128", "[-1,16]", "[128.0,128]"})
    EXPECT_EQ(refuse((std::string(R"({"quant_method": "fp8", )") +
                      R"("weight_block_size": )" + block + "}")
                         .c_str()),
              std::string("quantization_config.weight_block_size is ") + block +
                  "; numbers of rows and of columns, a multiple of 16 up to "
                  "65536, are expected");
  EXPECT_EQ(
      refuse(R"({"quant_method": "gptq", "checkpoint_format": "marlin"})"),
      "quantization_config.checkpoint_format is \"marlin\", which is not "
      "supported (\"gptq\" and \"gptq_v2\" are)");
  EXPECT_EQ(refuse(R"({"quant_method": "gptq"})"),
            "quantization_config.bits is missing");
  EXPECT_EQ(refuse(R"({"quant_method": "awq", "bits": 3})"),
            "quantization_config.bits is 3; 4 and 8 are supported");
  EXPECT_EQ(refuse(R"({"quant_method": "gptq", "is_marlin_format": true})"),
            "quantization_config.is_marlin_format is true; only false is "
            "supported");
  EXPECT_EQ(refuse(R"({"quant_method": "awq", "version": "gemv"})"),
            "quantization_config.version is \"gemv\"; only \"gemm\" is "
            "supported");
  auto refuseScheme = [&](const std::string &format, const std::string &group) {
    return refuse((R"({"quant_method": "compressed-tensors", "format": ")" +
                   format + R"(", "config_groups": {"g": )" + group + "}}")
                      .c_str());
  };
  EXPECT_EQ(refuseScheme("marlin-24", "{}"),
            "quantization_config.format is \"marlin-24\", which is not "
            "supported (\"pack-quantized\", \"int-quantized\", "
            "\"float-quantized\" and "
            "\"naive-quantized\" are)");
  EXPECT_EQ(refuseScheme("int-quantized", "{}"),
            "quantization_config.config_groups.g.weights is missing; an object "
            "is expected");
  EXPECT_EQ(refuseScheme("int-quantized", R"({"weights": {"type": "float"}})"),
            "quantization_config.config_groups.g.weights.type is \"float\"; "
            "only \"int\" is supported");
  EXPECT_EQ(refuseScheme("int-quantized",
                         R"({"weights": {"type": "int", "num_bits": 8},
                             "input_activations": {"dynamic": false}})"),
            "quantization_config.config_groups.g.input_activations.dynamic is "
            "false; only true is supported");
  EXPECT_EQ(refuseScheme("float-quantized", R"({"weights": {"type": "int"}})"),
            "quantization_config.config_groups.g.weights.type is \"int\"; "
            "only \"float\" is supported");
  EXPECT_EQ(refuseScheme("float-quantized", R"({"weights": {"num_bits": 4}})"),
            "quantization_config.config_groups.g.weights.num_bits is 4; "
            "only 8 is supported");
  EXPECT_EQ(
      refuseScheme("float-quantized", R"({"weights": {"symmetric": false}})"),
      "quantization_config.config_groups.g.weights.symmetric is false; "
      "only true is supported");
  EXPECT_EQ(
      refuseScheme("float-quantized", R"({"weights": {"strategy": "block"}})"),
      "quantization_config.config_groups.g.weights.block_structure is missing");
  EXPECT_EQ(
      refuseScheme("int-quantized", R"({"weights": {"strategy": "block"}})"),
      "quantization_config.config_groups.g.weights.strategy is \"block\"; "
      "\"group\", \"channel\" and \"tensor\" are supported");
}

TEST(ModelConfig, ReadsRopeScalingInAllItsSpellings) {
  EXPECT_EQ(acceptWith("rope_scaling", "{}").ropeScaling,
            RopeScaling(DefaultRope{}));
  EXPECT_EQ(
      acceptWith("rope_scaling", R"({"rope_type": "default"})").ropeScaling,
      RopeScaling(DefaultRope{}));
  for (const char *value :
       {R"({"type": "linear", "factor": 4})",
        R"({"rope_type": "linear", "factor": 4.0})",
        R"({"rope_type": "linear", "type": "linear", "factor": 4})"})
    EXPECT_EQ(acceptWith("rope_scaling", value).ropeScaling,
              RopeScaling(LinearRope{4}))
        << value;
  const char *llama3 =
      R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";
  EXPECT_EQ(acceptWith("rope_scaling", llama3).ropeScaling,
            RopeScaling(Llama3Rope{8, 1, 4, 8192}));
  EXPECT_EQ(acceptWith("rope_parameters", llama3).ropeScaling,
            RopeScaling(Llama3Rope{8, 1, 4, 8192}));

  ModelConfig config = acceptWith(
      "rope_parameters", R"({"rope_type": "default", "rope_theta": 5e5})");
  EXPECT_EQ(config.ropeTheta, 5e5);
  Json both = baseConfig();
  both["rope_theta"] = 500000;
  both["rope_parameters"] = {{"rope_theta", 500000.0}};
  EXPECT_EQ(accept(both).ropeTheta, 5e5);
}

TEST(ModelConfig, RefusesOtherRopeScaling) {
  for (const char *type : {"\"dynamic\"", "\"yarn\"", "\"longrope\"", "\"su\"",
                           "\"mrope\"", "3"}) {
    EXPECT_EQ(
        refusal("rope_scaling",
                std::string(R"({"factor": 2, "rope_type": )") + type + "}"),
        std::string("rope_scaling.rope_type is ") + type +
            ", which is not supported (\"default\", \"linear\" and "
            "\"llama3\" are)");
    EXPECT_EQ(refusal("rope_scaling",
                      std::string(R"({"factor": 2, "type": )") + type + "}"),
              std::string("rope_scaling.type is ") + type +
                  ", which is not supported (\"default\", \"linear\" and "
                  "\"llama3\" are)");
  }
  EXPECT_EQ(refusal("rope_scaling", R"({"factor": 2})"),
            "rope_scaling.rope_type is missing");
  EXPECT_EQ(refusal("rope_scaling", "[]"),
            "rope_scaling is []; an object is expected");
  EXPECT_EQ(refusal("rope_scaling", R"({"rope_type": "linear"})"),
            "rope_scaling.factor is missing");
  EXPECT_EQ(refusal("rope_scaling", R"({"type": "linear", "factor": 0})"),
            "rope_scaling.factor is 0; a number from 1 to 1e+06 is expected");
  EXPECT_EQ(
      refusal("rope_parameters",
              R"({"full_attention": {"rope_type": "default"}})"),
      "rope_parameters has the object \"full_attention\"; parameters for each "
      "kind of layer are not supported");

  Json llama3 = {{"rope_type", "llama3"},
                 {"factor", 8.0},
                 {"low_freq_factor", 1.0},
                 {"high_freq_factor", 4.0},
                 {"original_max_position_embeddings", 8192}};
  for (const char *field : {"factor", "low_freq_factor", "high_freq_factor",
                            "original_max_position_embeddings"}) {
    Json spoiled = llama3;
    spoiled.erase(field);
    EXPECT_EQ(refusal("rope_scaling", spoiled.dump()),
              std::string("rope_scaling.") + field + " is missing");
    spoiled[field] = 0;
    EXPECT_EQ(refusal("rope_scaling", spoiled.dump())
                  .find(std::string("rope_scaling.") + field + " is 0; "),
              0u);
  }
  llama3["high_freq_factor"] = 1;
  EXPECT_EQ(refusal("rope_scaling", llama3.dump()),
            "rope_scaling.high_freq_factor is 1, which is not above "
            "low_freq_factor 1");
}

TEST(ModelConfig, RefusesContradictoryRope) {
  EXPECT_EQ(
      refusal("rope_scaling", R"({"rope_type": "linear", "type": "llama3"})"),
      "rope_scaling.rope_type is \"linear\", which contradicts type "
      "\"llama3\"");
  Json config = baseConfig();
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  config["rope_parameters"] = {{"type", "linear"}, {"factor", 4}};
  EXPECT_EQ(refusal(config),
            "rope_scaling is {\"type\":\"linear\",\"factor\":2}, which "
            "contradicts rope_parameters {\"type\":\"linear\",\"factor\":4}");
  config = baseConfig();
  config["rope_theta"] = 10000;
  config["rope_parameters"] = {{"rope_theta", 500000}};
  EXPECT_EQ(refusal(config), "rope_parameters.rope_theta is 500000, which "
                             "contradicts rope_theta 10000");
}

TEST(ModelConfig, ReadsSpecialTokens) {
  EXPECT_EQ(acceptWith("eos_token_id", "[7, 5, 7]").eosTokenIds,
            (std::vector<int32_t>{7, 5}));
  EXPECT_TRUE(acceptWith("eos_token_id", "null").eosTokenIds.empty());
  EXPECT_FALSE(acceptWith("bos_token_id", "null").bosTokenId);
  for (const char *value : {"100", "-1", "2.0", "\"2\"", "[1,100]"})
    EXPECT_EQ(refusal("eos_token_id", value),
              std::string("eos_token_id is ") + value +
                  "; ids from 0 to 99 are expected");
  EXPECT_EQ(refusal("bos_token_id", "100"),
            "bos_token_id is 100; a whole number from 0 to 99 is expected");
  Json config = baseConfig();
  config["eos_token_id"] = std::vector<int>(300, 1);
  EXPECT_EQ(refusal(config), "eos_token_id is a list of 300 entries; at most "
                             "256 ids are accepted");
}

TEST(ModelConfig, AddsTheTokensThatEndGeneration) {
  ModelConfig config = accept(baseConfig());
  ASSERT_TRUE(addGenerationConfig(config, R"({"eos_token_id": [4, 9]})"));
  EXPECT_EQ(config.eosTokenIds, (std::vector<int32_t>{4, 9}));
  ASSERT_TRUE(addGenerationConfig(config, R"({"eos_token_id": 11})"));
  EXPECT_EQ(config.eosTokenIds, (std::vector<int32_t>{4, 9, 11}));
  ASSERT_TRUE(addGenerationConfig(config, R"({"temperature": 0.6})"));
  EXPECT_EQ(config.eosTokenIds.size(), 3u);
  EXPECT_EQ(messageOf(addGenerationConfig(config, R"({"eos_token_id": 100})")),
            "eos_token_id is 100; ids from 0 to 99 are expected");
  EXPECT_EQ(messageOf(addGenerationConfig(config, "{")),
            "not valid JSON at byte 2");
}

namespace {

void expectFrequencies(const ModelConfig &config,
                       const std::vector<float> &expected) {
  auto frequencies = ropeInverseFrequencies(config);
  ASSERT_EQ(frequencies.size(), expected.size());
  // Power functions may differ in the last place.
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(frequencies[i], expected[i], 4e-7f * expected[i]) << i;
}

} // namespace

// The expected values are those that PyTorch gives in float32.

TEST(RopeInverseFrequencies, Default) {
  expectFrequencies(accept(baseConfig()),
                    {1, 0.316227764, 0.100000001, 0.0316227786, 0.00999999978,
                     0.00316227786, 0.00100000005, 0.000316227786});
}

TEST(RopeInverseFrequencies, Linear) {
  Json config = baseConfig();
  config["rope_theta"] = 1e6;
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 3}};
  expectFrequencies(accept(config),
                    {0.333333343, 0.059275981, 0.0105409259, 0.00187447108,
                     0.000333333359, 5.92759789e-05, 1.05409244e-05,
                     1.8744712e-06});
}

TEST(RopeInverseFrequencies, Llama3KeepsInterpolatesAndStretches) {
  Json config = baseConfig();
  config["head_dim"] = 64;
  config["rope_theta"] = 500000;
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 32},
                            {"low_freq_factor", 1},
                            {"high_freq_factor", 4},
                            {"original_max_position_embeddings", 8192}};
  expectFrequencies(accept(config), {1,
                                     0.663601279,
                                     0.440366626,
                                     0.292227834,
                                     0.193922758,
                                     0.128687382,
                                     0.0853971019,
                                     0.0566696189,
                                     0.0376060307,
                                     0.0249554086,
                                     0.0165604409,
                                     0.0109895291,
                                     0.00729266508,
                                     0.00483942125,
                                     0.00321144611,
                                     0.00129054801,
                                     0.000429556705,
                                     9.70828623e-05,
                                     1.94616387e-05,
                                     1.29147675e-05,
                                     8.57025589e-06,
                                     5.68723226e-06,
                                     3.77405445e-06,
                                     2.50446715e-06,
                                     1.66196742e-06,
                                     1.10288363e-06,
                                     7.31874934e-07,
                                     4.85673127e-07,
                                     3.22293289e-07,
                                     2.1387423e-07,
                                     1.41927202e-07,
                                     9.41830649e-08});
}
