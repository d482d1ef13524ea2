//===- SlidingWindow.cpp - What the last payloads chose -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SlidingWindow.h"

#include "sandwich/Scheduling/StripPlan.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Sliding window
//===----------------------------------------------------------------------===//

std::vector<MicroKernel>
SlidingWindow::menu(const std::vector<MicroKernel> &menu) const {
  std::vector<MicroKernel> chosen;
  for (const MicroKernel &kernel : menu)
    if (std::ranges::any_of(entries, [&](const Entry &entry) {
          return std::ranges::find(entry.members, kernel) !=
                 entry.members.end();
        }))
      chosen.push_back(kernel);
  // What only the untuned rule and the walk choose is no member of any class.
  return chosen.empty() ? menu : chosen;
}

SlidingWindow::Entry
SlidingWindow::describe(const Payload &payload, const Choice &choice,
                        const std::vector<MicroKernel> &menu) {
  const MicroKernel &kernel = choice.schedule.microKernel;
  Entry entry;
  entry.choice = choice;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, menu))
    if (std::ranges::find(members, kernel) != members.end())
      entry.members = members;
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part =
      largestPart(payload, packing, choice.schedule.threads);
  for (int d = 0; d < 3; ++d) {
    entry.slice[d] = std::min(choice.schedule.slice[d], part[d]);
    entry.whole[d] = choice.schedule.slice[d] >= part[d];
  }
  return entry;
}

void SlidingWindow::add(Entry entry, const TuningOptions &options) {
  entries.push_back(std::move(entry));
  while (static_cast<int64_t>(entries.size()) >
         std::max<int64_t>(options.window, 1))
    entries.pop_front();
}

//===----------------------------------------------------------------------===//
// Schedule reuse
//===----------------------------------------------------------------------===//

void ScheduleReuse::update(const SlidingWindow &window,
                           const SlidingWindow::Entry &next,
                           const TuningOptions &options) {
  if (!window.isFull(options))
    return;
  auto isStable = [&](auto sizeOf) {
    double sum = 0, entries = 0;
    for (const SlidingWindow::Entry &entry : window) {
      sum += static_cast<double>(sizeOf(entry));
      ++entries;
    }
    double average = sum / entries;
    return std::abs(static_cast<double>(sizeOf(next)) - average) <=
           options.reuseThreshold * average;
  };
  bool sliceIsStable = true, gridIsStable = true;
  for (int d = 0; d < 3; ++d) {
    auto isWhole = [&](const SlidingWindow::Entry &entry) {
      return entry.whole[d];
    };
    sliceIsStable &=
        (isWhole(next) && std::ranges::all_of(window, isWhole)) ||
        isStable([&](const SlidingWindow::Entry &e) { return e.slice[d]; });
    gridIsStable &= isStable([&](const SlidingWindow::Entry &entry) {
      return entry.choice.schedule.threads[d];
    });
  }
  slice |= sliceIsStable;
  grid |= gridIsStable;
}

//===----------------------------------------------------------------------===//
// Extension
//===----------------------------------------------------------------------===//

Schedule sandwich::extendPrefetch(const SlidingWindow::Entry &entry,
                                  const Payload &payload, Schedule schedule) {
  const Schedule &last = entry.choice.schedule;
  schedule.groupK = 0;
  schedule = completeByRule(schedule, payload.shape, payload.rows);
  Schedule rule = completeByRule(last, payload.shape, entry.choice.rows);
  if ((rule.prefetchDistance > 0) != (schedule.prefetchDistance > 0))
    return schedule;
  if (last.prefetchLines == 0)
    schedule.prefetchLines = 0;
  else if (last.prefetchLines == 2 * rule.prefetchLines)
    schedule.prefetchLines *= 2;
  if (schedule.prefetchDistance > 0)
    schedule.prefetchDistance = last.prefetchDistance;
  schedule.prefetchStreams = last.prefetchStreams;
  schedule.prefetchHint = last.prefetchHint;
  schedule.chunkK = last.chunkK;
  const MatrixISA isa = schedule.microKernel.isa;
  schedule.packsInput =
      multipliesIntegers(isa) || (last.packsInput && canPackInput(isa));
  schedule.streamed = last.streamed;
  schedule.copiesAhead &= last.copiesAhead;
  schedule.groupK = last.groupK;
  if (!verify(schedule, payload.shape) || !fitsMemory(payload, schedule))
    schedule.groupK = 0;
  if (payload.shape.storage.isQuantized() && last.prefetchLines > 0) {
    Schedule prefetched = prefetchGroups(schedule, payload.shape,
                                         stripsOfBlock(schedule, payload.rows));
    if (verify(prefetched, payload.shape))
      schedule = std::move(prefetched);
  }
  return schedule;
}

Schedule sandwich::extend(const SlidingWindow::Entry &entry,
                          const Payload &payload, const MicroKernel &kernel) {
  Schedule schedule = entry.choice.schedule;
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part = largestPart(payload, packing, schedule.threads);
  schedule.microKernel = kernel;
  for (int d = 0; d < 3; ++d)
    if (entry.whole[d])
      schedule.slice[d] = std::max(schedule.slice[d], part[d]);
  schedule.slice = clipSlice(payload, kernel, schedule.slice, schedule.threads);
  return extendPrefetch(entry, payload, schedule);
}
