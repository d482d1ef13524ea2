//===- LatencyModel.cpp - How long a machine serves a trace ---------------===//
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
#include <set>

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
// The machine
//===----------------------------------------------------------------------===//

Status LatencyModel::addParts(const MachineNode &node,
                              std::vector<size_t> &around) {
  Part part{node.kind, {}};
  if (auto known = parameters.parts.find(node.kind);
      known != parameters.parts.end())
    part.parameters = known->second;
  if (node.kind == "numa" && node.index >= 0)
    if (auto memory =
            parameters.memories.find(static_cast<unsigned>(node.index));
        memory != parameters.memories.end())
      part.parameters.bytesPerSecond = memory->second;
  // Hardware threads of a core share what it can read.
  if (node.kind == "core")
    part.parameters.bytesPerSecond =
        std::min(part.parameters.bytesPerSecond, parameters.coreBytesPerSecond);
  around.push_back(parts.size());
  parts.push_back(part);
  if (node.kind == "cpu") {
    std::vector<size_t> path(around.rbegin(), around.rend());
    if (node.index < 0 ||
        !paths.emplace(static_cast<unsigned>(node.index), path).second)
      return makeError("CPU ", node.index, " is twice in the topology");
  }
  for (const MachineNode &child : node.children)
    SANDWICH_RETURN_IF_ERROR(addParts(child, around));
  around.pop_back();
  return {};
}

Status LatencyModel::addLatentGroups(const LatentGroup &group) {
  // The cores of each part of the kind, in the order of their first CPUs; a CPU
  // outside any core is one.
  std::map<size_t, std::map<size_t, std::vector<unsigned>>> coresInside;
  for (const auto &[cpu, path] : paths) {
    auto isKind = [&](const std::string &kind) {
      return std::ranges::find(path, kind,
                               [&](size_t part) { return parts[part].kind; });
    };
    auto inside = isKind(group.inside);
    if (inside == path.end())
      return makeError("the topology has no ", group.inside, " around CPU ",
                       cpu, ", inside which '", group.name, "' groups cores");
    auto core = isKind("core");
    // Parts are numbered in the order of the tree.
    coresInside[*inside][core == path.end() ? path.front() : *core].push_back(
        cpu);
  }
  const size_t block = size_t{group.cores} * group.stride;
  for (const auto &[inside, cores] : coresInside) {
    if (cores.size() % block != 0)
      return makeError("'", group.name, "': ", cores.size(), " cores of a ",
                       group.inside, " cannot be grouped ", group.cores,
                       " each with stride ", group.stride);
    const size_t firstPart = parts.size();
    const size_t groups = cores.size() / group.cores;
    parts.insert(parts.end(), groups, Part{group.name, group.parameters});
    size_t position = 0;
    for (const auto &[core, members] : cores) {
      size_t number = position / block * group.stride + position % group.stride;
      for (unsigned cpu : members) {
        std::vector<size_t> &path = paths[cpu];
        path.insert(std::ranges::find(path, inside), firstPart + number);
      }
      ++position;
    }
  }
  return {};
}

Result<LatencyModel> LatencyModel::create(const MachineNode &machine,
                                          const MachineParameters &parameters) {
  LatencyModel model;
  model.parameters = parameters;
  std::vector<size_t> around;
  SANDWICH_RETURN_IF_ERROR(model.addParts(machine, around));
  if (model.paths.empty())
    return makeError("the topology has no CPUs");
  for (const LatentGroup &group : parameters.latent)
    SANDWICH_RETURN_IF_ERROR(model.addLatentGroups(group));
  return model;
}

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

double LatencyModel::handoffSeconds(const std::vector<RankCpus> &ranks) const {
  // The smallest part that all are in.
  const std::vector<size_t> &path = paths.at(ranks.front().front());
  size_t smallest = 0;
  for (const RankCpus &rank : ranks)
    for (unsigned cpu : rank) {
      const std::vector<size_t> &other = paths.at(cpu);
      while (std::ranges::find(other, path[smallest]) == other.end())
        ++smallest;
    }
  for (; smallest < path.size(); ++smallest)
    if (double seconds = parts[path[smallest]].parameters.handoffSeconds;
        seconds > 0)
      return seconds;
  return 0;
}

/// What a part gives to those who ask it for `asked` of its `has`.
static double given(double has, double asked) {
  if (asked <= has)
    return has;
  return has * (1 - LatencyModel::contentionLoss * (1 - has / asked));
}

