//===- Pattern.h - Literal and regular-expression search --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_PATTERN_H
#define SANDWICH_LIB_RUNTIME_TEXT_PATTERN_H

#include "JsonField.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::tokenizer {

/// The bytes `[begin, end)` of a text.
struct TextRange {
  size_t begin;
  size_t end;
  size_t size() const { return end - begin; }
};

/// What searching for regular expressions needs beside them: room for a match
/// and a stack. Making one takes longer than searching a short text, so there
/// is one for each encoding. For one thread.
class SearchBuffers {
public:
  SearchBuffers();
  ~SearchBuffers();

private:
  friend class Pattern;
  struct Contents;
  /// Made at the first search for an expression.
  std::unique_ptr<Contents> contents;
};

/// What to look for in a text: a literal or a compiled regular expression.
/// Immutable and shared by copies.
class Pattern {
public:
  /// Reads `{"String": TEXT}` or `{"Regex": EXPRESSION}`. Errors: another
  /// form, an empty literal, or an expression PCRE2 does not accept.
  static Result<Pattern> read(const JsonField &field);

  /// Finds the non-empty bytes of `text`. `name` stands before match errors.
  static Pattern literal(std::string text);

  /// Compiles `expression`; errors say where it is wrong.
  static Result<Pattern> regularExpression(const std::string &expression,
                                           std::string name);

  bool isRegularExpression() const { return code != nullptr; }

  /// Appends all matches in `text` (valid UTF-8), which do not overlap, from
  /// left to right; a match may be empty. Errors: a match limit is exceeded.
  Status findAll(std::string_view text, SearchBuffers &buffers,
                 std::vector<TextRange> &matches) const;

private:
  struct Code;
  Status findExpression(std::string_view text, SearchBuffers &buffers,
                        std::vector<TextRange> &matches) const;

  std::string name;
  std::string text;
  std::shared_ptr<const Code> code;
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_PATTERN_H
