//===- ThreadGrid.cpp - How a team shares a matmul -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace sandwich;

int64_t sandwich::columnUnitOf(const MatmulShape &shape,
                               const Packing &packing) {
  return std::lcm(packing.panel, std::max<int64_t>(shape.columnUnit, 1));
}

int64_t sandwich::kUnitOf(const MatmulShape &shape, const Packing &packing) {
  return std::lcm(std::max(packing.kStep, 4 * packing.kPack),
                  shape.storage.groupOf(shape.k));
}

std::array<int64_t, 3> sandwich::sliceTile(const MicroKernel &kernel,
                                           const Payload &payload) {
  Packing packing = packingFor(payload.shape, kernel.isa);
  int64_t line = 64 / (multipliesBF16(kernel.isa) ? 2 : 4);
  return {std::min(kernel.rows, payload.rows),
          std::lcm(columnUnitOf(payload.shape, packing), kernel.columns),
          std::min(std::lcm(kUnitOf(payload.shape, packing), line),
                   roundUp(payload.shape.k, packing.kStep))};
}

std::array<int64_t, 3>
sandwich::largestPart(const Payload &payload, const Packing &packing,
                      const std::array<int64_t, 3> &grid) {
  int64_t columnUnit = columnUnitOf(payload.shape, packing);
  int64_t kUnit = kUnitOf(payload.shape, packing);
  int64_t columnUnits = divideUp(payload.shape.n, columnUnit);
  int64_t kUnits = divideUp(payload.shape.k, kUnit);
  return {divideUp(payload.rows, grid[0]),
          std::min(divideUp(columnUnits, grid[1]) * columnUnit,
                   roundUp(payload.shape.n, packing.panel)),
          std::min(divideUp(kUnits, grid[2]) * kUnit, payload.shape.k)};
}

Division sandwich::divisionOf(const MatmulShape &shape, const Packing &packing,
                              const std::array<int64_t, 3> &grid,
                              int64_t columns) {
  return {.grid = grid,
          .columns = columns,
          .columnUnit = columnUnitOf(shape, packing),
          .k = shape.k,
          .kUnit = kUnitOf(shape, packing)};
}

ThreadPart sandwich::threadPart(const Payload &payload, const Packing &packing,
                                const std::array<int64_t, 3> &grid,
                                int64_t thread) {
  const MatmulShape &shape = payload.shape;
  return partOfThread(IntegerArithmetic(),
                      divisionOf(shape, packing, grid, shape.n), payload.rows,
                      thread);
}

Result<Schedule> sandwich::fitSlice(Schedule schedule, const MatmulShape &shape,
                                    int64_t columns, int64_t maxRows) {
  Packing packing = packingFor(shape, schedule.microKernel.isa);
  auto &[bM, bN, bK] = schedule.slice;
  int64_t unit =
      std::lcm(columnUnitOf(shape, packing), schedule.microKernel.columns);
  bN = std::min(bN, roundUp(roundUp(columns, packing.panel), unit));
  bK = std::min(bK, shape.k);
  if ((schedule.groupK > 0 ||
       unpacksWeights(schedule.microKernel.isa, shape.storage)) &&
      bN > maxUnpackedWeight / bK)
    return makeError("a slice of ", bN, " columns by ", bK,
                     " k has more than the ", maxUnpackedWeight,
                     " weights that can be unpacked");
  // Whole units, as many as may be.
  const int64_t rowUnit = rowUnitOf(schedule.microKernel.isa);
  auto mostRows = [&](int64_t elements, int64_t ofRow) {
    return elements / ofRow / rowUnit * rowUnit;
  };
  int64_t most = mostRows(maxBlockSums, bN);
  if (most == 0)
    return makeError("a slice of ", rowUnit, " x ", bN, " has more than ",
                     maxBlockSums, " sums");
  if (schedule.packsInput)
    most =
        std::min(most, mostRows(mostPackedInput(schedule.microKernel.isa), bK));
  if (most == 0)
    return makeError(rowUnit, " rows of ", bK, " k are more than the ",
                     mostPackedInput(schedule.microKernel.isa),
                     " elements that can be packed");
  bM = std::min(roundUp(std::min(bM, maxRows), rowUnit), most);
  return schedule;
}

bool sandwich::fitsMemory(const Payload &payload, const Schedule &schedule) {
  return bool(fitSlice(schedule, payload.shape, payload.shape.n, payload.rows));
}

bool sandwich::sliceFitsMemory(const MatmulShape &shape,
                               const Schedule &schedule) {
  const MatrixISA isa = schedule.microKernel.isa;
  const auto [bM, bN, bK] = schedule.slice;
  const int64_t rows = roundUp(bM, rowUnitOf(isa));
  return rows * bN <= maxBlockSums &&
         ((schedule.groupK == 0 && !unpacksWeights(isa, shape.storage)) ||
          bN * bK <= maxUnpackedWeight) &&
         (!schedule.packsInput || rows * bK <= mostPackedInput(isa));
}

