//===- CostModelTest.cpp - How long a schedule should take ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/CostModel.h"

#include "Emulation.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"

#include <chrono>
#include <gtest/gtest.h>
#include <iostream>

using namespace sandwich;

namespace {

Target makeTarget() {
  Target target = *getTarget("x86-64-avx512-bf16");
  target.l1DataBytes = 48 << 10;
  return target;
}

/// The matmuls of a layer of llama-1.3b, and its last.
const std::pair<int64_t, int64_t> llama[] = {
    {6144, 2048}, {2048, 2048}, {11008, 2048}, {2048, 5504}, {32000, 2048}};

MatmulShape makeShape(int64_t n, int64_t k) {
  return {.n = n,
          .k = k,
          .columnUnit = 1,
          .storage = StorageFormat::bf16(),
          .packing = {}};
}

const Schedule &find(const ScheduleTable &table, int64_t rows) {
  for (const ScheduleTableEntry &entry : table)
    if (rows <= entry.maxRows)
      return entry.schedule;
  return table.back().schedule;
}

class CostModelTest : public testing::Test {
protected:
  double seconds(int64_t rows, int64_t kernelRows, int64_t kernelColumns,
                 std::array<int64_t, 3> slice, int64_t lines = -1) {
    Payload payload{makeShape(6144, 2048), rows, 2};
    Schedule schedule{
        .microKernel = {MatrixISA::X86_AVX512_BF16, kernelRows, kernelColumns},
        .slice = slice,
        .threads = {1, 2, 1}};
    schedule = completeByRule(schedule, payload.shape, rows);
    if (lines >= 0)
      schedule.prefetchLines = lines;
    return model.estimate(payload, schedule);
  }

  CostModel model{CostModelParameters::of(makeTarget(), 2)};
};

/// What was measured on a Zen 5 with two cores: 12x32 is faster than 14x32 for
/// many rows and hardly cares whether slices hold 512 k or all, prefetching the
/// next slice matters, and few rows go at the speed of memory.
TEST_F(CostModelTest, AgreesWithWhatWasMeasured) {
  for (int64_t rows : {128, 512}) {
    double good = seconds(rows, 12, 32, {rows, 32, 512});
    EXPECT_LT(good, seconds(rows, 14, 32, {rows, 32, 512}));
    double wholeK = seconds(rows, 12, 32, {rows, 32, 2048});
    EXPECT_LT(good, 1.01 * wholeK);
    EXPECT_LT(wholeK, 1.05 * good);
  }
  EXPECT_GT(seconds(32, 12, 32, {32, 32, 512}, 0),
            1.3 * seconds(32, 12, 32, {32, 32, 512}));
  EXPECT_GT(seconds(128, 12, 32, {128, 32, 512}, 0),
            1.08 * seconds(128, 12, 32, {128, 32, 512}));
  EXPECT_GT(seconds(8, 8, 32, {8, 32, 2048}, 0),
            1.05 * seconds(8, 8, 32, {8, 32, 2048}));
  double few = seconds(1, 1, 32, {1, 32, 2048});
  EXPECT_LT(seconds(8, 8, 32, {8, 32, 2048}), 1.1 * few);
  EXPECT_GT(seconds(128, 12, 32, {128, 32, 512}), 4 * few);
}

/// What follows from counting instructions and bytes; not measured.
TEST_F(CostModelTest, OrdersWhatWasNotMeasured) {
  for (int64_t rows : {128, 512}) {
    double good = seconds(rows, 12, 32, {rows, 32, 512});
    EXPECT_LT(good, seconds(rows, 8, 32, {rows, 32, 512}));
    EXPECT_LT(good, seconds(rows, 24, 16, {rows, 32, 512}));
    EXPECT_LT(good, seconds(rows, 12, 32, {rows, 32, 64}));
  }

  EXPECT_GT(seconds(512, 12, 32, {24, 32, 512}),
            1.02 * seconds(512, 12, 32, {512, 32, 512}));
}

TEST_F(CostModelTest, RefusesWhatCannotRun) {
  Payload payload{makeShape(64, 64), 1, 1};
  Schedule schedule{.microKernel = {MatrixISA::X86_AVX512_BF16, 40, 32},
                    .slice = {1, 32, 64}};
  Result<double> result = model.seconds(payload, schedule);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "X86_AVX512_BF16_40x32 needs 83 registers, X86_AVX512_BF16 has 32");
}

