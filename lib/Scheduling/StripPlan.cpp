//===- StripPlan.cpp - What the calls of a nest do ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace sandwich;

int64_t sandwich::loopStep(MatrixISA isa) {
  // Four packed steps hide the loop's own instructions.
  Packing packing = packingOf(isa);
  return std::max(packing.kStep, 4 * packing.kPack);
}

PrefetchPlan sandwich::planPrefetch(const Schedule &schedule,
                                    const Packing &packing, int64_t width,
                                    const StorageFormat &storage) {
  if (schedule.prefetchLines == 0)
    return {};
  const bool inGroups = storage.isQuantized();
  int64_t step = inGroups ? smallestGroup : loopStep(schedule.microKernel.isa);
  int64_t lines = schedule.prefetchLines * (step / (4 * packing.kPack));
  int64_t panelLines = std::max<int64_t>(
      step * packing.panel * storage.bits() / 8 / cacheLineBytes, 1);
  int64_t panels = std::max<int64_t>(width / packing.panel, 1);
  PrefetchPlan plan;
  if (inGroups) {
    // Each panel ahead of itself.
    plan.panels = panels;
    plan.lines = std::min(divideUp(lines, panels), panelLines);
    plan.shares = plan.sharesOfPanel = divideUp(panelLines, plan.lines);
    return plan;
  }
  plan.panels = std::min(divideUp(lines, panelLines), panels);
  plan.streams = std::clamp<int64_t>(schedule.prefetchStreams / plan.panels, 1,
                                     panelLines);
  plan.lines = std::min(divideUp(lines, plan.panels * plan.streams),
                        panelLines / plan.streams);
  plan.sharesOfPanel = divideUp(panelLines, plan.lines * plan.streams);
  plan.shares = plan.sharesOfPanel * divideUp(panels, plan.panels);
  return plan;
}

int64_t sandwich::rowUnitOf(MatrixISA isa) {
  return hasTiles(isa) ? registerFileOf(isa).rows : 1;
}

int64_t sandwich::stripsOfBlock(const Schedule &schedule, int64_t rows) {
  const int64_t partRows = divideUp(rows, schedule.threads[0]);
  const int64_t blockRows =
      divideUp(partRows, divideUp(partRows, schedule.slice[0]));
  return divideUp(blockRows, schedule.microKernel.rows);
}

std::set<int64_t> sandwich::stripRows(int64_t minRows, int64_t maxRows,
                                      int64_t sliceRows,
                                      const MicroKernel &kernel) {
  const int64_t unit = rowUnitOf(kernel.isa);
  int64_t kernelRows = kernel.rows;
  for (int64_t *rows : {&minRows, &maxRows, &sliceRows, &kernelRows})
    *rows = std::max<int64_t>(divideUp(*rows, unit), 1);
  // The smallest block is that of the fewest rows, or of the fewest that need
  // one block more than those.
  int64_t blocks = divideUp(minRows, sliceRows);
  int64_t smallest = minRows / blocks;
  if (blocks * sliceRows < maxRows)
    smallest = std::min(smallest, (blocks * sliceRows + 1) / (blocks + 1));
  int64_t largest = std::min(sliceRows, maxRows);
  std::set<int64_t> result;
  for (int64_t block = smallest; block <= largest; ++block) {
    int64_t strips = divideUp(block, kernelRows);
    result.insert(block / strips * unit);
    result.insert(divideUp(block, strips) * unit);
  }
  return result;
}
