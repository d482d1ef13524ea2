//===- PairTest.cpp - Pairs of texts, and texts that are cut --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerFiles.h"

using namespace sandwich;

using Ids = std::vector<int32_t>;

/// The small file with the special tokens [CLS], 6, and [SEP], 7.
static Json pairFile(const char *postProcessor) {
  Json file = smallFile();
  file["added_tokens"] =
      Json::array({addedToken(6, "[CLS]", true), addedToken(7, "[SEP]", true)});
  file["post_processor"] = Json::parse(postProcessor);
  return file;
}

static constexpr const char *bert =
    R"({"type": "BertProcessing", "cls": ["[CLS]", 6], "sep": ["[SEP]", 7]})";
static constexpr const char *roberta =
    R"({"type": "RobertaProcessing", "cls": ["[CLS]", 6], "sep": ["[SEP]", 7],
        "trim_offsets": true, "add_prefix_space": false})";

static TypedIds paired(const Tokenizer &tokenizer, std::string_view first,
                       std::optional<std::string_view> second,
                       const EncodingOptions &options) {
  auto sequence = tokenizer.encodeWithTypes(first, second, options);
  if (!sequence) {
    ADD_FAILURE() << sequence.error().message;
    return {};
  }
  return *sequence;
}

static void expectSequence(const TypedIds &sequence, const Ids &ids,
                           const Ids &typeIds) {
  EXPECT_EQ(sequence.ids, ids);
  EXPECT_EQ(sequence.typeIds, typeIds);
}

TEST(Pair, HasSeparatorsAndTypes) {
  const EncodingOptions special = {.addSpecialTokens = true};
  Tokenizer tokenizer = loaded(pairFile(bert));
  expectSequence(paired(tokenizer, "abc", {}, special), {6, 5, 7}, {0, 0, 0});
  expectSequence(paired(tokenizer, "abc", "bab", special), {6, 5, 7, 1, 3, 7},
                 {0, 0, 0, 1, 1, 1});
  expectSequence(paired(tokenizer, "abc", "bab", {}), {5, 1, 3}, {0, 1, 1});
  expectSequence(paired(tokenizer, "", "", special), {6, 7, 7}, {0, 0, 1});

  tokenizer = loaded(pairFile(roberta));
  expectSequence(paired(tokenizer, "abc", "ab", special), {6, 5, 7, 7, 3, 7},
                 {0, 0, 0, 0, 0, 0});

  tokenizer = loaded(smallFile());
  expectSequence(paired(tokenizer, "abc", "ab", special), {5, 3}, {0, 1});
}

TEST(Pair, FollowsATemplate) {
  const EncodingOptions special = {.addSpecialTokens = true};
  Json file = pairFile(R"({"type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 3}},
               {"SpecialToken": {"id": "x", "type_id": 4}}],
    "pair": [{"Sequence": {"id": "B", "type_id": 0}},
             {"SpecialToken": {"id": "x", "type_id": 2}},
             {"Sequence": {"id": "A", "type_id": 1}}],
    "special_tokens": {"x": {"ids": [7, 6]}}})");
  Tokenizer tokenizer = loaded(file);
  expectSequence(paired(tokenizer, "abc", {}, special), {5, 7, 6}, {3, 4, 4});
  expectSequence(paired(tokenizer, "abc", "ab", special), {3, 7, 6, 5},
                 {0, 2, 2, 1});
  file["post_processor"]["pair"] = Json::array();
  auto sequence = loaded(file).encodeWithTypes("a", "b");
  ASSERT_FALSE(sequence);
  EXPECT_EQ(sequence.error().message,
            "the post_processor of the tokenizer has no template for a pair of "
            "texts");
}

TEST(Pair, IsTwoSingleTextsWhereTheConfigurationSaysWhatIsAdded) {
  auto tokenizer = Tokenizer::fromText(
      pairFile(bert).dump(),
      R"({"bos_token": "[CLS]", "eos_token": "[SEP]", "add_bos_token": true,
          "add_eos_token": false})");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  expectSequence(paired(*tokenizer, "abc", "ab", {.addSpecialTokens = true}),
                 {6, 5, 6, 3}, {0, 0, 1, 1});
}

