//===- SlidingWindow.h - The last payloads and what they chose --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The sliding window, schedule reuse and extension of the Sandwich paper
/// (section 5, "Micro-kernel sliding window & tensor schedule reuse").
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SCHEDULING_SLIDINGWINDOW_H
#define SANDWICH_LIB_SCHEDULING_SLIDINGWINDOW_H

#include "sandwich/Scheduling/ScheduleTuner.h"

#include <deque>

namespace sandwich {

/// The choices for the last `TuningOptions::window` payloads of one group.
class SlidingWindow {
public:
  struct Entry {
    Choice choice;
    /// All micro-kernels that behave as the chosen one.
    std::vector<MicroKernel> members;
    /// The slice in sizes of the payload, and whether it held all of a thread's
    /// part of each dimension.
    std::array<int64_t, 3> slice;
    std::array<bool, 3> whole;
  };

  bool empty() const { return entries.empty(); }
  const Entry &last() const { return entries.back(); }
  auto begin() const { return entries.begin(); }
  auto end() const { return entries.end(); }
  bool isFull(const TuningOptions &options) const {
    return static_cast<int64_t>(entries.size()) >= options.window;
  }

  /// The micro-kernels of `menu` that some payload of the window chose.
  std::vector<MicroKernel> menu(const std::vector<MicroKernel> &menu) const;

  /// What `choice` is as an entry.
  static Entry describe(const Payload &payload, const Choice &choice,
                        const std::vector<MicroKernel> &menu);
  /// Adds `entry`; the oldest leaves a full window.
  void add(Entry entry, const TuningOptions &options);

private:
  std::deque<Entry> entries;
};

/// What payloads chose alike for a whole window, and is searched no more.
class ScheduleReuse {
public:
  bool fixesSlice() const { return slice; }
  bool fixesGrid() const { return grid; }

  /// Fixes the slice, and the thread grid, of `next` if they differ from the
  /// averages of a full `window` by no more than `reuseThreshold`.
  void update(const SlidingWindow &window, const SlidingWindow::Entry &next,
              const TuningOptions &options);
  /// Nothing is fixed any more.
  void reset() { slice = grid = false; }

private:
  bool slice = false, grid = false;
};

/// Extension: the schedule of `entry` with `kernel` for another, larger
/// payload, which is divided by the same thread grid; the slice is repeated,
/// and goes on holding all of a part where it did.
Schedule extend(const SlidingWindow::Entry &entry, const Payload &payload,
                const MicroKernel &kernel);

/// `schedule` with the prefetch parameters of `entry`, as far as they differ
/// from the rule's.
Schedule extendPrefetch(const SlidingWindow::Entry &entry,
                        const Payload &payload, Schedule schedule);

} // namespace sandwich

#endif // SANDWICH_LIB_SCHEDULING_SLIDINGWINDOW_H
