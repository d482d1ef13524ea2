//===- SharedMemoryCommunicator.cpp - Ranks of one machine ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"

#include "GatheredRows.h"
#include "RankSum.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

using namespace sandwich;

// Every collective is a sequence of steps, numbered through over the life of a
// lane. What a rank writes in a step goes to the slot of that number modulo
// four, and two counters tell the others how far it is. No collective waits for
// others to have read a slot: docs/RationaleCollectives.md shows that four
// slots make what it waits for anyway sufficient.

namespace {
/// A pair of cache lines, the least that ranks hand to each other.
constexpr int64_t granule = 128 / sizeof(float);
/// Parts of a message up to this size go in one step each.
constexpr int64_t leastBlock = 4096 / sizeof(float);
/// So many steps of a message overlap writing with summing well enough.
constexpr int64_t blocksOfMessage = 4;
/// From this size on, more than two ranks sum one segment each.
constexpr int64_t leastInSegments = 16384 / sizeof(float);
} // namespace

static void copyElements(float *to, const float *from, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

SharedMemoryCommunicator::SharedMemoryCommunicator(
    std::shared_ptr<SharedMemorySegment> shared, int32_t rank)
    : Communicator(rank, shared->ranks()), segment(std::move(shared)),
      patience(
          WaitableCounter::patienceBetweenSteps(segment->oversubscribed())),
      nextSteps(static_cast<size_t>(segment->lanes()) + 1) {}

Result<std::unique_ptr<SharedMemoryCommunicator>>
SharedMemoryCommunicator::create(std::shared_ptr<SharedMemorySegment> segment,
                                 int32_t rank) {
  SANDWICH_RETURN_IF_ERROR(segment->join(rank));
  return std::unique_ptr<SharedMemoryCommunicator>(
      new SharedMemoryCommunicator(std::move(segment), rank));
}

/// The elements of one step of `count`, at most `most`.
int64_t SharedMemoryCommunicator::blockOf(int64_t count, int64_t most) const {
  // Where ranks share cores, every step is a change of threads.
  if (segment->oversubscribed())
    return most;
  int64_t block = roundUp(divideUp(count, blocksOfMessage), granule);
  return std::min(std::max(block, leastBlock), most);
}

bool SharedMemoryCommunicator::canRun(int32_t lane, int32_t lanes) {
  if (hasFailed())
    return false;
  if (lane >= 0 && lane < lanes && lanes <= segment->lanes())
    return true;
  segment->abort(rank(), "ran a collective as thread " + std::to_string(lane) +
                             " of " + std::to_string(lanes) +
                             ", but the ranks share memory for " +
                             std::to_string(segment->lanes()));
  return false;
}

bool SharedMemoryCommunicator::waitWritten(int32_t rank, int32_t lane,
                                           uint32_t step) {
  return segment->progress(rank, lane)
      .written.waitUntil(step + 1, patience, segment->aborted());
}

bool SharedMemoryCommunicator::waitSummed(int32_t rank, int32_t lane,
                                          uint32_t step) {
  return segment->progress(rank, lane)
      .summed.waitUntil(step + 1, patience, segment->aborted());
}

void SharedMemoryCommunicator::allReduce(int32_t lane, int32_t lanes,
                                         float *data, int64_t count) {
  if (ranks() == 1 || !canRun(lane, lanes))
    return;
  LanePart part = LanePart::of(count, lane, lanes);
  int64_t size = part.end - part.begin;
  // Two ranks read as much of each other either way, and wait less this way.
  // Where ranks share cores, one wait costs more than reading a slot of all.
  int64_t least =
      segment->oversubscribed() ? slotElements() + 1 : leastInSegments;
  if (ranks() == 2 || size < least)
    sumAtOnce(lane, data + part.begin, size);
  else
    sumInSegments(lane, data + part.begin, size);
}

/// Runs `blocks` steps of `lane`. `write(i, step)` fills own slots with block
/// i, before `use(i - 1, step - 1)` waits for that of others and uses it; it
/// returns false if it waits in vain.
template <typename Write, typename Use>
void SharedMemoryCommunicator::runBlocks(int32_t lane, int64_t blocks,
                                         const Write &write, const Use &use) {
  uint32_t first = takeSteps(lane, blocks);
  auto stepOf = [&](int64_t i) { return first + static_cast<uint32_t>(i); };
  auto publish = [&](int64_t i) {
    write(i, stepOf(i));
    publishWritten(lane, stepOf(i));
  };
  if (blocks > 0)
    publish(0);
  for (int64_t i = 0; i < blocks; ++i) {
    if (i + 1 < blocks)
      publish(i + 1);
    if (!use(i, stepOf(i)))
      return;
  }
}

/// Every rank writes everything and sums everything.
void SharedMemoryCommunicator::sumAtOnce(int32_t lane, float *data,
                                         int64_t count) {
  int64_t block = blockOf(count, slotElements());
  auto sizeOf = [&](int64_t i) { return std::min(block, count - i * block); };
  std::array<const float *, SharedMemorySegment::maxRanks> sources;
  runBlocks(
      lane, divideUp(count, block),
      [&](int64_t i, uint32_t step) {
        copyElements(slot(rank(), lane, step), data + i * block, sizeOf(i));
      },
      [&](int64_t i, uint32_t step) {
        float *own = data + i * block;
        sources[static_cast<size_t>(rank())] = own;
        for (int32_t distance = 1; distance < ranks(); ++distance) {
          int32_t other = rankAfter(distance);
          if (!waitWritten(other, lane, step))
            return false;
          sources[static_cast<size_t>(other)] = slot(other, lane, step);
        }
        sumRanks(sources.data(), ranks(), own, nullptr, sizeOf(i));
        return true;
      });
}

/// In each step, rank r sums segment r of what all have written, and all fetch
/// the sums: what a rank reads of the others does not grow with their number.
/// While the sums of one step are on their way, the next ones' data is written.
void SharedMemoryCommunicator::sumInSegments(int32_t lane, float *data,
                                             int64_t count) {
  int64_t most = slotElements() / ranks() / granule * granule;
  int64_t segmentSize = blockOf(divideUp<int64_t>(count, ranks()), most);
  int64_t blocks = divideUp(count, segmentSize * ranks());
  /// The elements of segment `which` of block `i`, evenly dealt in the last.
  struct Range {
    int64_t begin;
    int64_t size;
  };
  auto rangeOf = [&](int64_t i, int32_t which) -> Range {
    int64_t begin = i * segmentSize * ranks();
    int64_t size = std::min(count - begin, segmentSize * ranks());
    LanePart part = LanePart::of(size, which, ranks());
    return {begin + part.begin, part.end - part.begin};
  };
  auto slotOf = [&](int32_t rank, uint32_t step, int32_t which) {
    return slot(rank, lane, step) + which * segmentSize;
  };
  auto write = [&](int64_t i, uint32_t step) {
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      Range range = rangeOf(i, other);
      copyElements(slotOf(rank(), step, other), data + range.begin, range.size);
    }
  };
  auto sum = [&](int64_t i, uint32_t step) {
    Range range = rangeOf(i, rank());
    float *own = data + range.begin;
    std::array<const float *, SharedMemorySegment::maxRanks> sources;
    sources[static_cast<size_t>(rank())] = own;
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      if (!waitWritten(other, lane, step))
        return false;
      sources[static_cast<size_t>(other)] = slotOf(other, step, rank());
    }
    sumRanks(sources.data(), ranks(), own, slotOf(rank(), step, rank()),
             range.size);
    publishSummed(lane, step);
    return true;
  };
  auto fetch = [&](int64_t i, uint32_t step) {
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      if (!waitSummed(other, lane, step))
        return false;
      Range range = rangeOf(i, other);
      copyElements(data + range.begin, slotOf(other, step, other), range.size);
    }
    return true;
  };
  runBlocks(lane, blocks, write, [&](int64_t i, uint32_t step) {
    return sum(i, step) && (i == 0 || fetch(i - 1, step - 1)) &&
           (i + 1 < blocks || fetch(i, step));
  });
}

