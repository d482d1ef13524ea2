//===- StepGrid.cpp - Times of a few steps stand for all ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/StepGrid.h"

#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

using namespace sandwich;

static std::vector<int64_t> ascending(std::vector<int64_t> values) {
  std::ranges::sort(values);
  auto [first, last] = std::ranges::unique(values);
  values.erase(first, last);
  return values;
}

/// Lengths that occur `count` times each, for quantiles over all of them.
struct Weighted {
  int64_t length;
  int64_t count;
};

/// The shortest length that `share` of all are not longer than.
static int64_t weightedQuantile(std::vector<Weighted> lengths, double share) {
  std::ranges::sort(lengths, {}, &Weighted::length);
  double all = 0;
  for (const Weighted &each : lengths)
    all += static_cast<double>(each.count);
  double below = 0;
  for (const Weighted &each : lengths) {
    below += static_cast<double>(each.count);
    if (below >= share * all)
      return each.length;
  }
  return lengths.back().length;
}

StepGrid sandwich::stepGridFor(const ServingTrace &trace, int64_t contextLength,
                               int64_t maxSequences) {
  const int64_t longest = contextLength - 1;
  std::vector<int64_t> prompts;
  std::vector<Weighted> promptTokens, positions;
  for (const ServingRequest &request : trace) {
    const int64_t prompt =
        std::clamp<int64_t>(request.promptTokens, 1, longest);
    prompts.push_back(prompt);
    promptTokens.push_back({prompt, prompt});
    // Eighths of the output stand for its positions.
    constexpr int64_t parts = 8;
    const int64_t outputs =
        std::clamp<int64_t>(request.outputTokens, 1, contextLength);
    for (int64_t part = 0; part < parts; ++part)
      positions.push_back(
          {std::min(prompt + outputs * (2 * part + 1) / (2 * parts), longest),
           outputs});
  }
  // Lines through two places that are close would be those of noise.
  auto farBelow = [](int64_t low, int64_t high) {
    return std::max<int64_t>(1, std::min(low, high / 2));
  };
  StepGrid grid;
  const int64_t longPrompt = weightedQuantile(promptTokens, 0.75);
  const int64_t shortPrompt = farBelow(quantile(prompts, 0.1), longPrompt);
  const int64_t middlePrompt = std::clamp(quantile(prompts, 0.5), shortPrompt,
                                          farBelow(longPrompt, longPrompt));
  grid.promptTokens = ascending({shortPrompt, middlePrompt, longPrompt});
  const int64_t high = weightedQuantile(positions, 0.9);
  grid.positions =
      ascending({farBelow(weightedQuantile(positions, 0.1), high), high});
  grid.sequences = {1};
  const auto requests = static_cast<int64_t>(trace.size());
  if (trace.front().arrivalSeconds)
    for (int64_t several : {4, 16})
      if (several <= std::min(maxSequences, requests))
        grid.sequences.push_back(several);
  return grid;
}

/// The value at `x` on the line through the values at `places` around it.
template <typename ValueAt>
static double interpolate(const std::vector<int64_t> &places, double x,
                          const ValueAt &valueAt) {
  if (places.size() == 1)
    return valueAt(0);
  auto above = std::ranges::lower_bound(
      places, x, {}, [](int64_t place) { return static_cast<double>(place); });
  const auto last = static_cast<std::ptrdiff_t>(places.size()) - 1;
  const auto right = static_cast<size_t>(std::clamp<std::ptrdiff_t>(
      std::distance(places.begin(), above), 1, last));
  const auto from = static_cast<double>(places[right - 1]);
  const auto to = static_cast<double>(places[right]);
  const double start = valueAt(right - 1);
  const double slope = (valueAt(right) - start) / (to - from);
  // What noise lets fall from one to the other would fall below zero.
  const bool outside = x < from || x > to;
  return start + (outside ? std::max(slope, 0.0) : slope) * (x - from);
}

double InterpolatedSteps::promptSeconds(double tokens) const {
  return std::max(0.0, interpolate(grid.promptTokens, tokens,
                                   [&](size_t i) { return prompts[i]; }));
}

double InterpolatedSteps::decodeSeconds(double sequences,
                                        double positions) const {
  return std::max(0.0, interpolate(grid.sequences, sequences, [&](size_t row) {
                    return interpolate(
                        grid.positions, positions,
                        [&](size_t i) { return decodes[row][i]; });
                  }));
}

double InterpolatedSteps::seconds(const StepShape &shape) const {
  constexpr double least = 1e-9;
  const auto sequences = static_cast<double>(shape.decodeSequences);
  // What each sequence holds before the step.
  const double each =
      shape.decodeSequences == 0
          ? 0
          : static_cast<double>(shape.decodePositions) / sequences - 1;
  if (shape.promptTokens == 0)
    return std::max(least, decodeSeconds(sequences, each));
  const auto tokens = static_cast<double>(shape.promptTokens);
  const double before =
      static_cast<double>(shape.promptPositions) / tokens - (tokens + 1) / 2;
  double seconds = promptSeconds(before + tokens + sequences);
  if (before > 0)
    seconds -= promptSeconds(before);
  if (shape.decodeSequences > 0)
    seconds += std::max(0.0, decodeSeconds(sequences, each) -
                                 decodeSeconds(sequences, 0));
  return std::max(least, seconds);
}
