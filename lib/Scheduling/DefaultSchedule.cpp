//===- DefaultSchedule.cpp - The untuned schedule rule --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Schedule.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

using namespace sandwich;

namespace {

/// The widest micro-kernel of each ISA that keeps its accumulators and one
/// panel of the weight in registers, and leaves enough independent
/// accumulators to hide the latency of its instructions.
MicroKernel widestMicroKernel(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
    return {isa, 6, 16};
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::X86_AVX512_BF16:
    return {isa, 12, 32};
  case MatrixISA::X86_AMX_BF16:
    return {isa, 32, 32};
  }
  __builtin_unreachable();
}

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// K in equal parts that let a weight slice of the panel stay in half of L1.
int64_t chooseSliceK(int64_t k, int64_t bytesPerK, int64_t kStep,
                     const Target &target) {
  int64_t largest = std::max(target.l1DataBytes / 2 / bytesPerK, kStep);
  int64_t parts = (k + largest - 1) / largest;
  return roundUp((k + parts - 1) / parts, std::max<int64_t>(kStep, 4));
}

} // namespace

Result<ScheduleTable> sandwich::chooseSchedules(const MatmulShape &shape,
                                                const Target &target,
                                                int64_t threads) {
  const MatrixISA *chosen = nullptr;
  for (const MatrixISA &isa : target.matrixISAs) {
    Packing packing = packingOf(isa);
    bool fits = packing.kPack == 1 || shape.bf16Weights;
    if (fits && shape.k % packing.kStep == 0)
      chosen = &isa;
  }
  if (!chosen)
    return makeError("no matrix instructions of ", target.name,
                     " multiply a weight of ", shape.n, " x ", shape.k);

  MicroKernel kernel = widestMicroKernel(*chosen);
  Packing packing = packingOf(*chosen);
  int64_t elementBytes = shape.bf16Weights ? 2 : 4;
  int64_t bytesPerK = packing.panel * elementBytes;

  // Threads split columns only: every thread then streams its own part of the
  // weight and nothing is summed across threads.
  Schedule schedule{.microKernel = kernel, .threads = {1, threads, 1}};
  schedule.slice[1] = std::lcm(packing.panel, shape.columnUnit);

  // The cache lines of the weight that four packed k steps read.
  int64_t linesPerStep = 4 * bytesPerK * packing.kPack / 64;

  ScheduleTable table;
  // One strip of rows streams the weight once with nothing to wait for but
  // memory, so it takes all of K and prefetches its own stream.
  int64_t oneStrip = kernel.rows;
  schedule.slice[0] = oneStrip;
  schedule.slice[2] = shape.k;
  schedule.prefetchLines = linesPerStep;
  schedule.prefetchDistance = 4096;
  table.push_back({oneStrip, schedule});

  // More strips reuse the slice from L1, and share the work of prefetching
  // the next one.
  schedule.slice[2] = chooseSliceK(shape.k, bytesPerK, packing.kStep, target);
  schedule.prefetchDistance = 0;
  for (int64_t strips = 2; strips <= 4; strips *= 2) {
    schedule.slice[0] = kernel.rows * strips;
    schedule.prefetchLines = std::max<int64_t>(linesPerStep / strips, 1);
    table.push_back({schedule.slice[0], schedule});
  }
  schedule.slice[0] = 512;
  schedule.prefetchLines = std::max<int64_t>(linesPerStep / 8, 1);
  table.push_back({INT64_MAX, schedule});
  return table;
}
