//===- ScheduleSearchTest.cpp - Fast start and finetune ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SyntheticEvaluator.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace sandwich;

namespace {

constexpr MatrixISA isa = MatrixISA::X86_AVX512_F32;
const MicroKernel kernel{isa, 8, 32};

Payload makePayload(int64_t rows, int64_t n, int64_t k, int64_t threads) {
  return {{.n = n,
           .k = k,
           .columnUnit = 1,
           .storage = StorageFormat::f32(),
           .packing = packingOf(isa)},
          rows,
          threads};
}

std::array<int64_t, 3> sizes(int64_t m, int64_t n, int64_t k) {
  return {m, n, k};
}

/// The example of the paper, section 5.
TEST(FastStart, StopsWhereThreadsWouldLackSlices) {
  Payload payload = makePayload(128, 64, 64, 2);
  EXPECT_EQ(largestParallelSlice(payload, {8, 32, 16}, packingOf(isa)),
            sizes(64, 32, 32));
  SyntheticEvaluator evaluator;
  evaluator.sliceSpeed = [](const Schedule &schedule) {
    auto [m, n, k] = schedule.slice;
    return static_cast<double>(m * n * k);
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  Result<FastStart> start = fastStart(payload, kernel, session, {}, log);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->slice, sizes(64, 32, 32));
}

TEST(FastStart, StepsGrowExponentially) {
  Payload payload = makePayload(8, 32, 4096, 1);
  SyntheticEvaluator evaluator;
  evaluator.sliceSpeed = [](const Schedule &schedule) {
    return static_cast<double>(schedule.slice[2]);
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  Result<FastStart> start = fastStart(payload, kernel, session, {}, log);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->slice, sizes(8, 32, 4096));
  std::vector<int64_t> k;
  for (const SearchStep &step : log)
    k.push_back(step.schedule.slice[2]);
  EXPECT_EQ(
      k, (std::vector<int64_t>{16, 32, 64, 128, 256, 512, 1024, 2048, 4096}));
  EXPECT_EQ(session.measurements(), 9);
}

TEST(FastStart, RollsBackWhatDoesNotGain) {
  // Rows gain up to 32, columns never, k up to 128.
  SyntheticEvaluator evaluator;
  evaluator.sliceSpeed = [](const Schedule &schedule) {
    auto [m, n, k] = schedule.slice;
    return (m <= 32 ? m : 32.0) * (k <= 128 ? k : 100.0) * (n <= 32 ? 1 : 0.9);
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  Result<FastStart> start =
      fastStart(makePayload(1024, 1024, 1024, 2), kernel, session, {}, log);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->slice, sizes(32, 32, 128));
  EXPECT_DOUBLE_EQ(start->flopsPerSecond, 32 * 128);
  for (const SearchStep &step : log) {
    EXPECT_LE(step.schedule.slice[0], 64);
    EXPECT_LE(step.schedule.slice[1], 64);
    EXPECT_LE(step.schedule.slice[2], 256);
  }
}

TEST(FastStart, FewRowsMakeASmallTile) {
  EXPECT_EQ(sliceTile(kernel, makePayload(3, 1024, 1024, 2)), sizes(3, 32, 16));
  Payload heads = makePayload(8, 1024, 1024, 2);
  heads.shape.columnUnit = 96;
  EXPECT_EQ(sliceTile(kernel, heads), sizes(8, 96, 16));
}

TEST(Finetune, NextSizeMakesFewerSlices) {
  for (int64_t part : {1, 31, 2048, 5504})
    for (int64_t size = 16; size < part; size += 16) {
      int64_t next = nextSliceSize(size, part, 16);
      EXPECT_GT(next, size);
      EXPECT_EQ(next % 16, 0);
      EXPECT_LT(next, part + 16);
    }
  EXPECT_EQ(nextSliceSize(2048, 2048, 16), 2048);
}

/// Finds a grid, a micro-kernel and a slice that only a joint choice finds:
/// each alone is better elsewhere.
TEST(Finetune, ChoosesOverGridsAndMicroKernels) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &, const Schedule &schedule) {
    double time = schedule.microKernel.rows == 8 ? 1.0 : 1.1;
    time *= schedule.threads == sizes(1, 2, 1) ? 1.0 : 1.05;
    if (schedule.microKernel.rows == 6 && schedule.threads == sizes(1, 1, 2))
      time = 0.8;
    // The best K of that is 1024.
    return time * (1 + std::abs(std::log2(schedule.slice[2] / 1024.0)));
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  SearchOptions options;
  Result<Choice> choice =
      finetune(makePayload(64, 1024, 2048, 2),
               {{kernel, {64, 32, 512}}, {{isa, 6, 32}, {64, 32, 512}}}, {},
               true, session, options, log);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->schedule.microKernel, (MicroKernel{isa, 6, 32}));
  EXPECT_EQ(choice->schedule.threads, sizes(1, 1, 2));
  EXPECT_EQ(choice->schedule.slice[2], 1024);
  EXPECT_DOUBLE_EQ(choice->seconds, 0.8);
}

