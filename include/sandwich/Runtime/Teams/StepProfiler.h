//===- StepProfiler.h - Where the time of steps goes ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_STEPPROFILER_H
#define SANDWICH_RUNTIME_TEAMS_STEPPROFILER_H

#include "sandwich/Artifact/Format.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sandwich {

/// What an operation took in some steps.
struct OperationProfile {
  /// "matmul layers.mlp.down_proj 2048x5632"
  std::string name;
  /// By each thread.
  uint64_t calls = 0;
  /// The mean of the threads.
  double seconds = 0;
  /// Weights and KV cache read, and floating-point operations, by all threads;
  /// 0 where the compiler does not tell them.
  double bytes = 0;
  double flops = 0;
};

/// Where the time of a phase's steps went.
struct PhaseProfile {
  /// "prefill" or "decode"
  std::string phase;
  uint64_t steps = 0;
  /// From when the team was called until it was done.
  double seconds = 0;
  /// In program order.
  std::vector<OperationProfile> operations;

  /// What no operation took: calling the team, and ending the step.
  double otherSeconds() const;
};

/// Adds up the time of a phase's steps by the operations that its code marks.
class StepProfiler {
public:
  /// `phase` must live as long.
  explicit StepProfiler(const proto::Phase &phase);

  /// Before the team runs `step`: makes it call the profiler.
  void begin(SandwichStep &step);
  /// On each thread, before it enters the phase.
  void enter(int32_t thread) { threads[thread].last = Clock::now(); }
  /// When the team has run the step.
  void end();

  PhaseProfile profile() const;

private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Clock::duration time{};
    uint64_t calls = 0;
  };
  // Adjacent cache lines are fetched in pairs, so what different threads write
  // stays 128 bytes apart.
  struct alignas(128) ThreadEntries {
    Clock::time_point last;
    std::vector<Entry> operations;
  };

  void mark(int32_t thread, int32_t operation);

  const proto::Phase &phase;
  std::vector<ThreadEntries> threads;
  Clock::time_point start;
  uint64_t steps = 0;
  Clock::duration time{};
  /// Sums over the steps.
  uint64_t tokens = 0;
  uint64_t logitRows = 0;
  /// Positions of the sequences, and pairs of a token and a position that it
  /// attends to.
  uint64_t positions = 0;
  uint64_t attended = 0;
};

/// Runs `step` on all threads of `team`, each of which calls `enter(thread)`,
/// and has `profiler`, if there is one, take the time.
template <typename Enter>
void runStep(PhaseTeam &team, SandwichStep &step, StepProfiler *profiler,
             const Enter &enter) {
  struct Call {
    const Enter &enter;
    StepProfiler *profiler;
  } call{enter, profiler};
  if (profiler)
    profiler->begin(step);
  team.run(
      team.size(),
      [](void *context, int32_t thread) {
        const auto &call = *static_cast<const Call *>(context);
        if (call.profiler)
          call.profiler->enter(thread);
        call.enter(thread);
      },
      &call);
  if (profiler)
    profiler->end();
}

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_STEPPROFILER_H
