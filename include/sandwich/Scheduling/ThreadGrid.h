//===- ThreadGrid.h - How a team shares a matmul ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The polymerization of a matmul: the parts that a thread grid divides it
/// into, the grids that use a whole team, and what a schedule comes to on a
/// part (two schedules that come to the same run the same code).
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_THREADGRID_H
#define SANDWICH_SCHEDULING_THREADGRID_H

#include "sandwich/Scheduling/Partition.h"
#include "sandwich/Scheduling/Schedule.h"

#include <array>
#include <cstdint>
#include <vector>

namespace sandwich {

/// One question to the search: this matmul for `rows` tokens on a team.
struct Payload {
  MatmulShape shape;
  int64_t rows = 1;
  int64_t threads = 1;
  /// Whether threads may share K and add up their sums (split-k; sections 5 and
  /// 7.4 of the Sandwich paper).
  bool splitK = true;

  bool operator==(const Payload &) const = default;

  /// Floating-point operations of the whole matmul.
  double flops() const { return 2.0 * rows * shape.n * shape.k; }
};

/// Columns that one thread owns together: whole panels and whole units of the
/// epilogue.
int64_t columnUnitOf(const MatmulShape &shape, const Packing &packing);

/// K is split in these: whole rounds of a micro-kernel's loop, and whole groups
/// of the weight's numbers.
int64_t kUnitOf(const MatmulShape &shape, const Packing &packing);

/// The smallest slice of `kernel`: its rows, but never more than there are,
/// whole columns units, and a cache line of k.
std::array<int64_t, 3> sliceTile(const MicroKernel &kernel,
                                 const Payload &payload);

/// Rows, columns and k of the largest part that `grid` gives a thread. Parts
/// are contiguous and as even as whole units allow.
std::array<int64_t, 3> largestPart(const Payload &payload,
                                   const Packing &packing,
                                   const std::array<int64_t, 3> &grid);

/// How `grid` divides a matmul whose weight has `columns` columns: those of
/// `shape`, or more where the packing fills up groups of them.
Division divisionOf(const MatmulShape &shape, const Packing &packing,
                    const std::array<int64_t, 3> &grid, int64_t columns);

/// The part that `grid` gives thread `thread` (see `partOfThread`).
using ThreadPart = Part<int64_t>;
ThreadPart threadPart(const Payload &payload, const Packing &packing,
                      const std::array<int64_t, 3> &grid, int64_t thread);

/// `schedule` with a slice no larger than a matmul of `maxRows` rows and of
/// `columns` packed columns needs, and than the memory for the sums of a block,
/// and for packed input, holds. Error: one row of the slice, or one tile of
/// rows, is more than that, or the weight that is unpacked for a slice.
Result<Schedule> fitSlice(Schedule schedule, const MatmulShape &shape,
                          int64_t columns, int64_t maxRows);

/// Whether `fitSlice` can make `schedule` fit `payload`.
bool fitsMemory(const Payload &payload, const Schedule &schedule);
/// Whether the slice of `schedule` has memory without being made smaller: the
/// sums of its block, where tiles have all their rows, the weight that is
/// unpacked for it, and the input that is packed.
bool sliceFitsMemory(const MatmulShape &shape, const Schedule &schedule);

/// Every grid tM x tN x tK whose product is the team, as far as rows, column
/// units and steps of K suffice for every thread to get a part; tK is 1 where
/// the payload has no split-k, or is deterministic. Where no such grid is,
/// those that use most of the team.
std::vector<std::array<int64_t, 3>> threadGrids(const Payload &payload,
                                                const Packing &packing);

/// `schedule` cut to what it does for `payload`: slices no larger than a
/// thread's part, the rows of its micro-kernel no more than the highest of its
/// balanced strips, and no parameters that change nothing. Schedules with equal
/// results run the same instructions. The micro-kernel of the result is a key,
/// not always one of the menu.
Schedule reducedSchedule(const Payload &payload, const Schedule &schedule);

/// The micro-kernels of `menu` that can multiply `payload` and have memory for
/// the smallest slice, those that behave
/// the same on it (the same columns, and the same balanced strips of rows
/// whatever the grid) together in one class. The largest of a class is last.
std::vector<std::vector<MicroKernel>>
microKernelClasses(const Payload &payload,
                   const std::vector<MicroKernel> &menu);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_THREADGRID_H
