//===- MemoryLedgerTest.cpp - Memory that several models share ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/MemoryLedger.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>

using namespace sandwich;

static constexpr uint64_t MiB = uint64_t{1} << 20;
static constexpr uint64_t GiB = uint64_t{1} << 30;

namespace {
/// A machine of `total` bytes, and what is used of it.
class MemoryLedgerTest : public ::testing::Test {
protected:
  MemoryLedger makeLedger() {
    return MemoryLedger([this](const std::vector<unsigned> &nodes) {
      std::vector<MemoryLimit> limits = {{total - used, "on this machine"}};
      for (unsigned node : nodes)
        limits.push_back({.available = nodeTotal - usedOnNode[node],
                          .where = "on NUMA node " + std::to_string(node),
                          .numaNode = node});
      if (addressSpace > 0)
        limits.push_back({addressSpace, "below the address space limit",
                          /*countsMappedFiles=*/true});
      return limits;
    });
  }

  /// 2 GiB of weights, and a KV cache in blocks of a mebibyte.
  static MemoryNeeds makeNeeds(std::optional<uint64_t> kvMemory = {}) {
    MemoryNeeds needs;
    needs.weights = 2 * GiB;
    needs.workspace = 100 * MiB;
    needs.logits = 18 * MiB;
    needs.program = 10 * MiB;
    needs.kvBlock = MiB;
    needs.wantedTokens = uint64_t{16} * 1024 * 1024;
    needs.kvMemory = kvMemory;
    return needs;
  }
  /// All of it but the KV cache.
  static constexpr uint64_t beside = 2 * GiB + 128 * MiB;

  static MemoryLedger::Reserved reserve(MemoryLedger &ledger,
                                        const std::string &model,
                                        const MemoryNeeds &needs) {
    Result<MemoryLedger::Reserved> reserved = ledger.reserve(model, needs);
    EXPECT_TRUE(reserved) << reserved.error().message;
    return reserved ? std::move(*reserved) : MemoryLedger::Reserved();
  }

  uint64_t total = 20 * GiB;
  uint64_t nodeTotal = 10 * GiB;
  uint64_t addressSpace = 0;
  uint64_t used = 0;
  std::map<unsigned, uint64_t> usedOnNode;
};
} // namespace

TEST_F(MemoryLedgerTest, TheFirstModelIsPlannedAsIfAlone) {
  MemoryLedger ledger = makeLedger();
  const MemoryNeeds needs = makeNeeds();
  const MemoryLedger::Reserved a = reserve(ledger, "a", needs);
  Result<MemoryPlan> alone =
      planMemory(needs, std::vector<MemoryLimit>{{total, "on this machine"}});
  ASSERT_TRUE(alone);
  EXPECT_EQ(a.plan.kvBlocks, alone->kvBlocks);
  EXPECT_EQ(a.plan.warnings, alone->warnings);
}

TEST_F(MemoryLedgerTest, MemoryThatIsNotUsedYetIsTakenAll) {
  MemoryLedger ledger = makeLedger();
  MemoryLedger::Reserved a = reserve(ledger, "a", makeNeeds(10 * GiB));
  const uint64_t left = total - beside - 10 * GiB;
  // Nothing of it was used, so for the system there is as much as before.
  EXPECT_TRUE(ledger.reserve("b", makeNeeds(left - beside)));
  Result<MemoryLedger::Reserved> more =
      ledger.reserve("b", makeNeeds(left - beside + MiB));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message,
            "does not fit into the 7.875 GiB of memory that are available on "
            "this machine beside 12.12 GiB of a: weights 2 GiB, KV cache 5.751 "
            "GiB (94224 tokens), workspace 100 MiB, logits 18 MiB, program 10 "
            "MiB; give --kv-memory at most 6174015488 (5.75 GiB)");
}

