//===- ModelMemoryTest.cpp - What a model's ranks keep in memory ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/ModelMemory.h"

#include "PaperMachines.h"

#include <gtest/gtest.h>

using namespace sandwich;
using namespace sandwich::test;

static constexpr double mebi = 1 << 20;

TEST(ModelMemory, IsThatOfAnArtifact) {
  // As docs/Memory.md tells of the 1.3B model: weights of 2.468 GiB, workspace
  // of 11.63 MiB, logits of 62.5 MiB.
  ModelMemoryOptions options{.contextTokens = 4096, .stepTokens = 512};
  const RankMemory alone = memoryOfRank(llama1B(2), options, 1);
  EXPECT_NEAR((alone.weights + alone.commonWeights) / mebi, 2.468 * 1024,
              0.001 * 2.468 * 1024);
  EXPECT_GT(alone.buffers, (11.63 + 62.5) * mebi);
  EXPECT_LT(alone.buffers, 1.5 * (11.63 + 62.5) * mebi);
  // Keys and values of 24 layers, 16 heads of 128 elements and 2 bytes.
  EXPECT_EQ(alone.kvCache, 4096. * 24 * 2 * 16 * 128 * 2);
}

TEST(ModelMemory, RanksDivideWhatTheyDivide) {
  ModelMemoryOptions options{.contextTokens = 100, .stepTokens = 512};
  const ModelWork work = llama1B(2);
  const RankMemory one = memoryOfRank(work, options, 1);
  const RankMemory four = memoryOfRank(work, options, 4);
  EXPECT_DOUBLE_EQ(four.weights, one.weights / 4);
  EXPECT_EQ(four.commonWeights, one.commonWeights);
  // Blocks have 16 tokens.
  EXPECT_EQ(one.kvCache, 112. * 24 * 2 * 16 * 128 * 2);
  EXPECT_DOUBLE_EQ(four.kvCache, one.kvCache / 4);
  const std::vector<RankBytes> bytes = bytesOfRanks(four, 4);
  ASSERT_EQ(bytes.size(), 4u);
  EXPECT_EQ(bytes[0].weights, four.weights + four.commonWeights);
  EXPECT_EQ(bytes[3].weights, four.weights);
  EXPECT_EQ(bytes[3].others, four.kvCache + four.buffers);
}

TEST(ModelMemory, OneRankHasATiedTableOnce) {
  ModelMemoryOptions options{.contextTokens = 16, .stepTokens = 512};
  const ModelWork work = llama160M(4);
  const double table = work.logitWeights() * 4;
  const RankMemory apart = memoryOfRank(work, options, 1);
  const RankMemory apartOfTwo = memoryOfRank(work, options, 2);
  options.tiedEmbeddings = true;
  EXPECT_DOUBLE_EQ(apart.weights - memoryOfRank(work, options, 1).weights,
                   table);
  // Several have shards beside the table.
  EXPECT_DOUBLE_EQ(memoryOfRank(work, options, 2).weights, apartOfTwo.weights);
}

TEST(ModelMemory, AShortageIsToldWithItsNumbers) {
  RankMemory memory;
  memory.weights = 2048 * mebi;
  memory.commonWeights = 512 * mebi;
  memory.kvCache = 1024 * mebi;
  memory.buffers = 64 * mebi;
  memory.contextTokens = 4096;
  MemoryShortage shortage{{0}, 1024 * mebi, 1, 3648 * mebi};
  EXPECT_EQ(describe(shortage, memory, 2),
            "2 processes: 1 rank needs 3.562 GiB (weights 2 GiB and 512 MiB in "
            "common, KV cache 1 GiB for 4096 tokens, buffers 64 MiB), but numa "
            "0 has 1 GiB");
  shortage = {{0, 2}, 5120 * mebi, 2, 7296 * mebi};
  EXPECT_EQ(describe(shortage, memory, 2),
            "2 processes: 2 ranks need 7.125 GiB (each weights 2 GiB and 512 "
            "MiB in common, KV cache 1 GiB for 4096 tokens, buffers 64 MiB), "
            "but numa 0,2 have 5 GiB");
  // Made-up sizes have no end.
  memory.weights = 1e40;
  EXPECT_FALSE(memory.describe().empty());
}
