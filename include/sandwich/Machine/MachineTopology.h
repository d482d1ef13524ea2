//===- MachineTopology.h - Machines as trees --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A machine is what its operating system lets this process use, or what a file
/// describes: a tree of what cores share, the memories outside the tree, and
/// sentences about everything that was left out.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_MACHINETOPOLOGY_H
#define SANDWICH_MACHINE_MACHINETOPOLOGY_H

#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// A part of a machine and the parts inside it: machine, package, NUMA node,
/// cache, core, CPU. Every CPU lies in a core, and every innermost part is one.
struct MachineNode {
  /// "machine", "package", "die", "group", "numa", "l3", "l2", "l1d", "core"
  /// or "cpu". A group is a cluster of cores, or whatever else the operating
  /// system says belongs together.
  std::string kind;
  /// The operating system's index; -1 for caches and the machine. Those of
  /// cores may begin anew in each package.
  int64_t index = -1;
  /// Capacity of a cache or of a NUMA node's memory, else zero.
  uint64_t bytes = 0;
  /// Of a NUMA node's memory for its own cores, in bytes per second; zero where
  /// the firmware does not tell.
  uint64_t bandwidth = 0;
  /// Of a NUMA node's memory for its own cores, in nanoseconds; zero where the
  /// firmware does not tell.
  uint64_t latency = 0;
  /// A core's speed relative to the machine's fastest: 1 but for efficiency
  /// cores.
  double speed = 1;
  /// Cores of the machine before this part and in it, those included that this
  /// process may not use, but not those that are offline, of which the kernel
  /// does not tell where they are. Both zero in a machine that was not read.
  uint64_t firstCore = 0;
  uint64_t coreCount = 0;
  /// Of a memory outside the tree: the indexes of the NUMA nodes in the tree
  /// whose cores have it beside their own. None where the system tells nothing.
  std::vector<unsigned> besideNodes;
  std::vector<MachineNode> children;
};

/// How far each NUMA node's memory is from each node, in the firmware's unit:
/// 10 is the distance of a node's own.
struct NumaDistances {
  /// The operating system's indexes of the nodes.
  std::vector<unsigned> nodes;
  /// [from][to], `nodes.size()` rows and columns.
  std::vector<std::vector<uint64_t>> values;
};

/// A machine as it may be used.
struct Machine {
  /// "this machine", or what it was read from.
  std::string name;
  /// The first package's, as "AMD EPYC 7H12 64-Core Processor"; empty where it
  /// is not known.
  std::string cpuModel;
  MachineNode root;
  /// NUMA nodes outside the tree: memory without cores of its own, a second
  /// memory of the same cores, and nodes none of whose CPUs may be used.
  std::vector<MachineNode> memories;
  /// Empty where the firmware does not tell.
  NumaDistances distances;
  /// What is not in the tree, or is not as it was read, and why; one sentence
  /// each.
  std::vector<std::string> leftOut;
};

/// Larger descriptions are refused: machines of thousands of cores take a few
/// megabytes.
inline constexpr size_t maxTopologyBytes = size_t{64} << 20;

/// More CPUs are refused.
inline constexpr uint64_t maxTopologyCpus = 65536;

/// What a description of a machine in words begins with.
inline constexpr char syntheticPrefix[] = "synthetic:";

/// Reads a machine: `source` is "host", an hwloc XML file or
/// `synthetic:DESCRIPTION`.
///
/// The host has the CPUs that the calling thread may run on: online, in the
/// cgroup's cpuset and in the affinity mask. Of another machine the cpuset in
/// its file counts. Caches, packages and all else without such a CPU are not in
/// the tree. Memories of a description in words that tells no size of any have
/// none. Errors: hwloc cannot read it; it has no CPU, or none that may be
/// used; more than `maxTopologyCpus`; no child process can be started to try a
/// description in.
Result<Machine> readMachineTopology(const std::string &source = "host");

/// The same, of the text of an XML file, which `name` is.
Result<Machine> readMachineXml(const std::string &name, const std::string &xml);

/// Trusts the kernel where hwloc counts another amount of memory, as in virtual
/// machines whose memory was added while they ran: beyond a twentieth of
/// difference, every node's part is scaled so that all have `kernelBytes`
/// (MemTotal), and `machine.leftOut` says so. Does nothing where `kernelBytes`
/// is zero.
void correctMemorySizes(Machine &machine, uint64_t kernelBytes);

/// How many parts of `kind` there are in `node`, itself included.
uint64_t countParts(const MachineNode &node, std::string_view kind);

/// `{"kind", "index", "bytes", "bandwidth", "latency", "speed", "beside",
/// "children"}`, without what is not known or is as everywhere.
Json toJson(const MachineNode &node);

/// `{"name", "cpu_model", "topology", "memories", "numa_distances",
/// "left_out"}`, without what is not known.
Json toJson(const Machine &machine);

} // namespace sandwich

#endif // SANDWICH_MACHINE_MACHINETOPOLOGY_H
