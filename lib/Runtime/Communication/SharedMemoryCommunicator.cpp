//===- SharedMemoryCommunicator.cpp - Ranks of one machine ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"

#include "GatheredRows.h"
#include "MasterCopiesCommunicator.h"
#include "RankSum.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

using namespace sandwich;

// Every collective is a sequence of steps, numbered through over the life of a
// lane. What a rank has for another in a step goes to their box of that step,
// and one counter tells all others how far it is. No collective waits for
// others to have read a box: docs/RationaleCollectives.md shows that what it
// waits for anyway is sufficient.
//
// Boxes are plain memory. Raising a counter releases what this rank wrote into
// its boxes, and what it has read from others', which they write next; waiting
// for it acquires both. So every access to a box comes before the other rank's
// next one, on CPUs that keep no order by themselves as well.

namespace {
/// A pair of cache lines, the least that ranks hand to each other.
constexpr int64_t granule = 128 / sizeof(float);
/// Parts of a message up to this size go in one step each.
constexpr int64_t leastBlock = 8192 / sizeof(float);
/// So many steps of a message overlap writing with summing well enough.
constexpr int64_t blocksOfMessage = 2;
/// From this size on, more than two ranks sum one segment each.
constexpr int64_t leastInSegments = 16384 / sizeof(float);
} // namespace

static void copyElements(float *to, const float *from, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

static void readBox(float *to, const float *box, int64_t count) {
  takeBox(box, count);
  copyElements(to, box, count);
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
  std::unique_ptr<SharedMemoryCommunicator> communicator;
  switch (segment->collectives()) {
  case Collectives::RankShifted:
    communicator.reset(new SharedMemoryCommunicator(std::move(segment), rank));
    break;
  case Collectives::MasterCopies:
    communicator.reset(new MasterCopiesCommunicator(std::move(segment), rank));
    break;
  }
  return communicator;
}

int64_t SharedMemoryCommunicator::boxElements() const {
  auto slot = static_cast<int64_t>(segment->slotBytes() / sizeof(float));
  return slot / (ranks() - 1) / granule * granule;
}

// The boxes of two ranks for each other lie one in each rank's slot, and change
// their places every time that this slot is used again.
float *SharedMemoryCommunicator::box(int32_t from, int32_t to, int32_t lane,
                                     uint32_t step) const {
  if (step / SharedMemorySegment::slotsPerLane % 2 != 0)
    std::swap(from, to);
  int32_t distance = (to - from + ranks()) % ranks();
  return reinterpret_cast<float *>(segment->slot(from, lane, step)) +
         (distance - 1) * boxElements();
}

/// The elements of one step of `count`, at most those of a box.
int64_t SharedMemoryCommunicator::blockOf(int64_t count) const {
  // Where ranks share cores, every step is a change of threads.
  if (segment->oversubscribed())
    return boxElements();
  int64_t block = roundUp(divideUp(count, blocksOfMessage), granule);
  return std::min(std::max(block, leastBlock), boxElements());
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

void SharedMemoryCommunicator::writeToAll(int32_t lane, uint32_t step,
                                          const float *data, int64_t count) {
  for (int32_t distance = 1; distance < ranks(); ++distance)
    copyElements(box(rank(), rankAfter(distance), lane, step), data, count);
}

void SharedMemoryCommunicator::allReduce(int32_t lane, int32_t lanes,
                                         float *data, int64_t count) {
  if (ranks() == 1 || !canRun(lane, lanes))
    return;
  LanePart part = LanePart::of(count, lane, lanes);
  int64_t size = part.end - part.begin;
  // Two ranks read as much of each other either way, and wait less this way.
  // Where ranks share cores, one wait costs more than reading a box of all.
  int64_t least =
      segment->oversubscribed() ? boxElements() + 1 : leastInSegments;
  if (ranks() == 2 || size < least)
    sumAtOnce(lane, data + part.begin, size);
  else
    sumInSegments(lane, data + part.begin, size);
}

/// Every rank writes everything and sums everything. Each line of a box is
/// written again, with what comes two blocks later, as soon as it is read.
void SharedMemoryCommunicator::sumAtOnce(int32_t lane, float *data,
                                         int64_t count) {
  constexpr int64_t ahead = SharedMemorySegment::slotsPerLane;
  int64_t block = blockOf(count);
  int64_t blocks = divideUp(count, block);
  uint32_t first = takeSteps(lane, blocks);
  auto stepOf = [&](int64_t i) { return first + static_cast<uint32_t>(i); };
  auto sizeOf = [&](int64_t i) {
    return std::clamp<int64_t>(count - i * block, 0, block);
  };
  for (int64_t i = 0; i < std::min(ahead, blocks); ++i) {
    writeToAll(lane, stepOf(i), data + i * block, sizeOf(i));
    publishWritten(lane, stepOf(i));
  }
  std::array<float *, SharedMemorySegment::maxRanks> terms;
  for (int64_t i = 0; i < blocks; ++i) {
    float *own = data + i * block;
    terms[static_cast<size_t>(rank())] = own;
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      if (!waitWritten(other, lane, stepOf(i)))
        return;
      terms[static_cast<size_t>(other)] = box(other, rank(), lane, stepOf(i));
    }
    int64_t answered = sizeOf(i + ahead);
    sumAndAnswer(terms.data(), rank(), ranks(), sizeOf(i),
                 answered > 0 ? own + ahead * block : nullptr, answered);
    if (i + ahead < blocks)
      publishWritten(lane, stepOf(i + ahead));
  }
}

/// Of each block, rank r sums segment r of what all have written, and all fetch
/// the sums: what a rank reads of the others does not grow with their number.
/// While the sums of one block are on their way, the next one's data is
/// written.
void SharedMemoryCommunicator::sumInSegments(int32_t lane, float *data,
                                             int64_t count) {
  int64_t segmentSize = blockOf(divideUp<int64_t>(count, ranks()));
  int64_t blockSize = segmentSize * ranks();
  int64_t blocks = divideUp(count, blockSize);
  // One step for the data of each block, and one for its sums.
  uint32_t first = takeSteps(lane, 2 * blocks);
  auto dataStep = [&](int64_t i) {
    return first + 2 * static_cast<uint32_t>(i);
  };
  /// The elements of segment `which` of block `i`, evenly dealt in the last.
  struct Range {
    float *begin;
    int64_t size;
  };
  auto segmentOf = [&](int64_t i, int32_t which) -> Range {
    int64_t begin = i * blockSize;
    LanePart part =
        LanePart::of(std::min(count - begin, blockSize), which, ranks());
    return {data + begin + part.begin, part.end - part.begin};
  };
  auto write = [&](int64_t i) {
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      Range range = segmentOf(i, other);
      copyElements(box(rank(), other, lane, dataStep(i)), range.begin,
                   range.size);
    }
    publishWritten(lane, dataStep(i));
  };
  auto sum = [&](int64_t i) {
    Range range = segmentOf(i, rank());
    std::array<float *, SharedMemorySegment::maxRanks> terms;
    terms[static_cast<size_t>(rank())] = range.begin;
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      if (!waitWritten(other, lane, dataStep(i)))
        return false;
      terms[static_cast<size_t>(other)] = box(other, rank(), lane, dataStep(i));
    }
    sumAndAnswer(terms.data(), rank(), ranks(), range.size, nullptr, 0);
    writeToAll(lane, dataStep(i) + 1, range.begin, range.size);
    publishWritten(lane, dataStep(i) + 1);
    return true;
  };
  auto fetch = [&](int64_t i) {
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      if (!waitWritten(other, lane, dataStep(i) + 1))
        return false;
      Range range = segmentOf(i, other);
      readBox(range.begin, box(other, rank(), lane, dataStep(i) + 1),
              range.size);
    }
    return true;
  };
  if (blocks > 0)
    write(0);
  for (int64_t i = 0; i < blocks; ++i) {
    if (!sum(i))
      return;
    if (i + 1 < blocks)
      write(i + 1);
    if (!fetch(i))
      return;
  }
}

