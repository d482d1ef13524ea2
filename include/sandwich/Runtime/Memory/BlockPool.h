//===- BlockPool.h - Who has which KV cache blocks --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The tables of the paged KV cache, without its memory: which blocks each
/// sequence has, and what full blocks hold. Sequences share blocks: each block
/// counts the tables that it is in, and a sequence that is about to write into
/// a shared block gets a copy of it first.
///
/// Full blocks that no sequence has any more are kept as the prefix cache, the
/// chains of full blocks of vLLM ("Automatic Prefix Caching"): what a block
/// holds depends on its own tokens and all before them, so it is found by the
/// block before it and its tokens. They count as free, and are given to others
/// when nothing else is left, those unused for longest first.
///
/// Nothing here is safe to call from two threads at a time.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEMORY_BLOCKPOOL_H
#define SANDWICH_RUNTIME_MEMORY_BLOCKPOOL_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/Result.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sandwich {

class BlockPool;

/// The tokens of one text whose keys and values are computed, and the blocks
/// that hold these, some of which other sequences may have too. Gives its
/// blocks back when it ends, which must be before its pool does.
class Sequence {
public:
  /// One without tokens and blocks.
  explicit Sequence(BlockPool &pool) : owner(&pool) {}
  Sequence(Sequence &&other) noexcept;
  Sequence &operator=(Sequence &&other) noexcept;
  ~Sequence() { clear(); }

  BlockPool &pool() const { return *owner; }
  uint64_t length() const { return ids.size(); }
  /// The vocabulary ids of all its tokens.
  std::span<const int32_t> tokens() const { return ids; }
  /// Position p lies in `blocks()[p / SANDWICH_KV_BLOCK_TOKENS]`. Beyond those
  /// of the tokens there may be blocks that are reserved for the next ones.
  std::span<const int32_t> blocks() const { return table; }
  /// Tells it from the others that have blocks of their own, the smallest that
  /// was free when it reserved its first one; -1 before and after.
  int32_t number() const { return ownNumber; }

  /// Forgets everything, and gives all blocks back.
  void clear() { truncate(0); }
  /// Forgets all but the first `length` tokens, and gives back the blocks that
  /// these do not need, the last one first.
  void truncate(uint64_t length);

  /// A sequence that holds the same tokens and goes on by itself. It takes no
  /// blocks: both have the same ones, and who first reserves in one that is not
  /// full gets a copy; what this sequence had reserved there it must reserve
  /// again.
  Sequence fork() const;

  /// Of a sequence without tokens: lets it begin with the longest chain of
  /// cached blocks that is a prefix of `tokens`, but never all of them, as the
  /// last one is to be computed for its logits. Returns the number of tokens
  /// that it holds then. What another salt was given with is never found, so
  /// that nobody learns from the time of a prompt what others have asked.
  uint64_t claimPrefix(std::span<const int32_t> tokens, uint64_t salt = 0);

  /// Tokens whose keys and values a step has written into reserved blocks.
  /// Blocks that are full with them enter the prefix cache; where it knows such
  /// a block already, the sequence takes that one and gives its own back.
  /// Cannot fail.
  void append(std::span<const int32_t> tokens);

private:
  friend class BlockPool;

  BlockPool *owner;
  std::vector<int32_t> ids;
  std::vector<int32_t> table;
  /// What its blocks are cached under.
  uint64_t salt = 0;
  int32_t ownNumber = -1;
};

/// What block `to` is to hold before it is written into.
struct BlockCopy {
  int32_t from, to;
  bool operator==(const BlockCopy &) const = default;
};

struct BlockPoolOptions {
  /// Keeps full blocks for other sequences.
  bool prefixCache = true;
  /// The key of the cache's hash, for tests; nothing: a random one, so that
  /// nobody can send tokens whose hashes collide.
  std::optional<std::array<unsigned char, 16>> hashKey = {};
};

/// Since the pool began.
struct BlockPoolStatistics {
  /// Tokens that `claimPrefix` was asked for, and that it found.
  uint64_t promptTokensQueried = 0;
  uint64_t promptTokensHit = 0;
  /// Cached blocks that were given to others.
  uint64_t evictions = 0;
  /// Blocks given back as another one held the same.
  uint64_t duplicates = 0;
};

/// Equal blocks of SANDWICH_KV_BLOCK_TOKENS tokens each, numbered from 0.
class BlockPool {
public:
  /// Tokens to be appended to a sequence of this pool.
  struct Append {
    Sequence *sequence;
    uint64_t newTokens;
  };

  /// Errors: more blocks than can be numbered, or no random numbers from the
  /// system.
  static Result<std::unique_ptr<BlockPool>>
  create(uint64_t blocks, const BlockPoolOptions &options = {});

  BlockPool(const BlockPool &) = delete;
  BlockPool &operator=(const BlockPool &) = delete;

  /// The most sequences that have blocks of their own.
  static constexpr int32_t maxNumbers = 1 << 20;

  /// Blocks that hold `tokens` tokens of one sequence.
  static constexpr uint64_t blocksFor(uint64_t tokens) {
    return tokens / SANDWICH_KV_BLOCK_TOKENS +
           (tokens % SANDWICH_KV_BLOCK_TOKENS != 0);
  }

  uint64_t blockCount() const { return totalBlocks; }
  /// Blocks that are in no sequence, those of the prefix cache among them.
  uint64_t freeBlocks() const {
    return totalBlocks - blocks.size() + released.size() + idleBlocks;
  }
  /// Blocks of the prefix cache, in sequences or not.
  uint64_t cachedBlocks() const { return knownBlocks; }
  /// Those of them that count as free.
  uint64_t idleCachedBlocks() const { return idleBlocks; }
  const BlockPoolStatistics &statistics() const { return counts; }

