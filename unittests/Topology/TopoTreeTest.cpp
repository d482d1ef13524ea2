//===- TopoTreeTest.cpp - A machine as a tree of equal parts --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestMachines.h"

#include "sandwich/Topology/Search/ServiceConfiguration.h"

using namespace sandwich;
using namespace sandwich::test;

using Leaves = std::vector<std::vector<unsigned>>;

/// The error of a call that must fail.
template <typename T> static std::string errorOf(const Result<T> &result) {
  return result ? "no error" : result.error().message;
}

TEST(TopoTree, PartsAloneInTheirParentShareItsLevel) {
  TopoTree tree = makeKunpeng();
  ASSERT_EQ(tree.depth(), 3u);
  EXPECT_EQ(tree.describe(), "package x 4, numa x 2, core x 24");
  EXPECT_EQ(tree.level(0).name(), "machine");
  EXPECT_EQ(tree.level(2).features.size(), 3u);
  EXPECT_EQ(tree.nodeCount(2), 8u);
  EXPECT_EQ(tree.leafCount(), 192u);
  EXPECT_EQ(tree.derivation(), "");
}

TEST(TopoTree, HwlocsKunpengHasTheSameDepths) {
  auto machine = readMachineTopology(
      "synthetic:pack:4 die:2 [numa(memory=68719476736)] l3:1(size=25165824) "
      "l2:24(size=524288) l1d:1(size=65536) core:1 pu:1");
  ASSERT_TRUE(machine) << machine.error().message;
  auto tree = TopoTree::fromMachine(machine->root);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->describe(), "package x 4, numa x 2, core x 24");
  EXPECT_EQ(tree->leaves()[191], (TopoCpu{191, 7}));
}

TEST(TopoTree, LeavesAreCpusOrCores) {
  MachineNode machine = makeMachine({{"numa", 2}, {"core", 2}, {"cpu", 2}});
  auto cpus = TopoTree::fromMachine(machine);
  ASSERT_TRUE(cpus);
  EXPECT_EQ(cpus->describe(), "numa x 2, core x 2, cpu x 2");
  // Removing at the CPUs leaves one hardware thread for each core.
  EXPECT_EQ(cpus->remove(1, 3)->leavesOfNodes(1, true),
            (Leaves{{0, 2}, {4, 6}}));
  auto cores = TopoTree::fromMachine(machine, TopoLeaves::Cores);
  ASSERT_TRUE(cores);
  EXPECT_EQ(cores->describe(), "numa x 2, core x 2");
  EXPECT_EQ(cores->leaves()[1], (TopoCpu{2, 0}));
}

TEST(TopoTree, OneCpuIsATreeOfDepthZero) {
  TopoTree tree = makeTree({{"package", 1}, {"core", 1}, {"cpu", 1}});
  EXPECT_EQ(tree.depth(), 0u);
  EXPECT_EQ(tree.leavesOfNodes(0, true), (Leaves{{0}}));
  EXPECT_EQ(tree.describe(), "cpu x 1");
  EXPECT_EQ(errorOf(tree.remove(1, 1)),
            "remove(1,1): there is no depth 1 to transform: the tree is one "
            "CPU");
}

TEST(TopoTree, PartsWithoutCpusAreLeftOut) {
  MachineNode machine = makeMachine({{"numa", 2}, {"cpu", 2}});
  machine.children.push_back(machine.children.back());
  machine.children.back().children.clear();
  auto tree = TopoTree::fromMachine(machine);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->describe(), "numa x 2, cpu x 2");
}

TEST(TopoTree, MemoryOfNodesMayDiffer) {
  MachineNode machine = makeMachine({{"numa", 2}, {"cpu", 2}});
  machine.children[0].bytes = 100;
  machine.children[1].bytes = 90;
  auto tree = TopoTree::fromMachine(machine);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->level(1).features, (std::vector<TopoFeature>{{"numa", 90}}));
}

