//===- SymmetricPartTest.cpp - What is the same everywhere ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/SymmetricPart.h"

#include "Emulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

using namespace sandwich;

namespace {

MachineNode node(const std::string &kind, std::vector<MachineNode> children,
                 int64_t index = -1) {
  MachineNode made;
  made.kind = kind;
  made.index = index;
  made.children = std::move(children);
  return made;
}

/// Cores with `threads` CPUs each, numbered on from `first`.
std::vector<MachineNode> cores(int count, int threads, int &first,
                               double speed = 1) {
  std::vector<MachineNode> made;
  for (int i = 0; i < count; ++i) {
    MachineNode core = node("core", {}, i);
    core.speed = speed;
    for (int thread = 0; thread < threads; ++thread)
      core.children.push_back(node("cpu", {}, first++));
    made.push_back(core);
  }
  return made;
}

using Strings = std::vector<std::string>;

std::vector<int64_t> cpusOf(const MachineNode &tree) {
  std::vector<int64_t> cpus;
  if (tree.kind == "cpu")
    cpus.push_back(tree.index);
  for (const MachineNode &child : tree.children) {
    std::vector<int64_t> below = cpusOf(child);
    cpus.insert(cpus.end(), below.begin(), below.end());
  }
  return cpus;
}

/// What equal subtrees share; nothing where the tree is not symmetric.
std::optional<std::string> shapeOf(const MachineNode &tree) {
  std::string shape = tree.kind;
  if (tree.kind == "core")
    shape += std::to_string(tree.speed);
  std::optional<std::string> first;
  for (const MachineNode &child : tree.children) {
    std::optional<std::string> below = shapeOf(child);
    if (!below || (first && *first != *below))
      return std::nullopt;
    first = below;
  }
  shape += " " + std::to_string(tree.children.size());
  return first ? shape + "(" + *first + ")" : shape;
}

/// The tree with only the CPUs in `kept`, without what that empties.
std::optional<MachineNode> prune(const MachineNode &tree,
                                 const std::function<bool(int64_t)> &kept) {
  if (tree.kind == "cpu")
    return kept(tree.index) ? std::optional(tree) : std::nullopt;
  MachineNode copy = tree;
  copy.children.clear();
  for (const MachineNode &child : tree.children)
    if (std::optional<MachineNode> below = prune(child, kept))
      copy.children.push_back(*below);
  if (copy.children.empty())
    return std::nullopt;
  return copy;
}

double speedSum(const MachineNode &tree) {
  double sum = tree.kind == "core" ? tree.speed : 0;
  for (const MachineNode &child : tree.children)
    sum += speedSum(child);
  return sum;
}

using Rank = std::tuple<double, double, size_t>;

Rank rankOf(const MachineNode &tree) {
  double speed = speedSum(tree);
  return {speed, speed / static_cast<double>(countParts(tree, "core")),
          cpusOf(tree).size()};
}

} // namespace

TEST(SymmetricPartTest, ASymmetricMachineIsKeptWhole) {
  Result<Machine> machine = readMachineTopology(
      "synthetic:package:2 [numa] l3:2 core:3 pu:2(indexes=2*12:12*1)");
  ASSERT_TRUE(machine);
  Result<SymmetricPart> part = largestSymmetricPart(machine->root);
  ASSERT_TRUE(part);
  EXPECT_EQ(toJson(part->root), toJson(machine->root));
  EXPECT_EQ(part->leftOut, Strings());
}

