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
#include <numeric>
#include <ranges>
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
  Part part{node.kind, {}, {}, 0};
  if (auto known = parameters.parts.find(node.kind);
      known != parameters.parts.end())
    part.parameters = known->second;
  if (node.kind == "numa" && node.bandwidth > 0)
    part.parameters.bytesPerSecond = static_cast<double>(node.bandwidth);
  if (node.kind == "numa" && node.index >= 0)
    if (auto memory =
            parameters.memories.find(static_cast<unsigned>(node.index));
        memory != parameters.memories.end())
      part.parameters.bytesPerSecond = memory->second;
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
    auto findKind = [&](const std::string &kind) {
      return std::ranges::find(path, kind,
                               [&](size_t part) { return parts[part].kind; });
    };
    auto inside = findKind(group.inside);
    if (inside == path.end())
      return makeError("the topology has no ", group.inside, " around CPU ",
                       cpu, ", inside which '", group.name, "' groups cores");
    auto core = findKind("core");
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
    parts.insert(parts.end(), groups,
                 Part{group.name, group.parameters, {}, 0});
    std::vector<std::vector<unsigned>> members(groups);
    size_t position = 0;
    for (const auto &[core, coreCpus] : cores) {
      std::vector<unsigned> &own =
          members[position / block * group.stride + position % group.stride];
      own.insert(own.end(), coreCpus.begin(), coreCpus.end());
      ++position;
    }
    for (size_t number = 0; number < groups; ++number)
      SANDWICH_RETURN_IF_ERROR(putAround(members[number], firstPart + number));
  }
  return {};
}

