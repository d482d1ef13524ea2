//===- MachineDescriptionTest.cpp - What a machine can do -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/MachineDescription.h"

#include "TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace sandwich;

static std::string errorOf(std::string_view text) {
  Result<Json> json = parseJson(text);
  EXPECT_TRUE(json) << text;
  Result<MachineDescription> description =
      machineDescriptionFromJson(*json, MachineDescription());
  return description ? "" : description.error().message;
}

static Machine read(const std::string &topology) {
  Result<Machine> machine = readMachineTopology("synthetic:" + topology);
  EXPECT_TRUE(machine) << machine.error().message;
  return machine ? *machine : Machine();
}

static Target targetOf(const char *name) { return *getTarget(name); }

TEST(MachineDescription, ComesBackAsItWas) {
  MachineDescription description = describeMachine(
      read("pack:2 [numa] l3:4 core:8 pu:1"), targetOf("x86-64-avx512-bf16"));
  description.coreFlopsPerSecond.f32 = {72e9, ValueOrigin::Measured, "a test"};
  description.memories[1] = 60e9;
  description.latent = {{"cluster", "numa", 4, 2, {12e9, 30e-9}}};
  Result<MachineDescription> again =
      machineDescriptionFromJson(toJson(description), MachineDescription());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(toJson(*again), toJson(description));
  const MachineValue &flops = again->coreFlopsPerSecond.f32;
  EXPECT_DOUBLE_EQ(flops, 72e9);
  EXPECT_EQ(flops.origin, ValueOrigin::Measured);
  EXPECT_EQ(flops.source, "a test");
  EXPECT_DOUBLE_EQ(again->latent[0].parameters.handoffSeconds, 30e-9);
  EXPECT_EQ(again->parts.at("l3").bytesPerSecond.origin, ValueOrigin::Derived);
}

TEST(MachineDescription, WhatIsAbsentIsDerived) {
  const Machine machine = read("numa:2 core:16 pu:1");
  const MachineDescription derived =
      describeMachine(machine, targetOf("x86-64-avx2"));
  Result<MachineDescription> description = machineDescriptionFromJson(
      *parseJson("{\"core_gflops\": 10, \"core_ghz\": {\"value\": 2, "
                 "\"origin\": \"measured\"}}"),
      derived);
  ASSERT_TRUE(description);
  EXPECT_DOUBLE_EQ(description->coreFlopsPerSecond.f32, 10e9);
  EXPECT_DOUBLE_EQ(description->coreFlopsPerSecond.bf16, 10e9);
  EXPECT_EQ(description->coreFlopsPerSecond.bf16.origin, ValueOrigin::Given);
  EXPECT_EQ(description->coreCyclesPerSecond.origin, ValueOrigin::Measured);
  EXPECT_DOUBLE_EQ(description->parts.at("numa").bytesPerSecond, 16 * 5e9);
}

/// Integers have a rate where the target multiplies them; files need not tell
/// it, and say nothing of it elsewhere.
TEST(MachineDescription, IntegersHaveTheirOwnRate) {
  const Machine machine = read("numa:1 core:2 pu:1");
  const MachineDescription without =
      describeMachine(machine, targetOf("x86-64-avx512"));
  EXPECT_EQ(without.coreFlopsPerSecond.int8, 0);
  EXPECT_DOUBLE_EQ(without.coreFlopsPerSecond.of(MatrixElement::Int8),
                   without.coreFlopsPerSecond.f32);
  EXPECT_FALSE(toJson(without)["core_gflops"].contains("int8"));
  for (const char *target : {"x86-64-avx512-vnni", "x86-64-avx512-bf16",
                             "aarch64-neon-dotprod", "aarch64-neon-i8mm"}) {
    const MachineDescription derived =
        describeMachine(machine, targetOf(target));
    const MatmulRates &rates = derived.coreFlopsPerSecond;
    EXPECT_GT(rates.of(MatrixElement::Int8), rates.f32) << target;
    EXPECT_EQ(rates.int8.origin, ValueOrigin::Derived);
    Result<MachineDescription> older = machineDescriptionFromJson(
        *parseJson("{\"core_gflops\": {\"f32\": 72, \"bf16\": 80}}"), derived);
    ASSERT_TRUE(older) << older.error().message;
    EXPECT_DOUBLE_EQ(older->coreFlopsPerSecond.int8, rates.int8);
    Result<MachineDescription> newer = machineDescriptionFromJson(
        *parseJson("{\"core_gflops\": {\"int8\": 250}}"), derived);
    ASSERT_TRUE(newer) << newer.error().message;
    EXPECT_DOUBLE_EQ(newer->coreFlopsPerSecond.of(MatrixElement::Int8), 250e9);
    Result<MachineDescription> again =
        machineDescriptionFromJson(toJson(*newer), MachineDescription());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(toJson(*again), toJson(*newer));
  }
}

