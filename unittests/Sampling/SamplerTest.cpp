//===- SamplerTest.cpp - From logits to a token ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/Sampler.h"

#include "Emulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

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
    Result<SampledToken> token = sampler.sample(logits);
    EXPECT_TRUE(token);
    ++counts[token->token];
  }
  return counts;
}

TEST(SamplerTest, TakesTheMostProbableAtTemperatureZero) {
  Sampler sampler(makeOptions(0));
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 5, -2, 5})->token, 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-infinity, -1e30f})->token, 1);
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
      drawn.push_back(sampler.sample(logits)->token);
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
    Result<SampledToken> nan = sampler.sample(std::vector<float>{0, NAN, 1});
    ASSERT_FALSE(nan);
    EXPECT_NE(nan.error().message.find("token 1"), std::string::npos);
    EXPECT_FALSE(sampler.sample(std::vector<float>{infinity, 0}));
    EXPECT_FALSE(sampler.sample(std::vector<float>{-infinity, -infinity}));
    EXPECT_FALSE(sampler.sample(std::vector<float>{}));
  }
}

// 21,000 draws from 2,100 tokens of equal probability and one of a tenth of
// all: Pearson's statistic is below the 99.9% quantile of its distribution,
// about 2100 + 3.1 * sqrt(2 * 2100). Nothing here is random.
TEST(SamplerTest, DrawsFollowTheDistribution) {
  const size_t equal = test::timesToRepeat<size_t>(2100, 1300);
  const int draws = 10 * static_cast<int>(equal);
  std::vector<float> logits(equal + 1, 0.0f);
  logits[1234] = std::log(static_cast<float>(equal) / 9.0f);
  for (uint64_t seed = 1; seed <= test::timesToRepeat(3U, 1U); ++seed) {
    std::map<int32_t, int> counts =
        draw(makeOptions(1, 0, 1, seed), logits, draws);
    double statistic = 0;
    for (size_t token = 0; token < logits.size(); ++token) {
      const double expected =
          draws * (token == 1234 ? 0.1 : 0.9 / static_cast<double>(equal));
      const double difference = counts[static_cast<int32_t>(token)] - expected;
      statistic += difference * difference / expected;
    }
    const auto freedom = static_cast<double>(equal);
    EXPECT_LT(statistic, freedom + 3.1 * std::sqrt(2 * freedom));
    EXPECT_GT(statistic, freedom - 3.1 * std::sqrt(2 * freedom));
  }
}

TEST(SamplerTest, MinPKeepsTokensOfAShareOfTheMostProbable) {
  // Probabilities 0.5, 0.3, 0.2.
  std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  SamplingOptions options = makeOptions(1);
  options.minP = 0.45f;
  std::map<int32_t, int> counts = draw(options, logits, 8000);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts[1], 5000, 300);
  options.minP = 1;
  EXPECT_EQ(draw(options, logits, 20)[1], 20);
  // It comes before top-p: 0.5 is 0.625 of 0.5 and 0.3.
  options.minP = 0.45f;
  options.topP = 0.6f;
  EXPECT_EQ(draw(options, logits, 100).size(), 1u);
}

/// The most probable token for a sampler that has seen `prompt` and `output`.
static int32_t mostProbable(const SamplingOptions &options,
                            const std::vector<float> &logits,
                            const std::vector<int32_t> &prompt,
                            const std::vector<int32_t> &output) {
  Sampler sampler(options);
  sampler.observePrompt(prompt);
  for (int32_t token : output)
    sampler.accept(token);
  return sampler.sample(logits)->token;
}

TEST(SamplerTest, PenaltiesSubtractFromWhatWasOutput) {
  SamplingOptions options;
  options.frequencyPenalty = 0.5f;
  options.presencePenalty = 1;
  // Token 0 was output twice: 3 - 2 * 0.5 - 1 is 1.
  EXPECT_EQ(mostProbable(options, {3, 1.01f}, {1, 1, 1}, {0, 0}), 1);
  EXPECT_EQ(mostProbable(options, {3, 0.99f}, {1, 1, 1}, {0, 0}), 0);
  // Equal logits are told by the token id.
  EXPECT_EQ(mostProbable(options, {3, 1}, {}, {0, 0}), 0);
}

