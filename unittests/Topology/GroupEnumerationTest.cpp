//===- GroupEnumerationTest.cpp - Every tree that group can make ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The trees are made here a second time from the assumptions alone: partitions
// of a set into blocks, all blocks of one size (A.1), each block a progression
// of one common stride that holds translations of one child (A.2), its size a
// power of two (A.3).
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/GroupEnumeration.h"

#include "TestMachines.h"

#include "sandwich/Topology/Trees/GroupGraph.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace sandwich;
using namespace sandwich::test;

using Blocks = std::vector<std::vector<unsigned>>;
/// The blocks of leaves at each depth from the leaves up.
using Nesting = std::vector<Blocks>;

/// What `group` makes: every block is least + 0, t, 2t, … for one t.
static bool isTiled(const Blocks &blocks) {
  for (unsigned stride = 1; stride <= blocks.size(); ++stride)
    if (std::all_of(blocks.begin(), blocks.end(), [&](const auto &block) {
          for (size_t i = 0; i < block.size(); ++i)
            if (block[i] != block[0] + i * stride)
              return false;
          return true;
        }))
      return true;
  return false;
}

/// A.2 of one node: each child's leaves are the first one's, all shifted by the
/// same number. They are ascending.
static bool areTranslations(const Blocks &children) {
  for (const std::vector<unsigned> &child : children)
    for (size_t i = 0; i < child.size(); ++i)
      if (child[i] - child[0] != children[0][i] - children[0][0])
        return false;
  return true;
}

/// Calls `visit` with every partition of 0 … count-1 into blocks of `size`;
/// blocks stand in the order of their least members.
template <typename Visit>
static void forEachPartition(unsigned count, unsigned size, Blocks &blocks,
                             std::vector<bool> &used, const Visit &visit) {
  auto fill = [&](auto &&self, unsigned from) -> void {
    if (blocks.back().size() == size) {
      unsigned least =
          std::find(used.begin(), used.end(), false) - used.begin();
      if (least == count) {
        visit(blocks);
        return;
      }
      blocks.push_back({least});
      used[least] = true;
      self(self, least + 1);
      used[least] = false;
      blocks.pop_back();
      return;
    }
    for (unsigned next = from; next < count; ++next) {
      if (used[next])
        continue;
      used[next] = true;
      blocks.back().push_back(next);
      self(self, next + 1);
      blocks.back().pop_back();
      used[next] = false;
    }
  };
  used.assign(count, false);
  used[0] = true;
  blocks = {{0}};
  fill(fill, 1);
}

/// All nestings of the blocks `nesting.back()`, added to `found`.
static void nest(Nesting &nesting, GroupSizes sizes, std::set<Nesting> &found) {
  const Blocks nodes = nesting.back();
  // They are the root's children, if nothing else is grouped.
  if (areTranslations(nodes))
    found.insert(nesting);
  for (unsigned size = 2; size < nodes.size(); ++size) {
    if (nodes.size() % size != 0 ||
        (sizes == GroupSizes::PowersOfTwo && (size & (size - 1)) != 0))
      continue;
    Blocks blocks;
    std::vector<bool> used;
    forEachPartition(
        nodes.size(), size, blocks, used, [&](const Blocks &partition) {
          if (!isTiled(partition))
            return;
          Blocks merged;
          for (const auto &block : partition) {
            merged.emplace_back();
            Blocks children;
            for (unsigned node : block) {
              children.push_back(nodes[node]);
              merged.back().insert(merged.back().end(), nodes[node].begin(),
                                   nodes[node].end());
            }
            if (!areTranslations(children))
              return;
            std::sort(merged.back().begin(), merged.back().end());
          }
          nesting.push_back(merged);
          nest(nesting, sizes, found);
          nesting.pop_back();
        });
  }
}

static std::set<Nesting> nestings(unsigned leaves, GroupSizes sizes) {
  Nesting nesting(1);
  for (unsigned leaf = 0; leaf < leaves; ++leaf)
    nesting[0].push_back({leaf});
  std::set<Nesting> found;
  nest(nesting, sizes, found);
  return found;
}

