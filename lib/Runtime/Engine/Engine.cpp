//===- Engine.cpp - A loaded model that runs steps ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine/Engine.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Machine/Process/MemoryBinding.h"
#include "sandwich/Runtime/Memory/MemoryPlan.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ResidentMemory.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>

using namespace sandwich;

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
static Result<MemoryNeeds> needsOfRanks(const Artifact &artifact,
                                        uint32_t ranks,
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
  std::error_code unknown;
  needs.weightsFile =
      std::filesystem::canonical(artifact.path(), unknown).string();
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
  SANDWICH_ASSIGN_OR_RETURN(const uint32_t here,
                            ranksOnHost(artifact, options.ranks.hosts.get()));
  if (options.plan)
    SANDWICH_RETURN_IF_ERROR(checkPlan(*options.plan, artifact, here));
  if (options.verifyWeights)
    SANDWICH_RETURN_IF_ERROR(artifact.verifyWeights(options.progress));
  if (options.numaNode)
    // Nothing to bind yet, but a node that is not there is an error already.
    SANDWICH_RETURN_IF_ERROR(bindMemory({}, {{*options.numaNode}}));
  EngineOptions kept = options;
  kept.log = {};
  kept.progress = {};
  std::unique_ptr<Engine> engine(
      new Engine(std::move(artifact), std::move(kept)));
  SANDWICH_RETURN_IF_ERROR(engine->load(options.log, options.progress));
  return engine;
}

Result<MemoryNeeds> Engine::memoryNeeds(const Artifact &artifact,
                                        const EngineOptions &options) {
  SANDWICH_ASSIGN_OR_RETURN(const uint32_t here,
                            ranksOnHost(artifact, options.ranks.hosts.get()));
  return needsOfRanks(artifact, here, options);
}

Result<MemoryPlan> Engine::takeMemory(const MemoryNeeds &needs) {
  if (!options.memoryLedger)
    return planMemory(needs, readMemoryLimits(distinct(needs.nodes)));
  if (reservation)
    return options.memoryLedger->planAgain(reservation, needs);
  SANDWICH_ASSIGN_OR_RETURN(
      MemoryLedger::Reserved reserved,
      options.memoryLedger->reserve(source.path(), needs));
  reservation = std::move(reserved.reservation);
  return std::move(reserved.plan);
}

/// What copies weights tells how many bytes of a rank's own are in use: all
/// ranks load as many, and at about the same time.
static ProgressCallback countCopied(MemoryReservation &reservation,
                                    const ProgressCallback &progress) {
  auto copied = std::make_shared<std::atomic<uint64_t>>(0);
  reservation.setUse({.bytes = [copied](uint64_t) { return copied->load(); }});
  return [copied, progress](uint64_t done, uint64_t total) {
    copied->store(done);
    if (progress)
      progress(done, total);
  };
}

/// The cores of a phase's teams of `ranks`, which run at the same time.
static CoreDemand demandOf(std::span<const RankPlacement> ranks,
                           TeamPlacement RankPlacement::*phase) {
  CoreDemand demand;
  for (const RankPlacement &rank : ranks)
    demand.add(rank.*phase);
  return demand;
}

Status Engine::shareCores() {
  if (!cores) {
    // Those of the other hosts' ranks are not this arbiter's.
    const HostCommunicator *hosts = options.ranks.hosts.get();
    const size_t here =
        placement.size() / (hosts ? static_cast<size_t>(hosts->ranks()) : 1);
    const auto ranks = std::span<const RankPlacement>(placement).subspan(
        hosts ? here * static_cast<size_t>(hosts->rank()) : 0, here);
    decodeCores = demandOf(ranks, &RankPlacement::decode);
    prefillCores = demandOf(ranks, &RankPlacement::prefill);
    // The tokens of prompts, too, are chosen by the team of decode.
    prefillCores.addTakingTurns(decodeCores);
    SANDWICH_ASSIGN_OR_RETURN(cores, CoreMember::join(options.coreArbiter,
                                                      source.path(),
                                                      options.coreWeight));
  }
  cores->onDisplaced([teams = executor.get()] {
    for (PhaseKind phase : {PhaseKind::Prefill, PhaseKind::Decode})
      teams->team(phase).rest();
  });
  return {};
}

