//===- RankMessages.cpp - What rank 0 tells the others --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankMessages.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Machine/MachineTopology.h"

#include <algorithm>
#include <array>

using namespace sandwich;

namespace {

/// A message begins with this; both ends are the same build, as the shared
/// memory says.
struct SetupHeader {
  uint64_t manifestChecksum;
  uint64_t kvBlocks;
  WeightPlacement placement;
  /// -1 for none.
  int64_t numaNode;
  /// Processes of the plan, and the cores of each in both phases.
  uint32_t processes, prefillCores, decodeCores;
};

enum class StepKind : uint32_t { End, Prefill, Decode };

struct StepHeader {
  StepKind kind;
  int64_t tokens, segments, logitRows, tableChanges, blockCopies;
  int64_t payload() const {
    return tokens + 3 * segments + logitRows + 3 * tableChanges +
           2 * blockCopies;
  }
};

/// Of the lines that a rank may warn with, and of one of them.
constexpr uint64_t maxWarnings = 1024;
constexpr uint64_t maxWarningBytes = uint64_t{1} << 16;

/// A step of few tokens is one message.
constexpr size_t shortPayload = 240;
struct StepMessage {
  StepHeader header;
  std::array<int32_t, shortPayload> payload;
};

} // namespace

uint64_t sandwich::checksumOf(const Artifact &artifact) {
  std::string bytes = artifact.manifest().SerializeAsString();
  return artifact::checksum(std::as_bytes(std::span(bytes)));
}

/// Error: `value`, which another rank told, is not from `least` to `most`.
static Status checkTold(const char *what, int64_t value, int64_t least,
                        uint64_t most) {
  if (value < least || (value > 0 && static_cast<uint64_t>(value) > most))
    return makeError("was told ", what, " ", value, ", which is not from ",
                     least, " to ", most);
  return {};
}

/// The cores of all processes in both phases, one after another.
static void exchangeCores(Communicator &ranks, const SetupHeader &header,
                          PlanCores &plan) {
  plan.prefill.resize(header.processes);
  plan.decode.resize(header.processes);
  for (uint32_t process = 0; process < header.processes; ++process) {
    plan.prefill[process].resize(header.prefillCores);
    plan.decode[process].resize(header.decodeCores);
    for (std::vector<unsigned> *cores :
         {&plan.prefill[process], &plan.decode[process]})
      ranks.broadcast(cores->data(), cores->size() * sizeof(unsigned),
                      /*root=*/0);
  }
}

void sandwich::giveSetup(Communicator &ranks, const RankSetup &setup,
                         uint64_t manifestChecksum) {
  SetupHeader header{.manifestChecksum = manifestChecksum,
                     .kvBlocks = setup.kvBlocks,
                     .placement = setup.weightPlacement,
                     .numaNode = setup.numaNode ? int64_t{*setup.numaNode} : -1,
                     .processes = 0,
                     .prefillCores = 0,
                     .decodeCores = 0};
  PlanCores plan;
  if (setup.plan) {
    plan = *setup.plan;
    header.processes = static_cast<uint32_t>(plan.prefill.size());
    header.prefillCores = static_cast<uint32_t>(plan.prefill.front().size());
    header.decodeCores = static_cast<uint32_t>(plan.decode.front().size());
  }
  ranks.broadcast(&header, sizeof(header), /*root=*/0);
  exchangeCores(ranks, header, plan);
}

