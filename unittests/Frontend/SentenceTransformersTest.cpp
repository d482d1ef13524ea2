//===- SentenceTransformersTest.cpp - How a folder's vectors are made -----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "sandwich/Frontend/ModelConfig.h"

#include <map>

using namespace sandwich;
using namespace sandwich::test;

namespace {

Json module(const std::string &type, const std::string &path) {
  return {{"idx", 0}, {"name", "0"}, {"path", path}, {"type", type}};
}

/// The files of a model that embeds, for tests to spoil.
class SentenceTransformersTest : public testing::Test {
protected:
  ModelConfig config;
  std::map<std::string, std::string> files;

  void SetUp() override {
    config.hiddenSize = 8;
    config.maxPositionEmbeddings = 512;
    config.embedding.emplace().dimensions = {4, 8};
    setModules({"Transformer", "Pooling"});
    setPooling({{"word_embedding_dimension", 8},
                {"pooling_mode_cls_token", true},
                {"pooling_mode_mean_tokens", false}});
  }

  void set(const std::string &path, const Json &contents) {
    files[path] = contents.dump();
  }
  void setModules(const std::vector<std::string> &kinds) {
    Json modules = Json::array();
    for (const std::string &kind : kinds)
      modules.push_back(module(
          "sentence_transformers.models." + kind,
          modules.empty() ? "" : std::to_string(modules.size()) + "_" + kind));
    set("modules.json", modules);
  }
  void setPooling(const Json &contents) {
    set("1_Pooling/config.json", contents);
  }
  void setLength(const Json &contents) {
    set("sentence_bert_config.json", contents);
  }
  void setPrompts(const Json &contents) {
    set("config_sentence_transformers.json", contents);
  }

  Status add(ModelConfig &to) const {
    return addSentenceTransformers(
        to, [&](const std::string &path) -> Result<std::optional<std::string>> {
          auto file = files.find(path);
          return file == files.end() ? std::optional<std::string>()
                                     : std::optional(file->second);
        });
  }
  EmbeddingConfig accept() const {
    ModelConfig added = config;
    if (Status status = add(added); !status)
      ADD_FAILURE() << status.error().message;
    return added.embedding.value_or(EmbeddingConfig());
  }
  std::string refusal() const {
    ModelConfig untouched = config;
    std::string message = messageOf(add(untouched));
    EXPECT_EQ(untouched, config);
    return message;
  }

  Pooling pooled(const Json &contents) {
    setPooling(contents);
    return accept().pooling;
  }
  /// What is wrong with the file `path` with these contents.
  std::string refusalOf(const std::string &path, const Json &contents) {
    set(path, contents);
    const std::string message = refusal();
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message.substr(std::min(message.size(), path.size() + 2));
  }
  std::string modulesRefusal(const Json &contents) {
    return refusalOf("modules.json", contents);
  }
  std::string poolingRefusal(const Json &contents) {
    return refusalOf("1_Pooling/config.json", contents);
  }
  std::string lengthRefusal(const Json &contents) {
    return refusalOf("sentence_bert_config.json", contents);
  }
  std::string promptsRefusal(const Json &contents) {
    return refusalOf("config_sentence_transformers.json", contents);
  }
};

} // namespace

TEST_F(SentenceTransformersTest, LeavesFoldersOfOthersAlone) {
  files.erase("modules.json");
  for (int64_t labels : {0, 1}) {
    config.labels = labels;
    ModelConfig unchanged = config;
    EXPECT_TRUE(add(unchanged));
    EXPECT_EQ(unchanged, config);
  }
}

TEST_F(SentenceTransformersTest, AddsWhatTheFilesSay) {
  EmbeddingConfig expected = *config.embedding;
  expected.pooling = Pooling::Cls;
  EXPECT_EQ(accept(), expected);
  setModules({"Transformer", "Pooling", "Normalize"});
  setLength({{"max_seq_length", 128}, {"do_lower_case", false}});
  setPrompts({{"__version__", {{"pytorch", "2.3.1"}}},
              {"prompts", {{"query", "query: "}, {"document", ""}}},
              {"default_prompt_name", "query"},
              {"similarity_fn_name", "cosine"}});
  expected.normalize = true;
  expected.maxTokens = 128;
  expected.prompts = {{"query", "query: "}, {"document", ""}};
  expected.defaultPrompt = "query";
  EXPECT_EQ(accept(), expected);
}