TEST(SamplerTest, RepetitionPenaltyDividesOrMultiplies) {
  SamplingOptions options;
  options.repetitionPenalty = 2;
  EXPECT_EQ(mostProbable(options, {3, 1.51f}, {0}, {}), 1);
  EXPECT_EQ(mostProbable(options, {3, 1.49f}, {0}, {}), 0);
  EXPECT_EQ(mostProbable(options, {3, 1.51f}, {}, {0}), 1);
  // Once, however often it was there.
  EXPECT_EQ(mostProbable(options, {3, 1.49f}, {0, 0}, {0}), 0);
  EXPECT_EQ(mostProbable(options, {-1, -2.01f}, {0}, {}), 0);
  EXPECT_EQ(mostProbable(options, {-1, -1.99f}, {0}, {}), 1);
}

TEST(SamplerTest, OutputsOfAPenaltySumUp) {
  SamplingOptions options;
  options.frequencyPenalty = 1;
  Sampler sampler(options);
  // Token 0 loses its lead of 2.5 with the third output.
  const std::vector<float> logits = {2.5f, 0};
  std::vector<int32_t> tokens;
  for (int i = 0; i < 6; ++i) {
    tokens.push_back(sampler.sample(logits)->token);
    sampler.accept(tokens.back());
  }
  EXPECT_EQ(tokens, (std::vector<int32_t>{0, 0, 0, 1, 0, 1}));
}

TEST(SamplerTest, LogitBiasMovesAndBars) {
  SamplingOptions options;
  options.logitBias = {{0, -infinity}, {1, -100.0f}, {2, 5.0f}};
  EXPECT_EQ(mostProbable(options, {1000, 90, 0, 4}, {}, {}), 2);
  EXPECT_EQ(mostProbable(options, {1000, 90, -infinity, -11}, {}, {}), 1);
  // Before penalties: (8 + 5) / 2 is 6.5.
  options.repetitionPenalty = 2;
  EXPECT_EQ(mostProbable(options, {0, 0, 8, 6.4f}, {2}, {}), 2);
  EXPECT_EQ(mostProbable(options, {0, 0, 8, 6.6f}, {2}, {}), 3);
}

TEST(SamplerTest, MinTokensBarsTheEnd) {
  SamplingOptions options;
  options.minTokens = 2;
  const std::vector<int32_t> endTokens = {3, 0, 900};
  Sampler sampler(options, endTokens);
  const std::vector<float> logits = {9, 1, 2, 8};
  std::vector<int32_t> tokens;
  for (int i = 0; i < 3; ++i) {
    tokens.push_back(sampler.sample(logits)->token);
    sampler.accept(tokens.back());
  }
  EXPECT_EQ(tokens, (std::vector<int32_t>{2, 2, 0}));
}

TEST(SamplerTest, TokensOutsideOfTheVocabularyAreWithoutEffect) {
  SamplingOptions options = makeOptions(1);
  options.repetitionPenalty = 2;
  options.minTokens = 5;
  options.logitBias = {{600, 100.0f}};
  const std::vector<int32_t> odd = {-1, -2000000000, 255, 256, 300, 2000000000};
  Sampler sampler(options, odd);
  sampler.observePrompt(odd);
  for (int32_t token : odd)
    sampler.accept(token);
  for (size_t size : {255, 256, 257, 512})
    EXPECT_LT(sampler.sample(std::vector<float>(size, 1))->token,
              int32_t(size));
}

