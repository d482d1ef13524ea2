//===- ServedRequest.h - What became of a request ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_SERVEDREQUEST_H
#define SANDWICH_RUNTIME_MEASUREMENT_SERVEDREQUEST_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// Why a request was not served to its end.
struct ServingFailure {
  /// What all of its kind share: "HTTP 503".
  std::string kind;
  /// What this one says.
  std::string message;
};

/// When a request was served, in seconds after the replay began.
struct ServedRequest {
  double arrival = 0;
  double firstToken = 0;
  double lastToken = 0;
  uint64_t promptTokens = 0;
  uint64_t outputTokens = 0;
  /// Seconds from each token to the next; of a stream whose pieces may hold
  /// several tokens, from each piece to the next.
  std::vector<double> gaps = {};
  /// It was not served, as too many others were there.
  bool refused = false;

  // Of requests to a server; a replay has none of it.

  /// When it was sent, which is not before `arrival`, and when nothing more
  /// came: the end of the stream, the refusal or the failure.
  double sent = 0;
  double ended = 0;
  /// Of the prompt, those that the server did not compute anew, if it tells.
  uint64_t cachedPromptTokens = 0;
  /// Nothing: it was served or refused.
  std::optional<ServingFailure> failure = {};

  bool isServed() const { return !refused && !failure; }
  double latencySeconds() const { return lastToken - arrival; }
  double firstTokenSeconds() const { return firstToken - arrival; }
  /// The mean of each token after the first; nothing of one token.
  std::optional<double> secondsPerToken() const {
    if (outputTokens < 2)
      return std::nullopt;
    return (lastToken - firstToken) / static_cast<double>(outputTokens - 1);
  }
};

struct TraceReplayOptions {
  /// Called now and then with the number of requests that are done.
  std::function<void(size_t done)> progress = {};
  /// Asked now and then.
  std::function<bool()> stop = {};
  /// Gets each request that was served to its end or refused, in the trace's
  /// order; false: no more are needed, and the replay stops.
  std::function<bool(const ServedRequest &request)> observe = {};
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_SERVEDREQUEST_H
