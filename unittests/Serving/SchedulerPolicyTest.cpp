//===- SchedulerPolicyTest.cpp - What requests get from the scheduler -----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times of requests in simulated time, with steps as long as those of
/// `plausibleCosts`.
///
//===----------------------------------------------------------------------===//

#include "TestService.h"

#include "Emulation.h"

#include "sandwich/Serving/ServingSimulator.h"
#include "sandwich/Support/Statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

using namespace sandwich;

static double plausibleSeconds(const StepShape &shape) {
  static const StepCostModel model = plausibleModel();
  return model.seconds(shape);
}

static std::vector<SimulatedRequest> simulate(const SchedulerOptions &options,
                                              const ServingTrace &trace,
                                              uint64_t blocks = 4096) {
  auto pool = *BlockPool::create(blocks);
  auto scheduler = *Scheduler::create(*pool, options, plausibleModel());
  return simulateServing(*scheduler, trace, plausibleSeconds);
}

static std::vector<double> gapsOf(const SimulatedRequest &request) {
  std::vector<double> gaps;
  for (size_t i = 1; i < request.tokenTimes.size(); ++i)
    gaps.push_back(request.tokenTimes[i] - request.tokenTimes[i - 1]);
  return gaps;
}

/// Tokens for each second, of prompts and texts.
static double throughput(const ServingTrace &trace,
                         const std::vector<SimulatedRequest> &served) {
  double end = 0, tokens = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    end = std::max(end, served[i].tokenTimes.back());
    tokens +=
        static_cast<double>(trace[i].promptTokens + trace[i].outputTokens);
  }
  return tokens / end;
}

/// Eight streams, and a long prompt that comes while they run.
static ServingTrace promptBesideStreams() {
  ServingTrace trace(
      8, {.promptTokens = 16, .outputTokens = 100, .arrivalSeconds = 0});
  trace.push_back(
      {.promptTokens = 2048, .outputTokens = 4, .arrivalSeconds = 1});
  return trace;
}

TEST(SchedulerPolicyTest, ALongPromptLeavesStreamsTheirPace) {
  const ServingTrace trace = promptBesideStreams();
  const auto served = simulate(usualOptions(), trace);
  std::vector<double> gaps;
  for (size_t i = 0; i < 8; ++i)
    for (double gap : gapsOf(served[i]))
      gaps.push_back(gap);
  const double undisturbed = 0.09 + 8 * 0.0001;
  const double p99 = quantile(gaps, 0.99);
  EXPECT_LE(p99, 2 * undisturbed);

  // The prompt in one step, as soon as it is there.
  double promptFirst = 0.09 + 112 * 0.0018;
  promptFirst += 99 * undisturbed + 0.09 + 2032 * 0.0018 + 3 * 0.0901;
  const double ratio =
      throughput(trace, served) / ((2048 + 4 + 8 * 116) / promptFirst);
  EXPECT_GE(ratio, 0.9);
  std::printf("P99 of gaps %.3f of the undisturbed one, throughput %.3f of "
              "prompt first, first token of the prompt after %.2f s\n",
              p99 / undisturbed, ratio, served[8].firstTokenSeconds());
}

TEST(SchedulerPolicyTest, AnObjectiveBoundsTheGaps) {
  SchedulerOptions options = usualOptions();
  options.tokenObjective = 0.12;
  const auto served = simulate(options, promptBesideStreams());
  for (size_t i = 0; i < 8; ++i)
    for (double gap : gapsOf(served[i]))
      EXPECT_LE(gap, 0.12 + 1e-9);
}

TEST(SchedulerPolicyTest, ShortPromptsTogetherAreAsFastAsALongOne) {
  const ServingTrace one = {
      {.promptTokens = 512, .outputTokens = 1, .arrivalSeconds = 0}};
  const ServingTrace many(
      32, {.promptTokens = 16, .outputTokens = 20, .arrivalSeconds = 0});
  const double alone = simulate(usualOptions(), one)[0].firstTokenSeconds();
  std::vector<double> first;
  for (const SimulatedRequest &request : simulate(usualOptions(), many))
    first.push_back(request.firstTokenSeconds());
  EXPECT_LE(quantile(first, 0.9), 1.3 * alone);
  std::printf("P90 of first tokens %.3f of a prompt as long as all\n",
              quantile(first, 0.9) / alone);
}

TEST(SchedulerPolicyTest, MixesOrAlternatesAsCostsAre) {
  // Steps with prompts that cost as much for a stream as for a long piece: in
  // turn is better.
  StepCosts costs = {.prefill = {{1, 0.05}, {16, 0.05}, {17, 0.5}, {600, 1}},
                     .decode = {{1, 0.09}, {64, 0.1}}};
  for (bool separate : {false, true}) {
    auto pool = *BlockPool::create(1000);
    auto scheduler = *Scheduler::create(*pool, usualOptions(),
                                        separate ? *StepCostModel::create(costs)
                                                 : plausibleModel());
    std::vector<StepShape> shapes;
    const ServingTrace trace = {
        {.promptTokens = 8, .outputTokens = 60, .arrivalSeconds = 0},
        {.promptTokens = 300, .outputTokens = 1, .arrivalSeconds = 1}};
    simulateServing(*scheduler, trace, [&](const StepShape &shape) {
      shapes.push_back(shape);
      return scheduler->costModel().seconds(shape);
    });
    uint64_t mixed = 0;
    for (const StepShape &shape : shapes)
      if (shape.decodeSequences > 0)
        mixed += shape.promptTokens;
    // The last few tokens are cheap in either way.
    if (separate)
      EXPECT_LE(mixed, 16u);
    else
      EXPECT_EQ(mixed, 300u);
  }
}

