//===- DriftMonitorTest.cpp - Devices that get slower or faster -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DriftMonitor.h"

#include "sandwich/Devices/SimulatedDevice.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sandwich;

static const LatencyLine usual = {0.018, 0.27};

static DriftMonitor make() {
  Result<DriftMonitor> monitor = DriftMonitor::create({}, usual, 1);
  EXPECT_TRUE(monitor) << monitor.error().message;
  return *std::move(monitor);
}

static SimulatedDevice deviceOf(const LatencyLine &line, double noise,
                                double slow = 0) {
  SimulatedDeviceModel model;
  model.line = line;
  model.noise = noise;
  model.slowProbability = slow;
  return {model, 7};
}

TEST(DriftMonitorTest, NoiseAndOutliersAreNoDrift) {
  DriftMonitor monitor = make();
  SimulatedDevice device = deviceOf(usual, 0.03, 0.02);
  for (uint32_t i = 0; i < 100000; ++i) {
    const uint32_t batch = 1 + i * 7 % 40;
    EXPECT_FALSE(monitor.observe(batch, device.run(batch).seconds)) << i;
  }
  EXPECT_EQ(monitor.depth(), 40u);
}

TEST(DriftMonitorTest, SlowerDevicesAreFoundOnce) {
  DriftMonitor monitor = make();
  SimulatedDevice before = deviceOf(usual, 0.02);
  const LatencyLine slower = {0.025, 0.35};
  SimulatedDevice after = deviceOf(slower, 0.02);
  for (uint32_t i = 0; i < 500; ++i)
    EXPECT_FALSE(monitor.observe(1 + i % 40, before.run(1 + i % 40).seconds));
  size_t drifts = 0;
  for (uint32_t i = 0; i < 5000; ++i)
    if (const auto drift =
            monitor.observe(1 + i % 40, after.run(1 + i % 40).seconds)) {
      ++drifts;
      EXPECT_LT(i, 40u);
      EXPECT_TRUE(drift->fitted);
      EXPECT_NEAR(drift->depth, slower.depthFor(1), 2);
    }
  EXPECT_EQ(drifts, 1u);
  EXPECT_EQ(monitor.depth(), monitor.line().depthFor(1));
}

TEST(DriftMonitorTest, FasterDevicesGetMore) {
  DriftMonitor monitor = make();
  const LatencyLine faster = {0.012, 0.2};
  std::optional<Drift> found;
  for (uint32_t i = 0; i < 200; ++i)
    if (const auto drift =
            monitor.observe(1 + i % 40, faster.seconds(1 + i % 40)))
      found = drift;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->depth, faster.depthFor(1));
}

TEST(DriftMonitorTest, BatchesOfOneSizeScaleTheLine) {
  DriftMonitor monitor = make();
  std::optional<Drift> found;
  for (int i = 0; i < 100 && !found; ++i)
    found = monitor.observe(40, 1.5 * usual.seconds(40));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->fitted);
  EXPECT_NEAR(found->line.alpha, 1.5 * usual.alpha, 1e-12);
  EXPECT_NEAR(found->line.beta, 1.5 * usual.beta, 1e-12);
}

/// A device that changes its mind is followed at most once for each
/// `leastBatches`, and one that is off by less than the slack never.
TEST(DriftMonitorTest, DoesNotFlap) {
  DriftMonitor monitor = make();
  for (uint32_t i = 0; i < 20000; ++i)
    EXPECT_FALSE(monitor.observe(1 + i % 40, usual.seconds(1 + i % 40) *
                                                 (i % 100 < 50 ? 1.04 : 0.96)));
  size_t drifts = 0;
  for (uint32_t i = 0; i < 20000; ++i)
    drifts +=
        monitor
            .observe(1 + i % 40, usual.seconds(1 + i % 40) * (i % 2 ? 1.3 : 1))
            .has_value();
  EXPECT_LE(drifts, 3u);
}

TEST(DriftMonitorTest, SenselessBatchesAreLeftOut) {
  DriftMonitor monitor = make();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(monitor.observe(0, 1));
    EXPECT_FALSE(monitor.observe(1, std::nan("")));
    EXPECT_FALSE(monitor.observe(1, -1));
  }
  EXPECT_EQ(monitor.line(), usual);
}

TEST(DriftMonitorTest, ErrorsSayWhatIsWrong) {
  EXPECT_FALSE(DriftMonitor::create({}, usual, 0));
  EXPECT_FALSE(DriftMonitor::create({}, {0, 0}, 1));
  EXPECT_FALSE(DriftMonitor::create({}, {-1, 2}, 1));
  DriftOptions wrong;
  wrong.leastBatches = 300;
  EXPECT_FALSE(DriftMonitor::create(wrong, usual, 1));
  wrong = {};
  wrong.slack = std::nan("");
  EXPECT_FALSE(DriftMonitor::create(wrong, usual, 1));
}
