//===- PromptMaker.h - Prompts that mean nothing ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LOADTEST_PROMPTMAKER_H
#define SANDWICH_LOADTEST_PROMPTMAKER_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <string>

namespace sandwich {

struct PromptOptions {
  /// Token ids, else words.
  bool asTokens = true;
  /// Ids are below it.
  uint64_t vocabulary = 256;
  /// Tokens that all prompts begin with, as far as they are long enough.
  uint64_t prefixTokens = 0;
  uint64_t seed = 1;
};

/// What a server makes of words, by which prompts of words get their lengths.
struct WordCosts {
  double tokensPerWord = 1;
  /// Of a prompt whatever its words: marks and a chat's template.
  double moreTokens = 0;
};

/// Makes prompts, no two of which go on alike after the common prefix, so that
/// a server can keep nothing of one for another.
class PromptMaker {
public:
  /// Ids below this are left out: they are marks in many vocabularies.
  static constexpr uint64_t firstId = 3;

  /// Error: the vocabulary has no more than `firstId` tokens, or more than
  /// 2^31.
  static Result<PromptMaker> create(const PromptOptions &options);

  /// Appends the prompt number `index` of about `tokens` tokens as JSON: an
  /// array of ids or a string. Prompts of ids have exactly so many.
  void append(std::string &json, uint64_t tokens, uint64_t index) const;
  /// Words alone, without a prefix, for measuring `WordCosts`.
  std::string words(uint64_t count, uint64_t index) const;

  bool asTokens() const { return options.asTokens; }
  void setWordCosts(const WordCosts &measured) { costs = measured; }

private:
  explicit PromptMaker(const PromptOptions &options) : options(options) {}

  uint64_t wordsFor(uint64_t tokens, double moreTokens) const;
  void appendIds(std::string &json, uint64_t count, uint64_t state) const;

  PromptOptions options;
  WordCosts costs;
};

} // namespace sandwich

#endif // SANDWICH_LOADTEST_PROMPTMAKER_H
