//===- EncoderEngine.cpp - A loaded model that encodes texts --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine/EncoderEngine.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Machine/Process/MemoryBinding.h"
#include "sandwich/Runtime/Memory/MemoryPlan.h"
#include "sandwich/Runtime/Teams/TeamStep.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ResidentMemory.h"

#include <algorithm>
#include <array>

using namespace sandwich;

static constexpr uint64_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

namespace {

/// What a step needs beside the weights, in bytes.
struct EncoderBuffers {
  uint64_t workspace = 1;
  uint64_t rows = 0;
  uint64_t cacheBlocks = 0;
};

} // namespace

/// Texts of a batch: each has a block of the cache at least, and memory for as
/// many of them as tokens would be mostly unused.
static constexpr uint64_t mostTexts = 1024;

/// The largest step of any phase. Limits of a manifest bound all that is
/// multiplied here.
static EncoderBuffers buffersOf(const proto::Manifest &manifest) {
  EncoderBuffers buffers;
  for (const proto::Phase &phase : manifest.phases()) {
    buffers.workspace =
        std::max<uint64_t>(buffers.workspace, phase.workspace_bytes());
    buffers.rows = std::max(
        buffers.rows, uint64_t{phase.max_logit_rows()} *
                          artifact::columnsOf(phase, manifest) * sizeof(float));
    // Each text but one may begin a block that it does not fill.
    const uint64_t blocks = phase.max_tokens() / blockTokens +
                            std::min<uint64_t>({phase.max_logit_rows(),
                                                phase.max_tokens(), mostTexts});
    buffers.cacheBlocks = std::max(buffers.cacheBlocks, blocks);
  }
  return buffers;
}

MemoryNeeds EncoderEngine::memoryNeeds(const Artifact &artifact,
                                       const EncoderEngineOptions &options) {
  const proto::Manifest &manifest = artifact.manifest();
  const EncoderBuffers buffers = buffersOf(manifest);
  MemoryNeeds needs;
  needs.nodes = {options.numaNode};
  needs.weights = artifact.rankWeightsBytes();
  needs.weightsFile = artifact.path();
  needs.weightsCopied = options.weightPlacement != WeightPlacement::Mapped;
  needs.wideWeights = manifest.target().dtype() == "f32";
  needs.wideKVCache = manifest.kv_cache().dtype() == "f32";
  needs.workspace = buffers.workspace;
  needs.logits = buffers.rows;
  needs.kvBlock = manifest.kv_cache().block_bytes();
  needs.requiredTokens = buffers.cacheBlocks * blockTokens;
  needs.wantedTokens = needs.requiredTokens;
  return needs;
}

/// Finds what will not fit before it is loaded, and takes it from the ledger,
/// if there is one.
static Status takeMemory(const Artifact &artifact,
                         const EncoderEngineOptions &options,
                         MemoryReservation &reservation) {
  const MemoryNeeds needs = EncoderEngine::memoryNeeds(artifact, options);
  const auto plan = [&]() -> Result<MemoryPlan> {
    if (!options.memoryLedger) {
      std::vector<unsigned> nodes;
      if (options.numaNode)
        nodes.push_back(*options.numaNode);
      return planMemory(needs, readMemoryLimits(nodes));
    }
    SANDWICH_ASSIGN_OR_RETURN(
        MemoryLedger::Reserved reserved,
        options.memoryLedger->reserve(artifact.path(), needs));
    reservation = std::move(reserved.reservation);
    return std::move(reserved.plan);
  }();
  if (!plan)
    return plan.error().inContext(artifact.path());
  for (const std::string &warning : plan->warnings)
    report(options.log, LogLevel::Warning, artifact.path() + ": " + warning);
  return {};
}

/// The team's threads and their CPUs, told in the log.
static Result<std::unique_ptr<PhaseTeam>>
createTeam(const Artifact &artifact, const EncoderEngineOptions &options,
           const CpuBudget &budget) {
  PhaseTeamOptions team;
  team.threads = artifact.manifest().phases(0).threads();
  for (const proto::Phase &phase : artifact.manifest().phases())
    if (phase.threads() != team.threads)
      return makeError(artifact.path(), ": phases have ", team.threads, " and ",
                       phase.threads(),
                       " threads; those of models that encode have the same");
  if (!options.cpus.empty() && options.cpus.size() != team.threads)
    return makeError(artifact.path(), ": was compiled for ", team.threads,
                     " threads, but is to run on ", options.cpus.size(),
                     " CPUs; compile it with --threads=", options.cpus.size());
  team.cpus =
      options.cpus.empty() ? budget.cpusFor(team.threads) : options.cpus;
  team.oversubscribed = team.threads > budget.threads();
  const std::string allowance =
      std::to_string(budget.threads()) + " (limited by " + budget.limit() + ")";
  if (team.oversubscribed)
    report(options.log, LogLevel::Warning,
           artifact.path() + ": was compiled for " +
               std::to_string(team.threads) +
               " threads, but this process may use " + allowance +
               "; it runs slower than it could, compile it with --threads=" +
               std::to_string(budget.threads()));
  return PhaseTeam::create(team);
}

