//===- RankGroup.cpp - The processes of one model -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Ranks/RankGroup.h"

#include "RankHeartbeat.h"
#include "RankMessages.h"
#include "RankWatch.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Machine/Process/CpuBudget.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// RankGroup
//===----------------------------------------------------------------------===//

namespace {
struct SegmentShape {
  int32_t ranks, lanes;
  SharedMemorySegmentOptions options;
};
} // namespace

static Result<SegmentShape> shapeFor(const Artifact &artifact, uint32_t ranks) {
  const uint32_t threads =
      std::max(artifact.prefill().threads(), artifact.decode().threads());
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  return SegmentShape{
      static_cast<int32_t>(ranks),
      static_cast<int32_t>(threads),
      {.oversubscribed = uint64_t{threads} * ranks > budget.threads()}};
}

Result<uint64_t> RankGroup::exchangeBytes(const Artifact &artifact,
                                          uint32_t ranks,
                                          const HostCommunicator *hosts) {
  SANDWICH_ASSIGN_OR_RETURN(SegmentShape shape, shapeFor(artifact, ranks));
  SANDWICH_ASSIGN_OR_RETURN(
      uint64_t bytes,
      SharedMemorySegment::sizeFor(shape.ranks, shape.lanes, shape.options));
  if (hosts)
    bytes += hosts->bytesFor(shape.lanes);
  return bytes;
}

RankGroup::RankGroup() : process(::getpid()) {}

Result<std::unique_ptr<RankGroup>>
RankGroup::start(const Artifact &artifact, const RankSetup &setup,
                 const RankGroupOptions &options) {
  if (!(options.hangSeconds >= RankGroupOptions::leastHangSeconds &&
        options.hangSeconds <= RankGroupOptions::mostHangSeconds))
    return makeError(ErrorKind::InvalidArgument,
                     "ranks that hang are to be found after ",
                     options.hangSeconds, " seconds; it must be from ",
                     RankGroupOptions::leastHangSeconds, " to ",
                     RankGroupOptions::mostHangSeconds);
  std::string program = options.program;
  if (program.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(program, findRankProgram());
  }
  const auto all = static_cast<int32_t>(artifact::ranks(artifact.manifest()));
  HostCommunicator *hosts = options.hosts.get();
  const int32_t count = hosts ? all / hosts->ranks() : all;
  SANDWICH_ASSIGN_OR_RETURN(SegmentShape shape,
                            shapeFor(artifact, static_cast<uint32_t>(count)));
  shape.options.firstRank = hosts ? hosts->rank() * count : 0;
  shape.options.collectives = options.collectives;
  SANDWICH_ASSIGN_OR_RETURN(
      std::shared_ptr<SharedMemorySegment> segment,
      SharedMemorySegment::create(shape.ranks, shape.lanes, shape.options));
  std::unique_ptr<RankGroup> group(new RankGroup);
  group->hosts = options.hosts;
  SANDWICH_ASSIGN_OR_RETURN(
      group->local, SharedMemoryCommunicator::create(segment, /*rank=*/0));
  group->ranks = group->local.get();
  if (hosts) {
    SANDWICH_RETURN_IF_ERROR(hosts->prepare(shape.lanes));
    group->global = std::make_unique<TwoLevelCommunicator>(
        *group->local, hosts, shape.options.firstRank, all);
    group->ranks = group->global.get();
  }
  group->watch = std::make_unique<RankWatch>(
      segment, options.hosts, std::move(program), artifact.path(),
      options.onOwnHang,
      std::chrono::milliseconds(std::llround(options.hangSeconds * 1000)));
  SANDWICH_RETURN_IF_ERROR(group->watch->start());
  giveSetup(*group->local, setup, checksumOf(artifact));
  SANDWICH_RETURN_IF_ERROR(group->failure());
  return group;
}

RankGroup::~RankGroup() {
  if (::getpid() != process) {
    // The ranks and the thread are those of the process that this is a fork of.
    (void)watch.release();
    (void)local.release();
    return;
  }
  if (!watch)
    return;
  if (!loaded) {
    // They may wait for anything.
    watch->abort("ended before all had loaded");
  } else if (ranks->failure()) {
    watch->expectEnd();
    // Other hosts were told by rank 0.
    if (leads())
      giveEnd(*ranks);
  }
}

Status RankGroup::failure() const {
  if (::getpid() != process)
    return makeError("this process is a fork of the one that loaded the model, "
                     "and has none of its ranks; load the model after forking");
  return ranks->failure();
}

std::vector<int> RankGroup::processes() const { return watch->processes(); }

/// The threads that run steps, but for thread 0, which is whoever asks.
static std::vector<pid_t> findThreads(PhaseExecutor &executor) {
  std::vector<pid_t> threads;
  for (PhaseKind phase : {PhaseKind::Prefill, PhaseKind::Decode}) {
    PhaseTeam &team = executor.team(phase);
    std::vector<pid_t> members(team.size());
    team.run(
        team.size(),
        [](void *members, int32_t thread) {
          (*static_cast<std::vector<pid_t> *>(
              members))[static_cast<size_t>(thread)] = ::gettid();
        },
        &members);
    threads.insert(threads.end(), members.begin() + 1, members.end());
  }
  return threads;
}