void Engine::tellMemoryInUse(uint64_t program) {
  // Areas and processes rather than the engine, which changes while others ask.
  reservation.setUse(
      {.mapped = true,
       .bytes = [areas = executor->ownMemory(), ranks = rankProcesses(),
                 program](uint64_t rank) {
         if (rank > 0)
           return rank <= ranks.size() ? anonymousBytesOf(ranks[rank - 1]) : 0;
         uint64_t bytes = program;
         for (std::span<const std::byte> area : areas)
           bytes += residentBytes(area);
         return bytes;
       }});
}

void Engine::tellUnloaded() {
  reservation.setUse({});
  if (cores)
    cores->onDisplaced({});
}

Status Engine::load(const LogCallback &log, const ProgressCallback &progress) {
  HostCommunicator *hosts = options.ranks.hosts.get();
  SANDWICH_ASSIGN_OR_RETURN(const uint32_t here, ranksOnHost(source, hosts));
  SANDWICH_ASSIGN_OR_RETURN(MemoryNeeds needs,
                            needsOfRanks(source, here, options));
  if (hosts && hosts->rank() > 0)
    SANDWICH_RETURN_IF_ERROR(getBlocks(*hosts, needs));
  Result<MemoryPlan> memory = takeMemory(needs);
  if (!memory)
    return memory.error().inContext(source.path());
  if (hosts && hosts->rank() == 0)
    SANDWICH_RETURN_IF_ERROR(giveBlocks(*hosts, memory->kvBlocks));

  PhaseExecutorOptions own;
  // The pool stays as large as it is.
  own.kvBlocks = pool ? pool->blockCount() : memory->kvBlocks;
  own.weightPlacement =
      options.weightPlacement.value_or(WeightPlacement::Mapped);
  own.numaNode = options.numaNode;
  own.plan = options.plan;
  own.progress = reservation && needs.weightsCopied
                     ? countCopied(reservation, progress)
                     : progress;
  // The other ranks' warnings are told where they are different.
  std::vector<std::string> warnings;
  own.log = [&](LogLevel level, const std::string &message) {
    if (level == LogLevel::Warning)
      warnings.push_back(message);
    report(log, level, message);
  };
  for (const std::string &warning : memory->warnings)
    own.log(LogLevel::Warning, source.path() + ": " + warning);
  // The others load while this rank does.
  if (artifact::ranks(source.manifest()) > 1) {
    SANDWICH_ASSIGN_OR_RETURN(
        group, RankGroup::start(source,
                                {.kvBlocks = own.kvBlocks,
                                 .weightPlacement = own.weightPlacement,
                                 .plan = own.plan,
                                 .numaNode = own.numaNode},
                                options.ranks));
    own.communicator = &group->communicator();
  }
  Result<std::unique_ptr<PhaseExecutor>> loaded =
      PhaseExecutor::create(source, own);
  // A failure of the group stops loading.
  if (group)
    SANDWICH_RETURN_IF_ERROR(group->failure());
  if (!loaded)
    return loaded.error();
  executor = *std::move(loaded);
  if (!pool) {
    SANDWICH_ASSIGN_OR_RETURN(
        pool,
        BlockPool::create(own.kvBlocks, {.prefixCache = options.prefixCache}));
  }
  std::vector<RankPlacement> found;
  if (group) {
    SANDWICH_ASSIGN_OR_RETURN(found,
                              group->waitUntilLoaded(*executor, warnings, log));
  } else {
    found = {executor->readPlacement()};
  }
  // Others may read it once it is known.
  if (placement.empty())
    placement = std::move(found);
  if (reservation)
    tellMemoryInUse(needs.program);
  if (options.coreArbiter)
    SANDWICH_RETURN_IF_ERROR(shareCores());
  report(log, LogLevel::Information, describeMemory());
  return {};
}

Status Engine::restart(const LogCallback &log) {
  if (options.ranks.hosts)
    return makeError(ErrorKind::InvalidArgument,
                     "ranks that are shared with other hosts are not "
                     "restarted; start all hosts anew");
  tellUnloaded();
  // It uses the group's communicator.
  executor.reset();
  group.reset();
  Status loaded = load(log, {});
  if (!loaded) {
    tellUnloaded();
    executor.reset();
  }
  return loaded;
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

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

Status Engine::checkToken(int32_t token, uint64_t index) const {
  if (token < 0 || static_cast<uint64_t>(token) >= vocabSize())
    return makeError(ErrorKind::InvalidArgument, "token id ", token,
                     " (number ", index, ") is outside the vocabulary of ",
                     vocabSize(), " tokens");
  return {};
}

Status Engine::checkTokens(std::span<const int32_t> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i)
    SANDWICH_RETURN_IF_ERROR(checkToken(tokens[i], i));
  return {};
}

