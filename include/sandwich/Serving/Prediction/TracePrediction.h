//===- TracePrediction.h - How long requests will take ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the times of steps to those of requests, for whoever compares many
/// machines: the scheduler that serves runs in simulated time. Where the times
/// come from, a model or a measurement, is somebody else's.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PREDICTION_TRACEPREDICTION_H
#define SANDWICH_SERVING_PREDICTION_TRACEPREDICTION_H

#include "sandwich/Serving/ServingSimulator.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstdint>
#include <vector>

namespace sandwich {

/// What the steps of a trace can hold.
struct TracePredictionOptions {
  /// Sequences that generate at a time; at least 1.
  int64_t maxBatch = usualMaxBatch;
  /// Tokens of the largest step with prompts; at least 1.
  int64_t stepTokens = 512;
};

/// A trace, to be served with step times of any kind. There is memory for all
/// sequences, no prefix is shared, and nobody has objectives.
class TracePrediction {
public:
  /// Where requests come one after the other, the scheduler's plans do not
  /// depend on times, and it is run here, once. Errors (InvalidArgument):
  /// limits below 1; more tokens at a time than a pool has blocks for.
  static Result<TracePrediction>
  create(ServingTrace trace, const TracePredictionOptions &options = {});

  /// The mean seconds from a request's arrival to its last token; 0 for an
  /// empty trace, infinity where `seconds` gives what is no number. `seconds`
  /// goes along lines, with few bends, over the positions that sequences read.
  double meanLatency(const StepSeconds &seconds) const;

  /// All steps that serving takes, in their order; none where `seconds` gives
  /// what is no number. Where requests come one after the other, the sum of
  /// their times by the number of requests is the mean latency; otherwise steps
  /// are shared, and requests wait besides.
  std::vector<StepRun> stepsOf(const StepSeconds &seconds) const;
  size_t requests() const { return trace.size(); }

private:
  TracePrediction(ServingTrace trace, const SchedulerOptions &scheduling,
                  uint64_t blocks)
      : trace(std::move(trace)), scheduling(scheduling), blocks(blocks) {}

  /// The latencies of all requests, by a scheduler that goes by `costs`.
  Result<std::vector<double>>
  serve(const StepCosts &costs, const StepSeconds &seconds,
        const std::function<void(const StepRun &run)> &onRun = {}) const;
  /// A few of the steps that `seconds` knows, as the scheduler's costs.
  StepCosts costsOf(const StepSeconds &seconds) const;

  ServingTrace trace;
  SchedulerOptions scheduling;
  uint64_t blocks;
  /// Of a trace without arrivals, all its steps in their order.
  std::vector<StepRun> runs;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_PREDICTION_TRACEPREDICTION_H
