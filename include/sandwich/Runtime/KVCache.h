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
/// layer; the order inside a block is the compiled code's own. A sequence owns
/// the blocks in its table and returns them when it ends.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_KVCACHE_H
#define SANDWICH_RUNTIME_KVCACHE_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <vector>

namespace sandwich {

class KVCache {
public:
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

  /// Appends blocks to `table` until it has `blocks`. Error: too few are
  /// free, and then nothing has changed.
  Status grow(std::vector<int32_t> &table, uint64_t blocks);
  /// Takes back all but the first `blocks` blocks of `table`.
  void shrink(std::vector<int32_t> &table, uint64_t blocks);

  void *data() const { return memory.data(); }
  uint64_t blockCount() const { return totalBlocks; }
  uint64_t freeBlocks() const {
    return totalBlocks - neverUsed + released.size();
  }

private:
  AnonymousMemory memory;
  uint64_t totalBlocks = 0;
  /// Blocks from this index on have never been handed out.
  uint64_t neverUsed = 0;
  /// Returned blocks, handed out again last in, first out: the most recent
  /// is the likeliest to be in a cache still.
  std::vector<int32_t> released;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_KVCACHE_H
