//===- CoreSharingTest.cpp - Who of several models runs when --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/CoreSharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

using namespace sandwich;

using Member = CoreSharing::Member;

static CoreDemand onCpus(std::vector<unsigned> cpus) {
  return {.cpus = std::move(cpus)};
}
static CoreDemand threads(unsigned count) { return {.floating = count}; }

static std::vector<Member> granted(CoreSharing &sharing, double now) {
  std::vector<Member> members;
  for (const CoreSharing::Grant &grant : sharing.grant(now))
    members.push_back(grant.member);
  return members;
}

namespace {
/// Members that run steps of given lengths for ever, under a clock of its own.
class SharingSimulation {
public:
  explicit SharingSimulation(const CoreSharingOptions &options)
      : sharing(options) {}

  /// `length` tells how long a step takes that begins at a time; `pause` is
  /// between two steps.
  Member add(double weight, CoreDemand demand,
             std::function<double(double)> length, double begin = 0,
             double pause = 0) {
    const Member member = sharing.join(weight);
    runners.push_back({member, std::move(demand), std::move(length), pause,
                       /*next=*/begin, /*asked=*/begin, State::Paused});
    return member;
  }

  void runUntil(double end) {
    while (true) {
      Runner &next = *std::ranges::min_element(runners, {}, &Runner::next);
      const double retry = sharing.retryAt().value_or(never);
      if (std::min(next.next, retry) > end)
        return;
      now = std::min(next.next, retry);
      if (next.next > now) {
        // Cores are not kept any more.
      } else if (next.state == State::Paused) {
        sharing.request(next.member, next.demand, now);
        next.state = State::Waiting;
        next.asked = now;
        next.next = never;
      } else {
        sharing.release(next.member, now);
        next.state = State::Paused;
        next.next = now + next.pause;
      }
      for (Member member : granted(sharing, now))
        start(*std::ranges::find(runners, member, &Runner::member));
      check();
    }
  }

  double used(Member member) const {
    // What is held now is not counted yet.
    return sharing.useOf(member).coreSeconds;
  }
  double longestWait(Member member) const {
    return std::ranges::find(runners, member, &Runner::member)->longestWait;
  }

private:
  static constexpr double never = 1e300;
  enum class State { Paused, Waiting, Running };
  struct Runner {
    Member member;
    CoreDemand demand;
    std::function<double(double)> length;
    double pause;
    double next;
    double asked;
    State state;
    double longestWait = 0;
  };

  void start(Runner &runner) {
    ASSERT_EQ(runner.state, State::Waiting);
    runner.state = State::Running;
    runner.longestWait = std::max(runner.longestWait, now - runner.asked);
    runner.next = now + runner.length(now);
  }
  /// No CPU has two steps.
  void check() {
    std::vector<unsigned> cpus;
    for (const Runner &runner : runners)
      if (runner.state == State::Running)
        cpus.insert(cpus.end(), runner.demand.cpus.begin(),
                    runner.demand.cpus.end());
    std::ranges::sort(cpus);
    EXPECT_TRUE(std::ranges::adjacent_find(cpus) == cpus.end());
  }

  CoreSharing sharing;
  std::vector<Runner> runners;
  double now = 0;
};
} // namespace

TEST(CoreSharingTest, PlacementsBecomeDemands) {
  CoreDemand demand;
  demand.add({{3}, {1}, {0, 1, 2}});
  demand.add({{1}, {5}, {}});
  EXPECT_EQ(demand.cpus, (std::vector<unsigned>{1, 3, 5}));
  EXPECT_EQ(demand.floating, 2u);
  CoreDemand other;
  other.add({{2}, {0, 1}, {0, 1}, {0, 1}});
  demand.addTakingTurns(other);
  EXPECT_EQ(demand.cpus, (std::vector<unsigned>{1, 2, 3, 5}));
  EXPECT_EQ(demand.floating, 3u);
  EXPECT_EQ(demand.count(), 7u);
}

