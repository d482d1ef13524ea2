//===- JsonTexts.cpp - The parts that JSON is made of ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonTexts.h"

#include "CharacterSet.h"

using namespace sandwich;
using namespace sandwich::grammar;

/// `character`, as often as you like, in quotes.
static Expression stringOf(ExpressionPool &pool, Expression character) {
  return JsonTexts::quoted(
      pool, pool.repeat(character, 0, ExpressionPool::unlimited));
}

Expression sandwich::grammar::jsonString(ExpressionPool &pool) {
  auto anyOf = [&](std::string_view characters) {
    ByteSet set;
    for (char character : characters)
      set.set(static_cast<uint8_t>(character));
    return pool.bytes(set);
  };
  constexpr std::string_view digits = "0123456789abcdefABCDEF";
  const Expression digit = anyOf(digits);
  const Expression inD = anyOf("dD");
  // Of four digits; those of surrogates are D8 to DB for the first of two, and
  // DC to DF for the second.
  const Expression notSurrogate = pool.either(
      pool.concat({anyOf("0123456789abcefABCEF"), digit, digit, digit}),
      pool.concat({inD, anyOf("01234567"), digit, digit}));
  const Expression pair =
      pool.concat({inD, anyOf("89abAB"), digit, digit, pool.literal("\\u"), inD,
                   anyOf("cdefCDEF"), digit, digit});
  const Expression escape =
      pool.concat(pool.literal("\\"),
                  pool.either(anyOf("\"\\/bfnrt"),
                              pool.concat(pool.literal("u"),
                                          pool.either(notSurrogate, pair))));
  const Expression raw =
      CharacterSet().add(0, 0x1F).add('"').add('\\').complement().expression(
          pool, Encoding::Utf8);
  return stringOf(pool, pool.either(raw, escape));
}

Expression sandwich::grammar::plainJsonString(ExpressionPool &pool) {
  return stringOf(pool,
                  CharacterSet::all().expression(pool, Encoding::JsonString));
}

Expression JsonTexts::quoted(ExpressionPool &pool, Expression text) {
  const Expression quote = pool.bytes('"', '"');
  return pool.concat({quote, text, quote});
}

Expression JsonTexts::quoted(ExpressionPool &pool, std::string_view text) {
  return quoted(pool, pool.literal(jsonEscaped(text)));
}

/// Columns of indentation at most.
static constexpr uint32_t mostIndentation = 64;

JsonTexts::JsonTexts(ExpressionPool &pool,
                     GrammarOptions::Whitespace whitespace)
    : string(jsonString(pool)), plainString(plainJsonString(pool)) {
  const Expression space = pool.bytes(' ', ' ');
  Expression inside = ExpressionPool::empty, after = ExpressionPool::empty;
  Expression afterComma = ExpressionPool::empty;
  if (whitespace != GrammarOptions::Whitespace::None)
    after = afterComma = pool.optional(space);
  if (whitespace == GrammarOptions::Whitespace::Lines) {
    const Expression line = pool.concat(pool.bytes('\n', '\n'),
                                        pool.repeat(space, 0, mostIndentation));
    inside = pool.optional(line);
    afterComma = pool.either(after, line);
  }
  auto text = [&](std::string_view literal) { return pool.literal(literal); };
  openObject = pool.concat(text("{"), inside);
  closeObject = pool.concat(inside, text("}"));
  emptyObject = text("{}");
  openArray = pool.concat(text("["), inside);
  closeArray = pool.concat(inside, text("]"));
  emptyArray = text("[]");
  comma = pool.concat(text(","), afterComma);
  colon = pool.concat(text(":"), after);
}

Expression JsonTexts::textOf(ExpressionPool &pool, const Json &value) const {
  if (value.is_string())
    return quoted(pool, value.get_ref<const std::string &>());
  if (!value.is_structured())
    return pool.literal(value.dump());
  const bool isObject = value.is_object();
  if (value.empty())
    return isObject ? emptyObject : emptyArray;
  Expression text = isObject ? closeObject : closeArray;
  for (auto member = value.crbegin(); member != value.crend(); ++member) {
    text = pool.concat(textOf(pool, *member), text);
    if (isObject)
      text = pool.concat({quoted(pool, member.key()), colon, text});
    if (std::next(member) != value.crend())
      text = pool.concat(comma, text);
  }
  return pool.concat(isObject ? openObject : openArray, text);
}
