//===- KVCache.h - Paged keys and values ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One allocation of equal blocks, each holding the keys and values of
/// SANDWICH_KV_BLOCK_TOKENS consecutive positions of one sequence in every
/// layer; the order inside a block is the compiled code's own. A sequence has a
/// table of blocks. Tables may share blocks: each block counts the tables that
/// it is in, a table that is about to write into a shared block gets a copy of
/// it first, and a block that is in no table is free.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEMORY_KVCACHE_H
#define SANDWICH_RUNTIME_MEMORY_KVCACHE_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sandwich {

class KVCache {
public:
  /// Tokens to be appended to a sequence.
  struct Append {
    /// The sequence's blocks.
    std::vector<int32_t> *table;
    /// Tokens that it holds, in the first `blocksFor(tokens)` blocks.
    uint64_t tokens;
    uint64_t newTokens;
  };

  /// Room for `blocks` blocks of `blockBytes` each; no memory is touched, so
  /// none is taken before a block is first used. Errors: sizes beyond what
  /// the machine can address, or that the system refuses.
  static Result<KVCache> create(uint64_t blockBytes, uint64_t blocks);

  KVCache() = default;

  /// Blocks that hold `tokens` tokens of one sequence.
  static uint64_t blocksFor(uint64_t tokens) {
    return tokens / SANDWICH_KV_BLOCK_TOKENS +
           (tokens % SANDWICH_KV_BLOCK_TOKENS != 0);
  }

  /// What block `to` is to hold before it is written into.
  struct BlockCopy {
    int32_t from, to;
    bool operator==(const BlockCopy &) const = default;
  };

  /// Whether `reserve` would succeed for this table alone.
  bool hasRoom(const Append &append) const;
  /// Makes every table ready for its new tokens, at the cost of as few blocks
  /// as possible: a last block that is not full and is shared is replaced by a
  /// copy, and blocks are added. No table may be named twice. Returns the
  /// copies, which are to be made, in any order, before anything is written;
  /// every rank makes them in a cache of its own. Error: too few blocks are
  /// free, and then nothing has changed.
  Result<std::vector<BlockCopy>> reserve(std::span<const Append> appends);
  /// Makes one of the copies.
  void copy(BlockCopy blocks);
  /// A table of the first `blocks` blocks of `table`, which are then shared.
  std::vector<int32_t> share(const std::vector<int32_t> &table,
                             uint64_t blocks);
  /// Gives up all but the first `blocks` blocks of `table`.
  void shrink(std::vector<int32_t> &table, uint64_t blocks);

  void *data() const { return memory.data(); }
  std::span<const std::byte> bytes() const { return memory.contents(); }
  uint64_t blockCount() const { return totalBlocks; }
  uint64_t freeBlocks() const {
    return totalBlocks - references.size() + released.size();
  }

private:
  /// Whether `append` writes into a block that other tables have too.
  bool writesShared(const Append &append) const;
  /// A free block, for one table.
  int32_t take();
  void drop(int32_t block);

  AnonymousMemory memory;
  uint64_t bytesPerBlock = 0;
  uint64_t totalBlocks = 0;
  /// How many tables each block is in; those from its size on have never been
  /// handed out.
  std::vector<uint32_t> references;
  /// Returned blocks, handed out again last in, first out: the most recent
  /// is the likeliest to be in a cache still. Has room for every block of
  /// `references`, so that giving blocks up cannot fail.
  std::vector<int32_t> released;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEMORY_KVCACHE_H
