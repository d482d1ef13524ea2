//===- MachineMeasurementTest.cpp - What this machine's parts can do ------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MachineMeasurement.h"

#include "../../lib/Tuning/LatentMeasurement.h"
#include "../../lib/Tuning/MeasuringTools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace sandwich;

namespace {

Machine read(const std::string &source) {
  Result<Machine> machine = readMachineTopology(source);
  EXPECT_TRUE(machine) << (machine ? "" : machine.error().message);
  return machine ? *machine : Machine();
}

void expectPlausible(double value) {
  EXPECT_TRUE(std::isfinite(value)) << value;
  EXPECT_GT(value, 0);
}

} // namespace

TEST(MachineMeasurement, FindsOnePairForEachKind) {
  Machine machine = read("synthetic:pack:2 [numa] l3:2 l2:1 core:4 pu:2");
  std::vector<CpuPair> pairs = handoffPairs(machine.root);
  std::vector<std::string> kinds;
  for (const CpuPair &pair : pairs) {
    kinds.push_back(pair.kind);
    EXPECT_NE(pair.first, pair.second) << pair.kind;
  }
  // Outermost first; a package's only NUMA node holds both of its L3s.
  ASSERT_EQ(pairs.size(), 4u) << ::testing::PrintToString(kinds);
  EXPECT_EQ(pairs[0].kind, "machine");
  EXPECT_EQ(pairs[0].first, 0u);
  EXPECT_EQ(pairs[0].second, 31u);
  EXPECT_EQ(pairs[1].kind, "numa");
  EXPECT_EQ(pairs[1].second, 15u);
  EXPECT_EQ(pairs[2].second, 7u);
  EXPECT_EQ(pairs[3].kind, "core");
  EXPECT_EQ(pairs[3].second, 1u);
}

TEST(MachineMeasurement, OneCpuHasNoPair) {
  EXPECT_TRUE(handoffPairs(read("synthetic:core:1 pu:1").root).empty());
}

TEST(MachineMeasurement, HandsALineFromCpuToCpu) {
  std::vector<CpuPair> pairs = handoffPairs(read("host").root);
  if (pairs.empty())
    GTEST_SKIP() << "this process may use only one CPU";
  Result<double> seconds = measureHandoff(pairs[0].first, pairs[0].second);
  ASSERT_TRUE(seconds) << seconds.error().message;
  expectPlausible(*seconds);
}

TEST(MachineMeasurement, CpusThatMayNotBeUsedAreErrors) {
  constexpr unsigned absent = 1000000;
  Result<double> handoff = measureHandoff(0, absent);
  ASSERT_FALSE(handoff);
  EXPECT_EQ(handoff.error().message,
            "cannot measure CPU 1000000: this process may not use it");
  EXPECT_FALSE(measureHandoff(0, 0));
  EXPECT_FALSE(measureCoreFlops(absent, MatrixElement::BF16));
}

TEST(MachineMeasurement, ProbesPairsOfCores) {
  Machine machine = read("host");
  std::vector<unsigned> cpus = measuring::firstCpusOfCores(machine.root);
  if (cpus.size() < 2)
    GTEST_SKIP() << "this process may use only one core";
  cpus.resize(2);
  std::unique_ptr<PairProbe> probe = createHostProbe(machine.root);
  // Each thread has its turn to be the only one.
  const std::vector<std::vector<unsigned>> sets = {
      cpus, {cpus[0]}, {cpus[1]}, {cpus[1], cpus[0]}};
  for (int round = 0; round < 3; ++round)
    for (const std::vector<unsigned> &set : sets) {
      Result<double> bytes = probe->bytesPerSecond(set);
      ASSERT_TRUE(bytes) << bytes.error().message;
      expectPlausible(*bytes);
      Result<double> flops = probe->flopsPerSecond(set);
      ASSERT_TRUE(flops) << flops.error().message;
      expectPlausible(*flops);
    }
  for (int round = 0; round < 20; ++round) {
    Result<double> seconds = probe->handoffSeconds(cpus[0], cpus[1]);
    ASSERT_TRUE(seconds) << seconds.error().message;
    expectPlausible(*seconds);
  }
  expectPlausible(probe->elapsedSeconds());
  constexpr unsigned absent = 1000000;
  EXPECT_FALSE(probe->handoffSeconds(absent, cpus[0]));
  EXPECT_FALSE(probe->handoffSeconds(cpus[0], absent));
}

