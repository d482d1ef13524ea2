//===- ScheduleSearch.cpp - What the steps of a search share --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleSearch.h"
#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace sandwich;

std::string_view sandwich::name(SearchPhase phase) {
  switch (phase) {
  case SearchPhase::Probe:
    return "probe";
  case SearchPhase::FastStart:
    return "fast-start";
  case SearchPhase::Polymerize:
    return "polymerize";
  case SearchPhase::Finetune:
    return "finetune";
  case SearchPhase::Walk:
    return "walk";
  case SearchPhase::Final:
    return "final";
  case SearchPhase::Limit:
    return "limit";
  case SearchPhase::Extension:
    return "extension";
  case SearchPhase::Model:
    return "model";
  }
  __builtin_unreachable();
}

/// Cuts `slice` of a quantized weight to whole groups, or keeps the equal part
/// of one that it has, and to what can be unpacked of them.
static void clipGroups(const MatmulShape &shape, MatrixISA isa,
                       const std::array<int64_t, 3> &tile,
                       const std::array<int64_t, 3> &part,
                       std::array<int64_t, 3> &slice) {
  auto &[bM, bN, bK] = slice;
  const int64_t unit = kUnitOf(shape, packingFor(shape, isa));
  auto isWhole = [&] {
    return hasWholeGroups(isa, shape.storage, shape.k, bK) &&
           bK % packingOf(isa).kStep == 0;
  };
  bK = std::min(bK, part[2]);
  if (!isWhole())
    bK = std::min(roundUp(bK, unit), part[2]);
  if (!unpacksWeights(isa, shape.storage) || bN * bK <= maxUnpackedWeight)
    return;
  const int64_t mostColumns = maxUnpackedWeight / std::min(unit, bK);
  bN = std::min(bN, std::max(mostColumns / tile[1] * tile[1], tile[1]));
  bK = std::min(bK, std::max(maxUnpackedWeight / bN / unit * unit, unit));
}

std::array<int64_t, 3> sandwich::clipSlice(const Payload &payload,
                                           const MicroKernel &kernel,
                                           std::array<int64_t, 3> slice,
                                           const std::array<int64_t, 3> &grid) {
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part = largestPart(payload, packing, grid);
  std::array<int64_t, 3> tile = sliceTile(kernel, payload);
  slice[0] = std::max<int64_t>(std::min(slice[0], part[0]), 1);
  // As many columns as a unit of rows leaves memory for.
  const int64_t mostColumns = maxBlockSums / rowUnitOf(kernel.isa);
  slice[1] = std::min({roundUp(slice[1], tile[1]), roundUp(part[1], tile[1]),
                       std::max(mostColumns / tile[1] * tile[1], tile[1])});
  if (!payload.shape.storage.isQuantized()) {
    slice[2] = std::min(roundUp(slice[2], packing.kStep),
                        roundUp(part[2], packing.kStep));
    return slice;
  }
  clipGroups(payload.shape, kernel.isa, tile, part, slice);
  return slice;
}

Result<Choice> sandwich::chooseFinally(const Payload &payload,
                                       const Choice &best,
                                       const std::vector<Schedule> &others,
                                       size_t begin, MeasuringSession &session,
                                       const SearchOptions &options,
                                       SearchLog &log) {
  // The team's times only, fastest first.
  std::vector<Choice> close = {best};
  for (size_t i = begin; i < log.size(); ++i)
    if (log[i].phase == SearchPhase::Polymerize ||
        log[i].phase == SearchPhase::Finetune ||
        log[i].phase == SearchPhase::Walk)
      close.push_back({payload.rows, log[i].schedule, log[i].seconds});
  std::ranges::stable_sort(close, {}, &Choice::seconds);
  std::vector<Schedule> schedules, reduced;
  auto add = [&](const Schedule &schedule) {
    Schedule key = reducedSchedule(payload, schedule);
    if (std::ranges::find(reduced, key) != reduced.end())
      return;
    reduced.push_back(key);
    schedules.push_back(schedule);
  };
  for (const Schedule &schedule : others)
    add(schedule);
  size_t limit = schedules.size() + options.finalCandidates;
  for (const Choice &choice : close)
    if (schedules.size() < limit)
      add(choice.schedule);
  if (schedules.size() < 2)
    return best;
  SANDWICH_ASSIGN_OR_RETURN(size_t winner, session.fastest(payload, schedules));
  SANDWICH_ASSIGN_OR_RETURN(double seconds,
                            session.seconds(payload, schedules[winner]));
  log.push_back(
      {SearchPhase::Final, payload.rows, schedules[winner], seconds, true});
  return Choice{payload.rows, schedules[winner], seconds};
}
