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
#include <utility>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

void LatencyModel::Part::set(const PartDescription &description) {
  bytesPerSecond = description.bytesPerSecond;
  linkBytesPerSecond = description.linkBytesPerSecond;
  handoffSeconds = description.handoffSeconds;
}

Status LatencyModel::addParts(const MachineNode &node,
                              const MachineDescription &description,
                              std::vector<size_t> &around, double speed,
                              uint64_t &cores) {
  const size_t number = parts.size();
  Part part(node.kind);
  part.firstCore = node.coreCount > 0 ? node.firstCore : cores;
  if (auto known = description.parts.find(node.kind);
      known != description.parts.end())
    part.set(known->second);
  if (node.kind == "numa" && node.index >= 0) {
    part.index = static_cast<unsigned>(node.index);
    if (auto memory = description.memories.find(part.index);
        memory != description.memories.end())
      part.bytesPerSecond = memory->second;
    if (node.bytes > 0)
      part.bytes = static_cast<double>(node.bytes);
  }
  // A CPU outside any core is one.
  if (node.kind == "core" ||
      (node.kind == "cpu" && std::ranges::none_of(around, [&](size_t outer) {
         return parts[outer].kind == "core";
       })))
    ++cores;
  if (node.kind == "core")
    speed = node.speed;
  around.push_back(number);
  parts.push_back(std::move(part));
  if (node.kind == "cpu") {
    if (node.index < 0)
      return makeError("a CPU of the topology has no index");
    Place place;
    place.cpu = static_cast<unsigned>(node.index);
    place.path.assign(around.rbegin(), around.rend());
    place.speed = speed;
    places.push_back(std::move(place));
  }
  for (const MachineNode &child : node.children)
    SANDWICH_RETURN_IF_ERROR(
        addParts(child, description, around, speed, cores));
  around.pop_back();
  parts[number].coreCount =
      node.coreCount > 0 ? node.coreCount : cores - parts[number].firstCore;
  return {};
}

Status LatencyModel::sortPlaces() {
  std::ranges::sort(places, {}, &Place::cpu);
  auto twice = std::ranges::adjacent_find(places, {}, &Place::cpu);
  if (twice != places.end())
    return makeError("CPU ", twice->cpu, " is twice in the topology");
  return {};
}

Status LatencyModel::addLatentGroups(const LatentGroup &group) {
  // The usable CPUs of each group, which its place among all cores of the part
  // decides.
  std::map<std::pair<size_t, uint64_t>, std::vector<Place *>> groups;
  const uint64_t block = uint64_t{group.cores} * group.stride;
  for (Place &place : places) {
    auto findKind = [&](const std::string &kind) {
      return std::ranges::find(place.path, kind,
                               [&](size_t part) { return parts[part].kind; });
    };
    auto found = findKind(group.inside);
    if (found == place.path.end())
      return makeError("the topology has no ", group.inside, " around CPU ",
                       place.cpu, ", inside which '", group.name,
                       "' groups cores");
    const Part &inside = parts[*found];
    if (inside.coreCount == 0)
      return makeError("'", group.name, "': a ", group.inside,
                       " holds no cores that could be grouped");
    if (inside.coreCount % block != 0)
      return makeError("'", group.name, "': ", inside.coreCount, " cores of a ",
                       group.inside, " cannot be grouped ", group.cores,
                       " each with stride ", group.stride);
    // A CPU outside any core is one.
    auto core = findKind("core");
    const uint64_t position =
        parts[core == place.path.end() ? place.path.front() : *core].firstCore -
        inside.firstCore;
    groups[{*found, position / block * group.stride + position % group.stride}]
        .push_back(&place);
  }
  std::vector<size_t> cpusOfPart(parts.size());
  for (const Place &place : places)
    for (size_t part : place.path)
      ++cpusOfPart[part];
  for (const auto &[where, members] : groups) {
    const size_t number = parts.size();
    Part part(group.name);
    part.set(group.parameters);
    parts.push_back(std::move(part));
    SANDWICH_RETURN_IF_ERROR(
        putAround(members, number, where.first, cpusOfPart));
  }
  return {};
}

