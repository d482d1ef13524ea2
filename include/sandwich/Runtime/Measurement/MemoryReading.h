//===- MemoryReading.h - How fast a team reads memory -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_MEMORYREADING_H
#define SANDWICH_RUNTIME_MEASUREMENT_MEMORYREADING_H

#include "sandwich/Runtime/Teams/PhaseTeam.h"

#include <cstddef>
#include <span>

namespace sandwich {

/// Seconds that `threads` threads of `team` take to read `memory`, each its
/// part once with the widest loads this CPU has: the limit of everything that
/// is bound by memory.
double readSeconds(PhaseTeam &team, unsigned threads,
                   std::span<const std::byte> memory);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_MEMORYREADING_H
