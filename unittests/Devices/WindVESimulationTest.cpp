//===- WindVESimulationTest.cpp - Queues in simulated time ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/WindVESimulation.h"

#include "sandwich/Support/RandomNumbers.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sandwich;

static SimulatedDeviceModel device(const LatencyLine &line) {
  SimulatedDeviceModel model;
  model.line = line;
  return model;
}

static WindVESystem v100AndXeon() {
  WindVESystem system;
  system.devices = {device({0.0179, 0.27}), device({0.0837, 0.32})};
  system.depths = {40, 8};
  return system;
}

static std::vector<SimulatedQuery>
simulate(const WindVESystem &system, const std::vector<double> &arrivals) {
  auto queries = simulateWindVE(system, arrivals);
  EXPECT_TRUE(queries) << queries.error().message;
  return queries ? *queries : std::vector<SimulatedQuery>();
}

TEST(WindVESimulationTest, ABurstFillsTheQueuesInOrder) {
  const auto queries = simulate(v100AndXeon(), std::vector<double>(50, 1.0));
  ASSERT_EQ(queries.size(), 50u);
  for (size_t i = 0; i < 50; ++i) {
    if (i < 40) {
      EXPECT_EQ(queries[i].device, 0u);
      EXPECT_NEAR(queries[i].latency, 0.986, 1e-9);
    } else if (i < 48) {
      EXPECT_EQ(queries[i].device, 1u);
      EXPECT_NEAR(queries[i].latency, 0.9896, 1e-9);
    } else {
      EXPECT_EQ(queries[i].device, std::nullopt);
      EXPECT_EQ(queries[i].latency, 0);
    }
  }
}

TEST(WindVESimulationTest, ConcurrencyIsTheSumOfTheDepths) {
  EXPECT_EQ(*largestConcurrency(v100AndXeon(), 1, 3, 1), 48u);
  WindVESystem alone = v100AndXeon();
  alone.depths = {40, 0};
  EXPECT_EQ(*largestConcurrency(alone, 1, 3, 1), 40u);
  WindVESystem tooDeep = v100AndXeon();
  tooDeep.depths = {60, 8};
  // Beyond 40 the first device is too slow.
  EXPECT_EQ(*largestConcurrency(tooDeep, 1, 3, 1), 40u);
  EXPECT_EQ(*largestConcurrency(tooDeep, 0.1, 3, 1), 0u);
}

/// Queries that come while a batch runs wait for it: depths of the paper are
/// for queries that come at once. What is then kept is alpha * depth + 2 *
/// beta.
TEST(WindVESimulationTest, QueriesBetweenBatchesWait) {
  WindVESystem system = v100AndXeon();
  system.depths = {40, 0};
  std::vector<double> arrivals;
  std::mt19937_64 generator(1);
  for (double now = 0; arrivals.size() < 20000;)
    arrivals.push_back(now += drawExponential(generator) / 40);
  double longest = 0;
  for (const SimulatedQuery &query : simulate(system, arrivals))
    longest = std::max(longest, query.latency);
  EXPECT_GT(longest, 1.1);
  EXPECT_LE(longest, 0.0179 * 40 + 2 * 0.27);
}

TEST(WindVESimulationTest, FailedDevicesLoseNoQuery) {
  WindVESystem system = v100AndXeon();
  system.devices[0].failureProbability = 0.2;
  system.devices[1].hangProbability = 0.1;
  system.devices[1].failureProbability = 0.1;
  system.hangSeconds = 3;
  system.closedSeconds = 2;
  std::vector<double> arrivals;
  std::mt19937_64 generator(2);
  for (double now = 0; arrivals.size() < 100000;)
    arrivals.push_back(now += drawExponential(generator) / 20);
  const auto queries = simulate(system, arrivals);
  ASSERT_EQ(queries.size(), arrivals.size());
  size_t answered[2] = {}, busy = 0;
  for (size_t i = 0; i < queries.size(); ++i) {
    EXPECT_EQ(queries[i].arrival, arrivals[i]);
    EXPECT_TRUE(std::isfinite(queries[i].latency));
    if (queries[i].device) {
      ++answered[*queries[i].device];
      EXPECT_GT(queries[i].latency, 0.25);
    } else {
      ++busy;
    }
  }
  EXPECT_GT(answered[0], 10000u);
  EXPECT_GT(answered[1], 5000u);
  EXPECT_GT(busy, 1000u);
  const auto again = simulate(system, arrivals);
  for (size_t i = 0; i < queries.size(); ++i) {
    EXPECT_EQ(queries[i].device, again[i].device);
    EXPECT_EQ(queries[i].latency, again[i].latency);
  }
}

TEST(WindVESimulationTest, AllDevicesMayBeGone) {
  WindVESystem system = v100AndXeon();
  for (SimulatedDeviceModel &model : system.devices)
    model.hangProbability = 1;
  system.hangSeconds = 1;
  system.closedSeconds = 5;
  const auto queries = simulate(system, {0, 0.5, 1.5, 7, 30});
  for (const SimulatedQuery &query : queries)
    EXPECT_FALSE(query.device);
  // The first was tried by both.
  EXPECT_DOUBLE_EQ(queries[0].latency, 2);
}

TEST(WindVESimulationTest, ErrorsSayWhatIsWrong) {
  WindVESystem system = v100AndXeon();
  EXPECT_FALSE(simulateWindVE(system, std::vector<double>{2, 1}));
  EXPECT_FALSE(simulateWindVE(system, std::vector<double>{std::nan("")}));
  EXPECT_FALSE(simulateRounds(system, 0, 1));
  EXPECT_FALSE(simulateRounds(system, 1 << 20, 1 << 20));
  system.depths = {1};
  const auto wrong = simulateWindVE(system, std::vector<double>{1});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "there are 1 depths for 2 devices");
  system.depths = {1, 1};
  system.hangSeconds = 0;
  EXPECT_FALSE(simulateWindVE(system, std::vector<double>{1}));
}
