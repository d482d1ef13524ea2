//===- MachineDescription.h - What a machine's parts can do -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Speeds that no topology tells: arithmetic, bandwidth of the parts, what it
/// costs to hand a cache line from one core to another. Plans are judged by
/// this description. Its values are measured on the machine, given in a file,
/// or derived from what is known of its processors; each says which, and from
/// what.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_MACHINEDESCRIPTION_H
#define SANDWICH_MACHINE_MACHINEDESCRIPTION_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich {

enum class ValueOrigin {
  /// A middling value: nothing is known.
  Assumed,
  /// From what the topology or the firmware shows, or from published figures
  /// of the processor.
  Derived,
  /// Somebody wrote it into a file.
  Given,
  /// On the machine itself.
  Measured
};

/// "assumed", "derived", "given", "measured".
std::string_view name(ValueOrigin origin);

/// A number of a description, in the unit that its name says.
struct MachineValue {
  double value = 0;
  ValueOrigin origin = ValueOrigin::Assumed;
  /// What it was derived from or how it was measured, in words; may be empty.
  std::string source;

  MachineValue() = default;
  MachineValue(double value, ValueOrigin origin = ValueOrigin::Given,
               std::string source = {})
      : value(value), origin(origin), source(std::move(source)) {}
  operator double() const { return value; }
  /// Whether somebody measured or gave it.
  bool isKnown() const { return origin >= ValueOrigin::Given; }
};

/// What one part of a kind ("l3", "numa", ...) can do.
struct PartDescription {
  /// What all cores of the part together read through it, in bytes per second.
  MachineValue bytesPerSecond = {std::numeric_limits<double>::infinity(),
                                 ValueOrigin::Assumed};
  /// For a cache line to come from one core to another, if this part is the
  /// smallest that both are in.
  MachineValue handoffSeconds = {0, ValueOrigin::Assumed};
  /// What all cores of the part together read from memories outside of it, in
  /// bytes per second: what comes in over a socket's links.
  MachineValue linkBytesPerSecond = {std::numeric_limits<double>::infinity(),
                                     ValueOrigin::Assumed};
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
  PartDescription parameters;
};

/// Of floating-point operations per second in matmuls.
struct MatmulRates {
  MachineValue f32;
  /// Of bf16 weights.
  MachineValue bf16;
  /// Of weights of integers and inputs that are rounded to int8; 0 where no
  /// instructions multiply them, so that they count as f32.
  MachineValue int8;

  const MachineValue &of(MatrixElement element) const {
    if (element == MatrixElement::Int8 && int8 > 0)
      return int8;
    return element == MatrixElement::BF16 ? bf16 : f32;
  }
};

struct MachineDescription {
  /// Of one core that runs alone, the fastest of the machine.
  MachineValue coreCyclesPerSecond;
  /// What it multiplies and adds in matmuls.
  MatmulRates coreFlopsPerSecond;
  /// What it reads from its own node's memory, and how long one line takes
  /// that nobody asked for before.
  MachineValue coreBytesPerSecond;
  MachineValue memoryLatencySeconds;
  /// What it reads from its caches.
  MachineValue coreL2BytesPerSecond;
  MachineValue coreL3BytesPerSecond;
  /// The share of `coreBytesPerSecond` from another NUMA node's memory.
  MachineValue remoteShare;
  /// By kind of part; a kind that is absent limits nothing, and its lines take
  /// as long as those of the part around it.
  std::map<std::string, PartDescription> parts;
  /// The bandwidths of each NUMA node's memory in bytes per second, by its
  /// index; where absent, that of `parts["numa"]`.
  std::map<unsigned, MachineValue> memories;
  /// The same of memories that cores have beside that of their node: what is
  /// said of all nodes is not about them. Nothing is assumed of these.
  std::map<unsigned, MachineValue> besideMemories;
  std::vector<LatentGroup> latent;
  /// How often the system's own work wakes up on each core, and how long it
  /// then keeps a CPU. Nothing is assumed of it: it differs more between two
  /// installations than between two machines.
  MachineValue wakeupsPerCorePerSecond;
  MachineValue wakeupSeconds;

  /// What describes NUMA nodes; the machine where there is none. A part that
  /// limits nothing where neither is described.
  const PartDescription &node() const;

  /// Whether the bandwidths and hand-offs were measured or given. If not, plans
  /// must not rest on small differences.
  bool isKnown() const;
};

/// What is known of `machine` without measuring it, for code of `target`:
/// published figures of its processors where their name is known, else values
/// of the CPUs that came with the target's instructions, by the number of cores
/// that share a memory or a cache. Bandwidths of memories that the firmware
/// tells (HMAT) count before both.
MachineDescription describeMachine(const Machine &machine,
                                   const Target &target);

/// A machine of which nothing is known but that one NUMA node has `cores`
/// cores.
Machine machineOfNode(uint64_t cores);

/// What is known of such a machine: where code is made for a target and a
/// number of threads.
MachineDescription describeNode(uint64_t cores, const Target &target);

/// Reads what `toJson` writes: in each place of a number a number, which is
/// given, or `{"value", "origin", "source"}`. What is absent is as in
/// `described`. Errors name the field: an unknown one, a number outside 1e-6 to
/// 1e9 in its unit (wake-ups may be 0), a group of fewer than two cores, two
/// groups of one name, wake-ups that keep a CPU all the time.
Result<MachineDescription>
machineDescriptionFromJson(const Json &json,
                           const MachineDescription &described);

/// The same from the file `path`, beside what `describeMachine` tells of
/// `machine`, whose processors the file may name: `"processor": "EPYC 9654"`.
/// Errors name the file too; processors of which nothing is known are one more,
/// and a part, memory or place of a latent group that `machine` does
/// not have, which lists those that it has.
Result<MachineDescription> readMachineDescription(const std::string &path,
                                                  const Machine &machine,
                                                  const Target &target);

/// The same beside what `describeNode` tells; names of parts are not checked.
Result<MachineDescription> readNodeDescription(const std::string &path,
                                               uint64_t cores,
                                               const Target &target);

/// `{"core_ghz", "core_gflops": {"f32", "bf16", "int8"},
/// "core_gb_per_second", "memory_latency_ns", "core_l2_gb_per_second",
/// "core_l3_gb_per_second", "remote_share", "parts": {KIND: {"gb_per_second",
/// "handoff_ns", "link_gb_per_second"}}, "memory_gb_per_second": {NODE: n},
/// "latent": [{"name", "inside", "cores", "stride", "gb_per_second",
/// "handoff_ns", "link_gb_per_second"}], "wakeups_per_core_per_second",
/// "wakeup_ms"}`; a GB is 10^9 bytes, and each number is `{"value", "origin",
/// "source"}`.
Json toJson(const MachineDescription &description);

} // namespace sandwich

#endif // SANDWICH_MACHINE_MACHINEDESCRIPTION_H
