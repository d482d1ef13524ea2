//===- RankWatch.h - Starts ranks and looks after them ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_RANKS_RANKWATCH_H
#define SANDWICH_LIB_RUNTIME_RANKS_RANKWATCH_H

#include "LateRanks.h"
#include "sandwich/Runtime/Communication/Heartbeats.h"

#include "sandwich/Runtime/Communication/HostCommunicator.h"
#include "sandwich/Runtime/Communication/SharedMemorySegment.h"
#include "sandwich/Support/Result.h"

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sandwich {

/// The program that runs ranks where none is named: sandwich-run in the folder
/// of this library, in the `bin` beside that folder, in the `bin` beside `lib`
/// where that is the folder around it, or in the folder of this program. Error:
/// it is nowhere there.
Result<std::string> findRankProgram();

/// The thread that starts the ranks and looks after them. It is the parent that
/// their PR_SET_PDEATHSIG means: that is a thread, not a process.
class RankWatch {
public:
  RankWatch(std::shared_ptr<SharedMemorySegment> shared,
            std::shared_ptr<HostCommunicator> others, std::string program,
            std::string artifact, std::function<void(const Error &)> onOwnHang,
            std::chrono::milliseconds hang)
      : segment(std::move(shared)), hosts(std::move(others)),
        program(std::move(program)), artifact(std::move(artifact)),
        onOwnHang(std::move(onOwnHang)),
        mostMissed(static_cast<int>(hang.count()) / lookMilliseconds),
        lateRanks(*segment, std::chrono::milliseconds(lookMilliseconds), hang) {
  }
  ~RankWatch();

  Status start();
  const std::vector<int> &processes() const { return started; }
  /// The ranks were told to end, and get the time to do so.
  void expectEnd() { ending = true; }
  /// From now on ranks wait for each other in steps, which `teamThreads` of
  /// the first rank run, and its thread `announcer`.
  void expectSteps(std::vector<pid_t> teamThreads) {
    std::lock_guard lock(mutex);
    ownThreads = std::move(teamThreads);
    runsSteps = true;
  }
  void setAnnouncer(pid_t thread) { announcer = thread; }
  /// Ends the ranks of this host, for a reason that its first rank tells.
  void abort(const char *reason) {
    endedHere = true;
    segment->abort(0, reason);
  }

private:
  struct Child {
    int32_t rank = 0;
    pid_t process = -1;
    /// Of the process; -1 if the system gave none.
    int handle = -1;
    bool ended = false;
    uint64_t lastBeat = 0;
    /// Looks since the last beat, or since it ended.
    int missed = 0;
  };

  Status spawn();
  Status spawnRank(int32_t rank);
  void run();
  void watch();
  /// Waits for `event`, -1 for none, and the ends of ranks. Returns whether
  /// `event` came.
  bool wait(int event, int milliseconds);
  void look();
  void look(Child &child, bool counts);
  void lookForHangs();
  /// How `child` has ended, told once, or nothing.
  std::optional<siginfo_t> reap(Child &child);
  void abort(const Child &child, const std::string &reason);
  void waitForEnds();
  void endAll();

  const std::shared_ptr<SharedMemorySegment> segment;
  const std::shared_ptr<HostCommunicator> hosts;
  const std::string program, artifact;
  const std::function<void(const Error &)> onOwnHang;
  /// So many looks in a row that find no beat are a failure.
  const int mostMissed;
  std::mutex mutex;
  std::vector<pid_t> ownThreads;
  bool runsSteps = false;
  std::atomic<pid_t> announcer = 0;
  /// From here on of the thread alone.
  LateRanks lateRanks;
  std::vector<Child> children;
  std::vector<pollfd> events;
  std::chrono::steady_clock::time_point looked;
  bool ownHang = false;
  /// Complete once `start` has returned.
  std::vector<int> started;
  std::atomic<bool> ending = false, endedHere = false;
  int stopEvent = -1;
  std::thread thread;
};

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_RANKS_RANKWATCH_H
