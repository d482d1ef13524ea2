//===- AttentionSearchTest.cpp - Attention tuned by measuring -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/AttentionSearch.h"

#include "sandwich/Support/ModelLimits.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace sandwich;

namespace {

constexpr AttentionElement bf16 = AttentionElement::BF16;

/// How far numbers are apart, in powers of two.
double distance(int64_t a, int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}
double distance(const AttentionTile &a, const AttentionTile &b) {
  return distance(a.rows, b.rows) + distance(a.keyBlocks, b.keyBlocks) +
         distance(a.chunk, b.chunk);
}

/// Attention is the slower the farther it is from what is best.
class SyntheticEvaluator : public AttentionEvaluator {
public:
  explicit SyntheticEvaluator(const AttentionShape &shape) : shape(shape) {}

  Result<std::vector<double>>
  compare(const AttentionPayload &payload,
          const std::vector<AttentionSchedule> &schedules) override {
    ++comparisons;
    EXPECT_GT(schedules.size(), 1u);
    std::vector<double> times;
    for (const AttentionSchedule &schedule : schedules) {
      EXPECT_TRUE(verify(schedule));
      EXPECT_TRUE(verify(schedule, shape));
      EXPECT_LE(prefillStackBytes(schedule, shape),
                model_limits::maxAttentionTileBytes);
      double time = 1;
      if (payload.tokens == 1)
        time += 0.1 * distance(schedule.decode, best.decode) +
                0.2 * distance(schedule.split, best.split);
      else
        time += 0.1 * distance(schedule.prefill, best.prefill) +
                0.05 * distance(schedule.tiles, best.tiles) +
                (schedule.instructions == best.instructions ? 0 : 3);
      // Noise that comparisons differ by.
      time *= 1 + noise * (static_cast<double>(random()) / RAND_MAX - 0.5);
      times.push_back(time / (times.empty() ? 1 : first));
      if (times.size() == 1) {
        first = time;
        times.front() = 1;
      }
    }
    return times;
  }

  const AttentionShape shape;
  AttentionSchedule best;
  double noise = 0;
  int comparisons = 0;

private:
  double first = 1;
};

TunedAttention tune(
    SyntheticEvaluator &evaluator, int64_t threads = 2,
    const std::function<bool()> &ended = [] { return false; }) {
  Result<TunedAttention> tuned =
      tuneAttention(evaluator.shape, *getTarget("x86-64-avx512-bf16"), threads,
                    /*maxTokens=*/512, evaluator, ended);
  EXPECT_TRUE(tuned);
  EXPECT_TRUE(verify(tuned->table));
  return *tuned;
}

TEST(AttentionSearch, ClimbsToWhatIsBest) {
  const AttentionShape shape{.cacheHeads = 4,
                             .group = 6,
                             .headDim = 64,
                             .cache = bf16,
                             .query = bf16,
                             .result = bf16};
  SyntheticEvaluator evaluator(shape);
  evaluator.best = {.decode = {2, 4, 12},
                    .prefill = {8, 2, 24},
                    .tiles = 8,
                    .instructions = MatrixISA::X86_AVX512_BF16};
  const TunedAttention tuned = tune(evaluator);
  EXPECT_TRUE(tuned.complete);
  EXPECT_GT(tuned.measurements, 20);
  for (const AttentionTableEntry &entry : tuned.table)
    EXPECT_EQ(entry.schedule, evaluator.best);

  // FMA may be faster, too.
  evaluator.best.instructions = std::nullopt;
  evaluator.best.prefill = {12, 2, 4};
  for (const AttentionTableEntry &entry : tune(evaluator).table) {
    EXPECT_EQ(entry.schedule.instructions, std::nullopt);
    EXPECT_EQ(entry.schedule.prefill, evaluator.best.prefill);
  }
}

TEST(AttentionSearch, ContextsAreSplitWhereThatIsFaster) {
  // One head for eight threads.
  SyntheticEvaluator evaluator({.cacheHeads = 1, .group = 4, .headDim = 64});
  evaluator.best.decode = {4, 2, 2};
  evaluator.best.split = 4;
  const TunedAttention tuned = tune(evaluator, 8);
  for (const AttentionTableEntry &entry : tuned.table)
    if (entry.maxSegments == 1) {
      EXPECT_EQ(entry.schedule.split, 4);
    }
  // Nothing was asked of as many segments as there can be.
  EXPECT_EQ(tuned.table.back().schedule.split, 1);
}

TEST(AttentionSearch, TheRuleRemainsWhereNothingIsPlainlyFaster) {
  const AttentionShape shape{.cacheHeads = 2, .group = 1, .headDim = 128};
  SyntheticEvaluator evaluator(shape);
  const AttentionTable rule =
      chooseUntuned(shape, *getTarget("x86-64-avx512-bf16"), 2);
  evaluator.best = rule.back().schedule;
  evaluator.noise = 0.03;
  EXPECT_EQ(tune(evaluator).table, rule);
}

/// All that is asked can be run, whatever heads are like.
TEST(AttentionSearch, AsksOnlyWhatCanRun) {
  for (int64_t headDim : {16, 40, 128, 1024})
    for (int64_t group : {1, 3, 12, 64})
      for (AttentionElement element : {AttentionElement::F16, bf16}) {
        SyntheticEvaluator evaluator({.cacheHeads = 2,
                                      .group = group,
                                      .headDim = headDim,
                                      .cache = element,
                                      .query = element,
                                      .result = element});
        evaluator.best = {.decode = {16, 4, 64},
                          .split = 64,
                          .prefill = {16, 4, 64},
                          .tiles = 64,
                          .instructions = MatrixISA::X86_AVX512_BF16};
        tune(evaluator, 48);
      }
}

TEST(AttentionSearch, EndsWhenTheTimeIsOver) {
  SyntheticEvaluator evaluator({.cacheHeads = 4, .group = 6, .headDim = 64});
  evaluator.best.decode = {1, 8, 64};
  for (int comparisons : {0, 1, 2}) {
    evaluator.comparisons = 0;
    const TunedAttention tuned = tune(
        evaluator, 2, [&] { return evaluator.comparisons == comparisons; });
    EXPECT_FALSE(tuned.complete);
    EXPECT_EQ(evaluator.comparisons, comparisons);
  }
}

TEST(AttentionSearch, PassesErrorsOn) {
  class Failing : public AttentionEvaluator {
    Result<std::vector<double>>
    compare(const AttentionPayload &,
            const std::vector<AttentionSchedule> &) override {
      return makeError("stopped");
    }
  } failing;
  Result<TunedAttention> tuned = tuneAttention(
      {}, *getTarget("x86-64-avx512"), 2, 16, failing, [] { return false; });
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().message, "stopped");
}

} // namespace
