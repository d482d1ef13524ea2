//===- PhasePlacement.h - Teams on the cores of a plan ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the cores of a service configuration to the teams of both phases
/// (Sandwich paper, section 3). Cores are a matter of speed: where they cannot
/// be had, the teams run wherever they may, and a warning says so.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_PHASEPLACEMENT_H
#define SANDWICH_RUNTIME_TEAMS_PHASEPLACEMENT_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Machine/PlanCores.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <memory>
#include <optional>
#include <vector>

namespace sandwich {

/// The teams of the phases; they take turns.
struct PhaseTeams {
  std::unique_ptr<PhaseTeam> prefill;
  std::unique_ptr<PhaseTeam> decode;
  /// The CPUs that the prefill team was put on, if it was put anywhere.
  std::vector<unsigned> cpus = {};
};

/// The plan that `artifact` was compiled for, if any.
std::optional<PlanCores> planOf(const Artifact &artifact);

/// Error: `plan` has other than `processes` processes, those that run on this
/// host, or another number of threads than the code of `artifact`.
Status checkPlan(const PlanCores &plan, const Artifact &artifact,
                 unsigned processes);

/// Where the threads of one process are to be; thread i on CPU i of its team's,
/// those beyond where the system puts them.
struct PhaseCpus {
  std::vector<unsigned> prefill, decode;
  /// The first CPU of the plan that this process may not use, so that the plan
  /// is of no use.
  std::optional<unsigned> forbidden = {};
};

/// The CPUs of process `process` of the first `processes` of `plan`, those that
/// run on this host. Without a plan, or with one whose cores this process may
/// not use, threads get cores of `budget` if it has one for each.
PhaseCpus choosePhaseCpus(const Artifact &artifact, const CpuBudget &budget,
                          const std::optional<PlanCores> &plan,
                          unsigned process, unsigned processes);

/// Starts the teams of a process on the CPUs of `choosePhaseCpus`, and reads
/// back where their threads are. What is not as it was asked for is a warning.
/// Errors: the system grants no more threads.
Result<PhaseTeams> createPhaseTeams(const Artifact &artifact,
                                    const CpuBudget &budget,
                                    const std::optional<PlanCores> &plan,
                                    unsigned process, unsigned processes,
                                    const LogCallback &log);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_PHASEPLACEMENT_H
