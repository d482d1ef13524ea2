//===- ModelledEvaluator.cpp - Configurations judged by the model ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/ModelledEvaluator.h"

using namespace sandwich;

static constexpr double millisecondsPerSecond = 1e3;

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

StepTime sandwich::predictStepTime(const TeamSpeed &prefill,
                                   const TeamSpeed &decode,
                                   const ModelWork &work,
                                   const StepShape &shape) {
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
  return LatencyModel::stepTime(
      shape.phase == StepPhase::Prefill ? prefill : decode, work, step);
}

double sandwich::predictStep(const TeamSpeed &prefill, const TeamSpeed &decode,
                             const ModelWork &work, const StepShape &shape) {
  return predictStepTime(prefill, decode, work, shape).seconds();
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
  return millisecondsPerSecond * known->second;
}

PredictedTime
ModelledEvaluator::explain(const ServiceConfiguration &configuration) {
  // Errors: what `predict` refuses.
  Result<const Prefill *> prefill = prefillOf(configuration.prefillCores);
  if (!prefill)
    return {};
  const LatencyModel::RankMemories &memories = (*prefill)->memories;
  Result<TeamSpeed> decode = model.speedOf(configuration.decodeCores, memories);
  Result<ReadingShares> prefillReading =
      model.readingShares(configuration.prefillCores, memories);
  Result<ReadingShares> decodeReading =
      model.readingShares(configuration.decodeCores, memories);
  if (!decode || !prefillReading || !decodeReading)
    return {};
  auto timeOf = [&](const StepShape &shape) {
    return predictStepTime((*prefill)->speed, *decode, work, shape);
  };
  const std::vector<StepRun> steps = trace.stepsOf(
      [&](const StepShape &shape) { return timeOf(shape).seconds(); });
  PredictedTime time;
  const double scale =
      millisecondsPerSecond / static_cast<double>(trace.requests());
  for (const StepRun &run : steps) {
    const bool prompts = run.first.phase == StepPhase::Prefill;
    TimeParts &parts = prompts ? time.prefill : time.decode;
    auto sum = [&](double StepTime::*part) {
      return scale * runSeconds(run, run.count, [&](const StepShape &shape) {
               return timeOf(shape).*part;
             });
    };
    auto add = [&](const std::string &name, double milliseconds) {
      if (milliseconds > 0)
        parts[name] += milliseconds;
    };
    add("computing", sum(&StepTime::computing));
    add("collectives", sum(&StepTime::collectives));
    add("barriers", sum(&StepTime::barriers));
    add("wake-ups", sum(&StepTime::wakeups));
    const double reading = sum(&StepTime::reading);
    for (const auto &[name, share] : prompts ? *prefillReading : *decodeReading)
      add(name, share * reading);
  }
  return time;
}
