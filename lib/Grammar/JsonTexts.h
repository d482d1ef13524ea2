//===- JsonTexts.h - The parts that JSON is made of -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_JSONTEXTS_H
#define SANDWICH_LIB_GRAMMAR_JSONTEXTS_H

#include "Expression.h"

#include "sandwich/Grammar/Grammar.h"
#include "sandwich/Support/Json.h"

#include <string_view>

namespace sandwich::grammar {

/// Any string of valid JSON whose characters are Unicode's: no surrogate is
/// alone.
Expression jsonString(ExpressionPool &pool);

/// Any string in which each character is written as `Encoding::JsonString`
/// says, so that equal strings are equal texts.
Expression plainJsonString(ExpressionPool &pool);

/// Values and punctuation, with the whitespace that is allowed.
struct JsonTexts {
  JsonTexts(ExpressionPool &pool, GrammarOptions::Whitespace whitespace);

  /// `value` as one text.
  Expression textOf(ExpressionPool &pool, const Json &value) const;
  /// The string `text` in quotes.
  static Expression quoted(ExpressionPool &pool, Expression text);
  static Expression quoted(ExpressionPool &pool, std::string_view text);

  Expression string, plainString;
  Expression openObject, closeObject, emptyObject;
  Expression openArray, closeArray, emptyArray;
  Expression comma, colon;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_JSONTEXTS_H
