//===- QueueManagerTest.cpp - Who takes the next query --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/QueueManager.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

using namespace sandwich;

static std::unique_ptr<QueueManager> make(std::vector<uint32_t> depths) {
  auto manager = QueueManager::create(depths);
  EXPECT_TRUE(manager) << manager.error().message;
  return manager ? *std::move(manager) : nullptr;
}

/// Algorithm 1, line by line.
TEST(QueueManagerTest, FillsTheAcceleratorFirst) {
  const auto manager = make({2, 1});
  EXPECT_EQ(manager->admit(), 0u);
  EXPECT_EQ(manager->admit(), 0u);
  EXPECT_EQ(manager->admit(), 1u);
  EXPECT_EQ(manager->admit(), std::nullopt);
  EXPECT_TRUE(manager->release(0));
  EXPECT_EQ(manager->admit(), 0u);
  EXPECT_EQ(manager->counts(0).admitted, 3u);
  EXPECT_EQ(manager->counts(0).overflowed, 2u);
  EXPECT_EQ(manager->counts(1).admitted, 1u);
  EXPECT_EQ(manager->counts(1).overflowed, 1u);
  EXPECT_EQ(manager->busy(), 1u);
}

TEST(QueueManagerTest, AloneADeviceIsBusyWhenFull) {
  const auto manager = make({1});
  EXPECT_EQ(manager->admit(), 0u);
  EXPECT_EQ(manager->admit(), std::nullopt);
}

TEST(QueueManagerTest, DepthsChangeWhileQueriesWait) {
  const auto manager = make({4, 4});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(manager->admit(), 0u);
  ASSERT_TRUE(manager->setDepth(0, 1));
  EXPECT_EQ(manager->queued(0), 3u);
  EXPECT_EQ(manager->admit(), 1u);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(manager->release(0));
  EXPECT_EQ(manager->admit(), 1u);
  EXPECT_TRUE(manager->release(0));
  EXPECT_EQ(manager->admit(), 0u);
  // Equation 11: no overflow.
  ASSERT_TRUE(manager->setDepth(1, 0));
  EXPECT_EQ(manager->admit(), std::nullopt);
  EXPECT_EQ(manager->depth(0), 1u);
}

TEST(QueueManagerTest, ClosedDevicesKeepWhatTheyHave) {
  const auto manager = make({2, 2});
  EXPECT_EQ(manager->admit(), 0u);
  manager->close(0);
  EXPECT_TRUE(manager->isClosed(0));
  EXPECT_EQ(manager->queued(0), 1u);
  EXPECT_EQ(manager->admit(), 1u);
  EXPECT_TRUE(manager->release(0));
  EXPECT_EQ(manager->admit(), 1u);
  EXPECT_EQ(manager->admit(), std::nullopt);
  manager->reopen(0);
  EXPECT_EQ(manager->admit(), 0u);
  EXPECT_EQ(manager->depth(0), 2u);
}

TEST(QueueManagerTest, ReleasesOfNothingChangeNothing) {
  const auto manager = make({1});
  EXPECT_FALSE(manager->release(0));
  EXPECT_EQ(manager->admit(), 0u);
  EXPECT_EQ(manager->admit(), std::nullopt);
}

TEST(QueueManagerTest, ErrorsSayWhatIsWrong) {
  EXPECT_FALSE(QueueManager::create({}));
  EXPECT_FALSE(QueueManager::create(std::vector<uint32_t>(65, 1)));
  const auto tooDeep = QueueManager::create(std::array{1u, maxQueueDepth + 1});
  ASSERT_FALSE(tooDeep);
  EXPECT_EQ(tooDeep.error().message, "the queue of device 1 cannot have a "
                                     "depth of 1048577; at most 1048576");
  const auto manager = make({maxQueueDepth});
  EXPECT_EQ(manager->depth(0), maxQueueDepth);
  EXPECT_FALSE(manager->setDepth(0, ~uint32_t{0}));
}

/// What one thread takes, another must not have at the same time: no queue ever
/// holds more than its depth, and nothing is lost.
TEST(QueueManagerTest, ThreadsNeverOverfillAQueue) {
  constexpr std::array<uint32_t, 3> depths = {5, 3, 1};
  const auto manager = make({depths.begin(), depths.end()});
  constexpr size_t threads = 8, queries = 50000;
  std::array<std::atomic<int>, depths.size()> held = {};
  std::atomic<uint64_t> busy = 0, overfull = 0;
  std::atomic<bool> done = false;
  std::thread changes([&] {
    for (uint32_t i = 0; !done; ++i) {
      manager->close(i % 3);
      manager->reopen(i % 3);
      // Never deeper than what is checked.
      (void)manager->setDepth(0, i % (depths[0] + 1));
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> clients;
  for (size_t thread = 0; thread < threads; ++thread)
    clients.emplace_back([&, thread] {
      std::vector<size_t> mine;
      for (size_t i = 0; i < queries; ++i) {
        if (const auto device = manager->admit()) {
          if (static_cast<uint32_t>(++held[*device]) > depths[*device])
            ++overfull;
          mine.push_back(*device);
        } else {
          ++busy;
        }
        if (!mine.empty() && (i + thread) % 2) {
          --held[mine.back()];
          if (!manager->release(mine.back()))
            ++overfull;
          mine.pop_back();
        }
      }
      for (size_t device : mine) {
        --held[device];
        if (!manager->release(device))
          ++overfull;
      }
    });
  for (std::thread &client : clients)
    client.join();
  done = true;
  changes.join();
  EXPECT_EQ(overfull, 0u);
  EXPECT_EQ(manager->busy(), busy);
  uint64_t admitted = 0;
  for (size_t device = 0; device < depths.size(); ++device) {
    EXPECT_EQ(manager->queued(device), 0u);
    admitted += manager->counts(device).admitted;
    // Each query was taken by a device or went past all of them.
    EXPECT_EQ(admitted + manager->counts(device).overflowed, threads * queries);
  }
  EXPECT_EQ(admitted + busy, threads * queries);
}
