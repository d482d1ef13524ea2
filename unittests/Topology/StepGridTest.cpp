//===- StepGridTest.cpp - Times of a few steps stand for all --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/StepGrid.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {
using Lengths = std::vector<int64_t>;

/// What grows along lines, so that a grid's times are exact everywhere.
struct Lines final : StepTimes {
  double promptSeconds(int64_t tokens) const override {
    return 2 + 0.5 * static_cast<double>(tokens);
  }
  static double step(double sequences, double each) {
    return 1 + 0.25 * sequences + 0.125 * sequences * each;
  }
  double decodeSeconds(int64_t sequences, int64_t positions,
                       int64_t steps) const override {
    double seconds = 0;
    for (int64_t i = 0; i < steps; ++i)
      seconds +=
          step(static_cast<double>(sequences),
               static_cast<double>(positions) / static_cast<double>(sequences) +
                   static_cast<double>(i));
    return seconds;
  }
};

InterpolatedSteps measureLines(const StepGrid &grid) {
  const Lines lines;
  std::vector<double> prompts;
  for (int64_t tokens : grid.promptTokens)
    prompts.push_back(lines.promptSeconds(tokens));
  std::vector<std::vector<double>> decodes;
  for (int64_t sequences : grid.sequences) {
    std::vector<double> &row = decodes.emplace_back();
    for (int64_t positions : grid.positions)
      row.push_back(lines.decodeSeconds(sequences, sequences * positions, 1));
  }
  return {grid, prompts, decodes};
}
} // namespace

TEST(StepGrid, HasStepsOfTheTrace) {
  ServingTrace trace;
  for (int64_t i = 1; i <= 11; ++i)
    trace.push_back({i * 10, 100, {}});
  StepGrid grid = stepGridFor(trace, 4096, 64);
  EXPECT_EQ(grid.promptTokens, (Lengths{20, 50, 100}));
  // Outputs begin after the prompts, and most end 100 tokens later.
  EXPECT_EQ(grid.positions, (Lengths{51, 168}));
  // One after the other: there is never more than one.
  EXPECT_EQ(grid.sequences, (Lengths{1}));
  for (ServingRequest &request : trace)
    request.arrivalSeconds = 1;
  EXPECT_EQ(stepGridFor(trace, 4096, 64).sequences, (Lengths{1, 4}));
  trace.insert(trace.end(), 11, trace.back());
  EXPECT_EQ(stepGridFor(trace, 4096, 64).sequences, (Lengths{1, 4, 16}));
  EXPECT_EQ(stepGridFor(trace, 4096, 8).sequences, (Lengths{1, 4}));
}

TEST(StepGrid, StaysInsideTheContext) {
  StepGrid grid = stepGridFor({{5000, 100, {}}, {20, 3000, {}}}, 256, 64);
  EXPECT_EQ(grid.promptTokens, (Lengths{20, 255}));
  EXPECT_EQ(grid.positions, (Lengths{68, 255}));
  grid = stepGridFor({{1, 0, {}}}, 2, 1);
  EXPECT_EQ(grid.promptTokens, (Lengths{1}));
  EXPECT_EQ(grid.positions, (Lengths{1}));
}

TEST(StepGrid, NoiseDoesNotBecomeASlope) {
  // Nearly all positions are decoded by one request, nearly all prompts are of
  // one length.
  ServingTrace few(19, {200, 1, {}});
  few.push_back({20, 230, {}});
  ServingTrace same(20, {100, 400, {}});
  for (const ServingTrace &trace : {few, same}) {
    const StepGrid grid = stepGridFor(trace, 4096, 64);
    for (const Lengths *places : {&grid.promptTokens, &grid.positions})
      EXPECT_GE(places->back(), 2 * places->front());
    // Steps take the same whatever they do, but are measured wrong by 2%.
    std::vector<double> prompts(grid.promptTokens.size(), 0.98);
    prompts.back() = 1.02;
    const InterpolatedSteps noisy(grid, prompts, {{0.98, 1.02}});
    const InterpolatedSteps exact({{1}, {1}, {1}}, {1}, {{1}});
    EXPECT_NEAR(meanLatency(noisy, trace) / meanLatency(exact, trace), 1, 0.06);
  }
}

TEST(StepGrid, LinesAreExactEverywhere) {
  const Lines lines;
  const InterpolatedSteps steps =
      measureLines({{16, 50, 300}, {1, 4, 16}, {40, 700}});
  for (int64_t tokens : {1, 16, 17, 49, 50, 299, 2000})
    EXPECT_NEAR(steps.promptSeconds(tokens), lines.promptSeconds(tokens), 1e-9);
  for (int64_t sequences : {1, 2, 4, 10, 16, 60})
    for (int64_t each : {1, 40, 100, 700, 1500})
      for (int64_t count : {0, 1, 37})
        EXPECT_NEAR(steps.decodeSeconds(sequences, sequences * each, count),
                    lines.decodeSeconds(sequences, sequences * each, count),
                    1e-6)
            << sequences << " sequences at " << each;
  ServingTrace trace;
  for (int i = 0; i < 40; ++i)
    trace.push_back({16 + 7 * i, 1 + 13 * i % 90, 25.0 * i});
  EXPECT_NEAR(meanLatency(steps, trace), meanLatency(lines, trace), 1e-6);
}

TEST(StepGrid, GoesNotBelowWhatWasMeasured) {
  // Noise: longer was faster.
  const InterpolatedSteps steps({{10, 20}, {1, 4}, {100, 200}}, {3, 2},
                                {{2, 1}, {1, 0.5}});
  EXPECT_EQ(steps.promptSeconds(15), 2.5);
  EXPECT_EQ(steps.promptSeconds(1), 3);
  EXPECT_GE(steps.promptSeconds(1000), 2);
  EXPECT_GE(steps.decodeSeconds(64, 64 * 10000, 1), 0.5);
  // One of each is the same everywhere.
  const InterpolatedSteps single({{10}, {1}, {100}}, {3}, {{2}});
  EXPECT_EQ(single.promptSeconds(500), 3);
  EXPECT_EQ(single.decodeSeconds(8, 4000, 5), 10);
}
