//===- NestParameters.h - A schedule as arguments ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `gemm.matmul` and its `gemm.nest` load instead of the numbers of their
/// schedule, so that one program serves all schedules while tuning. Plain
/// memory: an array of 64-bit numbers whose places are those of the fields. The
/// `ThreadPart` of each thread of the program follows.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_NESTPARAMETERS_H
#define SANDWICH_SCHEDULING_NESTPARAMETERS_H

#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Scheduling/ThreadGrid.h"

#include <cstdint>

namespace sandwich {

struct NestParameters {
  /// Rows are counted in units (`rowUnitOf`): single rows, or tiles.
  int64_t sliceUnits, sliceColumns, sliceK;
  /// K of a call; more than any slice has where a call takes all of one.
  int64_t chunkK;
  /// The most units of a strip, below `maxUnits`.
  int64_t stripUnits;
  /// In bytes; 0: the next slice is prefetched.
  int64_t prefetchDistance;

  static constexpr int64_t maxUnits = 65;
  /// The calls on some columns.
  struct Calls {
    PrefetchPlan prefetch;
    /// The micro-kernels of this plan, by the units they multiply.
    int64_t addresses[maxUnits];
  };
  /// On all columns of the micro-kernel, or a panel if that is wider; and on
  /// single panels, where a block ends between those of a wide micro-kernel.
  Calls wide, panel;
};
static_assert(sizeof(PrefetchPlan) == 5 * sizeof(int64_t));

/// Numbers before the part of `thread`, and with as many threads, of all.
constexpr int64_t numbersBeforePart(int64_t thread) {
  return static_cast<int64_t>(sizeof(NestParameters) / sizeof(int64_t)) +
         thread * static_cast<int64_t>(sizeof(ThreadPart) / sizeof(int64_t));
}

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_NESTPARAMETERS_H
