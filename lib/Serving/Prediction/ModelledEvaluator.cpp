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
                                     TracePrediction trace,
                                     std::optional<ModelMemoryOptions> memory)
    : model(std::move(model)), work(work), trace(std::move(trace)),
      memory(memory) {}

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

Status ModelledEvaluator::placeRanks(const std::vector<RankCpus> &ranks,
                                     Prefill &prefill) {
  if (!memory || ranks.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(prefill.memories, model.memoriesOf(ranks));
    return {};
  }
  const RankMemory needs = memoryOfRank(work, *memory, ranks.size());
  SANDWICH_ASSIGN_OR_RETURN(
      LatencyModel::MemoryPlacement placement,
      model.place(ranks, bytesOfRanks(needs, ranks.size())));
  prefill.memories = std::move(placement.memories);
  prefill.memoryNodes = std::move(placement.nodes);
  if (placement.shortage) {
    prefill.shortage = describe(*placement.shortage, needs, ranks.size());
    const double lacking =
        placement.shortage->needed - placement.shortage->available;
    if (lacking < leastLacking) {
      leastLacking = lacking;
      closest = prefill.shortage;
    }
  }
  return {};
}

std::optional<std::string>
ModelledEvaluator::whyNot(const ServiceConfiguration &configuration) {
  Result<const Prefill *> prefill = prefillOf(configuration.prefillCores);
  return prefill ? (*prefill)->shortage : std::nullopt;
}

Result<std::vector<std::vector<unsigned>>>
ModelledEvaluator::memoryNodesOf(const ServiceConfiguration &configuration) {
  SANDWICH_ASSIGN_OR_RETURN(const Prefill *prefill,
                            prefillOf(configuration.prefillCores));
  return prefill->memoryNodes;
}

Result<const ModelledEvaluator::Prefill *>
ModelledEvaluator::prefillOf(const std::vector<RankCpus> &ranks) {
  auto known = prefills.find(ranks);
  if (known == prefills.end()) {
    Prefill prefill;
    SANDWICH_RETURN_IF_ERROR(placeRanks(ranks, prefill));
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
  if (prefill->shortage)
    return std::numeric_limits<double>::infinity();
  // Weights stay where the process has them, whichever of its cores sleep.
  SANDWICH_ASSIGN_OR_RETURN(
      TeamSpeed decode,
      model.speedOf(configuration.decodeCores, prefill->memories));
  const auto [known, isNew] =
      latencies.try_emplace({prefill->speed, decode}, 0.0);
  if (isNew)
    known->second = trace.meanLatency([&](const StepShape &shape) {
      return predictStep(prefill->speed, decode, work, shape);
    });
  constexpr double millisecondsPerSecond = 1e3;
  return millisecondsPerSecond * known->second;
}
