//===- Engine.h - A loaded model that runs steps ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The engine is a loaded model: the blocks of the KV cache that sequences
/// hold, and the ranks that run steps. It knows tokens and logits only; text is
/// the tokenizer's, and choosing tokens the sampler's.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_ENGINE_ENGINE_H
#define SANDWICH_RUNTIME_ENGINE_ENGINE_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Machine/PlanCores.h"
#include "sandwich/Runtime/Memory/KVCache.h"
#include "sandwich/Runtime/Memory/MemoryLedger.h"
#include "sandwich/Runtime/Ranks/RankGroup.h"
#include "sandwich/Runtime/Teams/CoreArbiter.h"
#include "sandwich/Runtime/Teams/PhaseExecutor.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

struct EngineOptions {
  /// Tokens that all sequences together should be able to hold; 0 means one
  /// sequence of the model's whole context. Each sequence rounds up to whole
  /// blocks. The cache is smaller where less memory is available.
  uint64_t kvCacheTokens = 0;
  /// Sequences among which `kvCacheTokens` is shared, for that rounding.
  uint64_t maxSequences = 1;
  /// Tokens of one sequence without which there is no use in loading the model.
  uint64_t requiredTokens = 0;
  /// The size of the KV cache of all ranks of all hosts in bytes, whatever
  /// `kvCacheTokens` says.
  std::optional<uint64_t> kvMemory = {};
  /// The NUMA node, as the operating system counts them, that weights and
  /// buffers of all ranks are bound to.
  std::optional<unsigned> numaNode = {};
  /// Where the weights go; nothing lets the engine choose.
  std::optional<WeightPlacement> weightPlacement = {};
  /// Keeps full blocks of the KV cache, so that sequences that begin alike can
  /// share them.
  bool prefixCache = true;
  /// Reads all weights and compares them with their checksum first.
  bool verifyWeights = false;
  /// The cores of each phase; nothing: those the artifact was compiled for, if
  /// any.
  std::optional<PlanCores> plan = {};
  /// Of artifacts for several ranks.
  RankGroupOptions ranks = {};
  /// Of processes with several engines: what they ask for memory, and before
  /// each step for cores, of which one gets `coreWeight` times as many as one
  /// of weight 1. Nothing: the engine has the process to itself.
  std::shared_ptr<MemoryLedger> memoryLedger = {};
  std::shared_ptr<CoreArbiter> coreArbiter = {};
  double coreWeight = 1;
  /// Told how far the weights are loaded.
  ProgressCallback progress = {};
  LogCallback log = {};
};

/// Which tokens' logits are wanted.
enum class LogitRows { None, Last, All };

/// Tokens to be appended to a sequence in one step: one, where it decodes, or a
/// piece of a prompt.
struct Segment {
  Sequence *sequence;
  std::span<const int32_t> tokens;
  LogitRows rows = LogitRows::Last;
};

struct StepResult {
  /// [rows, vocab_size] of all segments, one after another; valid until the
  /// next step.
  std::span<const float> logits;
  /// [segments] the first row of each one.
  std::span<const uint64_t> firstRows;
};

/// Receives logits [rows, vocab_size] of the fed tokens `firstToken` to
/// `firstToken + rows - 1`. They are valid during the call only.
using LogitsCallback = std::function<Status(
    std::span<const float> logits, uint64_t firstToken, uint64_t rows)>;

/// Used by one thread at a time.
class Engine {
public:
  /// What an engine of these options will need, for `MemoryLedger::expect`
  /// under the artifact's path; to be called on all hosts, if there are
  /// several. Errors: options that do not fit the artifact.
  static Result<MemoryNeeds> memoryNeeds(const Artifact &artifact,
                                         const EngineOptions &options);

  /// Loads weights and code, and starts the teams and the other ranks. Errors:
  /// weights that are not what they were, if that is asked for; what will not
  /// fit into memory (`planMemory`), found before anything is loaded; files
  /// that do not load; a plan that does not fit the artifact; memory, threads
  /// and processes that the system does not grant; a rank that fails to load;
  /// a weight that is none.
  static Result<std::unique_ptr<Engine>> create(Artifact artifact,
                                                const EngineOptions &options);

  /// After `checkRunning` found that the ranks have failed: ends those that are
  /// left, and starts and loads all anew. Sequences stay what they were, but
  /// what they had computed is lost: they must be cleared, and the prefix cache
  /// too. Nothing else may be called meanwhile but what reads the artifact.
  /// Errors as `create`, after which only this, `checkRunning` and what reads
  /// the artifact may be called; InvalidArgument where the ranks are shared
  /// with other hosts.
  Status restart(const LogCallback &log = {});

  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  const Artifact &artifact() const { return source; }
  const proto::ModelConfiguration &model() const {
    return source.manifest().model();
  }
  uint64_t vocabSize() const { return model().vocab_size(); }
  uint64_t contextLength() const { return model().context_length(); }

  /// What one step of a phase takes.
  const StepLimits &limits(PhaseKind phase) const {
    return executor->limits().of(phase);
  }

  /// Error, Unavailable: no step will run, as the ranks have failed or this
  /// process is a fork of the one that created the engine.
  Status checkRunning() const;

  /// Error: one of `tokens` is outside the vocabulary.
  Status checkTokens(std::span<const int32_t> tokens) const;

  /// One without tokens, which must end before the engine does.
  Sequence newSequence() { return Sequence(*pool); }

