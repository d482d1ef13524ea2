//===- SensiblePlansTest.cpp - Plans that an expert would deploy ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Machines of many kinds, mostly without any measurement, and what nobody who
/// knows them would do.
///
//===----------------------------------------------------------------------===//

#include "PaperMachines.h"
#include "sandwich/Serving/Prediction/ModelledEvaluator.h"
#include "sandwich/Topology/Search/ConfigurationSearch.h"
#include "sandwich/Topology/Trees/SymmetricPart.h"

#include <gtest/gtest.h>

#include <set>

using namespace sandwich;
using namespace sandwich::test;

namespace {

/// A machine and its best plan for the 1.3B model, as the planner finds it.
class SensiblePlans : public testing::Test {
protected:
  void read(const std::string &topology) {
    Result<Machine> found = readMachineTopology("synthetic:" + topology);
    ASSERT_TRUE(found) << found.error().message;
    machine = *found;
  }

  void plan(const char *target, const char *json = "{}") {
    Result<MachineDescription> description = machineDescriptionFromJson(
        *parseJson(json), describeMachine(machine, *getTarget(target)));
    ASSERT_TRUE(description) << description.error().message;
    Result<std::vector<SymmetricPart>> parts = partsWithReservedCores(
        machine.root, *largestSymmetricPart(machine.root), reserved);
    ASSERT_TRUE(parts) << parts.error().message;
    Result<TopoTree> tree =
        TopoTree::fromMachine(parts->front().root, TopoLeaves::Cores);
    Result<LatencyModel> model = LatencyModel::create(
        machine.root, *description, MatrixElement::BF16, machine.memories);
    Result<ServingTrace> trace = findServingTrace("sharegpt");
    ASSERT_TRUE(tree && model && trace);
    Result<TracePrediction> prediction = TracePrediction::create(*trace);
    ASSERT_TRUE(prediction) << prediction.error().message;
    ModelledEvaluator evaluator(
        std::move(*model), work, std::move(*prediction),
        ModelMemoryOptions{.contextTokens = contextTokens});
    ConfigurationSearchOptions options;
    options.limits = limitsOf(work);
    options.leastGain = 0.05;
    options.patience = 200;
    Result<SearchResult> result =
        searchConfigurations(*tree, evaluator, options);
    ASSERT_TRUE(result) << result.error().message;
    notes = result->notes;
    ASSERT_FALSE(result->configurations.empty());
    best = result->configurations.front();
    best.memoryNodes = *evaluator.memoryNodesOf(best);
  }

  static std::set<unsigned> cpus(const std::vector<std::vector<unsigned>> &of) {
    std::set<unsigned> all;
    for (const std::vector<unsigned> &process : of)
      all.insert(process.begin(), process.end());
    return all;
  }
  std::set<unsigned> prefill() const { return cpus(best.prefillCores); }
  std::set<unsigned> decode() const { return cpus(best.decodeCores); }

  /// Parts of `cores` CPUs each with consecutive numbers, one of which is in
  /// `awake`.
  static size_t partsAwake(const std::set<unsigned> &awake, unsigned cores) {
    std::set<unsigned> parts;
    for (unsigned cpu : awake)
      parts.insert(cpu / cores);
    return parts.size();
  }

  Machine machine;
  ModelWork work = llama1B(2);
  int64_t contextTokens = 4096;
  uint64_t reserved = 0;
  ServiceConfiguration best;
  std::vector<std::string> notes;
};

} // namespace

TEST_F(SensiblePlans, EveryL3OfAZen5Works) {
  // Each L3 has a link of its own to memory: what sleeps is bandwidth.
  read("[numa(memory=412316860416)] l3:16(size=33554432) l2:8 core:1 pu:1");
  plan("x86-64-avx512-bf16");
  EXPECT_EQ(prefill().size(), 128u);
  EXPECT_EQ(partsAwake(decode(), 8), 16u);
  EXPECT_GE(decode().size(), 64u);
  plan("x86-64-avx512-bf16",
       R"({"core_gb_per_second": 35, "parts": {
           "l3": {"gb_per_second": 60, "handoff_ns": 25},
           "numa": {"gb_per_second": 480, "handoff_ns": 95}}})");
  EXPECT_EQ(prefill().size(), 128u);
  EXPECT_EQ(partsAwake(decode(), 8), 16u);
}

