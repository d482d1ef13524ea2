//===- SampleBatchTest.cpp - The tokens of a step -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/Sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

using namespace sandwich;

/// Threads that take tasks as they have time.
static ParallelFor runOn(size_t threads) {
  return [threads](size_t count, const std::function<void(size_t)> &task) {
    std::atomic<size_t> next = 0;
    std::vector<std::jthread> workers;
    for (size_t i = 0; i < threads; ++i)
      workers.emplace_back([&] {
        for (size_t index; (index = next++) < count;)
          task(index);
      });
  };
}

/// Options of all kinds, one for each row.
static SamplingOptions optionsOf(size_t row) {
  SamplingOptions options;
  options.seed = row;
  options.temperature = row % 3 == 0 ? 0 : 1;
  options.topK = row % 4 == 1 ? 40 : 0;
  options.topP = row % 5 == 2 ? 0.9f : 1;
  options.frequencyPenalty = row % 2 ? 1 : 0;
  if (row % 3 == 1)
    options.logProbabilities = 3;
  return options;
}

static std::vector<std::vector<float>> makeRows(size_t count) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 2);
  std::vector<std::vector<float>> rows(count);
  for (size_t row = 0; row < count; ++row)
    for (size_t token = 0; token < 3000 + row; ++token)
      rows[row].push_back(normal(generator));
  return rows;
}

namespace {

/// The samplers of a batch, all over again.
struct Batch {
  explicit Batch(const std::vector<std::vector<float>> &logits) {
    samplers.reserve(logits.size());
    for (const std::vector<float> &row : logits) {
      samplers.emplace_back(optionsOf(samplers.size()));
      samplers.back().accept(7);
      rows.push_back({&samplers.back(), row});
    }
  }

  std::vector<Sampler> samplers;
  std::vector<SamplingRow> rows;
};

} // namespace

TEST(SampleBatchTest, IsWhatEachSamplerDoesOnAnyNumberOfThreads) {
  for (size_t count : {0, 1, 3, 11}) {
    const std::vector<std::vector<float>> logits = makeRows(count);
    for (size_t threads : {1, 2, 3, 20}) {
      Batch alone(logits), batch(logits);
      for (int step = 0; step < 4; ++step) {
        std::vector<Result<SampledToken>> tokens =
            sampleBatch(batch.rows, threads, runOn(threads));
        ASSERT_EQ(tokens.size(), count);
        for (size_t row = 0; row < count; ++row) {
          Result<SampledToken> expected =
              alone.samplers[row].sample(logits[row]);
          ASSERT_TRUE(tokens[row]);
          EXPECT_EQ(tokens[row]->token, expected->token);
          EXPECT_EQ(tokens[row]->logProbability, expected->logProbability);
          ASSERT_EQ(tokens[row]->top.size(), expected->top.size());
          for (size_t i = 0; i < expected->top.size(); ++i)
            EXPECT_EQ(tokens[row]->top[i].token, expected->top[i].token);
        }
      }
    }
  }
}

TEST(SampleBatchTest, KernelsDrawEachRow) {
  const std::vector<std::vector<float>> logits = makeRows(5);
  const DrawToken draw = [](const DrawInput &input) {
    const auto largest = std::ranges::max_element(input.logits);
    return static_cast<int32_t>(largest - input.logits.begin());
  };
  for (size_t threads : {1, 2, 20}) {
    Batch batch(logits);
    for (SamplingRow &row : batch.rows)
      row.draw = &draw;
    std::vector<Result<SampledToken>> tokens =
        sampleBatch(batch.rows, threads, runOn(threads));
    Batch alone(logits);
    for (size_t row = 0; row < logits.size(); ++row) {
      ASSERT_TRUE(tokens[row]);
      EXPECT_EQ(tokens[row]->token,
                alone.samplers[row].sample(logits[row], {}, &draw)->token);
    }
  }
}

TEST(SampleBatchTest, AnErrorOfOneRowIsItsOwn) {
  std::vector<std::vector<float>> logits = makeRows(4);
  logits[2][2999] = NAN;
  for (size_t threads : {1, 2}) {
    Batch batch(logits);
    std::vector<Result<SampledToken>> tokens =
        sampleBatch(batch.rows, threads, runOn(threads));
    for (size_t row = 0; row < 4; ++row)
      EXPECT_EQ(static_cast<bool>(tokens[row]), row != 2);
    EXPECT_NE(tokens[2].error().message.find("token 2999"), std::string::npos);
  }
}

TEST(SampleBatchTest, ManyRowsAreDealtOutWhole) {
  const std::vector<std::vector<float>> logits = makeRows(8);
  std::vector<size_t> counts;
  const ParallelFor counting = [&](size_t count,
                                   const std::function<void(size_t)> &task) {
    counts.push_back(count);
    for (size_t index = count; index-- > 0;)
      task(index);
  };
  Batch many(logits);
  (void)sampleBatch(many.rows, 2, counting);
  EXPECT_EQ(counts, std::vector<size_t>{8});
  counts.clear();
  (void)sampleBatch(std::span(many.rows).first(3), 4, counting);
  EXPECT_EQ(counts, (std::vector<size_t>{12, 3}));
}

TEST(SampleBatchTest, KnownTokensAreScoredAsChosenOnes) {
  std::vector<std::vector<float>> logits = makeRows(6);
  logits[4][17] = NAN;
  std::vector<ScoringRow> rows;
  for (size_t row = 0; row < logits.size(); ++row)
    rows.push_back({logits[row], static_cast<int32_t>(100 * row),
                    static_cast<uint32_t>(row)});
  const std::vector<Result<SampledToken>> scores = scoreBatch(rows, runOn(2));
  ASSERT_EQ(scores.size(), rows.size());
  for (size_t row = 0; row < logits.size(); ++row) {
    ASSERT_EQ(static_cast<bool>(scores[row]), row != 4);
    if (row == 4)
      continue;
    SamplingOptions options;
    options.logProbabilities = static_cast<uint32_t>(row);
    // A bias chooses the same token, and leaves probabilities as they are.
    options.logitBias[rows[row].token] = 100;
    Result<SampledToken> expected = Sampler(options).sample(logits[row]);
    ASSERT_TRUE(expected);
    EXPECT_EQ(scores[row]->token, expected->token);
    EXPECT_EQ(scores[row]->logProbability, expected->logProbability);
    ASSERT_EQ(scores[row]->top.size(), row);
    for (size_t i = 0; i < row; ++i)
      EXPECT_EQ(scores[row]->top[i].token, expected->top[i].token);
  }
  EXPECT_TRUE(scoreBatch({}, runOn(2)).empty());
}
