//===- KVCacheTest.cpp - Paged keys and values ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/KVCache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <set>

using namespace sandwich;

static constexpr uint64_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

/// Makes every table ready, as a step does.
static Status reserve(KVCache &cache,
                      std::span<const KVCache::Append> appends) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<KVCache::BlockCopy> copies,
                            cache.reserve(appends));
  for (KVCache::BlockCopy copy : copies)
    cache.copy(copy);
  return {};
}

/// Makes room for one sequence's first `blocks` blocks.
static Status grow(KVCache &cache, std::vector<int32_t> &table,
                   uint64_t blocks) {
  uint64_t tokens = table.size() * blockTokens;
  KVCache::Append append{&table, tokens, blocks * blockTokens - tokens};
  return reserve(cache, {&append, 1});
}

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
  ASSERT_TRUE(grow(*cache, first, 2));
  ASSERT_TRUE(grow(*cache, second, 3));
  std::set<int32_t> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  EXPECT_EQ(all, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cache->freeBlocks(), 0u);
}

TEST(KVCacheTest, FullIsAnErrorThatChangesNothing) {
  Result<KVCache> cache = KVCache::create(128, 3);
  ASSERT_TRUE(cache);
  std::vector<int32_t> table;
  ASSERT_TRUE(grow(*cache, table, 1));
  Status status = grow(*cache, table, 4);
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
  ASSERT_TRUE(grow(*cache, table, 3));
  cache->shrink(table, 1);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(cache->freeBlocks(), 2u);
  std::vector<int32_t> other;
  ASSERT_TRUE(grow(*cache, other, 2));
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

TEST(KVCacheTest, WhoWritesIntoASharedBlockCopiesIt) {
  Result<KVCache> cache = KVCache::create(128, 4);
  ASSERT_TRUE(cache);
  auto *bytes = static_cast<char *>(cache->data());
  std::vector<int32_t> first;
  KVCache::Append append{&first, 0, blockTokens + 5};
  ASSERT_TRUE(reserve(*cache, {&append, 1}));
  std::memset(bytes, 'a', 2 * 128);
  std::vector<int32_t> fork = cache->share(first, 2);
  EXPECT_EQ(fork, first);
  EXPECT_EQ(cache->freeBlocks(), 2u);

  append = {&fork, blockTokens + 5, 1};
  ASSERT_TRUE(reserve(*cache, {&append, 1}));
  EXPECT_EQ(fork[0], first[0]);
  ASSERT_NE(fork[1], first[1]);
  EXPECT_EQ(std::memcmp(bytes + fork[1] * 128, bytes + first[1] * 128, 128), 0);
  EXPECT_EQ(cache->freeBlocks(), 1u);

  // The block is the first table's alone now.
  append = {&first, blockTokens + 5, 1};
  std::vector<int32_t> before = first;
  ASSERT_TRUE(reserve(*cache, {&append, 1}));
  EXPECT_EQ(first, before);
  cache->shrink(first, 0);
  EXPECT_EQ(cache->freeBlocks(), 2u);
  cache->shrink(fork, 0);
  EXPECT_EQ(cache->freeBlocks(), 4u);
}

TEST(KVCacheTest, TheLastOfSeveralWritersNeedsNoCopy) {
  Result<KVCache> cache = KVCache::create(128, 3);
  ASSERT_TRUE(cache);
  std::vector<int32_t> tables[3];
  KVCache::Append append{&tables[0], 0, 3};
  ASSERT_TRUE(reserve(*cache, {&append, 1}));
  tables[1] = cache->share(tables[0], 1);
  tables[2] = cache->share(tables[0], 1);
  KVCache::Append appends[] = {
      {&tables[0], 3, 1}, {&tables[1], 3, 1}, {&tables[2], 3, 1}};
  ASSERT_TRUE(reserve(*cache, appends));
  EXPECT_EQ((std::set<int32_t>{tables[0][0], tables[1][0], tables[2][0]}),
            (std::set<int32_t>{0, 1, 2}));
}

TEST(KVCacheTest, FullWhileCopyingChangesNothing) {
  Result<KVCache> cache = KVCache::create(128, 3);
  ASSERT_TRUE(cache);
  std::vector<int32_t> first;
  KVCache::Append append{&first, 0, 2 * blockTokens - 1};
  ASSERT_TRUE(reserve(*cache, {&append, 1}));
  std::vector<int32_t> fork = cache->share(first, 2);
  std::vector<int32_t> other;
  // The fork would copy a block, and the other table needs one, too.
  KVCache::Append appends[] = {{&fork, 2 * blockTokens - 1, 1}, {&other, 0, 1}};
  Status status = reserve(*cache, appends);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "the KV cache is full: 2 more blocks are needed, 1 of 3 are free");
  EXPECT_EQ(fork, first);
  EXPECT_TRUE(other.empty());
  ASSERT_TRUE(reserve(*cache, {appends, 1}));
  EXPECT_NE(fork[1], first[1]);
  EXPECT_EQ(cache->freeBlocks(), 0u);
}

