//===- ThreadGridTest.cpp - How a team shares a matmul -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace sandwich;

namespace {

constexpr MatrixISA isa = MatrixISA::X86_AVX512_BF16;

Payload makePayload(int64_t n, int64_t k, int64_t rows, int64_t threads,
                    int64_t columnUnit = 1) {
  return {{.n = n,
           .k = k,
           .columnUnit = columnUnit,
           .storage = StorageFormat::bf16(),
           .packing = packingOf(isa)},
          rows,
          threads};
}

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Sizes of `parts` contiguous parts of `size` in units, as even as possible.
std::vector<int64_t> partition(int64_t size, int64_t unit, int64_t parts) {
  int64_t units = divideUp(size, unit);
  std::vector<int64_t> sizes;
  int64_t begin = 0;
  for (int64_t part = 0; part < parts; ++part) {
    int64_t count = units / parts + (part < units % parts ? 1 : 0);
    int64_t end = std::min(begin + count * unit, size);
    sizes.push_back(end - begin);
    begin = end;
  }
  return sizes;
}

TEST(ThreadGrid, AllGridsOfTheTeam) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    Payload payload =
        makePayload(32 * (1 + random() % 20), 8 * (1 + random() % 20),
                    1 + random() % 20, 1 + random() % 24, 1 + random() % 2);
    const Packing &packing = *payload.shape.packing;
    int64_t columns =
        divideUp(payload.shape.n, columnUnitOf(payload.shape, packing));
    int64_t steps = divideUp(payload.shape.k, 8);
    std::set<std::array<int64_t, 3>> wanted;
    for (int64_t team = payload.threads; wanted.empty(); --team)
      for (int64_t m = 1; m <= payload.rows; ++m)
        for (int64_t n = 1; n <= columns; ++n)
          for (int64_t k = 1; k <= steps; ++k)
            if (m * n * k == team)
              wanted.insert({m, n, k});
    auto grids = threadGrids(payload, packing);
    EXPECT_EQ(std::set(grids.begin(), grids.end()), wanted);
    EXPECT_EQ(grids.size(), wanted.size());
  }
}

TEST(ThreadGrid, OneTokenOnTwoThreadsSplitsColumnsOrK) {
  Payload payload = makePayload(2048, 2048, 1, 2);
  EXPECT_EQ(threadGrids(payload, *payload.shape.packing),
            (std::vector<std::array<int64_t, 3>>{{1, 1, 2}, {1, 2, 1}}));
}

TEST(ThreadGrid, SumsAreNotSharedWithoutSplitKOrWhereDeterministic) {
  Payload deterministic = makePayload(2048, 2048, 4, 4);
  deterministic.shape.deterministic = true;
  Payload withoutSplitK = makePayload(2048, 2048, 4, 4);
  withoutSplitK.splitK = false;
  for (const Payload &payload : {deterministic, withoutSplitK})
    EXPECT_EQ(
        threadGrids(payload, *payload.shape.packing),
        (std::vector<std::array<int64_t, 3>>{{1, 4, 1}, {2, 2, 1}, {4, 1, 1}}));
}

TEST(ThreadGrid, LargestPartIsThatOfAnEvenPartition) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    Payload payload =
        makePayload(32 * (1 + random() % 50), 2 * (8 + random() % 100),
                    1 + random() % 100, 12, random() % 2 ? 1 : 64);
    const Packing &packing = *payload.shape.packing;
    for (const auto &grid : threadGrids(payload, packing)) {
      std::array<int64_t, 3> part = largestPart(payload, packing, grid);
      int64_t unit = columnUnitOf(payload.shape, packing);
      const int64_t sizes[] = {payload.rows, payload.shape.n, payload.shape.k};
      const int64_t units[] = {1, unit, 8};
      for (int d = 0; d < 3; ++d)
        EXPECT_EQ(part[d],
                  std::ranges::max(partition(sizes[d], units[d], grid[d])));
    }
  }
}

TEST(ThreadGrid, ReducedScheduleKeepsTheStrips) {
  Payload payload = makePayload(2048, 2048, 16, 2);
  auto reduced = [&](int64_t kernelRows, std::array<int64_t, 3> slice) {
    Schedule schedule{.microKernel = {isa, kernelRows, 32},
                      .slice = slice,
                      .threads = {1, 2, 1}};
    return reducedSchedule(payload, schedule);
  };
  // 8 to 14 rows all make 8 + 8 of 16.
  for (int64_t rows = 8; rows <= 14; ++rows)
    EXPECT_EQ(reduced(rows, {512, 32, 512}), reduced(8, {16, 32, 512}));
  EXPECT_NE(reduced(7, {16, 32, 512}), reduced(8, {16, 32, 512}));
  // Whole K is whole K however large the slice.
  EXPECT_EQ(reduced(8, {16, 32, 2048}), reduced(8, {16, 32, 1 << 20}));
  EXPECT_NE(reduced(8, {16, 32, 1024}), reduced(8, {16, 32, 2048}));
}

TEST(ThreadGrid, ReducedScheduleForgetsWhatChangesNothing) {
  Payload payload = makePayload(2048, 2048, 100, 1);
  Schedule schedule{.microKernel = {isa, 12, 32},
                    .slice = {100, 32, 512},
                    .threads = {1, 1, 1}};
  Schedule reduced = reducedSchedule(payload, schedule);
  Schedule same = schedule;
  same.order = LoopOrder::ColumnsOuter;
  same.prefetchDistance = 64;
  same.prefetchStreams = 8;
  EXPECT_EQ(reducedSchedule(payload, same), reduced);
  same.slice[0] = 50;
  EXPECT_EQ(reducedSchedule(payload, same).order, LoopOrder::ColumnsOuter);
}

