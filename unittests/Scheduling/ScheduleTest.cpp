//===- ScheduleTest.cpp - How a matmul runs ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Target/Target.h"

#include <gtest/gtest.h>

#include <functional>

using namespace sandwich;

namespace {

const MatmulShape shape{.n = 6144,
                        .k = 2048,
                        .columnUnit = 1,
                        .storage = StorageFormat::bf16(),
                        .packing = {}};

Schedule makeSchedule() {
  return {.microKernel = {MatrixISA::X86_AVX512_BF16, 12, 32},
          .slice = {512, 32, 512},
          .threads = {1, 2, 1},
          .prefetchLines = 1};
}

std::string errorOf(const Schedule &schedule, const MatmulShape &shape) {
  Status status = verify(schedule, shape);
  return status ? "" : status.error().message;
}

TEST(Schedule, VerifiesEveryField) {
  EXPECT_EQ(errorOf(makeSchedule(), shape), "");
  auto changed = [](auto change) {
    Schedule schedule = makeSchedule();
    change(schedule);
    return errorOf(schedule, shape);
  };
  EXPECT_EQ(changed([](Schedule &s) { s.slice[0] = 0; }),
            "slice sizes must be between 1 and 1073741824; one is 0");
  EXPECT_EQ(changed([](Schedule &s) { s.threads[2] = 1025; }),
            "thread counts must be between 1 and 1024; one is 1025");
  EXPECT_EQ(changed([](Schedule &s) { s.threads[2] = 300; }),
            "300 threads cannot share K = 2048 in steps of 8");
  EXPECT_EQ(changed([](Schedule &s) { s.slice[2] = 511; }),
            "slice K 511 must be a multiple of the packing's 2");
  EXPECT_EQ(changed([](Schedule &s) { s.prefetchLines = -1; }),
            "prefetch lines must be between 0 and 1024, their distance between "
            "0 and 1073741824");
  EXPECT_EQ(changed([](Schedule &s) { s.prefetchStreams = 0; }),
            "prefetch streams must be between 1 and 64, and 1 where a distance "
            "is given; they are 0");
  EXPECT_EQ(changed([](Schedule &s) {
              s.prefetchStreams = 2;
              s.prefetchDistance = 64;
            }),
            "prefetch streams must be between 1 and 64, and 1 where a distance "
            "is given; they are 2");
}

TEST(Schedule, VerifiesThePacking) {
  Schedule schedule = makeSchedule();
  schedule.microKernel = {MatrixISA::X86_AVX512_BF16, 8, 48};
  schedule.slice[1] = 96;
  // A weight of which nothing is said lies in the default packing.
  MatmulShape packed = shape;
  packed.packing = packingOf(MatrixISA::X86_AVX512_BF16);
  for (const MatmulShape &unreadable : {shape, packed})
    EXPECT_EQ(errorOf(schedule, unreadable),
              "X86_AVX512_BF16_8x48 does not read panels of 32 columns, 32 in "
              "a tile, with 2 by 2 k together");
  packed.packing = packingsOf(MatrixISA::X86_AVX512_BF16)[2];
  EXPECT_EQ(errorOf(schedule, packed), "");
  schedule.slice[1] = 64;
  EXPECT_EQ(errorOf(schedule, packed),
            "slice columns 64 must be a multiple of 48, a panel, and of the "
            "micro-kernel's 48");
}

TEST(Schedule, VerifiesLongerGroups) {
  using enum MatrixISA;
  MatmulShape shape{
      .n = 4096, .k = 5504, .storage = *StorageFormat::parse("int4-g32-f16")};
  Schedule schedule{.microKernel = {X86_AVX512_VNNI, 6, 32},
                    .slice = {96, 64, 5504},
                    .packsInput = true,
                    .groupK = 128};
  EXPECT_EQ(errorOf(schedule, shape), "");
  const auto error = [&](const std::function<void(Schedule &)> &change) {
    Schedule changed = schedule;
    change(changed);
    return errorOf(changed, shape);
  };
  for (int64_t group : {32, 48, 64 * 3, 5504})
    EXPECT_EQ(error([&](Schedule &s) { s.groupK = group; }),
              "groups of " + std::to_string(group) +
                  " k must be several of the weight's 32, at most 256 k, and "
                  "divide K = 5504");
  EXPECT_EQ(error([](Schedule &s) { s.slice[2] = 96; }),
            "slice K 96 must be all of K or whole groups of 128");
  EXPECT_EQ(error([](Schedule &s) { s.chunkK = 64; }),
            "K of a chunk, 64, must be whole groups of 128");
  EXPECT_EQ(error([](Schedule &s) { s.threads = {1, 1, 2}; }),
            "2 threads share K, of groups of 128 k");
  EXPECT_EQ(error([](Schedule &s) { s.prefetchLines = 1; }), "");
  for (auto [lines, distance] : {std::pair(2, 0), std::pair(1, 64)})
    EXPECT_EQ(error([&](Schedule &s) {
                s.prefetchLines = lines;
                s.prefetchDistance = distance;
              }),
              "of a quantized weight that is copied the next slice is "
              "prefetched, as a line at a distance of 0, or, where that is "
              "done ahead, each line at a greater one");
  shape.deterministic = true;
  EXPECT_EQ(errorOf(schedule, shape),
            "groups of 128 k, where sums must not depend on the number of "
            "tokens");
  shape.deterministic = false;
  shape.storage.number = NumberFormat::Int8;
  EXPECT_EQ(errorOf(schedule, shape),
            "groups of 128 k are for weights of 4 bits that are multiplied as "
            "integers, not for int8-g32-f16 by X86_AVX512_VNNI_6x32");
}

/// Longer groups are for many rows, and for what is not meant to be exact.
TEST(Schedule, RegroupsByRule) {
  const Target target = *getTarget("x86-64-avx512-vnni");
  const auto longest = [&](const char *storage, bool deterministic) {
    const MatmulShape shape{.n = 4096,
                            .k = 2048,
                            .storage = *StorageFormat::parse(storage),
                            .roundsInput = true,
                            .deterministic = deterministic};
    const auto table = chooseByRule(shape, target, 2);
    EXPECT_TRUE(table);
    EXPECT_EQ(scheduleFor(*table, 48).groupK, 0);
    for (const ScheduleTableEntry &entry : *table)
      EXPECT_EQ(errorOf(entry.schedule, shape), "");
    return table->back().schedule.groupK;
  };
  EXPECT_EQ(longest("int4-g32-f16", false), 128);
  EXPECT_EQ(longest("int4-g64-f32", false), 128);
  EXPECT_EQ(longest("int4-g32-f16", true), 0);
  EXPECT_EQ(longest("int4-g32-f16-minimum", false), 0);
  EXPECT_EQ(longest("int4-g128-f16", false), 0);
  EXPECT_EQ(longest("int4-row-f16", false), 0);
  EXPECT_EQ(longest("int8-g32-f16", false), 0);
}

/// What is said of K of a schedule of `isa` for int4 in groups of 32 or more.
static std::string
errorOfIntegers(MatrixISA isa, const std::function<void(Schedule &)> &change,
                std::string_view storage = "int4-g64-f16") {
  const MatmulShape integers{
      .n = 4096, .k = 2048, .storage = *StorageFormat::parse(storage)};
  Schedule schedule{.microKernel = {isa, 6, 32},
                    .slice = {96, 64, 512},
                    .packsInput = multipliesIntegers(isa)};
  change(schedule);
  return errorOf(schedule, integers);
}

TEST(Schedule, VerifiesGroups) {
  using enum MatrixISA;
  const auto nothing = [](Schedule &) {};
  const auto sliceK = [](int64_t k) {
    return [k](Schedule &s) { s.slice[2] = k; };
  };
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI, nothing), "");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_F32, nothing), "");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI, sliceK(4096)), "");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_F32, sliceK(32)), "");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_F32, sliceK(96)),
            "slice K 96 must be all of K, whole groups of 64 or an equal part "
            "of one, of a multiple of 16");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI, sliceK(32)),
            "slice K 32 must be all of K or whole groups of 64");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI, sliceK(512), "int4-row-f16"),
            "slice K 512 must be all of K or whole groups of 2048");
  EXPECT_EQ(
      errorOfIntegers(X86_AVX512_VNNI, [](Schedule &s) { s.chunkK = 96; }),
      "K of a chunk, 96, must be whole groups of 64");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI,
                            [](Schedule &s) { s.packsInput = false; }),
            "X86_AVX512_VNNI_6x32 reads packed input only");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI,
                            [](Schedule &s) { s.prefetchLines = 4; }),
            "a quantized weight that micro-kernels read as it is stored is "
            "prefetched at a distance only");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI,
                            [](Schedule &s) {
                              s.prefetchLines = 4;
                              s.prefetchDistance = 1152;
                            }),
            "");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI, nothing, "bf16"),
            "X86_AVX512_VNNI_6x32 does not multiply weights of bf16");
  EXPECT_EQ(errorOfIntegers(X86_AVX512_VNNI, nothing, "fp8-g64-f16"),
            "X86_AVX512_VNNI_6x32 does not multiply weights of fp8-g64-f16");
}

