//===- Quantizer.cpp - From floats to stored numbers ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Quantization/Quantizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

using namespace sandwich;

float sandwich::roundToScale(ScaleFormat format, float value) {
  if (format == ScaleFormat::F32)
    return value;
  return static_cast<float>(static_cast<_Float16>(value));
}

/// The integer from 0 to `most` next to `value`, which may be far outside.
static float roundToNumber(float value, float most) {
  // Adding and taking away this rounds to even, and vectorizes.
  constexpr float rounder = 0x1.8p23f;
  return std::clamp((value + rounder) - rounder, 0.0f, most);
}

namespace {

/// A number stands for `base + scale * number`. Where there is no scale, all
/// stand for `base`.
struct Rounding {
  float scale = 0, base = 0;

  /// Of a value, as a float.
  float inverse() const { return scale == 0 ? 0 : 1 / scale; }
};

} // namespace

/// `scale`, or 0 where its inverse is too large for a float: values so small
/// are as good as 0.
static float usableScale(float scale) {
  return std::isfinite(1 / scale) ? scale : 0;
}

static double squaredError(const Rounding &rounding, float most,
                           std::span<const float> values) {
  const float inverse = rounding.inverse();
  double sum = 0;
  for (float value : values) {
    const float number = roundToNumber((value - rounding.base) * inverse, most);
    const float error = value - rounding.base - rounding.scale * number;
    sum += static_cast<double>(error) * error;
  }
  return sum;
}

/// Shares of a group's range that scales are tried for: where a few values
/// stand out, the others gain more by a finer scale than these lose.
static constexpr int64_t triedShares = 24;
static constexpr float leastShare = 0.7f;

/// The rounding with the least error of those that `makeRounding` makes for
/// shares up to `mostShare`; nothing if the values are too large for all.
template <typename MakeRounding>
static std::optional<Rounding> findBest(float most, float mostShare,
                                        std::span<const float> values,
                                        MakeRounding makeRounding) {
  std::optional<Rounding> best;
  double least = std::numeric_limits<double>::infinity();
  auto tryShare = [&](float share) {
    const Rounding rounding = makeRounding(share);
    const double error = squaredError(rounding, most, values);
    if (error < least) {
      least = error;
      best = rounding;
    }
  };
  // First, as it is exact for what was stored in this format before.
  tryShare(1);
  for (int64_t i = 0; i <= triedShares; ++i)
    tryShare(mostShare - (mostShare - leastShare) * static_cast<float>(i) /
                             static_cast<float>(triedShares));
  return best;
}

Result<GroupScale> sandwich::quantizeGroup(const StorageFormat &format,
                                           std::span<const float> values,
                                           std::span<uint8_t> numbers) {
  assert(format.isQuantized() && values.size() == numbers.size() &&
         !values.empty());
  const auto most = static_cast<float>((int64_t(1) << format.bits()) - 1);
  const auto middle = static_cast<float>(format.storedZero());
  const auto [low, high] = std::ranges::minmax(values);
  const bool hasMinimum = format.offset == GroupOffset::Minimum;
  auto makeRounding = [&](float share) -> Rounding {
    if (hasMinimum) {
      const float center = low / 2 + high / 2;
      return {usableScale(roundToScale(format.scale,
                                       (high / most - low / most) * share)),
              roundToScale(format.scale, center + (low - center) * share)};
    }
    // There is one negative number more than positive ones: a share of 1 gives
    // it to the value that is farthest from 0, by a negative scale if that is
    // positive.
    const float extreme = -low > high ? low : high;
    const float scale =
        usableScale(roundToScale(format.scale, extreme * share / -middle));
    return {scale, -middle * scale};
  };
  // One that does without that number needs more than the range.
  const float mostShare = hasMinimum ? 1 : middle / (middle - 1);
  const std::optional<Rounding> best =
      findBest(most, mostShare, values, makeRounding);
  if (!best)
    return makeError("values from ", low, " to ", high,
                     " are too large for scales of ", name(format.scale));
  const float inverse = best->inverse();
  for (size_t i = 0; i < values.size(); ++i)
    numbers[i] = static_cast<uint8_t>(
        roundToNumber((values[i] - best->base) * inverse, most));
  return GroupScale{best->scale, hasMinimum ? best->base : 0};
}

void sandwich::dequantizeGroup(const StorageFormat &format,
                               const GroupScale &group,
                               std::span<const uint8_t> numbers,
                               std::span<float> values) {
  assert(numbers.size() == values.size());
  const int64_t zero =
      format.offset == GroupOffset::None ? format.storedZero() : 0;
  for (size_t i = 0; i < numbers.size(); ++i)
    values[i] =
        group.scale * static_cast<float>(numbers[i] - zero) + group.minimum;
}