Status LatencyModel::putAround(const std::vector<Place *> &members, size_t part,
                               size_t inside,
                               const std::vector<size_t> &cpusOfPart) {
  std::map<size_t, size_t> inGroup;
  for (const Place *place : members)
    for (size_t own : place->path)
      ++inGroup[own];
  for (auto [own, count] : inGroup)
    if (count != cpusOfPart[own] && count != members.size())
      return makeError("'", parts[part].kind,
                       "': a group of cores lies across a ", parts[own].kind,
                       "; it must be inside or around it");
  // Parts that hold nothing else are inside, the first other one is around; at
  // the latest that in which cores are grouped, of which no other CPU may be
  // usable.
  for (Place *place : members) {
    std::vector<size_t> &path = place->path;
    path.insert(std::ranges::find_if(path,
                                     [&](size_t own) {
                                       return own == inside ||
                                              inGroup[own] != cpusOfPart[own];
                                     }),
                part);
  }
  return {};
}

Result<LatencyModel> LatencyModel::create(const MachineNode &machine,
                                          const MachineDescription &description,
                                          MatrixElement element,
                                          std::span<const MachineNode> beside) {
  LatencyModel model;
  model.coreFlopsPerSecond = description.coreFlopsPerSecond.of(element);
  model.coreBytesPerSecond = description.coreBytesPerSecond;
  model.remoteShare = description.remoteShare;
  model.systemShare =
      description.wakeupsPerCorePerSecond * description.wakeupSeconds;
  std::vector<size_t> around;
  uint64_t cores = 0;
  SANDWICH_RETURN_IF_ERROR(
      model.addParts(machine, description, around, 1, cores));
  SANDWICH_RETURN_IF_ERROR(model.sortPlaces());
  if (model.places.empty())
    return makeError("the topology has no CPUs");
  for (const LatentGroup &group : description.latent)
    SANDWICH_RETURN_IF_ERROR(model.addLatentGroups(group));
  model.linkParts();
  for (const MachineNode &memory : beside)
    model.addBeside(memory, description);
  return model;
}

void LatencyModel::addBeside(const MachineNode &memory,
                             const MachineDescription &description) {
  if (memory.kind != "numa" || memory.index < 0)
    return;
  Part part(memory.kind);
  part.index = static_cast<unsigned>(memory.index);
  const MachineValue *bandwidth = nullptr;
  for (const auto *known : {&description.besideMemories, &description.memories})
    if (auto found = known->find(part.index); found != known->end())
      bandwidth = &found->second;
  for (size_t node = 0; node < parts.size(); ++node)
    if (isMemory(node) && parts[node].besideNodes.empty() &&
        std::ranges::find(memory.besideNodes, parts[node].index) !=
            memory.besideNodes.end())
      part.besideNodes.push_back(node);
  if (!bandwidth || part.besideNodes.empty())
    return;
  part.bytesPerSecond = *bandwidth;
  if (memory.bytes > 0)
    part.bytes = static_cast<double>(memory.bytes);
  part.parent = parts[part.besideNodes.front()].parent;
  while (part.parent &&
         !std::ranges::all_of(part.besideNodes, [&](size_t node) {
           return isInside(node, *part.parent);
         }))
    part.parent = parts[*part.parent].parent;
  part.depth = part.parent ? parts[*part.parent].depth + 1 : 0;
  // Nothing is read through it to another memory, so its place among the parts
  // does not matter.
  inwardsOut.push_back(parts.size());
  beside.push_back(parts.size());
  parts.push_back(std::move(part));
}

