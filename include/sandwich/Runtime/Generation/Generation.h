//===- Generation.h - Continuing a text -------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_GENERATION_GENERATION_H
#define SANDWICH_RUNTIME_GENERATION_GENERATION_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Sampling/Sampler.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace sandwich {

/// The tokenizer in `artifact`, or nothing if it has none. Errors name the
/// file and what is wrong with it.
Result<std::optional<Tokenizer>> loadTokenizer(const Artifact &artifact);

/// Error: a prompt of `tokens` tokens is longer than the model's context.
Status checkPromptLength(const proto::ModelConfiguration &model,
                         uint64_t tokens);

/// Error: one of `logits`, [rows, `vocabSize`], of the tokens from `position`
/// on is NaN or plus infinity; minus infinity bars a token. It names the
/// position and the token.
Status checkLogits(std::span<const float> logits, uint64_t position,
                   uint64_t vocabSize);

struct GenerationOptions {
  /// Tokens to generate at most.
  uint64_t maxTokens = 128;
  /// The prompt that penalties count is the one given to `generate`, and log
  /// probabilities are not told.
  SamplingOptions sampling = {};
};

enum class StopReason {
  /// The model produced one of its end-of-text tokens, which is not among the
  /// generated ones.
  EndOfText,
  MaxTokens,
  /// The sequence holds as many tokens as the model's context.
  ContextFull,
  /// The KV cache has no room for another token.
  CacheFull,
  /// The caller asked for it.
  Stopped,
};

/// "end-of-text", "max-tokens", "context-full", "cache-full" or "stopped".
const char *stopReasonName(StopReason reason);

struct GenerationStatistics {
  uint64_t promptTokens = 0;
  std::vector<int32_t> tokens;
  StopReason stopReason = StopReason::MaxTokens;
  /// Time to first token: from the start of the prefill until the first token
  /// is chosen.
  double timeToFirstTokenMs = 0;
  /// Time per output token: the mean over those after the first, or zero.
  double timePerOutputTokenMs = 0;
};

/// Feeds `prompt` to `sequence` and generates tokens. `onToken` gets each
/// token and tells whether to go on; `stopRequested` is asked between the
/// steps of the prompt, too. Either may be empty. `logits`, if not null,
/// follows the sequence: it becomes the logits after the token fed last,
/// [vocab_size], and empty after a step without logits. Errors: invalid options
/// or tokens, found before anything is fed, or whatever `Engine::feed` and
/// `checkLogits` find.
Result<GenerationStatistics>
generate(Engine &engine, Sequence &sequence, std::span<const int32_t> prompt,
         const GenerationOptions &options,
         const std::function<bool(int32_t token)> &onToken,
         const std::function<bool()> &stopRequested = {},
         std::vector<float> *logits = nullptr);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_GENERATION_GENERATION_H
