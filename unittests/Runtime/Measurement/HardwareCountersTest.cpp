//===- HardwareCountersTest.cpp - Counters that a test makes up -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/HardwareCounters.h"

#include "HashModel.h"
#include "TemporaryFolder.h"
#include "sandwich/Runtime/Measurement/Benchmark.h"
#include "sandwich/Runtime/Measurement/Characterization.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>

using namespace sandwich;
using namespace sandwich::test;
using enum CountedEvent;

namespace {
/// Counters that advance by `step` each time they are read. Each thread of a
/// team opens an event in turn.
class FakeEvents : public PerfEvents {
public:
  struct Open {
    uint64_t type;
    uint64_t config;
    pid_t thread;
    int group;
    bool userOnly;
    uint64_t reads = 0;
  };

  int open(const perf_event_attr &attributes, pid_t thread,
           int group) override {
    Open counter{attributes.type, attributes.config, thread, group,
                 attributes.exclude_kernel && attributes.exclude_hv};
    if (int error = refuse(counter))
      return -error;
    opened.push_back(counter);
    alive.insert(static_cast<int>(opened.size()) - 1);
    return static_cast<int>(opened.size()) - 1;
  }
  int read(int handle, Count &count) override {
    Open &counter = opened.at(static_cast<size_t>(handle));
    if (int error = refuseRead(counter))
      return -error;
    Count each = step(counter);
    uint64_t reads = ++counter.reads;
    count = {each.value * reads, each.enabledNanoseconds * reads,
             each.runningNanoseconds * reads};
    return 0;
  }
  void close(int handle) override { EXPECT_EQ(alive.erase(handle), 1u); }
  std::optional<int> paranoia() override { return level; }

  std::function<int(const Open &)> refuse = [](const Open &) { return 0; };
  std::function<int(const Open &)> refuseRead = [](const Open &) { return 0; };
  std::function<Count(const Open &)> step = [](const Open &) {
    return Count{100, 10, 10};
  };
  std::optional<int> level = 2;
  std::vector<Open> opened;
  std::set<int> alive;
};

class HardwareCountersTest : public testing::Test {
protected:
  void SetUp() override {
    Result<std::unique_ptr<PhaseTeam>> made =
        PhaseTeam::create({.threads = 2, .cpus = {}, .oversubscribed = true});
    ASSERT_TRUE(made) << made.error().message;
    team = *std::move(made);
  }
  void TearDown() override { EXPECT_TRUE(system.alive.empty()); }

  /// Counts `intervals` times.
  CounterReading count(int intervals = 1) {
    HardwareCounters counters(*team, system);
    for (int i = 0; i < intervals; ++i) {
      counters.start();
      counters.stop();
    }
    return counters.reading();
  }

  std::unique_ptr<PhaseTeam> team;
  FakeEvents system;
};
} // namespace

static bool isHardware(const FakeEvents::Open &counter, uint64_t config) {
  return counter.type == PERF_TYPE_HARDWARE && counter.config == config;
}

static bool isMiss(const FakeEvents::Open &counter) {
  return counter.type == PERF_TYPE_HW_CACHE &&
         counter.config >> 16 == PERF_COUNT_HW_CACHE_RESULT_MISS;
}

/// The reason that `event` has no count, or "" where it has one.
static std::string reason(const CounterReading &reading, CountedEvent event) {
  return reading[event].count ? "" : reading[event].count.error().message;
}

static const WorkloadFigure &find(const std::vector<WorkloadFigure> &figures,
                                  const std::string &name) {
  for (const WorkloadFigure &figure : figures)
    if (figure.name == name)
      return figure;
  ADD_FAILURE() << "no figure " << name;
  return figures.front();
}

TEST_F(HardwareCountersTest, EveryThreadOfTheTeamIsCountedInUserSpace) {
  CounterReading reading = count(/*intervals=*/3);
  std::map<pid_t, int> counters;
  for (const FakeEvents::Open &counter : system.opened) {
    ++counters[counter.thread];
    EXPECT_EQ(counter.userOnly, counter.type != PERF_TYPE_SOFTWARE);
  }
  ASSERT_EQ(counters.size(), 2u);
  for (auto [thread, opened] : counters)
    EXPECT_EQ(opened, static_cast<int>(countedEvents));
  for (const CounterReading::Event &event : reading.events) {
    ASSERT_TRUE(event.count) << event.count.error().message;
    EXPECT_EQ(*event.count, 2 * 3 * 100);
    EXPECT_EQ(event.runningShare, 1);
  }
  EXPECT_GT(reading.seconds, 0);
}

