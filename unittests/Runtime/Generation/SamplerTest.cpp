//===- SamplerTest.cpp - From logits to a token ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Generation/Sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

using namespace sandwich;

static constexpr float infinity = std::numeric_limits<float>::infinity();

static SamplingOptions makeOptions(float temperature, uint32_t topK = 0,
                                   float topP = 1, uint64_t seed = 0) {
  SamplingOptions options;
  options.temperature = temperature;
  options.topK = topK;
  options.topP = topP;
  options.seed = seed;
  return options;
}

/// How often each token is drawn.
static std::map<int32_t, int> draw(const SamplingOptions &options,
                                   const std::vector<float> &logits,
                                   int draws) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    Result<int32_t> token = sampler.sample(logits);
    EXPECT_TRUE(token);
    ++counts[*token];
  }
  return counts;
}

TEST(SamplerTest, TakesTheMostProbableAtTemperatureZero) {
  Sampler sampler(makeOptions(0));
  EXPECT_EQ(*sampler.sample(std::vector<float>{1, 5, -2, 5}), 1);
  EXPECT_EQ(*sampler.sample(std::vector<float>{-infinity, -1e30f}), 1);
}

TEST(SamplerTest, FollowsTheSoftmaxOfTheScaledLogits) {
  // Probabilities 1/7, 2/7, 4/7 at temperature 1; 1/21, 4/21, 16/21 at 1/2.
  std::vector<float> logits = {0, std::log(2.0f), std::log(4.0f)};
  constexpr int draws = 21000;
  std::map<int32_t, int> counts = draw(makeOptions(1), logits, draws);
  EXPECT_NEAR(counts[0], 3000, 300);
  EXPECT_NEAR(counts[1], 6000, 300);
  EXPECT_NEAR(counts[2], 12000, 300);
  counts = draw(makeOptions(0.5f), logits, draws);
  EXPECT_NEAR(counts[0], 1000, 200);
  EXPECT_NEAR(counts[1], 4000, 300);
  EXPECT_NEAR(counts[2], 16000, 300);
}

TEST(SamplerTest, TopKLeavesTheRestOut) {
  std::vector<float> logits = {1, 1.2f, 0.9f, 1.1f};
  std::map<int32_t, int> counts = draw(makeOptions(1, 2), logits, 500);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_GT(counts[1], 0);
  EXPECT_GT(counts[3], 0);
  counts = draw(makeOptions(1, 1), logits, 20);
  EXPECT_EQ(counts[1], 20);
  // More than there are is all of them.
  EXPECT_EQ(draw(makeOptions(1, 100), logits, 500).size(), 4u);
}

TEST(SamplerTest, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 0.5, 0.3, 0.2.
  std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  EXPECT_EQ(draw(makeOptions(1, 0, 0.45f), logits, 300).size(), 1u);
  std::map<int32_t, int> counts = draw(makeOptions(1, 0, 0.7f), logits, 8000);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts[1], 5000, 300);
  EXPECT_EQ(draw(makeOptions(1, 0, 0.9f), logits, 300).size(), 3u);
  // However small, one token stays.
  EXPECT_EQ(draw(makeOptions(1, 0, 1e-30f), logits, 20)[1], 20);
}

TEST(SamplerTest, TopPAppliesToWhatTopKLeft) {
  // 0.5 and 0.3 are left by top-k; 0.5 is 0.625 of them.
  std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  EXPECT_EQ(draw(makeOptions(1, 2, 0.6f), logits, 100).size(), 1u);
  EXPECT_EQ(draw(makeOptions(1, 0, 0.6f), logits, 300).size(), 2u);
}

TEST(SamplerTest, TheSeedFixesTheDraws) {
  std::vector<float> logits(100, 0.0f);
  auto tokens = [&](uint64_t seed) {
    Sampler sampler(makeOptions(1, 0, 1, seed));
    std::vector<int32_t> drawn;
    for (int i = 0; i < 20; ++i)
      drawn.push_back(*sampler.sample(logits));
    return drawn;
  };
  EXPECT_EQ(tokens(1), tokens(1));
  EXPECT_NE(tokens(1), tokens(2));
}

TEST(SamplerTest, NeverDrawsABarredToken) {
  std::vector<float> logits = {-infinity, 0, -infinity, 0};
  std::map<int32_t, int> counts = draw(makeOptions(10), logits, 200);
  EXPECT_EQ(counts.count(0), 0u);
  EXPECT_EQ(counts.count(2), 0u);
}

TEST(SamplerTest, RefusesLogitsThatAreNoNumbers) {
  for (float temperature : {0.0f, 1.0f}) {
    Sampler sampler(makeOptions(temperature));
    Result<int32_t> nan = sampler.sample(std::vector<float>{0, NAN, 1});
    ASSERT_FALSE(nan);
    EXPECT_NE(nan.error().message.find("token 1"), std::string::npos);
    EXPECT_FALSE(sampler.sample(std::vector<float>{infinity, 0}));
    EXPECT_FALSE(sampler.sample(std::vector<float>{-infinity, -infinity}));
    EXPECT_FALSE(sampler.sample(std::vector<float>{}));
  }
}

TEST(SamplerTest, ChecksOptions) {
  EXPECT_TRUE(makeOptions(0).validate());
  EXPECT_TRUE(makeOptions(2, 5, 0.5f).validate());
  EXPECT_FALSE(makeOptions(-0.1f).validate());
  EXPECT_FALSE(makeOptions(NAN).validate());
  EXPECT_FALSE(makeOptions(infinity).validate());
  EXPECT_FALSE(makeOptions(1, 0, 0).validate());
  EXPECT_FALSE(makeOptions(1, 0, 1.5f).validate());
  EXPECT_FALSE(makeOptions(1, 0, NAN).validate());
}