TEST(Pair, TrustsNoRanges) {
  const ByteRange range = {0, 1};
  auto sequence = loaded(smallFile())
                      .encodeWithTypes("a", "b",
                                       {.parseSpecialTokens = true,
                                        .trustedRanges = std::span(&range, 1)});
  ASSERT_FALSE(sequence);
  EXPECT_EQ(sequence.error().kind, ErrorKind::InvalidArgument);
}

TEST(Truncation, CutsTheTextsAndNotWhatIsAdded) {
  using Strategy = Truncation::Strategy;
  Tokenizer tokenizer = loaded(pairFile(bert));
  auto cut = [&](std::string_view first, std::optional<std::string_view> second,
                 Truncation truncation) {
    return paired(tokenizer, first, second,
                  {.addSpecialTokens = true, .truncation = truncation})
        .ids;
  };
  EXPECT_EQ(cut("cba", {}, {.maxTokens = 4}), (Ids{6, 2, 1, 7}));
  EXPECT_EQ(cut("cba", {}, {.maxTokens = 5}), (Ids{6, 2, 1, 0, 7}));
  EXPECT_EQ(cut("cba", {}, {.maxTokens = 4, .fromLeft = true}),
            (Ids{6, 1, 0, 7}));
  EXPECT_EQ(cut("cba", {}, {.maxTokens = 2}), (Ids{6, 7}));
  EXPECT_EQ(cut("cba", "ccccc", {.maxTokens = 8}),
            (Ids{6, 2, 1, 7, 2, 2, 2, 7}));
  EXPECT_EQ(cut("ccccc", "cba", {.maxTokens = 8}),
            (Ids{6, 2, 2, 2, 7, 2, 1, 7}));
  EXPECT_EQ(cut("c", "ccccc", {.maxTokens = 7}), (Ids{6, 2, 7, 2, 2, 2, 7}));
  EXPECT_EQ(cut("cba", "cc", {.maxTokens = 3}), (Ids{6, 7, 7}));
  EXPECT_EQ(cut("cba", "cc", {.maxTokens = 6, .strategy = Strategy::OnlyFirst}),
            (Ids{6, 2, 7, 2, 2, 7}));
  EXPECT_EQ(
      cut("cba", "cc", {.maxTokens = 7, .strategy = Strategy::OnlySecond}),
      (Ids{6, 2, 1, 0, 7, 2, 7}));
}

TEST(Truncation, IsRefusedWhereNothingWereLeft) {
  using Strategy = Truncation::Strategy;
  Tokenizer tokenizer = loaded(pairFile(bert));
  auto errorOf = [&](std::optional<std::string_view> second,
                     Truncation truncation) {
    auto sequence = tokenizer.encodeWithTypes(
        "cba", second, {.addSpecialTokens = true, .truncation = truncation});
    return sequence ? "" : sequence.error().message;
  };
  EXPECT_EQ(errorOf({}, {.maxTokens = 1}),
            "at most 1 tokens are too few for the 2 special tokens");
  EXPECT_EQ(errorOf({}, {.maxTokens = 4, .strategy = Strategy::OnlySecond}),
            "only the second text may be cut, and there is none");
  EXPECT_EQ(errorOf("cc", {.maxTokens = 5, .strategy = Strategy::OnlyFirst}),
            "the first text has 3 tokens and would have to lose 3");
  EXPECT_EQ(errorOf("cc", {.maxTokens = 6, .strategy = Strategy::OnlySecond}),
            "the second text has 2 tokens and would have to lose 2");
}

TEST(Truncation, IsReadAndLeftToTheCaller) {
  Json file = pairFile(bert);
  EXPECT_FALSE(loaded(file).truncation());
  file["truncation"] = Json::parse(R"({"direction": "Left", "max_length": 4,
    "strategy": "OnlyFirst", "stride": 2})");
  Tokenizer tokenizer = loaded(file);
  ASSERT_TRUE(tokenizer.truncation());
  EXPECT_EQ(tokenizer.truncation()->maxTokens, 4u);
  EXPECT_EQ(tokenizer.truncation()->strategy, Truncation::Strategy::OnlyFirst);
  EXPECT_TRUE(tokenizer.truncation()->fromLeft);
  EXPECT_EQ(encoded(tokenizer, "cba", true).size(), 5u);
}

