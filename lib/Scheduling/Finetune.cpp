//===- Finetune.cpp - Thread grids and the slices under them --------------===//
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
#include <functional>
#include <numeric>
#include <optional>
#include <set>

using namespace sandwich;

int64_t sandwich::nextSliceSize(int64_t size, int64_t part, int64_t tile) {
  int64_t slices = divideUp(part, size);
  if (slices <= 1)
    return size;
  int64_t fewer = slices - std::max<int64_t>(slices / 3, 1);
  return roundUp(divideUp(part, fewer), tile);
}

/// Asks for the team's time of `schedule` and logs it.
static Result<Choice> evaluate(const Payload &payload, const Schedule &schedule,
                               SearchPhase phase, MeasuringSession &session,
                               SearchLog &log) {
  SANDWICH_ASSIGN_OR_RETURN(double seconds, session.seconds(payload, schedule));
  log.push_back({phase, payload.rows, schedule, seconds, false});
  return Choice{payload.rows, schedule, seconds};
}

/// Grows the slice of `choice` under its grid along the dimension that gains
/// most until none does.
static Status growSlice(const Payload &payload, Choice &choice,
                        MeasuringSession &session, const SearchOptions &options,
                        SearchLog &log) {
  const MicroKernel kernel = choice.schedule.microKernel;
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part =
      largestPart(payload, packing, choice.schedule.threads);
  std::array<int64_t, 3> tile = sliceTile(kernel, payload);
  // Rows are balanced, so that a slice of them need not be whole tiles.
  tile[0] = 1;
  while (true) {
    std::optional<Choice> best;
    size_t bestStep = 0;
    for (int d = 0; d < 3; ++d) {
      Schedule grown = choice.schedule;
      grown.slice[d] = nextSliceSize(grown.slice[d], part[d], tile[d]);
      if (grown.slice[d] == choice.schedule.slice[d] ||
          !fitsMemory(payload, grown))
        continue;
      grown = completeByRule(grown, payload.shape, payload.rows);
      SANDWICH_ASSIGN_OR_RETURN(
          Choice next,
          evaluate(payload, grown, SearchPhase::Finetune, session, log));
      if (!best || next.seconds < best->seconds) {
        best = next;
        bestStep = log.size() - 1;
      }
    }
    if (!best || best->seconds * (1 + options.minimumGain) >= choice.seconds)
      break;
    log[bestStep].accepted = true;
    choice = *best;
  }
  return {};
}

/// Tries the narrowest columns, with the K of `choice` and with all of it.
static Status narrowColumns(const Payload &payload, Choice &choice,
                            MeasuringSession &session, SearchLog &log) {
  const MicroKernel kernel = choice.schedule.microKernel;
  std::array<int64_t, 3> part = largestPart(
      payload, packingFor(payload.shape, kernel.isa), choice.schedule.threads);
  int64_t narrowest = sliceTile(kernel, payload)[1];
  // Growing in steps keeps the columns that fast start took, and stops before
  // all of K where the steps on the way gain little.
  for (int64_t k : {choice.schedule.slice[2], part[2]}) {
    Schedule narrow = choice.schedule;
    narrow.slice[1] = narrowest;
    narrow.slice[2] = k;
    narrow.slice = clipSlice(payload, kernel, narrow.slice, narrow.threads);
    if (narrow.slice == choice.schedule.slice)
      continue;
    narrow = completeByRule(narrow, payload.shape, payload.rows);
    SANDWICH_ASSIGN_OR_RETURN(
        Choice next,
        evaluate(payload, narrow, SearchPhase::Finetune, session, log));
    if (next.seconds < choice.seconds) {
      log.back().accepted = true;
      choice = next;
    }
  }
  return {};
}

