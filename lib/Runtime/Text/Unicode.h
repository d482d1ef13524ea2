//===- Unicode.h - Characters and their classes -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_UNICODE_H
#define SANDWICH_LIB_RUNTIME_TEXT_UNICODE_H

#include "sandwich/Support/Utf8.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich::tokenizer {

/// U+FFFD in UTF-8, which stands for bytes that form no character.
inline constexpr std::string_view replacementCharacter = "\xEF\xBF\xBD";

/// The first character of valid, nonempty UTF-8.
inline char32_t firstCharacter(std::string_view text) {
  auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  switch (characterLength(text[0])) {
  case 1:
    return byte(0);
  case 2:
    return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  case 3:
    return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  default:
    return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 |
           (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

/// Where the last character of valid, nonempty UTF-8 begins.
inline size_t lastCharacterOffset(std::string_view text) {
  size_t offset = text.size() - 1;
  while (offset > 0 &&
         (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80)
    --offset;
  return offset;
}

/// The last character of valid, nonempty UTF-8.
inline char32_t lastCharacter(std::string_view text) {
  return firstCharacter(text.substr(lastCharacterOffset(text)));
}

/// Appends `character`, a Unicode scalar value, in UTF-8.
void appendCharacter(std::string &text, char32_t character);

/// Unicode's White_Space.
bool isWhitespace(char32_t character);

/// What `\w` matches in Unicode's regular expressions (UTS #18): alphabetic
/// characters, marks, decimal numbers, connectors and joiners.
bool isWordCharacter(char32_t character);

/// The lower case of each character, in UTF-8.
std::string toLowercase(std::string_view text);

/// Unicode's normalization forms.
enum class NormalizationForm { NFC, NFD, NFKC, NFKD };

/// `text`, valid UTF-8, in `form`; nothing if memory ran out.
std::optional<std::string> toNormalizationForm(std::string_view text,
                                               NormalizationForm form);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_UNICODE_H
