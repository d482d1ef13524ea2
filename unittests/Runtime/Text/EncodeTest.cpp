//===- EncodeTest.cpp - Text to ids ---------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerFiles.h"

#include <algorithm>
#include <map>
#include <random>

using namespace sandwich;
using testing::Test;

using Ids = std::vector<int32_t>;

TEST(Encode, MergesByRankThenFromTheLeft) {
  Json file = smallFile();
  EXPECT_EQ(encoded(loaded(file), "abcab"), (Ids{5, 3}));
  file["model"]["merges"] = {"b c", "a b"};
  EXPECT_EQ(encoded(loaded(file), "abcab"), (Ids{0, 4, 3}));
  file["model"]["merges"] = Json::array({"a a"});
  file["model"]["vocab"]["aa"] = 6;
  EXPECT_EQ(encoded(loaded(file), "aaa"), (Ids{6, 0}));
}

TEST(Encode, AcceptsMergesWrittenAsPairs) {
  Json file = smallFile();
  file["model"]["merges"] = Json::parse(R"([["a", "b"], "ab c"])");
  EXPECT_EQ(encoded(loaded(file), "abc"), (Ids{5}));
}

TEST(Encode, ReadsFilesThatNameNoModelTypeAsBpe) {
  Json file = smallFile();
  file["model"].erase("type");
  EXPECT_EQ(encoded(loaded(file), "abc"), (Ids{5}));
}

TEST(Encode, TakesTheLastOfEqualMerges) {
  Json file = smallFile();
  file["model"]["merges"] = {"a b", "b c", "a b"};
  EXPECT_EQ(encoded(loaded(file), "abc"), (Ids{0, 4}));
}

/// The definition of byte-pair encoding, merge by merge.
static Ids mergedStepByStep(const Json &model, std::string_view text) {
  std::vector<std::string> symbols;
  for (char character : text)
    symbols.emplace_back(1, character);
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (const Json &merge : model["merges"])
    ranks.emplace(std::pair(merge[0], merge[1]), ranks.size());
  while (true) {
    size_t best = ranks.size(), position = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < best) {
        best = found->second;
        position = i;
      }
    }
    if (best == ranks.size())
      break;
    symbols[position] += symbols[position + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(position) + 1);
  }
  Ids ids;
  for (const std::string &symbol : symbols)
    ids.push_back(model["vocab"][symbol].get<int32_t>());
  return ids;
}

TEST(Encode, AgreesWithTheDefinitionOnRandomMerges) {
  std::mt19937 random(42);
  auto upTo = [&](size_t limit) { return random() % limit; };
  for (int round = 0; round != 60; ++round) {
    Json file = smallFile();
    Json &model = file["model"];
    model = {
        {"type", "BPE"}, {"vocab", Json::object()}, {"merges", Json::array()}};
    std::vector<std::string> tokens;
    auto add = [&](const std::string &token) {
      if (model["vocab"].contains(token))
        return;
      model["vocab"][token] = tokens.size();
      tokens.push_back(token);
    };
    for (size_t i = 0, letters = 2 + upTo(5); i != letters; ++i)
      add(std::string(1, static_cast<char>('a' + i)));
    for (size_t i = 0; i != 25; ++i) {
      Json merge = {tokens[upTo(tokens.size())], tokens[upTo(tokens.size())]};
      auto &merges = model["merges"].get_ref<Json::array_t &>();
      if (std::find(merges.begin(), merges.end(), merge) != merges.end())
        continue;
      add(merge[0].get<std::string>() + merge[1].get<std::string>());
      merges.push_back(merge);
    }
    Tokenizer tokenizer = loaded(file);
    // Both short texts, which are remembered, and long ones, which are cut.
    for (size_t length : {5, 40, 400}) {
      std::string text;
      while (text.size() < length)
        text += tokens[upTo(tokens.size())];
      EXPECT_EQ(encoded(tokenizer, text), mergedStepByStep(model, text))
          << file.dump() << '\n'
          << text;
    }
  }
}

