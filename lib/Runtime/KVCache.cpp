//===- KVCache.cpp - Paged keys and values --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/KVCache.h"

#include "sandwich/Support/CheckedMath.h"

#include <limits>

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
  cache.totalBlocks = blocks;
  return cache;
}

Status KVCache::grow(std::vector<int32_t> &table, uint64_t blocks) {
  if (blocks <= table.size())
    return {};
  uint64_t needed = blocks - table.size();
  if (needed > freeBlocks())
    return makeError("the KV cache is full: ", needed,
                     " more blocks are needed, ", freeBlocks(), " of ",
                     totalBlocks, " are free");
  table.reserve(blocks);
  for (; needed > 0; --needed) {
    if (released.empty()) {
      table.push_back(static_cast<int32_t>(neverUsed++));
    } else {
      table.push_back(released.back());
      released.pop_back();
    }
  }
  return {};
}

void KVCache::shrink(std::vector<int32_t> &table, uint64_t blocks) {
  while (table.size() > blocks) {
    released.push_back(table.back());
    table.pop_back();
  }
}
