//===- Planner.h - The best service configurations for a model --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_PLANNING_PLANNER_H
#define SANDWICH_PLANNING_PLANNER_H

#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Machine/MachineDescription.h"
#include "sandwich/Serving/Prediction/TracePrediction.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Topology/Search/ConfigurationSearch.h"
#include "sandwich/Topology/Search/PlanFile.h"
#include "sandwich/Topology/Trees/SymmetricPart.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Who says how good a configuration is.
enum class PlanEvaluator {
  /// The latency model, of any machine, in no time.
  Modelled,
  /// This machine runs each configuration, of those that are equal to the
  /// latency model one.
  Measured,
  /// The model ranks them, and this machine runs one of each of the best
  /// classes and ranks these.
  Both
};

struct Plan;

struct PlanOptions {
  /// The model, and how it is compiled where configurations are run. The
  /// latency model needs the folder's config.json and `machineParameters` only.
  CompileOptions compile;
  PlanEvaluator evaluator = PlanEvaluator::Modelled;
  /// "host", an hwloc XML file, or "synthetic:" and a description.
  std::string topology = "host";
  /// Instead of `compile.machineParameters`: called with the machine once all
  /// else was read, its error ends the search.
  std::function<Result<MachineDescription>(const Machine &machine)> measure;
  /// A built-in trace or a file (see ServingTrace.h).
  std::string trace = "sharegpt";
  /// Instead of the trace's own arrivals, those of so many requests a second
  /// that come at random.
  std::optional<double> requestsPerSecond;
  PlanObjective objective = PlanObjective::Latency;
  /// Of goodput.
  ServiceObjectives objectives;
  /// Classes of configurations that are kept.
  int64_t topK = 10;
  /// Evaluations without a better one before a set of processes is left.
  /// By default 10 where configurations are run, else 200, or fewer where there
  /// are more than 2,048 cores, each of which costs time in each evaluation.
  std::optional<int64_t> patience;
  /// Cores that no plan uses in either phase (`partsWithReservedCores`). Which
  /// they are the latency model decides, if it judges; else the most remain.
  int64_t reservedCores = 0;
  /// Hardware threads of each core that plans use: the first ones.
  int64_t threadsPerCore = 1;
  /// Called often with what is being done, and how much of it is, from 0 to 1:
  /// while configurations are searched, the share of process counts and NUMA
  /// assignments.
  std::function<void(std::string_view stage, double done)> progress;
  /// Called each time that a configuration was run, once one of them can: the
  /// plan that a search which is interrupted now would give.
  std::function<void(const Plan &soFar)> measured;
  /// Whether every class of configurations that was dropped is told.
  bool keepDropped = false;
};

struct PredictedStep {
  StepShape shape;
  double milliseconds = 0;
};

/// What the search saw and found.
struct Plan {
  PlanEvaluator evaluator = PlanEvaluator::Modelled;
  Machine machine;
  /// What plans may use: without reserved cores, and of each core the threads
  /// that were asked for.
  SymmetricPart part;
  std::optional<TopoTree> tree;
  /// Of the whole machine, whatever of it the plan uses.
  PlanMachine identity;
  SearchResult search;
  PlanObjective objective = PlanObjective::Latency;
  /// What the latency model says of a few steps of the best configuration.
  std::vector<PredictedStep> steps;
  /// By what share the best configuration is better than the better one of
  /// those with the same cores in both phases; nothing where they are not
  /// predicted.
  std::optional<double> switchingGain;
};

/// Searches the service configurations of a machine for a model. `stop` is
/// asked now and then; the plan then has what was found so far. Errors: the
/// model's configuration, the topology, the parameters or the trace cannot be
/// read; top-k, patience or threads per core are not positive; more cores are
/// reserved, or more threads of each core asked for, than there are; the model
/// has no context of so many tokens; its ranks fit into no memory, however many
/// they are; another machine's configurations are to be run; those of
/// `MeasuredEvaluator`.
Result<Plan> searchPlan(const PlanOptions &options,
                        const std::function<bool()> &stop = {});

/// "modelled", "measured", "both".
std::string_view name(PlanEvaluator evaluator);

/// "latency", "throughput", "goodput".
std::string_view name(PlanObjective objective);

/// The object that `--plan-only --json` prints.
Json toJson(const Plan &plan);

/// The search for people: the machine, what was left out of it, how many trees
/// and configurations there were, a table of the classes that were dropped if
/// they were kept, and the ranking, both with what limits each.
std::string explain(const Plan &plan);

} // namespace sandwich

#endif // SANDWICH_PLANNING_PLANNER_H
