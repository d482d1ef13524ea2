//===- BlockPoolModelTest.cpp - The block pool against a naive one --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/BlockPool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

using namespace sandwich;

static constexpr uint64_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

namespace {
using Tokens = std::vector<int32_t>;

/// All tokens up to the end of a block, and their salt.
using Prefix = std::pair<uint64_t, Tokens>;

/// A text of its own for each sequence, what the pool should keep in its cache,
/// and a memory in which tokens stand for their keys and values. Counts by
/// looking at everything.
class Model {
public:
  Model(uint64_t blocks, unsigned seed)
      : generator(seed), memory(blocks * blockTokens, -1) {
    pool = *BlockPool::create(blocks);
  }

  void step() {
    switch (random(10)) {
    case 0:
      if (texts.size() < 10)
        texts.emplace_back(*pool);
      break;
    case 1:
      if (!texts.empty() && texts.size() < 10) {
        Text &original = pick();
        texts.push_back(
            {original.sequence.fork(), original.expected, original.salt});
      }
      break;
    case 2:
      if (!texts.empty())
        truncate(pick(), /*end=*/false);
      break;
    case 3:
    case 4:
      if (!texts.empty()) {
        Text &text = pick();
        truncate(text, /*end=*/true);
        texts.remove_if([&](Text &each) { return &each == &text; });
      }
      break;
    case 5:
    case 6:
      if (texts.size() < 10)
        claim();
      break;
    default:
      runStep();
    }
    if (random(3000) == 0)
      clearCache();
    check();
  }

  void end() {
    texts.clear();
    EXPECT_EQ(pool->freeBlocks(), pool->blockCount());
  }

  uint64_t refused = 0;
  uint64_t hits = 0;
  BlockPoolStatistics statistics() const { return pool->statistics(); }

private:
  struct Text {
    explicit Text(BlockPool &pool) : sequence(pool) {}
    Text(Sequence sequence, Tokens expected, uint64_t salt)
        : sequence(std::move(sequence)), expected(std::move(expected)),
          salt(salt) {}
    Sequence sequence;
    Tokens expected;
    uint64_t salt = 0;
  };

  size_t random(size_t limit) { return generator() % limit; }
  Text &pick() {
    return *std::next(texts.begin(), static_cast<long>(random(texts.size())));
  }

  /// Mostly what other texts have at this place, too.
  int32_t nextToken(const Tokens &before) {
    const auto likely = static_cast<int32_t>(before.size() % 7);
    return random(40) ? likely : static_cast<int32_t>(random(3));
  }

  Prefix prefixOf(const Text &text, size_t blocks) const {
    return {text.salt, Tokens(text.expected.begin(),
                              text.expected.begin() +
                                  static_cast<long>(blocks * blockTokens))};
  }

  std::map<int32_t, unsigned> references() const {
    std::map<int32_t, unsigned> counts;
    for (const Text &text : texts)
      for (int32_t block : text.sequence.blocks())
        ++counts[block];
    return counts;
  }

  /// Blocks that `gone` had, in the order in which they were given back: what
  /// is in the cache and nobody has becomes idle.
  void becomeIdle(const Tokens &gone) {
    const auto used = references();
    for (int32_t block : gone)
      if (!used.contains(block) && contents.contains(block))
        idle.push_back(block);
  }

  void truncate(Text &text, bool end) {
    Tokens before(text.sequence.blocks().rbegin(),
                  text.sequence.blocks().rend());
    const size_t length = end ? 0 : random(text.expected.size() + 1);
    text.sequence.truncate(length);
    text.expected.resize(length);
    before.resize(before.size() - text.sequence.blocks().size());
    becomeIdle(before);
  }

