//===- LatentGroupsTest.cpp - Groups of cores that no system shows --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/LatentGroups.h"

#include "Emulation.h"

#include "sandwich/Support/RandomNumbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>

using namespace sandwich;

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// What a simulated machine hides.
struct Truth {
  unsigned coresOfPart = 24;
  /// The group of a core by its place in its part; none where each is alone.
  std::function<unsigned(unsigned place)> groupOf;
  double handoffInside = 45e-9, handoffOutside = 45e-9;
  /// Added to a hand-off for each place between two cores, in a row.
  double handoffDistance = 0;
  /// How suddenly limits are met; that of the latency model.
  double saturation = 4;
  double coreBytes = 12e9, groupBytes = unlimited, partBytes = 100e9;
  /// What the cores of a group compute together, as a multiple of one.
  double groupFlops = unlimited;
  /// Parts from this one on have no groups.
  unsigned partsWithGroups = 1000;
  /// The deviation of all measurements, and how often one is spoiled by up to
  /// three times.
  double noise = 0.05, outliers = 0.02;
  /// How much all slows down and recovers, over some seconds.
  double drift = 0.1;
  /// A core that a neighbour keeps half busy.
  unsigned busyCore = std::numeric_limits<unsigned>::max();
  double secondsEach = 5e-3;
};

Truth groupsOf(unsigned cores, unsigned stride = 1) {
  Truth truth;
  truth.groupOf = [=](unsigned place) {
    return place / (cores * stride) * stride + place % stride;
  };
  return truth;
}

class SimulatedProbe : public PairProbe {
public:
  SimulatedProbe(const Truth &truth, uint64_t seed)
      : truth(truth), random(seed) {}

  Result<double> handoffSeconds(unsigned first, unsigned second) override {
    const unsigned one = first % truth.coresOfPart;
    const unsigned other = second % truth.coresOfPart;
    const double apart = std::abs(static_cast<double>(one) - other);
    double seconds = truth.handoffOutside + truth.handoffDistance * apart;
    if (group(first) == group(second))
      seconds = truth.handoffInside;
    return disturb(seconds, {{first, second}}, 1);
  }

  Result<double> bytesPerSecond(std::span<const unsigned> cpus) override {
    std::map<unsigned, double> asked;
    for (unsigned cpu : cpus)
      asked[group(cpu)] += truth.coreBytes;
    double sum = 0;
    for (const auto &[number, bytes] : asked)
      sum += passOn(bytes, truth.groupBytes);
    return disturb(passOn(sum, truth.partBytes), cpus, -1);
  }

  Result<double> flopsPerSecond(std::span<const unsigned> cpus) override {
    std::map<unsigned, double> asked;
    for (unsigned cpu : cpus)
      asked[group(cpu)] += 1;
    double sum = 0;
    for (const auto &[number, cores] : asked)
      sum += std::min(cores, truth.groupFlops);
    return disturb(50e9 * sum, cpus, -1);
  }

  double elapsedSeconds() const override { return seconds; }

  double seconds = 0;

private:
  unsigned group(unsigned cpu) const {
    const unsigned part = cpu / truth.coresOfPart;
    constexpr unsigned mostGroups = 10000;
    if (!truth.groupOf || part >= truth.partsWithGroups)
      return mostGroups + cpu;
    return part * truth.coresOfPart + truth.groupOf(cpu % truth.coresOfPart);
  }

  double passOn(double asked, double limit) const {
    const double s = truth.saturation;
    return asked * std::pow(1 + std::pow(asked / limit, s), -1 / s);
  }

  double disturb(double value, std::span<const unsigned> cpus, double worse) {
    seconds += truth.secondsEach;
    double slower =
        truth.noise * drawNormal(random) + truth.drift * std::sin(seconds / 2);
    if (drawUniform(random) < truth.outliers)
      slower += drawUniform(random) * std::log(3);
    for (unsigned cpu : cpus)
      if (cpu == truth.busyCore)
        slower += std::log(1 + 1.0 / static_cast<double>(cpus.size()));
    return value * std::exp(worse * slower);
  }

  Truth truth;
  std::mt19937_64 random;
};