/// Slices are cut to the memory for their sums and packed input, of tiles in
/// whole tiles.
TEST(ThreadGrid, SlicesFitMemory) {
  const MicroKernel tiles{MatrixISA::X86_AMX_BF16, 32, 32};
  auto fitted = [&](const Schedule &schedule, int64_t n, int64_t k,
                    int64_t rows) {
    MatmulShape shape{.n = n, .k = k, .storage = StorageFormat::bf16()};
    return fitSlice(schedule, shape, n, rows);
  };
  Schedule schedule{.microKernel = tiles, .slice = {512, 32, 2048}};
  EXPECT_EQ(fitted(schedule, 4096, 2048, 100)->slice[0], 112);
  EXPECT_EQ(fitted(schedule, 4096, 2048, 1)->slice[0], 16);
  schedule.slice = {4096, 2048, 2048};
  EXPECT_EQ(fitted(schedule, 4096, 2048, 4096)->slice[0], 128);
  schedule.packsInput = true;
  schedule.slice = {4096, 32, 8192};
  EXPECT_EQ(fitted(schedule, 4096, 8192, 4096)->slice[0], 64);

  schedule.slice = {16, 32, 1 << 20};
  Result<Schedule> tooLong = fitted(schedule, 4096, 57344, 16);
  ASSERT_FALSE(tooLong);
  EXPECT_EQ(tooLong.error().message, "16 rows of 57344 k are more than the "
                                     "524288 elements that can be packed");
  schedule.packsInput = false;
  schedule.slice = {16, 1 << 15, 2048};
  Result<Schedule> tooWide = fitted(schedule, 1 << 15, 2048, 16);
  ASSERT_FALSE(tooWide);
  EXPECT_EQ(tooWide.error().message,
            "a slice of 16 x 32768 has more than 262144 sums");
}

/// Members of a class make the same strips of every part; those of different
/// classes differ.
TEST(ThreadGrid, ClassesAreWhatBehavesTheSame) {
  std::vector<MicroKernel> menu = microKernelMenu(isa);
  for (int64_t rows : {1, 7, 13, 16, 40, 129}) {
    Payload payload = makePayload(2048, 2048, rows, 2);
    auto classes = microKernelClasses(payload, menu);
    auto strips = [&](const MicroKernel &kernel) {
      std::vector<int64_t> sizes = {kernel.columns};
      for (const auto &grid : threadGrids(payload, *payload.shape.packing))
        for (int64_t part : partition(rows, 1, grid[0]))
          for (int64_t strip : partition(part, 1, divideUp(part, kernel.rows)))
            sizes.push_back(strip);
      return sizes;
    };
    std::set<std::vector<int64_t>> seen;
    size_t members = 0;
    for (const auto &kernels : classes) {
      EXPECT_TRUE(seen.insert(strips(kernels.front())).second);
      for (const MicroKernel &kernel : kernels) {
        EXPECT_EQ(strips(kernel), strips(kernels.front()));
        EXPECT_LE(kernel.rows, kernels.back().rows);
      }
      members += kernels.size();
    }
    EXPECT_EQ(members, static_cast<size_t>(std::ranges::count_if(
                           menu, [&](const MicroKernel &kernel) {
                             return reads(kernel, *payload.shape.packing);
                           })));
  }
}

} // namespace

// The parts of a team cover each row, column and k together exactly once.
TEST(ThreadGrid, PartsCoverTheMatmul) {
  Packing packing = packingOf(MatrixISA::X86_AVX512_BF16);
  for (int64_t rows : {1, 2, 7, 16})
    for (int64_t n : {32, 70, 224})
      for (std::array<int64_t, 3> grid : {std::array<int64_t, 3>{1, 1, 1},
                                          {3, 1, 1},
                                          {1, 2, 1},
                                          {1, 1, 3},
                                          {2, 2, 2},
                                          {5, 1, 2}}) {
        Payload payload{
            {.n = n, .k = 50, .storage = StorageFormat::bf16()}, rows, 12};
        std::vector<int> covered(rows * n * payload.shape.k);
        std::array<int64_t, 3> largest = largestPart(payload, packing, grid);
        for (int64_t thread = 0; thread < payload.threads; ++thread) {
          ThreadPart part = threadPart(payload, packing, grid, thread);
          EXPECT_LT(part.partOfK, grid[2]);
          EXPECT_LE(part.rowEnd - part.rowBegin, largest[0]);
          EXPECT_LE(part.columnEnd - part.columnBegin, largest[1]);
          EXPECT_LE(part.kEnd - part.kBegin, largest[2]);
          for (int64_t row = part.rowBegin; row < part.rowEnd; ++row)
            for (int64_t c = part.columnBegin; c < part.columnEnd; ++c)
              for (int64_t k = part.kBegin; k < part.kEnd; ++k)
                ++covered[(row * n + c) * payload.shape.k + k];
        }
        EXPECT_TRUE(
            std::ranges::all_of(covered, [](int times) { return times == 1; }))
            << rows << " rows, " << n << " columns, grid " << grid[0] << " x "
            << grid[1] << " x " << grid[2];
      }
}
