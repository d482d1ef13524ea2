//===- PredictionComparison.h - How far predictions are apart ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ACCURACY_PREDICTIONCOMPARISON_H
#define SANDWICH_ACCURACY_PREDICTIONCOMPARISON_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sandwich {

/// How an artifact predicts the tokens of a text, compared with its original.
struct PredictionComparison {
  /// For each token the Kullback-Leibler divergence, in nats, of what the
  /// artifact expects to follow from what the original does. Not empty.
  std::vector<double> divergences;
  /// Of them all.
  double meanDivergence() const;
  /// The least that so large a share of them does not exceed.
  double divergenceOfShare(double share) const;

  /// Tokens after which both expect the same one most.
  uint64_t agreements = 0;
  /// The share of those.
  double agreement() const;

  /// e to the mean negative log-probability of the tokens but the first; 1 of
  /// one token.
  double perplexity = 1, originalPerplexity = 1;
};

/// Runs `tokens`, at least one and no more than the context, as a sequence of
/// its own, and compares the logits with `original`, [tokens, vocabulary].
/// `progress` hears how much is done, from 0 to 1, and stops by an error.
/// Errors: of the engine, as for a logit that is no number; a logit of the
/// original that is not finite.
Result<PredictionComparison>
comparePredictions(Engine &engine, std::span<const int32_t> tokens,
                   std::span<const double> original,
                   const std::function<Status(double done)> &progress);

} // namespace sandwich

#endif // SANDWICH_ACCURACY_PREDICTIONCOMPARISON_H
