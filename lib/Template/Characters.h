//===- Characters.h - Python's classes of characters ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What Python's `str` says of characters, and its changes of case. Texts are
/// valid UTF-8.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_CHARACTERS_H
#define SANDWICH_LIB_TEMPLATE_CHARACTERS_H

#include "sandwich/Support/Utf8.h"

#include <string>
#include <string_view>

namespace sandwich::jinja {

/// `str.isspace`, which is also what `\s` and `strip` take for whitespace.
bool isSpace(char32_t character);
/// `str.isalpha`.
bool isAlphabetic(char32_t character);
/// `str.isdecimal`.
bool isDecimal(char32_t character);
/// `str.isdigit`.
bool isDigit(char32_t character);
/// What `\w` matches.
bool isWord(char32_t character);
/// `str.isprintable`.
bool isPrintable(char32_t character);
/// `str.isupper` and `str.islower` of one character.
bool isUpper(char32_t character);
bool isLower(char32_t character);
/// Whether `str.splitlines` ends a line here.
bool endsLine(char32_t character);

/// The parts of `text` without whitespace at its ends.
std::string_view withoutLeadingSpace(std::string_view text);
std::string_view withoutTrailingSpace(std::string_view text);

/// `str.upper`, `str.lower`, `str.swapcase`, `str.title` and
/// `str.capitalize`.
std::string toUpper(std::string_view text);
std::string toLower(std::string_view text);
std::string swapCase(std::string_view text);
std::string toTitle(std::string_view text);
std::string capitalize(std::string_view text);

/// The number of characters.
size_t countCharacters(std::string_view text);
/// Where the character `index` begins; the end, if there are not as many.
size_t offsetOfCharacter(std::string_view text, size_t index);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_CHARACTERS_H