Result<std::unique_ptr<EncoderEngine>>
EncoderEngine::create(Artifact artifact, const EncoderEngineOptions &options) {
  const proto::Manifest &manifest = artifact.manifest();
  if (!manifest.has_encoding())
    return makeError(artifact.path(), ": is a model that generates text");
  if (options.verifyWeights)
    SANDWICH_RETURN_IF_ERROR(artifact.verifyWeights(options.progress));
  const EncoderBuffers buffers = buffersOf(manifest);
  MemoryReservation reservation;
  SANDWICH_RETURN_IF_ERROR(takeMemory(artifact, options, reservation));
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  // First what is quick to fail.
  SANDWICH_ASSIGN_OR_RETURN(PhaseLibrary phases, artifact.loadPhases());
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseTeam> team,
                            createTeam(artifact, options, budget));
  const auto cacheBytes = checkedMultiply<uint64_t>(
      buffers.cacheBlocks, manifest.kv_cache().block_bytes());
  if (!cacheBytes)
    return makeError(artifact.path(), ": a step's keys and values are larger "
                                      "than this machine can address");
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory cache,
      AnonymousMemory::allocate(*cacheBytes, "the keys and values of a step"));
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory workspace,
      AnonymousMemory::allocate(buffers.workspace, "the workspace"));
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory rows,
      AnonymousMemory::allocate(buffers.rows, "the results of a step"));
  WeightLoadOptions loading;
  loading.placement = options.weightPlacement;
  loading.threads = budget.threads();
  loading.progress = options.progress;
  SANDWICH_ASSIGN_OR_RETURN(WeightStorage weights,
                            artifact.loadWeights(loading));
  std::vector<unsigned> nodes;
  if (options.numaNode)
    nodes = {*options.numaNode};
  else if (std::optional<unsigned> node = numaNodeOf(options.cpus))
    nodes = memoryNodesOf(*node);
  if (!nodes.empty()) {
    std::span<const std::byte> areas[] = {weights.bytes(), cache.contents(),
                                          workspace.contents(),
                                          rows.contents()};
    SANDWICH_ASSIGN_OR_RETURN(std::optional<std::string> refusal,
                              bindMemory(areas, nodes));
    if (refusal)
      report(options.log, LogLevel::Warning, *refusal);
  }
  report(options.log, LogLevel::Information,
         "memory: weights " + formatBytes(weights.bytes().size()) +
             ", workspace " + formatBytes(workspace.size()) +
             "; batches of at most " +
             std::to_string(manifest.phases(0).max_tokens()) + " tokens on " +
             std::to_string(team->size()) +
             (team->size() == 1 ? " thread" : " threads"));
  std::unique_ptr<EncoderEngine> engine(new EncoderEngine(
      std::move(artifact), std::move(weights), std::move(phases)));
  engine->reservation = std::move(reservation);
  engine->threads = std::move(team);
  engine->cache = std::move(cache);
  engine->workspace = std::move(workspace);
  engine->rows = std::move(rows);
  engine->stepTokens = engine->stepTexts = UINT64_MAX;
  for (const proto::Phase &phase : engine->source.manifest().phases()) {
    engine->stepTokens =
        std::min<uint64_t>(engine->stepTokens, phase.max_tokens());
    engine->stepTexts = std::min<uint64_t>(
        {engine->stepTexts, phase.max_logit_rows(), mostTexts});
  }
  if (engine->reservation)
    // Areas rather than the engine, which others do not wait for.
    engine->reservation.setUse(
        {.mapped = true,
         .bytes = [areas = std::array{engine->cache.contents(),
                                      engine->workspace.contents(),
                                      engine->rows.contents()},
                   program = EncoderEngine::memoryNeeds(engine->source, options)
                                 .program](uint64_t) {
           uint64_t bytes = program;
           for (std::span<const std::byte> area : areas)
             bytes += residentBytes(area);
           return bytes;
         }});
  if (options.coreArbiter)
    SANDWICH_RETURN_IF_ERROR(engine->shareCores(options));
  return engine;
}

Status EncoderEngine::shareCores(const EncoderEngineOptions &options) {
  demand.add(threads->readPlacement());
  SANDWICH_ASSIGN_OR_RETURN(
      cores,
      CoreMember::join(options.coreArbiter, source.path(), options.coreWeight));
  cores->onDisplaced([team = threads.get()] { team->rest(); });
  return {};
}

EncoderEngine::~EncoderEngine() {
  if (reservation)
    reservation.setUse({});
  if (cores)
    cores->onDisplaced({});
}

const proto::Phase &EncoderEngine::phaseOf(EncoderOutput output) const {
  const char *name = output == EncoderOutput::Tokens
                         ? artifact::embedTokensPhase
                     : classifies() ? artifact::classifyPhase
                                    : artifact::embedPhase;
  return *artifact::findPhase(source.manifest(), name);
}

uint64_t EncoderEngine::columns() const {
  return artifact::columnsOf(source.manifest().phases(0), source.manifest());
}

