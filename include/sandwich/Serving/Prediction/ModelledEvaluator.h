//===- ModelledEvaluator.h - Configurations judged by the model -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PREDICTION_MODELLEDEVALUATOR_H
#define SANDWICH_SERVING_PREDICTION_MODELLEDEVALUATOR_H

#include "sandwich/Serving/Prediction/TracePrediction.h"
#include "sandwich/Topology/Prediction/LatencyModel.h"
#include "sandwich/Topology/Search/ConfigurationSearch.h"

#include <map>
#include <unordered_map>
#include <utility>

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
  ModelledEvaluator(LatencyModel model, ModelWork work, TracePrediction trace);

  /// Milliseconds from a request's arrival to its last token, in the mean.
  Result<double> predict(const ServiceConfiguration &configuration) override;

  /// Of the steps of the trace, for each request: "computing", "collectives",
  /// "barriers", "wake-ups", and what reading waits for (`ReadingShares`).
  /// Where requests come one after the other, all of both phases add up to what
  /// `predict` tells; those that come while others are served share steps, and
  /// also wait.
  PredictedTime explain(const ServiceConfiguration &configuration) override;

private:
  /// What prefill with a division into processes is, and what it leaves behind.
  struct Prefill {
    TeamSpeed speed;
    LatencyModel::RankMemories memories;
  };

  Result<const Prefill *> prefillOf(const std::vector<RankCpus> &ranks);

  LatencyModel model;
  ModelWork work;
  TracePrediction trace;
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
