//===- ModelMemory.h - What a model's ranks keep in memory ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How many bytes the ranks of a model take before anything is compiled: the
/// planner's counterpart of what the runtime reads from an artifact
/// (`MemoryNeeds`).
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PREDICTION_MODELMEMORY_H
#define SANDWICH_SERVING_PREDICTION_MODELMEMORY_H

#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sandwich {

/// What decides over the memory of a model beside its work.
struct ModelMemoryOptions {
  /// Tokens for which the KV cache has room: one sequence of the whole context,
  /// since a cache that cannot hold it cannot serve the model.
  int64_t contextTokens = 0;
  /// Tokens of the longest step.
  int64_t stepTokens = 512;
  /// The output projection is the embedding table.
  bool tiedEmbeddings = false;
};

/// Bytes of one of a model's ranks.
struct RankMemory {
  /// Its shard of the weights.
  double weights = 0;
  /// What all ranks map and is there once, where rank 0 is: norms, the
  /// embedding table.
  double commonWeights = 0;
  double kvCache = 0;
  /// The workspace of a step, logits, and the program, estimated.
  double buffers = 0;
  /// For which `kvCache` has room.
  int64_t contextTokens = 0;

  /// "weights 2.3 GiB and 125 MiB in common, KV cache 1 GiB for 2048 tokens,
  /// buffers 96 MiB"
  std::string describe() const;
};

/// The bytes of each of `ranks` ranks, which is positive.
RankMemory memoryOfRank(const ModelWork &work,
                        const ModelMemoryOptions &options, size_t ranks);

/// The bytes of all `ranks` ranks.
std::vector<RankBytes> bytesOfRanks(const RankMemory &memory, size_t ranks);

/// "2 processes: 1 rank needs 13.4 GiB (weights 12.1 GiB ...), but numa 0 has
/// 8 GiB", of `ranks` ranks of which each needs `memory`.
std::string describe(const MemoryShortage &shortage, const RankMemory &memory,
                     size_t ranks);

} // namespace sandwich

#endif // SANDWICH_SERVING_PREDICTION_MODELMEMORY_H
