//===- TwoLevelCommunicatorTest.cpp - Ranks of several hosts --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommunicatorChecks.h"

#include "sandwich/Runtime/Communication/TwoLevelCommunicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

using namespace sandwich;

using Segment = std::shared_ptr<SharedMemorySegment>;

namespace {
/// Hosts that are not far apart: they share memory.
class NearHosts final : public HostCommunicator {
public:
  NearHosts(const Segment &segment, int32_t host)
      : HostCommunicator(host, segment->ranks()), segment(segment),
        memory(*SharedMemoryCommunicator::create(segment, host)) {}

  void allReduce(int32_t lane, int32_t lanes, float *data,
                 int64_t count) override {
    memory->allReduce(lane, lanes, data, count);
  }
  void allGather(int32_t lane, int32_t lanes, const float *part, float *whole,
                 int64_t rows, int64_t columns) override {
    memory->allGather(lane, lanes, part, whole, rows, columns);
  }
  void gatherPart(int32_t lane, const float *part, float *all,
                  int64_t count) override {
    memory->gatherPart(lane, std::vector(part, part + count).data(), all,
                       count);
  }
  void broadcast(void *data, size_t bytes, int32_t root) override {
    memory->broadcast(data, bytes, root);
  }
  void barrier() override { memory->barrier(); }
  Status failure() const override { return memory->failure(); }
  uint64_t bytesFor(int32_t) const override { return 0; }
  Status prepare(int32_t) override { return {}; }
  HostProgress progress() const override { return {}; }
  std::string nameOf(int32_t host) const override {
    return std::to_string(host);
  }
  void fail(std::string_view reason) override {
    segment->abort(SharedMemorySegment::elsewhere, reason);
  }
  bool lostContact() const override { return false; }
  Status leave() override { return failure(); }

private:
  const Segment segment;
  const std::unique_ptr<SharedMemoryCommunicator> memory;
};

class TwoLevelCommunicatorTest
    : public testing::TestWithParam<std::pair<int32_t, int32_t>> {
protected:
  /// Calls `work` with every rank, on a thread each.
  static void onRanks(const std::function<void(Communicator &)> &work,
                      Collectives collectives = Collectives::RankShifted) {
    const auto [hosts, ranksOnHost] = GetParam();
    const SharedMemorySegmentOptions options{
        .slotBytes = 8192, .oversubscribed = true, .collectives = collectives};
    Segment between = *SharedMemorySegment::create(hosts, 3, options);
    std::vector<std::thread> threads;
    for (int32_t host = 0; host < hosts; ++host) {
      Segment segment = *SharedMemorySegment::create(ranksOnHost, 3, options);
      for (int32_t rank = 0; rank < ranksOnHost; ++rank)
        threads.emplace_back([=, &work] {
          auto local = *SharedMemoryCommunicator::create(segment, rank);
          std::unique_ptr<NearHosts> near;
          if (rank == 0)
            near = std::make_unique<NearHosts>(between, host);
          TwoLevelCommunicator all(*local, near.get(), host * ranksOnHost,
                                   hosts * ranksOnHost);
          EXPECT_EQ(all.rank(), host * ranksOnHost + rank);
          EXPECT_EQ(all.ranksOnHost(), ranksOnHost);
          work(all);
        });
    }
    for (std::thread &thread : threads)
      thread.join();
  }
};
} // namespace

INSTANTIATE_TEST_SUITE_P(Shapes, TwoLevelCommunicatorTest,
                         testing::Values(std::pair(2, 1), std::pair(2, 2),
                                         std::pair(3, 2), std::pair(2, 3)),
                         [](const auto &info) {
                           return std::to_string(info.param.first) + "Hosts" +
                                  std::to_string(info.param.second) + "Ranks";
                         });

TEST_P(TwoLevelCommunicatorTest, AgreesWithPlainLoops) {
  for (Collectives collectives : allCollectives())
    onRanks(checkAll, collectives);
}

TEST_P(TwoLevelCommunicatorTest, LanesAreIndependent) {
  onRanks([](Communicator &ranks) {
    uint32_t round = 0;
    for (int32_t lanes : {3, 1, 2})
      for (size_t count : {1, 100, 5000, 70000}) {
        checkAllReduce(ranks, lanes, round++, count);
        checkAllGather(ranks, lanes, round++, 3, count / 3);
      }
  });
}

TEST_P(TwoLevelCommunicatorTest, ManyCollectives) {
  onRanks([](Communicator &ranks) { runRandomly(ranks, 1000); });
}

TEST(TwoLevelCommunicatorFailureTest, FirstRankOfHostFailsWithTheHosts) {
  Segment between = *SharedMemorySegment::create(2, 1);
  Segment segment = *SharedMemorySegment::create(2, 1, {.firstRank = 2});
  EXPECT_EQ((*SharedMemorySegment::attach(segment->descriptor()))->firstRank(),
            2);
  auto first = *SharedMemoryCommunicator::create(segment, 0);
  auto second = *SharedMemoryCommunicator::create(segment, 1);
  NearHosts hosts(between, 1);
  TwoLevelCommunicator leader(*first, &hosts, 2, 4);
  TwoLevelCommunicator follower(*second, nullptr, 2, 4);
  EXPECT_TRUE(leader.failure());
  hosts.fail("the other host burns");
  EXPECT_EQ(leader.failure().error().message, "the other host burns");
  EXPECT_TRUE(follower.failure());
  segment->abort(1, "is tired");
  EXPECT_EQ(leader.failure().error().message, "rank 3 is tired");
  Segment other = *SharedMemorySegment::create(1, 1);
  other->abort(SharedMemorySegment::elsewhere, "host a: rank 0 is tired");
  EXPECT_EQ(other->failure().error().message, "host a: rank 0 is tired");
}

// What a host without one of its ranks has is not what the others wait for.
TEST(TwoLevelCommunicatorFailureTest, HostThatFailedSendsNothing) {
  const std::vector<std::function<void(Communicator &, std::vector<float> &)>>
      collectives = {
          [](Communicator &c, std::vector<float> &v) {
            c.allReduce(0, 1, v.data(), 16);
          },
          [](Communicator &c, std::vector<float> &v) {
            c.allGather(0, 1, v.data(), v.data() + 16, 1, 16);
          },
          [](Communicator &c, std::vector<float> &v) {
            // The first ones have boxes for all.
            for (uint32_t i = 0; i <= 2 * SharedMemorySegment::slotsPerLane;
                 ++i)
              c.broadcast(v.data(), 64, 2);
          },
          [](Communicator &c, std::vector<float> &) { c.barrier(); },
      };
  for (const auto &collective : collectives) {
    Segment between = *SharedMemorySegment::create(2, 1);
    Segment segment = *SharedMemorySegment::create(2, 1, {.firstRank = 2});
    auto local = *SharedMemoryCommunicator::create(segment, 0);
    NearHosts hosts(between, 1);
    TwoLevelCommunicator leader(*local, &hosts, 2, 4);
    segment->abort(1, "is tired");
    std::vector<float> data(128);
    std::future<void> done =
        std::async(std::launch::async, [&] { collective(leader, data); });
    // Whoever sends waits for the other host, for ever.
    EXPECT_EQ(done.wait_for(std::chrono::seconds(10)),
              std::future_status::ready);
    between->abort(SharedMemorySegment::elsewhere, "the test is over");
  }
}
