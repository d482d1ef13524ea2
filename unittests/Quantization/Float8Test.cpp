//===- Float8Test.cpp - Floats of eight bits ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Quantization/Float8.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace sandwich;

namespace {

/// What the specification says of each number, from 0 on.
std::vector<double> valuesOfNumbers() {
  std::vector<double> values;
  for (int number = 0; number < 256; ++number) {
    const int exponent = number / 8 % 16, mantissa = number % 8;
    double value = exponent == 0 ? std::ldexp(mantissa, -6 - 3)
                                 : std::ldexp(1 + mantissa / 8.0, exponent - 7);
    if (exponent == 15 && mantissa == 7)
      value = std::numeric_limits<double>::quiet_NaN();
    values.push_back(number < 128 ? value : -value);
  }
  return values;
}

TEST(Float8, NumbersStandForWhatTheSpecificationSays) {
  const std::vector<double> values = valuesOfNumbers();
  for (int number = 0; number < 256; ++number) {
    const float value = fromFloat8(static_cast<uint8_t>(number));
    EXPECT_EQ(std::isnan(value), std::isnan(values[number])) << number;
    EXPECT_EQ(isFloat8NaN(static_cast<uint8_t>(number)),
              std::isnan(values[number]))
        << number;
    if (std::isnan(value))
      continue;
    EXPECT_EQ(value, values[number]) << number;
    EXPECT_EQ(std::signbit(value), number >= 128) << number;
    EXPECT_EQ(roundToFloat8(value), value) << number;
    EXPECT_EQ(toFloat8(value), number);
  }
  EXPECT_EQ(values[0x7e], largestFloat8);
  EXPECT_EQ(values[1], 0x1p-9);
}

/// The number next to `value` of all there are, the even one of two.
uint8_t nearestOfAll(const std::vector<double> &values, double value) {
  uint8_t nearest = 0;
  for (int number = 0; number < 256; ++number) {
    if (std::isnan(values[number]) ||
        std::signbit(values[number]) != std::signbit(value))
      continue;
    const double distance = std::abs(values[number] - value);
    const double least = std::abs(values[nearest] - value);
    if (std::signbit(values[nearest]) != std::signbit(value) ||
        distance < least || (distance == least && number % 2 == 0))
      nearest = static_cast<uint8_t>(number);
  }
  return nearest;
}

TEST(Float8, ValuesAreRoundedToTheNearest) {
  const std::vector<double> values = valuesOfNumbers();
  std::vector<float> tried = {0.0f,
                              -0.0f,
                              1e-45f,
                              -1e-45f,
                              0x1p-10f,
                              -0x1p-10f,
                              448.0f,
                              464.0f,
                              -465.0f,
                              1e30f,
                              std::numeric_limits<float>::infinity()};
  // Halves between numbers, and what is beside them.
  for (int number = 0; number < 0x7e; ++number) {
    const auto half =
        static_cast<float>((values[number] + values[number + 1]) / 2);
    for (float value :
         {half, std::nextafter(half, 0.0f), std::nextafter(half, 1000.0f)}) {
      tried.push_back(value);
      tried.push_back(-value);
    }
  }
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 5000; ++i)
    tried.push_back(normal(random) *
                    std::ldexp(1.0f, static_cast<int>(random() % 20) - 11));
  for (float value : tried) {
    uint8_t expected = nearestOfAll(values, value);
    // There are two zeros.
    if (expected == 0x80)
      expected = 0;
    EXPECT_EQ(toFloat8(roundToFloat8(value)), expected) << value;
    EXPECT_EQ(roundToFloat8(value), values[expected]) << value;
  }
}

} // namespace
