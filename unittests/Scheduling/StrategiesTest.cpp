//===- StrategiesTest.cpp - Ways to search -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Strategies.h"

#include "Emulation.h"
#include "SyntheticEvaluator.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"

#include <gtest/gtest.h>
#include <iostream>
#include <random>

using namespace sandwich;

namespace {

TEST(Strategies, AreFoundByName) {
  EXPECT_EQ(allStrategies().size(), 5u);
  for (Strategy strategy : allStrategies()) {
    Result<Strategy> found = strategyNamed(name(strategy));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, strategy);
  }
  Result<Strategy> unknown = strategyNamed("roller");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "unknown strategy 'roller'; known are sandwich, scale-up-and-out, "
            "cost-model, exhaustive, "
            "sandwich-without-split-k");
}

class StrategiesTest : public testing::Test {
protected:
  Target target = *getTarget("x86-64-avx512-bf16");
  CostModel model{CostModelParameters::of(target, 2)};
  std::vector<MicroKernel> menu = microKernelMenu(MatrixISA::X86_AVX512_BF16);
  /// The model is the machine here: its own choice would give the answer away.
  TuningOptions options = [] {
    TuningOptions alone;
    alone.considersModel = false;
    return alone;
  }();
  ScheduleTable untuned;
  int64_t measurements = 0;

  /// The seconds, by the model, of what `strategy` finds.
  double search(Strategy strategy, const Payload &payload) {
    MeasuringSession session(model);
    SearchLog log;
    TuningContext context{session, options, menu, model, untuned, log};
    Result<Choice> choice = makeStrategy(strategy)->choose(payload, context);
    EXPECT_TRUE(choice) << choice.error().message;
    measurements = session.measurements();
    return *model.seconds(payload, choice->schedule);
  }

  /// Whether `schedule` does what the untuned rule's does.
  bool isUntuned(const Payload &payload, const Schedule &schedule) const {
    return reducedSchedule(payload, schedule) ==
           reducedSchedule(payload, scheduleFor(untuned, payload.rows));
  }

  struct FewAndMany {
    Result<Choice> few, many;
    int64_t measurementsOfMany;
  };
  /// What the strategy `sandwich` finds on two threads for `fewRows`, and then
  /// for `manyRows`.
  FewAndMany searchFewThenMany(ScheduleEvaluator &evaluator,
                               const MatmulShape &shape, int64_t fewRows,
                               int64_t manyRows) {
    MeasuringSession session(evaluator);
    SearchLog log;
    TuningContext context{session, options, menu, model, untuned, log};
    std::unique_ptr<SearchStrategy> strategy = makeStrategy(Strategy::Sandwich);
    Result<Choice> few = strategy->choose({shape, fewRows, 2}, context);
    const int64_t measured = session.measurements();
    Result<Choice> many = strategy->choose({shape, manyRows, 2}, context);
    return {std::move(few), std::move(many), session.measurements() - measured};
  }
};