/// A decoder, whose configuration does not say that it embeds.
TEST_F(SentenceTransformersTest, MakesADecoderEmbed) {
  config.embedding.reset();
  EXPECT_FALSE(config.encodes());
  EmbeddingConfig expected;
  expected.pooling = Pooling::Cls;
  EXPECT_EQ(accept(), expected);
}

TEST_F(SentenceTransformersTest, TakesTransformersOfOthers) {
  for (const char *type :
       {"custom_st.Transformer", "Transformer",
        "sentence_transformers.base.modules.transformer.Transformer"}) {
    Json modules =
        Json::array({module(type, ""),
                     module("sentence_transformers.models.Pooling", "pool")});
    modules[0]["kwargs"] = {"task"};
    set("modules.json", modules);
    set("pool/config.json", {{"pooling_mode_lasttoken", true}});
    EXPECT_EQ(accept().pooling, Pooling::Last) << type;
  }
}

TEST_F(SentenceTransformersTest, RefusesOtherModules) {
  const std::string supported =
      "; Transformer, Pooling and maybe Normalize are supported";
  const std::pair<std::vector<std::string>, const char *> others[] = {
      {{}, "[]"},
      {{"Transformer"}, R"(["Transformer"])"},
      {{"Pooling", "Transformer"}, R"(["Pooling","Transformer"])"},
      {{"Transformer", "Pooling", "Dense"},
       R"(["Transformer","Pooling","Dense"])"},
      {{"Transformer", "Pooling", "Normalize", "Normalize"},
       R"(["Transformer","Pooling","Normalize","Normalize"])"},
      {std::vector<std::string>(200, "Dense"), "a list of 200 entries"},
  };
  for (const auto &[kinds, expected] : others) {
    setModules(kinds);
    EXPECT_EQ(refusal(), std::string("modules.json: has the modules ") +
                             expected + supported);
  }
}

TEST_F(SentenceTransformersTest, RefusesModulesThatAreNone) {
  EXPECT_EQ(modulesRefusal(Json::object()),
            "is {}; a list of modules is expected");
  for (const Json &each :
       {Json(1), Json(nullptr), Json::object(), Json({{"type", "Pooling"}}),
        Json({{"type", 1}, {"path", ""}}),
        Json({{"type", "Pooling"}, {"path", nullptr}})})
    EXPECT_EQ(modulesRefusal(Json::array({each})),
              "has " + each.dump() + "; modules have a type and a path");
  files["modules.json"] = "[";
  EXPECT_EQ(refusal(), "modules.json: not valid JSON at byte 2");
}

TEST_F(SentenceTransformersTest, RefusesPathsThatLeaveTheFolder) {
  for (const std::string &path :
       {std::string("../other"), std::string("a/../../b"), std::string("/etc"),
        std::string(), std::string("."), std::string("a\nb"),
        std::string("a\0b", 3), std::string("\xc3\xa9")})
    EXPECT_EQ(modulesRefusal(Json::array(
                  {module("Transformer", ""), module("Pooling", path)})),
              "has Pooling in " + Json(path).dump(-1, ' ', true) +
                  "; a folder in the model's is expected");
  EXPECT_EQ(
      modulesRefusal(Json::array({module("Transformer", ""),
                                  module("Pooling", std::string(256, 'a'))})),
      "has Pooling in \"" + std::string(119, 'a') +
          "...; a folder in the model's is expected");
}

TEST_F(SentenceTransformersTest, RefusesAClassifier) {
  config.labels = 1;
  EXPECT_EQ(refusal(), "modules.json: makes vectors, but the architecture is "
                       "one that classifies");
}

