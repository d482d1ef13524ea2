//===- Quantizer.cpp - From floats to stored numbers ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Quantization/Quantizer.h"

#include "sandwich/Quantization/Float8.h"

#include <algorithm>
#include <array>
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

namespace {

/// Integers as they are stored, from 0 to `most`.
struct Integers {
  float most;

  /// The one next to `value`, which may be far outside.
  float round(float value) const {
    // Adding and taking away this rounds to even, and vectorizes.
    constexpr float rounder = 0x1.8p23f;
    return std::clamp((value + rounder) - rounder, 0.0f, most);
  }
  static uint8_t store(float number) { return static_cast<uint8_t>(number); }
};

/// Those of fp8.
struct Floats8 {
  static float round(float value) { return roundToFloat8(value); }
  static uint8_t store(float number) { return toFloat8(number); }
};

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

/// The sums of what `termsAt` has for each of `count` places.
template <size_t Sums, typename TermsAt>
static std::array<double, Sums> sumTerms(size_t count, TermsAt termsAt) {
  // In a few lanes, none of which waits for the others.
  constexpr size_t lanes = 8;
  std::array<std::array<double, lanes>, Sums> sums = {};
  auto add = [&](size_t i, size_t lane) {
    const std::array<double, Sums> terms = termsAt(i);
    for (size_t sum = 0; sum < Sums; ++sum)
      sums[sum][lane] += terms[sum];
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      add(i + lane, lane);
  for (; i < count; ++i)
    add(i, 0);
  std::array<double, Sums> result = {};
  for (size_t sum = 0; sum < Sums; ++sum)
    for (double lane : sums[sum])
      result[sum] += lane;
  return result;
}

/// The sum of squared errors, each times its weight if there are any.
template <typename Numbers>
static double squaredError(const Rounding &rounding, const Numbers &numbers,
                           std::span<const float> values,
                           std::span<const double> weights) {
  const float inverse = rounding.inverse();
  auto squareAt = [&](size_t i) {
    const float value = values[i];
    const float number = numbers.round((value - rounding.base) * inverse);
    const float error = value - rounding.base - rounding.scale * number;
    return static_cast<double>(error) * error;
  };
  using Terms = std::array<double, 1>;
  const size_t count = values.size();
  return weights.empty()
             ? sumTerms<1>(count,
                           [&](size_t i) { return Terms{squareAt(i)}; })[0]
             : sumTerms<1>(count, [&](size_t i) {
                 return Terms{squareAt(i) * weights[i]};
               })[0];
}

/// `importance` over its largest number; nothing where all are equal.
static std::vector<double> weighErrors(std::span<const float> importance) {
  if (importance.empty())
    return {};
  const auto [least, largest] = std::ranges::minmax(importance);
  if (least == largest)
    return {};
  std::vector<double> weights(importance.size());
  std::ranges::transform(importance, weights.begin(),
                         [largest = static_cast<double>(largest)](float each) {
                           return each / largest;
                         });
  return weights;
}

static bool isFinite(const Rounding &rounding) {
  return std::isfinite(rounding.scale) && std::isfinite(rounding.base);
}

/// How often the rounding of a share of the range is fitted to its own numbers,
/// and the best of all again: they change with it, but after a few times
/// hardly.
static constexpr int fitsOfShare = 2, fits = 4;

/// The rounding with the least error of those that `makeRounding` makes for
/// `shares` of a group's range, of what `fit` makes of each of them by the
/// weights, and of the best again; nothing if the values are too large for all.
/// What is best without weights is tried with them, too, so that these never
/// lead to more of the error that they weigh.
template <typename Numbers, typename MakeRounding, typename Fit>
static std::optional<Rounding>
findBest(const Numbers &numbers, std::span<const float> shares,
         std::span<const float> values, std::span<const double> weights,
         MakeRounding makeRounding, Fit fit) {
  std::optional<Rounding> best;
  double least = std::numeric_limits<double>::infinity();
  // Whether it is better than all before.
  auto tryRounding = [&](const Rounding &rounding) {
    const double error = squaredError(rounding, numbers, values, weights);
    if (!(error < least))
      return false;
    least = error;
    best = rounding;
    return true;
  };
  if (!weights.empty())
    if (const std::optional<Rounding> plain =
            findBest(numbers, shares, values, {}, makeRounding, fit))
      tryRounding(*plain);
  for (float share : shares) {
    Rounding rounding = makeRounding(share);
    tryRounding(rounding);
    if (least == 0)
      return best;
    // The range says little of what lies in it.
    for (int i = 0; i < fitsOfShare && isFinite(rounding); ++i) {
      rounding = fit(rounding, weights);
      tryRounding(rounding);
    }
  }
  for (int i = 0; best && i < fits && tryRounding(fit(*best, weights)); ++i)
    ;
  return best;
}

/// Rounds `values` by `best`, if there is one, to `numbers`, which are stored
/// in `stored`.
template <typename Numbers>
static Result<Rounding> roundGroup(ScaleFormat scale, const Numbers &numbers,
                                   const std::optional<Rounding> &best,
                                   std::span<const float> values,
                                   std::span<uint8_t> stored) {
  if (!best) {
    const auto [low, high] = std::ranges::minmax(values);
    return makeError("values from ", low, " to ", high,
                     " are too large for scales of ", name(scale));
  }
  const float inverse = best->inverse();
  for (size_t i = 0; i < values.size(); ++i)
    stored[i] =
        numbers.store(numbers.round((values[i] - best->base) * inverse));
  return *best;
}

/// The line through the values at the numbers that `rounding` gives them, with
/// the least squared error, each times its weight if there are any: through 0
/// at `middle`, or anywhere.
template <typename Numbers>
static Rounding fitLine(const Rounding &rounding, const Numbers &numbers,
                        std::optional<float> middle,
                        std::span<const float> values,
                        std::span<const double> weights) {
  const float inverse = rounding.inverse();
  const auto zero = middle.value_or(0);
  auto termsAt = [&](size_t i, double weight) {
    const double number =
        numbers.round((values[i] - rounding.base) * inverse) - zero;
    const double value = weight * values[i];
    return std::array{weight, weight * number, value, weight * number * number,
                      value * number};
  };
  const auto [count, n, x, nn, nx] =
      weights.empty()
          ? sumTerms<5>(values.size(), [&](size_t i) { return termsAt(i, 1); })
          : sumTerms<5>(values.size(),
                        [&](size_t i) { return termsAt(i, weights[i]); });
  if (middle) {
    const double scale = nn > 0 ? nx / nn : 0;
    return {static_cast<float>(scale), static_cast<float>(-*middle * scale)};
  }
  const double spread = count * nn - n * n;
  const double scale = spread > 0 ? (count * nx - n * x) / spread : 0;
  return {static_cast<float>(scale),
          static_cast<float>((x - scale * n) / count)};
}

static Result<GroupScale> quantizeIntegers(const StorageFormat &format,
                                           std::span<const float> values,
                                           std::span<const double> weights,
                                           std::span<uint8_t> stored) {
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
  const Integers numbers{most};
  auto fit = [&](const Rounding &rounding,
                 std::span<const double> weights) -> Rounding {
    const Rounding line = fitLine(
        rounding, numbers, hasMinimum ? std::nullopt : std::optional(middle),
        values, weights);
    const float scale = usableScale(roundToScale(format.scale, line.scale));
    return {scale, hasMinimum ? roundToScale(format.scale, line.base)
                              : -middle * scale};
  };
  // Where a few values stand out, the others gain more by a finer scale than
  // these lose. One that does without that number needs more than the range.
  constexpr size_t tried = 8;
  constexpr float leastShare = 0.8f;
  const float mostShare = hasMinimum ? 1 : middle / (middle - 1);
  // 1 is first, as it is exact for what was stored in this format before.
  std::array<float, tried + 1> shares = {1};
  const size_t first = mostShare > 1 ? 1 : 0;
  for (size_t i = 1; i <= tried; ++i)
    shares[i] = mostShare - (mostShare - leastShare) *
                                static_cast<float>(i - first) /
                                static_cast<float>(tried - first);
  SANDWICH_ASSIGN_OR_RETURN(
      const Rounding rounding,
      roundGroup(format.scale, numbers,
                 findBest(numbers, shares, values, weights, makeRounding, fit),
                 values, stored));
  return GroupScale{rounding.scale, hasMinimum ? rounding.base : 0};
}

static Result<GroupScale> quantizeFloats(const StorageFormat &format,
                                         std::span<const float> values,
                                         std::span<const double> weights,
                                         std::span<uint8_t> stored) {
  const auto [low, high] = std::ranges::minmax(values);
  const float largest = std::max(-low, high);
  auto makeRounding = [&](float share) -> Rounding {
    return {usableScale(
                roundToScale(format.scale, largest / largestFloat8 * share)),
            0};
  };
  // The largest value becomes each of the numbers with the largest exponent in
  // turn. A finer scale would only cut it off, as errors are a share of each
  // value, and twice a scale rounds to the same values but for the smallest.
  constexpr std::array<float, 7> shares = {1,
                                           448.0f / 416,
                                           448.0f / 384,
                                           448.0f / 352,
                                           448.0f / 320,
                                           448.0f / 288,
                                           448.0f / 256};
  const Floats8 numbers;
  auto fit = [&](const Rounding &rounding,
                 std::span<const double> weights) -> Rounding {
    const Rounding line = fitLine(rounding, numbers, 0.0f, values, weights);
    return {usableScale(roundToScale(format.scale, line.scale)), 0};
  };
  SANDWICH_ASSIGN_OR_RETURN(
      const Rounding rounding,
      roundGroup(format.scale, numbers,
                 findBest(numbers, shares, values, weights, makeRounding, fit),
                 values, stored));
  return GroupScale{rounding.scale};
}

Result<GroupScale> sandwich::quantizeGroup(const StorageFormat &format,
                                           std::span<const float> values,
                                           std::span<uint8_t> numbers,
                                           std::span<const float> importance) {
  assert(format.isQuantized() && values.size() == numbers.size() &&
         !values.empty());
  assert(importance.empty() || importance.size() == values.size());
  const std::vector<double> weights = weighErrors(importance);
  return format.hasIntegers()
             ? quantizeIntegers(format, values, weights, numbers)
             : quantizeFloats(format, values, weights, numbers);
}

void sandwich::dequantizeGroup(const StorageFormat &format,
                               const GroupScale &group,
                               std::span<const uint8_t> numbers,
                               std::span<float> values) {
  assert(numbers.size() == values.size());
  if (!format.hasIntegers()) {
    for (size_t i = 0; i < numbers.size(); ++i)
      values[i] = group.scale * fromFloat8(numbers[i]);
    return;
  }
  const int64_t zero =
      format.offset == GroupOffset::None ? format.storedZero() : 0;
  for (size_t i = 0; i < numbers.size(); ++i)
    values[i] =
        group.scale * static_cast<float>(numbers[i] - zero) + group.minimum;
}
