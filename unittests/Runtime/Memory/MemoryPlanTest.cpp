//===- MemoryPlanTest.cpp - What will fit into memory ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/MemoryPlan.h"

#include <gtest/gtest.h>

using namespace sandwich;

static constexpr uint64_t MiB = uint64_t{1} << 20;
static constexpr uint64_t GiB = uint64_t{1} << 30;

/// A model with room for a gibibyte of KV cache, in blocks of a mebibyte.
static MemoryNeeds makeNeeds() {
  MemoryNeeds needs;
  needs.weights = 2 * GiB;
  needs.workspace = 100 * MiB;
  needs.logits = 18 * MiB;
  needs.program = 10 * MiB;
  needs.kvBlock = MiB;
  needs.wantedTokens = 1024 * 16;
  return needs;
}

static MemoryPlan plan(const MemoryNeeds &needs,
                       const std::vector<MemoryLimit> &limits) {
  Result<MemoryPlan> plan = planMemory(needs, limits);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *plan : MemoryPlan();
}

static std::string error(const MemoryNeeds &needs,
                         const std::vector<MemoryLimit> &limits) {
  Result<MemoryPlan> plan = planMemory(needs, limits);
  EXPECT_FALSE(plan);
  return plan ? "" : plan.error().message;
}

TEST(MemoryPlanTest, TheReserveIsAShareWithinBounds) {
  EXPECT_EQ(memoryReserve(20 * GiB), GiB);
  EXPECT_EQ(memoryReserve(4 * GiB), 256 * MiB);
  EXPECT_EQ(memoryReserve(400 * MiB), 100 * MiB);
  EXPECT_EQ(memoryReserve(0), 0u);
}

TEST(MemoryPlanTest, GivesWhatIsWantedWhereThereIsRoom) {
  MemoryNeeds needs = makeNeeds();
  for (const std::vector<MemoryLimit> &limits :
       {std::vector<MemoryLimit>(),
        {{20 * GiB, "on this machine"}},
        // Weights, buffers, cache and reserve to the byte.
        {{3 * GiB + 128 * MiB + 256 * MiB, "on this machine"}}}) {
    MemoryPlan all = plan(needs, limits);
    EXPECT_EQ(all.kvBlocks, 1024u);
    EXPECT_TRUE(all.warnings.empty());
  }
  // Every sequence may leave a block partly empty.
  needs.sequences = 4;
  EXPECT_EQ(plan(needs, {}).kvBlocks, 1027u);
  needs.wantedTokens = UINT64_MAX;
  needs.sequences = UINT64_MAX;
  EXPECT_GT(plan(needs, {}).kvBlocks, uint64_t{1} << 60);
}

TEST(MemoryPlanTest, TheTightestLimitMakesTheCacheSmaller) {
  MemoryPlan smaller =
      plan(makeNeeds(), {{20 * GiB, "on this machine"},
                         {3 * GiB, "in the cgroup limit of memory.max"},
                         {4 * GiB, "on NUMA node 1"}});
  EXPECT_EQ(smaller.kvBlocks, 1024u - 128 - 256);
  ASSERT_EQ(smaller.warnings.size(), 1u);
  EXPECT_EQ(smaller.warnings[0],
            "the KV cache holds 10240 tokens instead of 16384, as 3 GiB are "
            "available in the cgroup limit of memory.max, less 2.125 GiB for "
            "all else and a reserve of 256 MiB; --kv-memory sets its size");
}

TEST(MemoryPlanTest, WhatIsRequiredMayTakeFromTheReserve) {
  MemoryNeeds needs = makeNeeds();
  needs.requiredTokens = 800 * 16;
  std::vector<MemoryLimit> limits = {{3 * GiB, "on this machine"}};
  EXPECT_EQ(plan(needs, limits).kvBlocks, 800u);
  needs.requiredTokens = 897 * 16;
  EXPECT_EQ(
      error(needs, limits),
      "does not fit into the 3 GiB of memory that are available on this "
      "machine: weights 2 GiB, KV cache 897 MiB (14352 tokens), workspace "
      "100 MiB, logits 18 MiB, program 10 MiB; end other programs, raise the "
      "limit or use "
      "a smaller model");
}

