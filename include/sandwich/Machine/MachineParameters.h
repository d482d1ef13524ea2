//===- MachineParameters.h - What a machine's parts can do ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Speeds that no topology tells: arithmetic, bandwidth of the parts, what it
/// costs to hand a cache line from one core to another. They are measured on
/// the machine itself or written in a file for another one.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_MACHINEPARAMETERS_H
#define SANDWICH_MACHINE_MACHINEPARAMETERS_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace sandwich {

/// What one part of a kind ("l3", "numa", ...) can do.
struct PartParameters {
  /// What all cores of the part together read through it, in bytes per second.
  double bytesPerSecond = std::numeric_limits<double>::infinity();
  /// For a cache line to come from one core to another, if this part is the
  /// smallest that both are in.
  double handoffSeconds = 0;
};

/// Groups of cores that share something, but which the system does not show:
/// the clusters of four cores of a Kunpeng 920 that share the tags of L3.
struct LatentGroup {
  std::string name;
  /// The kind of part whose cores are grouped.
  std::string inside;
  /// Cores in a group, and the distance of their numbers inside the part.
  unsigned cores = 0;
  unsigned stride = 1;
  PartParameters parameters;
};

struct MachineParameters {
  /// What one core multiplies and adds, in floating-point operations per
  /// second, in the matmuls of the model's type.
  double coreFlopsPerSecond = 50e9;
  /// What one core reads from its own memory while all others sleep.
  double coreBytesPerSecond = 12e9;
  /// The share of that which it reads from another NUMA node's memory.
  double remoteShare = 0.6;
  /// By kind of part; a kind that is absent limits nothing, and its lines take
  /// as long as those of the part around it.
  std::map<std::string, PartParameters> parts;
  /// The bandwidths of each NUMA node's memory in bytes per second, by its
  /// index; where absent, that of `parts["numa"]`.
  std::map<unsigned, double> memories;
  std::vector<LatentGroup> latent;
  /// How often the system's own work wakes up on each core, and how long it
  /// then keeps a CPU.
  double wakeupsPerCorePerSecond = 2;
  double wakeupSeconds = 4e-3;
};

/// Where nothing is known of a machine: middling values for servers of the last
/// years. A plan made with them is a guess, and says so.
MachineParameters assumedParameters();

/// Reads what `toJson` writes; what is absent is assumed. Errors name the
/// field: an unknown one, a number outside 1e-6 to 1e9 in its unit (wake-ups
/// may be 0), a group of fewer than two cores.
Result<MachineParameters> machineParametersFromJson(const Json &json);

/// The same from the file `path`; errors name it too. A part, memory or place
/// of a latent group that `machine` does not have is one more, which lists
/// those that it has.
Result<MachineParameters> readMachineParameters(const std::string &path,
                                                const Machine &machine);

/// `{"core_gflops", "core_gb_per_second", "remote_share",
/// "parts": {KIND: {"gb_per_second", "handoff_ns"}},
/// "memory_gb_per_second": {NODE: n},
/// "latent": [{"name", "inside", "cores", "stride", "gb_per_second",
/// "handoff_ns"}], "wakeups_per_core_per_second", "wakeup_ms"}`; a GB is 10^9
/// bytes.
Json toJson(const MachineParameters &parameters);

} // namespace sandwich

#endif // SANDWICH_MACHINE_MACHINEPARAMETERS_H