/// Fp8 is unpacked to floats, whatever else the target multiplies.
TEST(Schedule, UntunedFloats8AreUnpacked) {
  for (const char *name : {"x86-64-avx2", "x86-64-avx512-vnni",
                           "x86-64-avx512-bf16", "aarch64-neon-dotprod"}) {
    const Target target = *getTarget(name);
    const MatmulShape shape{.n = 4096,
                            .k = 2048,
                            .storage = *StorageFormat::parseOption("fp8"),
                            .roundsInput = true};
    Result<ScheduleTable> table = chooseByRule(shape, target, 2);
    ASSERT_TRUE(table) << table.error().message;
    for (const auto &[rows, schedule] : *table) {
      EXPECT_FALSE(multipliesIntegers(schedule.microKernel.isa)) << name;
      EXPECT_TRUE(unpacksWeights(schedule.microKernel.isa, shape.storage));
      EXPECT_EQ(errorOf(schedule, shape), "");
    }
  }
}

/// One and two rows read panels side by side, and the strip of more rows is for
/// few and for many, whatever the groups.
TEST(Schedule, UntunedIntegersPackAllOfK) {
  const Target target = *getTarget("x86-64-avx512-vnni");
  // Of 8 bits and 8192 k two panels do not fit beside the input, and of 65536 k
  // there are never two strips.
  const std::vector<int64_t> pairs{1, 2, 6, 12, 48, INT64_MAX},
      strips{1, 2, 6, 48, INT64_MAX}, unshared{1, 2, 6, INT64_MAX},
      single{1, 2, INT64_MAX};
  using Case = std::tuple<const char *, int64_t, std::vector<int64_t>>;
  for (const auto &[storage, k, expected] :
       {Case{"int8-g32-f16", 64, pairs}, Case{"int8-g32-f16", 2048, pairs},
        Case{"int8-g32-f16", 8192, unshared},
        Case{"int8-g32-f16", 65536, single}, Case{"int4-row-f32", 64, strips},
        Case{"int4-row-f32", 2048, strips}, Case{"int4-row-f32", 8192, strips},
        Case{"int4-row-f32", 65536, single}}) {
    const MatmulShape integers{.n = 4096,
                               .k = k,
                               .storage = *StorageFormat::parse(storage),
                               .roundsInput = true};
    Result<ScheduleTable> table = chooseByRule(integers, target, 2);
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->front().schedule.microKernel.name(),
              "X86_AVX512_VNNI_1x128");
    EXPECT_EQ(table->at(1).schedule.microKernel.name(), "X86_AVX512_VNNI_2x64");
    std::vector<int64_t> maxRows;
    for (const ScheduleTableEntry &entry : *table)
      maxRows.push_back(entry.maxRows);
    EXPECT_EQ(maxRows, expected);
    for (const auto &[rows, schedule] : *table) {
      if (rows > 2)
        EXPECT_EQ(schedule.microKernel.name(), "X86_AVX512_VNNI_6x32");
      EXPECT_EQ(schedule.slice[2], k);
      EXPECT_EQ(errorOf(schedule, integers), "");
      EXPECT_LE(schedule.slice[0] * schedule.slice[2], maxPackedInput);
    }
  }
}

