//===- LogitAdjustments.h - What a request changes of logits ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SAMPLING_LOGITADJUSTMENTS_H
#define SANDWICH_SAMPLING_LOGITADJUSTMENTS_H

#include "sandwich/Sampling/SamplingOptions.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sandwich {

/// The logits that differ from the model's, as `SamplingOptions` asks for:
/// tokens barred or with a bias, and tokens seen before, with penalties. Memory
/// is proportional to the tokens named and seen; tokens outside of the
/// vocabulary are without effect.
class LogitAdjustments {
public:
  /// What happens to the logit of one token.
  struct Adjustment {
    int32_t token;
    /// Added: minus infinity bars the token.
    float bias = 0;
    /// One of those that `minTokens` bars.
    bool barred = false;
    /// In the prompt or the output.
    bool seen = false;
    /// How often it was output.
    uint32_t outputs = 0;
  };

  /// `endTokens` are those that `minTokens` bars.
  LogitAdjustments(const SamplingOptions &options,
                   std::span<const int32_t> endTokens);

  void addPrompt(std::span<const int32_t> tokens);
  void addOutput(int32_t token);

  /// Whether no logit of the next token is changed.
  bool empty() const { return adjustments.empty(); }

  /// Those of tokens [first, first + count), ascending.
  std::span<const Adjustment> ofTokens(size_t first, size_t count) const;

  /// What becomes of `logit`.
  float apply(float logit, const Adjustment &adjustment) const;

private:
  Adjustment &add(int32_t token);

  uint64_t minTokens;
  float repetitionPenalty, frequencyPenalty, presencePenalty;
  uint64_t outputs = 0;
  /// Ascending by token, at most one for each.
  std::vector<Adjustment> adjustments;
};

} // namespace sandwich

#endif // SANDWICH_SAMPLING_LOGITADJUSTMENTS_H
