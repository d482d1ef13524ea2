//===- MachineReader.cpp - hwloc's objects as a machine -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineReader.h"

#include "sandwich/Machine/Hwloc.h"
#include "sandwich/Machine/Indexes.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

using namespace sandwich;

static std::string kindOf(hwloc_obj_t object) {
  switch (object->type) {
  case HWLOC_OBJ_NUMANODE:
    return "numa";
  case HWLOC_OBJ_PU:
    return "cpu";
  case HWLOC_OBJ_L1CACHE:
    return "l1d";
  default:
    break;
  }
  std::string kind = hwloc_obj_type_string(object->type);
  if (hwloc_obj_type_is_cache(object->type))
    kind = kind.substr(0, kind.find("Cache"));
  for (char &c : kind)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kind;
}

/// What `infos` say under `name`, or nothing.
static std::string textIn(const hwloc_info_s *infos, unsigned count,
                          std::string_view name) {
  for (unsigned i = 0; i < count; ++i)
    if (name == infos[i].name)
      return infos[i].value;
  return "";
}

static double numberIn(const hwloc_info_s *infos, unsigned count,
                       std::string_view name) {
  double value = std::strtod(textIn(infos, count, name).c_str(), nullptr);
  return value > 0 && value < 1e9 ? value : 0;
}

/// [kind] Speeds relative to the fastest kind's: by the kernel's capacities
/// where it has measured them, else by the highest frequencies, of which
/// Intel's efficiency cores count half: their vector units are half as wide.
/// Without either hwloc's order counts, slower kinds as half. Kinds within a
/// tenth are alike: cores of one kind differ by as much in how far they may be
/// clocked.
static std::vector<double> readSpeeds(hwloc_topology_t topology) {
  int count = std::max(0, hwloc_cpukinds_get_nr(topology, 0));
  std::vector<double> speeds(static_cast<size_t>(count), 0);
  std::vector<double> capacities = speeds;
  std::vector<double> frequencies = speeds;
  for (size_t kind = 0; kind < speeds.size(); ++kind) {
    unsigned infoCount = 0;
    hwloc_info_s *infos = nullptr;
    int order = -1;
    if (hwloc_cpukinds_get_info(topology, static_cast<unsigned>(kind), nullptr,
                                &order, &infoCount, &infos, 0) != 0)
      continue;
    capacities[kind] = numberIn(infos, infoCount, "LinuxCapacity");
    frequencies[kind] = numberIn(infos, infoCount, "FrequencyMaxMHz");
    if (textIn(infos, infoCount, "CoreType") == "IntelAtom")
      frequencies[kind] /= 2;
    speeds[kind] = order >= 0 && order + 1 < count ? 0.5 : 1;
  }
  for (const std::vector<double> *measured : {&capacities, &frequencies})
    if (!measured->empty() &&
        *std::min_element(measured->begin(), measured->end()) > 0) {
      speeds = *measured;
      break;
    }
  double fastest =
      speeds.empty() ? 1 : *std::max_element(speeds.begin(), speeds.end());
  for (double &speed : speeds)
    speed = speed < 0.9 * fastest ? speed / fastest : 1;
  return speeds;
}

namespace {

/// Turns hwloc's objects into a machine.
class Reader {
public:
  Reader(hwloc_topology_t topology, Machine &machine,
         const std::vector<bool> &madeUpGroups)
      : topology(topology), machine(machine), madeUpGroups(madeUpGroups),
        limits(readCpuLimits(topology)), speeds(readSpeeds(topology)) {}

  Status read();

private:
  /// All return nothing where no CPU of `object` may be used.
  std::optional<MachineNode> convert(hwloc_obj_t object, bool inCore);
  std::optional<MachineNode> convertPart(hwloc_obj_t object, bool inCore);
  std::optional<MachineNode> convertCpu(hwloc_obj_t object, bool inCore);
  void addChildren(hwloc_obj_t object, bool inCore, MachineNode &node);
  void addMemories(hwloc_obj_t object, std::optional<MachineNode> &node);
  MachineNode convertMemory(hwloc_obj_t numa);
  MachineNode makeCore(int64_t index, int cpu);
  void leaveOut(hwloc_const_bitmap_t cpus, const std::string &reason);
  void readDistances();

  hwloc_topology_t topology;
  Machine &machine;
  const std::vector<bool> &madeUpGroups;
  CpuLimits limits;
  std::vector<double> speeds;
  /// CPUs in the tree. A file may name one twice.
  std::set<unsigned> seen;
  /// Cores met so far, also those without a CPU that may be used.
  uint64_t cores = 0;
};

} // namespace