void LatencyModel::linkParts() {
  for (const Place &place : places) {
    const std::vector<size_t> &path = place.path;
    for (size_t i = 0; i < path.size(); ++i) {
      parts[path[i]].depth = path.size() - 1 - i;
      if (i + 1 == path.size())
        continue;
      parts[path[i]].parent = path[i + 1];
      if (parts[path[i]].isNuma || parts[path[i]].holdsMemories)
        parts[path[i + 1]].holdsMemories = true;
    }
  }
  inwardsOut.resize(parts.size());
  std::iota(inwardsOut.begin(), inwardsOut.end(), size_t{0});
  std::ranges::stable_sort(inwardsOut, std::ranges::greater(),
                           [&](size_t part) { return parts[part].depth; });
  for (size_t part : inwardsOut | std::views::reverse)
    if (parts[part].handoffSeconds == 0 && parts[part].parent)
      parts[part].handoffSeconds = parts[*parts[part].parent].handoffSeconds;
  for (size_t part = 0; part < parts.size(); ++part)
    if (std::isfinite(parts[part].linkBytesPerSecond))
      linked.push_back(part);
  for (Place &place : places) {
    auto first = [&](const auto &is) -> std::optional<size_t> {
      auto found = std::ranges::find_if(place.path, is);
      return found == place.path.end() ? std::nullopt : std::optional(*found);
    };
    for (size_t link = 0; link < linked.size(); ++link)
      if (std::ranges::find(place.path, linked[link]) != place.path.end())
        place.links.push_back(link);
    place.core = first([&](size_t part) {
                   return parts[part].kind == "core";
                 }).value_or(place.path.front());
    place.memory = first([&](size_t part) { return isMemory(part); });
    place.around =
        first([&](size_t part) { return parts[part].holdsMemories; });
  }
}

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

Result<const LatencyModel::Place *> LatencyModel::find(unsigned cpu) const {
  // Most machines number their CPUs from 0.
  if (cpu < places.size() && places[cpu].cpu == cpu)
    return &places[cpu];
  auto place = std::ranges::lower_bound(places, cpu, {}, &Place::cpu);
  if (place == places.end() || place->cpu != cpu)
    return makeError("CPU ", cpu, " is not in the topology");
  return &*place;
}

Result<std::vector<LatencyModel::Reader>>
LatencyModel::readersOf(const std::vector<RankCpus> &ranks) const {
  if (ranks.empty())
    return makeError("there is no rank");
  std::vector<Reader> readers;
  std::vector<char> used(parts.size());
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].empty())
      return makeError("a rank has no CPU");
    for (unsigned cpu : ranks[rank]) {
      SANDWICH_ASSIGN_OR_RETURN(const Place *place, find(cpu));
      // Nothing but the CPU itself has this smallest part.
      if (std::exchange(used[place->path.front()], 1))
        return makeError("CPU ", cpu, " is used twice");
      readers.push_back({place, rank, 0});
    }
  }
  return readers;
}

Result<std::vector<std::vector<size_t>>>
LatencyModel::nodesOf(const std::vector<RankCpus> &ranks) const {
  std::vector<std::vector<size_t>> nodes;
  for (const RankCpus &rank : ranks) {
    std::set<size_t> own;
    for (unsigned cpu : rank) {
      SANDWICH_ASSIGN_OR_RETURN(const Place *place, find(cpu));
      if (place->memory)
        own.insert(*place->memory);
    }
    nodes.emplace_back(own.begin(), own.end());
  }
  return nodes;
}

Result<LatencyModel::RankMemories>
LatencyModel::memoriesOf(const std::vector<RankCpus> &ranks) const {
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<std::vector<size_t>> nodes,
                            nodesOf(ranks));
  RankMemories memories;
  for (const std::vector<size_t> &own : nodes) {
    MemoryShares &shares = memories.weights.emplace_back();
    for (size_t node : own)
      shares.push_back({node, 1 / static_cast<double>(own.size())});
  }
  memories.cache = memories.weights;
  return memories;
}

double LatencyModel::handoffSeconds(std::span<const Reader> readers,
                                    std::vector<unsigned> &inside) const {
  // Two of the readers meet in the smallest part with both: in as many pairs as
  // a part has, less those that its own parts have.
  std::vector<size_t> used;
  for (const Reader &reader : readers)
    for (size_t part : reader.place->path)
      if (inside[part]++ == 0)
        used.push_back(part);
  auto pairsOf = [](double number) { return number * (number - 1) / 2; };
  double seconds = 0;
  for (size_t number : used) {
    const Part &part = parts[number];
    const double pairs = pairsOf(std::exchange(inside[number], 0));
    seconds += pairs * part.handoffSeconds;
    if (part.parent)
      seconds -= pairs * parts[*part.parent].handoffSeconds;
  }
  return seconds / pairsOf(static_cast<double>(readers.size()));
}

