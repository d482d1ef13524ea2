//===- MemoryOrderTest.cpp - What threads see of each other ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Litmus tests of counters, barriers and collectives: plain data that is
/// written on one side of them, read on the other, and soon written again, on
/// many more threads than there are cores. They find most on CPUs that reorder
/// much, and under ThreadSanitizer, which knows the orders that are asked for.
///
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

using namespace sandwich;
using std::chrono::microseconds;

namespace {

/// Who waits sleeps at once; spins for so short that it often is about to sleep
/// when it is woken; or spins, where two threads have a core each.
const struct {
  WaitableCounter::Patience patience;
  size_t pairs;
} waits[] = {
    {{microseconds(0), microseconds(0)}, 6},
    {{microseconds(3), microseconds(3)}, 6},
    {{microseconds(50), microseconds(1000)}, 1},
};

/// Plain numbers in several cache lines, written in one order and read in the
/// other, so that a line that comes late shows.
struct Message {
  static constexpr size_t count = 64;
  alignas(128) std::array<uint32_t, count> words = {};

  void write(uint32_t value) {
    for (uint32_t &word : words)
      word = value;
  }
  bool holds(uint32_t value) const {
    for (size_t i = count; i > 0; --i)
      if (words[i - 1] != value)
        return false;
    return true;
  }
};

/// Two threads that answer each other. A message is written over as soon as
/// there is an answer to it, which must not be before it has been read.
struct Pair {
  explicit Pair(WaitableCounter::Scope scope)
      : counters{WaitableCounter(scope), WaitableCounter(scope)} {}

  WaitableCounter counters[2];
  Message messages[2];
  std::atomic<uint32_t> stopped = 0;
  std::atomic<uint32_t> wrong = 0;

  void run(unsigned side, uint32_t rounds,
           const WaitableCounter::Patience &patience) {
    for (uint32_t round = 1; round <= rounds; ++round) {
      if (side == 0)
        send(0, round);
      // Both ways of waiting.
      WaitableCounter &other = counters[1 - side];
      if (round % 2 == 0)
        other.waitWhile(round - 1, patience);
      else if (!other.waitUntil(round, patience, stopped))
        ++wrong;
      wrong += !messages[1 - side].holds(round);
      if (side == 1)
        send(1, round);
    }
  }

private:
  void send(unsigned side, uint32_t round) {
    messages[side].write(round);
    // Both ways of telling.
    if (round % 3 == 0)
      counters[side].raiseTo(round);
    else
      counters[side].advance();
  }
};

} // namespace

// A wake-up that is lost, as the one side did not see the sleeper and the other
// not the new value, lets a thread of a process sleep for ever.
TEST(MemoryOrderTest, CountersPassMessagesOnAndLoseNoWakeUp) {
  constexpr uint32_t rounds = 800;
  for (auto scope :
       {WaitableCounter::Scope::Process, WaitableCounter::Scope::Machine})
    for (const auto &[patience, pairs] : waits) {
      std::vector<std::unique_ptr<Pair>> all;
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < pairs; ++i) {
        all.push_back(std::make_unique<Pair>(scope));
        for (unsigned side : {0, 1})
          threads.emplace_back(
              [side, &patience = patience, &pair = *all.back()] {
                pair.run(side, rounds, patience);
              });
      }
      threads.clear();
      for (const auto &pair : all)
        EXPECT_EQ(pair->wrong, 0U);
    }
}

// One barrier a round, so that the threads that are ahead write for the next
// one while others still read this one's.
TEST(MemoryOrderTest, BarriersSeparateWritesFromReads) {
  struct Rounds {
    PhaseTeam *team;
    uint32_t count;
    std::vector<Message> written[2];
    std::atomic<uint32_t> wrong = 0;
  } rounds;
  for (auto [threads, oversubscribed, count] :
       {std::tuple(12U, true, test::timesToRepeat(1000U, 500U)),
        std::tuple(2U, false, 1500U)}) {
    PhaseTeamOptions options;
    options.threads = threads;
    options.oversubscribed = oversubscribed;
    Result<std::unique_ptr<PhaseTeam>> team = PhaseTeam::create(options);
    ASSERT_TRUE(team);
    rounds.team = team->get();
    rounds.count = count;
    rounds.written[0].assign(threads, {});
    rounds.written[1].assign(threads, {});
    rounds.team->run(
        threads,
        [](void *context, int32_t thread) {
          auto &rounds = *static_cast<Rounds *>(context);
          for (uint32_t round = 0; round < rounds.count; ++round) {
            std::vector<Message> &messages = rounds.written[round % 2];
            messages[static_cast<size_t>(thread)].write(round);
            rounds.team->barrier();
            for (const Message &message : messages)
              rounds.wrong += !message.holds(round);
          }
        },
        &rounds);
    EXPECT_EQ(rounds.wrong, 0U) << threads << " threads";
  }
}

