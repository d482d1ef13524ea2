//===- EncoderCheckpointTest.cpp - Folders of encoders --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointFixture.h"
#include "EncoderConfigs.h"

#include <algorithm>
#include <functional>

using namespace sandwich;
using namespace sandwich::test;

namespace {

using Names = std::vector<std::string>;

std::string replaced(std::string text, std::string_view what,
                     std::string_view with) {
  if (size_t place = text.find(what); place != text.npos)
    text.replace(place, what.size(), with);
  return text;
}

/// Checkpoints of the facts of `encoderConfig`, their tensors written out by
/// hand.
class EncoderCheckpointTest : public CheckpointFixture {
protected:
  void addLinear(const std::string &name, int64_t outputs, int64_t inputs) {
    add(name + ".weight", {outputs, inputs});
    add(name + ".bias", {outputs});
  }
  void addNorm(const std::string &name) {
    add(name + ".weight", {8});
    add(name + ".bias", {8});
  }

  /// A bare BERT or RoBERTa.
  void addBert(const std::string &architecture) {
    config = encoderConfig(architecture);
    add("embeddings.word_embeddings.weight", {10, 8});
    add("embeddings.position_embeddings.weight", {6, 8});
    add("embeddings.token_type_embeddings.weight", {2, 8});
    addNorm("embeddings.LayerNorm");
    for (const std::string layer : {"encoder.layer.0.", "encoder.layer.1."}) {
      for (const char *name : {"query", "key", "value"})
        addLinear(layer + "attention.self." + name, 8, 8);
      addLinear(layer + "attention.output.dense", 8, 8);
      addNorm(layer + "attention.output.LayerNorm");
      addLinear(layer + "intermediate.dense", 12, 8);
      addLinear(layer + "output.dense", 8, 12);
      addNorm(layer + "output.LayerNorm");
    }
  }

  /// A matrix with the factors of three tasks, whose rank is two. Those of a
  /// table are the other way around.
  void addAdapted(const std::string &name, int64_t rows, int64_t columns) {
    const bool isTable = name.ends_with("_embeddings");
    const std::string prefix = name + ".parametrizations.weight.";
    add(prefix + "original", {rows, columns});
    add(prefix + (isTable ? "0.lora_A" : "0.lora_B"), {3, rows, 2});
    add(prefix + (isTable ? "0.lora_B" : "0.lora_A"), {3, 2, columns});
  }
  void addAdaptedLinear(const std::string &name, int64_t outputs,
                        int64_t inputs) {
    addAdapted(name, outputs, inputs);
    add(name + ".bias", {outputs});
  }

  /// jina-embeddings-v3, named as it is published.
  void addJina() {
    config = jinaConfig();
    addAdapted("roberta.embeddings.word_embeddings", 10, 8);
    addAdapted("roberta.embeddings.token_type_embeddings", 1, 8);
    addNorm("roberta.emb_ln");
    for (const std::string layer :
         {"roberta.encoder.layers.0.", "roberta.encoder.layers.1."}) {
      addAdaptedLinear(layer + "mixer.Wqkv", 24, 8);
      addAdaptedLinear(layer + "mixer.out_proj", 8, 8);
      addNorm(layer + "norm1");
      addAdaptedLinear(layer + "mlp.fc1", 12, 8);
      addAdaptedLinear(layer + "mlp.fc2", 8, 12);
      addNorm(layer + "norm2");
    }
    addAdaptedLinear("roberta.pooler.dense", 8, 8);
  }

  void
  renameAll(const std::function<std::string(const std::string &)> &rename) {
    std::map<std::string, Tensor> renamed;
    for (auto &[name, tensor] : tensors)
      renamed.emplace(rename(name), std::move(tensor));
    tensors = std::move(renamed);
  }

  /// What makes a folder one of sentence-transformers.
  void writePooling(const std::string &mode) {
    std::filesystem::create_directory(folder.file("1_Pooling"));
    folder.write("modules.json",
                 R"([{"type": "Transformer", "path": ""},
                     {"type": "Pooling", "path": "1_Pooling"}])");
    folder.write("1_Pooling/config.json",
                 Json({{"pooling_mode_" + mode, true}}).dump());
  }

  /// All tensors are there, and of others only those that are named.
  void expectComplete(const Names &unused = {}) {
    write();
    EXPECT_EQ(unusedTensors(), unused);
  }

  std::vector<float> stored(const std::string &name) const {
    const std::string &bytes = tensors.at(name).bytes;
    std::vector<float> elements(bytes.size() / sizeof(float));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  }

