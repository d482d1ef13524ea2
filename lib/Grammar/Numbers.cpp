//===- Numbers.cpp - JSON numbers within bounds ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

using namespace sandwich;
using namespace sandwich::grammar;

Decimal Decimal::of(const Json &number) {
  std::array<char, 512> buffer;
  std::to_chars_result written{};
  char *begin = buffer.data(), *end = begin + buffer.size();
  if (number.is_number_unsigned())
    written = std::to_chars(begin, end, number.get<uint64_t>());
  else if (number.is_number_integer())
    written = std::to_chars(begin, end, number.get<int64_t>());
  else
    // At most 309 digits before the point, or 343 characters altogether.
    written = std::to_chars(begin, end, number.get<double>(),
                            std::chars_format::fixed);
  std::string_view text(begin, static_cast<size_t>(written.ptr - begin));
  Decimal decimal;
  decimal.negative = text.starts_with('-');
  if (decimal.negative)
    text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  decimal.integer = text.substr(0, point);
  if (point < text.size())
    decimal.fraction = text.substr(point + 1);
  while (decimal.fraction.ends_with('0'))
    decimal.fraction.pop_back();
  if (decimal.isZero())
    decimal.negative = false;
  return decimal;
}

std::string Decimal::text() const {
  return (negative ? "-" : "") + integer +
         (fraction.empty() ? "" : "." + fraction);
}

namespace {

/// Texts of numbers that are not negative, without exponent.
class NumberWriter {
public:
  NumberWriter(ExpressionPool &pool, bool integer)
      : pool(pool), integer(integer), digit(pool.bytes('0', '9')),
        digits(pool.repeat(digit, 0, ExpressionPool::unlimited)),
        zeros(pool.repeat(pool.bytes('0', '0'), 0, ExpressionPool::unlimited)),
        point(pool.bytes('.', '.')) {}

  Expression all() { return pool.concat(integers(), anyFraction()); }
  /// Those from `bound` on, or beyond it.
  Expression atLeast(const Decimal &bound, bool exclusive);
  /// Those up to `bound`, or below it.
  Expression atMost(const Decimal &bound, bool exclusive);
  /// Multiples of 10 to the `power`.
  Expression multiples(int power);

private:
  using Count = uint32_t;

  Expression integers() {
    return pool.either(pool.bytes('0', '0'),
                       pool.concat(pool.bytes('1', '9'), digits));
  }
  Expression anyFraction() {
    return integer ? ExpressionPool::empty
                   : pool.optional(pool.concat({point, digit, digits}));
  }
  /// A digit other than zero among others.
  Expression notOnlyZeros() {
    return pool.concat({digits, pool.bytes('1', '9'), digits});
  }
  Expression integersAbove(const std::string &bound);
  Expression integersBelow(const std::string &bound);
  Expression fractionsFrom(const std::string &bound, bool exclusive);
  Expression fractionsUpTo(const std::string &bound, bool exclusive);

  ExpressionPool &pool;
  bool integer;
  Expression digit, digits, zeros, point;
};

} // namespace

static uint32_t lengthOf(const std::string &text) {
  return static_cast<uint32_t>(text.size());
}

Expression NumberWriter::integersAbove(const std::string &bound) {
  const Count length = lengthOf(bound);
  // More digits, or a larger digit after the same ones.
  std::vector<Expression> parts = {
      pool.concat(pool.bytes('1', '9'),
                  pool.repeat(digit, length, ExpressionPool::unlimited))};
  for (Count i = 0; i < length; ++i)
    if (bound[i] < '9')
      parts.push_back(
          pool.concat({pool.literal(bound.substr(0, i)),
                       pool.bytes(static_cast<uint8_t>(bound[i] + 1), '9'),
                       pool.repeat(digit, length - i - 1, length - i - 1)}));
  return pool.either(std::move(parts));
}

Expression NumberWriter::integersBelow(const std::string &bound) {
  const Count length = lengthOf(bound);
  std::vector<Expression> parts;
  if (length > 1) {
    parts.push_back(pool.bytes('0', '0'));
    parts.push_back(
        pool.concat(pool.bytes('1', '9'), pool.repeat(digit, 0, length - 2)));
  }
  for (Count i = 0; i < length; ++i) {
    const char least = i == 0 && length > 1 ? '1' : '0';
    if (bound[i] > least)
      parts.push_back(
          pool.concat({pool.literal(bound.substr(0, i)),
                       pool.bytes(static_cast<uint8_t>(least),
                                  static_cast<uint8_t>(bound[i] - 1)),
                       pool.repeat(digit, length - i - 1, length - i - 1)}));
  }
  return pool.either(std::move(parts));
}

