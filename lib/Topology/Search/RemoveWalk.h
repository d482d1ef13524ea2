//===- RemoveWalk.h - The transformation tree of removes --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TOPOLOGY_SEARCH_REMOVEWALK_H
#define SANDWICH_LIB_TOPOLOGY_SEARCH_REMOVEWALK_H

#include "CrossSection.h"

#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace sandwich {

/// Walks the trees that removes make of the trees with given cross-sections,
/// layer by layer: first those without a remove, then with one, then with two.
/// A tree's parents, those with one remove less, are all in the layer before,
/// which makes this a topological order. A tree is looked at if a kept parent
/// leads to it, and kept if it beats all kept parents that do. A tree that is
/// met again, or whose configuration has been evaluated, is found by its hash.
/// Cross-sections of the fewest groupings are done first, with all their
/// layers: there may be thousands, which should not use up the patience of
/// these.
class RemoveWalk {
public:
  /// The milliseconds of a configuration, and whether they were known, so that
  /// patience does not count them.
  struct Answer {
    double milliseconds = 0;
    bool wasKnown = false;
  };
  using Evaluate =
      std::function<Result<Answer>(const CrossSection &, const AwakeMask &)>;

  /// Kept if it was, in any of the trees that have this configuration.
  enum class State { Kept, Discarded, CannotRun };

  /// An evaluated configuration, and the first tree met that has it.
  struct Record {
    uint32_t cut;
    State state;
    double milliseconds;
    std::vector<Removal> removals;
  };

  /// `cuts` are ordered by how many groupings they need. What is better by no
  /// more than rounding (`equalPredictions`) is not better. `interrupted` is
  /// asked now and then, and ends the walk.
  RemoveWalk(const SearchSpace &space, const std::vector<CrossSection> &cuts,
             unsigned patience, double leastGain,
             const std::function<bool()> &interrupted);

  /// Until nothing is left, patience is at its end, or `stop` is called, which
  /// `evaluate` may do; its value does not count then. Errors: of `evaluate`.
  Status run(const Evaluate &evaluate);
  void stop() { stopped = true; }

  /// In the order of evaluation.
  const std::vector<Record> &records() const { return evaluated; }
  /// Which children are awake in a record.
  AwakeMask maskOf(uint32_t record) const;
  uint64_t equalTrees() const { return equal; }
  bool ranOutOfPatience() const { return outOfPatience; }

private:
  /// A kept tree: a cross-section and what is removed below it.
  struct Tree {
    uint32_t cut;
    uint32_t record;
    std::vector<Removal> removals;
  };
  /// A place for a remove in the trees of the space.
  struct Place {
    unsigned distance;
    uint16_t level;
    uint32_t edge;
  };
  struct Key {
    uint32_t cut;
    std::vector<Removal> removals;
    bool operator==(const Key &) const = default;
  };
  struct HashOfKey {
    size_t operator()(const Key &key) const;
  };

  Result<uint32_t> evaluateOnce(uint32_t cut,
                                const std::vector<Removal> &removals,
                                const AwakeMask &mask,
                                const Evaluate &evaluate);
  Status walkBelow(size_t begin, size_t end, const Evaluate &evaluate);
  Status extend(const Tree &tree, const Removal &removal,
                const AwakeMask &removalMask, const Evaluate &evaluate);

  const SearchSpace &space;
  const std::vector<CrossSection> &cuts;
  unsigned patience;
  double leastGain;
  const std::function<bool()> &interrupted;
  std::vector<Place> places;
  size_t maskWords;

  std::vector<Record> evaluated;
  /// The masks of `evaluated`, one behind the other.
  std::vector<uint64_t> masks;
  std::unordered_multimap<uint64_t, uint32_t> recordOfHash;
  /// Of the layer before, of this one, and all met in this one.
  std::vector<Tree> previous, next;
  std::unordered_map<Key, uint32_t, HashOfKey> keptBefore;
  std::unordered_set<Key, HashOfKey> met;

  uint64_t equal = 0;
  double best = std::numeric_limits<double>::infinity();
  unsigned withoutBetter = 0;
  bool stopped = false;
  bool outOfPatience = false;
};

} // namespace sandwich

#endif // SANDWICH_LIB_TOPOLOGY_SEARCH_REMOVEWALK_H
