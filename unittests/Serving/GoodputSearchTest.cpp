//===- GoodputSearchTest.cpp - The highest rate that is served well -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/GoodputSearch.h"

#include "TestService.h"

#include "sandwich/Serving/ServingSimulator.h"
#include "sandwich/Support/ServingTrace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace sandwich;

/// Keeps the objectives up to a rate of `capacity`, and never above.
static RateRunner upTo(double capacity) {
  return [capacity](double rate, size_t requests, const KeptObserver &observe) {
    for (size_t i = 0; i < requests && observe(rate <= capacity); ++i)
      continue;
    return Status();
  };
}

TEST(StatisticsTest, WilsonIntervalsAreThoseOfTables) {
  const Interval nine = wilsonInterval(90, 100);
  EXPECT_NEAR(nine.low, 0.8256, 1e-4);
  EXPECT_NEAR(nine.high, 0.9448, 1e-4);
  const Interval all = wilsonInterval(10, 10);
  EXPECT_NEAR(all.low, 0.7225, 1e-4);
  EXPECT_DOUBLE_EQ(all.high, 1);
  EXPECT_EQ(wilsonInterval(0, 10).low, 0);
}

TEST(GoodputSearchTest, FindsTheCapacityFromAbove) {
  for (double capacity : {0.01, 0.7, 1.0, 3.7, 900.0}) {
    size_t trials = 0;
    GoodputOptions options;
    Result<Goodput> found =
        findGoodput(options, upTo(capacity), [&](const RateTrial &trial) {
          ++trials;
          EXPECT_TRUE(trial.certain);
          EXPECT_EQ(trial.attained, trial.rate <= capacity);
          EXPECT_EQ(trial.requests, options.leastRequests);
        });
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_LE(*found->rate, capacity);
    EXPECT_GT(*found->tooHigh, capacity);
    EXPECT_LE(*found->tooHigh / *found->rate, options.precision);
    EXPECT_LE(trials, 20u);
  }
}

TEST(GoodputSearchTest, EndsWhereEveryRateIsAlike) {
  Result<Goodput> none = findGoodput({}, upTo(0), {});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->rate);
  EXPECT_EQ(none->tooHigh, GoodputOptions().lowestRate);
  Result<Goodput> all =
      findGoodput({}, upTo(std::numeric_limits<double>::infinity()), {});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->rate, GoodputOptions().highestRate);
  EXPECT_FALSE(all->tooHigh);
}

TEST(GoodputSearchTest, AsksForMoreRequestsWhereTheIntervalHasBothAnswers) {
  GoodputOptions options;
  options.highestRate = 1;
  const auto requestsFor = [&](size_t missedOfHundred) {
    size_t index = 0;
    size_t requests = 0;
    bool certain = false;
    const RateRunner runner = [&](double, size_t most,
                                  const KeptObserver &observe) {
      for (size_t i = 0; i < most; ++i)
        if (!observe(index++ % 100 >= missedOfHundred))
          break;
      return Status();
    };
    EXPECT_TRUE(findGoodput(options, runner, [&](const RateTrial &trial) {
      requests = trial.requests;
      certain = trial.certain;
    }));
    return std::pair(requests, certain);
  };
  EXPECT_EQ(requestsFor(0), std::pair(size_t{100}, true));
  EXPECT_EQ(requestsFor(5), std::pair(size_t{200}, true));
  EXPECT_EQ(requestsFor(9), std::pair(size_t{400}, false));
}

TEST(GoodputSearchTest, TellsWhyARunnerFailed) {
  Result<Goodput> found = findGoodput(
      {},
      [](double, size_t, const KeptObserver &) { return makeError("gone"); },
      {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "gone");
  EXPECT_FALSE(findGoodput(
      {}, [](double, size_t, const KeptObserver &) { return Status(); }, {}));
}

TEST(GoodputSearchTest, RefusesOptionsThatMakeNoSense) {
  auto refuses = [](auto &&change) {
    GoodputOptions options;
    change(options);
    EXPECT_FALSE(findGoodput(options, upTo(1), {}));
  };
  refuses([](GoodputOptions &o) { o.attainment = 1; });
  refuses([](GoodputOptions &o) { o.attainment = std::nan(""); });
  refuses([](GoodputOptions &o) { o.firstRate = 0; });
  refuses([](GoodputOptions &o) { o.firstRate = 1e6; });
  refuses([](GoodputOptions &o) { o.precision = 1; });
  refuses([](GoodputOptions &o) { o.leastRequests = 0; });
  refuses([](GoodputOptions &o) { o.mostRequests = 99; });
}

/// One request at a time, each for a tenth of a second.
static Status serveOneByOne(double rate, size_t requests,
                            const KeptObserver &observe) {
  SchedulerOptions options;
  options.limits = {
      .prefill = {16, 1, 1}, .decode = {1, 1, 1}, .contextLength = 64};
  options.maxWaitingRequests = requests;
  auto pool = *BlockPool::create(4096);
  auto scheduler = *Scheduler::create(*pool, options, plausibleModel());
  SANDWICH_ASSIGN_OR_RETURN(
      const ServingTrace trace,
      drawArrivals(ServingTrace(requests, {.promptTokens = 4,
                                           .outputTokens = 1,
                                           .arrivalSeconds = {}}),
                   rate,
                   /*seed=*/1));
  for (const SimulatedRequest &request : simulateServing(
           *scheduler, trace, [](const StepShape &) { return 0.1; }))
    // Of the time in the queue, as long as another request at most.
    if (!observe(request.status && request.firstTokenSeconds() <= 0.2))
      break;
  return {};
}

TEST(GoodputSearchTest, FindsWhatQueueingTheorySays) {
  // M/D/1 (Erlang 1909): the share that waits no longer than a service takes is
  // (1 - load) * exp(load), which is 0.9 at a load of 0.391.
  GoodputOptions options;
  options.mostRequests = 20000;
  Result<Goodput> found = findGoodput(options, serveOneByOne, {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NEAR(*found->rate, 3.91, 0.3);
}