Status Engine::checkContext(const Sequence &sequence,
                            uint64_t newTokens) const {
  if (sequence.length() >= contextLength() ||
      newTokens > contextLength() - sequence.length())
    return makeError(ErrorKind::ContextExceeded, newTokens, " tokens after ",
                     sequence.length(),
                     " are more than the model's context of ", contextLength(),
                     " tokens");
  return {};
}

Status Engine::checkRunning() const {
  if (!executor)
    return makeError(ErrorKind::Unavailable,
                     "the ranks failed, and could not be restarted");
  Status status = executor->team(PhaseKind::Prefill).checkProcess();
  if (status && group)
    status = group->failure();
  if (!status)
    return makeError(ErrorKind::Unavailable, status.error().message);
  return {};
}

bool Engine::hasRoom(Sequence &sequence) const {
  return checkRunning() && checkContext(sequence, 1) &&
         pool->canReserve({&sequence, 1});
}

/// The rows of logits that `segment` gives.
static uint64_t rowsOf(const Segment &segment) {
  switch (segment.rows) {
  case LogitRows::None:
    return 0;
  case LogitRows::Last:
    return 1;
  case LogitRows::All:
    return segment.tokens.size();
  }
  return 0;
}

/// Error: `given` things are more than one step of the plan takes.
static Status checkLimit(const char *what, uint64_t given, uint64_t most) {
  if (given > most)
    return makeError(ErrorKind::InvalidArgument, "a step of ", given, " ", what,
                     " is larger than the plan's ", most);
  return {};
}

Status Engine::checkSegments(std::span<const Segment> segments,
                             PhaseKind phase) const {
  const StepLimits &most = limits(phase);
  uint64_t tokens = 0, rows = 0;
  std::vector<const Sequence *> sequences;
  sequences.reserve(segments.size());
  for (const Segment &segment : segments) {
    if (segment.tokens.empty())
      return makeError(ErrorKind::InvalidArgument,
                       "there are no tokens to feed; give at least one");
    if (!segment.sequence || &segment.sequence->pool() != pool.get())
      return makeError(ErrorKind::InvalidArgument,
                       "a sequence in a step is not one of this engine's");
    SANDWICH_RETURN_IF_ERROR(checkTokens(segment.tokens));
    SANDWICH_RETURN_IF_ERROR(
        checkContext(*segment.sequence, segment.tokens.size()));
    tokens += segment.tokens.size();
    rows += rowsOf(segment);
    sequences.push_back(segment.sequence);
  }
  SANDWICH_RETURN_IF_ERROR(checkLimit("tokens", tokens, most.tokens));
  SANDWICH_RETURN_IF_ERROR(checkLimit("rows of logits", rows, most.logitRows));
  std::ranges::sort(sequences);
  if (std::ranges::adjacent_find(sequences) != sequences.end())
    return makeError(ErrorKind::InvalidArgument,
                     "one sequence is in a step twice");
  return {};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Engine::arrange(std::span<const Segment> segments) {
  input.clear();
  firstRows.clear();
  for (const Segment &segment : segments) {
    const Sequence &sequence = *segment.sequence;
    const size_t end = input.tokenIds.size() + segment.tokens.size();
    const size_t rows = rowsOf(segment);
    input.tokenIds.insert(input.tokenIds.end(), segment.tokens.begin(),
                          segment.tokens.end());
    input.segments.push_back({sequence.number(),
                              static_cast<int32_t>(segment.tokens.size()),
                              static_cast<int32_t>(sequence.length())});
    firstRows.push_back(input.logitRows.size());
    for (size_t row = end - rows; row < end; ++row)
      input.logitRows.push_back(static_cast<int32_t>(row));
    executor->arrangement().addChanges(
        sequence, sequence.length() + segment.tokens.size(),
        input.tableChanges);
  }
  const std::span<const BlockCopy> copies = pool->pendingCopies();
  input.blockCopies.assign(copies.begin(), copies.end());
}

void Engine::undo() {
  executor->arrangement().forgetTables();
  for (const Segment &segment : begun)
    pool->releaseUnused(*segment.sequence);
}

Status Engine::begin(std::span<const Segment> segments, PhaseKind phase) {
  if (segments.empty())
    return makeError(ErrorKind::InvalidArgument,
                     "there are no tokens to feed; give at least one");
  SANDWICH_RETURN_IF_ERROR(checkSegments(segments, phase));
  SANDWICH_RETURN_IF_ERROR(checkRunning());
  appends.clear();
  for (const Segment &segment : segments)
    appends.push_back({segment.sequence, segment.tokens.size()});
  SANDWICH_RETURN_IF_ERROR(pool->reserve(appends));
  begun = segments;
  begunPhase = phase;
  // What may fail for want of memory comes before other ranks are told.
  try {
    arrange(segments);
    Status prepared = executor->prepare(phase, input);
    if (!prepared)
      undo();
    return prepared;
  } catch (...) {
    undo();
    throw;
  }
}

void Engine::compute(CoreLease *held) {
  CoreLease own;
  try {
    if (cores)
      (held ? *held : own) = cores->acquire(
          begunPhase == PhaseKind::Prefill ? prefillCores : decodeCores);
    if (group)
      group->announce(begunPhase, input);
    executor->run(begunPhase, input,
                  begunPhase == PhaseKind::Prefill ? prefillProfiler
                                                   : decodeProfiler);
    computed = checkRunning();
  } catch (const std::exception &exception) {
    computed = makeError(ErrorKind::Internal,
                         "a step did not run: ", exception.what());
  }
}

Result<StepResult> Engine::finish() {
  if (!computed) {
    undo();
    return computed.error();
  }
  pool->copiesMade(input.blockCopies.size());
  return StepResult{executor->logits(input.logitRows.size()), firstRows};
}

Result<StepResult> Engine::step(std::span<const Segment> segments,
                                PhaseKind phase, CoreLease *held) {
  SANDWICH_RETURN_IF_ERROR(begin(segments, phase));
  compute(held);
  Result<StepResult> result = finish();
  if (result)
    for (const Segment &segment : segments)
      segment.sequence->append(segment.tokens);
  return result;
}

Result<StepResult> Engine::step(std::span<const Segment> segments,
                                CoreLease *held) {
  const bool decodes =
      std::ranges::all_of(segments, [](const Segment &segment) {
        return segment.tokens.size() == 1;
      });
  return step(segments, decodes ? PhaseKind::Decode : PhaseKind::Prefill, held);
}

Status Engine::serve() {
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<PhaseKind> phase,
                              group->receive(executor->limits(), input));
    if (!phase)
      return group->failure();
    SANDWICH_RETURN_IF_ERROR(executor->prepare(*phase, input));
    executor->run(*phase, input);
  }
}

