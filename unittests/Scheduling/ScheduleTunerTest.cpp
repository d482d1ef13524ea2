//===- ScheduleTunerTest.cpp - Schedules for every token count -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SyntheticEvaluator.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/Strategies.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace sandwich;

namespace {

constexpr MatrixISA isa = MatrixISA::X86_AVX512_BF16;

class TunerTest : public testing::Test {
protected:
  Target target = *getTarget("x86-64-avx512-bf16");
  CostModel model{CostModelParameters::of(target, 2)};
  std::vector<MicroKernel> menu = microKernelMenu(isa);
  TuningGroup group{{.n = 2048,
                     .k = 2048,
                     .columnUnit = 1,
                     .storage = StorageFormat::bf16(),
                     .packing = packingOf(isa)},
                    2};
  TuningOptions options;

  Result<TunedGroup> tune(MeasuringSession &session, int64_t maxRows,
                          const std::vector<Choice> &known = {}) {
    std::unique_ptr<SearchStrategy> strategy = makeStrategy(Strategy::Sandwich);
    return tuneGroup(group, allRows(maxRows), *strategy, menu, model, session,
                     options, known);
  }
};

const Schedule &find(const ScheduleTable &table, int64_t rows) {
  return std::ranges::find_if(table,
                              [&](const ScheduleTableEntry &entry) {
                                return rows <= entry.maxRows;
                              })
      ->schedule;
}

TEST_F(TunerTest, TableServesWhatWasChosen) {
  MeasuringSession session(model);
  Result<TunedGroup> tuned = tune(session, 200);
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_TRUE(tuned->complete);
  EXPECT_EQ(tuned->choices.size(), 200u);
  EXPECT_EQ(tuned->measurements, session.measurements());
  EXPECT_EQ(tuned->table.back().maxRows, INT64_MAX);
  for (const Choice &choice : tuned->choices) {
    Payload payload{group.shape, choice.rows, group.threads};
    EXPECT_EQ(reducedSchedule(payload, find(tuned->table, choice.rows)),
              reducedSchedule(payload, choice.schedule));
    EXPECT_TRUE(verify(choice.schedule, group.shape));
  }
  for (size_t i = 1; i < tuned->table.size(); ++i) {
    EXPECT_GT(tuned->table[i].maxRows, tuned->table[i - 1].maxRows);
    EXPECT_NE(tuned->table[i].schedule, tuned->table[i - 1].schedule);
  }
}

/// A schedule for more rows than were tuned repeats the slice.
TEST_F(TunerTest, LargerRowsAreServed) {
  MeasuringSession session(model);
  Result<TunedGroup> tuned = tune(session, 128);
  ASSERT_TRUE(tuned);
  const Schedule &last = tuned->table.back().schedule;
  EXPECT_EQ(last.slice[0], 128);
  Payload larger{group.shape, 1000, group.threads};
  EXPECT_TRUE(model.seconds(larger, last));
}

/// After the first sigma payloads, only micro-kernels that behaved as one of
/// the last sigma choices are looked at.
TEST_F(TunerTest, WindowLimitsTheMicroKernels) {
  options.window = 5;
  options.searchAgainAt = 1e9;
  options.reuseThreshold = -1;
  SyntheticEvaluator evaluator;
  // One micro-kernel is best, and time grows with the rows.
  auto slowness = [](const Schedule &schedule) {
    return 1 + std::abs(schedule.microKernel.columns - 64.0) +
           std::abs(schedule.microKernel.rows - 3.0);
  };
  evaluator.sliceSpeed = [&](const Schedule &) { return 1e9; };
  evaluator.time = [&](const Payload &payload, const Schedule &schedule) {
    return payload.rows * slowness(schedule);
  };
  options.probedKernels = 1000;
  MeasuringSession session(evaluator);
  Result<TunedGroup> tuned = tune(session, 40);
  ASSERT_TRUE(tuned);
  std::set<std::string> early, late;
  for (const SearchStep &step : tuned->log)
    (step.rows <= 5 ? early : late).insert(step.schedule.microKernel.name());
  EXPECT_GT(early.size(), 20u);
  EXPECT_LT(late.size(), 6u);
  for (const std::string &kernel : late)
    EXPECT_TRUE(kernel.ends_with("x64")) << kernel;
}

TEST_F(TunerTest, StableSchedulesAreReused) {
  options.window = 8;
  SyntheticEvaluator evaluator;
  // Slices of 512 k in one grid, whatever the rows.
  evaluator.sliceSpeed = [](const Schedule &schedule) {
    return 1e9 / (1 + std::abs(std::log2(schedule.slice[2] / 512.0))) /
           (schedule.microKernel.columns == 32 ? 1 : 2);
  };
  evaluator.time = [](const Payload &payload, const Schedule &schedule) {
    return payload.rows * (1 + std::abs(std::log2(schedule.slice[2] / 512.0))) *
           (schedule.threads[1] == 2 ? 1 : 2) *
           (schedule.microKernel.columns == 32 ? 1 : 2);
  };
  MeasuringSession session(evaluator);
  Result<TunedGroup> tuned = tune(session, 120);
  ASSERT_TRUE(tuned);
  std::map<int64_t, int64_t> steps;
  for (const SearchStep &step : tuned->log)
    ++steps[step.rows];
  // Payloads after the first full search beyond the window: few questions.
  for (auto [rows, count] : steps)
    if (rows > 20 && rows < 30) {
      EXPECT_LT(count, 12) << rows;
    }
  EXPECT_GT(steps[1] + steps[2], 40);
  for (const Choice &choice : tuned->choices)
    if (choice.rows > 20) {
      EXPECT_EQ(choice.schedule.slice[2], 512);
      EXPECT_EQ(choice.schedule.threads, (std::array<int64_t, 3>{1, 2, 1}));
    }
  // A threshold that nothing meets: every payload is searched.
  options.reuseThreshold = -1;
  MeasuringSession without(evaluator);
  ASSERT_TRUE(tune(without, 120));
  EXPECT_GT(without.questions(), 2 * session.questions());
}

/// Tuning a second group with slices that the first measured.
TEST_F(TunerTest, GroupsShareSlices) {
  MeasuringSession session(model);
  Result<TunedGroup> first = tune(session, 32);
  group.shape.n = 6144;
  Result<TunedGroup> second = tune(session, 32);
  ASSERT_TRUE(first && second);
  MeasuringSession alone(model);
  Result<TunedGroup> again = tune(alone, 32);
  ASSERT_TRUE(again);
  EXPECT_LT(second->measurements, again->measurements);
  for (size_t i = 0; i < 32; ++i)
    EXPECT_EQ(second->choices[i].schedule, again->choices[i].schedule);
}

TEST_F(TunerTest, AnEndedSessionChoosesNothing) {
  MeasuringSession none(model, {.stop = {}, .measurements = 0, .clock = {}});
  Result<TunedGroup> tuned = tune(none, 64);
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_FALSE(tuned->complete);
  EXPECT_TRUE(tuned->choices.empty());
  EXPECT_TRUE(tuned->table.empty());
}

TEST_F(TunerTest, GoesOnWhereItWasStopped) {
  bool stop = false;
  MeasuringSession session(model, {.stop = [&] { return stop; }, .clock = {}});
  std::unique_ptr<SearchStrategy> strategy = makeStrategy(Strategy::Sandwich);
  Result<TunedGroup> first =
      tuneGroup(group, allRows(64), *strategy, menu, model, session, options,
                {}, [&](const Choice &choice) { stop = choice.rows >= 20; });
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->complete);
  std::vector<Choice> known;
  for (const Choice &choice : first->choices)
    if (choice.measured)
      known.push_back(choice);
  EXPECT_EQ(known.size(), 20u);

