//===- PhasePlacement.cpp - Teams on the cores of a plan ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/PhasePlacement.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Machine/Indexes.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

using namespace sandwich;

using Cpus = std::vector<unsigned>;

static std::string nameCpus(const Cpus &cpus) {
  return formatCpus({cpus.begin(), cpus.end()});
}

std::optional<PlanCores> sandwich::planOf(const Artifact &artifact) {
  const auto &processes = artifact.manifest().plan();
  if (processes.empty())
    return std::nullopt;
  PlanCores plan;
  for (const proto::Process &process : processes) {
    plan.prefill.emplace_back(process.prefill_cpus().begin(),
                              process.prefill_cpus().end());
    plan.decode.emplace_back(process.decode_cpus().begin(),
                             process.decode_cpus().end());
  }
  return plan;
}

Status sandwich::checkPlan(const PlanCores &plan, const Artifact &artifact,
                           unsigned processes) {
  const std::pair<const proto::Phase &, const std::vector<Cpus> &> phases[] = {
      {artifact.prefill(), plan.prefill}, {artifact.decode(), plan.decode}};
  for (const auto &[phase, planned] : phases) {
    const uint32_t ranks = artifact::ranks(artifact.manifest());
    if (planned.size() != processes)
      return makeError("the plan has ", planned.size(), " processes, and ",
                       artifact.path(), " was compiled for ", ranks,
                       processes == ranks
                           ? "; compile it with this plan"
                           : ", " + std::to_string(processes) +
                                 " of them on this host; give each host a plan "
                                 "of its own processes");
    for (const Cpus &cpus : planned)
      if (cpus.size() != phase.threads())
        return makeError("the plan keeps ", cpus.size(), " cores awake in ",
                         phase.name(), ", and ", artifact.path(),
                         " was compiled for ", phase.threads(),
                         "; compile it with this plan");
  }
  return {};
}

/// The first of the CPUs of the plan's first `processes` processes that they
/// may not use: all of them decide alike.
static std::optional<unsigned> findForbidden(const PlanCores &plan,
                                             unsigned processes,
                                             const CpuBudget &budget) {
  for (const std::vector<Cpus> *phase : {&plan.prefill, &plan.decode})
    for (const Cpus &cpus : std::span(*phase).first(processes))
      for (unsigned cpu : cpus)
        if (std::ranges::find(budget.cpus, cpu) == budget.cpus.end())
          return cpu;
  return std::nullopt;
}

/// A warning of the first thread that is not where it was put, alike in all
/// processes.
static std::optional<std::string>
findMisplaced(const char *phase, PhaseTeam &team, const Cpus &cpus) {
  if (cpus.empty())
    return std::nullopt;
  const std::vector<Cpus> placement = team.readPlacement();
  for (size_t thread = 0; thread < placement.size(); ++thread)
    if (placement[thread] != Cpus{cpus[thread]})
      return "the system does not keep threads on the CPUs they are put on: "
             "thread " +
             std::to_string(thread) + " of " + phase + " runs on " +
             (placement[thread].empty() ? "any CPU"
                                        : nameCpus(placement[thread])) +
             "; threads may disturb each other";
  return std::nullopt;
}

static std::string describe(const char *phase, unsigned threads,
                            const Cpus &cpus) {
  std::string text = std::string(phase) + " on " + std::to_string(threads) +
                     (threads == 1 ? " thread" : " threads");
  if (!cpus.empty())
    text += " (" + nameCpus(cpus) + ")";
  return text;
}

PhaseCpus sandwich::choosePhaseCpus(const Artifact &artifact,
                                    const CpuBudget &budget,
                                    const std::optional<PlanCores> &plan,
                                    unsigned process, unsigned processes) {
  PhaseCpus chosen;
  if (plan) {
    chosen.forbidden = findForbidden(*plan, processes, budget);
    if (!chosen.forbidden) {
      chosen.prefill = plan->prefill[process];
      chosen.decode = plan->decode[process];
      return chosen;
    }
  }
  const unsigned prefill = artifact.prefill().threads();
  const unsigned decode = artifact.decode().threads();
  const unsigned own = std::max(prefill, decode);
  // Of all processes on this host.
  const Cpus cpus = budget.cpusFor(processes * own);
  if (!cpus.empty()) {
    const auto first = cpus.begin() + std::ptrdiff_t{process} * own;
    chosen.prefill.assign(first, first + prefill);
    chosen.decode.assign(first, first + decode);
  }
  return chosen;
}

Result<PhaseTeams>
sandwich::createPhaseTeams(const Artifact &artifact, const CpuBudget &budget,
                           const std::optional<PlanCores> &plan,
                           unsigned process, unsigned processes,
                           const LogCallback &log) {
  PhaseTeamOptions prefill, decode;
  prefill.threads = artifact.prefill().threads();
  decode.threads = artifact.decode().threads();
  // Of all processes on this host.
  const unsigned threads =
      processes * std::max(prefill.threads, decode.threads);
  PhaseCpus cpus = choosePhaseCpus(artifact, budget, plan, process, processes);
  prefill.cpus = std::move(cpus.prefill);
  decode.cpus = std::move(cpus.decode);
  // A plan may have a thread on each hardware thread of a core.
  const bool usesSiblings = plan && !cpus.forbidden &&
                            threads > budget.threads() &&
                            threads <= budget.hardwareThreads();
  const bool oversubscribed = threads > budget.threads() && !usesSiblings;
  prefill.oversubscribed = decode.oversubscribed = oversubscribed;

  const std::string allowance =
      usesSiblings
          ? std::to_string(budget.hardwareThreads()) + ", several on each core"
          : std::to_string(budget.threads()) + " (limited by " +
                budget.limit() + ")";
  if (cpus.forbidden)
    report(log, LogLevel::Warning,
           artifact.path() + ": its plan uses CPU " +
               std::to_string(*cpus.forbidden) +
               ", which this process may not; threads run on other cores");
  if (oversubscribed)
    report(log, LogLevel::Warning,
           artifact.path() + ": was compiled for " + std::to_string(threads) +
               " threads, but this process may use " + allowance +
               "; it runs slower than it could, compile it with --threads=" +
               std::to_string(std::max(budget.threads() / processes, 1U)));
  else
    report(log, LogLevel::Information,
           describe("prefill", prefill.threads, prefill.cpus) + ", " +
               describe("decode", decode.threads, decode.cpus) +
               "; this process may use " + allowance);

  const PhaseTeamOptions options[] = {prefill, decode};
  SANDWICH_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PhaseTeam>> teams,
                            PhaseTeam::createSharing(options));
  std::optional<std::string> misplaced =
      findMisplaced("prefill", *teams[0], prefill.cpus);
  if (!misplaced)
    misplaced = findMisplaced("decode", *teams[1], decode.cpus);
  if (misplaced)
    report(log, LogLevel::Warning, *misplaced);
  return PhaseTeams{std::move(teams[0]), std::move(teams[1]),
                    std::move(prefill.cpus)};
}