  void claim() {
    texts.emplace_back(*pool);
    Text &text = texts.back();
    text.salt = random(8) ? 0 : 1;
    Tokens wanted;
    for (size_t length = random(6 * blockTokens); wanted.size() < length;)
      wanted.push_back(nextToken(wanted));
    size_t found = 0;
    while ((found + 1) * blockTokens < wanted.size()) {
      text.expected.assign(wanted.begin(),
                           wanted.begin() +
                               static_cast<long>((found + 1) * blockTokens));
      if (!findable.contains(prefixOf(text, found + 1)))
        break;
      ++found;
    }
    text.expected.assign(wanted.begin(),
                         wanted.begin() +
                             static_cast<long>(found * blockTokens));
    const BlockPool::Prefix prefix = pool->findPrefix(wanted, text.salt);
    const uint64_t free = pool->freeBlocks();
    ASSERT_EQ(prefix.tokens, found * blockTokens);
    ASSERT_EQ(text.sequence.claimPrefix(wanted, text.salt),
              found * blockTokens);
    ASSERT_EQ(pool->freeBlocks(), free - prefix.freeBlocks);
    hits += found;
    for (int32_t block : text.sequence.blocks())
      std::erase(idle, block);
  }

  void makeCopies() {
    for (BlockCopy copy : pool->pendingCopies())
      std::copy_n(memory.begin() + copy.from * long(blockTokens), blockTokens,
                  memory.begin() + copy.to * long(blockTokens));
    pool->copiesMade(pool->pendingCopies().size());
  }

  int32_t &slot(const Text &text, size_t position) {
    return memory[static_cast<size_t>(
                      text.sequence.blocks()[position / blockTokens]) *
                      blockTokens +
                  position % blockTokens];
  }

  /// Of some of the texts at once; may fail before or after it has written.
  void runStep() {
    std::vector<BlockPool::Append> appends;
    std::vector<Text *> written;
    const size_t tokens = 1 + random(random(4) ? 3 : 3 * blockTokens);
    for (Text &text : texts)
      if (random(2)) {
        appends.push_back({&text.sequence, tokens});
        written.push_back(&text);
      }
    if (!reserve(appends, written))
      return;
    const size_t outcome = random(12);
    if (outcome > 0)
      makeCopies();
    for (Text *text : written) {
      Tokens next = text->expected;
      for (size_t i = 0; i < tokens; ++i) {
        next.push_back(nextToken(next));
        if (outcome > 0)
          slot(*text, next.size() - 1) = next.back();
      }
      if (outcome > 1)
        append(*text, std::move(next));
    }
    if (outcome <= 1)
      for (Text *text : written)
        pool->releaseUnused(text->sequence);
  }

  bool reserve(const std::vector<BlockPool::Append> &appends,
               const std::vector<Text *> &written) {
    std::vector<Tokens> tables;
    auto used = references();
    const size_t usedBefore = used.size();
    uint64_t needed = 0;
    for (const Text *text : written) {
      const auto blocks = text->sequence.blocks();
      tables.emplace_back(blocks.begin(), blocks.end());
      needed +=
          BlockPool::blocksFor(text->expected.size() + appends[0].newTokens) -
          blocks.size();
      const size_t last = text->expected.size() / blockTokens;
      if (text->expected.size() % blockTokens && used[blocks[last]] > 1) {
        ++needed;
        --used[blocks[last]];
      }
    }
    const uint64_t free = pool->freeBlocks();
    if (appends.size() == 1) {
      EXPECT_EQ(pool->blocksNeeded(appends[0]), needed);
    }
    const bool reserved = static_cast<bool>(pool->reserve(appends));
    EXPECT_EQ(reserved, needed <= free);
    if (!reserved) {
      ++refused;
      for (size_t i = 0; i < written.size(); ++i)
        EXPECT_TRUE(
            std::ranges::equal(written[i]->sequence.blocks(), tables[i]));
      return false;
    }
    EXPECT_EQ(pool->freeBlocks(), free - needed);
    // Those that hold nothing go first, then those idle for longest.
    const uint64_t empty = pool->blockCount() - usedBefore - idle.size();
    for (uint64_t taken = empty; taken < needed; ++taken) {
      forget(idle.front());
      idle.erase(idle.begin());
      ++evictions;
    }
    for (const Text *text : written) {
      const size_t last = text->expected.size() / blockTokens;
      if (text->expected.size() % blockTokens) {
        EXPECT_EQ(references()[text->sequence.blocks()[last]], 1u);
        forget(text->sequence.blocks()[last]);
      }
    }
    return true;
  }

