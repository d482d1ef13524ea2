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
  /// A.2: children of one node tile it by a stride. `group` makes no other
  /// trees, as to where children stand among their siblings. The paper says it
  /// of the CPU indexes that the manufacturer provides, and so does
  /// `checkAssumption`.
  TiledByStride,
  /// A.3: groups have a power of two of members. May be switched on where
  /// there are too many trees; how many children the machine's own parts have
  /// is no group's size.
  PowerOfTwo,
};

/// Whether `tree` meets `assumption`: the error names the depth that does not.
/// A.2 holds if below every node each child's CPU indexes are those of the
/// first child, all shifted by the same number. (The paper's formula lets every
/// index shift by a number of its own, which a stride of 1 always satisfies;
/// its proof counts what is checked here.)
Status checkAssumption(const TopoTree &tree, TopoAssumption assumption);

/// The sizes that `group` is tried with. A.1 and A.2 always hold.
enum class GroupSizes { Any, PowersOfTwo };

/// Calls `visit` with the fundamental tree and each tree that `group` calls
/// make of it, every tree once, until `visit` returns false. Errors: `tree` is
/// grouped or has removed nodes.
Status forEachGroupedTree(const TopoTree &tree, GroupSizes sizes,
                          const std::function<bool(const TopoTree &)> &visit);

/// How many trees `group` calls make of `arity` siblings, the one without
/// groups included: S(n) of the appendix with the exact number of partitions,
/// S(1) = 1, S(n) = sum over k of S(n/k) * (number of divisors of n/k), k being
/// the divisors of n from 2 that `sizes` allows, and n itself, which is the
/// end. The largest 64-bit number if there are more.
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
