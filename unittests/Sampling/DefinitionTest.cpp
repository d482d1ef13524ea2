//===- DefinitionTest.cpp - The same tokens as the plain definition -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NaiveSampler.h"

#include "Emulation.h"
#include "TargetsOfTests.h"

#include "../../lib/Sampling/TokenChoice.h"
#include "sandwich/Sampling/Sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace sandwich;

static constexpr float infinity = std::numeric_limits<float>::infinity();

namespace {

/// Random rows and options, the same in every run.
class RandomCases {
public:
  explicit RandomCases(uint64_t seed) : generator(seed) {}

  size_t below(size_t count) { return generator() % count; }
  bool oneOf(size_t count) { return below(count) == 0; }

  /// Rows of all kinds: flat, peaked, with ties and with barred tokens.
  std::vector<float> logits(size_t count) {
    const float deviations[] = {0.01f, 1, 3, 30};
    std::normal_distribution<float> normal(0, deviations[below(4)]);
    const bool ties = oneOf(3), bars = oneOf(3);
    const float offsets[] = {0, 0, -50, 1e4f};
    const float offset = offsets[below(4)];
    std::vector<float> row(count);
    for (float &logit : row) {
      logit = normal(generator) + offset;
      if (ties)
        logit = std::round(logit);
      if (bars && oneOf(4))
        logit = -infinity;
    }
    row[below(count)] = offset;
    return row;
  }

  SamplingOptions options() {
    SamplingOptions options;
    const float temperatures[] = {0, 0.1f, 0.8f, 1, 1, 1.7f};
    options.temperature = temperatures[below(6)];
    if (oneOf(2))
      options.topK = static_cast<uint32_t>(1 + below(oneOf(4) ? 2000 : 60));
    const float topPs[] = {1e-6f, 0.3f, 0.9f, 0.95f, 0.9999f};
    if (oneOf(2))
      options.topP = topPs[below(5)];
    const float minPs[] = {1e-6f, 0.01f, 0.05f, 1};
    if (oneOf(3))
      options.minP = minPs[below(4)];
    if (oneOf(2)) {
      options.repetitionPenalty = oneOf(2) ? 1.3f : 0.7f;
      options.frequencyPenalty = oneOf(2) ? 0.3f : -0.2f;
      options.presencePenalty = oneOf(2) ? 1.1f : 0;
    }
    options.minTokens = oneOf(3) ? 3 : 0;
    options.seed = generator();
    return options;
  }

private:
  std::mt19937_64 generator;
};

/// A sampler and the naive one, in step.
struct Pair {
  explicit Pair(RandomCases &random, size_t vocabulary)
      : options(random.options()), endTokens(chooseTokens(random, vocabulary)),
        sampler(makeSampler(random, vocabulary)), naive{options} {
    naive.endTokens = {endTokens.begin(), endTokens.end()};
    naive.prompt = {prompt.begin(), prompt.end()};
  }

  static std::vector<int32_t> chooseTokens(RandomCases &random,
                                           size_t vocabulary) {
    std::vector<int32_t> tokens(random.below(30));
    for (int32_t &token : tokens)
      token = static_cast<int32_t>(random.below(vocabulary));
    return tokens;
  }

  Sampler makeSampler(RandomCases &random, size_t vocabulary) {
    if (random.oneOf(3))
      for (int32_t token : chooseTokens(random, vocabulary))
        options.logitBias[token] =
            random.oneOf(3) ? -infinity : 100 - float(random.below(200));
    if (random.oneOf(2))
      prompt = chooseTokens(random, vocabulary);
    Sampler made(options, endTokens);
    const size_t half = prompt.size() / 2;
    made.observePrompt(std::span(prompt).first(half));
    made.observePrompt(std::span(prompt).subspan(half));
    return made;
  }

  SamplingOptions options;
  std::vector<int32_t> endTokens, prompt;
  Sampler sampler;
  NaiveSampler naive;
};

} // namespace

static std::vector<float> normalLogits(size_t count, float deviation,
                                       uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(count);
  std::ranges::generate(logits, [&] { return normal(generator); });
  return logits;
}

static void checkCases(uint64_t seed, int cases, size_t largestVocabulary) {
  RandomCases random(seed);
  for (int i = 0; i < cases; ++i) {
    const size_t vocabulary = 40 + random.below(largestVocabulary - 39);
    Pair pair(random, vocabulary);
    ASSERT_TRUE(pair.options.validate());
    for (int step = 0; step < 6; ++step) {
      const std::vector<float> logits = random.logits(vocabulary);
      Result<SampledToken> sampled = pair.sampler.sample(logits);
      ASSERT_TRUE(sampled) << sampled.error().message;
      ASSERT_EQ(sampled->token, pair.naive.sample(logits))
          << "case " << i << ", step " << step << ", " << vocabulary
          << " tokens";
      pair.sampler.accept(sampled->token);
      pair.naive.accept(sampled->token);
    }
  }
}

TEST(DefinitionTest, RandomOptionsAndSmallVocabularies) {
  checkCases(1, 400, 300);
}

