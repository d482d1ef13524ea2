//===- Numbers.h - JSON numbers within bounds -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_NUMBERS_H
#define SANDWICH_LIB_GRAMMAR_NUMBERS_H

#include "Expression.h"

#include "sandwich/Support/Json.h"

#include <optional>
#include <string>

namespace sandwich::grammar {

/// A number as its decimal digits.
struct Decimal {
  bool negative = false;
  /// Without leading zeros; "0" below 1.
  std::string integer = "0";
  /// Without trailing zeros.
  std::string fraction = {};

  /// `number` must be one. Of a double, the shortest decimal that rounds to it.
  static Decimal of(const Json &number);

  bool isZero() const { return integer == "0" && fraction.empty(); }
  bool isInteger() const { return fraction.empty(); }
  /// As JSON without an exponent.
  std::string text() const;
};

/// What the numbers of a schema keep to.
struct NumberBounds {
  struct Bound {
    Decimal value;
    bool exclusive = false;
  };

  bool integer = false;
  std::optional<Bound> lower = std::nullopt, upper = std::nullopt;
  /// A power of ten that they are multiples of: 10 to this.
  std::optional<int> powerOfTen = std::nullopt;

  bool isBounded() const { return lower || upper || powerOfTen; }
};

/// Numbers as JSON writes them; integers without fraction and exponent, and so
/// numbers that have bounds without exponent.
Expression numbers(ExpressionPool &pool, const NumberBounds &bounds);

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_NUMBERS_H
