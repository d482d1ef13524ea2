//===- PhaseExecutor.h - One rank's steps -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What one rank needs to run steps: its part of the weights, the compiled
/// phases with a team of threads for each, a KV cache and a workspace that both
/// share. Any step may follow any other: nothing is moved between phases.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_PHASEEXECUTOR_H
#define SANDWICH_RUNTIME_TEAMS_PHASEEXECUTOR_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Machine/PlanCores.h"
#include "sandwich/Runtime/Communication/Communicator.h"
#include "sandwich/Runtime/Memory/KVCache.h"
#include "sandwich/Runtime/Teams/PhasePlacement.h"
#include "sandwich/Runtime/Teams/StepInput.h"
#include "sandwich/Runtime/Teams/StepProfiler.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sandwich {

struct PhaseExecutorOptions {
  uint64_t kvBlocks = 0;
  WeightPlacement weightPlacement = WeightPlacement::Mapped;
  /// That weights and buffers are bound to, as the operating system counts;
  /// nothing: that of the cores of a plan or of one of several ranks, if they
  /// have one of their own.
  std::optional<unsigned> numaNode = {};
  /// The cores of all ranks.
  std::optional<PlanCores> plan = {};
  /// Of artifacts for several ranks; it lives longer than the executor.
  Communicator *communicator = nullptr;
  ProgressCallback progress = {};
  LogCallback log = {};
};

/// What a rank takes of memory beside weights and KV cache, in bytes.
struct StepBuffers {
  uint64_t workspace = 0;
  uint64_t logits = 0;
  /// Rows of logits that one prefill step has room for.
  uint64_t prefillRows = 1;
};

/// Error: larger than this machine can address.
Result<StepBuffers> stepBuffers(const Artifact &artifact);

/// What a rank takes of memory; all in bytes.
struct MemoryUse {
  struct Part {
    /// Of the address space. A page takes memory from its first use on.
    uint64_t bytes = 0;
    /// How many of them lie in huge pages now.
    uint64_t inHugePages = 0;
  };
  Part weights;
  Part kvCache;
  Part workspace;
  Part logits;
};

/// [thread] The CPUs that a team's threads may run on, ascending, as the system
/// tells.
using TeamPlacement = std::vector<std::vector<unsigned>>;
struct RankPlacement {
  TeamPlacement prefill;
  TeamPlacement decode;
};

/// Used by one thread at a time.
class PhaseExecutor {
public:
  /// Loads the weights and the code, and starts the teams. Errors: files that
  /// do not load; a plan that does not fit the artifact; memory and threads
  /// that the system does not grant; no communicator for the artifact's ranks.
  static Result<std::unique_ptr<PhaseExecutor>>
  create(const Artifact &artifact, const PhaseExecutorOptions &options);

  PhaseExecutor(const PhaseExecutor &) = delete;
  PhaseExecutor &operator=(const PhaseExecutor &) = delete;

  /// Makes a step ready that is to run next. Error: it is not within the limits
  /// of the phase.
  Status prepare(PhaseKind phase, const StepInput &input) {
    return steps.arrange(input, phaseLimits.of(phase));
  }
  /// Runs the step that was prepared last. All threads mark operations in
  /// `profiler`, unless it is null. Where the ranks fail meanwhile, as their
  /// communicator tells, the step ends with its next collective, and its
  /// results are of no use.
  void run(PhaseKind phase, const StepInput &input,
           StepProfiler *profiler = nullptr);

  /// What was told of block tables.
  StepArrangement &arrangement() { return steps; }

  /// [rows, vocabulary] The logits of the last step, which wanted `rows`.
  std::span<const float> logits(uint64_t rows) const;

  const PhaseLimits &limits() const { return phaseLimits; }

  /// Takes milliseconds for gigabytes.
  MemoryUse memoryUse() const;
  /// What it has mapped that is no file's.
  std::vector<std::span<const std::byte>> ownMemory() const;
  /// Where the threads are in each phase.
  RankPlacement readPlacement() {
    return {teams.prefill->readPlacement(), teams.decode->readPlacement()};
  }

  PhaseTeam &team(PhaseKind phase) {
    return phase == PhaseKind::Prefill ? *teams.prefill : *teams.decode;
  }
  const PhaseTeam &team(PhaseKind phase) const {
    return phase == PhaseKind::Prefill ? *teams.prefill : *teams.decode;
  }
  /// What draws tokens in the place of the runtime, or null.
  SandwichSamplingFunction sampling() const { return phases.sampling(); }

  const WeightStorage &weights() const { return storage; }
  const KVCache &kvCache() const { return cache; }

private:
  PhaseExecutor(WeightStorage storage, PhaseLibrary phases)
      : storage(std::move(storage)), phases(std::move(phases)) {}

  /// `nodes` as `bindMemory` takes them.
  Status bindTo(std::span<const unsigned> nodes, const LogCallback &log) const;

  WeightStorage storage;
  PhaseLibrary phases;
  PhaseTeams teams;
  KVCache cache;
  AnonymousMemory workspace;
  AnonymousMemory logitMemory;
  PhaseLimits phaseLimits;
  StepArrangement steps;
  Communicator *communicator = nullptr;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_PHASEEXECUTOR_H
