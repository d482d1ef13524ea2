//===- KVCacheTest.cpp - Paged keys and values ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/KVCache.h"

#include "Emulation.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace sandwich;

TEST(KVCacheTest, RefusesWhatCannotBeAddressed) {
  EXPECT_FALSE(KVCache::create(uint64_t{1} << 40, uint64_t{1} << 30));
  EXPECT_FALSE(KVCache::create(1, uint64_t{1} << 31));
  // Places of tokens are numbered in 32 bits.
  EXPECT_TRUE(KVCache::create(1, (uint64_t{1} << 27) - 1));
  EXPECT_FALSE(KVCache::create(1, uint64_t{1} << 27));
}

TEST(KVCacheTest, TakesNoMemoryBeforeItIsUsed) {
  // A terabyte is more than the machines that run this have. An emulator takes
  // memory of its own for each page.
  const uint64_t size = uint64_t{1} << (test::isEmulated() ? 34 : 40);
  Result<KVCache> cache = KVCache::create(uint64_t{1} << 20, size >> 20);
  ASSERT_TRUE(cache);
  auto *bytes = static_cast<unsigned char *>(cache->data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
  bytes[size - 1] = 1;
  EXPECT_EQ(bytes[size - 1], 1);
}

TEST(KVCacheTest, CopiesWholeBlocks) {
  constexpr uint64_t size = 192;
  Result<KVCache> cache = KVCache::create(size, 4);
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->blockCount(), 4u);
  EXPECT_EQ(cache->bytes().size(), 4 * size);
  auto *bytes = static_cast<unsigned char *>(cache->data());
  for (uint64_t i = 0; i < 4 * size; ++i)
    bytes[i] = static_cast<unsigned char>(i * 7);
  const std::vector<unsigned char> before(bytes, bytes + 4 * size);
  cache->copy({.from = 3, .to = 1});
  EXPECT_EQ(std::memcmp(bytes, before.data(), size), 0);
  EXPECT_EQ(std::memcmp(bytes + size, before.data() + 3 * size, size), 0);
  EXPECT_EQ(std::memcmp(bytes + 2 * size, before.data() + 2 * size, 2 * size),
            0);
}