TEST(MachineDescription, IsByCoresWhereNothingIsKnown) {
  const MachineDescription flat = describeMachine(
      read("pack:2 [numa] l3:1 core:64 pu:1"), targetOf("x86-64-amx"));
  EXPECT_DOUBLE_EQ(flat.parts.at("numa").bytesPerSecond, 64 * 5e9);
  // One L3 for all is no limit, several are.
  EXPECT_FALSE(flat.parts.contains("l3"));
  EXPECT_LT(flat.parts.at("package").linkBytesPerSecond, 64 * 5e9);
  const MachineDescription slices = describeMachine(
      read("[numa] l3:16 core:8 pu:1"), targetOf("x86-64-avx512-bf16"));
  EXPECT_DOUBLE_EQ(slices.parts.at("l3").bytesPerSecond, 8 * 7e9);
  // Nothing joins sockets where there is one.
  EXPECT_FALSE(slices.parts.contains("package"));
  EXPECT_EQ(slices.wakeupsPerCorePerSecond, 0);
  EXPECT_FALSE(slices.isKnown());
}

TEST(MachineDescription, KnowsProcessorsByTheirNames) {
  Machine machine = read("pack:2 numa:4 l3:4 core:4 pu:1");
  machine.cpuModel = "AMD EPYC 7H12 64-Core Processor";
  MachineDescription rome = describeMachine(machine, targetOf("x86-64-avx2"));
  // A quarter of eight channels, 70% of which are reached.
  const MachineValue &node = rome.parts.at("numa").bytesPerSecond;
  EXPECT_NEAR(node, 0.7 * 2 * 3200e6 * 8, 1e6);
  EXPECT_EQ(node.origin, ValueOrigin::Derived);
  EXPECT_NE(node.source.find("70% of 2 channels at 3200 MT/s"),
            std::string::npos)
      << node.source;
  EXPECT_DOUBLE_EQ(rome.parts.at("l3").bytesPerSecond, 35.7e9);
  machine.cpuModel = "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz";
  EXPECT_DOUBLE_EQ(
      describeMachine(machine, targetOf("x86-64-avx512")).coreBytesPerSecond,
      13e9);
  machine.cpuModel = "Intel(R) Xeon(R) CPU Max 9480";
  EXPECT_NE(describeMachine(machine, targetOf("x86-64-amx"))
                .parts.at("numa")
                .bytesPerSecond.source.find("Xeon Max"),
            std::string::npos);
  for (const char *unknown : {"", "AMD EPYC", "AMD EPYC 7", "Xeon Gold 62x0"}) {
    machine.cpuModel = unknown;
    EXPECT_DOUBLE_EQ(
        describeMachine(machine, targetOf("x86-64-avx2")).coreBytesPerSecond,
        30e9)
        << unknown;
  }
}

TEST(MachineDescription, CountsWhatThisProcessMayNotUse) {
  // A container with two L3s of one node of four.
  Machine machine = read("pack:1 numa:4 l3:4 core:4 pu:1");
  const Target target = targetOf("x86-64-avx2");
  machine.cpuModel = "AMD EPYC 7502 32-Core Processor";
  const MachineDescription whole = describeMachine(machine, target);
  MachineNode *package = &machine.root;
  while (package->children.size() == 1)
    package = &package->children.front();
  ASSERT_EQ(package->children.size(), 4u);
  for (size_t i = 1; i < 4; ++i) {
    machine.memories.push_back(package->children[i]);
    machine.memories.back().children.clear();
  }
  package->children.resize(1);
  MachineNode &numa = package->children.front();
  numa.coreCount = 16;
  numa.children.resize(2);
  const MachineDescription part = describeMachine(machine, target);
  for (const char *kind : {"numa", "l3"})
    EXPECT_DOUBLE_EQ(part.parts.at(kind).bytesPerSecond,
                     whole.parts.at(kind).bytesPerSecond)
        << kind;
}