/// Adds the indexes of the NUMA nodes in `node` that hold no others.
static bool collectMemories(const MachineNode &node,
                            std::vector<unsigned> &indexes) {
  bool holds = false;
  for (const MachineNode &child : node.children)
    holds |= collectMemories(child, indexes);
  if (!holds && node.kind == "numa" && node.index >= 0)
    indexes.push_back(static_cast<unsigned>(node.index));
  return holds || node.kind == "numa";
}

static std::string nameMemories(const std::vector<unsigned> &indexes) {
  return "numa " + formatIndexes({indexes.begin(), indexes.end()});
}

MachineNode Reader::makeCore(int64_t index, int cpu) {
  MachineNode core;
  core.kind = "core";
  core.index = index;
  if (cpu < 0 || speeds.empty())
    return core;
  HwlocBitmap cpus(hwloc_bitmap_alloc());
  hwloc_bitmap_only(cpus.get(), static_cast<unsigned>(cpu));
  int kind = hwloc_cpukinds_get_by_cpuset(topology, cpus.get(), 0);
  if (kind >= 0 && static_cast<size_t>(kind) < speeds.size())
    core.speed = speeds[static_cast<size_t>(kind)];
  return core;
}

MachineNode Reader::convertMemory(hwloc_obj_t numa) {
  MachineNode node;
  node.kind = "numa";
  node.index = numa->os_index;
  node.bytes = numa->attr->numanode.local_memory;
  node.bandwidth = bandwidthOf(topology, numa);
  node.latency = latencyOf(topology, numa);
  return node;
}

/// hwloc hangs memory beside the cores it serves; in the tree the nearest one
/// holds them. Linux gives memory with CPUs the first indexes.
void Reader::addMemories(hwloc_obj_t object, std::optional<MachineNode> &node) {
  std::vector<hwloc_obj_t> memories;
  for (hwloc_obj_t memory = object->memory_first_child; memory;
       memory = memory->next_sibling) {
    hwloc_obj_t numa = memory;
    while (numa && numa->type != HWLOC_OBJ_NUMANODE)
      numa = numa->memory_first_child;
    if (numa)
      memories.push_back(numa);
  }
  std::stable_sort(memories.begin(), memories.end(),
                   [](hwloc_obj_t left, hwloc_obj_t right) {
                     return left->os_index < right->os_index;
                   });
  for (hwloc_obj_t numa : memories) {
    MachineNode memory = convertMemory(numa);
    std::string title = "numa " + std::to_string(memory.index);
    if (memory.bytes > 0)
      title += " (" + formatBytes(memory.bytes) + ")";
    title += ": ";
    if (hwloc_bitmap_iszero(numa->cpuset)) {
      machine.leftOut.push_back(title + "memory without cores of its own");
    } else if (!hwloc_bitmap_intersects(numa->cpuset, limits.usable.get())) {
      machine.leftOut.push_back(title + "none of its CPUs may be used");
    } else if (node && countParts(*node, "numa") == 0) {
      // A memory that only one cache or core has is around that.
      if (hwloc_obj_type_is_cache(object->type) ||
          object->type == HWLOC_OBJ_CORE || object->type == HWLOC_OBJ_PU) {
        memory.children.push_back(*std::move(node));
        node = std::move(memory);
      } else {
        memory.children = std::exchange(node->children, {});
        node->children.push_back(std::move(memory));
      }
      continue;
    } else {
      if (node)
        collectMemories(*node, memory.besideNodes);
      machine.leftOut.push_back(
          title + "a second memory" +
          (memory.besideNodes.empty()
               ? ""
               : ", of the cores of " + nameMemories(memory.besideNodes)));
    }
    machine.memories.push_back(std::move(memory));
  }
}

std::optional<MachineNode> Reader::convertCpu(hwloc_obj_t object, bool inCore) {
  int cpu = static_cast<int>(object->os_index);
  if (cpu < 0 || !hwloc_bitmap_isset(limits.usable.get(), object->os_index) ||
      !seen.insert(object->os_index).second)
    return std::nullopt;
  MachineNode node;
  node.kind = "cpu";
  node.index = object->os_index;
  if (inCore)
    return node;
  // Some virtual machines describe no cores: every CPU counts as one.
  MachineNode core = makeCore(node.index, cpu);
  core.children.push_back(std::move(node));
  return core;
}

std::optional<MachineNode> Reader::convert(hwloc_obj_t object, bool inCore) {
  const uint64_t first = cores;
  std::optional<MachineNode> node = convertPart(object, inCore);
  // A part whose memory or only child stands for it has the same cores.
  for (MachineNode *part = node ? &*node : nullptr;
       part && part->coreCount == 0 && part->kind != "cpu";
       part = part->children.empty() ? nullptr : &part->children.front()) {
    part->firstCore = first;
    part->coreCount = cores - first;
  }
  return node;
}