  static std::vector<float> read(const Checkpoint &checkpoint,
                                 std::string_view name) {
    const TensorView *tensor = checkpoint.find(name);
    if (!tensor) {
      ADD_FAILURE() << name << " is missing";
      return {};
    }
    std::vector<float> elements(count(tensor->shape));
    readElements(*tensor, 0, elements);
    return elements;
  }

  /// What the adapter of task number `task` makes of the matrix `name`.
  std::vector<float> adapted(const std::string &name, size_t task,
                             const char *left, const char *right) const {
    const std::string prefix = name + ".parametrizations.weight.";
    std::vector<float> sum = stored(prefix + "original");
    const std::vector<float> lefts = stored(prefix + left),
                             rights = stored(prefix + right);
    const size_t columns = rights.size() / 6, rows = lefts.size() / 6;
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        for (size_t k = 0; k < 2; ++k)
          sum[row * columns + column] +=
              0.5f * lefts[(task * rows + row) * 2 + k] *
              rights[(task * 2 + k) * columns + column];
    return sum;
  }

  static std::vector<float> third(const std::vector<float> &whole, size_t i) {
    const auto size = static_cast<ptrdiff_t>(whole.size() / 3);
    const auto begin = whole.begin() + static_cast<ptrdiff_t>(i) * size;
    return {begin, begin + size};
  }

  /// What is wrong with the tensor `name` of the file.
  std::string refusalOf(const std::string &name,
                        const std::optional<std::string> &task = {}) {
    write();
    const std::string message = openRefusal(task);
    const std::string begin = weights() + ": tensor \"" + name + "\": ";
    EXPECT_TRUE(message.starts_with(begin)) << message;
    return message.substr(std::min(message.size(), begin.size()));
  }
};

constexpr const char *selfAttention[] = {"query", "key", "value"};
const std::string wordMatrix =
    "roberta.embeddings.word_embeddings.parametrizations.weight.";
const std::string denseMatrix =
    "roberta.encoder.layers.1.mlp.fc2.parametrizations.weight.";

} // namespace

TEST_F(EncoderCheckpointTest, NamesExactlyTheTensorsOfABert) {
  addBert("BertModel");
  expectToImplyExactlyTheTensors();
}

TEST_F(EncoderCheckpointTest, RefusesEachMissingTensor) {
  addBert("BertModel");
  auto complete = tensors;
  for (const auto &[name, tensor] : complete) {
    tensors = complete;
    tensors.erase(name);
    std::string shape = Json(tensor.shape).dump();
    EXPECT_EQ(tensorRefusal(),
              folder.path() + ": tensor \"" + name +
                  "\" is missing; config.json implies one of shape " +
                  replaced(shape, ",", ", "));
  }
}

TEST_F(EncoderCheckpointTest, RefusesMisshapenTensors) {
  addBert("BertModel");
  add("embeddings.position_embeddings.weight", {5, 8});
  EXPECT_EQ(tensorRefusal(),
            weights() +
                ": tensor \"embeddings.position_embeddings.weight\": shape is "
                "[5, 8], but config.json implies [6, 8]");
}

TEST_F(EncoderCheckpointTest, TakesTheNamesOfLargerModels) {
  const std::pair<const char *, const char *> models[] = {
      {"BertModel", "bert."},
      {"RobertaModel", "roberta."},
      {"XLMRobertaModel", "roberta."}};
  for (const auto &[architecture, prefix] : models) {
    tensors.clear();
    addBert(architecture);
    expectComplete();
    renameAll([&](const std::string &name) { return prefix + name; });
    expectComplete();
    EXPECT_EQ(open().find("bert.embeddings.LayerNorm.weight"), nullptr);
  }
}

TEST_F(EncoderCheckpointTest, TakesTheNamesThatNormsHadOnce) {
  addBert("BertModel");
  const std::vector<float> scale(8, 1.5), shift(8, 2.5);
  tensors["encoder.layer.1.output.LayerNorm.weight"].bytes = bytesOf(scale);
  tensors["encoder.layer.1.output.LayerNorm.bias"].bytes = bytesOf(shift);
  renameAll([](const std::string &name) {
    return "bert." + replaced(replaced(name, "Norm.weight", "Norm.gamma"),
                              "Norm.bias", "Norm.beta");
  });
  expectComplete();
  Checkpoint checkpoint = open();
  EXPECT_EQ(read(checkpoint, "encoder.layer.1.output.LayerNorm.weight"), scale);
  EXPECT_EQ(read(checkpoint, "encoder.layer.1.output.LayerNorm.bias"), shift);
}