TEST_F(SensiblePlans, NoNodeOfTwoFlatSocketsSleeps) {
  // A node whose cores sleep is read over the links between sockets.
  for (unsigned cores : {48, 56, 60, 64, 72}) {
    read("pack:2 [numa(memory=274877906944)] l3:1 core:" +
         std::to_string(cores) + " pu:1");
    plan("x86-64-amx");
    EXPECT_EQ(prefill().size(), 2 * cores);
    EXPECT_EQ(partsAwake(decode(), cores), 2u) << cores;
    EXPECT_GE(decode().size(), cores) << cores;
    for (const std::vector<unsigned> &nodes : best.numa)
      EXPECT_EQ(nodes.size(), 1u) << "a process over both sockets";
  }
}

TEST_F(SensiblePlans, EachClusterOfASubNumaXeonHasItsProcess) {
  read("pack:2 numa:4(memory=68719476736) core:14 pu:1");
  plan("x86-64-amx");
  EXPECT_EQ(prefill().size(), 112u);
  EXPECT_EQ(partsAwake(decode(), 14), 8u);
  for (const std::vector<unsigned> &nodes : best.numa)
    EXPECT_EQ(nodes.size(), 1u);
}

TEST_F(SensiblePlans, AnAltraIsOneFlatNode) {
  read("[numa(memory=274877906944)] core:80 pu:1");
  machine.cpuModel = "Ampere Altra";
  plan("aarch64-neon");
  EXPECT_EQ(prefill().size(), 80u);
  EXPECT_GE(decode().size(), 40u);
}

TEST_F(SensiblePlans, FewCoresAllWork) {
  // Nothing divides a prime but itself, and nothing sleeps on a guess.
  for (unsigned cores : {1, 2, 3, 4, 6, 7, 8, 11, 13}) {
    read("[numa] core:" + std::to_string(cores) + " pu:1");
    plan("x86-64-avx2");
    EXPECT_EQ(prefill().size(), cores);
    EXPECT_EQ(decode().size(), cores) << cores;
  }
}

TEST_F(SensiblePlans, OneCoreThatIsMissingTakesNoOther) {
  // Of one L3 alone: the whole of it is still less than a core of each other.
  read("[numa(memory=412316860416)] l3:16(size=33554432) core:8 pu:1");
  MachineNode &numa = machine.root.children.front();
  MachineNode &slice =
      numa.kind == "numa" ? numa.children[3] : machine.root.children[3];
  ASSERT_EQ(slice.kind, "l3");
  slice.children.pop_back();
  plan("x86-64-avx512-bf16");
  EXPECT_EQ(prefill().size(), 15u * 8);
  EXPECT_EQ(partsAwake(decode(), 8), 15u);
}

