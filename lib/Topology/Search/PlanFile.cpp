//===- PlanFile.cpp - Reading plans back ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/PlanFile.h"

#include "sandwich/Support/Utf8.h"
#include "sandwich/Topology/Trees/Hashing.h"

#include "sandwich/Support/File.h"
#include "sandwich/Topology/Trees/SymmetricPart.h"

#include <algorithm>
#include <cstdio>
#include <set>

using namespace sandwich;

/// Plans of the largest machines have a few hundred kilobytes.
static constexpr size_t maxPlanBytes = size_t{64} << 20;

PlanMachine sandwich::planMachine(const Machine &machine,
                                  const TopoTree &tree) {
  const TopoTree used = tree.fundamental();
  Hasher hasher;
  for (unsigned depth = 0; depth <= used.depth(); ++depth) {
    const TopoLevel &level = used.level(depth);
    hasher.add(level.arity);
    hasher.add(level.features.size());
    for (const TopoFeature &feature : level.features) {
      hasher.add(feature.kind);
      hasher.add(feature.kind == "numa" ? 0 : feature.bytes);
    }
  }
  for (const TopoCpu &cpu : used.leaves()) {
    hasher.add(cpu.cpu);
    hasher.add(cpu.numa);
  }
  const TopoHash hash = hasher.finish();
  char digits[33];
  std::snprintf(digits, sizeof(digits), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return {machine.cpuModel.empty() ? machine.name : machine.cpuModel,
          used.describe(), digits};
}

Result<PlanMachine> sandwich::planMachine(const Machine &machine) {
  SANDWICH_ASSIGN_OR_RETURN(SymmetricPart part,
                            largestSymmetricPart(machine.root));
  SANDWICH_ASSIGN_OR_RETURN(
      TopoTree tree, TopoTree::fromMachine(part.root, TopoLeaves::Cores));
  return planMachine(machine, tree);
}

Json sandwich::toJson(const PlanMachine &machine) {
  return {{"name", machine.name},
          {"description", machine.description},
          {"hash", machine.hash}};
}

/// Refuses a plan that says it was made for another machine.
static Status checkMachine(const Json &json, const Machine &machine) {
  if (!json.is_object() || !json.contains("machine"))
    return {};
  const Json &made = json["machine"];
  for (const char *member : {"name", "description", "hash"})
    if (!made.is_object() || !made.contains(member) ||
        !made[member].is_string())
      return makeError("machine.", member, " is absent or no text");
  SANDWICH_ASSIGN_OR_RETURN(const PlanMachine own, planMachine(machine));
  if (made["hash"] == own.hash)
    return {};
  const auto name = printable(made["name"].get<std::string>());
  const auto description = printable(made["description"].get<std::string>());
  return makeError("the plan is for another machine: ", name, " (", description,
                   "), not ", own.name, " (", own.description, ")",
                   description == own.description
                       ? "; their caches or the indexes of their CPUs differ"
                       : "");
}

static void collectCpus(const MachineNode &node, std::set<unsigned> &cpus) {
  if (node.kind == "cpu" && node.index >= 0)
    cpus.insert(static_cast<unsigned>(node.index));
  for (const MachineNode &child : node.children)
    collectCpus(child, cpus);
}

/// The member `name` of `configuration`, which is at `place`: a list of CPUs
/// for each process.
static Result<std::vector<std::vector<unsigned>>>
readProcesses(const Json &configuration, const std::string &place,
              const char *name, const std::set<unsigned> &cpus) {
  const std::string path = place + "." + name;
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
        return makeError(path, ": this process may use no CPU ", index,
                         "; the plan is for another machine or container");
      if (!used.insert(index).second)
        return makeError(path, ": CPU ", index, " is there twice");
      processes.back().push_back(index);
    }
  }
  return processes;
}

/// The cores of an instance of the first configuration, which `place` names.
static Result<const Json *> findInstance(const Json &best, unsigned instance,
                                         std::string &place) {
  place = "configurations[0]";
  if (!best.is_object() || !best.contains("instances")) {
    if (instance > 0)
      return makeError(place, " has one instance, there is no instance ",
                       instance);
    return &best;
  }
  const Json &instances = best["instances"];
  if (!instances.is_array() || instances.empty())
    return makeError(place, ".instances is no list of instances");
  if (instance >= instances.size())
    return makeError(place, " has instances 0 to ", instances.size() - 1,
                     ", there is no instance ", instance);
  place += ".instances[" + std::to_string(instance) + "]";
  return &instances[instance];
}

/// The cores of an instance of `best`, which are among `cpus`.
static Result<PlanCores> readInstance(const Json &best, unsigned instance,
                                      const std::set<unsigned> &cpus) {
  std::string place;
  SANDWICH_ASSIGN_OR_RETURN(const Json *cores,
                            findInstance(best, instance, place));
  PlanCores plan;
  SANDWICH_ASSIGN_OR_RETURN(
      plan.prefill, readProcesses(*cores, place, "prefill_cores", cpus));
  SANDWICH_ASSIGN_OR_RETURN(plan.decode,
                            readProcesses(*cores, place, "decode_cores", cpus));
  if (plan.prefill.size() != plan.decode.size())
    return makeError(place, " has ", plan.prefill.size(),
                     " processes in prefill and ", plan.decode.size(),
                     " in decode");
  for (size_t i = 0; i < plan.decode.size(); ++i)
    for (unsigned cpu : plan.decode[i])
      if (std::ranges::find(plan.prefill[i], cpu) == plan.prefill[i].end())
        return makeError(place, ".decode_cores: CPU ", cpu,
                         " is none of process ", i, "'s in prefill");
  return plan;
}

static Result<PlanCores> readCores(const Json &json, const Machine &machine,
                                   std::optional<unsigned> instance) {
  SANDWICH_RETURN_IF_ERROR(checkMachine(json, machine));
  if (!json.is_object() || !json.contains("configurations") ||
      !json["configurations"].is_array() || json["configurations"].empty())
    return makeError("configurations is no list with a plan");
  const Json &best = json["configurations"].front();
  std::set<unsigned> cpus;
  collectCpus(machine.root, cpus);
  if (instance)
    return readInstance(best, *instance, cpus);
  const bool several = best.is_object() && best.contains("instances") &&
                       best["instances"].is_array();
  const size_t count = several ? best["instances"].size() : 1;
  PlanCores all;
  for (size_t each = 0; each < std::max<size_t>(count, 1); ++each) {
    SANDWICH_ASSIGN_OR_RETURN(
        PlanCores one, readInstance(best, static_cast<unsigned>(each), cpus));
    for (auto [from, to] : {std::pair(&one.prefill, &all.prefill),
                            std::pair(&one.decode, &all.decode)})
      to->insert(to->end(), from->begin(), from->end());
  }
  return all;
}

Result<PlanCores> sandwich::readPlanCores(const std::string &path,
                                          const Machine &machine,
                                          std::optional<unsigned> instance) {
  SANDWICH_ASSIGN_OR_RETURN(std::string text, readTextFile(path, maxPlanBytes));
  Result<Json> json = parseJson(text);
  if (!json)
    return json.error().inContext(path);
  Result<PlanCores> plan = readCores(*json, machine, instance);
  if (!plan)
    return plan.error().inContext(path);
  return plan;
}
