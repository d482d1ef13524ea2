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
#include <utility>
#include <vector>

namespace sandwich {

/// The divisors of `number`, ascending.
std::vector<unsigned> divisorsOf(unsigned number);

/// What `arity` siblings may be divided by: the sizes of groups, and `arity`
/// itself, which ends the tree. None for a single sibling.
std::vector<unsigned> groupSizes(unsigned arity, GroupSizes sizes);

/// Which scattered groups there are: those that neither have neighbours (a
/// stride of 1) nor are spread evenly over all siblings (a stride of as much as
/// there are groups). With the others alone the tilings of any number of
/// siblings are few: those by neighbours, spread, of neighbours.
enum class ScatteredGroups { All, PowersOfTwo, None };

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

  /// Every way to group `arity` siblings of which assumption A.2 holds
  /// (`SiblingTiling`). Errors: there are more tilings than are worth keeping,
  /// which is never so without scattered groups of up to `TopoTree::maxLeaves`
  /// siblings; `interrupted`, which is asked now and then, says so.
  static Result<GroupGraph> make(unsigned arity, GroupSizes sizes,
                                 ScatteredGroups scattered,
                                 const std::function<bool()> &interrupted = {});

  /// The one way that is given by (size, stride) of each level, innermost
  /// first; the last makes the whole.
  static GroupGraph
  makeChain(unsigned arity,
            const std::vector<std::pair<unsigned, unsigned>> &levels);

  unsigned arity() const { return groupCounts.front(); }
  uint32_t tilingCount() const { return groupCounts.size(); }
  /// How many groups a tiling has. Tiling 0 has every sibling by itself.
  unsigned groupCount(uint32_t tiling) const { return groupCounts[tiling]; }
  /// The tiling of one group.
  uint32_t whole() const { return wholeTiling; }
  /// How many grouped trees there are, which are the paths to the whole. The
  /// largest 64-bit number if there are more.
  uint64_t countTrees() const;
  /// Which group of `tiling` holds each sibling.
  std::vector<uint16_t> groupsOf(uint32_t tiling) const;
  /// Which child of its group at `edge.to` holds each sibling.
  std::vector<uint16_t> childrenOf(const Edge &edge) const;
  const std::vector<Edge> &edges() const { return edgeList; }
  /// Whether `to` is `from` or can be made of it.
  bool reaches(uint32_t from, uint32_t to) const {
    return reach[size_t{from} * wordsPerTiling + to / 64] >> (to % 64) & 1;
  }
  /// The fewest groupings that make a tiling of tiling 0.
  unsigned distance(uint32_t tiling) const { return distances[tiling]; }
  /// The fewest groupings that make `to` of `from`, which reaches it.
  unsigned distance(uint32_t from, uint32_t to) const;
  /// A shortest path between tilings of which the second is reached.
  std::vector<uint32_t> path(uint32_t from, uint32_t to) const;

private:
  uint32_t addTiling(unsigned groupCount);
  void close();

  uint32_t wholeTiling = 0;
  std::vector<unsigned> groupCounts;
  std::vector<Edge> edgeList;
  std::vector<unsigned> distances;
  /// The last edge of a shortest path to each tiling but the first.
  std::vector<uint32_t> lastEdges;
  /// Where the edges from each tiling begin; they stand together.
  std::vector<uint32_t> firstEdges;
  size_t wordsPerTiling = 0;
  std::vector<uint64_t> reach;
};

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_GROUPGRAPH_H
