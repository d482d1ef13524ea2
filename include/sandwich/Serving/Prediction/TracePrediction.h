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

#include "sandwich/Serving/ServiceObjectives.h"
#include "sandwich/Serving/ServingSimulator.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace sandwich {

/// What a plan of cores is to be good at.
enum class PlanObjective {
  /// The time from a request's arrival to its last token, in the mean.
  Latency,
  /// Tokens in a second, of requests that are all there at once.
  Throughput,
  /// Requests in a second that get what they are to get (Zhong et al.,
  /// "DistServe", 2024).
  Goodput
};

/// How a trace is served.
struct TracePredictionOptions {
  /// Sequences that generate at a time; at least 1.
  int64_t maxBatch = usualMaxBatch;
  /// Tokens of the largest step with prompts; at least 1.
  int64_t stepTokens = 512;
  PlanObjective objective = PlanObjective::Latency;
  /// Of `Goodput`, one of them at least; the scheduler goes by them, too.
  ServiceObjectives objectives;
  /// Instances of the model that get the requests in turn; at least 1.
  int64_t instances = 1;
};

/// A trace, to be served with step times of any kind. There is memory for all
/// sequences, and no prefix is shared.
class TracePrediction {
public:
  /// The share of requests that must get what they are to get for a rate to be
  /// one that is served well.
  static constexpr double wantedAttainment = 0.9;

  /// Where requests come one after the other, the scheduler's plans do not
  /// depend on times, and it is run here, once. Errors (InvalidArgument):
  /// limits below 1; more tokens at a time than a pool has blocks for; goodput
  /// without objectives, or with some that are not positive.
  static Result<TracePrediction>
  create(ServingTrace trace, const TracePredictionOptions &options = {});

  /// The seconds that the objective makes as few as possible; 0 for an empty
  /// trace, infinity where `seconds` gives what is no number. `seconds` is what
  /// an instance's steps take, and goes along lines, with few bends, over the
  /// positions that sequences read.
  ///
  /// * Latency: from a request's arrival to its last token, in the mean.
  /// * Throughput: for each token, until all are generated.
  /// * Goodput: for each request that gets what it is to get, until all are
  ///   served: as the trace's requests arrive, or where they have no times, at
  ///   the highest rate at which `wantedAttainment` of them do.
  double cost(const StepSeconds &seconds) const;

  /// All steps that serving takes, in their order, of each instance; none where
  /// `seconds` gives what is no number. Where requests come one after the
  /// other, the sum of their times by the number of requests is the mean
  /// latency; otherwise steps are shared, and requests wait besides.
  std::vector<StepRun> stepsOf(const StepSeconds &seconds) const;
  size_t requests() const { return trace.size(); }
  /// Whether instances serve at the same time.
  bool servesAtOnce() const {
    return arrives || options.objective != PlanObjective::Latency;
  }

private:
  TracePrediction(const TracePredictionOptions &options,
                  const SchedulerOptions &scheduling)
      : options(options), scheduling(scheduling) {}

  /// The times of `requests`, by a scheduler that goes by `costs`.
  Result<std::vector<RequestTimes>>
  serve(const ServingTrace &requests, const StepCosts &costs,
        const StepSeconds &seconds,
        const std::function<void(const StepRun &run)> &onRun = {}) const;
  /// The same by all instances, which get the requests in turn.
  Result<std::vector<RequestTimes>>
  serveInTurn(const ServingTrace &requests, const StepSeconds &seconds,
              const std::function<void(const StepRun &run)> &onRun = {}) const;
  /// What `cost` is by each objective.
  double meanLatency(const StepSeconds &seconds) const;
  double secondsPerToken(const StepSeconds &seconds) const;
  double secondsPerKeptRequest(const StepSeconds &seconds) const;
  /// The highest rate that is; 0: not even the lowest.
  Result<double> rateServedWell(const StepSeconds &seconds) const;
  /// The trace's requests coming at random, `rate` a second.
  ServingTrace arriving(double rate) const;
  /// Whether `request`, which took `times`, got what it is to get.
  bool keeps(const ServingRequest &request, const RequestTimes &times) const;

  TracePredictionOptions options;
  SchedulerOptions scheduling;
  /// Blocks of the pool.
  uint64_t blocks = 1;
  ServingTrace trace;
  /// Whether its requests have times.
  bool arrives = false;
  /// Where they come one after the other, all steps in their order.
  std::vector<StepRun> runs;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_PREDICTION_TRACEPREDICTION_H
