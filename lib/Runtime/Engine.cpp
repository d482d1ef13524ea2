//===- Engine.cpp - A loaded model that runs steps ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine.h"

#include "Report.h"

#include "sandwich/Runtime/MemoryPlan.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/HugePages.h"
#include "sandwich/Topology/MemoryBinding.h"

#include <algorithm>
#include <numeric>

using namespace sandwich;

/// Logits of a long prompt are handed over in pieces of at most this size.
static constexpr uint64_t maxLogitsBytes = uint64_t{64} << 20;

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

Result<std::unique_ptr<Engine>> Engine::create(Artifact artifact,
                                               const EngineOptions &options) {
  const proto::Manifest &manifest = artifact.manifest();
  const proto::Phase &prefill = artifact.prefill();
  const proto::Phase &decode = artifact.decode();
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  if (options.plan)
    SANDWICH_RETURN_IF_ERROR(checkPlan(*options.plan, artifact));

  // First what is quick to fail.
  if (options.numaNode)
    // Nothing to bind yet, but a node that is not there is an error already.
    SANDWICH_RETURN_IF_ERROR(bindMemory({}, *options.numaNode));
  SANDWICH_ASSIGN_OR_RETURN(PhaseLibrary phases, artifact.loadPhases());
  uint64_t rowBytes = uint64_t{manifest.model().vocab_size()} * sizeof(float);
  uint64_t maxPrefillRows =
      std::clamp<uint64_t>(maxLogitsBytes / rowBytes, 1,
                           std::max<uint64_t>(prefill.max_logit_rows(), 1));
  std::optional<uint64_t> logitsBytes = checkedMultiply(
      std::max<uint64_t>(maxPrefillRows, decode.max_logit_rows()), rowBytes);
  if (!logitsBytes)
    return makeError("the logits are larger than this machine can address");
  WeightLoadOptions loading;
  loading.placement = options.weightPlacement.value_or(WeightPlacement::Mapped);
  loading.threads = budget.threads();
  loading.progress = options.progress;

  MemoryNeeds needs;
  needs.weights = artifact.weightsBytes();
  needs.weightsCopied = loading.placement == WeightPlacement::HugePages;
  needs.wideWeights = manifest.target().dtype() == "f32";
  needs.workspace = std::max<uint64_t>(
      {prefill.workspace_bytes(), decode.workspace_bytes(), 1});
  needs.logits = *logitsBytes;
  needs.kvBlock = manifest.kv_cache().block_bytes();
  needs.wantedTokens = options.kvCacheTokens
                           ? options.kvCacheTokens
                           : manifest.model().context_length();
  needs.sequences = options.maxSequences;
  needs.requiredTokens = options.requiredTokens;
  needs.kvMemory = options.kvMemory;
  Result<MemoryPlan> memory =
      planMemory(needs, readMemoryLimits(options.numaNode));
  if (!memory)
    return memory.error().inContext(artifact.path());
  for (const std::string &warning : memory->warnings)
    report(options.log, LogLevel::Warning, artifact.path() + ": " + warning);

  SANDWICH_ASSIGN_OR_RETURN(KVCache cache,
                            KVCache::create(needs.kvBlock, memory->kvBlocks));
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory workspace,
      AnonymousMemory::allocate(needs.workspace, "the workspace"));
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory logits,
      AnonymousMemory::allocate(needs.logits, "the logits"));
  SANDWICH_ASSIGN_OR_RETURN(WeightStorage storage,
                            artifact.loadWeights(loading));
  const std::optional<PlanCores> plan =
      options.plan ? options.plan : planOf(artifact);
  SANDWICH_ASSIGN_OR_RETURN(
      PhaseTeams teams,
      createPhaseTeams(artifact, budget, plan, /*process=*/0, options.log));

  std::unique_ptr<Engine> engine(
      new Engine(std::move(artifact), std::move(storage), std::move(phases)));
  engine->teams = std::move(teams);
  engine->cache = std::move(cache);
  engine->workspace = std::move(workspace);
  engine->logits = std::move(logits);
  engine->maxPrefillRows = maxPrefillRows;
  if (options.numaNode)
    SANDWICH_RETURN_IF_ERROR(engine->bindTo(*options.numaNode, options.log));
  report(options.log, LogLevel::Information, engine->describeMemory());
  return engine;
}