TEST(CoreSharingTest, OverlappingStepsTakeTurnsAndOthersDoNot) {
  CoreSharing sharing({.cores = 4});
  const Member a = sharing.join(1), b = sharing.join(1), c = sharing.join(1);
  sharing.request(a, onCpus({0, 1}), 0);
  EXPECT_EQ(granted(sharing, 0), std::vector{a});
  sharing.request(b, onCpus({1, 2}), 1);
  EXPECT_TRUE(granted(sharing, 1).empty());
  sharing.request(c, onCpus({3}), 1);
  EXPECT_EQ(granted(sharing, 1), std::vector{c});
  sharing.release(a, 3);
  EXPECT_EQ(granted(sharing, 3), std::vector{b});
  EXPECT_EQ(sharing.useOf(a).coreSeconds, 6);
  EXPECT_EQ(sharing.useOf(a).waits, 0u);
  EXPECT_EQ(sharing.useOf(b).waits, 1u);
  EXPECT_EQ(sharing.useOf(b).secondsWaited, 2);
  EXPECT_EQ(sharing.useOf(c).secondsWaited, 0);
}

TEST(CoreSharingTest, ThreadsThatAreKeptNowhereShareTheNumberOfCores) {
  CoreSharing sharing({.cores = 4, .longestPause = 0});
  const Member a = sharing.join(1), b = sharing.join(1), c = sharing.join(1),
               d = sharing.join(1);
  sharing.request(a, threads(2), 0);
  sharing.request(b, onCpus({0}), 0);
  sharing.request(c, threads(2), 0);
  sharing.request(d, onCpus({1}), 0);
  // c has no room beside both; and what it waits for is not given to d.
  EXPECT_EQ(granted(sharing, 0), (std::vector{a, b}));
  sharing.release(a, 1);
  EXPECT_EQ(granted(sharing, 1), (std::vector{c, d}));
  sharing.release(b, 1);
  sharing.release(c, 1);
  sharing.release(d, 1);
  // A team of more threads than there are cores runs all the same, but alone.
  sharing.request(a, threads(9), 1);
  EXPECT_EQ(granted(sharing, 1), std::vector{a});
  sharing.request(b, onCpus({0}), 1);
  EXPECT_TRUE(granted(sharing, 1).empty());
  sharing.release(a, 2);
  EXPECT_EQ(granted(sharing, 2), std::vector{b});
  // Where nothing moves, what is kept on CPUs is limited by these only.
  CoreSharing quota({.cores = 1});
  const Member e = quota.join(1), f = quota.join(1);
  quota.request(e, onCpus({0, 1}), 0);
  quota.request(f, onCpus({2, 3}), 0);
  EXPECT_EQ(granted(quota, 0), (std::vector{e, f}));
}

TEST(CoreSharingTest, WhoLeavesIsInNobodysWay) {
  CoreSharing sharing({.cores = 1});
  const Member a = sharing.join(1), b = sharing.join(1);
  sharing.request(a, onCpus({0}), 0);
  EXPECT_EQ(granted(sharing, 0), std::vector{a});
  sharing.release(a, 5);
  sharing.leave(a);
  sharing.request(b, onCpus({0}), 5);
  EXPECT_EQ(granted(sharing, 5), std::vector{b});
}

TEST(CoreSharingTest, ThreadsAreToldToSleepOnceWhereOthersRun) {
  CoreSharing sharing({.cores = 4});
  const Member a = sharing.join(1), b = sharing.join(1), c = sharing.join(1);
  auto step = [&](Member member, CoreDemand demand, double now) {
    sharing.request(member, demand, now);
    std::vector<CoreSharing::Grant> grants = sharing.grant(now);
    EXPECT_EQ(grants.size(), 1u);
    sharing.release(member, now);
    EXPECT_TRUE(sharing.grant(now).empty());
    return grants.front().displaced;
  };
  EXPECT_TRUE(step(a, onCpus({0, 1}), 0).empty());
  EXPECT_TRUE(step(a, onCpus({0, 1}), 1).empty());
  EXPECT_TRUE(step(b, onCpus({2, 3}), 2).empty());
  EXPECT_EQ(step(c, onCpus({1, 2}), 3), (std::vector{a, b}));
  EXPECT_EQ(step(c, onCpus({1, 2}), 4), std::vector<Member>());
  EXPECT_EQ(step(a, onCpus({0, 1}), 5), std::vector{c});
  EXPECT_EQ(step(c, onCpus({1, 2}), 6), std::vector{a});
  // It is about where they ran, not about where they want to.
  sharing.request(a, onCpus({0, 1}), 7);
  EXPECT_EQ(granted(sharing, 7), std::vector{a});
  sharing.release(a, 8);
  sharing.request(b, onCpus({1}), 8);
  sharing.request(a, onCpus({3}), 8);
  std::vector<CoreSharing::Grant> grants = sharing.grant(8);
  ASSERT_EQ(grants.size(), 2u);
  // One that holds is awake for a reason.
  for (const CoreSharing::Grant &grant : grants)
    EXPECT_TRUE(grant.displaced.empty() || grant.displaced == std::vector{c});
}