Machine machineOf(const std::string &source) {
  Result<Machine> machine = readMachineTopology(source);
  EXPECT_TRUE(machine) << (machine ? "" : machine.error().message);
  return machine ? *machine : Machine();
}

const MachineNode &kunpeng() {
  static const Machine machine =
      machineOf("synthetic:pack:4 die:2 [numa] l3:1 core:24 pu:1");
  return machine.root;
}

std::string describe(const LatentSearch &found) {
  std::string text;
  for (const FoundGroups &each : found.groups)
    text += each.group.name + " in " + each.group.inside + "; ";
  for (const std::string &note : found.notes)
    text += note + "; ";
  return text;
}

LatentSearch search(const MachineNode &machine, const Truth &truth,
                    uint64_t seed) {
  SimulatedProbe probe(truth, seed);
  LatentSearchOptions options;
  options.seed = seed;
  Result<LatentSearch> found = findLatentGroups(machine, probe, options);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  EXPECT_LE(probe.seconds, options.seconds);
  return found ? *found : LatentSearch();
}

/// Each seed must find these groups, and no others.
void expectGroups(const MachineNode &machine, const Truth &truth,
                  const std::string &name, uint64_t seeds) {
  seeds = test::timesToRepeat<uint64_t>(seeds, 1);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const LatentSearch found = search(machine, truth, seed);
    ASSERT_EQ(found.groups.size(), 1U)
        << "seed " << seed << ": " << describe(found);
    EXPECT_EQ(found.groups[0].group.name, name) << "seed " << seed;
  }
}

void expectNone(const MachineNode &machine, const Truth &truth,
                uint64_t seeds) {
  seeds = test::timesToRepeat<uint64_t>(seeds, 1);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const LatentSearch found = search(machine, truth, seed);
    EXPECT_TRUE(found.groups.empty())
        << "seed " << seed << ": " << describe(found);
  }
}

/// Clusters of four cores whose limit shows plainly.
Truth clusters() {
  Truth truth = groupsOf(4);
  truth.groupBytes = 20e9;
  truth.handoffInside = 35e-9;
  return truth;
}

/// What is published of a Kunpeng 920: a core reads 12.4 GB/s, four of one
/// cluster 30.7, four of different ones 40.8; a line takes 34.5 ns inside a
/// cluster, 35.7 ns in the die.
Truth publishedClusters() {
  Truth truth = groupsOf(4);
  truth.coreBytes = 12.4e9;
  truth.groupBytes = 33.8e9;
  truth.partBytes = 47.7e9;
  truth.handoffInside = 34.5e-9;
  truth.handoffOutside = 35.7e-9;
  return truth;
}

} // namespace

TEST(LatentGroups, FindsClustersOfAKunpeng) {
  expectGroups(kunpeng(), clusters(), "latent4", 50);
}

TEST(LatentGroups, TellsWhatAGroupShares) {
  Truth truth = clusters();
  truth.drift = 0;
  const LatentSearch found = search(kunpeng(), truth, 1);
  ASSERT_EQ(found.groups.size(), 1U) << describe(found);
  const FoundGroups &each = found.groups[0];
  EXPECT_EQ(each.group.inside, "l3");
  EXPECT_EQ(each.group.cores, 4U);
  EXPECT_EQ(each.group.stride, 1U);
  EXPECT_NEAR(each.group.parameters.handoffSeconds, 35e-9, 2e-9);
  EXPECT_TRUE(each.sharesReading);
  EXPECT_NEAR(each.bytesAlone, 48e9, 3e9);
  EXPECT_NEAR(each.bytesApart, 47e9, 3e9);
  EXPECT_NEAR(each.bytesTogether, 19.9e9, 1e9);
  EXPECT_TRUE(found.notes.empty()) << describe(found);
}

