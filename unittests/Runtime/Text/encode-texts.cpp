//===- encode-texts.cpp - Token ids for other programs --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads an array of cases from standard input and writes what the tokenizers
/// make of their texts, both as JSON. A case is an object of `file`, the path
/// of a tokenizer.json, `text`, and optionally `second`, `special`, whether
/// special tokens are added, and `truncation`, an object as in tokenizer.json.
/// A result is an object of `ids`, `types`, `decoded` and `plain`, the text of
/// the ids with and without special tokens, or of `error`.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/Json.h"

#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

using namespace sandwich;

static Truncation readTruncation(const Json &json) {
  using Strategy = Truncation::Strategy;
  const auto name = json.at("strategy").get<std::string>();
  return {.maxTokens = json.at("max_length").get<uint64_t>(),
          .strategy = name == "OnlyFirst"    ? Strategy::OnlyFirst
                      : name == "OnlySecond" ? Strategy::OnlySecond
                                             : Strategy::LongestFirst,
          .fromLeft = json.at("direction") == "Left"};
}

static Json encode(const Tokenizer &tokenizer, const Json &testCase) {
  EncodingOptions options = {.addSpecialTokens =
                                 testCase.value("special", false),
                             .parseSpecialTokens = true};
  if (testCase.contains("truncation"))
    options.truncation = readTruncation(testCase["truncation"]);
  const auto text = testCase.at("text").get<std::string>();
  const std::string second = testCase.value("second", "");
  Result<TypedIds> sequence = tokenizer.encodeWithTypes(
      text,
      testCase.contains("second") ? std::optional<std::string_view>(second)
                                  : std::nullopt,
      options);
  if (!sequence)
    return {{"error", sequence.error().message}};
  return {{"ids", sequence->ids},
          {"types", sequence->typeIds},
          {"decoded", tokenizer.decode(sequence->ids, false)},
          {"plain", tokenizer.decode(sequence->ids, true)}};
}

int main() {
  std::cin >> std::noskipws;
  const std::string input((std::istream_iterator<char>(std::cin)), {});
  Result<Json> cases = parseJson(input);
  if (!cases) {
    std::fprintf(stderr, "error: %s\n", cases.error().message.c_str());
    return 1;
  }
  std::map<std::string, Result<Tokenizer>> tokenizers;
  Json results = Json::array();
  for (const Json &testCase : *cases) {
    const auto path = testCase.at("file").get<std::string>();
    auto known = tokenizers.find(path);
    if (known == tokenizers.end())
      known = tokenizers.emplace(path, Tokenizer::fromFiles(path)).first;
    if (known->second)
      results.push_back(encode(*known->second, testCase));
    else
      results.push_back({{"error", known->second.error().message}});
  }
  std::cout << results << '\n';
  return 0;
}