/// Bits as a constraint gives them, of a token or two in a thousand or of
/// nearly all, and whole words of one kind.
static std::vector<bool> chooseAllowed(RandomCases &random, size_t vocabulary) {
  std::vector<bool> allowed(vocabulary);
  const size_t rarity = random.oneOf(2) ? 500 : 3;
  const bool most = random.oneOf(2);
  bool wholeWord = false, bit = false;
  for (size_t i = 0; i < vocabulary; ++i) {
    if (i % 64 == 0) {
      wholeWord = random.oneOf(2);
      bit = random.oneOf(2);
    }
    allowed[i] = wholeWord ? bit : random.oneOf(rarity) != most;
  }
  return allowed;
}

static std::vector<uint64_t> wordsOf(const std::vector<bool> &bits) {
  std::vector<uint64_t> words((bits.size() + 63) / 64);
  for (size_t i = 0; i < bits.size(); ++i)
    words[i / 64] |= uint64_t{bits[i]} << (i % 64);
  return words;
}

static void checkConstrainedCases(uint64_t seed, int cases,
                                  size_t largestVocabulary) {
  RandomCases random(seed);
  for (int i = 0; i < cases; ++i) {
    const size_t vocabulary = 40 + random.below(largestVocabulary - 39);
    Pair pair(random, vocabulary);
    for (int step = 0; step < 6; ++step) {
      const std::vector<float> logits = random.logits(vocabulary);
      std::vector<bool> allowed = chooseAllowed(random, vocabulary);
      // Somewhere there is a token that nothing else bars.
      pair.naive.allowed.clear();
      size_t token = random.below(vocabulary);
      while (pair.naive.adjust(logits[token], static_cast<int32_t>(token)) ==
             -infinity)
        token = (token + 1) % vocabulary;
      allowed[token] = true;
      pair.naive.allowed = allowed;
      std::vector<uint64_t> words = wordsOf(allowed);
      // Words that are missing allow nothing.
      while (random.oneOf(2) && words.back() == 0)
        words.pop_back();
      Result<SampledToken> sampled = pair.sampler.sample(logits, words);
      ASSERT_TRUE(sampled) << sampled.error().message;
      ASSERT_TRUE(allowed[static_cast<size_t>(sampled->token)]);
      ASSERT_EQ(sampled->token, pair.naive.sample(logits))
          << "case " << i << ", step " << step << ", " << vocabulary
          << " tokens";
      pair.sampler.accept(sampled->token);
      pair.naive.accept(sampled->token);
    }
  }
}

TEST(DefinitionTest, ConstraintsBarTokensFirst) {
  checkConstrainedCases(11, 400, 300);
  forEachTarget(
      [] { checkConstrainedCases(12, test::timesToRepeat(25, 4), 20000); });
}

TEST(DefinitionTest, LogProbabilitiesKnowNoConstraint) {
  const std::vector<float> logits = normalLogits(3000, 2, 5);
  SamplingOptions options{.temperature = 1};
  options.logProbabilities = 5;
  std::vector<bool> allowed(logits.size());
  allowed[1234] = true;
  Sampler free(options), bound(options);
  Result<SampledToken> any = free.sample(logits);
  Result<SampledToken> one = bound.sample(logits, wordsOf(allowed));
  ASSERT_TRUE(any && one);
  EXPECT_EQ(one->token, 1234);
  ASSERT_EQ(one->top.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(one->top[i].token, any->top[i].token);
    EXPECT_NEAR(one->top[i].logProbability, any->top[i].logProbability, 1e-4);
  }
  EXPECT_NEAR(*one->logProbability - one->top[0].logProbability,
              logits[1234] - logits[static_cast<size_t>(one->top[0].token)],
              1e-4);
}

TEST(DefinitionTest, RandomOptionsAndLargeVocabularies) {
  forEachTarget([] { checkCases(2, test::timesToRepeat(25, 4), 20000); });
}

TEST(DefinitionTest, EveryDrawOfAVocabularyOf128256) {
  RandomCases random(3);
  std::vector<SamplingOptions> options(3);
  options[0].temperature = 1;
  options[1] = {.temperature = 0.8f, .minP = 0.05f, .topK = 50, .topP = 0.95f};
  options[2] = {.temperature = 0.8f, .topP = 0.95f};
  std::normal_distribution<float> normal(0, 3);
  std::mt19937_64 generator(4);
  std::vector<float> logits(128256);
  for (const SamplingOptions &each : options) {
    std::ranges::generate(logits, [&] { return normal(generator); });
    Sampler sampler(each);
    NaiveSampler naive{each};
    for (int i = 0; i < test::timesToRepeat(8, 2); ++i)
      ASSERT_EQ(sampler.sample(logits)->token, naive.sample(logits));
  }
}