TEST_F(EncoderCheckpointTest, ListsUnusedTensors) {
  addBert("BertModel");
  // What training had, and what says nothing new.
  addLinear("pooler.dense", 8, 8);
  addLinear("cls.predictions.transform.dense", 8, 8);
  addLinear("lm_head.dense", 8, 8);
  tensors["embeddings.position_ids"] = {
      {1, 6}, "I64", std::string(6 * sizeof(int64_t), '\0')};
  expectComplete();
  // A part of no norm is a name like any other.
  for (const char *name : {"bert.other.gamma", "encoder.layer.2.output.dense",
                           "encoder.layers.0.mixer.Wq.weight",
                           "encoder.layers.0", "classifier.weight"})
    add(name, {1});
  expectComplete({"classifier.weight", "encoder.layer.2.output.dense",
                  "encoder.layers.0", "encoder.layers.0.mixer.Wq.weight",
                  "other.gamma"});
}

TEST_F(EncoderCheckpointTest, WantsTheHeadsOfClassifiers) {
  struct Head {
    const char *architecture;
    const char *dense;
    const char *scores;
  };
  for (const auto &[architecture, dense, scores] :
       {Head{"BertForSequenceClassification", "bert.pooler.dense",
             "classifier"},
        Head{"RobertaForSequenceClassification", "classifier.dense",
             "classifier.out_proj"},
        Head{"XLMRobertaForSequenceClassification", "classifier.dense",
             "classifier.out_proj"}}) {
    tensors.clear();
    addBert(architecture);
    config["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
    EXPECT_EQ(tensorRefusal(),
              folder.path() + ": tensor \"" + replaced(dense, "bert.", "") +
                  ".weight\" is missing; config.json implies one of shape "
                  "[8, 8]");
    addLinear(dense, 8, 8);
    addLinear(scores, 2, 8);
    EXPECT_EQ(tensorRefusal(),
              weights() + ": tensor \"" + scores +
                  ".weight\": shape is [2, 8], but config.json implies [3, 8]");
    addLinear(scores, 3, 8);
    expectComplete();
  }
}

TEST_F(EncoderCheckpointTest, RefusesTwoOfOneName) {
  addBert("BertModel");
  add("bert.embeddings.word_embeddings.weight", {10, 8});
  EXPECT_EQ(refusalOf("embeddings.word_embeddings.weight"),
            "there is another one for \"embeddings.word_embeddings.weight\"");
  tensors.erase("bert.embeddings.word_embeddings.weight");
  add("embeddings.LayerNorm.gamma", {8});
  EXPECT_EQ(refusalOf("embeddings.LayerNorm.weight"),
            "there is another one for \"embeddings.LayerNorm.weight\"");
  tensors.erase("embeddings.LayerNorm.gamma");
  add("encoder.layers.1.mixer.Wqkv.bias", {24});
  EXPECT_EQ(refusalOf("encoder.layers.1.mixer.Wqkv.bias"),
            "there is another one for "
            "\"encoder.layer.1.attention.self.query.bias\"");
}

TEST_F(EncoderCheckpointTest, TakesAnAdaptedMatrixAsItIs) {
  addJina();
  expectComplete();
  Checkpoint checkpoint = open();
  EXPECT_EQ(read(checkpoint, wordTableName), stored(wordMatrix + "original"));
  EXPECT_EQ(read(checkpoint, "encoder.layer.1.output.dense.weight"),
            stored(denseMatrix + "original"));
  EXPECT_EQ(checkpoint.find(positionTableName), nullptr);
  EXPECT_EQ(checkpoint.pathOf(wordTableName), weights());
}

TEST_F(EncoderCheckpointTest, CutsQueriesKeysAndValuesApart) {
  addJina();
  write();
  Checkpoint opened = open();
  Checkpoint checkpoint = std::move(opened);
  const std::string whole = "roberta.encoder.layers.1.mixer.Wqkv.";
  for (size_t i = 0; i < 3; ++i) {
    const std::string name =
        std::string("encoder.layer.1.attention.self.") + selfAttention[i];
    EXPECT_EQ(read(checkpoint, name + ".weight"),
              third(stored(whole + "parametrizations.weight.original"), i));
    EXPECT_EQ(read(checkpoint, name + ".bias"),
              third(stored(whole + "bias"), i));
    EXPECT_EQ(checkpoint.find(name + ".weight")->shape,
              (std::vector<int64_t>{8, 8}));
  }
}

TEST_F(EncoderCheckpointTest, AddsTheAdapterOfATask) {
  addJina();
  write();
  const char *tasks[] = {"query", "passage", "separation"};
  for (size_t task = 0; task < 3; ++task) {
    Checkpoint checkpoint = open(tasks[task]);
    const auto unused = checkpoint.checkTensors();
    ASSERT_TRUE(unused);
    EXPECT_EQ(*unused, Names());
    EXPECT_EQ(read(checkpoint, "encoder.layer.1.output.dense.weight"),
              adapted("roberta.encoder.layers.1.mlp.fc2", task, "0.lora_B",
                      "0.lora_A"));
    EXPECT_EQ(read(checkpoint, wordTableName),
              adapted("roberta.embeddings.word_embeddings", task, "0.lora_A",
                      "0.lora_B"));
    EXPECT_EQ(read(checkpoint, typeTableName),
              adapted("roberta.embeddings.token_type_embeddings", task,
                      "0.lora_A", "0.lora_B"));
    const std::vector<float> whole = adapted("roberta.encoder.layers.0.mixer"
                                             ".Wqkv",
                                             task, "0.lora_B", "0.lora_A");
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(
          read(checkpoint, std::string("encoder.layer.0.attention.self.") +
                               selfAttention[i] + ".weight"),
          third(whole, i));
    // Biases have none.
    EXPECT_EQ(read(checkpoint, "encoder.layer.1.output.dense.bias"),
              stored("roberta.encoder.layers.1.mlp.fc2.bias"));
  }
}

TEST_F(EncoderCheckpointTest, AddsToWhateverPartIsRead) {
  addJina();
  write();
  Checkpoint checkpoint = open("passage");
  const TensorView &tensor =
      *checkpoint.find("encoder.layer.1.output.dense.weight");
  const std::vector<float> whole =
      read(checkpoint, "encoder.layer.1.output.dense.weight");
  for (size_t first = 0; first <= whole.size(); first += 5)
    for (size_t size = 0; size <= whole.size() - first; size += 7) {
      std::vector<float> part(size);
      readElements(tensor, static_cast<int64_t>(first), part);
      EXPECT_EQ(part, std::vector<float>(
                          whole.begin() + static_cast<ptrdiff_t>(first),
                          whole.begin() + static_cast<ptrdiff_t>(first + size)))
          << first << ", " << size;
    }
  std::vector<float> row(12);
  readRow(tensor, 7, row);
  EXPECT_EQ(row, std::vector<float>(whole.end() - 12, whole.end()));
}

TEST_F(EncoderCheckpointTest, AddsFactorsOfOtherTypes) {
  addJina();
  // Halves and whole numbers that bfloat16 has.
  tensors[denseMatrix + "original"] = {
      {8, 12}, "BF16", bytesOf(std::vector<uint16_t>(96, 0x3f00))};
  tensors[denseMatrix + "0.lora_B"] = {
      {3, 8, 2}, "F16", bytesOf(std::vector<uint16_t>(48, 0x4000))};
  write();
  // Its columns of the second task: 24 + column and 36 + column.
  const std::vector<float> matrix =
      read(open("passage"), "encoder.layer.1.output.dense.weight");
  EXPECT_EQ(matrix[0], 0.5f + 24 + 36);
  EXPECT_EQ(matrix[95], 0.5f + 24 + 36 + 2 * 11);
}

TEST_F(EncoderCheckpointTest, RefusesTasksThatItHasNoAdapterFor) {
  addJina();
  write();
  EXPECT_EQ(openRefusal("classification\n"),
            folder.path() +
                ": has no adapter for the task \"classification\\n\"; it has "
                "those for [\"query\",\"passage\",\"separation\"]");
  addBert("BertModel");
  write();
  EXPECT_EQ(openRefusal("query"),
            folder.path() +
                ": has no adapter for the task \"query\"; it has no adapters");
}

TEST_F(EncoderCheckpointTest, RefusesAdaptersWithoutAFactor) {
  addJina();
  auto complete = tensors;
  for (const char *factor : {"0.lora_A", "0.lora_B"})
    for (const std::string &matrix : {wordMatrix, denseMatrix}) {
      tensors = complete;
      tensors.erase(matrix + factor);
      write();
      EXPECT_EQ(openRefusal("query"), folder.path() + ": tensor \"" + matrix +
                                          factor + "\" is missing");
      // Nobody asks for it.
      expectComplete();
    }
}

TEST_F(EncoderCheckpointTest, RefusesMisshapenAdapters) {
  addJina();
  auto complete = tensors;
  struct Shape {
    std::string name;
    std::vector<int64_t> shape;
    const char *expected;
  };
  for (const auto &[name, shape, expected] :
       {Shape{wordMatrix + "0.lora_A", {3, 2, 10}, "[3, 10, 2]"},
        Shape{wordMatrix + "0.lora_B", {3, 8, 2}, "[3, 2, 8]"},
        Shape{denseMatrix + "0.lora_A", {2, 2, 12}, "[3, 2, 12]"},
        Shape{denseMatrix + "0.lora_B", {24, 2}, "[3, 8, 2]"}}) {
    tensors = complete;
    add(name, shape);
    std::string actual;
    for (int64_t dimension : shape)
      actual += (actual.empty() ? "[" : ", ") + std::to_string(dimension);
    EXPECT_EQ(refusalOf(name, "query"),
              "shape is " + actual + "], but " + expected + " is expected");
  }
  tensors = complete;
  tensors[wordMatrix + "0.lora_B"] = {{3, 2, 8}, "I8", std::string(48, '\0')};
  EXPECT_EQ(refusalOf(wordMatrix + "0.lora_B", "query"),
            "dtype is I8, which is not supported (F32, F16 and BF16 are)");
  tensors = complete;
  add(denseMatrix + "original", {96});
  EXPECT_EQ(refusalOf(denseMatrix + "original", "query"),
            "shape is [96]; two dimensions are expected");
}

TEST_F(EncoderCheckpointTest, RefusesAnAdaptedMatrixBesideAPlainOne) {
  addJina();
  add("roberta.encoder.layers.1.mlp.fc2.weight", {8, 12});
  for (const std::optional<std::string> &task :
       {std::optional<std::string>(), std::optional<std::string>("query")})
    EXPECT_EQ(refusalOf("roberta.encoder.layers.1.mlp.fc2.weight", task),
              "there is another one for "
              "\"roberta.encoder.layers.1.mlp.fc2.weight\"");
}

TEST_F(EncoderCheckpointTest, RefusesWhatHasNoThreeEqualParts) {
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{}, {0, 8}, {25}}) {
    addJina();
    add("roberta.encoder.layers.0.mixer.Wqkv.bias", shape);
    std::string described = Json(shape).dump();
    EXPECT_EQ(refusalOf("roberta.encoder.layers.0.mixer.Wqkv.bias"),
              "shape is " + replaced(described, ",", ", ") +
                  "; 3 equal parts are expected");
  }
  add("roberta.encoder.layers.0.mixer.Wqkv.bias", {27});
  EXPECT_EQ(
      tensorRefusal(),
      weights() +
          ": tensor \"encoder.layer.0.attention.self.query.bias\": shape is "
          "[9], but config.json implies [8]");
}

