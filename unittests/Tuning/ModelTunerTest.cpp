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
#include <utility>

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
    // Teams of several wait for each member that something else keeps from its
    // CPU; MeasuringEvaluatorTest has one.
    options.threads = 1;
    options.database = (folder / "schedules.txt").string();
    // Enough of the search to go through all of it.
    options.probedKernels = 2;
  }
  ~ModelTunerTest() override { std::filesystem::remove_all(folder); }

  void SetUp() override {
    if (!MatmulLibrary::create(target, 1))
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
      {{.n = 192, .k = 64, .columnUnit = 64, .storage = StorageFormat::bf16()},
       4}};
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

/// What rounds its input, where this CPU can, and what does not are tuned
/// apart.
TEST_F(ModelTunerTest, TunesWeightsOfIntegers) {
  const Target host = *getTarget("host");
  MatmulShape shape{
      .n = 192, .k = 128, .storage = *StorageFormat::parseOption("int4")};
  for (Strategy strategy :
       {Strategy::Sandwich, Strategy::ScaleUpAndOut, Strategy::CostModel})
    for (bool roundsInput : {true, false}) {
      options.strategy = strategy;
      shape.roundsInput = roundsInput;
      const std::vector<MatrixISA> allowed = allInstructionsFor(shape, host);
      auto run = [&] {
        return tuneModel({{shape, 9}}, host, options,
                         [](double) { return Status(); });
      };
      Result<TunedModel> tuned = run();
      ASSERT_TRUE(tuned) << tuned.error().message;
      const bool measures = strategy != Strategy::CostModel;
      // On CPUs without instructions for integers both are floats, but keys of
      // their own.
      EXPECT_EQ(tuned->known, 0);
      EXPECT_EQ(tuned->measurements > 0, measures);
      const TunedGroup &group = tuned->groups.front();
      EXPECT_TRUE(group.complete);
      for (const ScheduleTableEntry &entry : group.table) {
        EXPECT_TRUE(verify(entry.schedule, group.group.shape));
        EXPECT_NE(std::ranges::find(allowed, entry.schedule.microKernel.isa),
                  allowed.end());
      }
      if (measures) {
        EXPECT_GT(tuned->flopsPerSecond, 0);
        tuned = run();
        ASSERT_TRUE(tuned) << tuned.error().message;
        EXPECT_EQ(tuned->known, 1);
      }
    }
}

// Also so many rows that tiles multiply what is copied to longer groups, which
// is of no class of micro-kernels.
TEST_F(ModelTunerTest, TunesManyRowsOfIntegers) {
  const Target host = *getTarget("host");
  MatmulShape shape{.n = 192,
                    .k = 256,
                    .storage = *StorageFormat::parseOption("int4"),
                    .roundsInput = true};
  options.window = 1;
  Result<TunedModel> tuned =
      tuneModel({{shape, 100}}, host, options, [](double) { return Status(); });
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_TRUE(tuned->groups.front().complete);
  for (const ScheduleTableEntry &entry : tuned->groups.front().table)
    EXPECT_TRUE(verify(entry.schedule, tuned->groups.front().group.shape));
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

/// The first measurement compiles several nests and micro-kernels: whether to
/// stop is asked between them.
TEST_F(ModelTunerTest, StopsAtAnyQuestion) {
  for (int allowed : {1, 2, 3, 10}) {
    int asked = 0;
    Result<TunedModel> stopped = tune([&](double) -> Status {
      if (++asked > allowed)
        return makeError("enough");
      return {};
    });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().message, "enough");
    EXPECT_EQ(asked, allowed + 1);
  }
}

TEST_F(ModelTunerTest, LeavesToTheRuleWhatTheBudgetDoesNotReach) {
  options.seconds = 1e-9;
  Result<TunedModel> tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->measurements, 0);
  for (const TunedGroup &group : tuned->groups) {
    EXPECT_FALSE(group.complete);
    EXPECT_TRUE(group.choices.empty());
    EXPECT_FALSE(group.group.shape.packing);
    Result<ScheduleTable> rule =
        chooseUntuned(group.group.shape, target, options.threads);
    ASSERT_TRUE(rule);
    ASSERT_EQ(group.table.size(), rule->size());
    for (size_t i = 0; i < rule->size(); ++i)
      EXPECT_EQ(group.table[i].schedule, (*rule)[i].schedule);
  }
  // A report of nothing is a report.
  EXPECT_NE(writeTuningReport(*tuned, "none").find("</html>"),
            std::string::npos);
  // The next run goes on.
  options.seconds = 1e9;
  tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->known, 0);
  EXPECT_GT(tuned->measurements, 0);
}

//===----------------------------------------------------------------------===//
// What stays in the database
//===----------------------------------------------------------------------===//

namespace {

/// One small matmul on one thread: about what is kept, not how it is measured.
class KeptSchedulesTest : public ModelTunerTest {
protected:
  KeptSchedulesTest() {
    matmuls = {{{.n = 64, .k = 64}, 9}};
    matmuls[0].shape.packing = packingOf(MatrixISA::X86_AVX2_F32);
    options.secondsBetweenSaves = 0;
  }