Result<RankSetup> sandwich::getSetup(Communicator &ranks,
                                     const Artifact &artifact) {
  SetupHeader header{};
  ranks.broadcast(&header, sizeof(header), /*root=*/0);
  SANDWICH_RETURN_IF_ERROR(ranks.failure());
  if (header.manifestChecksum != checksumOf(artifact))
    return makeError("found another artifact than rank 0, as if it had been "
                     "compiled again meanwhile");
  SANDWICH_RETURN_IF_ERROR(checkTold("a number of processes", header.processes,
                                     0, artifact::ranks(artifact.manifest())));
  SANDWICH_RETURN_IF_ERROR(checkTold("a number of cores", header.prefillCores,
                                     0, artifact.prefill().threads()));
  SANDWICH_RETURN_IF_ERROR(checkTold("a number of cores", header.decodeCores, 0,
                                     artifact.decode().threads()));
  SANDWICH_RETURN_IF_ERROR(checkTold(
      "a placement of weights", static_cast<int64_t>(header.placement), 0,
      static_cast<uint64_t>(WeightPlacement::HugePages)));
  SANDWICH_RETURN_IF_ERROR(
      checkTold("a NUMA node", header.numaNode, -1, maxTopologyCpus));
  PlanCores plan;
  exchangeCores(ranks, header, plan);
  SANDWICH_RETURN_IF_ERROR(ranks.failure());
  RankSetup setup{.kvBlocks = header.kvBlocks,
                  .weightPlacement = header.placement,
                  .plan = std::nullopt,
                  .numaNode = std::nullopt};
  if (header.numaNode >= 0)
    setup.numaNode = static_cast<unsigned>(header.numaNode);
  if (header.processes > 0)
    setup.plan = std::move(plan);
  return setup;
}

/// Replaces `cpus` by those of rank `root`, which has as many threads.
static Status exchangeTeam(Communicator &ranks, int32_t root,
                           TeamPlacement &cpus) {
  for (std::vector<unsigned> &thread : cpus) {
    int64_t count = static_cast<int64_t>(thread.size());
    ranks.broadcast(&count, sizeof(count), root);
    SANDWICH_RETURN_IF_ERROR(ranks.failure());
    SANDWICH_RETURN_IF_ERROR(
        checkTold("a number of CPUs", count, 0, maxTopologyCpus));
    thread.resize(static_cast<size_t>(count));
    ranks.broadcast(thread.data(), thread.size() * sizeof(unsigned), root);
  }
  return {};
}

Result<std::vector<RankPlacement>>
sandwich::exchangePlacement(Communicator &ranks, PhaseExecutor &executor) {
  const RankPlacement own = executor.readPlacement();
  std::vector<RankPlacement> all(static_cast<size_t>(ranks.ranks()), own);
  for (int32_t root = 0; root < ranks.ranks(); ++root) {
    RankPlacement &placement = all[static_cast<size_t>(root)];
    SANDWICH_RETURN_IF_ERROR(exchangeTeam(ranks, root, placement.prefill));
    SANDWICH_RETURN_IF_ERROR(exchangeTeam(ranks, root, placement.decode));
  }
  return all;
}

Result<std::vector<std::vector<std::string>>>
sandwich::exchangeWarnings(Communicator &ranks,
                           const std::vector<std::string> &own) {
  std::vector<std::vector<std::string>> all(static_cast<size_t>(ranks.ranks()),
                                            own);
  for (int32_t root = 0; root < ranks.ranks(); ++root) {
    std::vector<std::string> &warnings = all[static_cast<size_t>(root)];
    int64_t count = static_cast<int64_t>(warnings.size());
    ranks.broadcast(&count, sizeof(count), root);
    SANDWICH_RETURN_IF_ERROR(ranks.failure());
    SANDWICH_RETURN_IF_ERROR(
        checkTold("a number of warnings", count, 0, maxWarnings));
    warnings.resize(static_cast<size_t>(count));
    for (std::string &warning : warnings) {
      int64_t size = static_cast<int64_t>(warning.size());
      ranks.broadcast(&size, sizeof(size), root);
      SANDWICH_RETURN_IF_ERROR(ranks.failure());
      SANDWICH_RETURN_IF_ERROR(
          checkTold("the length of a warning", size, 0, maxWarningBytes));
      warning.resize(static_cast<size_t>(size));
      ranks.broadcast(warning.data(), warning.size(), root);
    }
  }
  return all;
}

