//===- KVCache.cpp - Paged keys and values --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/KVCache.h"

#include "sandwich/Support/CheckedMath.h"

#include <cstring>
#include <limits>

using namespace sandwich;

/// Steps number the places of tokens in 32 bits.
static constexpr uint64_t maxBlocks =
    std::numeric_limits<int32_t>::max() / SANDWICH_KV_BLOCK_TOKENS;

Result<KVCache> KVCache::create(uint64_t blockBytes, uint64_t blocks) {
  std::optional<uint64_t> bytes = checkedMultiply(blockBytes, blocks);
  if (!bytes || blocks > maxBlocks)
    return makeError("a KV cache of ", blocks, " blocks of ", blockBytes,
                     " bytes is larger than this machine can address");
  KVCache cache;
  SANDWICH_ASSIGN_OR_RETURN(cache.memory,
                            AnonymousMemory::allocate(*bytes, "the KV cache"));
  cache.bytesPerBlock = blockBytes;
  cache.blocks = blocks;
  return cache;
}

void KVCache::copy(BlockCopy copy) {
  auto at = [&](int32_t block) {
    return memory.data() + static_cast<uint64_t>(block) * bytesPerBlock;
  };
  std::memcpy(at(copy.to), at(copy.from), bytesPerBlock);
}