// What was written before a run is seen in it, and what it wrote after it.
TEST(MemoryOrderTest, RunsSeeWhatWasWrittenBefore) {
  struct Runs {
    uint32_t number = 0;
    Message given;
    std::vector<Message> made;
    std::atomic<uint32_t> wrong = 0;
  } runs;
  for (bool oversubscribed : {true, false}) {
    PhaseTeamOptions options;
    options.threads = oversubscribed ? 8 : 2;
    options.oversubscribed = oversubscribed;
    Result<std::unique_ptr<PhaseTeam>> team = PhaseTeam::create(options);
    ASSERT_TRUE(team);
    runs.made.assign(options.threads, {});
    for (uint32_t i = 0; i < test::timesToRepeat(800U, 400U); ++i) {
      ++runs.number;
      runs.given.write(runs.number);
      (*team)->run(
          options.threads,
          [](void *context, int32_t thread) {
            auto &runs = *static_cast<Runs *>(context);
            runs.wrong += !runs.given.holds(runs.number);
            runs.made[static_cast<size_t>(thread)].write(runs.number);
          },
          &runs);
      for (const Message &made : runs.made)
        runs.wrong += !made.holds(runs.number);
    }
  }
  EXPECT_EQ(runs.wrong, 0U);
}

/// Sums and gathers of every lane of every rank, each on a thread of its own
/// that waits for nobody but the same lane of the others. The boxes are used
/// again at once.
static void runLanes(SharedMemorySegment &segment,
                     std::vector<std::unique_ptr<Communicator>> &ranks,
                     int rounds) {
  // Several blocks of a box, and a rest.
  constexpr int64_t columns = 6 * 331;
  const int32_t lanes = segment.lanes();
  std::atomic<uint32_t> wrong = 0;
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (int32_t lane = 0; lane < lanes; ++lane)
      threads.emplace_back([&, rank, lane] {
        // Whole numbers below 2^24, whose sums are exact.
        const auto value = [](size_t rank, int round, int64_t i) {
          return static_cast<float>((rank + 1) * 1000 +
                                    static_cast<size_t>(round + i) % 1000);
        };
        // Lanes have other parts of each count, so each has its own.
        std::vector<float> sum(columns), whole(columns * ranks.size());
        for (int round = 0; round < rounds; ++round) {
          // Small ones, too, which go in one step.
          const int64_t count = round % 3 == 0 ? columns : columns / 6;
          const LanePart part = LanePart::of(count, lane, lanes);
          for (int64_t i = part.begin; i < part.end; ++i)
            sum[static_cast<size_t>(i)] = value(rank, round, i);
          if (round % 4 == 3) {
            ranks[rank]->allGather(lane, lanes, sum.data(), whole.data(), 1,
                                   count);
            for (size_t other = 0; other < ranks.size(); ++other)
              for (int64_t i = part.begin; i < part.end; ++i)
                wrong += whole[static_cast<size_t>(
                             static_cast<int64_t>(other) * count + i)] !=
                         value(other, round, i);
            continue;
          }
          ranks[rank]->allReduce(lane, lanes, sum.data(), count);
          for (int64_t i = part.begin; i < part.end; ++i) {
            float expected = 0;
            for (size_t other = 0; other < ranks.size(); ++other)
              expected += value(other, round, i);
            wrong += sum[static_cast<size_t>(i)] != expected;
          }
        }
      });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0U) << ranks.size() << " ranks, " << lanes << " lanes";
}

TEST(MemoryOrderTest, LanesOfRanksUseTheirBoxesAgain) {
  struct {
    int32_t ranks, lanes;
    bool oversubscribed;
    int rounds;
  } const shapes[] = {
      {4, 3, true, test::timesToRepeat(400, 300)},
      {2, 6, true, test::timesToRepeat(400, 300)},
      {2, 1, false, 1000},
  };
  for (Collectives collectives : allCollectives())
    for (const auto &shape : shapes) {
      SharedMemorySegmentOptions options;
      options.slotBytes = 8192;
      options.oversubscribed = shape.oversubscribed;
      options.collectives = collectives;
      auto segment =
          SharedMemorySegment::create(shape.ranks, shape.lanes, options);
      ASSERT_TRUE(segment) << segment.error().message;
      std::vector<std::unique_ptr<Communicator>> ranks;
      for (int32_t rank = 0; rank < shape.ranks; ++rank) {
        auto joined = SharedMemoryCommunicator::create(*segment, rank);
        ASSERT_TRUE(joined) << joined.error().message;
        ranks.push_back(std::move(*joined));
      }
      runLanes(**segment, ranks, shape.rounds);
    }
}

// The root writes its box again four steps later; nobody else tells it when.
TEST(MemoryOrderTest, BroadcastsAndBarriersTakeTurns) {
  constexpr int32_t count = 8;
  SharedMemorySegmentOptions options;
  options.slotBytes = 8192;
  options.oversubscribed = true;
  auto segment = SharedMemorySegment::create(count, 1, options);
  ASSERT_TRUE(segment) << segment.error().message;
  std::atomic<uint32_t> wrong = 0;
  // Of each rank; others read it between two barriers.
  std::vector<Message> own(count);
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      auto communicator = SharedMemoryCommunicator::create(*segment, rank);
      if (!communicator) {
        ++wrong;
        return;
      }
      Message told;
      const uint32_t rounds = test::timesToRepeat(1500U, 250U);
      for (uint32_t round = 0; round < rounds; ++round) {
        // A few in a row of one root, then another's.
        const auto root = static_cast<int32_t>(round / 5 % count);
        if (rank == root)
          told.write(round);
        (*communicator)->broadcast(told.words.data(), sizeof(told.words), root);
        wrong += !told.holds(round);
        if (round % 4 != 0)
          continue;
        own[static_cast<size_t>(rank)].write(round);
        (*communicator)->barrier();
        for (const Message &message : own)
          wrong += !message.holds(round);
        (*communicator)->barrier();
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0U);
}
