//===- MicroKernelMenu.h - Which micro-kernels there are --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The micro-kernels that a search chooses from.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_MICROKERNELMENU_H
#define SANDWICH_SCHEDULING_MICROKERNELMENU_H

#include "sandwich/Scheduling/Schedule.h"

#include <vector>

namespace sandwich {

/// Rows of the tallest micro-kernel of a menu.
inline constexpr int64_t mostMicroKernelRows = 64;

/// Strategies time slices of so many strips of a micro-kernel whatever the rows
/// of their payloads.
inline constexpr int64_t mostTimedStrips = 8;

/// Every micro-kernel of `isa` that fits its register file (Sandwich paper,
/// section 5, "Micro-Kernel Generation") and reads at least one of its
/// packings: rows are a multiple of those in a register (every number for
/// vectors), columns too. Fewest columns, then fewest rows first.
std::vector<MicroKernel> microKernelMenu(MatrixISA isa);

/// The menus of the instructions of `target` that schedules of `shape` may
/// multiply with (see `allInstructionsFor`), the best first; empty if there are
/// none. A weight has one packing, so menus are mixed only where all read that
/// of integers.
std::vector<MicroKernel> microKernelMenu(const MatmulShape &shape,
                                         const Target &target);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_MICROKERNELMENU_H
