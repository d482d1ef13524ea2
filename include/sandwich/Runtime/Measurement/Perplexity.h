//===- Perplexity.h - How well a model predicts a text ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_PERPLEXITY_H
#define SANDWICH_RUNTIME_MEASUREMENT_PERPLEXITY_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sandwich {

/// Tokens of a text that are fed together, and of which some are scored: each
/// by what the tokens before it in the window let expect.
struct PerplexityWindow {
  /// The first token, how many there are, and the first that is scored.
  size_t begin = 0, size = 0, firstScored = 0;

  bool operator==(const PerplexityWindow &) const = default;
};

/// Windows of at most `window` tokens, each `stride` after the one before, but
/// with one token that was scored, so that every token of a text of `tokens`
/// but the first is scored once, those of later windows with at least
/// `window - stride` tokens before them. `stride` is from 1 to `window`, which
/// is at least 2.
std::vector<PerplexityWindow> perplexityWindows(size_t tokens, size_t window,
                                                size_t stride);

struct Perplexity {
  /// Tokens that were scored.
  uint64_t tokens = 0;
  /// The mean of their negative log-probabilities, in nats, and its standard
  /// error as if they were independent.
  double meanNats = 0, meanNatsError = 0;

  /// e to the mean.
  double value() const;
  double error() const { return value() * meanNatsError; }
};

/// The perplexity of `tokens`, at least two, fed in `windows`, each as a
/// sequence of its own. `progress` gets how many tokens were scored, and stops
/// by an error. Errors: of the engine; a logit that is NaN or plus infinity; a
/// token with a probability of 0.
Result<Perplexity>
measurePerplexity(Engine &engine, std::span<const int32_t> tokens,
                  std::span<const PerplexityWindow> windows,
                  const std::function<Status(uint64_t scored)> &progress);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_PERPLEXITY_H