TEST(SymmetricPartTest, UnevenPackages) {
  int cpu = 0;
  // 2 x 5 is more than 8.
  MachineNode machine = node("machine", {node("package", cores(8, 1, cpu), 0),
                                         node("package", cores(5, 1, cpu), 1)});
  Result<SymmetricPart> part = largestSymmetricPart(machine);
  ASSERT_TRUE(part);
  EXPECT_EQ(countParts(part->root, "core"), 10u);
  EXPECT_EQ(part->leftOut,
            Strings{"cores 5-7 (CPUs 5-7): each package used has 5 cores"});
  // 8 is more than 2 x 3.
  cpu = 0;
  machine = node("machine", {node("package", cores(3, 1, cpu), 0),
                             node("package", cores(8, 1, cpu), 1)});
  part = largestSymmetricPart(machine);
  ASSERT_TRUE(part);
  EXPECT_EQ(cpusOf(part->root),
            (std::vector<int64_t>{3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(part->leftOut, Strings{"package 0 (CPUs 0-2): only 3 cores, each "
                                   "package used has 8"});
}

TEST(SymmetricPartTest, EfficiencyCores) {
  auto hybrid = [](int performance, int efficiency) {
    int cpu = 0;
    std::vector<MachineNode> all = cores(performance, 2, cpu);
    for (MachineNode &core : cores(efficiency, 1, cpu, 0.5)) {
      core.index += performance;
      all.push_back(core);
    }
    return node("machine", all);
  };
  // As many in all: the faster ones.
  Result<SymmetricPart> part = largestSymmetricPart(hybrid(4, 8));
  ASSERT_TRUE(part);
  EXPECT_EQ(countParts(part->root, "cpu"), 8u);
  EXPECT_EQ(part->leftOut,
            Strings{"cores 4-11 (CPUs 8-15): slower, as efficiency cores are, "
                    "than the 4 cores used"});
  part = largestSymmetricPart(hybrid(2, 8));
  ASSERT_TRUE(part);
  EXPECT_EQ(countParts(part->root, "core"), 8u);
  EXPECT_EQ(part->leftOut, Strings{"cores 0,1 (CPUs 0-3): faster than the 8 "
                                   "cores used, which do more together"});
}

TEST(SymmetricPartTest, CoresWithOneThreadLeft) {
  // Four cores with a thread each are more than three with two.
  int cpu = 0;
  std::vector<MachineNode> all = cores(3, 2, cpu);
  all.push_back(cores(1, 1, cpu)[0]);
  Result<SymmetricPart> part = largestSymmetricPart(node("machine", all));
  ASSERT_TRUE(part);
  EXPECT_EQ(cpusOf(part->root), (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(part->leftOut, Strings{"CPUs 1,3,5: each core used has 1 cpu"});
}

TEST(SymmetricPartTest, OtherLevels) {
  int cpu = 0;
  MachineNode machine =
      node("machine", {node("package", {node("l3", cores(4, 1, cpu))}, 0),
                       node("package", cores(2, 1, cpu), 1)});
  Result<SymmetricPart> part = largestSymmetricPart(machine);
  ASSERT_TRUE(part);
  EXPECT_EQ(countParts(part->root, "core"), 4u);
  EXPECT_EQ(part->leftOut,
            Strings{"cores 0,1 (CPUs 4,5): built unlike the 4 cores used, "
                    "which lie in package, l3, core"});
}

TEST(SymmetricPartTest, SizesBecomeTheSmallest) {
  int cpu = 0;
  MachineNode machine = node(
      "machine", {node("l3", cores(4, 1, cpu)), node("l3", cores(4, 1, cpu))});
  machine.children[0].bytes = 96 << 20;
  machine.children[1].bytes = 32 << 20;
  Result<SymmetricPart> part = largestSymmetricPart(machine);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->root.children[0].bytes, 32u << 20);
  EXPECT_EQ(part->leftOut,
            Strings{"l3s hold 32 MiB to 96 MiB: each counts as 32 MiB"});
}

TEST(SymmetricPartTest, CachesMustBeAlikeButMemoriesMayDifferSlightly) {
  int cpu = 0;
  auto machineOf = [&](const char *kind, uint64_t first, uint64_t second) {
    MachineNode machine = node("machine", {node(kind, cores(4, 1, cpu), 0),
                                           node(kind, cores(4, 1, cpu), 1)});
    machine.children[0].bytes = first;
    machine.children[1].bytes = second;
    return machine;
  };
  Result<SymmetricPart> part =
      largestSymmetricPart(machineOf("l3", 4 << 20, (4 << 20) - 1));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->leftOut,
            Strings{"l3s hold 4194303 to 4194304 bytes: each counts as "
                    "4194303"});
  part = largestSymmetricPart(machineOf("numa", 95 << 20, 100 << 20));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->leftOut, Strings{});
  EXPECT_EQ(part->root.children[1].bytes, uint64_t{95} << 20);
}

TEST(SymmetricPartTest, NoCpu) {
  Result<SymmetricPart> part = largestSymmetricPart(node("machine", {}));
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().message, "the machine has no CPU");
}

/// Every set of CPUs of small random machines is tried: no symmetric one ranks
/// higher, and the part itself is symmetric and within the machine.
TEST(SymmetricPartTest, AgreesWithBruteForce) {
  std::mt19937 random(7);
  auto upTo = [&](int most) {
    return std::uniform_int_distribution<int>(1, most)(random);
  };
  for (int round = 0; round < test::timesToRepeat(200, 20); ++round) {
    int cpu = 0;
    std::function<MachineNode(int)> grow = [&](int depth) {
      static const char *kinds[] = {"machine", "package", "l3", "core", "cpu"};
      // Now and then a level is missing.
      if (depth > 0 && depth < 3 && upTo(8) == 1)
        ++depth;
      MachineNode made = node(kinds[depth], {});
      if (depth == 3 && round % 2 == 0)
        made.speed = upTo(4) == 1 ? 0.5 : 1;
      if (depth == 4)
        made.index = cpu++;
      else
        for (int i = upTo(depth == 3 ? 2 : 3); i > 0 && cpu < 12; --i)
          made.children.push_back(grow(depth + 1));
      return made;
    };
    std::optional<MachineNode> machine =
        prune(grow(0), [](int64_t) { return true; });
    ASSERT_TRUE(machine);
    Rank best{0, 0, 0};
    for (unsigned set = 1; set < 1u << cpu; ++set) {
      std::optional<MachineNode> candidate = prune(
          *machine, [&](int64_t index) { return (set >> index & 1) != 0; });
      if (shapeOf(*candidate))
        best = std::max(best, rankOf(*candidate));
    }
    Result<SymmetricPart> part = largestSymmetricPart(*machine);
    ASSERT_TRUE(part);
    EXPECT_TRUE(shapeOf(part->root)) << toJson(part->root);
    EXPECT_EQ(rankOf(part->root), best) << toJson(*machine);
    std::vector<int64_t> kept = cpusOf(part->root);
    auto isKept = [&](int64_t index) {
      return std::find(kept.begin(), kept.end(), index) != kept.end();
    };
    EXPECT_EQ(toJson(*prune(*machine, isKept)), toJson(part->root));
    EXPECT_EQ(part->leftOut.empty(), kept.size() == cpusOf(*machine).size());
  }
}

TEST(SymmetricPartTest, IsQuickOnUnevenMachines) {
  // Every number of children from 1 to 24 occurs at two levels.
  int cpu = 0;
  MachineNode machine = node("machine", {});
  for (int package = 1; package <= 24; ++package) {
    machine.children.push_back(node("package", {}, package));
    for (int cache = 1; cache <= package; ++cache)
      machine.children.back().children.push_back(
          node("l3", cores(1 + (cache * 7 + package) % 24, 1, cpu)));
  }
  Result<SymmetricPart> part = largestSymmetricPart(machine);
  ASSERT_TRUE(part);
  EXPECT_TRUE(shapeOf(part->root));
}

namespace {
/// What remains of a machine if the most cores do.
SymmetricPart reserve(const MachineNode &machine, uint64_t count) {
  Result<std::vector<SymmetricPart>> parts =
      partsWithReservedCores(machine, *largestSymmetricPart(machine), count);
  EXPECT_TRUE(parts) << (parts ? "" : parts.error().message);
  return parts ? parts->front() : SymmetricPart();
}
} // namespace

TEST(ReservedCoresTest, TheFirstOfEachPart) {
  int cpu = 0;
  MachineNode machine = node("machine", {});
  for (int package = 0; package < 2; ++package)
    machine.children.push_back(node("package", cores(4, 2, cpu), package));
  EXPECT_TRUE(reserve(machine, 0).leftOut.empty());
  SymmetricPart part = reserve(machine, 2);
  EXPECT_EQ(cpusOf(part.root),
            (std::vector<int64_t>{2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(part.leftOut, Strings{"2 cores (CPUs 0,1,8,9): 2 cores reserved"});
  // One more must go for the packages to stay alike.
  part = reserve(machine, 1);
  EXPECT_EQ(cpusOf(part.root).size(), 12u);
  EXPECT_EQ(part.leftOut, Strings{"2 cores (CPUs 0,1,8,9): 1 core reserved, "
                                  "and others for all parts to stay alike"});
  // Two of each rather than one package.
  part = reserve(machine, 4);
  EXPECT_EQ(part.root.children.size(), 2u);
  EXPECT_EQ(cpusOf(part.root).size(), 8u);
  // One core of each of two packages is less than a package with three.
  part = reserve(machine, 5);
  EXPECT_EQ(part.root.children.size(), 1u);
  EXPECT_EQ(cpusOf(part.root), (std::vector<int64_t>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(cpusOf(reserve(machine, 7).root), (std::vector<int64_t>{14, 15}));
}

TEST(ReservedCoresTest, WhatIsLeftOutAnywayComesFirst) {
  int cpu = 0;
  MachineNode machine = node("machine", {});
  machine.children.push_back(node("package", cores(4, 1, cpu), 0));
  machine.children.push_back(node("package", cores(6, 1, cpu), 1));
  const SymmetricPart whole = *largestSymmetricPart(machine);
  ASSERT_EQ(cpusOf(whole.root).size(), 8u);
  SymmetricPart part = reserve(machine, 2);
  EXPECT_EQ(toJson(part.root), toJson(whole.root));
  ASSERT_EQ(part.leftOut.size(), 2u);
  EXPECT_EQ(part.leftOut[1],
            "2 cores reserved: of those that plans leave out anyway");
  part = reserve(machine, 4);
  EXPECT_EQ(cpusOf(part.root).size(), 6u);
  EXPECT_EQ(part.leftOut[1], "2 cores (CPUs 0,4): 4 cores reserved");
}

TEST(ReservedCoresTest, OneCoreMustRemain) {
  int cpu = 0;
  const MachineNode machine = node("machine", cores(4, 2, cpu));
  const SymmetricPart part = *largestSymmetricPart(machine);
  EXPECT_EQ(cpusOf(reserve(machine, 3).root), (std::vector<int64_t>{6, 7}));
  for (uint64_t count : {uint64_t{4}, UINT64_MAX}) {
    auto none = partsWithReservedCores(machine, part, count);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message,
              "cannot reserve " + std::to_string(count) +
                  " of 4 cores: at least one must remain for the model");
  }
}

TEST(ReservedCoresTest, OffersWhatProcessesMayDivide) {
  // Two sockets of an EPYC: L3s of eight cores.
  int cpu = 0;
  MachineNode machine = node("machine", {});
  for (int package = 0; package < 2; ++package) {
    machine.children.push_back(node("package", {}, package));
    for (int slice = 0; slice < 8; ++slice)
      machine.children.back().children.push_back(node("l3", cores(8, 1, cpu)));
  }
  Result<std::vector<SymmetricPart>> parts =
      partsWithReservedCores(machine, *largestSymmetricPart(machine), 2);
  ASSERT_TRUE(parts) << parts.error().message;
  std::vector<std::vector<size_t>> shapes;
  for (const SymmetricPart &part : *parts) {
    EXPECT_TRUE(shapeOf(part.root));
    const MachineNode &package = part.root.children[0];
    shapes.push_back({part.root.children.size(), package.children.size(),
                      package.children[0].children.size()});
  }
  EXPECT_EQ(shapes, (std::vector<std::vector<size_t>>{
                        {2, 8, 7}, {2, 7, 8}, {2, 8, 6}, {1, 8, 8}, {2, 8, 4}}))
      << testing::PrintToString(shapes);
  // Of a machine of which no two parts are compared 16 divide what remains.
  MachineNode large = node("machine", cores(2048, 1, cpu));
  parts = partsWithReservedCores(large, *largestSymmetricPart(large), 3);
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 1u);
  EXPECT_EQ(cpusOf(parts->front().root).size(), 2032u);
}