Status Engine::bindTo(unsigned node, const LogCallback &log) const {
  std::span<const std::byte> areas[] = {
      storage.bytes(), cache.bytes(), workspace.contents(), logits.contents()};
  SANDWICH_ASSIGN_OR_RETURN(std::optional<std::string> refusal,
                            bindMemory(areas, node));
  if (refusal)
    report(log, LogLevel::Warning, source.path() + ": " + *refusal);
  return {};
}

std::string Engine::describeMemory() const {
  // Nothing but the weights was used yet.
  std::string weights = formatBytes(storage.bytes().size());
  return "memory: weights " + weights +
         (storage.placement() == WeightPlacement::Mapped ? " mapped"
                                                         : " copied") +
         ", " + formatBytes(storage.hugePageBytes()) +
         " of them in huge pages; KV cache " +
         formatBytes(cache.bytes().size()) + " for " +
         std::to_string(cache.blockCount() * SANDWICH_KV_BLOCK_TOKENS) +
         " tokens, workspace " + formatBytes(workspace.size()) + ", logits " +
         formatBytes(logits.size());
}

MemoryUse Engine::memoryUse() const {
  auto part = [](std::span<const std::byte> memory) {
    return MemoryUse::Part{memory.size(), bytesInHugePages(memory)};
  };
  return {part(storage.bytes()), part(cache.bytes()),
          part(workspace.contents()), part(logits.contents())};
}

uint64_t Engine::maxDecodeSequences() const {
  return std::min(source.decode().max_tokens(),
                  source.decode().max_logit_rows());
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
  if (!teams.prefill->checkProcess())
    return;
  std::lock_guard lock(mutex);
  sequence.tokens = std::min(sequence.tokens, length);
  cache.shrink(sequence.blocks, KVCache::blocksFor(sequence.tokens));
}

Result<Sequence> Engine::fork(const Sequence &sequence) {
  SANDWICH_RETURN_IF_ERROR(teams.prefill->checkProcess());
  Sequence copy(*this);
  {
    // Not until the return, which ends moved sequences, and they lock, too.
    std::lock_guard lock(mutex);
    copy.blocks =
        cache.share(sequence.blocks, KVCache::blocksFor(sequence.tokens));
    copy.tokens = sequence.tokens;
  }
  return copy;
}

std::span<const float> Engine::logitSpan(uint64_t rows) const {
  return {reinterpret_cast<const float *>(logits.data()), rows * vocabSize()};
}

void Engine::runPhase(PhaseTeam &team, SandwichPhaseFunction function,
                      StepProfiler *profiler, SandwichStep &step) {
  step.token_ids = tokenIds.data();
  step.positions = positions.data();
  step.sequences = sequences.data();
  step.logit_rows = logitRows.data();
  step.num_tokens = static_cast<int64_t>(tokenIds.size());
  step.num_logit_rows = static_cast<int64_t>(logitRows.size());
  step.weights = storage.bytes().data();
  step.kv_cache = cache.data();
  step.workspace = workspace.data();
  step.logits = reinterpret_cast<float *>(logits.data());
  step.barrier = [](void *team) { static_cast<PhaseTeam *>(team)->barrier(); };
  step.team = &team;

  struct Call {
    SandwichPhaseFunction function;
    const SandwichStep *step;
    StepProfiler *profiler;
  } call{function, &step, profiler};
  if (profiler)
    profiler->begin(step);
  team.run(
      team.size(),
      [](void *context, int32_t thread) {
        const auto &call = *static_cast<const Call *>(context);
        if (call.profiler)
          call.profiler->enter(thread);
        call.function(call.step, thread);
      },
      &call);
  if (profiler)
    profiler->end();
}

