//===- ScheduleSearch.cpp - Fast start and finetune ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleSearch.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

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
  case SearchPhase::Derived:
    return "derived";
  }
  __builtin_unreachable();
}

//===----------------------------------------------------------------------===//
// Fast start
//===----------------------------------------------------------------------===//

std::array<int64_t, 3>
sandwich::largestParallelSlice(const Payload &payload,
                               const std::array<int64_t, 3> &tile,
                               const Packing &packing) {
  std::array<int64_t, 3> size = {payload.rows, payload.shape.n,
                                 payload.shape.k};
  // Rows need not come in whole tiles, columns and k only in what can be
  // split.
  std::array<int64_t, 3> unit = {1, columnUnitOf(payload.shape, packing),
                                 kUnitOf(packing)};
  std::array<int64_t, 3> largest;
  for (int d = 0; d < 3; ++d)
    largest[d] =
        std::max(size[d] / payload.threads / unit[d] * unit[d], tile[d]);
  return largest;
}

Result<FastStart> sandwich::fastStart(const Payload &payload,
                                      const MicroKernel &kernel,
                                      MeasuringSession &session,
                                      const SearchOptions &options,
                                      SearchLog &log) {
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> tile = sliceTile(kernel, payload);
  std::array<int64_t, 3> largest = largestParallelSlice(payload, tile, packing);
  Schedule schedule{.microKernel = kernel, .slice = tile};
  double best = 0;
  // FLOP/s of `slice`, logged.
  auto profile = [&](std::array<int64_t, 3> slice) -> Result<double> {
    schedule.slice = slice;
    schedule = completePrefetch(schedule, payload.shape, slice[0]);
    SANDWICH_ASSIGN_OR_RETURN(double seconds,
                              session.sliceSeconds(payload.shape, schedule));
    double speed = 2.0 * slice[0] * slice[1] * slice[2] / seconds;
    bool gains = speed > best * (1 + options.minimumGain);
    log.push_back(
        {SearchPhase::FastStart, payload.rows, schedule, seconds, gains});
    return speed;
  };

  std::array<int64_t, 3> slice = tile;
  SANDWICH_ASSIGN_OR_RETURN(best, profile(slice));
  std::array<bool, 3> frozen = {};
  std::array<int, 3> taken = {};
  while (!(frozen[0] && frozen[1] && frozen[2]))
    for (int d = 0; d < 3; ++d) {
      if (frozen[d])
        continue;
      std::array<int64_t, 3> grown = slice;
      grown[d] += (int64_t(1) << taken[d]) * tile[d];
      if (grown[d] > largest[d] || grown[0] * grown[1] > maxBlockSums) {
        frozen[d] = true;
        continue;
      }
      SANDWICH_ASSIGN_OR_RETURN(double speed, profile(grown));
      if (speed <= best * (1 + options.minimumGain)) {
        frozen[d] = true;
        continue;
      }
      best = speed;
      slice = grown;
      ++taken[d];
    }
  return FastStart{slice, best};
}

Result<std::vector<MicroKernel>> sandwich::probeKernels(
    const Payload &payload, const std::vector<MicroKernel> &kernels,
    MeasuringSession &session, const SearchOptions &options, SearchLog &log) {
  struct Probe {
    MicroKernel kernel;
    double speed;
    size_t step;
  };
  std::vector<Schedule> schedules;
  for (const MicroKernel &kernel : kernels) {
    Packing packing = packingFor(payload.shape, kernel.isa);
    std::array<int64_t, 3> tile = sliceTile(kernel, payload);
    // Enough rows to read from cache, enough k to forget what a call costs.
    Schedule schedule{
        .microKernel = kernel,
        .slice = {std::min<int64_t>(payload.rows, 48), tile[1],
                  std::min(roundUp<int64_t>(512, tile[2]),
                           roundUp(payload.shape.k, packing.kStep))}};
    schedules.push_back(
        completePrefetch(schedule, payload.shape, schedule.slice[0]));
  }
  SANDWICH_RETURN_IF_ERROR(session.expectSlices(payload.shape, schedules));
  std::vector<Probe> probes;
  for (const Schedule &schedule : schedules) {
    SANDWICH_ASSIGN_OR_RETURN(double seconds,
                              session.sliceSeconds(payload.shape, schedule));
    auto [bM, bN, bK] = schedule.slice;
    probes.push_back(
        {schedule.microKernel, 2.0 * bM * bN * bK / seconds, log.size()});
    log.push_back({SearchPhase::Probe, payload.rows, schedule, seconds, false});
  }
  std::ranges::stable_sort(probes, std::greater(), &Probe::speed);
  std::vector<MicroKernel> promising;
  for (const Probe &probe : probes) {
    if (promising.size() >= options.probedKernels ||
        probe.speed < probes.front().speed * (1 - options.probeWithin))
      break;
    log[probe.step].accepted = true;
    promising.push_back(probe.kernel);
  }
  return promising;
}

