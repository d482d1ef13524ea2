//===- LatencySimulation.cpp - What a team needs for requests -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/LatencyModel.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
struct StepTimes {
  double computing;
  double reading;
  double waiting;
};
} // namespace

static StepTimes timesOf(const TeamSpeed &team, const ModelWork &work,
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
  const StepTimes times = timesOf(team, work, step);
  return (std::max(times.computing, times.reading) +
          unhiddenShare * std::min(times.computing, times.reading) +
          times.waiting) *
         team.interference;
}

namespace {
/// Steps in a row of the same sequences, each with a position more in each
/// sequence than the one before.
class DecodeSteps {
public:
  DecodeSteps(const TeamSpeed &team, const ModelWork &work, double sequences,
              double positions)
      : team(team), work(work), sequences(sequences), positions(positions) {}

  /// The time of the first `count` steps. It is a sum over each of them: their
  /// times grow linearly but for one bend, where what is shorter becomes what
  /// is longer.
  double seconds(int64_t count) const {
    const int64_t bend = firstStep(count, [&](int64_t step) {
      return computesLonger(step) != computesLonger(0);
    });
    return secondsBetween(0, bend) + secondsBetween(bend, count);
  }

  /// The fewest of `most` steps after which it is `arrival` or later, if the
  /// first begins at `now`; `most` if there are none.
  int64_t stepsUntil(double arrival, double now, int64_t most) const {
    const int64_t enough = firstStep(
        most, [&](int64_t step) { return now + seconds(step + 1) >= arrival; });
    return std::min(enough + 1, most);
  }

private:
  /// The first of `count` steps that `holds`, as then all later ones do; or
  /// `count`.
  template <typename Holds>
  static int64_t firstStep(int64_t count, const Holds &holds) {
    if (count == 0 || !holds(count - 1))
      return count;
    int64_t low = 0;
    for (int64_t high = count - 1; low < high;) {
      const int64_t middle = low + (high - low) / 2;
      if (holds(middle))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  StepWork workAt(double step) const {
    return StepWork::decode(sequences, positions + sequences * step);
  }
  bool computesLonger(int64_t step) const {
    const StepTimes times =
        timesOf(team, work, workAt(static_cast<double>(step)));
    return times.computing > times.reading;
  }
  double secondsBetween(int64_t begin, int64_t end) const {
    if (begin == end)
      return 0;
    const double middle = static_cast<double>(begin + end - 1) / 2;
    return static_cast<double>(end - begin) *
           LatencyModel::stepSeconds(team, work, workAt(middle));
  }

  const TeamSpeed &team;
  const ModelWork &work;
  double sequences;
  double positions;
};
} // namespace

double LatencyModel::meanLatency(const TeamSpeed &prefill,
                                 const TeamSpeed &decode, const ModelWork &work,
                                 const ServingTrace &trace, int64_t maxBatch) {
  struct Sequence {
    double arrival;
    int64_t position;
    int64_t left;
  };
  std::vector<Sequence> generating;
  double now = 0;
  double total = 0;
  size_t next = 0;
  while (next < trace.size() || !generating.empty()) {
    if (!std::isfinite(now))
      return std::numeric_limits<double>::infinity();
    // Without arrival times, a request comes when nothing is left to do.
    auto waiting = [&] {
      if (next == trace.size() ||
          static_cast<int64_t>(generating.size()) >= maxBatch)
        return false;
      const std::optional<double> &arrival = trace[next].arrivalSeconds;
      return arrival ? *arrival <= now : generating.empty();
    };
    if (generating.empty() && trace[next].arrivalSeconds)
      now = std::max(now, *trace[next].arrivalSeconds);
    while (waiting()) {
      const ServingRequest &request = trace[next++];
      double arrival = request.arrivalSeconds.value_or(now);
      now += stepSeconds(
          prefill, work,
          StepWork::prompt(static_cast<double>(request.promptTokens)));
      // The prompt's last logits are the first token.
      if (request.outputTokens > 1)
        generating.push_back(
            {arrival, request.promptTokens + 1, request.outputTokens - 1});
      else
        total += now - arrival;
    }
    if (generating.empty())
      continue;
    // As many steps as nobody ends or comes in.
    int64_t count = std::ranges::min(generating, {}, &Sequence::left).left;
    double positions = 0;
    for (const Sequence &sequence : generating)
      positions += static_cast<double>(sequence.position);
    const DecodeSteps steps(decode, work,
                            static_cast<double>(generating.size()), positions);
    if (next < trace.size() && trace[next].arrivalSeconds &&
        static_cast<int64_t>(generating.size()) < maxBatch)
      count = steps.stepsUntil(*trace[next].arrivalSeconds, now, count);
    now += steps.seconds(count);
    for (Sequence &sequence : generating) {
      sequence.position += count;
      sequence.left -= count;
      if (sequence.left == 0)
        total += now - sequence.arrival;
    }
    std::erase_if(generating,
                  [](const Sequence &sequence) { return sequence.left == 0; });
  }
  return trace.empty() ? 0 : total / static_cast<double>(trace.size());
}
