//===- GrammarWalk.h - Random texts of a grammar ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FUZZ_GRAMMARWALK_H
#define SANDWICH_FUZZ_GRAMMARWALK_H

#include "sandwich/Grammar/Grammar.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich {

inline void check(bool holds) {
  if (!holds)
    __builtin_trap();
}

/// Bytes, an end token, and some texts that bridge parts of JSON.
inline std::shared_ptr<const TokenVocabulary> fuzzVocabulary() {
  static const auto vocabulary = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte)
      tokens.emplace_back(1, static_cast<char>(byte));
    tokens.emplace_back("");
    for (const char *text : {"\":",      "\",\"",
                             "{\"",      "\"}",
                             "}}",       "},",
                             "]}",       "[{",
                             "a",        "ab",
                             "abc",      " a",
                             "12",       "1,",
                             ".5",       "e+",
                             "true",     "null",
                             "\\u",      "\xC3\xA9",
                             "\xE2\x82", "a\":",
                             "\"b\":",   "  ",
                             ", \"",     "aaaaaaaaaaaaaaaaaaaa"})
      tokens.emplace_back(text);
    const size_t size = tokens.size() + 3;
    // Keeps no masks: libFuzzer looks for leaks after each input that leaves
    // memory behind, and that takes ten times as long as the input.
    auto made = TokenVocabulary::create(std::move(tokens), {256}, size, 0);
    check(bool(made));
    return *made;
  }();
  return vocabulary;
}

/// Follows `grammar` where `choices` lead: each byte chooses among the tokens
/// that are allowed. The mask is never empty, and says what `accept` does. The
/// text, if it ended.
inline std::optional<std::string>
walkGrammar(const std::shared_ptr<const Grammar> &grammar,
            std::string_view choices) {
  constexpr size_t mostTokens = 48;
  std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(grammar);
  const TokenVocabulary &vocabulary = *fuzzVocabulary();
  std::string text;
  for (size_t i = 0; i < mostTokens; ++i) {
    std::vector<int32_t> allowed, others;
    const std::span<const uint64_t> mask = constraint->allowedTokens();
    for (size_t token = 0; token < vocabulary.size(); ++token)
      (mask[token / 64] >> (token % 64) & 1 ? allowed : others)
          .push_back(static_cast<int32_t>(token));
    check(!allowed.empty());
    const size_t choice =
        i < choices.size() ? static_cast<unsigned char>(choices[i]) : i;
    if (!others.empty())
      check(!constraint->accept(others[choice % others.size()]));
    const int32_t token = allowed[choice % allowed.size()];
    std::unique_ptr<TokenConstraint> copy = constraint->clone();
    check(copy->accept(token));
    constraint = std::move(copy);
    if (token == 256)
      return text;
    text += vocabulary.bytesOf(token);
  }
  return std::nullopt;
}

} // namespace sandwich

#endif // SANDWICH_FUZZ_GRAMMARWALK_H
