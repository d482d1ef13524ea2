//===- LatencyModelTest.cpp - How long a machine takes for a step ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PaperMachines.h"

#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sandwich;
using namespace sandwich::test;

/// CPUs `first`, `first + stride`, ...
static RankCpus cpuRange(unsigned first, unsigned count, unsigned stride = 1) {
  RankCpus cpus;
  for (unsigned i = 0; i < count; ++i)
    cpus.push_back(first + i * stride);
  return cpus;
}

static MachineDescription ordinaryMachine() {
  MachineDescription description;
  description.coreFlopsPerSecond = {50e9, 100e9};
  description.coreBytesPerSecond = 12e9;
  description.remoteShare = 0.6;
  description.parts["core"].handoffSeconds = 10e-9;
  description.parts["l3"].handoffSeconds = 40e-9;
  description.parts["numa"] = {100e9, 80e-9};
  description.parts["package"].handoffSeconds = 100e-9;
  description.parts["machine"].handoffSeconds = 160e-9;
  return description;
}

static std::string errorOf(const auto &result) {
  return result ? "" : result.error().message;
}

class LatencyModelTest : public testing::Test {
protected:
  void use(const std::string &description, const MachineDescription &values) {
    Result<Machine> machine = readMachineTopology("synthetic:" + description);
    ASSERT_TRUE(machine) << machine.error().message;
    Result<LatencyModel> created =
        LatencyModel::create(machine->root, values, MatrixElement::F32);
    ASSERT_TRUE(created) << created.error().message;
    model.emplace(std::move(*created));
  }
  TeamSpeed speed(const std::vector<RankCpus> &ranks) {
    Result<TeamSpeed> team = model->speedOf(ranks);
    EXPECT_TRUE(team) << team.error().message;
    return *team;
  }

  std::optional<LatencyModel> model;
};

/// What rounds its inputs goes by the rate of integers, weights of integers
/// that become floats by that of bf16.
TEST(ModelWorkTest, IntegersAreWhatIsMultiplied) {
  ModelWork work;
  work.bytesPerWeight = 0.5625;
  EXPECT_EQ(work.matrixElement(), MatrixElement::BF16);
  work.roundsInputs = true;
  EXPECT_EQ(work.matrixElement(), MatrixElement::Int8);
  MachineDescription values = ordinaryMachine();
  values.coreFlopsPerSecond.int8 = 300e9;
  const MachineNode machine =
      readMachineTopology("synthetic:numa:1 core:2 pu:1")->root;
  Result<LatencyModel> model =
      LatencyModel::create(machine, values, work.matrixElement());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_DOUBLE_EQ(model->speedOf({{0}})->flopsPerSecond, 300e9);
}

TEST_F(LatencyModelTest, CoresShareWhatTheirPartsCanRead) {
  MachineDescription values = ordinaryMachine();
  values.coreBytesPerSecond = 10e9;
  values.coreFlopsPerSecond.f32 = 50e9;
  values.parts["numa"] = {25e9, 100e-9};
  values.parts["l3"] = {1e12, 20e-9};
  use("numa:2 l3:2 core:4 pu:2", values);
  // What comes near the memory's 25 GB/s is cut, what is more loses besides.
  auto memory = [](double asked) {
    double passed = asked * std::pow(std::pow(asked / 25, 4) + 1, -0.25);
    return 1e9 * passed * (asked > 25 ? 1 - 0.04 * (1 - 25 / asked) : 1);
  };
  EXPECT_NEAR(speed({{0}}).bytesPerSecond, memory(10), 1e5);
  EXPECT_DOUBLE_EQ(speed({{0}}).flopsPerSecond, 50e9);
  // CPUs 0 and 1 are threads of one core, which reads no faster for two.
  EXPECT_NEAR(speed({{0, 1}}).bytesPerSecond, memory(10), 1e5);
  EXPECT_DOUBLE_EQ(speed({{0, 1}}).flopsPerSecond, 50e9);
  EXPECT_NEAR(speed({{0, 2}}).bytesPerSecond, memory(20), 1e5);
  EXPECT_NEAR(speed({{0, 2, 4, 6}}).bytesPerSecond, memory(40), 1e5);
  EXPECT_DOUBLE_EQ(speed({{0, 2, 4, 6}}).flopsPerSecond, 200e9);
  // Work is divided evenly: who is alone in a node waits for the other three.
  EXPECT_NEAR(speed({{0, 2, 4}, {16}}).bytesPerSecond, 2 * memory(10), 1e5);
  EXPECT_DOUBLE_EQ(speed({{0, 2, 4}, {16}}).flopsPerSecond, 100e9);
  EXPECT_NEAR(speed({{0, 2}, {16, 18}}).bytesPerSecond, 2 * memory(20), 1e5);
  // One rank over two nodes reads half of its weights from the other one.
  EXPECT_NEAR(speed({{0, 16}}).bytesPerSecond,
              2 * memory(10 / (0.5 + 0.5 / 0.6)), 1e5);
}

