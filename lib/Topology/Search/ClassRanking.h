//===- ClassRanking.h - The best classes of configurations ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TOPOLOGY_SEARCH_CLASSRANKING_H
#define SANDWICH_LIB_TOPOLOGY_SEARCH_CLASSRANKING_H

#include "CrossSection.h"

#include "sandwich/Topology/Search/ConfigurationClass.h"

#include <optional>
#include <vector>

namespace sandwich {

/// A class while it is ranked: the tree of the configuration that stands for
/// it, and how many others there are. Of these nothing else is kept.
struct RankedClass {
  double milliseconds;
  ConfigurationShape shape;
  CrossSection cut;
  std::vector<Removal> removals;
  /// The number of its set of processes, as the search takes one after the
  /// other.
  uint64_t set;
  uint64_t members = 1;
  /// How many of them are in `set`, and in the last set that had any.
  uint64_t inSet = 1;
  uint64_t lastSet = set;
  uint64_t inLastSet = 1;
  /// Of its simplest tree, once somebody asked.
  std::optional<unsigned> transformations = std::nullopt;

  EqualConfigurations equal() const {
    return {.byStride = inSet - 1, .byNodes = members - inSet};
  }
};

/// The best classes of those that were added. Classes come by their time; of
/// equal times those of fewer processes first, and then those of more cores
/// awake. A time that equals one that is there already counts as that one, so
/// that rounding decides nothing.
class ClassRanking {
public:
  /// Keeps at most `most` classes, at least 1, of trees of `space`.
  ClassRanking(const SearchSpace &space, size_t most)
      : space(&space), most(most) {}

  /// Adds a configuration, a class of one. Configurations come set by set.
  /// Returns the class that is not kept any more, or the configuration itself
  /// if it is not. Such a class is worse than all that are kept, so others of
  /// it are not kept either.
  std::optional<RankedClass> add(RankedClass one);

  /// Best first.
  const std::vector<RankedClass> &classes() const { return ranked; }

private:
  unsigned transformationsOf(RankedClass &of) const;

  const SearchSpace *space;
  size_t most;
  std::vector<RankedClass> ranked;
};

} // namespace sandwich

#endif // SANDWICH_LIB_TOPOLOGY_SEARCH_CLASSRANKING_H
