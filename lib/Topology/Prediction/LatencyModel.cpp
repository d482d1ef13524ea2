//===- LatencyModel.cpp - How long a machine serves a trace ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ranges>
#include <set>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

Status LatencyModel::addParts(const MachineNode &node,
                              std::vector<size_t> &around, uint64_t &cores) {
  Part part;
  part.kind = node.kind;
  part.firstCore = node.coreCount > 0 ? node.firstCore : cores;
  // A CPU outside any core is one.
  if (node.kind == "core" ||
      (node.kind == "cpu" && std::ranges::none_of(around, [&](size_t outer) {
         return parts[outer].kind == "core";
       })))
    ++cores;
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
  const size_t number = parts.size();
  around.push_back(number);
  parts.push_back(part);
  if (node.kind == "cpu") {
    std::vector<size_t> path(around.rbegin(), around.rend());
    if (node.index < 0 ||
        !paths.emplace(static_cast<unsigned>(node.index), path).second)
      return makeError("CPU ", node.index, " is twice in the topology");
  }
  for (const MachineNode &child : node.children)
    SANDWICH_RETURN_IF_ERROR(addParts(child, around, cores));
  around.pop_back();
  parts[number].coreCount =
      node.coreCount > 0 ? node.coreCount : cores - parts[number].firstCore;
  return {};
}

Status LatencyModel::addLatentGroups(const LatentGroup &group) {
  // The usable CPUs of each group, which its place among all cores of the part
  // decides.
  std::map<std::pair<size_t, uint64_t>, std::vector<unsigned>> members;
  const uint64_t block = uint64_t{group.cores} * group.stride;
  for (const auto &[cpu, path] : paths) {
    auto findKind = [&](const std::string &kind) {
      return std::ranges::find(path, kind,
                               [&](size_t part) { return parts[part].kind; });
    };
    auto found = findKind(group.inside);
    if (found == path.end())
      return makeError("the topology has no ", group.inside, " around CPU ",
                       cpu, ", inside which '", group.name, "' groups cores");
    const Part &inside = parts[*found];
    if (inside.coreCount % block != 0)
      return makeError("'", group.name, "': ", inside.coreCount, " cores of a ",
                       group.inside, " cannot be grouped ", group.cores,
                       " each with stride ", group.stride);
    // A CPU outside any core is one.
    auto core = findKind("core");
    const uint64_t place =
        parts[core == path.end() ? path.front() : *core].firstCore -
        inside.firstCore;
    members[{*found, place / block * group.stride + place % group.stride}]
        .push_back(cpu);
  }
  std::vector<size_t> cpusOfPart(parts.size());
  for (const auto &[cpu, path] : paths)
    for (size_t part : path)
      ++cpusOfPart[part];
  for (const auto &[place, cpus] : members) {
    const size_t number = parts.size();
    Part part;
    part.kind = group.name;
    part.parameters = group.parameters;
    parts.push_back(std::move(part));
    SANDWICH_RETURN_IF_ERROR(putAround(cpus, number, cpusOfPart));
  }
  return {};
}

Status LatencyModel::putAround(const std::vector<unsigned> &cpus, size_t part,
                               const std::vector<size_t> &cpusOfPart) {
  std::map<size_t, size_t> inGroup;
  for (unsigned cpu : cpus)
    for (size_t own : paths[cpu])
      ++inGroup[own];
  for (auto [own, count] : inGroup)
    if (count != cpusOfPart[own] && count != cpus.size())
      return makeError("'", parts[part].kind,
                       "': a group of cores lies across a ", parts[own].kind,
                       "; it must be inside or around it");
  // Parts that hold nothing else are inside, the first other one is around.
  for (unsigned cpu : cpus) {
    std::vector<size_t> &path = paths[cpu];
    path.insert(
        std::ranges::find_if(
            path, [&](size_t own) { return inGroup[own] != cpusOfPart[own]; }),
        part);
  }
  return {};
}

