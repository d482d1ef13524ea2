//===- GroupGraph.h - Every way to group siblings ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Grouped trees differ in how they group siblings, and many of them pass
/// through the same partitions on the way. A group graph has these partitions
/// ("tilings") as vertices and single groupings as edges: its paths from the
/// siblings themselves to the one whole are the grouped trees, and what two
/// trees share is there once.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_TREES_GROUPGRAPH_H
#define SANDWICH_TOPOLOGY_TREES_GROUPGRAPH_H

#include "sandwich/Topology/Trees/GroupEnumeration.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace sandwich {

/// The divisors of `number`, ascending.
std::vector<unsigned> divisorsOf(unsigned number);

/// What `arity` siblings may be divided by: the sizes of groups, and `arity`
/// itself, which ends the tree. None for a single sibling.
std::vector<unsigned> groupSizes(unsigned arity, GroupSizes sizes);

class GroupGraph {
public:
  /// Groups of `size` with a `stride` make tiling `to` of the groups of tiling
  /// `from`. Edges on a path ascend.
  struct Edge {
    uint32_t from;
    uint32_t to;
    uint16_t size;
    uint16_t stride;
  };

  /// Every way to group `arity` siblings. Errors: there are more tilings than
  /// are worth keeping; `interrupted`, which is asked now and then, says so.
  static Result<GroupGraph> make(unsigned arity, GroupSizes sizes,
                                 const std::function<bool()> &interrupted = {});

  /// The one way that is given by (size, stride) of each level, innermost
  /// first; the last makes the whole.
  static GroupGraph
  makeChain(unsigned arity,
            const std::vector<std::pair<unsigned, unsigned>> &levels);

  unsigned arity() const { return siblings; }
  uint32_t tilingCount() const { return groupCounts.size(); }
  /// How many groups a tiling has. Tiling 0 has every sibling by itself.
  unsigned groupCount(uint32_t tiling) const { return groupCounts[tiling]; }
  /// The tiling of one group.
  uint32_t whole() const { return wholeTiling; }
  /// Which group of `tiling` holds the sibling at `position`.
  unsigned groupOf(uint32_t tiling, unsigned position) const {
    return groups[size_t{tiling} * siblings + position];
  }
  /// Which child of its group at `edge.to` holds the sibling at `position`.
  unsigned childOf(const Edge &edge, unsigned position) const {
    return groupOf(edge.from, position) / edge.stride % edge.size;
  }
  const std::vector<Edge> &edges() const { return edgeList; }
  /// Whether `to` is `from` or can be made of it.
  bool reaches(uint32_t from, uint32_t to) const {
    return reach[size_t{from} * wordsPerTiling + to / 64] >> (to % 64) & 1;
  }
  /// The fewest groupings that make a tiling of tiling 0.
  unsigned distance(uint32_t tiling) const { return distances[tiling]; }
  /// A shortest path between tilings of which the second is reached.
  std::vector<uint32_t> path(uint32_t from, uint32_t to) const;

private:
  /// Adds edges in order; `leave(tiling)` lists the (size, stride) to try.
  template <typename Leave>
  Status build(unsigned arity, const Leave &leave,
               const std::function<bool()> &interrupted = {});
  void close();

  unsigned siblings = 0;
  uint32_t wholeTiling = 0;
  std::vector<unsigned> groupCounts;
  std::vector<uint16_t> groups;
  std::vector<Edge> edgeList;
  std::vector<unsigned> distances;
  size_t wordsPerTiling = 0;
  std::vector<uint64_t> reach;
};

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_GROUPGRAPH_H
