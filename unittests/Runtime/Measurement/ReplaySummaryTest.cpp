//===- ReplaySummaryTest.cpp - What a replay comes to ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/ReplaySummary.h"

#include "sandwich/Runtime/Measurement/LineChart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace sandwich;

/// Three requests, of which the last was refused.
static std::vector<ServedRequest> threeRequests() {
  ServedRequest quick;
  quick.arrival = 1;
  quick.firstToken = 1.5;
  quick.lastToken = 2.5;
  quick.promptTokens = 10;
  quick.outputTokens = 5;
  quick.gaps = {0.25, 0.25, 0.25, 0.25};
  ServedRequest single;
  single.arrival = 2;
  single.firstToken = single.lastToken = 4;
  single.promptTokens = 3;
  single.outputTokens = 1;
  ServedRequest refused;
  refused.arrival = 3;
  refused.refused = true;
  return {quick, single, refused};
}

TEST(ReplaySummaryTest, RefusedRequestsKeepNothing) {
  const auto served = threeRequests();
  const ServiceObjectives objectives{.firstToken = 1, .token = 0.125};
  EXPECT_DOUBLE_EQ(keptScale(served[0], objectives), 2);
  // One token has no time per token.
  EXPECT_DOUBLE_EQ(keptScale(served[1], objectives), 2);
  EXPECT_TRUE(std::isinf(keptScale(served[2], objectives)));
  EXPECT_EQ(attainmentPercent(served, objectives), 0);
  EXPECT_NEAR(attainmentPercent(served, objectives.scaled(2)), 66.67, 0.01);
  EXPECT_EQ(attainmentPercent({}, objectives), 0);

  const ReplaySummary summary(served, objectives.scaled(2));
  EXPECT_EQ(summary.requests, 3u);
  EXPECT_EQ(summary.refused, 1u);
  EXPECT_EQ(summary.promptTokens, 13u);
  EXPECT_EQ(summary.outputTokens, 6u);
  EXPECT_EQ(summary.seconds, 4);
  EXPECT_EQ(summary.ttft->mean, 1250);
  EXPECT_EQ(summary.tpot->p99, 250);
  EXPECT_EQ(summary.latency->p90, 2000);
  EXPECT_NEAR(*summary.attainment, 66.67, 0.01);
  EXPECT_FALSE(ReplaySummary(served, {}).attainment);
  EXPECT_FALSE(ReplaySummary({}, {}).ttft);
}

TEST(LineChartTest, SharesGrowWhereValuesAre) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto points = cumulativeShares({3, infinity, 1}, 4);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].x, 1);
  EXPECT_EQ(points[0].y, 0);
  EXPECT_EQ(points[1].y, 25);
  EXPECT_EQ(points[2].x, 3);
  EXPECT_EQ(points[2].y, 25);
  EXPECT_EQ(points[3].y, 50);
  EXPECT_TRUE(cumulativeShares({}, 1).empty());
  const auto many = cumulativeShares(std::vector<double>(100000, 2), 100000);
  EXPECT_LE(many.size(), 1000u);
  EXPECT_EQ(many.back().y, 100);
}

TEST(LineChartTest, DrawsWithoutPointsAndEscapesNames) {
  LineChart chart{
      .title = "a < b", .xLabel = "\"x\"", .yLabel = "y & z", .series = {}};
  EXPECT_NE(chart.draw().find("a &lt; b"), std::string::npos);
  chart.series = {{"<1>", {{0, 0}, {10, 5}}, true}, {"2", {}}};
  const std::string svg = chart.draw();
  EXPECT_NE(svg.find("&lt;1&gt;: from 0 at 0 to 5 at 10."), std::string::npos);
  EXPECT_EQ(svg.find("<1>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}
