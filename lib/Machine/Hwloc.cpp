//===- Hwloc.cpp - What both readers ask hwloc ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Hwloc.h"

#include "sandwich/Support/AnonymousMemory.h"

using namespace sandwich;

Result<HwlocTopology> sandwich::createTopology() {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0)
    return makeError("hwloc cannot start reading a topology");
  HwlocTopology owner(topology);
  // hwloc 2.9 writes to null where it gets no memory. This is far more than
  // machines need, and given back at once.
  constexpr uint64_t enough = uint64_t{16} << 20;
  SANDWICH_RETURN_IF_ERROR(
      AnonymousMemory::allocate(enough, "reading the topology"));
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  return owner;
}

CpuLimits sandwich::readCpuLimits(hwloc_topology_t topology) {
  auto bitmap = [] { return HwlocBitmap(hwloc_bitmap_alloc()); };
  CpuLimits limits{bitmap(), bitmap(), bitmap(), bitmap()};
  hwloc_const_cpuset_t online = hwloc_topology_get_topology_cpuset(topology);
  hwloc_const_cpuset_t cpuset = hwloc_topology_get_allowed_cpuset(topology);
  hwloc_bitmap_andnot(limits.offline.get(),
                      hwloc_topology_get_complete_cpuset(topology), online);
  hwloc_bitmap_andnot(limits.outsideCpuset.get(), online, cpuset);
  hwloc_bitmap_and(limits.usable.get(), online, cpuset);
  HwlocBitmap mask = bitmap();
  // New threads inherit the mask of the thread that starts them.
  if (hwloc_topology_is_thissystem(topology) &&
      hwloc_get_cpubind(topology, mask.get(), HWLOC_CPUBIND_THREAD) == 0) {
    hwloc_bitmap_andnot(limits.outsideMask.get(), limits.usable.get(),
                        mask.get());
    hwloc_bitmap_and(limits.usable.get(), limits.usable.get(), mask.get());
  }
  return limits;
}

/// What the firmware says of `numa`'s memory for the cores beside it, or zero.
/// Attributes answer for sets of CPUs, not for objects.
static uint64_t attributeOf(hwloc_topology_t topology, hwloc_obj_t numa,
                            std::initializer_list<hwloc_memattr_id_e> names) {
  hwloc_location initiator;
  initiator.type = HWLOC_LOCATION_TYPE_CPUSET;
  initiator.location.cpuset = numa->cpuset;
  hwloc_uint64_t value = 0;
  for (hwloc_memattr_id_e name : names)
    if (hwloc_memattr_get_value(topology, name, numa, &initiator, 0, &value) ==
        0)
      return value;
  return 0;
}

uint64_t sandwich::bandwidthOf(hwloc_topology_t topology, hwloc_obj_t numa) {
  // hwloc has MiB/s.
  const uint64_t bandwidth = attributeOf(
      topology, numa,
      {HWLOC_MEMATTR_ID_BANDWIDTH, HWLOC_MEMATTR_ID_READ_BANDWIDTH});
  return bandwidth < UINT64_MAX >> 20 ? bandwidth << 20 : 0;
}

uint64_t sandwich::latencyOf(hwloc_topology_t topology, hwloc_obj_t numa) {
  return attributeOf(topology, numa,
                     {HWLOC_MEMATTR_ID_LATENCY, HWLOC_MEMATTR_ID_READ_LATENCY});
}

std::vector<int64_t> sandwich::indexesOf(hwloc_const_bitmap_t bitmap) {
  std::vector<int64_t> indexes;
  if (hwloc_bitmap_weight(bitmap) < 0)
    return indexes;
  for (int index = hwloc_bitmap_first(bitmap); index >= 0;
       index = hwloc_bitmap_next(bitmap, index))
    indexes.push_back(index);
  return indexes;
}
