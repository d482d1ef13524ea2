//===- MachineTopology.h - This machine as a tree ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_MACHINETOPOLOGY_H
#define SANDWICH_TOPOLOGY_MACHINETOPOLOGY_H

#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sandwich {

/// A part of a machine and the parts inside it: machine, package, NUMA node,
/// cache, core, CPU.
struct MachineNode {
  /// "machine", "package", "die", "group", "numa", "l3", "l2", "l1d", "core"
  /// or "cpu".
  std::string kind;
  /// The operating system's index; -1 for caches and the machine.
  int64_t index = -1;
  /// Capacity of a cache or of a NUMA node's memory, else zero.
  uint64_t bytes = 0;
  std::vector<MachineNode> children;
};

/// Reads this machine, or another one: `source` is empty, an hwloc XML file or
/// `synthetic:DESCRIPTION`. Errors: hwloc cannot read it.
Result<MachineNode> readMachineTopology(const std::string &source = "");

/// The levels and how many parts each has, as "package x 1, numa x 1,
/// core x 2", then the tree in lines of text; a part that is alone in its
/// parent stands on its parent's line.
std::string drawMachine(const MachineNode &machine);

/// `{"kind", "index", "bytes", "children"}`, without what is not known.
Json toJson(const MachineNode &machine);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_MACHINETOPOLOGY_H
