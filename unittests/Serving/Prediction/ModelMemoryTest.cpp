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
  // The bundled model, as `sandwich-run inspect --json` tells of it.
  ModelWork work;
  work.layers = 5;
  work.hiddenSize = 256;
  work.intermediateSize = 512;
  work.queryHeads = 4;
  work.keyValueHeads = 2;
  work.headDim = 64;
  work.vocabulary = 3072;
  const ModelMemoryOptions options{
      .contextTokens = 512, .stepTokens = 512, .tiedEmbeddings = true};
  const RankMemory one = memoryOfRank(work, options, 1);
  // Each weight begins at a multiple of some bytes.
  constexpr double weightsFile = 7488512;
  EXPECT_NEAR(one.weights + one.commonWeights, weightsFile,
              0.002 * weightsFile);
  const RankMemory two = memoryOfRank(work, options, 2);
  EXPECT_EQ(two.commonWeights, 2097152);
  EXPECT_EQ(two.weights, 4194304);
  constexpr double blockBytes = 20480, blockTokens = 16;
  EXPECT_EQ(two.kvCache, 512 / blockTokens * blockBytes);
  EXPECT_EQ(one.kvCache, 2 * two.kvCache);
  constexpr double workspace = 3440640, logits = 512. * 3072 * 4;
  EXPECT_GT(one.buffers, workspace + logits);
  EXPECT_LT(one.buffers, 3 * (workspace + logits));
}

TEST(ModelMemory, RanksDivideWhatTheyDivide) {
  ModelMemoryOptions options{.contextTokens = 100, .stepTokens = 512};
  const ModelWork work = llama1B(2);
  const RankMemory one = memoryOfRank(work, options, 1);
  const RankMemory four = memoryOfRank(work, options, 4);
  EXPECT_NEAR(four.weights, one.weights / 4, 2 * mebi);
  EXPECT_NEAR(four.commonWeights, one.commonWeights, 2 * mebi);
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
