//===- StepLatency.cpp - What a team needs for a step ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <algorithm>
#include <cmath>

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

StepWork StepWork::piece(double tokens, double positions) {
  return {tokens, positions, positions / tokens + (tokens - 1) / 2, 1};
}

StepWork StepWork::decode(double sequences, double cachedPositions) {
  return {sequences, cachedPositions, cachedPositions, sequences};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {
/// Operations that read and compute at the same time, of all ranks together.
struct Overlapping {
  double flops = 0;
  double bytes = 0;
};
} // namespace

/// How often the weights of a matmul are read that has `columns` in each rank.
/// Columns are divided among the threads of a rank first; where there are too
/// few of them, threads divide the `rows` besides and read the same weights,
/// which hardly any cache spares the memory.
static double timesRead(const TeamSpeed &team, double columns, double rows) {
  // Fewer are no work for a thread: a panel of the widest packings.
  constexpr double leastColumns = 32;
  const double rowGroups = std::ceil(team.threads * leastColumns / columns);
  return std::max(1.0, std::min(rowGroups, rows));
}

/// The matmuls of all layers, where each rank has `copies` of the weights for
/// keys and values.
static Overlapping layersOf(const TeamSpeed &team, const ModelWork &work,
                            const StepWork &step, double copies) {
  const auto hidden = static_cast<double>(work.hiddenSize);
  const auto inner = static_cast<double>(work.intermediateSize);
  const auto layers = static_cast<double>(work.layers);
  const double queries = work.queryElements();
  const double ofAttention = queries + copies * work.keyValueElements();
  auto read = [&](double columns, double depth, double columnsOfRank) {
    return columns * depth * timesRead(team, columnsOfRank, step.tokens);
  };
  const double weights = read(ofAttention, hidden, ofAttention / team.ranks) +
                         read(hidden, queries, hidden) +
                         read(2 * inner, hidden, 2 * inner / team.ranks) +
                         read(hidden, inner, hidden);
  return {2 * step.tokens * layers *
              (work.layerWeights() +
               (copies - 1) * hidden * work.keyValueElements()),
          layers * weights * work.bytesPerWeight};
}

static Overlapping logitsOf(const TeamSpeed &team, const ModelWork &work,
                            const StepWork &step) {
  const double columns = static_cast<double>(work.vocabulary) / team.ranks;
  return {2 * step.logitRows * work.logitWeights(),
          work.logitWeights() * timesRead(team, columns, step.logitRows) *
              work.bytesPerWeight};
}

static Overlapping attentionOf(const TeamSpeed &team, const ModelWork &work,
                               const StepWork &step, double copies) {
  const auto layers = static_cast<double>(work.layers);
  return {4 * step.attendedPositions * layers * work.queryElements(),
          step.cachedPositions * layers * copies * work.keyValueElements() *
              work.bytesPerKeyValue * team.cacheSlowdown};
}

StepTime LatencyModel::stepTime(const TeamSpeed &team, const ModelWork &work,
                                const StepWork &step) {
  const double layers = static_cast<double>(work.layers);
  // More ranks than heads of keys and values: each keeps a copy of one.
  const double copies =
      std::max(1.0, team.ranks / static_cast<double>(
                                     std::max<int64_t>(work.keyValueHeads, 1)));
  // Sequences whose positions are divided among several threads for each head
  // need one barrier more, before their parts are added.
  const double heads =
      std::max(1.0, static_cast<double>(work.keyValueHeads) / team.ranks);
  const double barriers =
      barriersPerLayer +
      (team.threads > heads * std::max(step.logitRows, 1.0) ? 1 : 0);
  const double sums =
      step.tokens * static_cast<double>(work.hiddenSize) * sizeof(float);
  StepTime time;
  // All grow linearly with the positions. Barriers are between them, so that
  // none hides what another one reads.
  for (const Overlapping &operations :
       {layersOf(team, work, step, copies), logitsOf(team, work, step),
        attentionOf(team, work, step, copies)}) {
    double computing = operations.flops / team.flopsPerSecond;
    double reading = operations.bytes / team.bytesPerSecond;
    (computing < reading ? computing : reading) *= unhiddenShare;
    time.computing += computing;
    time.reading += reading;
  }
  time.collectives =
      layers * allReducesPerLayer *
      (team.allReduceSeconds + sums * team.allReduceSecondsPerByte);
  time.barriers = layers * barriers * team.barrierSeconds;
  time.wakeups = time.seconds() * (team.interference - 1);
  return time;
}

double LatencyModel::stepSeconds(const TeamSpeed &team, const ModelWork &work,
                                 const StepWork &step) {
  return stepTime(team, work, step).seconds();
}
