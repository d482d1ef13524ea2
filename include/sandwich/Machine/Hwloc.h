//===- Hwloc.h - What both readers ask hwloc --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_HWLOC_H
#define SANDWICH_MACHINE_HWLOC_H

#include "sandwich/Support/Result.h"

#include <hwloc.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace sandwich {

struct HwlocDestroy {
  void operator()(hwloc_topology_t topology) const {
    hwloc_topology_destroy(topology);
  }
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, HwlocDestroy>;
using HwlocBitmap = std::unique_ptr<hwloc_bitmap_s, HwlocDestroy>;

/// A topology to set up and load. It will hold the CPUs that a cgroup's cpuset
/// leaves out too, for `readCpuLimits` to tell them apart.
Result<HwlocTopology> createTopology();

/// Which of a machine's CPUs the calling thread may run on, and why not on the
/// others.
struct CpuLimits {
  HwlocBitmap usable;
  HwlocBitmap offline;
  HwlocBitmap outsideCpuset;
  /// In the cpuset, but not in the affinity mask. None where the topology is
  /// not of this machine.
  HwlocBitmap outsideMask;
};

CpuLimits readCpuLimits(hwloc_topology_t topology);

/// What the firmware says of the memory of `numa` for the cores beside it, in
/// bytes per second; zero where it does not tell.
uint64_t bandwidthOf(hwloc_topology_t topology, hwloc_obj_t numa);

/// The same in nanoseconds.
uint64_t latencyOf(hwloc_topology_t topology, hwloc_obj_t numa);

/// The indexes in a finite bitmap; none of an infinite one.
std::vector<int64_t> indexesOf(hwloc_const_bitmap_t bitmap);

} // namespace sandwich

#endif // SANDWICH_MACHINE_HWLOC_H