void Engine::runPiece(Sequence &sequence, std::span<const int32_t> tokens,
                      uint64_t firstRow, uint64_t rows) {
  tokenIds.assign(tokens.begin(), tokens.end());
  positions.resize(tokens.size());
  std::iota(positions.begin(), positions.end(),
            static_cast<int32_t>(sequence.tokens));
  sequences.assign(tokens.size(), 0);
  logitRows.resize(rows);
  std::iota(logitRows.begin(), logitRows.end(), static_cast<int32_t>(firstRow));
  SandwichStep step{};
  step.block_tables = sequence.blocks.data();
  step.num_sequences = 1;
  step.blocks_per_sequence = static_cast<int64_t>(sequence.blocks.size());
  if (tokens.size() == 1)
    runPhase(*teams.decode, phases.decode(), decodeProfiler, step);
  else
    runPhase(*teams.prefill, phases.prefill(), prefillProfiler, step);
  sequence.tokens += tokens.size();
}

Status Engine::feed(Sequence &sequence, std::span<const int32_t> tokens,
                    LogitRows rows, const LogitsCallback &onLogits,
                    uint64_t chunk) {
  if (tokens.empty())
    return makeError("there are no tokens to feed; give at least one");
  SANDWICH_RETURN_IF_ERROR(checkTokens(tokens));
  SANDWICH_RETURN_IF_ERROR(teams.prefill->checkProcess());
  std::lock_guard lock(mutex);
  SANDWICH_RETURN_IF_ERROR(checkContext(sequence, tokens.size()));
  appends.assign({{&sequence.blocks, sequence.tokens, tokens.size()}});
  SANDWICH_RETURN_IF_ERROR(cache.reserve(appends));
  uint64_t largest =
      chunk ? std::min(chunk, maxPrefillTokens()) : maxPrefillTokens();
  if (rows == LogitRows::All)
    largest = std::min(largest, maxPrefillRows);
  for (size_t first = 0; first < tokens.size();) {
    uint64_t count = std::min<uint64_t>(largest, tokens.size() - first);
    bool last = first + count == tokens.size();
    uint64_t wanted = rows == LogitRows::All            ? count
                      : rows == LogitRows::Last && last ? 1
                                                        : 0;
    runPiece(sequence, tokens.subspan(first, count), count - wanted, wanted);
    if (wanted > 0 && onLogits)
      SANDWICH_RETURN_IF_ERROR(
          onLogits(logitSpan(wanted), first + count - wanted, wanted));
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
  SANDWICH_RETURN_IF_ERROR(teams.prefill->checkProcess());
  std::lock_guard lock(mutex);
  appends.clear();
  for (const DecodeToken &item : batch) {
    SANDWICH_RETURN_IF_ERROR(checkContext(*item.sequence, 1));
    appends.push_back({&item.sequence->blocks, item.sequence->tokens, 1});
  }
  SANDWICH_RETURN_IF_ERROR(cache.reserve(appends));

  size_t longestTable = 0;
  for (const DecodeToken &item : batch)
    longestTable = std::max(longestTable, item.sequence->blocks.size());
  tokenIds.clear();
  positions.clear();
  sequences.clear();
  logitRows.clear();
  blockTables.assign(batch.size() * longestTable, 0);
  for (size_t i = 0; i < batch.size(); ++i) {
    const Sequence &sequence = *batch[i].sequence;
    tokenIds.push_back(batch[i].token);
    positions.push_back(static_cast<int32_t>(sequence.tokens));
    sequences.push_back(static_cast<int32_t>(i));
    logitRows.push_back(static_cast<int32_t>(i));
    std::copy(sequence.blocks.begin(), sequence.blocks.end(),
              blockTables.begin() +
                  static_cast<std::ptrdiff_t>(i * longestTable));
  }
  SandwichStep step{};
  step.block_tables = blockTables.data();
  step.num_sequences = static_cast<int64_t>(batch.size());
  step.blocks_per_sequence = static_cast<int64_t>(longestTable);
  runPhase(*teams.decode, phases.decode(), decodeProfiler, step);
  for (const DecodeToken &item : batch)
    ++item.sequence->tokens;
  if (onLogits)
    return onLogits(logitSpan(batch.size()), 0, batch.size());
  return {};
}
