//===- CommunicatorChecks.cpp - What every communicator does --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommunicatorChecks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

using namespace sandwich;
using namespace std::chrono_literals;

/// Runs `work(lane)` on a thread for each lane.
static void onLanes(int32_t lanes, const std::function<void(int32_t)> &work) {
  std::vector<std::thread> threads;
  for (int32_t lane = 1; lane < lanes; ++lane)
    threads.emplace_back(work, lane);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
}

/// What `rank` brings to the collective number `round`.
std::vector<float> makeData(int32_t rank, uint32_t round, size_t count) {
  // Numbers of different sizes, whose sum depends on the order.
  std::minstd_rand random(round * 64 + static_cast<uint32_t>(rank) + 1);
  std::vector<float> data(count);
  for (float &value : data)
    value = static_cast<float>(random()) / static_cast<float>(1 + random());
  return data;
}

/// The sum in the order of hosts of their sums in the order of ranks, as plain
/// loops have it.
static std::vector<float> plainSum(const Communicator &communicator,
                                   uint32_t round, size_t count) {
  auto add = [](std::vector<float> &sum, const std::vector<float> &data) {
    for (size_t i = 0; i < data.size(); ++i)
      sum[i] += data[i];
  };
  std::vector<float> sum;
  const int32_t ranksOnHost = communicator.ranksOnHost();
  for (int32_t first = 0; first < communicator.ranks(); first += ranksOnHost) {
    std::vector<float> ofHost = makeData(first, round, count);
    for (int32_t rank = first + 1; rank < first + ranksOnHost; ++rank)
      add(ofHost, makeData(rank, round, count));
    if (first == 0)
      sum = std::move(ofHost);
    else
      add(sum, ofHost);
  }
  return sum;
}

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

void checkAllReduce(Communicator &communicator, int32_t lanes, uint32_t round,
                    size_t count) {
  std::vector<float> data = makeData(communicator.rank(), round, count);
  onLanes(lanes, [&](int32_t lane) {
    communicator.allReduce(lane, lanes, data.data(),
                           static_cast<int64_t>(count));
  });
  EXPECT_TRUE(sameBits(data, plainSum(communicator, round, count)))
      << count << " elements on " << lanes << " lanes";
}

void checkAllGather(Communicator &communicator, int32_t lanes, uint32_t round,
                    size_t rows, size_t columns) {
  auto ranks = static_cast<size_t>(communicator.ranks());
  std::vector<float> part =
      makeData(communicator.rank(), round, rows * columns);
  std::vector<float> whole(rows * columns * ranks, -1);
  onLanes(lanes, [&](int32_t lane) {
    communicator.allGather(lane, lanes, part.data(), whole.data(),
                           static_cast<int64_t>(rows),
                           static_cast<int64_t>(columns));
  });
  std::vector<float> expected(whole.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<float> other =
        makeData(static_cast<int32_t>(rank), round, rows * columns);
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        expected[(row * ranks + rank) * columns + column] =
            other[row * columns + column];
  }
  EXPECT_TRUE(sameBits(whole, expected))
      << rows << " x " << columns << " on " << lanes << " lanes";
}

static void checkBroadcast(Communicator &communicator, uint32_t round,
                           size_t bytes, int32_t root) {
  std::vector<float> wanted = makeData(root, round, bytes / sizeof(float) + 1);
  std::vector<float> data(wanted.size(), -1);
  if (communicator.rank() == root)
    data = wanted;
  communicator.broadcast(data.data(), bytes, root);
  EXPECT_EQ(std::memcmp(data.data(), wanted.data(), bytes), 0)
      << bytes << " bytes from rank " << root;
}

/// Counts around all sizes at which something changes, and some at random.
static std::vector<size_t> interestingCounts() {
  std::vector<size_t> counts = {0,    1,    2,    31,    33,    1023,  1024,
                                1025, 4095, 4097, 20000, 65537, 262144};
  std::minstd_rand random(7);
  for (int i = 0; i < 8; ++i)
    counts.push_back(random() % 100000);
  return counts;
}

void checkAll(Communicator &communicator) {
  uint32_t round = 0;
  for (size_t count : interestingCounts())
    checkAllReduce(communicator, 1, round++, count);
  for (size_t rows : {1, 3, 17})
    for (size_t columns : {0, 1, 50, 12345})
      checkAllGather(communicator, 1, round++, rows, columns);
  for (size_t bytes : {0, 1, 4097, 1000000})
    for (int32_t root = 0; root < communicator.ranks(); ++root)
      checkBroadcast(communicator, round++, bytes, root);
  communicator.barrier();
  EXPECT_TRUE(communicator.failure());
}

/// Collectives of random kinds and sizes, in small slots, so that slots are
/// used again all the time, and without stops between collectives.
void runRandomly(Communicator &communicator, int rounds) {
  std::minstd_rand common(99);
  // Ranks are ahead of each other in turn.
  std::minstd_rand own(static_cast<uint32_t>(communicator.rank()) + 1);
  for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    auto round = static_cast<uint32_t>(i);
    if (own() % 100 == 0)
      std::this_thread::sleep_for(50us);
    switch (common() % 6) {
    case 0:
      checkAllReduce(communicator, 1, round, common() % 20000);
      break;
    case 1:
    case 2:
      checkAllReduce(communicator, 1, round, common() % 1000);
      break;
    case 3: {
      size_t rows = common() % 5;
      checkAllGather(communicator, 1, round, rows, common() % 1000);
      break;
    }
    case 4: {
      auto root = static_cast<int32_t>(
          common() % static_cast<uint32_t>(communicator.ranks()));
      checkBroadcast(communicator, round, common() % 20000, root);
      break;
    }
    case 5:
      communicator.barrier();
      break;
    }
  }
}
