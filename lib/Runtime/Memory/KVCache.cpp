//===- KVCache.cpp - Paged keys and values --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/KVCache.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

using namespace sandwich;

Result<KVCache> KVCache::create(uint64_t blockBytes, uint64_t blocks) {
  std::optional<uint64_t> bytes = checkedMultiply(blockBytes, blocks);
  if (!bytes ||
      blocks > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
    return makeError("a KV cache of ", blocks, " blocks of ", blockBytes,
                     " bytes is larger than this machine can address");
  KVCache cache;
  SANDWICH_ASSIGN_OR_RETURN(cache.memory,
                            AnonymousMemory::allocate(*bytes, "the KV cache"));
  cache.bytesPerBlock = blockBytes;
  cache.totalBlocks = blocks;
  return cache;
}

bool KVCache::writesShared(const Append &append) const {
  // Only the last block can be partly filled, and blocks beyond the tokens are
  // never shared.
  if (append.newTokens == 0 || append.tokens % SANDWICH_KV_BLOCK_TOKENS == 0)
    return false;
  int32_t last = (*append.table)[append.tokens / SANDWICH_KV_BLOCK_TOKENS];
  return references[static_cast<size_t>(last)] > 1;
}

bool KVCache::hasRoom(const Append &append) const {
  uint64_t blocks = blocksFor(append.tokens + append.newTokens);
  uint64_t have = append.table->size();
  uint64_t added = blocks > have ? blocks - have : 0;
  return added + (writesShared(append) ? 1 : 0) <= freeBlocks();
}

int32_t KVCache::take() {
  int32_t block;
  if (released.empty()) {
    block = static_cast<int32_t>(references.size());
    references.push_back(1);
  } else {
    block = released.back();
    released.pop_back();
    references[static_cast<size_t>(block)] = 1;
  }
  return block;
}

void KVCache::drop(int32_t block) {
  if (--references[static_cast<size_t>(block)] == 0)
    released.push_back(block);
}

Result<std::vector<KVCache::BlockCopy>>
KVCache::reserve(std::span<const Append> appends) {
  // References are given up while counting, so that of several tables that
  // share a block and write into it the last one keeps it.
  std::vector<std::pair<const Append *, int32_t>> copies;
  copies.reserve(appends.size());
  uint64_t needed = 0;
  for (const Append &append : appends) {
    uint64_t blocks = blocksFor(append.tokens + append.newTokens);
    if (blocks > append.table->size())
      needed += blocks - append.table->size();
    if (!writesShared(append))
      continue;
    int32_t last = (*append.table)[append.tokens / SANDWICH_KV_BLOCK_TOKENS];
    --references[static_cast<size_t>(last)];
    copies.emplace_back(&append, last);
  }
  for (const auto &[append, last] : copies)
    ++references[static_cast<size_t>(last)];
  needed += copies.size();
  if (needed > freeBlocks())
    return makeError("the KV cache is full: ", needed,
                     " more blocks are needed, ", freeBlocks(), " of ",
                     totalBlocks, " are free");

  // Whatever may fail for want of memory comes before the first change.
  if (size_t handedOut = references.size() + needed;
      handedOut > references.capacity()) {
    size_t room = std::max(handedOut, 2 * references.capacity());
    references.reserve(room);
    released.reserve(room);
  }
  for (const Append &append : appends)
    append.table->reserve(blocksFor(append.tokens + append.newTokens));

  std::vector<BlockCopy> made;
  made.reserve(copies.size());
  for (const auto &[append, last] : copies) {
    int32_t copy = take();
    (*append->table)[append->tokens / SANDWICH_KV_BLOCK_TOKENS] = copy;
    drop(last);
    made.push_back({last, copy});
  }
  for (const Append &append : appends)
    while (append.table->size() < blocksFor(append.tokens + append.newTokens))
      append.table->push_back(take());
  return made;
}

void KVCache::copy(BlockCopy blocks) {
  auto at = [&](int32_t block) {
    return memory.data() + static_cast<uint64_t>(block) * bytesPerBlock;
  };
  std::memcpy(at(blocks.to), at(blocks.from), bytesPerBlock);
}

std::vector<int32_t> KVCache::share(const std::vector<int32_t> &table,
                                    uint64_t blocks) {
  std::vector<int32_t> shared(
      table.begin(),
      table.begin() + static_cast<std::ptrdiff_t>(
                          std::min<uint64_t>(blocks, table.size())));
  for (int32_t block : shared)
    ++references[static_cast<size_t>(block)];
  return shared;
}

void KVCache::shrink(std::vector<int32_t> &table, uint64_t blocks) {
  while (table.size() > blocks) {
    drop(table.back());
    table.pop_back();
  }
}
