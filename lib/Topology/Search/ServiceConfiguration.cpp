//===- ServiceConfiguration.cpp - Which cores serve a model ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/ServiceConfiguration.h"

#include "sandwich/Support/TensorParallelism.h"
#include "sandwich/Topology/Trees/Hashing.h"

#include <algorithm>

using namespace sandwich;

bool ServiceConfiguration::operator==(const ServiceConfiguration &other) const {
  return numa == other.numa && prefillCores == other.prefillCores &&
         decodeCores == other.decodeCores;
}

bool ServiceConfiguration::hasOtherMemory() const {
  for (size_t process = 0; process < memoryNodes.size(); ++process)
    for (unsigned node : memoryNodes[process])
      if (!std::binary_search(numa[process].begin(), numa[process].end(), node))
        return true;
  return false;
}

static void add(Hasher &hasher,
                const std::vector<std::vector<unsigned>> &lists) {
  hasher.add(lists.size());
  for (const std::vector<unsigned> &list : lists) {
    hasher.add(list.size());
    for (unsigned index : list)
      hasher.add(index);
  }
}

TopoHash sandwich::hash(const ServiceConfiguration &configuration) {
  Hasher hasher;
  add(hasher, configuration.numa);
  add(hasher, configuration.prefillCores);
  add(hasher, configuration.decodeCores);
  return hasher.finish();
}

TopoHash sandwich::hash(const std::vector<std::vector<unsigned>> &cores) {
  Hasher hasher;
  add(hasher, cores);
  return hasher.finish();
}

std::string sandwich::describe(const ConfigurationShape &shape,
                               std::string_view leaves) {
  std::string text;
  if (shape.instances > 1)
    text = std::to_string(shape.instances) + " instances of ";
  text += std::to_string(shape.processes);
  text += shape.processes == 1 ? " process of " : " processes of ";
  text += std::to_string(shape.prefillCores);
  text.append(" ").append(leaves);
  text += shape.prefillCores == 1 ? "" : "s";
  if (shape.decodeCores < shape.prefillCores)
    text += ", " + std::to_string(shape.decodeCores) + " of them in decode";
  return text;
}

Result<ServiceConfiguration> sandwich::crossSection(const TopoTree &tree,
                                                    unsigned depth) {
  if (depth > tree.depth())
    return makeError("there is no cross-section at depth ", depth,
                     ": the leaves are at depth ", tree.depth());
  for (unsigned d = 1; d <= depth; ++d)
    if (unsigned removed = tree.level(d).removed)
      return makeError(
          "no cross-section at depth ", depth, ": remove(", removed, ",", d,
          ") takes whole processes away, and both phases share them");
  ServiceConfiguration configuration;
  configuration.depth = depth;
  configuration.derivation = tree.derivation();
  auto cpus = [&](const std::vector<unsigned> &leaves) {
    std::vector<unsigned> list;
    list.reserve(leaves.size());
    for (unsigned leaf : leaves)
      list.push_back(tree.leaves()[leaf].cpu);
    return list;
  };
  for (const std::vector<unsigned> &leaves :
       tree.leavesOfNodes(depth, /*awakeOnly=*/false)) {
    configuration.prefillCores.push_back(cpus(leaves));
    std::vector<unsigned> &numa = configuration.numa.emplace_back();
    for (unsigned leaf : leaves)
      numa.push_back(tree.leaves()[leaf].numa);
    std::sort(numa.begin(), numa.end());
    numa.erase(std::unique(numa.begin(), numa.end()), numa.end());
  }
  for (const std::vector<unsigned> &leaves :
       tree.leavesOfNodes(depth, /*awakeOnly=*/true))
    configuration.decodeCores.push_back(cpus(leaves));
  return configuration;
}

std::optional<std::string> OperatorLimits::refuse(unsigned processes) const {
  TensorParallelSizes sizes{queryHeads, keyValueHeads, intermediateSize,
                            vocabulary};
  if (auto size = sizes.indivisible(processes))
    return std::to_string(processes) + " processes do not divide " + *size;
  return std::nullopt;
}

/// Where the processes of an instance are.
static Json placesOf(const ServiceConfiguration &configuration) {
  Json first = Json::array();
  bool several = false;
  for (const std::vector<unsigned> &nodes : configuration.numa) {
    first.push_back(nodes.front());
    several |= nodes.size() > 1;
  }
  Json json = {{"processes", configuration.processes()},
               {"numa", std::move(first)}};
  if (several)
    json["numa_nodes"] = configuration.numa;
  if (configuration.hasOtherMemory())
    json["memory_nodes"] = configuration.memoryNodes;
  json["prefill_cores"] = configuration.prefillCores;
  json["decode_cores"] = configuration.decodeCores;
  return json;
}

Json sandwich::toJson(const ServiceConfiguration &configuration) {
  Json json = placesOf(configuration);
  for (const ServiceConfiguration &instance : configuration.instances)
    json["instances"].push_back(placesOf(instance));
  json["predicted_ms"] = configuration.predictedMs;
  json["derivation"] = configuration.derivation;
  return json;
}