TEST(MemoryPlanTest, AskedForIsGivenOrRefused) {
  MemoryNeeds needs = makeNeeds();
  std::vector<MemoryLimit> limits = {{3 * GiB, "on this machine"}};
  // No reserve, and larger than is wanted.
  needs.kvMemory = 896 * MiB + 5;
  EXPECT_EQ(plan(needs, limits).kvBlocks, 896u);
  needs.wantedTokens = 16;
  EXPECT_TRUE(plan(needs, limits).warnings.empty());
  needs.kvMemory = 897 * MiB;
  EXPECT_EQ(
      error(needs, limits),
      "does not fit into the 3 GiB of memory that are available on this "
      "machine: weights 2 GiB, KV cache 897 MiB (14352 tokens), workspace "
      "100 MiB, logits 18 MiB, program 10 MiB; give --kv-memory at most "
      "939524096 (896 "
      "MiB)");
  needs.kvMemory = UINT64_MAX;
  EXPECT_NE(error(needs, limits).find("; give --kv-memory at most 939524096"),
            std::string::npos);
  needs.kvMemory = MiB - 1;
  EXPECT_EQ(error(needs, limits),
            "--kv-memory of 1024 KiB is too small for one block of the KV "
            "cache; give at least 1048576 (1 MiB)");
  needs.kvMemory = 10 * MiB;
  needs.requiredTokens = 161;
  EXPECT_EQ(error(needs, limits),
            "--kv-memory of 10 MiB holds 160 tokens, but 161 are needed; give "
            "at least 11534336 (11 MiB)");
}

TEST(MemoryPlanTest, WeightsThatDoNotFitAreReadAgainOrRefused) {
  MemoryNeeds needs = makeNeeds();
  std::vector<MemoryLimit> limits = {{GiB, "on this machine"},
                                     {512 * MiB, "on NUMA node 0"}};
  MemoryPlan streaming = plan(needs, limits);
  ASSERT_EQ(streaming.warnings.size(), 2u);
  EXPECT_EQ(streaming.warnings[0],
            "the weights of 2 GiB, beside buffers of 128 MiB, do not fit into "
            "the 1 GiB of memory that are available on this machine, so parts "
            "of them may be read from the file again and again; use a smaller "
            "model if it is slow");
  EXPECT_EQ(streaming.kvBlocks, 512u - 128 - 128);

  needs.weightsCopied = true;
  EXPECT_NE(error(needs, limits).find("; use --weights=mapped, which"),
            std::string::npos);
  needs.weightsCopied = false;
  limits = {{GiB, "below the address space limit (ulimit -v)",
             /*countsMappedFiles=*/true}};
  EXPECT_NE(error(needs, limits)
                .find("GiB of memory that are available below "
                      "the address space limit (ulimit -v): "),
            std::string::npos);
  needs.wideWeights = true;
  EXPECT_NE(error(needs, limits)
                .find("; compile the model with --dtype=bf16, for smaller"),
            std::string::npos);
}

TEST(MemoryPlanTest, WideKVCacheNamesTheOptionOfTheCompiler) {
  MemoryNeeds needs = makeNeeds();
  needs.requiredTokens = uint64_t{1} << 40;
  const std::vector<MemoryLimit> limits = {{GiB, "on this machine"}};
  EXPECT_TRUE(error(needs, limits).ends_with("; ask for fewer tokens"));
  needs.wideKVCache = true;
  EXPECT_TRUE(error(needs, limits)
                  .ends_with("; ask for fewer tokens, or compile the model "
                             "with --kv-dtype=bf16, for a smaller KV cache"));
}

TEST(MemoryPlanTest, BuffersThatDoNotFitNameTheOptionOfTheCompiler) {
  MemoryNeeds needs = makeNeeds();
  needs.workspace = 2 * GiB;
  EXPECT_NE(error(needs, {{GiB, "on this machine"}})
                .find("; compile the model with a smaller "
                      "--max-tokens-per-step"),
            std::string::npos);
}

/// Four ranks, two on each of the nodes 0 and 1, with half a gibibyte of
/// weights each and another half that all read.
static MemoryNeeds makeNeedsOfRanks() {
  MemoryNeeds needs;
  needs.ranks = 4;
  needs.nodes = {0, 0, 1, 1};
  needs.weights = GiB / 2;
  needs.sharedWeights = GiB / 2;
  needs.workspace = 100 * MiB;
  needs.logits = 18 * MiB;
  needs.program = 10 * MiB;
  needs.exchange = 4 * MiB;
  needs.kvBlock = MiB / 4;
  needs.wantedTokens = 16 * 1024;
  return needs;
}

