//===- StopConditions.cpp - When a text ends ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/StopConditions.h"

#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <utility>

using namespace sandwich;

static Status checkString(const std::string &text, size_t index) {
  auto error = [index](const auto &...parts) {
    return makeError(ErrorKind::InvalidArgument, "stop string ", index, ' ',
                     parts...);
  };
  if (text.empty())
    return error("is empty; it must have a character");
  if (text.size() > StopOptions::maxStringBytes)
    return error("has ", text.size(), " bytes; it must have at most ",
                 StopOptions::maxStringBytes);
  if (std::optional<size_t> offset = findInvalidUtf8(text))
    return error("is not UTF-8 at byte ", *offset);
  return {};
}

Status StopOptions::validate() const {
  if (strings.size() > maxStrings)
    return makeError(ErrorKind::InvalidArgument, "there are ", strings.size(),
                     " stop strings; there must be at most ", maxStrings);
  for (size_t i = 0; i < strings.size(); ++i)
    SANDWICH_RETURN_IF_ERROR(checkString(strings[i], i));
  if (tokens.size() > maxTokens)
    return makeError(ErrorKind::InvalidArgument, "there are ", tokens.size(),
                     " stop tokens; there must be at most ", maxTokens);
  for (int32_t token : tokens)
    if (token < 0)
      return makeError(ErrorKind::InvalidArgument, "a stop token is ", token,
                       "; it must be at least 0");
  return {};
}

//===----------------------------------------------------------------------===//
// Matcher
//===----------------------------------------------------------------------===//

StopConditions::Matcher::Matcher(std::string string) : text(std::move(string)) {
  shorter.push_back(0);
  for (size_t i = 1; i < text.size(); ++i) {
    size_t length = shorter.back();
    while (length > 0 && text[length] != text[i])
      length = shorter[length - 1];
    shorter.push_back(
        static_cast<uint16_t>(length + (text[length] == text[i])));
  }
}

size_t StopConditions::Matcher::pending() const {
  return matched == text.size() ? shorter.back() : matched;
}

bool StopConditions::Matcher::advance(char byte) {
  matched = pending();
  while (matched > 0 && text[matched] != byte)
    matched = shorter[matched - 1];
  if (text[matched] == byte)
    ++matched;
  return matched == text.size();
}

//===----------------------------------------------------------------------===//
// StopConditions
//===----------------------------------------------------------------------===//

StopConditions::StopConditions(const StopOptions &options,
                               const SamplingOptions &sampling,
                               std::span<const int32_t> endTokens)
    : stopTokens(options.tokens), includeInText(options.includeInText),
      minTokens(sampling.minTokens) {
  if (!sampling.ignoreEndOfText)
    this->endTokens.assign(endTokens.begin(), endTokens.end());
  for (const std::string &string : options.strings)
    matchers.emplace_back(string);
}

std::vector<int32_t> StopConditions::endingTokens() const {
  std::vector<int32_t> tokens = endTokens;
  tokens.insert(tokens.end(), stopTokens.begin(), stopTokens.end());
  return tokens;
}

std::optional<StopCause> StopConditions::causeOf(int32_t token) const {
  if (outputs <= minTokens)
    return std::nullopt;
  if (std::ranges::find(endTokens, token) != endTokens.end())
    return StopCause::EndToken;
  if (std::ranges::find(stopTokens, token) != stopTokens.end())
    return StopCause::StopToken;
  return std::nullopt;
}

bool StopConditions::advance(char byte) {
  size_t longest = 0;
  for (size_t i = 0; i < matchers.size(); ++i)
    if (matchers[i].advance(byte) && matchers[i].size() > longest) {
      longest = matchers[i].size();
      foundString = i;
    }
  return longest > 0;
}

StopConditions::Step StopConditions::addToken(int32_t token,
                                              std::string_view text) {
  ++outputs;
  if (std::optional<StopCause> cause = causeOf(token)) {
    std::string rest = flush();
    if (*cause == StopCause::StopToken && includeInText)
      rest += text;
    return {std::move(rest), cause};
  }
  for (char byte : text) {
    held += byte;
    if (!advance(byte) || outputs <= minTokens)
      continue;
    if (!includeInText)
      held.resize(held.size() - matchers[foundString].size());
    return {flush(), StopCause::StopString};
  }
  size_t pending = 0;
  for (const Matcher &matcher : matchers)
    pending = std::max(pending, matcher.pending());
  std::string known = held.substr(0, held.size() - pending);
  held.erase(0, known.size());
  return {std::move(known), std::nullopt};
}

std::string StopConditions::flush() { return std::exchange(held, {}); }
