//===- LatencyFitTest.cpp - Latency as a line over concurrency ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/LatencyFit.h"

#include "sandwich/Support/RandomNumbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace sandwich;

static std::vector<ProfilePoint>
pointsOn(const LatencyLine &line, std::initializer_list<uint32_t> counts) {
  std::vector<ProfilePoint> points;
  for (uint32_t count : counts)
    points.push_back({count, line.seconds(count)});
  return points;
}

TEST(LatencyLineTest, DepthsAreTheLastThatKeepTheSlo) {
  // The paper's V100: 40 within 1 s and 96 within 2 s.
  const LatencyLine v100{0.0179, 0.27};
  EXPECT_EQ(v100.depthFor(1), 40u);
  EXPECT_EQ(v100.depthFor(2), 96u);
  for (uint32_t depth : {1u, 3u, 7u, 1000u}) {
    // Equations 7 and 8, where the last query ends when the SLO does.
    const LatencyLine line{0.1, 0.3};
    const double slo = line.seconds(depth);
    EXPECT_EQ(line.depthFor(slo), depth);
    EXPECT_EQ(line.depthFor(slo - 1e-6), depth - 1);
  }
}

TEST(LatencyLineTest, OneQueryMayBeTooSlow) {
  EXPECT_EQ((LatencyLine{0.2, 0.85}.depthFor(1)), 0u);
  EXPECT_EQ((LatencyLine{0, 1.1}.depthFor(1)), 0u);
}

TEST(LatencyLineTest, DepthsAreBounded) {
  EXPECT_EQ((LatencyLine{0, 0.5}.depthFor(1)), maxQueueDepth);
  EXPECT_EQ((LatencyLine{1e-12, 0}.depthFor(1)), maxQueueDepth);
  EXPECT_EQ((LatencyLine{1e-300, 0.5}.depthFor(1)), maxQueueDepth);
}

TEST(LatencyFitTest, FindsTheLineOfExactPoints) {
  const LatencyLine line{0.0179, 0.27};
  const auto points = pointsOn(line, {1, 8, 64, 96});
  Result<LatencyFit> fit = LatencyFit::create(points);
  ASSERT_TRUE(fit) << fit.error().message;
  EXPECT_NEAR(fit->line.alpha, line.alpha, 1e-12);
  EXPECT_NEAR(fit->line.beta, line.beta, 1e-12);
  EXPECT_NEAR(fit->rSquared, 1, 1e-12);
  EXPECT_TRUE(fit->outliers.empty());
  EXPECT_EQ(fit->describe(), "alpha 17.9 ms, beta 270 ms, R^2 1.0000, 0 of 4 "
                             "points left out");
}

TEST(LatencyFitTest, OutliersDoNotMoveIt) {
  const LatencyLine line{0.0735, 0.85};
  std::mt19937_64 generator(1);
  for (int run = 0; run < 100; ++run) {
    std::vector<ProfilePoint> points;
    for (uint32_t count = 1; count <= 16; ++count)
      points.push_back(
          {count, line.seconds(count) * (1 + 0.005 * drawNormal(generator))});
    // A quarter of them, as the paper's Kunpeng has.
    for (size_t i : {2, 7, 11, 15})
      points[i].seconds *= 1.5 + drawUniform(generator);
    Result<LatencyFit> fit = LatencyFit::create(points);
    ASSERT_TRUE(fit) << fit.error().message;
    EXPECT_NEAR(fit->line.alpha, line.alpha, 0.05 * line.alpha);
    EXPECT_NEAR(fit->line.beta, line.beta, 0.05 * line.beta);
    EXPECT_EQ(fit->outliers, (std::vector<size_t>{2, 7, 11, 15}));
    EXPECT_LT(fit->rSquared, 0.9);
    EXPECT_GT(fit->residuals[7], 0.5);
  }
}

TEST(LatencyFitTest, IsLeastSquaresWithoutOutliers) {
  const std::vector<ProfilePoint> points = {
      {1, 1.0}, {2, 2.1}, {3, 2.9}, {4, 4.0}};
  Result<LatencyFit> fit = LatencyFit::create(points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->line.alpha, 0.98, 0.01);
  EXPECT_NEAR(fit->line.beta, 0.05, 0.02);
}

TEST(LatencyFitTest, NeitherPartIsBelowZero) {
  Result<LatencyFit> steep =
      LatencyFit::create(std::vector<ProfilePoint>{{4, 1}, {8, 3}, {12, 5}});
  ASSERT_TRUE(steep);
  EXPECT_EQ(steep->line.beta, 0);
  EXPECT_GT(steep->line.alpha, 0);
  Result<LatencyFit> falling = LatencyFit::create(
      std::vector<ProfilePoint>{{1, 1.2}, {8, 1.1}, {64, 1.0}});
  ASSERT_TRUE(falling);
  EXPECT_EQ(falling->line.alpha, 0);
  EXPECT_NEAR(falling->line.beta, 1.1, 0.05);
}

TEST(LatencyFitTest, RandomPointsNeverBreakIt) {
  std::mt19937_64 generator(2);
  for (int run = 0; run < 2000; ++run) {
    std::vector<ProfilePoint> points(3 + generator() % 10);
    for (ProfilePoint &point : points)
      point = {static_cast<uint32_t>(1 + generator() % (run % 2 ? 3 : 1000000)),
               std::exp(10 * drawNormal(generator)) + 1e-9};
    for (ProfilePoint &point : points)
      point.seconds = std::min(point.seconds, maxDeviceSeconds);
    Result<LatencyFit> fit = LatencyFit::create(points);
    if (!fit)
      continue;
    EXPECT_GE(fit->line.alpha, 0);
    EXPECT_GE(fit->line.beta, 0);
    EXPECT_LE(fit->line.depthFor(1), maxQueueDepth);
    EXPECT_LE(fit->rSquared, 1);
  }
}

TEST(LatencyFitTest, SaysWhatIsMissing) {
  auto messageOf = [](std::vector<ProfilePoint> points) {
    Result<LatencyFit> fit = LatencyFit::create(points);
    return fit ? "" : fit.error().message;
  };
  EXPECT_EQ(messageOf({{1, 1}, {2, 2}}),
            "a line needs at least 3 profiles, and there are 2");
  EXPECT_EQ(messageOf({{4, 1}, {4, 2}, {4, 1}}),
            "all 3 profiles are of 4 queries; a line needs two concurrencies");
  EXPECT_EQ(messageOf({{0, 1}, {4, 2}, {8, 1}}),
            "a profile is of 0 queries; it must be 1 to 1048576");
  for (double wrong :
       {0.0, -1.0, 1e7, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_NE(messageOf({{1, wrong}, {4, 2}, {8, 1}}), "");
  EXPECT_EQ(messageOf(std::vector<ProfilePoint>(513, {1, 1})),
            "a line is fitted to at most 512 profiles, and there are 513");
}
