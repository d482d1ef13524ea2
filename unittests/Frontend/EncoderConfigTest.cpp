//===- EncoderConfigTest.cpp - Configurations of encoders -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderConfigs.h"
#include "ParsedConfig.h"

#include "sandwich/Support/ModelLimits.h"

using namespace sandwich;
using namespace sandwich::test;

namespace {

constexpr char bert[] = "BertModel";
constexpr char roberta[] = "RobertaModel";
constexpr char bertClassifier[] = "BertForSequenceClassification";

/// `config` with one field set to the JSON `value`.
Json with(Json config, const char *field, const std::string &value) {
  config[field] = Json::parse(value);
  return config;
}

Json with(const char *architecture, const char *field,
          const std::string &value) {
  return with(encoderConfig(architecture), field, value);
}

EncoderConfig acceptEncoder(const Json &config) {
  return accept(config).encoder.value_or(EncoderConfig());
}

/// What is read of `encoderConfig(bert)`.
ModelConfig smallBert() {
  ModelConfig config;
  config.architecture = Architecture::Bert;
  config.hiddenSize = 8;
  config.intermediateSize = 12;
  config.layers = 2;
  config.heads = config.kvHeads = 2;
  config.headDim = 4;
  config.vocabSize = 10;
  config.maxPositionEmbeddings = 6;
  config.qkvBias = config.outputBias = true;
  config.encoder = {.layerNormEps = 1e-12, .positionRows = 6, .tokenTypes = 2};
  config.embedding = EmbeddingConfig();
  return config;
}

} // namespace

TEST(EncoderConfig, ReadsABertWithTheDefaultsOfTransformers) {
  ModelConfig config = accept(encoderConfig(bert));
  EXPECT_EQ(config, smallBert());
  EXPECT_TRUE(config.encodes());
  EXPECT_EQ(config.embedding->pooling, Pooling::Mean);
  EXPECT_FALSE(config.embedding->normalize);
  EXPECT_FALSE(config.encoder->geluTanh);
  EXPECT_EQ(config.usualContext(), 6);
}

TEST(EncoderConfig, ReadsWhatABertSays) {
  Json json = encoderConfig(bert);
  json.update({{"model_type", "bert"},
               {"layer_norm_eps", 1e-5},
               {"type_vocab_size", 3},
               {"hidden_act", "gelu"},
               {"position_embedding_type", "absolute"},
               {"pad_token_id", 0},
               {"matryoshka_dimensions", {1, 7, 8}},
               {"is_decoder", false},
               {"add_cross_attention", false}});
  ModelConfig expected = smallBert();
  expected.encoder->layerNormEps = 1e-5;
  expected.encoder->tokenTypes = 3;
  expected.embedding->dimensions = {1, 7, 8};
  EXPECT_EQ(accept(json), expected);
}

/// RoBERTa's positions begin behind the row of padding.
TEST(EncoderConfig, ReadsARoberta) {
  const std::pair<const char *, Architecture> models[] = {
      {roberta, Architecture::Roberta},
      {"XLMRobertaModel", Architecture::XLMRoberta}};
  for (const auto &[name, architecture] : models) {
    ModelConfig expected = smallBert();
    expected.architecture = architecture;
    expected.maxPositionEmbeddings = 4;
    expected.encoder->firstPosition = 2;
    EXPECT_EQ(accept(encoderConfig(name)), expected);
    EXPECT_EQ(architectureName(architecture), name);
    expected.maxPositionEmbeddings = 1;
    expected.encoder->firstPosition = 5;
    EXPECT_EQ(accept(with(name, "pad_token_id", "4")), expected);
  }
}

