//===- SharedMemoryCommunicator.h - Ranks of one machine --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collectives over a `SharedMemorySegment`, after section 6.2 of the Sandwich
/// paper: rank r begins with what is for, or from, rank r + 1 and goes round
/// from there, so that no two ranks are at the same place and nobody waits for
/// a master, unless the segment asks for another all-reduce (`Collectives`).
/// Each pair of ranks has boxes in which they answer each other, so that a
/// cache line moves once for each message and is never shared.
/// docs/RationaleCollectives.md tells how and why.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_SHAREDMEMORYCOMMUNICATOR_H
#define SANDWICH_RUNTIME_COMMUNICATION_SHAREDMEMORYCOMMUNICATOR_H

#include "sandwich/Runtime/Communication/Communicator.h"
#include "sandwich/Runtime/Communication/SharedMemorySegment.h"

#include <memory>
#include <vector>

namespace sandwich {

class SharedMemoryCommunicator : public Communicator {
public:
  /// Takes `rank` of `segment` for this process, and sums as the segment's
  /// `collectives` say, so that all its ranks sum alike. Errors: `rank` is no
  /// rank of the segment, or taken.
  static Result<std::unique_ptr<SharedMemoryCommunicator>>
  create(std::shared_ptr<SharedMemorySegment> segment, int32_t rank);

  /// The most lanes of a collective.
  int32_t lanes() const { return segment->lanes(); }

  void allReduce(int32_t lane, int32_t lanes, float *data,
                 int64_t count) override;
  void allGather(int32_t lane, int32_t lanes, const float *part, float *whole,
                 int64_t rows, int64_t columns) override;
  void broadcast(void *data, size_t bytes, int32_t root) override;
  void barrier() override;

  // What `lane` does, with its part cut out.
  /// Every rank's `part`, [count], becomes a row of `all`, [ranks, count].
  void gatherPart(int32_t lane, const float *part, float *all, int64_t count);
  /// Replaces `data`, [count], by that of rank `root`.
  void sharePart(int32_t lane, float *data, int64_t count, int32_t root);

  Status failure() const override { return segment->failure(); }
  /// As `failure`, for use between any two collectives: what the one before
  /// has left is of no use then.
  bool hasFailed() const {
    return segment->aborted().load(std::memory_order_relaxed) != 0;
  }

protected:
  SharedMemoryCommunicator(std::shared_ptr<SharedMemorySegment> segment,
                           int32_t rank);

  /// The `distance`th rank after this one.
  int32_t rankAfter(int32_t distance) const {
    return (rank() + distance) % ranks();
  }
  /// Where rank `from` puts what is for rank `to` in `step`. When it is used
  /// again, `to` writes it and `from` reads it, so that whoever writes has the
  /// cache lines already.
  float *box(int32_t from, int32_t to, int32_t lane, uint32_t step) const;
  /// The floats that fit in a box.
  int64_t boxElements() const;
  /// Whether a collective of `lanes` lanes can run in `lane`. One with more
  /// than the segment has fails the group.
  bool canRun(int32_t lane, int32_t lanes);
  /// Whether `rank` has written its boxes of `step`; false if the group failed.
  bool waitWritten(int32_t rank, int32_t lane, uint32_t step);
  void publishWritten(int32_t lane, uint32_t step) {
    segment->progress(rank(), lane).written.raiseTo(step + 1);
  }
  /// Puts `count` floats into this rank's boxes of `step` for all others.
  void writeToAll(int32_t lane, uint32_t step, const float *data,
                  int64_t count);
  /// The first of the next `count` steps of `lane`, which are taken.
  uint32_t takeSteps(int32_t lane, int64_t count) {
    uint32_t first = nextSteps[static_cast<size_t>(lane)].step;
    nextSteps[static_cast<size_t>(lane)].step += static_cast<uint32_t>(count);
    return first;
  }

private:
  int64_t blockOf(int64_t count) const;
  void sumAtOnce(int32_t lane, float *data, int64_t count);
  void sumInSegments(int32_t lane, float *data, int64_t count);
  template <typename Write, typename Read>
  void exchangeBlocks(int32_t lane, int64_t count, const Write &write,
                      const Read &read);
  template <typename Place>
  void gatherBlocks(int32_t lane, const float *part, int64_t count,
                    const Place &place);

  // Adjacent cache lines are fetched in pairs.
  struct alignas(128) NextStep {
    uint32_t step = 0;
  };

  const std::shared_ptr<SharedMemorySegment> segment;
  const WaitableCounter::Patience patience;
  /// Of each lane, as many as the segment has and one.
  std::vector<NextStep> nextSteps;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_SHAREDMEMORYCOMMUNICATOR_H
