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

} // namespace sandwich

#endif // SANDWICH_SUPPORT_UTF8_H