TEST(TopoTree, RefusesMachinesThatAreNotSymmetric) {
  MachineNode machine = makeMachine({{"package", 2}, {"core", 2}, {"cpu", 1}});
  MachineNode uneven = machine;
  uneven.children[1].children.pop_back();
  EXPECT_EQ(errorOf(TopoTree::fromMachine(uneven)),
            "the machine is not symmetric: package 1 has 1 parts, package 0 "
            "has 2");
  MachineNode mixed = machine;
  mixed.children[1].kind = "die";
  EXPECT_EQ(errorOf(TopoTree::fromMachine(mixed)),
            "the machine is not symmetric: die 1 stands beside package 0");
  MachineNode caches = makeMachine({{"l2", 2}, {"cpu", 1}});
  caches.children[0].bytes = 512;
  caches.children[0].index = caches.children[1].index = -1;
  EXPECT_EQ(errorOf(TopoTree::fromMachine(caches)),
            "the machine is not symmetric: a l2 of 0 bytes stands beside one "
            "of 512");
}

TEST(TopoTree, RefusesMachinesWithoutUsableCpus) {
  EXPECT_EQ(errorOf(TopoTree::fromMachine(makeMachine({{"numa", 2}}))),
            "the machine has no CPUs");
  MachineNode twice = makeMachine({{"cpu", 2}});
  twice.children[1].index = 0;
  EXPECT_EQ(errorOf(TopoTree::fromMachine(twice)),
            "the machine has CPU 0 twice");
  twice.children[1].index = -1;
  EXPECT_EQ(errorOf(TopoTree::fromMachine(twice)),
            "a CPU of the machine has no index");
  EXPECT_EQ(errorOf(TopoTree::fromMachine(makeMachine({{"cpu", 32769}}))),
            "the machine has more than 32768 CPUs");
}

