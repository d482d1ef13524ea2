//===- BlockKernels.cpp - Vectorized loops over blocks of logits ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Highway compiles this file once for each kind of vectors by including it
/// again, and chooses among them when the program runs.
///
//===----------------------------------------------------------------------===//

#include "BlockKernels.h"

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "BlockKernels.cpp"
#include <hwy/foreach_target.h>
// Included after it, as it must be.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sandwich::HWY_NAMESPACE {

namespace highway = hwy::HWY_NAMESPACE;

static float findLargest(const float *logits) {
  const highway::ScalableTag<float> tag;
  const auto infinity =
      highway::Set(tag, std::numeric_limits<float>::infinity());
  auto largest = highway::Neg(infinity);
  auto numbers = highway::Le(largest, infinity);
  for (size_t i = 0; i < blockSize; i += highway::Lanes(tag)) {
    const auto values = highway::LoadU(tag, logits + i);
    // False for NaN.
    numbers = highway::And(numbers, highway::Le(values, infinity));
    largest = highway::Max(largest, values);
  }
  if (!highway::AllTrue(tag, numbers))
    return std::numeric_limits<float>::infinity();
  // Without any vectors, MaxOfLanes never gives less than the lowest float.
  if (highway::AllTrue(tag, highway::Eq(largest, highway::Neg(infinity))))
    return -std::numeric_limits<float>::infinity();
  return highway::GetLane(highway::MaxOfLanes(tag, largest));
}

/// How a type holds numbers.
template <typename Number> struct Format;
template <> struct Format<double> {
  static constexpr int mantissaBits = 52;
  static constexpr double shift = 0x1.8p52;
  static constexpr double lowestExponent = -1000;
};
template <> struct Format<float> {
  static constexpr int mantissaBits = 23;
  static constexpr float shift = 0x1.8p23f;
  static constexpr float lowestExponent = -120;
};

/// 2^x for x of at most 0.
template <typename Tag, typename Vector = highway::Vec<Tag>>
static HWY_INLINE Vector exp2(Tag tag, Vector x) {
  using Number = highway::TFromD<Tag>;
  // 2^r for r in [-1/2, 1/2], with a relative error of at most 1.86e-9: the
  // minimax polynomial by Remez's algorithm.
  constexpr double coefficients[] = {
      0x1.41d3336c8d4a9p-13, 0x1.5f456a8ada51ap-10, 0x1.3b2dbbc0fbbfap-7,
      0x1.c6aed4b950bb2p-5,  0x1.ebfbdadcb0bf9p-3,  0x1.62e430c7e923ap-1,
      0x1.0000000261500p+0};
  x = highway::Max(x, highway::Set(tag, Format<Number>::lowestExponent));
  // Adding 1.5 times the first number without a fraction leaves the nearest
  // integer in the lowest bits.
  const auto shift = highway::Set(tag, Format<Number>::shift);
  const auto shifted = highway::Add(x, shift);
  const auto r = highway::Sub(x, highway::Sub(shifted, shift));
  auto power = highway::Set(tag, static_cast<Number>(coefficients[0]));
  for (size_t i = 1; i < std::size(coefficients); ++i)
    power = highway::MulAdd(
        power, r, highway::Set(tag, static_cast<Number>(coefficients[i])));
  const highway::RebindToSigned<Tag> integers;
  const auto exponent = highway::ShiftLeft<Format<Number>::mantissaBits>(
      highway::BitCast(integers, shifted));
  return highway::BitCast(
      tag, highway::Add(highway::BitCast(integers, power), exponent));
}