  /// Appends tokens to sequences, any mix of pieces of prompts and single
  /// tokens, in one step of `phase`. Errors, after which all sequences are as
  /// before: InvalidArgument for no segments, more than `limits` has, a segment
  /// without tokens, an id outside the vocabulary, a sequence that is named
  /// twice or is another engine's; ContextExceeded; CacheFull; Unavailable
  /// where the ranks have failed, or in a fork of the process that created the
  /// engine. `held` as for `compute`.
  Result<StepResult> step(std::span<const Segment> segments, PhaseKind phase,
                          CoreLease *held = nullptr);

  /// A step in three parts, for who lets others use the pool while it computes:
  /// `begin` reserves, `compute` neither reads nor writes sequences, and after
  /// `finish` the caller appends the tokens to the sequences, which are as
  /// before where it fails. `segments` must stay until then, and one step is
  /// begun at a time. Errors of `begin` and `finish` as `step`. `compute` waits
  /// until no other engine of the arbiter's uses the cores of the step and of
  /// choosing its tokens, and gives them back; `held`, which must be empty,
  /// keeps them from others as long as it lives, for who goes on using the
  /// teams. It ends before the engine does.
  Status begin(std::span<const Segment> segments, PhaseKind phase);
  void compute(CoreLease *held = nullptr);
  Result<StepResult> finish();

  /// The same as the other `step` in the phase that is made for it: decode
  /// where each segment is one token.
  Result<StepResult> step(std::span<const Segment> segments,
                          CoreLease *held = nullptr);

  /// Appends `tokens` to `sequence`, in steps of at most `chunk` tokens (0: as
  /// many as a step takes). Errors as `step`, found before anything is
  /// computed; an error of a later step or of `onLogits` ends the feed between
  /// two steps.
  Status feed(Sequence &sequence, std::span<const int32_t> tokens,
              LogitRows rows, const LogitsCallback &onLogits = {},
              uint64_t chunk = 0);

  /// Runs the steps that rank 0 announces, until its engine ends; what an
  /// engine on another host is for, and nothing else of it is to be called.
  /// Error: the group failed.
  Status serve();

  /// Whether a token can be appended to `sequence`: the context and the KV
  /// cache have room for it.
  bool hasRoom(Sequence &sequence) const;

  /// Profiles the steps from now on, by their phase; null ends it. Neither is
  /// to happen while a step runs.
  void profileInto(StepProfiler *prefill, StepProfiler *decode) {
    prefillProfiler = prefill;
    decodeProfiler = decode;
  }

  /// What the model draws tokens with in the place of the runtime; null if
  /// nothing. Valid until the engine ends or is restarted.
  SandwichSamplingFunction sampling() const { return executor->sampling(); }

  /// Of rank 0.
  const WeightStorage &weights() const { return executor->weights(); }
  PhaseTeam &team(PhaseKind phase) { return executor->team(phase); }
  const KVCache &kvCache() const { return executor->kvCache(); }
  /// Who has which of the cache's blocks.
  BlockPool &blockPool() { return *pool; }
  /// Takes milliseconds for gigabytes.
  MemoryUse memoryUse() const { return executor->memoryUse(); }
  /// Where the threads of each rank are, as the system told once all was
  /// loaded first.
  const std::vector<RankPlacement> &rankPlacement() const { return placement; }
  /// Process identifiers of the other ranks.
  std::vector<int> rankProcesses() const {
    return group ? group->processes() : std::vector<int>();
  }

private:
  Engine(Artifact source, EngineOptions options)
      : source(std::move(source)), options(std::move(options)) {}

  /// Loads all but the artifact.
  Status load(const LogCallback &log, const ProgressCallback &progress);
  /// Plans what `needs` says, and takes it from the ledger, if there is one.
  Result<MemoryPlan> takeMemory(const MemoryNeeds &needs);
  /// Lets the ledger know what is in use of what was loaded, `program` bytes
  /// beside it.
  void tellMemoryInUse(uint64_t program);
  /// Lets the arbiter know of the teams that were started.
  Status shareCores();
  /// Lets both know that there is nothing of that any more.
  void tellUnloaded();

  /// The line that tells about memory once the model is loaded.
  std::string describeMemory() const;
  Status checkToken(int32_t token, uint64_t index) const;
  Status checkContext(const Sequence &sequence, uint64_t newTokens) const;
  Status checkSegments(std::span<const Segment> segments,
                       PhaseKind phase) const;
  /// Fills `input` and `firstRows`.
  void arrange(std::span<const Segment> segments);
  /// After a step that failed: its segments are as before.
  void undo();

  Artifact source;
  /// Given back after all that it is of.
  MemoryReservation reservation;
  /// Without what its callers get told while they create it.
  EngineOptions options;
  /// Outlives the executor, which uses its communicator.
  std::unique_ptr<RankGroup> group;
  std::unique_ptr<PhaseExecutor> executor;
  std::unique_ptr<BlockPool> pool;
  std::vector<RankPlacement> placement;
  /// Null without an arbiter.
  std::unique_ptr<CoreMember> cores;
  CoreDemand prefillCores, decodeCores;
  StepProfiler *prefillProfiler = nullptr;
  StepProfiler *decodeProfiler = nullptr;

  /// The step that was begun last.
  std::span<const Segment> begun;
  PhaseKind begunPhase = PhaseKind::Prefill;
  Status computed;

  // Kept to spare allocations.
  StepInput input;
  std::vector<BlockPool::Append> appends;
  std::vector<uint64_t> firstRows;
};

/// Error ContextExceeded: a prompt of `tokens` tokens is longer than the
/// model's context. To be asked before an engine is created for the prompt.
Status checkPromptLength(const proto::ModelConfiguration &model,
                         uint64_t tokens);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_ENGINE_ENGINE_H
