//===- SiblingTiling.h - Siblings tiled by shifted groups -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Assumption A.2 of the Sandwich paper: the children of a node are
/// translations of each other. Everything that lists, counts or checks trees
/// asks `SiblingTiling::grouped`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_TREES_SIBLINGTILING_H
#define SANDWICH_TOPOLOGY_TREES_SIBLINGTILING_H

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace sandwich {

/// Siblings 0, 1, ... in groups of which each is the first one shifted. Such a
/// tiling of an interval is always a mixed radix: of a sibling's digits every
/// second one belongs to the number of its group, and the others say where in
/// the group it is (de Bruijn, "On number systems", 1956).
///
/// `TopoTree::group` makes other tilings as well: groups of two with stride 3
/// of twelve siblings, and two neighbours of these, are {0, 1, 3, 4} beside
/// {2, 5, 6, 9}.
class SiblingTiling {
public:
  /// Every one of `siblings` by itself.
  explicit SiblingTiling(unsigned siblings);

  /// How many groups there are.
  unsigned groupCount() const;

  /// The tiling by groups of `size` of these groups with a `stride`, where
  /// blocks of size * stride tile them; nothing if the new groups are not
  /// translations of each other. A tree of which every node's children are has
  /// only such tilings, and the other way round.
  std::optional<SiblingTiling> grouped(unsigned size, unsigned stride) const;

  /// Equal where the groups are.
  auto operator<=>(const SiblingTiling &) const = default;

private:
  SiblingTiling() = default;
  void append(bool insideGroup, unsigned radix);

  /// The lowest digit first. Those at even places belong to the number of the
  /// group; only the first may be 1, where the lowest digit does not.
  std::vector<uint16_t> radices;
};

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_SIBLINGTILING_H