TEST(CoreSharingTest, CoresAreKeptForAMomentForWhoHasUsedLess) {
  CoreSharing sharing({.cores = 1, .longestWait = 100, .longestPause = 0.5});
  const Member a = sharing.join(1), b = sharing.join(1);
  sharing.request(a, onCpus({0}), 0);
  EXPECT_EQ(granted(sharing, 0), std::vector{a});
  sharing.request(b, onCpus({0}), 1);
  EXPECT_TRUE(granted(sharing, 1).empty());
  sharing.release(a, 10);
  EXPECT_EQ(granted(sharing, 10), std::vector{b});
  EXPECT_FALSE(sharing.retryAt());
  sharing.request(a, onCpus({0}), 10);
  EXPECT_TRUE(granted(sharing, 10).empty());
  EXPECT_FALSE(sharing.retryAt());
  // b has used a second, and may come again.
  sharing.release(b, 11);
  EXPECT_TRUE(granted(sharing, 11).empty());
  EXPECT_EQ(sharing.retryAt(), 11.5);
  sharing.request(b, onCpus({0}), 11.25);
  EXPECT_EQ(granted(sharing, 11.25), std::vector{b});
  EXPECT_FALSE(sharing.retryAt());
  // No longer than its step took.
  sharing.release(b, 11.5);
  EXPECT_TRUE(granted(sharing, 11.5).empty());
  EXPECT_EQ(sharing.retryAt(), 11.75);
  EXPECT_EQ(granted(sharing, 11.75), std::vector{a});
  EXPECT_FALSE(sharing.retryAt());
}

TEST(CoreSharingTest, CoreSecondsAreSharedByWeight) {
  for (const auto &[weight, longer] :
       std::vector<std::pair<double, double>>{{1, 1}, {1, 7}, {3, 1}, {3, 7}}) {
    SharingSimulation simulation({.cores = 2, .longestWait = 100});
    const Member a = simulation.add(weight, onCpus({0, 1}),
                                    [&](double) { return 0.01 * longer; });
    const Member b =
        simulation.add(1, onCpus({0, 1}), [](double) { return 0.01; });
    simulation.runUntil(100);
    EXPECT_NEAR(simulation.used(a) / simulation.used(b), weight, 0.01 * weight);
    EXPECT_GT(simulation.used(a) + simulation.used(b), 199);
  }
}

TEST(CoreSharingTest, PausesBetweenStepsLoseNothing) {
  // As the choosing of what to compute next, which needs no cores of the team.
  SharingSimulation simulation({.cores = 2});
  const Member a =
      simulation.add(1, onCpus({0, 1}), [](double) { return 0.05; }, 0, 0.0001);
  const Member b =
      simulation.add(1, onCpus({0, 1}), [](double) { return 0.01; }, 0, 0.0001);
  simulation.runUntil(100);
  EXPECT_NEAR(simulation.used(a) / simulation.used(b), 1, 0.02);
}

