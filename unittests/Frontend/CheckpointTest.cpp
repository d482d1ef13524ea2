//===- CheckpointTest.cpp - A Hugging Face model folder -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Checkpoint.h"

#include "CheckpointFixture.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace sandwich;
using namespace sandwich::test;

namespace {

/// A small Llama.
class CheckpointTest : public CheckpointFixture {
protected:
  /// What a checkpoint of these facts holds, written out by hand.
  void addLlama(int64_t layers = 2) {
    add("model.embed_tokens.weight", {10, 8});
    for (int64_t i = 0; i < layers; ++i) {
      std::string layer = "model.layers." + std::to_string(i) + ".";
      add(layer + "input_layernorm.weight", {8});
      add(layer + "post_attention_layernorm.weight", {8});
      add(layer + "self_attn.q_proj.weight", {8, 8});
      add(layer + "self_attn.k_proj.weight", {4, 8});
      add(layer + "self_attn.v_proj.weight", {4, 8});
      add(layer + "self_attn.o_proj.weight", {8, 8});
      add(layer + "mlp.gate_proj.weight", {12, 8});
      add(layer + "mlp.up_proj.weight", {12, 8});
      add(layer + "mlp.down_proj.weight", {8, 12});
    }
    add("model.norm.weight", {8});
    add("lm_head.weight", {10, 8});
  }

  void SetUp() override {
    config = {{"architectures", {"LlamaForCausalLM"}},
              {"hidden_size", 8},
              {"intermediate_size", 12},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 2},
              {"num_key_value_heads", 1},
              {"vocab_size", 10},
              {"max_position_embeddings", 128},
              {"rms_norm_eps", 1e-5}};
    addLlama();
  }

  /// Two shards: the layers' tensors and the others.
  Json writeShards() {
    writeConfig();
    auto isLayer = [](const std::string &name) {
      return name.starts_with("model.layers.");
    };
    folder.write("layers.safetensors", file(isLayer));
    folder.write("others.safetensors", file(std::not_fn(isLayer)));
    Json index = {{"metadata", {{"total_size", 1}}}};
    for (const auto &[name, tensor] : tensors)
      index["weight_map"][name] =
          isLayer(name) ? "layers.safetensors" : "others.safetensors";
    writeIndex(index);
    return index;
  }
  void writeIndex(const Json &index) {
    folder.write("model.safetensors.index.json", index.dump());
  }

  std::string index() { return folder.file("model.safetensors.index.json"); }
};

} // namespace

TEST_F(CheckpointTest, OpensASingleFile) {
  write();
  Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.config().hiddenSize, 8);
  EXPECT_EQ(checkpoint.path(), folder.path());
  EXPECT_FALSE(checkpoint.tokenizer());
  EXPECT_FALSE(checkpoint.tokenizerConfig());
  EXPECT_TRUE(unusedTensors().empty());

  const TensorView *down =
      checkpoint.find("model.layers.1.mlp.down_proj.weight");
  ASSERT_NE(down, nullptr);
  std::vector<float> row(rowLength(*down));
  readRow(*down, 7, row);
  EXPECT_EQ(row[11], 95);
  EXPECT_EQ(checkpoint.find("model.layers.2.mlp.down_proj.weight"), nullptr);
}

TEST_F(CheckpointTest, NamesExactlyTheTensorsOfALlama) {
  expectToImplyExactlyTheTensors();
}

TEST_F(CheckpointTest, OpensShards) {
  writeShards();
  Checkpoint checkpoint = open();
  EXPECT_TRUE(unusedTensors().empty());
  const TensorView *embedding = checkpoint.find(embeddingTensorName);
  ASSERT_NE(embedding, nullptr);
  Checkpoint moved = std::move(checkpoint);
  EXPECT_EQ(moved.find("model.embed_tokens.weight"), embedding);
  std::vector<float> row(8);
  readRow(*embedding, 9, row);
  EXPECT_EQ(row[0], 72);
}

TEST_F(CheckpointTest, ReadsHalfPrecision) {
  tensors["model.norm.weight"] = {
      {8}, "BF16", bytesOf(std::vector<uint16_t>(8, 0x3fc0))};
  tensors["model.embed_tokens.weight"] = {
      {10, 8}, "F16", bytesOf(std::vector<uint16_t>(80, 0x3e00))};
  write();
  EXPECT_TRUE(unusedTensors().empty());
  Checkpoint checkpoint = open();
  std::vector<float> row(8);
  readRow(*checkpoint.find("model.norm.weight"), 0, row);
  EXPECT_EQ(row, std::vector<float>(8, 1.5f));
  readRow(*checkpoint.find("model.embed_tokens.weight"), 3, row);
  EXPECT_EQ(row, std::vector<float>(8, 1.5f));
}