/// Random matmuls that are small enough to search all of the space.
TEST_F(StrategiesTest, FindWhatExhaustiveSearchFinds) {
  std::mt19937 random(3);
  options.exhaustiveLimit = 2000000;
  double worstSandwich = 1, worstModel = 1;
  int64_t bySandwich = 0, byScaling = 0;
  double sandwichSeconds = 0, scalingSeconds = 0;
  for (int i = 0; i < test::timesToRepeat(20, 4); ++i) {
    Payload payload{{.n = static_cast<int64_t>(64 * (4 + random() % 40)),
                     .k = static_cast<int64_t>(32 * (8 + random() % 60)),
                     .columnUnit = 1,
                     .storage = StorageFormat::bf16(),
                     .packing = {}},
                    static_cast<int64_t>(1 + random() % (i % 2 ? 24 : 160)),
                    static_cast<int64_t>(1 + random() % 2)};
    double best = search(Strategy::Exhaustive, payload);
    double sandwich = search(Strategy::Sandwich, payload);
    bySandwich += measurements;
    double scaling = search(Strategy::ScaleUpAndOut, payload);
    byScaling += measurements;
    double byModel = search(Strategy::CostModel, payload);
    EXPECT_EQ(measurements, 0);
    EXPECT_LE(sandwich, 1.03 * best)
        << payload.rows << " rows of " << payload.shape.n << " x "
        << payload.shape.k << ", " << payload.threads << " threads";
    EXPECT_LE(byModel, 1.03 * best);
    worstSandwich = std::max(worstSandwich, sandwich / best);
    worstModel = std::max(worstModel, byModel / best);
    sandwichSeconds += sandwich;
    scalingSeconds += scaling;
  }
  std::cout << "sandwich: at most " << worstSandwich
            << " of the best, measurements " << bySandwich
            << "; scale up and out: " << byScaling << "; cost model: at most "
            << worstModel << "\n";
  EXPECT_GE(byScaling, 5 * bySandwich);
  EXPECT_LE(sandwichSeconds, scalingSeconds);
}

namespace {

/// As a measurement that has memory for so many rows and sums.
class BoundedEvaluator : public ScheduleEvaluator {
public:
  BoundedEvaluator(const CostModel &model, int64_t maxRows)
      : model(model), maxRows(maxRows) {}

  Result<double> sliceSeconds(const MatmulShape &shape,
                              const Schedule &schedule) override {
    auto [m, n, k] = schedule.slice;
    if (m > maxRows || m * n > maxBlockSums)
      return makeError("cannot measure ", m, " rows");
    return model.sliceSeconds(shape, schedule);
  }
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override {
    if (payload.rows > maxRows)
      return makeError("cannot measure ", payload.rows, " rows");
    return model.seconds(payload, schedule);
  }

private:
  CostModel model;
  int64_t maxRows;
};

} // namespace

/// A tall weight for one token: all but K is soon too little for the team.
TEST_F(StrategiesTest, WithoutSplitKNoThreadsShareK) {
  TuningGroup group{
      {.n = 128, .k = 8192, .columnUnit = 64, .storage = StorageFormat::bf16()},
      4};
  const std::vector<int64_t> rows = {1, 2, 3, 4, 8, 16, 17, 64};
  for (Strategy strategy :
       {Strategy::Sandwich, Strategy::SandwichWithoutSplitK}) {
    // The untuned table is a candidate, too: here one that shares K.
    group.untuned = *chooseUntuned(group.shape, target, group.threads);
    ASSERT_GT(scheduleFor(group.untuned, 1).threads[2], 1);
    MeasuringSession session(model);
    std::unique_ptr<SearchStrategy> searcher = makeStrategy(strategy);
    Result<TunedGroup> tuned =
        tuneGroup(group, rows, *searcher, menu, model, session, options);
    ASSERT_TRUE(tuned) << tuned.error().message;
    ASSERT_EQ(tuned->choices.size(), rows.size());
    auto sharesK = [](const auto &entry) {
      return entry.schedule.threads[2] > 1;
    };
    const bool shares = usesSplitK(strategy);
    EXPECT_EQ(std::ranges::any_of(tuned->choices, sharesK), shares);
    // Nor is such a schedule measured.
    EXPECT_EQ(std::ranges::any_of(tuned->log, sharesK), shares);
    EXPECT_EQ(std::ranges::any_of(tuned->table, sharesK), shares);
  }
}

TEST_F(StrategiesTest, WithoutSplitKNeitherPackingNorUntunedRuleSharesK) {
  const MatmulShape shape{
      .n = 128, .k = 8192, .columnUnit = 64, .storage = StorageFormat::bf16()};
  for (bool splitK : {true, false}) {
    auto sharesK = [](const auto &entry) {
      return entry.schedule.threads[2] > 1;
    };
    const ScheduleTable table =
        *chooseUntuned(shape, target, 4, {.splitK = splitK});
    EXPECT_EQ(std::ranges::any_of(table, sharesK), splitK);
    MeasuringSession session(model);
    SearchLog log;
    ASSERT_TRUE(choosePacking({shape, 4, {}, splitK}, defaultTrace(16), menu,
                              model, session, options, log));
    ASSERT_FALSE(log.empty());
    EXPECT_EQ(std::ranges::any_of(log, sharesK), splitK);
  }
}

