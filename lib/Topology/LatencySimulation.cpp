//===- LatencySimulation.cpp - What a team needs for requests -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/LatencyModel.h"
#include "sandwich/Topology/ServingSimulation.h"

#include <algorithm>
#include <ranges>

using namespace sandwich;

double ModelWork::queryElements() const {
  return static_cast<double>(queryHeads) * static_cast<double>(headDim);
}

double ModelWork::keyValueElements() const {
  return 2 * static_cast<double>(keyValueHeads) * static_cast<double>(headDim);
}

double ModelWork::layerWeights() const {
  return static_cast<double>(hiddenSize) *
         (2 * queryElements() + keyValueElements() +
          3 * static_cast<double>(intermediateSize));
}

double ModelWork::logitWeights() const {
  return static_cast<double>(hiddenSize) * static_cast<double>(vocabulary);
}

StepWork StepWork::prompt(double tokens) {
  return {tokens, tokens * (tokens + 1) / 2, tokens, 1};
}

StepWork StepWork::decode(double sequences, double cachedPositions) {
  return {sequences, cachedPositions, cachedPositions, sequences};
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

namespace {
/// Seconds of one step. The first two grow linearly with the positions.
struct PartTimes {
  double computing;
  double reading;
  double waiting;
};
} // namespace

static PartTimes timesOf(const TeamSpeed &team, const ModelWork &work,
                         const StepWork &step) {
  const double layers = static_cast<double>(work.layers);
  // More ranks than heads of keys and values: each keeps a copy of one.
  const double copies =
      std::max(1.0, team.ranks / static_cast<double>(
                                     std::max<int64_t>(work.keyValueHeads, 1)));
  const double layerWeights =
      work.layerWeights() + (copies - 1) *
                                static_cast<double>(work.hiddenSize) *
                                work.keyValueElements();
  const double flops =
      2 * (step.tokens * layers * layerWeights +
           step.logitRows * work.logitWeights()) +
      4 * step.attendedPositions * layers * work.queryElements();
  const double bytes =
      (layers * layerWeights + work.logitWeights()) * work.bytesPerWeight +
      step.cachedPositions * layers * copies * work.keyValueElements() *
          work.bytesPerKeyValue;
  const double sums =
      step.tokens * static_cast<double>(work.hiddenSize) * sizeof(float);
  const double waiting =
      layers *
      (LatencyModel::barriersPerLayer * team.barrierSeconds +
       LatencyModel::allReducesPerLayer *
           (team.allReduceSeconds + sums * team.allReduceSecondsPerByte));
  return {flops / team.flopsPerSecond, bytes / team.bytesPerSecond, waiting};
}

double LatencyModel::stepSeconds(const TeamSpeed &team, const ModelWork &work,
                                 const StepWork &step) {
  const PartTimes times = timesOf(team, work, step);
  return (std::max(times.computing, times.reading) +
          unhiddenShare * std::min(times.computing, times.reading) +
          times.waiting) *
         team.interference;
}

namespace {
/// The steps that the latency model predicts.
class PredictedSteps final : public StepTimes {
public:
  PredictedSteps(const TeamSpeed &prefill, const TeamSpeed &decode,
                 const ModelWork &work)
      : prefill(prefill), decode(decode), work(work) {}

  double promptSeconds(int64_t tokens) const override {
    return LatencyModel::stepSeconds(
        prefill, work, StepWork::prompt(static_cast<double>(tokens)));
  }

  /// A sum over each of the steps: their times grow linearly but for one bend,
  /// where what is shorter becomes what is longer.
  double decodeSeconds(int64_t sequences, int64_t positions,
                       int64_t steps) const override {
    auto workAt = [&](double step) {
      return StepWork::decode(static_cast<double>(sequences),
                              static_cast<double>(positions) +
                                  static_cast<double>(sequences) * step);
    };
    auto computesLonger = [&](int64_t step) {
      const PartTimes times =
          timesOf(decode, work, workAt(static_cast<double>(step)));
      return times.computing > times.reading;
    };
    auto secondsBetween = [&](int64_t begin, int64_t end) {
      if (begin == end)
        return 0.0;
      const double middle = static_cast<double>(begin + end - 1) / 2;
      return static_cast<double>(end - begin) *
             LatencyModel::stepSeconds(decode, work, workAt(middle));
    };
    const int64_t bend = *std::ranges::partition_point(
        std::views::iota(int64_t{0}, steps), [&](int64_t step) {
          return computesLonger(step) == computesLonger(0);
        });
    return secondsBetween(0, bend) + secondsBetween(bend, steps);
  }

private:
  const TeamSpeed &prefill;
  const TeamSpeed &decode;
  const ModelWork &work;
};
} // namespace

double LatencyModel::meanLatency(const TeamSpeed &prefill,
                                 const TeamSpeed &decode, const ModelWork &work,
                                 const ServingTrace &trace, int64_t maxBatch) {
  return sandwich::meanLatency(PredictedSteps(prefill, decode, work), trace,
                               maxBatch);
}
