//===- TensorElementsTest.cpp - Streaming weights as float32 --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Checkpoint.h"

#include "TestFiles.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace sandwich;
using namespace sandwich::test;

namespace {

TensorView viewOf(ElementType type, std::vector<int64_t> shape,
                  const std::string &bytes) {
  return {type, std::move(shape), std::as_bytes(std::span(bytes))};
}

/// IEEE half precision by its definition.
float halfByDefinition(uint16_t half) {
  int exponent = (half >> 10) & 31;
  int fraction = half & 1023;
  double magnitude = exponent == 31
                         ? (fraction ? std::numeric_limits<double>::quiet_NaN()
                                     : std::numeric_limits<double>::infinity())
                     : exponent ? std::ldexp(1024 + fraction, exponent - 25)
                                : std::ldexp(fraction, -24);
  return float(half & 0x8000 ? -magnitude : magnitude);
}

uint16_t bfloat16(float value) {
  uint16_t rounded;
  roundToBFloat16(std::span(&value, 1), std::span(&rounded, 1));
  return rounded;
}

} // namespace

TEST(TensorElements, ConvertsEveryHalf) {
  std::vector<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = uint16_t(i);
  std::string bytes = bytesOf(halves);
  std::vector<float> values(halves.size());
  readElements(viewOf(ElementType::F16, {1 << 16}, bytes), 0, values);
  for (size_t i = 0; i < halves.size(); ++i) {
    float expected = halfByDefinition(halves[i]);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(values[i])) << i;
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(values[i]),
                std::bit_cast<uint32_t>(expected))
          << i;
  }
}

TEST(TensorElements, ConvertsEveryBFloat16ThereAndBack) {
  std::vector<uint16_t> bits(1 << 16);
  for (size_t i = 0; i < bits.size(); ++i)
    bits[i] = uint16_t(i);
  std::string bytes = bytesOf(bits);
  std::vector<float> values(bits.size());
  readElements(viewOf(ElementType::BF16, {1 << 16}, bytes), 0, values);
  EXPECT_EQ(values[0x3fc0], 1.5f);
  EXPECT_EQ(values[0xc000], -2.0f);
  std::vector<uint16_t> back(bits.size());
  roundToBFloat16(values, back);
  for (size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(values[i]))
      EXPECT_EQ(back[i] & 0x7fc0, 0x7fc0) << i;
    else
      EXPECT_EQ(back[i], bits[i]);
  }
}

TEST(TensorElements, RoundsToNearestEven) {
  auto of = [](uint32_t bits) { return bfloat16(std::bit_cast<float>(bits)); };
  EXPECT_EQ(of(0x3f800000), 0x3f80);
  EXPECT_EQ(of(0x3f807fff), 0x3f80); // just below the middle
  EXPECT_EQ(of(0x3f808000), 0x3f80); // the middle, to even
  EXPECT_EQ(of(0x3f808001), 0x3f81); // just above
  EXPECT_EQ(of(0x3f818000), 0x3f82); // the middle, to even
  EXPECT_EQ(of(0xbf818000), 0xbf82);
  EXPECT_EQ(of(0x3fffffff), 0x4000); // carries into the exponent
  EXPECT_EQ(of(0x00008001), 0x0001); // subnormal
  EXPECT_EQ(of(0x80000000), 0x8000);
  EXPECT_EQ(of(0x7f7fffff), 0x7f80); // beyond the largest
  EXPECT_EQ(of(0x7f800000), 0x7f80);
  EXPECT_EQ(of(0xff800000), 0xff80);
  EXPECT_EQ(of(0x7f800001), 0x7fc0); // a NaN by its lowest bit alone
  EXPECT_EQ(of(0xffffffff), 0xffff);
}

TEST(TensorElements, ReadsRowsAtAnyAlignment) {
  std::string bytes =
      std::string("x") + bytesOf(std::vector<float>{1, 2, 3, 4, 5, 6});
  TensorView tensor{
      ElementType::F32, {2, 3}, std::as_bytes(std::span(bytes)).subspan(1)};
  ASSERT_EQ(rowLength(tensor), 3);
  std::vector<float> row(3);
  readRow(tensor, 1, row);
  EXPECT_EQ(row, (std::vector<float>{4, 5, 6}));
  std::vector<float> part(2);
  readElements(tensor, 2, part);
  EXPECT_EQ(part, (std::vector<float>{3, 4}));

  std::string halves =
      std::string("x") + bytesOf(std::vector<uint16_t>{0x3c00, 0xc000});
  TensorView unaligned{
      ElementType::F16, {2}, std::as_bytes(std::span(halves)).subspan(1)};
  readElements(unaligned, 0, part);
  EXPECT_EQ(part, (std::vector<float>{1, -2}));
  EXPECT_EQ(rowLength(TensorView{ElementType::F32, {}, {}}), 1);
}

TEST(TensorElements, FindsWhatBFloat16CannotHold) {
  std::string bytes(4 * 6, '\0');
  TensorView tensor = viewOf(ElementType::F32, {2, 3}, bytes);
  // The largest that rounds to the largest bfloat16, and the next.
  std::vector<float> row = {0, std::bit_cast<float>(0xff7f7fff), 1};
  EXPECT_TRUE(checkFitsBFloat16("w", tensor, 3, row));
  row[1] = std::bit_cast<float>(0xff7f8000);
  EXPECT_EQ(bfloat16(row[1]), 0xff80);
  EXPECT_EQ(messageOf(checkFitsBFloat16("w", tensor, 3, row)),
            "tensor \"w\": element [1, 1] is -3.39618e+38, which bf16 cannot "
            "hold; compile the model as f32");
  row[0] = std::numeric_limits<float>::max();
  EXPECT_EQ(messageOf(checkFitsBFloat16("w", tensor, 0, row)),
            "tensor \"w\": element [0, 0] is 3.40282e+38, which bf16 cannot "
            "hold; compile the model as f32");
  EXPECT_TRUE(checkFitsBFloat16("w", tensor, 0, {}));
}

TEST(TensorElements, FindsWhatIsNotFinite) {
  std::string bytes(4 * 6, '\0');
  TensorView tensor = viewOf(ElementType::F32, {2, 3}, bytes);
  std::vector<float> row = {0, std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min()};
  EXPECT_TRUE(checkFinite("w", tensor, 3, row));
  row[1] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(messageOf(checkFinite("w", tensor, 3, row)),
            "tensor \"w\": element [1, 1] is infinite; weights must be finite");
  row[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(messageOf(checkFinite("w", tensor, 0, row)),
            "tensor \"w\": element [0, 0] is NaN; weights must be finite");
  EXPECT_TRUE(checkFinite("w", tensor, 0, {}));
}
