//===- Strategies.cpp - Ways to search ------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Strategies.h"
#include "StrategyFamilies.h"

#include <algorithm>
#include <cmath>
#include <string>

using namespace sandwich;

namespace {

struct NamedStrategy {
  Strategy strategy;
  std::string_view name;
};

// In the order of Strategy.
constexpr NamedStrategy namedStrategies[] = {
    {Strategy::Sandwich, "sandwich"},
    {Strategy::ScaleUpAndOut, "scale-up-and-out"},
    {Strategy::CostModel, "cost-model"},
    {Strategy::Exhaustive, "exhaustive"},
    {Strategy::SandwichWithoutSplitK, "sandwich-without-split-k"},
};

} // namespace

Error sandwich::noMicroKernel(const Payload &payload) {
  return makeError("no micro-kernel can multiply a weight of ", payload.shape.n,
                   " x ", payload.shape.k);
}

std::array<int64_t, 3> sandwich::mostEvenGrid(const Payload &payload,
                                              const Packing &packing) {
  std::array<int64_t, 3> best = {1, 1, 1};
  double least = INFINITY;
  for (const std::array<int64_t, 3> &grid : threadGrids(payload, packing)) {
    std::array<int64_t, 3> part = largestPart(payload, packing, grid);
    double work = static_cast<double>(part[0]) * part[1] * part[2];
    if (grid[2] > 1)
      work *= 1.25;
    // On a tie columns are split before rows.
    if (work < least || (work == least && grid[1] > best[1])) {
      least = work;
      best = grid;
    }
  }
  return best;
}

std::span<const Strategy> sandwich::allStrategies() {
  static const auto all = [] {
    std::array<Strategy, std::size(namedStrategies)> strategies;
    std::ranges::transform(namedStrategies, strategies.begin(),
                           &NamedStrategy::strategy);
    return strategies;
  }();
  return all;
}

std::string_view sandwich::name(Strategy strategy) {
  return namedStrategies[static_cast<size_t>(strategy)].name;
}

Result<Strategy> sandwich::strategyNamed(std::string_view text) {
  std::string known;
  for (const NamedStrategy &named : namedStrategies) {
    if (named.name == text)
      return named.strategy;
    known += (known.empty() ? "" : ", ") + std::string(named.name);
  }
  return makeError("unknown strategy '", text, "'; known are ", known);
}

bool sandwich::usesSplitK(Strategy strategy) {
  return strategy != Strategy::SandwichWithoutSplitK;
}

std::unique_ptr<SearchStrategy> sandwich::makeStrategy(Strategy strategy) {
  switch (strategy) {
  case Strategy::Sandwich:
  case Strategy::SandwichWithoutSplitK:
    return makeSandwichStrategy(usesSplitK(strategy));
  case Strategy::ScaleUpAndOut:
    return makeScaleUpAndOutStrategy();
  case Strategy::CostModel:
    return makeCostModelStrategy();
  case Strategy::Exhaustive:
    return makeExhaustiveStrategy();
  }
  __builtin_unreachable();
}
