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
// of one common stride (A.2), its size a power of two (A.3).
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/GroupEnumeration.h"

#include "TestMachines.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace sandwich;
using namespace sandwich::test;

using Blocks = std::vector<std::vector<unsigned>>;
/// The blocks of leaves at each depth from the leaves up.
using Nesting = std::vector<Blocks>;

/// A.2: every block is least + 0, t, 2t, … for one t.
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
            for (unsigned node : block)
              merged.back().insert(merged.back().end(), nodes[node].begin(),
                                   nodes[node].end());
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

/// S(n) with F counted by laying blocks of every stride one after the other.
static uint64_t countByTiling(unsigned count, bool powersOfTwo,
                              std::map<unsigned, uint64_t> &known) {
  if (count == 1)
    return 1;
  if (known.count(count))
    return known[count];
  uint64_t trees = 0;
  for (unsigned size = 2; size <= count; ++size) {
    if (powersOfTwo && size != count && (size & (size - 1)) != 0)
      continue;
    for (unsigned stride = 1; stride <= count / size; ++stride) {
      std::vector<bool> covered(count, false);
      bool tiles = true;
      for (unsigned least = 0; least < count && tiles; ++least)
        for (unsigned i = 0; i < size && !covered[least]; ++i) {
          unsigned member = least + i * stride;
          if (i + 1 < size) {
            tiles &= member < count && !covered[member];
            continue;
          }
          tiles &= member < count && !covered[member];
          for (unsigned j = 0; j < size && tiles; ++j)
            covered[least + j * stride] = true;
          if (!tiles)
            break;
        }
      if (tiles)
        trees += countByTiling(count / size, powersOfTwo, known);
    }
  }
  return known[count] = trees;
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

TEST_P(Counts, AgreeWithLayingBlocksUpTo64) {
  std::map<unsigned, uint64_t> known;
  for (unsigned leaves = 2; leaves <= 64; ++leaves) {
    uint64_t expected =
        countByTiling(leaves, GetParam() == GroupSizes::PowersOfTwo, known);
    EXPECT_EQ(countGroupings(leaves, GetParam()), expected) << leaves;
    std::set<TopoHash> hashes;
    uint64_t visits = 0;
    ASSERT_TRUE(forEachGroupedTree(makeFlat(leaves), GetParam(),
                                   [&](const TopoTree &tree) {
                                     ++visits;
                                     hashes.insert(tree.hash());
                                     return true;
                                   }));
    EXPECT_EQ(visits, expected) << leaves;
    EXPECT_EQ(hashes.size(), expected) << leaves;
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
  EXPECT_EQ(trees, 3u * 1u * 286u);
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
  // CPU numbers that no stride explains.
  MachineNode machine = makeMachine({{"core", 2}, {"cpu", 2}});
  machine.children[1].children[1].index = 7;
  status = checkAssumption(*TopoTree::fromMachine(machine),
                           TopoAssumption::TiledByStride);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "A.2 (tiled by stride): at depth 1 the node with CPU 2 is not its "
            "first sibling shifted by a stride");
}
