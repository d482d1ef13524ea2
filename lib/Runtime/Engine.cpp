//===- Engine.cpp - A loaded model that runs steps ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine.h"

#include "sandwich/Support/CheckedMath.h"

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

static void report(const LogCallback &log, LogLevel level,
                   const std::string &message) {
  if (log)
    log(level, message);
}

/// The team for both phases.
static Result<std::unique_ptr<PhaseTeam>> createTeam(const Artifact &artifact,
                                                     const CpuBudget &budget,
                                                     const LogCallback &log) {
  unsigned prefillThreads = artifact.prefill().threads();
  unsigned decodeThreads = artifact.decode().threads();
  PhaseTeamOptions options;
  options.threads = std::max(prefillThreads, decodeThreads);
  options.cpus = budget.cpusFor(options.threads);
  std::string allowance =
      std::to_string(budget.threads()) + " (limited by " + budget.limit() + ")";
  options.oversubscribed = options.threads > budget.threads();
  if (options.oversubscribed)
    report(log, LogLevel::Warning,
           artifact.path() + ": was compiled for " +
               std::to_string(options.threads) +
               " threads, but this process may use " + allowance +
               "; it runs slower than it could, compile it with --threads=" +
               std::to_string(budget.threads()));
  else
    report(log, LogLevel::Information,
           "prefill on " + std::to_string(prefillThreads) +
               " threads, decode on " + std::to_string(decodeThreads) +
               "; this process may use " + allowance);
  return PhaseTeam::create(options);
}

Result<std::unique_ptr<Engine>> Engine::create(Artifact artifact,
                                               const EngineOptions &options) {
  const proto::Manifest &manifest = artifact.manifest();
  const proto::Phase &prefill = artifact.prefill();
  const proto::Phase &decode = artifact.decode();
  if (uint32_t ranks = artifact::ranks(manifest); ranks > 1)
    return makeError(artifact.path(), ": was compiled for ", ranks,
                     " ranks, and this version of Sandwich runs one; compile "
                     "it with --tensor-parallel=1");
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());

  // First what is quick to fail.
  SANDWICH_ASSIGN_OR_RETURN(PhaseLibrary phases, artifact.loadPhases());
  uint64_t kvTokens = options.kvCacheTokens ? options.kvCacheTokens
                                            : manifest.model().context_length();
  // Every sequence may leave its last block partly empty.
  std::optional<uint64_t> kvBlocks =
      checkedAdd(KVCache::blocksFor(kvTokens),
                 std::max<uint64_t>(options.maxSequences, 1) - 1);
  if (!kvBlocks)
    return makeError("a KV cache for ", options.maxSequences,
                     " sequences is larger than this machine can address");
  SANDWICH_ASSIGN_OR_RETURN(
      KVCache cache,
      KVCache::create(manifest.kv_cache().block_bytes(), *kvBlocks));
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory workspace,
      AnonymousMemory::allocate(
          std::max<uint64_t>(
              std::max(prefill.workspace_bytes(), decode.workspace_bytes()), 1),
          "the workspace"));
  uint64_t rowBytes = uint64_t{manifest.model().vocab_size()} * sizeof(float);
  uint64_t maxPrefillRows =
      std::clamp<uint64_t>(maxLogitsBytes / rowBytes, 1,
                           std::max<uint64_t>(prefill.max_logit_rows(), 1));
  std::optional<uint64_t> logitsBytes = checkedMultiply(
      std::max<uint64_t>(maxPrefillRows, decode.max_logit_rows()), rowBytes);
  if (!logitsBytes)
    return makeError("the logits are larger than this machine can address");
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory logits,
      AnonymousMemory::allocate(*logitsBytes, "the logits"));

  WeightLoadOptions loading;
  loading.placement = options.weightPlacement.value_or(WeightPlacement::Mapped);
  loading.threads = budget.threads();
  loading.progress = options.progress;
  SANDWICH_ASSIGN_OR_RETURN(WeightStorage storage,
                            artifact.loadWeights(loading));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseTeam> team,
                            createTeam(artifact, budget, options.log));

  std::unique_ptr<Engine> engine(
      new Engine(std::move(artifact), std::move(storage), std::move(phases)));
  engine->threads = std::move(team);
  engine->cache = std::move(cache);
  engine->workspace = std::move(workspace);
  engine->logits = std::move(logits);
  engine->maxPrefillRows = maxPrefillRows;
  return engine;
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

Status Engine::reserve(Sequence &sequence, uint64_t newTokens) {
  if (sequence.tokens >= contextLength() ||
      newTokens > contextLength() - sequence.tokens)
    return makeError(newTokens, " tokens after ", sequence.tokens,
                     " are more than the model's context of ", contextLength(),
                     " tokens");
  return cache.grow(sequence.blocks,
                    KVCache::blocksFor(sequence.tokens + newTokens));
}

void Engine::truncate(Sequence &sequence, uint64_t length) {
  // In a fork the mutex may be held for ever, and the cache is of no use.
  if (!threads->checkProcess())
    return;
  std::lock_guard lock(mutex);
  sequence.tokens = std::min(sequence.tokens, length);
  cache.shrink(sequence.blocks, KVCache::blocksFor(sequence.tokens));
}

std::span<const float> Engine::logitSpan(uint64_t rows) const {
  return {reinterpret_cast<const float *>(logits.data()), rows * vocabSize()};
}

void Engine::runPhase(const proto::Phase &phase, SandwichPhaseFunction function,
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
  step.team = threads.get();

  struct Call {
    SandwichPhaseFunction function;
    const SandwichStep *step;
    StepProfiler *profiler;
  } call{function, &step, profiler};
  if (profiler)
    profiler->begin(step);
  threads->run(
      phase.threads(),
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
    runPhase(source.decode(), phases.decode(), decodeProfiler, step);
  else
    runPhase(source.prefill(), phases.prefill(), prefillProfiler, step);
  sequence.tokens += tokens.size();
}

Status Engine::feed(Sequence &sequence, std::span<const int32_t> tokens,
                    LogitRows rows, const LogitsCallback &onLogits,
                    uint64_t chunk) {
  if (tokens.empty())
    return makeError("there are no tokens to feed; give at least one");
  SANDWICH_RETURN_IF_ERROR(checkTokens(tokens));
  SANDWICH_RETURN_IF_ERROR(threads->checkProcess());
  std::lock_guard lock(mutex);
  SANDWICH_RETURN_IF_ERROR(reserve(sequence, tokens.size()));
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
  SANDWICH_RETURN_IF_ERROR(threads->checkProcess());
  std::lock_guard lock(mutex);
  for (const DecodeToken &item : batch)
    SANDWICH_RETURN_IF_ERROR(reserve(*item.sequence, 1));

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
  runPhase(source.decode(), phases.decode(), decodeProfiler, step);
  for (const DecodeToken &item : batch)
    ++item.sequence->tokens;
  if (onLogits)
    return onLogits(logitSpan(batch.size()), 0, batch.size());
  return {};
}
