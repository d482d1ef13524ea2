//===- MemoryBinding.cpp - Memory of one NUMA node ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/MemoryBinding.h"

#include "sandwich/Machine/Hwloc.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

using namespace sandwich;

std::optional<PagePlaces> sandwich::placesOf(std::span<const std::byte> memory,
                                             unsigned node, size_t samples) {
  auto pageBytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t pages = memory.size() / pageBytes;
  size_t count = std::min(pages, samples);
  std::vector<const void *> addresses(count);
  for (size_t i = 0; i < count; ++i)
    addresses[i] = memory.data() + pages / count * i * pageBytes;
  std::vector<int> nodes(count, -ENOENT);
  // Without target nodes, it only tells where pages are.
  if (count > 0 && ::syscall(SYS_move_pages, 0, count, addresses.data(),
                             nullptr, nodes.data(), 0) != 0)
    return std::nullopt;
  PagePlaces places;
  for (int found : nodes) {
    // Pages that nothing was written to yet are nowhere.
    if (found < 0)
      continue;
    ++places.present;
    places.elsewhere += static_cast<unsigned>(found) != node;
  }
  return places;
}

Result<std::optional<std::string>>
sandwich::bindMemory(std::span<const std::span<const std::byte>> areas,
                     unsigned node) {
  SANDWICH_ASSIGN_OR_RETURN(HwlocTopology owner, createTopology());
  hwloc_topology_t topology = owner.get();
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(topology) != 0)
    return makeError("hwloc cannot read this machine's topology");
  hwloc_const_nodeset_t nodes = hwloc_topology_get_topology_nodeset(topology);
  if (!hwloc_bitmap_isset(nodes, node)) {
    std::string have;
    for (int64_t index : indexesOf(nodes))
      have += (have.empty() ? "" : ", ") + std::to_string(index);
    return makeError("there is no NUMA node ", node,
                     " on this machine, whose nodes are ", have);
  }
  if (hwloc_bitmap_weight(nodes) <= 1)
    return std::optional<std::string>();

  HwlocBitmap only(hwloc_bitmap_alloc());
  hwloc_bitmap_only(only.get(), node);
  PagePlaces places;
  for (std::span<const std::byte> area : areas) {
    if (area.empty())
      continue;
    if (hwloc_set_area_membind(
            topology, area.data(), area.size(), only.get(), HWLOC_MEMBIND_BIND,
            HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_MIGRATE) != 0)
      return std::optional(makeError("cannot bind memory to NUMA node ", node,
                                     ": ", std::strerror(errno),
                                     "; it stays where the system puts it")
                               .message);
    std::optional<PagePlaces> some = placesOf(area, node);
    if (!some)
      return std::optional("cannot verify that memory is on NUMA node " +
                           std::to_string(node) + ": " + std::strerror(errno));
    places.present += some->present;
    places.elsewhere += some->elsewhere;
  }
  if (places.elsewhere > 0)
    return std::optional(
        std::to_string(places.elsewhere) + " of " +
        std::to_string(places.present) + " pages are not on NUMA node " +
        std::to_string(node) +
        ", to which they were bound: the node is full, or other processes use "
        "them, too");
  return std::optional<std::string>();
}

std::optional<unsigned> sandwich::numaNodeOf(std::span<const unsigned> cpus) {
  Result<HwlocTopology> owner = createTopology();
  if (!owner || cpus.empty())
    return std::nullopt;
  hwloc_topology_t topology = owner->get();
  // Without an object of its CPUs, a node has those of the whole machine.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP,
                                 HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (hwloc_topology_load(topology) != 0 ||
      hwloc_bitmap_weight(hwloc_topology_get_topology_nodeset(topology)) <= 1)
    return std::nullopt;
  HwlocBitmap wanted(hwloc_bitmap_alloc());
  for (unsigned cpu : cpus)
    hwloc_bitmap_set(wanted.get(), cpu);
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
                                            node)) != nullptr)
    if (hwloc_bitmap_isincluded(wanted.get(), node->cpuset))
      return node->os_index;
  return std::nullopt;
}
