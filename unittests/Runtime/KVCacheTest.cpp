//===- KVCacheTest.cpp - Paged keys and values ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/KVCache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>

using namespace sandwich;

TEST(KVCacheTest, CountsBlocksOfTokens) {
  EXPECT_EQ(KVCache::blocksFor(0), 0u);
  EXPECT_EQ(KVCache::blocksFor(1), 1u);
  EXPECT_EQ(KVCache::blocksFor(SANDWICH_KV_BLOCK_TOKENS), 1u);
  EXPECT_EQ(KVCache::blocksFor(SANDWICH_KV_BLOCK_TOKENS + 1), 2u);
  EXPECT_GT(KVCache::blocksFor(std::numeric_limits<uint64_t>::max()), 1u);
}

TEST(KVCacheTest, GivesEveryBlockOnce) {
  Result<KVCache> cache = KVCache::create(128, 5);
  ASSERT_TRUE(cache);
  std::vector<int32_t> first;
  std::vector<int32_t> second;
  ASSERT_TRUE(cache->grow(first, 2));
  ASSERT_TRUE(cache->grow(second, 3));
  std::set<int32_t> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  EXPECT_EQ(all, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cache->freeBlocks(), 0u);
}

TEST(KVCacheTest, FullIsAnErrorThatChangesNothing) {
  Result<KVCache> cache = KVCache::create(128, 3);
  ASSERT_TRUE(cache);
  std::vector<int32_t> table;
  ASSERT_TRUE(cache->grow(table, 1));
  Status status = cache->grow(table, 4);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "the KV cache is full: 3 more blocks are needed, 2 of 3 are free");
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(cache->freeBlocks(), 2u);
}

TEST(KVCacheTest, TakesBlocksBack) {
  Result<KVCache> cache = KVCache::create(128, 3);
  ASSERT_TRUE(cache);
  std::vector<int32_t> table;
  ASSERT_TRUE(cache->grow(table, 3));
  cache->shrink(table, 1);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(cache->freeBlocks(), 2u);
  std::vector<int32_t> other;
  ASSERT_TRUE(cache->grow(other, 2));
  EXPECT_EQ(cache->freeBlocks(), 0u);
  EXPECT_NE(other[0], table[0]);
  EXPECT_NE(other[1], table[0]);
}

TEST(KVCacheTest, RefusesWhatCannotBeAddressed) {
  EXPECT_FALSE(KVCache::create(uint64_t{1} << 40, uint64_t{1} << 30));
  EXPECT_FALSE(KVCache::create(1, uint64_t{1} << 31));
}

TEST(KVCacheTest, TakesNoMemoryBeforeItIsUsed) {
  // A terabyte is more than the machines that run this have.
  Result<KVCache> cache = KVCache::create(uint64_t{1} << 20, uint64_t{1} << 20);
  ASSERT_TRUE(cache);
  auto *bytes = static_cast<unsigned char *>(cache->data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
  bytes[(uint64_t{1} << 40) - 1] = 1;
  EXPECT_EQ(bytes[(uint64_t{1} << 40) - 1], 1);
}
