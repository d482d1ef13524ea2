//===- SharedMemorySegment.h - What ranks share -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The memory in which the ranks of one machine meet: an anonymous file that
/// the launcher creates and whose descriptor it hands to the other ranks, so
/// that it has no name to collide with another's, and is gone with the last
/// process that has it.
///
/// It holds a header (shape, heartbeats, the group's failure) and for each rank
/// and lane a counter that this rank raises, and `slotsPerLane` slots of data.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_SHAREDMEMORYSEGMENT_H
#define SANDWICH_RUNTIME_COMMUNICATION_SHAREDMEMORYSEGMENT_H

#include "sandwich/Runtime/Communication/Collectives.h"
#include "sandwich/Runtime/Communication/WaitableCounter.h"
#include "sandwich/Support/Result.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <sys/types.h>

namespace sandwich {

struct SharedMemorySegmentOptions {
  /// Bytes of one slot: a multiple of 4096 from 8 KiB to 16 MiB; 0 for what
  /// suits the number of lanes.
  uint64_t slotBytes = 0;
  /// The machine has fewer CPUs than there are threads of all ranks: whoever
  /// waits lets go of its core at once, and messages go in fewer steps.
  bool oversubscribed = false;
  /// What the first rank is called, where others have ranks on other machines.
  int32_t firstRank = 0;
  /// How the ranks sum.
  Collectives collectives = Collectives::RankShifted;
};

/// Threads of several processes may use one segment at once.
class SharedMemorySegment {
public:
  static constexpr int32_t maxRanks = 64;
  /// Who failed if it was nobody here.
  static constexpr int32_t elsewhere = maxRanks;
  /// Those of a rank that are used in turn; docs/RationaleCollectives.md says
  /// why two.
  static constexpr uint32_t slotsPerLane = 2;

  /// How far one rank's thread of one lane is. Only that thread changes it.
  /// Adjacent cache lines are fetched in pairs, so what different threads
  /// write stays 128 bytes apart.
  struct alignas(128) Progress {
    /// The steps whose data lies in the slots.
    WaitableCounter written{WaitableCounter::Scope::Machine};
  };

  /// Bytes of the segment that `create` makes. Errors: numbers out of range.
  static Result<uint64_t>
  sizeFor(int32_t ranks, int32_t lanes,
          const SharedMemorySegmentOptions &options = {});

  /// Makes a segment for `ranks` processes with teams of up to `lanes` threads.
  /// All its memory is taken from the system at once. Errors: numbers out of
  /// range; the system does not give that much.
  static Result<std::shared_ptr<SharedMemorySegment>>
  create(int32_t ranks, int32_t lanes,
         const SharedMemorySegmentOptions &options = {});

  /// Maps the segment behind `descriptor`, which another process created with
  /// the same build of Sandwich; the descriptor stays the caller's. Nothing is
  /// used before it is checked. Errors: no segment, another build's, one that
  /// can shrink, or whose memory is not all there.
  static Result<std::shared_ptr<SharedMemorySegment>> attach(int descriptor);
  /// The name of this build of Sandwich, whose ranks understand each other.
  static std::string_view build();

  /// Whether `descriptor` is of a segment that another build of Sandwich made,
  /// which `attach` refuses.
  static bool isOfOtherBuild(int descriptor);

  SharedMemorySegment(const SharedMemorySegment &) = delete;
  SharedMemorySegment &operator=(const SharedMemorySegment &) = delete;
  ~SharedMemorySegment();

  /// Of the creator: what `attach` takes, closed on exec and with this object.
  /// -1 for one that was attached.
  int descriptor() const { return file; }

  int32_t ranks() const { return rankCount; }
  int32_t lanes() const { return laneCount; }
  uint64_t slotBytes() const { return bytesOfSlot; }
  bool oversubscribed() const { return sharesCores; }
  int32_t firstRank() const { return nameOfFirst; }
  Collectives collectives() const { return howToSum; }
  /// Bytes of the whole segment.
  uint64_t size() const { return bytes; }

  /// Takes `rank` for this process. Errors: out of range, or taken already.
  Status join(int32_t rank);
  /// The process that took `rank`, or 0.
  pid_t processOf(int32_t rank) const;

  /// Says that `rank` is alive.
  void beat(int32_t rank);
  /// Rank `rank` was told to end, and does.
  void leave(int32_t rank);
  bool hasLeft(int32_t rank) const;
  /// How often `rank` has beaten so far.
  uint64_t lastBeat(int32_t rank) const;

  /// Ends all collectives, now and later: `rank` failed, and `reason` says how
  /// ("was killed by signal 9"; 3000 bytes are kept, and "..." says that there
  /// was more). The first call counts.
  void abort(int32_t rank, std::string_view reason);
  /// Not 0 once the group is aborted.
  const std::atomic<uint32_t> &aborted() const;
  /// "rank RANK REASON" of `abort`, with `firstRank` added to the rank; just
  /// the reason if it failed elsewhere; or success.
  Status failure() const;

  /// Lane `lanes()` is for what one thread of each rank does alone.
  Progress &progress(int32_t rank, int32_t lane) const;
  /// The memory of `rank` for the data of `step`, aligned to 4096 bytes.
  std::byte *slot(int32_t rank, int32_t lane, uint32_t step) const;

private:
  struct Header;
  struct RankState;
  struct Layout;

  SharedMemorySegment() = default;
  static uint64_t slotBytesFor(int32_t lanes,
                               const SharedMemorySegmentOptions &options);
  static Result<Layout> layOut(uint64_t ranks, uint64_t lanes,
                               uint64_t slotBytes);
  Status map(int descriptor, const Layout &layout);
  Header &header() const;
  RankState &rankState(int32_t rank) const;

  int file = -1;
  std::byte *start = nullptr;
  uint64_t bytes = 0;
  uint64_t bytesOfSlot = 0;
  int32_t rankCount = 0;
  int32_t laneCount = 0;
  bool sharesCores = false;
  int32_t nameOfFirst = 0;
  Collectives howToSum = Collectives::RankShifted;
  uint64_t progressOffset = 0;
  uint64_t slotsOffset = 0;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_SHAREDMEMORYSEGMENT_H
