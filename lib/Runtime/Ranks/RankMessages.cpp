//===- RankMessages.cpp - What rank 0 tells the others --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankMessages.h"

#include "sandwich/Artifact/Format.h"

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
  int64_t tokens, sequences, blocksPerSequence, logitRows, blockCopies;
  int64_t blocks() const { return sequences * blocksPerSequence; }
  int64_t payload() const {
    return 3 * tokens + blocks() + logitRows + 2 * blockCopies;
  }
};

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
                                     uint64_t manifestChecksum) {
  SetupHeader header{};
  ranks.broadcast(&header, sizeof(header), /*root=*/0);
  SANDWICH_RETURN_IF_ERROR(ranks.failure());
  PlanCores plan;
  exchangeCores(ranks, header, plan);
  SANDWICH_RETURN_IF_ERROR(ranks.failure());
  if (header.manifestChecksum != manifestChecksum)
    return makeError("found another artifact than rank 0, as if it had been "
                     "compiled again meanwhile");
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
static void exchangeTeam(Communicator &ranks, int32_t root,
                         TeamPlacement &cpus) {
  for (std::vector<unsigned> &thread : cpus) {
    uint64_t count = thread.size();
    ranks.broadcast(&count, sizeof(count), root);
    if (!ranks.failure())
      return;
    thread.resize(count);
    ranks.broadcast(thread.data(), count * sizeof(unsigned), root);
  }
}

std::vector<RankPlacement>
sandwich::exchangePlacement(Communicator &ranks, PhaseExecutor &executor) {
  const RankPlacement own = executor.readPlacement();
  std::vector<RankPlacement> all(static_cast<size_t>(ranks.ranks()), own);
  for (int32_t root = 0; root < ranks.ranks(); ++root) {
    RankPlacement &placement = all[static_cast<size_t>(root)];
    exchangeTeam(ranks, root, placement.prefill);
    exchangeTeam(ranks, root, placement.decode);
  }
  return all;
}

std::vector<std::vector<std::string>>
sandwich::exchangeWarnings(Communicator &ranks,
                           const std::vector<std::string> &own) {
  std::vector<std::vector<std::string>> all(static_cast<size_t>(ranks.ranks()),
                                            own);
  for (int32_t root = 0; root < ranks.ranks(); ++root) {
    std::vector<std::string> &warnings = all[static_cast<size_t>(root)];
    uint64_t count = warnings.size();
    ranks.broadcast(&count, sizeof(count), root);
    if (!ranks.failure())
      return {};
    warnings.resize(count);
    for (std::string &warning : warnings) {
      uint64_t size = warning.size();
      ranks.broadcast(&size, sizeof(size), root);
      if (!ranks.failure())
        return {};
      warning.resize(size);
      ranks.broadcast(warning.data(), size, root);
    }
  }
  return all;
}

void sandwich::giveStep(Communicator &ranks, PhaseKind phase,
                        const StepArguments &arguments) {
  StepMessage message{};
  message.header = {
      .kind =
          phase == PhaseKind::Prefill ? StepKind::Prefill : StepKind::Decode,
      .tokens = static_cast<int64_t>(arguments.tokenIds.size()),
      .sequences = arguments.sequenceCount,
      .blocksPerSequence = arguments.blocksPerSequence,
      .logitRows = static_cast<int64_t>(arguments.logitRows.size()),
      .blockCopies = static_cast<int64_t>(arguments.blockCopies.size())};
  std::vector<int32_t> payload;
  payload.reserve(static_cast<size_t>(message.header.payload()));
  for (const std::vector<int32_t> *part :
       {&arguments.tokenIds, &arguments.positions, &arguments.sequences,
        &arguments.blockTables, &arguments.logitRows})
    payload.insert(payload.end(), part->begin(), part->end());
  for (auto [from, to] : arguments.blockCopies)
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

std::optional<PhaseKind> sandwich::getStep(Communicator &ranks,
                                           StepArguments &arguments) {
  StepMessage message{};
  ranks.broadcast(&message, sizeof(message), /*root=*/0);
  const StepHeader &header = message.header;
  if (header.kind == StepKind::End || !ranks.failure())
    return std::nullopt;
  std::vector<int32_t> payload(static_cast<size_t>(header.payload()));
  const size_t first = std::min(payload.size(), shortPayload);
  std::copy_n(message.payload.begin(), first, payload.begin());
  ranks.broadcast(payload.data() + first,
                  (payload.size() - first) * sizeof(int32_t), /*root=*/0);
  if (!ranks.failure())
    return std::nullopt;
  const int32_t *next = payload.data();
  auto take = [&next](std::vector<int32_t> &part, int64_t count) {
    part.assign(next, next + count);
    next += count;
  };
  take(arguments.tokenIds, header.tokens);
  take(arguments.positions, header.tokens);
  take(arguments.sequences, header.tokens);
  take(arguments.blockTables, header.blocks());
  take(arguments.logitRows, header.logitRows);
  arguments.blockCopies.clear();
  for (int64_t i = 0; i < header.blockCopies; ++i, next += 2)
    arguments.blockCopies.push_back({next[0], next[1]});
  arguments.sequenceCount = header.sequences;
  arguments.blocksPerSequence = header.blocksPerSequence;
  return header.kind == StepKind::Prefill ? PhaseKind::Prefill
                                          : PhaseKind::Decode;
}
