//===- MemoryReading.cpp - How fast a team reads memory -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Statistics.h"
#include "sandwich/Support/WidestVectors.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

using namespace sandwich;

namespace {

struct ReadTask {
  std::span<const std::byte> memory;
  unsigned threads;
  unsigned streams;
  /// Keeps the loads from being removed.
  std::atomic<uint64_t> sum{0};
};

} // namespace

// With 16-byte loads a core cannot keep enough cache lines on their way: on
// Zen 5 they read at three quarters of the speed of 64-byte ones.

/// A cache line of memory that need not begin with one.
typedef uint64_t Line
    __attribute__((vector_size(64), may_alias, aligned(alignof(uint64_t))));

/// Adds up `count` cache lines, the same number of `Streams` parts in turn,
/// `LinesAtOnce` of each.
template <unsigned Streams, unsigned LinesAtOnce>
[[gnu::always_inline]] static inline uint64_t sumStreams(const Line *lines,
                                                         size_t count) {
  Line sums[4] = {};
  const size_t part = count / Streams / LinesAtOnce * LinesAtOnce;
  for (size_t i = 0; i < part; i += LinesAtOnce)
    for (size_t j = 0; j < Streams * LinesAtOnce; ++j)
      sums[j % 4] += lines[j / LinesAtOnce * part + i + j % LinesAtOnce];
  for (size_t i = Streams * part; i < count; ++i)
    sums[0] += lines[i];
  const Line total = sums[0] + sums[1] + sums[2] + sums[3];
  uint64_t sum = 0;
  for (size_t i = 0; i < 8; ++i)
    sum += total[i];
  return sum;
}

/// The numbers of streams that are tried.
static constexpr std::array<unsigned, 4> streamCounts = {1, 4, 6, 8};

SANDWICH_WIDEST_VECTORS
uint64_t sandwich::sumLines(std::span<const std::byte> memory,
                            unsigned streams) {
  const auto *lines = reinterpret_cast<const Line *>(memory.data());
  const size_t count = memory.size() / sizeof(Line);
  switch (streams) {
  case 4:
    return sumStreams<4, 1>(lines, count);
  case 6:
    return sumStreams<6, 1>(lines, count);
  case 8:
    return sumStreams<8, 1>(lines, count);
  default:
    return sumStreams<1, 4>(lines, count);
  }
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
  task.sum.fetch_add(sumLines(task.memory.subspan(begin * lineBytes,
                                                  (end - begin) * lineBytes),
                              task.streams),
                     std::memory_order_relaxed);
}

static double readSeconds(PhaseTeam &team, unsigned threads, unsigned streams,
                          std::span<const std::byte> memory) {
  using Clock = std::chrono::steady_clock;
  ReadTask task{memory, threads, streams};
  Clock::time_point begin = Clock::now();
  team.run(threads, readPart, &task);
  return secondsSince(begin);
}

MemoryReader::MemoryReader(PhaseTeam &team, unsigned threads,
                           std::span<const std::byte> memory)
    : team(&team), threads(threads) {
  // Enough for each thread to read from memory for milliseconds.
  constexpr size_t mostOfThread = size_t{64} << 20;
  memory = memory.first(std::min(memory.size(), mostOfThread * threads));
  constexpr size_t rounds = 3;
  std::array<std::vector<double>, streamCounts.size()> seconds;
  for (size_t round = 0; round < rounds; ++round)
    for (size_t i = 0; i < streamCounts.size(); ++i)
      seconds[i].push_back(readSeconds(team, threads, streamCounts[i], memory));
  std::array<double, streamCounts.size()> medians;
  std::ranges::transform(seconds, medians.begin(),
                         [](auto &each) { return median(std::move(each)); });
  streams = streamCounts[static_cast<size_t>(std::ranges::min_element(medians) -
                                             medians.begin())];
}

double MemoryReader::seconds(std::span<const std::byte> memory) const {
  return seconds(memory, threads);
}

double MemoryReader::seconds(std::span<const std::byte> memory,
                             unsigned threads) const {
  return readSeconds(*team, threads, streams, memory);
}
