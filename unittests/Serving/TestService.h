//===- TestService.h - A scheduler that tests run ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_SERVING_TESTSERVICE_H
#define SANDWICH_UNITTESTS_SERVING_TESTSERVICE_H

#include "sandwich/Serving/Scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <vector>

namespace sandwich {

/// A decode step takes 90 ms and 0.1 ms for each sequence; where there are
/// prompts, each token beyond 16 takes 1.8 ms.
inline StepCosts plausibleCosts() {
  return {.prefill = {{1, 0.09}, {16, 0.09}, {1016, 1.89}},
          .decode = {{1, 0.0901}, {1001, 0.1901}}};
}

inline StepCostModel plausibleModel() {
  return *StepCostModel::create(plausibleCosts());
}

inline SchedulerOptions usualOptions() {
  SchedulerOptions options;
  options.limits = {
      .prefill = {2048, 64, 64}, .decode = {64, 64, 64}, .contextLength = 4096};
  return options;
}

/// A prompt of `tokens` tokens that no other one begins like.
inline Request requestOf(uint64_t tokens, uint64_t maxTokens = 4) {
  static int32_t first = 0;
  Request request;
  request.prompt.resize(tokens);
  std::iota(request.prompt.begin(), request.prompt.end(), first++);
  request.maxTokens = maxTokens;
  return request;
}

/// A scheduler, its pool, and a clock that goes on as the plausible costs say.
struct TestService {
  explicit TestService(uint64_t blocks,
                       const SchedulerOptions &options = usualOptions(),
                       const StepCosts &costs = plausibleCosts())
      : pool(*BlockPool::create(blocks)), costs(*StepCostModel::create(costs)),
        scheduler(*Scheduler::create(*pool, options, this->costs)) {}

  RequestId admit(Request request) {
    Result<RequestId> id = scheduler->admit(std::move(request), now);
    EXPECT_TRUE(id) << id.error().message;
    return id ? *id : 0;
  }

  Error refusal(Request request) {
    Result<RequestId> id = scheduler->admit(std::move(request), now);
    EXPECT_FALSE(id);
    return id ? Error() : id.error();
  }

  StepPlan plan() {
    StepPlan plan = scheduler->next(now);
    note(plan.ended);
    for (RequestId id : plan.preempted)
      preempted.push_back(id);
    return plan;
  }

  void complete(const StepPlan &plan) {
    now += costs.seconds(plan.shape);
    pool->copiesMade(pool->pendingCopies().size());
    std::vector<ChosenToken> sampled;
    for (const StepSegment &segment : plan.segments)
      sampled.resize(sampled.size() + segment.samples, {.token = 7});
    StepEvents events = scheduler->complete(plan, sampled, now);
    for (const ScoreEvent &event : events.scores)
      scores[event.request].push_back(event.first);
    for (const TokenEvent &event : events.tokens) {
      times[{event.request, event.text}].push_back(now);
      if (event.finish)
        finishes[{event.request, event.text}] = *event.finish;
    }
    note(events.ended);
  }

  /// One step; returns its plan, whose segments are gone.
  StepPlan step() {
    StepPlan planned = plan();
    if (!planned.segments.empty())
      complete(planned);
    return planned;
  }

  void finish() {
    while (!scheduler->idle())
      step();
  }

  void note(const std::vector<RequestEnd> &ended) {
    for (const RequestEnd &each : ended)
      EXPECT_TRUE(ends.emplace(each.request, each).second);
  }

  std::unique_ptr<BlockPool> pool;
  /// What steps really take.
  StepCostModel costs;
  std::unique_ptr<Scheduler> scheduler;
  double now = 0;
  /// When each text got its tokens.
  std::map<std::pair<RequestId, uint32_t>, std::vector<double>> times;
  std::map<std::pair<RequestId, uint32_t>, FinishReason> finishes;
  /// Where the pieces of prompts began that were scored.
  std::map<RequestId, std::vector<uint64_t>> scores;
  std::map<RequestId, RequestEnd> ends;
  std::vector<RequestId> preempted;
};

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_SERVING_TESTSERVICE_H
