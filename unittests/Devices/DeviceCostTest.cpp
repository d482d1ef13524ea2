//===- DeviceCostTest.cpp - How many devices a service needs --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceCost.h"
#include "sandwich/Devices/DeviceCostReport.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sandwich;

/// 96 and 22 within 2 s, as in table I.
static CostDescription v100AndXeon() {
  CostDescription description;
  description.sloSeconds = 2;
  description.accelerator = {"V100", LatencyLine{1.0 / 52, 0.15}, 8000, 1};
  description.cpu = {"Xeon", LatencyLine{0.076, 0.32}, 0, 1};
  description.queriesPerSecond = {100, 300, 1180, 500};
  return description;
}

static DeviceCost costOf(const CostDescription &description) {
  Result<DeviceCost> cost = DeviceCost::compute(description);
  EXPECT_TRUE(cost) << cost.error().message;
  return cost ? *cost : DeviceCost{};
}

TEST(DeviceCostTest, PeaksAreThePapers) {
  const DeviceCost cost = costOf(v100AndXeon());
  EXPECT_EQ(cost.accelerator.depth, 96u);
  EXPECT_EQ(cost.cpu.depth, 22u);
  EXPECT_EQ(cost.byPeak.queries, 1180);
  // 1180 / 96 and 1180 / 118.
  EXPECT_EQ(cost.byPeak.alone.devices, 13u);
  EXPECT_EQ(cost.byPeak.withOverflow.devices, 10u);
  EXPECT_EQ(cost.byPeak.alone.cost, 104000);
  EXPECT_NEAR(cost.byPeak.savedShare(), 3.0 / 13, 1e-12);
  // The paper's 18.6%, of 22.9% more concurrency.
  EXPECT_NEAR(cost.byPeak.idealSavedShare(), 0.186, 0.0005);
  EXPECT_NEAR(cost.byPeak.gain, 22.0 / 96, 1e-12);
}

TEST(DeviceCostTest, AveragesGoByThroughput) {
  const DeviceCost cost = costOf(v100AndXeon());
  EXPECT_EQ(cost.byAverage.queries, 520);
  const double own = 96 / (96 / 52.0 + 0.15);
  EXPECT_NEAR(cost.accelerator.queriesPerSecond, own, 1e-9);
  EXPECT_EQ(cost.byAverage.alone.devices,
            static_cast<uint64_t>(std::ceil(520 / own)));
  const double both = own + 22 / (22 * 0.076 + 0.32);
  EXPECT_EQ(cost.byAverage.withOverflow.devices,
            static_cast<uint64_t>(std::ceil(520 / both)));
  // Equation 4, of batches that nearly take the SLO, and of short ones.
  EXPECT_EQ(cost.accelerator.waitingBatches, 1u);
}

TEST(DeviceCostTest, AMachineHasOneCpuForAllItsAccelerators) {
  CostDescription description = v100AndXeon();
  description.instancesPerMachine = 4;
  description.peakQueries = 960;
  description.accelerator.devicesPerInstance = 2;
  description.cpu.price = 100;
  const DeviceCost cost = costOf(description);
  EXPECT_EQ(cost.byPeak.alone.instances, 10u);
  EXPECT_EQ(cost.byPeak.alone.devices, 20u);
  EXPECT_EQ(cost.byPeak.alone.machines, 3u);
  // 9 * 96 + 3 * 22 is 930, 10 * 96 + 3 * 22 is 1026.
  EXPECT_EQ(cost.byPeak.withOverflow.instances, 10u);
  EXPECT_LT(cost.byPeak.savedShare(), 0);
  EXPECT_NEAR(cost.byPeak.gain, 22.0 / 96 / 4, 1e-12);
  description.peakQueries = 930;
  EXPECT_EQ(costOf(description).byPeak.withOverflow.instances, 9u);
  EXPECT_EQ(costOf(description).byPeak.withOverflow.cost, 18 * 8000 + 3 * 100);
}

TEST(DeviceCostTest, SlowCpusTakeNoOverflow) {
  CostDescription description = v100AndXeon();
  description.cpu.line = LatencyLine{0.5, 1.6};
  const DeviceCost cost = costOf(description);
  EXPECT_TRUE(cost.cpuIsTooSlow);
  EXPECT_EQ(cost.byPeak.alone.devices, cost.byPeak.withOverflow.devices);
  EXPECT_EQ(cost.byPeak.savedShare(), 0);
  EXPECT_NE(describeCost(description, cost)
                .find("Xeon: a single query takes 2.100 s, so that there is no "
                      "overflow\n"),
            std::string::npos);
  description.cpu.line.reset();
  EXPECT_FALSE(costOf(description).cpuIsTooSlow);
}