Status LatencyModel::putAround(const std::vector<unsigned> &cpus, size_t part) {
  std::map<size_t, size_t> inGroup;
  for (unsigned cpu : cpus)
    for (size_t own : paths[cpu])
      ++inGroup[own];
  std::map<size_t, size_t> inAll;
  for (const auto &[cpu, path] : paths)
    for (size_t own : path)
      if (inGroup.contains(own))
        ++inAll[own];
  for (auto [own, count] : inGroup)
    if (count != inAll[own] && count != cpus.size())
      return makeError("'", parts[part].kind,
                       "': a group of cores lies across a ", parts[own].kind,
                       "; it must be inside or around it");
  // Parts that hold nothing else are inside, the first other one is around.
  for (unsigned cpu : cpus) {
    std::vector<size_t> &path = paths[cpu];
    path.insert(
        std::ranges::find_if(
            path, [&](size_t own) { return inGroup[own] != inAll[own]; }),
        part);
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
  model.linkParts();
  return model;
}

void LatencyModel::linkParts() {
  for (const auto &[cpu, path] : paths)
    for (size_t i = 0; i < path.size(); ++i) {
      parts[path[i]].depth = path.size() - 1 - i;
      if (i + 1 < path.size())
        parts[path[i]].parent = path[i + 1];
    }
  inwardsOut.resize(parts.size());
  std::iota(inwardsOut.begin(), inwardsOut.end(), size_t{0});
  std::ranges::stable_sort(inwardsOut, std::ranges::greater(),
                           [&](size_t part) { return parts[part].depth; });
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

/// What a part passes on of `asked` bytes per second, if it can `has`.
static double passedOn(double has, double asked) {
  constexpr double s = LatencyModel::saturation;
  if (asked <= has)
    return asked * std::pow(std::pow(asked / has, s) + 1, -1 / s);
  return has * std::pow(std::pow(has / asked, s) + 1, -1 / s) *
         (1 - LatencyModel::contentionLoss * (1 - has / asked));
}

double LatencyModel::bandwidthThatPasses(double asked, double passed) {
  constexpr double mostOfAsked = 0.99;
  passed = std::min(passed, mostOfAsked * asked);
  // `passedOn` grows with the bandwidth, and has passed on more than 99% at the
  // upper end.
  double low = 0;
  double high = 4 * asked;
  constexpr int halvings = 60;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (passedOn(middle, asked) < passed ? low : high) = middle;
  }
  return high;
}

Result<std::vector<unsigned>>
LatencyModel::countActive(const std::vector<RankCpus> &ranks) const {
  if (ranks.empty())
    return makeError("there is no rank");
  std::vector<unsigned> active(parts.size());
  for (const RankCpus &rank : ranks) {
    if (rank.empty())
      return makeError("a rank has no CPU");
    for (unsigned cpu : rank) {
      auto path = paths.find(cpu);
      if (path == paths.end())
        return makeError("CPU ", cpu, " is not in the topology");
      // Nothing but the CPU itself has this smallest part.
      if (active[path->second.front()] > 0)
        return makeError("CPU ", cpu, " is used twice");
      for (size_t part : path->second)
        ++active[part];
    }
  }
  return active;
}

double LatencyModel::bytesAlone(const RankCpus &rank) const {
  // The rank's weights lie evenly in the memories of its cores.
  std::set<size_t> memories;
  for (unsigned cpu : rank)
    for (size_t part : paths.at(cpu))
      if (parts[part].kind == "numa")
        memories.insert(part);
  double remote =
      memories.empty() ? 0 : 1 - 1 / static_cast<double>(memories.size());
  return parameters.coreBytesPerSecond /
         (1 - remote + remote / parameters.remoteShare);
}

unsigned LatencyModel::threadsOfCore(unsigned cpu,
                                     std::span<const unsigned> active) const {
  for (size_t part : paths.at(cpu))
    if (parts[part].kind == "core")
      return active[part];
  return 1;
}

std::vector<double> LatencyModel::passOn(std::vector<double> asked) const {
  std::vector<double> passed(parts.size());
  for (size_t part : inwardsOut) {
    if (asked[part] == 0)
      continue;
    passed[part] = passedOn(parts[part].parameters.bytesPerSecond, asked[part]);
    if (parts[part].parent)
      asked[*parts[part].parent] += passed[part];
  }
  // What a part passes on is cut as that of the part around it.
  std::vector<double> share(parts.size(), 1);
  for (size_t part : inwardsOut | std::views::reverse) {
    if (asked[part] > 0)
      share[part] = passed[part] / asked[part];
    if (parts[part].parent)
      share[part] *= share[*parts[part].parent];
  }
  return share;
}

Result<TeamSpeed>
LatencyModel::speedOf(const std::vector<RankCpus> &ranks) const {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<unsigned> active, countActive(ranks));
  std::vector<double> asked(parts.size());
  for (const RankCpus &rank : ranks) {
    const double alone = bytesAlone(rank);
    // Hardware threads of a core share what it can read.
    for (unsigned cpu : rank)
      asked[paths.at(cpu).front()] = alone / threadsOfCore(cpu, active);
  }
  const std::vector<double> share = passOn(asked);

  const double ranksCount = static_cast<double>(ranks.size());
  TeamSpeed team;
  team.flopsPerSecond = std::numeric_limits<double>::infinity();
  team.bytesPerSecond = std::numeric_limits<double>::infinity();
  double slowestRank = std::numeric_limits<double>::infinity();
  size_t used = 0;
  for (const RankCpus &rank : ranks) {
    const double threads = static_cast<double>(rank.size());
    double slowestReading = std::numeric_limits<double>::infinity();
    double slowestComputing = std::numeric_limits<double>::infinity();
    for (unsigned cpu : rank) {
      const size_t own = paths.at(cpu).front();
      slowestReading = std::min(slowestReading, asked[own] * share[own]);
      slowestComputing =
          std::min(slowestComputing,
                   parameters.coreFlopsPerSecond / threadsOfCore(cpu, active));
    }
    slowestRank = std::min(slowestRank, threads * slowestReading);
    team.flopsPerSecond =
        std::min(team.flopsPerSecond, ranksCount * threads * slowestComputing);
    if (rank.size() > 1)
      team.barrierSeconds =
          std::max(team.barrierSeconds, threads * handoffSeconds({rank}));
    used += rank.size();
  }
  team.bytesPerSecond = ranksCount * slowestRank;
  team.ranks = ranksCount;
  if (ranks.size() > 1) {
    team.allReduceSeconds = 2 * ranksCount * handoffSeconds(ranks);
    // Every rank reads its part of all others' sums, and all their results.
    team.allReduceSecondsPerByte = 2 * (ranksCount - 1) / ranksCount /
                                   slowestRank / parameters.remoteShare;
  }
  if (used == paths.size())
    team.interference += static_cast<double>(used) *
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
