//===- follow-grammar.cpp - Grammars for other programs -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads an array of cases from standard input and writes what becomes of each,
/// both as JSON. A case is an object of `schema`, `texts`, `walks` and `seed`;
/// its result either has an `error`, or `accepted`, a boolean for each text,
/// and `walked`, that many random texts of the grammar.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Grammar/Grammar.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace sandwich;

/// Bytes are tokens 0 to 255.
static constexpr int32_t endToken = 256;

static std::shared_ptr<const TokenVocabulary> makeVocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.emplace_back(1, static_cast<char>(byte));
  for (const char *text :
       {"",       "\":",    "\",\"",      "\", \"",  "{\"",     "\"}",
        "}}",     "},",     "]}",         "[{",      "\"]",     "ab",
        "abc",    " a",     "12",         "99",      "1,",      ".5",
        "e+1",    "true",   "null",       "\\u00e9", "\\ud83d", "\\ude00",
        "\u00e9", "\u20ac", "\U0001F600", ": ",      "a\":",    "b\":",
        "\"b\":", ", ",     "2024-02-",   "@a",      ".com",    "\\n"})
    tokens.emplace_back(text);
  const size_t size = tokens.size();
  return *TokenVocabulary::create(std::move(tokens), {endToken}, size);
}

static bool accepts(const std::shared_ptr<const Grammar> &grammar,
                    const std::string &text) {
  const std::unique_ptr<TokenConstraint> constraint =
      Grammar::constrain(grammar);
  for (char byte : text)
    if (!constraint->accept(static_cast<unsigned char>(byte)))
      return false;
  return constraint->accept(endToken);
}

static std::vector<int32_t> allowedTokens(TokenConstraint &constraint) {
  const std::span<const uint64_t> mask = constraint.allowedTokens();
  std::vector<int32_t> tokens;
  for (size_t token = 0; token < mask.size() * 64; ++token)
    if (mask[token / 64] >> (token % 64) & 1)
      tokens.push_back(static_cast<int32_t>(token));
  return tokens;
}

/// A random text that ends as soon as it may, once it has begun to be long;
/// nothing if that is not soon enough.
static std::optional<std::string>
walk(const std::shared_ptr<const Grammar> &grammar,
     const TokenVocabulary &vocabulary, std::mt19937 &random) {
  constexpr size_t mostTokens = 400, fewTokens = 40;
  const std::unique_ptr<TokenConstraint> constraint =
      Grammar::constrain(grammar);
  std::string text;
  for (size_t count = 0; count < mostTokens; ++count) {
    const std::vector<int32_t> allowed = allowedTokens(*constraint);
    int32_t token = allowed.at(random() % allowed.size());
    for (int32_t each : allowed)
      if (count >= fewTokens &&
          (each == endToken || each == '"' || each == '}' || each == ']'))
        token = each;
    if (!constraint->accept(token))
      throw std::runtime_error("an allowed token is not accepted");
    if (token == endToken)
      return text;
    text += vocabulary.bytesOf(token);
  }
  return std::nullopt;
}

static Json run(const Json &given,
                const std::shared_ptr<const TokenVocabulary> &vocabulary) {
  auto grammar =
      Grammar::compile(GrammarSource::jsonSchema(given["schema"]), vocabulary);
  if (!grammar)
    return {{"error", grammar.error().message}};
  Json accepted = Json::array(), walked = Json::array();
  for (const Json &text : given["texts"])
    accepted.push_back(accepts(*grammar, text.get<std::string>()));
  std::mt19937 random(given["seed"].get<uint32_t>());
  for (int i = 0; i < given["walks"].get<int>(); ++i)
    if (std::optional<std::string> text = walk(*grammar, *vocabulary, random))
      walked.push_back(*std::move(text));
  return {{"accepted", accepted}, {"walked", walked}};
}

int main() try {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const std::shared_ptr<const TokenVocabulary> vocabulary = makeVocabulary();
  Json results = Json::array();
  for (const Json &given : Json::parse(text))
    results.push_back(run(given, vocabulary));
  return writeStandardOutput(results.dump() + "\n") ? 0 : 1;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
