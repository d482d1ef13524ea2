//===- ModelledEvaluator.h - Configurations judged by the model -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PREDICTION_MODELLEDEVALUATOR_H
#define SANDWICH_SERVING_PREDICTION_MODELLEDEVALUATOR_H

#include "sandwich/Serving/Prediction/ModelMemory.h"
#include "sandwich/Serving/Prediction/TracePrediction.h"
#include "sandwich/Topology/Prediction/LatencyModel.h"
#include "sandwich/Topology/Search/ConfigurationSearch.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandwich {

/// The limits that a model's operators put on tensor parallelism.
OperatorLimits limitsOf(const ModelWork &work);

/// What the latency model says of a step of the scheduler's. Several pieces of
/// prompts count as one of as many tokens and positions.
double predictStep(const TeamSpeed &prefill, const TeamSpeed &decode,
                   const ModelWork &work, const StepShape &shape);

/// Predicts the mean latency of a trace's requests with the latency model: the
/// latency simulation of the Sandwich paper, section 4.3.
class ModelledEvaluator : public ConfigurationEvaluator {
public:
  /// Without `memory` everything fits, and lies in the memories of the cores'
  /// own nodes.
  ModelledEvaluator(LatencyModel model, ModelWork work, TracePrediction trace,
                    std::optional<ModelMemoryOptions> memory = std::nullopt);

  /// Milliseconds from a request's arrival to its last token, in the mean;
  /// infinity if the ranks do not fit into the memories that they are bound to.
  Result<double> predict(const ServiceConfiguration &configuration) override;

  /// What a rank needs and what there is.
  std::optional<std::string>
  whyNot(const ServiceConfiguration &configuration) override;

  /// The reason of the configuration that lacks the least of all that do not
  /// fit; nothing if all fit.
  const std::optional<std::string> &leastShortage() const { return closest; }

  /// [process] The NUMA nodes that have something of it, the fastest first.
  /// Error: a CPU that the machine does not have.
  Result<std::vector<std::vector<unsigned>>>
  memoryNodesOf(const ServiceConfiguration &configuration);

private:
  /// What prefill with a division into processes is, and what it leaves behind.
  struct Prefill {
    TeamSpeed speed;
    LatencyModel::RankMemories memories;
    std::vector<std::vector<unsigned>> memoryNodes;
    /// Why the ranks do not fit into memory, if they do not.
    std::optional<std::string> shortage;
  };

  Result<const Prefill *> prefillOf(const std::vector<RankCpus> &ranks);
  /// Fills in the memories of `prefill`.
  Status placeRanks(const std::vector<RankCpus> &ranks, Prefill &prefill);

  LatencyModel model;
  ModelWork work;
  TracePrediction trace;
  std::optional<ModelMemoryOptions> memory;
  std::optional<std::string> closest;
  /// Bytes that `closest` is about.
  double leastLacking = std::numeric_limits<double>::infinity();
  /// Few divisions into processes share all configurations.
  std::map<std::vector<RankCpus>, Prefill> prefills;
  /// Seconds by the speeds in prefill and decode: parts that are alike make
  /// many configurations whose teams are equally fast.
  std::map<std::pair<TeamSpeed, TeamSpeed>, double> latencies;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_PREDICTION_MODELLEDEVALUATOR_H