TEST_F(SensiblePlans, EfficiencyCoresSlowATeamDown) {
  read("[numa] l3:1 core:12 pu:1");
  MachineNode *part = &machine.root;
  while (part->children.size() == 1)
    part = &part->children.front();
  ASSERT_EQ(part->children.size(), 12u);
  for (size_t i = 8; i < 12; ++i)
    part->children[i].speed = 0.5;
  plan("x86-64-avx2");
  EXPECT_EQ(prefill(), (std::set<unsigned>{0, 1, 2, 3, 4, 5, 6, 7}));
  Result<LatencyModel> model = LatencyModel::create(
      machine.root, describeMachine(machine, *getTarget("x86-64-avx2")),
      MatrixElement::F32);
  ASSERT_TRUE(model);
  // Work is divided evenly, so four slow cores more add nothing to eight.
  const auto flops = [&](const RankCpus &cpus) {
    return model->speedOf({cpus})->flopsPerSecond;
  };
  EXPECT_DOUBLE_EQ(flops({0, 1, 2, 3, 4, 5, 6, 7}) * 0.75,
                   flops({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_DOUBLE_EQ(flops({8, 9}), flops({0}));
}

TEST_F(SensiblePlans, HBMHasTheWeights) {
  // A Xeon Max in flat mode: 64 GiB of HBM beside 128 GiB of DDR in each
  // socket.
  read("pack:2 [numa(memory=137438953472)] l3:1 core:56 pu:1");
  machine.cpuModel = "Intel(R) Xeon(R) CPU Max 9480";
  plan("x86-64-amx");
  const double withDDR = best.predictedMs;
  for (unsigned node : {0, 1}) {
    MachineNode &hbm = machine.memories.emplace_back();
    hbm.kind = "numa";
    hbm.index = node + 2;
    hbm.bytes = uint64_t{64} << 30;
    hbm.bandwidth = 600'000'000'000;
    hbm.besideNodes = {node};
  }
  plan("x86-64-amx");
  EXPECT_EQ(prefill().size(), 112u);
  EXPECT_EQ(partsAwake(decode(), 56), 2u);
  EXPECT_LT(best.predictedMs, 0.8 * withDDR);
  // A process over both sockets would be bound to no memory.
  for (size_t process = 0; process < best.processes(); ++process) {
    ASSERT_EQ(best.numa[process].size(), 1u);
    EXPECT_EQ(best.memoryNodes[process],
              std::vector<unsigned>{best.numa[process].front() + 2});
  }
  EXPECT_TRUE(best.hasOtherMemory());
  // What HBM cannot hold is in DDR, and is read more slowly.
  const double withHBM = best.predictedMs;
  for (MachineNode &hbm : machine.memories)
    hbm.bytes = uint64_t{256} << 20;
  plan("x86-64-amx");
  EXPECT_GT(best.predictedMs, withHBM);
  EXPECT_LT(best.predictedMs, withDDR);
  for (size_t process = 0; process < best.processes(); ++process)
    EXPECT_EQ(best.memoryNodes[process].size(), 2u);
}

TEST_F(SensiblePlans, ReservedCoresAreInNoPlan) {
  read("pack:2 [numa(memory=274877906944)] l3:1 core:32 pu:1");
  const char *busy = R"({"wakeups_per_core_per_second": 10, "wakeup_ms": 1})";
  plan("x86-64-amx", busy);
  EXPECT_EQ(prefill().size(), 64u);
  // Of all cores one would have to sleep in decode for the system's work.
  reserved = 4;
  plan("x86-64-amx", busy);
  EXPECT_EQ(prefill().size(), 60u);
  for (unsigned cpu : {0, 1, 32, 33})
    EXPECT_FALSE(prefill().contains(cpu)) << cpu;
  EXPECT_EQ(partsAwake(decode(), 32), 2u);
}

TEST_F(SensiblePlans, AModelLargerThanANodeUsesSeveral) {
  // 2.5 GiB of weights and 768 MiB of keys and values in nodes of 2 GiB.
  read("pack:2 numa:2(memory=2147483648) core:8 pu:1");
  plan("x86-64-avx512");
  EXPECT_GE(best.processes(), 2u);
  EXPECT_EQ(prefill().size(), 32u);
  std::set<unsigned> nodes;
  for (const std::vector<unsigned> &own : best.memoryNodes)
    nodes.insert(own.begin(), own.end());
  EXPECT_GE(nodes.size(), 2u);
  EXPECT_FALSE(best.hasOtherMemory());
  // In a machine of one such node nothing fits.
  read("[numa(memory=2147483648)] core:8 pu:1");
  Result<TopoTree> tree =
      TopoTree::fromMachine(machine.root, TopoLeaves::Cores);
  ModelledEvaluator evaluator(
      *LatencyModel::create(machine.root,
                            describeMachine(machine, *getTarget("x86-64-avx2")),
                            MatrixElement::BF16),
      work, *TracePrediction::create(*findServingTrace("sharegpt")),
      ModelMemoryOptions{.contextTokens = contextTokens});
  Result<SearchResult> result = searchConfigurations(*tree, evaluator);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->configurations.empty());
  ASSERT_FALSE(result->notes.empty());
  EXPECT_NE(result->notes.front().find("but numa 0 has 2 GiB"),
            std::string::npos)
      << result->notes.front();
}
