//===- CheckedMath.h - Arithmetic on untrusted sizes ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sizes that come from a file are only ever combined through these functions;
/// they return nothing on overflow instead of wrapping.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_CHECKEDMATH_H
#define SANDWICH_SUPPORT_CHECKEDMATH_H

#include <concepts>
#include <optional>

namespace sandwich {

/// `a + b`, or nothing if it does not fit.
template <std::integral T> std::optional<T> checkedAdd(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

/// `a * b`, or nothing if it does not fit.
template <std::integral T> std::optional<T> checkedMultiply(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

/// `value` rounded up to a multiple of `alignment` (not zero), or nothing if
/// that does not fit.
template <std::unsigned_integral T>
std::optional<T> checkedAlign(T value, T alignment) {
  T remainder = value % alignment;
  return remainder ? checkedAdd<T>(value, alignment - remainder) : value;
}

/// `a / b` (`a` not negative, `b` positive) rounded up; cannot overflow.
template <std::integral T> constexpr T divideUp(T a, T b) {
  return a / b + (a % b != 0);
}

/// `a` (not negative) rounded up to a multiple of `b` (positive), which fits.
template <std::integral T> constexpr T roundUp(T a, T b) {
  return divideUp(a, b) * b;
}

} // namespace sandwich

#endif // SANDWICH_SUPPORT_CHECKEDMATH_H