/// Where a thread has too few columns, one row takes the panels that it has.
TEST(Schedule, UntunedIntegersReadAsManyPanelsAsThreadsHave) {
  const Target target = *getTarget("x86-64-avx512-vnni");
  for (auto [n, columns] : {std::pair(128, 64), {64, 32}, {256, 128}}) {
    const MatmulShape integers{.n = n,
                               .k = 64,
                               .storage = *StorageFormat::parse("int8-g32-f16"),
                               .roundsInput = true};
    EXPECT_EQ(
        chooseByRule(integers, target, 2)->front().schedule.microKernel.columns,
        columns);
  }
}

/// One strip of 4 bits prefetches what it reads itself, and strips share the
/// next panel where two of them fit beside the input, on CPUs that gain by it;
/// tiles read more rows ahead of themselves.
TEST(Schedule, UntunedIntegersArePrefetched) {
  using Lines = std::vector<std::pair<int64_t, int64_t>>;
  const auto linesOf = [](const char *target, const char *storage, int64_t k) {
    const MatmulShape integers{.n = 4096,
                               .k = k,
                               .storage = *StorageFormat::parse(storage),
                               .roundsInput = true};
    Result<ScheduleTable> table = chooseByRule(integers, *getTarget(target), 2);
    EXPECT_TRUE(table);
    Lines lines;
    for (const auto &[rows, schedule] : *table) {
      EXPECT_EQ(errorOf(schedule, integers), "");
      lines.emplace_back(rows, schedule.prefetchLines);
      // What is copied is prefetched whole.
      const bool copies = schedule.groupK > 0;
      EXPECT_EQ(schedule.prefetchDistance > 0,
                schedule.prefetchLines > 0 && !copies);
      if (schedule.prefetchLines > 0 && rows > 6 &&
          !hasTiles(schedule.microKernel.isa)) {
        EXPECT_EQ(schedule.prefetchDistance,
                  copies ? 0 : weightBytes(integers.storage, 32, k));
        EXPECT_EQ(schedule.prefetchHint, PrefetchHint::L2);
      }
    }
    return lines;
  };
  EXPECT_EQ(linesOf("x86-64-avx512-vnni", "int4-g32-f16", 2048),
            (Lines{{1, 16}, {2, 8}, {6, 4}, {48, 2}, {INT64_MAX, 1}}));
  EXPECT_EQ(linesOf("x86-64-avx512-vnni", "int8-g32-f16", 2048),
            (Lines{{1, 0}, {2, 0}, {6, 0}, {12, 4}, {48, 3}, {INT64_MAX, 1}}));
  EXPECT_EQ(linesOf("x86-64-avx512-vnni", "int8-g32-f16", 16384),
            (Lines{{1, 0}, {2, 0}, {6, 0}, {INT64_MAX, 0}}));
  EXPECT_EQ(linesOf("x86-64-amx", "int8-g32-f16", 2048),
            (Lines{{1, 32},
                   {2, 16},
                   {16, 16},
                   {32, 8},
                   {64, 1},
                   {96, 1},
                   {INT64_MAX, 1}}));
  Lines lines = linesOf("x86-64-amx", "int4-g32-f16", 2048);
  lines.resize(4);
  EXPECT_EQ(lines, (Lines{{1, 16}, {2, 8}, {6, 4}, {16, 2}}));
  EXPECT_EQ(linesOf("x86-64-avx512-bf16", "int4-g32-f16", 2048),
            (Lines{{1, 0}, {2, 0}, {6, 0}, {48, 0}, {INT64_MAX, 1}}));
}

