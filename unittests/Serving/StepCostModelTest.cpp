//===- StepCostModelTest.cpp - How long steps will take -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/StepCostModel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace sandwich;

static StepCostModel makeModel(const StepCosts &costs) {
  Result<StepCostModel> model = StepCostModel::create(costs);
  EXPECT_TRUE(model);
  return *std::move(model);
}

static StepShape prefillOf(uint64_t tokens, uint64_t computed = 0) {
  StepShape shape;
  shape.phase = StepPhase::Prefill;
  shape.addPiece(computed, tokens);
  return shape;
}

static StepShape decodeOf(uint64_t sequences, uint64_t computed = 0) {
  StepShape shape;
  for (uint64_t i = 0; i < sequences; ++i)
    shape.addDecode(computed);
  return shape;
}

TEST(StepCostModelTest, CountsThePositionsThatTokensRead) {
  StepShape shape;
  shape.addPiece(10, 3);
  EXPECT_EQ(shape.promptPositions, 11u + 12 + 13);
  shape.addDecode(4);
  EXPECT_EQ(shape.decodePositions, 5u);
  EXPECT_EQ(shape.tokens(), 4u);
}

TEST(StepCostModelTest, LiesOnLinesBetweenPoints) {
  StepCostModel model = makeModel({.prefill = {{16, 1}, {32, 3}},
                                   .decode = {{1, 0.5}},
                                   .secondsPerPromptPosition = 0.25,
                                   .secondsPerDecodePosition = 0.125});
  auto withoutPositions = [&](uint64_t tokens) {
    return model.seconds({.phase = StepPhase::Prefill, .promptTokens = tokens});
  };
  EXPECT_DOUBLE_EQ(withoutPositions(1), 1);
  EXPECT_DOUBLE_EQ(withoutPositions(24), 2);
  EXPECT_DOUBLE_EQ(withoutPositions(40), 4);
  EXPECT_DOUBLE_EQ(model.seconds(prefillOf(1, 7)), 1 + 8 * 0.25);
  EXPECT_DOUBLE_EQ(model.seconds(decodeOf(2, 3)), 0.5 + 8 * 0.125);
}

TEST(StepCostModelTest, RefusesWhatIsNoTime) {
  const StepCosts good = {.prefill = {{1, 1}}, .decode = {{1, 1}}};
  EXPECT_TRUE(StepCostModel::create(good));
  EXPECT_TRUE(StepCostModel::create(assumedStepCosts()));
  EXPECT_FALSE(StepCostModel::create({.prefill = {{1, 1}}, .decode = {}}));
  for (double bad :
       {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    StepCosts costs = good;
    costs.decode[0].seconds = bad;
    EXPECT_FALSE(StepCostModel::create(costs)) << bad;
    costs = good;
    costs.secondsPerDecodePosition = bad;
    EXPECT_EQ(static_cast<bool>(StepCostModel::create(costs)), bad == 0) << bad;
  }
  StepCosts costs = good;
  costs.prefill = {{2, 1}, {2, 1}};
  EXPECT_FALSE(StepCostModel::create(costs));
}

TEST(StepCostModelTest, LearnsWhatStepsTake) {
  StepCostModel model = makeModel(assumedStepCosts());
  // Ten times as slow as assumed, in all sizes.
  const StepCostModel truth = makeModel(assumedStepCosts());
  for (int round = 0; round < 40; ++round)
    for (uint64_t tokens : {1, 8, 30, 64, 200, 700})
      model.observe(prefillOf(tokens), 10 * truth.seconds(prefillOf(tokens)));
  for (uint64_t tokens : {1, 16, 50, 500, 1000})
    EXPECT_NEAR(model.seconds(prefillOf(tokens)) /
                    truth.seconds(prefillOf(tokens)),
                10, 1)
        << tokens;
  EXPECT_EQ(model.seconds(decodeOf(4)), truth.seconds(decodeOf(4)));
}

TEST(StepCostModelTest, WhatWasNeverSeenMovesAlong) {
  StepCostModel model = makeModel(assumedStepCosts());
  const double before = model.seconds(prefillOf(1024));
  for (int i = 0; i < 50; ++i)
    model.observe(prefillOf(16), 0.2);
  EXPECT_NEAR(model.seconds(prefillOf(16)), 0.2, 0.01);
  EXPECT_NEAR(model.seconds(prefillOf(1024)) / before, 4, 0.4);
}

TEST(StepCostModelTest, LearnsWhereNothingWasMeasured) {
  // With one point that all observations moved, a step of 16 tokens and one of
  // 512 were predicted to take the same.
  StepCostModel model =
      makeModel({.prefill = {{16, 0.12}}, .decode = {{1, 0.05}, {1024, 1}}});
  const StepCostModel truth = makeModel(
      {.prefill = {{16, 0.12}, {32, 0.18}, {512, 2.9}}, .decode = {{1, 1}}});
  std::mt19937_64 generator(1);
  for (int i = 0; i < 400; ++i) {
    const uint64_t tokens = 16 + generator() % (i % 2 ? 48 : 1000);
    model.observe(prefillOf(tokens), truth.seconds(prefillOf(tokens)));
  }
  for (uint64_t tokens : {20, 64, 200, 500, 1000})
    EXPECT_NEAR(model.seconds(prefillOf(tokens)) /
                    truth.seconds(prefillOf(tokens)),
                1, 0.3)
        << tokens;
}

TEST(StepCostModelTest, OneOutlierDoesLittleHarm) {
  StepCostModel model = makeModel(assumedStepCosts());
  for (int i = 0; i < 20; ++i)
    model.observe(decodeOf(1), 0.05);
  const double before = model.seconds(decodeOf(1));
  model.observe(decodeOf(1), 1000);
  EXPECT_LT(model.seconds(decodeOf(1)), 1.08 * before);
  for (double ignored :
       {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    model.observe(decodeOf(1), ignored);
  EXPECT_LT(model.seconds(decodeOf(1)), 1.08 * before);
}

TEST(StepCostModelTest, StaysMonotoneAndFiniteWhateverIsObserved) {
  std::mt19937_64 generator(1);
  StepCosts costs = assumedStepCosts();
  costs.secondsPerPromptPosition = 1e-6;
  StepCostModel model = makeModel(costs);
  for (int i = 0; i < 5000; ++i) {
    const uint64_t tokens = 1 + generator() % 2000;
    const double seconds = std::exp(static_cast<double>(generator() % 80) - 40);
    model.observe(generator() % 2 ? prefillOf(tokens) : decodeOf(tokens % 64),
                  seconds);
    if (i % 10)
      continue;
    double before = 0;
    for (uint64_t each = 1; each < 3000; each += 1 + each / 8) {
      const double predicted = model.seconds(prefillOf(each));
      ASSERT_TRUE(std::isfinite(predicted));
      ASSERT_GT(predicted, 0);
      ASSERT_GE(predicted, before);
      before = predicted;
    }
  }
}
