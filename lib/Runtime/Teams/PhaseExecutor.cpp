//===- PhaseExecutor.cpp - One rank's steps -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/PhaseExecutor.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Machine/Process/MemoryBinding.h"
#include "sandwich/Runtime/Memory/MemoryPlan.h"
#include "sandwich/Runtime/Teams/TeamStep.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/HugePages.h"

#include <algorithm>
#include <atomic>
#include <csetjmp>

using namespace sandwich;

Result<StepBuffers> sandwich::stepBuffers(const Artifact &artifact) {
  const proto::Phase &prefill = artifact.prefill();
  const proto::Phase &decode = artifact.decode();
  StepBuffers buffers;
  buffers.workspace = std::max<uint64_t>(
      {prefill.workspace_bytes(), decode.workspace_bytes(), 1});
  const uint64_t rowBytes =
      uint64_t{artifact.manifest().model().vocab_size()} * sizeof(float);
  buffers.prefillRows =
      std::clamp<uint64_t>(maxLogitsBytes / rowBytes, 1,
                           std::max<uint64_t>(prefill.max_logit_rows(), 1));
  std::optional<uint64_t> logits = checkedMultiply(
      std::max<uint64_t>(buffers.prefillRows, decode.max_logit_rows()),
      rowBytes);
  if (!logits)
    return makeError("the logits are larger than this machine can address");
  buffers.logits = *logits;
  return buffers;
}

Result<std::unique_ptr<PhaseExecutor>>
PhaseExecutor::create(const Artifact &artifact,
                      const PhaseExecutorOptions &options) {
  const uint32_t ranks = artifact::ranks(artifact.manifest());
  if (options.communicator
          ? static_cast<uint32_t>(options.communicator->ranks()) != ranks
          : ranks != 1)
    return makeError(artifact.path(), " is for ", ranks, " ranks");
  const int32_t rank = options.communicator ? options.communicator->rank() : 0;
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  const auto here =
      options.communicator
          ? static_cast<unsigned>(options.communicator->ranksOnHost())
          : 1U;
  const auto process =
      options.communicator
          ? static_cast<unsigned>(options.communicator->rankOnHost())
          : 0U;
  if (options.plan)
    SANDWICH_RETURN_IF_ERROR(checkPlan(*options.plan, artifact, here));

  // First what is quick to fail.
  SANDWICH_ASSIGN_OR_RETURN(PhaseLibrary phases, artifact.loadPhases());
  SANDWICH_ASSIGN_OR_RETURN(StepBuffers buffers, stepBuffers(artifact));
  SANDWICH_ASSIGN_OR_RETURN(
      KVCache cache,
      KVCache::create(artifact.manifest().kv_cache().block_bytes(),
                      options.kvBlocks));
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory workspace,
      AnonymousMemory::allocate(buffers.workspace, "the workspace"));
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory logits,
      AnonymousMemory::allocate(buffers.logits, "the logits"));

  WeightLoadOptions loading;
  loading.placement = options.weightPlacement;
  loading.threads = std::max(budget.threads() / here, 1U);
  loading.progress = options.progress;
  if (options.communicator)
    loading.isStopped = [&] { return !options.communicator->failure(); };
  SANDWICH_ASSIGN_OR_RETURN(
      WeightStorage storage,
      artifact.loadWeights(loading, static_cast<uint32_t>(rank)));
  const std::optional<PlanCores> plan =
      options.plan ? options.plan : planOf(artifact);
  SANDWICH_ASSIGN_OR_RETURN(
      PhaseTeams teams,
      createPhaseTeams(artifact, budget, plan, process, here, options.log));

  std::unique_ptr<PhaseExecutor> executor(
      new PhaseExecutor(std::move(storage), std::move(phases)));
  executor->teams = std::move(teams);
  executor->cache = std::move(cache);
  executor->workspace = std::move(workspace);
  executor->logitMemory = std::move(logits);
  const proto::ModelConfiguration &model = artifact.manifest().model();
  StepLimits limits = {.tokens = artifact.prefill().max_tokens(),
                       .logitRows = buffers.prefillRows,
                       .vocabSize = model.vocab_size(),
                       .contextLength = model.context_length(),
                       .kvBlocks = options.kvBlocks};
  executor->phaseLimits.prefill = limits;
  limits.tokens = limits.logitRows = artifact.maxDecodeSequences();
  executor->phaseLimits.decode = limits;
  executor->communicator = options.communicator;
  std::vector<unsigned> nodes;
  if (options.numaNode)
    nodes = {*options.numaNode};
  else if (plan || ranks > 1)
    if (std::optional<unsigned> node = numaNodeOf(executor->teams.cpus))
      nodes = memoryNodesOf(*node);
  if (!nodes.empty())
    SANDWICH_RETURN_IF_ERROR(executor->bindTo(nodes, options.log));
  return executor;
}

