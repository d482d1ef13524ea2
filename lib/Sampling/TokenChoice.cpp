//===- TokenChoice.cpp - Which token it is --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenChoice.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace sandwich;

double sandwich::scaleOfChoice(const SamplingOptions &options) {
  const bool drawsAmongAll =
      options.temperature > 0 && options.topK == 0 && options.minP == 0;
  return drawsAmongAll ? 1.0 / options.temperature : 0;
}

int32_t sandwich::mostProbableToken(const LogitBlocks &row) {
  int32_t best = -1;
  row.visitAtLeast(row.largestLogit(), [&](int32_t token, float) {
    if (best < 0)
      best = token;
  });
  return best;
}

TokenDraw::TokenDraw(const LogitBlocks &row, const SamplingOptions &options)
    : row(row), options(options), scale(1.0 / options.temperature),
      largest(row.largestLogit()) {}

double TokenDraw::weightOf(float logit) const {
  return std::exp((logit - largest) * scale);
}

/// A logit that all tokens of at least this weight, at most 1, reach.
float TokenDraw::thresholdOfWeight(double weight) const {
  // Far more than rounding can change of a weight, and one float for that of
  // the threshold itself.
  constexpr double margin = 1e-9;
  const double logit = largest + (std::log(weight) - margin) / scale;
  const auto lowest = static_cast<double>(LogitBlocks::lowestLogit);
  return std::nextafter(static_cast<float>(std::max(logit, lowest)),
                        LogitBlocks::lowestLogit);
}

/// How far two sums of weights of which the larger is about `total` can be from
/// what the definition adds up, together.
double TokenDraw::possibleError(double total) const {
  // Each addition rounds by 2^-53; both ways and in both sums.
  return total *
         (2 * weightError + static_cast<double>(row.tokens()) * 4 * 0x1p-53);
}

Candidates TokenDraw::collect(float threshold) const {
  Candidates candidates;
  // Growing would touch new memory again and again.
  candidates.reserve(row.tokensAtMost(threshold));
  const double minP = options.minP;
  row.visitAtLeast(threshold, [&](int32_t token, float logit) {
    const double weight = weightOf(logit);
    if (weight >= minP)
      candidates.push_back({logit, token, weight});
  });
  return candidates;
}

float TokenDraw::thresholdOfOptions() const {
  float threshold = LogitBlocks::lowestLogit;
  if (options.topK > 0)
    threshold = row.thresholdOfRank(size_t(options.topK) + 1);
  if (options.minP > 0)
    threshold = std::max(threshold, thresholdOfWeight(options.minP));
  return threshold;
}

int32_t TokenDraw::draw(double place) const {
  std::optional<int32_t> token;
  if (scaleOfChoice(options) > 0) {
    token = options.topP < 1 ? drawFromNucleus(place) : drawAmongAll(place);
    return token ? *token : drawByDefinition(place);
  }
  Candidates candidates = collect(thresholdOfOptions());
  // Fewer are sorted soon enough.
  constexpr size_t many = 512;
  const bool inOrder = options.topP < 1 ||
                       (options.topK > 0 && options.topK < candidates.size());
  if (inOrder && candidates.size() > many)
    token = drawInOrder(candidates, std::nullopt, 0, place);
  return token ? *token : drawByDefinition(std::move(candidates), place);
}

int32_t TokenDraw::drawByDefinition(double place) const {
  return drawByDefinition(collect(LogitBlocks::lowestLogit), place);
}

/// Leaves the most probable candidates, in order, whose weights reach `wanted`.
static void keepNucleus(Candidates &candidates, double wanted) {
  std::ranges::sort(candidates, isMoreProbable);
  size_t kept = 0;
  for (double reached = 0; kept < candidates.size() && reached < wanted; ++kept)
    reached += candidates[kept].weight;
  candidates.resize(kept);
}

/// The candidate at which the running sum of weights exceeds `place` of it all.
static int32_t walk(const Candidates &candidates, double place) {
  double rest = place * sumOfWeights(candidates);
  int32_t last = candidates.front().token;
  for (const Candidate &candidate : candidates) {
    rest -= candidate.weight;
    if (rest < 0)
      return candidate.token;
    if (candidate.weight > 0)
      last = candidate.token;
  }
  // Rounding left a rest; the last token with any weight takes it.
  return last;
}

int32_t TokenDraw::drawByDefinition(Candidates candidates, double place) const {
  if (options.topK > 0 && options.topK < candidates.size()) {
    auto end = candidates.begin() + options.topK;
    std::nth_element(candidates.begin(), end, candidates.end(), isMoreProbable);
    candidates.erase(end, candidates.end());
    std::ranges::sort(candidates, isMoreProbable);
  }
  if (options.topP < 1)
    keepNucleus(candidates, options.topP * sumOfWeights(candidates));
  return walk(candidates, place);
}

std::optional<int32_t> TokenDraw::drawAmongAll(double place) const {
  const std::vector<double> sums = row.sumsBefore();
  const double target = place * sums.back();
  const double error = possibleError(sums.back());
  const auto after = std::upper_bound(sums.begin() + 1, sums.end() - 1, target);
  const auto block = static_cast<size_t>(after - sums.begin()) - 1;

  double sum = sums[block];
  std::optional<int32_t> found;
  bool certain = false;
  row.visitAtLeast(LogitBlocks::lowestLogit, block, block + 1,
                   [&](int32_t token, float logit) {
                     if (found)
                       return;
                     const double before = sum;
                     sum += weightOf(logit);
                     if (sum <= target)
                       return;
                     found = token;
                     certain = target - before > error && sum - target > error;
                   });
  return certain ? found : std::nullopt;
}

std::optional<int32_t> TokenDraw::drawFromNucleus(double place) const {
  const double total = row.sumsBefore().back();
  // n tokens below (1 - p) / n of the total cannot sum up to 1 - p, so none of
  // them is needed to reach p.
  const double negligible = (1 - static_cast<double>(options.topP)) * total /
                            static_cast<double>(row.tokens());
  const float lowest = thresholdOfWeight(std::min(negligible, 1.0));
  // A few tokens are enough as a rule.
  const float thresholds[] = {row.thresholdOfRank(64),
                              row.thresholdOfRank(row.count()), lowest};
  std::optional<int32_t> token;
  for (float threshold : thresholds)
    if (!token)
      token = drawInOrder(collect(std::max(threshold, lowest)), total,
                          2 * weightError * total, place);
  return token;
}

std::optional<int32_t> TokenDraw::drawInOrder(const Candidates &candidates,
                                              std::optional<double> total,
                                              double error,
                                              double place) const {
  // Weights beyond are below 1e-17.
  constexpr double logRange = 40;
  RankedCandidates ranked(candidates, logRange / scale);
  double sum = total ? *total : sumOfWeights(candidates);
  if (options.topK > 0 && options.topK < candidates.size())
    sum = ranked.sumOfFirst(options.topK);
  // Each addition rounds by 2^-53; here, by the definition, and twice.
  error += sum * static_cast<double>(row.tokens()) * 4 * 0x1p-53;
  if (options.topP < 1) {
    auto last = ranked.findSum(options.topP * sum, error);
    if (!last)
      return std::nullopt;
    sum = last->sum;
  }
  auto found = ranked.findSum(place * sum, error);
  return found ? std::optional(found->token) : std::nullopt;
}