/// A grid that begins far behind, and wins once its slice has grown; the
/// growth of the others ends at the first step that gains nothing.
TEST(Finetune, GrowsUnderEveryGrid) {
  SyntheticEvaluator evaluator;
  const std::array<int64_t, 3> behind = {2, 1, 1};
  evaluator.time = [&](const Payload &, const Schedule &schedule) {
    double k = static_cast<double>(schedule.slice[2]);
    double time = schedule.threads == behind ? 2048 / k
                  : schedule.threads == sizes(1, 2, 1)
                      ? 1.3
                      : 4; // Three times as slow.
    return schedule.microKernel.rows == 8 ? time : 1.05 * time;
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  Result<Choice> choice =
      finetune(makePayload(64, 1024, 2048, 2),
               {{kernel, {64, 32, 512}}, {{isa, 6, 32}, {64, 32, 512}}}, {},
               true, session, {}, log);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->schedule.threads, behind);
  EXPECT_EQ(choice->schedule.slice[2], 2048);
  EXPECT_EQ(choice->schedule.microKernel.rows, 8);
  int64_t hopeless = 0;
  for (const SearchStep &step : log)
    if (step.phase == SearchPhase::Finetune &&
        step.schedule.threads == sizes(1, 1, 2)) {
      ++hopeless;
      EXPECT_EQ(step.schedule.microKernel.rows, 8);
      EXPECT_FALSE(step.accepted);
    }
  // One step: columns or k, as the rows are all there.
  EXPECT_EQ(hopeless, 2);
}

TEST(Finetune, TriesOrderAndPrefetch) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &, const Schedule &schedule) {
    return 1.0 + (schedule.order == LoopOrder::RowsOuter) +
           (schedule.prefetchStreams != 8);
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  Payload payload = makePayload(64, 1024, 2048, 1);
  Schedule schedule{.microKernel = kernel, .slice = {32, 32, 512}};
  schedule = completeByRule(schedule, payload.shape, payload.rows);
  Choice choice{64, schedule, 3.0};
  ASSERT_TRUE(finetuneWalk(payload, choice, session, {}, log));
  EXPECT_EQ(choice.schedule.order, LoopOrder::ColumnsOuter);
  EXPECT_EQ(choice.schedule.prefetchStreams, 8);
  EXPECT_DOUBLE_EQ(choice.seconds, 1.0);
}