void sandwich::giveStep(Communicator &ranks, PhaseKind phase,
                        const StepInput &input) {
  StepMessage message{};
  message.header = {
      .kind =
          phase == PhaseKind::Prefill ? StepKind::Prefill : StepKind::Decode,
      .tokens = static_cast<int64_t>(input.tokenIds.size()),
      .segments = static_cast<int64_t>(input.segments.size()),
      .logitRows = static_cast<int64_t>(input.logitRows.size()),
      .tableChanges = static_cast<int64_t>(input.tableChanges.size()),
      .blockCopies = static_cast<int64_t>(input.blockCopies.size())};
  std::vector<int32_t> payload;
  payload.reserve(static_cast<size_t>(message.header.payload()));
  payload.insert(payload.end(), input.tokenIds.begin(), input.tokenIds.end());
  for (auto [sequence, tokens, firstPosition] : input.segments)
    payload.insert(payload.end(), {sequence, tokens, firstPosition});
  payload.insert(payload.end(), input.logitRows.begin(), input.logitRows.end());
  for (auto [sequence, index, block] : input.tableChanges)
    payload.insert(payload.end(), {sequence, index, block});
  for (auto [from, to] : input.blockCopies)
    payload.insert(payload.end(), {from, to});
  const size_t first = std::min(payload.size(), shortPayload);
  std::copy_n(payload.begin(), first, message.payload.begin());
  ranks.broadcast(&message, sizeof(message), /*root=*/0);
  ranks.broadcast(payload.data() + first,
                  (payload.size() - first) * sizeof(int32_t), /*root=*/0);
}

void sandwich::giveEnd(Communicator &ranks) {
  StepMessage message{};
  ranks.broadcast(&message, sizeof(message), /*root=*/0);
}

/// Error: the numbers in `header` are not within `limits`.
static Status checkHeader(const StepHeader &header, const StepLimits &limits) {
  SANDWICH_RETURN_IF_ERROR(
      checkTold("a number of tokens", header.tokens, 1, limits.tokens));
  SANDWICH_RETURN_IF_ERROR(
      checkTold("a number of segments", header.segments, 1, limits.tokens));
  SANDWICH_RETURN_IF_ERROR(checkTold("a number of rows of logits",
                                     header.logitRows, 0, limits.logitRows));
  // Each segment may have other blocks than any before.
  SANDWICH_RETURN_IF_ERROR(
      checkTold("a number of changes", header.tableChanges, 0,
                limits.tokens * BlockPool::blocksFor(limits.contextLength)));
  // One for each sequence, and those of steps that were not run.
  return checkTold("a number of copies", header.blockCopies, 0,
                   BlockPool::maxNumbers);
}

Result<std::optional<PhaseKind>>
sandwich::getStep(Communicator &ranks, const PhaseLimits &phaseLimits,
                  StepInput &input) {
  StepMessage message{};
  ranks.broadcast(&message, sizeof(message), /*root=*/0);
  const StepHeader &header = message.header;
  const std::optional<PhaseKind> none;
  if (header.kind == StepKind::End || !ranks.failure())
    return none;
  if (header.kind != StepKind::Prefill && header.kind != StepKind::Decode)
    return makeError("was told a step of no phase");
  const PhaseKind phase =
      header.kind == StepKind::Prefill ? PhaseKind::Prefill : PhaseKind::Decode;
  SANDWICH_RETURN_IF_ERROR(checkHeader(header, phaseLimits.of(phase)));
  std::vector<int32_t> payload(static_cast<size_t>(header.payload()));
  const size_t first = std::min(payload.size(), shortPayload);
  std::copy_n(message.payload.begin(), first, payload.begin());
  ranks.broadcast(payload.data() + first,
                  (payload.size() - first) * sizeof(int32_t), /*root=*/0);
  if (!ranks.failure())
    return none;
  input.clear();
  const int32_t *next = payload.data();
  auto take = [&next](std::vector<int32_t> &part, int64_t count) {
    part.assign(next, next + count);
    next += count;
  };
  take(input.tokenIds, header.tokens);
  for (int64_t i = 0; i < header.segments; ++i, next += 3)
    input.segments.push_back({next[0], next[1], next[2]});
  take(input.logitRows, header.logitRows);
  for (int64_t i = 0; i < header.tableChanges; ++i, next += 3)
    input.tableChanges.push_back({next[0], next[1], next[2]});
  for (int64_t i = 0; i < header.blockCopies; ++i, next += 2)
    input.blockCopies.push_back({next[0], next[1]});
  return std::optional(phase);
}