Result<Choice> sandwich::finetune(
    const Payload &payload, const std::vector<FinetuneCandidate> &candidates,
    const std::vector<std::array<int64_t, 3>> &grids, bool growSlices,
    MeasuringSession &session, const SearchOptions &options, SearchLog &log) {
  // Once over all, to see which micro-kernel is best under each grid.
  std::vector<Choice> begun;
  for (const FinetuneCandidate &candidate : candidates) {
    Packing packing = packingFor(payload.shape, candidate.kernel.isa);
    std::vector<std::array<int64_t, 3>> tried =
        grids.empty() ? threadGrids(payload, packing) : grids;
    for (const std::array<int64_t, 3> &grid : tried) {
      Schedule schedule{
          .microKernel = candidate.kernel,
          .slice = clipSlice(payload, candidate.kernel, candidate.slice, grid),
          .threads = grid};
      // Whoever holds all rows reads the weight once, which growing in steps
      // would see late.
      int64_t allRows = largestPart(payload, packing, grid)[0];
      std::vector<int64_t> rowSizes = {schedule.slice[0]};
      if (growSlices && allRows != schedule.slice[0])
        rowSizes.push_back(allRows);
      for (int64_t rows : rowSizes) {
        schedule.slice[0] = rows;
        schedule = completeByRule(schedule, payload.shape, payload.rows);
        SANDWICH_ASSIGN_OR_RETURN(
            Choice choice,
            evaluate(payload, schedule, SearchPhase::Polymerize, session, log));
        begun.push_back(choice);
      }
    }
  }
  if (begun.empty())
    return makeError("no micro-kernel can multiply a weight of ",
                     payload.shape.n, " x ", payload.shape.k);
  std::ranges::stable_sort(begun, {}, &Choice::seconds);
  Choice best = begun.front();
  if (!growSlices)
    return best;
  // The best micro-kernel of every grid grows, as growing can change which grid
  // is best.
  std::vector<Choice> grown;
  std::set<std::array<int64_t, 3>> seen;
  for (const Choice &choice : begun)
    if (seen.insert(choice.schedule.threads).second)
      grown.push_back(choice);
  for (Choice &choice : grown) {
    SANDWICH_RETURN_IF_ERROR(growSlice(payload, choice, session, options, log));
    if (choice.seconds < best.seconds)
      best = choice;
  }
  for (Choice &choice : grown) {
    if (choice.seconds > best.seconds * (1 + options.promisingWithin))
      continue;
    SANDWICH_RETURN_IF_ERROR(narrowColumns(payload, choice, session, log));
    if (choice.seconds < best.seconds)
      best = choice;
  }
  return best;
}

/// Tries longer and shorter chunks of K than `best` has, which an attempt may
/// replace, and none. To vectors a chunk of a slice as wide as their panel is a
/// shorter slice, which was tried, and one strip of rows reads a weight once.
static Status
walkChunks(const Payload &payload, const Schedule &best,
           const std::function<Status(const Schedule &)> &attempt) {
  const MicroKernel kernel = best.microKernel;
  const Packing packing = packingFor(payload.shape, kernel.isa);
  const int64_t k = std::min(best.slice[2], payload.shape.k);
  const int64_t rows = divideUp(payload.rows, best.threads[0]);
  if (!hasTiles(kernel.isa) && best.groupK == 0 &&
      (rows <= kernel.rows ||
       best.slice[1] <= std::max(kernel.columns, packing.panel)))
    return {};
  const int64_t before = best.chunkK > 0 ? best.chunkK : k;
  const int64_t unit = std::lcm(kUnitOf(payload.shape, packing),
                                std::max<int64_t>(best.groupK, 1));
  for (int64_t chunk : {before / 2, before * 2, int64_t(0)}) {
    Schedule schedule = best;
    schedule.chunkK = chunk < k ? roundUp(chunk, unit) : 0;
    SANDWICH_RETURN_IF_ERROR(attempt(schedule));
  }
  return {};
}

/// Tries other ways in which micro-kernels get their operands.
static Status
walkOperands(const Schedule &best,
             const std::function<Status(const Schedule &)> &attempt) {
  if (hasTiles(best.microKernel.isa))
    for (StreamedOperands streamed :
         {StreamedOperands::None, StreamedOperands::Input,
          StreamedOperands::Weight, StreamedOperands::Both}) {
      Schedule schedule = best;
      schedule.streamed = streamed;
      SANDWICH_RETURN_IF_ERROR(attempt(schedule));
    }
  // Integers read no other.
  if (multipliesIntegers(best.microKernel.isa))
    return {};
  Schedule schedule = best;
  schedule.packsInput = !schedule.packsInput;
  return attempt(schedule);
}

/// Tries more lines than `best` prefetches, which an attempt may replace, and
/// none, then distances or streams, and hints.
static Status
walkPrefetching(const Payload &payload, const Schedule &best,
                const std::function<Status(const Schedule &)> &attempt) {
  auto attemptWith = [&](auto change) {
    Schedule schedule = best;
    change(schedule);
    return attempt(schedule);
  };
  const int64_t lines = best.prefetchLines;
  for (int64_t tried : {int64_t(0), lines * 2})
    SANDWICH_RETURN_IF_ERROR(attemptWith([&](Schedule &schedule) {
      schedule.prefetchLines = std::min<int64_t>(tried, 1024);
    }));
  // The rule leaves most integers to hardware.
  if (payload.shape.storage.isQuantized() && best.prefetchLines == 0)
    SANDWICH_RETURN_IF_ERROR(attempt(prefetchGroups(
        best, payload.shape, stripsOfBlock(best, payload.rows))));
  if (best.prefetchDistance > 0)
    for (int64_t distance : {2048, 4096, 16384})
      SANDWICH_RETURN_IF_ERROR(attemptWith(
          [&](Schedule &schedule) { schedule.prefetchDistance = distance; }));
  else if (best.prefetchLines > 0)
    for (int64_t streams : {4, 8})
      SANDWICH_RETURN_IF_ERROR(attemptWith(
          [&](Schedule &schedule) { schedule.prefetchStreams = streams; }));
  if (best.prefetchLines > 0)
    for (PrefetchHint hint : {PrefetchHint::L2, PrefetchHint::NonTemporal})
      SANDWICH_RETURN_IF_ERROR(attemptWith(
          [&](Schedule &schedule) { schedule.prefetchHint = hint; }));
  return {};
}

