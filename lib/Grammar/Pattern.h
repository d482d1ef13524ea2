//===- Pattern.h - Regular expressions as they are written ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_PATTERN_H
#define SANDWICH_LIB_GRAMMAR_PATTERN_H

#include "CharacterSet.h"
#include "Expression.h"

#include "sandwich/Support/Result.h"

#include <string_view>

namespace sandwich::grammar {

/// What of a text a pattern describes.
enum class PatternScope {
  /// All of it.
  Whole,
  /// A part, unless it begins with `^` or ends with `$`: ECMA-262's `test`,
  /// which the keyword `pattern` of JSON schemas is defined by.
  Part,
};

/// The texts that `pattern` describes, the subset of ECMA-262 that
/// docs/RationaleGrammar.md lists. Errors (`InvalidArgument`): what is not
/// regular or not supported, by its name and byte offset.
Result<Expression> parsePattern(ExpressionPool &pool, std::string_view pattern,
                                PatternScope scope, Encoding encoding);

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_PATTERN_H
