//===- RemoveWalk.cpp - The transformation tree of removes ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RemoveWalk.h"

#include "sandwich/Topology/Search/ConfigurationClass.h"
#include "sandwich/Topology/Trees/Hashing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

using namespace sandwich;

size_t RemoveWalk::HashOfKey::operator()(const Key &key) const {
  return XXH3_64bits_withSeed(key.removals.data(),
                              key.removals.size() * sizeof(Removal), key.cut);
}
static_assert(std::has_unique_object_representations_v<Removal>);

RemoveWalk::RemoveWalk(const SearchSpace &space,
                       const std::vector<CrossSection> &cuts, unsigned patience,
                       double leastGain,
                       const std::function<bool()> &interrupted)
    : space(space), cuts(cuts), patience(patience),
      leastGain(std::max(leastGain, equalPredictions)),
      interrupted(interrupted), maskWords(space.allAwake().size()) {
  for (unsigned level = 0; level < space.levels().size(); ++level) {
    const GroupGraph &graph = space.levels()[level].graph;
    for (uint32_t edge = 0; edge < graph.edges().size(); ++edge)
      places.push_back({graph.distance(graph.edges()[edge].from),
                        static_cast<uint16_t>(level), edge});
  }
  // Where the fewest groups are needed first; cores before what holds them.
  std::stable_sort(places.begin(), places.end(),
                   [](const Place &a, const Place &b) {
                     return std::make_tuple(a.distance, -int{a.level}) <
                            std::make_tuple(b.distance, -int{b.level});
                   });
}

AwakeMask RemoveWalk::maskOf(uint32_t record) const {
  auto first = masks.begin() + record * maskWords;
  return {first, first + maskWords};
}

/// The record of the configuration of `mask`, evaluated if it is new.
Result<uint32_t> RemoveWalk::evaluateOnce(uint32_t cut,
                                          const std::vector<Removal> &removals,
                                          const AwakeMask &mask,
                                          const Evaluate &evaluate) {
  uint64_t hash =
      XXH3_64bits_withSeed(mask.data(), maskWords * sizeof(mask[0]), cut);
  auto [begin, end] = recordOfHash.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (evaluated[it->second].cut == cut &&
        std::equal(mask.begin(), mask.end(),
                   masks.begin() + it->second * maskWords)) {
      ++equal;
      return it->second;
    }
  SANDWICH_ASSIGN_OR_RETURN(const Answer answer, evaluate(cuts[cut], mask));
  double milliseconds = answer.milliseconds;
  uint32_t record = evaluated.size();
  if (stopped)
    return record;
  bool runs = std::isfinite(milliseconds);
  if (!runs)
    milliseconds = std::numeric_limits<double>::infinity();
  evaluated.push_back({cut, runs ? State::Discarded : State::CannotRun,
                       milliseconds, removals});
  masks.insert(masks.end(), mask.begin(), mask.end());
  recordOfHash.emplace(hash, record);
  if (milliseconds < best && !areEqualPredictions(milliseconds, best)) {
    best = milliseconds;
    withoutBetter = 0;
  } else if (!answer.wasKnown && ++withoutBetter >= patience) {
    outOfPatience = stopped = true;
  }
  return record;
}

/// Looks at `tree` with `removal` in addition, which it allows.
Status RemoveWalk::extend(const Tree &tree, const Removal &removal,
                          const AwakeMask &removalMask,
                          const Evaluate &evaluate) {
  Key key{tree.cut, tree.removals};
  auto order = [](const Removal &a, const Removal &b) {
    return std::tie(a.level, a.edge) < std::tie(b.level, b.edge);
  };
  key.removals.insert(std::upper_bound(key.removals.begin(), key.removals.end(),
                                       removal, order),
                      removal);
  if (!met.insert(key).second)
    return {};
  AwakeMask mask = maskOf(tree.record);
  for (size_t word = 0; word < maskWords; ++word)
    mask[word] &= removalMask[word];
  SANDWICH_ASSIGN_OR_RETURN(
      uint32_t record, evaluateOnce(tree.cut, key.removals, mask, evaluate));
  if (record == evaluated.size() || evaluated[record].state == State::CannotRun)
    return {};
  double milliseconds = evaluated[record].milliseconds;
  Key parent = key;
  for (size_t i = 0; i < key.removals.size(); ++i) {
    parent.removals = key.removals;
    parent.removals.erase(parent.removals.begin() + i);
    auto kept = keptBefore.find(parent);
    if (kept != keptBefore.end() &&
        milliseconds >= (1 - leastGain) * evaluated[kept->second].milliseconds)
      return {};
  }
  evaluated[record].state = State::Kept;
  next.push_back({tree.cut, record, std::move(key.removals)});
  return {};
}

Status RemoveWalk::run(const Evaluate &evaluate) {
  auto groupings = [&](const CrossSection &cut) {
    return space.levels().empty()
               ? 0
               : space.levels()[cut.level].graph.distance(cut.tiling);
  };
  for (size_t begin = 0, end; begin < cuts.size() && !stopped; begin = end) {
    for (end = begin + 1;
         end < cuts.size() && groupings(cuts[end]) == groupings(cuts[begin]);)
      ++end;
    SANDWICH_RETURN_IF_ERROR(walkBelow(begin, end, evaluate));
  }
  return {};
}

/// Walks the trees with the cross-sections from `begin` to `end`.
Status RemoveWalk::walkBelow(size_t begin, size_t end,
                             const Evaluate &evaluate) {
  const AwakeMask allAwake = space.allAwake();
  next.clear();
  for (uint32_t cut = begin; cut < end && !stopped; ++cut) {
    SANDWICH_ASSIGN_OR_RETURN(uint32_t record,
                              evaluateOnce(cut, {}, allAwake, evaluate));
    if (record == evaluated.size())
      continue;
    // One that cannot run may run with fewer cores awake.
    if (evaluated[record].state != State::CannotRun)
      evaluated[record].state = State::Kept;
    next.push_back({cut, record, {}});
  }
  while (!next.empty() && !stopped) {
    previous = std::exchange(next, {});
    keptBefore.clear();
    met.clear();
    // What is good already may get better.
    std::stable_sort(previous.begin(), previous.end(),
                     [&](const Tree &a, const Tree &b) {
                       return evaluated[a.record].milliseconds <
                              evaluated[b.record].milliseconds;
                     });
    for (const Tree &tree : previous)
      keptBefore.emplace(Key{tree.cut, tree.removals}, tree.record);
    std::vector<char> cutAllows(cuts.size());
    std::vector<const Tree *> allowing;
    for (const Place &place : places) {
      // Many evaluations may be none: their configurations were met.
      if (interrupted())
        stop();
      if (stopped)
        return {};
      Removal removal{place.edge, place.level, 0};
      for (size_t cut = begin; cut < end; ++cut)
        cutAllows[cut] = cuts[cut].isAbove(space, removal);
      allowing.clear();
      for (const Tree &tree : previous)
        if (cutAllows[tree.cut] && space.fit(tree.removals, removal))
          allowing.push_back(&tree);
      if (allowing.empty())
        continue;
      const std::vector<uint16_t> children = space.childrenOf(removal);
      unsigned size =
          space.levels()[place.level].graph.edges()[place.edge].size;
      for (removal.count = 1; removal.count < size; ++removal.count) {
        AwakeMask removalMask = allAwake;
        space.apply(removal, children, removalMask);
        for (const Tree *tree : allowing) {
          SANDWICH_RETURN_IF_ERROR(
              extend(*tree, removal, removalMask, evaluate));
          if (stopped)
            return {};
        }
      }
    }
  }
  return {};
}
