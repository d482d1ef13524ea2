//===- MemoryReading.cpp - How fast a team reads memory -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Support/ElapsedTime.h"

#include "sandwich/Support/WidestVectors.h"

#include <atomic>
#include <chrono>
#include <cstdint>

using namespace sandwich;

namespace {

struct ReadTask {
  std::span<const std::byte> memory;
  unsigned threads;
  /// Keeps the loads from being removed.
  std::atomic<uint64_t> sum{0};
};

} // namespace

// With 16-byte loads a core cannot keep enough cache lines on their way: on
// Zen 5 they read at three quarters of the speed of 64-byte ones.

/// Adds up `count` cache lines, with the widest loads this CPU has.
SANDWICH_WIDEST_VECTORS
static uint64_t sumLines(const std::byte *memory, size_t count) {
  typedef uint64_t Line __attribute__((vector_size(64), may_alias));
  const auto *data = reinterpret_cast<const Line *>(memory);
  Line sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t j = 0; j < 4; ++j)
      sums[j] += data[i + j];
  for (; i < count; ++i)
    sums[0] += data[i];
  Line total = sums[0] + sums[1] + sums[2] + sums[3];
  uint64_t sum = 0;
  for (size_t j = 0; j < 8; ++j)
    sum += total[j];
  return sum;
}

/// Adds up `thread`'s part of the memory.
static void readPart(void *context, int32_t thread) {
  auto &task = *static_cast<ReadTask *>(context);
  constexpr size_t lineBytes = 64;
  size_t lines = task.memory.size() / lineBytes;
  size_t index = static_cast<size_t>(thread);
  size_t begin = lines / task.threads * index;
  size_t end =
      index + 1 == task.threads ? lines : lines / task.threads * (index + 1);
  task.sum.fetch_add(
      sumLines(task.memory.data() + begin * lineBytes, end - begin),
      std::memory_order_relaxed);
}

double sandwich::readSeconds(PhaseTeam &team, unsigned threads,
                             std::span<const std::byte> memory) {
  using Clock = std::chrono::steady_clock;
  ReadTask task{memory, threads};
  Clock::time_point begin = Clock::now();
  team.run(threads, readPart, &task);
  return secondsSince(begin);
}
