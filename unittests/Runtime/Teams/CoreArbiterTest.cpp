//===- CoreArbiterTest.cpp - Cores that several models use ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/CoreArbiter.h"

#include "sandwich/Runtime/Communication/WaitableCounter.h"

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <thread>

using namespace sandwich;

static std::unique_ptr<CoreMember>
join(const std::shared_ptr<CoreArbiter> &arbiter, std::string name,
     double weight = 1) {
  Result<std::unique_ptr<CoreMember>> member =
      CoreMember::join(arbiter, std::move(name), weight);
  EXPECT_TRUE(member) << member.error().message;
  return member ? std::move(*member) : nullptr;
}

static std::shared_ptr<CoreArbiter> makeArbiter(uint64_t cores) {
  return std::make_shared<CoreArbiter>(CoreSharingOptions{.cores = cores});
}

TEST(CoreArbiterTest, IsForTheCoresOfThisProcess) {
  Result<std::shared_ptr<CoreArbiter>> arbiter = CoreArbiter::create();
  ASSERT_TRUE(arbiter) << arbiter.error().message;
  std::unique_ptr<CoreMember> member = join(*arbiter, "a");
  const CoreLease lease = member->acquire({.floating = 1});
  EXPECT_TRUE(member->holds());
}

TEST(CoreArbiterTest, WeightsAreNumbersMoreThanZero) {
  const auto arbiter = makeArbiter(1);
  for (double weight : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN()}) {
    Result<std::unique_ptr<CoreMember>> member =
        CoreMember::join(arbiter, "a.sandwich", weight);
    ASSERT_FALSE(member);
    EXPECT_EQ(member.error().kind, ErrorKind::InvalidArgument);
    EXPECT_TRUE(
        member.error().message.starts_with("the weight of a.sandwich is "))
        << member.error().message;
  }
  EXPECT_TRUE(arbiter->uses().empty());
}

TEST(CoreArbiterTest, ALeaseEndsOnce) {
  const auto arbiter = makeArbiter(1);
  std::unique_ptr<CoreMember> member = join(arbiter, "a");
  CoreLease first = member->acquire({.cpus = {0}});
  CoreLease moved = std::move(first);
  first.release();
  EXPECT_TRUE(member->holds());
  moved.release();
  EXPECT_FALSE(member->holds());
  moved.release();
  moved = member->acquire({.cpus = {0}});
  EXPECT_TRUE(member->holds());
  moved = {};
  EXPECT_FALSE(member->holds());
  const std::vector<CoreArbiter::MemberUse> uses = arbiter->uses();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].name, "a");
  EXPECT_EQ(uses[0].use.steps, 2u);
  EXPECT_EQ(uses[0].use.waits, 0u);
}

TEST(CoreArbiterTest, WhoHasUsedCoresLastIsToldBeforeOthersDo) {
  const auto arbiter = makeArbiter(2);
  std::unique_ptr<CoreMember> a = join(arbiter, "a"), b = join(arbiter, "b");
  int told = 0;
  a->onDisplaced([&] { ++told; });
  a->acquire({.cpus = {0, 1}}).release();
  b->acquire({.cpus = {2}}).release();
  EXPECT_EQ(told, 0);
  b->acquire({.cpus = {1}}).release();
  EXPECT_EQ(told, 1);
  b->acquire({.cpus = {1}}).release();
  EXPECT_EQ(told, 1);
  a->acquire({.cpus = {0, 1}}).release();
  a->onDisplaced({});
  b->acquire({.cpus = {1}}).release();
  EXPECT_EQ(told, 1);
}

TEST(CoreArbiterTest, ManyThreadsShareFewCores) {
  constexpr unsigned cpus = 3;
  constexpr int members = 6, steps = 300;
  const auto arbiter = makeArbiter(cpus);
  std::array<std::atomic<int>, cpus> users{};
  std::atomic<int> floating = 0, running = 0;
  std::atomic<bool> collided = false;
  auto run = [&](int number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::unique_ptr<CoreMember> member =
        join(arbiter, std::to_string(number), 1 + number % 3);
    std::atomic<uint64_t> displaced = 0;
    member->onDisplaced([&] { ++displaced; });
    for (int step = 0; step < steps; ++step) {
      CoreDemand demand;
      for (unsigned cpu = 0; cpu < cpus; ++cpu)
        if (random() % 2)
          demand.cpus.push_back(cpu);
      demand.floating = demand.cpus.empty() ? 1 + random() % cpus : 0;
      CoreLease lease = member->acquire(demand);
      for (unsigned cpu : demand.cpus)
        if (++users[cpu] != 1)
          collided = true;
      floating += static_cast<int>(demand.floating);
      running += static_cast<int>(demand.count());
      if (floating > 0 && running > static_cast<int>(cpus))
        collided = true;
      if (random() % 4 == 0)
        std::this_thread::yield();
      running -= static_cast<int>(demand.count());
      floating -= static_cast<int>(demand.floating);
      for (unsigned cpu : demand.cpus)
        --users[cpu];
      if (random() % 8 == 0)
        (void)arbiter->uses();
      lease.release();
      // Some come and go.
      if (random() % 50 == 0)
        member = join(arbiter, std::to_string(number));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < members; ++i)
      threads.emplace_back(run, i);
  }
  EXPECT_FALSE(collided);
  EXPECT_TRUE(arbiter->uses().empty());
}

TEST(CoreArbiterTest, AForkMayEndWhatItGot) {
  const auto arbiter = makeArbiter(1);
  std::unique_ptr<CoreMember> member = join(arbiter, "a");
  // The child finds the mutex held by a thread that it has not.
  std::atomic<bool> ends = false;
  std::jthread asking([&] {
    while (!ends)
      (void)arbiter->uses();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      member->onDisplaced([] {});
      member.reset();
      ::_exit(7);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  ends = true;
}

/// The state of a thread of this process, as the system calls it.
static char stateOf(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name = text.rfind(") ");
  return name == text.npos ? '?' : text[name + 2];
}

TEST(CoreArbiterTest, WhoIsToRestSleepsWhateverItsPatience) {
  WaitableCounter counter;
  std::atomic<uint32_t> resting = 0;
  std::atomic<pid_t> thread = 0;
  using std::chrono::hours;
  std::jthread waiting([&] {
    thread = ::gettid();
    counter.waitWhile(0, {hours(1), hours(1)}, &resting);
  });
  while (thread == 0)
    std::this_thread::yield();
  resting = 1;
  while (stateOf(thread) != 'S')
    std::this_thread::yield();
  counter.advance();
  waiting.join();
  // And at once, where it was so before.
  std::jthread second(
      [&] { counter.waitWhile(1, {hours(1), hours(1)}, &resting); });
  counter.advance();
}