TEST(Finetune, TriesHintsAndStores) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &, const Schedule &schedule) {
    return 1.0 + (schedule.prefetchHint != PrefetchHint::L2) +
           (schedule.stores == StoreKind::Cached);
  };
  for (int64_t rows : {1, 512}) {
    MeasuringSession session(evaluator);
    SearchLog log;
    Payload payload = makePayload(rows, 1024, 2048, 1);
    Schedule schedule{.microKernel = kernel, .slice = {32, 32, 512}};
    schedule = completeByRule(schedule, payload.shape, payload.rows);
    Choice choice{rows, schedule, 3.0};
    ASSERT_TRUE(finetuneWalk(payload, choice, session, {}, log));
    EXPECT_EQ(choice.schedule.prefetchHint, PrefetchHint::L2);
    // The results of one row stay in the caches anyway.
    EXPECT_EQ(choice.schedule.stores,
              rows > 1 ? StoreKind::NonTemporal : StoreKind::Cached);
  }
}

TEST(Finetune, TriesChunksAndWhatTilesDoWithOperands) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &, const Schedule &schedule) {
    return 1.0 + (schedule.chunkK != 256) + !schedule.packsInput +
           (schedule.streamed != StreamedOperands::Weight);
  };
  for (MicroKernel each : {MicroKernel{MatrixISA::X86_AMX_BF16, 32, 32},
                           MicroKernel{MatrixISA::ARM_NEON_F32, 6, 16},
                           MicroKernel{MatrixISA::X86_AVX512_BF16, 12, 32}}) {
    MeasuringSession session(evaluator);
    SearchLog log;
    Payload payload = makePayload(256, 1024, 2048, 1);
    Schedule schedule{.microKernel = each, .slice = {256, 64, 512}};
    schedule = completeByRule(schedule, payload.shape, payload.rows);
    Choice choice{256, schedule, 4.0};
    ASSERT_TRUE(finetuneWalk(payload, choice, session, {}, log));
    const bool tiles = hasTiles(each.isa);
    EXPECT_EQ(choice.schedule.chunkK, 256);
    EXPECT_EQ(choice.schedule.packsInput, canPackInput(each.isa));
    EXPECT_EQ(choice.schedule.streamed,
              tiles ? StreamedOperands::Weight : StreamedOperands::None);
  }
}

TEST(Finetune, TriesLongerGroups) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &, const Schedule &schedule) {
    return 1.0 + (schedule.groupK == 0);
  };
  for (const char *format : {"int4-g32-f16", "int4-g32-f16-minimum"}) {
    MeasuringSession session(evaluator);
    SearchLog log;
    Payload payload = makePayload(256, 1024, 2048, 1);
    payload.shape.storage = *StorageFormat::parse(format);
    payload.shape.roundsInput = true;
    payload.shape.packing = std::nullopt;
    Schedule schedule{.microKernel = {MatrixISA::X86_AVX512_VNNI, 6, 32},
                      .slice = {192, 32, 2048}};
    schedule = completeByRule(schedule, payload.shape, payload.rows);
    Choice choice{256, schedule, 2.0};
    ASSERT_TRUE(finetuneWalk(payload, choice, session, {}, log));
    const bool isExact = payload.shape.storage.offset == GroupOffset::Minimum;
    EXPECT_EQ(choice.schedule.groupK, isExact ? 0 : 128);
  }
}

/// Where an input is too long to be packed, or columns are too many for the
/// sums of a tile, the search goes on without.
TEST(Finetune, LeavesOutWhatMemoryDoesNotHold) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &payload, const Schedule &schedule) {
    EXPECT_TRUE(fitsMemory(payload, schedule));
    return 1.0 / static_cast<double>(schedule.slice[1] * schedule.slice[2]);
  };
  MeasuringSession session(evaluator);
  SearchLog log;
  const MicroKernel tiles{MatrixISA::X86_AMX_BF16, 32, 32};
  Payload payload{{.n = 128256,
                   .k = 57344,
                   .columnUnit = 1,
                   .storage = StorageFormat::bf16()},
                  16,
                  2};
  Result<Choice> choice = finetune(payload, {{tiles, {16, 13120, 512}}}, {},
                                   /*growSlices=*/true, session, {}, log);
  ASSERT_TRUE(choice) << choice.error().message;
  Status walked = finetuneWalk(payload, *choice, session, {}, log);
  EXPECT_TRUE(walked) << walked.error().message;
  EXPECT_FALSE(choice->schedule.packsInput);
}