  /// `block` holds what is known no more. What continues it cannot be found,
  /// but stays in the cache.
  void forget(int32_t block) {
    auto known = contents.find(block);
    if (known == contents.end())
      return;
    const Prefix gone = known->second;
    contents.erase(known);
    auto itself = findable.find(gone);
    if (itself == findable.end() || itself->second != block)
      return;
    std::erase_if(findable, [&](const auto &entry) {
      const auto &[salt, tokens] = entry.first;
      return salt == gone.first && tokens.size() >= gone.second.size() &&
             std::equal(gone.second.begin(), gone.second.end(), tokens.begin());
    });
  }

  void append(Text &text, Tokens next) {
    const Tokens before(text.sequence.blocks().begin(),
                        text.sequence.blocks().end());
    const size_t full = text.expected.size() / blockTokens;
    text.sequence.append(std::span(next).subspan(text.expected.size()));
    text.expected = std::move(next);
    for (size_t i = full; i < text.expected.size() / blockTokens; ++i) {
      // Only what continues findable blocks is entered.
      if (i > 0) {
        auto parent = findable.find(prefixOf(text, i));
        if (parent == findable.end() ||
            parent->second != text.sequence.blocks()[i - 1])
          return;
      }
      auto [known, isNew] =
          findable.try_emplace(prefixOf(text, i + 1), before[i]);
      ASSERT_EQ(text.sequence.blocks()[i], known->second);
      if (isNew)
        contents[before[i]] = known->first;
      std::erase(idle, known->second);
    }
  }

  void clearCache() {
    pool->clearPrefixCache();
    contents.clear();
    findable.clear();
    idle.clear();
  }

  void check() {
    for (const Text &text : texts) {
      ASSERT_TRUE(std::ranges::equal(text.sequence.tokens(), text.expected));
      ASSERT_EQ(text.sequence.blocks().size(),
                BlockPool::blocksFor(text.expected.size()));
      if (!pool->pendingCopies().empty())
        continue;
      for (size_t i = 0; i < text.expected.size(); ++i)
        ASSERT_EQ(slot(text, i), text.expected[i]) << "token " << i;
    }
    ASSERT_EQ(pool->freeBlocks(), pool->blockCount() - references().size());
    ASSERT_EQ(pool->cachedBlocks(), contents.size());
    ASSERT_EQ(pool->statistics().evictions, evictions);
  }

  std::mt19937_64 generator;
  /// A token for each position of each block.
  Tokens memory;
  std::unique_ptr<BlockPool> pool;
  std::list<Text> texts;
  /// Of each block of the cache.
  std::map<int32_t, Prefix> contents;
  /// Those of them that a claim can reach.
  std::map<Prefix, int32_t> findable;
  /// Blocks of the cache that nobody has, the one idle for longest first.
  std::vector<int32_t> idle;
  uint64_t evictions = 0;
};
} // namespace

TEST(BlockPoolTest, AgreesWithAModelWhateverIsDone) {
  uint64_t refused = 0, hits = 0, evictions = 0, duplicates = 0;
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    Model model(seed % 3 ? 40 : 12, seed);
    for (int i = 0; i < 1000 && !HasFailure(); ++i)
      model.step();
    refused += model.refused;
    hits += model.hits;
    evictions += model.statistics().evictions;
    duplicates += model.statistics().duplicates;
    model.end();
  }
  // All of it is among what was tested.
  EXPECT_GT(refused, 10000u);
  EXPECT_GT(hits, 10000u);
  EXPECT_GT(evictions, 10000u);
  EXPECT_GT(duplicates, 10000u);
}