/// The rows up to which the untuned rule widens `shape` for `target`.
int64_t rowsWidened(const MatmulShape &shape, const char *target) {
  Result<ScheduleTable> table = chooseByRule(shape, *getTarget(target), 2);
  if (!table)
    return -1;
  int64_t rows = 0;
  for (const ScheduleTableEntry &entry : *table) {
    EXPECT_EQ(errorOf(entry.schedule, shape), "");
    if (!widensGroups(entry.schedule, shape))
      break;
    rows = entry.maxRows;
  }
  return rows;
}

TEST(Schedule, UntunedFloatsWidenIntegersOfFewRows) {
  const auto shapeOf = [](const char *storage) -> MatmulShape {
    return {.n = 2048, .k = 2048, .storage = *StorageFormat::parse(storage)};
  };
  EXPECT_EQ(rowsWidened(shapeOf("int4-g32-f16"), "x86-64-amx"), 2);
  for (const char *target : {"x86-64-avx512", "x86-64-avx512-bf16"}) {
    EXPECT_EQ(rowsWidened(shapeOf("int4-g32-f16"), target), 16) << target;
    EXPECT_EQ(rowsWidened(shapeOf("int8-g32-f16"), target), 8) << target;
    EXPECT_EQ(rowsWidened(shapeOf("int8-row-f32"), target), 8) << target;
    EXPECT_EQ(rowsWidened(shapeOf("int8-row-f32-minimum"), target), 0)
        << target;
    EXPECT_EQ(rowsWidened(shapeOf("fp8-row-f32"), target), 8) << target;
  }
  EXPECT_EQ(rowsWidened(shapeOf("int4-g32-f16"), "x86-64-avx2"), 4);
  EXPECT_EQ(rowsWidened(shapeOf("int4-g32-f16-minimum"), "x86-64-avx2"), 2);
  EXPECT_EQ(rowsWidened(shapeOf("int4-g32-f16"), "aarch64-neon"), 2);
  EXPECT_EQ(rowsWidened(shapeOf("int4-g32-f16"), "aarch64-sve"), 0);
  MatmulShape deterministic = shapeOf("int4-g32-f16");
  deterministic.deterministic = true;
  EXPECT_EQ(rowsWidened(deterministic, "x86-64-avx512"), 0);
}

