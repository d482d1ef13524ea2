//===- GroupEnumeration.cpp - Every tree that group can make --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/GroupEnumeration.h"

#include "sandwich/Topology/Trees/GroupGraph.h"
#include "sandwich/Topology/Trees/SiblingTiling.h"

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
  std::optional<SiblingTiling> tiling;
  for (unsigned depth = tree.depth(); depth >= 2; --depth) {
    const TopoLevel &level = tree.level(depth);
    if (!level.isGroup()) {
      unsigned siblings = level.arity;
      for (unsigned above = depth; tree.level(--above).isGroup();)
        siblings *= tree.level(above).arity;
      tiling.emplace(siblings);
    }
    if (!tree.level(depth - 1).isGroup())
      continue;
    tiling = tiling->grouped(level.arity, level.stride);
    if (!tiling)
      return makeError("A.2 (tiled by stride): the groups at depth ", depth - 1,
                       " are not translations of each other");
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
/// the nodes now at `depth`, which tile the machine's parts there as `tiling`
/// does, then groups at smaller depths.
static bool visitGroupings(const TopoTree &tree, unsigned depth,
                           const SiblingTiling &tiling, GroupSizes sizes,
                           const std::function<bool(const TopoTree &)> &visit) {
  if (depth == 0)
    return visit(tree);
  if (!visitGroupings(tree, depth - 1,
                      SiblingTiling(tree.level(depth - 1).arity), sizes, visit))
    return false;
  unsigned arity = tree.level(depth).arity;
  for (unsigned size : groupSizes(arity, sizes))
    for (unsigned stride : divisorsOf(arity / size)) {
      if (size == arity)
        continue;
      std::optional<SiblingTiling> grouped = tiling.grouped(size, stride);
      // Arguments that tile cannot fail.
      if (grouped && !visitGroupings(*tree.group(size, stride, depth), depth,
                                     *grouped, sizes, visit))
        return false;
    }
  return true;
}

Status sandwich::forEachGroupedTree(
    const TopoTree &tree, GroupSizes sizes,
    const std::function<bool(const TopoTree &)> &visit) {
  if (!tree.derivation().empty())
    return makeError("the tree is transformed already: ", tree.derivation());
  visitGroupings(tree, tree.depth(),
                 SiblingTiling(tree.level(tree.depth()).arity), sizes, visit);
  return {};
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

/// By how many levels they have.
using CountByLevels = std::vector<uint64_t>;

/// `sum` += how many pairs of one of `a` and one of `b` there are, times the
/// ways to merge their levels' orders.
static void addPairs(CountByLevels &sum, const CountByLevels &a,
                     const CountByLevels &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t merges = 1;
    for (size_t j = 0; i + j < sum.size(); ++j) {
      auto pairs = checkedMultiply(a[i], b[j]);
      auto ways = checkedMultiply(pairs.value_or(tooMany), merges);
      sum[i + j] =
          checkedAdd(sum[i + j], ways.value_or(tooMany)).value_or(tooMany);
      // Binomials of at most fifteen levels, which are exact step by step.
      merges = merges * (i + j + 1) / (j + 1);
    }
  }
}

// A tree is a word (docs/RationaleTopoTree.md, "How many trees"): the digits of
// the siblings' mixed radix, each with the level whose children it counts. The
// topmost level's digits cut it into words of other levels, and only the first
// and the last of these may be empty.
uint64_t sandwich::countGroupings(unsigned arity, GroupSizes sizes) {
  struct Counts {
    /// Words whose levels all make groups; those of them, and of all, without
    /// the level that is topmost; and these without their last digit of that.
    CountByLevels words, below, belowWhole, begun, begunWhole;
  };
  if (arity == 1)
    return 1;
  // No more levels than prime factors.
  const size_t levels = std::bit_width(arity);
  std::map<unsigned, Counts> known;
  for (unsigned number : divisorsOf(arity)) {
    Counts &counts = known[number];
    for (CountByLevels *list :
         {&counts.words, &counts.below, &counts.belowWhole, &counts.begun,
          &counts.begunWhole})
      list->assign(levels, 0);
    auto add = [](CountByLevels &sum, const CountByLevels &more) {
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] = checkedAdd(sum[i], more[i]).value_or(tooMany);
    };
    for (unsigned digit : divisorsOf(number)) {
      if (digit == 1)
        continue;
      const Counts &rest = known[number / digit];
      add(counts.belowWhole, rest.begunWhole);
      if (sizes == GroupSizes::Any || std::has_single_bit(digit))
        add(counts.below, rest.begun);
    }
    std::copy(counts.below.begin(), counts.below.end() - 1,
              counts.words.begin() + 1);
    for (auto [begun, below] :
         {std::pair(&Counts::begun, &Counts::below),
          std::pair(&Counts::begunWhole, &Counts::belowWhole)}) {
      CountByLevels &sum = counts.*begun;
      sum[0] = number == 1;
      add(sum, counts.words);
      add(sum, counts.words);
      for (unsigned factor : divisorsOf(number)) {
        const Counts &before = known[number / factor];
        addPairs(sum, known[factor].words, before.words);
        addPairs(sum, known[factor].words, before.*below);
      }
    }
  }
  uint64_t count = 0;
  for (uint64_t ofLevels : known[arity].belowWhole)
    count = checkedAdd(count, ofLevels).value_or(tooMany);
  return count;
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
