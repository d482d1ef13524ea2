//===- BlockPoolTest.cpp - Who has which KV cache blocks ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/BlockPool.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

using namespace sandwich;

static constexpr uint64_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

static std::unique_ptr<BlockPool> makePool(uint64_t blocks,
                                           bool prefixCache = true) {
  Result<std::unique_ptr<BlockPool>> pool =
      BlockPool::create(blocks, {.prefixCache = prefixCache,
                                 .hashKey = std::array<unsigned char, 16>{}});
  EXPECT_TRUE(pool);
  return *std::move(pool);
}

/// Tokens `first`, `first + 1` and so on.
static std::vector<int32_t> text(size_t length, int32_t first = 0) {
  std::vector<int32_t> tokens(length);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// What a step does to one sequence.
static Status feed(Sequence &sequence, std::span<const int32_t> tokens) {
  BlockPool::Append append{&sequence, tokens.size()};
  SANDWICH_RETURN_IF_ERROR(sequence.pool().reserve({&append, 1}));
  sequence.pool().copiesMade(sequence.pool().pendingCopies().size());
  sequence.append(tokens);
  return {};
}

static std::vector<int32_t> blocksOf(const Sequence &sequence) {
  return {sequence.blocks().begin(), sequence.blocks().end()};
}

TEST(BlockPoolTest, CountsBlocksOfTokens) {
  EXPECT_EQ(BlockPool::blocksFor(0), 0u);
  EXPECT_EQ(BlockPool::blocksFor(1), 1u);
  EXPECT_EQ(BlockPool::blocksFor(blockTokens), 1u);
  EXPECT_EQ(BlockPool::blocksFor(blockTokens + 1), 2u);
  EXPECT_GT(BlockPool::blocksFor(std::numeric_limits<uint64_t>::max()), 1u);
}

TEST(BlockPoolTest, RefusesWhatCannotBeNumbered) {
  EXPECT_FALSE(BlockPool::create(uint64_t{1} << 31));
  EXPECT_TRUE(BlockPool::create((uint64_t{1} << 31) - 1));
}

TEST(BlockPoolTest, GivesEveryBlockOnce) {
  auto pool = makePool(5);
  Sequence first(*pool), second(*pool);
  ASSERT_TRUE(feed(first, text(2 * blockTokens)));
  ASSERT_TRUE(feed(second, text(3 * blockTokens, 1000)));
  std::set<int32_t> all(first.blocks().begin(), first.blocks().end());
  all.insert(second.blocks().begin(), second.blocks().end());
  EXPECT_EQ(all, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool->freeBlocks(), 0u);
}

TEST(BlockPoolTest, FullIsAnErrorThatChangesNothing) {
  auto pool = makePool(3);
  Sequence sequence(*pool);
  ASSERT_TRUE(feed(sequence, text(blockTokens)));
  Status status = feed(sequence, text(3 * blockTokens, 100));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::CacheFull);
  EXPECT_EQ(status.error().message,
            "the KV cache is full: 3 more blocks are needed, 2 of 3 are free");
  EXPECT_EQ(sequence.blocks().size(), 1u);
  EXPECT_EQ(sequence.length(), blockTokens);
  EXPECT_EQ(pool->freeBlocks(), 2u);
}

TEST(BlockPoolTest, ReservingTwiceTakesNothingMore) {
  auto pool = makePool(3);
  Sequence sequence(*pool);
  BlockPool::Append append{&sequence, blockTokens + 1};
  EXPECT_EQ(pool->blocksNeeded(append), 2u);
  ASSERT_TRUE(pool->reserve({&append, 1}));
  EXPECT_EQ(pool->blocksNeeded(append), 0u);
  ASSERT_TRUE(pool->reserve({&append, 1}));
  EXPECT_EQ(pool->freeBlocks(), 1u);
  append.newTokens = 4 * blockTokens;
  EXPECT_FALSE(pool->canReserve(append));
  pool->releaseUnused(sequence);
  EXPECT_EQ(pool->freeBlocks(), 3u);
}