TEST(Encode, CutsLongTextOnlyWhereUnknownCharactersAllowIt) {
  Json file = smallFile();
  Tokenizer dropping = loaded(file);
  // Dropped characters let their neighbours meet.
  std::string apart, together;
  for (int i = 0; i != 100; ++i) {
    apart += "a?b";
    together += "ab";
  }
  EXPECT_EQ(encoded(dropping, apart), encoded(dropping, together));

  std::string longUnknown = std::string("a").append(500, 'x') + "b";
  file["model"]["vocab"]["?!"] = 6;
  file["model"]["unk_token"] = "?!";
  file["model"]["fuse_unk"] = true;
  EXPECT_EQ(encoded(loaded(file), longUnknown), (Ids{0, 6, 1}));
  file["model"]["fuse_unk"] = false;
  EXPECT_EQ(encoded(loaded(file), longUnknown).size(), 502u);
}

TEST(Encode, LooksUpWholePiecesWhereMergesAreIgnored) {
  Json file = smallFile();
  file["model"]["vocab"]["cab"] = 6;
  EXPECT_EQ(encoded(loaded(file), "cab"), (Ids{2, 3}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(encoded(loaded(file), "cab"), (Ids{6}));
  EXPECT_EQ(encoded(loaded(file), "cabb"), (Ids{2, 3, 1}));
}

TEST(Encode, FindsTheLongestAddedToken) {
  Json file = smallFile();
  file["added_tokens"] = Json::array({addedToken(6, "ab", false)});
  // The token is in the vocabulary with another id.
  EXPECT_FALSE(Tokenizer::fromText(file.dump()));
  file["added_tokens"] =
      Json::array({addedToken(6, "<x>", true), addedToken(7, "<x>a", false),
                   addedToken(8, "<", false)});
  EXPECT_EQ(encoded(loaded(file), "<x>b<x>ab<"), (Ids{6, 1, 7, 1, 8}));
}

TEST(Encode, TakesTheLastAddedTokenOfThoseThatNormalizersMakeAlike) {
  Json file = smallFile();
  file["normalizer"] = {{"type", "Lowercase"}};
  file["added_tokens"] =
      Json::array({addedToken(6, "<x>", false), addedToken(7, "<X>", false)});
  for (Json &token : file["added_tokens"])
    token["normalized"] = true;
  EXPECT_EQ(encoded(loaded(file), "a<x>"), (Ids{0, 7}));
}

TEST(Encode, FindsSingleWordsBetweenWhatIsNoWord) {
  Json file = smallFile();
  file["added_tokens"] = Json::array({addedToken(6, "<x>", false)});
  file["added_tokens"][0]["single_word"] = true;
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "-<x>-"), (Ids{6}));
  // A letter, a mark, a joiner and a letter in a circle.
  for (std::string word : {"a", "\u0301", "\u200D", "\u24D0"}) {
    EXPECT_FALSE(std::ranges::count(encoded(tokenizer, word + "<x>"), 6));
    EXPECT_FALSE(std::ranges::count(encoded(tokenizer, "<x>" + word), 6));
  }
}

TEST(Encode, TakesWhitespaceAlongOnce) {
  Json file = smallFile();
  file["added_tokens"] = Json::array({addedToken(6, " ", false)});
  file["added_tokens"][0]["rstrip"] = true;
  // Each of the spaces is still found, as Hugging Face's library does.
  EXPECT_EQ(encoded(loaded(file), "a   b"), (Ids{0, 6, 6, 6, 1}));
  file["added_tokens"][0]["lstrip"] = true;
  EXPECT_EQ(encoded(loaded(file), "a   b"), (Ids{0, 6, 1}));
}

TEST(Encode, AddsTheTokensOfTheTemplateOnlyWhenAsked) {
  Json file = smallFile();
  file["added_tokens"] =
      Json::array({addedToken(6, "<s>", true), addedToken(7, "</s>", true)});
  file["post_processor"] = Json::parse(R"({
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}
  })");
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "a", true), (Ids{6, 0}));
  EXPECT_EQ(encoded(tokenizer, "a", false), (Ids{0}));
  EXPECT_EQ(encoded(tokenizer, "", true), (Ids{6}));
  EXPECT_FALSE(tokenizer.beginningOfSequenceId());
}