TEST(Schedule, WidensOnlyWholeGroupsThatOneStripReads) {
  const MatmulShape shape{
      .n = 64, .k = 256, .storage = *StorageFormat::parse("int4-g64-f16")};
  const Schedule schedule{.microKernel = {MatrixISA::X86_AVX512_F32, 4, 32},
                          .slice = {4, 32, 128}};
  EXPECT_TRUE(widensGroups(schedule, shape));
  auto without = [&](auto change) {
    Schedule changed = schedule;
    change(changed);
    return widensGroups(changed, shape);
  };
  EXPECT_FALSE(without([](Schedule &each) { each.slice[0] = 5; }));
  EXPECT_FALSE(without([](Schedule &each) { each.slice[2] = 32; }));
  EXPECT_FALSE(without([](Schedule &each) { each.chunkK = 32; }));
  EXPECT_FALSE(without([](Schedule &each) { each.packsInput = true; }));
  EXPECT_FALSE(without([](Schedule &each) { each.microKernel.columns = 16; }));
  EXPECT_FALSE(without(
      [](Schedule &each) { each.microKernel.rows = each.slice[0] = 9; }));
}

/// Pairs of rows are multiplied as matrices, a single one is not, with whatever
/// columns there are.
TEST(Schedule, UntunedIntegersOfOneRowAreDotProducts) {
  for (const char *name :
       {"aarch64-neon-i8mm", "aarch64-neon-bf16", "aarch64-sve-bf16"})
    for (const auto &[n, single] : {std::pair{4096, "ARM_NEON_DOTPROD_1x32"},
                                    std::pair{32, "ARM_NEON_DOTPROD_1x16"}})
      for (bool deterministic : {false, true}) {
        const MatmulShape integers{.n = n,
                                   .k = 2048,
                                   .storage =
                                       *StorageFormat::parse("int4-g32-f16"),
                                   .roundsInput = true,
                                   .deterministic = deterministic};
        Result<ScheduleTable> table =
            chooseByRule(integers, *getTarget(name), 2);
        ASSERT_TRUE(table) << table.error().message;
        ASSERT_EQ(table->size(), 3u);
        EXPECT_EQ(table->front().maxRows, 1);
        EXPECT_EQ(table->front().schedule.microKernel.name(), single);
        EXPECT_EQ((*table)[1].maxRows, 8);
        for (const auto &[rows, schedule] : *table) {
          EXPECT_EQ(errorOf(schedule, integers), "");
          if (rows > 1) {
            EXPECT_EQ(schedule.microKernel.name(), "ARM_NEON_I8MM_8x16");
          }
        }
      }
}

/// Beside tiles integers are for few rows, but where results must not depend on
/// the rows, or tiles do not take the groups.
TEST(Schedule, UntunedIntegersLeaveManyRowsToTiles) {
  const Target target = *getTarget("x86-64-amx");
  MatmulShape integers{.n = 4096,
                       .k = 2048,
                       .storage = *StorageFormat::parse("int4-g32-f16"),
                       .roundsInput = true};
  const auto instructions = [&] {
    std::vector<std::pair<int64_t, MatrixISA>> result;
    Result<ScheduleTable> table = chooseByRule(integers, target, 2);
    EXPECT_TRUE(table);
    for (const auto &[rows, schedule] : *table) {
      EXPECT_EQ(errorOf(schedule, integers), "");
      result.emplace_back(rows, schedule.microKernel.isa);
    }
    return result;
  };
  using enum MatrixISA;
  using Expected = std::vector<std::pair<int64_t, MatrixISA>>;
  const Expected onlyIntegers = {{1, X86_AVX512_VNNI},
                                 {2, X86_AVX512_VNNI},
                                 {6, X86_AVX512_VNNI},
                                 {48, X86_AVX512_VNNI},
                                 {INT64_MAX, X86_AVX512_VNNI}};
  EXPECT_EQ(instructions(), (Expected{{1, X86_AVX512_VNNI},
                                      {2, X86_AVX512_VNNI},
                                      {6, X86_AVX512_VNNI},
                                      {16, X86_AVX512_VNNI},
                                      {32, X86_AMX_INT8},
                                      {INT64_MAX, X86_AMX_INT8}}));
  integers.deterministic = true;
  EXPECT_EQ(instructions(), onlyIntegers);
  integers.deterministic = false;
  // A long K as well, of which wide strips would hold no copy.
  integers.k = 14336;
  const auto longK = instructions();
  EXPECT_EQ(longK.back().second, X86_AMX_INT8);
  integers.k = 2048;
  // Where no long groups divide K, as bf16; of 8 bits, which tiles of integers
  // multiply as they are stored, from more rows on, but not where results must
  // not depend on the rows.
  integers.k = 2080;
  const Expected unpacked = {{1, X86_AVX512_VNNI}, {2, X86_AVX512_VNNI},
                             {6, X86_AVX512_VNNI}, {16, X86_AVX512_VNNI},
                             {32, X86_AMX_BF16},   {64, X86_AMX_BF16},
                             {96, X86_AMX_BF16},   {INT64_MAX, X86_AMX_BF16}};
  EXPECT_EQ(instructions(), unpacked);
  integers.storage = *StorageFormat::parse("int8-g32-f16");
  EXPECT_EQ(instructions(), (Expected{{1, X86_AVX512_VNNI},
                                      {2, X86_AVX512_VNNI},
                                      {16, X86_AMX_INT8},
                                      {32, X86_AMX_INT8},
                                      {64, X86_AMX_BF16},
                                      {96, X86_AMX_BF16},
                                      {INT64_MAX, X86_AMX_BF16}}));
  integers.deterministic = true;
  EXPECT_EQ(instructions(), (Expected{{1, X86_AVX512_VNNI},
                                      {2, X86_AVX512_VNNI},
                                      {16, X86_AMX_INT8},
                                      {32, X86_AMX_INT8},
                                      {64, X86_AMX_INT8},
                                      {INT64_MAX, X86_AMX_INT8}}));
  integers.deterministic = false;
  // Half of a tile's rows multiply as fast as bf16, and sums are scaled
  // besides.
  integers.storage = *StorageFormat::parse("int8-g160-f16");
  EXPECT_EQ(instructions().back().second, X86_AMX_BF16);
  EXPECT_EQ(mostRowsOfIntegerTiles(integers), 160);
  // Nor tiles of bf16.
  integers.k = 2064;
  integers.storage = *StorageFormat::parse("int4-g16-f16");
  EXPECT_EQ(instructions(), onlyIntegers);
  // Long groups of 8 bits are multiplied as they are stored, with the same
  // bits.
  integers.k = 2048;
  integers.storage = *StorageFormat::parse("int8-g128-f16");
  integers.deterministic = true;
  const Expected tiles = instructions();
  EXPECT_EQ(tiles[1], std::pair(int64_t(2), X86_AVX512_VNNI));
  EXPECT_EQ(tiles[2], std::pair(int64_t(16), X86_AMX_INT8));
  EXPECT_EQ(tiles.back().second, X86_AMX_INT8);
}

