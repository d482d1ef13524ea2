//===- Unicode.cpp - Characters and their classes -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Unicode.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utf8proc.h>

using namespace sandwich;
using namespace sandwich::tokenizer;

bool tokenizer::isWhitespace(char32_t character) {
  if (character < 0x80)
    return character == ' ' || (character >= '\t' && character <= '\r');
  if (character == 0x85)
    return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
  case UTF8PROC_CATEGORY_ZS:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return true;
  default:
    return false;
  }
}

bool tokenizer::isWordCharacter(char32_t character) {
  // Join_Control, and the letters in circles and squares, which are alphabetic
  // though their category is that of symbols.
  if ((character >= 0x200C && character <= 0x200D) ||
      (character >= 0x24B6 && character <= 0x24E9) ||
      (character >= 0x1F130 && character <= 0x1F149) ||
      (character >= 0x1F150 && character <= 0x1F169) ||
      (character >= 0x1F170 && character <= 0x1F189))
    return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    return false;
  }
}

bool tokenizer::isControl(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CO:
    return true;
  default:
    return false;
  }
}

bool tokenizer::isMark(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
    return true;
  default:
    return false;
  }
}

bool tokenizer::isNonspacingMark(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character)) ==
         UTF8PROC_CATEGORY_MN;
}

void tokenizer::appendLowercase(std::string &text, char32_t character) {
  // The one character whose lower case is two.
  if (character == 0x130)
    text += "i\xCC\x87";
  else
    appendCharacter(text, static_cast<char32_t>(utf8proc_tolower(
                              static_cast<utf8proc_int32_t>(character))));
}

static bool isAscii(char byte) {
  return static_cast<unsigned char>(byte) < 0x80;
}

size_t tokenizer::graphemeLength(std::string_view text) {
  auto character = static_cast<utf8proc_int32_t>(firstCharacter(text));
  utf8proc_int32_t state = 0;
  size_t length = characterLength(text[0]);
  while (length != text.size()) {
    // Of ASCII only a line's two ends belong together.
    if (isAscii(text[length - 1]) && isAscii(text[length]) &&
        text[length] != '\n')
      break;
    auto next =
        static_cast<utf8proc_int32_t>(firstCharacter(text.substr(length)));
    if (utf8proc_grapheme_break_stateful(character, next, &state))
      break;
    character = next;
    length += characterLength(text[length]);
  }
  return length;
}

std::optional<std::string>
tokenizer::toNormalizationForm(std::string_view text, NormalizationForm form) {
  bool compose =
      form == NormalizationForm::NFC || form == NormalizationForm::NFKC;
  bool compatibility =
      form == NormalizationForm::NFKC || form == NormalizationForm::NFKD;
  // The library's options are an enumeration of flags to be combined.
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange)
  auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
      (compatibility ? UTF8PROC_COMPAT : 0));

  // An ASCII character is never changed and never joins what precedes it, so
  // the text divides before each of them, and ASCII is copied.
  std::string normalized;
  normalized.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    size_t firstOther = static_cast<size_t>(
        std::find_if_not(text.begin() + begin, text.end(), isAscii) -
        text.begin());
    size_t copied = firstOther == text.size() ? firstOther
                    : firstOther > begin      ? firstOther - 1
                                              : begin;
    normalized += text.substr(begin, copied - begin);
    if (copied == text.size())
      break;
    size_t end = static_cast<size_t>(
        std::find_if(text.begin() + firstOther, text.end(), isAscii) -
        text.begin());
    utf8proc_uint8_t *mapped = nullptr;
    utf8proc_ssize_t length = utf8proc_map(
        reinterpret_cast<const utf8proc_uint8_t *>(text.data() + copied),
        static_cast<utf8proc_ssize_t>(end - copied), &mapped, options);
    std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped,
                                                                  &std::free);
    if (length < 0)
      return std::nullopt;
    normalized.append(reinterpret_cast<const char *>(mapped),
                      static_cast<size_t>(length));
    begin = end;
  }
  return normalized;
}