  /// What `Sequence::claimPrefix` would find.
  struct Prefix {
    uint64_t tokens = 0;
    /// Its blocks that count as free until they are claimed.
    uint64_t freeBlocks = 0;
  };
  Prefix findPrefix(std::span<const int32_t> tokens, uint64_t salt = 0) const;

  /// How many free blocks `reserve` would take for this sequence alone.
  uint64_t blocksNeeded(const Append &append) const;
  bool canReserve(const Append &append) const {
    return blocksNeeded(append) <= freeBlocks();
  }
  /// Makes every sequence ready for its new tokens, at the cost of as few
  /// blocks as possible: a last block that is not full and is shared is
  /// replaced by a copy, and blocks are added. What was reserved before counts.
  /// No sequence may be named twice. Error: CacheFull; then, and when memory
  /// for the tables is short (std::bad_alloc), nothing has changed.
  Status reserve(std::span<const Append> appends);
  /// Gives back what is reserved beyond the tokens of `sequence`.
  void releaseUnused(Sequence &sequence) {
    sequence.truncate(sequence.length());
  }

  /// The copies that are to be made, in this order, before any block is written
  /// into; every rank makes them in a cache of its own.
  std::span<const BlockCopy> pendingCopies() const { return copies; }
  /// Says that the first `count` of them are made.
  void copiesMade(size_t count) {
    copies.erase(copies.begin(),
                 copies.begin() + static_cast<std::ptrdiff_t>(count));
  }

  /// Forgets what all full blocks hold; sequences keep theirs.
  void clearPrefixCache();

private:
  friend class Sequence;

  static constexpr int32_t none = -1;

  /// What a full block holds: its tokens, after all those of another block.
  struct Contents {
    uint64_t salt;
    /// The `node` of the block before, 0 for the first.
    uint64_t parent;
    std::array<int32_t, SANDWICH_KV_BLOCK_TOKENS> tokens;
    bool operator==(const Contents &) const = default;
  };

  struct Block {
    /// Sequences that have it.
    uint32_t references = 0;
    /// The next of those whose hashes fall into the same bucket.
    int32_t nextInBucket = none;
    /// Neighbours in the order in which cached blocks became idle.
    int32_t older = none;
    int32_t newer = none;
    /// Stands for its contents in the prefix cache: no two blocks ever get the
    /// same one. 0 for a block that is not in the cache.
    uint64_t node = 0;
    Contents contents = {};
  };

  BlockPool(uint64_t blocks, bool prefixCache,
            const std::array<unsigned char, 16> &key)
      : totalBlocks(blocks), keepsPrefixes(prefixCache), hashKey(key) {}

  Block &at(int32_t block) { return blocks[static_cast<size_t>(block)]; }
  const Block &at(int32_t block) const {
    return blocks[static_cast<size_t>(block)];
  }

  /// Where the table has the block that a first new token goes into, if that
  /// holds others already, or null.
  static int32_t *partlyFilled(const Append &append);
  /// Whether `append` writes into a block that other sequences have too.
  bool writesShared(const Append &append) const;
  /// The free blocks that `appends` take together.
  uint64_t countNeeded(std::span<const Append> appends);
  /// Of those in `appends` that have no number yet.
  static uint64_t countNumbers(std::span<const Append> appends);
  int32_t takeNumber();
  /// Allocates what taking `needed` blocks for `appends` could need.
  void allocateFor(std::span<const Append> appends, uint64_t needed);
  void growTables(size_t blockCount);
  /// Makes the block that `append` writes into first its sequence's own.
  void ownLastBlock(const Append &append);

  /// A free block, for one sequence.
  int32_t take();
  /// Adds a sequence to those that have `block`, or removes one.
  void hold(int32_t block);
  void drop(int32_t block);

  /// The contents of the full block `index` of a text, behind the block
  /// `parent`.
  static Contents contentsOf(std::span<const int32_t> tokens, size_t index,
                             uint64_t parent, uint64_t salt);
  /// The cached blocks that `tokens` begin with, but never all of them.
  template <typename Visitor>
  void forEachCached(std::span<const int32_t> tokens, uint64_t salt,
                     const Visitor &visit) const;
  /// Enters the full block `index` into the prefix cache, or replaces it by the
  /// block that holds the same.
  void enter(Sequence &sequence, size_t index);
  size_t bucketOf(const Contents &contents) const;
  /// The block with these contents, or `none`.
  int32_t find(const Contents &contents) const;
  /// Takes a cached block out of the prefix cache.
  void forget(int32_t block);
  /// Ends or begins the time in which no sequence has a cached block.
  void removeIdle(int32_t block);
  void addIdle(int32_t block);

  uint64_t totalBlocks;
  bool keepsPrefixes;
  std::array<unsigned char, 16> hashKey;
  /// Those from its size on have never been handed out.
  std::vector<Block> blocks;
  /// Free blocks that hold nothing, handed out again last in, first out: the
  /// most recent is the likeliest to be in a processor's cache still. Has room
  /// for every block of `blocks`, so that giving blocks up cannot fail.
  std::vector<int32_t> released;
  /// The first block of each bucket; as many as a power of two.
  std::vector<int32_t> buckets;
  std::vector<BlockCopy> copies;
  /// Numbers of sequences from 0 on that were handed out once, and those of
  /// them that are free; there is room for all.
  int32_t numbers = 0;
  std::vector<int32_t> freeNumbers;
  int32_t oldestIdle = none;
  int32_t newestIdle = none;
  uint64_t idleBlocks = 0;
  uint64_t knownBlocks = 0;
  uint64_t lastNode = 0;
  BlockPoolStatistics counts;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEMORY_BLOCKPOOL_H
