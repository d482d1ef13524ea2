//===- FastStart.cpp - Growing slices on one thread -----------------------===//
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

using namespace sandwich;

std::array<int64_t, 3>
sandwich::largestParallelSlice(const Payload &payload,
                               const std::array<int64_t, 3> &tile,
                               const Packing &packing) {
  std::array<int64_t, 3> size = {payload.rows, payload.shape.n,
                                 payload.shape.k};
  // Rows need not come in whole tiles, columns and k only in what can be
  // split.
  std::array<int64_t, 3> unit = {1, columnUnitOf(payload.shape, packing),
                                 kUnitOf(payload.shape, packing)};
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
  auto withSlice = [&](const std::array<int64_t, 3> &slice) {
    Schedule result = schedule;
    result.slice = slice;
    return completeByRule(result, payload.shape, slice[0]);
  };
  // FLOP/s of `slice`, logged.
  auto profile = [&](std::array<int64_t, 3> slice) -> Result<double> {
    schedule = withSlice(slice);
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
      if (grown[d] > largest[d] ||
          !sliceFitsMemory(payload.shape, withSlice(grown))) {
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
        completeByRule(schedule, payload.shape, schedule.slice[0]));
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
    if (promising.size() >= options.probedKernels)
      break;
    log[probe.step].accepted = true;
    promising.push_back(probe.kernel);
  }
  return promising;
}
