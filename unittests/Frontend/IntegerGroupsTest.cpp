//===- IntegerGroupsTest.cpp - Matrices that a file has as integers -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/IntegerGroups.h"

#include <cmath>
#include <random>

using namespace sandwich;
using namespace sandwich::test;

TEST(IntegerGroups, JoinsFormats) {
  auto format = [](const char *name) { return *StorageFormat::parse(name); };
  EXPECT_EQ(join(format("int4-g32-f16-minimum"), format("int8-g16-f16"), 256),
            format("int8-g16-f16-minimum"));
  EXPECT_EQ(join(format("int4-g64-f16"), format("int4-row-f32"), 96),
            format("int4-g32-f32"));
  EXPECT_EQ(join(format("int4-row-f16"), format("int4-row-f16"), 96),
            format("int4-row-f16"));
  EXPECT_TRUE(
      holds(format("int8-g16-f16-minimum"), format("int4-g32-f16"), 64));
  EXPECT_FALSE(holds(format("int4-g32-f16"), format("int8-g32-f16"), 64));
  EXPECT_FALSE(holds(format("int8-g64-f16"), format("int8-g32-f16"), 64));
  EXPECT_FALSE(
      holds(format("int4-g32-f16"), format("int4-g32-f16-minimum"), 64));
}

/// What `format` makes of each of `rows` rows, which are of floats.
static std::vector<float> roundRows(const StorageFormat &format, int64_t rows,
                                    const std::vector<float> &values) {
  const TensorView tensor{ElementType::F32,
                          {rows, static_cast<int64_t>(values.size()) / rows},
                          std::as_bytes(std::span(values))};
  std::vector<float> rounded(values.size());
  Status status = readRounded("t", tensor, format, rounded);
  EXPECT_TRUE(status);
  return rounded;
}

TEST(IntegerGroups, IntegersAndFloats8AreApart) {
  auto format = [](const char *name) { return *StorageFormat::parse(name); };
  EXPECT_EQ(join(format("fp8-g64-f32"), format("fp8-row-f16"), 96),
            format("fp8-g32-f32"));
  EXPECT_EQ(join(format("fp8-g32-f16"), format("int8-g32-f16"), 64),
            std::nullopt);
  EXPECT_EQ(join(format("int4-g32-f16"), format("fp8-g32-f16"), 64),
            std::nullopt);
  EXPECT_TRUE(holds(format("fp8-g32-f16"), format("fp8-row-f32"), 64));
  EXPECT_FALSE(holds(format("fp8-row-f32"), format("fp8-g32-f32"), 64));
  EXPECT_FALSE(holds(format("int8-g32-f16"), format("fp8-g32-f16"), 64));
  EXPECT_FALSE(holds(format("fp8-g32-f16"), format("int4-g32-f16"), 64));
}

TEST(IntegerGroups, FloatsAreRoundedGroupByGroup) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(128);
  for (float &value : values)
    value = normal(random);
  for (const char *name : {"int4-g32-f16", "int8-row-f32", "fp8-row-f32"}) {
    const StorageFormat format = *StorageFormat::parse(name);
    const auto group = static_cast<size_t>(format.groupOf(64));
    std::vector<float> expected;
    for (size_t begin = 0; begin < values.size(); begin += group) {
      std::vector<uint8_t> numbers(group);
      std::vector<float> stored(group);
      auto scale = quantizeGroup(
          format, std::span(values).subspan(begin, group), numbers);
      ASSERT_TRUE(scale);
      dequantizeGroup(format, *scale, numbers, stored);
      expected.insert(expected.end(), stored.begin(), stored.end());
    }
    const std::vector<float> rounded = roundRows(format, 2, values);
    EXPECT_EQ(rounded, expected) << name;
    // What was stored once stays as it is.
    const std::vector<float> again = roundRows(format, 2, rounded);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(again[i], expected[i], 2e-3f * std::abs(expected[i]) + 1e-6f)
          << name;
  }
}

TEST(IntegerGroups, RefusesValuesThatAreNotFinite) {
  std::vector<float> values(32, 1.0f);
  values[5] = std::nanf("");
  const TensorView tensor{
      ElementType::F32, {1, 32}, std::as_bytes(std::span(values))};
  std::vector<float> rounded(32);
  EXPECT_EQ(messageOf(readRounded(
                "t", tensor, *StorageFormat::parse("int4-g32-f16"), rounded)),
            "tensor \"t\": element [0, 5] is NaN; weights must be finite");
}