TEST(Padding, IsKnownAndNeverDone) {
  Json file = pairFile(bert);
  EXPECT_FALSE(loaded(file).padding());
  file["padding"] = Json::parse(R"({"strategy": {"Fixed": 9}, "pad_id": 2,
    "direction": "Right", "pad_to_multiple_of": null, "pad_type_id": 1,
    "pad_token": "c"})");
  Tokenizer tokenizer = loaded(file);
  ASSERT_TRUE(tokenizer.padding());
  EXPECT_EQ(tokenizer.padding()->id, 2);
  EXPECT_EQ(tokenizer.padding()->typeId, 1);
  EXPECT_EQ(tokenizer.padding()->token, "c");
  EXPECT_EQ(encoded(tokenizer, "cba", true).size(), 5u);
  auto configured =
      Tokenizer::fromText(pairFile(bert).dump(), R"({"pad_token": "[PAD]"})");
  ASSERT_TRUE(configured && configured->padding());
  EXPECT_EQ(configured->padding()->id, 8);
}

TEST(BadSequence, NamesTheField) {
  auto errorWith = [](const char *pointer, const char *value) {
    Json file = pairFile(bert);
    file["truncation"] = {{"max_length", 4}, {"strategy", "LongestFirst"}};
    file["padding"] = {{"strategy", "BatchLongest"},
                       {"pad_id", 0},
                       {"pad_type_id", 0},
                       {"pad_token", "a"}};
    EXPECT_TRUE(Tokenizer::fromText(file.dump()));
    file[Json::json_pointer(pointer)] = Json::parse(value);
    auto tokenizer = Tokenizer::fromText(file.dump());
    return tokenizer ? "" : tokenizer.error().message;
  };
  EXPECT_EQ(errorWith("/truncation/max_length", "-1"),
            "truncation.max_length: must be a whole number that is not "
            "negative, is -1");
  EXPECT_EQ(errorWith("/truncation/strategy", "\"longest_first\""),
            "truncation.strategy: \"longest_first\" is not supported");
  EXPECT_EQ(errorWith("/truncation/direction", "\"Up\""),
            "truncation.direction: \"Up\" is not supported");
  EXPECT_EQ(errorWith("/truncation/stride", "\"a\""),
            "truncation.stride: must be a whole number that is not negative, "
            "is \"a\"");
  EXPECT_EQ(errorWith("/padding/strategy", "{}"),
            "padding.strategy.Fixed: is missing");
  EXPECT_EQ(errorWith("/padding/strategy", "\"Longest\""),
            "padding.strategy: \"Longest\" is not supported");
  EXPECT_EQ(errorWith("/padding/pad_id", "8"),
            "padding.pad_id: no token has the id 8");
  EXPECT_EQ(errorWith("/padding/pad_type_id", "null"),
            "padding.pad_type_id: is missing");
  EXPECT_EQ(errorWith("/post_processor/sep", "[7]"),
            "post_processor.sep: must be a token and its id");
  EXPECT_EQ(errorWith("/post_processor/cls/1", "8"),
            "post_processor.cls[1]: id 8 is beyond the vocabulary of 8 tokens");
  EXPECT_EQ(errorWith("/post_processor", R"({"type": "TemplateProcessing",
              "single": [{"Sequence": {"id": "A"}}],
              "pair": [{"Sequence": {"id": "A"}}]})"),
            "post_processor.pair: has no place for both texts");
  EXPECT_EQ(errorWith("/post_processor", R"({"type": "TemplateProcessing",
              "single": [{"Sequence": {"id": "A", "type_id": 2147483648}}]})"),
            "post_processor.single[0].Sequence.type_id: 2147483648 is not "
            "supported");
  EXPECT_EQ(
      errorWith("/post_processor", (R"({"type": "Sequence", "processors": [)" +
                                    std::string(bert) + ", " + bert + "]}")
                                       .c_str()),
      "post_processor.processors[1]: a second step that adds tokens is "
      "not supported");
}
