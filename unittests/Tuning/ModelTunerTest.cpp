//===- ModelTunerTest.cpp - Tuning a model's matmuls ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/ModelTuner.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Support/File.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"
#include "sandwich/Tuning/TuningReport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace sandwich;

namespace {

class ModelTunerTest : public testing::Test {
protected:
  ModelTunerTest()
      : folder(std::filesystem::temp_directory_path() /
               ("sandwich-tuner-" + std::to_string(::getpid()))),
        target(*getTarget("x86-64-avx2")) {
    std::filesystem::create_directories(folder);
    options.rows = {1, 4, 9};
    options.trace = {{1, 4.0}, {9, 1.0}};
    options.threads = 2;
    options.database = (folder / "schedules.txt").string();
    // Enough of the search to go through all of it.
    options.probedKernels = 2;
    options.grownCandidates = 1;
  }
  ~ModelTunerTest() override { std::filesystem::remove_all(folder); }

  void SetUp() override {
    if (!NestLibrary::create(target, 1))
      GTEST_SKIP() << "this CPU has no AVX2";
  }

  Result<TunedModel> tune(const TuningProgress &progress = [](double) {
    return Status();
  }) {
    return tuneModel(matmuls, target, options, progress);
  }

  const std::filesystem::path folder;
  const Target target;
  ModelTuningOptions options;
  std::vector<TunedMatmul> matmuls = {
      {{.n = 256, .k = 64}, 9},
      {{.n = 192, .k = 64, .columnUnit = 64, .bf16Weights = true}, 4}};
};

} // namespace

TEST_F(ModelTunerTest, KnowsNextTimeWhatItTuned) {
  std::vector<double> progress;
  Result<TunedModel> first = tune([&](double done) -> Status {
    progress.push_back(done);
    return {};
  });
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(first->measurements, 0);
  EXPECT_EQ(first->known, 0);
  ASSERT_EQ(first->groups.size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(progress));
  for (size_t i = 0; i < matmuls.size(); ++i) {
    const TunedGroup &group = first->groups[i];
    EXPECT_TRUE(group.complete);
    EXPECT_EQ(group.choices.back().rows, matmuls[i].maxRows);
    for (const ScheduleTableEntry &entry : group.table)
      EXPECT_TRUE(verify(entry.schedule, group.group.shape));
  }

  Result<TunedModel> second = tune();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->measurements, 0);
  EXPECT_EQ(second->known, 2);
  for (size_t i = 0; i < matmuls.size(); ++i) {
    ASSERT_EQ(second->groups[i].table.size(), first->groups[i].table.size());
    for (size_t j = 0; j < first->groups[i].table.size(); ++j)
      EXPECT_EQ(second->groups[i].table[j].schedule,
                first->groups[i].table[j].schedule);
  }
  // More rows are more to do.
  options.rows = {1, 2, 3, 4, 9};
  Result<TunedModel> third = tune();
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->known, 0);
}

TEST_F(ModelTunerTest, KeepsWhatWasTunedBeforeItWasStopped) {
  // In the middle of the second matmul.
  Result<TunedModel> stopped = tune([](double done) -> Status {
    if (done > 0.7)
      return makeError("enough");
    return {};
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "enough");
  auto database = ScheduleDatabase::load(options.database);
  ASSERT_TRUE(database) << database.error().message;
  EXPECT_GE(database->size(), 1u);
  Result<TunedModel> rest = tune();
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(rest->known, 1);
}

TEST_F(ModelTunerTest, LeavesToTheModelWhatTheBudgetDoesNotReach) {
  options.seconds = 1e-9;
  Result<TunedModel> tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->measurements, 0);
  for (const TunedGroup &group : tuned->groups) {
    EXPECT_FALSE(group.complete);
    EXPECT_FALSE(group.table.empty());
    for (const ScheduleTableEntry &entry : group.table)
      EXPECT_TRUE(verify(entry.schedule, group.group.shape));
  }
  // The next run goes on.
  options.seconds = 1e9;
  tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->known, 0);
  EXPECT_GT(tuned->measurements, 0);
}

TEST_F(ModelTunerTest, RefusesADamagedDatabase) {
  std::ofstream(options.database) << "not a database";
  Result<TunedModel> tuned = tune();
  ASSERT_FALSE(tuned);
  EXPECT_NE(tuned.error().message.find(options.database), std::string::npos);
  EXPECT_NE(tuned.error().message.find("is no schedule database"),
            std::string::npos);
}

TEST_F(ModelTunerTest, RefusesInstructionsThatAreAbsent) {
  Target amx = *getTarget("x86-64-amx");
  if (NestLibrary::create(amx, 1))
    GTEST_SKIP() << "this CPU has AMX";
  matmuls = {{{.n = 256, .k = 64, .bf16Weights = true}, 9}};
  Result<TunedModel> tuned =
      tuneModel(matmuls, amx, options, [](double) { return Status(); });
  ASSERT_FALSE(tuned);
  EXPECT_NE(tuned.error().message.find("cannot run code for x86-64-amx"),
            std::string::npos);
}

TEST_F(ModelTunerTest, RefusesNoRows) {
  options.rows.clear();
  EXPECT_FALSE(tune());
}

