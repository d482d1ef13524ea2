//===- ModelledEvaluator.cpp - Configurations judged by the model ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/ModelledEvaluator.h"

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
                                     TracePrediction trace)
    : model(std::move(model)), work(work), trace(std::move(trace)) {}

double sandwich::predictStep(const TeamSpeed &prefill, const TeamSpeed &decode,
                             const ModelWork &work, const StepShape &shape) {
  StepWork step;
  if (shape.promptTokens > 0)
    step = StepWork::piece(static_cast<double>(shape.promptTokens),
                           static_cast<double>(shape.promptPositions));
  const StepWork streams =
      StepWork::decode(static_cast<double>(shape.decodeSequences),
                       static_cast<double>(shape.decodePositions));
  step.tokens += streams.tokens;
  step.attendedPositions += streams.attendedPositions;
  step.cachedPositions += streams.cachedPositions;
  step.logitRows += streams.logitRows;
  return LatencyModel::stepSeconds(
      shape.phase == StepPhase::Prefill ? prefill : decode, work, step);
}

Result<const ModelledEvaluator::Prefill *>
ModelledEvaluator::prefillOf(const std::vector<RankCpus> &ranks) {
  auto known = prefills.find(ranks);
  if (known == prefills.end()) {
    Prefill prefill;
    SANDWICH_ASSIGN_OR_RETURN(prefill.memories, model.memoriesOf(ranks));
    SANDWICH_ASSIGN_OR_RETURN(prefill.speed,
                              model.speedOf(ranks, prefill.memories));
    known = prefills.emplace(ranks, std::move(prefill)).first;
  }
  return &known->second;
}

Result<double>
ModelledEvaluator::predict(const ServiceConfiguration &configuration) {
  SANDWICH_ASSIGN_OR_RETURN(const Prefill *prefill,
                            prefillOf(configuration.prefillCores));
  // Weights stay where the process has them, whichever of its cores sleep.
  SANDWICH_ASSIGN_OR_RETURN(
      TeamSpeed decode,
      model.speedOf(configuration.decodeCores, prefill->memories));
  const auto [known, isNew] =
      latencies.try_emplace({prefill->speed, decode}, 0.0);
  if (isNew)
    known->second = trace.cost([&](const StepShape &shape) {
      return predictStep(prefill->speed, decode, work, shape);
    });
  constexpr double millisecondsPerSecond = 1e3;
  return millisecondsPerSecond * known->second;
}
