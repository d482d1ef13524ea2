//===- DepthEstimatorTest.cpp - How deep the queues may be ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DepthEstimator.h"

#include "sandwich/Devices/SimulatedDevice.h"
#include "sandwich/Devices/StressTest.h"
#include "sandwich/Support/RandomNumbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

using namespace sandwich;

static DepthOptions within(double sloSeconds) {
  DepthOptions options;
  options.sloSeconds = sloSeconds;
  return options;
}

/// Answers what `estimator` asks for.
static DepthEstimate
run(DepthEstimator &estimator,
    const std::function<std::vector<double>(const std::vector<uint32_t> &)>
        &measure) {
  while (const auto wanted = estimator.next()) {
    const Status status = estimator.record(measure(*wanted));
    EXPECT_TRUE(status) << status.error().message;
    if (!status)
      break;
  }
  return estimator.estimate();
}

static DepthEstimate estimate(const DepthOptions &options,
                              const std::vector<LatencyLine> &lines,
                              double slowedByOthers = 1) {
  std::vector<std::string> names;
  for (size_t i = 0; i < lines.size(); ++i)
    names.push_back("device" + std::to_string(i));
  Result<DepthEstimator> estimator = DepthEstimator::create(options, names);
  EXPECT_TRUE(estimator) << estimator.error().message;
  return run(*estimator, [&](const std::vector<uint32_t> &wanted) {
    const auto busy = std::ranges::count_if(wanted, [](auto n) { return n; });
    std::vector<double> seconds;
    for (size_t i = 0; i < lines.size(); ++i)
      seconds.push_back(lines[i].seconds(wanted[i]) *
                        (busy > 1 ? slowedByOthers : 1));
    return seconds;
  });
}

TEST(DepthEstimatorTest, FindsThePapersDepths) {
  // The V100 and the Xeon of table III, by the paper's line.
  const std::vector<LatencyLine> lines = {{0.0179, 0.27}, {0.0837, 0.32}};
  const DepthEstimate one = estimate(within(1), lines);
  EXPECT_EQ(one.devices[0].estimated, 40u);
  EXPECT_EQ(one.devices[1].estimated, 8u);
  EXPECT_EQ(one.devices[0].depth, 40u);
  EXPECT_EQ(one.devices[1].depth, 8u);
  EXPECT_EQ(one.devices[0].profiles, 4u);
  EXPECT_EQ(one.devices[1].profiles, 4u);
  EXPECT_EQ(one.tuningProfiles, 2u);
  const DepthEstimate two = estimate(within(2), lines);
  EXPECT_EQ(two.devices[0].depth, 96u);
  EXPECT_EQ(two.devices[1].depth, 20u);
  EXPECT_EQ(two.profiles(), 10u);
}

TEST(DepthEstimatorTest, CollaborationIsTunedFor) {
  const std::vector<LatencyLine> lines = {{0.01, 0.2}, {0.08, 0.3}};
  // Each alone: 80 and 8. At 1.2 times the latency: 63 and 6.
  const DepthEstimate slowed = estimate(within(1), lines, 1.2);
  EXPECT_EQ(slowed.devices[0].estimated, 80u);
  EXPECT_EQ(slowed.devices[1].estimated, 8u);
  EXPECT_EQ(slowed.devices[0].depth, 63u);
  EXPECT_EQ(slowed.devices[1].depth, 6u);
  EXPECT_LE(slowed.tuningProfiles, 10u);
  // Where they are faster than their lines say: 105 and 11.
  const DepthEstimate faster = estimate(within(1), lines, 0.8);
  EXPECT_EQ(faster.devices[0].depth, 105u);
  EXPECT_EQ(faster.devices[1].depth, 11u);
}

TEST(DepthEstimatorTest, SlowDevicesGetNoQueries) {
  const DepthEstimate found = estimate(within(1), {{0.009, 0.24}, {0.3, 0.85}});
  EXPECT_EQ(found.devices[0].depth, 84u);
  EXPECT_EQ(found.devices[1].depth, 0u);
  EXPECT_FALSE(found.devices[1].fit);
  EXPECT_EQ(found.devices[1].profiles, 2u);
  EXPECT_NE(found.describe().find("device1: a single query takes longer than "
                                  "1 s, so that it gets none\n"),
            std::string::npos);
}

TEST(DepthEstimatorTest, AnAccidentOfTheFirstProfileIsNoReason) {
  Result<DeviceProfiling> profiling = DeviceProfiling::create(within(1));
  ASSERT_TRUE(profiling);
  ASSERT_TRUE(profiling->record(5));
  EXPECT_EQ(profiling->next(), 1u);
  while (const auto wanted = profiling->next())
    ASSERT_TRUE(profiling->record(LatencyLine{0.02, 0.3}.seconds(*wanted)));
  EXPECT_FALSE(profiling->isTooSlow());
  EXPECT_EQ(profiling->depth(), 35u);
  EXPECT_EQ(profiling->fit()->outliers, (std::vector<size_t>{0}));
}