Result<TeamSpeed>
LatencyModel::speedOf(const std::vector<RankCpus> &ranks) const {
  std::vector<unsigned> active(parts.size());
  std::set<unsigned> used;
  for (const RankCpus &rank : ranks) {
    if (rank.empty())
      return makeError("a rank has no CPU");
    for (unsigned cpu : rank) {
      auto path = paths.find(cpu);
      if (path == paths.end())
        return makeError("CPU ", cpu, " is not in the topology");
      if (!used.insert(cpu).second)
        return makeError("CPU ", cpu, " is used twice");
      for (size_t part : path->second)
        ++active[part];
    }
  }
  if (ranks.empty())
    return makeError("there is no rank");

  const double ranksCount = static_cast<double>(ranks.size());
  TeamSpeed team;
  team.flopsPerSecond = std::numeric_limits<double>::infinity();
  team.bytesPerSecond = std::numeric_limits<double>::infinity();
  double leastReading = std::numeric_limits<double>::infinity();
  for (const RankCpus &rank : ranks) {
    const double threads = static_cast<double>(rank.size());
    // Weights of a rank lie evenly in the memories of its cores.
    std::set<size_t> memories;
    for (unsigned cpu : rank)
      for (size_t part : paths.at(cpu))
        if (parts[part].kind == "numa")
          memories.insert(part);
    double remote =
        memories.empty() ? 0 : 1 - 1 / static_cast<double>(memories.size());
    const double alone = parameters.coreBytesPerSecond /
                         (1 - remote + remote / parameters.remoteShare);
    double slowestReading = alone;
    double slowestComputing = parameters.coreFlopsPerSecond;
    for (unsigned cpu : rank)
      for (size_t part : paths.at(cpu)) {
        const double readers = active[part];
        const double has = parts[part].parameters.bytesPerSecond;
        slowestReading =
            std::min(slowestReading, given(has, readers * alone) / readers);
        if (parts[part].kind == "core")
          slowestComputing = std::min(slowestComputing,
                                      parameters.coreFlopsPerSecond / readers);
      }
    team.flopsPerSecond =
        std::min(team.flopsPerSecond, ranksCount * threads * slowestComputing);
    team.bytesPerSecond =
        std::min(team.bytesPerSecond, ranksCount * threads * slowestReading);
    leastReading = std::min(leastReading, threads * slowestReading);
    team.barrierSeconds =
        std::max(team.barrierSeconds,
                 threads > 1 ? threads * handoffSeconds({rank}) : 0);
  }
  if (ranks.size() > 1) {
    team.allReduceSeconds = 2 * ranksCount * handoffSeconds(ranks);
    const double others = 2 * (ranksCount - 1);
    team.allReduceSecondsPerByte = std::max(others / ranksCount / leastReading,
                                            others / team.bytesPerSecond) /
                                   parameters.remoteShare;
  }
  if (used.size() == paths.size())
    team.interference += static_cast<double>(used.size()) *
                         parameters.wakeupsPerCorePerSecond *
                         parameters.wakeupSeconds;
  return team;
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

double LatencyModel::stepSeconds(const TeamSpeed &team, const ModelWork &work,
                                 const StepWork &step) {
  const double layers = static_cast<double>(work.layers);
  const double flops =
      2 * (step.tokens * layers * work.layerWeights() +
           step.logitRows * work.logitWeights()) +
      4 * step.attendedPositions * layers * work.queryElements();
  const double bytes = (layers * work.layerWeights() + work.logitWeights()) *
                           work.bytesPerWeight +
                       step.cachedPositions * layers * work.keyValueElements() *
                           work.bytesPerKeyValue;
  const double computing = flops / team.flopsPerSecond;
  const double reading = bytes / team.bytesPerSecond;
  const double sums =
      step.tokens * static_cast<double>(work.hiddenSize) * sizeof(float);
  const double waiting =
      layers * (barriersPerLayer * team.barrierSeconds +
                allReducesPerLayer * (team.allReduceSeconds +
                                      sums * team.allReduceSecondsPerByte));
  return (std::max(computing, reading) +
          unhiddenShare * std::min(computing, reading) + waiting) *
         team.interference;
}

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
    // As many steps as nobody ends or comes in; their time grows with the
    // positions, so the middle one stands for all.
    int64_t steps = std::ranges::min(generating, {}, &Sequence::left).left;
    const double sequences = static_cast<double>(generating.size());
    double positions = 0;
    for (const Sequence &sequence : generating)
      positions += static_cast<double>(sequence.position);
    auto timeOf = [&](int64_t count) {
      double middle = static_cast<double>(count - 1) / 2;
      return static_cast<double>(count) *
             stepSeconds(
                 decode, work,
                 StepWork::decode(sequences, positions + sequences * middle));
    };
    if (next < trace.size() && trace[next].arrivalSeconds &&
        static_cast<int64_t>(generating.size()) < maxBatch) {
      const double until = *trace[next].arrivalSeconds - now;
      if (timeOf(steps) > until)
        steps = std::clamp<int64_t>(
            static_cast<int64_t>(std::ceil(until / timeOf(1))), 1, steps);
    }
    now += timeOf(steps);
    for (Sequence &sequence : generating) {
      sequence.position += steps;
      sequence.left -= steps;
      if (sequence.left == 0)
        total += now - sequence.arrival;
    }
    std::erase_if(generating,
                  [](const Sequence &sequence) { return sequence.left == 0; });
  }
  return trace.empty() ? 0 : total / static_cast<double>(trace.size());
}
