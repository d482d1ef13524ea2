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
  // Tokens that are written alike, which normalizers may cause, stay in order.
  std::stable_sort(
      tokens.begin(), tokens.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
}

const std::pair<std::string, const AddedToken *> *
AddedTokenFinder::longestAt(std::string_view text) const {
  // The tokens that begin as the text does are neighbours; each further byte
  // narrows them down.
  auto first = tokens.begin(), last = tokens.end();
  const std::pair<std::string, const AddedToken *> *longest = nullptr;
  for (size_t depth = 0; first != last; ++depth) {
    // The last of those that are written alike.
    for (; first != last && first->first.size() == depth; ++first)
      longest = &*first;
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

size_t SpecialTokenPlaces::reach(size_t offset) const {
  if (isEverywhere)
    return std::string_view::npos;
  auto range = std::ranges::partition_point(
      ranges, [&](const ByteRange &each) { return each.end <= offset; });
  return range != ranges.end() && range->begin <= offset ? range->end : offset;
}

size_t SpecialTokenPlaces::nextAfter(size_t offset) const {
  auto range = std::ranges::partition_point(
      ranges, [&](const ByteRange &each) { return each.begin <= offset; });
  return range == ranges.end() ? std::string_view::npos : range->begin;
}

bool AddedTokenFinder::hasSpecialTokens() const {
  return std::ranges::any_of(
      tokens, [](const auto &token) { return token.second->special; });
}

std::vector<TextPart>
AddedTokenFinder::split(std::string_view text,
                        const SpecialTokenPlaces &places) const {
  std::vector<TextPart> parts;
  size_t end = 0; // of the last token found
  // The whitespace that was taken along last; a token inside of it takes the
  // rest along once more, and looking at that each time would be quadratic.
  TextRange spaces{0, 0};
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
    if (const size_t reach = places.reach(i);
        found->second->special && found->first.size() > reach - i) {
      const size_t end = i + found->first.size();
      // What follows a part that may hold special tokens does not take them
      // away by making longer ones of them.
      found = longestAt(text.substr(i, reach - i));
      if (!found) {
        i = reach > i ? i + 1 : std::min(end, places.nextAfter(i));
        continue;
      }
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
    if (token.leftStrip) {
      while (range.begin > end &&
             isWhitespace(lastCharacter(text.substr(0, range.begin))))
        range.begin = lastCharacterOffset(text.substr(0, range.begin));
      range.begin = std::max(range.begin, end);
    }
    if (token.rightStrip) {
      if (range.end < spaces.begin || range.end > spaces.end)
        spaces = {range.end, range.end};
      while (spaces.end < text.size() &&
             isWhitespace(firstCharacter(text.substr(spaces.end))))
        spaces.end += characterLength(text[spaces.end]);
      range.end = spaces.end;
    }
    // Nothing is left of a token whose whitespace went to the one before.
    if (range.begin >= range.end)
      continue;
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