TEST(Schedule, CopiesAheadForTilesOfBF16) {
  const MatmulShape shape{
      .n = 4096, .k = 5504, .storage = *StorageFormat::parse("int8-g32-f16")};
  Result<ScheduleTable> table =
      chooseByRule(shape, *getTarget("x86-64-amx"), 2);
  ASSERT_TRUE(table);
  const Schedule many = table->back().schedule;
  EXPECT_TRUE(many.copiesAhead);
  EXPECT_EQ(errorOf(many, shape), "");
  auto isFine = [&](auto change) {
    Schedule changed = many;
    change(changed);
    return errorOf(changed, shape).empty();
  };
  EXPECT_TRUE(isFine([](Schedule &each) { each.chunkK = 96; }));
  EXPECT_FALSE(isFine([](Schedule &each) { each.slice[2] = 512; }));
  EXPECT_FALSE(isFine([](Schedule &each) { each.threads = {1, 1, 2}; }));
  EXPECT_TRUE(isFine(
      [](Schedule &each) { each.prefetchLines = each.prefetchDistance = 0; }));
  EXPECT_FALSE(isFine([](Schedule &each) { each.prefetchLines = 2; }));
  EXPECT_FALSE(isFine([](Schedule &each) { each.prefetchDistance = 0; }));
  EXPECT_FALSE(isFine([](Schedule &each) {
    each.microKernel = {MatrixISA::X86_AMX_BF16, 16, 64};
    each.slice[1] = 64;
  }));
  EXPECT_FALSE(isFine([](Schedule &each) {
    each.microKernel = {MatrixISA::X86_AVX512_BF16, 6, 32};
    each.streamed = StreamedOperands::None;
  }));
  // 10 chunks of 512 k, and one of 384.
  EXPECT_EQ(many.chunkK, 512);
  EXPECT_EQ(stepsOfAheadRound(many, shape.k, 1), 1);
  EXPECT_EQ(stepsOfAheadRound(many, shape.k, 3), 2);
  EXPECT_EQ(stepsOfAheadRound(many, shape.k, 8), 4);
  EXPECT_EQ(stepsOfAheadRound(many, 2048, 8), 8);
  // Copies that are made before stay for other rows, by columns.
  Schedule byColumns = many;
  byColumns.order = LoopOrder::ColumnsOuter;
  EXPECT_FALSE(completeByRule(byColumns, shape, 512).copiesAhead);
  EXPECT_TRUE(completeByRule(many, shape, 512).copiesAhead);
}

TEST(Schedule, LoopOrdersHaveNames) {
  for (LoopOrder order : {LoopOrder::RowsOuter, LoopOrder::ColumnsOuter})
    EXPECT_EQ(loopOrderNamed(name(order)), order);
  EXPECT_EQ(loopOrderNamed("sideways"), std::nullopt);
}