TEST_F(MemoryLedgerTest, MemoryThatIsUsedIsNotCountedTwice) {
  MemoryLedger ledger = makeLedger();
  MemoryLedger::Reserved a = reserve(ledger, "a", makeNeeds(10 * GiB));
  const uint64_t left = total - beside - 10 * GiB;
  uint64_t inUse = 0;
  a.reservation.setUse(
      {.mapped = true, .bytes = [&](uint64_t) { return inUse; }});
  for (uint64_t now : {uint64_t{0}, GiB, 5 * GiB, 10 * GiB + 128 * MiB}) {
    // Pages of files are available for the system.
    inUse = used = now;
    EXPECT_TRUE(ledger.reserve("b", makeNeeds(left - beside))) << now;
    EXPECT_FALSE(ledger.reserve("b", makeNeeds(left - beside + MiB))) << now;
  }
  // What others use, and what the model uses beyond its plan, is gone.
  used += GiB;
  inUse += GiB;
  EXPECT_TRUE(ledger.reserve("b", makeNeeds(left - beside - GiB)));
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(left - beside - GiB + MiB)));
  const std::vector<MemoryLedger::Holding> holdings = ledger.holdings();
  ASSERT_EQ(holdings.size(), 1u);
  EXPECT_EQ(holdings[0].model, "a");
  EXPECT_EQ(holdings[0].bytes, beside + 10 * GiB);
  EXPECT_EQ(holdings[0].kvCache, 10 * GiB);
  EXPECT_EQ(holdings[0].mapped, 2 * GiB);
  EXPECT_EQ(holdings[0].inUse, 10 * GiB + 128 * MiB);
}

TEST_F(MemoryLedgerTest, CopiedWeightsAreMemoryOfTheirOwn) {
  MemoryLedger ledger = makeLedger();
  MemoryNeeds needs = makeNeeds(10 * GiB);
  needs.weightsCopied = true;
  MemoryLedger::Reserved a = reserve(ledger, "a", needs);
  const uint64_t left = total - beside - 10 * GiB;
  // While they are being copied, too.
  uint64_t copied = 0;
  a.reservation.setUse({.bytes = [&](uint64_t) { return copied; }});
  for (uint64_t now : {uint64_t{0}, GiB, 2 * GiB}) {
    copied = used = now;
    EXPECT_TRUE(ledger.reserve("b", makeNeeds(left - beside)));
    EXPECT_FALSE(ledger.reserve("b", makeNeeds(left - beside + MiB)));
  }
}

TEST_F(MemoryLedgerTest, WhatEndsIsGivenBack) {
  MemoryLedger ledger = makeLedger();
  MemoryLedger::Reserved a = reserve(ledger, "a", makeNeeds(10 * GiB));
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(10 * GiB)));
  MemoryReservation moved = std::move(a.reservation);
  a.reservation.release();
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(10 * GiB)));
  moved = MemoryReservation();
  EXPECT_FALSE(moved);
  EXPECT_TRUE(ledger.holdings().empty());
  // A model that does not fit takes nothing.
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(20 * GiB)));
  EXPECT_TRUE(ledger.holdings().empty());
  MemoryLedger::Reserved b = reserve(ledger, "b", makeNeeds(10 * GiB));
  EXPECT_TRUE(b.reservation);
}

TEST_F(MemoryLedgerTest, ReservationsOutliveTheLedger) {
  MemoryReservation reservation;
  {
    MemoryLedger ledger = makeLedger();
    reservation = reserve(ledger, "a", makeNeeds(GiB)).reservation;
  }
  reservation.setUse({.mapped = true});
  reservation.release();
  EXPECT_FALSE(reservation);
}

TEST_F(MemoryLedgerTest, ModelsOfOneFileShareItsPages) {
  MemoryLedger ledger = makeLedger();
  MemoryNeeds needs = makeNeeds(6 * GiB);
  needs.weightsFile = "/models/a";
  MemoryLedger::Reserved first = reserve(ledger, "a", needs);
  MemoryLedger::Reserved second = reserve(ledger, "a again", needs);
  // 12 GiB of caches, twice 128 MiB of buffers, once the weights.
  const uint64_t left = total - 12 * GiB - 256 * MiB - 2 * GiB;
  needs.kvMemory = left - 128 * MiB;
  EXPECT_TRUE(ledger.reserve("a", needs));
  *needs.kvMemory += MiB;
  EXPECT_FALSE(ledger.reserve("a", needs));
  // Others have weights of their own; and so has a copy.
  MemoryNeeds other = makeNeeds(left - beside);
  other.weightsFile = "/models/b";
  EXPECT_TRUE(ledger.reserve("b", other));
  *other.kvMemory += MiB;
  EXPECT_FALSE(ledger.reserve("b", other));
  other.weightsFile = "/models/a";
  other.weightsCopied = true;
  EXPECT_FALSE(ledger.reserve("b", other));
}