/// Also where micro-kernels are taller than all payloads, as those of AMX.
TEST(StrategiesForEachTarget, MeasureWhatThereIsMemoryFor) {
  for (const char *name :
       {"x86-64-avx2", "x86-64-avx512", "x86-64-avx512-bf16", "x86-64-amx"}) {
    const Target target = *getTarget(name);
    const CostModel model{CostModelParameters::of(target, 2)};
    BoundedEvaluator evaluator(model, mostTimedStrips * mostMicroKernelRows);
    const Payload payload{{.n = 512,
                           .k = 1024,
                           .columnUnit = 1,
                           .storage = StorageFormat::bf16(),
                           .packing = {}},
                          24,
                          2};
    const std::vector<MicroKernel> menu =
        microKernelMenu(payload.shape, target);
    ASSERT_FALSE(menu.empty()) << name;
    TuningOptions options;
    options.exhaustiveLimit = 100;
    options.exhaustiveSeed = 1;
    const ScheduleTable untuned;
    for (Strategy strategy : allStrategies()) {
      MeasuringSession session(evaluator);
      SearchLog log;
      TuningContext context{session, options, menu, model, untuned, log};
      Result<Choice> choice = makeStrategy(strategy)->choose(payload, context);
      EXPECT_TRUE(choice) << target.name << ", " << sandwich::name(strategy)
                          << ": " << choice.error().message;
    }
  }
}

namespace {

/// Refuses what cannot run, and what rounds inputs where none may be rounded.
class QuantizedEvaluator : public ScheduleEvaluator {
public:
  QuantizedEvaluator(const CostModel &model, std::vector<MatrixISA> allowed)
      : model(model), allowed(std::move(allowed)) {}

  Result<double> sliceSeconds(const MatmulShape &shape,
                              const Schedule &schedule) override {
    SANDWICH_RETURN_IF_ERROR(check(shape, schedule));
    if (!sliceFitsMemory(shape, schedule))
      return makeError("there is no memory for a slice");
    return model.sliceSeconds(shape, schedule);
  }
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override {
    SANDWICH_RETURN_IF_ERROR(check(payload.shape, schedule));
    if (!fitsMemory(payload, schedule))
      return makeError("there is no memory for a schedule");
    return model.seconds(payload, schedule);
  }
  Status check(const MatmulShape &shape, const Schedule &schedule) const {
    if (std::ranges::find(allowed, schedule.microKernel.isa) == allowed.end())
      return makeError(schedule.microKernel.name(), " is of another class");
    return verify(schedule, shape);
  }

private:
  CostModel model;
  std::vector<MatrixISA> allowed;
};

} // namespace

