//===- ConfigurationSearch.h - The best service configurations --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From a TopoTree to its best service configurations (sections 4.2 and 4.3 of
/// the Sandwich paper): all groups, the transformation tree of removes,
/// cross-sections level by level, and what the paper prunes.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_SEARCH_CONFIGURATIONSEARCH_H
#define SANDWICH_TOPOLOGY_SEARCH_CONFIGURATIONSEARCH_H

#include "sandwich/Topology/Search/ConfigurationClass.h"
#include "sandwich/Topology/Trees/GroupEnumeration.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// Says how good a configuration is.
class ConfigurationEvaluator {
public:
  virtual ~ConfigurationEvaluator() = default;
  /// Milliseconds that a trace takes, the smaller the better; infinity if the
  /// configuration cannot run. The derivation is not filled in. Called once for
  /// each configuration, in an order that depends on earlier answers only.
  /// Errors end the search; those of an evaluation that was interrupted as the
  /// search was let it keep what it has.
  virtual Result<double> predict(const ServiceConfiguration &configuration) = 0;
  /// Where the predicted time of a configuration goes that `predict` was asked
  /// about; nothing by default. Called for those only that the search tells of.
  virtual PredictedTime explain(const ServiceConfiguration &configuration);

  /// Whether the last answer of `predict` was one it had given already, for a
  /// configuration that is equal; patience does not count it then.
  virtual bool knewLast() const { return false; }

  /// Why `predict` said that `configuration` cannot run, in words; nothing: the
  /// evaluator tells that elsewhere.
  virtual std::optional<std::string>
  whyNot(const ServiceConfiguration &configuration) {
    (void)configuration;
    return std::nullopt;
  }
};

/// What the search has done.
struct SearchStatistics {
  /// Grouped trees searched. Those that agree below a cross-section are
  /// searched there together. The largest 64-bit number if there are more.
  uint64_t trees = 0;
  /// Cross-sections of these trees, and those that operator limits refuse.
  uint64_t crossSections = 0;
  uint64_t refused = 0;
  /// Different configurations that were evaluated, and those of them that are
  /// in none of the best classes for the given reasons.
  uint64_t configurations = 0;
  uint64_t noImprovement = 0;
  uint64_t cannotRun = 0;
  uint64_t belowTop = 0;
  /// Trees with removed nodes whose configuration had been met.
  uint64_t equal = 0;
  /// Sets of processes (a process count and its NUMA nodes): those searched,
  /// all that there are, and those that were left when patience ran out.
  uint64_t processSets = 0;
  uint64_t processSetsInAll = 0;
  uint64_t stoppedEarly = 0;
  double seconds = 0;

  /// Those of two searches together.
  SearchStatistics &operator+=(const SearchStatistics &other);
};

struct SearchResult;

struct ConfigurationSearchOptions {
  /// `keepGroups` searches the given tree with the groups it has; otherwise it
  /// must be fundamental, and every grouped tree is searched.
  bool keepGroups = false;
  /// A level with too many groupings of these sizes has fewer of them, which
  /// `SearchResult::notes` tells: scattered groups of powers of two (A.3), or
  /// none that are scattered (`ScatteredGroups`).
  GroupSizes sizes = GroupSizes::Any;
  OperatorLimits limits;
  /// Of a set of processes, how many evaluations in a row may pass without a
  /// better configuration than the set's best, before the rest of the set is
  /// left. At least 1.
  unsigned patience = 1000;
  /// By what share a tree with removed nodes must beat its parents to be kept;
  /// below 1. Where the evaluator goes by guesses, cores must not sleep for
  /// little: too many asleep cost more than too many awake.
  double leastGain = 0;
  /// How many classes are kept, at least 1; fewer if there are not so many
  /// candidates.
  unsigned topK = 10;
  /// Where there are fewer candidates than this and `topK`, the best classes of
  /// those without improvement are ranked with them, unless they seem better
  /// than the best, for people and evaluators to choose from.
  unsigned leastClasses = 0;
  /// Whether `SearchResult::dropped` is filled in.
  bool keepDropped = false;

  /// Called after each evaluation.
  std::function<void(const SearchStatistics &)> progress;
  /// Called before each evaluation but the first with what the search would
  /// return if it were interrupted now. Makes it anew each time: for evaluators
  /// that take long.
  std::function<void(const SearchResult &)> soFar;
  /// Asked before each evaluation, and often between them; the search ends with
  /// what it has once this returns true.
  std::function<bool()> interrupted;
};

struct SearchResult {
  /// One configuration for each of the best classes, best first; of equally
  /// good ones those of fewer processes, then those of more cores awake come
  /// first.
  std::vector<ConfigurationClass> configurations;
  /// The classes that are not kept, those of one reason together, by predicted
  /// time; those without one come last. Of cross-sections that operator limits
  /// refuse, each counts as one configuration with all cores awake.
  std::vector<DroppedClass> dropped;
  SearchStatistics statistics;
  /// What a person should know of the search, a line each: process counts that
  /// operator limits refuse, reasons of the evaluator why some cannot run, sets
  /// of processes left early, levels with fewer groupings.
  std::vector<std::string> notes;
  bool interrupted = false;
};

/// Searches the configurations of `tree`, which has no removed nodes. A tree
/// with removed nodes is kept only if it beats each of its parents in the
/// transformation tree by `leastGain`, and only below such trees the walk goes
/// on. Decode shares the processes of prefill, so removes at or above the
/// cross-section are not tried. The same arguments give the same result.
/// Errors: patience or topK is zero, `leastGain` is not from 0 to 1, `tree` is
/// transformed already, the evaluator fails.
Result<SearchResult>
searchConfigurations(const TopoTree &tree, ConfigurationEvaluator &evaluator,
                     const ConfigurationSearchOptions &options = {});

/// `{"configurations", "trees", "evaluated", "pruned", "seconds"}` as the
/// command line shows it; `pruned` gives numbers of configurations by reason.
/// `dropped` beside them if any are kept.
Json toJson(const SearchResult &result);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_SEARCH_CONFIGURATIONSEARCH_H