TEST_F(MemoryLedgerTest, WhoIsExpectedKeepsWhatItNeedsAndItsShare) {
  MemoryLedger ledger = makeLedger();
  const MemoryNeeds needs = makeNeeds();
  for (const char *model : {"a", "b", "c"})
    ledger.expect(model, needs);
  // The rest is what is left by the weights and buffers of all, of each of the
  // others a block, and the reserve.
  const uint64_t rest =
      total - 3 * beside - 2 * MiB - memoryReserve(total - 2 * (beside + MiB));
  MemoryLedger::Reserved b = reserve(ledger, "b", needs);
  EXPECT_EQ(b.plan.kvBlocks, rest / 3 / MiB);
  ASSERT_EQ(b.plan.warnings.size(), 1u);
  EXPECT_NE(b.plan.warnings[0].find(
                " are available on this machine beside 2.126 GiB that a is to "
                "get and 2.126 GiB that c is to get, less "),
            std::string::npos)
      << b.plan.warnings[0];
  EXPECT_NE(b.plan.warnings[0].find(", shared among 3 models; --kv-memory "),
            std::string::npos)
      << b.plan.warnings[0];
  // Each gets about as much, in whatever order they come.
  MemoryLedger::Reserved c = reserve(ledger, "c", needs);
  MemoryLedger::Reserved a = reserve(ledger, "a", needs);
  EXPECT_NEAR(static_cast<double>(c.plan.kvBlocks),
              static_cast<double>(b.plan.kvBlocks), 300);
  EXPECT_NEAR(static_cast<double>(a.plan.kvBlocks),
              static_cast<double>(b.plan.kvBlocks), 600);
  EXPECT_EQ(a.plan.warnings[0].find("shared among"), std::string::npos);
  EXPECT_LT((a.plan.kvBlocks + b.plan.kvBlocks + c.plan.kvBlocks) * MiB +
                3 * beside,
            total);
}

TEST_F(MemoryLedgerTest, WhatOneDoesNotWantIsForTheOthers) {
  MemoryLedger ledger = makeLedger();
  MemoryNeeds small = makeNeeds();
  small.wantedTokens = 16;
  ledger.expect("a", small);
  ledger.expect("b", makeNeeds());
  MemoryLedger::Reserved a = reserve(ledger, "a", small);
  EXPECT_EQ(a.plan.kvBlocks, 1u);
  MemoryLedger::Reserved b = reserve(ledger, "b", makeNeeds());
  EXPECT_GT(b.plan.kvBlocks * MiB, 14 * GiB);
}

TEST_F(MemoryLedgerTest, KVMemoryOfOneThatIsExpectedIsKeptForIt) {
  MemoryLedger ledger = makeLedger();
  ledger.expect("a", makeNeeds());
  ledger.expect("b", makeNeeds(10 * GiB));
  MemoryLedger::Reserved a = reserve(ledger, "a", makeNeeds());
  // It has the rest to itself.
  EXPECT_EQ(a.plan.warnings[0].find("shared among"), std::string::npos);
  EXPECT_EQ(a.plan.kvBlocks, (total - 10 * GiB - 2 * beside -
                              memoryReserve(total - 10 * GiB - beside)) /
                                 MiB);
  MemoryLedger::Reserved b = reserve(ledger, "b", makeNeeds(10 * GiB));
  EXPECT_EQ(b.plan.kvBlocks * MiB, 10 * GiB);
}

