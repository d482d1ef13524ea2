//===- CharacterSet.h - Sets of characters, and their bytes -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_CHARACTERSET_H
#define SANDWICH_LIB_GRAMMAR_CHARACTERSET_H

#include "Expression.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::grammar {

/// How the characters of a text are written.
enum class Encoding {
  Utf8,
  /// Inside of a JSON string: UTF-8 wherever JSON allows it, otherwise the
  /// short escape or else `\u` with lower-case digits. So each character is
  /// written in one way.
  JsonString,
};

/// A set of Unicode's characters, which surrogates are not.
class CharacterSet {
public:
  CharacterSet() = default;
  static CharacterSet all() { return CharacterSet().complement(); }

  CharacterSet &add(char32_t first, char32_t last);
  CharacterSet &add(char32_t character) { return add(character, character); }
  CharacterSet &add(const CharacterSet &other);
  CharacterSet complement() const;
  bool contains(char32_t character) const;
  /// The smallest member; nothing if there is none.
  std::optional<char32_t> first() const {
    return ranges.empty() ? std::nullopt : std::optional(ranges.front().first);
  }

  /// The texts of one character of the set.
  Expression expression(ExpressionPool &pool, Encoding encoding) const;

private:
  struct Range {
    char32_t first, last;
  };

  /// Adds the texts of `first` to `last` in UTF-8 to `parts`.
  static void addUtf8(ExpressionPool &pool, char32_t first, char32_t last,
                      std::vector<Expression> &parts);

  /// Ascending and apart.
  std::vector<Range> ranges;
};

/// `text`, which is UTF-8, as `Encoding::JsonString` writes it, without quotes.
std::string jsonEscaped(std::string_view text);

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_CHARACTERSET_H