TEST_F(EncoderCheckpointTest, ReadsTheFilesOfSentenceTransformers) {
  addBert("BertModel");
  write();
  writePooling("cls_token");
  folder.write("sentence_bert_config.json", R"({"max_seq_length": 4})");
  const ModelConfig read = open().config();
  EXPECT_EQ(read.embedding->pooling, Pooling::Cls);
  EXPECT_EQ(read.usualContext(), 4);

  const std::string path = folder.file("sentence_bert_config.json");
  folder.write("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_EQ(openRefusal(), path + ": max_seq_length is 0; a whole number from "
                                  "1 to 16777216 is expected");
  folder.write("sentence_bert_config.json", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(openRefusal(), path + ": is 1048577 bytes long; at most 1048576 "
                                  "are accepted");
}

/// A decoder that embeds needs no head, and may be the base model alone.
TEST_F(EncoderCheckpointTest, TakesTheNamesOfADecoderThatEmbeds) {
  config = encoderConfig("Qwen3ForCausalLM");
  config["rms_norm_eps"] = 1e-6;
  writePooling("lasttoken");
  add("embed_tokens.weight", {10, 8});
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const char *name : {"input_layernorm", "post_attention_layernorm"})
      add(layer + name + ".weight", {8});
    for (const char *name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(layer + "self_attn." + name + ".weight", {8, 8});
    for (const char *name : {"q_norm", "k_norm"})
      add(layer + "self_attn." + name + ".weight", {4});
    for (const char *name : {"gate_proj", "up_proj"})
      add(layer + "mlp." + name + ".weight", {12, 8});
    add(layer + "mlp.down_proj.weight", {8, 12});
  }
  add("norm.weight", {8});
  expectComplete();
  renameAll([](const std::string &name) { return "model." + name; });
  expectComplete();
  add("lm_head.weight", {10, 8});
  expectComplete();
  add("norm.weight", {8});
  EXPECT_EQ(refusalOf("norm.weight"),
            "there is another one for \"model.norm.weight\"");
}
