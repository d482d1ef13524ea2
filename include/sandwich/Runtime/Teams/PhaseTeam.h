//===- PhaseTeam.h - The threads that run phases ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A team of threads that enters a phase together once a step. The thread that
/// calls `run` is the team's thread 0, so starting a step wakes only the
/// others, and a step of one thread is a plain call. A waiting thread spins
/// briefly and then sleeps, which leaves its core to whoever wants it; a team
/// without work burns no CPU.
///
/// Each phase has a team, on the cores that its plan keeps awake (Sandwich
/// paper, section 3: prefill and decode switch between steps). Teams that take
/// turns share one thread for each core, so that two never wait for one core.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_PHASETEAM_H
#define SANDWICH_RUNTIME_TEAMS_PHASETEAM_H

#include "sandwich/Runtime/Communication/WaitableCounter.h"
#include "sandwich/Support/Result.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sandwich {

struct PhaseTeamOptions {
  /// Threads of the team, at least 1.
  unsigned threads = 1;
  /// Thread i stays on the CPU with operating-system index `cpus[i]` while it
  /// works; threads beyond the list go where the system puts them.
  std::vector<unsigned> cpus;
  /// More threads than CPUs: whoever waits lets go of its core at once.
  bool oversubscribed = false;
};

class TeamThreads;

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): parts threads.
class PhaseTeam {
public:
  /// Runs on every thread; `thread` is in [0, threads of the run).
  using Work = void (*)(void *context, int32_t thread);

  /// Starts the threads. Errors: the system grants no more threads.
  static Result<std::unique_ptr<PhaseTeam>>
  create(const PhaseTeamOptions &options);

  /// Teams that take turns, one for each phase: what one team's threads wrote,
  /// the next one's see. A CPU has one thread, whichever teams it works in, so
  /// that a switch from one team to another wakes only those who slept.
  /// Unpinned threads are shared by their number. Errors as `create`.
  static Result<std::vector<std::unique_ptr<PhaseTeam>>>
  createSharing(std::span<const PhaseTeamOptions> options);

  PhaseTeam(const PhaseTeam &) = delete;
  PhaseTeam &operator=(const PhaseTeam &) = delete;
  ~PhaseTeam();

  unsigned size() const { return options.threads; }

  /// Calls `work(context, 0..threads-1)`, each on a thread of its own, and
  /// returns when all have returned; `threads` is in [1, size()]. One call at
  /// a time, of all teams that share threads. The calling thread is kept on its
  /// CPU meanwhile and gets its affinity mask back.
  void run(unsigned threads, Work work, void *context);

  /// Lets the threads that wait for the next run sleep now rather than in a
  /// while, for who is about to use their cores; those of all teams that share
  /// them. From any thread, while no run is under way.
  void rest();

  /// Error: this process is a fork of the one that created the team, so that
  /// the team's threads are missing and `run` would never return.
  Status checkProcess() const;

  /// Called by every thread of the current run; returns once all have called.
  void barrier();

  /// Where each thread of the team may run, asked of the system while the team
  /// works: operating-system indexes of CPUs, ascending.
  std::vector<std::vector<unsigned>> readPlacement();

private:
  friend class TeamThreads;

  PhaseTeam(const PhaseTeamOptions &options,
            std::shared_ptr<TeamThreads> threads,
            std::vector<unsigned> members);

  const PhaseTeamOptions options;
  const WaitableCounter::Patience patience;
  const std::shared_ptr<TeamThreads> threads;
  /// The shared threads that are this team's threads 1 and up.
  const std::vector<unsigned> members;

  // Written by `run` before it calls threads, read by them after that.
  unsigned activeThreads = 1;
  Work currentWork = nullptr;
  void *currentContext = nullptr;

  alignas(128) std::atomic<uint32_t> arrived{0};
  alignas(128) WaitableCounter barriers;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_PHASETEAM_H
