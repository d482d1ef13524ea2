//===- CrossSection.h - A cut shared by many trees --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Trees that agree below a cross-section give the same configurations, so the
/// search takes each cross-section once for all trees that have it: one tiling
/// at one level of the machine. `SearchSpace` is the fundamental tree with the
/// group graph of each of its levels.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TOPOLOGY_SEARCH_CROSSSECTION_H
#define SANDWICH_LIB_TOPOLOGY_SEARCH_CROSSSECTION_H

#include "sandwich/Topology/Trees/GroupGraph.h"

#include "sandwich/Topology/Search/ServiceConfiguration.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace sandwich {

/// Takes `count` right-most children away from each group that `edge` makes
/// among the machine's parts at level `level`.
struct Removal {
  uint32_t edge;
  uint16_t level;
  uint16_t count;
  auto operator<=>(const Removal &) const = default;
};

/// Which children of each part of the machine are awake, one bit for each, in
/// words of their own for each level.
using AwakeMask = std::vector<uint64_t>;

class SearchSpace {
public:
  /// One level of the machine: children of each part one level up.
  struct Level {
    GroupGraph graph;
    /// Where its bits begin in an `AwakeMask`.
    size_t firstWord;
  };

  /// All trees that groups of the given sizes make of `tree`, or, where
  /// `keepGroups` is set, `tree` alone with the groups it has. A level with too
  /// many groupings has fewer scattered groups, as few as it takes, and
  /// `restricted` tells of it. Errors: `tree` has removed nodes, or groups
  /// without `keepGroups`; `interrupted`, which is asked now and then and once
  /// it says so must say so ever after.
  static Result<SearchSpace>
  make(const TopoTree &tree, GroupSizes sizes, bool keepGroups,
       const std::function<bool()> &interrupted = {});

  /// The machine's levels, outermost first. None for a machine of one CPU.
  const std::vector<Level> &levels() const { return machineLevels; }
  /// Parts of the machine above level `level`.
  unsigned partsAbove(unsigned level) const;
  const std::vector<TopoCpu> &leaves() const { return fundamental.leaves(); }
  unsigned depth() const { return fundamental.depth(); }
  /// How many grouped trees it holds, and a line for each level that has not
  /// all groups.
  uint64_t trees() const { return treeCount; }
  const std::vector<std::string> &restricted() const { return notes; }

  /// Everything awake.
  AwakeMask allAwake() const;
  /// Which child of its group each of the parts is that `removal` is made at,
  /// whatever its count.
  std::vector<uint16_t> childrenOf(const Removal &removal) const;
  /// Clears what `removal`, made at these children, puts to sleep.
  void apply(const Removal &removal, const std::vector<uint16_t> &children,
             AwakeMask &mask) const;

  /// Whether some tree has what `added` is made at in addition to what
  /// `removals` are made at, which some tree has.
  bool fit(const std::vector<Removal> &removals, const Removal &added) const;

  /// The simplest tree with tiling `tiling` at level `level`, what the removals
  /// are made at, and what a space of one tree has; and the depth of the
  /// tiling.
  std::pair<TopoTree, unsigned>
  tree(unsigned level, uint32_t tiling,
       const std::vector<Removal> &removals) const;

  /// How many groups and removes that tree is made by.
  unsigned transformations(unsigned level, uint32_t tiling,
                           const std::vector<Removal> &removals) const;

private:
  explicit SearchSpace(TopoTree fundamental)
      : fundamental(std::move(fundamental)) {}

  /// Calls `step(from, to)` for each shortest path, and `edge(removal)` for
  /// each remove in between, of which the groupings of `level` are made,
  /// innermost first; `cut()` once those below the tiling of the cross-section
  /// are done.
  template <typename Step, typename Edge, typename Cut>
  void walk(unsigned level, unsigned cutLevel, uint32_t tiling,
            const std::vector<Removal> &removals, const Step &step,
            const Edge &edge, const Cut &cut) const;

  /// The tree without groups.
  TopoTree fundamental;
  std::vector<Level> machineLevels;
  uint64_t treeCount = 1;
  std::vector<std::string> notes;
};

/// One cross-section: processes are the groups of `tiling` among the parts at
/// `level`.
struct CrossSection {
  unsigned level;
  uint32_t tiling;

  unsigned processes(const SearchSpace &space) const;
  /// The NUMA nodes of each process.
  std::vector<std::vector<unsigned>> numa(const SearchSpace &space) const;
  /// The CPUs of each process, into lists of former use.
  void cores(const SearchSpace &space, const AwakeMask &mask,
             std::vector<std::vector<unsigned>> &lists) const;
  /// How many CPUs each process has, all of them as many, if nothing at or
  /// above the cross-section is removed.
  unsigned coresOfProcess(const SearchSpace &space,
                          const AwakeMask &mask) const;
  /// Whether what `removal` is made at can be below this cross-section.
  bool isAbove(const SearchSpace &space, const Removal &removal) const;
};

/// Every cross-section of the trees of `space`, each once: by level from the
/// root, those of the fewest groupings first.
std::vector<CrossSection> crossSections(const SearchSpace &space);

} // namespace sandwich

#endif // SANDWICH_LIB_TOPOLOGY_SEARCH_CROSSSECTION_H
