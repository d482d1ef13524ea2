//===- MeasuringTools.cpp - What measurements of a machine share ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuringTools.h"

#include <sched.h>

#include <algorithm>

using namespace sandwich;
using namespace sandwich::measuring;

Status measuring::report(const MeasurementProgress &progress,
                         std::string_view stage, double done) {
  return progress ? progress(stage, std::min(done, 1.0)) : Status();
}

Result<std::unique_ptr<PhaseTeam>>
measuring::createPinnedTeam(const std::vector<unsigned> &cpus) {
  PhaseTeamOptions options;
  options.threads = static_cast<unsigned>(cpus.size());
  options.cpus = cpus;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseTeam> team,
                            PhaseTeam::create(options));
  std::vector<int> places(cpus.size());
  team->run(
      options.threads,
      [](void *context, int32_t thread) {
        (*static_cast<std::vector<int> *>(context))[thread] = ::sched_getcpu();
      },
      &places);
  for (size_t i = 0; i < cpus.size(); ++i)
    if (places[i] != static_cast<int>(cpus[i]))
      return makeError("cannot measure CPU ", cpus[i],
                       ": this process may not use it");
  return team;
}

static void collect(const MachineNode &node, std::string_view kind,
                    std::vector<const MachineNode *> &parts) {
  if (node.kind == kind)
    parts.push_back(&node);
  for (const MachineNode &child : node.children)
    collect(child, kind, parts);
}

std::vector<const MachineNode *> measuring::partsOf(const MachineNode &node,
                                                    std::string_view kind) {
  std::vector<const MachineNode *> parts;
  collect(node, kind, parts);
  return parts;
}

unsigned measuring::cpuAtEnd(const MachineNode &node, bool last) {
  const MachineNode *part = &node;
  while (!part->children.empty())
    part = last ? &part->children.back() : &part->children.front();
  return static_cast<unsigned>(part->index);
}

std::vector<unsigned> measuring::firstCpusOfCores(const MachineNode &part) {
  std::vector<unsigned> cpus;
  for (const MachineNode *core : partsOf(part, "core"))
    cpus.push_back(cpuAtEnd(*core, /*last=*/false));
  return cpus;
}

bool measuring::hasCpu(const MachineNode &part, unsigned cpu) {
  return std::ranges::any_of(partsOf(part, "cpu"), [&](const auto *own) {
    return own->index == static_cast<int64_t>(cpu);
  });
}

unsigned measuring::fastestCpu(const MachineNode &machine) {
  std::vector<const MachineNode *> cores = partsOf(machine, "core");
  return cpuAtEnd(
      **std::ranges::max_element(
          cores, {}, [](const MachineNode *core) { return core->speed; }),
      /*last=*/false);
}