Status PhaseExecutor::bindTo(std::span<const unsigned> nodes,
                             const LogCallback &log) const {
  // The weights come first, as they are read most.
  std::span<const std::byte> areas[] = {storage.bytes(), cache.bytes(),
                                        workspace.contents(),
                                        logitMemory.contents()};
  SANDWICH_ASSIGN_OR_RETURN(std::optional<std::string> refusal,
                            bindMemory(areas, nodes));
  if (refusal)
    report(log, LogLevel::Warning, *refusal);
  return {};
}

MemoryUse PhaseExecutor::memoryUse() const {
  auto part = [](std::span<const std::byte> memory) {
    return MemoryUse::Part{memory.size(), bytesInHugePages(memory)};
  };
  return {part(storage.bytes()), part(cache.bytes()),
          part(workspace.contents()), part(logitMemory.contents())};
}

std::vector<std::span<const std::byte>> PhaseExecutor::ownMemory() const {
  std::vector<std::span<const std::byte>> areas = {
      cache.bytes(), workspace.contents(), logitMemory.contents()};
  if (storage.placement() != WeightPlacement::Mapped)
    areas.push_back(storage.bytes());
  return areas;
}

std::span<const float> PhaseExecutor::logits(uint64_t rows) const {
  return {reinterpret_cast<const float *>(logitMemory.data()),
          rows * phaseLimits.prefill.vocabSize};
}

//===----------------------------------------------------------------------===//
// Steps of several ranks
//===----------------------------------------------------------------------===//

namespace {

/// A step that ends early if the group of ranks fails. Compiled code takes no
/// errors, so its threads are taken out of it where it calls back: it holds
/// nothing that would have to be given up.
///
/// A thread that finds the failure in a collective goes to the team's next
/// barrier, which all the others come to as well, in the code or at its end:
/// so all of them leave behind that barrier, and no thread waits for another
/// that has left.
class RankStep {
public:
  RankStep(PhaseTeam &team, Communicator &communicator)
      : team(team), communicator(communicator) {}

  void connect(SandwichStep &step) {
    step.rank = communicator.rank();
    step.ranks = step.team = this;
    step.barrier = [](void *step) { static_cast<RankStep *>(step)->meet(); };
    step.all_reduce = [](void *step, int32_t thread, float *data,
                         int64_t count) {
      auto &self = *static_cast<RankStep *>(step);
      self.communicator.allReduce(thread, self.threads(), data, count);
      self.leaveIfFailed();
    };
    step.all_gather = [](void *step, int32_t thread, const float *part,
                         float *whole, int64_t rows, int64_t columns) {
      auto &self = *static_cast<RankStep *>(step);
      self.communicator.allGather(thread, self.threads(), part, whole, rows,
                                  columns);
      self.leaveIfFailed();
    };
  }

  /// Calls `function` and returns at the end of the step, wherever that is.
  void run(SandwichPhaseFunction function, const SandwichStep &step,
           int32_t thread) {
    barriers = 0;
    if (_setjmp(wayOut) != 0)
      return;
    function(&step, thread);
    // Whoever left in the last part of the step waits here.
    team.barrier();
  }

private:
  int32_t threads() const { return static_cast<int32_t>(team.size()); }

  [[noreturn]] static void leave() { ::longjmp(wayOut, 1); }

  void meet() {
    team.barrier();
    ++barriers;
    // Relaxed, as the barrier passed it on: who set it came to that after it.
    // Another thread may be past this barrier and have set the next one.
    if (lastBarrier.load(std::memory_order_relaxed) == barriers)
      leave();
  }

  void leaveIfFailed() {
    const bool failed = !communicator.failure();
    if (!failed)
      return;
    lastBarrier.store(barriers + 1, std::memory_order_relaxed);
    team.barrier();
    leave();
  }

  static thread_local std::jmp_buf wayOut;
  /// That this thread has passed in the step.
  static thread_local uint64_t barriers;

  PhaseTeam &team;
  Communicator &communicator;
  /// Behind which all threads leave; 0 while there is none.
  std::atomic<uint64_t> lastBarrier{0};
};

thread_local std::jmp_buf RankStep::wayOut;
thread_local uint64_t RankStep::barriers = 0;

} // namespace

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void PhaseExecutor::run(PhaseKind phase, const StepInput &input,
                        StepProfiler *profiler) {
  for (BlockCopy copy : input.blockCopies)
    cache.copy(copy);
  PhaseTeam &team = this->team(phase);
  SandwichStep step{};
  steps.describe(input, step);
  step.weights = storage.bytes().data();
  step.kv_cache = cache.data();
  step.workspace = workspace.data();
  step.logits = reinterpret_cast<float *>(logitMemory.data());
  setTeam(step, team);
  std::optional<RankStep> shared;
  if (communicator)
    shared.emplace(team, *communicator).connect(step);

  const SandwichPhaseFunction function =
      phases.find(phase == PhaseKind::Prefill ? artifact::prefillPhase
                                              : artifact::decodePhase);
  runStep(team, step, profiler, [&](int32_t thread) {
    if (shared)
      shared->run(function, step, thread);
    else
      function(&step, thread);
  });
}
