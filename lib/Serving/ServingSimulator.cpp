//===- ServingSimulator.cpp - The scheduler in simulated time -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/ServingSimulator.h"

#include <algorithm>
#include <map>
#include <numeric>
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
  Simulation(Scheduler &scheduler, const ServingTrace &trace,
             const StepSeconds &seconds)
      : scheduler(scheduler), trace(trace), seconds(seconds),
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
    request.maxTokens =
        static_cast<uint64_t>(std::max<int64_t>(1, wanted.outputTokens));
    served[index].arrival = arrival;
    Result<RequestId> id = scheduler.admit(std::move(request), arrival);
    if (id)
      numbers[*id] = index;
    else
      served[index].status = id.error();
  }

  void runStep(const StepPlan &plan) {
    now += seconds(plan.shape);
    // Who comes during a step cannot become a part of it.
    admitUntil(now);
    std::vector<ChosenToken> sampled;
    for (const StepSegment &segment : plan.segments)
      sampled.resize(sampled.size() + segment.samples, {.token = 0});
    StepEvents events = scheduler.complete(plan, sampled, now);
    for (const TokenEvent &event : events.tokens)
      served[numbers.at(event.request)].tokenTimes.push_back(now);
    note(events.ended);
  }

  void note(const std::vector<RequestEnd> &ended) {
    for (const RequestEnd &each : ended)
      served[numbers.at(each.request)].status = each.status;
  }

  Scheduler &scheduler;
  const ServingTrace &trace;
  const StepSeconds &seconds;
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
  return Simulation(scheduler, trace, seconds).run();
}
