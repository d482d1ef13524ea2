//===- GroupEnumeration.cpp - Every tree that group can make --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/GroupEnumeration.h"

#include "sandwich/Topology/Trees/GroupGraph.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

using namespace sandwich;

static constexpr uint64_t tooMany = std::numeric_limits<uint64_t>::max();

//===----------------------------------------------------------------------===//
// Assumptions
//===----------------------------------------------------------------------===//

static Status checkTiledByStride(const TopoTree &tree) {
  for (unsigned depth = 1; depth <= tree.depth(); ++depth) {
    // Leaf positions are the machine's order, so a node's children follow from
    // theirs: child and parent share their first leaf's parent.
    auto parents = tree.leavesOfNodes(depth - 1, /*awakeOnly=*/false);
    auto children = tree.leavesOfNodes(depth, /*awakeOnly=*/false);
    std::vector<unsigned> parentOf(tree.leafCount());
    for (unsigned p = 0; p < parents.size(); ++p)
      for (unsigned leaf : parents[p])
        parentOf[leaf] = p;
    std::vector<std::vector<int64_t>> firstChild(parents.size());
    for (const std::vector<unsigned> &child : children) {
      std::vector<int64_t> cpus;
      cpus.reserve(child.size());
      for (unsigned leaf : child)
        cpus.push_back(tree.leaves()[leaf].cpu);
      std::sort(cpus.begin(), cpus.end());
      std::vector<int64_t> &first = firstChild[parentOf[child.front()]];
      if (first.empty())
        first = cpus;
      for (size_t i = 1; i < cpus.size(); ++i)
        if (cpus[i] - first[i] != cpus[0] - first[0])
          return makeError("A.2 (tiled by stride): at depth ", depth,
                           " the node with CPU ", cpus[0],
                           " is not its first sibling shifted by a stride");
    }
  }
  return {};
}

Status sandwich::checkAssumption(const TopoTree &tree,
                                 TopoAssumption assumption) {
  switch (assumption) {
  case TopoAssumption::Symmetric:
    return {};
  case TopoAssumption::TiledByStride:
    return checkTiledByStride(tree);
  case TopoAssumption::PowerOfTwo:
    for (unsigned depth = 2; depth <= tree.depth(); ++depth)
      if (tree.level(depth - 1).isGroup() &&
          !std::has_single_bit(tree.level(depth).arity))
        return makeError("A.3 (power of two): groups at depth ", depth - 1,
                         " have ", tree.level(depth).arity, " members");
    return {};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Enumeration
//===----------------------------------------------------------------------===//

/// Visits `tree` and every tree that further groups make of it: groups over
/// the nodes now at `depth`, then groups at smaller depths.
static bool visitGroupings(const TopoTree &tree, unsigned depth,
                           GroupSizes sizes,
                           const std::function<bool(const TopoTree &)> &visit) {
  if (depth == 0)
    return visit(tree);
  if (!visitGroupings(tree, depth - 1, sizes, visit))
    return false;
  unsigned arity = tree.level(depth).arity;
  for (unsigned size : groupSizes(arity, sizes))
    for (unsigned stride : divisorsOf(arity / size))
      if (size < arity)
        // Arguments that tile cannot fail.
        if (!visitGroupings(*tree.group(size, stride, depth), depth, sizes,
                            visit))
          return false;
  return true;
}

Status sandwich::forEachGroupedTree(
    const TopoTree &tree, GroupSizes sizes,
    const std::function<bool(const TopoTree &)> &visit) {
  if (!tree.derivation().empty())
    return makeError("the tree is transformed already: ", tree.derivation());
  visitGroupings(tree, tree.depth(), sizes, visit);
  return {};
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

static uint64_t countGroupings(unsigned arity, GroupSizes sizes,
                               std::map<unsigned, uint64_t> &known) {
  if (arity == 1)
    return 1;
  if (auto found = known.find(arity); found != known.end())
    return found->second;
  uint64_t count = 0;
  for (unsigned size : groupSizes(arity, sizes)) {
    auto ways =
        checkedMultiply<uint64_t>(countGroupings(arity / size, sizes, known),
                                  divisorsOf(arity / size).size());
    count = checkedAdd(count, ways.value_or(tooMany)).value_or(tooMany);
  }
  return known[arity] = count;
}

uint64_t sandwich::countGroupings(unsigned arity, GroupSizes sizes) {
  std::map<unsigned, uint64_t> known;
  return ::countGroupings(arity, sizes, known);
}

uint64_t sandwich::countGroupedTrees(const TopoTree &tree, GroupSizes sizes) {
  uint64_t count = 1;
  for (unsigned depth = 1; depth <= tree.depth(); ++depth)
    count =
        checkedMultiply(count, countGroupings(tree.level(depth).arity, sizes))
            .value_or(tooMany);
  return count;
}

double sandwich::groupingsBound(unsigned arity, GroupSizes sizes) {
  if (arity == 1)
    return 1;
  double bound = 0;
  for (unsigned size : groupSizes(arity, sizes)) {
    unsigned groups = arity / size;
    bound += groupingsBound(groups, sizes) * groups;
  }
  return bound;
}

uint64_t sandwich::countRemovals(const TopoTree &tree) {
  return tree.leafCount();
}

uint64_t sandwich::removalsRecurrence(unsigned leaves) {
  if (leaves <= 1)
    return 1;
  uint64_t most = 0;
  for (unsigned size : divisorsOf(leaves))
    if (size >= 2)
      most = std::max(most, (size - 1) * removalsRecurrence(leaves / size));
  return most;
}

uint64_t sandwich::removalsBound(unsigned leaves) {
  return uint64_t{leaves} * leaves;
}
