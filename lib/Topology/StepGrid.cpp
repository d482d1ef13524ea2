//===- StepGrid.cpp - Times of a few steps stand for all ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/StepGrid.h"

#include <algorithm>
#include <cmath>
#include <iterator>

using namespace sandwich;

/// The smallest element that `share` of all are not larger than.
static int64_t quantile(std::vector<int64_t> values, double share) {
  const double place =
      std::ceil(share * static_cast<double>(values.size())) - 1;
  auto element =
      values.begin() + static_cast<std::ptrdiff_t>(std::max(place, 0.0));
  std::ranges::nth_element(values, element);
  return *element;
}

static std::vector<int64_t> ascending(std::vector<int64_t> values) {
  std::ranges::sort(values);
  auto [first, last] = std::ranges::unique(values);
  values.erase(first, last);
  return values;
}

StepGrid sandwich::stepGridFor(const ServingTrace &trace, int64_t contextLength,
                               int64_t maxSequences) {
  std::vector<int64_t> prompts, texts;
  for (const ServingRequest &request : trace) {
    prompts.push_back(
        std::clamp<int64_t>(request.promptTokens, 1, contextLength - 1));
    texts.push_back(std::clamp<int64_t>(
        request.promptTokens + request.outputTokens, 1, contextLength - 1));
  }
  StepGrid grid;
  grid.promptTokens = ascending(
      {quantile(prompts, 0), quantile(prompts, 0.5), quantile(prompts, 0.9)});
  grid.positions = ascending({quantile(prompts, 0.25), quantile(texts, 0.9)});
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

double InterpolatedSteps::promptSeconds(int64_t tokens) const {
  return std::max(0.0,
                  interpolate(grid.promptTokens, static_cast<double>(tokens),
                              [&](size_t i) { return prompts[i]; }));
}

double InterpolatedSteps::decodeSeconds(int64_t sequences, int64_t positions,
                                        int64_t steps) const {
  const double first =
      static_cast<double>(positions) / static_cast<double>(sequences);
  double seconds = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const double each = first + static_cast<double>(step);
    seconds += std::max(
        0.0, interpolate(grid.sequences, static_cast<double>(sequences),
                         [&](size_t row) {
                           return interpolate(
                               grid.positions, each,
                               [&](size_t i) { return decodes[row][i]; });
                         }));
  }
  return seconds;
}
