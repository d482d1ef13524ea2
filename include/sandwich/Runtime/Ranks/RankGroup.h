//===- RankGroup.h - The processes of one model -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An artifact for several ranks runs as several processes on one machine. The
/// process that loads it is rank 0; it starts the others, tells them what step
/// to run, and watches them: a rank that ends or no longer answers ends the
/// group, and so does the end of rank 0, however it comes.
///
/// On several hosts one process of each loads the artifact and is the first
/// rank of that host. Rank 0 tells all what to run.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_RANKS_RANKGROUP_H
#define SANDWICH_RUNTIME_RANKS_RANKGROUP_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Communication/TwoLevelCommunicator.h"
#include "sandwich/Runtime/Teams/PhaseExecutor.h"
#include "sandwich/Support/Result.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sandwich {

class RankWatch;

/// What rank 0 knows and the others need to load their part.
struct RankSetup {
  uint64_t kvBlocks = 0;
  WeightPlacement weightPlacement = WeightPlacement::Mapped;
  std::optional<PlanCores> plan;
  /// As in `PhaseExecutorOptions`.
  std::optional<unsigned> numaNode = {};
};

struct RankGroupOptions {
  /// The program that runs the other ranks, as `program rank --descriptor=N
  /// --rank=R ARTIFACT`; empty for the `sandwich-run` that lies beside this
  /// library, in the `bin` beside its folder, or beside this program. Of the
  /// files that are open here it gets the standard streams and descriptor N.
  std::string program;
  /// Between the hosts that share the ranks; null for one host.
  std::shared_ptr<HostCommunicator> hosts = {};
  /// Called once, by a thread of the group's, if it is the first rank of this
  /// host that hangs in a step: the other ranks were ended then, and other
  /// hosts are about to be told, but the call that runs the step does not
  /// return. The error names the rank and says what it does.
  std::function<void(const Error &)> onOwnHang = {};
  /// How the ranks of this host sum.
  Collectives collectives = Collectives::RankShifted;
  /// Seconds after which a rank of this host that does not answer any more, as
  /// one that was stopped, fails; and about those after which one does whose
  /// threads work or sleep where the others wait for it. From
  /// `leastHangSeconds` to `mostHangSeconds`: as ranks beat ten times in a
  /// second, fewer say nothing, and a busy machine may need more.
  double hangSeconds = 1;
  static constexpr double leastHangSeconds = 0.3;
  static constexpr double mostHangSeconds = 86400;
};

/// How many of the artifact's ranks each host runs. Errors: they cannot be
/// shared evenly; this host has another artifact or build of Sandwich than host
/// 0, which learns it from this one's failure. To be called on all hosts.
Result<uint32_t> ranksOnHost(const Artifact &artifact, HostCommunicator *hosts);

/// The side of rank 0, or of the first rank of another host. One thread at a
/// time.
class RankGroup {
public:
  /// Bytes of memory in which the `ranks` ranks of `artifact` that are on this
  /// host exchange data with each other, and with those on other `hosts`, which
  /// may be null.
  static Result<uint64_t> exchangeBytes(const Artifact &artifact,
                                        uint32_t ranks,
                                        const HostCommunicator *hosts);

  /// Starts the other ranks of `artifact`, which begin to load. Errors: no
  /// program to run them; memory or processes that the system does not grant;
  /// InvalidArgument for `hangSeconds` out of range.
  static Result<std::unique_ptr<RankGroup>>
  start(const Artifact &artifact, const RankSetup &setup,
        const RankGroupOptions &options = {});

  RankGroup(const RankGroup &) = delete;
  RankGroup &operator=(const RankGroup &) = delete;
  /// Ends the other ranks of this host, and of all of them if this is rank 0.
  ~RankGroup();

  Communicator &communicator() { return *ranks; }
  /// Whether this is rank 0.
  bool leads() const { return ranks->rank() == 0; }
  /// Process identifiers that the other ranks of this host were started with.
  std::vector<int> processes() const;

  /// Returns once every rank has loaded: where their threads are. `own` is rank
  /// 0's. Warnings of the others go to `log`, unless they are among
  /// `ownWarnings`. Error: the rank that could not load, and why.
  Result<std::vector<RankPlacement>>
  waitUntilLoaded(PhaseExecutor &own,
                  const std::vector<std::string> &ownWarnings,
                  const LogCallback &log);
  /// Tells the others what rank 0 runs next.
  void announce(PhaseKind phase, const StepInput &input);
  /// What rank 0 announced, on another host; nothing at the end, or where the
  /// group has failed. Error: it is larger than `limits`.
  Result<std::optional<PhaseKind>> receive(const PhaseLimits &limits,
                                           StepInput &input);
  /// Success, or which rank failed, and how. A fork of the process that started
  /// the group has none.
  Status failure() const;

private:
  RankGroup();

  const int process;
  bool loaded = false;
  std::shared_ptr<HostCommunicator> hosts;
  std::unique_ptr<SharedMemoryCommunicator> local;
  /// `local` itself unless there are other hosts.
  std::unique_ptr<TwoLevelCommunicator> global;
  Communicator *ranks = nullptr;
  std::unique_ptr<RankWatch> watch;
};

/// Runs rank `rank`, not 0, of this host and of the group behind `descriptor`
/// until rank 0 ends it. Returns false if it failed before, which rank 0 knows.
/// Error: there is no such group, or no such rank to be taken. What another
/// build of Sandwich calls ends this process with `otherBuildStatus`, which
/// tells rank 0.
inline constexpr int otherBuildStatus = 125;
Result<bool> serveRank(int descriptor, int32_t rank,
                       const std::string &artifact);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_RANKS_RANKGROUP_H
