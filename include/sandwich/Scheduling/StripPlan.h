//===- StripPlan.h - What the calls of a nest do ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a schedule comes to for the calls of its micro-kernel: which rows they
/// take, and what each of them prefetches. Code generation and measuring both
/// follow it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_STRIPPLAN_H
#define SANDWICH_SCHEDULING_STRIPPLAN_H

#include "sandwich/Scheduling/Schedule.h"

#include <cstdint>
#include <set>

namespace sandwich {

/// The k that one round of a micro-kernel's loop multiplies: four packed steps,
/// or what one instruction takes. Prefetches are counted by rounds.
int64_t loopStep(MatrixISA isa);

/// What each call of a micro-kernel prefetches in a round of its loop.
struct PrefetchPlan {
  /// Of each stream, of which each panel has so many. 0 lines: nothing.
  int64_t lines = 0;
  int64_t streams = 1;
  int64_t panels = 1;
  /// Calls that together prefetch all lines of a panel, and of the slice.
  int64_t sharesOfPanel = 1;
  int64_t shares = 1;
};

/// The plan of `schedule` for calls on `width` columns, whole panels of
/// `packing`, of weights in `storage`. A round of a quantized weight, whose
/// panels each run ahead of what is read of them, is `smallestGroup` k.
PrefetchPlan planPrefetch(const Schedule &schedule, const Packing &packing,
                          int64_t width, const StorageFormat &storage);

/// What strips and blocks of rows are made of: a tile of up to so many rows,
/// or, with 1, single rows. The rows of a thread's part are cut into as few
/// tiles as possible, all of the same height; where that does not divide them,
/// the last begins early and computes rows of its neighbour a second time.
int64_t rowUnitOf(MatrixISA isa);

/// The strips of a block of a thread's part of `rows` rows under `schedule`.
int64_t stripsOfBlock(const Schedule &schedule, int64_t rows);

/// The rows that micro-kernels of strips are for where a thread's part has from
/// `minRows` to `maxRows` rows: blocks of at most `sliceRows` rows, and strips
/// of at most the rows of `kernel` in them, are both as even as units allow.
std::set<int64_t> stripRows(int64_t minRows, int64_t maxRows, int64_t sliceRows,
                            const MicroKernel &kernel);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_STRIPPLAN_H
