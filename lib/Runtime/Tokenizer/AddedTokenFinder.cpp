//===- AddedTokenFinder.cpp - Added tokens found in a text ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AddedTokenFinder.h"

#include "Unicode.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::tokenizer;

void AddedTokenFinder::add(const AddedToken &token, std::string content) {
  if (content.empty())
    return;
  beginsToken[static_cast<unsigned char>(content[0])] = true;
  tokens.emplace_back(std::move(content), &token);
}

void AddedTokenFinder::finish() {
  // Of tokens that are written alike, which normalizers may cause, the first
  // of the file is found.
  std::sort(tokens.begin(), tokens.end());
}

const std::pair<std::string, const AddedToken *> *
AddedTokenFinder::longestAt(std::string_view text) const {
  // The tokens that begin as the text does are neighbours; each further byte
  // narrows them down.
  auto first = tokens.begin(), last = tokens.end();
  const std::pair<std::string, const AddedToken *> *longest = nullptr;
  for (size_t depth = 0; first != last; ++depth) {
    if (first->first.size() == depth) {
      longest = &*first;
      while (first != last && first->first.size() == depth)
        ++first;
      if (first == last)
        break;
    }
    if (depth == text.size())
      break;
    auto byte = static_cast<unsigned char>(text[depth]);
    auto at = [depth](const auto &token) {
      return static_cast<unsigned char>(token.first[depth]);
    };
    first = std::partition_point(
        first, last, [&](const auto &token) { return at(token) < byte; });
    last = std::partition_point(
        first, last, [&](const auto &token) { return at(token) == byte; });
  }
  return longest;
}

std::vector<TextPart> AddedTokenFinder::split(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t end = 0; // of the last token found
  for (size_t i = 0; i < text.size();) {
    if (!beginsToken[static_cast<unsigned char>(text[i])]) {
      ++i;
      continue;
    }
    const auto *found = longestAt(text.substr(i));
    if (!found) {
      ++i;
      continue;
    }
    const AddedToken &token = *found->second;
    TextRange range{i, i + found->first.size()};
    i = range.end;
    std::string_view before = text.substr(0, range.begin);
    std::string_view after = text.substr(range.end);
    if (token.singleWord &&
        ((!before.empty() && isWordCharacter(lastCharacter(before))) ||
         (!after.empty() && isWordCharacter(firstCharacter(after)))))
      continue;
    if (token.leftStrip)
      while (range.begin > end &&
             isWhitespace(lastCharacter(text.substr(0, range.begin))))
        range.begin = lastCharacterOffset(text.substr(0, range.begin));
    if (token.rightStrip)
      while (range.end < text.size() &&
             isWhitespace(firstCharacter(text.substr(range.end))))
        range.end += characterLength(text[range.end]);
    if (range.begin > end)
      parts.push_back({{end, range.begin}, -1});
    parts.push_back({range, token.id});
    // A token inside the whitespace that this one takes along is still found.
    end = range.end;
  }
  if (end < text.size())
    parts.push_back({{end, text.size()}, -1});
  return parts;
}
