//===- TracePrediction.cpp - How long requests will take ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/TracePrediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

using namespace sandwich;

static constexpr double infinite = std::numeric_limits<double>::infinity();

Result<TracePrediction>
TracePrediction::create(ServingTrace trace,
                        const TracePredictionOptions &options) {
  if (options.maxBatch < 1 || options.stepTokens < 1)
    return makeError(ErrorKind::InvalidArgument, "steps of ",
                     options.stepTokens, " tokens and ", options.maxBatch,
                     " sequences hold nothing");
  const auto batch = static_cast<uint64_t>(options.maxBatch);
  const auto stepTokens = static_cast<uint64_t>(options.stepTokens);
  uint64_t longest = 1, allTokens = 0, mostBlocks = 1;
  for (const ServingRequest &request : trace) {
    const auto tokens = static_cast<uint64_t>(
        request.promptTokens + std::max<int64_t>(1, request.outputTokens));
    longest = std::max(longest, tokens);
    allTokens += tokens;
    mostBlocks = std::max(mostBlocks, BlockPool::blocksFor(tokens));
  }
  SchedulerOptions scheduling;
  // A prompt comes in beside all streams but one.
  scheduling.limits.prefill = {.tokens = std::max(stepTokens, batch),
                               .sequences = batch,
                               .logitRows = batch};
  scheduling.limits.decode = {
      .tokens = batch, .sequences = batch, .logitRows = batch};
  scheduling.limits.contextLength = longest;
  scheduling.maxWaitingRequests = trace.size() + 1;
  scheduling.maxWaitingTokens = std::max(allTokens, longest);
  const uint64_t blocks =
      mostBlocks * std::min<uint64_t>(batch, std::max<size_t>(1, trace.size()));
  TracePrediction prediction(std::move(trace), scheduling, blocks);
  // What is wrong with the limits shows here in any case.
  SANDWICH_RETURN_IF_ERROR(prediction.serve(
      assumedStepCosts(), [](const StepShape &) { return 1.0; },
      [&](const StepRun &run) { prediction.runs.push_back(run); }));
  const ServingTrace &requests = prediction.trace;
  if (!requests.empty() && requests.front().arrivalSeconds)
    prediction.runs.clear();
  return prediction;
}

Result<std::vector<double>> TracePrediction::serve(
    const StepCosts &costs, const StepSeconds &seconds,
    const std::function<void(const StepRun &run)> &onRun) const {
  SANDWICH_ASSIGN_OR_RETURN(StepCostModel model, StepCostModel::create(costs));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<BlockPool> pool,
      BlockPool::create(blocks, {.prefixCache = false,
                                 .hashKey = std::array<unsigned char, 16>{}}));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Scheduler> scheduler,
      Scheduler::create(*pool, scheduling, std::move(model)));
  return simulateLatencies(*scheduler, trace, seconds, onRun);
}

StepCosts TracePrediction::costsOf(const StepSeconds &seconds) const {
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
  for (uint64_t tokens : sizes(scheduling.limits.prefill.tokens)) {
    StepShape shape;
    shape.addPiece(0, tokens);
    const double whole = piece(0, tokens);
    costs.prefill.push_back(
        {tokens, std::max(whole / 2,
                          whole - static_cast<double>(shape.promptPositions) *
                                      costs.secondsPerPromptPosition)});
  }
  for (uint64_t sequences : sizes(scheduling.limits.decode.tokens))
    costs.decode.push_back({sequences, decode(0, sequences)});
  return costs;
}

double TracePrediction::meanLatency(const StepSeconds &seconds) const {
  if (trace.empty())
    return 0;
  double total = 0;
  if (trace.front().arrivalSeconds) {
    // Error: times that no scheduler could go by.
    Result<std::vector<double>> latencies = serve(costsOf(seconds), seconds);
    if (!latencies)
      return infinite;
    for (double each : *latencies)
      total += each;
  }
  for (const StepRun &run : runs)
    total += runSeconds(run, run.count, seconds);
  return std::isfinite(total) ? total / static_cast<double>(trace.size())
                              : infinite;
}

std::vector<StepRun>
TracePrediction::stepsOf(const StepSeconds &seconds) const {
  if (trace.empty() || !trace.front().arrivalSeconds)
    return runs;
  std::vector<StepRun> steps;
  if (!serve(costsOf(seconds), seconds,
             [&](const StepRun &run) { steps.push_back(run); }))
    return {};
  return steps;
}
