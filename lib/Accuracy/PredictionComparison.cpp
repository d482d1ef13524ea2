//===- PredictionComparison.cpp - How far predictions are apart -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Accuracy/PredictionComparison.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

using namespace sandwich;

double PredictionComparison::meanDivergence() const {
  return std::accumulate(divergences.begin(), divergences.end(), 0.0) /
         static_cast<double>(divergences.size());
}

double PredictionComparison::divergenceOfShare(double share) const {
  std::vector<double> sorted = divergences;
  std::ranges::sort(sorted);
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

double PredictionComparison::agreement() const {
  return static_cast<double>(agreements) /
         static_cast<double>(divergences.size());
}

/// What is to be subtracted from `logits` to have logarithms of probabilities.
template <typename Logit>
static double logSumExp(std::span<const Logit> logits) {
  const double largest = std::ranges::max(logits);
  double sum = 0;
  for (Logit logit : logits)
    sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

template <typename Logit> static size_t likeliest(std::span<const Logit> row) {
  return static_cast<size_t>(std::ranges::max_element(row) - row.begin());
}

Result<PredictionComparison> sandwich::comparePredictions(
    Engine &engine, std::span<const int32_t> tokens,
    std::span<const double> original,
    const std::function<Status(double done)> &progress) {
  const size_t columns = engine.vocabSize();
  assert(!tokens.empty() && original.size() == tokens.size() * columns);
  if (!std::ranges::all_of(original,
                           [](double logit) { return std::isfinite(logit); }))
    return makeError("the original has a logit that is not finite");
  PredictionComparison comparison;
  double nats = 0, originalNats = 0;
  auto compareRow = [&](size_t token, std::span<const float> found) -> Status {
    const auto expected = original.subspan(token * columns, columns);
    const double foundSum = logSumExp(found), expectedSum = logSumExp(expected);
    if (!std::ranges::all_of(found,
                             [](float each) { return std::isfinite(each); }))
      return makeError("after token number ", token,
                       " the artifact has a logit that is not finite");
    double divergence = 0;
    for (size_t i = 0; i < columns; ++i) {
      const double logarithm = expected[i] - expectedSum;
      divergence += std::exp(logarithm) * (logarithm - (found[i] - foundSum));
    }
    // Sums of the same distributions may be below 0 by their rounding.
    comparison.divergences.push_back(std::max(divergence, 0.0));
    comparison.agreements += likeliest(found) == likeliest(expected);
    if (token + 1 < tokens.size()) {
      const auto next = static_cast<size_t>(tokens[token + 1]);
      nats += foundSum - found[next];
      originalNats += expectedSum - expected[next];
    }
    return {};
  };
  Sequence sequence = engine.newSequence();
  SANDWICH_RETURN_IF_ERROR(
      engine.feed(sequence, tokens, LogitRows::All,
                  [&](std::span<const float> logits, uint64_t first,
                      uint64_t rows) -> Status {
                    for (uint64_t row = 0; row < rows; ++row)
                      SANDWICH_RETURN_IF_ERROR(compareRow(
                          first + row, logits.subspan(row * columns, columns)));
                    return progress(static_cast<double>(first + rows) /
                                    static_cast<double>(tokens.size()));
                  }));
  if (tokens.size() > 1) {
    const auto scored = static_cast<double>(tokens.size() - 1);
    comparison.perplexity = std::exp(nats / scored);
    comparison.originalPerplexity = std::exp(originalNats / scored);
  }
  return comparison;
}