Result<LatencyModel> LatencyModel::create(const MachineNode &machine,
                                          const MachineParameters &parameters) {
  LatencyModel model;
  model.parameters = parameters;
  std::vector<size_t> around;
  uint64_t cores = 0;
  SANDWICH_RETURN_IF_ERROR(model.addParts(machine, around, cores));
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
      if (i + 1 < path.size()) {
        parts[path[i]].parent = path[i + 1];
        if (parts[path[i]].kind == "numa" || parts[path[i]].holdsMemories)
          parts[path[i + 1]].holdsMemories = true;
      }
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

Result<LatencyModel::RankMemories>
LatencyModel::memoriesOf(const std::vector<RankCpus> &ranks) const {
  RankMemories memories;
  for (const RankCpus &rank : ranks) {
    std::set<size_t> own;
    for (unsigned cpu : rank) {
      auto path = paths.find(cpu);
      if (path == paths.end())
        return makeError("CPU ", cpu, " is not in the topology");
      auto memory = std::ranges::find_if(
          path->second, [&](size_t part) { return isMemory(part); });
      if (memory != path->second.end())
        own.insert(*memory);
    }
    memories.emplace_back(own.begin(), own.end());
  }
  return memories;
}

double LatencyModel::bytesAlone(unsigned cpu,
                                std::span<const size_t> memories) const {
  if (memories.empty())
    return parameters.coreBytesPerSecond;
  double remote = 1;
  for (size_t part : paths.at(cpu))
    if (std::ranges::find(memories, part) != memories.end())
      remote -= 1 / static_cast<double>(memories.size());
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

bool LatencyModel::isMemory(size_t part) const {
  return parts[part].kind == "numa" && !parts[part].holdsMemories;
}

std::vector<double> LatencyModel::passOn(std::vector<double> asked,
                                         bool aroundMemories) const {
  auto counts = [&](size_t part) {
    return parts[part].holdsMemories == aroundMemories && !isMemory(part);
  };
  std::vector<double> passed(parts.size());
  for (size_t part : inwardsOut) {
    if (asked[part] == 0 || !counts(part))
      continue;
    passed[part] = passedOn(parts[part].parameters.bytesPerSecond, asked[part]);
    if (parts[part].parent)
      asked[*parts[part].parent] += passed[part];
  }
  // What a part passes on is cut as that of the part around it.
  std::vector<double> share(parts.size(), 1);
  for (size_t part : inwardsOut | std::views::reverse) {
    if (!counts(part))
      continue;
    if (asked[part] > 0)
      share[part] = passed[part] / asked[part];
    if (parts[part].parent)
      share[part] *= share[*parts[part].parent];
  }
  return share;
}

std::vector<LatencyModel::Reader>
LatencyModel::readersOf(const std::vector<RankCpus> &ranks,
                        const RankMemories &memories,
                        std::span<const unsigned> active) const {
  std::vector<Reader> readers;
  std::vector<double> asked(parts.size());
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (unsigned cpu : ranks[rank]) {
      const std::vector<size_t> &path = paths.at(cpu);
      // Hardware threads of a core share what it can read.
      const double alone =
          bytesAlone(cpu, memories[rank]) / threadsOfCore(cpu, active);
      asked[path.front()] = alone;
      readers.push_back({cpu, rank, alone});
    }
  // Through the caches to the memories,
  std::vector<double> share = passOn(std::move(asked), false);
  asked.assign(parts.size(), 0);
  for (Reader &reader : readers) {
    reader.bytesPerSecond *= share[paths.at(reader.cpu).front()];
    const std::vector<size_t> &own = memories[reader.rank];
    for (size_t memory : own)
      asked[memory] += reader.bytesPerSecond / static_cast<double>(own.size());
  }
  // which a core reads one after the other,
  for (size_t part = 0; part < parts.size(); ++part)
    if (isMemory(part))
      share[part] =
          asked[part] > 0
              ? passedOn(parts[part].parameters.bytesPerSecond, asked[part]) /
                    asked[part]
              : 1;
  std::vector<double> around(parts.size());
  for (Reader &reader : readers) {
    double slower = 0;
    for (size_t memory : memories[reader.rank])
      slower += 1 / share[memory];
    if (slower > 0)
      reader.bytesPerSecond *=
          static_cast<double>(memories[reader.rank].size()) / slower;
    if (const size_t *part = firstAround(reader.cpu))
      around[*part] += reader.bytesPerSecond;
  }
  // and through what is around the reader's own memory.
  share = passOn(std::move(around), true);
  for (Reader &reader : readers)
    if (const size_t *part = firstAround(reader.cpu))
      reader.bytesPerSecond *= share[*part];
  return readers;
}

const size_t *LatencyModel::firstAround(unsigned cpu) const {
  const std::vector<size_t> &path = paths.at(cpu);
  auto found = std::ranges::find_if(
      path, [&](size_t part) { return parts[part].holdsMemories; });
  return found == path.end() ? nullptr : &*found;
}

Result<TeamSpeed>
LatencyModel::speedOf(const std::vector<RankCpus> &ranks) const {
  SANDWICH_ASSIGN_OR_RETURN(RankMemories memories, memoriesOf(ranks));
  return speedOf(ranks, memories);
}

Result<TeamSpeed> LatencyModel::speedOf(const std::vector<RankCpus> &ranks,
                                        const RankMemories &memories) const {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<unsigned> active, countActive(ranks));
  if (memories.size() != ranks.size())
    return makeError(ranks.size(), " ranks have memories for ",
                     memories.size());
  const std::vector<Reader> readers = readersOf(ranks, memories, active);

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
    for (size_t i = 0; i < rank.size(); ++i) {
      // Readers stand in the order of the ranks' CPUs.
      slowestReading =
          std::min(slowestReading, readers[used + i].bytesPerSecond);
      slowestComputing =
          std::min(slowestComputing, parameters.coreFlopsPerSecond /
                                         threadsOfCore(rank[i], active));
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
