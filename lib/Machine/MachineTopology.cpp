//===- MachineTopology.cpp - Machines as trees ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/MachineTopology.h"

#include "Descriptions.h"
#include "MachineReader.h"
#include "sandwich/Machine/Hwloc.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/MemoryFile.h"
#include "sandwich/Support/Utf8.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <unistd.h>

using namespace sandwich;

/// libxml2 refuses larger texts in memory, while it reads files of any size.
static constexpr size_t maxXmlInMemory = 10'000'000;

/// Bytes of memory that the kernel has, or zero.
static uint64_t readMemTotal() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  return file >> name >> kibibytes && name == "MemTotal:" ? kibibytes << 10 : 0;
}

static void forEachNuma(MachineNode &node,
                        const std::function<void(MachineNode &)> &visit) {
  if (node.kind == "numa")
    visit(node);
  for (MachineNode &child : node.children)
    forEachNuma(child, visit);
}

/// Those in the tree and those beside it.
static std::vector<MachineNode *> memoriesOf(Machine &machine) {
  std::vector<MachineNode *> nodes;
  auto collect = [&](MachineNode &node) { nodes.push_back(&node); };
  forEachNuma(machine.root, collect);
  for (MachineNode &memory : machine.memories)
    forEachNuma(memory, collect);
  return nodes;
}

void sandwich::correctMemorySizes(Machine &machine, uint64_t kernelBytes) {
  const std::vector<MachineNode *> nodes = memoriesOf(machine);
  auto total = static_cast<double>(kernelBytes);
  double sum = 0;
  for (const MachineNode *node : nodes)
    sum += static_cast<double>(node->bytes);
  if (nodes.empty() || kernelBytes == 0 ||
      std::abs(sum - total) <= 0.05 * total)
    return;
  for (MachineNode *node : nodes)
    node->bytes = static_cast<uint64_t>(
        sum > 0 ? total * (static_cast<double>(node->bytes) / sum)
                : total / static_cast<double>(nodes.size()));
  machine.leftOut.push_back("memory: hwloc counts " +
                            formatBytes(static_cast<uint64_t>(sum)) +
                            ", the kernel has " + formatBytes(kernelBytes) +
                            "; the NUMA nodes' sizes are scaled to that");
}

/// Where a topology comes from: sets it on what will be loaded.
using SetSource = std::function<bool(hwloc_topology_t)>;

/// A loaded topology, or null where hwloc refuses the source.
static HwlocTopology load(const SetSource &setSource) {
  Result<HwlocTopology> created = createTopology();
  if (!created)
    return nullptr;
  hwloc_topology_t topology = created->get();
  hwloc_topology_set_icache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_MISC,
                                 HWLOC_TYPE_FILTER_KEEP_NONE);
  if (!setSource(topology) || hwloc_topology_load(topology) != 0)
    return nullptr;
  return *std::move(created);
}

/// Reads a description that anybody may have written.
static Result<Machine>
readDescription(const std::string &name, const SetSource &setSource,
                const char *refusal,
                const std::vector<bool> &madeUpGroups = {}) {
  auto read = [&]() -> Result<Machine> {
    HwlocTopology topology = load(setSource);
    if (!topology)
      return makeError(refusal);
    Machine machine;
    machine.name = name;
    SANDWICH_RETURN_IF_ERROR(
        convertTopology(topology.get(), machine, madeUpGroups));
    return machine;
  };
  // What hwloc refuses is not loaded here again: it loses memory where it does.
  auto loads = [&] {
    HwlocTopology topology = load(setSource);
    Machine machine;
    return topology &&
           (convertTopology(topology.get(), machine, madeUpGroups) || true);
  };
  Result<LoadOutcome> outcome = tryToLoad(loads);
  if (!outcome)
    return outcome.error().inContext(name);
  switch (*outcome) {
  case LoadOutcome::Loaded:
    break;
  case LoadOutcome::Refused:
    return makeError(name, ": ", refusal);
  case LoadOutcome::TooSlow:
    return makeError(name, ": takes hwloc more than a minute to load: parts "
                           "with fewer in each are faster");
  }
  Result<Machine> machine = read();
  if (!machine)
    return machine.error().inContext(name);
  return machine;
}

static constexpr char xmlRefusal[] =
    "is XML, but not a topology that hwloc can read: it contradicts itself, "
    "or a newer hwloc wrote it";