TEST(BlockPoolTest, WhoWritesIntoASharedBlockCopiesIt) {
  auto pool = makePool(4);
  Sequence first(*pool);
  ASSERT_TRUE(feed(first, text(blockTokens + 5)));
  Sequence fork = first.fork();
  EXPECT_EQ(blocksOf(fork), blocksOf(first));
  EXPECT_EQ(pool->freeBlocks(), 2u);

  BlockPool::Append append{&fork, 1};
  EXPECT_EQ(pool->blocksNeeded(append), 1u);
  ASSERT_TRUE(pool->reserve({&append, 1}));
  EXPECT_EQ(fork.blocks()[0], first.blocks()[0]);
  ASSERT_EQ(pool->pendingCopies().size(), 1u);
  EXPECT_EQ(pool->pendingCopies()[0],
            (BlockCopy{first.blocks()[1], fork.blocks()[1]}));
  EXPECT_NE(fork.blocks()[1], first.blocks()[1]);
  // They stay until they are made, whatever else is reserved.
  ASSERT_TRUE(pool->reserve({&append, 1}));
  EXPECT_EQ(pool->pendingCopies().size(), 1u);
  pool->copiesMade(pool->pendingCopies().size());
  EXPECT_TRUE(pool->pendingCopies().empty());

  // The block is the first sequence's alone now.
  append = {&first, 1};
  EXPECT_EQ(pool->blocksNeeded(append), 0u);
  ASSERT_TRUE(pool->reserve({&append, 1}));
  EXPECT_TRUE(pool->pendingCopies().empty());
}

