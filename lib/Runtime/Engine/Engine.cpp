//===- Engine.cpp - A loaded model that runs steps ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine/Engine.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Runtime/Memory/MemoryPlan.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Topology/MemoryBinding.h"

#include <pthread.h>

#include <algorithm>
#include <numeric>
#include <set>

using namespace sandwich;

Sequence::Sequence(Sequence &&other) noexcept
    : engine(other.engine), blocks(std::move(other.blocks)),
      tokens(std::exchange(other.tokens, 0)) {
  other.blocks.clear();
}

Sequence &Sequence::operator=(Sequence &&other) noexcept {
  std::swap(engine, other.engine);
  std::swap(blocks, other.blocks);
  std::swap(tokens, other.tokens);
  return *this;
}

Sequence::~Sequence() { clear(); }

void Sequence::truncate(uint64_t length) { engine->truncate(*this, length); }

Result<Sequence> Sequence::fork() const { return engine->fork(*this); }

/// The NUMA node that each of the `ranks` ranks of this host is bound to, if
/// there is one.
static Result<std::vector<std::optional<unsigned>>>
nodesOfRanks(const Artifact &artifact, uint32_t ranks,
             const EngineOptions &options) {
  std::vector<std::optional<unsigned>> nodes(ranks, options.numaNode);
  const std::optional<PlanCores> plan =
      options.plan ? options.plan : planOf(artifact);
  if (options.numaNode || (!plan && ranks == 1))
    return nodes;
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  for (uint32_t rank = 0; rank < ranks; ++rank)
    nodes[rank] = numaNodeOf(
        choosePhaseCpus(artifact, budget, plan, rank, ranks).prefill);
  return nodes;
}

/// The stacks of a rank's threads, but for that of the one it starts with.
static uint64_t stackBytes(const Artifact &artifact) {
  pthread_attr_t attributes;
  size_t one = 0;
  if (::pthread_getattr_default_np(&attributes) == 0) {
    (void)::pthread_attr_getstacksize(&attributes, &one);
    ::pthread_attr_destroy(&attributes);
  }
  const uint64_t team =
      std::max(artifact.prefill().threads(), artifact.decode().threads()) - 1;
  // Ranks beat, or are watched.
  return (team + (artifact::ranks(artifact.manifest()) > 1)) * one;
}

/// What the `ranks` ranks of this host need.
static Result<MemoryNeeds> memoryNeeds(const Artifact &artifact, uint32_t ranks,
                                       const EngineOptions &options) {
  const proto::Manifest &manifest = artifact.manifest();
  const HostCommunicator *hosts = options.ranks.hosts.get();
  SANDWICH_ASSIGN_OR_RETURN(StepBuffers buffers, stepBuffers(artifact));
  MemoryNeeds needs;
  needs.ranks = ranks;
  needs.logits = buffers.logits;
  if (hosts) {
    needs.hosts = static_cast<uint64_t>(hosts->ranks());
    needs.host = static_cast<uint64_t>(hosts->rank());
    needs.logits += TwoLevelCommunicator::bytesFor(static_cast<int32_t>(
        std::max(artifact.prefill().threads(), artifact.decode().threads())));
  }
  SANDWICH_ASSIGN_OR_RETURN(needs.nodes,
                            nodesOfRanks(artifact, ranks, options));
  needs.sharedWeights = manifest.common_weight_bytes();
  needs.weights = artifact.rankWeightsBytes() - needs.sharedWeights;
  needs.weightsCopied = options.weightPlacement == WeightPlacement::HugePages;
  needs.wideWeights = manifest.target().dtype() == "f32";
  needs.workspace = buffers.workspace;
  needs.stacks = stackBytes(artifact);
  if (artifact::ranks(manifest) > 1) {
    SANDWICH_ASSIGN_OR_RETURN(needs.exchange,
                              RankGroup::exchangeBytes(artifact, ranks, hosts));
  }
  needs.kvBlock = manifest.kv_cache().block_bytes();
  needs.wideKVCache = manifest.kv_cache().dtype() == "f32";
  needs.wantedTokens = options.kvCacheTokens
                           ? options.kvCacheTokens
                           : manifest.model().context_length();
  needs.sequences = options.maxSequences;
  needs.requiredTokens = options.requiredTokens;
  needs.kvMemory = options.kvMemory;
  return needs;
}