/// All of them; where an emulator runs this program, those of its CPU.
static std::vector<std::string> namesOfTargets() {
  std::vector<std::string> names = targetNames();
  if (test::isEmulated())
    std::erase_if(names, [](const std::string &name) {
      return getTarget(name)->architecture != hostArchitecture;
    });
  return names;
}

/// Every instruction set has a table whose schedules run, for odd shapes too.
TEST(CostModelTables, ServeEveryTarget) {
  for (const std::string &name : namesOfTargets()) {
    Target target = *getTarget(name);
    for (bool bf16 : {false, true})
      for (auto [n, k] : {std::pair<int64_t, int64_t>{32000, 2048},
                          {1536, 896},
                          {4864, 8192},
                          {96, 64}}) {
        MatmulShape shape = makeShape(n, k);
        shape.storage = bf16 ? StorageFormat::bf16() : StorageFormat::f32();
        shape.columnUnit = 2;
        Result<ScheduleTable> table =
            chooseUntuned(shape, target, 4, {.maxRows = 300});
        ASSERT_TRUE(table) << table.error().message;
        int64_t before = 0;
        for (const ScheduleTableEntry &entry : *table) {
          Status status = verify(entry.schedule, shape);
          EXPECT_TRUE(status) << name << ": " << status.error().message;
          EXPECT_GT(entry.maxRows, before);
          before = entry.maxRows;
        }
        EXPECT_EQ(before, INT64_MAX);
      }
  }
}

/// Threads that split rows read the same weights. On a team of any size that
/// takes no longer than multiplying does, by the machine's description alone.
TEST(CostModelTables, SplitRowsOnlyWhereMemoryGivesWeightsSoOften) {
  for (const std::string &name : namesOfTargets()) {
    const Target target = *getTarget(name);
    for (int64_t threads : {48, 8, 1}) {
      if (threads < 48 && test::isEmulated())
        break;
      const MachineDescription machine =
          describeNode(static_cast<uint64_t>(threads), target);
      for (auto [n, k] : llama) {
        const MatmulShape shape = makeShape(n, k);
        Result<ScheduleTable> table = chooseUntuned(shape, target, threads);
        ASSERT_TRUE(table) << table.error().message;
        int64_t rows = 1;
        for (const auto &[maxRows, schedule] : *table) {
          const double elements = static_cast<double>(n * k);
          const double rates =
              machine.coreFlopsPerSecond.of(MatrixElement::BF16);
          const double multiplying = 2.0 * static_cast<double>(rows) *
                                     elements /
                                     (static_cast<double>(threads) * rates);
          const double reading = static_cast<double>(schedule.threads[0]) * 2 *
                                 elements / machine.node().bytesPerSecond;
          EXPECT_TRUE(schedule.threads[0] == 1 || reading <= multiplying)
              << name << ", " << threads << " threads, " << n << " x " << k
              << ", " << rows << " rows: " << schedule.threads[0] << " x "
              << schedule.threads[1] << " x " << schedule.threads[2];
          // Cores that no thread uses are no way to save bandwidth.
          EXPECT_GE(2 * schedule.threads[0] * schedule.threads[1] *
                        schedule.threads[2],
                    threads);
          rows = maxRows + 1;
        }
      }
    }
  }
}

