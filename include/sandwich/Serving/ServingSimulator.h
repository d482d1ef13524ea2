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

} // namespace sandwich

#endif // SANDWICH_SERVING_SERVINGSIMULATOR_H
