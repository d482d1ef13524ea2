//===- LoadRun.h - A trace sent to a server ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LOADTEST_LOADRUN_H
#define SANDWICH_LOADTEST_LOADRUN_H

#include "sandwich/LoadTest/TargetServer.h"
#include "sandwich/Runtime/Measurement/ServedRequest.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstddef>
#include <vector>

namespace sandwich {

struct LoadRunOptions {
  /// As for a replay; `observe` also gets those that failed.
  TraceReplayOptions replay = {};
  /// Requests under way at a time where requests have no arrival times: the
  /// next comes when one of them is done (a closed loop).
  size_t concurrency = 1;
  /// Requests before the first one that counts, one after another, of the
  /// first one's lengths; what becomes of them does not matter. A server that
  /// still has requests of a run before is done with them then.
  size_t warmUps = 1;
};

struct LoadRun {
  /// Those that were served, refused or failed, all unless stopped, in the
  /// trace's order.
  std::vector<ServedRequest> requests;
  /// Seconds that this process computed for each second of the run. Near 1, the
  /// client has been what was measured.
  double clientLoad = 0;
};

/// Sends the requests of a trace, each when it arrives, whatever became of
/// those before, on the server's loop, which runs meanwhile. Their times are
/// seconds after the first could come, and count from their arrivals, so that
/// the client's own delays are in them. What is under way when nobody wants
/// more is cancelled.
LoadRun runLoad(TargetServer &server, const ServingTrace &trace,
                const LoadRunOptions &options = {});

} // namespace sandwich

#endif // SANDWICH_LOADTEST_LOADRUN_H