/// Whatever the format, the accuracy, the epilogue's columns and the target.
TEST(StrategiesForEachTarget, ChooseWhatCanRunQuantizedWeights) {
  using enum MatrixISA;
  struct Case {
    const char *target;
    bool roundsInput;
    std::vector<MatrixISA> allowed;
  };
  const Case cases[] = {
      {"x86-64-avx2", true, {X86_AVX2_INT8}},
      {"x86-64-avx512", true, {X86_AVX2_INT8, X86_AVX512_F32}},
      {"x86-64-avx2", false, {X86_AVX2_F32}},
      {"x86-64-avx512-vnni", true, {X86_AVX512_VNNI}},
      {"x86-64-avx512-vnni", false, {X86_AVX512_F32}},
      {"x86-64-avx512-bf16", false, {X86_AVX512_BF16}},
      {"x86-64-amx", true, {X86_AVX512_VNNI, X86_AMX_BF16, X86_AMX_INT8}},
      {"x86-64-amx", false, {X86_AVX512_BF16, X86_AMX_BF16}},
      {"aarch64-neon-dotprod", true, {ARM_NEON_DOTPROD}},
      {"aarch64-neon-i8mm", true, {ARM_NEON_I8MM, ARM_NEON_DOTPROD}},
      {"aarch64-neon", true, {ARM_NEON_F32}}};
  std::mt19937 random(5);
  for (const Case &each : cases)
    for (const char *format :
         {"int4", "int8-g96-f32", "int4-g1024-f16-minimum", "int4-row-f16"}) {
      const Target target = *getTarget(each.target);
      const CostModel model{CostModelParameters::of(target, 2)};
      QuantizedEvaluator evaluator(model, each.allowed);
      MatmulShape shape{.n = 512,
                        .k = 6144,
                        .columnUnit = random() % 2 ? 128 : 1,
                        .storage = *StorageFormat::parseOption(format),
                        .roundsInput = each.roundsInput};
      const std::vector<MicroKernel> menu = microKernelMenu(shape, target);
      TuningOptions options;
      options.exhaustiveLimit = 50;
      options.exhaustiveSeed = 1;
      for (Strategy strategy : allStrategies()) {
        SCOPED_TRACE(std::string(each.target) + " " + format + " " +
                     std::string(name(strategy)));
        MeasuringSession session(evaluator);
        SearchLog log;
        const TuningGroup group{shape, 2};
        Result<Packing> packing = choosePacking(group, {{1, 2.0}, {90, 1.0}},
                                                menu, model, session, {}, log);
        ASSERT_TRUE(packing) << packing.error().message;
        MatmulShape packed = shape;
        packed.packing = *packing;
        Result<ScheduleTable> untuned = chooseUntuned(packed, target, 2);
        ASSERT_TRUE(untuned) << untuned.error().message;
        TuningContext context{session, options, menu, model, *untuned, log};
        std::unique_ptr<SearchStrategy> search = makeStrategy(strategy);
        for (int64_t rows : {1, 5, 40}) {
          Result<Choice> choice = search->choose({packed, rows, 2}, context);
          ASSERT_TRUE(choice) << choice.error().message;
          Status status = evaluator.check(packed, choice->schedule);
          EXPECT_TRUE(status) << status.error().message;
        }
        // Threads that share K have whole groups.
        for (const SearchStep &step : log)
          if (const int64_t parts = step.schedule.threads[2]; parts > 1) {
            EXPECT_LE(parts, packed.k / packed.storage.groupOf(packed.k));
          }
      }
    }
}

/// All of a weight in every packing of integers is served by something.
TEST(StrategiesForEachTarget, EveryPackingOfIntegersHasUntunedSchedules) {
  for (const char *name :
       {"x86-64-avx2", "x86-64-avx512-vnni", "x86-64-amx",
        "aarch64-neon-dotprod", "aarch64-neon-i8mm", "aarch64-sve-bf16"})
    for (bool roundsInput : {false, true}) {
      const Target target = *getTarget(name);
      MatmulShape shape{.n = 512,
                        .k = 1024,
                        .storage = *StorageFormat::parseOption("int4"),
                        .roundsInput = roundsInput};
      const std::vector<Packing> packings =
          packingsOf(*instructionsFor(shape, target), shape.storage);
      EXPECT_GE(packings.size(), 2u);
      for (const Packing &packing : packings) {
        shape.packing = packing;
        Result<ScheduleTable> table = chooseUntuned(shape, target, 2);
        ASSERT_TRUE(table) << table.error().message;
        EXPECT_EQ(table->back().maxRows, INT64_MAX);
        for (const ScheduleTableEntry &entry : *table) {
          Status status = verify(entry.schedule, shape);
          EXPECT_TRUE(status) << name << ": " << status.error().message;
          if (!roundsInput) {
            EXPECT_FALSE(multipliesIntegers(entry.schedule.microKernel.isa));
          }
        }
      }
    }
}