TEST(EncoderConfig, ReadsClassifiers) {
  const std::pair<const char *, Architecture> models[] = {
      {bertClassifier, Architecture::BertClassifier},
      {"RobertaForSequenceClassification", Architecture::RobertaClassifier},
      {"XLMRobertaForSequenceClassification",
       Architecture::XLMRobertaClassifier}};
  for (const auto &[name, architecture] : models) {
    ModelConfig config = accept(encoderConfig(name));
    EXPECT_EQ(config.architecture, architecture);
    EXPECT_EQ(config.labels, 2);
    EXPECT_FALSE(config.embedding);
    EXPECT_TRUE(config.encoder && config.encodes());
    EXPECT_EQ(accept(with(name, "num_labels", "3")).labels, 3);
    EXPECT_EQ(accept(with(name, "id2label", R"({"0": "a"})")).labels, 1);
  }
  // The names are what transformers counts.
  EXPECT_EQ(accept(with(with(bertClassifier, "id2label", R"({"0": "a"})"),
                        "num_labels", "3"))
                .labels,
            1);
}

TEST(EncoderConfig, ReadsWhatJinaSays) {
  ModelConfig expected = smallBert();
  expected.architecture = Architecture::XLMRoberta;
  expected.maxPositionEmbeddings = 4;
  expected.ropeTheta = 20000;
  expected.encoder = {.layerNormEps = 1e-12, .tokenTypes = 1};
  expected.embedding->dimensions = {2, 4, 8};
  expected.adapters = {
      .tasks = {"query", "passage", "separation"}, .rank = 2, .scale = 0.5};
  EXPECT_EQ(accept(jinaConfig()), expected);
  EXPECT_EQ(ropeInverseFrequencies(expected).size(), 2u);

  expected.ropeTheta = 10000;
  EXPECT_EQ(accept(with(jinaConfig(), "rotary_emb_base", "null")), expected);
  expected.ropeTheta = 20000;
  expected.maxPositionEmbeddings = 1;
  EXPECT_EQ(accept(with(jinaConfig(), "max_position_embeddings", "1")),
            expected);
}

TEST(EncoderConfig, ReadsAClassifierThatRotates) {
  Json json = jinaConfig();
  json["architectures"] = {"XLMRobertaForSequenceClassification"};
  json["id2label"] = {{"0", "LABEL_0"}};
  json["lora_adaptations"] = nullptr;
  ModelConfig config = accept(json);
  EXPECT_EQ(config.labels, 1);
  EXPECT_EQ(config.ropeTheta, 20000);
  EXPECT_EQ(config.encoder->positionRows, 0);
  EXPECT_FALSE(config.embedding || config.adapters);
}

TEST(EncoderConfig, TellsTheKindsOfGeluApart) {
  EXPECT_FALSE(acceptEncoder(with(bert, "hidden_act", "\"gelu\"")).geluTanh);
  for (const char *name :
       {"\"gelu_new\"", "\"gelu_fast\"", "\"gelu_pytorch_tanh\""})
    EXPECT_TRUE(acceptEncoder(with(bert, "hidden_act", name)).geluTanh) << name;
  for (const char *value : {"\"relu\"", "\"silu\"", "\"quick_gelu\"", "1"})
    EXPECT_EQ(refusal(with(bert, "hidden_act", value)),
              std::string("hidden_act is ") + value +
                  "; \"gelu\", \"gelu_new\", \"gelu_fast\" and "
                  "\"gelu_pytorch_tanh\" are supported");
}

TEST(EncoderConfig, RefusesOtherModelTypes) {
  EXPECT_EQ(refusal(with(bert, "model_type", "\"roberta\"")),
            "model_type is \"roberta\", which contradicts architectures "
            "[\"BertModel\"]");
  EXPECT_EQ(refusal(with(roberta, "model_type", "\"xlm-roberta\"")),
            "model_type is \"xlm-roberta\", which contradicts architectures "
            "[\"RobertaModel\"]");
  EXPECT_EQ(refusal(with(jinaConfig(), "model_type", "\"roberta\"")),
            "model_type is \"roberta\", which contradicts architectures "
            "[\"XLMRobertaModel\"]");
}

