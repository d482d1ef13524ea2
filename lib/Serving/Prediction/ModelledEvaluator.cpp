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
                                     TracePrediction trace,
                                     std::optional<ModelMemoryOptions> memory,
                                     std::vector<OtherInstance> others)
    : model(std::move(model)), work(work), trace(std::move(trace)),
      memory(memory), others(std::move(others)) {}

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

Status ModelledEvaluator::placeRanks(const std::vector<RankCpus> &ranks,
                                     Prefill &prefill) {
  const std::vector<RankCpus> all = allBusy(ranks);
  if (!memory || ranks.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(prefill.memories, model.memoriesOf(all));
    return {};
  }
  const RankMemory needs = memoryOfRank(work, *memory, ranks.size());
  SANDWICH_ASSIGN_OR_RETURN(LatencyModel::MemoryPlacement placement,
                            model.place(all, bytesOfRanks(needs, all.size())));
  prefill.memories = std::move(placement.memories);
  prefill.memoryNodes = std::move(placement.nodes);
  prefill.memoryNodes.resize(ranks.size());
  if (placement.shortage) {
    prefill.shortage = describe(*placement.shortage, needs, all.size());
    const double lacking =
        placement.shortage->needed - placement.shortage->available;
    if (lacking < leastLacking) {
      leastLacking = lacking;
      closest = prefill.shortage;
    }
  }
  return {};
}

std::vector<RankCpus>
ModelledEvaluator::allBusy(const std::vector<RankCpus> &ranks) const {
  std::vector<RankCpus> all = ranks;
  if (trace.servesAtOnce())
    for (const OtherInstance &other : others)
      for (RankCpus &rank : other(ranks))
        all.push_back(std::move(rank));
  return all;
}

Result<TeamSpeed>
ModelledEvaluator::speedOf(const std::vector<RankCpus> &ranks,
                           const LatencyModel::RankMemories &memories) const {
  const std::vector<RankCpus> all = allBusy(ranks);
  SANDWICH_ASSIGN_OR_RETURN(TeamSpeed everybody, model.speedOf(all, memories));
  if (all.size() == ranks.size())
    return everybody;
  // The ranks of an instance wait for each other only.
  LatencyModel::RankMemories own = memories;
  own.weights.resize(ranks.size());
  own.cache.resize(ranks.size());
  SANDWICH_ASSIGN_OR_RETURN(TeamSpeed team, model.speedOf(ranks, own));
  const double share =
      static_cast<double>(ranks.size()) / static_cast<double>(all.size());
  team.flopsPerSecond = share * everybody.flopsPerSecond;
  team.bytesPerSecond = share * everybody.bytesPerSecond;
  team.cacheSlowdown = everybody.cacheSlowdown;
  team.interference = everybody.interference;
  return team;
}

Result<double>
ModelledEvaluator::stepMilliseconds(const ServiceConfiguration &configuration,
                                    const StepShape &shape) {
  SANDWICH_ASSIGN_OR_RETURN(const Prefill *prefill,
                            prefillOf(configuration.prefillCores));
  SANDWICH_ASSIGN_OR_RETURN(
      TeamSpeed decode, speedOf(configuration.decodeCores, prefill->memories));
  return millisecondsPerSecond *
         predictStep(prefill->speed, decode, work, shape);
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
    SANDWICH_ASSIGN_OR_RETURN(prefill.speed, speedOf(ranks, prefill.memories));
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
      TeamSpeed decode, speedOf(configuration.decodeCores, prefill->memories));
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
  Result<TeamSpeed> decode = speedOf(configuration.decodeCores, memories);
  Result<ReadingShares> prefillReading =
      model.readingShares(allBusy(configuration.prefillCores), memories);
  Result<ReadingShares> decodeReading =
      model.readingShares(allBusy(configuration.decodeCores), memories);
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
