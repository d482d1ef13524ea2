//===- MemoryPlan.cpp - What will fit into memory -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/MemoryPlan.h"

#include "sandwich/Runtime/KVCache.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace sandwich;

// Sizes beyond what 64 bits hold are as large as they get, and fit nowhere.
static uint64_t sum(uint64_t a, uint64_t b) {
  return checkedAdd(a, b).value_or(UINT64_MAX);
}

static uint64_t product(uint64_t a, uint64_t b) {
  return checkedMultiply(a, b).value_or(UINT64_MAX);
}

static uint64_t difference(uint64_t whole, uint64_t part) {
  return whole > part ? whole - part : 0;
}

uint64_t sandwich::memoryReserve(uint64_t available) {
  constexpr uint64_t least = uint64_t{256} << 20;
  return std::max(available / 20, std::min(least, available / 4));
}

/// What must be in memory beside the weights and the KV cache.
static uint64_t buffers(const MemoryNeeds &needs) {
  return sum(sum(needs.workspace, needs.logits), needs.program);
}

/// The weights, as far as they count: mapped ones that do not fit are read
/// again and again instead.
static uint64_t countedWeights(const MemoryNeeds &needs,
                               const MemoryLimit &limit) {
  if (needs.weightsCopied || limit.countsMappedFiles)
    return needs.weights;
  return sum(buffers(needs), needs.weights) <= limit.available ? needs.weights
                                                               : 0;
}

/// All but the KV cache.
static uint64_t beside(const MemoryNeeds &needs, const MemoryLimit &limit) {
  return sum(buffers(needs), countedWeights(needs, limit));
}

static std::string describe(uint64_t blocks, const MemoryNeeds &needs) {
  return "weights " + formatBytes(needs.weights) + ", KV cache " +
         formatBytes(product(blocks, needs.kvBlock)) + " (" +
         std::to_string(product(blocks, SANDWICH_KV_BLOCK_TOKENS)) +
         " tokens), workspace " + formatBytes(needs.workspace) + ", logits " +
         formatBytes(needs.logits) + ", program " + formatBytes(needs.program);
}

/// What to change where a KV cache of `blocks` blocks does not fit.
static std::string advice(const MemoryNeeds &needs, const MemoryLimit &limit) {
  uint64_t others = beside(needs, limit);
  uint64_t required =
      product(std::max<uint64_t>(KVCache::blocksFor(needs.requiredTokens), 1),
              needs.kvBlock);
  if (sum(others, required) <= limit.available) {
    uint64_t most = (limit.available - others) / needs.kvBlock * needs.kvBlock;
    return "give --kv-memory at most " + std::to_string(most) + " (" +
           formatBytes(most) + ")";
  }
  if (needs.weightsCopied && !limit.countsMappedFiles &&
      sum(buffers(needs), required) <= limit.available)
    return "use --weights=mapped, which makes no copy of the weights";
  uint64_t largest = std::max(
      {countedWeights(needs, limit), required, needs.workspace, needs.logits});
  if (largest == required)
    return "ask for fewer tokens";
  if (largest == countedWeights(needs, limit))
    return needs.wideWeights
               ? "compile the model with --dtype=bf16, for smaller weights"
               : "end other programs, raise the limit or use a smaller model";
  return "compile the model with a smaller --max-tokens-per-step";
}

static Error doesNotFit(uint64_t blocks, const MemoryNeeds &needs,
                        const MemoryLimit &limit) {
  return makeError("does not fit into the ", formatBytes(limit.available),
                   " of memory that are available ", limit.where, ": ",
                   describe(blocks, needs), "; ", advice(needs, limit));
}

/// The blocks that `kvMemory` bytes make.
static Result<uint64_t> requestedBlocks(const MemoryNeeds &needs) {
  uint64_t blocks = *needs.kvMemory / needs.kvBlock;
  uint64_t required =
      std::max<uint64_t>(KVCache::blocksFor(needs.requiredTokens), 1);
  std::string least = std::to_string(product(required, needs.kvBlock)) + " (" +
                      formatBytes(product(required, needs.kvBlock)) + ")";
  if (blocks == 0)
    return makeError("--kv-memory of ", formatBytes(*needs.kvMemory),
                     " is too small for one block of the KV cache; give at "
                     "least ",
                     least);
  if (blocks < required)
    return makeError("--kv-memory of ", formatBytes(*needs.kvMemory), " holds ",
                     blocks * SANDWICH_KV_BLOCK_TOKENS, " tokens, but ",
                     needs.requiredTokens, " are needed; give at least ",
                     least);
  return blocks;
}

Result<MemoryPlan> sandwich::planMemory(const MemoryNeeds &needs,
                                        std::span<const MemoryLimit> limits) {
  MemoryPlan plan;
  // Every sequence may leave its last block partly empty.
  uint64_t wanted = sum(KVCache::blocksFor(needs.wantedTokens),
                        std::max<uint64_t>(needs.sequences, 1) - 1);
  wanted = std::max<uint64_t>(wanted, 1);
  std::string reason;
  if (needs.kvMemory) {
    SANDWICH_ASSIGN_OR_RETURN(plan.kvBlocks, requestedBlocks(needs));
    reason = "as --kv-memory asks";
  } else {
    plan.kvBlocks = wanted;
    for (const MemoryLimit &limit : limits) {
      uint64_t reserve = memoryReserve(limit.available);
      uint64_t room =
          difference(limit.available, sum(beside(needs, limit), reserve));
      if (room / needs.kvBlock >= plan.kvBlocks)
        continue;
      plan.kvBlocks = room / needs.kvBlock;
      reason = "as " + formatBytes(limit.available) + " are available " +
               limit.where + ", less " + formatBytes(beside(needs, limit)) +
               " for all else and a reserve of " + formatBytes(reserve);
    }
    // What is needed may take from the reserve.
    plan.kvBlocks = std::max(
        plan.kvBlocks,
        std::max<uint64_t>(KVCache::blocksFor(needs.requiredTokens), 1));
  }
  bool streams = false;
  for (const MemoryLimit &limit : limits) {
    if (sum(beside(needs, limit), product(plan.kvBlocks, needs.kvBlock)) >
        limit.available)
      return doesNotFit(plan.kvBlocks, needs, limit);
    if (countedWeights(needs, limit) < needs.weights && !streams) {
      streams = true;
      plan.warnings.push_back(
          "the weights of " + formatBytes(needs.weights) +
          ", beside buffers of " + formatBytes(buffers(needs)) +
          ", do not fit into the " + formatBytes(limit.available) +
          " of memory that are available " + limit.where +
          ", so parts of them may be read from the file again and again; use "
          "a smaller model if it is slow");
    }
  }
  if (plan.kvBlocks < wanted)
    plan.warnings.push_back(
        "the KV cache holds " +
        std::to_string(plan.kvBlocks * SANDWICH_KV_BLOCK_TOKENS) +
        " tokens instead of " +
        std::to_string(product(wanted, SANDWICH_KV_BLOCK_TOKENS)) + ", " +
        reason + "; --kv-memory sets its size");
  return plan;
}