TEST(MachineDescription, MemoriesBesideOthersAreNoNodes) {
  Machine machine = read("pack:2 [numa] core:8 pu:1");
  machine.cpuModel = "Intel(R) Xeon(R) CPU Max 9480";
  const Target target = targetOf("x86-64-amx");
  const double alone =
      describeMachine(machine, target).parts.at("numa").bytesPerSecond;
  for (unsigned node : {0, 1}) {
    MachineNode &beside = machine.memories.emplace_back();
    beside.kind = "numa";
    beside.index = node + 2;
    beside.bandwidth = 600'000'000'000;
    beside.besideNodes = {node};
  }
  const MachineDescription description = describeMachine(machine, target);
  EXPECT_DOUBLE_EQ(description.parts.at("numa").bytesPerSecond, alone);
  EXPECT_TRUE(description.memories.empty());
  EXPECT_DOUBLE_EQ(description.besideMemories.at(2), 600e9);
  // What a file says of all nodes is not about them; what it says of one is.
  Result<MachineDescription> given = machineDescriptionFromJson(
      *parseJson("{\"parts\": {\"numa\": {\"gb_per_second\": 200}}, "
                 "\"memory_gb_per_second\": {\"3\": 500}}"),
      description);
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_DOUBLE_EQ(given->besideMemories.at(2), 600e9);
  const Json written = toJson(*given);
  EXPECT_EQ(written["memory_gb_per_second"]["2"]["value"], 600);
  EXPECT_EQ(written["memory_gb_per_second"]["3"]["value"], 500);
}

TEST(MachineDescription, FirmwareCountsBeforeCores) {
  Machine machine = read("numa:2 core:4 pu:1");
  machine.root.children[1].bandwidth = 90'000'000'000;
  MachineDescription description =
      describeMachine(machine, targetOf("x86-64-avx2"));
  EXPECT_DOUBLE_EQ(description.memories.at(1), 90e9);
  EXPECT_FALSE(description.memories.contains(0));
  // And a file before the firmware.
  Result<MachineDescription> given = machineDescriptionFromJson(
      *parseJson("{\"parts\": {\"numa\": {\"gb_per_second\": 50}}}"),
      description);
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->memories.empty());
}