TEST_F(MemoryLedgerTest, WhoDoesNotComeAfterAllKeepsNothing) {
  MemoryLedger ledger = makeLedger();
  ledger.expect("b", makeNeeds(15 * GiB));
  Result<MemoryLedger::Reserved> refused =
      ledger.reserve("a", makeNeeds(10 * GiB));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(
                "on this machine beside 17.12 GiB that b is to get: "),
            std::string::npos)
      << refused.error().message;
  ledger.forget("another");
  EXPECT_FALSE(ledger.reserve("a", makeNeeds(10 * GiB)));
  ledger.forget("b");
  EXPECT_TRUE(ledger.reserve("a", makeNeeds(10 * GiB)));
}

TEST_F(MemoryLedgerTest, ARefusedModelIsStillExpected) {
  MemoryLedger ledger = makeLedger();
  ledger.expect("a", makeNeeds(10 * GiB));
  EXPECT_FALSE(ledger.reserve("a", makeNeeds(20 * GiB)));
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(10 * GiB)));
  EXPECT_TRUE(ledger.reserve("a", makeNeeds(10 * GiB)));
}

TEST_F(MemoryLedgerTest, NodesCountTheRanksThatAreBoundToThem) {
  MemoryLedger ledger = makeLedger();
  MemoryNeeds ranks = makeNeeds(8 * GiB);
  ranks.ranks = 2;
  ranks.nodes = {0, 1};
  ranks.exchange = 64 * MiB;
  ranks.weights = GiB;
  MemoryLedger::Reserved a = reserve(ledger, "a", ranks);
  // 4 GiB of cache, a gibibyte of weights and buffers on each; and on the first
  // what ranks exchange data in.
  std::map<uint64_t, uint64_t> inUse;
  a.reservation.setUse(
      {.mapped = true, .bytes = [&](uint64_t rank) { return inUse[rank]; }});
  MemoryNeeds onOne = makeNeeds();
  onOne.nodes = {1};
  for (uint64_t now : {uint64_t{0}, 3 * GiB}) {
    inUse[1] = usedOnNode[1] = now;
    used = inUse[0] + inUse[1];
    onOne.kvMemory = nodeTotal - 5 * GiB - 128 * MiB - beside;
    EXPECT_TRUE(ledger.reserve("b", onOne)) << now;
    *onOne.kvMemory += MiB;
    Result<MemoryLedger::Reserved> refused = ledger.reserve("b", onOne);
    ASSERT_FALSE(refused) << now;
    EXPECT_NE(refused.error().message.find("available on NUMA node 1 beside "
                                           "5.125 GiB of a: "),
              std::string::npos)
        << refused.error().message;
  }
  // Nothing of it is on a third node.
  MemoryNeeds onTwo = makeNeeds(7 * GiB);
  onTwo.nodes = {2};
  EXPECT_TRUE(ledger.reserve("b", onTwo));
  // What ranks exchange data in is in use for the system once it was taken.
  ranks.kvMemory = 8 * GiB;
  a.reservation.setUse({});
  inUse.clear();
  used = 0;
  usedOnNode.clear();
  MemoryNeeds onZero = makeNeeds(nodeTotal - 5 * GiB - 192 * MiB - beside);
  onZero.nodes = {0};
  EXPECT_TRUE(ledger.reserve("b", onZero));
  *onZero.kvMemory += MiB;
  EXPECT_FALSE(ledger.reserve("b", onZero));
  a.reservation.setUse({.mapped = true});
  used = usedOnNode[0] = 64 * MiB;
  *onZero.kvMemory -= MiB;
  EXPECT_TRUE(ledger.reserve("b", onZero));
  *onZero.kvMemory += MiB;
  EXPECT_FALSE(ledger.reserve("b", onZero));
}

TEST_F(MemoryLedgerTest, TheAddressSpaceKnowsWhatIsMapped) {
  addressSpace = 16 * GiB;
  MemoryLedger ledger = makeLedger();
  MemoryNeeds needs = makeNeeds(6 * GiB);
  needs.ranks = 2;
  needs.stacks = 8 * MiB;
  // Half of the cache and of the ranks are in another process.
  const uint64_t taken = beside + 3 * GiB + 8 * MiB;
  MemoryLedger::Reserved a = reserve(ledger, "a", needs);
  MemoryNeeds other = makeNeeds(16 * GiB - taken - beside);
  total = 100 * GiB;
  EXPECT_TRUE(ledger.reserve("b", other));
  *other.kvMemory += MiB;
  EXPECT_FALSE(ledger.reserve("b", other));
  // From now on the system has subtracted it.
  addressSpace -= taken;
  a.reservation.setUse({.mapped = true});
  EXPECT_FALSE(ledger.reserve("b", other));
  *other.kvMemory -= MiB;
  EXPECT_TRUE(ledger.reserve("b", other));
}