/// `schedule` with slices that are copied before they are multiplied.
static Schedule copyingBefore(Schedule schedule) {
  if (schedule.copiesAhead)
    schedule.prefetchDistance = 0;
  schedule.copiesAhead = false;
  return schedule;
}

/// `schedule`, of tiles that a weight of 4 bits is unpacked to bf16 for, with
/// tiles of integers instead, which targets with the ones have: all of K is
/// rounded at once, and copied to longer groups, if that suits `shape`.
static Schedule withIntegerTiles(Schedule schedule, const MatmulShape &shape) {
  const MatrixISA isa = MatrixISA::X86_AMX_INT8;
  constexpr int64_t blockRows = 256;
  schedule.microKernel.isa = isa;
  schedule.slice[0] = std::clamp<int64_t>(mostPackedInput(isa) / shape.k /
                                              rowUnitOf(isa) * rowUnitOf(isa),
                                          rowUnitOf(isa), blockRows);
  schedule.slice[2] = shape.k;
  schedule.order = LoopOrder::RowsOuter;
  schedule.prefetchStreams = 1;
  schedule.packsInput = true;
  schedule.streamed = StreamedOperands::None;
  schedule.prefetchLines = 0;
  schedule = copyingBefore(schedule);
  return regroup(schedule, shape);
}

Status sandwich::finetuneWalk(const Payload &payload, Choice &choice,
                              MeasuringSession &session,
                              const SearchOptions &options, SearchLog &log) {
  Schedule current = reducedSchedule(payload, choice.schedule);
  auto attempt = [&](const Schedule &schedule) -> Status {
    // What changes nothing is not worth a measurement, and of a quantized
    // weight what is prefetched must not become a copy.
    Schedule reduced = reducedSchedule(payload, schedule);
    if (reduced == current || !fitsMemory(payload, schedule) ||
        (payload.shape.storage.isQuantized() &&
         !verify(schedule, payload.shape)))
      return {};
    SANDWICH_ASSIGN_OR_RETURN(
        Choice next,
        evaluate(payload, schedule, SearchPhase::Walk, session, log));
    if (next.seconds * (1 + options.minimumGain) < choice.seconds) {
      log.back().accepted = true;
      choice = next;
      current = reduced;
    }
    return {};
  };
  Schedule schedule = choice.schedule;
  schedule.order = LoopOrder::ColumnsOuter;
  // A copy made before stays for other rows.
  schedule = copyingBefore(schedule);
  SANDWICH_RETURN_IF_ERROR(attempt(schedule));
  if (multipliesIntegers(choice.schedule.microKernel.isa)) {
    schedule = choice.schedule;
    if (schedule.groupK > 0)
      schedule.groupK = schedule.chunkK = schedule.prefetchLines = 0;
    else
      schedule = regroup(schedule, payload.shape);
    SANDWICH_RETURN_IF_ERROR(attempt(schedule));
  } else if (hasTiles(choice.schedule.microKernel.isa) &&
             payload.shape.roundsInput &&
             payload.shape.storage.number == NumberFormat::Int4) {
    SANDWICH_RETURN_IF_ERROR(
        attempt(withIntegerTiles(choice.schedule, payload.shape)));
  }
  // What is copied ahead is measured as if copied before: nothing would tell
  // what prefetching it gains.
  if (!choice.schedule.copiesAhead)
    SANDWICH_RETURN_IF_ERROR(
        walkPrefetching(payload, choice.schedule, attempt));
  SANDWICH_RETURN_IF_ERROR(walkChunks(payload, choice.schedule, attempt));
  if (canPackInput(choice.schedule.microKernel.isa))
    SANDWICH_RETURN_IF_ERROR(walkOperands(choice.schedule, attempt));
  // Few results stay in the caches whatever is done.
  constexpr int64_t manyResults = 1 << 18;
  if (payload.rows * payload.shape.n >= manyResults) {
    schedule = choice.schedule;
    schedule.stores = StoreKind::NonTemporal;
    SANDWICH_RETURN_IF_ERROR(attempt(schedule));
  }
  return {};
}