/// Reads `xml` from the file in memory `file`, which is empty.
static Result<Machine> readXmlFromFile(const std::string &name,
                                       const std::string &xml, int file) {
  if (Status status = fillAndSeal(file, xml); !status)
    return status.error().inContext(name);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  auto setSource = [&](hwloc_topology_t topology) {
    return hwloc_topology_set_xml(topology, path.c_str()) == 0;
  };
  return readDescription(name, setSource, xmlRefusal);
}

Result<Machine> sandwich::readMachineXml(const std::string &name,
                                         const std::string &xml) {
  std::string shown = printable(name);
  if (xml.size() > maxTopologyBytes)
    return makeError(shown, ": is larger than ", formatBytes(maxTopologyBytes));
  if (Status status = checkTopologyXml(xml); !status)
    return status.error().inContext(shown);
  if (xml.size() > maxXmlInMemory) {
    const int file = createMemoryFile("sandwich-topology");
    if (file < 0)
      return systemError(shown, "copy");
    Result<Machine> machine = readXmlFromFile(shown, xml, file);
    ::close(file);
    return machine;
  }
  auto setSource = [&](hwloc_topology_t topology) {
    // The size counts the zero behind the text.
    return hwloc_topology_set_xmlbuffer(topology, xml.c_str(),
                                        static_cast<int>(xml.size() + 1)) == 0;
  };
  return readDescription(shown, setSource, xmlRefusal);
}

static Result<Machine> readSynthetic(const std::string &description) {
  std::string shown = syntheticPrefix + printable(description);
  if (Status status = checkSyntheticDescription(description); !status)
    return status.error().inContext(shown);
  const LoadableDescription loadable = divideSiblings(description);
  auto setSource = [&](hwloc_topology_t topology) {
    return hwloc_topology_set_synthetic(topology, loadable.text.c_str()) == 0;
  };
  Result<Machine> machine = readDescription(
      shown, setSource,
      "is not a synthetic topology that hwloc knows; one reads "
      "'package:2 [numa] l3:1 core:4 pu:2', largest parts first and pu last",
      loadable.madeUpGroups);
  // hwloc makes up a gibibyte for each memory.
  if (machine && description.find("memory=") == std::string::npos)
    for (MachineNode *memory : memoriesOf(*machine))
      memory->bytes = 0;
  return machine;
}

Result<Machine> sandwich::readMachineTopology(const std::string &source) {
  if (source.starts_with(syntheticPrefix))
    return readSynthetic(source.substr(sizeof(syntheticPrefix) - 1));
  if (source != "host") {
    // Not by its name: hwloc would wait for a pipe, and read on without end.
    SANDWICH_ASSIGN_OR_RETURN(std::string xml,
                              readTextFile(source, maxTopologyBytes));
    return readMachineXml(source, xml);
  }
  HwlocTopology topology = load([](hwloc_topology_t) { return true; });
  if (!topology)
    return makeError("hwloc cannot read this machine's topology");
  Machine machine;
  machine.name = "this machine";
  if (Status status = convertTopology(topology.get(), machine); !status)
    return status.error().inContext(machine.name);
  if (hwloc_topology_is_thissystem(topology.get()))
    correctMemorySizes(machine, readMemTotal());
  return machine;
}

uint64_t sandwich::countParts(const MachineNode &node, std::string_view kind) {
  uint64_t total = node.kind == kind;
  for (const MachineNode &child : node.children)
    total += countParts(child, kind);
  return total;
}

Json sandwich::toJson(const MachineNode &node) {
  Json json = {{"kind", node.kind}};
  if (node.index >= 0)
    json["index"] = node.index;
  if (node.bytes > 0)
    json["bytes"] = node.bytes;
  if (node.bandwidth > 0)
    json["bandwidth"] = node.bandwidth;
  if (node.latency > 0)
    json["latency"] = node.latency;
  if (node.speed < 1)
    json["speed"] = node.speed;
  if (!node.besideNodes.empty())
    json["beside"] = node.besideNodes;
  if (!node.children.empty()) {
    json["children"] = Json::array();
    for (const MachineNode &child : node.children)
      json["children"].push_back(toJson(child));
  }
  return json;
}

Json sandwich::toJson(const Machine &machine) {
  Json json = {{"name", machine.name}};
  if (!machine.cpuModel.empty())
    json["cpu_model"] = machine.cpuModel;
  json["topology"] = toJson(machine.root);
  if (!machine.memories.empty()) {
    json["memories"] = Json::array();
    for (const MachineNode &memory : machine.memories)
      json["memories"].push_back(toJson(memory));
  }
  if (!machine.distances.nodes.empty())
    json["numa_distances"] = {{"nodes", machine.distances.nodes},
                              {"values", machine.distances.values}};
  json["left_out"] = machine.leftOut;
  return json;
}
