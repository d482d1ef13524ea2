//===- ServingSimulator.h - The scheduler in simulated time -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_SERVINGSIMULATOR_H
#define SANDWICH_SERVING_SERVINGSIMULATOR_H

#include "sandwich/Serving/Scheduler.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <functional>
#include <vector>

namespace sandwich {

/// How a request of a trace was served. Times are seconds after the trace
/// begins.
struct SimulatedRequest {
  double arrival = 0;
  /// Why it was refused, or ended without all its tokens.
  Status status;
  /// When each of its tokens came.
  std::vector<double> tokenTimes;

  /// Seconds from the arrival to the first token, and from there to the last,
  /// for each token in between. There are such tokens.
  double firstTokenSeconds() const { return tokenTimes.front() - arrival; }
  double secondsPerToken() const;
};

/// The seconds that a step really takes; positive.
using StepSeconds = std::function<double(const StepShape &shape)>;

/// Serves a trace with `scheduler`, which has no requests, in the time that
/// `seconds` tells. No two prompts begin alike. Every text runs to its length,
/// or to the end of the context, and has one token at least. A request without
/// an arrival time comes when nothing is left to do. Returns one for each of
/// the trace, in its order.
std::vector<SimulatedRequest> simulateServing(Scheduler &scheduler,
                                              const ServingTrace &trace,
                                              const StepSeconds &seconds);

/// Decode steps in a row of the same sequences, each of which reads one
/// position more in each of them; or one step of any kind.
struct StepRun {
  StepShape first;
  uint64_t count = 1;

  /// The step `index`, from 0.
  StepShape step(uint64_t index) const;
};

/// The sum of the first `count` of the steps of `run`. Where `seconds` lies on
/// a line over the positions it is asked a few times, whatever `count` is.
double runSeconds(const StepRun &run, uint64_t count,
                  const StepSeconds &seconds);

/// When a request got its first token and its last one, in seconds after the
/// trace begins; both are infinity for one that was refused or ended early.
struct RequestTimes {
  double arrival = 0;
  double firstToken = 0;
  double lastToken = 0;

  double latency() const { return lastToken - arrival; }
};

/// The same simulation for who wants no more than these times. Steps between
/// which nobody comes or ends are added up at once, so that it takes time for
/// each request instead of each token. `onRun` hears of all steps in their
/// order.
std::vector<RequestTimes>
simulateRequests(Scheduler &scheduler, const ServingTrace &trace,
                 const StepSeconds &seconds,
                 const std::function<void(const StepRun &run)> &onRun = {});

} // namespace sandwich

#endif // SANDWICH_SERVING_SERVINGSIMULATOR_H