namespace {

/// Knows the limit, and who is near it.
class LimitedEvaluator : public ScheduleEvaluator {
public:
  LimitedEvaluator(const CostModel &model, double share, double readShare = 1)
      : model(model), share(share), readShare(readShare) {}

  Result<double> sliceSeconds(const MatmulShape &shape,
                              const Schedule &schedule) override {
    return model.sliceSeconds(shape, schedule);
  }
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override {
    return model.seconds(payload, schedule);
  }
  Result<Limit> compareToLimit(const Payload &payload,
                               const Schedule &schedule) override {
    SANDWICH_ASSIGN_OR_RETURN(double time, model.seconds(payload, schedule));
    return Limit{time, share, 1, readShare};
  }

private:
  CostModel model;
  double share, readShare;
};

} // namespace

TEST_F(StrategiesTest, NothingIsSearchedWhereTheUntunedRuleIsNearTheLimit) {
  Payload payload{
      {.n = 6144, .k = 2048, .columnUnit = 1, .storage = StorageFormat::bf16()},
      1,
      2};
  untuned = *chooseByRule(payload.shape, target, payload.threads);
  for (double share : {0.99, 0.5}) {
    LimitedEvaluator evaluator(model, share);
    MeasuringSession session(evaluator);
    SearchLog log;
    TuningContext context{session, options, menu, model, untuned, log};
    Result<Choice> choice =
        makeStrategy(Strategy::Sandwich)->choose(payload, context);
    ASSERT_TRUE(choice) << choice.error().message;
    if (share > options.nearLimit) {
      EXPECT_EQ(choice->schedule, scheduleFor(untuned, payload.rows));
      EXPECT_EQ(session.measurements(), 1);
    } else {
      EXPECT_GT(session.measurements(), 10);
    }
  }
}

TEST_F(StrategiesTest, TheUntunedRuleIsEnoughWhereTheScheduleBeforeIsNot) {
  const MatmulShape shape = {
      .n = 1024, .k = 1024, .columnUnit = 1, .storage = StorageFormat::bf16()};
  untuned = *chooseByRule(shape, target, 2);
  constexpr int64_t fewRows = 64, manyRows = 96;
  struct LimitedToRule : SyntheticEvaluator {
    std::function<bool(const Payload &, const Schedule &)> isRule;
    Result<Limit> compareToLimit(const Payload &payload,
                                 const Schedule &schedule) override {
      const bool enough = payload.rows > fewRows && isRule(payload, schedule);
      return Limit{time(payload, schedule), enough ? 0.99 : 0.5};
    }
  } evaluator;
  evaluator.isRule = [&](const Payload &payload, const Schedule &schedule) {
    return isUntuned(payload, schedule);
  };
  evaluator.time = [&](const Payload &payload, const Schedule &schedule) {
    const bool fast = (payload.rows > fewRows) == isUntuned(payload, schedule);
    return payload.flops() * (fast ? 1 : 2) / 1e9;
  };
  const auto [few, many, measurementsOfMany] =
      searchFewThenMany(evaluator, shape, fewRows, manyRows);
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_NE(few->schedule, scheduleFor(untuned, fewRows));
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(many->schedule, scheduleFor(untuned, manyRows));
  EXPECT_EQ(measurementsOfMany, 2);
}

TEST_F(StrategiesTest, WhereMultiplyingRemainsTheLimitNothingIsSearchedAgain) {
  const MatmulShape shape = {
      .n = 1024, .k = 1024, .columnUnit = 1, .storage = StorageFormat::bf16()};
  untuned = *chooseByRule(shape, target, 2);
  for (double readShare : {0.1, 0.9}) {
    LimitedEvaluator evaluator(model, 0.85, readShare);
    const auto [few, many, measurementsOfMany] =
        searchFewThenMany(evaluator, shape, 64, 400);
    ASSERT_TRUE(few);
    ASSERT_TRUE(many);
    if (readShare < options.readingMattersLittle)
      EXPECT_LE(measurementsOfMany, 20);
    else
      EXPECT_GT(measurementsOfMany, 40);
  }
}

