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
/// layer; the order inside a block is the compiled code's own. Which sequence
/// has which block, the `BlockPool` knows.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEMORY_KVCACHE_H
#define SANDWICH_RUNTIME_MEMORY_KVCACHE_H

#include "sandwich/Runtime/Memory/BlockPool.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace sandwich {

class KVCache {
public:
  /// Room for `blocks` blocks of `blockBytes` each; no memory is touched, so
  /// none is taken before a block is first used. Errors: sizes beyond what
  /// the machine can address, or that the system refuses.
  static Result<KVCache> create(uint64_t blockBytes, uint64_t blocks);

  KVCache() = default;

  /// Makes one of the pool's copies.
  void copy(BlockCopy copy);

  void *data() const { return memory.data(); }
  std::span<const std::byte> bytes() const { return memory.contents(); }
  uint64_t blockCount() const { return blocks; }

private:
  AnonymousMemory memory;
  uint64_t bytesPerBlock = 0;
  uint64_t blocks = 0;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEMORY_KVCACHE_H
