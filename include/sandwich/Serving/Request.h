//===- Request.h - What is asked for and what comes back --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_REQUEST_H
#define SANDWICH_SERVING_REQUEST_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace sandwich {

/// Counts from 1 in the order of admission.
using RequestId = uint64_t;

/// The highest `Request::priority`.
inline constexpr uint32_t maxPriority = 7;

/// A prompt that is to be continued. Tokens are vocabulary ids, which the
/// scheduler never looks into.
struct Request {
  std::vector<int32_t> prompt;
  /// Tokens that each text may get at most; 0 only where the prompt is scored.
  uint64_t maxTokens = 1;
  /// Texts that continue the prompt, each by itself.
  uint32_t continuations = 1;
  /// Higher comes earlier, up to `maxPriority`.
  uint32_t priority = 0;
  /// When there is no use in the request any more, in the scheduler's seconds.
  std::optional<double> deadline = {};
  /// Requests with other salts share no prefix with this one.
  uint64_t salt = 0;
  /// The logits behind all tokens of the prompt but the last are wanted, once
  /// each, so that tokens which the prefix cache has are computed again.
  bool scoresPrompt = false;
};

/// Why a text ends.
enum class FinishReason {
  /// The model says so: an end token.
  EndOfText,
  /// The caller says so, for instance at a stop string.
  Stopped,
  /// It has `Request::maxTokens` tokens.
  MaxTokens,
  /// No token more fits into the model's context.
  ContextFull,
};

/// A token that the caller has chosen from logits, and why the text ends with
/// it, if it does: `EndOfText` or `Stopped`.
struct ChosenToken {
  int32_t token;
  std::optional<FinishReason> ends = {};
};

/// A text got a token, and may have ended with it.
struct TokenEvent {
  RequestId request;
  /// Which of the request's continuations, from 0.
  uint32_t text;
  int32_t token;
  std::optional<FinishReason> finish;
};

/// Tokens of a prompt that were scored: from the token `first` on, which is not
/// before the prompt's second.
struct ScoreEvent {
  RequestId request;
  uint64_t first;
  uint64_t count;
};

/// How a request was served. Every admitted request gets one, in its end.
struct RequestEnd {
  RequestId request;
  /// Success: all its texts have finished. Errors: Cancelled,
  /// DeadlineExceeded, and whatever `Scheduler::fail` was called with.
  Status status;
  /// Seconds from the admission to the first step, from there to the first
  /// token, and from there to the end; 0 for what was not reached.
  double queueSeconds = 0;
  double prefillSeconds = 0;
  double decodeSeconds = 0;
  /// When that was, in the scheduler's seconds.
  double admittedAt = 0;
  std::optional<double> startedAt = {};
  std::optional<double> firstTokenAt = {};
  double endedAt = 0;
  uint64_t promptTokens = 0;
  /// Of the prompt, found in the prefix cache when the request first began.
  uint64_t cachedTokens = 0;
  /// Of all texts.
  uint64_t generatedTokens = 0;
  uint64_t preemptions = 0;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_REQUEST_H
