//===- MemoryPlan.cpp - What will fit into memory -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/MemoryPlan.h"

#include "sandwich/Runtime/Memory/BlockPool.h"
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

namespace {
/// What the ranks that a limit is about take together.
struct Share {
  /// How many they are, and who, if not all.
  uint64_t ranks = 1;
  std::string who;
  /// Weights that are copied, and those that are mapped.
  uint64_t copied = 0, mapped = 0;
  uint64_t workspace = 0, logits = 0, program = 0, exchange = 0;
  uint64_t kvBlock = 0;

  uint64_t weights() const { return sum(copied, mapped); }
  /// What must be in memory beside the weights and the KV cache.
  uint64_t buffers() const {
    return sum(sum(workspace, logits), sum(program, exchange));
  }
  /// The weights, as far as they count: mapped ones that do not fit are read
  /// again and again instead.
  uint64_t countedWeights(const MemoryLimit &limit) const {
    if (limit.countsMappedFiles || sum(buffers(), weights()) <= limit.available)
      return weights();
    return copied;
  }
  /// All but the KV cache.
  uint64_t beside(const MemoryLimit &limit) const {
    return sum(buffers(), countedWeights(limit));
  }
};
} // namespace

/// What of `needs` is below `limit`; nothing if no rank is.
static std::optional<Share> shareOf(const MemoryNeeds &needs,
                                    const MemoryLimit &limit) {
  Share share;
  bool first = true;
  if (limit.countsMappedFiles) {
    if (needs.ranks > 1)
      share.who = "each rank";
  } else if (limit.numaNode && needs.ranks > 1) {
    std::string ranks;
    share.ranks = 0;
    for (size_t rank = 0; rank < needs.nodes.size(); ++rank)
      if (needs.nodes[rank] == limit.numaNode) {
        ranks += (share.ranks ? ", " : "") +
                 std::to_string(needs.host * needs.ranks + rank);
        ++share.ranks;
      }
    if (share.ranks == 0)
      return std::nullopt;
    share.who = (share.ranks == 1 ? "rank " : "ranks ") + ranks;
    first = needs.nodes.front() == limit.numaNode;
  } else {
    share.ranks = needs.ranks;
  }
  uint64_t own = product(needs.weights, share.ranks);
  (needs.weightsCopied ? share.copied : share.mapped) = own;
  if (first)
    share.mapped = sum(share.mapped, needs.sharedWeights);
  share.workspace = product(needs.workspace, share.ranks);
  share.logits = product(needs.logits, share.ranks);
  share.program = product(needs.program, share.ranks);
  if (limit.countsMappedFiles)
    share.program = sum(share.program, needs.stacks);
  share.exchange = first ? needs.exchange : 0;
  share.kvBlock = product(needs.kvBlock, share.ranks);
  return share;
}

/// One block of the KV cache, of the ranks of all hosts.
static uint64_t blockOfAll(const MemoryNeeds &needs) {
  return product(needs.kvBlock, product(needs.ranks, needs.hosts));
}

static uint64_t requiredBlocks(const MemoryNeeds &needs) {
  return std::max<uint64_t>(BlockPool::blocksFor(needs.requiredTokens), 1);
}

uint64_t sandwich::leastKVBlocks(const MemoryNeeds &needs) {
  return needs.kvMemory
             ? std::max<uint64_t>(*needs.kvMemory / blockOfAll(needs), 1)
             : requiredBlocks(needs);
}

static std::string describe(uint64_t blocks, const Share &share) {
  std::string text = "weights " + formatBytes(share.weights()) + ", KV cache " +
                     formatBytes(product(blocks, share.kvBlock)) + " (" +
                     std::to_string(product(blocks, SANDWICH_KV_BLOCK_TOKENS)) +
                     " tokens), workspace " + formatBytes(share.workspace) +
                     ", logits " + formatBytes(share.logits) + ", program " +
                     formatBytes(share.program);
  if (share.exchange > 0)
    text += ", exchange between ranks " + formatBytes(share.exchange);
  return text;
}

