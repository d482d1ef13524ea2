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
  case MatrixISA::ARM_NEON_F32:
  case MatrixISA::ARM_NEON_BF16:
    return {isa, 6, 16};
  }
  __builtin_unreachable();
}

/// K in equal parts. Tiles want a slice of the weight's panel in two thirds of
/// L1, beside the rows of the input and sums in use. Vectors multiply slowly
/// enough to read it from L2, and the fewer slices there are, the less often
/// sums come and go. A sixteenth of L2 was fastest on AVX-512 (NEON was not
/// measured), a quarter on AVX2, though more of the input then comes from L3.
int64_t chooseSliceK(const MatmulShape &shape, const Packing &packing,
                     MatrixISA isa, const Target &target) {
  int64_t bytesPerK = packing.panel * (shape.bf16Weights ? 2 : 4);
  int64_t step = std::max(packing.kStep, 4 * packing.kPack);
  int64_t sliceBytes = target.l1DataBytes * 2 / 3;
  if (isa != MatrixISA::X86_AMX_BF16)
    sliceBytes = std::max(
        sliceBytes, target.l2Bytes / (isa == MatrixISA::X86_AVX2_F32 ? 4 : 16));
  int64_t largest = std::max(sliceBytes / bytesPerK, step);
  int64_t parts = divideUp(shape.k, largest);
  return divideUp(divideUp(shape.k, parts), step) * step;
}

} // namespace

Result<ScheduleTable> sandwich::chooseByRule(const MatmulShape &shape,
                                             const Target &target,
                                             int64_t threads) {
  const MatrixISA *chosen = nullptr;
  for (const MatrixISA &isa : target.matrixISAs) {
    Packing packing = packingOf(isa);
    bool fits = !multipliesBF16(isa) || shape.bf16Weights;
    if (fits && shape.k % packing.kStep == 0)
      chosen = &isa;
  }
  if (!chosen)
    return makeError("no matrix instructions of ", target.name,
                     " multiply a weight of ", shape.n, " x ", shape.k);

  MicroKernel kernel = widestMicroKernel(*chosen);
  Packing packing = packingOf(*chosen);
  bool isTiles = *chosen == MatrixISA::X86_AMX_BF16;

  // Threads split columns only: every thread then streams its own part of the
  // weight and nothing is summed across threads.
  Schedule schedule{.microKernel = kernel, .threads = {1, threads, 1}};
  schedule.slice[1] = std::lcm(packing.panel, shape.columnUnit);

  // The calls of a narrow micro-kernel for each panel.
  int64_t parts = divideUp(packing.panel, kernel.columns);
  int64_t sliceK = chooseSliceK(shape, packing, *chosen, target);

  ScheduleTable table;
  auto serve = [&](int64_t minRows, int64_t maxRows) {
    schedule = completePrefetch(schedule, shape, minRows);
    if (!table.empty() && table.back().schedule == schedule)
      table.back().maxRows = maxRows;
    else
      table.push_back({maxRows, schedule});
  };
  // One strip of rows streams the weight once with nothing to wait for but
  // memory, so it takes all of K.
  schedule.slice[0] = kernel.rows;
  schedule.slice[2] = parts == 1 ? shape.k : sliceK;
  serve(1, kernel.rows);

  // More strips reuse the slice. The fewest strips of a range must still
  // prefetch all of the next one. Blocks of rows keep most of their input in
  // L2, and the halves of a block that is just too large still have strips
  // enough to prefetch with. Tiles multiply faster than a weight is read again.
  schedule.slice[0] = isTiles ? 512 : 192;
  schedule.slice[2] = sliceK;
  int64_t fewerRows = kernel.rows;
  for (int64_t mostStrips : {2, 4, 8}) {
    serve(fewerRows + 1, kernel.rows * mostStrips);
    fewerRows = kernel.rows * mostStrips;
  }
  serve(fewerRows + 1, INT64_MAX);
  return table;
}
