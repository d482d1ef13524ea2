//===- StopConditionsTest.cpp - When a text ends --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/StopConditions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace sandwich;

namespace {

/// What a stream of pieces, a token each, has come to.
struct Outcome {
  std::string text;
  std::optional<StopCause> stopped;
  /// Pieces taken.
  size_t pieces = 0;
};

} // namespace

static Outcome follow(StopConditions conditions,
                      const std::vector<std::string> &pieces) {
  Outcome outcome;
  for (const std::string &piece : pieces) {
    StopConditions::Step step = conditions.addToken(1, piece);
    outcome.text += step.text;
    ++outcome.pieces;
    if ((outcome.stopped = step.stopped)) {
      EXPECT_EQ(conditions.flush(), "");
      return outcome;
    }
  }
  outcome.text += conditions.flush();
  return outcome;
}

static StopConditions makeConditions(std::vector<std::string> strings,
                                     bool includeInText = false,
                                     uint64_t minTokens = 0) {
  StopOptions options{.strings = std::move(strings),
                      .includeInText = includeInText};
  EXPECT_TRUE(options.validate());
  SamplingOptions sampling;
  sampling.minTokens = minTokens;
  return StopConditions(options, sampling, {});
}

TEST(StopConditionsTest, WithoutAnyTextPassesAtOnce) {
  StopConditions conditions = makeConditions({});
  StopConditions::Step step = conditions.addToken(5, "text");
  EXPECT_EQ(step.text, "text");
  EXPECT_FALSE(step.stopped);
  EXPECT_EQ(conditions.flush(), "");
}

TEST(StopConditionsTest, HoldsBackWhatMayBeginAStopString) {
  StopConditions conditions = makeConditions({"END", "\n\n"});
  EXPECT_EQ(conditions.addToken(1, "a E").text, "a ");
  EXPECT_EQ(conditions.addToken(1, "N").text, "");
  EXPECT_EQ(conditions.addToken(1, "E\n").text, "ENE");
  StopConditions::Step step = conditions.addToken(1, "\nmore");
  EXPECT_EQ(step.text, "");
  EXPECT_EQ(step.stopped, StopCause::StopString);
  EXPECT_EQ(conditions.stopString(), 1u);
}

TEST(StopConditionsTest, FlushGivesWhatIsHeldBack) {
  StopConditions conditions = makeConditions({"END"});
  EXPECT_EQ(conditions.addToken(1, "EN").text, "");
  EXPECT_EQ(conditions.flush(), "EN");
}

TEST(StopConditionsTest, IncludesTheStopStringIfAsked) {
  Outcome outcome = follow(makeConditions({"END"}, true), {"aEN", "Db"});
  EXPECT_EQ(outcome.text, "aEND");
  EXPECT_EQ(outcome.stopped, StopCause::StopString);
  EXPECT_EQ(follow(makeConditions({"END"}), {"aEN", "Db"}).text, "a");
}

TEST(StopConditionsTest, TheFirstCompleteStringCountsThenTheLongest) {
  EXPECT_EQ(follow(makeConditions({"abcd", "bc"}), {"xabcd"}).text, "xa");
  EXPECT_EQ(follow(makeConditions({"bc", "abc"}), {"xabcd"}).text, "x");
}

TEST(StopConditionsTest, OverlappingBeginnings) {
  // The string begins again within what was held back.
  EXPECT_EQ(follow(makeConditions({"aab"}), {"a", "a", "a", "b"}).text, "a");
  EXPECT_EQ(follow(makeConditions({"abac"}), {"abab", "ac"}).text, "ab");
}

TEST(StopConditionsTest, PiecesOfWholeCharactersStayWhole) {
  // The euro sign and the pound sign in full width begin differently, but the
  // euro sign and the lira sign with the same two bytes.
  StopConditions conditions = makeConditions({"\u20AC!"});
  EXPECT_EQ(conditions.addToken(1, "\u20A4").text, "\u20A4");
  EXPECT_EQ(conditions.addToken(1, "\u20AC").text, "");
  EXPECT_EQ(conditions.addToken(1, "\u20A4").text, "\u20AC\u20A4");
}

TEST(StopConditionsTest, TokensEndTheText) {
  const StopOptions options{.strings = {"xyz"}, .tokens = {8}};
  const std::vector<int32_t> endTokens = {2, 3};
  StopConditions conditions(options, {}, endTokens);
  EXPECT_EQ(conditions.endingTokens(), (std::vector<int32_t>{2, 3, 8}));
  EXPECT_EQ(conditions.addToken(1, "ax").text, "a");
  StopConditions::Step step = conditions.addToken(3, "</s>");
  EXPECT_EQ(step.text, "x");
  EXPECT_EQ(step.stopped, StopCause::EndToken);

  step = StopConditions(options, {}, endTokens).addToken(8, "stop");
  EXPECT_EQ(step.text, "");
  EXPECT_EQ(step.stopped, StopCause::StopToken);
}

