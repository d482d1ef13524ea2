//===- TokenChoice.h - Which token it is ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SAMPLING_TOKENCHOICE_H
#define SANDWICH_LIB_SAMPLING_TOKENCHOICE_H

#include "Candidates.h"
#include "LogitBlocks.h"

#include "sandwich/Sampling/SamplingOptions.h"

#include <cstdint>
#include <optional>

namespace sandwich {

/// The scale of the sums of weights that choosing a token needs; 0 where it
/// needs none.
double scaleOfChoice(const SamplingOptions &options);

/// The token with the largest logit of `row`, one of which is finite.
int32_t mostProbableToken(const LogitBlocks &row);

/// Draws a token of a row at a temperature above zero.
class TokenDraw {
public:
  /// `row`, one of whose logits is finite, was scanned with `scaleOfChoice`.
  TokenDraw(const LogitBlocks &row, const SamplingOptions &options);

  /// The token at `place`, in [0, 1), of the distribution.
  int32_t draw(double place) const;

  /// The same by the definition in Sampler.h alone.
  int32_t drawByDefinition(double place) const;

private:
  double weightOf(float logit) const;
  float thresholdOfWeight(double weight) const;
  double possibleError(double total) const;

  /// Tokens of at least `threshold` and of min-p, ascending.
  Candidates collect(float threshold) const;
  /// A threshold below which all tokens are left out by min-p or top-k, and one
  /// more than top-k is not.
  float thresholdOfOptions() const;

  int32_t drawByDefinition(Candidates candidates, double place) const;

  // Nothing where sums are too inexact to tell which token it is.

  /// With neither min-p, top-k nor top-p.
  std::optional<int32_t> drawAmongAll(double place) const;
  /// With top-p alone.
  std::optional<int32_t> drawFromNucleus(double place) const;
  /// From the most probable of `candidates` on, of which there are more than
  /// top-k. `total` is the sum of the weights that top-p is a share of, if that
  /// is known better than from the candidates, and wrong by `error` at most.
  std::optional<int32_t> drawInOrder(const Candidates &candidates,
                                     std::optional<double> total, double error,
                                     double place) const;

  const LogitBlocks &row;
  const SamplingOptions &options;
  const double scale;
  const double largest;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SAMPLING_TOKENCHOICE_H