/// Passes [0, count) in blocks through the slots of all ranks: `write(slot,
/// begin, size)` fills an own one, `read(rank, slot, begin, size)` sees that of
/// each other rank.
template <typename Write, typename Read>
void SharedMemoryCommunicator::exchangeBlocks(int32_t lane, int64_t count,
                                              const Write &write,
                                              const Read &read) {
  if (ranks() == 1)
    return;
  int64_t block = blockOf(count, slotElements());
  auto sizeOf = [&](int64_t i) { return std::min(block, count - i * block); };
  runBlocks(
      lane, divideUp(count, block),
      [&](int64_t i, uint32_t step) {
        write(slot(rank(), lane, step), i * block, sizeOf(i));
      },
      [&](int64_t i, uint32_t step) {
        for (int32_t distance = 1; distance < ranks(); ++distance) {
          int32_t other = rankAfter(distance);
          if (!waitWritten(other, lane, step))
            return false;
          read(other, slot(other, lane, step), i * block, sizeOf(i));
        }
        return true;
      });
}

/// Publishes `part`, [count], and calls `place(rank, elements, begin, size)`
/// with those of all ranks, whose elements begin with number `begin`.
template <typename Place>
void SharedMemoryCommunicator::gatherBlocks(int32_t lane, const float *part,
                                            int64_t count, const Place &place) {
  place(rank(), part, 0, count);
  exchangeBlocks(
      lane, count,
      [&](float *slot, int64_t begin, int64_t size) {
        copyElements(slot, part + begin, size);
      },
      place);
}

