//===- Float8.h - Floats of eight bits --------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// E4M3 of the OCP 8-bit Floating Point Specification, which others call
/// E4M3FN: a sign, four bits of an exponent with a bias of 7, and three of a
/// mantissa. It has subnormal numbers, of steps of 2^-9, and no infinities:
/// only numbers whose bits are all ones but for the sign are none, so that the
/// largest is 448.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_QUANTIZATION_FLOAT8_H
#define SANDWICH_QUANTIZATION_FLOAT8_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace sandwich {

inline constexpr float largestFloat8 = 448;

inline constexpr bool isFloat8NaN(uint8_t number) {
  return (number & 0x7f) == 0x7f;
}

/// What numbers count for after their exponent is taken for one of f32, whose
/// bias is 120 more.
inline constexpr float float8Unit = 0x1p120f;

/// What `number` stands for.
inline constexpr float fromFloat8(uint8_t number) {
  if (isFloat8NaN(number))
    return std::numeric_limits<float>::quiet_NaN();
  const uint32_t sign = number & 0x80, magnitude = number & 0x7f;
  const uint32_t bits = (sign << 24) | (magnitude << 20);
  return std::bit_cast<float>(bits) * float8Unit;
}

/// The value of a number next to `value`, ties to even; the largest of its sign
/// where that is beyond all, and the positive 0 for both. `value` is not NaN.
inline constexpr float roundToFloat8(float value) {
  const float clamped = std::clamp(value, -largestFloat8, largestFloat8);
  // Adding and taking away one and a half times the power of two whose last bit
  // counts as much as that of the number rounds to even, and vectorizes.
  constexpr uint32_t exponentMask = 0x7f800000, half = 0x00400000;
  constexpr uint32_t leastExponent = std::bit_cast<uint32_t>(0x1p-6f);
  constexpr uint32_t bitsLess = (23 - 3) << 23;
  const uint32_t exponent =
      std::max(std::bit_cast<uint32_t>(clamped) & exponentMask, leastExponent);
  const auto rounder = std::bit_cast<float>((exponent + bitsLess) | half);
  return (clamped + rounder) - rounder;
}

/// The number that stands for `value`, which `roundToFloat8` gave.
inline constexpr uint8_t toFloat8(float value) {
  const auto bits = std::bit_cast<uint32_t>(value / float8Unit);
  return static_cast<uint8_t>(((bits >> 24) & 0x80) | ((bits >> 20) & 0x7f));
}

} // namespace sandwich

#endif // SANDWICH_QUANTIZATION_FLOAT8_H
