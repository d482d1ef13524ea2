//===- StepGridTest.cpp - Times of a few steps stand for all --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/StepGrid.h"

#include "sandwich/Serving/Prediction/TracePrediction.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {
using Lengths = std::vector<int64_t>;

/// What grows along lines, so that a grid's times are exact everywhere.
double promptLine(double tokens) { return 2 + 0.5 * tokens; }
double decodeLine(double sequences, double each) {
  return 1 + 0.25 * sequences + 0.125 * sequences * each;
}

InterpolatedSteps measureLines(const StepGrid &grid) {
  std::vector<double> prompts;
  for (int64_t tokens : grid.promptTokens)
    prompts.push_back(promptLine(static_cast<double>(tokens)));
  std::vector<std::vector<double>> decodes;
  for (int64_t sequences : grid.sequences) {
    std::vector<double> &row = decodes.emplace_back();
    for (int64_t positions : grid.positions)
      row.push_back(decodeLine(static_cast<double>(sequences),
                               static_cast<double>(positions)));
  }
  return {grid, prompts, decodes};
}

StepShape piece(uint64_t computed, uint64_t tokens) {
  StepShape shape = {.phase = StepPhase::Prefill};
  shape.addPiece(computed, tokens);
  return shape;
}

/// A token each of sequences that hold `each` positions.
StepShape decode(uint64_t sequences, uint64_t each) {
  StepShape shape;
  for (uint64_t i = 0; i < sequences; ++i)
    shape.addDecode(each);
  return shape;
}

double mean(const InterpolatedSteps &steps, const ServingTrace &trace) {
  Result<TracePrediction> prediction = TracePrediction::create(trace);
  EXPECT_TRUE(prediction);
  return prediction->cost(
      [&](const StepShape &shape) { return steps.seconds(shape); });
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
    EXPECT_NEAR(mean(noisy, trace) / mean(exact, trace), 1, 0.06);
  }
}

TEST(StepGrid, LinesAreExactEverywhere) {
  const InterpolatedSteps steps =
      measureLines({{16, 50, 300}, {1, 4, 16}, {40, 700}});
  for (uint64_t tokens : {2, 16, 17, 49, 50, 299, 2000})
    EXPECT_NEAR(steps.seconds(piece(0, tokens)),
                promptLine(static_cast<double>(tokens)), 1e-9);
  // What the whole prompt takes, in pieces.
  EXPECT_NEAR(steps.seconds(piece(0, 100)) + steps.seconds(piece(100, 200)),
              promptLine(300), 1e-9);
  for (uint64_t sequences : {1, 2, 4, 10, 16, 60})
    for (uint64_t each : {1, 40, 100, 700, 1500})
      EXPECT_NEAR(
          steps.seconds(decode(sequences, each)),
          decodeLine(static_cast<double>(sequences), static_cast<double>(each)),
          1e-6)
          << sequences << " sequences at " << each;
  // Beside a piece, streams are tokens of it, with positions of their own.
  StepShape both = piece(0, 20);
  both.addDecode(100);
  both.addDecode(100);
  EXPECT_NEAR(steps.seconds(both),
              promptLine(22) + decodeLine(2, 100) - decodeLine(2, 0), 1e-9);
}

TEST(StepGrid, GoesNotBelowWhatWasMeasured) {
  // Noise: longer was faster.
  const InterpolatedSteps steps({{10, 20}, {1, 4}, {100, 200}}, {3, 2},
                                {{2, 1}, {1, 0.5}});
  EXPECT_EQ(steps.seconds(piece(0, 15)), 2.5);
  EXPECT_EQ(steps.seconds(piece(0, 2)), 3);
  EXPECT_GE(steps.seconds(piece(0, 1000)), 2);
  EXPECT_GT(steps.seconds(piece(10, 10)), 0);
  EXPECT_GE(steps.seconds(decode(64, 10000)), 0.5);
  // One of each is the same everywhere.
  const InterpolatedSteps single({{10}, {1}, {100}}, {3}, {{2}});
  EXPECT_EQ(single.seconds(piece(0, 500)), 3);
  EXPECT_EQ(single.seconds(decode(8, 500)), 2);
}