Result<std::vector<RankPlacement>>
RankGroup::waitUntilLoaded(PhaseExecutor &own,
                           const std::vector<std::string> &ownWarnings,
                           const LogCallback &log) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<RankPlacement> placement,
                            exchangePlacement(*ranks, own));
  SANDWICH_ASSIGN_OR_RETURN(
      const std::vector<std::vector<std::string>> warnings,
      exchangeWarnings(*ranks, ownWarnings));
  SANDWICH_RETURN_IF_ERROR(failure());
  // What all ranks warn of is told once.
  for (size_t rank = 1; rank < warnings.size(); ++rank)
    for (const std::string &warning : warnings[rank])
      if (std::ranges::find(ownWarnings, warning) == ownWarnings.end())
        report(log, LogLevel::Warning,
               "rank " + std::to_string(rank) + ": " + warning);
  loaded = true;
  watch->expectSteps(findThreads(own));
  return placement;
}

void RankGroup::announce(PhaseKind phase, const StepInput &input) {
  watch->setAnnouncer(::gettid());
  giveStep(*ranks, phase, input);
}

Result<std::optional<PhaseKind>> RankGroup::receive(const PhaseLimits &limits,
                                                    StepInput &input) {
  watch->setAnnouncer(::gettid());
  return getStep(*ranks, limits, input);
}

//===----------------------------------------------------------------------===//
// Hosts
//===----------------------------------------------------------------------===//

/// "1, 2 and 4": the numbers of hosts that share `ranks` evenly.
static std::string nameDivisors(uint32_t ranks) {
  std::string text;
  for (uint32_t hosts = 1; hosts <= ranks; ++hosts)
    if (ranks % hosts == 0)
      text += (hosts == 1       ? ""
               : hosts == ranks ? " and "
                                : ", ") +
              std::to_string(hosts);
  return text;
}

Result<uint32_t> sandwich::ranksOnHost(const Artifact &artifact,
                                       HostCommunicator *hosts) {
  const uint32_t ranks = artifact::ranks(artifact.manifest());
  if (!hosts)
    return ranks;
  struct Card {
    char build[64];
    uint64_t checksum;
  } own{}, first{};
  SharedMemorySegment::build().copy(own.build, sizeof(own.build) - 1);
  own.checksum = checksumOf(artifact);
  first = own;
  hosts->broadcast(&first, sizeof(first), /*root=*/0);
  SANDWICH_RETURN_IF_ERROR(hosts->failure());
  if (std::memcmp(own.build, first.build, sizeof(own.build)) != 0)
    return makeError("another build of Sandwich than that of host ",
                     hosts->nameOf(0), " runs here");
  if (own.checksum != first.checksum)
    return makeError(artifact.path(),
                     ": is another artifact than that of host ",
                     hosts->nameOf(0), "; copy that one here");
  const auto count = static_cast<uint32_t>(hosts->ranks());
  if (ranks % count != 0)
    return makeError(artifact.path(), ": was compiled for ", ranks,
                     ranks == 1 ? " rank" : " ranks", ", which ", count,
                     " hosts cannot share evenly; start it on ",
                     ranks == 1 ? "one host, or compile it with "
                                  "--tensor-parallel=" +
                                      std::to_string(count)
                                : nameDivisors(ranks) + " hosts");
  return ranks / count;
}

//===----------------------------------------------------------------------===//
// The other ranks
//===----------------------------------------------------------------------===//

/// Loads and serves. Errors are not known to rank 0 yet, unless the group
/// failed.
static Status serve(SharedMemorySegment &segment,
                    SharedMemoryCommunicator &local, const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<RankHeartbeat> heartbeat,
                            RankHeartbeat::start(segment, local.rank()));
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
  SANDWICH_ASSIGN_OR_RETURN(RankSetup setup, getSetup(local, artifact));
  const auto all = static_cast<int32_t>(artifact::ranks(artifact.manifest()));
  std::optional<TwoLevelCommunicator> global;
  if (local.ranks() < all)
    global.emplace(local, /*hosts=*/nullptr, segment.firstRank(), all);
  Communicator &ranks = global ? static_cast<Communicator &>(*global) : local;
  PhaseExecutorOptions options;
  options.kvBlocks = setup.kvBlocks;
  options.weightPlacement = setup.weightPlacement;
  options.plan = std::move(setup.plan);
  options.numaNode = setup.numaNode;
  options.communicator = &ranks;
  std::vector<std::string> warnings;
  options.log = [&](LogLevel level, const std::string &message) {
    if (level == LogLevel::Warning)
      warnings.push_back(message);
  };
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseExecutor> executor,
                            PhaseExecutor::create(artifact, options));
  SANDWICH_RETURN_IF_ERROR(exchangePlacement(ranks, *executor));
  SANDWICH_RETURN_IF_ERROR(exchangeWarnings(ranks, warnings));
  StepInput input;
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<PhaseKind> phase,
                              getStep(ranks, executor->limits(), input));
    if (!phase)
      break;
    SANDWICH_RETURN_IF_ERROR(executor->prepare(*phase, input));
    executor->run(*phase, input);
  }
  SANDWICH_RETURN_IF_ERROR(ranks.failure());
  segment.leave(local.rank());
  return {};
}

Result<bool> sandwich::serveRank(int descriptor, int32_t rank,
                                 const std::string &path) {
  // It could not be told in memory that has another shape.
  if (SharedMemorySegment::isOfOtherBuild(descriptor))
    std::_Exit(otherBuildStatus);
  SANDWICH_ASSIGN_OR_RETURN(std::shared_ptr<SharedMemorySegment> segment,
                            SharedMemorySegment::attach(descriptor));
  try {
    SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<SharedMemoryCommunicator> ranks,
                              SharedMemoryCommunicator::create(segment, rank));
    // Rank 0 tells the user, if this is the first that goes wrong.
    const Status status = serve(*segment, *ranks, path);
    if (!status)
      segment->abort(rank, "failed: " + status.error().message);
    return static_cast<bool>(status);
  } catch (const std::exception &exception) {
    segment->abort(rank, std::string("failed: ") + exception.what());
    return false;
  }
}