/// What to change where a KV cache of `blocks` blocks does not fit.
static std::string advice(const MemoryNeeds &needs, const Share &share,
                          const MemoryLimit &limit) {
  uint64_t others = share.beside(limit);
  uint64_t required = product(requiredBlocks(needs), share.kvBlock);
  if (sum(others, required) <= limit.available) {
    // The option is about all ranks.
    uint64_t most =
        product((limit.available - others) / share.kvBlock, blockOfAll(needs));
    return "give --kv-memory at most " + std::to_string(most) + " (" +
           formatBytes(most) + ")";
  }
  if (needs.weightsCopied && !limit.countsMappedFiles &&
      sum(share.buffers(), required) <= limit.available)
    return "use --weights=mapped, which makes no copy of the weights";
  uint64_t weights = share.countedWeights(limit);
  uint64_t largest =
      std::max({weights, required, share.workspace, share.logits});
  if (largest == required)
    return needs.wideKVCache
               ? "ask for fewer tokens, or compile the model with "
                 "--kv-dtype=bf16, for a smaller KV cache"
               : "ask for fewer tokens";
  if (largest == weights)
    return needs.wideWeights
               ? "compile the model with --dtype=bf16, for smaller weights"
           : limit.numaNode && needs.ranks > 1
               ? "end other programs, or run fewer of the ranks on this node, "
                 "with --plan"
               : "end other programs, raise the limit or use a smaller model";
  return "compile the model with a smaller --max-tokens-per-step";
}

/// "the 3 GiB of memory that are available on NUMA node 1 for rank 2"
static std::string nameRoom(const Share &share, const MemoryLimit &limit) {
  return "the " + formatBytes(limit.available) +
         " of memory that are available " + limit.where +
         (share.who.empty() ? "" : " for " + share.who);
}

/// The blocks that `kvMemory` bytes make.
static Result<uint64_t> requestedBlocks(const MemoryNeeds &needs) {
  const uint64_t kvBlock = blockOfAll(needs);
  uint64_t blocks = *needs.kvMemory / kvBlock;
  uint64_t required = requiredBlocks(needs);
  std::string least = std::to_string(product(required, kvBlock)) + " (" +
                      formatBytes(product(required, kvBlock)) + ")";
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
  uint64_t wanted = sum(BlockPool::blocksFor(needs.wantedTokens),
                        std::max<uint64_t>(needs.sequences, 1) - 1);
  wanted = std::max<uint64_t>(wanted, 1);
  std::string reason;
  if (needs.kvMemory) {
    SANDWICH_ASSIGN_OR_RETURN(plan.kvBlocks, requestedBlocks(needs));
    reason = "as --kv-memory asks";
  } else {
    plan.kvBlocks = wanted;
    for (const MemoryLimit &limit : limits) {
      const std::optional<Share> share = shareOf(needs, limit);
      if (!share)
        continue;
      uint64_t reserve = memoryReserve(limit.available);
      uint64_t room =
          difference(limit.available, sum(share->beside(limit), reserve)) /
          limit.sharers;
      if (room / share->kvBlock >= plan.kvBlocks)
        continue;
      plan.kvBlocks = room / share->kvBlock;
      reason = "as " + formatBytes(limit.available) + " are available " +
               limit.where + (share->who.empty() ? "" : " for " + share->who) +
               ", less " + formatBytes(share->beside(limit)) +
               " for all else and a reserve of " + formatBytes(reserve);
      if (limit.sharers > 1)
        reason += ", shared among " + std::to_string(limit.sharers) + " models";
    }
    // What is needed may take from the reserve.
    plan.kvBlocks = std::max(plan.kvBlocks, requiredBlocks(needs));
  }
  for (const MemoryLimit &limit : limits) {
    const std::optional<Share> share = shareOf(needs, limit);
    if (!share)
      continue;
    if (sum(share->beside(limit), product(plan.kvBlocks, share->kvBlock)) >
        limit.available)
      return makeError("does not fit into ", nameRoom(*share, limit), ": ",
                       describe(plan.kvBlocks, *share), "; ",
                       advice(needs, *share, limit));
    if (share->countedWeights(limit) < share->weights() &&
        !plan.weightsStream) {
      plan.weightsStream = true;
      plan.warnings.push_back(
          "the weights of " + formatBytes(share->weights()) +
          ", beside buffers of " + formatBytes(share->buffers()) +
          ", do not fit into " + nameRoom(*share, limit) +
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
