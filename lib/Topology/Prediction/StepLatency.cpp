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

/// Weights that all ranks read in a step, of which each has `copies` of those
/// for keys and values. Columns of a matmul are divided among the threads of a
/// rank first; where there are too few of them, threads divide the rows besides
/// and read the same weights, which hardly any cache spares the memory.
static double readWeights(const TeamSpeed &team, const ModelWork &work,
                          const StepWork &step, double copies) {
  // Fewer are no work for a thread: a panel of the widest packings.
  constexpr double leastColumns = 32;
  const auto hidden = static_cast<double>(work.hiddenSize);
  const auto inner = static_cast<double>(work.intermediateSize);
  auto weights = [&](double columns, double depth, double columnsOfRank,
                     double rows) {
    const double rowGroups =
        std::ceil(team.threads * leastColumns / columnsOfRank);
    return columns * depth * std::max(1.0, std::min(rowGroups, rows));
  };
  auto divided = [&](double columns, double depth, double rows) {
    return weights(columns, depth, columns / team.ranks, rows);
  };
  const double queries = work.queryElements();
  const double tokens = step.tokens;
  return static_cast<double>(work.layers) *
             (divided(queries + copies * work.keyValueElements(), hidden,
                      tokens) +
              weights(hidden, queries, hidden, tokens) +
              divided(2 * inner, hidden, tokens) +
              weights(hidden, inner, hidden, tokens)) +
         divided(static_cast<double>(work.vocabulary), hidden, step.logitRows);
}

StepTime LatencyModel::stepTime(const TeamSpeed &team, const ModelWork &work,
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
  // Sequences whose positions are divided among several threads for each head
  // need one barrier more, before their parts are added.
  const double heads =
      std::max(1.0, static_cast<double>(work.keyValueHeads) / team.ranks);
  const double barriers =
      barriersPerLayer +
      (team.threads > heads * std::max(step.logitRows, 1.0) ? 1 : 0);
  const double flops =
      2 * (step.tokens * layers * layerWeights +
           step.logitRows * work.logitWeights()) +
      4 * step.attendedPositions * layers * work.queryElements();
  const double bytes =
      readWeights(team, work, step, copies) * work.bytesPerWeight +
      step.cachedPositions * layers * copies * work.keyValueElements() *
          work.bytesPerKeyValue * team.cacheSlowdown;
  const double sums =
      step.tokens * static_cast<double>(work.hiddenSize) * sizeof(float);
  StepTime time;
  // Both grow linearly with the positions.
  time.computing = flops / team.flopsPerSecond;
  time.reading = bytes / team.bytesPerSecond;
  (time.computing < time.reading ? time.computing : time.reading) *=
      unhiddenShare;
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