TEST_F(CheckpointTest, FindsTheTokenizer) {
  folder.write("tokenizer.json", "{}");
  folder.write("tokenizer_config.json", "{}");
  write();
  Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.tokenizer(),
            CompanionText{folder.file("tokenizer.json")});
  EXPECT_EQ(checkpoint.tokenizerConfig(),
            CompanionText{folder.file("tokenizer_config.json")});
}

TEST_F(CheckpointTest, ReadsTheGenerationConfig) {
  write();
  folder.write("generation_config.json", R"({"eos_token_id": [2, 7]})");
  EXPECT_EQ(open().config().eosTokenIds, (std::vector<int32_t>{2, 7}));
  std::string path =
      folder.write("generation_config.json", R"({"eos_token_id": 10})");
  EXPECT_EQ(openRefusal(), path + ": eos_token_id is 10; ids from 0 to 9 are "
                                  "expected");
}

TEST_F(CheckpointTest, TiesTheHead) {
  config["tie_word_embeddings"] = true;
  tensors.erase("lm_head.weight");
  write();
  EXPECT_TRUE(unusedTensors().empty());
}

TEST_F(CheckpointTest, TakesATiedHeadThatHoldsTheEmbeddings) {
  config["tie_word_embeddings"] = true;
  write();
  EXPECT_TRUE(unusedTensors().empty());
  // The same numbers in another type: these are whole and below 256.
  std::vector<uint16_t> shortened(80);
  std::vector<float> numbers(80);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  roundToBFloat16(numbers, shortened);
  tensors["lm_head.weight"] = {{10, 8}, "BF16", bytesOf(shortened)};
  write();
  EXPECT_TRUE(unusedTensors().empty());
}

TEST_F(CheckpointTest, RefusesATiedHeadOfItsOwn) {
  config["tie_word_embeddings"] = true;
  std::vector<float> numbers(80);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  numbers[79] = 0.5;
  tensors["lm_head.weight"].bytes = bytesOf(numbers);
  EXPECT_EQ(tensorRefusal(),
            weights() + ": tensor \"lm_head.weight\": element [9, 7] is 0.5, "
                        "but 79 in \"model.embed_tokens.weight\", and "
                        "tie_word_embeddings of config.json says that they "
                        "are one");
  std::filesystem::remove(weights());
  writeShards();
  EXPECT_EQ(
      messageOf(open().checkTensors()).find(folder.file("others.safetensors")),
      0u);
  std::filesystem::remove(index());
  add("lm_head.weight", {9, 8});
  EXPECT_EQ(tensorRefusal(),
            weights() + ": tensor \"lm_head.weight\": shape is [9, 8], but "
                        "config.json implies [10, 8]");
}

/// More elements than are compared at a time.
TEST_F(CheckpointTest, ComparesAllOfATiedHead) {
  config["tie_word_embeddings"] = true;
  config["vocab_size"] = 5000;
  add("model.embed_tokens.weight", {5000, 8});
  add("lm_head.weight", {5000, 8});
  write();
  EXPECT_TRUE(unusedTensors().empty());
  std::string &bytes = tensors["lm_head.weight"].bytes;
  bytes[4 * (4999 * 8 + 3)] ^= 1;
  EXPECT_NE(tensorRefusal().find("element [4999, 3] is "), std::string::npos);
}

TEST_F(CheckpointTest, WantsTheBiasesOfQwen2) {
  config["architectures"] = {"Qwen2ForCausalLM"};
  EXPECT_EQ(tensorRefusal(),
            folder.path() +
                ": tensor \"model.layers.0.self_attn.q_proj.bias\" is missing; "
                "config.json implies one of shape [8]");
  for (const char *layer : {"model.layers.0.", "model.layers.1."}) {
    add(std::string(layer) + "self_attn.q_proj.bias", {8});
    add(std::string(layer) + "self_attn.k_proj.bias", {4});
    add(std::string(layer) + "self_attn.v_proj.bias", {4});
  }
  write();
  EXPECT_TRUE(unusedTensors().empty());
}

TEST_F(CheckpointTest, WantsTheBiasesOfABiasedLlama) {
  config["attention_bias"] = true;
  for (const char *layer : {"model.layers.0.", "model.layers.1."}) {
    add(std::string(layer) + "self_attn.q_proj.bias", {8});
    add(std::string(layer) + "self_attn.k_proj.bias", {4});
    add(std::string(layer) + "self_attn.v_proj.bias", {4});
  }
  EXPECT_EQ(tensorRefusal(),
            folder.path() +
                ": tensor \"model.layers.0.self_attn.o_proj.bias\" is missing; "
                "config.json implies one of shape [8]");
  add("model.layers.0.self_attn.o_proj.bias", {8});
  add("model.layers.1.self_attn.o_proj.bias", {8});
  write();
  EXPECT_TRUE(unusedTensors().empty());
}

