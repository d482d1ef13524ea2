//===- PromptMaker.cpp - Prompts that mean nothing ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/PromptMaker.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

using namespace sandwich;

/// Frequent words, most of which are a token with the space before them
/// wherever tokens are learned from English text.
static constexpr std::array<std::string_view, 64> vocabularyOfWords = {
    "time",    "year",  "people",  "way",     "day",     "man",      "thing",
    "woman",   "life",  "child",   "world",   "school",  "state",    "family",
    "student", "group", "country", "problem", "hand",    "part",     "place",
    "case",    "week",  "company", "system",  "program", "question", "work",
    "number",  "night", "point",   "home",    "water",   "room",     "mother",
    "area",    "money", "story",   "fact",    "month",   "lot",      "right",
    "study",   "book",  "eye",     "job",     "word",    "business", "issue",
    "side",    "kind",  "head",    "house",   "service", "friend",   "father",
    "power",   "hour",  "game",    "line",    "end",     "member",   "law",
    "car"};

/// The next number of a sequence (splitmix64; Steele, Lea and Flood 2014): it
/// needs no time to begin, and there may be thousands of prompts a second.
static uint64_t next(uint64_t &state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return mixed ^ (mixed >> 31);
}

/// Where the sequence of a prompt begins: far from those of others.
static uint64_t begin(uint64_t seed, uint64_t index) {
  uint64_t state = seed;
  state = next(state) ^ index;
  return next(state);
}

/// Of the prefix, which no prompt's index is.
static constexpr uint64_t prefixIndex = ~uint64_t{0};

Result<PromptMaker> PromptMaker::create(const PromptOptions &options) {
  constexpr uint64_t most = uint64_t{1} << 31;
  if (options.vocabulary <= firstId || options.vocabulary > most)
    return makeError("a vocabulary of ", options.vocabulary,
                     " tokens; it has from ", firstId + 1, " to ", most);
  return PromptMaker(options);
}

void PromptMaker::appendIds(std::string &json, uint64_t count,
                            uint64_t state) const {
  const uint64_t choices = options.vocabulary - firstId;
  for (uint64_t i = 0; i < count; ++i) {
    char digits[16];
    char *end =
        std::to_chars(digits, std::end(digits), firstId + next(state) % choices)
            .ptr;
    json.append(digits, end);
    json += ',';
  }
}

static void appendWords(std::string &text, uint64_t count, uint64_t state) {
  for (uint64_t i = 0; i < count; ++i) {
    text += vocabularyOfWords[next(state) % vocabularyOfWords.size()];
    text += ' ';
  }
}

std::string PromptMaker::words(uint64_t count, uint64_t index) const {
  std::string text;
  appendWords(text, count, begin(options.seed, index));
  if (!text.empty())
    text.pop_back();
  return text;
}

uint64_t PromptMaker::wordsFor(uint64_t tokens, double moreTokens) const {
  const double words =
      (static_cast<double>(tokens) - moreTokens) / costs.tokensPerWord;
  return static_cast<uint64_t>(std::max(1.0, std::round(words)));
}

void PromptMaker::append(std::string &json, uint64_t tokens,
                         uint64_t index) const {
  const uint64_t prefix = std::min(options.prefixTokens, tokens);
  const uint64_t ofPrefix = begin(options.seed, prefixIndex);
  const uint64_t own = begin(options.seed, index);
  // What comes last is a separator in both.
  if (options.asTokens) {
    json += '[';
    appendIds(json, prefix, ofPrefix);
    appendIds(json, tokens - prefix, own);
    if (tokens > 0)
      json.pop_back();
    json += ']';
    return;
  }
  const uint64_t all = wordsFor(tokens, costs.moreTokens);
  const uint64_t ofAll = prefix > 0 ? std::min(wordsFor(prefix, 0), all) : 0;
  json += '"';
  appendWords(json, ofAll, ofPrefix);
  appendWords(json, all - ofAll, own);
  json.back() = '"';
}
