//===- ModelledEvaluator.cpp - Configurations judged by the model ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/ModelledEvaluator.h"

using namespace sandwich;

OperatorLimits sandwich::limitsOf(const ModelWork &work) {
  OperatorLimits limits;
  limits.queryHeads = static_cast<unsigned>(work.queryHeads);
  limits.keyValueHeads = static_cast<unsigned>(work.keyValueHeads);
  limits.intermediateSize = static_cast<unsigned>(work.intermediateSize);
  limits.vocabulary = static_cast<unsigned>(work.vocabulary);
  return limits;
}

ModelledEvaluator::ModelledEvaluator(LatencyModel model, ModelWork work,
                                     ServingTrace trace)
    : model(std::move(model)), work(work), trace(std::move(trace)) {}

Result<TeamSpeed>
ModelledEvaluator::prefillSpeed(const std::vector<RankCpus> &ranks) {
  auto known = prefillSpeeds.find(ranks);
  if (known != prefillSpeeds.end())
    return known->second;
  SANDWICH_ASSIGN_OR_RETURN(TeamSpeed speed, model.speedOf(ranks));
  prefillSpeeds.emplace(ranks, speed);
  return speed;
}

Result<double>
ModelledEvaluator::predict(const ServiceConfiguration &configuration) {
  SANDWICH_ASSIGN_OR_RETURN(TeamSpeed prefill,
                            prefillSpeed(configuration.prefillCores));
  SANDWICH_ASSIGN_OR_RETURN(TeamSpeed decode,
                            model.speedOf(configuration.decodeCores));
  constexpr double millisecondsPerSecond = 1e3;
  return millisecondsPerSecond *
         LatencyModel::meanLatency(prefill, decode, work, trace);
}