/// Adds what is in `object` to `node`: made-up groups with their children.
void Reader::addChildren(hwloc_obj_t object, bool inCore, MachineNode &node) {
  for (unsigned i = 0; i < object->arity; ++i) {
    hwloc_obj_t child = object->children[i];
    // hwloc numbers the levels of groups from the innermost.
    if (child->type == HWLOC_OBJ_GROUP &&
        child->attr->group.subkind < madeUpGroups.size() &&
        madeUpGroups[child->attr->group.subkind])
      addChildren(child, inCore, node);
    else if (std::optional<MachineNode> converted = convert(child, inCore))
      node.children.push_back(*std::move(converted));
  }
}

std::optional<MachineNode> Reader::convertPart(hwloc_obj_t object,
                                               bool inCore) {
  std::optional<MachineNode> node;
  if (object->type == HWLOC_OBJ_CORE ||
      (object->type == HWLOC_OBJ_PU && !inCore))
    ++cores;
  if (object->type == HWLOC_OBJ_PU) {
    node = convertCpu(object, inCore);
    addMemories(object, node);
    return node;
  }
  if (object->type == HWLOC_OBJ_CORE) {
    node = makeCore(object->os_index, hwloc_bitmap_first(object->cpuset));
  } else {
    node.emplace();
    node->kind = kindOf(object);
    if (object->os_index != HWLOC_UNKNOWN_INDEX &&
        object->type != HWLOC_OBJ_MACHINE &&
        !hwloc_obj_type_is_cache(object->type))
      node->index = object->os_index;
  }
  if (hwloc_obj_type_is_cache(object->type))
    node->bytes = object->attr->cache.size;
  inCore |= object->type == HWLOC_OBJ_CORE;
  addChildren(object, inCore, *node);
  // hwloc keeps what a restriction has emptied.
  if (node->children.empty()) {
    if (object->type == HWLOC_OBJ_PACKAGE)
      machine.leftOut.push_back("package " + std::to_string(node->index) +
                                ": none of its CPUs may be used");
    node.reset();
  }
  addMemories(object, node);
  // hwloc makes a group where no other part has just a memory's cores.
  if (node && node->kind == "group" && node->children.size() == 1 &&
      node->children[0].kind == "numa")
    return MachineNode(std::move(node->children[0]));
  return node;
}

void Reader::leaveOut(hwloc_const_bitmap_t cpus, const std::string &reason) {
  std::vector<int64_t> indexes = indexesOf(cpus);
  if (!indexes.empty())
    machine.leftOut.push_back(formatCpus(indexes) + ": " + reason);
}

void Reader::readDistances() {
  hwloc_distances_s *found = nullptr;
  unsigned count = 1;
  if (hwloc_distances_get_by_depth(topology, HWLOC_TYPE_DEPTH_NUMANODE, &count,
                                   &found, HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                   0) != 0 ||
      count == 0 || !found)
    return;
  for (unsigned from = 0; from < found->nbobjs; ++from) {
    machine.distances.nodes.push_back(found->objs[from]->os_index);
    machine.distances.values.emplace_back(
        found->values + size_t{from} * found->nbobjs,
        found->values + size_t{from + 1} * found->nbobjs);
  }
  hwloc_distances_release(topology, found);
}

Status Reader::read() {
  int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  if (count <= 0)
    return makeError("describes no CPUs");
  if (static_cast<uint64_t>(count) > maxTopologyCpus)
    return makeError("has more than ", maxTopologyCpus, " CPUs");
  leaveOut(limits.offline.get(), "offline");
  leaveOut(limits.outsideCpuset.get(), "not in the cgroup's cpuset");
  leaveOut(limits.outsideMask.get(), "not in the CPU affinity mask");
  std::optional<MachineNode> root =
      convert(hwloc_get_root_obj(topology), /*inCore=*/false);
  if (!root)
    return makeError("none of its ", count,
                     " CPUs may be used: the cpuset leaves none");
  machine.root = *std::move(root);
  if (hwloc_obj_t package =
          hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0))
    if (const char *model = hwloc_obj_get_info_by_name(package, "CPUModel"))
      machine.cpuModel = printable(model);
  readDistances();
  return {};
}

Status sandwich::convertTopology(hwloc_topology_t topology, Machine &machine,
                                 const std::vector<bool> &madeUpGroups) {
  return Reader(topology, machine, madeUpGroups).read();
}