TEST(MachineMeasurement, MeasuresThisMachine) {
  Machine machine = read("host");
  std::set<std::string, std::less<>> stages;
  Result<MachineMeasurement> measured = measureMachine(
      machine, [&](std::string_view stage, double done) -> Status {
        stages.emplace(stage);
        EXPECT_GE(done, 0);
        EXPECT_LE(done, 1);
        return {};
      });
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_TRUE(stages.contains("multiplying matrices"));
  EXPECT_TRUE(stages.contains("reading memory"));

  EXPECT_TRUE(stages.contains("watching the system's own work"));

  const MachineDescription &description = measured->description;
  for (MatrixElement element : {MatrixElement::F32, MatrixElement::BF16}) {
    const MachineValue &flops = description.coreFlopsPerSecond.of(element);
    expectPlausible(flops);
    EXPECT_EQ(flops.origin, ValueOrigin::Measured);
  }
  // Integers count as f32 where nothing multiplies them.
  const Target target = *getTarget("host");
  const MachineValue &int8 = description.coreFlopsPerSecond.int8;
  if (std::ranges::any_of(target.matrixISAs, multipliesIntegers)) {
    expectPlausible(int8);
    EXPECT_EQ(int8.origin, ValueOrigin::Measured);
  } else {
    EXPECT_EQ(int8, 0);
  }
  expectPlausible(description.coreBytesPerSecond);
  expectPlausible(description.remoteShare);
  EXPECT_LE(description.remoteShare, 1);
  if (countParts(machine.root, "numa") > 0)
    expectPlausible(description.parts.at("numa").bytesPerSecond);
  EXPECT_EQ(description.isKnown(), machine.root.children.size() > 0 &&
                                       !handoffPairs(machine.root).empty());
  if (countParts(machine.root, "numa") < 2) {
    EXPECT_FALSE(measured->unmeasured.empty());
  }
  for (const CpuPair &pair : handoffPairs(machine.root))
    expectPlausible(description.parts.at(pair.kind).handoffSeconds);

  const double taken =
      description.wakeupsPerCorePerSecond * description.wakeupSeconds;
  EXPECT_GE(taken, 0);
  EXPECT_LT(taken, 1);
  Result<MachineDescription> again =
      machineDescriptionFromJson(toJson(description), MachineDescription());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(toJson(*again), toJson(description));
}

TEST(MachineMeasurement, TellsWhenReadingIsUnsteady) {
  // A fifth of the samples is slow because a system's own work is.
  std::vector<double> samples = {58e9, 57e9, 59e9, 50e9, 58e9};
  EXPECT_EQ(unsteadyReading("numa 1", samples), std::nullopt);
  EXPECT_EQ(unsteadyReading("numa 1", {30e9}), std::nullopt);
  samples.insert(samples.end(), {33e9, 34e9, 34e9, 35e9, 34e9, 34e9});
  std::optional<std::string> note = unsteadyReading("numa 1", samples);
  ASSERT_TRUE(note);
  EXPECT_NE(note->find("numa 1 read of it moved between 34 and 58 GB/s"),
            std::string::npos)
      << *note;
  EXPECT_NE(note->find("predictions hold for 35 GB/s"), std::string::npos)
      << *note;
}

TEST(MachineMeasurement, EndsWhenItIsTold) {
  for (std::string_view last :
       {"multiplying matrices", "filling memory", "reading memory"}) {
    Result<MachineMeasurement> measured = measureMachine(
        read("host"), [&](std::string_view stage, double) -> Status {
          if (stage == last)
            return makeError("enough");
          return {};
        });
    ASSERT_FALSE(measured) << last;
    EXPECT_EQ(measured.error().message, "enough");
  }
}