TEST_F(LatencyModelTest, WeightsStayWhereTheProcessIs) {
  MachineDescription values = ordinaryMachine();
  values.coreBytesPerSecond = 10e9;
  values.remoteShare = 0.5;
  values.parts = {{"numa", {40e9, 100e-9}}};
  use("numa:2 core:8 pu:1", values);
  auto passed = [](double has, double asked) {
    double all = asked * std::pow(std::pow(asked / has, 4) + 1, -0.25);
    return asked > has ? all * (1 - 0.04 * (1 - has / asked)) : all;
  };
  auto memories = [&](const std::vector<RankCpus> &ranks) {
    return *model->memoriesOf(ranks);
  };
  auto bytes = [&](const std::vector<RankCpus> &ranks,
                   const std::vector<RankCpus> &owned) {
    Result<TeamSpeed> team = model->speedOf(ranks, memories(owned));
    EXPECT_TRUE(team) << errorOf(team);
    return team ? team->bytesPerSecond : 0;
  };
  // All of the second node's cores sleep, but half of the weights are there.
  EXPECT_NEAR(
      bytes({{0, 1}}, {cpuRange(0, 16)}),
      2 * passed(40, 2 * 10 / 1.5 / 2) / (2 * 10 / 1.5 / 2) * 10e9 / 1.5, 1e5);
  EXPECT_NEAR(bytes({{0, 1}}, {{0, 1}}), passed(40, 20) * 1e9, 1e5);
  // Each reads the other's memory: both memories pass on what is asked of them.
  EXPECT_NEAR(bytes({{0, 1}, {8, 9}}, {{8, 9}, {0, 1}}),
              2 * passed(40, 10) * 1e9, 1e5);
  // Cores of both nodes read one memory, which is where they contend.
  EXPECT_NEAR(
      bytes({cpuRange(0, 4), cpuRange(8, 8)}, {cpuRange(0, 4), cpuRange(0, 4)}),
      2 * 40e9 * passed(40, 80) / 80, 1e5);
  EXPECT_EQ(errorOf(model->memoriesOf({{99}})),
            "CPU 99 is not in the topology");
  EXPECT_EQ(errorOf(model->speedOf({{0}}, memories({{0}, {1}}))),
            "1 ranks have memories for 2");
}

/// Two sockets with 100 bytes of DDR and 40 of a faster memory each: NUMA nodes
/// 0 and 1, and 2 and 3 beside them.
static Machine machineWithHBM() {
  Result<Machine> machine =
      readMachineTopology("synthetic:pack:2 [numa(memory=100)] core:4 pu:1");
  EXPECT_TRUE(machine) << errorOf(machine);
  for (unsigned node : {0, 1}) {
    MachineNode &beside = machine->memories.emplace_back();
    beside.kind = "numa";
    beside.index = node + 2;
    beside.bytes = 40;
    beside.besideNodes = {node};
  }
  return *std::move(machine);
}

class MemoryPlacementTest : public LatencyModelTest {
protected:
  void SetUp() override {
    values = ordinaryMachine();
    values.coreBytesPerSecond = 10e9;
    values.remoteShare = 0.5;
    values.parts = {{"numa", {20e9, 100e-9}}};
    values.besideMemories = {{2, 200e9}, {3, 200e9}};
    machine = machineWithHBM();
    create();
  }
  void create() {
    Result<LatencyModel> created = LatencyModel::create(
        machine.root, values, MatrixElement::F32, machine.memories);
    ASSERT_TRUE(created) << errorOf(created);
    model.emplace(std::move(*created));
  }
  LatencyModel::MemoryPlacement place(const std::vector<RankCpus> &ranks,
                                      const std::vector<RankBytes> &bytes) {
    auto placed = model->place(ranks, bytes);
    EXPECT_TRUE(placed) << errorOf(placed);
    return *placed;
  }
  TeamSpeed speedOf(const std::vector<RankCpus> &ranks,
                    const std::vector<RankBytes> &bytes) {
    Result<TeamSpeed> team =
        model->speedOf(ranks, place(ranks, bytes).memories);
    EXPECT_TRUE(team) << errorOf(team);
    return *team;
  }
  static std::vector<double> shares(const LatencyModel::MemoryShares &of) {
    std::vector<double> result;
    for (auto [memory, share] : of)
      result.push_back(share);
    return result;
  }
  using Nodes = std::vector<std::vector<unsigned>>;