Status EncoderEngine::check(const EncoderInput &input) const {
  if (input.ids.empty())
    return makeError(ErrorKind::InvalidArgument, "the text has no tokens");
  if (input.ids.size() > contextLength())
    return makeError(ErrorKind::ContextExceeded, "the text has ",
                     input.ids.size(), " tokens, more than the model's ",
                     contextLength(), "; shorten it, or have it truncated");
  for (size_t i = 0; i < input.ids.size(); ++i)
    if (input.ids[i] < 0 ||
        static_cast<uint32_t>(input.ids[i]) >= model().vocab_size())
      return makeError(ErrorKind::InvalidArgument, "token ", i, " is ",
                       input.ids[i], ", outside the vocabulary of ",
                       model().vocab_size(), " tokens");
  if (input.types.empty())
    return {};
  if (input.types.size() != input.ids.size())
    return makeError(ErrorKind::InvalidArgument, "there are ",
                     input.types.size(), " token types for ", input.ids.size(),
                     " tokens");
  // Without types, nobody reads them.
  const uint32_t known = encoding().token_types();
  for (int32_t type : input.types)
    if (type < 0 || (known > 0 && static_cast<uint32_t>(type) >= known))
      return makeError(ErrorKind::InvalidArgument, "a token's type is ", type,
                       ", and the model knows ", known);
  return {};
}

/// Fills what the step is about.
Status EncoderEngine::arrange(std::span<const EncoderInput> batch,
                              EncoderOutput output) {
  if (batch.empty() || batch.size() > stepTexts)
    return makeError(ErrorKind::InvalidArgument, "there are ", batch.size(),
                     " texts; 1 to ", stepTexts, " make a batch");
  if (output == EncoderOutput::Tokens && classifies())
    return makeError(ErrorKind::InvalidArgument,
                     "the model scores texts, and has no vectors of tokens");
  uint64_t tokens = 0;
  for (const EncoderInput &input : batch) {
    SANDWICH_RETURN_IF_ERROR(check(input));
    tokens += input.ids.size();
  }
  if (tokens > stepTokens)
    return makeError(ErrorKind::InvalidArgument, "the texts have ", tokens,
                     " tokens; a batch has at most ", stepTokens);
  if (output == EncoderOutput::Tokens &&
      tokens > phaseOf(output).max_logit_rows())
    return makeError(ErrorKind::InvalidArgument, "the texts have ", tokens,
                     " tokens; rows are told of at most ",
                     phaseOf(output).max_logit_rows());
  for (auto *list : {&ids, &types, &positions, &slots, &blocks, &wanted})
    list->clear();
  segments.clear();
  for (const EncoderInput &input : batch) {
    const auto first = static_cast<int32_t>(ids.size());
    const auto count = static_cast<int32_t>(input.ids.size());
    const auto firstBlock = static_cast<int32_t>(blocks.size());
    segments.push_back({first, count, /*first_position=*/0, firstBlock});
    ids.insert(ids.end(), input.ids.begin(), input.ids.end());
    if (input.types.empty())
      types.resize(ids.size(), 0);
    else
      types.insert(types.end(), input.types.begin(), input.types.end());
    for (int32_t token = 0; token < count; ++token) {
      if (token % static_cast<int32_t>(blockTokens) == 0)
        blocks.push_back(static_cast<int32_t>(blocks.size()));
      positions.push_back(token);
      slots.push_back(firstBlock * static_cast<int32_t>(blockTokens) + token);
      if (output == EncoderOutput::Tokens)
        wanted.push_back(first + token);
    }
    if (output == EncoderOutput::Texts)
      wanted.push_back(first);
  }
  return {};
}

Result<std::span<const float>>
EncoderEngine::run(std::span<const EncoderInput> batch, EncoderOutput output) {
  SANDWICH_RETURN_IF_ERROR(arrange(batch, output));
  SANDWICH_RETURN_IF_ERROR(threads->checkProcess());
  SandwichStep step{};
  step.token_ids = ids.data();
  step.token_types = types.data();
  step.positions = positions.data();
  step.cache_slots = slots.data();
  step.segments = segments.data();
  step.block_tables = blocks.data();
  step.logit_rows = wanted.data();
  step.num_tokens = static_cast<int64_t>(ids.size());
  step.num_segments = static_cast<int64_t>(segments.size());
  step.num_blocks = static_cast<int64_t>(blocks.size());
  step.num_logit_rows = static_cast<int64_t>(wanted.size());
  step.weights = weights.bytes().data();
  step.kv_cache = cache.data();
  step.workspace = workspace.data();
  step.logits = reinterpret_cast<float *>(rows.data());
  setTeam(step, *threads);
  const SandwichPhaseFunction function = phases.find(phaseOf(output).name());
  CoreLease lease;
  if (cores)
    lease = cores->acquire(demand);
  runStep(*threads, step, profiler,
          [&](int32_t thread) { function(&step, thread); });
  return std::span(reinterpret_cast<const float *>(rows.data()),
                   wanted.size() * columns());
}
