//===- Utf8.h - Characters in bytes -----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_UTF8_H
#define SANDWICH_SUPPORT_UTF8_H

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich {

/// What the first bytes of a text are.
struct Utf8Prefix {
  enum class Kind {
    Character, ///< `length` bytes are one character
    Cut,       ///< all `length` bytes of the text begin one character
    Invalid,   ///< `length` bytes are not, and cannot become, a character
  };
  Kind kind;
  size_t length;
};

/// Classifies the beginning of `text`, which is not empty. Invalid bytes are
/// taken by maximal subparts (Unicode 15, section 3.9), so that each `Invalid`
/// is replaced by one U+FFFD.
Utf8Prefix scanUtf8(std::string_view text);

/// The offset of the first byte that is not part of valid UTF-8, or nothing.
std::optional<size_t> findInvalidUtf8(std::string_view text);

/// The length in bytes of the character that begins with `lead`, in valid
/// UTF-8.
inline size_t characterLength(char lead) {
  auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

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

/// `text` for a terminal or a page: at most 200 bytes, without control
/// characters and what is not UTF-8.
std::string printable(std::string_view text);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_UTF8_H