/// The KV cache of all hosts is as large as that of host 0, which has decided.
static Status giveBlocks(HostCommunicator &hosts, uint64_t blocks) {
  hosts.broadcast(&blocks, sizeof(blocks), /*root=*/0);
  return hosts.failure();
}
static Status getBlocks(HostCommunicator &hosts, MemoryNeeds &needs) {
  uint64_t blocks = 0;
  hosts.broadcast(&blocks, sizeof(blocks), /*root=*/0);
  needs.kvMemory = blocks * needs.kvBlock * needs.ranks * needs.hosts;
  // Whether that is what was wanted, is told there.
  needs.wantedTokens = blocks * SANDWICH_KV_BLOCK_TOKENS;
  needs.sequences = 1;
  return hosts.failure();
}

/// Each of the `nodes` once.
static std::vector<unsigned>
distinct(const std::vector<std::optional<unsigned>> &nodes) {
  std::set<unsigned> found;
  for (std::optional<unsigned> node : nodes)
    if (node)
      found.insert(*node);
  return {found.begin(), found.end()};
}

Result<std::unique_ptr<Engine>> Engine::create(Artifact artifact,
                                               const EngineOptions &options) {
  HostCommunicator *hosts = options.ranks.hosts.get();
  SANDWICH_ASSIGN_OR_RETURN(const uint32_t here, ranksOnHost(artifact, hosts));
  if (options.plan)
    SANDWICH_RETURN_IF_ERROR(checkPlan(*options.plan, artifact, here));
  if (options.verifyWeights)
    SANDWICH_RETURN_IF_ERROR(artifact.verifyWeights(options.progress));
  if (options.numaNode)
    // Nothing to bind yet, but a node that is not there is an error already.
    SANDWICH_RETURN_IF_ERROR(bindMemory({}, *options.numaNode));
  SANDWICH_ASSIGN_OR_RETURN(MemoryNeeds needs,
                            memoryNeeds(artifact, here, options));
  if (hosts && hosts->rank() > 0)
    SANDWICH_RETURN_IF_ERROR(getBlocks(*hosts, needs));
  Result<MemoryPlan> memory =
      planMemory(needs, readMemoryLimits(distinct(needs.nodes)));
  if (!memory)
    return memory.error().inContext(artifact.path());
  if (hosts && hosts->rank() == 0)
    SANDWICH_RETURN_IF_ERROR(giveBlocks(*hosts, memory->kvBlocks));

  PhaseExecutorOptions own;
  own.kvBlocks = memory->kvBlocks;
  own.weightPlacement =
      options.weightPlacement.value_or(WeightPlacement::Mapped);
  own.numaNode = options.numaNode;
  own.plan = options.plan;
  own.progress = options.progress;
  // The other ranks' warnings are told where they are different.
  std::vector<std::string> warnings;
  own.log = [&](LogLevel level, const std::string &message) {
    if (level == LogLevel::Warning)
      warnings.push_back(message);
    report(options.log, level, message);
  };
  for (const std::string &warning : memory->warnings)
    own.log(LogLevel::Warning, artifact.path() + ": " + warning);
  std::unique_ptr<Engine> engine(new Engine(std::move(artifact)));
  // The others load while this rank does.
  if (artifact::ranks(engine->source.manifest()) > 1) {
    SANDWICH_ASSIGN_OR_RETURN(
        engine->group, RankGroup::start(engine->source,
                                        {.kvBlocks = own.kvBlocks,
                                         .weightPlacement = own.weightPlacement,
                                         .plan = own.plan,
                                         .numaNode = own.numaNode},
                                        options.ranks));
    own.communicator = &engine->group->communicator();
  }
  Result<std::unique_ptr<PhaseExecutor>> executor =
      PhaseExecutor::create(engine->source, own);
  // A failure of the group stops loading.
  if (engine->group)
    SANDWICH_RETURN_IF_ERROR(engine->group->failure());
  if (!executor)
    return executor.error();
  engine->executor = *std::move(executor);
  if (engine->group) {
    SANDWICH_ASSIGN_OR_RETURN(engine->placement,
                              engine->group->waitUntilLoaded(
                                  *engine->executor, warnings, options.log));
  } else {
    engine->placement = {engine->executor->readPlacement()};
  }
  report(options.log, LogLevel::Information, engine->describeMemory());
  return engine;
}

