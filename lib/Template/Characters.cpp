//===- Characters.cpp - Python's classes of characters --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Characters.h"

#include "CaseExpansions.h"

#include <algorithm>
#include <iterator>
#include <utf8proc.h>
#include <utility>

using namespace sandwich;
using namespace sandwich::jinja;

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

namespace {
struct CharacterRange {
  char32_t first;
  char32_t last;
};
} // namespace

template <size_t count>
static bool isIn(const CharacterRange (&ranges)[count], char32_t character) {
  const CharacterRange *range = std::lower_bound(
      std::begin(ranges), std::end(ranges), character,
      [](const CharacterRange &a, char32_t b) { return a.last < b; });
  return range != std::end(ranges) && range->first <= character;
}

static utf8proc_category_t categoryOf(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool jinja::isSpace(char32_t character) {
  if (character < 0x80)
    return character == ' ' || (character >= '\t' && character <= '\r') ||
           (character >= 0x1C && character <= 0x1F);
  static constexpr CharacterRange spaces[] = {
      {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
      {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
  return isIn(spaces, character);
}

bool jinja::isAlphabetic(char32_t character) {
  switch (categoryOf(character)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
    return true;
  default:
    return false;
  }
}

bool jinja::isDecimal(char32_t character) {
  return categoryOf(character) == UTF8PROC_CATEGORY_ND;
}

bool jinja::isDigit(char32_t character) {
  // Numeric_Type=Digit of Unicode 14's DerivedNumericType.txt.
  static constexpr CharacterRange digits[] = {
      {0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},
      {0x19DA, 0x19DA},   {0x2070, 0x2070},   {0x2074, 0x2079},
      {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},
      {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
      {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
      {0x278A, 0x2792},   {0x10A40, 0x10A43}, {0x10E60, 0x10E68},
      {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
  return isDecimal(character) || isIn(digits, character);
}

bool jinja::isWord(char32_t character) {
  if (character == '_' || isAlphabetic(character))
    return true;
  switch (categoryOf(character)) {
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO:
    return true;
  default:
    return false;
  }
}

bool jinja::isPrintable(char32_t character) {
  if (character == ' ')
    return true;
  switch (categoryOf(character)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
  case UTF8PROC_CATEGORY_ZS:
    return false;
  default:
    return true;
  }
}

bool jinja::isUpper(char32_t character) {
  // Other_Uppercase of Unicode 14's PropList.txt.
  static constexpr CharacterRange others[] = {{0x2160, 0x216F},
                                              {0x24B6, 0x24CF},
                                              {0x1F130, 0x1F149},
                                              {0x1F150, 0x1F169},
                                              {0x1F170, 0x1F189}};
  return categoryOf(character) == UTF8PROC_CATEGORY_LU ||
         isIn(others, character);
}

bool jinja::isLower(char32_t character) {
  // Other_Lowercase of Unicode 14's PropList.txt.
  static constexpr CharacterRange others[] = {
      {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},
      {0x2C0, 0x2C1},     {0x2E0, 0x2E4},     {0x345, 0x345},
      {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},
      {0x1D9B, 0x1DBF},   {0x2071, 0x2071},   {0x207F, 0x207F},
      {0x2090, 0x209C},   {0x2170, 0x217F},   {0x24D0, 0x24E9},
      {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},
      {0xA7F8, 0xA7F9},   {0xAB5C, 0xAB5F},   {0x10780, 0x10780},
      {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};
  return categoryOf(character) == UTF8PROC_CATEGORY_LL ||
         isIn(others, character);
}

static bool isCased(char32_t character) {
  return isUpper(character) || isLower(character) ||
         categoryOf(character) == UTF8PROC_CATEGORY_LT;
}

bool jinja::endsLine(char32_t character) {
  return (character >= '\n' && character <= '\r') ||
         (character >= 0x1C && character <= 0x1E) || character == 0x85 ||
         character == 0x2028 || character == 0x2029;
}

/// Unicode's Case_Ignorable.
static bool isCaseIgnorable(char32_t character) {
  switch (categoryOf(character)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK:
    return true;
  default:
    break;
  }
  // Punctuation that words go on behind.
  static constexpr CharacterRange marks[] = {
      {0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
      {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
      {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
      {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
  return isIn(marks, character);
}

std::string_view jinja::withoutLeadingSpace(std::string_view text) {
  while (!text.empty() && isSpace(firstCharacter(text)))
    text.remove_prefix(characterLength(text[0]));
  return text;
}

std::string_view jinja::withoutTrailingSpace(std::string_view text) {
  while (!text.empty() && isSpace(lastCharacter(text)))
    text = text.substr(0, lastCharacterOffset(text));
  return text;
}

//===----------------------------------------------------------------------===//
// Case
//===----------------------------------------------------------------------===//

static const CaseExpansion *expansionOf(char32_t character) {
  const CaseExpansion *found = std::lower_bound(
      std::begin(caseExpansions), std::end(caseExpansions), character,
      [](const CaseExpansion &a, char32_t b) { return a.character < b; });
  return found != std::end(caseExpansions) && found->character == character
             ? found
             : nullptr;
}

static void appendAll(std::string &text, const char32_t (&characters)[3]) {
  for (char32_t character : characters)
    if (character)
      appendCharacter(text, character);
}

static void appendUpper(std::string &text, char32_t character) {
  if (const CaseExpansion *expansion = expansionOf(character))
    return appendAll(text, expansion->upper);
  appendCharacter(text, static_cast<char32_t>(utf8proc_toupper(
                            static_cast<utf8proc_int32_t>(character))));
}

static void appendTitle(std::string &text, char32_t character) {
  const CaseExpansion *expansion = expansionOf(character);
  if (expansion && expansion->title[0])
    return appendAll(text, expansion->title);
  appendCharacter(text, static_cast<char32_t>(utf8proc_totitle(
                            static_cast<utf8proc_int32_t>(character))));
}

/// Whether a capital sigma at `offset` ends a word, and so has another lower
/// case: a cased letter comes before it and none after it, whatever is ignored
/// between them.
static bool isFinalSigma(std::string_view text, size_t offset) {
  std::string_view before = text.substr(0, offset);
  while (!before.empty() && isCaseIgnorable(lastCharacter(before)))
    before = before.substr(0, lastCharacterOffset(before));
  if (before.empty() || !isCased(lastCharacter(before)))
    return false;
  std::string_view after = text.substr(offset + characterLength(text[offset]));
  while (!after.empty() && isCaseIgnorable(firstCharacter(after)))
    after.remove_prefix(characterLength(after[0]));
  return after.empty() || !isCased(firstCharacter(after));
}

/// Appends the lower case of the character of `all` at `offset`.
static void appendLower(std::string &text, std::string_view all,
                        size_t offset) {
  const char32_t character = firstCharacter(all.substr(offset));
  if (character == 0x130) {
    // The one character whose lower case is two.
    text += "i\xCC\x87";
    return;
  }
  if (character == 0x3A3)
    return appendCharacter(text, isFinalSigma(all, offset) ? 0x3C2 : 0x3C3);
  appendCharacter(text, static_cast<char32_t>(utf8proc_tolower(
                            static_cast<utf8proc_int32_t>(character))));
}

/// Calls `visit` with each character of `text` and where it begins.
template <typename Visit>
static void forEachCharacter(std::string_view text, Visit visit) {
  for (size_t i = 0; i < text.size(); i += characterLength(text[i]))
    visit(firstCharacter(text.substr(i)), i);
}

std::string jinja::toUpper(std::string_view text) {
  std::string upper;
  upper.reserve(text.size());
  forEachCharacter(
      text, [&](char32_t character, size_t) { appendUpper(upper, character); });
  return upper;
}

std::string jinja::toLower(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  forEachCharacter(text,
                   [&](char32_t, size_t i) { appendLower(lower, text, i); });
  return lower;
}

std::string jinja::swapCase(std::string_view text) {
  std::string swapped;
  swapped.reserve(text.size());
  forEachCharacter(text, [&](char32_t character, size_t i) {
    if (isUpper(character))
      appendLower(swapped, text, i);
    else if (isLower(character))
      appendUpper(swapped, character);
    else
      appendCharacter(swapped, character);
  });
  return swapped;
}

std::string jinja::toTitle(std::string_view text) {
  std::string title;
  title.reserve(text.size());
  bool isInside = false;
  forEachCharacter(text, [&](char32_t character, size_t i) {
    if (isInside)
      appendLower(title, text, i);
    else
      appendTitle(title, character);
    isInside = isCased(character);
  });
  return title;
}

std::string jinja::capitalize(std::string_view text) {
  std::string capitalized;
  capitalized.reserve(text.size());
  forEachCharacter(text, [&](char32_t character, size_t i) {
    if (i == 0)
      appendTitle(capitalized, character);
    else
      appendLower(capitalized, text, i);
  });
  return capitalized;
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

static bool beginsCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

size_t jinja::countCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, beginsCharacter));
}

size_t jinja::offsetOfCharacter(std::string_view text, size_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index)
    offset += characterLength(text[offset]);
  return std::min(offset, text.size());
}
