//===- ConfigurationClass.h - Plans that are equal for people ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Machines are symmetric, so many configurations are predicted to be equally
/// good: those with other strides, on other nodes that are alike. People and
/// measurements are given one of them. A class has all configurations of one
/// shape and of equal predictions; plans of another shape are other plans, even
/// if they take as long.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_SEARCH_CONFIGURATIONCLASS_H
#define SANDWICH_TOPOLOGY_SEARCH_CONFIGURATIONCLASS_H

#include "sandwich/Topology/Search/ServiceConfiguration.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace sandwich {

/// Predictions that differ by at most this share of the larger are equal. A
/// prediction is a sum of some ten thousand terms, whose order changes it by
/// 1e-12 at most (`runSeconds` rounds by as much), while one hand-off among the
/// pairs of 16,384 cores, the smallest thing by which a model tells two
/// configurations apart, is 1e-8 of a barrier.
inline constexpr double equalPredictions = 1e-9;

/// Whether two times, finite or not, are equal up to `equalPredictions`.
bool areEqualPredictions(double a, double b);

/// Milliseconds by what takes them, as an evaluator calls it.
using TimeParts = std::map<std::string, double>;

/// Where the predicted time of a configuration goes; empty where nothing is
/// known of it.
struct PredictedTime {
  TimeParts prefill;
  TimeParts decode;
};

/// What limits a phase: the part that takes the longest, of equal ones the
/// first by name. Empty for no parts.
std::string limitOf(const TimeParts &parts);

/// The configurations of a class but the one that stands for it.
struct EqualConfigurations {
  /// Those whose processes have the same NUMA nodes, but groups of another
  /// stride or other cores asleep, and those on other nodes.
  uint64_t byStride = 0;
  uint64_t byNodes = 0;

  uint64_t count() const { return byStride + byNodes; }
  /// By what they differ: "stride", "NUMA nodes", "stride and NUMA nodes";
  /// empty if there are none.
  std::string_view differBy() const;
};

/// A configuration that stands for its class: the one of the fewest
/// transformations, of equal ones the first that was met.
struct ConfigurationClass : ServiceConfiguration {
  EqualConfigurations equal;
  PredictedTime time;
};

/// Why a configuration is not among the best.
enum class DropReason {
  /// The model cannot be divided among so many processes.
  OperatorLimits,
  /// Removing cores has not beaten the parent in the transformation tree by
  /// `leastGain`, so that nothing below was looked at.
  NoImprovement,
  /// The evaluator said that it cannot run.
  CannotRun,
  /// It is a good one, but others are better.
  BelowTop,
};

/// "operator_limits", "no_improvement", "cannot_run", "below_top".
std::string_view name(DropReason reason);

/// A class that was dropped. There may be thousands, so it has no cores.
struct DroppedClass {
  DropReason reason = DropReason::NoImprovement;
  /// The reason in words.
  std::string text;
  ConfigurationShape shape;
  std::string derivation;
  unsigned depth = 0;
  /// Infinite for what cannot run.
  double predictedMs = 0;
  EqualConfigurations equal;
  PredictedTime time;

  DroppedClass() = default;
  DroppedClass(const ConfigurationClass &dropped, DropReason reason,
               std::string text);
};

/// As of a `ServiceConfiguration`, with `equal`, the number of others in the
/// class, and `equal_by`, in what they differ. Where it is known also `limits`
/// and `time_ms`, each with `prefill` and `decode`: what takes the longest, and
/// what takes how long, as predicted also where `predicted_ms` was measured.
Json toJson(const ConfigurationClass &configuration);

/// `{"derivation", "depth", "reason", "processes", "prefill_cores",
/// "decode_cores", "predicted_ms", "equal", "equal_by"}`, the cores as numbers
/// of each process and no time for what cannot run; `limits` and `time_ms`
/// where they are known.
Json toJson(const DroppedClass &dropped);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_SEARCH_CONFIGURATIONCLASS_H
