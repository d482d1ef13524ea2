//===- GroupEnumeration.h - Every tree that group can make ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The search space of the Sandwich paper's section 4.2: its assumptions by
/// name, the trees that repeated `group` reaches, how many they are, and the
/// recurrences of its appendix.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_TREES_GROUPENUMERATION_H
#define SANDWICH_TOPOLOGY_TREES_GROUPENUMERATION_H

#include "sandwich/Topology/Trees/TopoTree.h"

#include <cstdint>
#include <functional>

namespace sandwich {

/// The paper's Assumption 1.
enum class TopoAssumption {
  /// A.1: every subgraph is symmetric. The representation depends on it:
  /// `TopoTree::fromMachine` refuses machines that break it.
  Symmetric,
  /// A.2: the children of a node are translations of each other, as the
  /// machine's parts are numbered where they stand among their siblings
  /// (`SiblingTiling`). The paper says it of the CPU numbers that the
  /// manufacturer gives; where these are irregular, that is no group's doing.
  TiledByStride,
  /// A.3: groups have a power of two of members. May be switched on where
  /// there are too many trees; how many children the machine's own parts have
  /// is no group's size.
  PowerOfTwo,
};

/// Whether `tree` meets `assumption`: the error names the depth that does not.
Status checkAssumption(const TopoTree &tree, TopoAssumption assumption);

/// The sizes that `group` is tried with. A.1 and A.2 always hold.
enum class GroupSizes { Any, PowersOfTwo };

/// Calls `visit` with the fundamental tree and each tree that `group` calls
/// make of it without breaking A.2, every tree once, until `visit` returns
/// false. Errors: `tree` is grouped or has removed nodes.
Status forEachGroupedTree(const TopoTree &tree, GroupSizes sizes,
                          const std::function<bool(const TopoTree &)> &visit);

/// How many trees `group` calls make of `arity` siblings, the one without
/// groups included: S(n) of the appendix with the exact number of partitions.
/// The largest 64-bit number if there are more.
uint64_t countGroupings(unsigned arity, GroupSizes sizes);

/// How many trees `forEachGroupedTree` visits: the product over the levels.
uint64_t countGroupedTrees(const TopoTree &tree, GroupSizes sizes);

/// The appendix's recurrence (2) to (4) as an upper bound of `countGroupings`:
/// it takes every stride up to n/k to give a partition.
double groupingsBound(unsigned arity, GroupSizes sizes);

/// How many trees `remove` makes of a grouped one, itself included: each level
/// keeps from one to all of its children, so this is the number of leaves.
uint64_t countRemovals(const TopoTree &tree);

/// The appendix's recurrence (9), the most ways to remove from every level of
/// any one tree over `leaves` CPUs: S(1) = 1, S(n) = max over k of
/// (k - 1) * S(n / k).
uint64_t removalsRecurrence(unsigned leaves);

/// The appendix's bound (11) of the remove space: leaves squared.
uint64_t removalsBound(unsigned leaves);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_GROUPENUMERATION_H