/// Few rows take as long as reading the weight, so weights of 4 bits a quarter
/// and less of what bf16 takes; unpacked, they take longer than rounded inputs.
TEST(CostModelOfIntegers, GoesByBytesAndUnpacking) {
  const Target target = makeTarget();
  const CostModel model(CostModelParameters::of(target, 2));
  auto best = [&](const char *format, bool roundsInput, int64_t rows) {
    MatmulShape shape = makeShape(2048, 5504);
    shape.storage = *StorageFormat::parseOption(format);
    shape.roundsInput = roundsInput;
    const Payload payload{shape, rows, 2};
    Result<Choice> choice =
        chooseByModel(payload, microKernelMenu(shape, target), model);
    EXPECT_TRUE(choice) << choice.error().message;
    Status status = verify(choice->schedule, shape);
    EXPECT_TRUE(status) << status.error().message;
    return choice->seconds;
  };
  const double bf16 = best("bf16", false, 1);
  EXPECT_LT(best("int8", true, 1), 0.7 * bf16);
  EXPECT_LT(best("int4", true, 1), 0.4 * bf16);
  EXPECT_LT(best("int4", true, 1), 0.8 * best("int8", true, 1));
  for (int64_t rows : {1, 16, 512})
    EXPECT_LT(best("int4", true, rows), best("int4", false, rows)) << rows;
  // Larger groups are scaled less often.
  EXPECT_LT(best("int4-g128-f16", true, 512), best("int4", true, 512));
}

/// A machine whose memory is slower has other schedules.
TEST(CostModelTables, GoByTheMachineThatIsDescribed) {
  const Target target = makeTarget();
  const Payload payload{makeShape(6144, 2048), 1, 8};
  MachineDescription slow = describeNode(8, target);
  slow.parts["numa"].bytesPerSecond = 10e9;
  const Schedule schedule =
      completeByRule({.microKernel = {MatrixISA::X86_AVX512_BF16, 1, 32},
                      .slice = {1, 32, 2048},
                      .threads = {1, 8, 1}},
                     payload.shape, 1);
  const double usually =
      CostModel(CostModelParameters::of(target, 8)).estimate(payload, schedule);
  const double slowly = CostModel(CostModelParameters::of(slow, target))
                            .estimate(payload, schedule);
  // 25 MB at 40 GB/s, and at 10.
  EXPECT_NEAR(usually, 0.63e-3, 0.2e-3);
  EXPECT_NEAR(slowly / usually, 4, 0.6);
}

TEST(CostModelTables, WithoutInstructionsIsAnError) {
  Target target = *getTarget("aarch64-neon");
  target.matrixISAs.clear();
  Result<ScheduleTable> table = chooseUntuned(makeShape(64, 64), target, 1);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().message,
            "no matrix instructions of aarch64-neon multiply a weight of 64 x "
            "64");
}

/// The model's tables are, by the model, never worse than the rule's; the log
/// shows both.
TEST(CostModelTables, AreNoWorseThanTheRule) {
  Target target = makeTarget();
  CostModel model(CostModelParameters::of(target, 2));
  auto begin = std::chrono::steady_clock::now();
  std::vector<ScheduleTable> tables;
  for (auto [n, k] : llama)
    tables.push_back(*chooseUntuned(makeShape(n, k), target, 2));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << "five tables in " << took.count() << " s\n";
  for (size_t i = 0; i < tables.size(); ++i) {
    auto [n, k] = llama[i];
    ScheduleTable rule = *chooseByRule(makeShape(n, k), target, 2);
    for (int64_t rows : {1, 4, 8, 16, 32, 64, 128, 512}) {
      Payload payload{makeShape(n, k), rows, 2};
      const Schedule &chosen = find(tables[i], rows);
      double byRule = model.estimate(payload, find(rule, rows));
      double byModel = model.estimate(payload, chosen);
      std::cout << n << " x " << k << ", " << rows << " rows: rule "
                << byRule * 1e6 << " us, model " << byModel * 1e6 << " us, "
                << chosen.microKernel.name() << " [" << chosen.slice[0] << ", "
                << chosen.slice[1] << ", " << chosen.slice[2] << "]\n";
      EXPECT_LE(byModel, byRule * 1.02);
    }
  }
}

} // namespace