TEST_F(ModelTunerTest, ReportsWhatItFound) {
  Result<TunedModel> tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  std::string page = writeTuningReport(*tuned, "a<b>");
  auto count = [&](const std::string &what) {
    size_t found = 0;
    for (size_t at = page.find(what); at != page.npos;
         at = page.find(what, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("Tuning of a&lt;b&gt;"), 2u);
  EXPECT_EQ(count("<h2>"), 2u);
  EXPECT_GE(count("<svg"), 4u);
  EXPECT_EQ(count("<svg"), count("</svg>"));
  for (const TunedGroup &group : tuned->groups)
    for (const ScheduleTableEntry &entry : group.table)
      EXPECT_GE(count("<td>" + entry.schedule.microKernel.name()), 1u);
  // Coordinates are numbers, and nothing is loaded from elsewhere.
  for (const char *wrong : {"nan", "inf\"", "http", "src="})
    EXPECT_EQ(count(wrong), 0u) << wrong;
}

TEST_F(ModelTunerTest, TunesEqualShapesOnce) {
  TunedMatmul small{{.n = 256, .k = 64}, 4}, large{{.n = 256, .k = 64}, 9};
  std::vector<TunedMatmul> different =
      differentShapes({small, {{.n = 64, .k = 64}, 1}, large, small});
  ASSERT_EQ(different.size(), 2u);
  EXPECT_EQ(different[0].shape, small.shape);
  EXPECT_EQ(different[0].maxRows, 9);
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

namespace {

class MeasuringEvaluatorTest : public testing::Test {
protected:
  void SetUp() override {
    auto created = MeasuringEvaluator::create(
        *getTarget("x86-64-avx2"),
        {.threads = 2, .cpus = {}, .maxRows = 16, .weightBytes = 1 << 20});
    if (!created)
      GTEST_SKIP() << created.error().message;
    evaluator = std::move(*created);
  }

  std::unique_ptr<MeasuringEvaluator> evaluator;
  Payload payload{{.n = 256, .k = 64}, 8, 2};
  Schedule schedule{.microKernel = {MatrixISA::X86_AVX2_F32, 4, 16},
                    .slice = {8, 64, 64},
                    .threads = {1, 2, 1}};
};

} // namespace

TEST_F(MeasuringEvaluatorTest, TimesEveryGrid) {
  for (std::array<int64_t, 3> grid :
       {std::array<int64_t, 3>{1, 2, 1}, {2, 1, 1}, {1, 1, 2}, {1, 1, 1}}) {
    schedule.threads = grid;
    auto seconds = evaluator->seconds(payload, schedule);
    ASSERT_TRUE(seconds) << seconds.error().message;
    EXPECT_GT(*seconds, 0);
    auto limit = evaluator->compareToLimit(payload, schedule);
    ASSERT_TRUE(limit) << limit.error().message;
    EXPECT_GT(limit->seconds, 0);
    EXPECT_GT(limit->share, 0);
  }
  auto slice = evaluator->sliceSeconds(payload.shape, schedule);
  ASSERT_TRUE(slice) << slice.error().message;
  EXPECT_GT(*slice, 0);
}

TEST_F(MeasuringEvaluatorTest, TellsASlowScheduleFromAFastOne) {
  // One strip of all rows reads what eight of one row read eight times, and
  // multiplies by it with one of two threads: no noise hides that.
  payload.shape = {.n = 512, .k = 512};
  Schedule slow = schedule;
  slow.microKernel.rows = 1;
  slow.slice = {1, 32, 8};
  slow.threads = {1, 1, 1};
  auto fastest = evaluator->fastest(payload, {slow, schedule});
  ASSERT_TRUE(fastest) << fastest.error().message;
  EXPECT_EQ(*fastest, 1u);
}

TEST_F(MeasuringEvaluatorTest, MeasuresLargeWeightsInPart) {
  payload.shape.n = 1 << 20;
  auto seconds = evaluator->seconds(payload, schedule);
  ASSERT_TRUE(seconds) << seconds.error().message;
  EXPECT_GT(*seconds, 0);
}

TEST_F(MeasuringEvaluatorTest, RefusesWhatItCannotRun) {
  auto refuses = [&](const Payload &payload, const Schedule &schedule,
                     const std::string &reason) {
    auto seconds = evaluator->seconds(payload, schedule);
    ASSERT_FALSE(seconds);
    EXPECT_NE(seconds.error().message.find(reason), std::string::npos)
        << seconds.error().message;
  };
  Payload many = payload;
  many.rows = 17;
  refuses(many, schedule, "cannot measure 17 rows on 2 threads");
  Schedule wide = schedule;
  wide.threads = {1, 3, 1};
  refuses(payload, wide, "cannot measure 8 rows on 2 threads");
  Payload deep = payload;
  deep.shape.k = 1 << 20;
  refuses(deep, schedule, "is too large to measure");
  Schedule foreign = schedule;
  foreign.microKernel = {MatrixISA::X86_AVX2_F32, 16, 16};
  refuses(payload, foreign, "registers");
  EXPECT_FALSE(evaluator->fastest(payload, {}));

  Schedule endless = schedule;
  endless.slice = {8, 1 << 20, 8};
  EXPECT_FALSE(evaluator->sliceSeconds(payload.shape, endless));
  MatmulShape deepest = payload.shape;
  deepest.k = 1 << 24;
  EXPECT_FALSE(evaluator->sliceSeconds(deepest, schedule));
}

TEST_F(MeasuringEvaluatorTest, RefusesATeamThatHasNoCPUs) {
  MeasuringOptions options;
  options.threads = 100000;
  auto refused = MeasuringEvaluator::create(*getTarget("host"), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(
                "cannot measure a team of 100000 threads on"),
            std::string::npos)
      << refused.error().message;
}
