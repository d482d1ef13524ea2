//===- Engine.h - A loaded model that runs steps ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The engine is a loaded model: the sequences that are fed to it, the blocks
/// of the KV cache that they hold, and the ranks that run its steps. It knows
/// tokens and logits only; text is the tokenizer's, and choosing tokens the
/// sampler's.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_ENGINE_ENGINE_H
#define SANDWICH_RUNTIME_ENGINE_ENGINE_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Memory/KVCache.h"
#include "sandwich/Runtime/Ranks/RankGroup.h"
#include "sandwich/Runtime/Teams/PhaseExecutor.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Topology/PlanCores.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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
  /// Reads all weights and compares them with their checksum first.
  bool verifyWeights = false;
  /// The cores of each phase; nothing: those the artifact was compiled for, if
  /// any.
  std::optional<PlanCores> plan = {};
  /// Of artifacts for several ranks.
  RankGroupOptions ranks = {};
  /// Told how far the weights are loaded.
  ProgressCallback progress = {};
  LogCallback log = {};
};

class Engine;

/// The tokens one text has fed so far, and the KV cache blocks that hold them,
/// some of which it may share with its forks. Returns its blocks when it ends,
/// which must be before its engine does.
class Sequence {
public:
  explicit Sequence(Engine &engine) : engine(&engine) {}
  Sequence(Sequence &&other) noexcept;
  Sequence &operator=(Sequence &&other) noexcept;
  ~Sequence();

  /// Tokens fed so far.
  uint64_t length() const { return tokens; }

  /// Forgets everything, and returns the blocks.
  void clear() { truncate(0); }
  /// Forgets all but the first `length` tokens, and gives up the blocks that
  /// only the others needed; those that a fork has too remain the fork's.
  void truncate(uint64_t length);

  /// A sequence that holds the same tokens and goes on by itself. It takes no
  /// blocks: both have the same ones, and who first appends to one that is not
  /// full gets a copy. Error: this process is a fork of the one that created
  /// the engine.
  Result<Sequence> fork() const;

private:
  friend class Engine;

  Engine *engine;
  std::vector<int32_t> blocks;
  uint64_t tokens = 0;
};

/// Which tokens' logits are wanted from a feed.
enum class LogitRows { None, Last, All };

/// Receives logits [rows, vocab_size] of the fed tokens `firstToken` to
/// `firstToken + rows - 1`. They are valid during the call only.
using LogitsCallback = std::function<Status(
    std::span<const float> logits, uint64_t firstToken, uint64_t rows)>;

/// One sequence's next token in a decode step.
struct DecodeToken {
  Sequence *sequence;
  int32_t token;
};

/// Calls may come from any thread; they run one after another.
class Engine {
public:
  /// Loads weights and code, and starts the teams and the other ranks. Errors:
  /// weights that are not what they were, if that is asked for; what will not
  /// fit into memory (`planMemory`), found before anything is loaded; files
  /// that do not load; a plan that does not fit the artifact; memory, threads
  /// and processes that the system does not grant; a rank that fails to load.
  static Result<std::unique_ptr<Engine>> create(Artifact artifact,
                                                const EngineOptions &options);

  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  const Artifact &artifact() const { return source; }
  const proto::ModelConfiguration &model() const {
    return source.manifest().model();
  }
  uint64_t vocabSize() const { return model().vocab_size(); }
  uint64_t contextLength() const { return model().context_length(); }

  /// Tokens that one prefill step takes.
  uint64_t maxPrefillTokens() const { return source.prefill().max_tokens(); }
  /// Sequences that one decode step takes.
  uint64_t maxDecodeSequences() const;

  /// Error: one of `tokens` is outside the vocabulary.
  Status checkTokens(std::span<const int32_t> tokens) const;

  /// Appends `tokens` to `sequence`, in prefill steps of at most `chunk`
  /// tokens (0: as many as the plan takes); a piece of one token is a decode
  /// step. Errors, found before anything is computed: no tokens, an id outside
  /// the vocabulary, more tokens than the context holds, no free KV blocks, or
  /// a process that is a fork of the one that created the engine.
  /// An error of `onLogits` ends the feed between two steps.
  Status feed(Sequence &sequence, std::span<const int32_t> tokens,
              LogitRows rows, const LogitsCallback &onLogits = {},
              uint64_t chunk = 0);

  /// Appends one token to each of several different sequences in one step and
  /// hands over logits [batch.size(), vocab_size]. Errors as `feed`.
  Status decode(std::span<const DecodeToken> batch,
                const LogitsCallback &onLogits);

  /// Runs the steps that rank 0 announces, until its engine ends; what an
  /// engine on another host is for, and nothing else of it is to be called.
  /// Error: the group failed.
  Status serve();

  /// Whether a token can be appended to `sequence`: the context and the KV
  /// cache have room for it. Other sequences may take that room before it is
  /// used.
  bool hasRoom(Sequence &sequence);

  /// Profiles the steps from now on, by their phase; null ends it. Neither is
  /// to happen while a step runs.
  void profileInto(StepProfiler *prefill, StepProfiler *decode) {
    prefillProfiler = prefill;
    decodeProfiler = decode;
  }

  /// Of rank 0.
  const WeightStorage &weights() const { return executor->weights(); }
  PhaseTeam &team(PhaseKind phase) { return executor->team(phase); }
  const KVCache &kvCache() const { return executor->kvCache(); }
  /// Takes milliseconds for gigabytes.
  MemoryUse memoryUse() const { return executor->memoryUse(); }
  /// Where the threads of each rank are, as the system told once all was
  /// loaded.
  const std::vector<RankPlacement> &rankPlacement() const { return placement; }
  /// Process identifiers of the other ranks.
  std::vector<int> rankProcesses() const {
    return group ? group->processes() : std::vector<int>();
  }

private:
  friend class Sequence;

  explicit Engine(Artifact source) : source(std::move(source)) {}

  /// The line that tells about memory once the model is loaded.
  std::string describeMemory() const;
  Status checkToken(int32_t token, uint64_t index) const;
  Status checkContext(const Sequence &sequence, uint64_t newTokens) const;
  /// Error: this process is a fork, or the group has failed.
  Status checkRunning() const;
  /// Makes room in the KV cache for `appends`; `step` gets the copies.
  Status reserve();
  /// Runs `step` on every rank.
  Status runStep(PhaseKind phase);
  /// Runs tokens of one sequence whose blocks are reserved.
  Status runPiece(Sequence &sequence, std::span<const int32_t> tokens,
                  uint64_t firstRow, uint64_t rows);
  void truncate(Sequence &sequence, uint64_t length);
  Result<Sequence> fork(const Sequence &sequence);

  Artifact source;
  /// Outlives the executor, which uses its communicator.
  std::unique_ptr<RankGroup> group;
  std::unique_ptr<PhaseExecutor> executor;
  std::vector<RankPlacement> placement;
  StepProfiler *prefillProfiler = nullptr;
  StepProfiler *decodeProfiler = nullptr;
  std::mutex mutex;

  // Kept to spare allocations.
  StepArguments step;
  std::vector<KVCache::Append> appends;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_ENGINE_ENGINE_H
