//===- AttentionMatrix.h - Attention by matrix instructions ------*- C++
//-*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONMATRIX_H
#define SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONMATRIX_H

#include "AttentionKernel.h"

#include <functional>
#include <optional>

namespace sandwich::lm {

/// How many positions of its sequence token number `token` of `segment` attends
/// to, from the first on.
mlir::Value positionsAttended(LoopBuilder &builder, AttentionOp op,
                              const SegmentValues &segment, mlir::Value token);

/// Rows of one tile: where each lies in the query and destination buffers.
struct TileRows {
  const SegmentValues &segment;
  /// From the row in the tile to its token in the segment.
  std::function<mlir::Value(mlir::Value)> token;
  /// From the row in the tile to its query head.
  std::function<mlir::Value(mlir::Value)> queryHead;
  /// Rows that exist; those beyond are computed and not stored.
  mlir::Value count;
  /// The cache's head.
  mlir::Value head;
  /// Positions that some row attends to.
  mlir::Value positions;
  /// Number of the tile among those whose state is kept.
  mlir::Value tile;
};

/// Consecutive blocks of a segment's sequence, of one head of the cache.
struct ChunkValues {
  const SegmentValues &segment;
  mlir::Value head, firstBlock, blocks;
  /// Positions of the whole context that some tile attends to.
  mlir::Value positions;
  /// How many tiles add it.
  mlir::Value tiles;
};

/// Streaming softmax (FlashAttention-2, algorithm 1) of tiles of queries over
/// the blocks of one segment's sequence and head of the cache, which multiplies
/// bf16 by micro-kernels for matrices: keys and values of a chunk are packed
/// once for all tiles that add it. Integers are packed as they are, which bf16
/// holds exactly; scores and weights are multiplied by their scales.
class AttentionMatrixBuilder {
public:
  AttentionMatrixBuilder(LoopBuilder &builder, const ProgramContext &program,
                         AttentionOp op, const AttentionSchedule &schedule);

  /// Begins with the state of no key.
  void loadQueries(const TileRows &rows);
  /// Called once before all tiles that add the chunk.
  void readChunk(const ChunkValues &chunk);
  /// Adds what the blocks give, no more than a chunk.
  void addChunk(const TileRows &rows, mlir::Value firstBlock,
                mlir::Value blocks);
  void storeResult(const TileRows &rows);

private:
  mlir::Value channelOf(const TileRows &rows, mlir::Value row);
  /// The cache's block with number `number` of the segment's sequence.
  mlir::Value loadBlock(const SegmentValues &segment, mlir::Value number);
  /// Asks for the cache line of the cache's element `offset` of a head's keys
  /// (`part` 0) or values (1), but not for the nearest of the CPU's caches.
  void prefetch(mlir::Value block, mlir::Value head, int64_t part,
                mlir::Value offset);
  /// The f32 scales of a block's keys (`part` 0) or values (1) of a head, whose
  /// cache has some: of its tokens in one vector.
  mlir::Value loadScales(mlir::Value block, mlir::Value head, int64_t part);
  /// Memory on the stack, by its place among that of one builder.
  mlir::Value allocate(unsigned place, llvm::ArrayRef<int64_t> dimensions,
                       mlir::Type type);
  mlir::Value firstRowOf(const TileRows &rows);
  mlir::Value wholeBlocks(mlir::Value blocks);
  mlir::Value elementOf(const Packing &packing, mlir::Value k,
                        mlir::Value column);
  mlir::Value loadPacked(mlir::Value cacheBlock, mlir::Value head, int64_t part,
                         mlir::Value offset);
  void packKeys(mlir::Value cacheBlock, mlir::Value head, mlir::Value block);
  void packValues(mlir::Value cacheBlock, mlir::Value head, mlir::Value block,
                  mlir::Value tokens);
  void packScales(mlir::Value cacheBlock, mlir::Value head, mlir::Value block,
                  mlir::Value tokens);
  void multiply(const MicroKernel &kernel, mlir::Value input,
                mlir::Value firstRow, mlir::Value k, mlir::Value packed,
                mlir::Value offset, mlir::Value sums, mlir::Value sumsRow,
                mlir::Value sumsColumn, mlir::Value accumulate);
  void prefetchNextChunk(mlir::Value number, mlir::Value block);
  void computeScores(const TileRows &rows, mlir::Value blocks);
  void scaleScores(mlir::Value block);
  void maskScores(const TileRows &rows, mlir::Value firstPosition,
                  mlir::Value tokens);
  void findMaxima(mlir::Value tokens);
  void weighScores(const TileRows &rows, mlir::Value tokens,
                   mlir::Value hasSums);
  mlir::Value callAVX512(llvm::StringRef name, mlir::Value lhs,
                         mlir::Value rhs);
  mlir::Value exp2(mlir::Value exponent);

  LoopBuilder &b;
  const ProgramContext &program;
  AttentionOp op;
  mlir::Value cache, layer, zero;
  KVCacheType cacheType;
  int64_t headDim;
  AttentionTile tile;
  PrefillMicroKernels kernels;
  /// Of the keys and of the values.
  Packing packing, valuesPacking;
  /// Rows of a tile register; null where there are none.
  mlir::Value tileRows;
  /// What an exponent of two is, in scores.
  float scale;
  /// The chunk that was read last.
  std::optional<ChunkValues> current;

  /// [tiles * rows, head_dim] queries, bf16.
  mlir::Value queries;
  /// [chunk / key_blocks][head_dim / 2][16 * key_blocks][2] keys, and [head_dim
  /// / columns][tokens / 2][columns][2] values, both bf16 and one dimension.
  mlir::Value keys, values;
  /// [positions of a chunk] what the integers of each key, and of each value,
  /// count for; null where the cache has no scales.
  mlir::Value keyScales, valueScales;
  /// [rows, positions of a chunk] scores, and their exponentials in bf16.
  mlir::Value scores, weights;
  /// [tiles * rows, head_dim] weighted sums of values.
  mlir::Value sums;
  /// [tiles * rows, 16] sums of exponentials, by position modulo 16.
  mlir::Value totals;
  /// [tiles, 16] one element a row: its largest score so far.
  mlir::Value maxima;
  /// [16] one element a row: its largest score in this chunk, that of all
  /// chunks, and the factor that follows from them.
  mlir::Value chunkMaxima, factors;
};

} // namespace sandwich::lm

#endif // SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONMATRIX_H
