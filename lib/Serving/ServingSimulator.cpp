//===- ServingSimulator.cpp - The scheduler in simulated time -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/ServingSimulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>

using namespace sandwich;

double SimulatedRequest::secondsPerToken() const {
  if (tokenTimes.size() < 2)
    return 0;
  return (tokenTimes.back() - tokenTimes.front()) /
         static_cast<double>(tokenTimes.size() - 1);
}

namespace {
class Simulation {
public:
  /// `onRun`: null where every step is run by itself.
  Simulation(Scheduler &scheduler, const ServingTrace &trace,
             const StepSeconds &seconds,
             const std::function<void(const StepRun &)> *onRun)
      : scheduler(scheduler), trace(trace), seconds(seconds), onRun(onRun),
        served(trace.size()) {}

  std::vector<SimulatedRequest> run() {
    while (true) {
      admitUntil(now);
      StepPlan plan = scheduler.next(now);
      note(plan.ended);
      if (!plan.segments.empty())
        runStep(plan);
      else if (arrived == trace.size())
        return std::move(served);
      else
        now = std::max(now, trace[arrived].arrivalSeconds.value_or(now));
    }
  }

private:
  /// Those that have come by `time`.
  void admitUntil(double time) {
    for (; arrived < trace.size(); ++arrived) {
      const std::optional<double> &arrival = trace[arrived].arrivalSeconds;
      if (arrival ? *arrival > time : !scheduler.idle())
        return;
      admit(arrived, arrival.value_or(now));
    }
  }

  void admit(size_t index, double arrival) {
    const ServingRequest &wanted = trace[index];
    Request request;
    request.prompt.resize(static_cast<size_t>(wanted.promptTokens));
    std::iota(request.prompt.begin(), request.prompt.end(),
              static_cast<int32_t>(index));
    request.maxTokens = static_cast<uint64_t>(wanted.generatedTokens());
    served[index].arrival = arrival;
    Result<RequestId> id = scheduler.admit(std::move(request), arrival);
    if (id)
      numbers[*id] = index;
    else
      served[index].status = id.error();
  }

  void runStep(const StepPlan &plan) {
    const uint64_t count = onRun ? stepsAtOnce(plan) : 1;
    const StepRun run = {plan.shape, count};
    if (onRun && *onRun)
      (*onRun)(run);
    const double lastSeconds = seconds(run.step(count - 1));
    now += runSeconds(run, count - 1, seconds) + lastSeconds;
    StepEvents events;
    if (count > 1) {
      events = scheduler.completeSteady(plan, count, lastSeconds, now);
    } else {
      // Who comes during a step cannot become a part of it.
      admitUntil(now);
      std::vector<ChosenToken> sampled;
      for (const StepSegment &segment : plan.segments)
        sampled.resize(sampled.size() + segment.samples, {.token = 0});
      events = scheduler.complete(plan, sampled, now);
    }
    for (const TokenEvent &event : events.tokens)
      served[numbers.at(event.request)].tokenTimes.push_back(now);
    note(events.ended);
  }

  /// From `plan` on, as many as nobody comes in or ends before the last.
  uint64_t stepsAtOnce(const StepPlan &plan) const {
    const uint64_t steady = scheduler.steadySteps(plan);
    if (steady == 1 || arrived == trace.size() ||
        !trace[arrived].arrivalSeconds)
      return steady;
    const double left = *trace[arrived].arrivalSeconds - now;
    const StepRun run = {plan.shape, steady};
    return *std::ranges::partition_point(
        std::views::iota(uint64_t{1}, steady),
        [&](uint64_t count) { return runSeconds(run, count, seconds) < left; });
  }

  void note(const std::vector<RequestEnd> &ended) {
    for (const RequestEnd &each : ended)
      served[numbers.at(each.request)].status = each.status;
  }

  Scheduler &scheduler;
  const ServingTrace &trace;
  const StepSeconds &seconds;
  const std::function<void(const StepRun &)> *onRun;
  std::vector<SimulatedRequest> served;
  std::map<RequestId, size_t> numbers;
  /// The first request of the trace that has not come.
  size_t arrived = 0;
  double now = 0;
};
} // namespace

std::vector<SimulatedRequest>
sandwich::simulateServing(Scheduler &scheduler, const ServingTrace &trace,
                          const StepSeconds &seconds) {
  return Simulation(scheduler, trace, seconds, nullptr).run();
}

StepShape StepRun::step(uint64_t index) const {
  StepShape shape = first;
  shape.decodePositions += index * shape.decodeSequences;
  return shape;
}

/// Of the steps from `begin` to before `end`, whose first and last ones take
/// `first` and `last` seconds.
static double sumBetween(const StepRun &run, uint64_t begin, uint64_t end,
                         double first, double last,
                         const StepSeconds &seconds) {
  const uint64_t count = end - begin;
  if (count <= 2)
    return count == 1 ? first : first + last;
  const uint64_t middle = begin + count / 2;
  const double inMiddle = seconds(run.step(middle));
  const double onLine = std::lerp(first, last,
                                  static_cast<double>(middle - begin) /
                                      static_cast<double>(count - 1));
  // What differs by less is rounding.
  constexpr double tolerance = 1e-12;
  if (!(std::abs(inMiddle - onLine) > tolerance * inMiddle))
    return static_cast<double>(count) * (first + last) / 2;
  const double beforeMiddle = seconds(run.step(middle - 1));
  return sumBetween(run, begin, middle, first, beforeMiddle, seconds) +
         sumBetween(run, middle, end, inMiddle, last, seconds);
}

double sandwich::runSeconds(const StepRun &run, uint64_t count,
                            const StepSeconds &seconds) {
  if (count == 0)
    return 0;
  return sumBetween(run, 0, count, seconds(run.first),
                    seconds(run.step(count - 1)), seconds);
}

std::vector<RequestTimes> sandwich::simulateRequests(
    Scheduler &scheduler, const ServingTrace &trace, const StepSeconds &seconds,
    const std::function<void(const StepRun &run)> &onRun) {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<RequestTimes> times;
  for (const SimulatedRequest &request :
       Simulation(scheduler, trace, seconds, &onRun).run())
    if (request.status && !request.tokenTimes.empty())
      times.push_back({request.arrival, request.tokenTimes.front(),
                       request.tokenTimes.back()});
    else
      times.push_back({request.arrival, never, never});
  return times;
}
