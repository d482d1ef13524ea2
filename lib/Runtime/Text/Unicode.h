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

#include <optional>
#include <string>
#include <string_view>

namespace sandwich::tokenizer {

/// U+FFFD in UTF-8, which stands for bytes that form no character.
inline constexpr std::string_view replacementCharacter = "\xEF\xBF\xBD";

/// Unicode's White_Space.
bool isWhitespace(char32_t character);

/// What `\w` matches in Unicode's regular expressions (UTS #18): alphabetic
/// characters, marks, decimal numbers, connectors and joiners.
bool isWordCharacter(char32_t character);

/// Categories of Unicode 15. Hugging Face's library has these from Unicode 8,
/// so what has come since then, mostly in scripts that are hardly written, is
/// in none of them there.
bool isControl(char32_t character); ///< Cc, Cf and Co
bool isMark(char32_t character);    ///< Mn, Mc and Me
bool isNonspacingMark(char32_t character);

/// Appends the lower case of `character`.
void appendLowercase(std::string &text, char32_t character);

/// The length in bytes of the first grapheme cluster (UAX #29) of valid,
/// nonempty UTF-8.
size_t graphemeLength(std::string_view text);

/// Unicode's normalization forms.
enum class NormalizationForm { NFC, NFD, NFKC, NFKD };

/// `text`, valid UTF-8, in `form`; nothing if memory ran out.
std::optional<std::string> toNormalizationForm(std::string_view text,
                                               NormalizationForm form);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_UNICODE_H
