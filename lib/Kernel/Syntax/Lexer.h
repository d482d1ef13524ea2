//===- Lexer.h - From characters to tokens ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_SYNTAX_LEXER_H
#define SANDWICH_LIB_KERNEL_SYNTAX_LEXER_H

#include "sandwich/Kernel/Syntax.h"

namespace sandwich::kernel::syntax {

struct Token {
  enum class Kind {
    Name,
    Integer,
    Float,
    /// What is between quotes is `text`.
    String,
    /// An operator or a bracket, or a word that Python keeps.
    Symbol,
    /// The end of a line that is not within brackets.
    EndOfLine,
    Indent,
    Dedent,
    EndOfText,
  };
  Kind kind;
  Place place;
  std::string text = {};
  int64_t integer = 0;
  double number = 0;
  /// Lines of comments that end before the token's line.
  std::string comment = {};
};

/// The tokens of `text`, of which the last is its end; nothing, with `error`
/// set, if there are others than tokens.
std::optional<std::vector<Token>> tokenize(std::string_view text,
                                           SyntaxError &error);

} // namespace sandwich::kernel::syntax

#endif // SANDWICH_LIB_KERNEL_SYNTAX_LEXER_H
