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

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sandwich {

/// The limits that a model's operators put on tensor parallelism.
OperatorLimits limitsOf(const ModelWork &work);

/// What the latency model says of a step of the scheduler's. Several pieces of
/// prompts count as one of as many tokens and positions.
double predictStep(const TeamSpeed &prefill, const TeamSpeed &decode,
                   const ModelWork &work, const StepShape &shape);
StepTime predictStepTime(const TeamSpeed &prefill, const TeamSpeed &decode,
                         const ModelWork &work, const StepShape &shape);

/// Predicts the mean latency of a trace's requests with the latency model: the
/// latency simulation of the Sandwich paper, section 4.3.
class ModelledEvaluator : public ConfigurationEvaluator {
public:
  /// Where the ranks of another instance are that does what the given ones do.
  using OtherInstance =
      std::function<std::vector<RankCpus>(const std::vector<RankCpus> &ranks)>;

  /// Without `memory` everything fits, and lies in the memories of the cores'
  /// own nodes. `others` are the instances beside the one that is judged, as
  /// many as `trace` counts on; all are busy unless requests come one after the
  /// other.
  ModelledEvaluator(LatencyModel model, ModelWork work, TracePrediction trace,
                    std::optional<ModelMemoryOptions> memory = std::nullopt,
                    std::vector<OtherInstance> others = {});

  /// What `TracePrediction::cost` tells, in milliseconds; infinity if the ranks
  /// do not fit into the memories that they are bound to.
  Result<double> predict(const ServiceConfiguration &configuration) override;

  /// Of the steps of the trace, for each request: "computing", "collectives",
  /// "barriers", "wake-ups", and what reading waits for (`ReadingShares`).
  /// Where requests come one after the other, all of both phases add up to what
  /// `predict` tells; those that come while others are served share steps, and
  /// also wait.
  PredictedTime explain(const ServiceConfiguration &configuration) override;

  /// The milliseconds of one step. Errors: those of `LatencyModel::speedOf`.
  Result<double> stepMilliseconds(const ServiceConfiguration &configuration,
                                  const StepShape &shape);

  /// Whether there are other instances, and they serve at the same time.
  bool isBesideBusyInstances() const {
    return !others.empty() && trace.servesAtOnce();
  }

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
    /// Of all that are busy.
    LatencyModel::RankMemories memories;
    std::vector<std::vector<unsigned>> memoryNodes;
    /// Why the ranks do not fit into memory, if they do not.
    std::optional<std::string> shortage;
  };

  Result<const Prefill *> prefillOf(const std::vector<RankCpus> &ranks);
  /// Fills in the memories of `prefill`.
  Status placeRanks(const std::vector<RankCpus> &ranks, Prefill &prefill);
  /// `ranks`, and those of the other instances that are busy meanwhile.
  std::vector<RankCpus> allBusy(const std::vector<RankCpus> &ranks) const;
  /// Of `ranks` while all that are busy read `memories`.
  Result<TeamSpeed> speedOf(const std::vector<RankCpus> &ranks,
                            const LatencyModel::RankMemories &memories) const;

  LatencyModel model;
  ModelWork work;
  TracePrediction trace;
  std::optional<ModelMemoryOptions> memory;
  std::vector<OtherInstance> others;
  std::optional<std::string> closest;
  /// Bytes that `closest` is about.
  double leastLacking = std::numeric_limits<double>::infinity();
  struct HashOfRanks {
    size_t operator()(const std::vector<RankCpus> &ranks) const {
      return hash(ranks).low;
    }
  };
  /// Few divisions into processes share all configurations.
  std::unordered_map<std::vector<RankCpus>, Prefill, HashOfRanks> prefills;
  /// Seconds by the speeds in prefill and decode: parts that are alike make
  /// many configurations whose teams are equally fast.
  std::map<std::pair<TeamSpeed, TeamSpeed>, double> latencies;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_PREDICTION_MODELLEDEVALUATOR_H
