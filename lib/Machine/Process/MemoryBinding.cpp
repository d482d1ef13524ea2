//===- MemoryBinding.cpp - Memory of one NUMA node ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/MemoryBinding.h"

#include "sandwich/Machine/Hwloc.h"
#include "sandwich/Machine/Indexes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace sandwich;

std::optional<PagePlaces> sandwich::placesOf(std::span<const std::byte> memory,
                                             std::span<const unsigned> nodes,
                                             size_t samples) {
  auto pageBytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t pages = memory.size() / pageBytes;
  size_t count = std::min(pages, samples);
  std::vector<const void *> addresses(count);
  for (size_t i = 0; i < count; ++i)
    addresses[i] = memory.data() + pages / count * i * pageBytes;
  std::vector<int> where(count, -ENOENT);
  // Without target nodes, it only tells where pages are.
  if (count > 0 && ::syscall(SYS_move_pages, 0, count, addresses.data(),
                             nullptr, where.data(), 0) != 0)
    return std::nullopt;
  PagePlaces places;
  for (int found : where) {
    // Pages that nothing was written to yet are nowhere.
    if (found < 0)
      continue;
    ++places.present;
    places.elsewhere +=
        std::ranges::find(nodes, static_cast<unsigned>(found)) == nodes.end();
  }
  return places;
}

/// "NUMA node 1" or "NUMA nodes 0,2".
static std::string nameNodes(std::span<const unsigned> nodes) {
  return std::string(nodes.size() == 1 ? "NUMA node " : "NUMA nodes ") +
         formatIndexes({nodes.begin(), nodes.end()});
}

Result<std::optional<std::string>>
sandwich::bindMemory(std::span<const std::span<const std::byte>> areas,
                     std::span<const unsigned> nodes) {
  SANDWICH_ASSIGN_OR_RETURN(HwlocTopology owner, createTopology());
  hwloc_topology_t topology = owner.get();
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(topology) != 0)
    return makeError("hwloc cannot read this machine's topology");
  hwloc_const_nodeset_t all = hwloc_topology_get_topology_nodeset(topology);
  for (unsigned node : nodes)
    if (!hwloc_bitmap_isset(all, node)) {
      std::string have;
      for (int64_t index : indexesOf(all))
        have += (have.empty() ? "" : ", ") + std::to_string(index);
      return makeError("there is no NUMA node ", node,
                       " on this machine, whose nodes are ", have);
    }
  if (hwloc_bitmap_weight(all) <= 1)
    return std::optional<std::string>();

  const std::string title = nameNodes(nodes);
  // Without HWLOC_MEMBIND_STRICT the node is preferred: where it is full, the
  // kernel takes the nearest one that is not.
  HwlocBitmap preferred(hwloc_bitmap_alloc());
  hwloc_bitmap_only(preferred.get(), nodes.front());
  PagePlaces places;
  for (std::span<const std::byte> area : areas) {
    if (area.empty())
      continue;
    if (hwloc_set_area_membind(topology, area.data(), area.size(),
                               preferred.get(), HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_BYNODESET |
                                   HWLOC_MEMBIND_MIGRATE) != 0)
      return std::optional(makeError("cannot bind memory to ", title, ": ",
                                     std::strerror(errno),
                                     "; it stays where the system puts it")
                               .message);
    std::optional<PagePlaces> some = placesOf(area, nodes);
    if (!some)
      return std::optional("cannot verify that memory is on " + title + ": " +
                           std::strerror(errno));
    places.present += some->present;
    places.elsewhere += some->elsewhere;
  }
  if (places.elsewhere > 0)
    return std::optional(std::to_string(places.elsewhere) + " of " +
                         std::to_string(places.present) + " pages are not on " +
                         title + ", to which they were bound: " +
                         (nodes.size() == 1 ? "the node is" : "the nodes are") +
                         " full, or other processes use them, too");
  return std::optional<std::string>();
}

/// This machine's NUMA nodes with their CPUs; null where there are not several.
static HwlocTopology loadNodes() {
  Result<HwlocTopology> owner = createTopology();
  if (!owner)
    return nullptr;
  hwloc_topology_t topology = owner->get();
  // Without an object of its CPUs, a node has those of the whole machine.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP,
                                 HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (hwloc_topology_load(topology) != 0 ||
      hwloc_bitmap_weight(hwloc_topology_get_topology_nodeset(topology)) <= 1)
    return nullptr;
  return *std::move(owner);
}

std::optional<unsigned> sandwich::numaNodeOf(std::span<const unsigned> cpus) {
  if (cpus.empty())
    return std::nullopt;
  const HwlocTopology topology = loadNodes();
  if (!topology)
    return std::nullopt;
  HwlocBitmap wanted(hwloc_bitmap_alloc());
  for (unsigned cpu : cpus)
    hwloc_bitmap_set(wanted.get(), cpu);
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE,
                                            node)) != nullptr)
    if (hwloc_bitmap_isincluded(wanted.get(), node->cpuset))
      return node->os_index;
  return std::nullopt;
}

std::vector<unsigned> sandwich::memoryNodesOf(unsigned node) {
  const HwlocTopology topology = loadNodes();
  hwloc_obj_t own =
      topology ? hwloc_get_numanode_obj_by_os_index(topology.get(), node)
               : nullptr;
  const uint64_t bandwidth = own ? bandwidthOf(topology.get(), own) : 0;
  if (bandwidth == 0 || hwloc_bitmap_iszero(own->cpuset))
    return {node};
  std::vector<std::pair<uint64_t, unsigned>> memories = {{bandwidth, node}};
  hwloc_obj_t other = nullptr;
  while ((other = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE,
                                             other)) != nullptr)
    if (other != own && hwloc_bitmap_isincluded(own->cpuset, other->cpuset))
      if (const uint64_t beside = bandwidthOf(topology.get(), other))
        memories.emplace_back(beside, other->os_index);
  std::ranges::stable_sort(memories, std::ranges::greater(),
                           &std::pair<uint64_t, unsigned>::first);
  std::vector<unsigned> nodes;
  nodes.reserve(memories.size());
  for (auto [ignored, index] : memories)
    nodes.push_back(index);
  return nodes;
}
