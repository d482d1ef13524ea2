//===- LateRanks.h - Ranks that the others wait for -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tells a rank that hangs from one that works for long. Both beat, as the
/// heartbeat is a thread of its own; so this looks at how far the ranks are in
/// the collectives, and at what the threads of those that are late do.
///
/// All ranks run the same code on shards of the same size. So a rank hangs if
/// the others wait for it in a collective, and
/// - one of its threads has computed since then, as the system counts the time
///   of threads, for `leastHang` more than `hangFactor` times as long as
///   the others took to arrive there; or
/// - all its threads have been asleep for `asleepHang`, though there is nobody
///   whom it could wait for.
/// Time in the kernel, waiting for a disk, and waiting for a core say nothing:
/// a rank that is starved, stopped or served slowly is not accused.
///
/// The first rank of a host that waits for other hosts is none of these, as
/// long as it waits. Who alone is on its host is compared with the other hosts.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_RANKS_LATERANKS_H
#define SANDWICH_LIB_RUNTIME_RANKS_LATERANKS_H

#include "sandwich/Runtime/Communication/HostCommunicator.h"
#include "sandwich/Runtime/Communication/SharedMemorySegment.h"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// What a thread has done so far.
struct ThreadActivity {
  /// Computing, outside of the kernel.
  std::chrono::milliseconds computed{0};
  /// Waits for something that is neither a core nor a disk.
  bool asleep = false;
};

/// By thread identifier: the `threads` of a process, or all but its heartbeat
/// if there are none. What cannot be read, as it ended, is left out.
std::map<pid_t, ThreadActivity>
readThreads(pid_t process, std::span<const pid_t> threads = {});

/// The name of the thread that beats for a rank.
inline constexpr const char *heartbeatName = "heartbeat";

/// Looks are counted, not seconds, so that nothing is lost where the whole
/// group is stopped and goes on.
class LateRanks {
public:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr int hangFactor = 8;

  /// A rank's threads that work, as `readThreads` takes them.
  struct Workers {
    pid_t process = 0;
    std::vector<pid_t> threads = {};
  };
  struct Verdict {
    int32_t rank;
    /// For `SharedMemorySegment::abort`.
    std::string reason;
  };

  /// Looks come every `interval`. A rank hangs after about `hang`: `leastHang`
  /// is 0.8 times, and `asleepHang` 1.2 times as long.
  LateRanks(const SharedMemorySegment &segment, Milliseconds interval,
            Milliseconds hang = Milliseconds(1000))
      : segment(segment), interval(interval), leastHang(hang * 4 / 5),
        asleepHang(hang * 6 / 5), states(static_cast<size_t>(segment.ranks())) {
  }

  /// One look, with the workers of each rank, and how far the hosts are.
  /// Returns who hangs, if there is somebody.
  std::optional<Verdict> look(std::span<const Workers> workers,
                              const HostProgress &progress = {});

private:
  struct State {
    /// `written` of each lane.
    std::vector<uint32_t> counters;
    /// The look at which they had changed.
    int64_t moved = 0;
    /// The last look at which it had moved or computed.
    int64_t active = 0;
    /// Looks in a row that found it asleep.
    int64_t asleep = 0;
    /// While somebody is late: its threads now, and when it had last moved.
    std::map<pid_t, ThreadActivity> threads, before;
  };

  void readCounters();
  void readHosts(const HostProgress &progress);
  std::vector<size_t> findLate() const;
  /// The look at which those had arrived that wait for `rank`.
  int64_t arrivalAt(size_t rank, std::span<const size_t> late) const;
  void readActivity(std::span<const Workers> workers);
  /// Whether `rank` has done more than `other` in some lane.
  bool isAhead(const State &rank, const State &other) const;
  std::optional<std::string> judge(size_t rank, int64_t othersArrived) const;

  const SharedMemorySegment &segment;
  const Milliseconds interval;
  const Milliseconds leastHang, asleepHang;
  std::vector<State> states;
  int64_t looks = 0;
  HostProgress hosts;
  /// The look at which the last of the other hosts had moved.
  int64_t othersMoved = 0;
};

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_RANKS_LATERANKS_H
