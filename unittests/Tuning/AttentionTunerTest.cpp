//===- AttentionTunerTest.cpp - Measured attention ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/AttentionTuner.h"

#include "sandwich/Tuning/MatmulLibrary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <unistd.h>

using namespace sandwich;

namespace {

class AttentionTunerTest : public testing::Test {
protected:
  AttentionTunerTest()
      : folder(std::filesystem::temp_directory_path() /
               ("sandwich-attention-" + std::to_string(::getpid()))),
        target(*getTarget("x86-64-avx2")) {
    std::filesystem::create_directories(folder);
    options.threads = 1;
    options.database = (folder / "schedules.txt").string();
  }
  ~AttentionTunerTest() override { std::filesystem::remove_all(folder); }

  void SetUp() override {
    if (!MatmulLibrary::create(target, 1))
      GTEST_SKIP() << "this CPU has no AVX2";
  }

  Result<TunedModelAttention> tune(const TuningProgress &progress = [](double) {
    return Status();
  }) {
    return tuneModelAttention({shape}, target, /*maxTokens=*/8, options,
                              progress);
  }

  const std::filesystem::path folder;
  const Target target;
  const AttentionShape shape{.cacheHeads = 2, .group = 2, .headDim = 16};
  ModelTuningOptions options;
};

TEST_F(AttentionTunerTest, FindsAgainWhatItMeasured) {
  Result<TunedModelAttention> tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_TRUE(tuned->complete);
  EXPECT_GT(tuned->measurements, 0);
  EXPECT_EQ(tuned->known, 0);
  ASSERT_EQ(tuned->tables.size(), 1u);
  EXPECT_TRUE(verify(tuned->tables.front()));

  Result<TunedModelAttention> again = tune();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->measurements, 0);
  EXPECT_EQ(again->known, 1);
  EXPECT_EQ(again->tables, tuned->tables);
}

TEST_F(AttentionTunerTest, WithoutTimeTheRuleRemains) {
  options.seconds = 0;
  Result<TunedModelAttention> tuned = tune();
  ASSERT_TRUE(tuned);
  EXPECT_FALSE(tuned->complete);
  EXPECT_EQ(tuned->tables.front(), chooseUntuned(shape, target, 1));
  // And nothing is in the database.
  Result<ScheduleDatabase> database = ScheduleDatabase::load(options.database);
  ASSERT_TRUE(database);
  EXPECT_EQ(database->find(AttentionKey::of(shape, target, 1)), nullptr);
}

TEST_F(AttentionTunerTest, StopsWhenItIsTold) {
  Result<TunedModelAttention> tuned =
      tune([](double) -> Status { return makeError("enough"); });
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().message, "enough");
}

/// Every kind of memory and arithmetic that this CPU has, on a team.
TEST_F(AttentionTunerTest, MeasuresAllElements) {
  Result<Target> host = getTarget("host");
  ASSERT_TRUE(host);
  for (AttentionElement cache : {AttentionElement::F32, AttentionElement::BF16,
                                 AttentionElement::F16, AttentionElement::Int8})
    for (AttentionElement result :
         {AttentionElement::F32, AttentionElement::BF16}) {
      const AttentionShape own{.cacheHeads = 1,
                               .group = 2,
                               .headDim = 32,
                               .cache = cache,
                               .query = result,
                               .result = result};
      AttentionMeasuringOptions measuring;
      measuring.maxTokens = 16;
      Result<std::unique_ptr<MeasuringAttentionEvaluator>> evaluator =
          MeasuringAttentionEvaluator::create(own, *host, measuring);
      ASSERT_TRUE(evaluator) << evaluator.error().message;
      AttentionSchedule split{.split = 2};
      std::vector<AttentionSchedule> schedules = {{}, split};
      for (MatrixISA isa : host->matrixISAs) {
        AttentionSchedule schedule{.prefill = {4, 2, 4}, .instructions = isa};
        if (verify(schedule) && verify(schedule, own))
          schedules.push_back(schedule);
      }
      for (const AttentionPayload &payload :
           {AttentionPayload{.segments = 3, .positions = 200},
            AttentionPayload{.tokens = 16, .positions = 100}}) {
        Result<std::vector<double>> times =
            (*evaluator)->compare(payload, schedules);
        ASSERT_TRUE(times) << times.error().message;
        ASSERT_EQ(times->size(), schedules.size());
        EXPECT_EQ(times->front(), 1);
        for (double time : *times)
          EXPECT_GT(time, 0);
      }
      // More than was announced.
      EXPECT_FALSE(
          (*evaluator)->compare({.tokens = 17, .positions = 17}, schedules));
      EXPECT_FALSE((*evaluator)->compare({.positions = 1 << 20}, schedules));
    }
}

} // namespace