namespace {
/// Sequences whose tokens are written into the cache's blocks as a phase would,
/// and remembered beside it.
class Model {
public:
  Model(KVCache &cache, unsigned seed) : cache(cache), generator(seed) {}

  void step() {
    switch (random(7)) {
    case 0:
      if (sequences.size() < 12)
        sequences.emplace_back();
      break;
    case 1:
      if (!sequences.empty() && sequences.size() < 12) {
        const Sequence &original = pick();
        sequences.push_back(
            {original.tokens,
             cache.share(original.table,
                         KVCache::blocksFor(original.tokens.size()))});
      }
      break;
    case 2:
      if (!sequences.empty()) {
        Sequence &sequence = pick();
        sequence.tokens.resize(random(sequence.tokens.size() + 1));
        cache.shrink(sequence.table,
                     KVCache::blocksFor(sequence.tokens.size()));
      }
      break;
    case 3:
      if (!sequences.empty()) {
        size_t index = random(sequences.size());
        cache.shrink(sequences[index].table, 0);
        sequences.erase(sequences.begin() + static_cast<long>(index));
      }
      break;
    default:
      append();
    }
    check();
  }

  void end() {
    for (Sequence &sequence : sequences)
      cache.shrink(sequence.table, 0);
    EXPECT_EQ(cache.freeBlocks(), cache.blockCount());
  }

private:
  struct Sequence {
    std::vector<uint32_t> tokens;
    std::vector<int32_t> table;
  };

  size_t random(size_t limit) { return generator() % limit; }
  Sequence &pick() { return sequences[random(sequences.size())]; }
  uint32_t *slot(const Sequence &sequence, size_t position) {
    return static_cast<uint32_t *>(cache.data()) +
           static_cast<size_t>(sequence.table[position / blockTokens]) *
               blockTokens +
           position % blockTokens;
  }

  /// To some of the sequences at once.
  void append() {
    std::vector<KVCache::Append> appends;
    std::vector<Sequence *> written;
    size_t tokens = 1 + random(random(4) ? 3 : 3 * blockTokens);
    for (Sequence &sequence : sequences)
      if (random(2)) {
        appends.push_back({&sequence.table, sequence.tokens.size(), tokens});
        written.push_back(&sequence);
      }
    std::vector<std::vector<int32_t>> before;
    for (const Sequence &sequence : sequences)
      before.push_back(sequence.table);
    uint64_t freeBefore = cache.freeBlocks();
    bool alone = appends.size() == 1;
    bool room = alone && cache.hasRoom(appends[0]);
    bool reserved = static_cast<bool>(reserve(cache, appends));
    EXPECT_TRUE(!alone || room == reserved);
    if (!reserved) {
      ++refused;
      for (size_t i = 0; i < sequences.size(); ++i)
        EXPECT_EQ(sequences[i].table, before[i]);
      EXPECT_EQ(cache.freeBlocks(), freeBefore);
      return;
    }
    for (Sequence *sequence : written)
      for (size_t i = 0; i < tokens; ++i) {
        sequence->tokens.push_back(static_cast<uint32_t>(generator()));
        *slot(*sequence, sequence->tokens.size() - 1) = sequence->tokens.back();
      }
  }

  void check() {
    std::set<int32_t> used;
    for (const Sequence &sequence : sequences) {
      used.insert(sequence.table.begin(), sequence.table.end());
      for (size_t i = 0; i < sequence.tokens.size(); ++i)
        ASSERT_EQ(*slot(sequence, i), sequence.tokens[i]) << "token " << i;
    }
    ASSERT_EQ(cache.freeBlocks(), cache.blockCount() - used.size());
  }

  KVCache &cache;
  std::mt19937_64 generator;
  std::vector<Sequence> sequences;

public:
  unsigned refused = 0;
};
} // namespace

TEST(KVCacheTest, AgreesWithAModelWhateverIsDone) {
  unsigned refused = 0;
  for (unsigned seed = 0; seed < 20 && !HasFatalFailure(); ++seed) {
    Result<KVCache> cache = KVCache::create(blockTokens * sizeof(uint32_t), 40);
    ASSERT_TRUE(cache);
    Model model(*cache, seed);
    for (int i = 0; i < 1000 && !HasFatalFailure(); ++i)
      model.step();
    model.end();
    refused += model.refused;
  }
  // Full caches are among what was tested.
  EXPECT_GT(refused, 100u);
}
