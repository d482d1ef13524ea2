//===- ModelLimits.h - The largest models accepted --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_MODELLIMITS_H
#define SANDWICH_SUPPORT_MODELLIMITS_H

#include <cstdint>

/// The largest values that checkpoints and artifacts may have: far above any
/// model, and small enough that no product of those that meet in one tensor
/// overflows 63 bits.
namespace sandwich::model_limits {
inline constexpr uint32_t hiddenSize = 1 << 20;
inline constexpr uint32_t intermediateSize = 1 << 22;
inline constexpr uint32_t layers = 1 << 12;
inline constexpr uint32_t heads = 1 << 14;
inline constexpr uint32_t headDim = 1 << 12;
inline constexpr uint32_t vocabSize = 1 << 24;
inline constexpr uint32_t contextLength = 1 << 24;
/// Keeps the search for repeated ids short.
inline constexpr uint32_t eosTokens = 256;

/// Bytes of what a thread keeps on its stack while it computes the attention of
/// `queries` queries at a time, be they the heads of one token: for each a
/// query and a sum of `headDim` floats, and two vectors of 16.
constexpr uint64_t attentionStackBytes(uint64_t queries, uint64_t headDim) {
  return queries * (2 * headDim + 32) * sizeof(float);
}
/// Half of the smallest stack that threads have by default, 2 MiB: the most for
/// the heads of one token.
inline constexpr uint64_t maxAttentionStackBytes = 1 << 20;

/// Bytes of the scores of `queries` queries in `blocks` blocks of the cache.
constexpr uint64_t attentionScoreBytes(uint64_t queries, uint64_t blocks) {
  return queries * blocks * 16 * sizeof(float);
}
/// As `attentionStackBytes`, where matrix instructions multiply: queries are
/// bf16, and a vector is kept for each.
constexpr uint64_t attentionMatrixBytes(uint64_t queries, uint64_t headDim) {
  return queries * (headDim * (sizeof(float) + sizeof(uint16_t)) +
                    2 * 16 * sizeof(float));
}
/// Bytes of `blocks` blocks of keys and values, and of the weights that
/// `queries` queries give them, in bf16 for matrix instructions, beside the
/// scales that those of int8 have.
constexpr uint64_t attentionPackedBytes(uint64_t queries, uint64_t blocks,
                                        uint64_t headDim) {
  return blocks * 16 *
         ((2 * headDim + queries) * sizeof(uint16_t) + 2 * sizeof(float));
}
/// The most for scores, for what is packed, and for queries of several tokens,
/// which the schedules of one table share.
inline constexpr uint64_t maxAttentionTileBytes = 3 << 18;
} // namespace sandwich::model_limits

#endif // SANDWICH_SUPPORT_MODELLIMITS_H
