//===- TokenVocabulary.cpp - What bytes a model's tokens are --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Grammar/TokenVocabulary.h"

#include "JsonTexts.h"
#include "VocabularyIndex.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <limits>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

TokenVocabulary::TokenVocabulary(std::unique_ptr<const Index> contents)
    : contents(std::move(contents)) {}

TokenVocabulary::~TokenVocabulary() = default;

size_t TokenVocabulary::size() const { return contents->modelTokens; }

std::string_view TokenVocabulary::bytesOf(int32_t token) const {
  const Tokens &tokens = contents->tokens;
  return token >= 0 && size_t(token) + 1 < tokens.begins.size()
             ? tokens.at(static_cast<uint32_t>(token))
             : std::string_view();
}

static Status check(const std::vector<std::string> &tokens,
                    const std::vector<int32_t> &endTokens, size_t modelTokens) {
  if (modelTokens > size_t(std::numeric_limits<int32_t>::max()) ||
      modelTokens < tokens.size())
    return makeError(ErrorKind::InvalidArgument, "the model has ", modelTokens,
                     " tokens, but the tokenizer ", tokens.size());
  if (endTokens.empty())
    return makeError(ErrorKind::InvalidArgument,
                     "no token ends a text, so that none could keep to a "
                     "grammar");
  for (int32_t token : endTokens)
    if (token < 0 || size_t(token) >= modelTokens)
      return makeError(ErrorKind::InvalidArgument, "the end token ", token,
                       " is not one of the model's ", modelTokens, " tokens");
  size_t sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].size() > TokenTrie::mostBytes)
      return makeError(ErrorKind::InvalidArgument, "token ", i, " has ",
                       tokens[i].size(), " bytes; at most ",
                       TokenTrie::mostBytes, " are accepted");
    sum += tokens[i].size();
  }
  if (sum > std::numeric_limits<int32_t>::max())
    return makeError(ErrorKind::InvalidArgument, "the tokens have ", sum,
                     " bytes altogether; at most ",
                     std::numeric_limits<int32_t>::max(), " are accepted");
  return {};
}

/// The automata of JSON strings need no more.
static constexpr uint64_t stepsForStrings = 1'000'000;

Result<std::shared_ptr<const TokenVocabulary>>
TokenVocabulary::create(std::vector<std::string> tokens,
                        std::vector<int32_t> endTokens, size_t modelTokens,
                        size_t maskBytes) {
  SANDWICH_RETURN_IF_ERROR(check(tokens, endTokens, modelTokens));
  auto index = std::make_unique<Index>(maskBytes);
  index->modelTokens = modelTokens;
  index->endTokens.assign(endTokens.begin(), endTokens.end());
  for (int32_t token : endTokens)
    if (size_t(token) < tokens.size())
      tokens[size_t(token)].clear();
  Tokens &own = index->tokens;
  own.words = divideUp(modelTokens, size_t(64));
  own.begins.push_back(0);
  for (const std::string &token : tokens) {
    own.characters += token;
    own.begins.push_back(static_cast<uint32_t>(own.characters.size()));
    if (token.size() == 1)
      index->singleBytes.set(static_cast<uint8_t>(token[0]));
  }
  std::vector<std::pair<std::string_view, uint32_t>> texts;
  for (uint32_t token = 0; token < tokens.size(); ++token)
    if (!own.at(token).empty())
      texts.emplace_back(own.at(token), token);
  own.trie = TokenTrie(std::move(texts));
  CompileBudget budget(stepsForStrings);
  ExpressionPool pool(budget);
  index->string = Automaton::build(pool, jsonString(pool), index->singleBytes);
  index->plainString =
      Automaton::build(pool, plainJsonString(pool), index->singleBytes);
  if (!index->string || !index->plainString)
    return makeError(ErrorKind::Internal,
                     "JSON strings are too complex to compile");
  return std::shared_ptr<const TokenVocabulary>(
      new TokenVocabulary(std::move(index)));
}