/// What a part passes on of `asked` bytes per second, if it can `has`.
static double passedOn(double has, double asked) {
  constexpr double s = LatencyModel::saturation;
  if (std::isinf(has))
    return asked;
  if (asked <= has)
    return asked * std::pow(std::pow(asked / has, s) + 1, -1 / s);
  return has * std::pow(std::pow(has / asked, s) + 1, -1 / s) *
         (1 - LatencyModel::contentionLoss * (1 - has / asked));
}

/// The share of the bandwidth's term in the sum of `passedOn`.
static double limitOf(double has, double asked) {
  return 1 / (1 + std::pow(has / asked, LatencyModel::saturation));
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

bool LatencyModel::isLocal(const Place &place, size_t memory) const {
  const std::vector<size_t> &nodes = parts[memory].besideNodes;
  return place.memory &&
         (*place.memory == memory ||
          std::ranges::find(nodes, *place.memory) != nodes.end());
}

double LatencyModel::bytesAlone(const Place &place,
                                const MemoryShares &memories) const {
  const double remote = remoteShareOf(place, memories);
  return place.speed * coreBytesPerSecond / (1 - remote + remote / remoteShare);
}

double LatencyModel::remoteShareOf(const Place &place,
                                   const MemoryShares &memories) const {
  if (memories.empty())
    return 0;
  double remote = 1;
  for (auto [memory, share] : memories)
    if (isLocal(place, memory))
      remote -= share;
  return remote;
}

bool LatencyModel::isMemory(size_t part) const {
  return parts[part].isNuma && !parts[part].holdsMemories;
}

bool LatencyModel::isInside(size_t part, size_t outer) const {
  std::optional<size_t> around = part;
  while (around && *around != outer)
    around = parts[*around].parent;
  return around.has_value();
}

bool LatencyModel::passesOn(size_t part, bool aroundMemories) const {
  return parts[part].holdsMemories == aroundMemories && !isMemory(part);
}

std::vector<double> LatencyModel::passOn(std::vector<double> asked,
                                         bool aroundMemories,
                                         std::vector<double> *limits) const {
  if (limits)
    limits->assign(parts.size(), 0);
  std::vector<double> passed(parts.size());
  for (size_t part : inwardsOut) {
    if (asked[part] == 0 || !passesOn(part, aroundMemories))
      continue;
    passed[part] = passedOn(parts[part].bytesPerSecond, asked[part]);
    if (limits)
      (*limits)[part] = limitOf(parts[part].bytesPerSecond, asked[part]);
    if (parts[part].parent)
      asked[*parts[part].parent] += passed[part];
  }
  // What a part passes on is cut as that of the part around it.
  std::vector<double> share(parts.size(), 1);
  for (size_t part : inwardsOut | std::views::reverse) {
    if (!passesOn(part, aroundMemories))
      continue;
    if (asked[part] > 0)
      share[part] = passed[part] / asked[part];
    if (parts[part].parent)
      share[part] *= share[*parts[part].parent];
  }
  return share;
}

void LatencyModel::read(std::vector<Reader> &readers,
                        const std::vector<MemoryShares> &memories,
                        std::span<const unsigned> threads,
                        Limits *limits) const {
  std::vector<double> asked(parts.size());
  for (Reader &reader : readers) {
    // Hardware threads of a core share what it can read.
    reader.bytesPerSecond = bytesAlone(*reader.place, memories[reader.rank]) /
                            threads[reader.place->core];
    asked[reader.place->path.front()] = reader.bytesPerSecond;
  }
  // Through the caches to the memories,
  std::vector<double> share =
      passOn(std::move(asked), false, limits ? &limits->inside : nullptr);
  asked.assign(parts.size(), 0);
  for (Reader &reader : readers) {
    reader.bytesPerSecond *= share[reader.place->path.front()];
    for (auto [memory, part] : memories[reader.rank])
      asked[memory] += reader.bytesPerSecond * part;
  }
  // which a core reads one after the other,
  for (size_t part = 0; part < parts.size(); ++part)
    if (isMemory(part))
      share[part] =
          asked[part] > 0
              ? passedOn(parts[part].bytesPerSecond, asked[part]) / asked[part]
              : 1;
  if (limits) {
    limits->passedByMemory = share;
    limits->memories.assign(parts.size(), 0);
    for (size_t part = 0; part < parts.size(); ++part)
      if (isMemory(part) && asked[part] > 0)
        limits->memories[part] =
            limitOf(parts[part].bytesPerSecond, asked[part]);
  }
  for (Reader &reader : readers) {
    double slower = 0;
    for (auto [memory, part] : memories[reader.rank])
      slower += part / share[memory];
    if (slower > 0)
      reader.bytesPerSecond /= slower;
  }
  readOverLinks(readers, memories, limits);
  // and through what is around the reader's own memory.
  std::vector<double> around(parts.size());
  for (const Reader &reader : readers)
    if (reader.place->around)
      around[*reader.place->around] += reader.bytesPerSecond;
  share = passOn(std::move(around), true, limits ? &limits->around : nullptr);
  for (Reader &reader : readers)
    if (reader.place->around)
      reader.bytesPerSecond *= share[*reader.place->around];
}

double LatencyModel::outsideOf(size_t part,
                               const MemoryShares &memories) const {
  double outside = 0;
  for (auto [memory, share] : memories)
    if (!isInside(memory, part))
      outside += share;
  return outside;
}

void LatencyModel::readOverLinks(std::vector<Reader> &readers,
                                 const std::vector<MemoryShares> &memories,
                                 Limits *limits) const {
  if (limits) {
    limits->links.assign(parts.size(), 0);
    limits->passedByLinks.assign(parts.size(), 1);
  }
  // Machines may have many sockets, each of which has few of the readers.
  std::vector<std::vector<Reader *>> within(linked.size());
  for (Reader &reader : readers)
    for (size_t link : reader.place->links)
      within[link].push_back(&reader);
  std::vector<double> outside;
  for (size_t link = 0; link < linked.size(); ++link) {
    const size_t part = linked[link];
    outside.clear();
    double asked = 0;
    const Reader *before = nullptr;
    for (const Reader *reader : within[link]) {
      outside.push_back(before && before->rank == reader->rank
                            ? outside.back()
                            : outsideOf(part, memories[reader->rank]));
      asked += reader->bytesPerSecond * outside.back();
      before = reader;
    }
    if (asked == 0)
      continue;
    const double share =
        passedOn(parts[part].linkBytesPerSecond, asked) / asked;
    if (limits) {
      limits->links[part] = limitOf(parts[part].linkBytesPerSecond, asked);
      limits->passedByLinks[part] = share;
    }
    for (size_t i = 0; i < outside.size(); ++i)
      within[link][i]->bytesPerSecond /= 1 - outside[i] + outside[i] / share;
  }
}

double LatencyModel::bytesOfSlowest(std::span<const Reader> readers,
                                    const std::vector<RankCpus> &ranks) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const RankCpus &cpus : ranks) {
    for (const Reader &reader : readers.first(cpus.size()))
      slowest = std::min(slowest, static_cast<double>(cpus.size()) *
                                      reader.bytesPerSecond);
    readers = readers.subspan(cpus.size());
  }
  return slowest;
}

