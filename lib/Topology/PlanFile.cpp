//===- PlanFile.cpp - Reading plans back ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/PlanFile.h"

#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"

#include <algorithm>
#include <set>

using namespace sandwich;

/// Plans of the largest machines have a few hundred kilobytes.
static constexpr size_t maxPlanBytes = size_t{64} << 20;

static void collectCpus(const MachineNode &node, std::set<unsigned> &cpus) {
  if (node.kind == "cpu" && node.index >= 0)
    cpus.insert(static_cast<unsigned>(node.index));
  for (const MachineNode &child : node.children)
    collectCpus(child, cpus);
}

/// The member `name` of `configuration`: a list of CPUs for each process.
static Result<std::vector<std::vector<unsigned>>>
readProcesses(const Json &configuration, const char *name,
              const std::set<unsigned> &cpus) {
  const std::string path = std::string("configurations[0].") + name;
  if (!configuration.is_object() || !configuration.contains(name) ||
      !configuration[name].is_array() || configuration[name].empty())
    return makeError(path, " is no list of processes");
  std::vector<std::vector<unsigned>> processes;
  std::set<unsigned> used;
  for (const Json &list : configuration[name]) {
    if (!list.is_array() || list.empty())
      return makeError(path, " has a process without a list of cores");
    processes.emplace_back();
    for (const Json &cpu : list) {
      if (!cpu.is_number_unsigned() || cpu > UINT32_MAX)
        return makeError(path, " has a core that is no index");
      const auto index = cpu.get<unsigned>();
      if (!cpus.contains(index))
        return makeError(path, ": this machine has no CPU ", index,
                         "; the plan is for another one");
      if (!used.insert(index).second)
        return makeError(path, ": CPU ", index, " is there twice");
      processes.back().push_back(index);
    }
  }
  return processes;
}

static Result<PlanCores> readCores(const Json &json,
                                   const MachineNode &machine) {
  if (!json.is_object() || !json.contains("configurations") ||
      !json["configurations"].is_array() || json["configurations"].empty())
    return makeError("configurations is no list with a plan");
  const Json &best = json["configurations"].front();
  std::set<unsigned> cpus;
  collectCpus(machine, cpus);
  PlanCores plan;
  SANDWICH_ASSIGN_OR_RETURN(plan.prefill,
                            readProcesses(best, "prefill_cores", cpus));
  SANDWICH_ASSIGN_OR_RETURN(plan.decode,
                            readProcesses(best, "decode_cores", cpus));
  if (plan.prefill.size() != plan.decode.size())
    return makeError("configurations[0] has ", plan.prefill.size(),
                     " processes in prefill and ", plan.decode.size(),
                     " in decode");
  for (size_t i = 0; i < plan.decode.size(); ++i)
    for (unsigned cpu : plan.decode[i])
      if (std::ranges::find(plan.prefill[i], cpu) == plan.prefill[i].end())
        return makeError("configurations[0].decode_cores: CPU ", cpu,
                         " is none of process ", i, "'s in prefill");
  return plan;
}

Result<PlanCores> sandwich::readPlanCores(const std::string &path,
                                          const MachineNode &machine) {
  SANDWICH_ASSIGN_OR_RETURN(std::string text, readTextFile(path, maxPlanBytes));
  Result<Json> json = parseJson(text);
  if (!json)
    return json.error().inContext(path);
  Result<PlanCores> plan = readCores(*json, machine);
  if (!plan)
    return plan.error().inContext(path);
  return plan;
}
