//===- Tests.cpp - Tests of jinja2 ----------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests choose between texts of the template, so that what they say is of the
/// template, whatever they look at.
///
//===----------------------------------------------------------------------===//

#include "Builtins.h"
#include "Characters.h"
#include "Iteration.h"
#include "Operators.h"
#include "Parameters.h"
#include "Printing.h"

using namespace sandwich;
using namespace sandwich::jinja;

static Value answer(bool isSo) { return {isSo, Origin::Template}; }

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

template <Value::Kind kind>
static Result<Value> testKind(RenderState &, const Value &self,
                              BoundArguments) {
  return answer(self.is(kind));
}

template <bool expected>
static Result<Value> testConstant(RenderState &, const Value &self,
                                  BoundArguments) {
  return answer(self.is(Value::Kind::Boolean) && self.boolean() == expected);
}

static Result<Value> testCallable(RenderState &, const Value &self,
                                  BoundArguments) {
  // Python finds that what is not defined has a way to be called: an error.
  if (self.isUndefined())
    return answer(true);
  if (!self.is(Value::Kind::Object))
    return answer(false);
  switch (self.object().kind()) {
  case Object::Kind::BoundMethod:
  case Object::Kind::Function:
  case Object::Kind::Joiner:
  case Object::Kind::Loop:
  case Object::Kind::Macro:
    return answer(true);
  default:
    return answer(false);
  }
}

static Result<Value> testDefined(RenderState &, const Value &self,
                                 BoundArguments) {
  return answer(!self.isUndefined());
}

static Result<Value> testEscaped(RenderState &, const Value &self,
                                 BoundArguments) {
  return answer(self.isString() && self.string().isMarkup);
}

static Result<Value> testIterable(RenderState &, const Value &self,
                                  BoundArguments) {
  const bool isLoop = self.is(Value::Kind::Object) &&
                      self.object().kind() == Object::Kind::Loop;
  return answer(isLoop || ValueIterator::over(self));
}

static Result<Value> testNumber(RenderState &, const Value &self,
                                BoundArguments) {
  return answer(self.isNumber());
}

static Result<Value> testSequence(RenderState &, const Value &self,
                                  BoundArguments) {
  // What has a length and can be indexed.
  return answer(
      self.isUndefined() || self.isString() || self.is(Value::Kind::Sequence) ||
      self.is(Value::Kind::Dictionary) || self.is(Value::Kind::Range));
}

//===----------------------------------------------------------------------===//
// Text and numbers
//===----------------------------------------------------------------------===//

/// Whether `text` has letters with case, and all of them are as `isExpected`.
template <typename IsExpected, typename IsOther>
static bool hasCase(std::string_view text, IsExpected isExpected,
                    IsOther isOther) {
  bool hasAny = false;
  for (size_t i = 0; i < text.size(); i += characterLength(text[i])) {
    const char32_t character = firstCharacter(text.substr(i));
    if (isOther(character))
      return false;
    hasAny |= isExpected(character);
  }
  return hasAny;
}

static Result<Value> testLower(RenderState &state, const Value &self,
                               BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  return answer(hasCase(text.bytes(), isLower, isUpper));
}

static Result<Value> testUpper(RenderState &state, const Value &self,
                               BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  return answer(hasCase(text.bytes(), isUpper, isLower));
}

/// Whether the remainder of a division is `expected`.
static Result<Value> hasRemainder(RenderState &state, const Value &self,
                                  const Value &divisor, int64_t expected) {
  SANDWICH_ASSIGN_OR_RETURN(
      Value remainder,
      applyBinary(state, BinaryOperator::Remainder, self, divisor));
  return answer(equals(state, remainder, Value(expected, Origin::Template)));
}

static Result<Value> testDivisibleBy(RenderState &state, const Value &self,
                                     BoundArguments arguments) {
  return hasRemainder(state, self, *arguments[0], 0);
}

static Result<Value> testEven(RenderState &state, const Value &self,
                              BoundArguments) {
  return hasRemainder(state, self, Value(int64_t{2}, Origin::Template), 0);
}

static Result<Value> testOdd(RenderState &state, const Value &self,
                             BoundArguments) {
  return hasRemainder(state, self, Value(int64_t{2}, Origin::Template), 1);
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

template <ComparisonOperator operation>
static Result<Value> testComparison(RenderState &state, const Value &self,
                                    BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(bool isSo,
                            compare(state, operation, self, *arguments[0]));
  return answer(isSo);
}

static Result<Value> testSameAs(RenderState &, const Value &self,
                                BoundArguments arguments) {
  return answer(self.isSame(*arguments[0]));
}

static Result<Value> testFilter(RenderState &, const Value &self,
                                BoundArguments) {
  return answer(self.isString() && findFilter(self.bytes()));
}

static Result<Value> testTest(RenderState &, const Value &self,
                              BoundArguments) {
  return answer(self.isString() && findTest(self.bytes()));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// A test that compares with another value.
template <ComparisonOperator operation>
static constexpr Test comparisonTest(std::string_view name,
                                     std::string_view parameter = "other") {
  return {{name, testComparison<operation>, nullptr, {parameter}, 1}};
}

const Test *jinja::findTest(std::string_view name) {
  using Operator = ComparisonOperator;
  using Kind = Value::Kind;
  static constexpr Test tests[] = {
      comparisonTest<Operator::NotEqual>("!="),
      comparisonTest<Operator::Less>("<"),
      comparisonTest<Operator::LessOrEqual>("<="),
      comparisonTest<Operator::Equal>("=="),
      comparisonTest<Operator::Greater>(">"),
      comparisonTest<Operator::GreaterOrEqual>(">="),
      {{"boolean", testKind<Kind::Boolean>}},
      {{"callable", testCallable}},
      {{"defined", testDefined}},
      {{"divisibleby", testDivisibleBy, nullptr, {"num"}, 1}},
      comparisonTest<Operator::Equal>("eq"),
      comparisonTest<Operator::Equal>("equalto"),
      {{"escaped", testEscaped}},
      {{"even", testEven}},
      {{"false", testConstant<false>}},
      {{"filter", testFilter}},
      {{"float", testKind<Kind::Float>}},
      comparisonTest<Operator::GreaterOrEqual>("ge"),
      comparisonTest<Operator::Greater>("greaterthan"),
      comparisonTest<Operator::Greater>("gt"),
      comparisonTest<Operator::In>("in", "seq"),
      {{"integer", testKind<Kind::Integer>}},
      {{"iterable", testIterable}},
      comparisonTest<Operator::LessOrEqual>("le"),
      comparisonTest<Operator::Less>("lessthan"),
      {{"lower", testLower}},
      comparisonTest<Operator::Less>("lt"),
      {{"mapping", testKind<Kind::Dictionary>}},
      comparisonTest<Operator::NotEqual>("ne"),
      {{"none", testKind<Kind::None>}},
      {{"number", testNumber}},
      {{"odd", testOdd}},
      {{"sameas", testSameAs, nullptr, {"other"}, 1}},
      {{"sequence", testSequence}},
      {{"string", testKind<Kind::String>}},
      {{"test", testTest}},
      {{"true", testConstant<true>}},
      {{"undefined", testKind<Kind::Undefined>}},
      {{"upper", testUpper}},
  };
  return findByName(tests, name);
}