TEST(MachineDescription, ErrorsNameTheField) {
  EXPECT_EQ(errorOf("[]"), "the file is no object");
  EXPECT_EQ(errorOf("{\"cores\": 1}"), "cores is not known");
  EXPECT_EQ(errorOf("{\"core_gflops\": 0}"),
            "core_gflops is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"core_gflops\": 1e308}"),
            "core_gflops is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"remote_share\": 1.5}"), "remote_share is more than 1");
  EXPECT_EQ(errorOf("{\"wakeup_ms\": -1}"),
            "wakeup_ms is not a number of 0 to 1e+09");
  EXPECT_EQ(errorOf("{\"parts\": {\"l3\": {\"gbps\": 1}}}"),
            "parts.l3.gbps is not known");
  EXPECT_EQ(errorOf("{\"parts\": {\"l3\": 1}}"), "parts.l3 is no object");
  EXPECT_EQ(errorOf("{\"memory_gb_per_second\": {\"zero\": 1}}"),
            "memory_gb_per_second.zero names no NUMA node");
  EXPECT_EQ(errorOf("{\"memory_gb_per_second\": {\"0\": \"1\"}}"),
            "memory_gb_per_second.0 is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"core_gflops\": {\"int8\": -1}}"),
            "core_gflops.int8 is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"core_gflops\": {\"f32\": 1, \"f16\": 1}}"),
            "core_gflops.f16 is not known");
  EXPECT_EQ(errorOf("{\"core_ghz\": {\"origin\": \"given\"}}"),
            "core_ghz.value is absent");
  EXPECT_EQ(errorOf("{\"core_ghz\": {\"value\": -1, \"origin\": "
                    "\"given\"}}"),
            "core_ghz.value is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"core_ghz\": {\"value\": 1}}"),
            "core_ghz.origin is absent or no text");
  EXPECT_EQ(errorOf("{\"core_ghz\": {\"value\": 1, \"origin\": "
                    "\"guessed\"}}"),
            "core_ghz.origin is 'guessed', not assumed, derived, given or "
            "measured");
  EXPECT_EQ(errorOf("{\"core_ghz\": {\"value\": 1, \"origin\": "
                    "\"given\", \"from\": 1}}"),
            "core_ghz.from is not known");
  EXPECT_EQ(errorOf("{\"wakeup_ms\": 10, "
                    "\"wakeups_per_core_per_second\": 100}"),
            "wakeup_ms: with wakeups_per_core_per_second, the system's own "
            "work would keep a CPU all the time");
  EXPECT_EQ(errorOf("{\"a\\u001b[2J\": 1}"), "a?[2J is not known");
  const std::string group =
      "{\"name\": \"a\", \"inside\": \"numa\", \"cores\": 2}";
  EXPECT_EQ(errorOf("{\"latent\": [" + group + ", " + group + "]}"),
            "latent[1].name: there are two groups 'a'");
  EXPECT_EQ(errorOf("{\"latent\": {}}"), "latent is no list");
  EXPECT_EQ(errorOf("{\"latent\": [{}]}"),
            "latent[0].name is absent or no text");
  EXPECT_EQ(errorOf("{\"latent\": [{\"name\": \"a\", \"inside\": \"numa\"}]}"),
            "latent[0].cores is absent");
  EXPECT_EQ(errorOf("{\"latent\": [{\"name\": \"a\", \"inside\": \"numa\", "
                    "\"cores\": 1}]}"),
            "latent[0].cores is not an integer of 2 to 1048576");
}

TEST(MachineDescription, ErrorsNameTheFile) {
  test::TemporaryFolder folder;
  auto refusal = [&](std::string_view contents) {
    Result<MachineDescription> description = readMachineDescription(
        folder.write("machine.json", contents), read("numa:2 core:2 pu:1"),
        targetOf("x86-64-avx2"));
    return description ? "" : description.error().message;
  };
  std::string path = folder.file("machine.json");
  EXPECT_EQ(refusal("{\"core_gflops\": 0}"),
            path + ": core_gflops is not a number of 1e-06 to 1e+09");
  // Names that mean nothing on the machine, with those that would.
  EXPECT_EQ(refusal("{\"parts\": {\"L3\": {\"handoff_ns\": 1}}}"),
            path + ": parts.L3: the machine has no part 'L3', but machine, "
                   "numa, core, cpu");
  EXPECT_EQ(refusal("{\"memory_gb_per_second\": {\"1\": 5, \"2\": 5}}"),
            path + ": memory_gb_per_second.2: the machine has no NUMA node "
                   "'2', but 0, 1");
  EXPECT_EQ(refusal("{\"latent\": [{\"name\": \"a\", \"inside\": \"die\", "
                    "\"cores\": 2}]}"),
            path + ": latent[0].inside: the machine has no part 'die', but "
                   "machine, numa, core, cpu");
  EXPECT_EQ(
      refusal("{\"latent\": [{\"name\": \"numa\", \"inside\": \"machine\", "
              "\"cores\": 2}]}"),
      path + ": latent[0].name: 'numa' is a part that the machine shows");
  EXPECT_EQ(refusal("{\"processor\": \"Z80\"}").substr(0, path.size() + 40),
            path + ": processor: no figures of 'Z80' are kno");
  EXPECT_EQ(refusal("{\"processor\": \"EPYC 9654\"}"), "");
  EXPECT_EQ(refusal("{\"processor\": \"EPYC Rome\"}"), "");
  EXPECT_EQ(refusal("{\"processor\": 1}"),
            path + ": processor is absent or no text");
  EXPECT_EQ(refusal("{\"parts\": {\"numa\": {\"handoff_ns\": 1}}}"), "");
  EXPECT_EQ(refusal("{").substr(0, path.size() + 2), path + ": ");
}
