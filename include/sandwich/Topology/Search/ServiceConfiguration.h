//===- ServiceConfiguration.h - Which cores serve a model -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a horizontal cross-section through a TopoTree says (section 4.3 of the
/// Sandwich paper): the processes, their memory, and the cores each of them
/// uses in the two phases.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_SEARCH_SERVICECONFIGURATION_H
#define SANDWICH_TOPOLOGY_SEARCH_SERVICECONFIGURATION_H

#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Topology/Trees/TopoTree.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// How many processes there are, and the CPUs of each in both phases: what
/// people tell plans apart by, and all that compiled code depends on.
struct ConfigurationShape {
  /// Of an instance.
  size_t processes = 0;
  size_t prefillCores = 0;
  size_t decodeCores = 0;
  size_t instances = 1;
  auto operator<=>(const ConfigurationShape &) const = default;
};

/// "8 processes of 24 cores, 18 of them in decode", or "2 instances of 1
/// process of 24 cores", where `leaves` are "core".
std::string describe(const ConfigurationShape &shape,
                     std::string_view leaves = "core");

/// Tensor-parallel processes and their cores. Lists are over processes, in the
/// order of their first CPU in the machine; CPUs and NUMA nodes are the
/// operating system's indexes. A list of CPUs is a set: one thread each, in the
/// machine's order, where neighbours share the most.
struct ServiceConfiguration {
  /// The NUMA nodes that each process's CPUs belong to, ascending; more than
  /// one where the cross-section is above the NUMA nodes.
  std::vector<std::vector<unsigned>> numa;
  /// The CPUs of each process in prefill: all of them.
  std::vector<std::vector<unsigned>> prefillCores;
  /// The CPUs that stay awake in decode, part of the process's own.
  std::vector<std::vector<unsigned>> decodeCores;
  /// What makes the tree of the fundamental one, the depth at which it is cut,
  /// and the time that an evaluator gave. Not part of the value.
  std::string derivation;
  unsigned depth = 0;
  double predictedMs = 0;
  /// The NUMA nodes whose memory has something of each process, the fastest
  /// first; empty where nobody says so. Not part of the value either.
  std::vector<std::vector<unsigned>> memoryNodes;

  /// Where several instances of the model serve requests by themselves, each
  /// with the processes of one of these, on parts of the machine that are
  /// alike; the first is this one. Empty where there is one. Not part of the
  /// value.
  std::vector<ServiceConfiguration> instances;

  size_t processes() const { return prefillCores.size(); }
  /// Of the first process, as the others are like it; there is one.
  ConfigurationShape shape() const {
    return {processes(), prefillCores.front().size(),
            decodeCores.front().size(), std::max<size_t>(instances.size(), 1)};
  }
  /// Whether `memoryNodes` are others than the nodes of the processes' CPUs.
  bool hasOtherMemory() const;
  /// Whether the same processes run on the same CPUs in both phases.
  bool operator==(const ServiceConfiguration &other) const;
};

/// Of the CPUs and NUMA nodes, as `==` compares them.
TopoHash hash(const ServiceConfiguration &configuration);

/// Of the CPUs of each process in one phase.
TopoHash hash(const std::vector<std::vector<unsigned>> &cores);

/// The configuration of `tree` cut at `depth`, one process for each node there:
/// decode on the leaves that are awake, prefill on those of the tree before
/// anything was removed. Errors: no such depth; nodes at or above `depth` are
/// removed, so that decode would have fewer processes than prefill.
Result<ServiceConfiguration> crossSection(const TopoTree &tree, unsigned depth);

/// What a model lets tensor parallelism divide. Zero is no limit.
struct OperatorLimits {
  unsigned queryHeads = 0;
  /// A process has whole KV heads.
  unsigned keyValueHeads = 0;
  unsigned intermediateSize = 0;
  unsigned vocabulary = 0;

  /// Why a model cannot be divided among so many processes, or nothing.
  std::optional<std::string> refuse(unsigned processes) const;
};

/// As the command line shows it: `{"processes", "numa", "prefill_cores",
/// "decode_cores", "predicted_ms", "derivation"}`. `numa` is the first NUMA
/// node of each process; `numa_nodes` beside it has all of them if a process
/// has more than one, and `memory_nodes` those that have something of it if
/// they are others. `instances` lists those of several instances, each with its
/// own `numa` and cores.
Json toJson(const ServiceConfiguration &configuration);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_SEARCH_SERVICECONFIGURATION_H