/// Whether the children of every node of `tree` are translations of each other.
static bool isTranslated(const TopoTree &tree) {
  for (unsigned depth = 1; depth <= tree.depth(); ++depth) {
    std::map<unsigned, Blocks> childrenOf;
    std::vector<unsigned> parentOf(tree.leafCount());
    unsigned number = 0;
    for (const auto &parent : tree.leavesOfNodes(depth - 1, false)) {
      for (unsigned leaf : parent)
        parentOf[leaf] = number;
      ++number;
    }
    for (const auto &child : tree.leavesOfNodes(depth, false))
      childrenOf[parentOf[child.front()]].push_back(child);
    for (const auto &[parent, children] : childrenOf)
      if (!areTranslations(children))
        return false;
  }
  return true;
}

/// Calls `visit` with every tree that `group` makes of the flat `tree`.
template <typename Visit>
static void forEachTree(const TopoTree &tree, GroupSizes sizes,
                        const Visit &visit) {
  visit(tree);
  unsigned nodes = tree.level(1).arity;
  for (unsigned size = 2; size < nodes; ++size)
    for (unsigned stride = 1; size * stride <= nodes; ++stride)
      if (sizes == GroupSizes::Any || (size & (size - 1)) == 0)
        if (auto grouped = tree.group(size, stride, 1))
          forEachTree(*grouped, sizes, visit);
}

class Counts : public ::testing::TestWithParam<GroupSizes> {};

INSTANTIATE_TEST_SUITE_P(Assumptions, Counts,
                         ::testing::Values(GroupSizes::Any,
                                           GroupSizes::PowersOfTwo),
                         [](const auto &info) {
                           return info.param == GroupSizes::Any
                                      ? "A1AndA2"
                                      : "A1AndA2AndA3";
                         });

TEST_P(Counts, SmallTreesAreThoseOfAllPartitions) {
  for (unsigned leaves = 2; leaves <= 12; ++leaves) {
    std::set<Nesting> expected = nestings(leaves, GetParam());
    std::set<Nesting> found;
    uint64_t visits = 0;
    ASSERT_TRUE(forEachGroupedTree(
        makeFlat(leaves), GetParam(), [&](const TopoTree &tree) {
          ++visits;
          Nesting nesting;
          for (unsigned depth = tree.depth(); depth >= 1; --depth)
            nesting.push_back(tree.leavesOfNodes(depth, false));
          found.insert(nesting);
          return true;
        }));
    EXPECT_EQ(found, expected) << leaves;
    EXPECT_EQ(visits, expected.size()) << leaves;
    EXPECT_EQ(countGroupings(leaves, GetParam()), expected.size()) << leaves;
  }
}

TEST_P(Counts, AgreeWithCheckedTreesUpTo64) {
  for (unsigned leaves = 2; leaves <= 64; ++leaves) {
    std::set<TopoHash> expected;
    forEachTree(makeFlat(leaves), GetParam(), [&](const TopoTree &tree) {
      bool translated = isTranslated(tree);
      if (translated)
        expected.insert(tree.hash());
      EXPECT_EQ(static_cast<bool>(
                    checkAssumption(tree, TopoAssumption::TiledByStride)),
                translated)
          << tree.derivation();
    });
    std::set<TopoHash> hashes;
    uint64_t visits = 0;
    ASSERT_TRUE(forEachGroupedTree(makeFlat(leaves), GetParam(),
                                   [&](const TopoTree &tree) {
                                     ++visits;
                                     hashes.insert(tree.hash());
                                     return true;
                                   }));
    EXPECT_EQ(hashes, expected) << leaves;
    EXPECT_EQ(visits, expected.size()) << leaves;
    EXPECT_EQ(countGroupings(leaves, GetParam()), visits) << leaves;
  }
}

TEST_P(Counts, AreThePathsOfTheGraph) {
  for (unsigned leaves : {24, 97, 144, 360, 384, 480, 576, 640, 768, 960, 1024,
                          1680, 4096, 16384}) {
    auto graph = GroupGraph::make(leaves, GetParam(), ScatteredGroups::All);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(countGroupings(leaves, GetParam()), graph->countTrees())
        << leaves;
  }
}

