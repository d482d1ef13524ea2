//===- ModelMemory.cpp - What a model's ranks keep in memory --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/ModelMemory.h"

#include "sandwich/Machine/Indexes.h"
#include "sandwich/Runtime/Memory/BlockPool.h"
#include "sandwich/Runtime/Memory/MemoryPlan.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/TensorParallelism.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

/// `bytes` for people. Sizes of made-up models may be beyond 64 bits.
static std::string format(double bytes) {
  constexpr double most = 0x1p63;
  return formatBytes(static_cast<uint64_t>(std::min(bytes, most)));
}

/// `bytes` of a region of the weights, of which several ranks have their own.
static double alignRegion(double bytes, size_t ranks) {
  constexpr auto alignment = static_cast<double>(weightRegionAlignment);
  return ranks > 1 ? std::ceil(bytes / alignment) * alignment : bytes;
}

RankMemory sandwich::memoryOfRank(const ModelWork &work,
                                  const ModelMemoryOptions &options,
                                  size_t ranks) {
  const auto layers = static_cast<double>(work.layers);
  const auto hidden = static_cast<double>(work.hiddenSize);
  const auto count = static_cast<double>(ranks);
  const auto rowBytes = static_cast<double>(work.vocabulary) * sizeof(float);
  const double table = work.logitWeights() * work.bytesPerWeight;
  RankMemory memory;
  memory.contextTokens = options.contextTokens;
  // Norms are vectors of f32. Tokens are looked up in the whole table, which
  // one rank also multiplies with where both are the same; several have shards
  // for that.
  const bool oneTable = options.tiedEmbeddings && ranks == 1;
  memory.commonWeights =
      alignRegion(table + (2 * layers + 1) * hidden * sizeof(float), ranks);
  memory.weights =
      alignRegion((layers * work.layerWeights() * work.bytesPerWeight +
                   (oneTable ? 0 : table)) /
                      count,
                  ranks);
  const auto cachedTokens = static_cast<double>(
      BlockPool::blocksFor(static_cast<uint64_t>(options.contextTokens)) *
      SANDWICH_KV_BLOCK_TOKENS);
  // Each rank has a whole head of keys and values.
  const double shareOfCache = std::max(
      1 / count,
      1 / static_cast<double>(std::max<int64_t>(work.keyValueHeads, 1)));
  memory.kvCache = cachedTokens * layers * work.keyValueElements() *
                   work.bytesPerKeyValue * shareOfCache;
  // Between operators lie the residual stream, of several ranks its sum, or
  // what is made of it by a norm, and, one after the other, a rank's part of
  // what attention and the feed-forward block make, in f32.
  const double widest =
      std::max(work.queryElements() + work.keyValueElements(),
               2 * static_cast<double>(work.intermediateSize)) /
      count;
  const auto tokens = static_cast<double>(options.stepTokens);
  const double workspace = tokens * sizeof(float) * (2 * hidden + widest);
  const double logits =
      std::max(rowBytes, std::min(tokens * rowBytes,
                                  static_cast<double>(maxLogitsBytes)));
  memory.buffers =
      workspace + logits + static_cast<double>(MemoryNeeds{}.program);
  return memory;
}

std::vector<RankBytes> sandwich::bytesOfRanks(const RankMemory &memory,
                                              size_t ranks) {
  std::vector<RankBytes> bytes(
      ranks, {memory.weights, memory.kvCache + memory.buffers});
  if (!bytes.empty())
    bytes.front().weights += memory.commonWeights;
  return bytes;
}

std::string RankMemory::describe() const {
  return "weights " + format(weights) + " and " + format(commonWeights) +
         " in common, KV cache " + format(kvCache) + " for " +
         std::to_string(contextTokens) + " tokens, buffers " + format(buffers);
}

std::string sandwich::describe(const MemoryShortage &shortage,
                               const RankMemory &memory, size_t ranks) {
  const bool alone = shortage.ranks == 1;
  return std::to_string(ranks) + (ranks == 1 ? " process: " : " processes: ") +
         std::to_string(shortage.ranks) +
         (alone ? " rank needs " : " ranks need ") + format(shortage.needed) +
         " (" + (alone ? "" : "each ") + memory.describe() + "), but numa " +
         formatIndexes({shortage.nodes.begin(), shortage.nodes.end()}) +
         (shortage.nodes.size() == 1 ? " has " : " have ") +
         format(shortage.available);
}