TEST(CoreSharingTest, WhoWasIdleIsOwedNoMoreThanAStep) {
  SharingSimulation simulation({.cores = 1, .longestWait = 1e9});
  const Member a = simulation.add(1, onCpus({0}), [](double) { return 0.1; });
  const Member b = simulation.add(
      1, onCpus({0}), [](double) { return 0.01; }, /*begin=*/1000);
  simulation.runUntil(1000);
  const double before = simulation.used(a);
  simulation.runUntil(1010);
  EXPECT_NEAR(simulation.used(b), 5, 0.2);
  EXPECT_NEAR(simulation.used(a) - before, 5, 0.2);
  // One step of its own, for which it has been ahead, and one of the other.
  EXPECT_LT(simulation.longestWait(a), 0.25);
  EXPECT_LT(simulation.longestWait(b), 0.11);
}

TEST(CoreSharingTest, OthersAreNoReasonToOweMore) {
  // a shares with b, and b with c: what c did alone says nothing about a.
  SharingSimulation simulation({.cores = 4, .longestWait = 1e9});
  const Member c = simulation.add(1, onCpus({2}), [](double) { return 0.1; });
  const Member b = simulation.add(
      1, onCpus({1, 2}), [](double) { return 0.01; }, /*begin=*/500);
  const Member a = simulation.add(
      1, onCpus({1}), [](double) { return 0.01; }, /*begin=*/600);
  simulation.runUntil(1000);
  for (Member member : {a, b, c})
    EXPECT_LT(simulation.longestWait(member), 1) << member;
}

TEST(CoreSharingTest, NobodyWaitsForLongWhateverTheWeights) {
  const double longestWait = 2;
  SharingSimulation simulation({.cores = 1, .longestWait = longestWait});
  const Member heavy =
      simulation.add(1000, onCpus({0}), [](double) { return 0.1; });
  const Member light =
      simulation.add(1, onCpus({0}), [](double) { return 0.1; });
  simulation.runUntil(1000);
  EXPECT_LE(simulation.longestWait(light), longestWait + 0.1 + 1e-6);
  EXPECT_GT(simulation.used(light), 40);
  EXPECT_GT(simulation.used(heavy), 940);
}

TEST(CoreSharingTest, ManyCoresAtOnceAreHadInTheEnd) {
  SharingSimulation simulation({.cores = 4});
  const Member all =
      simulation.add(1, onCpus({0, 1, 2, 3}), [](double) { return 0.01; });
  const Member floating =
      simulation.add(1, threads(4), [](double) { return 0.01; });
  // At least one of them always runs.
  std::vector<Member> single;
  for (unsigned cpu = 0; cpu < 4; ++cpu)
    single.push_back(simulation.add(
        1, onCpus({cpu}), [cpu](double) { return 0.01 + 0.001 * cpu; },
        0.003 * cpu));
  simulation.runUntil(200);
  for (Member member : {all, floating})
    EXPECT_GT(simulation.used(member), 0.1 * 4 * 200);
  for (Member member : single)
    EXPECT_GT(simulation.used(member), 0.1 * 200);
}

TEST(CoreSharingTest, RandomMixesStarveNobody) {
  std::mt19937 random(7);
  auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  for (int round = 0; round < 30; ++round) {
    constexpr double longestWait = 1;
    SharingSimulation simulation({.cores = 4, .longestWait = longestWait});
    std::vector<Member> members;
    double longest = 0;
    const int count = 2 + round % 4;
    for (int i = 0; i < count; ++i) {
      CoreDemand demand;
      for (unsigned cpu = 0; cpu < 4; ++cpu)
        if (uniform(0, 1) < 0.5)
          demand.cpus.push_back(cpu);
      demand.floating = demand.cpus.empty() || uniform(0, 1) < 0.3;
      const double length = uniform(0.001, 0.5);
      longest = std::max(longest, length);
      members.push_back(simulation.add(
          uniform(0.1, 10), demand, [=](double) { return length; },
          uniform(0, 2), uniform(0, 1) < 0.5 ? 0 : uniform(0, 3)));
    }
    simulation.runUntil(300);
    for (Member member : members) {
      // All that ran, and one step of each other that was overdue before.
      EXPECT_LE(simulation.longestWait(member),
                longestWait + (count + 1) * longest)
          << round;
      EXPECT_GT(simulation.used(member), 0) << round;
    }
  }
}