TEST(SamplerTest, LogProbabilitiesAreThoseBeforeEverything) {
  SamplingOptions options = makeOptions(0.5f, 1);
  options.logitBias = {{1, -infinity}};
  options.logProbabilities = 2;
  Sampler sampler(options);
  // Probabilities 0.2, 0.5, 0.3.
  Result<SampledToken> sampled = sampler.sample(
      std::vector<float>{std::log(0.2f), std::log(0.5f), std::log(0.3f)});
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->token, 2);
  EXPECT_NEAR(*sampled->logProbability, std::log(0.3f), 1e-5);
  ASSERT_EQ(sampled->top.size(), 2u);
  EXPECT_EQ(sampled->top[0].token, 1);
  EXPECT_NEAR(sampled->top[0].logProbability, std::log(0.5f), 1e-5);
  EXPECT_EQ(sampled->top[1].token, 2);
}

TEST(SamplerTest, LogProbabilitiesAreOnlyThereIfAskedFor) {
  Sampler silent(makeOptions(1));
  EXPECT_FALSE(silent.sample(std::vector<float>{1, 2})->logProbability);
  SamplingOptions options = makeOptions(1);
  options.logProbabilities = 0;
  Sampler sampler(options);
  Result<SampledToken> sampled = sampler.sample(std::vector<float>{1, 2});
  EXPECT_TRUE(sampled->logProbability);
  EXPECT_TRUE(sampled->top.empty());
}

TEST(SamplerTest, ErrorsNameTheTokenAndAreInternal) {
  std::vector<float> logits(1000, 1.0f);
  logits[700] = NAN;
  // A logit that is no number is an error even where the token is barred.
  SamplingOptions options;
  options.logitBias = {{700, -infinity}};
  Result<SampledToken> sampled = Sampler(options).sample(logits);
  ASSERT_FALSE(sampled);
  EXPECT_EQ(sampled.error().message, "the logit of token 700 is nan; the model "
                                     "computed no finite number");
  EXPECT_EQ(sampled.error().kind, ErrorKind::Internal);

  logits[700] = 3e38f;
  options = {.repetitionPenalty = 0.5f};
  Sampler penalizing(options);
  penalizing.accept(700);
  sampled = penalizing.sample(logits);
  ASSERT_FALSE(sampled);
  EXPECT_EQ(sampled.error().message,
            "the logit of token 700 is inf after logit-bias and penalties");

  options = {.logitBias = {{0, -infinity}, {1, -infinity}}};
  sampled = Sampler(options).sample(std::vector<float>{1, 2});
  ASSERT_FALSE(sampled);
  EXPECT_EQ(sampled.error().kind, ErrorKind::Internal);
}

namespace {

/// What a kernel was given, and the token that it gives.
struct Drawn {
  std::vector<float> logits;
  size_t weights = 0;
  float temperature = 0;
  std::vector<double> places = {};
  int32_t token = 0;

  DrawToken function() {
    return [this](const DrawInput &input) {
      logits.assign(input.logits.begin(), input.logits.end());
      std::ranges::fill(input.weights, 1.0f);
      weights = input.weights.size();
      temperature = input.options.temperature;
      places.push_back(input.place);
      return token;
    };
  }
};

} // namespace