//===----------------------------------------------------------------------===//
// Finetune
//===----------------------------------------------------------------------===//

int64_t sandwich::nextSliceSize(int64_t size, int64_t part, int64_t tile) {
  int64_t slices = divideUp(part, size);
  if (slices <= 1)
    return size;
  int64_t fewer = slices - std::max<int64_t>(slices / 3, 1);
  return roundUp(divideUp(part, fewer), tile);
}

std::array<int64_t, 3> sandwich::clipSlice(const Payload &payload,
                                           const MicroKernel &kernel,
                                           std::array<int64_t, 3> slice,
                                           const std::array<int64_t, 3> &grid) {
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part = largestPart(payload, packing, grid);
  std::array<int64_t, 3> tile = sliceTile(kernel, payload);
  slice[0] = std::max<int64_t>(std::min(slice[0], part[0]), 1);
  slice[1] = std::min(roundUp(slice[1], tile[1]), roundUp(part[1], tile[1]));
  slice[2] = std::min(roundUp(slice[2], packing.kStep),
                      roundUp(part[2], packing.kStep));
  return slice;
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
      if (grown.slice[d] == choice.schedule.slice[d])
        continue;
      grown = completePrefetch(grown, payload.shape, payload.rows);
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
    narrow = completePrefetch(narrow, payload.shape, payload.rows);
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
        schedule = completePrefetch(schedule, payload.shape, payload.rows);
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
  // is best, and so do the most promising pairs of all.
  std::vector<Choice> grown;
  std::set<std::array<int64_t, 3>> seen;
  for (size_t i = 0; i < begun.size(); ++i) {
    bool firstOfGrid = seen.insert(begun[i].schedule.threads).second;
    bool promising =
        i < options.grownCandidates &&
        begun[i].seconds <= best.seconds * (1 + options.promisingWithin);
    if (firstOfGrid || promising)
      grown.push_back(begun[i]);
  }
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

Status sandwich::finetuneWalk(const Payload &payload, Choice &choice,
                              MeasuringSession &session,
                              const SearchOptions &options, SearchLog &log) {
  Schedule current = reducedSchedule(payload, choice.schedule);
  auto attempt = [&](const Schedule &schedule) -> Status {
    // What changes nothing is not worth a measurement.
    Schedule reduced = reducedSchedule(payload, schedule);
    if (reduced == current)
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
  SANDWICH_RETURN_IF_ERROR(attempt(schedule));
  int64_t lines = choice.schedule.prefetchLines;
  for (int64_t tried : {int64_t(0), lines * 2}) {
    schedule = choice.schedule;
    schedule.prefetchLines = std::min<int64_t>(tried, 1024);
    SANDWICH_RETURN_IF_ERROR(attempt(schedule));
  }
  if (choice.schedule.prefetchDistance > 0)
    for (int64_t distance : {2048, 4096, 16384}) {
      schedule = choice.schedule;
      schedule.prefetchDistance = distance;
      SANDWICH_RETURN_IF_ERROR(attempt(schedule));
    }
  else if (choice.schedule.prefetchLines > 0)
    for (int64_t streams : {4, 8}) {
      schedule = choice.schedule;
      schedule.prefetchStreams = streams;
      SANDWICH_RETURN_IF_ERROR(attempt(schedule));
    }
  if (choice.schedule.prefetchLines > 0)
    for (PrefetchHint hint : {PrefetchHint::L2, PrefetchHint::NonTemporal}) {
      schedule = choice.schedule;
      schedule.prefetchHint = hint;
      SANDWICH_RETURN_IF_ERROR(attempt(schedule));
    }
  // Few results stay in the caches whatever is done.
  constexpr int64_t manyResults = 1 << 18;
  if (payload.rows * payload.shape.n >= manyResults) {
    schedule = choice.schedule;
    schedule.stores = StoreKind::NonTemporal;
    SANDWICH_RETURN_IF_ERROR(attempt(schedule));
  }
  return {};
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
    if ((log[i].phase == SearchPhase::Polymerize ||
         log[i].phase == SearchPhase::Finetune ||
         log[i].phase == SearchPhase::Walk) &&
        log[i].seconds <= best.seconds * (1 + options.finalWithin))
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