TEST(EncoderConfig, RefusesMissingSizes) {
  for (const char *field :
       {"hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "vocab_size", "max_position_embeddings"})
    EXPECT_EQ(refusal(with(bert, field, "null")),
              std::string(field) + " is missing");
}

TEST(EncoderConfig, RefusesNumbersOutOfRange) {
  struct Range {
    Json config;
    const char *field;
    const char *value;
    const char *expected;
  };
  const Json embeds = encoderConfig(bert), pads = encoderConfig(roberta),
             classifies = encoderConfig(bertClassifier), rotates = jinaConfig();
  for (const auto &[config, field, value, expected] : {
           Range{embeds, "hidden_size", "0",
                 "a whole number from 1 to 1048576"},
           Range{embeds, "max_position_embeddings", "16777217",
                 "a whole number from 1 to 16777216"},
           Range{embeds, "type_vocab_size", "0",
                 "a whole number from 1 to 16777216"},
           Range{embeds, "layer_norm_eps", "0", "a number from 1e-30 to 1"},
           Range{embeds, "layer_norm_eps", "\"1e-5\"",
                 "a number from 1e-30 to 1"},
           Range{pads, "pad_token_id", "-1", "a whole number from 0 to 9"},
           Range{pads, "pad_token_id", "10", "a whole number from 0 to 9"},
           Range{classifies, "num_labels", "0",
                 "a whole number from 1 to 65536"},
           Range{classifies, "num_labels", "65537",
                 "a whole number from 1 to 65536"},
           Range{rotates, "rotary_emb_base", "0.5", "a number from 1 to 1e+12"},
           Range{rotates, "lora_rank", "0", "a whole number from 1 to 1048576"},
           Range{rotates, "lora_alpha", "-1", "a number from 0 to 1e+06"},
       })
    EXPECT_EQ(refusal(with(config, field, value)), std::string(field) + " is " +
                                                       value + "; " + expected +
                                                       " is expected");
}

TEST(EncoderConfig, RefusesHeadsThatDoNotFit) {
  EXPECT_EQ(refusal(with(bert, "hidden_size", "9")),
            "hidden_size is 9; a multiple of num_attention_heads 2, by at most "
            "4096, is expected");
  EXPECT_EQ(refusal(with(bert, "hidden_size", "8194")),
            "hidden_size is 8194; a multiple of num_attention_heads 2, by at "
            "most 4096, is expected");
  EXPECT_EQ(accept(with(bert, "hidden_size", "8192")).headDim, 4096);
  EXPECT_EQ(refusal(with(with(bert, "hidden_size", "1048576"),
                         "num_attention_heads", "1024")),
            "num_attention_heads is 1024, each of head_dim 1024: their "
            "attention would need 8519680 bytes of a thread's stack; at most "
            "1048576 are accepted");
  EXPECT_EQ(accept(with(bert, "hidden_size", "6")).headDim, 3);
  EXPECT_EQ(refusal(with(jinaConfig(), "hidden_size", "10")),
            "hidden_size 10 divided by num_attention_heads 2 is 5; rotary "
            "embedding needs an even number");
}

TEST(EncoderConfig, RefusesOtherPositions) {
  for (const char *value : {"\"rotary\"", "\"relative_key\"", "1"})
    EXPECT_EQ(refusal(with(bert, "position_embedding_type", value)),
              std::string("position_embedding_type is ") + value +
                  "; only \"absolute\" is supported");
  EXPECT_EQ(refusal(with(roberta, "position_embedding_type", "\"alibi\"")),
            "position_embedding_type is \"alibi\"; \"absolute\" and \"rotary\" "
            "are supported");
  EXPECT_EQ(refusal(with(roberta, "pad_token_id", "5")),
            "max_position_embeddings is 6; positions begin behind pad_token_id "
            "5");
  EXPECT_EQ(refusal(with(roberta, "max_position_embeddings", "2")),
            "max_position_embeddings is 2; positions begin behind pad_token_id "
            "1");
}

TEST(EncoderConfig, RefusesLabelsThatAreNone) {
  for (const char *value : {"{}", "[]", "2"})
    EXPECT_EQ(refusal(with(bertClassifier, "id2label", value)),
              std::string("id2label is ") + value +
                  "; an object with the names of 1 to 65536 labels is "
                  "expected");
  // As text: adding to an object looks for each name among all others.
  std::string text = encoderConfig(bertClassifier).dump();
  text.back() = ',';
  text += "\"id2label\":{\"0\":\"\"";
  for (int i = 1; i <= 65536; ++i)
    text += ",\"" + std::to_string(i) + "\":\"\"";
  EXPECT_EQ(messageOf(parseModelConfig(text + "}}")),
            "id2label is an object of 65537 entries; an object with the names "
            "of 1 to 65536 labels is expected");
  // They mean nothing to a model that embeds.
  EXPECT_EQ(accept(with(bert, "id2label", "{}")), smallBert());
}

TEST(EncoderConfig, RefusesAdaptersThatAreNone) {
  for (const char *value : {"[]", "{}", "\"query\""})
    EXPECT_EQ(refusal(with(jinaConfig(), "lora_adaptations", value)),
              std::string("lora_adaptations is ") + value +
                  "; a list of 1 to 1024 names is expected");
  EXPECT_EQ(
      refusal(with(jinaConfig(), "lora_adaptations",
                   Json(std::vector<std::string>(1025, "a")).dump())),
      "lora_adaptations is a list of 1025 entries; a list of 1 to 1024 names "
      "is expected");
  for (const char *value : {R"(["a","b","a"])", R"(["a",1])"})
    EXPECT_EQ(refusal(with(jinaConfig(), "lora_adaptations", value)),
              std::string("lora_adaptations is ") + value +
                  "; a list of different names is expected");
  for (const char *field : {"lora_rank", "lora_alpha"})
    EXPECT_EQ(refusal(with(jinaConfig(), field, "null")),
              std::string(field) + " is missing");
  EXPECT_EQ(accept(with(jinaConfig(), "lora_alpha", "0")).adapters->scale, 0);
}

TEST(EncoderConfig, RefusesDimensionsThatAreNone) {
  EXPECT_EQ(refusal(with(bert, "matryoshka_dimensions", "4")),
            "matryoshka_dimensions is 4; a list is expected");
  for (const char *value : {"[0]", "[-1]", "[9]", "[4,4]", "[4,2]", "[2.0]",
                            "[\"2\"]", "[18446744073709551615]"})
    EXPECT_EQ(refusal(with(bert, "matryoshka_dimensions", value)),
              std::string("matryoshka_dimensions is ") + value +
                  "; ascending numbers from 1 to hidden_size 8 are expected");
  EXPECT_TRUE(accept(with(bert, "matryoshka_dimensions", "[]"))
                  .embedding->dimensions.empty());
}

/// Fields that change what is computed, at the values that change nothing and
/// at others.
TEST(EncoderConfig, RefusesByNameWhatItWouldNotCompute) {
  struct Field {
    const char *name;
    const char *harmless;
    const char *refused;
  };
  for (const auto &[name, harmless, refused] : {
           Field{"is_decoder", "false", "true"},
           Field{"add_cross_attention", "false", "true"},
           Field{"quantization_config", "null", "{\"bits\":4}"},
           Field{"emb_pooler", "null", "\"mean\""},
           Field{"rotary_emb_fraction", "1", "0.5"},
           Field{"rotary_emb_scale_base", "null", "512"},
           Field{"rotary_emb_interleaved", "false", "true"},
           Field{"prenorm", "false", "true"},
           Field{"parallel_block", "false", "true"},
           Field{"use_rms_norm", "false", "true"},
       }) {
    accept(with(jinaConfig(), name, harmless));
    EXPECT_EQ(refusal(with(jinaConfig(), name, refused)),
              std::string(name) + " is " + refused + "; only " + harmless +
                  " is supported");
  }
}