// Places where one token ends and the next begins: approximate sums leave a
// doubt, and the definition decides.
TEST(DefinitionTest, DoubtfulDraws) {
  const std::vector<float> logits = normalLogits(4000, 1, 8);
  for (float topP : {1.0f, 0.5f}) {
    const SamplingOptions options{.temperature = 1, .topP = topP};
    const NaiveSampler naive{options};
    const LogitAdjustments none(options, {});
    LogitBlocks row(logits, none, scaleOfChoice(options));
    row.scan(0, row.count());
    const TokenDraw draw(row, options);
    for (double place = 0.02; place < 1; place += 0.0491) {
      // Bisection finds where the token at this place begins.
      const int32_t token = naive.sampleAt(place, logits);
      double before = place - 0.01, after = place;
      while (std::nextafter(before, 1) < after) {
        const double middle = before + (after - before) / 2;
        (naive.sampleAt(middle, logits) == token ? after : before) = middle;
      }
      EXPECT_EQ(draw.draw(after), token);
      EXPECT_EQ(draw.draw(before), naive.sampleAt(before, logits));
    }
  }
}

// Where top-k leaves tokens out, the order of the others changes; where it does
// not, they stay in theirs, however the tokens lie in blocks.
TEST(DefinitionTest, TopKOfAboutAsManyTokensAsThereAre) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::vector<float> logits = normalLogits(1024, 1, seed);
    SamplingOptions options{.temperature = 1, .seed = seed};
    options.topK = static_cast<uint32_t>(2 + seed % 3);
    if (seed % 2)
      for (size_t i = 0; i < logits.size(); ++i)
        if (i % 256 != seed)
          logits[i] = -infinity;
    Sampler sampler(options);
    NaiveSampler naive{options};
    for (int i = 0; i < 5; ++i)
      ASSERT_EQ(sampler.sample(logits)->token, naive.sample(logits));
  }
}

TEST(DefinitionTest, ManyTokensNearMinP) {
  const std::vector<float> logits = normalLogits(5000, 0.5f, 9);
  for (float minP : {0.2f, 0.3f}) {
    const SamplingOptions options{.temperature = 1, .minP = minP, .seed = 10};
    Sampler sampler(options);
    NaiveSampler naive{options};
    for (int i = 0; i < 40; ++i)
      ASSERT_EQ(sampler.sample(logits)->token, naive.sample(logits));
  }
}

TEST(DefinitionTest, ExtremeLogitsAndTemperatures) {
  const std::vector<std::vector<float>> rows = {
      {3e38f, -3e38f, 3e38f, 0},
      {-3e38f, -infinity, -3.1e38f},
      {1e30f, 1e30f, std::nextafter(1e30f, 0.0f)},
      {-1e-40f, 0.0f, -0.0f, 1e-40f}};
  for (const std::vector<float> &row : rows)
    for (float temperature : {1e-45f, 1e-3f, 1.0f, 1e30f, 3e38f})
      for (float topP : {0.9f, 1.0f})
        for (float minP : {0.0f, 1e-45f, 0.5f}) {
          const SamplingOptions options{.temperature = temperature,
                                        .minP = minP,
                                        .topP = topP,
                                        .seed = 6};
          Sampler sampler(options);
          NaiveSampler naive{options};
          for (int i = 0; i < 10; ++i)
            ASSERT_EQ(sampler.sample(row)->token, naive.sample(row));
        }
}

TEST(DefinitionTest, LogProbabilitiesAreTheModels) {
  RandomCases random(7);
  for (int i = 0; i < 100; ++i) {
    const size_t vocabulary = 40 + random.below(5000);
    Pair pair(random, vocabulary);
    SamplingOptions options = pair.options;
    options.logProbabilities = static_cast<uint32_t>(random.below(21));
    Sampler sampler(options, pair.endTokens);
    const std::vector<float> logits = random.logits(vocabulary);
    Result<SampledToken> sampled = sampler.sample(logits);
    ASSERT_TRUE(sampled) << sampled.error().message;

    std::vector<NaiveSampler::Candidate> tokens;
    for (size_t token = 0; token < vocabulary; ++token)
      if (logits[token] > -infinity)
        tokens.push_back({static_cast<int32_t>(token), logits[token], 0});
    tokens = NaiveSampler::byProbability(tokens);
    const double largest = tokens.front().logit;
    double total = 0;
    for (const auto &each : tokens)
      total += std::exp(each.logit - largest);
    auto expected = [&](float logit) {
      return static_cast<float>(logit - largest - std::log(total));
    };
    const float tolerance =
        1e-5f * (1 + std::abs(expected(tokens.back().logit)));
    ASSERT_TRUE(sampled->logProbability);
    EXPECT_NEAR(*sampled->logProbability,
                expected(logits[static_cast<size_t>(sampled->token)]),
                tolerance);
    ASSERT_EQ(sampled->top.size(),
              std::min<size_t>(*options.logProbabilities, tokens.size()));
    for (size_t rank = 0; rank < sampled->top.size(); ++rank) {
      EXPECT_EQ(sampled->top[rank].token, tokens[rank].token);
      EXPECT_NEAR(sampled->top[rank].logProbability,
                  expected(tokens[rank].logit), tolerance);
    }
  }
}
