//===- StepCostPrediction.cpp - Step times that a model tells -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/StepCostPrediction.h"

#include "sandwich/Serving/Prediction/ModelledEvaluator.h"

#include <algorithm>

using namespace sandwich;

StepCosts sandwich::sampleStepCosts(const StepSeconds &seconds,
                                    const SchedulerLimits &limits) {
  StepCosts costs;
  constexpr uint64_t growth = 4;
  auto sizes = [](uint64_t most) {
    std::vector<uint64_t> all;
    for (uint64_t size = 1; size < most; size *= growth)
      all.push_back(size);
    all.push_back(most);
    return all;
  };
  // One token as a piece, and one of a sequence, behind so many.
  constexpr uint64_t behind = 1024;
  auto piece = [&](uint64_t computed, uint64_t tokens) {
    StepShape shape = {.phase = StepPhase::Prefill};
    shape.addPiece(computed, tokens);
    return seconds(shape);
  };
  auto decode = [&](uint64_t computed, uint64_t sequences) {
    StepShape shape;
    for (uint64_t i = 0; i < sequences; ++i)
      shape.addDecode(computed);
    return seconds(shape);
  };
  costs.secondsPerPromptPosition =
      std::max(0.0, (piece(behind, 1) - piece(0, 1)) / behind);
  costs.secondsPerDecodePosition =
      std::max(0.0, (decode(behind, 1) - decode(0, 1)) / behind);
  for (uint64_t tokens : sizes(limits.prefill.tokens)) {
    StepShape shape;
    shape.addPiece(0, tokens);
    const double whole = piece(0, tokens);
    costs.prefill.push_back(
        {tokens, std::max(whole / 2,
                          whole - static_cast<double>(shape.promptPositions) *
                                      costs.secondsPerPromptPosition)});
  }
  for (uint64_t sequences : sizes(limits.decode.tokens))
    costs.decode.push_back({sequences, decode(0, sequences)});
  return costs;
}

Result<StepCosts> sandwich::predictStepCosts(const LatencyModel &model,
                                             const ModelWork &work,
                                             const PlanCores &cores,
                                             const SchedulerLimits &limits) {
  SANDWICH_ASSIGN_OR_RETURN(LatencyModel::RankMemories memories,
                            model.memoriesOf(cores.prefill));
  SANDWICH_ASSIGN_OR_RETURN(TeamSpeed prefill,
                            model.speedOf(cores.prefill, memories));
  SANDWICH_ASSIGN_OR_RETURN(TeamSpeed decode,
                            model.speedOf(cores.decode, memories));
  return sampleStepCosts(
      [&](const StepShape &shape) {
        return predictStep(prefill, decode, work, shape);
      },
      limits);
}
