//===- TracePrediction.cpp - How long requests will take ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/TracePrediction.h"

#include "sandwich/Serving/GoodputSearch.h"
#include "sandwich/Serving/Prediction/StepCostPrediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

using namespace sandwich;

static constexpr double infinite = std::numeric_limits<double>::infinity();

/// What the scheduler that serves `trace` is limited to.
static SchedulerOptions schedulingOf(const ServingTrace &trace,
                                     const TracePredictionOptions &options) {
  const auto batch = static_cast<uint64_t>(options.maxBatch);
  const auto stepTokens = static_cast<uint64_t>(options.stepTokens);
  uint64_t longest = 1, allTokens = 0;
  for (const ServingRequest &request : trace) {
    longest = std::max(longest, request.tokens());
    allTokens += request.tokens();
  }
  SchedulerOptions scheduling;
  // A prompt comes in beside all streams but one.
  scheduling.limits.prefill = {.tokens = std::max(stepTokens, batch),
                               .sequences = batch,
                               .logitRows = batch};
  scheduling.limits.decode = {
      .tokens = batch, .sequences = batch, .logitRows = batch};
  scheduling.limits.contextLength = longest;
  scheduling.maxWaitingRequests = trace.size() + 1;
  scheduling.maxWaitingTokens = std::max(allTokens, longest);
  if (options.objective == PlanObjective::Goodput) {
    scheduling.firstTokenObjective = options.objectives.firstToken;
    scheduling.tokenObjective = options.objectives.token;
  }
  return scheduling;
}

Result<TracePrediction>
TracePrediction::create(ServingTrace trace,
                        const TracePredictionOptions &options) {
  if (options.maxBatch < 1 || options.stepTokens < 1)
    return makeError(ErrorKind::InvalidArgument, "steps of ",
                     options.stepTokens, " tokens and ", options.maxBatch,
                     " sequences hold nothing");
  if (options.instances < 1)
    return makeError(ErrorKind::InvalidArgument, options.instances,
                     " instances serve nothing");
  if (options.objective == PlanObjective::Goodput && !options.objectives.any())
    return makeError(ErrorKind::InvalidArgument,
                     "goodput needs to know what requests are to get");
  if (options.objective == PlanObjective::Throughput)
    for (ServingRequest &request : trace)
      request.arrivalSeconds = 0;
  uint64_t mostBlocks = 1;
  for (const ServingRequest &request : trace)
    mostBlocks = std::max(mostBlocks, BlockPool::blocksFor(request.tokens()));
  TracePrediction prediction(options, schedulingOf(trace, options));
  prediction.blocks =
      mostBlocks * std::min<uint64_t>(static_cast<uint64_t>(options.maxBatch),
                                      std::max<size_t>(1, trace.size()));
  // What is wrong with the limits shows here in any case.
  SANDWICH_RETURN_IF_ERROR(prediction.serve(
      trace, assumedStepCosts(), [](const StepShape &) { return 1.0; },
      [&](const StepRun &run) { prediction.runs.push_back(run); }));
  prediction.arrives = !trace.empty() && trace.front().arrivalSeconds;
  if (prediction.arrives || options.objective == PlanObjective::Goodput)
    prediction.runs.clear();
  prediction.trace = std::move(trace);
  return prediction;
}

Result<std::vector<RequestTimes>> TracePrediction::serve(
    const ServingTrace &requests, const StepCosts &costs,
    const StepSeconds &seconds,
    const std::function<void(const StepRun &run)> &onRun) const {
  SANDWICH_ASSIGN_OR_RETURN(StepCostModel model, StepCostModel::create(costs));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<BlockPool> pool,
      BlockPool::create(blocks, {.prefixCache = false,
                                 .hashKey = std::array<unsigned char, 16>{}}));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Scheduler> scheduler,
      Scheduler::create(*pool, scheduling, std::move(model)));
  return simulateRequests(*scheduler, requests, seconds, onRun);
}

double TracePrediction::cost(const StepSeconds &seconds) const {
  if (trace.empty())
    return 0;
  double cost = infinite;
  switch (options.objective) {
  case PlanObjective::Latency:
    cost = meanLatency(seconds);
    break;
  case PlanObjective::Throughput:
    cost = secondsPerToken(seconds);
    break;
  case PlanObjective::Goodput:
    cost = secondsPerKeptRequest(seconds);
    break;
  }
  return std::isfinite(cost) ? cost : infinite;
}

