//===- CommunicatorTest.cpp - What tensor-parallel ranks exchange ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommunicatorChecks.h"

#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

using namespace sandwich;
using namespace std::chrono_literals;

using Segment = std::shared_ptr<SharedMemorySegment>;

static Segment makeSegment(int32_t ranks, int32_t lanes = 1,
                           bool oversubscribed = true, uint64_t slotBytes = 0,
                           Collectives collectives = Collectives::RankShifted) {
  SharedMemorySegmentOptions options;
  options.slotBytes = slotBytes;
  options.oversubscribed = oversubscribed;
  options.collectives = collectives;
  Result<Segment> segment = SharedMemorySegment::create(ranks, lanes, options);
  EXPECT_TRUE(segment) << segment.error().message;
  return segment ? *segment : nullptr;
}

static std::unique_ptr<Communicator> makeCommunicator(const Segment &segment,
                                                      int32_t rank) {
  auto communicator = SharedMemoryCommunicator::create(segment, rank);
  EXPECT_TRUE(communicator);
  return std::move(*communicator);
}

/// Calls `work` with each rank of `segment`, on a thread each.
static void onThreads(const Segment &segment,
                      const std::function<void(Communicator &)> &work) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int32_t rank = 0; rank < segment->ranks(); ++rank)
    communicators.push_back(makeCommunicator(segment, rank));
  std::vector<std::thread> threads;
  for (auto &communicator : communicators)
    threads.emplace_back([&] { work(*communicator); });
  for (std::thread &thread : threads)
    thread.join();
}