TEST(LatentGroups, FindsClustersByWhatIsPublished) {
  // That is what the truth reads.
  Truth truth = publishedClusters();
  truth.noise = truth.outliers = truth.drift = 0;
  SimulatedProbe exact(truth, 1);
  EXPECT_NEAR(*exact.bytesPerSecond({{0, 1, 2, 3}}), 30.7e9, 0.1e9);
  EXPECT_NEAR(*exact.bytesPerSecond({{0, 4, 8, 12}}), 40.8e9, 0.1e9);
  expectGroups(kunpeng(), publishedClusters(), "latent4", 10);
  // Neither hand-offs nor two cores that read tell anything.
  truth = publishedClusters();
  truth.handoffInside = truth.handoffOutside;
  truth.saturation = 40;
  truth.groupBytes = 30.7e9;
  truth.partBytes = 40.8e9;
  expectGroups(kunpeng(), truth, "latent4", 10);
}

TEST(LatentGroups, FindsWhatOnlyOneSignalShows) {
  Truth handoff = groupsOf(12);
  handoff.handoffInside = 40e-9;
  expectGroups(kunpeng(), handoff, "latent12", 5);
  Truth reading = groupsOf(4);
  reading.groupBytes = 24e9;
  expectGroups(kunpeng(), reading, "latent4", 5);
  Truth computing = groupsOf(2);
  computing.groupFlops = 1.2;
  expectGroups(kunpeng(), computing, "latent2", 5);
  // No parameter tells that, but a sentence does.
  const LatentSearch found = search(kunpeng(), computing, 1);
  ASSERT_EQ(found.notes.size(), 1U) << describe(found);
  EXPECT_TRUE(found.notes[0].starts_with("cores of 'latent2' compute"));
  EXPECT_FALSE(found.groups[0].sharesReading);
  EXPECT_EQ(found.groups[0].group.parameters.handoffSeconds, 0);
}

TEST(LatentGroups, FindsStrides) {
  Truth truth = groupsOf(4, 6);
  truth.groupBytes = 20e9;
  expectGroups(kunpeng(), truth, "latent4s6", 5);
  truth = groupsOf(3, 2);
  truth.handoffInside = 35e-9;
  expectGroups(kunpeng(), truth, "latent3s2", 5);
}

TEST(LatentGroups, FindsThroughMuchNoise) {
  Truth truth = clusters();
  truth.noise = 0.2;
  truth.outliers = 0.1;
  truth.busyCore = 5;
  expectGroups(kunpeng(), truth, "latent4", 5);
}

TEST(LatentGroups, SmallPartsAreSearchedTogether) {
  const Machine machine = machineOf("synthetic:numa:4 l3:8 core:4 pu:1");
  Truth truth = groupsOf(2);
  truth.coresOfPart = 4;
  truth.handoffInside = 35e-9;
  expectGroups(machine.root, truth, "latent2", 5);
  truth.handoffInside = truth.handoffOutside;
  expectNone(machine.root, truth, 5);
}

TEST(LatentGroups, LargePartsAreSampled) {
  const Machine machine = machineOf("synthetic:numa:2 core:96 pu:1");
  Truth truth = clusters();
  truth.coresOfPart = 96;
  truth.partBytes = 800e9;
  expectGroups(machine.root, truth, "latent4", 2);
}

TEST(LatentGroups, CoresThatMayNotBeUsedKeepTheirPlaces) {
  Machine machine = machineOf("synthetic:numa:1 core:24 pu:1");
  // Its first five cores and the tenth.
  MachineNode *node = &machine.root;
  while (node->children.size() == 1)
    node = &node->children.front();
  node->children.erase(node->children.begin() + 9);
  node->children.erase(node->children.begin(), node->children.begin() + 5);
  expectGroups(machine.root, clusters(), "latent4", 5);
}

TEST(LatentGroups, AMachineWithoutAnyGetsNone) {
  for (double noise : {0.05, 0.2}) {
    Truth truth;
    truth.noise = noise;
    expectNone(kunpeng(), truth, 50);
    truth.busyCore = 5;
    truth.outliers = 0.1;
    truth.drift = 0.3;
    expectNone(kunpeng(), truth, 10);
  }
}

TEST(LatentGroups, DistanceMakesNoGroups) {
  Truth truth;
  truth.handoffDistance = 1e-9;
  expectNone(kunpeng(), truth, 5);
  const LatentSearch found = search(kunpeng(), truth, 1);
  ASSERT_EQ(found.notes.size(), 1U) << describe(found);
  EXPECT_TRUE(found.notes[0].ends_with("others or distance nearly as well"))
      << found.notes[0];
}

