//===- DefaultSchedule.cpp - The untuned schedule rule --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Support/CheckedMath.h"

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

/// K in equal parts that let a slice of the weight's panel stay in two thirds
/// of L1, beside the rows of the input and sums in use.
int64_t chooseSliceK(int64_t k, int64_t bytesPerK, const Packing &packing,
                     const Target &target) {
  int64_t step = std::max(packing.kStep, 4 * packing.kPack);
  int64_t largest = std::max(target.l1DataBytes * 2 / 3 / bytesPerK, step);
  int64_t parts = divideUp(k, largest);
  return divideUp(divideUp(k, parts), step) * step;
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

  // The cache lines of the weight that four packed k steps read, and the calls
  // of a narrow micro-kernel for each panel.
  int64_t linesPerStep = 4 * bytesPerK * packing.kPack / cacheLineBytes;
  int64_t parts = divideUp(packing.panel, kernel.columns);
  int64_t sliceK = chooseSliceK(shape.k, bytesPerK, packing, target);

  ScheduleTable table;
  auto serve = [&](int64_t maxRows) {
    if (!table.empty() && table.back().schedule == schedule)
      table.back().maxRows = maxRows;
    else
      table.push_back({maxRows, schedule});
  };
  // One strip of rows streams the weight once with nothing to wait for but
  // memory, so it takes all of K and prefetches its own stream, two pages
  // ahead.
  schedule.slice[0] = kernel.rows;
  schedule.slice[2] = parts == 1 ? shape.k : sliceK;
  schedule.prefetchLines = linesPerStep;
  schedule.prefetchDistance = 8192;
  serve(kernel.rows);

  // More strips reuse the slice from L1, and share the work of prefetching the
  // next one. The fewest strips of a range must still prefetch all of it:
  // where a third of the lines is missing, so is a third of the speed.
  schedule.slice[0] = std::max<int64_t>(512, kernel.rows);
  schedule.slice[2] = sliceK;
  schedule.prefetchDistance = 0;
  int64_t fewestStrips = 2;
  for (int64_t mostStrips : {2, 4, 8}) {
    schedule.prefetchLines = divideUp(linesPerStep, fewestStrips * parts);
    serve(kernel.rows * mostStrips);
    fewestStrips = mostStrips + 1;
  }
  schedule.prefetchLines = divideUp(linesPerStep, fewestStrips * parts);
  serve(INT64_MAX);
  return table;
}