/// Calls `work` with each rank in a process of its own, which maps the segment
/// anew; a test failure in one is a failure here.
static void onProcesses(const Segment &segment,
                        const std::function<void(Communicator &)> &work) {
  std::vector<pid_t> processes;
  for (int32_t rank = 0; rank < segment->ranks(); ++rank) {
    pid_t process = ::fork();
    ASSERT_GE(process, 0);
    if (process == 0) {
      ::alarm(100);
      Result<Segment> own = SharedMemorySegment::attach(segment->descriptor());
      if (!own)
        ::_exit(2);
      work(*makeCommunicator(*own, rank));
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    processes.push_back(process);
  }
  for (pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

namespace {
class CommunicatorTest
    : public testing::TestWithParam<std::tuple<Collectives, int>> {
protected:
  static Segment make(int32_t lanes = 1) {
    auto [collectives, ranks] = GetParam();
    return makeSegment(ranks, lanes, true, 0, collectives);
  }
};
} // namespace

INSTANTIATE_TEST_SUITE_P(Kinds, CommunicatorTest,
                         testing::Combine(testing::ValuesIn(allCollectives()),
                                          testing::Values(1, 2, 3, 4, 8)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param) ==
                                                      Collectives::RankShifted
                                                  ? "RankShifted"
                                                  : "MasterCopies") +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(CommunicatorTest, AgreesWithPlainLoopsOnThreads) {
  onThreads(make(), checkAll);
}

TEST_P(CommunicatorTest, AgreesWithPlainLoopsOnProcesses) {
  onProcesses(make(), checkAll);
}

// Blocks of a message overlap only where every rank has its own cores.
TEST(CommunicatorOverlapTest, AgreesWithPlainLoops) {
  for (int32_t ranks : {2, 3})
    onProcesses(makeSegment(ranks, 1, /*oversubscribed=*/false), checkAll);
}

TEST_P(CommunicatorTest, LanesAreIndependent) {
  onThreads(make(3), [](Communicator &communicator) {
    uint32_t round = 0;
    for (int32_t lanes : {3, 1, 2, 3})
      for (size_t count : {1, 40, 100, 5000, 70000}) {
        checkAllReduce(communicator, lanes, round++, count);
        checkAllGather(communicator, lanes, round++, 3, count / 3);
      }
  });
}

TEST(CommunicatorStressTest, TenThousandCollectivesOnTwoProcesses) {
  onProcesses(makeSegment(2, 1, false, 8192),
              [](Communicator &ranks) { runRandomly(ranks, 10000); });
}

TEST(CommunicatorStressTest, ManyCollectivesOnMoreThreadsThanCores) {
  // Ranks that spin hold each other up.
  onThreads(makeSegment(4, 1, false, 8192),
            [](Communicator &ranks) { runRandomly(ranks, 300); });
  for (Collectives collectives : allCollectives())
    onThreads(makeSegment(4, 1, true, 8192, collectives),
              [](Communicator &ranks) { runRandomly(ranks, 3000); });
}

// All ranks have the same bits, whatever the order of their arrival and however
// they sum.
TEST(CommunicatorStressTest, SumsAreTheSameOnEveryRank) {
  constexpr size_t count = 50000;
  std::vector<std::vector<float>> results;
  for (Collectives collectives : allCollectives()) {
    const size_t before = results.size();
    results.resize(before + 4);
    onThreads(makeSegment(4, 1, false, 0, collectives),
              [&](Communicator &communicator) {
                auto rank = before + static_cast<size_t>(communicator.rank());
                results[rank] = makeData(communicator.rank(), 1, count);
                communicator.allReduce(0, 1, results[rank].data(), count);
              });
  }
  for (const std::vector<float> &result : results)
    EXPECT_TRUE(sameBits(result, results[0]));
}

TEST(CommunicatorFailureTest, AbortEndsWaiting) {
  using Clock = std::chrono::steady_clock;
  for (bool oversubscribed : {false, true}) {
    Segment segment = makeSegment(3, 2, oversubscribed);
    Clock::time_point aborted;
    std::thread killer([&] {
      std::this_thread::sleep_for(100ms);
      aborted = Clock::now();
      segment->abort(2, "was killed by signal 9");
    });
    // Rank 2 takes no part.
    std::vector<std::thread> waiting;
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (int32_t rank = 0; rank < 2; ++rank)
      communicators.push_back(makeCommunicator(segment, rank));
    for (auto &communicator : communicators) {
      waiting.emplace_back([&] {
        std::vector<float> data(100000);
        communicator->allReduce(0, 2, data.data(), 100000);
      });
      waiting.emplace_back([&] { communicator->barrier(); });
    }
    for (std::thread &thread : waiting)
      thread.join();
    killer.join();
    EXPECT_LT(Clock::now() - aborted, 1s);
    for (auto &communicator : communicators) {
      Status failure = communicator->failure();
      ASSERT_FALSE(failure);
      EXPECT_EQ(failure.error().message, "rank 2 was killed by signal 9");
      // Collectives return at once from now on.
      float value = 1;
      communicator->allReduce(0, 1, &value, 1);
      communicator->broadcast(&value, sizeof(value), 2);
    }
    // The first failure is the one that counts.
    segment->abort(0, "gave up");
    EXPECT_EQ(segment->failure().error().message,
              "rank 2 was killed by signal 9");
  }
}

TEST(CommunicatorFailureTest, KilledRankEndsTheOthers) {
  Segment segment = makeSegment(2, 1, false);
  pid_t victim = ::fork();
  ASSERT_GE(victim, 0);
  if (victim == 0) {
    auto communicator = makeCommunicator(segment, 1);
    std::vector<float> data(10000);
    while (true) {
      segment->beat(1);
      communicator->allReduce(0, 1, data.data(), 10000);
    }
  }
  std::thread watcher([&] {
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(segment->processOf(1), victim);
    EXPECT_GT(segment->lastBeat(1), 0u);
    ::kill(victim, SIGKILL);
    ::waitpid(victim, nullptr, 0);
    segment->abort(1, "was killed");
  });
  auto communicator = makeCommunicator(segment, 0);
  std::vector<float> data(10000);
  auto deadline = std::chrono::steady_clock::now() + 20s;
  while (communicator->failure() && std::chrono::steady_clock::now() < deadline)
    communicator->allReduce(0, 1, data.data(), 10000);
  watcher.join();
  EXPECT_FALSE(communicator->failure());
}

TEST(CommunicatorFailureTest, MoreLanesThanMemoryFailTheGroup) {
  Segment segment = makeSegment(2, 1);
  auto communicator = makeCommunicator(segment, 0);
  float value = 1;
  communicator->allReduce(1, 2, &value, 1);
  ASSERT_FALSE(communicator->failure());
  EXPECT_EQ(communicator->failure().error().message,
            "rank 0 ran a collective as thread 1 of 2, but the ranks share "
            "memory for 1");
}

TEST(CommunicatorFailureTest, RanksAreTakenOnce) {
  Segment segment = makeSegment(2);
  EXPECT_EQ(segment->processOf(0), 0);
  auto first = makeCommunicator(segment, 0);
  EXPECT_EQ(segment->processOf(0), ::getpid());
  Result<std::unique_ptr<SharedMemoryCommunicator>> second =
      SharedMemoryCommunicator::create(segment, 0);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "rank 0 is process " + std::to_string(::getpid()) + " already");
  EXPECT_EQ(SharedMemoryCommunicator::create(segment, 2).error().message,
            "rank 2 is not among the 2 ranks");
}

TEST(LanePartTest, CoversEverythingOnce) {
  for (int64_t count : {0, 1, 31, 32, 33, 1000, 123457})
    for (int32_t lanes : {1, 2, 3, 7, 64}) {
      int64_t next = 0;
      for (int32_t lane = 0; lane < lanes; ++lane) {
        LanePart part = LanePart::of(count, lane, lanes);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.begin, part.end);
        EXPECT_TRUE(part.begin % 32 == 0 || part.begin == count);
        next = part.end;
      }
      EXPECT_EQ(next, count);
    }
}

TEST(CollectivesTest, AreFoundByName) {
  for (Collectives collectives : allCollectives())
    EXPECT_EQ(*collectivesNamed(name(collectives)), collectives);
  Result<Collectives> unknown = collectivesNamed("ring");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "unknown collectives 'ring'; known are rank-shifted, "
            "master-copies");
}