TEST(Schedule, HintsAndStoresHaveNames) {
  for (PrefetchHint hint :
       {PrefetchHint::L1, PrefetchHint::L2, PrefetchHint::NonTemporal})
    EXPECT_EQ(prefetchHintNamed(name(hint)), hint);
  EXPECT_EQ(prefetchHintNamed("l3"), std::nullopt);
  for (StoreKind stores : {StoreKind::Cached, StoreKind::NonTemporal})
    EXPECT_EQ(storeKindNamed(name(stores)), stores);
  EXPECT_EQ(storeKindNamed("l1"), std::nullopt);
}

/// All strips of a block together prefetch all of the next slice.
TEST(Schedule, PrefetchCoversTheNextSlice) {
  for (const MicroKernel &kernel :
       {MicroKernel{MatrixISA::X86_AVX512_BF16, 12, 32},
        MicroKernel{MatrixISA::X86_AVX512_BF16, 20, 16},
        MicroKernel{MatrixISA::X86_AVX512_BF16, 6, 64}})
    for (int64_t rows = 1; rows < 300; ++rows) {
      Schedule schedule = makeSchedule();
      schedule.microKernel = kernel;
      schedule = completeByRule(schedule, shape, rows);
      int64_t strips = (rows + kernel.rows - 1) / kernel.rows;
      int64_t width = std::max<int64_t>(32, kernel.columns);
      int64_t calls = strips * width / kernel.columns;
      int64_t lines = 4 * 2 * width * 2 / 64;
      if (strips == 1) {
        EXPECT_EQ(schedule.prefetchDistance, 8192);
        EXPECT_EQ(schedule.prefetchLines, lines);
        continue;
      }
      EXPECT_EQ(schedule.prefetchDistance, 0);
      EXPECT_GE(schedule.prefetchLines * calls, lines);
      EXPECT_LT((schedule.prefetchLines - 1) * calls, lines);
    }
}

TEST(Schedule, UntunedRuleIsAsDocumented) {
  Target target = *getTarget("x86-64-avx512-bf16");
  target.l1DataBytes = 48 << 10;
  target.l2Bytes = 1 << 20;
  Result<ScheduleTable> table = chooseByRule(shape, target, 2);
  ASSERT_TRUE(table);
  ASSERT_EQ(table->size(), 5u);
  const int64_t maxRows[] = {12, 24, 48, 96, INT64_MAX};
  const int64_t lines[] = {8, 4, 3, 2, 1};
  for (size_t i = 0; i < 5; ++i) {
    const auto &[rows, schedule] = (*table)[i];
    EXPECT_EQ(rows, maxRows[i]);
    EXPECT_EQ(schedule.prefetchLines, lines[i]);
    EXPECT_EQ(schedule.prefetchDistance, i == 0 ? 8192 : 0);
    EXPECT_EQ(schedule.slice[0], i == 0 ? 12 : 192);
    EXPECT_EQ(schedule.slice[2], i == 0 ? 2048 : 1024);
    EXPECT_TRUE(verify(schedule, shape));
  }
}

TEST(Schedule, UntunedSlicesOfAVX2AreAQuarterOfL2) {
  Target target = *getTarget("x86-64-avx2");
  target.l1DataBytes = 32 << 10;
  target.l2Bytes = 512 << 10;
  Result<ScheduleTable> table = chooseByRule({.n = 1024, .k = 4096}, target, 2);
  ASSERT_TRUE(table);
  const Schedule &schedule = table->back().schedule;
  // 32 columns of f32.
  EXPECT_EQ(schedule.slice[2], (512 << 10) / 4 / (32 * 4));
}

