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
#include <cstdint>
#include <span>

namespace sandwich {

/// Reads memory with the threads of a team and does nothing else, each thread
/// its part once with the widest loads this CPU has: the limit of everything
/// that is bound by memory. A thread reads as many streams of its part side by
/// side as are fastest on this machine: hardware prefetches each of them, and a
/// Zen 3 reads four at once a third faster than one.
class MemoryReader {
public:
  /// Reads the beginning of `memory` a few times to find how many streams are
  /// fastest with `threads` threads of `team`, which outlives the reader. What
  /// fits the caches says little about memory. All memory begins at a multiple
  /// of 8.
  MemoryReader(PhaseTeam &team, unsigned threads,
               std::span<const std::byte> memory);

  /// Seconds that all threads, or the first `threads` of them, take to read
  /// `memory`.
  double seconds(std::span<const std::byte> memory) const;
  double seconds(std::span<const std::byte> memory, unsigned threads) const;

  /// Of a thread.
  unsigned streamCount() const { return streams; }

private:
  PhaseTeam *team;
  unsigned threads;
  unsigned streams = 1;
};

/// The sum of all 64-bit words of the whole cache lines of `memory`, read in so
/// many streams as a reader may try: 1, 4, 6 or 8.
uint64_t sumLines(std::span<const std::byte> memory, unsigned streams);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_MEMORYREADING_H
