//===- ThreadBinding.cpp - Threads on CPUs --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/ThreadBinding.h"

#include "sandwich/Support/AnonymousMemory.h"

#include <hwloc.h>

using namespace sandwich;

/// What binding needs of hwloc: this machine, and none of its parts. Null if
/// there is no such thing.
static hwloc_topology_t thisMachine() {
  static const hwloc_topology_t topology = [] {
    hwloc_topology_t machine = nullptr;
    if (hwloc_topology_init(&machine) != 0)
      return hwloc_topology_t{};
    hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE);
    // hwloc 2.9 writes to null where it gets no memory.
    constexpr uint64_t enough = uint64_t{4} << 20;
    if (AnonymousMemory::allocate(enough, "reading the machine") &&
        hwloc_topology_load(machine) == 0)
      return machine;
    hwloc_topology_destroy(machine);
    return hwloc_topology_t{};
  }();
  return topology;
}

/// CPUs that the calling thread may run on; the caller frees it. Null: not
/// known.
static hwloc_bitmap_t readBinding() {
  if (!thisMachine())
    return nullptr;
  hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
  if (cpus &&
      hwloc_get_cpubind(thisMachine(), cpus, HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_free(cpus);
    return nullptr;
  }
  return cpus;
}

std::vector<unsigned> sandwich::readThreadBinding() {
  std::vector<unsigned> cpus;
  hwloc_bitmap_t bound = readBinding();
  // A set without end has no last element.
  if (bound && hwloc_bitmap_last(bound) >= 0)
    for (int cpu = hwloc_bitmap_first(bound); cpu >= 0;
         cpu = hwloc_bitmap_next(bound, cpu))
      cpus.push_back(static_cast<unsigned>(cpu));
  hwloc_bitmap_free(bound);
  return cpus;
}

ScopedBinding::ScopedBinding(std::optional<unsigned> cpu) {
  if (!cpu)
    return;
  before = readBinding();
  if (!before)
    return;
  hwloc_bitmap_t own = hwloc_bitmap_alloc();
  if (!own || hwloc_bitmap_only(own, *cpu) != 0 ||
      hwloc_bitmap_isequal(before, own) ||
      hwloc_set_cpubind(thisMachine(), own, HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_free(before);
    before = nullptr;
  }
  hwloc_bitmap_free(own);
}

ScopedBinding::~ScopedBinding() {
  if (before)
    hwloc_set_cpubind(thisMachine(), before, HWLOC_CPUBIND_THREAD);
  hwloc_bitmap_free(before);
}