/// The ids of `text` as users write it: special tokens are not parsed.
static Ids encodedAsText(const Tokenizer &tokenizer, std::string_view text) {
  auto ids = tokenizer.encode(text);
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? *ids : Ids();
}

TEST(Encode, TakesSpecialTokensInTextForTextUnlessAsked) {
  Json file = smallFile();
  file["model"]["unk_token"] = "c";
  file["added_tokens"] = Json::array({addedToken(6, "<s>", true)});
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "a<s>b"), (Ids{0, 6, 1}));
  EXPECT_EQ(encodedAsText(tokenizer, "a<s>b"), (Ids{0, 2, 2, 2, 1}));
  EXPECT_EQ(encodedAsText(tokenizer, "<s>"), (Ids{2, 2, 2}));
}

TEST(Encode, FindsOtherAddedTokensWhereSpecialOnesAreText) {
  Json file = smallFile();
  file["model"]["unk_token"] = "c";
  file["added_tokens"] =
      Json::array({addedToken(6, "<s>", true), addedToken(7, "<t>", false),
                   addedToken(8, "s", false)});
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encodedAsText(tokenizer, "<t>as"), (Ids{7, 0, 8}));
  // As in Hugging Face's library, nothing is found inside of it.
  EXPECT_EQ(encodedAsText(tokenizer, "<s>"), (Ids{2, 2, 2}));
  EXPECT_EQ(encodedAsText(tokenizer, "<s"), (Ids{2, 8}));

  file["normalizer"] = {{"type", "Lowercase"}};
  for (Json &token : file["added_tokens"])
    token["normalized"] = true;
  tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "<S><T>"), (Ids{6, 7}));
  EXPECT_EQ(encodedAsText(tokenizer, "<S><T>"), (Ids{2, 2, 2, 7}));
}

/// What merges make, and what a file that ignores merges looks up, is text too.
TEST(Encode, MakesNoSpecialTokenOfText) {
  Json file = smallFile();
  file["added_tokens"] = Json::array({addedToken(5, "abc", true)});
  EXPECT_EQ(encoded(loaded(file), "abc"), (Ids{5}));
  EXPECT_EQ(encodedAsText(loaded(file), "abc"), (Ids{3, 2}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(encodedAsText(loaded(file), "abc"), (Ids{3, 2}));
  file["model"]["ignore_merges"] = false;
  file["added_tokens"] = Json::array({addedToken(0, "a", true)});
  EXPECT_EQ(encodedAsText(loaded(file), "ab"), (Ids{1}));
}

TEST(Encode, ObeysTheConfiguration) {
  Json file = smallFile();
  file["added_tokens"] =
      Json::array({addedToken(6, "<s>", true), addedToken(7, "</s>", true)});
  auto tokenizer = Tokenizer::fromText(file.dump(), R"({
    "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
    "add_bos_token": true, "add_eos_token": true,
    "model_max_length": 1000000000000000019884624838656
  })");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(encoded(*tokenizer, "a", true), (Ids{6, 0, 7}));
  EXPECT_EQ(encoded(*tokenizer, "a", false), (Ids{0}));
  EXPECT_EQ(tokenizer->beginningOfSequenceId(), 6);
  EXPECT_EQ(tokenizer->endOfSequenceId(), 7);
}

/// The tokenizer of `file` and `configuration`; the test fails if it is
/// refused.
static Tokenizer configured(const Json &file, const Json &configuration) {
  auto tokenizer = Tokenizer::fromText(file.dump(), configuration.dump());
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    return loaded(smallFile());
  }
  return *tokenizer;
}

static std::string refusal(const Json &file, const Json &configuration) {
  auto tokenizer = Tokenizer::fromText(file.dump(), configuration.dump());
  return tokenizer ? "accepted" : tokenizer.error().message;
}

// What follows is what Hugging Face's library 4.57 makes of the same files.