TEST(MeasuringSession, AnswersEqualQuestionsOnce) {
  SyntheticEvaluator evaluator;
  MeasuringSession session(evaluator);
  Payload payload = makePayload(16, 1024, 2048, 2);
  Schedule schedule{.microKernel = {isa, 8, 32},
                    .slice = {16, 32, 2048},
                    .threads = {1, 2, 1}};
  Result<double> first = session.seconds(payload, schedule);
  schedule.microKernel.rows = 14;
  schedule.slice = {512, 32, 4096};
  Result<double> again = session.seconds(payload, schedule);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(evaluator.asked, 1);
  payload.rows = 17;
  ASSERT_TRUE(session.seconds(payload, schedule));
  EXPECT_EQ(evaluator.asked, 2);
  EXPECT_EQ(session.measurements(), 2);
  EXPECT_EQ(session.questions(), 3);
}

TEST(MeasuringSession, SlicesServeAllShapes) {
  SyntheticEvaluator evaluator;
  MeasuringSession session(evaluator);
  Schedule schedule{.microKernel = kernel, .slice = {8, 32, 256}};
  ASSERT_TRUE(
      session.sliceSeconds(makePayload(8, 1024, 2048, 2).shape, schedule));
  ASSERT_TRUE(
      session.sliceSeconds(makePayload(8, 6144, 512, 2).shape, schedule));
  EXPECT_EQ(evaluator.asked, 1);
  schedule.slice[2] = 512;
  ASSERT_TRUE(
      session.sliceSeconds(makePayload(8, 6144, 512, 2).shape, schedule));
  EXPECT_EQ(evaluator.asked, 2);
}

TEST(MeasuringSession, EndsAtARequest) {
  SyntheticEvaluator evaluator;
  bool stop = false;
  MeasuringSession session(evaluator,
                           {.stop = [&] { return stop; }, .clock = {}});
  Payload payload = makePayload(16, 1024, 2048, 2);
  Schedule schedule{.microKernel = kernel, .slice = {16, 32, 2048}};
  ASSERT_TRUE(session.seconds(payload, schedule));
  stop = true;
  // What is known costs nothing.
  EXPECT_TRUE(session.seconds(payload, schedule));
  schedule.slice[2] = 1024;
  Result<double> refused = session.seconds(payload, schedule);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "tuning was stopped");
  EXPECT_EQ(session.end(), SessionEnd::Stopped);
}

TEST(MeasuringSession, KeepsToItsBudgets) {
  SyntheticEvaluator evaluator;
  double now = 5;
  MeasuringSession timed(
      evaluator, {.stop = {}, .seconds = 10, .clock = [&] { return now; }});
  Payload payload = makePayload(16, 1024, 2048, 2);
  Schedule schedule{.microKernel = kernel, .slice = {16, 32, 2048}};
  ASSERT_TRUE(timed.seconds(payload, schedule));
  now = 15;
  schedule.slice[2] = 1024;
  Result<double> refused = timed.seconds(payload, schedule);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the budget for tuning is spent");

  MeasuringSession counted(evaluator,
                           {.stop = {}, .measurements = 0, .clock = {}});
  EXPECT_FALSE(counted.seconds(payload, schedule));
  EXPECT_EQ(counted.measurements(), 0);
  EXPECT_EQ(counted.end(), SessionEnd::BudgetSpent);
}

TEST(MeasuringSession, RefusesNonsense) {
  SyntheticEvaluator evaluator;
  evaluator.time = [](const Payload &, const Schedule &) { return 0.0; };
  MeasuringSession session(evaluator);
  Result<double> zero = session.seconds(
      makePayload(1, 32, 32, 1), {.microKernel = kernel, .slice = {1, 32, 32}});
  ASSERT_FALSE(zero);
  EXPECT_EQ(zero.error().message, "measured 0 seconds for a schedule");
}

} // namespace