TEST(LatentGroups, IrregularGroupsAreTold) {
  Truth truth;
  truth.groupOf = [](unsigned place) {
    return place < 5 ? 0U : place < 14 ? 1U : 2 + place;
  };
  truth.handoffInside = 30e-9;
  expectNone(kunpeng(), truth, 5);
  const LatentSearch found = search(kunpeng(), truth, 1);
  ASSERT_EQ(found.notes.size(), 1U) << describe(found);
  EXPECT_EQ(found.notes[0],
            "hand-offs differ by pairs of cores of a l3, but not by groups of "
            "equal size and one stride: CPUs 0-4; CPUs 5-13");
}

TEST(LatentGroups, GroupsOfSomePartsAreTold) {
  Truth truth = clusters();
  truth.partsWithGroups = 4;
  const LatentSearch found = search(kunpeng(), truth, 1);
  EXPECT_TRUE(found.groups.empty()) << describe(found);
  ASSERT_FALSE(found.notes.empty());
  EXPECT_EQ(found.notes[0], "hand-offs suggest groups of 4 cores in each l3, "
                            "but not every l3 has them");
}

TEST(LatentGroups, FewCoresProveNothing) {
  const Machine machine = machineOf("synthetic:core:4 pu:1");
  Truth truth = groupsOf(2);
  truth.coresOfPart = 4;
  truth.handoffInside = 30e-9;
  const LatentSearch found = search(machine.root, truth, 1);
  EXPECT_TRUE(found.groups.empty()) << describe(found);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_EQ(found.notes[0],
            "hand-offs suggest groups of 2 cores in each numa, which may be "
            "chance with so few cores");
}

TEST(LatentGroups, WhereNothingCanBeNothingIsMeasured) {
  for (const char *source : {"synthetic:core:2 pu:1", "synthetic:core:1 pu:2",
                             "synthetic:numa:2 core:3 pu:1"}) {
    const Machine machine = machineOf(source);
    SimulatedProbe probe(Truth(), 1);
    Result<LatentSearch> found = findLatentGroups(machine.root, probe, {});
    ASSERT_TRUE(found) << source;
    EXPECT_TRUE(found->notes.empty()) << describe(*found);
    EXPECT_EQ(probe.seconds, 0) << source;
  }
}

TEST(LatentGroups, UnlikePartsAreNotSearched) {
  Machine machine = machineOf("synthetic:numa:2 l3:1 core:8 pu:1");
  const auto noteOf = [&] {
    SimulatedProbe probe(Truth(), 1);
    Result<LatentSearch> found = findLatentGroups(machine.root, probe, {});
    EXPECT_TRUE(found);
    EXPECT_EQ(probe.seconds, 0);
    return describe(*found);
  };
  MachineNode *l3 = &machine.root;
  while (l3->kind != "l3")
    l3 = &l3->children.front();
  l3->coreCount = 6;
  EXPECT_EQ(noteOf(), "latent groups were not looked for: each l3 has another "
                      "number of cores; ");
  l3->kind = "l2";
  EXPECT_EQ(noteOf(), "latent groups were not looked for: the smallest parts "
                      "of several cores are of different kinds; ");
}

TEST(LatentGroups, EndsWhenItIsTold) {
  SimulatedProbe probe(Truth(), 1);
  LatentSearchOptions options;
  double last = 0;
  options.progress = [&](double done) -> Status {
    EXPECT_GE(done, last);
    last = done;
    if (done > 0.1)
      return makeError("enough");
    return {};
  };
  Result<LatentSearch> found = findLatentGroups(kunpeng(), probe, options);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "enough");
  EXPECT_LT(probe.seconds, 7);
}

TEST(LatentGroups, TimeGrowsWithCores) {
  EXPECT_LE(latentSearchSeconds(4), 4);
  EXPECT_LE(latentSearchSeconds(192), 60);
  EXPECT_EQ(latentSearchSeconds(65536), 60);
}