TEST(Configuration, BeginsTheTextsOfALlamaTokenizer) {
  Json file = smallFile();
  file["added_tokens"] =
      Json::array({addedToken(6, "<s>", true), addedToken(7, "</s>", true)});
  for (const char *name : {"LlamaTokenizer", "LlamaTokenizerFast",
                           "CodeLlamaTokenizer", "CodeLlamaTokenizerFast"}) {
    Json llama = {{"tokenizer_class", name}};
    EXPECT_EQ(encoded(configured(file, llama), "a", true), (Ids{6, 0}));
    llama["bos_token"] = "</s>";
    EXPECT_EQ(encoded(configured(file, llama), "a", true), (Ids{7, 0}));
    llama["add_bos_token"] = false;
    EXPECT_EQ(encoded(configured(file, llama), "a", true), (Ids{0}));
  }
  EXPECT_EQ(
      encoded(configured(file, {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                {"bos_token", "<s>"}}),
              "a", true),
      (Ids{0}));
  // A post-processor that adds nothing is no template.
  file["post_processor"] = {{"type", "ByteLevel"}};
  Json llama = {{"tokenizer_class", "LlamaTokenizer"}};
  EXPECT_EQ(encoded(configured(file, llama), "a", true), (Ids{6, 0}));
  llama["bos_token"] = nullptr;
  EXPECT_EQ(refusal(file, llama),
            "tokenizer_config.json: bos_token: is missing, but a "
            "LlamaTokenizer begins each text with it unless add_bos_token is "
            "false");
}

TEST(Configuration, KeepsTheTemplateOfALlamaTokenizer) {
  Json file = smallFile();
  file["added_tokens"] =
      Json::array({addedToken(6, "<s>", true), addedToken(7, "<t>", true)});
  file["post_processor"] = Json::parse(R"({
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<t>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<t>": {"id": "<t>", "ids": [7], "tokens": ["<t>"]}}
  })");
  EXPECT_EQ(encoded(configured(file, {{"tokenizer_class", "LlamaTokenizer"},
                                      {"bos_token", "<s>"}}),
                    "a", true),
            (Ids{7, 0}));
}

TEST(Configuration, AddsTheTokensOfTheDecoder) {
  Json file = smallFile();
  file["added_tokens"] = Json::array({addedToken(6, "<s>", true)});
  Json configuration = Json::parse(R"({"added_tokens_decoder": {
    "6": {"content": "<s>", "special": true},
    "7": {"content": "<x>", "special": true},
    "8": {"content": "<y>", "special": false, "rstrip": true}}})");
  Tokenizer tokenizer = configured(file, configuration);
  EXPECT_EQ(tokenizer.vocabularySize(), 9u);
  EXPECT_EQ(encoded(tokenizer, "a<x>b<y> <s>"), (Ids{0, 7, 1, 8, 6}));
  EXPECT_TRUE(tokenizer.isSpecial(7));
  EXPECT_FALSE(tokenizer.isSpecial(8));
  EXPECT_EQ(tokenizer.decode(Ids{7, 0}, true), "a");

  // Where both files have a token, the configuration's properties win.
  configuration["added_tokens_decoder"] = {
      {"6", {{"content", "<s>"}, {"special", false}}}};
  EXPECT_FALSE(configured(file, configuration).isSpecial(6));
  // A token of the model becomes an added one.
  configuration["added_tokens_decoder"] = {
      {"5", {{"content", "abc"}, {"special", true}}}};
  EXPECT_TRUE(configured(file, configuration).isSpecial(5));
}

TEST(Configuration, RefusesTokensThatContradict) {
  Json file = smallFile();
  file["added_tokens"] = Json::array({addedToken(6, "<s>", true)});
  auto refusalOf = [&](const char *id, const Json &token) {
    return refusal(file, {{"added_tokens_decoder", {{id, token}}}});
  };
  const std::string name = "tokenizer_config.json: added_tokens_decoder";
  EXPECT_EQ(refusalOf("9", {{"content", "<x>"}}),
            name + "[\"9\"]: token \"<x>\" is not in tokenizer.json, and the "
                   "next new token has id 7");
  EXPECT_EQ(refusalOf("7", {{"content", "abc"}}),
            name + "[\"7\"]: token \"abc\" has id 7 here and id 5 elsewhere");
  EXPECT_EQ(refusalOf("6", {{"content", "<x>"}}),
            name + "[\"6\"]: id 6 stands for both \"<s>\" and \"<x>\"");
  EXPECT_EQ(refusalOf("x", {{"content", "<x>"}}),
            name + ": \"x\" is not a token id");
  EXPECT_EQ(refusalOf("99999999999", {{"content", "<x>"}}),
            name + ": \"99999999999\" is not a token id");
  EXPECT_EQ(refusalOf("7", "<x>"),
            name + "[\"7\"]: must be an object, is \"<x>\"");
  EXPECT_EQ(refusal(file, {{"added_tokens_decoder", {1}}}),
            name + ": must be an object of ids and their tokens");
}