ReadingShares LatencyModel::sharesOf(const Reader &reader,
                                     const MemoryShares &memories,
                                     const Limits &limits) const {
  ReadingShares shares;
  // What is not yet told of the time: what the parts before waited for.
  double left = 1;
  auto take = [&](const std::string &name, double share) {
    if (left * share > 0)
      shares[name] += left * share;
    left *= 1 - share;
  };
  const std::vector<size_t> &path = reader.place->path;
  auto takeParts = [&](bool aroundMemories, const std::vector<double> &of) {
    for (size_t part : path | std::views::reverse)
      if (passesOn(part, aroundMemories))
        take(parts[part].kind + " bandwidth", of[part]);
  };
  takeParts(true, limits.around);
  for (size_t part : linked | std::views::reverse) {
    if (std::ranges::find(path, part) == path.end())
      continue;
    const double outside = outsideOf(part, memories);
    const double over = outside / limits.passedByLinks[part];
    take(parts[part].kind + " links",
         limits.links[part] * over / (1 - outside + over));
  }
  // Memories are read one after the other.
  double all = 0, limited = 0;
  for (auto [memory, share] : memories) {
    const double time = share / limits.passedByMemory[memory];
    all += time;
    limited += time * limits.memories[memory];
  }
  if (all > 0)
    take("numa bandwidth", limited / all);
  takeParts(false, limits.inside);
  const double remote = remoteShareOf(*reader.place, memories);
  const double slowed = remote / remoteShare;
  take("memory of other nodes", slowed / (1 - remote + slowed));
  take("cores' own reading", 1);
  return shares;
}