  ScheduleDatabase load() {
    auto database = ScheduleDatabase::load(options.database);
    EXPECT_TRUE(database) << database.error().message;
    return database ? *database : ScheduleDatabase();
  }

  /// The database has one table, complete and with a choice for all of `rows`.
  void expectComplete(const std::vector<int64_t> &rows) {
    ScheduleDatabase database = load();
    ASSERT_EQ(database.size(), 1u);
    const TunedSchedules &tuned = database.all().begin()->second;
    EXPECT_TRUE(tuned.covers(rows));
    EXPECT_TRUE(tuned.complete);
  }

  void expectKnown(const std::vector<int64_t> &rows) {
    options.rows = rows;
    Result<TunedModel> again = tune();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->measurements, 0);
    EXPECT_EQ(again->known, 1);
  }
};

} // namespace

/// Neither a run for fewer rows nor one for others drops what was measured.
TEST_F(KeptSchedulesTest, RowsThatOtherRunsNeeded) {
  const std::vector<int64_t> first = options.rows;
  ASSERT_TRUE(tune());
  options.rows = {1, 2, 3, 5};
  ASSERT_TRUE(tune());
  expectComplete(first);
  expectKnown(first);
  expectKnown({1, 2, 3, 4, 5, 9});
}

/// Whenever a later run is killed, what an earlier one found is still there.
TEST_F(KeptSchedulesTest, RowsFromBeforeARunThatWasStopped) {
  const std::vector<int64_t> first = options.rows;
  ASSERT_TRUE(tune());
  options.rows = {1, 2, 3, 5, 6};
  Result<TunedModel> stopped = tune([&](double done) -> Status {
    expectComplete(first);
    if (done > 0.5)
      return makeError("enough");
    return {};
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "enough");
  expectComplete({1, 2, 4, 9});
  expectKnown(first);
}

/// What is compiled with is all that the database knows, not only the rows of
/// this run.
TEST_F(KeptSchedulesTest, TablesServeAllThatIsKnown) {
  Result<TunedModel> first = tune();
  ASSERT_TRUE(first) << first.error().message;
  options.rows = {1};
  Result<TunedModel> fewer = tune();
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_EQ(fewer->known, 1);
  const ScheduleTable &all = first->groups[0].table,
                      &again = fewer->groups[0].table;
  ASSERT_EQ(again.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(again[i].schedule, all[i].schedule);
}

/// Fewer rows, and none larger, but others.
TEST_F(KeptSchedulesTest, OtherRowsAreMoreToDo) {
  options.rows = {1, 2, 3, 4, 9};
  ASSERT_TRUE(tune());
  options.rows = {1, 3, 5, 9};
  Result<TunedModel> others = tune();
  ASSERT_TRUE(others) << others.error().message;
  EXPECT_EQ(others->known, 0);
  EXPECT_GT(others->measurements, 0);
}

TEST_F(KeptSchedulesTest, OtherStrategiesTablesAreNotItsOwn) {
  for (Strategy strategy :
       {Strategy::CostModel, Strategy::ScaleUpAndOut, Strategy::Sandwich}) {
    options.strategy = strategy;
    Result<TunedModel> tuned = tune();
    ASSERT_TRUE(tuned) << tuned.error().message;
    EXPECT_EQ(tuned->known, 0) << name(strategy);
    EXPECT_EQ(tuned->measurements > 0, strategy != Strategy::CostModel)
        << name(strategy);
    EXPECT_TRUE(tuned->groups[0].complete);
  }
  EXPECT_EQ(load().size(), 2u);
  options.strategy = Strategy::ScaleUpAndOut;
  expectKnown(options.rows);
}

/// What nothing was measured for has neither a table nor a packing.
TEST_F(KeptSchedulesTest, NothingThatWasNotMeasured) {
  matmuls[0].shape.packing = {};
  options.seconds = 1e-9;
  Result<TunedModel> tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_FALSE(tuned->groups[0].complete);
  EXPECT_EQ(load().size(), 0u);
}

/// The packing is chosen for a trace: another one may need another.
TEST_F(KeptSchedulesTest, PackingsAreChosenForTheirTrace) {
  matmuls[0].shape.packing = {};
  ASSERT_TRUE(tune());
  options.trace = {{1, 1.0}, {9, 4.0}};
  Result<TunedModel> other = tune();
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_GT(other->measurements, 0);
  size_t traces = 0;
  const ScheduleDatabase database = load();
  for (const auto &[key, tuned] : database.all())
    traces += tuned.traces.size();
  EXPECT_EQ(traces, 2u);
  expectKnown(options.rows);

  // What runs for sequences runs with one row, whatever the prompts are.
  matmuls = {{{.n = 128, .k = 64}, 9, true}};
  ASSERT_TRUE(tune());
  options.trace = {{2, 7.0}, {8, 4.0}};
  expectKnown(options.rows);
}

/// Whatever becomes of the sums, a weight has one packing.
TEST_F(KeptSchedulesTest, OneWeightHasOnePacking) {
  // The first one's is in the file, and not what is usually chosen.
  MatmulShape shape = matmuls[0].shape;
  const MatrixISA isa = MatrixISA::X86_AVX2_F32;
  const Packing unusual = packingsOf(isa).back();
  ASSERT_NE(unusual, packingOf(isa));
  shape.packing = unusual;
  matmuls = {{shape, 9}};
  ASSERT_TRUE(tune());
  shape.packing = {};
  matmuls = {{shape, 9}};
  shape.epilogue.kind = Epilogue::AddResidual;
  matmuls.push_back({shape, 9});
  Result<TunedModel> tuned = tune();
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->known, 1);
  for (const TunedGroup &group : tuned->groups)
    EXPECT_EQ(group.group.shape.packing, unusual);
}

/// Another run that uses the same file at the same time.
TEST_F(KeptSchedulesTest, WhatOthersAddMeanwhile) {
  options.rows = {1, 2};
  std::vector<TunedMatmul> theirs = {{{.n = 128, .k = 64}, 2}};
  bool begun = false;
  Result<TunedModel> tuned = tune([&](double) -> Status {
    if (std::exchange(begun, true))
      return {};
    Result<TunedModel> other =
        tuneModel(theirs, target, options, [](double) { return Status(); });
    return other ? Status() : other.error();
  });
  ASSERT_TRUE(tuned) << tuned.error().message;
  ASSERT_TRUE(begun);
  EXPECT_EQ(load().size(), 2u);
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
  if (MatmulLibrary::create(amx, 1))
    GTEST_SKIP() << "this CPU has AMX";
  matmuls = {{{.n = 256, .k = 64, .storage = StorageFormat::bf16()}, 9}};
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
  small.forSequences = true;
  std::vector<TunedMatmul> different =
      differentShapes({small, {{.n = 64, .k = 64}, 1, true}, large, small});
  ASSERT_EQ(different.size(), 2u);
  EXPECT_EQ(different[0].shape, small.shape);
  EXPECT_EQ(different[0].maxRows, 9);
  EXPECT_FALSE(different[0].forSequences);
  EXPECT_TRUE(different[1].forSequences);
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
  // One strip of all rows reads once what eight of one row read eight times,
  // and K in 64 slices of 8 is called for as often. Where other programs take
  // the CPUs of both threads, that shows in some of many tries.
  payload.shape = {.n = 512, .k = 512};
  Schedule slow = schedule;
  slow.microKernel.rows = 1;
  slow.slice = {1, 32, 8};
  constexpr int tries = 20;
  bool isTold = false;
  for (int i = 0; i < tries && !isTold; ++i) {
    auto fastest = evaluator->fastest(payload, {slow, schedule});
    ASSERT_TRUE(fastest) << fastest.error().message;
    isTold = *fastest == 1;
  }
  EXPECT_TRUE(isTold);
}

TEST_F(MeasuringEvaluatorTest, MeasuresLargeWeightsInPart) {
  payload.shape.n = 1 << 20;
  auto seconds = evaluator->seconds(payload, schedule);
  ASSERT_TRUE(seconds) << seconds.error().message;
  EXPECT_GT(*seconds, 0);
}

/// Beside what becomes of its sums; the columns that fit are whole heads, or
/// pairs of a gate and its up projection.
TEST_F(MeasuringEvaluatorTest, MeasuresEveryEpilogueInPart) {
  std::vector<MatmulEpilogue> epilogues;
  for (bool bias : {false, true}) {
    for (Epilogue kind : {Epilogue::None, Epilogue::AddResidual,
                          Epilogue::SiluMul, Epilogue::GeluExact})
      epilogues.push_back({.kind = kind, .bias = bias});
    for (int64_t cacheHeads : {1, 5000})
      epilogues.push_back({.kind = Epilogue::RotateAppendKV,
                           .bias = bias,
                           .cacheHeads = cacheHeads,
                           .headNorms = bias});
  }
  for (const MatmulEpilogue &epilogue : epilogues)
    for (int64_t columns : {int64_t(64) * 12, int64_t(64) << 14}) {
      payload.shape = {.n = columns, .k = 64, .epilogue = epilogue};
      payload.shape.epilogue.cacheHeads =
          std::min(epilogue.cacheHeads, columns / 64 / 3);
      if (epilogue.kind == Epilogue::SiluMul ||
          epilogue.kind == Epilogue::RotateAppendKV)
        payload.shape.columnUnit = 64;
      SCOPED_TRACE(std::string(name(epilogue.kind)) + " of " +
                   std::to_string(columns));
      auto seconds = evaluator->seconds(payload, schedule);
      ASSERT_TRUE(seconds) << seconds.error().message;
      EXPECT_GT(*seconds, 0);
      auto fastest = evaluator->fastest(payload, {schedule, schedule});
      ASSERT_TRUE(fastest) << fastest.error().message;
    }
  payload.shape.epilogue.cacheHeads = 1 << 13;
  auto seconds = evaluator->seconds(payload, schedule);
  ASSERT_FALSE(seconds);
  EXPECT_NE(seconds.error().message.find("has no heads of queries"),
            std::string::npos)
      << seconds.error().message;
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
