//===- TraceReplay.h - Serving a trace in real time -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_TRACEREPLAY_H
#define SANDWICH_RUNTIME_MEASUREMENT_TRACEREPLAY_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace sandwich {

struct TraceReplayOptions {
  /// Sequences that generate at a time; at most what the engine's decode steps
  /// take.
  uint64_t maxBatch = usualMaxBatch;
  /// Called after each step with the number of requests that are done.
  std::function<void(size_t done)> progress = {};
  /// Asked between steps.
  std::function<bool()> stop = {};
};

/// When a request was served, in seconds after the replay began.
struct ServedRequest {
  double arrival = 0;
  double firstToken = 0;
  double lastToken = 0;
  uint64_t promptTokens = 0;
  uint64_t outputTokens = 0;
};

/// Tokens that the longest `maxBatch` requests hold together, for
/// `EngineOptions::kvCacheTokens`.
uint64_t replayTokens(const ServingTrace &trace, uint64_t maxBatch);

/// Serves a trace of random tokens with continuous batching: who has arrived
/// and for whose whole text the KV cache has room gets its prompt run, first
/// come first served, and all who generate get their next token in one step.
/// Prefill and decode steps follow each other in any order. A request without
/// an arrival time comes when nothing is left to do. Returns the requests that
/// were served to their end, all unless stopped, in the trace's order. Errors:
/// a request that the context or the whole KV cache is too small for; of the
/// engine.
Result<std::vector<ServedRequest>>
replayTrace(Engine &engine, const ServingTrace &trace,
            const TraceReplayOptions &options = {});

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_TRACEREPLAY_H