TEST(DeviceCostTest, ExtremesStayFinite) {
  CostDescription description;
  description.sloSeconds = maxDeviceSeconds;
  description.accelerator.line = LatencyLine{0, maxDeviceSeconds};
  description.accelerator.price = maxCostNumber;
  description.accelerator.devicesPerInstance = 1024;
  description.queriesPerSecond = {maxCostNumber};
  EXPECT_TRUE(std::isfinite(costOf(description).byAverage.alone.cost));
  description.accelerator.line = LatencyLine{maxDeviceSeconds, 0};
  EXPECT_EQ(costOf(description).byAverage.alone.instances,
            uint64_t{1000000000000000});
  description.queriesPerSecond = {0};
  EXPECT_EQ(costOf(description).byAverage.alone.instances, 0u);
  EXPECT_EQ(costOf(description).byPeak.savedShare(), 0);
}

TEST(DeviceCostTest, ReportsTellTheSame) {
  const CostDescription description = v100AndXeon();
  const DeviceCost cost = costOf(description);
  const Json json = costToJson(description, cost);
  EXPECT_EQ(json["by_peak"]["with_overflow"]["devices"], 10);
  EXPECT_EQ(json["accelerator"]["name"], "V100");
  EXPECT_EQ(json["overflow"], true);
  const std::string text = describeCost(description, cost);
  EXPECT_NE(text.find("by the peak of 1180 queries\n"), std::string::npos);
  EXPECT_NE(text.find("saved         23.1%; 18.6% where"), std::string::npos);
  CostDescription marked = description;
  marked.currency = "<&>";
  const std::string drawing = drawCost(marked, cost);
  EXPECT_NE(drawing.find("&lt;&amp;&gt;"), std::string::npos);
  EXPECT_EQ(drawing.find("<&>"), std::string::npos);
}

TEST(DeviceCostTest, DescriptionsAreRead) {
  const auto read = parseCostDescription(R"({
    "slo_seconds": 2, "instances_per_machine": 2, "peak_queries": 700,
    "accelerator": {"name": "V100", "alpha": 0.0179, "beta": 0.27,
                    "price": 8000, "devices_per_instance": 3},
    "cpu": {"profiles": [[1, 0.4], [8, 0.96], [16, 1.6]]},
    "queries_per_second": [1, 2.5], "currency": "EUR"})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->accelerator.line, (LatencyLine{0.0179, 0.27}));
  EXPECT_EQ(read->accelerator.devicesPerInstance, 3u);
  EXPECT_NEAR(read->cpu.line->alpha, 0.08, 1e-9);
  EXPECT_NEAR(read->cpu.line->beta, 0.32, 1e-9);
  EXPECT_EQ(read->peakQueries, 700);
  EXPECT_EQ(read->queriesPerSecond, (std::vector<double>{1, 2.5}));
}

TEST(DeviceCostTest, ErrorsNameTheField) {
  for (const auto &[text, message] :
       std::vector<std::pair<const char *, const char *>>{
           {"[]", "the description is no object"},
           {R"({"slo": 1})", "slo is not known"},
           {R"({"slo_seconds": 0})",
            "slo_seconds is no number from 1e-06 to 1e+06"},
           {R"({"accelerator": {"alpha": 1}})", "accelerator.beta is absent"},
           {R"({"cpu": {"profiles": [[1, 1], [2, 2]]}})",
            "cpu.profiles: a line needs at least 3 profiles, and there are 2"},
           {R"({"cpu": {"profiles": [[1, 1], [-2, 2]]}})",
            "cpu.profiles[1] is no pair of a concurrency and seconds"},
           {R"({"cpu": {"profiles": [], "alpha": 1}})",
            "cpu.alpha is told, and so are profiles, which it is found from"},
           {R"({"queries_per_second": [1, "x"]})",
            "queries_per_second[1] is no number from 0 to 1e+09"},
           {R"({"peak_queries": -1})",
            "peak_queries is no number from 0 to 1e+09"},
           {R"({"instances_per_machine": 1.5})",
            "instances_per_machine is no whole number from 1 to 1024"},
       }) {
    const auto read = parseCostDescription(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().message, message);
  }
}

TEST(DeviceCostTest, WhatCannotBeComputedIsSaid) {
  auto messageOf = [](const CostDescription &description) {
    Result<DeviceCost> cost = DeviceCost::compute(description);
    return cost ? "" : cost.error().message;
  };
  CostDescription description = v100AndXeon();
  description.accelerator.line = LatencyLine{1, 1.5};
  EXPECT_EQ(messageOf(description),
            "a single query takes 2.5 s on V100, longer than the SLO of 2 s");
  description.accelerator.line.reset();
  EXPECT_EQ(messageOf(description),
            "alpha and beta of the accelerator are not told");
  description = v100AndXeon();
  description.queriesPerSecond.clear();
  EXPECT_EQ(messageOf(description),
            "the queries of a day are in 0 parts; it must be 1 to 86400");
  description.queriesPerSecond = {std::nan("")};
  EXPECT_NE(messageOf(description), "");
  description = v100AndXeon();
  description.cpu.price = -1;
  EXPECT_EQ(messageOf(description),
            "the price of Xeon is -1; it must be 0 to 1e+09");
}