TEST(MemoryPlanTest, RanksCountTogetherOnTheirMachine) {
  MemoryNeeds needs = makeNeedsOfRanks();
  needs.requiredTokens = needs.wantedTokens;
  const uint64_t all = 5 * GiB / 2 + 4 * 128 * MiB + 4 * MiB + GiB;
  for (const char *where : {"on this machine", "in the cgroup limit of F"}) {
    EXPECT_EQ(plan(needs, {{all, where}}).kvBlocks, 1024u);
    MemoryNeeds copied = needs;
    copied.weightsCopied = true;
    EXPECT_EQ(plan(copied, {{all, where}}).kvBlocks, 1024u);
    EXPECT_EQ(error(copied, {{all - 1, where}}),
              "does not fit into the 4.004 GiB of memory that are available " +
                  std::string(where) +
                  ": weights 2.5 GiB, KV cache 1 GiB (16384 tokens), workspace "
                  "400 MiB, logits 72 MiB, program 40 MiB, exchange between "
                  "ranks 4 MiB; use --weights=mapped, which makes no copy of "
                  "the weights");
  }
  // The option is about all ranks.
  needs.requiredTokens = 0;
  needs.kvMemory = 896 * MiB;
  EXPECT_EQ(plan(needs, {}).kvBlocks, 896u);
}

TEST(MemoryPlanTest, RanksOfOtherHostsShareWhatIsAskedFor) {
  MemoryNeeds needs = makeNeedsOfRanks();
  needs.ranks = 2;
  needs.nodes = {0, 0};
  needs.hosts = 2;
  needs.host = 1;
  needs.weightsCopied = true;
  needs.kvMemory = 896 * MiB;
  EXPECT_EQ(plan(needs, {}).kvBlocks, 896u);
  EXPECT_NE(
      error(needs,
            {{.available = GiB, .where = "on NUMA node 0", .numaNode = 0}})
          .find("on NUMA node 0 for ranks 2, 3: "),
      std::string::npos);
  needs.requiredTokens = needs.wantedTokens;
  EXPECT_NE(error(needs, {}).find("give at least 1073741824 (1 GiB)"),
            std::string::npos);
}

TEST(MemoryPlanTest, ANodeHasRoomForTheRanksThatAreBoundToIt) {
  MemoryNeeds needs = makeNeedsOfRanks();
  needs.weightsCopied = true;
  needs.kvMemory = GiB;
  // What is shared is where rank 0 is.
  const uint64_t second = GiB + 2 * 128 * MiB + GiB / 2;
  const uint64_t first = second + GiB / 2 + 4 * MiB;
  auto onNodes = [](uint64_t zero, uint64_t one) {
    return std::vector<MemoryLimit>{
        {.available = zero, .where = "on NUMA node 0", .numaNode = 0},
        {.available = one, .where = "on NUMA node 1", .numaNode = 1},
        {.available = 0, .where = "on NUMA node 2", .numaNode = 2}};
  };
  EXPECT_EQ(plan(needs, onNodes(first, second)).kvBlocks, 1024u);
  EXPECT_TRUE(plan(needs, onNodes(first, second)).warnings.empty());
  EXPECT_EQ(error(needs, onNodes(first, second - MiB)),
            "does not fit into the 1.749 GiB of memory that are available on "
            "NUMA node 1 for ranks 2, 3: weights 1 GiB, KV cache 512 MiB "
            "(16384 tokens), workspace 200 MiB, logits 36 MiB, program 20 MiB; "
            "give --kv-memory at most 1071644672 (1022 MiB)");
  // The option that was named makes it fit.
  needs.kvMemory = 1071644672;
  EXPECT_EQ(plan(needs, onNodes(first, second - MiB)).kvBlocks, 1022u);
  EXPECT_NE(
      error(needs, onNodes(GiB / 2, second))
          .find("available on NUMA node 0 for ranks 0, 1: weights 1.5 GiB"),
      std::string::npos);
  EXPECT_NE(error(needs, onNodes(first, GiB))
                .find("; use --weights=mapped, which makes no copy"),
            std::string::npos);
  needs.kvMemory.reset();
  EXPECT_EQ(plan(needs, onNodes(first, second)).kvBlocks, 1024u - 2 * 256);
}

TEST(MemoryPlanTest, TheAddressSpaceIsOfEachProcess) {
  MemoryNeeds needs = makeNeedsOfRanks();
  needs.kvMemory = GiB;
  needs.stacks = 8 * MiB;
  const uint64_t one = GiB + 128 * MiB + 8 * MiB + 4 * MiB + GiB / 4;
  const std::string where = "below the address space limit (ulimit -v)";
  EXPECT_EQ(plan(needs, {{one, where, /*countsMappedFiles=*/true}}).kvBlocks,
            1024u);
  EXPECT_EQ(
      error(needs, {{one - MiB, where, /*countsMappedFiles=*/true}}),
      "does not fit into the 1.386 GiB of memory that are available below "
      "the address space limit (ulimit -v) for each rank: weights 1 GiB, "
      "KV cache 256 MiB (16384 tokens), workspace 100 MiB, logits 18 MiB, "
      "program 18 MiB, exchange between ranks 4 MiB; give --kv-memory at "
      "most 1069547520 (1020 MiB)");
}