Result<std::vector<RequestTimes>> TracePrediction::serveInTurn(
    const ServingTrace &requests, const StepSeconds &seconds,
    const std::function<void(const StepRun &run)> &onRun) const {
  const StepCosts costs = sampleStepCosts(seconds, scheduling.limits);
  const auto instances = static_cast<size_t>(options.instances);
  std::vector<RequestTimes> times(requests.size());
  for (size_t instance = 0; instance < instances; ++instance) {
    ServingTrace own;
    for (size_t i = instance; i < requests.size(); i += instances)
      own.push_back(requests[i]);
    SANDWICH_ASSIGN_OR_RETURN(std::vector<RequestTimes> served,
                              serve(own, costs, seconds, onRun));
    for (size_t i = 0; i < served.size(); ++i)
      times[instance + i * instances] = served[i];
  }
  return times;
}

double TracePrediction::meanLatency(const StepSeconds &seconds) const {
  double total = 0;
  if (arrives) {
    // Error: times that no scheduler could go by.
    Result<std::vector<RequestTimes>> served = serveInTurn(trace, seconds);
    if (!served)
      return infinite;
    for (const RequestTimes &times : *served)
      total += times.latency();
  }
  for (const StepRun &run : runs)
    total += runSeconds(run, run.count, seconds);
  return total / static_cast<double>(trace.size());
}

double TracePrediction::secondsPerToken(const StepSeconds &seconds) const {
  Result<std::vector<RequestTimes>> served = serveInTurn(trace, seconds);
  if (!served)
    return infinite;
  double end = 0, tokens = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    end = std::max(end, (*served)[i].lastToken);
    tokens += static_cast<double>(trace[i].generatedTokens());
  }
  return end / tokens;
}

bool TracePrediction::keeps(const ServingRequest &request,
                            const RequestTimes &times) const {
  const auto &[firstToken, token] = options.objectives;
  const auto gaps =
      static_cast<double>(std::max<int64_t>(request.generatedTokens() - 1, 1));
  return std::isfinite(times.lastToken) &&
         times.firstToken - times.arrival <= firstToken.value_or(infinite) &&
         times.lastToken - times.firstToken <= token.value_or(infinite) * gaps;
}

ServingTrace TracePrediction::arriving(double rate) const {
  constexpr uint64_t seed = 1;
  // Error: no rate, which the search's are.
  return *drawArrivals(trace, rate, seed);
}

Result<double>
TracePrediction::rateServedWell(const StepSeconds &seconds) const {
  GoodputOptions search;
  search.attainment = wantedAttainment;
  search.precision = 1.01;
  search.leastRequests = search.mostRequests = trace.size();
  // What is computed in the mean, one request after the other, is of the right
  // order of magnitude.
  SANDWICH_ASSIGN_OR_RETURN(std::vector<RequestTimes> alone,
                            serveInTurn(trace, seconds));
  const double end = alone.back().lastToken;
  if (end > 0 && std::isfinite(end))
    search.firstRate = std::clamp(static_cast<double>(trace.size()) / end,
                                  search.lowestRate, search.highestRate);
  const RateRunner runner = [&](double rate, size_t,
                                const KeptObserver &observe) -> Status {
    const ServingTrace requests = arriving(rate);
    SANDWICH_ASSIGN_OR_RETURN(std::vector<RequestTimes> served,
                              serveInTurn(requests, seconds));
    for (size_t i = 0; i < requests.size(); ++i)
      if (!observe(keeps(requests[i], served[i])))
        break;
    return {};
  };
  SANDWICH_ASSIGN_OR_RETURN(Goodput found, findGoodput(search, runner, {}));
  return found.rate.value_or(0);
}

double
TracePrediction::secondsPerKeptRequest(const StepSeconds &seconds) const {
  ServingTrace requests = trace;
  if (!arrives) {
    Result<double> rate = rateServedWell(seconds);
    if (!rate || *rate == 0)
      return infinite;
    requests = arriving(*rate);
  }
  Result<std::vector<RequestTimes>> served = serveInTurn(requests, seconds);
  if (!served)
    return infinite;
  // A trace ends before queues fill where it comes fast enough, so what counts
  // is when all was served.
  double end = 0, kept = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const RequestTimes &times = (*served)[i];
    end = std::max(end, times.arrival);
    if (std::isfinite(times.lastToken))
      end = std::max(end, times.lastToken);
    kept += keeps(requests[i], times) ? 1 : 0;
  }
  return end / kept;
}

std::vector<StepRun>
TracePrediction::stepsOf(const StepSeconds &seconds) const {
  if (trace.empty() || !runs.empty())
    return runs;
  ServingTrace requests = trace;
  if (!arrives) {
    Result<double> rate = rateServedWell(seconds);
    if (!rate || *rate == 0)
      return {};
    requests = arriving(*rate);
  }
  std::vector<StepRun> steps;
  if (!serveInTurn(requests, seconds,
                   [&](const StepRun &run) { steps.push_back(run); }))
    return {};
  return steps;
}