TEST_F(SentenceTransformersTest, RefusesAnAbsentPooling) {
  files.erase("1_Pooling/config.json");
  EXPECT_EQ(refusal(), "modules.json: has Pooling in \"1_Pooling\", but "
                       "1_Pooling/config.json is absent");
}

TEST_F(SentenceTransformersTest, ReadsWaysToPool) {
  const std::pair<const char *, Pooling> modes[] = {
      {"pooling_mode_cls_token", Pooling::Cls},
      {"pooling_mode_mean_tokens", Pooling::Mean},
      {"pooling_mode_lasttoken", Pooling::Last}};
  for (const auto &[chosen, pooling] : modes) {
    Json contents = {{"include_prompt", true},
                     {"pooling_mode_max_tokens", false},
                     {"pooling_mode_mean_sqrt_len_tokens", false},
                     {"pooling_mode_weightedmean_tokens", nullptr}};
    EXPECT_EQ(pooled(contents), Pooling::Mean);
    for (const auto &[flag, other] : modes)
      contents[flag] = std::string_view(flag) == chosen;
    EXPECT_EQ(pooled(contents), pooling) << chosen;
  }
}

/// Newer files name the mode.
TEST_F(SentenceTransformersTest, ReadsNamesOfWaysToPool) {
  const std::pair<const char *, Pooling> modes[] = {
      {"cls", Pooling::Cls},
      {"mean", Pooling::Mean},
      {"lasttoken", Pooling::Last}};
  for (const auto &[name, pooling] : modes) {
    EXPECT_EQ(poolingName(pooling),
              pooling == Pooling::Last ? "last" : std::string_view(name));
    EXPECT_EQ(pooled({{"embedding_dimension", 8}, {"pooling_mode", name}}),
              pooling);
    EXPECT_EQ(pooled({{"pooling_mode", Json::array({name})},
                      {"pooling_mode_max_tokens", true}}),
              pooling);
  }
  for (const Json &mode :
       {Json("max"), Json("Cls"), Json(""), Json(1), Json::array(),
        Json::array({"cls", "mean"}), Json::array({Json::array({"cls"})})})
    EXPECT_EQ(poolingRefusal({{"pooling_mode", mode}}),
              "pooling_mode is " + mode.dump() +
                  "; one of \"cls\", \"mean\" and \"lasttoken\" is expected");
}

TEST_F(SentenceTransformersTest, RefusesOtherWaysToPool) {
  for (const std::string mode :
       {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
        "pooling_mode_weightedmean_tokens", "pooling_mode_of_tomorrow"})
    EXPECT_EQ(poolingRefusal({{mode, true}}),
              mode + " is true, which is not supported (cls_token, mean_tokens "
                     "and lasttoken are)");
  EXPECT_EQ(poolingRefusal({{"pooling_mode_mean_tokens", true},
                            {"pooling_mode_cls_token", true}}),
            "pooling_mode_mean_tokens is true, but so is another; one is "
            "expected");
  EXPECT_EQ(poolingRefusal({{"pooling_mode_cls_token", 1}}),
            "pooling_mode_cls_token is 1; true or false is expected");
  EXPECT_EQ(poolingRefusal({{"include_prompt", false}}),
            "include_prompt is false, which is not supported");
  EXPECT_EQ(poolingRefusal(Json::array()), "is []; an object is expected");
  for (const std::string name :
       {"word_embedding_dimension", "embedding_dimension"}) {
    EXPECT_EQ(poolingRefusal({{name, 9}}),
              name + " is 9; hidden_size of config.json is 8");
    EXPECT_EQ(poolingRefusal({{name, 0}}),
              name + " is 0; a whole number from 1 to 1048576 is expected");
  }
}

TEST_F(SentenceTransformersTest, TakesLengthsBelowThatOfPositions) {
  const std::pair<Json, std::optional<int64_t>> lengths[] = {
      {1, 1}, {511, 511}, {512, {}}, {8192, {}}, {nullptr, {}}};
  for (const auto &[length, expected] : lengths) {
    setLength({{"max_seq_length", length}});
    EXPECT_EQ(accept().maxTokens, expected) << length;
  }
  setLength(Json::object());
  EXPECT_EQ(accept().maxTokens, std::nullopt);
}