TEST_P(Counts, StayBelowTheAppendix) {
  for (unsigned leaves = 2; leaves <= 64; ++leaves) {
    double count = countGroupings(leaves, GetParam());
    EXPECT_LE(count, groupingsBound(leaves, GetParam())) << leaves;
    // (8): n^n / (n - 1)!
    EXPECT_LE(std::log(count), leaves * std::log(leaves) - std::lgamma(leaves))
        << leaves;
  }
}

// The proposition's form under A.3, n^(log2(n) / 2) / (n - 1)!, goes below one
// tree, so it bounds no count; docs/RationaleTopoTree.md says so.
TEST(Appendix, ClosedFormOfPowersOfTwoIsBelowOneTree) {
  double n = 8;
  EXPECT_LT(std::pow(n, std::log2(n) / 2) / std::tgamma(n), 1.0);
}

TEST(Appendix, RemoveSpaceIsBelowTheSquare) {
  for (unsigned leaves = 2; leaves <= 64; ++leaves) {
    EXPECT_LE(removalsRecurrence(leaves), removalsBound(leaves));
    ASSERT_TRUE(forEachGroupedTree(
        makeFlat(leaves), GroupSizes::Any, [&](const TopoTree &tree) {
          uint64_t everyLevel = 1;
          for (unsigned depth = 1; depth <= tree.depth(); ++depth)
            everyLevel *= tree.level(depth).arity - 1;
          EXPECT_LE(everyLevel, removalsRecurrence(leaves));
          EXPECT_LE(countRemovals(tree), removalsBound(leaves));
          return true;
        }));
  }
}

TEST(Appendix, RemoveSpaceIsCountedByRemoving) {
  auto tree = makeFlat(24).group(4, 3, 1)->group(2, 1, 1);
  ASSERT_TRUE(tree);
  std::set<TopoHash> met;
  auto walk = [&](auto &&self, const TopoTree &current) -> void {
    if (!met.insert(current.hash()).second)
      return;
    for (unsigned depth = 1; depth <= current.depth(); ++depth)
      if (auto removed = current.remove(1, depth))
        self(self, *removed);
  };
  walk(walk, *tree);
  EXPECT_EQ(met.size(), countRemovals(*tree));
}

TEST(GroupedTrees, LevelsOfAMachineMultiply) {
  TopoTree kunpeng = makeKunpeng();
  uint64_t trees = 0;
  ASSERT_TRUE(forEachGroupedTree(kunpeng, GroupSizes::Any,
                                 [&](const TopoTree &) { return ++trees; }));
  EXPECT_EQ(trees, 3u * 1u * 204u);
  EXPECT_EQ(countGroupedTrees(kunpeng, GroupSizes::Any), trees);
  EXPECT_EQ(countGroupedTrees(makeFlat(1024), GroupSizes::Any), 19958400u);
}

