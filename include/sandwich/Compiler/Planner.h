//===- Planner.h - The best service configurations for a model --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_COMPILER_PLANNER_H
#define SANDWICH_COMPILER_PLANNER_H

#include "sandwich/Support/Result.h"
#include "sandwich/Topology/ConfigurationSearch.h"
#include "sandwich/Topology/MachineParameters.h"
#include "sandwich/Topology/SymmetricPart.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

struct PlanOptions {
  /// Folder with the model's config.json; weights are not needed.
  std::string modelFolder;
  /// "bf16" or "f32".
  std::string dtype = "bf16";
  /// "host", an hwloc XML file, or "synthetic:" and a description.
  std::string topology = "host";
  /// File with what the machine's parts can do (see MachineParameters.h).
  std::optional<std::string> parameters;
  /// Instead of a file: called with the machine once all else was read, its
  /// error ends the search.
  std::function<Result<MachineParameters>(const MachineNode &machine)> measure;
  /// A built-in trace or a file (see ServingTrace.h).
  std::string trace = "sharegpt";
  /// Configurations that are kept.
  int64_t topK = 10;
  /// Evaluations without a better one before a set of processes is left.
  int64_t patience = 200;
  /// Called often while configurations are searched, with the share of process
  /// counts and NUMA assignments that are done, from 0 to 1.
  std::function<void(double done)> progress;
  /// Whether every configuration that was dropped is told.
  bool keepDropped = false;
};

/// What the search saw and found.
struct Plan {
  Machine machine;
  SymmetricPart part;
  std::optional<TopoTree> tree;
  SearchResult search;
  /// Of `keepDropped`: each configuration with the reason, in words.
  std::vector<std::pair<ServiceConfiguration, std::string>> dropped;
};

/// Searches the service configurations of a machine for a model, judged by the
/// latency model. `stop` is asked now and then; the plan then has what was
/// found so far. Errors: the model's configuration, the topology, the
/// parameters or the trace cannot be read; top-k or patience are not positive.
Result<Plan> searchPlan(const PlanOptions &options,
                        const std::function<bool()> &stop = {});

/// The object that `--plan-only --json` prints.
Json toJson(const Plan &plan);

/// The search for people: the machine, what was left out of it, how many trees
/// and configurations there were, why they were dropped, and the ranking.
std::string explain(const Plan &plan);

} // namespace sandwich

#endif // SANDWICH_COMPILER_PLANNER_H