TEST_F(CheckpointTest, WantsTheHeadNormsOfQwen3) {
  config["architectures"] = {"Qwen3ForCausalLM"};
  config["head_dim"] = 6;
  for (const char *layer : {"model.layers.0.", "model.layers.1."}) {
    std::string attention = std::string(layer) + "self_attn.";
    add(attention + "q_proj.weight", {12, 8});
    add(attention + "k_proj.weight", {6, 8});
    add(attention + "v_proj.weight", {6, 8});
    add(attention + "o_proj.weight", {8, 12});
    add(attention + "q_norm.weight", {6});
  }
  EXPECT_EQ(tensorRefusal(),
            folder.path() +
                ": tensor \"model.layers.0.self_attn.k_norm.weight\" is "
                "missing; config.json implies one of shape [6]");
  add("model.layers.0.self_attn.k_norm.weight", {6});
  add("model.layers.1.self_attn.k_norm.weight", {6});
  write();
  EXPECT_TRUE(unusedTensors().empty());
}

TEST_F(CheckpointTest, RefusesEachMissingTensor) {
  auto complete = tensors;
  for (const auto &[name, tensor] : complete) {
    tensors = complete;
    tensors.erase(name);
    EXPECT_EQ(tensorRefusal().find(folder.path() + ": tensor \"" + name +
                                   "\" is missing; "),
              0u);
  }
}

TEST_F(CheckpointTest, RefusesEachMisshapenTensor) {
  auto complete = tensors;
  for (const auto &[name, tensor] : complete) {
    tensors = complete;
    std::vector<int64_t> taller = tensor.shape;
    ++taller[0];
    add(name, taller);
    EXPECT_EQ(tensorRefusal().find(weights() + ": tensor \"" + name +
                                   "\": shape is "),
              0u);
  }
  tensors = complete;
  // As many elements in another shape are no better.
  add("model.layers.1.mlp.up_proj.weight", {8, 12});
  EXPECT_EQ(tensorRefusal(),
            weights() + ": tensor \"model.layers.1.mlp.up_proj.weight\": shape "
                        "is [8, 12], but config.json implies [12, 8]");
  add("model.layers.1.mlp.up_proj.weight", {96});
  EXPECT_EQ(tensorRefusal(),
            weights() + ": tensor \"model.layers.1.mlp.up_proj.weight\": shape "
                        "is [96], but config.json implies [12, 8]");
}

TEST_F(CheckpointTest, RefusesOtherElementTypes) {
  tensors["lm_head.weight"] = {{10, 8}, "F64", std::string(640, '\0')};
  EXPECT_EQ(tensorRefusal(),
            weights() + ": tensor \"lm_head.weight\": dtype is F64, which is "
                        "not supported (F32, F16 and BF16 are)");
  // Where nothing reads them they do no harm.
  add("lm_head.weight", {10, 8});
  tensors["x.weight"] = {{1}, "F64", std::string(8, '\0')};
  write();
  EXPECT_EQ(unusedTensors(), (std::vector<std::string>{"x.weight"}));
}

TEST_F(CheckpointTest, RefusesNormScalesThatAreNotFinite) {
  std::vector<float> scale(8, 1);
  scale[5] = std::numeric_limits<float>::quiet_NaN();
  tensors["model.layers.1.input_layernorm.weight"].bytes = bytesOf(scale);
  EXPECT_EQ(tensorRefusal(),
            weights() + ": tensor \"model.layers.1.input_layernorm.weight\": "
                        "element [5] is NaN; weights must be finite");
  add("model.layers.1.input_layernorm.weight", {8});
  tensors["model.norm.weight"] = {
      {8}, "F16", bytesOf(std::vector<uint16_t>(8, 0xfc00))};
  EXPECT_EQ(tensorRefusal(),
            weights() + ": tensor \"model.norm.weight\": element [0] is "
                        "infinite; weights must be finite");
}

TEST_F(CheckpointTest, ListsUnusedTensors) {
  add("z.weight", {1});
  add("model.layers.2.mlp.up_proj.weight", {1});
  add("model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  std::vector<std::string> expected = {"model.layers.2.mlp.up_proj.weight",
                                       "z.weight"};
  write();
  EXPECT_EQ(unusedTensors(), expected);
  std::filesystem::remove(weights());
  writeShards();
  EXPECT_EQ(unusedTensors(), expected);
}

TEST_F(CheckpointTest, RefusesFoldersThatAreNone) {
  EXPECT_EQ(messageOf(Checkpoint::open(folder.file("absent"))),
            folder.file("absent") + ": No such file or directory");
  std::string path = folder.write("file", "");
  EXPECT_EQ(messageOf(Checkpoint::open(path)),
            path + ": is neither a folder nor a GGUF file");
}