TEST_F(HardwareCountersTest, RatiosAreCountedTogether) {
  count();
  std::set<std::pair<uint64_t, uint64_t>> grouped;
  for (const FakeEvents::Open &counter : system.opened) {
    if (counter.group < 0)
      continue;
    const auto &leader = system.opened.at(static_cast<size_t>(counter.group));
    EXPECT_EQ(leader.thread, counter.thread);
    EXPECT_EQ(leader.group, -1);
    EXPECT_EQ(leader.type, counter.type);
    grouped.insert({counter.type, counter.config});
  }
  EXPECT_EQ(grouped.size(), 4u);
  EXPECT_TRUE(grouped.count({PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}));
}

TEST_F(HardwareCountersTest, WhatDoesNotFitIntoAGroupIsCountedAlone) {
  system.refuse = [](const FakeEvents::Open &counter) {
    return counter.group >= 0 ? EINVAL : 0;
  };
  CounterReading reading = count();
  EXPECT_EQ(reason(reading, Cycles), "");
  EXPECT_EQ(reason(reading, DataTlbLoadMisses), "");
}

TEST_F(HardwareCountersTest, CountersThatTookTurnsAreExtrapolated) {
  pid_t first = 0;
  system.step = [&](const FakeEvents::Open &counter) -> PerfEvents::Count {
    if (first == 0)
      first = counter.thread;
    // One thread had a quarter of the time, the other half of it.
    return counter.thread == first ? PerfEvents::Count{10, 80, 20}
                                   : PerfEvents::Count{30, 80, 40};
  };
  CounterReading reading = count(/*intervals=*/2);
  ASSERT_EQ(reason(reading, Instructions), "");
  EXPECT_DOUBLE_EQ(*reading[Instructions].count, 2 * (10 * 4 + 30 * 2));
  EXPECT_DOUBLE_EQ(reading[Instructions].runningShare, 60.0 / 160);
}

TEST_F(HardwareCountersTest, AThreadWithoutATurnCountsLikeTheOthers) {
  pid_t first = 0;
  system.step = [&](const FakeEvents::Open &counter) -> PerfEvents::Count {
    if (first == 0)
      first = counter.thread;
    return counter.thread == first ? PerfEvents::Count{0, 40, 0}
                                   : PerfEvents::Count{30, 80, 80};
  };
  CounterReading reading = count();
  ASSERT_EQ(reason(reading, Cycles), "");
  EXPECT_DOUBLE_EQ(*reading[Cycles].count, 45);
}

TEST_F(HardwareCountersTest, CountersThatNeverRanAreNotZero) {
  system.step = [](const FakeEvents::Open &counter) -> PerfEvents::Count {
    if (isHardware(counter, PERF_COUNT_HW_BUS_CYCLES))
      return {0, 10, 0};
    return {100, 10, 10};
  };
  CounterReading reading = count();
  EXPECT_NE(reason(reading, BusCycles).find("never ran"), std::string::npos);
  EXPECT_EQ(reason(reading, Cycles), "");
}

TEST_F(HardwareCountersTest, OnlyMissesMayBeZero) {
  system.step = [](const FakeEvents::Open &counter) -> PerfEvents::Count {
    bool software = counter.type == PERF_TYPE_SOFTWARE;
    bool busCycles = isHardware(counter, PERF_COUNT_HW_BUS_CYCLES);
    return {isMiss(counter) || software || busCycles ? 0u : 100u, 10, 10};
  };
  CounterReading reading = count();
  EXPECT_NE(reason(reading, BusCycles).find("stays at zero"),
            std::string::npos);
  for (CountedEvent event : {NodeLoadMisses, CpuMigrations}) {
    ASSERT_EQ(reason(reading, event), "");
    EXPECT_EQ(*reading[event].count, 0);
  }
  // Without loads, no misses say nothing.
  system.step = [](const FakeEvents::Open &counter) -> PerfEvents::Count {
    return {counter.type == PERF_TYPE_HW_CACHE ? 0u : 100u, 10, 10};
  };
  reading = count();
  EXPECT_NE(reason(reading, NodeLoadMisses), "");
  EXPECT_FALSE(find(workloadFigures(reading), "RAR").value);
}