void SharedMemoryCommunicator::allGather(int32_t lane, int32_t lanes,
                                         const float *part, float *whole,
                                         int64_t rows, int64_t columns) {
  if (!canRun(lane, lanes))
    return;
  LanePart own = LanePart::of(rows * columns, lane, lanes);
  gatherBlocks(
      lane, part + own.begin, own.end - own.begin,
      [&](int32_t rank, const float *from, int64_t begin, int64_t size) {
        placeElements(whole + rank * columns, columns * ranks(), from,
                      own.begin + begin, size, columns);
      });
}

void SharedMemoryCommunicator::gatherPart(int32_t lane, const float *part,
                                          float *all, int64_t count) {
  if (!canRun(lane, lane + 1))
    return;
  gatherBlocks(
      lane, part, count,
      [&](int32_t rank, const float *from, int64_t begin, int64_t size) {
        copyElements(all + rank * count + begin, from, size);
      });
}

/// Everybody takes part in every step, as in the others of this lane, so that
/// the root knows when a slot is free.
void SharedMemoryCommunicator::sharePart(int32_t lane, float *data,
                                         int64_t count, int32_t root) {
  if (ranks() == 1 || !canRun(lane, lane + 1))
    return;
  exchangeBlocks(
      lane, count,
      [&](float *slot, int64_t begin, int64_t size) {
        if (rank() == root)
          copyElements(slot, data + begin, size);
      },
      [&](int32_t other, const float *slot, int64_t begin, int64_t size) {
        if (other == root)
          copyElements(data + begin, slot, size);
      });
}

// In the lane of broadcasts and barriers "written" means done with: it is what
// those who read tell the root as well, so that a root knows when a slot is
// free.
void SharedMemoryCommunicator::broadcast(void *data, size_t bytes,
                                         int32_t root) {
  int32_t lane = segment->lanes();
  if (ranks() == 1 || !canRun(0, 1))
    return;
  if (root < 0 || root >= ranks()) {
    segment->abort(rank(), "ran a broadcast from rank " + std::to_string(root));
    return;
  }
  auto *next = static_cast<std::byte *>(data);
  while (bytes > 0) {
    size_t size = std::min<size_t>(bytes, segment->slotBytes());
    uint32_t step = takeSteps(lane, 1);
    if (rank() == root) {
      for (int32_t distance = 1; distance < ranks(); ++distance)
        if (!waitWritten(rankAfter(distance), lane,
                         step - SharedMemorySegment::slotsPerLane))
          return;
      std::memcpy(segment->slot(root, lane, step), next, size);
    } else {
      if (!waitWritten(root, lane, step))
        return;
      std::memcpy(next, segment->slot(root, lane, step), size);
    }
    publishWritten(lane, step);
    next += size;
    bytes -= size;
  }
}

void SharedMemoryCommunicator::barrier() {
  int32_t lane = segment->lanes();
  if (ranks() == 1 || !canRun(0, 1))
    return;
  uint32_t step = takeSteps(lane, 1);
  publishWritten(lane, step);
  for (int32_t distance = 1; distance < ranks(); ++distance)
    if (!waitWritten(rankAfter(distance), lane, step))
      return;
}