TEST_F(SentenceTransformersTest, RefusesOtherLengths) {
  for (const char *value : {"0", "-1", "1.5", "\"512\"", "16777217"})
    EXPECT_EQ(lengthRefusal({{"max_seq_length", Json::parse(value)}}),
              std::string("max_seq_length is ") + value +
                  "; a whole number from 1 to 16777216 is expected");
  EXPECT_EQ(lengthRefusal({{"do_lower_case", true}}),
            "do_lower_case is true, which is the tokenizer's to do here");
  EXPECT_EQ(lengthRefusal({{"do_lower_case", "no"}}),
            "do_lower_case is \"no\"; true or false is expected");
  EXPECT_EQ(lengthRefusal(nullptr), "is null; an object is expected");
}

TEST_F(SentenceTransformersTest, TakesPromptsWithoutADefault) {
  for (const Json &name : {Json(), Json("a")}) {
    setPrompts(
        {{"prompts", {{"b", "2"}, {"a", ""}}}, {"default_prompt_name", name}});
    const EmbeddingConfig embedding = accept();
    EXPECT_EQ(embedding.prompts,
              (std::vector<std::pair<std::string, std::string>>{{"b", "2"},
                                                                {"a", ""}}));
    EXPECT_EQ(embedding.defaultPrompt,
              name.is_null() ? std::nullopt : std::optional<std::string>("a"));
  }
  setPrompts({{"prompts", nullptr}});
  EXPECT_TRUE(accept().prompts.empty());
}

TEST_F(SentenceTransformersTest, RefusesOtherPrompts) {
  EXPECT_EQ(promptsRefusal({{"prompts", Json::array()}}),
            "prompts is []; an object is expected");
  EXPECT_EQ(promptsRefusal({{"prompts", {{"a\nb", 1}}}}),
            "prompts: \"a\\nb\" is 1; a text is expected");
  for (const Json &name : {Json("b"), Json(""), Json(1)}) {
    EXPECT_EQ(promptsRefusal(
                  {{"prompts", {{"a", ""}}}, {"default_prompt_name", name}}),
              "default_prompt_name is " + name.dump() +
                  ", which prompts does not have");
    EXPECT_EQ(promptsRefusal({{"default_prompt_name", name}}),
              "default_prompt_name is " + name.dump() +
                  ", which prompts does not have");
  }
  const std::string longest((1 << 20) - 1, 'x');
  setPrompts({{"prompts", {{"a", longest}}}});
  EXPECT_EQ(accept().prompts[0].second, longest);
  EXPECT_EQ(promptsRefusal({{"prompts", {{"ab", longest}}}}),
            "prompts has 1048577 bytes; at most 1048576 are accepted");
  EXPECT_EQ(promptsRefusal(1), "is 1; an object is expected");
}

TEST_F(SentenceTransformersTest, TellsWhyAFileCannotBeRead) {
  EXPECT_EQ(
      messageOf(addSentenceTransformers(
          config,
          [](const std::string &path) -> Result<std::optional<std::string>> {
            return makeError(path, ": is not a regular file");
          })),
      "modules.json: is not a regular file");
}

TEST_F(SentenceTransformersTest, RefusesATransformerInAFolderOfItsOwn) {
  EXPECT_EQ(
      modulesRefusal(
          {module("sentence_transformers.models.Transformer", "0_Transformer"),
           module("sentence_transformers.models.Pooling", "1_Pooling")}),
      "has Transformer in \"0_Transformer\"; config.json and the weights are "
      "expected beside modules.json");
}

TEST_F(SentenceTransformersTest, RefusesNamesOfPromptsThatAreNone) {
  EXPECT_EQ(promptsRefusal({{"prompts", {{"", "x"}}}}),
            "prompts: \"\" is a name of 0 bytes; 1 to 1024 are accepted");
}
