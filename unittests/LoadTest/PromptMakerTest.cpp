//===- PromptMakerTest.cpp - Prompts that mean nothing --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/PromptMaker.h"

#include "sandwich/Support/Json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace sandwich;

static PromptMaker make(const PromptOptions &options) {
  Result<PromptMaker> maker = PromptMaker::create(options);
  EXPECT_TRUE(maker) << maker.error().message;
  return *maker;
}

static Json promptOf(const PromptMaker &maker, uint64_t tokens,
                     uint64_t index) {
  std::string text = "before ";
  maker.append(text, tokens, index);
  EXPECT_TRUE(text.starts_with("before "));
  const Result<Json> prompt = parseJson(text.substr(7));
  EXPECT_TRUE(prompt) << text;
  return *prompt;
}

static size_t wordsOf(const Json &prompt) {
  const auto text = prompt.get<std::string>();
  return static_cast<size_t>(std::ranges::count(text, ' ')) + 1;
}

TEST(PromptMakerTest, IdsAreExactInNumberAndRange) {
  const PromptMaker maker = make({.vocabulary = 20});
  for (uint64_t tokens : {0, 1, 2, 1000}) {
    const auto ids = promptOf(maker, tokens, 5).get<std::vector<uint64_t>>();
    EXPECT_EQ(ids.size(), tokens);
    for (uint64_t id : ids)
      EXPECT_TRUE(id >= PromptMaker::firstId && id < 20) << id;
  }
  const auto ids = promptOf(maker, 1000, 5).get<std::vector<uint64_t>>();
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 17u);
  const auto largest = promptOf(make({.vocabulary = uint64_t{1} << 31}), 100, 1)
                           .get<std::vector<uint64_t>>();
  EXPECT_GT(*std::ranges::max_element(largest), uint64_t{1} << 28);
}

TEST(PromptMakerTest, NoTwoPromptsBeginAlike) {
  for (bool asTokens : {true, false}) {
    const PromptMaker maker = make({.asTokens = asTokens});
    std::set<std::string> prompts;
    for (uint64_t index = 0; index < 1000; ++index)
      prompts.insert(promptOf(maker, 16, index).dump());
    EXPECT_EQ(prompts.size(), 1000u);
    // But the same one is the same, and another seed's is another.
    EXPECT_TRUE(prompts.count(promptOf(maker, 16, 7).dump()));
    EXPECT_FALSE(prompts.count(
        promptOf(make({.asTokens = asTokens, .seed = 2}), 16, 7).dump()));
  }
}

TEST(PromptMakerTest, PrefixesAreShared) {
  const PromptMaker maker = make({.prefixTokens = 10});
  const auto first = promptOf(maker, 30, 1).get<std::vector<uint64_t>>();
  const auto second = promptOf(maker, 30, 2).get<std::vector<uint64_t>>();
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 10, second.begin()));
  EXPECT_FALSE(
      std::equal(first.begin() + 10, first.end(), second.begin() + 10));
  // A prompt that is shorter is all prefix.
  const auto third = promptOf(maker, 4, 3).get<std::vector<uint64_t>>();
  EXPECT_EQ(third, std::vector(first.begin(), first.begin() + 4));

  const PromptMaker words = make({.asTokens = false, .prefixTokens = 10});
  const auto fourth = promptOf(words, 30, 1).get<std::string>();
  const auto fifth = promptOf(words, 30, 2).get<std::string>();
  const auto differs = std::ranges::mismatch(fourth, fifth).in1;
  EXPECT_GE(std::count(fourth.begin(), differs, ' '), 10);
  EXPECT_LT(std::count(fourth.begin(), differs, ' '), 14);
}

TEST(PromptMakerTest, WordsGoByWhatTheyCost) {
  PromptMaker maker = make({.asTokens = false});
  EXPECT_EQ(wordsOf(promptOf(maker, 40, 1)), 40u);
  maker.setWordCosts({.tokensPerWord = 2.5, .moreTokens = 15});
  EXPECT_EQ(wordsOf(promptOf(maker, 40, 1)), 10u);
  // At least one.
  EXPECT_EQ(wordsOf(promptOf(maker, 3, 1)), 1u);
  EXPECT_EQ(wordsOf(Json(maker.words(12, 1))), 12u);
  EXPECT_EQ(maker.words(0, 1), "");
}

TEST(PromptMakerTest, RefusesVocabulariesThatAreNone) {
  for (uint64_t vocabulary :
       {uint64_t{0}, uint64_t{3}, uint64_t{1} << 32, ~uint64_t{0}})
    EXPECT_FALSE(PromptMaker::create({.vocabulary = vocabulary}));
  EXPECT_TRUE(PromptMaker::create({.vocabulary = 4}));
}