std::string Engine::describeMemory() const {
  // Nothing but the weights was used yet.
  const WeightStorage &storage = executor->weights();
  const MemoryUse use = memoryUse();
  std::string text = "memory: ";
  if (group)
    text +=
        "each of " + std::to_string(group->communicator().ranks()) + " ranks: ";
  return text + "weights " + formatBytes(storage.bytes().size()) +
         (storage.placement() == WeightPlacement::Mapped ? " mapped"
                                                         : " copied") +
         ", " + formatBytes(use.weights.inHugePages) +
         " of them in huge pages; KV cache " + formatBytes(use.kvCache.bytes) +
         " for " +
         std::to_string(kvCache().blockCount() * SANDWICH_KV_BLOCK_TOKENS) +
         " tokens, workspace " + formatBytes(use.workspace.bytes) +
         ", logits " + formatBytes(use.logits.bytes);
}

uint64_t Engine::maxDecodeSequences() const {
  return source.maxDecodeSequences();
}

Status Engine::checkToken(int32_t token, uint64_t index) const {
  if (token < 0 || static_cast<uint64_t>(token) >= vocabSize())
    return makeError("token id ", token, " (number ", index,
                     ") is outside the vocabulary of ", vocabSize(), " tokens");
  return {};
}

Status Engine::checkTokens(std::span<const int32_t> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i)
    SANDWICH_RETURN_IF_ERROR(checkToken(tokens[i], i));
  return {};
}

Status Engine::checkContext(const Sequence &sequence,
                            uint64_t newTokens) const {
  if (sequence.tokens >= contextLength() ||
      newTokens > contextLength() - sequence.tokens)
    return makeError(newTokens, " tokens after ", sequence.tokens,
                     " are more than the model's context of ", contextLength(),
                     " tokens");
  return {};
}

void Engine::truncate(Sequence &sequence, uint64_t length) {
  // In a fork the mutex may be held for ever, and the cache is of no use.
  if (!executor->team(PhaseKind::Prefill).checkProcess())
    return;
  std::lock_guard lock(mutex);
  sequence.tokens = std::min(sequence.tokens, length);
  executor->kvCache().shrink(sequence.blocks,
                             KVCache::blocksFor(sequence.tokens));
}

bool Engine::hasRoom(Sequence &sequence) {
  if (!checkRunning())
    return false;
  std::lock_guard lock(mutex);
  return checkContext(sequence, 1) &&
         executor->kvCache().hasRoom({&sequence.blocks, sequence.tokens, 1});
}

Result<Sequence> Engine::fork(const Sequence &sequence) {
  SANDWICH_RETURN_IF_ERROR(checkRunning());
  Sequence copy(*this);
  {
    // Not until the return, which ends moved sequences, and they lock, too.
    std::lock_guard lock(mutex);
    copy.blocks = executor->kvCache().share(
        sequence.blocks, KVCache::blocksFor(sequence.tokens));
    copy.tokens = sequence.tokens;
  }
  return copy;
}

Status Engine::checkRunning() const {
  SANDWICH_RETURN_IF_ERROR(executor->team(PhaseKind::Prefill).checkProcess());
  return group ? group->failure() : Status();
}

Status Engine::reserve() {
  // Copies are due until a step has made them: if memory for something else is
  // short in between, the next step makes them first.
  step.blockCopies.reserve(step.blockCopies.size() + appends.size());
  SANDWICH_ASSIGN_OR_RETURN(std::vector<KVCache::BlockCopy> copies,
                            executor->kvCache().reserve(appends));
  step.blockCopies.insert(step.blockCopies.end(), copies.begin(), copies.end());
  return {};
}

Status Engine::runStep(PhaseKind phase) {
  if (group)
    group->announce(phase, step);
  executor->run(phase, step,
                phase == PhaseKind::Prefill ? prefillProfiler : decodeProfiler);
  step.blockCopies.clear();
  return group ? group->failure() : Status();
}

Status Engine::serve() {
  std::lock_guard lock(mutex);
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<PhaseKind> phase,
                              group->receive(executor->limits(), step));
    if (!phase)
      return group->failure();
    executor->run(*phase, step);
  }
}

Status Engine::runPiece(Sequence &sequence, std::span<const int32_t> tokens,
                        uint64_t firstRow, uint64_t rows) {
  step.tokenIds.assign(tokens.begin(), tokens.end());
  step.positions.resize(tokens.size());
  std::iota(step.positions.begin(), step.positions.end(),
            static_cast<int32_t>(sequence.tokens));
  step.sequences.assign(tokens.size(), 0);
  step.logitRows.resize(rows);
  std::iota(step.logitRows.begin(), step.logitRows.end(),
            static_cast<int32_t>(firstRow));
  step.blockTables = sequence.blocks;
  step.sequenceCount = 1;
  step.blocksPerSequence = static_cast<int64_t>(sequence.blocks.size());
  SANDWICH_RETURN_IF_ERROR(
      runStep(tokens.size() == 1 ? PhaseKind::Decode : PhaseKind::Prefill));
  sequence.tokens += tokens.size();
  return {};
}