std::vector<unsigned>
LatencyModel::threadsOf(std::span<const Reader> readers) const {
  std::vector<unsigned> threads(parts.size());
  for (const Reader &reader : readers)
    ++threads[reader.place->core];
  return threads;
}

/// Error: `memories` of another number of ranks.
static Status checkMemories(const std::vector<RankCpus> &ranks,
                            const LatencyModel::RankMemories &memories) {
  if (memories.weights.size() != ranks.size() ||
      memories.cache.size() != ranks.size())
    return makeError(ranks.size(), " ranks have memories for ",
                     memories.weights.size());
  return {};
}

Result<ReadingShares>
LatencyModel::readingShares(const std::vector<RankCpus> &ranks,
                            const RankMemories &memories) const {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Reader> readers, readersOf(ranks));
  SANDWICH_RETURN_IF_ERROR(checkMemories(ranks, memories));
  Limits limits;
  read(readers, memories.weights, threadsOf(readers), &limits);
  const Reader &slowest =
      *std::ranges::min_element(readers, {}, [&](const Reader &reader) {
        return static_cast<double>(ranks[reader.rank].size()) *
               reader.bytesPerSecond;
      });
  return sharesOf(slowest, memories.weights[slowest.rank], limits);
}

Result<TeamSpeed>
LatencyModel::speedOf(const std::vector<RankCpus> &ranks) const {
  SANDWICH_ASSIGN_OR_RETURN(RankMemories memories, memoriesOf(ranks));
  return speedOf(ranks, memories);
}

Result<TeamSpeed> LatencyModel::speedOf(const std::vector<RankCpus> &ranks,
                                        const RankMemories &memories) const {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Reader> readers, readersOf(ranks));
  SANDWICH_RETURN_IF_ERROR(checkMemories(ranks, memories));
  const std::vector<unsigned> threads = threadsOf(readers);
  read(readers, memories.weights, threads);

  const double ranksCount = static_cast<double>(ranks.size());
  TeamSpeed team;
  team.ranks = ranksCount;
  team.flopsPerSecond = std::numeric_limits<double>::infinity();
  const double slowestRank = bytesOfSlowest(readers, ranks);
  if (memories.cache != memories.weights) {
    std::vector<Reader> ofCache = readers;
    read(ofCache, memories.cache, threads);
    team.cacheSlowdown = slowestRank / bytesOfSlowest(ofCache, ranks);
  }
  std::vector<unsigned> inside(parts.size());
  std::vector<Reader> leaders;
  std::span<const Reader> others = readers;
  for (const RankCpus &cpus : ranks) {
    std::span<const Reader> rank = others.first(cpus.size());
    others = others.subspan(cpus.size());
    const double size = static_cast<double>(cpus.size());
    double slowestComputing = std::numeric_limits<double>::infinity();
    for (const Reader &reader : rank)
      slowestComputing =
          std::min(slowestComputing, reader.place->speed * coreFlopsPerSecond /
                                         threads[reader.place->core]);
    team.flopsPerSecond =
        std::min(team.flopsPerSecond, ranksCount * size * slowestComputing);
    team.threads = std::max(team.threads, size);
    if (rank.size() > 1)
      team.barrierSeconds =
          std::max(team.barrierSeconds, size * handoffSeconds(rank, inside));
    leaders.push_back(rank.front());
  }
  team.bytesPerSecond = ranksCount * slowestRank;
  if (ranks.size() > 1) {
    team.allReduceSeconds = 2 * ranksCount * handoffSeconds(leaders, inside);
    // Every rank reads its part of all others' sums, and all their results.
    team.allReduceSecondsPerByte =
        2 * (ranksCount - 1) / ranksCount / slowestRank / remoteShare;
  }
  if (readers.size() == places.size())
    team.interference += static_cast<double>(readers.size()) * systemShare;
  return team;
}