/// Of the trace's requests: those that met the objectives, were taken, and
/// were asked for.
struct Attainment {
  size_t met = 0, taken = 0, all = 0;

  double ofTaken() const { return ratio(met, taken); }
  double ofAll() const { return ratio(met, all); }
  static double ratio(size_t part, size_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
};

static constexpr double firstTokenObjective = 3, tokenObjective = 0.15;

/// A rate of requests, and how steps really are.
struct Load {
  const char *distribution;
  uint64_t seed;
  /// How many times as long steps take as the scheduler believes at first.
  double slower;
  /// Of the pool: so many that they are no limit, or so few that they are.
  uint64_t blocks = 4096;
};

static Attainment attainmentAt(double rate, const Load &load, bool refuses) {
  SchedulerOptions options = usualOptions();
  options.tokenObjective = tokenObjective * load.slower;
  options.maxWaitingRequests = 1000;
  const double firstToken = firstTokenObjective * load.slower;
  if (refuses)
    options.firstTokenObjective = firstToken;
  auto pool = *BlockPool::create(load.blocks);
  auto scheduler = *Scheduler::create(*pool, options, plausibleModel());
  const ServingTrace trace =
      *makeServingTrace(load.distribution, 400, rate, load.seed);
  Attainment attainment;
  for (const SimulatedRequest &request :
       simulateServing(*scheduler, trace, [&](const StepShape &shape) {
         return load.slower * plausibleSeconds(shape);
       })) {
    ++attainment.all;
    attainment.taken += static_cast<bool>(request.status);
    attainment.met += request.status &&
                      request.firstTokenSeconds() <= firstToken &&
                      request.secondsPerToken() <= *options.tokenObjective;
  }
  return attainment;
}

/// The highest rate at which nine of ten meet the objectives.
static double goodputOf(const Load &load) {
  double good = 0.01, bad = 20;
  while (bad / good > 1.05) {
    const double rate = std::sqrt(good * bad);
    const bool met = attainmentAt(rate, load, /*refuses=*/false).ofAll() >= 0.9;
    (met ? good : bad) = rate;
  }
  return good;
}

TEST(SchedulerPolicyTest, OverloadRefusesInsteadOfCollapsing) {
  const Load loads[] = {{"lmsys", 1, 1},     {"lmsys", 2, 1},
                        {"sharegpt", 1, 1},  {"lmsys", 1, 1.5},
                        {"lmsys", 1, 0.5},   {"lmsys", 1, 1, 300},
                        {"lmsys", 2, 1, 150}};
  for (const Load &load :
       std::span(loads).first(test::timesToRepeat(std::size(loads), 1UL))) {
    const double good = goodputOf(load);
    const Attainment collapsed = attainmentAt(2 * good, load, false);
    const Attainment twice = attainmentAt(2 * good, load, true);
    std::printf(
        "%s, seed %d, steps %.1f times as long, %d blocks: goodput %.2f "
        "requests/s; at twice of it %.1f%% of the taken and %.1f%% of "
        "all meet the objectives, %.1f%% without refusals\n",
        load.distribution, static_cast<int>(load.seed), load.slower,
        static_cast<int>(load.blocks), good, 100 * twice.ofTaken(),
        100 * twice.ofAll(), 100 * collapsed.ofAll());
    EXPECT_GE(twice.ofTaken(), 0.8);
    // Half of them would be as many as at the goodput.
    EXPECT_GE(twice.ofAll(), 0.8 / 2);
    for (double factor : {0.5, 1.0, 3.0, 5.0}) {
      const Attainment at = attainmentAt(factor * good, load, true);
      std::printf("  at %.1f times of it %zu of %zu are refused, and %.1f%% of "
                  "the taken meet the objectives\n",
                  factor, at.all - at.taken, at.all, 100 * at.ofTaken());
      EXPECT_GE(at.ofTaken(), 0.8) << factor;
    }
  }
}

TEST(SchedulerPolicyTest, LowPrioritiesWaitBoundedly) {
  SchedulerOptions options = usualOptions();
  options.limits.decode = {2, 2, 2};
  options.agingSteps = 10;
  TestService service(1000, options);
  Request important = requestOf(32, 10);
  important.priority = maxPriority;
  service.admit(important);
  service.admit(important);
  const RequestId low = service.admit(requestOf(32, 10));
  // Always more than enough to do for higher priorities.
  uint64_t steps = 0;
  while (!service.times.contains({low, 0}) && steps < 10000) {
    while (service.scheduler->statistics().waitingRequests < 4) {
      Request next = requestOf(32, 10);
      next.priority = maxPriority;
      service.admit(next);
    }
    service.step();
    ++steps;
  }
  // Until its age counts as much as their priority, then until those that are
  // before it have ended.
  EXPECT_GT(steps, 60u);
  EXPECT_LE(steps, maxPriority * options.agingSteps +
                       6 * service.scheduler->mostSteps(important));
  EXPECT_LE(steps, 120u);
  std::printf("%llu steps\n", static_cast<unsigned long long>(steps));
}