TEST_F(StrategiesTest, TheUntunedRuleIsComparedWithWhatIsNearTheLimit) {
  const MatmulShape shape = {
      .n = 1024, .k = 1024, .columnUnit = 1, .storage = StorageFormat::bf16()};
  untuned = *chooseByRule(shape, target, 2);
  // It is slow for few rows, so that others are found, and the best for many,
  // for which those seem good enough.
  constexpr int64_t fewRows = 64, manyRows = 96;
  struct MisledEvaluator : SyntheticEvaluator {
    Result<Limit> compareToLimit(const Payload &payload,
                                 const Schedule &schedule) override {
      // In a moment that is faster by more than what they differ.
      return Limit{time(payload, schedule) / 1.2,
                   payload.rows == fewRows ? 0.5 : 0.99};
    }
  } evaluator;
  evaluator.time = [&](const Payload &payload, const Schedule &schedule) {
    double slower = !isUntuned(payload, schedule) ? 1.08
                    : payload.rows == fewRows     ? 2
                                                  : 1;
    return payload.flops() * slower / 1e9;
  };
  const auto [few, many, measurementsOfMany] =
      searchFewThenMany(evaluator, shape, fewRows, manyRows);
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_NE(few->schedule, scheduleFor(untuned, fewRows));
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(many->schedule, scheduleFor(untuned, manyRows));
}

TEST_F(StrategiesTest, UntunedSchedulesForAnotherPackingAreNoCandidates) {
  Payload payload{{.n = 6144,
                   .k = 2048,
                   .columnUnit = 1,
                   .storage = StorageFormat::bf16(),
                   .packing = packingsOf(MatrixISA::X86_AVX512_BF16).back()},
                  1,
                  2};
  MatmulShape unpacked = payload.shape;
  unpacked.packing.reset();
  untuned = *chooseByRule(unpacked, target, payload.threads);
  ASSERT_FALSE(verify(scheduleFor(untuned, 1), payload.shape));
  LimitedEvaluator evaluator(model, 0.99);
  MeasuringSession session(evaluator);
  SearchLog log;
  TuningContext context{session, options, menu, model, untuned, log};
  Result<Choice> choice =
      makeStrategy(Strategy::Sandwich)->choose(payload, context);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_TRUE(verify(choice->schedule, payload.shape));
}

TEST_F(StrategiesTest, ExhaustiveSearchRefusesLargeSpaces) {
  options.exhaustiveLimit = 1000;
  MeasuringSession session(model);
  SearchLog log;
  TuningContext context{session, options, menu, model, untuned, log};
  Result<Choice> choice = makeStrategy(Strategy::Exhaustive)
                              ->choose({{.n = 6144,
                                         .k = 2048,
                                         .columnUnit = 1,
                                         .storage = StorageFormat::bf16(),
                                         .packing = {}},
                                        128,
                                        2},
                                       context);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message,
            "exhaustive search for 128 rows of 6144 x 2048 would take more "
            "than 1000 measurements; choose another strategy");
  EXPECT_EQ(session.measurements(), 0);
}

TEST_F(StrategiesTest, AllServeEveryPackingAndUnit) {
  for (const Packing &packing : packingsOf(MatrixISA::X86_AVX512_BF16))
    for (int64_t unit : {1, 64, 80})
      for (Strategy strategy : allStrategies()) {
        Payload payload{{.n = 640,
                         .k = 96,
                         .columnUnit = unit,
                         .storage = StorageFormat::bf16(),
                         .packing = packing},
                        17,
                        3};
        EXPECT_GT(search(strategy, payload), 0);
      }
}

} // namespace
