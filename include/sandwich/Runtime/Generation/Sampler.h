//===- Sampler.h - From logits to a token -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_GENERATION_SAMPLER_H
#define SANDWICH_RUNTIME_GENERATION_SAMPLER_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace sandwich {

struct SamplingOptions {
  /// 0 takes the most probable token; otherwise logits are divided by it.
  float temperature = 0;
  /// Only the `topK` most probable tokens are considered; 0 considers all.
  uint32_t topK = 0;
  /// Only the smallest set of most probable tokens whose probabilities reach
  /// `topP` is considered; 1 considers all.
  float topP = 1;
  uint64_t seed = 0;

  /// Error: a temperature below zero or not finite, or `topP` outside (0, 1].
  Status validate() const;
};

/// Draws tokens. The same options and logits give the same tokens on every
/// machine whose `exp` agrees: draws come from std::mt19937_64, whose sequence
/// the C++ standard fixes, and ties are broken by the smaller token id.
class Sampler {
public:
  /// `options` must be valid.
  explicit Sampler(const SamplingOptions &options)
      : options(options), generator(options.seed) {}

  /// A token id for `logits`, [vocab_size]. Minus infinity bars a token.
  /// Errors: a logit that is NaN or plus infinity, or no token left.
  Result<int32_t> sample(std::span<const float> logits);

private:
  struct Candidate {
    float logit;
    int32_t token;
    /// exp of the scaled difference to the largest logit.
    double weight;
  };

  SamplingOptions options;
  std::mt19937_64 generator;
  std::vector<Candidate> candidates;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_GENERATION_SAMPLER_H