  Machine machine;
  MachineDescription values;
};

TEST_F(MemoryPlacementTest, FillsTheFastestFirst) {
  const std::vector<RankCpus> ranks = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  // All of it in HBM: as fast as that is.
  auto placed = place(ranks, {{30, 10}, {20, 10}});
  EXPECT_FALSE(placed.shortage);
  EXPECT_EQ(placed.nodes, (Nodes{{2}, {3}}));
  EXPECT_EQ(placed.memories.weights, placed.memories.cache);
  EXPECT_GT(speedOf(ranks, {{30, 10}, {20, 10}}).bytesPerSecond, 79e9);
  EXPECT_LT(speed(ranks).bytesPerSecond, 40e9);
  // The weights fit, and a quarter of the rest beside them.
  placed = place(ranks, {{38, 8}, {38, 8}});
  EXPECT_EQ(placed.nodes, (Nodes{{2, 0}, {3, 1}}));
  EXPECT_EQ(shares(placed.memories.weights[0]), std::vector<double>{1});
  EXPECT_EQ(shares(placed.memories.cache[1]),
            (std::vector<double>{0.25, 0.75}));
  const TeamSpeed team = speedOf(ranks, {{38, 8}, {38, 8}});
  EXPECT_GT(team.bytesPerSecond, 79e9);
  EXPECT_GT(team.cacheSlowdown, 1.3);
  EXPECT_LT(team.cacheSlowdown, 2.1);
  // Nor do the weights.
  placed = place(ranks, {{80, 1}, {80, 1}});
  EXPECT_EQ(shares(placed.memories.weights[0]),
            (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(shares(placed.memories.cache[0]), std::vector<double>{1});
  EXPECT_FALSE(placed.shortage);
}

TEST_F(MemoryPlacementTest, RanksOfOneNodeShareIt) {
  const std::vector<RankCpus> ranks = {{0, 1}, {2, 3}, {4, 5, 6, 7}};
  // The weights of both come before the cache of either.
  auto placed = place(ranks, {{30, 20}, {10, 20}, {10, 20}});
  EXPECT_FALSE(placed.shortage);
  EXPECT_EQ(shares(placed.memories.weights[0]), std::vector<double>{1});
  EXPECT_EQ(placed.nodes, (Nodes{{2, 0}, {2, 0}, {3}}));
  // Who asks for more gets more.
  placed = place(ranks, {{60, 0}, {20, 0}, {1, 0}});
  EXPECT_EQ(shares(placed.memories.weights[0]),
            (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(shares(placed.memories.weights[1]),
            (std::vector<double>{0.5, 0.5}));
  // Both together have 140 bytes, a remote node's room is none of theirs.
  placed = place(ranks, {{60, 15}, {60, 10}, {1, 0}});
  ASSERT_TRUE(placed.shortage);
  EXPECT_EQ(placed.shortage->nodes, (std::vector<unsigned>{0, 2}));
  EXPECT_EQ(placed.shortage->available, 140);
  EXPECT_EQ(placed.shortage->ranks, 2u);
  EXPECT_EQ(placed.shortage->needed, 145);
  EXPECT_FALSE(place(ranks, {{60, 10}, {60, 10}, {1, 0}}).shortage);
}

TEST_F(MemoryPlacementTest, ARankInTwoNodesIsBoundToNone) {
  const std::vector<RankCpus> ranks = {{0, 1, 2, 3, 4, 5, 6, 7}};
  auto placed = place(ranks, {{60, 40}});
  EXPECT_EQ(placed.nodes, (Nodes{{0, 1}}));
  EXPECT_EQ(shares(placed.memories.weights[0]),
            (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(placed.memories.weights, placed.memories.cache);
  EXPECT_FALSE(place(ranks, {{150, 50}}).shortage);
  placed = place(ranks, {{150, 60}});
  ASSERT_TRUE(placed.shortage);
  EXPECT_EQ(placed.shortage->nodes, (std::vector<unsigned>{0, 1}));
  // Half of it does not fit into a small node, but into both.
  machine.root.children[0].children[0].bytes = 20;
  create();
  placed = place(ranks, {{80, 0}});
  EXPECT_FALSE(placed.shortage);
  EXPECT_EQ(shares(placed.memories.weights[0]),
            (std::vector<double>{0.25, 0.75}));
}

TEST_F(MemoryPlacementTest, WhatIsNotKnownLimitsNothingAndIsNotUsed) {
  const std::vector<RankCpus> ranks = {{0, 1, 2, 3}};
  values.besideMemories.clear();
  create();
  EXPECT_EQ(place(ranks, {{50, 50}}).nodes, Nodes{{0}});
  EXPECT_TRUE(place(ranks, {{50, 51}}).shortage);
  // A slow one is used last.
  values.besideMemories = {{2, 5e9}};
  create();
  EXPECT_EQ(place(ranks, {{50, 50}}).nodes, Nodes{{0}});
  EXPECT_EQ(place(ranks, {{50, 51}}).nodes, (Nodes{{0, 2}}));
  machine.root.children[0].children[0].bytes = 0;
  create();
  EXPECT_FALSE(place(ranks, {{1e15, 1e15}}).shortage);
  EXPECT_EQ(errorOf(model->place(ranks, {})), "1 ranks have bytes for 0");
  EXPECT_EQ(errorOf(model->place({{99}}, std::vector<RankBytes>(1))),
            "CPU 99 is not in the topology");
}

TEST_F(LatencyModelTest, ASecondThreadOfACoreAddsABarriersTurn) {
  use("numa:1 core:4 pu:2", ordinaryMachine());
  const TeamSpeed cores = speed({{0, 2, 4, 6}});
  const TeamSpeed threads = speed({cpuRange(0, 8)});
  EXPECT_DOUBLE_EQ(threads.flopsPerSecond, cores.flopsPerSecond);
  EXPECT_DOUBLE_EQ(threads.bytesPerSecond, cores.bytesPerSecond);
  EXPECT_GT(threads.barrierSeconds, cores.barrierSeconds);
}

TEST_F(LatencyModelTest, WhatIsAroundMemoriesLimitsItsReaders) {
  MachineDescription values = ordinaryMachine();
  values.coreBytesPerSecond = 10e9;
  values.remoteShare = 1;
  values.parts = {{"package", {20e9, 100e-9}}};
  use("package:2 numa:2 core:4 pu:1", values);
  auto passed = [](double asked) {
    double all = asked * std::pow(std::pow(asked / 20, 4) + 1, -0.25);
    return 1e9 * (asked > 20 ? all * (1 - 0.04 * (1 - 20 / asked)) : all);
  };
  EXPECT_NEAR(speed({{0, 1, 4, 5}}).bytesPerSecond, passed(40), 1e5);
  EXPECT_NEAR(speed({{0, 1, 8, 9}}).bytesPerSecond, 2 * passed(20), 1e5);
}

//===----------------------------------------------------------------------===//
// What limits reading
//===----------------------------------------------------------------------===//

/// The shares of `ranks`, whose weights lie where the CPUs of `owned` are.
static ReadingShares sharesOf(const LatencyModel &model,
                              const std::vector<RankCpus> &ranks,
                              const std::vector<RankCpus> &owned) {
  Result<ReadingShares> shares =
      model.readingShares(ranks, *model.memoriesOf(owned));
  EXPECT_TRUE(shares) << errorOf(shares);
  double sum = 0;
  for (const auto &[name, share] : *shares) {
    EXPECT_GT(share, 0) << name;
    sum += share;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  return *shares;
}

TEST_F(LatencyModelTest, ReadingWaitsForWhatPassesOnLess) {
  MachineDescription values = ordinaryMachine();
  values.coreBytesPerSecond = 10e9;
  values.parts = {{"numa", {20e9, 100e-9}}};
  use("numa:2 core:8 pu:1", values);
  // (asked / bandwidth)^4 of both terms' sum.
  auto ofNode = [](double asked) {
    return std::pow(asked / 20, 4) / (1 + std::pow(asked / 20, 4));
  };
  for (unsigned cores : {1, 2, 8}) {
    const std::vector<RankCpus> ranks = {cpuRange(0, cores)};
    ReadingShares shares = sharesOf(*model, ranks, ranks);
    EXPECT_NEAR(shares["numa bandwidth"], ofNode(10. * cores), 1e-12);
    EXPECT_NEAR(shares["cores' own reading"], 1 - ofNode(10. * cores), 1e-12);
    EXPECT_EQ(shares.size(), 2u);
  }
  // The slowest rank counts: the one with a single core.
  const std::vector<RankCpus> uneven = {{0}, cpuRange(8, 8)};
  EXPECT_NEAR(sharesOf(*model, uneven, uneven)["numa bandwidth"], ofNode(10),
              1e-12);
  // Half of the weights are far: they take 1 / 0.6 as long.
  ReadingShares far = sharesOf(*model, {{0}}, {{0, 8}});
  const double own = far["cores' own reading"];
  EXPECT_NEAR(far["memory of other nodes"] / own, 1 / 0.6, 1e-9);
  EXPECT_EQ(errorOf(model->readingShares({{0}}, {})),
            "1 ranks have memories for 0");
  EXPECT_EQ(errorOf(model->readingShares({{99}}, {{}})),
            "CPU 99 is not in the topology");
}

TEST_F(LatencyModelTest, EveryKindOfPartMayLimitReading) {
  MachineDescription values = ordinaryMachine();
  values.coreBytesPerSecond = 10e9;
  values.remoteShare = 1;
  values.parts = {{"l3", {12e9, 20e-9}},
                  {"numa", {1e12, 100e-9}},
                  {"package", {1e12, 100e-9}}};
  values.parts["package"].linkBytesPerSecond = 3e9;
  values.latent = {{"cluster", "l3", 2, 2, {11e9, 5e-9}}};
  use("package:2 numa:1 l3:2 core:4 pu:1", values);
  // CPUs 0 and 2 are a cluster, 0 and 1 are not.
  EXPECT_EQ(sharesOf(*model, {{0, 2}}, {{0}}).begin()->first,
            "cluster bandwidth");
  EXPECT_GT(sharesOf(*model, {{0, 2}}, {{0}})["cluster bandwidth"], 0.5);
  EXPECT_GT(sharesOf(*model, {{0, 1}}, {{0}})["l3 bandwidth"], 0.5);
  EXPECT_GT(sharesOf(*model, {{0}}, {{8}})["package links"], 0.9);
  values.parts["package"].bytesPerSecond = 4e9;
  use("package:2 numa:1 l3:2 core:4 pu:1", values);
  EXPECT_GT(sharesOf(*model, {{0}}, {{0}})["package bandwidth"], 0.9);
}

// What a part is told to take is what the prediction loses by it: where all
// that limits is faster by a little, reading is faster by its share of that.
TEST_F(LatencyModelTest, SharesAreDerivativesOfThePrediction) {
  MachineDescription values = ordinaryMachine();
  values.coreBytesPerSecond = 5e9;
  values.remoteShare = 0.7;
  values.parts = {{"l3", {25e9, 20e-9}},
                  {"numa", {60e9, 100e-9}},
                  {"package", {90e9, 100e-9}}};
  values.parts["package"].linkBytesPerSecond = 35e9;
  const char *topology = "package:2 numa:2 l3:2 core:4 pu:1";
  use(topology, values);
  const std::vector<RankCpus> ranks = {cpuRange(0, 32)};
  const double time = 1 / speed(ranks).bytesPerSecond;
  const ReadingShares shares = sharesOf(*model, ranks, ranks);
  constexpr double little = 1e-6;
  auto gain = [&](auto &&change) {
    MachineDescription faster = values;
    change(faster);
    use(topology, faster);
    return (time - 1 / speed(ranks).bytesPerSecond) / time / little;
  };
  auto faster = [](MachineValue &value) { value = value * (1 + little); };
  EXPECT_EQ(shares.size(), 6u);
  EXPECT_NEAR(shares.at("l3 bandwidth"),
              gain([&](auto &of) { faster(of.parts["l3"].bytesPerSecond); }),
              1e-4);
  EXPECT_NEAR(shares.at("numa bandwidth"),
              gain([&](auto &of) { faster(of.parts["numa"].bytesPerSecond); }),
              1e-4);
  EXPECT_NEAR(shares.at("package bandwidth"), gain([&](auto &of) {
                faster(of.parts["package"].bytesPerSecond);
              }),
              1e-4);
  EXPECT_NEAR(shares.at("package links"), gain([&](auto &of) {
                faster(of.parts["package"].linkBytesPerSecond);
              }),
              1e-4);
  EXPECT_NEAR(shares.at("cores' own reading") +
                  shares.at("memory of other nodes"),
              gain([&](auto &of) { faster(of.coreBytesPerSecond); }), 1e-4);
}

TEST(BandwidthThatPasses, IsThatOfThePartThatWasMeasured) {
  // What a part of `has` lets through, by the formulas of the header.
  auto passed = [](double has, double asked) {
    double all = std::pow(std::pow(asked, -4) + std::pow(has, -4), -0.25);
    return asked > has ? all * (1 - 0.04 * (1 - has / asked)) : all;
  };
  for (double asked : {1.0, 20e9, 3e12})
    for (double share : {0.01, 0.3, 0.9, 1.0, 1.1, 2.0}) {
      const double has = share * asked;
      EXPECT_NEAR(LatencyModel::bandwidthThatPasses(asked, passed(has, asked)),
                  has, 1e-6 * has)
          << asked << " " << share;
    }
  // Nearly all of it, all of it, or more by chance: 99% count as the most.
  const double most = LatencyModel::bandwidthThatPasses(10e9, 9.9e9);
  EXPECT_NEAR(passed(most, 10e9), 9.9e9, 1e3);
  EXPECT_NEAR(most, 22.2e9, 0.1e9);
  EXPECT_EQ(LatencyModel::bandwidthThatPasses(10e9, 9.99e9), most);
  EXPECT_EQ(LatencyModel::bandwidthThatPasses(10e9, 11e9), most);
  // Monotone: who passes more has more.
  EXPECT_LT(LatencyModel::bandwidthThatPasses(10e9, 5e9),
            LatencyModel::bandwidthThatPasses(10e9, 6e9));
}

TEST_F(LatencyModelTest, BarriersCostWhatTheirSpanCosts) {
  MachineDescription values = ordinaryMachine();
  values.parts["l3"].handoffSeconds = 20e-9;
  values.parts["numa"].handoffSeconds = 100e-9;
  values.parts["machine"].handoffSeconds = 300e-9;
  use("numa:2 l3:2 core:4 pu:1", values);
  EXPECT_NEAR(speed({{0}}).barrierSeconds, 0, 1e-15);
  EXPECT_NEAR(speed({cpuRange(0, 4)}).barrierSeconds, 4 * 20e-9, 1e-15);
  EXPECT_NEAR(speed({{0, 4}}).barrierSeconds, 2 * 100e-9, 1e-15);
  EXPECT_NEAR(speed({{0, 8}}).barrierSeconds, 2 * 300e-9, 1e-15);
  EXPECT_DOUBLE_EQ(speed({{0}}).allReduceSeconds, 0);
  EXPECT_DOUBLE_EQ(speed({{0}, {4}}).allReduceSeconds, 2 * 2 * 100e-9);
  EXPECT_GT(speed({{0}, {4}}).allReduceSecondsPerByte, 0);
}

TEST_F(LatencyModelTest, LatentGroupsAreParts) {
  MachineDescription values = ordinaryMachine();
  values.coreBytesPerSecond = 4e9;
  values.latent = {{"cluster", "numa", 2, 4, {4e9, 5e-9}}};
  values.parts["numa"].bytesPerSecond = 1e12;
  use("numa:1 l3:1 core:8 pu:1", values);
  // With stride 4, CPUs 0 and 4 are one group; its 4 GB/s are asked for twice,
  // or once by each of two groups.
  EXPECT_NEAR(speed({{0, 4}}).bytesPerSecond, 8e9 * std::pow(17, -0.25) * 0.98,
              1e5);
  EXPECT_NEAR(speed({{0, 1}}).bytesPerSecond, 8e9 * std::pow(2, -0.25), 1e5);
  EXPECT_NEAR(speed({{0, 4}}).barrierSeconds, 2 * 5e-9, 1e-15);
  EXPECT_GT(speed({{0, 1}}).barrierSeconds, 2 * 5e-9);
}

TEST_F(LatencyModelTest, LatentGroupsStayWhereCoresMayNotBeUsed) {
  MachineDescription values = ordinaryMachine();
  values.latent = {{"cluster", "numa", 4, 1, {4e9, 5e-9}}};
  Result<Machine> machine = readMachineTopology("synthetic:numa:2 core:8 pu:2");
  ASSERT_TRUE(machine);
  // CPUs 2 and 3 are core 1's, 16 and 17 core 8's.
  for (MachineNode &numa : machine->root.children)
    numa.children.erase(numa.children.begin() + (numa.index == 0 ? 1 : 0));
  Result<LatencyModel> created =
      LatencyModel::create(machine->root, values, MatrixElement::F32);
  ASSERT_TRUE(created) << errorOf(created);
  model.emplace(std::move(*created));
  // Cores 2 and 3 are a cluster with core 0, core 4 is in the next one.
  EXPECT_NEAR(speed({{0, 4}}).barrierSeconds, 2 * 5e-9, 1e-15);
  EXPECT_NEAR(speed({{4, 6}}).barrierSeconds, 2 * 5e-9, 1e-15);
  EXPECT_GT(speed({{6, 8}}).barrierSeconds, 2 * 5e-9);
  EXPECT_NEAR(speed({{18, 22}}).barrierSeconds, 2 * 5e-9, 1e-15);
  EXPECT_GT(speed({{22, 24}}).barrierSeconds, 2 * 5e-9);
}

TEST_F(LatencyModelTest, ALatentGroupMayBeAllThatIsUsed) {
  MachineDescription values = ordinaryMachine();
  values.latent = {{"cluster", "numa", 4, 1, {4e9, 5e-9}}};
  Result<Machine> machine =
      readMachineTopology("synthetic:package:1 [numa] core:8 pu:1");
  ASSERT_TRUE(machine);
  MachineNode *numa = &machine->root;
  while (numa->kind != "numa")
    numa = &numa->children.front();
  numa->children.resize(4);
  Result<LatencyModel> created =
      LatencyModel::create(machine->root, values, MatrixElement::F32);
  ASSERT_TRUE(created) << errorOf(created);
  model.emplace(std::move(*created));
  EXPECT_NEAR(speed({cpuRange(0, 4)}).barrierSeconds, 4 * 5e-9, 1e-15);
  EXPECT_LT(speed({cpuRange(0, 4)}).bytesPerSecond, 4e9);
}

TEST_F(LatencyModelTest, TheSystemNeedsAnIdleCpu) {
  MachineDescription values = ordinaryMachine();
  values.wakeupsPerCorePerSecond = 2;
  values.wakeupSeconds = 4e-3;
  use("numa:1 core:8 pu:1", values);
  EXPECT_DOUBLE_EQ(speed({cpuRange(0, 7)}).interference, 1);
  EXPECT_DOUBLE_EQ(speed({cpuRange(0, 8)}).interference, 1 + 8 * 2 * 4e-3);
}

TEST_F(LatencyModelTest, RefusesWhatTheMachineIsNot) {
  use("numa:1 core:2 pu:1", ordinaryMachine());
  EXPECT_EQ(errorOf(model->speedOf({})), "there is no rank");
  EXPECT_EQ(errorOf(model->speedOf({{}})), "a rank has no CPU");
  EXPECT_EQ(errorOf(model->speedOf({{2}})), "CPU 2 is not in the topology");
  EXPECT_EQ(errorOf(model->speedOf({{1}, {1}})), "CPU 1 is used twice");

  MachineDescription values;
  values.latent = {{"cluster", "l3", 2, 1, {}}};
  Result<Machine> machine = readMachineTopology("synthetic:numa:1 core:6 pu:1");
  ASSERT_TRUE(machine);
  EXPECT_EQ(
      errorOf(LatencyModel::create(machine->root, values, MatrixElement::F32)),
      "the topology has no l3 around CPU 0, inside which 'cluster' "
      "groups cores");
  values.latent = {{"cluster", "numa", 4, 1, {}}};
  EXPECT_EQ(
      errorOf(LatencyModel::create(machine->root, values, MatrixElement::F32)),
      "'cluster': 6 cores of a numa cannot be grouped 4 each with stride "
      "1");
  values.latent = {{"cluster", "cpu", 2, 1, {}}};
  EXPECT_EQ(
      errorOf(LatencyModel::create(machine->root, values, MatrixElement::F32)),
      "'cluster': a cpu holds no cores that could be grouped");
  MachineNode none;
  none.kind = "machine";
  EXPECT_EQ(errorOf(LatencyModel::create(none, values, MatrixElement::F32)),
            "the topology has no CPUs");
}

TEST(StepLatency, StepsComputeAndRead) {
  TeamSpeed team;
  team.flopsPerSecond = 1e12;
  team.bytesPerSecond = 1e10;
  ModelWork work;
  work.layers = 2;
  work.hiddenSize = 100;
  work.intermediateSize = 3000;
  work.queryHeads = 4;
  work.keyValueHeads = 1;
  work.headDim = 25;
  work.vocabulary = 30000;
  EXPECT_EQ(work.queryElements(), 100);
  EXPECT_EQ(work.keyValueElements(), 50);
  EXPECT_EQ(work.layerWeights(), 100 * (100 + 50 + 100) + 3e5 * 3);
  EXPECT_EQ(work.logitWeights(), 3e6);
  auto step = [&](const StepWork &each) {
    return LatencyModel::stepSeconds(team, work, each);
  };
  double weights = 2 * 925e3 + 3e6;
  double flops = 2 * weights + 4. * 30 * 2 * 100;
  double bytes = 2 * weights + 30. * 2 * 50 * 2;
  EXPECT_DOUBLE_EQ(step(StepWork::decode(1, 30)),
                   bytes / 1e10 + 0.2 * flops / 1e12);
  team.barrierSeconds = 1e-6;
  team.allReduceSeconds = 1e-5;
  team.allReduceSecondsPerByte = 1e-9;
  team.interference = 1.5;
  EXPECT_DOUBLE_EQ(step(StepWork::decode(1, 30)),
                   1.5 * (bytes / 1e10 + 0.2 * flops / 1e12 +
                          2 * (7e-6 + 2 * (1e-5 + 400e-9))));
}

TEST(StepLatency, PartsAddUpToTheStep) {
  TeamSpeed team;
  team.ranks = 2;
  team.threads = 4;
  team.flopsPerSecond = 1e12;
  team.bytesPerSecond = 1e10;
  team.barrierSeconds = 1e-6;
  team.allReduceSeconds = 1e-5;
  team.allReduceSecondsPerByte = 1e-9;
  team.interference = 1.25;
  const ModelWork work = llama160M(2);
  for (const StepWork &step :
       {StepWork::decode(1, 30), StepWork::piece(512, 512 * 513 / 2)}) {
    const StepTime time = LatencyModel::stepTime(team, work, step);
    EXPECT_DOUBLE_EQ(time.computing + time.reading + time.collectives +
                         time.barriers + time.wakeups,
                     LatencyModel::stepSeconds(team, work, step));
    EXPECT_DOUBLE_EQ(time.wakeups, 0.25 * (time.computing + time.reading +
                                           time.collectives + time.barriers));
    // 12 layers: 7 barriers, and two all-reduces of the hidden size in f32.
    EXPECT_DOUBLE_EQ(time.barriers, 12 * 7 * 1e-6);
    EXPECT_DOUBLE_EQ(time.collectives,
                     12 * 2 * (1e-5 + step.tokens * 768 * 4 * 1e-9));
  }
  // A fifth of the shorter is not hidden.
  const StepTime decode =
      LatencyModel::stepTime(team, work, StepWork::decode(1, 30));
  EXPECT_GT(decode.reading, decode.computing);
  team.flopsPerSecond *= 2;
  EXPECT_DOUBLE_EQ(
      LatencyModel::stepTime(team, work, StepWork::decode(1, 30)).computing,
      decode.computing / 2);
  team.flopsPerSecond = 1;
  const StepTime slow =
      LatencyModel::stepTime(team, work, StepWork::decode(1, 30));
  EXPECT_DOUBLE_EQ(slow.reading, 0.2 * decode.reading);
  EXPECT_DOUBLE_EQ(slow.computing, 5 * 1e12 * decode.computing);
}

TEST_F(LatencyModelTest, RefusesLatentGroupsAcrossParts) {
  MachineDescription values = ordinaryMachine();
  values.latent = {{"cluster", "numa", 2, 4, {}}};
  Result<Machine> machine =
      readMachineTopology("synthetic:numa:1 l3:2 core:4 pu:1");
  ASSERT_TRUE(machine);
  EXPECT_EQ(
      errorOf(LatencyModel::create(machine->root, values, MatrixElement::F32)),
      "'cluster': a group of cores lies across a l3; it must be inside or "
      "around it");
}

TEST(StepLatency, CopiesOfKeysAndValuesAreReadToo) {
  TeamSpeed team;
  team.flopsPerSecond = 1e18;
  team.bytesPerSecond = 1e9;
  ModelWork work;
  work.layers = 1;
  work.hiddenSize = 8;
  work.queryHeads = 8;
  work.keyValueHeads = 2;
  work.headDim = 1;
  double one = LatencyModel::stepSeconds(team, work, StepWork::decode(1, 1000));
  team.ranks = 8;
  double copied =
      LatencyModel::stepSeconds(team, work, StepWork::decode(1, 1000));
  // Four copies of 1000 positions and of the weights of keys and values.
  EXPECT_NEAR(copied - one, 3 * (1000 * 4 + 8 * 4) * 2 / 1e9, 1e-12);
}
