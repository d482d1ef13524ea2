//===- AttentionTile.h - Queries that meet the same keys --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONTILE_H
#define SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONTILE_H

#include "LMToLoops.h"

#include "sandwich/Scheduling/AttentionSchedule.h"

#include <functional>
#include <optional>

namespace sandwich::lm {

/// A segment of the step, all of it indices.
struct SegmentValues {
  mlir::Value firstToken, tokens, firstPosition, firstBlock;
};

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
  /// The head read next, and whether it is read from the next chunk on; null
  /// where nothing is prefetched.
  mlir::Value nextHead = {}, endsChunk = {};
};

/// Where parts of contexts put what they computed.
struct PartialSums {
  /// [parts, query heads, head_dim] weighted sums of values.
  mlir::Value sums;
  /// [parts, query heads, 2] the largest score, and the sum of exponentials.
  mlir::Value scales;
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
/// the blocks of one segment's sequence and head of the cache. Who implements
/// it says what multiplies.
class StreamingSoftmaxBuilder {
public:
  StreamingSoftmaxBuilder(LoopBuilder &builder, const ProgramContext &program,
                          AttentionOp op);
  virtual ~StreamingSoftmaxBuilder() = default;

  /// Begins with the state of no key.
  virtual void loadQueries(const TileRows &rows) = 0;
  /// Called once before all tiles that add the chunk.
  virtual void readChunk(const ChunkValues &chunk) = 0;
  /// Adds what the blocks give, no more than a chunk.
  virtual void addChunk(const TileRows &rows, mlir::Value firstBlock,
                        mlir::Value blocks) = 0;
  virtual void storeResult(const TileRows &rows) = 0;

protected:
  mlir::Value channelOf(const TileRows &rows, mlir::Value row);
  /// The cache's block with number `number` of the segment's sequence.
  mlir::Value loadBlock(const SegmentValues &segment, mlir::Value number);
  /// Asks for the cache line of the cache's element `offset` of a head's keys
  /// (`part` 0) or values (1); `locality` 3 is for the nearest cache.
  void prefetch(mlir::Value block, mlir::Value head, int64_t part,
                mlir::Value offset, unsigned locality = 3);
  /// The f32 scales of a block's keys (`part` 0) or values (1) of a head, whose
  /// cache has some: of its tokens in one vector.
  mlir::Value loadScales(mlir::Value block, mlir::Value head, int64_t part);
  /// Asks for them.
  void prefetchScales(mlir::Value block, mlir::Value head, int64_t part);
  /// Memory on the stack, by its place among that of one builder.
  mlir::Value allocate(unsigned place, llvm::ArrayRef<int64_t> dimensions,
                       mlir::Type type);
  /// Stores what follows from a row's sums and its sums of exponentials.
  void
  storeRow(const TileRows &rows, mlir::Value row, mlir::Value totals,
           llvm::function_ref<mlir::Value(mlir::Value first, int64_t width)>
               loadSums);

  LoopBuilder &b;
  const ProgramContext &program;
  AttentionOp op;
  mlir::Value cache, layer, zero;
  KVCacheType cacheType;
  int64_t headDim;
};

/// Multiplies by FMA in f32, whatever the elements are.
class AttentionTileBuilder final : public StreamingSoftmaxBuilder {
public:
  AttentionTileBuilder(LoopBuilder &builder, const ProgramContext &program,
                       AttentionOp op);

  /// The next tiles are of `tile`; the states of `kept` of them are kept at a
  /// time. Those that stream read the cache from memory.
  void setShape(const AttentionTile &tile, int64_t kept, bool streams);

  void loadQueries(const TileRows &rows) override;
  void readChunk(const ChunkValues &) override {}
  void addChunk(const TileRows &rows, mlir::Value firstBlock,
                mlir::Value blocks) override;
  void storeResult(const TileRows &rows) override;
  /// Stores the state as part number `part`.
  void storePart(const TileRows &rows, mlir::Value part,
                 const PartialSums &partial);

private:
  /// How a tile's products share registers.
  struct Shape {
    int64_t rows = 1, blocks = 1, chunk = 1;
    /// Sums for each score, over as many interleaved parts of a head.
    int64_t parts = 1;
    /// Channels in one step of the loop over a head, a multiple of `parts`.
    int64_t channels = 1;
    /// Vectors of the head whose weighted values are summed at once.
    int64_t valueVectors = 1;
    /// Tokens in one step of the loop over a block's values.
    int64_t tokens = 1;
    /// Whether values are widened to vectors of even channels and of odd ones,
    /// as their sums are, too.
    bool evenAndOdd = false;
  };

  void shapeForStream();
  void allocateScratch(int64_t tiles);
  llvm::SmallVector<llvm::SmallVector<mlir::Value>>
  loadKeys(llvm::ArrayRef<mlir::Value> cacheBlocks, mlir::Value head,
           mlir::Value offset);
  void computeScores(const TileRows &rows, mlir::Value firstBlock,
                     mlir::Value blocks);
  void weighScores(const TileRows &rows, mlir::Value firstBlock,
                   mlir::Value blocks);
  void addValues(const TileRows &rows, mlir::Value firstBlock,
                 mlir::Value blocks, llvm::ArrayRef<VectorPiece> pieces);
  mlir::Value loadSums(const TileRows &rows, mlir::Value row, mlir::Value first,
                       int64_t width);

  /// The block read one head later in the place of the block `number`.
  mlir::Value loadNextBlock(const TileRows &rows, mlir::Value number);

  /// Elements of the cache in a cache line.
  int64_t lineElements;
  /// Channels of a key that are neighbors.
  int64_t together;
  Shape shape;
  /// Whether the cache comes from memory: only then prefetching pays.
  bool streams = false;

  /// [tiles, rows, head_dim] queries times the scale.
  mlir::Value queries;
  /// [rows, positions of a chunk] scores, then their exponentials, times the
  /// scales of values where there are any.
  mlir::Value scores;
  /// [tiles, rows, head_dim] weighted sums of values (see `evenAndOdd`).
  mlir::Value sums;
  /// [tiles, rows, 16] sums of exponentials, by position modulo 16.
  mlir::Value totals;
  /// [tiles, 16] one element a row: its largest score so far.
  mlir::Value maxima;
  /// [tiles, 16] one element a row: its position.
  mlir::Value limits;
  /// [16] one element a row: its largest score in this chunk, and the factor
  /// that follows from that and `maxima`.
  mlir::Value chunkMaxima, factors;
};

/// Multiplies bf16 by micro-kernels for matrices: keys and values of a chunk
/// are packed once for all tiles that add it. Integers are packed as they are,
/// which bf16 holds exactly; scores and weights are multiplied by their scales.
class AttentionMatrixBuilder final : public StreamingSoftmaxBuilder {
public:
  AttentionMatrixBuilder(LoopBuilder &builder, const ProgramContext &program,
                         AttentionOp op, const AttentionSchedule &schedule);

  void loadQueries(const TileRows &rows) override;
  void readChunk(const ChunkValues &chunk) override;
  void addChunk(const TileRows &rows, mlir::Value firstBlock,
                mlir::Value blocks) override;
  void storeResult(const TileRows &rows) override;

private:
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

#endif // SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONTILE_H
