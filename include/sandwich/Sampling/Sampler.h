//===- Sampler.h - From logits to a token -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A request has a `Sampler`; a step of many requests calls `sampleBatch`. What
/// is chosen is fixed by this plain definition, in double:
///
/// - Tokens that a constraint does not allow are barred: their logits are minus
///   infinity, whatever follows. Then logits are adjusted as `SamplingOptions`
///   says.
/// - The weight of a token is exp((logit - largest logit) * (1 / temperature)).
/// - Tokens below min-p are left out, then those beyond top-k, then those that
///   top-p does not need, as `SamplingOptions` says.
/// - A number in [0, 1) is drawn, times the sum of the weights left. The first
///   token at which the running sum of weights exceeds it is chosen. Sums run
///   from the most probable token on where top-k left tokens out or top-p is
///   below 1, and otherwise in the order of token ids.
///
/// Faster ways are taken only where they cannot choose another token: sums of
/// vectorized exponentials with a known error tell where to look, and where
/// that error leaves a doubt, the definition is computed. So neither the number
/// of threads nor the kind of vectors that a CPU has changes a token; the same
/// options and logits give the same tokens on every machine whose `exp` of
/// doubles agrees.
///
/// A model may bring a kernel of its own (`lm.sampling`), which then draws
/// where the temperature is above zero, in the place of what is said here of
/// weights.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SAMPLING_SAMPLER_H
#define SANDWICH_SAMPLING_SAMPLER_H

#include "sandwich/Sampling/LogitAdjustments.h"
#include "sandwich/Sampling/SamplingOptions.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace sandwich {

struct TokenLogProbability {
  int32_t token;
  /// The natural logarithm of its probability, with an error of 1e-5 beside its
  /// own rounding; within that, CPUs with other vectors may differ.
  float logProbability;
};

struct SampledToken {
  int32_t token = -1;
  /// Of the chosen token; only where `SamplingOptions::logProbabilities` is
  /// set.
  std::optional<float> logProbability = std::nullopt;
  /// The most probable tokens, most probable first: as many as
  /// `SamplingOptions::logProbabilities` says, or fewer where the model gives
  /// fewer tokens a probability.
  std::vector<TokenLogProbability> top = {};
};

/// What a kernel is given that draws a token in the place of the definition.
struct DrawInput {
  /// [vocab_size] After all that a request changes of them: minus infinity bars
  /// a token, and some are finite.
  std::span<const float> logits;
  /// [vocab_size] Whatever it holds; the kernel's.
  std::span<float> weights;
  /// Of the request, at a temperature above zero.
  const SamplingOptions &options;
  /// The number of the definition, in [0, 1).
  double place;
};

/// The token that such a kernel draws. Several threads may call it at once.
using DrawToken = std::function<int32_t(const DrawInput &input)>;

/// Draws the tokens of one request, with a random state of its own:
/// std::mt19937_64, whose sequence the C++ standard fixes. Each token drawn at
/// a temperature above zero takes one number from it. Memory is proportional to
/// the tokens observed, not to the vocabulary; but threads on which kernels
/// draw keep two numbers for each token of it.
class Sampler {
public:
  /// `options` must be valid. `endTokens` are those that `minTokens` bars:
  /// `StopConditions::endingTokens`.
  explicit Sampler(const SamplingOptions &options,
                   std::span<const int32_t> endTokens = {})
      : options(options), adjustments(options, endTokens),
        generator(options.seed) {}

  /// Counts tokens of the prompt, for the repetition penalty. It may come in
  /// pieces.
  void observePrompt(std::span<const int32_t> tokens) {
    adjustments.addPrompt(tokens);
  }

  /// Counts `token` as output, for penalties and `minTokens`: what `sample`
  /// chose, or what somebody else did.
  void accept(int32_t token) { adjustments.addOutput(token); }

  /// A token for `logits`, [vocab_size], in which minus infinity bars a token;
  /// what was counted stays as it is. Of `allowed`, a bit for each token as
  /// `TokenConstraint::allowedTokens` gives them, those that are not set bar a
  /// token, too, and so do those that are missing; none at all: every token is
  /// allowed. Errors (`Internal`): a logit that is NaN or plus infinity, as the
  /// model computed it or after penalties, whether the token is allowed or not,
  /// or no token left; or the kernel `draw`, if there is one, gave a token that
  /// is barred or outside of the vocabulary.
  Result<SampledToken> sample(std::span<const float> logits,
                              std::span<const uint64_t> allowed = {},
                              const DrawToken *draw = nullptr);

private:
  friend class RowStep;

  SamplingOptions options;
  LogitAdjustments adjustments;
  std::mt19937_64 generator;
};

/// Calls `task(0)` to `task(count - 1)`, each once, in any order and on any
/// threads, and returns when all have returned; what one call wrote, those of
/// the next `ParallelFor` see.
using ParallelFor = std::function<void(
    size_t count, const std::function<void(size_t index)> &task)>;

/// One row of a step: `logits`, [vocab_size], for the next token of `sampler`,
/// which is one of `allowed`, drawn by `draw` if that is not null.
struct SamplingRow {
  Sampler *sampler;
  std::span<const float> logits;
  std::span<const uint64_t> allowed = {};
  const DrawToken *draw = nullptr;
};

/// What `Sampler::sample` returns for each of `rows`, whose samplers are all
/// different, computed by `threads` threads (at least 1): `parallelFor` is
/// called once where there are many rows for each thread, and otherwise twice,
/// with a part of a row for each thread. The results depend on neither. The
/// error of one row leaves the others as they are.
std::vector<Result<SampledToken>> sampleBatch(std::span<const SamplingRow> rows,
                                              size_t threads,
                                              const ParallelFor &parallelFor);

/// A row of a step behind which the text is known: `logits`, [vocab_size], of
/// which `token` is one.
struct ScoringRow {
  std::span<const float> logits;
  int32_t token;
  /// As `SamplingOptions::logProbabilities`.
  uint32_t top = 0;
};

/// For each of `rows` its token, with its log-probability and those of the most
/// probable tokens, in one call of `parallelFor`. Errors (`Internal`): a logit
/// that is NaN or plus infinity, or all are minus infinity; the error of one
/// row leaves the others as they are.
std::vector<Result<SampledToken>> scoreBatch(std::span<const ScoringRow> rows,
                                             const ParallelFor &parallelFor);

} // namespace sandwich

#endif // SANDWICH_SAMPLING_SAMPLER_H
