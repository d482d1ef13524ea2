//===- TraceReplay.h - Serving a trace in real time -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_TRACEREPLAY_H
#define SANDWICH_RUNTIME_MEASUREMENT_TRACEREPLAY_H

#include "sandwich/Runtime/Measurement/ServedRequest.h"
#include "sandwich/Service/Service.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstdint>
#include <vector>

namespace sandwich {

/// Tokens that the longest `maxBatch` requests hold together, for
/// `EngineOptions::kvCacheTokens`.
uint64_t replayTokens(const ServingTrace &trace, uint64_t maxBatch);

/// How `options` must be for a service that refuses no request of `trace` for
/// want of room in its queue.
void makeRoomFor(const ServingTrace &trace, SchedulerOptions &options);

/// Sends the requests of a trace to a service that nobody else uses, each when
/// it arrives; their tokens are random, and no two begin alike, nor as those of
/// replays before. A request without an arrival time comes when all before it
/// are done. Returns the requests that were served to their end or refused, all
/// unless stopped, in the trace's order. Errors: a request that the context or
/// the whole KV cache is too small for; of a request that the service could not
/// serve to its end.
Result<std::vector<ServedRequest>>
replayTrace(Service &service, const ServingTrace &trace,
            const TraceReplayOptions &options = {});

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_TRACEREPLAY_H