Status Engine::feed(Sequence &sequence, std::span<const int32_t> tokens,
                    LogitRows rows, const LogitsCallback &onLogits,
                    uint64_t chunk) {
  if (tokens.empty())
    return makeError("there are no tokens to feed; give at least one");
  SANDWICH_RETURN_IF_ERROR(checkTokens(tokens));
  SANDWICH_RETURN_IF_ERROR(checkRunning());
  std::lock_guard lock(mutex);
  SANDWICH_RETURN_IF_ERROR(checkContext(sequence, tokens.size()));
  appends.assign({{&sequence.blocks, sequence.tokens, tokens.size()}});
  SANDWICH_RETURN_IF_ERROR(reserve());
  uint64_t largest =
      chunk ? std::min(chunk, maxPrefillTokens()) : maxPrefillTokens();
  if (rows == LogitRows::All)
    largest = std::min(largest, executor->limits().prefill.logitRows);
  for (size_t first = 0; first < tokens.size();) {
    uint64_t count = std::min<uint64_t>(largest, tokens.size() - first);
    bool last = first + count == tokens.size();
    uint64_t wanted = rows == LogitRows::All            ? count
                      : rows == LogitRows::Last && last ? 1
                                                        : 0;
    SANDWICH_RETURN_IF_ERROR(runPiece(sequence, tokens.subspan(first, count),
                                      count - wanted, wanted));
    if (wanted > 0 && onLogits)
      SANDWICH_RETURN_IF_ERROR(
          onLogits(executor->logits(wanted), first + count - wanted, wanted));
    first += count;
  }
  return {};
}

Status Engine::decode(std::span<const DecodeToken> batch,
                      const LogitsCallback &onLogits) {
  if (batch.empty())
    return makeError("there are no tokens to feed; give at least one");
  if (batch.size() > maxDecodeSequences())
    return makeError("a decode step of ", batch.size(),
                     " sequences is larger than the plan's ",
                     maxDecodeSequences());
  for (size_t i = 0; i < batch.size(); ++i) {
    SANDWICH_RETURN_IF_ERROR(checkToken(batch[i].token, i));
    for (size_t j = 0; j < i; ++j)
      if (batch[i].sequence == batch[j].sequence)
        return makeError("one sequence is in a decode step twice");
  }
  SANDWICH_RETURN_IF_ERROR(checkRunning());
  std::lock_guard lock(mutex);
  appends.clear();
  for (const DecodeToken &item : batch) {
    SANDWICH_RETURN_IF_ERROR(checkContext(*item.sequence, 1));
    appends.push_back({&item.sequence->blocks, item.sequence->tokens, 1});
  }
  SANDWICH_RETURN_IF_ERROR(reserve());

  size_t longestTable = 0;
  for (const DecodeToken &item : batch)
    longestTable = std::max(longestTable, item.sequence->blocks.size());
  step.tokenIds.clear();
  step.positions.clear();
  step.sequences.clear();
  step.logitRows.clear();
  step.blockTables.assign(batch.size() * longestTable, 0);
  for (size_t i = 0; i < batch.size(); ++i) {
    const Sequence &sequence = *batch[i].sequence;
    step.tokenIds.push_back(batch[i].token);
    step.positions.push_back(static_cast<int32_t>(sequence.tokens));
    step.sequences.push_back(static_cast<int32_t>(i));
    step.logitRows.push_back(static_cast<int32_t>(i));
    std::copy(sequence.blocks.begin(), sequence.blocks.end(),
              step.blockTables.begin() +
                  static_cast<std::ptrdiff_t>(i * longestTable));
  }
  step.sequenceCount = static_cast<int64_t>(batch.size());
  step.blocksPerSequence = static_cast<int64_t>(longestTable);
  SANDWICH_RETURN_IF_ERROR(runStep(PhaseKind::Decode));
  for (const DecodeToken &item : batch)
    ++item.sequence->tokens;
  if (onLogits)
    return onLogits(executor->logits(batch.size()), 0, batch.size());
  return {};
}