/// Fractions, with their point, of at least 0.`bound`; none is 0.
Expression NumberWriter::fractionsFrom(const std::string &bound,
                                       bool exclusive) {
  if (bound.empty() && !exclusive)
    return anyFraction();
  if (integer)
    return ExpressionPool::nothing;
  const Expression rest = exclusive ? notOnlyZeros() : digits;
  std::vector<Expression> parts = {pool.concat(pool.literal(bound), rest)};
  for (Count i = 0; i < lengthOf(bound); ++i)
    if (bound[i] < '9')
      parts.push_back(pool.concat(
          {pool.literal(bound.substr(0, i)),
           pool.bytes(static_cast<uint8_t>(bound[i] + 1), '9'), digits}));
  return pool.concat(point, pool.either(std::move(parts)));
}

/// Fractions, with their point, of at most 0.`bound`; none is 0.
Expression NumberWriter::fractionsUpTo(const std::string &bound,
                                       bool exclusive) {
  if (bound.empty() && exclusive)
    return ExpressionPool::nothing;
  if (integer)
    return ExpressionPool::empty;
  std::vector<Expression> parts;
  if (bound.empty())
    parts.push_back(pool.concat(pool.bytes('0', '0'), zeros));
  else if (!exclusive)
    parts.push_back(pool.concat(pool.literal(bound), zeros));
  for (Count i = 0; i < lengthOf(bound); ++i) {
    if (i > 0)
      parts.push_back(pool.literal(bound.substr(0, i)));
    if (bound[i] > '0')
      parts.push_back(pool.concat(
          {pool.literal(bound.substr(0, i)),
           pool.bytes('0', static_cast<uint8_t>(bound[i] - 1)), digits}));
  }
  return pool.optional(pool.concat(point, pool.either(std::move(parts))));
}

Expression NumberWriter::atLeast(const Decimal &bound, bool exclusive) {
  return pool.either(pool.concat(integersAbove(bound.integer), anyFraction()),
                     pool.concat(pool.literal(bound.integer),
                                 fractionsFrom(bound.fraction, exclusive)));
}

Expression NumberWriter::atMost(const Decimal &bound, bool exclusive) {
  return pool.either(pool.concat(integersBelow(bound.integer), anyFraction()),
                     pool.concat(pool.literal(bound.integer),
                                 fractionsUpTo(bound.fraction, exclusive)));
}

Expression NumberWriter::multiples(int power) {
  if (power >= 0) {
    const auto count = static_cast<Count>(power);
    const Expression zero = pool.bytes('0', '0');
    const Expression whole =
        pool.either(zero, pool.concat({pool.bytes('1', '9'), digits,
                                       pool.repeat(zero, count, count)}));
    return integer
               ? whole
               : pool.concat(whole,
                             pool.optional(pool.concat({point, zero, zeros})));
  }
  if (integer)
    return all();
  const auto count = static_cast<Count>(-power);
  return pool.concat(
      integers(),
      pool.optional(pool.concat(
          {point, digit, pool.repeat(digit, 0, count - 1), zeros})));
}

/// Of numbers that are finite as doubles, which many readers insist on.
static Expression exponents(ExpressionPool &pool) {
  const Expression digit = pool.bytes('0', '9');
  return pool.concat(
      pool.either(pool.bytes('e', 'e'), pool.bytes('E', 'E')),
      pool.either(pool.concat(pool.optional(pool.bytes('+', '+')),
                              pool.repeat(digit, 1, 2)),
                  pool.concat(pool.bytes('-', '-'), pool.repeat(digit, 1, 3))));
}

Expression sandwich::grammar::numbers(ExpressionPool &pool,
                                      const NumberBounds &bounds) {
  NumberWriter writer(pool, bounds.integer);
  const Expression minus = pool.bytes('-', '-');
  if (!bounds.isBounded()) {
    const Expression number = pool.concat(pool.optional(minus), writer.all());
    if (bounds.integer)
      return number;
    return pool.concat(number, pool.optional(exponents(pool)));
  }
  std::vector<Expression> positive = {writer.all()};
  // Zero has no sign here.
  std::vector<Expression> negative = {writer.atLeast({}, true)};
  if (bounds.powerOfTen)
    for (std::vector<Expression> *each : {&positive, &negative})
      each->push_back(writer.multiples(*bounds.powerOfTen));
  if (bounds.lower) {
    const auto &[value, exclusive] = *bounds.lower;
    if (value.negative)
      negative.push_back(writer.atMost(value, exclusive));
    else {
      negative.push_back(ExpressionPool::nothing);
      positive.push_back(writer.atLeast(value, exclusive));
    }
  }
  if (bounds.upper) {
    const auto &[value, exclusive] = *bounds.upper;
    if (value.negative) {
      positive.push_back(ExpressionPool::nothing);
      negative.push_back(writer.atLeast(value, exclusive));
    } else
      positive.push_back(writer.atMost(value, exclusive));
  }
  return pool.either(pool.both(std::move(positive)),
                     pool.concat(minus, pool.both(std::move(negative))));
}