TEST(StopConditionsTest, TheTextOfAStopTokenIsIncludedIfAsked) {
  const StopOptions options{.tokens = {8}, .includeInText = true};
  const std::vector<int32_t> endTokens = {2};
  EXPECT_EQ(StopConditions(options, {}, endTokens).addToken(8, "stop").text,
            "stop");
  EXPECT_EQ(StopConditions(options, {}, endTokens).addToken(2, "</s>").text,
            "");
}

TEST(StopConditionsTest, IgnoringTheEndOfTextLeavesStopTokens) {
  const StopOptions options{.tokens = {8}};
  const std::vector<int32_t> endTokens = {2};
  SamplingOptions sampling;
  sampling.ignoreEndOfText = true;
  StopConditions conditions(options, sampling, endTokens);
  EXPECT_EQ(conditions.endingTokens(), std::vector<int32_t>{8});
  StopConditions::Step step = conditions.addToken(2, "</s>");
  EXPECT_EQ(step.text, "</s>");
  EXPECT_FALSE(step.stopped);
  EXPECT_TRUE(conditions.addToken(8, "").stopped);
}

TEST(StopConditionsTest, NothingEndsTheTextWithinMinTokens) {
  StopConditions conditions = makeConditions({"END"}, false, 2);
  EXPECT_EQ(conditions.addToken(1, "aEND").text, "aEND");
  EXPECT_EQ(conditions.addToken(1, "bEN").text, "b");
  // It began within them.
  StopConditions::Step step = conditions.addToken(1, "Dc");
  EXPECT_EQ(step.text, "");
  EXPECT_EQ(step.stopped, StopCause::StopString);

  SamplingOptions sampling;
  sampling.minTokens = 1;
  const std::vector<int32_t> endTokens = {2};
  StopConditions ending({}, sampling, endTokens);
  EXPECT_FALSE(ending.addToken(2, "").stopped);
  EXPECT_TRUE(ending.addToken(2, "").stopped);
}

TEST(StopConditionsTest, ValidationNamesWhatIsWrong) {
  auto message = [](const StopOptions &options) {
    Status status = options.validate();
    EXPECT_FALSE(status);
    if (status)
      return std::string();
    EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
    return status.error().message;
  };
  EXPECT_EQ(message({.strings = std::vector<std::string>(17, "x")}),
            "there are 17 stop strings; there must be at most 16");
  EXPECT_EQ(message({.strings = {"a", ""}}),
            "stop string 1 is empty; it must have a character");
  EXPECT_EQ(message({.strings = {std::string(1025, 'a')}}),
            "stop string 0 has 1025 bytes; it must have at most 1024");
  EXPECT_EQ(message({.strings = {"a\xff"}}),
            "stop string 0 is not UTF-8 at byte 1");
  EXPECT_EQ(message({.tokens = {-4}}),
            "a stop token is -4; it must be at least 0");
  EXPECT_TRUE(StopOptions({.strings = std::vector<std::string>(
                               16, std::string(1024, 'a'))})
                  .validate());
}

/// Where the first of `strings` to be complete in `text` begins and ends.
static std::pair<size_t, size_t>
findFirst(const std::string &text, const std::vector<std::string> &strings) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string &string : strings)
      if (std::string_view(text).substr(0, end).ends_with(string))
        longest = std::max(longest, string.size());
    if (longest > 0)
      return {end - longest, end};
  }
  return {text.size(), text.size()};
}

TEST(StopConditionsTest, RandomTextsAgreeWithAPlainSearch) {
  std::mt19937 generator(1);
  auto randomText = [&](size_t length) {
    std::string text;
    while (text.size() < length)
      text += "ab"[generator() % 2];
    return text;
  };
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> strings;
    for (size_t count = generator() % 4; strings.size() < count;)
      strings.push_back(randomText(1 + generator() % 9));
    std::string text;
    std::vector<std::string> pieces;
    for (size_t count = generator() % 20; pieces.size() < count;) {
      pieces.push_back(randomText(generator() % 5));
      text += pieces.back();
    }
    const auto [begin, end] = findFirst(text, strings);
    for (bool include : {false, true}) {
      Outcome outcome = follow(makeConditions(strings, include), pieces);
      EXPECT_EQ(outcome.text, text.substr(0, include ? end : begin));
      EXPECT_EQ(outcome.stopped.has_value(), begin < end);
    }
  }
}

// A text that keeps almost matching long strings takes no longer for it.
TEST(StopConditionsTest, LongStringsThatNearlyMatch) {
  const std::string almost(1023, 'a');
  const std::vector<std::string> strings(16, almost + 'b');
  const std::vector<std::string> pieces(500, almost);
  Outcome outcome = follow(makeConditions(strings), pieces);
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(outcome.text.size(), 500u * 1023);
}