/// Passes [0, count) in blocks through the boxes of all ranks: `write(step,
/// begin, size)` fills own ones before `read(rank, box, begin, size)` sees that
/// of each other rank of the step before.
template <typename Write, typename Read>
void SharedMemoryCommunicator::exchangeBlocks(int32_t lane, int64_t count,
                                              const Write &write,
                                              const Read &read) {
  if (ranks() == 1)
    return;
  int64_t block = blockOf(count);
  int64_t blocks = divideUp(count, block);
  uint32_t first = takeSteps(lane, blocks);
  auto stepOf = [&](int64_t i) { return first + static_cast<uint32_t>(i); };
  auto sizeOf = [&](int64_t i) { return std::min(block, count - i * block); };
  auto publish = [&](int64_t i) {
    write(stepOf(i), i * block, sizeOf(i));
    publishWritten(lane, stepOf(i));
  };
  if (blocks > 0)
    publish(0);
  for (int64_t i = 0; i < blocks; ++i) {
    if (i + 1 < blocks)
      publish(i + 1);
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      int32_t other = rankAfter(distance);
      if (!waitWritten(other, lane, stepOf(i)))
        return;
      read(other, box(other, rank(), lane, stepOf(i)), i * block, sizeOf(i));
    }
  }
}

/// Publishes `part`, [count], and calls `place(rank, elements, begin, size)`
/// with those of all ranks, whose elements begin with number `begin`.
template <typename Place>
void SharedMemoryCommunicator::gatherBlocks(int32_t lane, const float *part,
                                            int64_t count, const Place &place) {
  place(rank(), part, 0, count);
  exchangeBlocks(
      lane, count,
      [&](uint32_t step, int64_t begin, int64_t size) {
        writeToAll(lane, step, part + begin, size);
      },
      [&](int32_t other, const float *box, int64_t begin, int64_t size) {
        takeBox(box, size);
        place(other, box, begin, size);
      });
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
/// the root knows when a box is free.
void SharedMemoryCommunicator::sharePart(int32_t lane, float *data,
                                         int64_t count, int32_t root) {
  if (ranks() == 1 || !canRun(lane, lane + 1))
    return;
  exchangeBlocks(
      lane, count,
      [&](uint32_t step, int64_t begin, int64_t size) {
        if (rank() == root)
          writeToAll(lane, step, data + begin, size);
      },
      [&](int32_t other, const float *box, int64_t begin, int64_t size) {
        if (other == root)
          readBox(data + begin, box, size);
      });
}

// In the lane of broadcasts and barriers "written" means done with: it is what
// those who read tell the root as well, so that a root knows when a box is
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
    size_t size =
        std::min(bytes, static_cast<size_t>(boxElements()) * sizeof(float));
    uint32_t step = takeSteps(lane, 1);
    if (rank() == root) {
      for (int32_t distance = 1; distance < ranks(); ++distance) {
        int32_t other = rankAfter(distance);
        // Who had the box before this rank had it.
        if (!waitWritten(other, lane,
                         step - 2 * SharedMemorySegment::slotsPerLane))
          return;
        std::memcpy(box(root, other, lane, step), next, size);
      }
    } else {
      if (!waitWritten(root, lane, step))
        return;
      std::memcpy(next, box(root, rank(), lane, step), size);
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