TEST(GroupedTrees, EndWhenToldTo) {
  unsigned visits = 0;
  ASSERT_TRUE(
      forEachGroupedTree(makeFlat(64), GroupSizes::Any,
                         [&](const TopoTree &) { return ++visits < 5; }));
  EXPECT_EQ(visits, 5u);
  Status status =
      forEachGroupedTree(*makeFlat(8).group(2, 1, 1), GroupSizes::Any,
                         [](const TopoTree &) { return true; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "the tree is transformed already: group(2,1,1)");
}

TEST(GroupedTrees, DerivationMakesTheTree) {
  ASSERT_TRUE(forEachGroupedTree(
      makeTree({{"package", 4}, {"cpu", 12}}), GroupSizes::Any,
      [](const TopoTree &tree) {
        TopoTree remade = tree.fundamental();
        unsigned size, stride, depth;
        std::string text = tree.derivation();
        for (size_t at = 0; (at = text.find("group(", at)) != std::string::npos;
             ++at) {
          EXPECT_EQ(std::sscanf(text.c_str() + at, "group(%u,%u,%u)", &size,
                                &stride, &depth),
                    3);
          auto grouped = remade.group(size, stride, depth);
          EXPECT_TRUE(grouped) << text;
          if (!grouped)
            return false;
          remade = *grouped;
        }
        EXPECT_TRUE(remade == tree) << text;
        return true;
      }));
}

TEST(Assumptions, AreCheckedByName) {
  TopoTree tree = makeFlat(24);
  for (TopoAssumption assumption :
       {TopoAssumption::Symmetric, TopoAssumption::TiledByStride,
        TopoAssumption::PowerOfTwo})
    EXPECT_TRUE(checkAssumption(*tree.group(4, 3, 1), assumption));
  Status status =
      checkAssumption(*tree.group(3, 1, 1), TopoAssumption::PowerOfTwo);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "A.3 (power of two): groups at depth 1 have 3 members");
  // {0, 1, 3, 4} stands beside {2, 5, 6, 9}.
  status = checkAssumption(
      *makeTree({{"package", 2}, {"cpu", 12}}).group(2, 3, 2)->group(2, 1, 2),
      TopoAssumption::TiledByStride);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "A.2 (tiled by stride): the groups at depth 2 are not translations "
            "of each other");
}

// How the machine numbers its CPUs is no group's doing.
TEST(Assumptions, HoldForIrregularNumbers) {
  MachineNode machine = makeMachine({{"core", 4}, {"cpu", 2}});
  machine.children[1].children[1].index = 17;
  auto tree = TopoTree::fromMachine(machine);
  ASSERT_TRUE(tree);
  uint64_t trees = 0;
  ASSERT_TRUE(
      forEachGroupedTree(*tree, GroupSizes::Any, [&](const TopoTree &grouped) {
        EXPECT_TRUE(checkAssumption(grouped, TopoAssumption::TiledByStride));
        return ++trees;
      }));
  EXPECT_EQ(trees, 3u);
}

// Any number of siblings has few ways without scattered groups.
TEST(ScatteredGroups, MayBeFewer) {
  for (unsigned leaves : {2, 97, 27720, 30240, 32749, 32768}) {
    auto graph =
        GroupGraph::make(leaves, GroupSizes::Any, ScatteredGroups::None);
    ASSERT_TRUE(graph) << graph.error().message;
    // The siblings are the product of the sizes inside, between and around
    // groups; all that are one group are one tiling.
    unsigned expected = 0;
    for (unsigned groups : divisorsOf(leaves))
      expected += groups == 1 ? 1 : divisorsOf(leaves / groups).size();
    EXPECT_EQ(graph->tilingCount(), expected) << leaves;
    EXPECT_GE(graph->countTrees(), 1u);
  }
  auto all = GroupGraph::make(96, GroupSizes::Any, ScatteredGroups::All);
  auto some =
      GroupGraph::make(96, GroupSizes::Any, ScatteredGroups::PowersOfTwo);
  auto none = GroupGraph::make(96, GroupSizes::Any, ScatteredGroups::None);
  ASSERT_TRUE(all && some && none);
  EXPECT_LT(some->countTrees(), all->countTrees());
  EXPECT_LT(none->countTrees(), some->countTrees());
}

TEST(GroupGraph, DistancesAreThoseOfShortestPaths) {
  auto graph = GroupGraph::make(24, GroupSizes::Any, ScatteredGroups::All);
  ASSERT_TRUE(graph) << graph.error().message;
  // A chain skips nothing.
  const GroupGraph chain = GroupGraph::makeChain(24, {{2, 1}, {3, 1}, {4, 1}});
  auto check = [](const GroupGraph &each) {
    for (uint32_t from = 0; from < each.tilingCount(); ++from)
      for (uint32_t to = 0; to < each.tilingCount(); ++to) {
        if (!each.reaches(from, to))
          continue;
        EXPECT_EQ(each.distance(from, to), each.path(from, to).size())
            << from << " to " << to;
      }
  };
  check(*graph);
  check(chain);
  EXPECT_EQ(chain.distance(0, chain.whole()), 3u);
  EXPECT_EQ(graph->distance(0, graph->whole()), 1u);
}