TEST(Configuration, AddsTheSpecialTokensThatItNames) {
  Json file = smallFile();
  Json configuration = Json::parse(R"({
    "bos_token": "abc", "pad_token": "<p>", "mask_token": null,
    "additional_special_tokens": ["<x>", {"content": "<y>", "lstrip": true}],
    "extra_special_tokens": {"image_token": "<z>"}})");
  Tokenizer tokenizer = configured(file, configuration);
  EXPECT_EQ(encoded(tokenizer, "abc<p><x> <y><z>"), (Ids{5, 6, 7, 8, 9}));
  for (int32_t id : {5, 6, 7, 8, 9})
    EXPECT_TRUE(tokenizer.isSpecial(id)) << id;
  EXPECT_EQ(refusal(file, {{"additional_special_tokens", "<x>"}}),
            "tokenizer_config.json: additional_special_tokens: must be a list "
            "or an object of tokens");
  EXPECT_EQ(refusal(file, {{"pad_token", 3}}),
            "tokenizer_config.json: pad_token: must be a string, is 3");
}

TEST(Encode, AnswersQuestionsAboutTokens) {
  Json file = smallFile();
  file["added_tokens"] =
      Json::array({addedToken(6, "<s>", true), addedToken(7, "<t>", false)});
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(tokenizer.vocabularySize(), 8u);
  EXPECT_EQ(tokenizer.idOf("abc"), 5);
  EXPECT_EQ(tokenizer.idOf("<t>"), 7);
  EXPECT_EQ(tokenizer.idOf("abcd"), std::nullopt);
  EXPECT_EQ(tokenizer.tokenOf(6), "<s>");
  EXPECT_EQ(tokenizer.tokenOf(8), std::nullopt);
  EXPECT_EQ(tokenizer.tokenOf(-1), std::nullopt);
  EXPECT_TRUE(tokenizer.isSpecial(6));
  EXPECT_FALSE(tokenizer.isSpecial(7));
  EXPECT_FALSE(tokenizer.isSpecial(8));
  EXPECT_FALSE(tokenizer.isSpecial(-1));
}

TEST(Encode, TakesLongRunsInItsStride) {
  Json file = readInput("byte-level.json");
  file["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Split", "behavior": "Isolated",
     "pattern": {"Regex": "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+|\\S+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  Tokenizer tokenizer = loaded(file);
  for (const char *unit : {" ", "e", "the ", "é", "\n"}) {
    std::string text;
    while (text.size() < 300'000)
      text += unit;
    EXPECT_EQ(tokenizer.decode(encoded(tokenizer, text), false), text);
  }
}

/// Each of these took time that grows with the square of the text, or a
/// millisecond for each of half a million parts.
TEST(Encode, TakesManyAddedTokensInItsStride) {
  Json file = readInput("byte-level.json");
  auto id = static_cast<int64_t>(loaded(file).vocabularySize());
  file["added_tokens"].push_back(addedToken(id, " ", false));
  file["added_tokens"].back()["rstrip"] = true;
  EXPECT_EQ(encoded(loaded(file), std::string(400'000, ' ')),
            Ids(400'000, static_cast<int32_t>(id)));
  file["added_tokens"].back() = addedToken(id, "<|x|>", true);
  file["pre_tokenizer"] = Json::parse(R"({"type": "ByteLevel",
    "add_prefix_space": false, "use_regex": true})");
  std::string text;
  for (int i = 0; i != 200'000; ++i)
    text += "<|x|>a";
  EXPECT_EQ(encoded(loaded(file), text).size(), 400'000u);
}