TEST_F(CheckpointTest, RefusesMissingEmptyAndTruncatedConfigs) {
  std::string path = folder.file("config.json");
  EXPECT_EQ(openRefusal(), path + ": cannot open: No such file or directory");
  folder.write("config.json", "");
  EXPECT_EQ(openRefusal(), path + ": not valid JSON at byte 1");
  folder.write("config.json", config.dump().substr(0, 40));
  EXPECT_EQ(openRefusal(), path + ": not valid JSON at byte 41");
  folder.write("config.json", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(openRefusal(), path + ": is 1048577 bytes long; at most 1048576 "
                                  "are accepted");
  config["hidden_size"] = 0;
  writeConfig();
  EXPECT_EQ(openRefusal(), path + ": hidden_size is 0; a whole number from 1 "
                                  "to 1048576 is expected");
}

TEST_F(CheckpointTest, RefusesMissingWeights) {
  writeConfig();
  EXPECT_EQ(openRefusal(),
            folder.path() + ": holds no weights: neither model.safetensors nor "
                            "model.safetensors.index.json is there");
  folder.write("model.safetensors", "");
  EXPECT_EQ(openRefusal(), weights() + ": is 0 bytes long; a safetensors file "
                                       "begins with 8 bytes of header length");
  write();
  std::filesystem::resize_file(weights(),
                               std::filesystem::file_size(weights()) - 1);
  EXPECT_EQ(openRefusal().find(weights() + ": tensor "), 0u);
}

TEST_F(CheckpointTest, RefusesBadIndexes) {
  writeConfig();
  folder.write("model.safetensors.index.json", "{");
  EXPECT_EQ(openRefusal(), index() + ": not valid JSON at byte 2");
  folder.write("model.safetensors.index.json", "[]");
  EXPECT_EQ(openRefusal(), index() + ": is []; an object is expected");
  folder.write("model.safetensors.index.json", R"({"metadata": {}})");
  EXPECT_EQ(openRefusal(), index() + ": weight_map is missing");
  for (const char *map : {"{}", "[]", "null"}) {
    folder.write("model.safetensors.index.json",
                 std::string(R"({"weight_map": )") + map + "}");
    EXPECT_EQ(openRefusal(),
              index() + ": weight_map is " + map +
                  "; an object that names each tensor's file is expected");
  }
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"a": "x", "a": "y"}})");
  EXPECT_EQ(openRefusal(), index() + ": duplicate key \"a\"");
}

TEST_F(CheckpointTest, RefusesIndexesThatLeaveTheFolder) {
  Json sound = writeShards();
  TemporaryFolder elsewhere;
  std::filesystem::copy(folder.file("others.safetensors"),
                        elsewhere.file("others.safetensors"));
  for (const Json &name :
       {Json("../" + elsewhere.path() + "/others.safetensors"),
        Json(elsewhere.file("others.safetensors")),
        Json("./others.safetensors"), Json(".."), Json("."), Json(""),
        Json(std::string("others.safetensors\0x", 20)), Json(7),
        Json(nullptr)}) {
    Json spoiled = sound;
    spoiled["weight_map"]["lm_head.weight"] = name;
    writeIndex(spoiled);
    EXPECT_EQ(openRefusal(),
              index() + ": weight_map: \"lm_head.weight\" is in " +
                  name.dump() +
                  "; the name of a file in the same folder is expected");
  }
}

TEST_F(CheckpointTest, RefusesIndexesOfAbsentFilesAndTensors) {
  Json sound = writeShards();
  Json spoiled = sound;
  spoiled["weight_map"]["lm_head.weight"] = "absent.safetensors";
  writeIndex(spoiled);
  EXPECT_EQ(openRefusal(), index() + ": weight_map: \"lm_head.weight\": " +
                               folder.file("absent.safetensors") +
                               ": cannot open: No such file or directory");
  spoiled = sound;
  spoiled["weight_map"]["lm_head.weight"] = "layers.safetensors";
  writeIndex(spoiled);
  EXPECT_EQ(openRefusal(), index() + ": weight_map: \"lm_head.weight\" is not "
                                     "in \"layers.safetensors\"");
  spoiled = sound;
  spoiled["weight_map"].erase("lm_head.weight");
  writeIndex(spoiled);
  EXPECT_EQ(messageOf(open().checkTensors()),
            folder.path() + ": tensor \"lm_head.weight\" is missing; "
                            "config.json implies one of shape [10, 8]");
  writeIndex(sound);
  std::filesystem::resize_file(folder.file("layers.safetensors"), 100);
  EXPECT_NE(openRefusal().find(folder.file("layers.safetensors") +
                               ": the header length is "),
            std::string::npos);
}
