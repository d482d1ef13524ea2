//===- QuantizerTest.cpp - Rounding groups of numbers ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Quantization/Quantizer.h"
#include "sandwich/Quantization/Float8.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace sandwich;

namespace {

constexpr const char *formats[] = {
    "int8-g32-f16",         "int8-g32-f32",         "int4-g32-f16",
    "int4-g32-f32",         "int8-g32-f16-minimum", "int4-g32-f32-minimum",
    "int4-g32-f16-minimum", "fp8-g32-f16",          "fp8-g32-f32"};

std::vector<float> makeRandom(size_t size, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(size);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

/// `values` as they are after they were stored.
std::vector<float> store(const StorageFormat &format,
                         const std::vector<float> &values) {
  std::vector<uint8_t> numbers(values.size());
  Result<GroupScale> group = quantizeGroup(format, values, numbers);
  EXPECT_TRUE(group) << group.error().message;
  std::vector<float> stored(values.size());
  if (group)
    dequantizeGroup(format, *group, numbers, stored);
  EXPECT_TRUE(std::ranges::all_of(
      numbers, [&](uint8_t number) { return number < (1 << format.bits()); }));
  return stored;
}

double meanSquare(const std::vector<float> &a, const std::vector<float> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return sum / static_cast<double>(a.size());
}

TEST(Quantizer, ValuesThatCanBeStoredAre) {
  std::mt19937 random(1);
  for (const char *name : formats) {
    const StorageFormat format = *StorageFormat::parse(name);
    if (!format.hasIntegers())
      continue;
    const int64_t count = int64_t(1) << format.bits();
    for (int trial = 0; trial < 50; ++trial) {
      const float scale = std::ldexp(1.0f, static_cast<int>(random() % 12) - 9);
      const bool hasMinimum = format.offset == GroupOffset::Minimum;
      const float base =
          (hasMinimum ? -3.0f : -static_cast<float>(count / 2)) * scale;
      std::vector<float> values(32);
      for (float &value : values)
        value = base + scale * static_cast<float>(random() % count);
      // The whole range is used, or a finer scale would do as well.
      values[0] = base;
      values[1] = base + scale * static_cast<float>(count - 1);
      EXPECT_EQ(store(format, values), values) << name;
    }
  }
}

TEST(Quantizer, ErrorsOfRandomNumbersAreThoseOfTheirRange) {
  for (const char *name : formats) {
    const StorageFormat format = *StorageFormat::parse(name);
    if (!format.hasIntegers())
      continue;
    const auto steps = static_cast<double>((int64_t(1) << format.bits()) - 1);
    double error = 0, bound = 0;
    for (uint32_t trial = 0; trial < 200; ++trial) {
      const std::vector<float> values = makeRandom(32, trial, 0.02f);
      error += meanSquare(values, store(format, values));
      // Even steps over the range, or over twice what is farthest from 0.
      const auto [low, high] = std::ranges::minmax(values);
      const double range = format.offset == GroupOffset::Minimum
                               ? high - low
                               : 2 * std::max(high, -low);
      bound += std::pow(range / steps, 2) / 12;
    }
    // The search makes it better, f16 of a scale and a minimum worse.
    EXPECT_LT(error, bound * 1.05) << name;
    if (format.number == NumberFormat::Int4) {
      EXPECT_LT(error, bound * 0.95) << name;
    }
  }
}

TEST(Quantizer, Floats8ThatCanBeStoredAre) {
  std::mt19937 random(2);
  for (const char *name : {"fp8-g32-f16", "fp8-g32-f32"}) {
    for (int trial = 0; trial < 50; ++trial) {
      const float scale = std::ldexp(1.0f, static_cast<int>(random() % 12) - 9);
      std::vector<float> values(32);
      for (float &value : values)
        value = scale * fromFloat8(static_cast<uint8_t>(random() % 127 |
                                                        random() % 2 << 7));
      // The largest number is there, or a finer scale would do as well.
      values[random() % 32] = -448 * scale;
      EXPECT_EQ(store(*StorageFormat::parse(name), values), values) << name;
    }
  }
}

TEST(Quantizer, ErrorsOfFloats8AreASixteenthOfValues) {
  const StorageFormat format = *StorageFormat::parse("fp8-row-f32");
  double error = 0, square = 0;
  for (uint32_t trial = 0; trial < 50; ++trial) {
    const std::vector<float> values = makeRandom(512, trial, 0.02f);
    const std::vector<float> stored = store(format, values);
    const float largest = std::ranges::max(
        values, {}, [](float value) { return std::abs(value); });
    for (size_t i = 0; i < values.size(); ++i) {
      // Half a step of a number, or of subnormal ones after the coarsest scale.
      const float subnormal = std::abs(largest) / 448 * 2 * 0x1p-10f;
      EXPECT_LE(std::abs(stored[i] - values[i]),
                std::max(std::abs(values[i]) / 16, subnormal));
    }
    error += meanSquare(values, stored);
    square += meanSquare(values, std::vector<float>(values.size()));
  }
  // Steps are an eighth of the power of two below a value, so that the mean
  // square of errors, a twelfth of that of steps, is (1 / 8)^2 / 12 times the
  // mean of 1 / m^2 for mantissas m from 1 to 2: 0.5 if they are evenly there.
  EXPECT_LT(error / square, 1.05 / 64 / 12 * 0.5);
  EXPECT_GT(error / square, 0.8 / 64 / 12 * 0.5);
}

TEST(Quantizer, NumbersThatAreNoneStayNone) {
  const StorageFormat format = *StorageFormat::parse("fp8-g32-f16");
  const std::vector<uint8_t> numbers = {0x7f, 0xff, 0x7e, 0xfe, 0x80};
  std::vector<float> values(numbers.size());
  dequantizeGroup(format, {.scale = 0.5f}, numbers, values);
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
  EXPECT_EQ(values[2], 224);
  EXPECT_EQ(values[3], -224);
  EXPECT_EQ(values[4], 0);
}

TEST(Quantizer, OneLargeValueDoesNotDrownTheOthers) {
  const StorageFormat format = *StorageFormat::parse("int4-g64-f16");
  std::vector<float> values = makeRandom(64, 3);
  values[17] = 5.5f;
  const std::vector<float> stored = store(format, values);
  // By the largest value, a step is 5.5 / 8.
  EXPECT_LT(meanSquare(values, stored), std::pow(5.5 / 8, 2) / 12);
}

/// Numbers as mean squares of channels are: few are many times the others.
std::vector<float> makeImportance(size_t size, uint32_t seed) {
  std::vector<float> importance = makeRandom(size, seed, 1.5f);
  std::ranges::transform(importance, importance.begin(),
                         [](float each) { return std::exp(each); });
  return importance;
}

/// The sum of squared errors of `values` after rounding that minds
/// `importance`, each times its number in `counted`.
double weightedError(const StorageFormat &format,
                     const std::vector<float> &values,
                     const std::vector<float> &importance,
                     const std::vector<float> &counted) {
  std::vector<uint8_t> numbers(values.size());
  const Result<GroupScale> group =
      quantizeGroup(format, values, numbers, importance);
  EXPECT_TRUE(group) << group.error().message;
  std::vector<float> stored(values.size());
  if (group)
    dequantizeGroup(format, *group, numbers, stored);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum += counted[i] * std::pow(static_cast<double>(values[i]) - stored[i], 2);
  return sum;
}

TEST(Quantizer, ImportantValuesAreSpared) {
  for (const char *name : formats) {
    const StorageFormat format = *StorageFormat::parse(name);
    double plainSum = 0, sparingSum = 0;
    for (uint32_t trial = 0; trial < 200; ++trial) {
      const std::vector<float> values = makeRandom(32, trial, 0.02f),
                               importance = makeImportance(32, trial + 1000);
      const double plain = weightedError(format, values, {}, importance),
                   sparing =
                       weightedError(format, values, importance, importance);
      // Scales are chosen by errors in f32.
      EXPECT_LE(sparing, plain * (1 + 1e-5)) << name << " " << trial;
      plainSum += plain;
      sparingSum += sparing;
    }
    EXPECT_LT(sparingSum, plainSum * 0.95) << name;
  }
}

TEST(Quantizer, EqualImportanceIsNone) {
  for (const char *name : formats) {
    const StorageFormat format = *StorageFormat::parse(name);
    for (uint32_t trial = 0; trial < 50; ++trial) {
      const std::vector<float> values = makeRandom(32, trial);
      std::vector<uint8_t> plain(32), equal(32);
      const GroupScale expected = *quantizeGroup(format, values, plain);
      for (float importance : {0.0f, 0.37f, 1.0f, 3e38f, 1e-45f}) {
        const GroupScale group = *quantizeGroup(
            format, values, equal, std::vector<float>(32, importance));
        EXPECT_EQ(group.scale, expected.scale) << name;
        EXPECT_EQ(group.minimum, expected.minimum) << name;
        EXPECT_EQ(equal, plain) << name;
      }
    }
  }
}

TEST(Quantizer, OneImportantValueIsExact) {
  for (const char *name : formats) {
    const StorageFormat format = *StorageFormat::parse(name);
    std::vector<float> values = makeRandom(32, 5), importance(32);
    importance[9] = 1e-20f;
    std::vector<uint8_t> numbers(32);
    const GroupScale group =
        *quantizeGroup(format, values, numbers, importance);
    std::vector<float> stored(32);
    dequantizeGroup(format, group, numbers, stored);
    EXPECT_NEAR(stored[9], values[9], std::abs(values[9]) * 2e-3) << name;
    EXPECT_TRUE(std::ranges::all_of(
        stored, [](float value) { return std::isfinite(value); }));
  }
}

TEST(Quantizer, ZerosAndTinyValuesStayFinite) {
  for (const char *name : formats) {
    const StorageFormat format = *StorageFormat::parse(name);
    for (float value : {0.0f, -0.0f, 1e-45f, -1e-40f, 1e-38f, 1e-9f}) {
      const std::vector<float> stored =
          store(format, std::vector<float>(32, value));
      for (float each : stored)
        EXPECT_LE(std::abs(each), 2e-9f) << name << " " << value;
    }
  }
}

TEST(Quantizer, AConstantIsKept) {
  for (const char *name : formats) {
    const StorageFormat format = *StorageFormat::parse(name);
    for (float value : store(format, std::vector<float>(32, 0.375f)))
      EXPECT_NEAR(value, 0.375f, 1e-3f) << name;
  }
}

TEST(Quantizer, ValuesTooLargeForAScaleAreRefused) {
  std::vector<float> values = makeRandom(32, 5);
  values[3] = 3e7f;
  std::vector<uint8_t> numbers(32);
  for (const char *name : {"int4-g32-f16", "int4-g32-f16-minimum"}) {
    Result<GroupScale> group =
        quantizeGroup(*StorageFormat::parse(name), values, numbers);
    ASSERT_FALSE(group) << name;
    EXPECT_NE(group.error().message.find("3e+07"), std::string::npos)
        << group.error().message;
  }
  // A scale of 6667 would do, but f16 ends before their minimum.
  std::vector<float> low(32);
  for (size_t i = 0; i < low.size(); ++i)
    low[i] = -1e5f * static_cast<float>(i) / 31;
  Result<GroupScale> minimum = quantizeGroup(
      *StorageFormat::parse("int4-g32-f16-minimum"), low, numbers);
  ASSERT_FALSE(minimum);
  EXPECT_NE(minimum.error().message.find("-100000"), std::string::npos)
      << minimum.error().message;
  // The largest number of fp8 takes 3e7 to a scale of 6.7e4.
  Result<GroupScale> floats =
      quantizeGroup(*StorageFormat::parse("fp8-g32-f16"), values, numbers);
  ASSERT_FALSE(floats);
  EXPECT_NE(floats.error().message.find("3e+07"), std::string::npos)
      << floats.error().message;
  EXPECT_TRUE(
      quantizeGroup(*StorageFormat::parse("int4-g32-f32"), values, numbers));
  const float largest = std::numeric_limits<float>::max() / 8;
  values[4] = -largest;
  values[5] = largest;
  for (const char *name :
       {"int8-g32-f32", "int4-g32-f32-minimum", "fp8-g32-f32"}) {
    const std::vector<float> stored =
        store(*StorageFormat::parse(name), values);
    for (float each : stored)
      EXPECT_TRUE(std::isfinite(each)) << name;
  }
}

} // namespace