TEST(DepthEstimatorTest, FlatDevicesAreBounded) {
  DepthOptions options = within(1);
  options.mostConcurrency = 100;
  const DepthEstimate found = estimate(options, {{0, 0.5}});
  EXPECT_EQ(found.devices[0].estimated, 100u);
  EXPECT_EQ(found.devices[0].depth, 100u);
}

TEST(DepthEstimatorTest, HeadroomIsKept) {
  DepthOptions options = within(1);
  options.headroom = 0.1;
  EXPECT_EQ(estimate(options, {{0.01, 0.1}}).devices[0].depth, 80u);
}

/// A device with a random line and a little noise.
static SimulatedDeviceModel drawModel(std::mt19937_64 &generator) {
  SimulatedDeviceModel model;
  model.line = {0.005 + 0.05 * drawUniform(generator),
                0.1 + 0.4 * drawUniform(generator)};
  model.noise = 0.01;
  return model;
}

/// Within a second, of one device alone.
static DepthEstimate estimateSimulated(const SimulatedDeviceModel &model,
                                       uint64_t seed) {
  SimulatedDevice device(model, seed);
  Result<DepthEstimator> estimator =
      DepthEstimator::create(within(1), {"device"});
  EXPECT_TRUE(estimator);
  if (!estimator)
    return {};
  return run(*estimator, [&](const std::vector<uint32_t> &wanted) {
    return std::vector<double>{device.run(wanted[0]).seconds};
  });
}

/// Random lines with noise: few measurements, and a depth whose real latency is
/// the SLO to a few per cent.
TEST(DepthEstimatorTest, NoiseMovesDepthsLittle) {
  std::mt19937_64 generator(1);
  for (uint64_t run = 0; run < 200; ++run) {
    SimulatedDeviceModel model = drawModel(generator);
    const DepthEstimate found = estimateSimulated(model, run);
    const double seconds = model.line.seconds(found.devices[0].depth);
    EXPECT_GT(seconds + model.line.alpha, 0.93);
    EXPECT_LT(seconds, 1.05);
    EXPECT_LE(found.profiles(), 20u);
  }
}

/// One batch in ten takes twice as long. Few depths are much too small for it,
/// and none is too large.
TEST(DepthEstimatorTest, OutliersRarelyMoveDepths) {
  std::mt19937_64 generator(1);
  int small = 0;
  constexpr int runs = 400;
  for (uint64_t run = 0; run < runs; ++run) {
    SimulatedDeviceModel model = drawModel(generator);
    model.slowProbability = 0.1;
    model.slowFactor = 2;
    const DepthEstimate found = estimateSimulated(model, run);
    const double seconds = model.line.seconds(found.devices[0].depth);
    small += seconds < 0.85;
    EXPECT_LT(seconds, 1.05);
  }
  EXPECT_LT(small, runs / 20);
}

TEST(DepthEstimatorTest, WhatWasNotAskedForIsRefused) {
  EXPECT_FALSE(DepthEstimator::create(within(1), {}));
  Result<DepthEstimator> estimator =
      DepthEstimator::create(within(1), {"a", "b"});
  ASSERT_TRUE(estimator);
  EXPECT_FALSE(estimator->record(std::vector<double>{1}));
  EXPECT_FALSE(estimator->record(std::vector<double>{std::nan(""), 1}));
  EXPECT_EQ(estimator->next(), (std::vector<uint32_t>{1, 0}));
  const DepthEstimate done = estimate(within(1), {{0.1, 0.1}});
  EXPECT_EQ(done.devices[0].depth, 9u);
  for (DepthOptions wrong : {within(0), within(std::nan("")), within(1e7)})
    EXPECT_FALSE(DeviceProfiling::create(wrong));
  DepthOptions narrow;
  narrow.leastProfiles = 2;
  EXPECT_FALSE(DeviceProfiling::create(narrow));
}

TEST(StressTestTest, GoesOnUntilTheSloIsBroken) {
  const LatencyLine line{0.0179, 0.27};
  for (const auto &[step, depth, profiles] : std::vector<std::array<size_t, 3>>{
           {8, 40, 6}, {1, 40, 41}, {12, 36, 4}, {64, 0, 1}}) {
    Result<StressTest> test =
        StressTest::create(within(1), static_cast<uint32_t>(step));
    ASSERT_TRUE(test);
    while (const auto wanted = test->next())
      ASSERT_TRUE(test->record(line.seconds(*wanted)));
    EXPECT_EQ(test->depth(), depth);
    EXPECT_EQ(test->profiles(), profiles);
    EXPECT_FALSE(test->record(1));
  }
}

TEST(StressTestTest, IsBounded) {
  DepthOptions options = within(1);
  options.mostConcurrency = 10;
  EXPECT_FALSE(StressTest::create(options, 0));
  EXPECT_FALSE(StressTest::create(options, 11));
  Result<StressTest> test = StressTest::create(options, 4);
  ASSERT_TRUE(test);
  while (test->next())
    ASSERT_TRUE(test->record(0.1));
  EXPECT_EQ(test->depth(), 8u);
}