  MeasuringSession rest(model), whole(model);
  Result<TunedGroup> resumed = tune(rest, 64, known);
  Result<TunedGroup> atOnce = tune(whole, 64);
  ASSERT_TRUE(resumed && atOnce);
  EXPECT_TRUE(resumed->complete);
  EXPECT_LT(rest.measurements(), whole.measurements());
  for (const SearchStep &step : resumed->log)
    EXPECT_GT(step.rows, 20);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(resumed->choices[i].schedule, known[i].schedule);
}

TEST_F(TunerTest, RefusesRowsOutOfOrder) {
  MeasuringSession session(model);
  std::unique_ptr<SearchStrategy> strategy = makeStrategy(Strategy::Sandwich);
  Result<TunedGroup> tuned =
      tuneGroup(group, {4, 4}, *strategy, menu, model, session, options);
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().message, "rows to tune must ascend; 4 follows 4");
  EXPECT_FALSE(tuneGroup(group, {}, *strategy, menu, model, session, options));
  tuned = tuneGroup(group, {1}, *strategy, {}, model, session, options);
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().message,
            "no micro-kernel can multiply a weight of 2048 x 2048");
}

TEST(ScheduleTable, MergesWhatRunsTheSame) {
  MatmulShape shape{.n = 2048,
                    .k = 2048,
                    .columnUnit = 1,
                    .storage = StorageFormat::bf16(),
                    .packing = packingOf(isa)};
  auto choice = [&](int64_t rows, int64_t kernelRows, int64_t k) {
    Schedule schedule{.microKernel = {isa, kernelRows, 32},
                      .slice = {rows, 32, k}};
    return Choice{rows, schedule, 1.0};
  };
  // 8 rows in one strip, and as many in a strip of another micro-kernel.
  ScheduleTable table = makeTable(
      shape, 1,
      {choice(8, 8, 2048), choice(10, 12, 2048), choice(16, 12, 512)});
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].maxRows, 15);
  EXPECT_EQ(table[0].schedule.microKernel.rows, 12);
  // All rows of the payload: all rows of the range.
  EXPECT_EQ(table[0].schedule.slice[0], 16);
  EXPECT_EQ(table[1].maxRows, INT64_MAX);
  EXPECT_EQ(table[1].schedule.slice[2], 512);
}

TEST(RowTrace, CountsPromptsAndTokens) {
  EXPECT_EQ(countRows({{100, 20, {}}, {7, 0, {}}, {1030, 3, {}}}, 512),
            (RowTrace{{1, 23}, {6, 1}, {7, 1}, {100, 1}, {512, 2}}));
  EXPECT_EQ(defaultTrace(4), (RowTrace{{1, 2}, {2, 1}, {4, 1}}));
}

/// Panels of 64 are better for prompts and worse for decode: the trace decides.
TEST_F(TunerTest, TheTraceChoosesThePacking) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &payload, const Schedule &) {
    bool wide = payload.shape.packing->panel == 64;
    if (payload.rows == 1)
      return wide ? 1.2 : 1.0;
    return wide ? 8.0 : 10.0;
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  auto choose = [&](const RowTrace &trace) {
    return choosePacking(group, trace, menu, model, session, options, log)
        ->panel;
  };
  EXPECT_EQ(choose({{1, 100}, {128, 1}}), 32);
  EXPECT_EQ(choose({{1, 1}, {128, 100}}), 64);
  // Nothing measured, nothing decided.
  MeasuringSession none(evaluator,
                        {.stop = {}, .measurements = 0, .clock = {}});
  Result<Packing> untuned = choosePacking(group, {{1, 1}, {128, 100}}, menu,
                                          model, none, options, log);
  ASSERT_FALSE(untuned);
  EXPECT_TRUE(none.ended());
}

} // namespace