TEST(BlockPoolTest, TheLastOfSeveralWritersNeedsNoCopy) {
  auto pool = makePool(3);
  Sequence first(*pool);
  ASSERT_TRUE(feed(first, text(3)));
  Sequence second = first.fork(), third = first.fork();
  BlockPool::Append appends[] = {{&first, 1}, {&second, 1}, {&third, 1}};
  ASSERT_TRUE(pool->reserve(appends));
  EXPECT_EQ((std::set<int32_t>{first.blocks()[0], second.blocks()[0],
                               third.blocks()[0]}),
            (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(pool->pendingCopies().size(), 2u);
}

TEST(BlockPoolTest, FullWhileCopyingChangesNothing) {
  auto pool = makePool(3);
  Sequence first(*pool);
  ASSERT_TRUE(feed(first, text(2 * blockTokens - 1)));
  Sequence fork = first.fork(), other(*pool);
  // The fork would copy a block, and the other sequence needs one, too.
  BlockPool::Append appends[] = {{&fork, 1}, {&other, 1}};
  Status status = pool->reserve(appends);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "the KV cache is full: 2 more blocks are needed, 1 of 3 are free");
  EXPECT_EQ(blocksOf(fork), blocksOf(first));
  EXPECT_TRUE(other.blocks().empty());
  EXPECT_TRUE(pool->pendingCopies().empty());
  ASSERT_TRUE(pool->reserve({appends, 1}));
  EXPECT_EQ(pool->freeBlocks(), 0u);
}

TEST(BlockPoolTest, FindsTheLongestPrefixButNeverAll) {
  auto pool = makePool(8);
  const std::vector<int32_t> tokens = text(3 * blockTokens + 5);
  {
    Sequence sequence(*pool);
    ASSERT_TRUE(feed(sequence, tokens));
  }
  EXPECT_EQ(pool->freeBlocks(), 8u);
  EXPECT_EQ(pool->cachedBlocks(), 3u);

  Sequence whole(*pool), half(*pool), exact(*pool), changed(*pool);
  EXPECT_EQ(whole.claimPrefix(tokens), 3 * blockTokens);
  EXPECT_EQ(whole.length(), 3 * blockTokens);
  EXPECT_TRUE(std::ranges::equal(whole.tokens(),
                                 std::span(tokens).first(3 * blockTokens)));
  EXPECT_EQ(half.claimPrefix(std::span(tokens).first(2 * blockTokens + 1)),
            2 * blockTokens);
  EXPECT_EQ(exact.claimPrefix(std::span(tokens).first(2 * blockTokens)),
            blockTokens);
  std::vector<int32_t> other = tokens;
  other[blockTokens + 3] = 77;
  EXPECT_EQ(changed.claimPrefix(other), blockTokens);
  EXPECT_EQ(changed.blocks()[0], whole.blocks()[0]);
  EXPECT_EQ(pool->freeBlocks(), 5u);

  EXPECT_EQ(pool->statistics().promptTokensQueried,
            2 * tokens.size() + 4 * blockTokens + 1);
  EXPECT_EQ(pool->statistics().promptTokensHit, 7 * blockTokens);
}

TEST(BlockPoolTest, WhatASaltKeepsApartIsNotFound) {
  auto pool = makePool(8);
  const std::vector<int32_t> tokens = text(2 * blockTokens + 1);
  Sequence tenant(*pool), same(*pool), other(*pool), unsalted(*pool);
  EXPECT_EQ(tenant.claimPrefix(tokens, 5), 0u);
  ASSERT_TRUE(feed(tenant, tokens));
  EXPECT_EQ(same.claimPrefix(tokens, 5), 2 * blockTokens);
  EXPECT_EQ(other.claimPrefix(tokens, 6), 0u);
  EXPECT_EQ(unsalted.claimPrefix(tokens), 0u);
}

TEST(BlockPoolTest, SameTokensAfterOthersAreOtherContents) {
  auto pool = makePool(8);
  std::vector<int32_t> tokens = text(blockTokens, 100);
  const std::vector<int32_t> second = text(blockTokens + 1);
  tokens.insert(tokens.end(), second.begin(), second.end());
  Sequence first(*pool), other(*pool);
  ASSERT_TRUE(feed(first, tokens));
  EXPECT_EQ(other.claimPrefix(second), 0u);
}

TEST(BlockPoolTest, WithoutAPrefixCacheNothingIsKept) {
  auto pool = makePool(4, /*prefixCache=*/false);
  const std::vector<int32_t> tokens = text(2 * blockTokens + 1);
  Sequence first(*pool), second(*pool);
  ASSERT_TRUE(feed(first, tokens));
  EXPECT_EQ(pool->cachedBlocks(), 0u);
  EXPECT_EQ(second.claimPrefix(tokens), 0u);
  first.clear();
  EXPECT_EQ(pool->freeBlocks(), 4u);
}

TEST(BlockPoolTest, EvictsWhatIsUnusedForLongest) {
  auto pool = makePool(4);
  const std::vector<int32_t> a = text(2 * blockTokens + 1, 1000);
  const std::vector<int32_t> b = text(blockTokens + 1, 2000);
  auto found = [&](const std::vector<int32_t> &tokens) {
    return Sequence(*pool).claimPrefix(tokens);
  };
  {
    Sequence first(*pool), second(*pool);
    ASSERT_TRUE(feed(first, std::span(a).first(2 * blockTokens)));
    ASSERT_TRUE(feed(second, std::span(b).first(blockTokens)));
    second.clear();
  }
  // Each look is a use, so that the one of `b` makes that of `a` the older one.
  EXPECT_EQ(found(a), 2 * blockTokens);
  EXPECT_EQ(found(b), blockTokens);
  Sequence other(*pool);
  ASSERT_TRUE(feed(other, text(2 * blockTokens)));
  // Of a chain the end goes first.
  EXPECT_EQ(pool->statistics().evictions, 1u);
  EXPECT_EQ(found(a), blockTokens);
  EXPECT_EQ(found(b), blockTokens);
  ASSERT_TRUE(feed(other, text(2 * blockTokens, 100)));
  EXPECT_EQ(pool->statistics().evictions, 3u);
  EXPECT_EQ(found(a), 0u);
  EXPECT_EQ(pool->freeBlocks(), 0u);
}

TEST(BlockPoolTest, EvictsNothingThatIsUsed) {
  auto pool = makePool(3);
  const std::vector<int32_t> tokens = text(2 * blockTokens);
  Sequence first(*pool), second(*pool);
  ASSERT_TRUE(feed(first, tokens));
  EXPECT_FALSE(feed(second, text(2 * blockTokens, 500)));
  EXPECT_EQ(pool->cachedBlocks(), 2u);
  EXPECT_EQ(pool->statistics().evictions, 0u);
}

TEST(BlockPoolTest, TakesTheBlockThatHoldsTheSameAlready) {
  auto pool = makePool(4);
  const std::vector<int32_t> tokens = text(2 * blockTokens);
  Sequence first(*pool), second(*pool);
  ASSERT_TRUE(feed(first, std::span(tokens).first(blockTokens - 1)));
  ASSERT_TRUE(feed(second, std::span(tokens).first(blockTokens - 1)));
  EXPECT_EQ(pool->freeBlocks(), 2u);
  for (Sequence *sequence : {&first, &second})
    ASSERT_TRUE(feed(*sequence, std::span(tokens).subspan(blockTokens - 1)));
  EXPECT_EQ(blocksOf(first), blocksOf(second));
  EXPECT_EQ(pool->freeBlocks(), 2u);
  EXPECT_EQ(pool->statistics().duplicates, 2u);
}

TEST(BlockPoolTest, ACachedBlockLeavesTheCacheBeforeItIsOverwritten) {
  auto pool = makePool(4);
  const std::vector<int32_t> tokens = text(2 * blockTokens + 1);
  Sequence sequence(*pool);
  ASSERT_TRUE(feed(sequence, tokens));
  sequence.truncate(5);
  // Nothing is overwritten yet.
  EXPECT_EQ(Sequence(*pool).claimPrefix(tokens), 2 * blockTokens);
  const int32_t block = sequence.blocks()[0];
  BlockPool::Append append{&sequence, 1};
  ASSERT_TRUE(pool->reserve({&append, 1}));
  EXPECT_EQ(sequence.blocks()[0], block);
  EXPECT_EQ(Sequence(*pool).claimPrefix(tokens), 0u);
  // The block behind it waits for its eviction.
  EXPECT_EQ(pool->cachedBlocks(), 1u);
  EXPECT_EQ(pool->freeBlocks(), 3u);
}

TEST(BlockPoolTest, ACachedBlockThatOthersHaveIsCopied) {
  auto pool = makePool(4);
  const std::vector<int32_t> tokens = text(2 * blockTokens + 1);
  Sequence sequence(*pool), other(*pool);
  ASSERT_TRUE(feed(sequence, tokens));
  EXPECT_EQ(other.claimPrefix(tokens), 2 * blockTokens);
  sequence.truncate(5);
  ASSERT_TRUE(feed(sequence, text(1, 99)));
  EXPECT_NE(sequence.blocks()[0], other.blocks()[0]);
  EXPECT_EQ(Sequence(*pool).claimPrefix(tokens), 2 * blockTokens);
}

TEST(BlockPoolTest, AClearedPrefixCacheFindsNothingAndWorksOn) {
  auto pool = makePool(8);
  const std::vector<int32_t> tokens = text(3 * blockTokens);
  Sequence kept(*pool);
  {
    Sequence gone(*pool);
    ASSERT_TRUE(feed(gone, tokens));
    EXPECT_EQ(kept.claimPrefix(std::span(tokens).first(blockTokens + 1)),
              blockTokens);
  }
  pool->clearPrefixCache();
  EXPECT_EQ(pool->cachedBlocks(), 0u);
  EXPECT_EQ(pool->freeBlocks(), 7u);
  EXPECT_EQ(Sequence(*pool).claimPrefix(tokens), 0u);
  // What continues a block that is not known could not be found.
  ASSERT_TRUE(feed(kept, std::span(tokens).subspan(blockTokens)));
  EXPECT_EQ(pool->cachedBlocks(), 0u);
  kept.clear();
  EXPECT_EQ(pool->freeBlocks(), 8u);
  ASSERT_TRUE(feed(kept, tokens));
  EXPECT_EQ(pool->cachedBlocks(), 3u);
}

TEST(BlockPoolTest, SequencesMove) {
  auto pool = makePool(4);
  Sequence first(*pool);
  ASSERT_TRUE(feed(first, text(20)));
  Sequence second = std::move(first);
  EXPECT_EQ(second.length(), 20u);
  EXPECT_EQ(pool->freeBlocks(), 2u);
  second = Sequence(*pool);
  EXPECT_EQ(second.length(), 0u);
  EXPECT_EQ(pool->freeBlocks(), 4u);
}
