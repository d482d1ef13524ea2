//===- SamplingOptions.h - How tokens are chosen ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SAMPLING_SAMPLINGOPTIONS_H
#define SANDWICH_SAMPLING_SAMPLINGOPTIONS_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace sandwich {

/// What a request wants of its tokens. The operations follow each other in the
/// order that vLLM's `Sampler` documents (`vllm/v1/sample/sampler.py`),
/// which is that of the fields from `minTokens` to `topP`, after the tokens
/// that a constraint does not allow are barred; where it leaves something open,
/// as the order of tokens with equal logits, the smaller token id comes first.
/// Adjustments of logits are computed in float, probabilities in double.
struct SamplingOptions {
  /// The largest `logProbabilities`: OpenAI's.
  static constexpr uint32_t maxLogProbabilities = 20;
  /// The largest value in `logitBias`, and minus the smallest finite one.
  static constexpr float maxLogitBias = 100;
  /// The largest presence and frequency penalty, and minus the smallest.
  static constexpr float maxPenalty = 2;

  /// Tokens that end the text are barred until so many tokens are output.
  uint64_t minTokens = 0;
  /// Added to the logit of each token named; minus infinity bars the token.
  std::map<int32_t, float> logitBias = {};
  /// Logits of the tokens in prompt and output are divided by it where they are
  /// above zero and multiplied otherwise (Keskar et al. 2019, section 4.1); 1
  /// changes nothing.
  float repetitionPenalty = 1;
  /// Subtracted from the logit of a token once for each time it was output:
  /// OpenAI's `frequency_penalty`.
  float frequencyPenalty = 0;
  /// Subtracted from the logits of tokens that were output: OpenAI's
  /// `presence_penalty`.
  float presencePenalty = 0;
  /// 0 takes the most probable token, and what follows is without effect;
  /// otherwise logits are divided by it.
  float temperature = 0;
  /// Only tokens are considered that are at least `minP` times as probable as
  /// the most probable one; 0 considers all.
  float minP = 0;
  /// Only the `topK` most probable tokens are considered; 0 considers all.
  uint32_t topK = 0;
  /// Only the smallest set of most probable tokens whose probabilities reach
  /// `topP`, among those still considered, is considered; 1 considers all.
  float topP = 1;

  uint64_t seed = 0;
  /// With it, the log-probability of each chosen token is told, and so many of
  /// the most probable tokens with theirs. They are of the distribution that
  /// the model computed, before any of the operations above: vLLM's
  /// `raw_logprobs`.
  std::optional<uint32_t> logProbabilities = std::nullopt;
  /// The text goes on when the model ends it; `StopConditions` looks at this.
  bool ignoreEndOfText = false;

  /// Errors (`InvalidArgument`): a field out of its range, the first in the
  /// order above that is, with its name, value and range.
  Status validate() const;

  /// Error (`InvalidArgument`): `logitBias` names a token that a model with
  /// this many does not have.
  Status checkTokens(size_t vocabularySize) const;
};

} // namespace sandwich

#endif // SANDWICH_SAMPLING_SAMPLINGOPTIONS_H