static double sumWeights(const float *logits, float largest, double scale) {
  const highway::ScalableTag<double> tag;
  const highway::Rebind<float, decltype(tag)> floats;
  constexpr double log2e = 0x1.71547652b82fep+0;
  const auto offset = highway::Set(tag, static_cast<double>(largest));
  const auto factor = highway::Set(tag, scale * log2e);
  // One operation instead of two, where its rounding is far below the error of
  // the exponential.
  const bool isSmall = std::abs(largest * scale) < 0x1p16;
  const auto product = highway::Mul(offset, factor);
  const size_t lanes = highway::Lanes(tag);
  auto weights = [&](size_t first) {
    const auto values =
        highway::PromoteTo(tag, highway::LoadU(floats, logits + first));
    return exp2(tag, isSmall
                         ? highway::MulSub(values, factor, product)
                         : highway::Mul(highway::Sub(values, offset), factor));
  };
  auto even = highway::Zero(tag), odd = highway::Zero(tag);
  for (size_t i = 0; i < blockSize; i += 2 * lanes) {
    even = highway::Add(even, weights(i));
    odd = highway::Add(odd, weights(i + lanes));
  }
  return highway::GetLane(highway::SumOfLanes(tag, highway::Add(even, odd)));
}

static double sumWeightsRoughly(const float *logits, float largest) {
  const highway::ScalableTag<float> tag;
  const auto offset = highway::Set(tag, largest);
  const auto log2e = highway::Set(tag, 0x1.715476p+0f);
  const size_t lanes = highway::Lanes(tag);
  auto weights = [&](size_t first) {
    const auto values = highway::LoadU(tag, logits + first);
    return exp2(tag, highway::Mul(highway::Sub(values, offset), log2e));
  };
  auto even = highway::Zero(tag), odd = highway::Zero(tag);
  for (size_t i = 0; i < blockSize; i += 2 * lanes) {
    even = highway::Add(even, weights(i));
    odd = highway::Add(odd, weights(i + lanes));
  }
  return highway::GetLane(highway::SumOfLanes(tag, highway::Add(even, odd)));
}

static size_t findAtLeast(const float *logits, float threshold,
                          uint32_t *positions) {
  const highway::ScalableTag<float> tag;
  const auto thresholds = highway::Set(tag, threshold);
  const size_t lanes = highway::Lanes(tag);
  size_t count = 0;
  for (size_t i = 0; i < blockSize; i += lanes) {
    const auto found = highway::Ge(highway::LoadU(tag, logits + i), thresholds);
    if (highway::AllFalse(tag, found))
      continue;
    for (size_t j = i; j < i + lanes; ++j) {
      positions[count] = static_cast<uint32_t>(j);
      count += logits[j] >= threshold;
    }
  }
  return count;
}

static void barOthers(const float *logits, const uint64_t *allowed,
                      float *copy) {
  const highway::ScalableTag<float> tag;
  const auto barred =
      highway::Set(tag, -std::numeric_limits<float>::infinity());
  const size_t lanes = highway::Lanes(tag);
  for (size_t i = 0; i < blockSize; i += lanes) {
    // Vectors have a power of two of lanes, so that no mask is in two words.
    const uint64_t bits = allowed[i / 64] >> (i % 64);
    uint8_t bytes[sizeof(bits)];
    std::memcpy(bytes, &bits, sizeof(bits));
    const auto mask = highway::LoadMaskBits(tag, bytes);
    highway::StoreU(
        highway::IfThenElse(mask, highway::LoadU(tag, logits + i), barred), tag,
        copy + i);
  }
}

} // namespace sandwich::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sandwich {

HWY_EXPORT(findLargest);
HWY_EXPORT(sumWeights);
HWY_EXPORT(sumWeightsRoughly);
HWY_EXPORT(findAtLeast);
HWY_EXPORT(barOthers);

float findLargest(const float *logits) {
  return HWY_DYNAMIC_DISPATCH(findLargest)(logits);
}

double sumWeights(const float *logits, float largest, double scale) {
  return HWY_DYNAMIC_DISPATCH(sumWeights)(logits, largest, scale);
}

double sumWeightsRoughly(const float *logits, float largest) {
  return HWY_DYNAMIC_DISPATCH(sumWeightsRoughly)(logits, largest);
}

size_t findAtLeast(const float *logits, float threshold,
                   uint32_t positions[blockSize]) {
  return HWY_DYNAMIC_DISPATCH(findAtLeast)(logits, threshold, positions);
}

void barOthers(const float *logits, const uint64_t allowed[blockSize / 64],
               float *copy) {
  HWY_DYNAMIC_DISPATCH(barOthers)(logits, allowed, copy);
}

} // namespace sandwich
#endif