std::vector<std::array<int64_t, 3>>
sandwich::threadGrids(const Payload &payload, const Packing &packing) {
  int64_t columnUnits =
      divideUp(payload.shape.n, columnUnitOf(payload.shape, packing));
  const bool sharesK = payload.splitK && !payload.shape.deterministic;
  int64_t kUnits =
      sharesK ? divideUp(payload.shape.k, kUnitOf(payload.shape, packing))
              : int64_t(1);
  for (int64_t team = payload.threads; team > 0; --team) {
    std::vector<std::array<int64_t, 3>> grids;
    for (int64_t tM = 1; tM <= std::min(team, payload.rows); ++tM) {
      if (team % tM != 0)
        continue;
      for (int64_t tN = 1; tN <= std::min(team / tM, columnUnits); ++tN)
        if (team / tM % tN == 0 && team / tM / tN <= kUnits)
          grids.push_back({tM, tN, team / tM / tN});
    }
    if (!grids.empty())
      return grids;
  }
  return {};
}

Schedule sandwich::reducedSchedule(const Payload &payload,
                                   const Schedule &schedule) {
  Schedule result = schedule;
  MicroKernel &kernel = result.microKernel;
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part = largestPart(payload, packing, result.threads);
  auto &[bM, bN, bK] = result.slice;
  int64_t columnStep =
      std::lcm(columnUnitOf(payload.shape, packing), kernel.columns);
  int64_t rowBlocks = divideUp(part[0], bM);
  int64_t columnBlocks = divideUp(part[1], bN);
  bN = std::min(bN, roundUp(part[1], columnStep));
  bK = std::min(bK, roundUp(part[2], packing.kStep));
  if (rowBlocks == 1 || columnBlocks == 1)
    result.order = LoopOrder::RowsOuter;

  // The blocks of the largest part and of those that are a row shorter.
  const int64_t unit = rowUnitOf(kernel.isa);
  int64_t strip = 1, largest = 1;
  for (int64_t partRows =
           std::max<int64_t>(payload.rows / result.threads[0], 1);
       partRows <= part[0]; ++partRows) {
    int64_t units = divideUp(partRows, unit);
    int64_t blocks = divideUp(units, divideUp(bM, unit));
    for (int64_t block : {units / blocks, divideUp(units, blocks)}) {
      strip = std::max(
          strip, divideUp(block, divideUp(block, divideUp(kernel.rows, unit))));
      largest = std::max(largest, block);
    }
  }
  kernel.rows = strip * unit;
  bM = largest * unit;
  if (result.prefetchLines == 0) {
    result.prefetchDistance = 0;
    result.prefetchHint = PrefetchHint::L1;
  }
  if (result.prefetchLines == 0 || result.prefetchDistance > 0)
    result.prefetchStreams = 1;
  if (result.chunkK >= bK)
    result.chunkK = 0;
  return result;
}

std::vector<std::vector<MicroKernel>>
sandwich::microKernelClasses(const Payload &payload,
                             const std::vector<MicroKernel> &menu) {
  std::map<std::vector<int64_t>, std::vector<MicroKernel>> classes;
  std::map<MatrixISA, std::set<int64_t>> rowParts;
  for (const MicroKernel &kernel : menu) {
    Packing packing = packingFor(payload.shape, kernel.isa);
    if (!reads(kernel, packing, payload.shape.storage) ||
        !multiplies(kernel.isa, payload.shape.storage) ||
        payload.shape.k % packingOf(kernel.isa).kStep != 0 ||
        !sliceFitsMemory(payload.shape,
                         completeByRule({.microKernel = kernel,
                                         .slice = sliceTile(kernel, payload)},
                                        payload.shape, 1)))
      continue;
    std::set<int64_t> &parts = rowParts[kernel.isa];
    if (parts.empty())
      for (const auto &grid : threadGrids(payload, packing)) {
        parts.insert(payload.rows / grid[0]);
        parts.insert(divideUp(payload.rows, grid[0]));
      }
    std::vector<int64_t> key = {static_cast<int64_t>(kernel.isa),
                                kernel.columns};
    const int64_t unit = rowUnitOf(kernel.isa);
    for (int64_t rows : parts) {
      int64_t units = divideUp(rows, unit);
      key.push_back(divideUp(units, divideUp(units, kernel.rows / unit)));
    }
    classes[key].push_back(kernel);
  }
  std::vector<std::vector<MicroKernel>> result;
  for (auto &[key, members] : classes) {
    std::ranges::stable_sort(members, {}, &MicroKernel::rows);
    result.push_back(std::move(members));
  }
  return result;
}