Status Engine::feed(Sequence &sequence, std::span<const int32_t> tokens,
                    LogitRows rows, const LogitsCallback &onLogits,
                    uint64_t chunk) {
  if (tokens.empty())
    return makeError(ErrorKind::InvalidArgument,
                     "there are no tokens to feed; give at least one");
  SANDWICH_RETURN_IF_ERROR(checkTokens(tokens));
  SANDWICH_RETURN_IF_ERROR(checkRunning());
  SANDWICH_RETURN_IF_ERROR(checkContext(sequence, tokens.size()));
  const BlockPool::Append all{&sequence, tokens.size()};
  SANDWICH_RETURN_IF_ERROR(pool->reserve(std::span(&all, 1)));
  const StepLimits &most = limits(PhaseKind::Prefill);
  uint64_t largest = chunk ? std::min(chunk, most.tokens) : most.tokens;
  if (rows == LogitRows::All)
    largest = std::min(largest, most.logitRows);
  for (size_t first = 0; first < tokens.size();) {
    const auto piece = tokens.subspan(
        first, std::min<uint64_t>(largest, tokens.size() - first));
    const bool last = first + piece.size() == tokens.size();
    const Segment segment{&sequence, piece,
                          rows == LogitRows::Last && !last ? LogitRows::None
                                                           : rows};
    Result<StepResult> result = step(std::span(&segment, 1));
    Status status = result ? Status() : result.error();
    first += piece.size();
    const uint64_t wanted = rowsOf(segment);
    if (status && wanted > 0 && onLogits)
      status = onLogits(result->logits, first - wanted, wanted);
    if (!status) {
      pool->releaseUnused(sequence);
      return status;
    }
  }
  return {};
}

Status sandwich::checkPromptLength(const proto::ModelConfiguration &model,
                                   uint64_t tokens) {
  if (tokens > model.context_length())
    return makeError(ErrorKind::ContextExceeded, "the prompt of ", tokens,
                     " tokens is longer than the model's context of ",
                     model.context_length(), " tokens; shorten it");
  return {};
}
