//===- LateRanksTest.cpp - Ranks that the others wait for -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// How ranks of one host are told apart is seen in RankGroupTest.

#include "../../../lib/Runtime/Ranks/LateRanks.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

using namespace sandwich;
using std::chrono::milliseconds;

namespace {
constexpr milliseconds interval(50);

/// A rank that has a host to itself, and computes.
class LoneRankTest : public testing::Test {
protected:
  LoneRankTest()
      : segment(*SharedMemorySegment::create(1, 1)), ranks(*segment, interval) {
    std::promise<pid_t> thread;
    computing = std::jthread([&thread](std::stop_token stop) {
      thread.set_value(::gettid());
      while (!stop.stop_requested()) {
      }
    });
    workers = {{.process = ::getpid(), .threads = {thread.get_future().get()}}};
  }

  std::optional<LateRanks::Verdict> look() {
    std::optional<LateRanks::Verdict> verdict = ranks.look(workers, progress);
    progress.othersStand += interval;
    return verdict;
  }
  /// Looks that take no time.
  void expectNothing(int looks) {
    for (int i = 0; i < looks; ++i)
      ASSERT_FALSE(look());
  }
  /// Looks until it hangs, or for so long.
  std::optional<LateRanks::Verdict> watch(milliseconds most) {
    std::optional<LateRanks::Verdict> verdict;
    for (milliseconds waited(0); !verdict && waited < most;
         waited += interval) {
      std::this_thread::sleep_for(interval);
      verdict = look();
    }
    return verdict;
  }
  void beginStep() { ++progress.ownCalls; }
  void letOthersArrive() {
    ++progress.others;
    progress.othersStand = milliseconds(0);
  }

  std::shared_ptr<SharedMemorySegment> segment;
  LateRanks ranks;
  std::jthread computing;
  std::vector<LateRanks::Workers> workers;
  HostProgress progress{.others = 1, .own = 1, .ownCalls = 1};
};
} // namespace

TEST_F(LoneRankTest, TimeBetweenStepsIsNoMeasure) {
  expectNothing(400);
  beginStep();
  expectNothing(1);
  letOthersArrive();
  std::optional<LateRanks::Verdict> verdict = watch(milliseconds(8000));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->rank, 0);
  EXPECT_NE(verdict->reason.find("hangs: it has computed for"),
            std::string::npos)
      << verdict->reason;
}

TEST_F(LoneRankTest, TimeThatOthersTookIs) {
  beginStep();
  expectNothing(20);
  letOthersArrive();
  // It may take eight times that second, and more.
  EXPECT_FALSE(watch(milliseconds(2000)));
}

TEST_F(LoneRankTest, WhoWaitsIsNotLate) {
  beginStep();
  expectNothing(1);
  letOthersArrive();
  progress.waits = true;
  EXPECT_FALSE(watch(milliseconds(2000)));
}
