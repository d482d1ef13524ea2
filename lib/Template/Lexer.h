//===- Lexer.h - Templates as tokens ----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_LEXER_H
#define SANDWICH_LIB_TEMPLATE_LEXER_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::jinja {

struct Token {
  enum class Kind : uint8_t {
    Data, ///< text outside of all tags
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name,
    String, ///< with its quotes
    Integer,
    Float,
    Operator,
    End, ///< of the template
  };
  Kind kind;
  std::string_view text; ///< of the source, or a literal
  uint32_t line;         ///< from 1
};

/// The source with each end of a line written as "\n", and without the last.
std::string normalizeLines(std::string_view source);

/// Cuts `source`, normalized UTF-8 that outlives the tokens, into tokens, the
/// last of which is `End`. Text is without what trim_blocks, lstrip_blocks, "-"
/// and comments take away. Errors name the line.
Result<std::vector<Token>> lex(std::string_view source);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_LEXER_H
