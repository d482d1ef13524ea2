//===- AttentionSchedule.h - How attention runs -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_ATTENTIONSCHEDULE_H
#define SANDWICH_SCHEDULING_ATTENTIONSCHEDULE_H

#include "sandwich/Scheduling/AttentionElement.h"
#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace sandwich {

/// Queries that meet the same keys, and how many of these at a time.
struct AttentionTile {
  /// Queries of a tile.
  int64_t rows = 1;
  /// KV cache blocks whose keys are multiplied at once.
  int64_t keyBlocks = 1;
  /// Blocks whose scores are held at once, a multiple of `keyBlocks`: sums are
  /// rescaled once for each chunk.
  int64_t chunk = 1;

  bool operator==(const AttentionTile &) const = default;
};

/// The most of each that a tile may have.
inline constexpr int64_t maxAttentionRows = 16;
inline constexpr int64_t maxAttentionChunk = 64;
/// Of rows times key blocks, each of which has a vector of sums.
inline constexpr int64_t maxAttentionSums = 64;
/// Of the tiles of a prompt that meet a chunk one after another.
inline constexpr int64_t maxAttentionTiles = 64;
/// Of a table: each has code of its own.
inline constexpr size_t maxAttentionEntries = 32;

/// How attention runs: streaming softmax over the blocks of the KV cache
/// (FlashAttention-2), whose work is divided among threads by segment, by the
/// cache's heads and, where there are too few of these, by parts of the context
/// (flash-decoding).
struct AttentionSchedule {
  /// Of segments of one token; rows are query heads that share one of the
  /// cache's, and divide their number.
  AttentionTile decode = {};
  /// Parts of the context of such a segment that are computed apart, and then
  /// added up.
  int64_t split = 1;
  /// Of longer segments; rows are tokens and query heads.
  AttentionTile prefill = {};
  /// Tiles of `prefill` that meet a chunk one after another, while it is in the
  /// caches: one piece of the work that is dealt to threads, or less where that
  /// would leave some without.
  int64_t tiles = 1;
  /// What multiplies keys and values in `prefill`, as micro-kernels would that
  /// have as many rows as a tile, and a column for each key multiplied at once.
  /// They take bf16, also for the weights of values. Nothing: FMA in f32.
  std::optional<MatrixISA> instructions = std::nullopt;

  bool operator==(const AttentionSchedule &) const = default;
};

/// Error: a size is out of its range.
Status verify(const AttentionSchedule &schedule);

/// A schedule for steps of at most so many segments, of one token or more,
/// whose contexts have at most so many positions. Entries are tried in order;
/// the last one is for all.
struct AttentionTableEntry {
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

  int64_t maxSegments = unlimited;
  int64_t maxPositions = unlimited;
  AttentionSchedule schedule = {};

  bool operator==(const AttentionTableEntry &) const = default;
};
using AttentionTable = std::vector<AttentionTableEntry>;

/// Error: no entries or more than `maxAttentionEntries`, one that no step
/// reaches as an earlier one serves all that it would, a last one that is not
/// for all, or a schedule that `verify` refuses.
Status verify(const AttentionTable &table);

/// Whether each result of `table` has the same bits whatever else is in a step,
/// and however a prompt is cut: no context is split, no score is summed in
/// parts, all is multiplied in f32, as single tokens are, and sums are rescaled
/// after each `chunk` blocks in every tile. The error says which entry differs.
Status verifyDeterministic(const AttentionTable &table, int64_t chunk,
                           const Target &target);

/// The heads of one rank, and what is in memory.
struct AttentionShape {
  int64_t cacheHeads = 1;
  /// Query heads that share one of the cache's.
  int64_t group = 1;
  int64_t headDim = 128;
  AttentionElement cache = AttentionElement::F32, query = AttentionElement::F32,
                   result = AttentionElement::F32;

  auto operator<=>(const AttentionShape &) const = default;
};

/// Whether `schedule` can run attention of `shape`; an error says what does not
/// fit.
Status verify(const AttentionSchedule &schedule, const AttentionShape &shape);

/// How a kernel computes segments of several tokens, whose rows are query heads
/// that share one of the cache's.
struct PrefillPieces {
  /// The most tokens of a call, a multiple of `unit`.
  int64_t tokens = 1;
  /// Tokens whose rows are whole tiles, or nearly so.
  int64_t unit = 1;
  /// Rows of those tokens, in whole tiles.
  int64_t rows = 1;
};
/// As many tokens as `schedule.tiles` have rows, or more where those would
/// leave a part of a tile without any.
PrefillPieces prefillPieces(const AttentionSchedule &schedule,
                            const AttentionShape &shape);

/// Bytes that a thread keeps on its stack for segments of several tokens.
uint64_t prefillStackBytes(const AttentionSchedule &schedule,
                           const AttentionShape &shape);

/// Whether that leaves a quarter of `maxAttentionTileBytes` to other schedules.
bool fitsStack(const AttentionSchedule &schedule, const AttentionShape &shape);

/// In how many interleaved parts of a head the tile of a segment of one token
/// computes each score: enough for independent sums, where a head can be cut so
/// often and registers hold them.
int64_t scoreParts(const AttentionTile &tile, int64_t headDim,
                   int64_t vectorsOfSums);

/// The instructions of bf16 by which the untuned rule has prompts multiplied
/// where their results are bf16; nothing where there are none.
std::optional<MatrixISA> attentionInstructions(const Target &target);

/// What is taken where nothing was measured: as many rows as registers hold,
/// as few parts of contexts as occupy all `threads` evenly, and instructions
/// for bf16 where they are faster than FMA. What is `deterministic` has one
/// entry, which `verifyDeterministic` accepts.
AttentionTable chooseUntuned(const AttentionShape &shape, const Target &target,
                             int64_t threads, bool deterministic = false);

/// Vectors of 16 f32 sums that fit into three quarters of the target's
/// registers; operands take the rest.
int64_t vectorsOfSums(const Target &target);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_ATTENTIONSCHEDULE_H