TEST_F(HardwareCountersTest, ARefusalSaysWhatWouldHelp) {
  system.level = 3;
  for (auto [error, expected] :
       std::map<int, std::string>{{ENOENT, "virtual PMU"},
                                  {EOPNOTSUPP, "virtual PMU"},
                                  {EACCES, "perf_event_paranoid is 3"},
                                  {EPERM, "perf_event_paranoid=2"},
                                  {ENOSYS, "CONFIG_PERF_EVENTS"},
                                  {EMFILE, "'ulimit -n' must allow 20 more"},
                                  {EBUSY, "Device or resource busy"}}) {
    system.refuse = [&](const FakeEvents::Open &counter) {
      return counter.type == PERF_TYPE_SOFTWARE ? 0 : error;
    };
    CounterReading reading = count();
    EXPECT_NE(reason(reading, Cycles).find(expected), std::string::npos)
        << reason(reading, Cycles);
    EXPECT_EQ(reason(reading, CpuMigrations), "");
    for (const WorkloadFigure &figure : workloadFigures(reading))
      EXPECT_FALSE(figure.value) << figure.name;
  }
  system.level = 2;
  system.refuse = [](const FakeEvents::Open &) { return EACCES; };
  CounterReading reading = count();
  EXPECT_NE(reason(reading, Cycles).find("seccomp"), std::string::npos);
  EXPECT_NE(reason(reading, CpuMigrations).find("perf_event_paranoid=1"),
            std::string::npos);
}

TEST_F(HardwareCountersTest, AnEventThatOneThreadLacksIsNotCounted) {
  int cycles = 0;
  system.refuse = [&](const FakeEvents::Open &counter) {
    return isHardware(counter, PERF_COUNT_HW_CPU_CYCLES) && ++cycles == 2
               ? EBUSY
               : 0;
  };
  CounterReading reading = count();
  EXPECT_NE(reason(reading, Cycles), "");
  EXPECT_EQ(reason(reading, Instructions), "");
}

TEST_F(HardwareCountersTest, ACounterThatCannotBeReadIsAnError) {
  for (uint64_t readable : {0, 1}) {
    system.refuseRead = [=](const FakeEvents::Open &counter) {
      return isHardware(counter, PERF_COUNT_HW_CPU_CYCLES) &&
                     counter.reads >= readable
                 ? EIO
                 : 0;
    };
    CounterReading reading = count();
    EXPECT_NE(reason(reading, Cycles).find("cannot be read"),
              std::string::npos);
    EXPECT_EQ(reason(reading, Instructions), "");
  }
}

TEST(WorkloadFigures, AreThePapersRatios) {
  CounterReading reading;
  for (auto [event, count] :
       std::map<CountedEvent, double>{{Instructions, 10000},
                                      {Cycles, 4000},
                                      {LastLevelCacheLoads, 500},
                                      {LastLevelCacheLoadMisses, 100},
                                      {DataTlbLoads, 2000},
                                      {DataTlbLoadMisses, 20},
                                      {NodeLoads, 80},
                                      {NodeLoadMisses, 60},
                                      {BusCycles, 300}})
    reading[event].count = count;
  std::vector<WorkloadFigure> figures = workloadFigures(reading);
  for (auto [name, expected] : std::map<std::string, double>{{"IPC", 2.5},
                                                             {"L3LPKI", 50},
                                                             {"LLCMiss", 0.2},
                                                             {"DTLBMiss", 0.01},
                                                             {"RAR", 0.75},
                                                             {"MCLPKI", 8},
                                                             {"BUSPKI", 30}}) {
    const Result<double> &value = find(figures, name).value;
    ASSERT_TRUE(value) << name << ": " << value.error().message;
    EXPECT_DOUBLE_EQ(*value, expected) << name;
  }
  EXPECT_FALSE(find(figures, "MCIPKI").value);

  // Misses of the last cache stand in for loads from memory.
  reading[NodeLoads].count = makeError("absent");
  figures = workloadFigures(reading);
  EXPECT_DOUBLE_EQ(*find(figures, "MCLPKI").value, 10);
  EXPECT_EQ(find(figures, "RAR").value.error().message, "node-loads: absent");
}

TEST(HardwareCounters, CountOnlyTheMeasuredRepetitions) {
  TemporaryFolder folder;
  std::string path = folder.file("model.sandwich");
  ASSERT_TRUE(writeHashModel(path, {.threads = 2}));
  Result<Artifact> artifact = Artifact::open(path);
  ASSERT_TRUE(artifact) << artifact.error().message;
  auto engine = Engine::create(std::move(*artifact), {});
  ASSERT_TRUE(engine) << engine.error().message;
  FakeEvents system;
  HardwareCounters counters((*engine)->team(PhaseKind::Prefill), system);
  BenchmarkOptions options;
  options.promptLengths = {8};
  options.generatedTokens = {4};
  options.repetitions = 3;
  options.counters = &counters;
  auto results = runBenchmark(**engine, options);
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), 2u);
  for (const BenchmarkResult &result : *results) {
    ASSERT_TRUE(result.counters);
    // From each start to each stop, for each of two threads.
    EXPECT_EQ(*(*result.counters)[Cycles].count, 3 * 2 * 100);
    EXPECT_GT(result.counters->seconds, 0);
  }
}