TEST(TopoTree, GroupTakesChildrenByStride) {
  TopoTree tree = makeFlat(8);
  EXPECT_EQ(tree.group(2, 1, 1)->leavesOfNodes(1, false),
            (Leaves{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(tree.group(2, 2, 1)->leavesOfNodes(1, false),
            (Leaves{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(tree.group(4, 2, 1)->leavesOfNodes(1, false),
            (Leaves{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  // Groups stay below their parent.
  EXPECT_EQ(makeTree({{"numa", 2}, {"cpu", 4}})
                .group(2, 2, 2)
                ->leavesOfNodes(2, false),
            (Leaves{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

TEST(TopoTree, GroupsOfGroupsNeedNotBeEvenlySpaced) {
  // {0, 4} and {1, 5} are neighbours among the pairs.
  auto tree = makeFlat(8).group(2, 4, 1)->group(2, 1, 1);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->leavesOfNodes(1, false),
            (Leaves{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(tree->leavesOfNodes(2, false),
            (Leaves{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(TopoTree, OrderOfGroupsLeavesNoTrace) {
  TopoTree tree = makeTree({{"numa", 4}, {"cpu", 24}});
  auto inner = tree.group(2, 6, 2)->group(3, 2, 2)->group(2, 1, 1);
  auto outer = tree.group(2, 1, 1)->group(6, 2, 3)->group(2, 3, 4);
  ASSERT_TRUE(inner && outer);
  for (unsigned depth = 0; depth <= inner->depth(); ++depth)
    EXPECT_EQ(inner->leavesOfNodes(depth, false),
              outer->leavesOfNodes(depth, false));
  EXPECT_TRUE(*inner == *outer);
  EXPECT_EQ(inner->hash(), outer->hash());
  EXPECT_EQ(outer->derivation(), "group(2,6,2) group(3,2,2) group(2,1,1)");
  EXPECT_TRUE(outer->fundamental() == tree);
}

TEST(TopoTree, RemoveTakesTheRightMostChildren) {
  TopoTree tree = *makeFlat(8).group(4, 1, 1);
  EXPECT_EQ(tree.remove(1, 2)->leavesOfNodes(1, true),
            (Leaves{{0, 1, 2}, {4, 5, 6}}));
  EXPECT_EQ(tree.remove(1, 1)->leavesOfNodes(1, true), (Leaves{{0, 1, 2, 3}}));
  EXPECT_EQ(makeFlat(8).group(4, 2, 1)->remove(3, 2)->leavesOfNodes(1, true),
            (Leaves{{0}, {1}}));
  EXPECT_TRUE(*tree.remove(1, 2)->remove(1, 2) == *tree.remove(2, 2));
  EXPECT_TRUE(*tree.remove(1, 2)->remove(1, 1) ==
              *tree.remove(1, 1)->remove(1, 2));
}

TEST(TopoTree, RefusesImpossibleTransformations) {
  TopoTree tree = makeKunpeng();
  EXPECT_EQ(errorOf(tree.group(4, 1, 0)),
            "group(4,1,0): there is no depth 0 to transform: depths are 1 to "
            "3");
  EXPECT_EQ(errorOf(tree.group(4, 1, 4)),
            "group(4,1,4): there is no depth 4 to transform: depths are 1 to "
            "3");
  EXPECT_EQ(errorOf(tree.group(1, 1, 3)),
            "group(1,1,3): a group has at least 2 nodes, a stride is at least "
            "1");
  EXPECT_EQ(errorOf(tree.group(4, 0, 3)),
            "group(4,0,3): a group has at least 2 nodes, a stride is at least "
            "1");
  EXPECT_EQ(errorOf(tree.group(24, 1, 3)),
            "group(24,1,3): one group would hold all 24 children of a node");
  EXPECT_EQ(errorOf(tree.group(4, 4, 3)),
            "group(4,4,3): blocks of 16 nodes do not tile the 24 children of "
            "a node");
  EXPECT_EQ(errorOf(tree.group(4, 1u << 31, 3)),
            "group(4,2147483648,3): blocks of 8589934592 nodes do not tile "
            "the 24 children of a node");
  EXPECT_EQ(errorOf(tree.remove(0, 3)),
            "remove(0,3): nothing would be removed");
  EXPECT_EQ(errorOf(tree.remove(24, 3)),
            "remove(24,3): only 24 children of a node are awake, and one must "
            "stay so");
  EXPECT_EQ(errorOf(tree.remove(20, 3)->remove(4, 3)),
            "remove(4,3): only 4 children of a node are awake, and one must "
            "stay so");
  EXPECT_EQ(errorOf(tree.remove(1, 3)->group(4, 1, 3)),
            "group(4,1,3): groups are made before anything is removed");
}

TEST(TopoTree, HashSeesStructureFeaturesAndCpus) {
  TopoTree tree = makeTree({{"numa", 2}, {"cpu", 8}});
  std::vector<TopoTree> others = {
      makeTree({{"numa", 4}, {"cpu", 4}}),
      makeTree({{"package", 2}, {"cpu", 8}}),
      *tree.group(2, 1, 2),
      *tree.group(2, 2, 2),
      *tree.group(4, 1, 2),
      *tree.remove(1, 2),
      *tree.remove(1, 1),
      *tree.group(2, 1, 2)->remove(1, 2),
      *tree.group(2, 1, 2)->remove(1, 3),
  };
  MachineNode renumbered = makeMachine({{"numa", 2}, {"cpu", 8}});
  std::swap(renumbered.children[0].children[0].index,
            renumbered.children[0].children[1].index);
  others.push_back(*TopoTree::fromMachine(renumbered));
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_FALSE(others[i] == tree) << i;
    EXPECT_NE(others[i].hash(), tree.hash()) << i;
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(others[i].hash(), others[j].hash()) << i << " " << j;
  }
  EXPECT_EQ(tree.hash(), makeTree({{"numa", 2}, {"cpu", 8}}).hash());
  // What is above a node is not in its subtree's hash.
  TopoTree grouped = *tree.group(2, 2, 2);
  EXPECT_EQ(grouped.group(2, 1, 2)->subtreeHash(4), grouped.subtreeHash(3));
  EXPECT_EQ(tree.remove(1, 1)->subtreeHash(2), tree.subtreeHash(2));
}

//===----------------------------------------------------------------------===//
// The paper's example: figures 5 and 6 of the first version
//===----------------------------------------------------------------------===//

TEST(PaperExample, GroupingByFourFindsTheClusters) {
  auto tree = makeKunpeng().group(4, 1, 3);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->describe(), "package x 4, numa x 2, group x 6, core x 4");
  Leaves clusters = tree->leavesOfNodes(3, false);
  ASSERT_EQ(clusters.size(), 48u);
  EXPECT_EQ(clusters[0], (std::vector<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(clusters[47], (std::vector<unsigned>{188, 189, 190, 191}));
}

// The paper says 16 cores for each of the 8 processes below its figure 6; 144
// cores over 8 processes are 18.
TEST(PaperExample, CrossSectionAtTheScclsGivesEightProcesses) {
  auto tree = makeKunpeng().group(4, 1, 3)->remove(1, 4);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->awakeLeafCount(), 144u);
  EXPECT_EQ(tree->describe(),
            "package x 4, numa x 2, group x 6, core x 3 of 4");
  auto configuration = crossSection(*tree, 2);
  ASSERT_TRUE(configuration) << configuration.error().message;
  EXPECT_EQ(configuration->processes(), 8u);
  EXPECT_EQ(configuration->numa,
            (Leaves{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
  for (unsigned process = 0; process < 8; ++process) {
    EXPECT_EQ(configuration->prefillCores[process].size(), 24u);
    std::vector<unsigned> awake;
    for (unsigned core = 24 * process; core < 24 * process + 24; ++core)
      if (core % 4 != 3)
        awake.push_back(core);
    EXPECT_EQ(awake.size(), 18u);
    EXPECT_EQ(configuration->decodeCores[process], awake);
  }
}

// The paper says 8 processes on each NUMA node; 48 over 8 nodes are 6.
TEST(PaperExample, CrossSectionAtTheCclsGivesFortyEightProcesses) {
  auto tree = makeKunpeng().group(4, 1, 3)->remove(1, 4);
  ASSERT_TRUE(tree);
  auto configuration = crossSection(*tree, 3);
  ASSERT_TRUE(configuration) << configuration.error().message;
  EXPECT_EQ(configuration->processes(), 48u);
  for (unsigned process = 0; process < 48; ++process) {
    EXPECT_EQ(configuration->numa[process], std::vector<unsigned>{process / 6});
    EXPECT_EQ(configuration->prefillCores[process].size(), 4u);
    EXPECT_EQ(
        configuration->decodeCores[process],
        (std::vector<unsigned>{4 * process, 4 * process + 1, 4 * process + 2}));
  }
}

TEST(CrossSection, BothPhasesShareTheProcesses) {
  auto tree = makeKunpeng().group(4, 1, 3)->remove(2, 3);
  ASSERT_TRUE(tree);
  EXPECT_TRUE(crossSection(*tree, 2));
  EXPECT_EQ(errorOf(crossSection(*tree, 3)),
            "no cross-section at depth 3: remove(2,3) takes whole processes "
            "away, and both phases share them");
  EXPECT_EQ(errorOf(crossSection(*tree, 5)),
            "there is no cross-section at depth 5: the leaves are at depth 4");
}

TEST(CrossSection, GroupsAboveMakeNoDifference) {
  TopoTree tree = *makeFlat(8).group(2, 1, 1);
  auto plain = crossSection(tree, 1);
  auto strided = crossSection(*tree.group(2, 2, 1), 2);
  ASSERT_TRUE(plain && strided);
  EXPECT_TRUE(*plain == *strided);
  EXPECT_EQ(hash(*plain), hash(*strided));
}

TEST(CrossSection, IsPrintedAsTheCommandLineSays) {
  auto tree = makeTree({{"numa", 2}, {"cpu", 4}}).group(2, 1, 2)->remove(1, 3);
  auto configuration = crossSection(*tree, 1);
  ASSERT_TRUE(configuration);
  configuration->predictedMs = 1.5;
  EXPECT_EQ(toJson(*configuration).dump(),
            R"json({"processes":2,"numa":[0,1],)json"
            R"json("prefill_cores":[[0,1,2,3],[4,5,6,7]],)json"
            R"json("decode_cores":[[0,2],[4,6]],"predicted_ms":1.5,)json"
            R"json("derivation":"group(2,1,2) remove(1,3)"})json");
  auto whole = crossSection(*tree, 0);
  ASSERT_TRUE(whole);
  EXPECT_EQ(toJson(*whole)["numa"], Json::array({0}));
  EXPECT_EQ(toJson(*whole)["numa_nodes"].dump(), "[[0,1]]");
}

TEST(OperatorLimits, SayWhatDoesNotDivide) {
  OperatorLimits limits{32, 4, 11008, 32000};
  EXPECT_FALSE(limits.refuse(1));
  EXPECT_FALSE(limits.refuse(4));
  EXPECT_EQ(limits.refuse(8), "8 processes do not divide 4 KV heads");
  EXPECT_EQ(limits.refuse(6), "6 processes do not divide 32 query heads");
  EXPECT_EQ((OperatorLimits{24, 4}.refuse(6)),
            "6 processes do not divide 4 KV heads");
  EXPECT_EQ((OperatorLimits{0, 0, 100, 64}.refuse(8)),
            "8 processes do not divide 100 intermediate features");
  EXPECT_EQ((OperatorLimits{0, 0, 0, 100}.refuse(8)),
            "8 processes do not divide 100 vocabulary entries");
  EXPECT_FALSE(OperatorLimits{}.refuse(7));
}
