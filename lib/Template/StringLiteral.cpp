//===- StringLiteral.cpp - Escapes in templates ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StringLiteral.h"

#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <charconv>

using namespace sandwich;
using namespace sandwich::jinja;

/// What one letter behind a backslash stands for, or 0.
static char simpleEscape(char letter) {
  switch (letter) {
  case '\\':
  case '\'':
  case '"':
    return letter;
  case 'a':
    return '\a';
  case 'b':
    return '\b';
  case 'f':
    return '\f';
  case 'n':
    return '\n';
  case 'r':
    return '\r';
  case 't':
    return '\t';
  case 'v':
    return '\v';
  default:
    return 0;
  }
}

/// How many hexadecimal digits follow `letter`, or 0.
static size_t hexadecimalDigits(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

/// Takes the digits of a number of `base` off the beginning of `rest`, at least
/// `least` and at most `most`, and appends the character of that number.
static Status takeNumber(std::string_view &rest, size_t least, size_t most,
                         int base, std::string &text) {
  const std::string_view digits = rest.substr(0, most);
  uint32_t number = 0;
  const auto parsed = std::from_chars(
      digits.data(), digits.data() + digits.size(), number, base);
  const auto length = static_cast<size_t>(parsed.ptr - digits.data());
  if (length < least)
    return Error{"a string ends within the number of a character"};
  if (number > 0x10FFFF || (number >= 0xD800 && number <= 0xDFFF))
    return Error{"a string has the number of no character"};
  appendCharacter(text, number);
  rest.remove_prefix(length);
  return {};
}

Status jinja::appendStringLiteral(std::string_view literal, std::string &text) {
  while (!literal.empty()) {
    const size_t backslash = std::min(literal.find('\\'), literal.size());
    text += literal.substr(0, backslash);
    literal.remove_prefix(backslash);
    if (literal.size() < 2)
      break;
    const char letter = literal[1];
    if (letter == '\n') {
      literal.remove_prefix(2);
    } else if (const char simple = simpleEscape(letter)) {
      text += simple;
      literal.remove_prefix(2);
    } else if (const size_t digits = hexadecimalDigits(letter)) {
      literal.remove_prefix(2);
      SANDWICH_RETURN_IF_ERROR(takeNumber(literal, digits, digits, 16, text));
    } else if (letter >= '0' && letter <= '7') {
      literal.remove_prefix(1);
      SANDWICH_RETURN_IF_ERROR(takeNumber(literal, 1, 3, 8, text));
    } else if (letter == 'N') {
      return Error{"characters by name, \\N{...}, are not supported"};
    } else {
      text += '\\';
      literal.remove_prefix(1);
    }
  }
  return {};
}