TEST(SamplerTest, KernelsDrawFromWhatRequestsChange) {
  // More than a block of logits, and no whole number of blocks.
  std::vector<float> logits(700);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(i % 13);
  Drawn drawn;
  const DrawToken draw = drawn.function();
  SamplingOptions options = makeOptions(0.5f, 3, 0.9f, 7);
  drawn.token = 5;
  Sampler plain(options);
  Result<SampledToken> sampled = plain.sample(logits, {}, &draw);
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->token, 5);
  EXPECT_FALSE(sampled->logProbability);
  EXPECT_EQ(drawn.logits, logits);
  EXPECT_EQ(drawn.weights, logits.size());
  EXPECT_EQ(drawn.temperature, 0.5f);

  options.logitBias = {{1, 2}, {600, -infinity}};
  options.repetitionPenalty = 2;
  options.logProbabilities = 1;
  Sampler changing(options);
  changing.accept(12);
  std::vector<uint64_t> allowed(11, ~uint64_t{0});
  allowed[10] = 0;
  sampled = changing.sample(logits, allowed, &draw);
  ASSERT_TRUE(sampled);
  std::vector<float> expected = logits;
  expected[1] += 2;
  expected[600] = -infinity;
  expected[12] /= 2;
  std::fill(expected.begin() + 640, expected.end(), -infinity);
  EXPECT_EQ(drawn.logits, expected);
  // Of the distribution that the model computed, whoever draws.
  const double sum =
      std::transform_reduce(logits.begin(), logits.end(), 0.0, std::plus<>(),
                            [](float logit) { return std::exp(logit); });
  ASSERT_TRUE(sampled->logProbability);
  EXPECT_NEAR(*sampled->logProbability, 5 - std::log(sum), 1e-4);
  ASSERT_EQ(sampled->top.size(), 1U);
  EXPECT_EQ(sampled->top.front().token, 12);
  // One number for each token, the first of the same seed.
  ASSERT_EQ(drawn.places.size(), 2U);
  EXPECT_EQ(drawn.places[0], drawn.places[1]);
  ASSERT_TRUE(plain.sample(logits, {}, &draw));
  EXPECT_NE(drawn.places[2], drawn.places[0]);
  EXPECT_GE(drawn.places[2], 0);
  EXPECT_LT(drawn.places[2], 1);
}

TEST(SamplerTest, KernelsDrawNothingAtTemperatureZero) {
  Drawn drawn;
  const DrawToken draw = drawn.function();
  Sampler sampler(makeOptions(0));
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 5}, {}, &draw)->token, 1);
  EXPECT_TRUE(drawn.places.empty());
}

TEST(SamplerTest, TokensOfKernelsAreChecked) {
  Drawn drawn;
  const DrawToken draw = drawn.function();
  Sampler sampler(makeOptions(1));
  const std::vector<float> logits = {1, -infinity, 2, 3};
  auto errorFor = [&](int32_t token, std::span<const uint64_t> allowed = {}) {
    drawn.token = token;
    Result<SampledToken> sampled = sampler.sample(logits, allowed, &draw);
    EXPECT_FALSE(sampled);
    if (!sampled)
      EXPECT_EQ(sampled.error().kind, ErrorKind::Internal);
    return sampled ? std::string() : sampled.error().message;
  };
  for (int32_t token : {-1, 4, std::numeric_limits<int32_t>::min()})
    EXPECT_EQ(errorFor(token), "the model's sampling kernel drew token " +
                                   std::to_string(token) +
                                   ", outside the vocabulary of 4");
  EXPECT_EQ(errorFor(1),
            "the model's sampling kernel drew token 1, which is barred");
  const uint64_t some = 0b0101;
  EXPECT_EQ(errorFor(3, {&some, 1}),
            "the model's sampling kernel drew token 3, which is barred");
  // Before a kernel sees them.
  const size_t before = drawn.places.size();
  EXPECT_FALSE(sampler.sample(std::vector<float>{1, NAN}, {}, &draw));
  EXPECT_FALSE(sampler.sample(std::vector<float>{-infinity}, {}, &draw));
  EXPECT_EQ(drawn.places.size(), before);
}

TEST(SamplerTest, ConstraintsThatLeaveNothingAreErrors) {
  const std::vector<float> logits = {1, 2, -INFINITY, 3};
  Sampler sampler(makeOptions(0));
  auto refusal = [&](uint64_t allowed) {
    Result<SampledToken> sampled = sampler.sample(logits, {&allowed, 1});
    EXPECT_FALSE(sampled);
    return sampled ? std::string() : sampled.error().message;
  };
  EXPECT_EQ(refusal(0), "the constraint allows no token");
  EXPECT_EQ(refusal(4), "the logits of all tokens that the constraint allows "
                        "are minus infinity; no token can be chosen");
  const uint64_t some = 0b0101;
  EXPECT_EQ(sampler.sample(logits, {&some, 1})->token, 0);
  // Numbers are what the model owes, whether they are asked for or not.
  const std::vector<float> bad = {1, NAN};
  EXPECT_FALSE(sampler.sample(bad, {&some, 1}));
}
