//===- TestGrammar.h - Grammars and texts of the tests ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_GRAMMAR_TESTGRAMMAR_H
#define SANDWICH_UNITTESTS_GRAMMAR_TESTGRAMMAR_H

#include "sandwich/Grammar/Grammar.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich {

using VocabularyPointer = std::shared_ptr<const TokenVocabulary>;
using GrammarPointer = std::shared_ptr<const Grammar>;

/// Tokens 0 to 255 are the bytes, 256 ends a text, then come `texts`.
inline constexpr int32_t endToken = 256;

inline std::vector<std::string>
tokensWith(const std::vector<std::string> &texts) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.emplace_back(1, static_cast<char>(byte));
  tokens.emplace_back("<end>");
  tokens.insert(tokens.end(), texts.begin(), texts.end());
  return tokens;
}

/// The model has 5 tokens more than the tokenizer.
inline VocabularyPointer vocabularyOf(const std::vector<std::string> &tokens,
                                      std::vector<int32_t> endTokens = {
                                          endToken}) {
  auto vocabulary =
      TokenVocabulary::create(tokens, std::move(endTokens), tokens.size() + 5);
  if (!vocabulary) {
    ADD_FAILURE() << vocabulary.error().message;
    std::abort();
  }
  return *vocabulary;
}

inline VocabularyPointer bytesVocabulary() {
  static const VocabularyPointer vocabulary = vocabularyOf(tokensWith({}));
  return vocabulary;
}

/// Tokens that end, begin and bridge all kinds of text.
inline const std::vector<std::string> &longTokens() {
  static const std::vector<std::string> texts = {
      "\"",       "\":",      "\": ",       "\":\"", "\",\"",  "\", \"",
      "{\"",      "\"}",      "\"}}",       "}}",    "}}}",    "},",
      "},{",      "[{\"",     "\"]",        "]}",    "]]",     "[[",
      "[]",       "{}",       "\"\"",       "name",  "na",     "me\":",
      "ame",      "true",     "tr",         "true,", "false}", "null",
      "12",       "123",      "1,",         "0.5",   ".5",     "-1",
      "e+5",      "1e",       "abc",        "ab",    "bc",     "hello",
      " world",   "\\n",      "\\u00",      "\\\"",  "\u00e9", "\u20ac",
      "\xF0\x9F", "\x98\x80", "a\u00e9",    "  ",    " ",      ", ",
      ": ",       "\n",       "\n  ",       "2024-", "-01",    "@",
      ".com",     "a,b",      "\"a\":1",    "x\"}",  "x\",\"", "1]",
      "1,2",      ",\"b\":",  "value\":{\""};
  return texts;
}

inline VocabularyPointer richVocabulary() {
  static const VocabularyPointer vocabulary =
      vocabularyOf(tokensWith(longTokens()));
  return vocabulary;
}

inline GrammarPointer compiled(const GrammarSource &source,
                               const VocabularyPointer &vocabulary,
                               const GrammarOptions &options = {}) {
  auto grammar = Grammar::compile(source, vocabulary, options);
  if (!grammar) {
    ADD_FAILURE() << grammar.error().message;
    return nullptr;
  }
  return *grammar;
}

inline GrammarPointer schemaGrammar(std::string_view schema,
                                    const GrammarOptions &options = {}) {
  auto json = parseJson(schema);
  if (!json) {
    ADD_FAILURE() << json.error().message << ": " << schema;
    return nullptr;
  }
  return compiled(GrammarSource::jsonSchema(*json), bytesVocabulary(), options);
}

/// Why `source` is refused; the test fails if it is not.
inline std::string
refusal(const GrammarSource &source,
        const VocabularyPointer &vocabulary = bytesVocabulary()) {
  auto grammar = Grammar::compile(source, vocabulary);
  if (grammar) {
    ADD_FAILURE() << "is accepted";
    return "";
  }
  EXPECT_EQ(grammar.error().kind, ErrorKind::InvalidArgument);
  return grammar.error().message;
}

inline std::string schemaRefusal(std::string_view schema) {
  auto json = parseJson(schema);
  if (!json) {
    ADD_FAILURE() << json.error().message << ": " << schema;
    return "";
  }
  return refusal(GrammarSource::jsonSchema(*json));
}

inline bool isAllowed(std::span<const uint64_t> mask, size_t token) {
  return (mask[token / 64] >> (token % 64) & 1) != 0;
}

/// Whether `text`, byte by byte, is one of the grammar's.
inline bool accepts(const GrammarPointer &grammar, std::string_view text) {
  const std::unique_ptr<TokenConstraint> constraint =
      Grammar::constrain(grammar);
  for (char byte : text) {
    const auto token = static_cast<unsigned char>(byte);
    const bool allowed = isAllowed(constraint->allowedTokens(), token);
    EXPECT_EQ(constraint->accept(token), allowed) << text;
    if (!allowed)
      return false;
  }
  const bool ends = isAllowed(constraint->allowedTokens(), endToken);
  EXPECT_EQ(constraint->accept(endToken), ends) << text;
  return ends;
}

/// The tokens of `mask`.
inline std::vector<int32_t> tokensOf(std::span<const uint64_t> mask) {
  std::vector<int32_t> tokens;
  for (size_t token = 0; token < mask.size() * 64; ++token)
    if (isAllowed(mask, token))
      tokens.push_back(static_cast<int32_t>(token));
  return tokens;
}

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_GRAMMAR_TESTGRAMMAR_H