/// One or two rows on AVX2 read three panels side by side where nearly all
/// columns of a thread are in such calls.
TEST(Schedule, UntunedFewRowsOfAVX2) {
  const Target target = *getTarget("x86-64-avx2");
  struct Case {
    int64_t n, columnUnit, threads;
    bool wide;
  };
  for (const auto &[n, columnUnit, threads, wide] :
       {Case{6144, 1, 2, true}, Case{2048, 1, 2, true}, Case{256, 1, 2, false},
        Case{256, 1, 1, true}, Case{8, 1, 1, false}, Case{32, 1, 2, false},
        Case{48, 1, 1, true}, Case{64, 1, 1, false}, Case{2048, 1, 64, false},
        Case{1536, 128, 2, true}, Case{1536, 128, 8, true}}) {
    const MatmulShape few{.n = n, .k = 4096, .columnUnit = columnUnit};
    Result<ScheduleTable> table = chooseByRule(few, target, threads);
    ASSERT_TRUE(table);
    const auto &[maxRows, schedule] = table->front();
    const MicroKernel kernel = schedule.microKernel;
    EXPECT_EQ(kernel, wide ? MicroKernel({MatrixISA::X86_AVX2_F32, 2, 48})
                           : MicroKernel({MatrixISA::X86_AVX2_F32, 6, 16}))
        << n << " columns, " << threads << " threads";
    EXPECT_EQ(maxRows, kernel.rows);
    EXPECT_EQ(schedule.prefetchLines, wide ? 0 : 4);
    EXPECT_EQ(schedule.slice[1] % columnUnit, 0);
    EXPECT_EQ(schedule.slice[2], few.k);
    EXPECT_TRUE(verify(schedule, few));
    const Schedule &more = scheduleFor(*table, 3);
    EXPECT_EQ(more.microKernel, MicroKernel({MatrixISA::X86_AVX2_F32, 6, 16}));
    EXPECT_EQ(more.slice[1] % columnUnit, 0);
  }
}

/// What is packed has its place, however long K is and however large L2.
TEST(Schedule, UntunedRulePacksWhatFits) {
  for (const char *name : {"aarch64-neon", "aarch64-sve-bf16"})
    for (int64_t k : {2048, 43712, 53248, 200000})
      for (int64_t l2 : {1 << 20, 16 << 20}) {
        Target target = *getTarget(name);
        target.l2Bytes = l2;
        const MatmulShape shape{
            .n = 4096, .k = k, .storage = StorageFormat::bf16()};
        Result<ScheduleTable> table = chooseByRule(shape, target, 2);
        ASSERT_TRUE(table) << table.error().message;
        for (const auto &[maxRows, schedule] : *table) {
          EXPECT_EQ(errorOf(schedule, shape), "");
          if (schedule.packsInput) {
            EXPECT_LE(schedule.slice[0] * schedule.slice[2], maxPackedInput);
          }
        }
      }
}

/// On ARM more rows than a strip of the widest has read packed input, packed
/// once for all columns, and NEON widens bf16 for 12 rows of 8 columns.
TEST(Schedule, UntunedRulePacksInputOfManyRowsOnARM) {
  struct Case {
    const char *target;
    StorageFormat storage;
    MicroKernel few, many;
  };
  using enum MatrixISA;
  for (const auto &[target, storage, few, many] :
       {Case{"aarch64-neon",
             StorageFormat::f32(),
             {ARM_NEON_F32, 6, 16},
             {ARM_NEON_F32, 6, 16}},
        Case{"aarch64-neon",
             StorageFormat::bf16(),
             {ARM_NEON_F32, 6, 16},
             {ARM_NEON_F32, 12, 8}},
        Case{"aarch64-neon-bf16",
             StorageFormat::bf16(),
             {ARM_NEON_BF16, 6, 16},
             {ARM_NEON_BF16, 6, 16}},
        Case{"aarch64-sve",
             StorageFormat::f32(),
             {ARM_SVE_F32, 12, 32},
             {ARM_SVE_F32, 12, 32}},
        Case{"aarch64-sve-bf16",
             StorageFormat::bf16(),
             {ARM_SVE_BF16, 12, 32},
             {ARM_SVE_BF16, 12, 32}}}) {
    SCOPED_TRACE(target);
    // SVE reads an element of a row into every lane.
    const bool packs = few.isa != ARM_SVE_F32;
    const MatmulShape wide{.n = 4096,
                           .k = 4096,
                           .columnUnit = 1,
                           .storage = storage,
                           .packing = {}};
    Result<ScheduleTable> table = chooseByRule(wide, *getTarget(target), 4);
    ASSERT_TRUE(table) << table.error().message;
    for (const auto &[maxRows, schedule] : *table) {
      EXPECT_EQ(errorOf(schedule, wide), "");
      EXPECT_EQ(schedule.microKernel, maxRows <= few.rows ? few : many);
      EXPECT_EQ(schedule.packsInput, packs && maxRows > few.rows);
      // One strip takes all of K; slices of it are packed for many columns.
      if (maxRows <= many.rows)
        EXPECT_EQ(schedule.slice[2], wide.k);
      else
        EXPECT_TRUE(!packs || schedule.slice[2] == wide.k ||
                    schedule.slice[1] >= 512);
    }
    EXPECT_EQ(table->front().maxRows, few.rows);
    // Few columns are not worth it.
    table = chooseByRule(wide, *getTarget(target), 48);
    ASSERT_TRUE(table) << table.error().message;
    for (const auto &[maxRows, schedule] : *table)
      EXPECT_FALSE(schedule.packsInput);
  }
}

} // namespace