TEST_F(MemoryLedgerTest, WeightsThatAreReadAgainAndAgainKeepNothing) {
  total = GiB;
  MemoryLedger ledger = makeLedger();
  MemoryLedger::Reserved a = reserve(ledger, "a", makeNeeds(256 * MiB));
  ASSERT_TRUE(a.plan.weightsStream);
  EXPECT_TRUE(ledger.reserve("b", makeNeeds(512 * MiB)));
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(513 * MiB)));
}

TEST_F(MemoryLedgerTest, AModelIsPlannedAgainAsIfItHeldNothing) {
  MemoryLedger ledger = makeLedger();
  MemoryLedger::Reserved a = reserve(ledger, "a", makeNeeds(10 * GiB));
  MemoryLedger::Reserved b = reserve(ledger, "b", makeNeeds(2 * GiB));
  const uint64_t most = total - 2 * beside - 2 * GiB;
  EXPECT_TRUE(ledger.planAgain(a.reservation, makeNeeds(most)));
  EXPECT_FALSE(ledger.planAgain(a.reservation, makeNeeds(most + MiB)));
  EXPECT_EQ(ledger.holdings()[0].kvCache, 10 * GiB);
}

TEST_F(MemoryLedgerTest, SizesBeyondAllMeasureAreRefused) {
  MemoryLedger ledger = makeLedger();
  MemoryNeeds huge = makeNeeds(UINT64_MAX);
  huge.ranks = 4;
  EXPECT_FALSE(ledger.reserve("a", huge));
  ledger.expect("a", huge);
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(GiB)));
  ledger.forget("a");
  huge = makeNeeds();
  huge.workspace = huge.weights = UINT64_MAX - 5;
  huge.weightsCopied = true;
  ledger.expect("a", huge);
  EXPECT_FALSE(ledger.reserve("b", makeNeeds(GiB)));
}

TEST_F(MemoryLedgerTest, ModelsThatComeAtOnceNeverGetTheSameBytes) {
  MemoryLedger ledger = makeLedger();
  std::atomic<uint64_t> held = 0;
  std::atomic<bool> exceeded = false;
  auto load = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 200; ++i) {
      MemoryNeeds needs = makeNeeds();
      if (random() % 2)
        needs.kvMemory = (1 + random() % 8192) * MiB;
      const std::string model = std::to_string(seed);
      if (random() % 4 == 0)
        ledger.expect(model, needs);
      Result<MemoryLedger::Reserved> reserved = ledger.reserve(model, needs);
      if (!reserved) {
        ledger.forget(model);
        continue;
      }
      // Of streamed weights nothing is held.
      const uint64_t bytes = reserved->plan.kvBlocks * MiB + 128 * MiB +
                             (reserved->plan.weightsStream ? 0 : 2 * GiB);
      if (held.fetch_add(bytes) + bytes > total)
        exceeded = true;
      reserved->reservation.setUse({.mapped = true});
      (void)ledger.holdings();
      held -= bytes;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.emplace_back(load, i);
  }
  EXPECT_FALSE(exceeded);
  EXPECT_TRUE(ledger.holdings().empty());
}

TEST_F(MemoryLedgerTest, AForkMayEndWhatItGot) {
  MemoryLedger ledger = makeLedger();
  MemoryLedger::Reserved a = reserve(ledger, "a", makeNeeds(GiB));
  // The child finds the mutex held by a thread that it has not.
  std::atomic<bool> ends = false;
  std::jthread asking([&] {
    while (!ends)
      (void)ledger.holdings();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      a.reservation.setUse({});
      a.reservation.release();
      ::_exit(7);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  ends = true;
}
