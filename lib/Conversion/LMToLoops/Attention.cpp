//===- Attention.cpp - lm.attention as loops ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "sandwich/Target/Target.h"
#include "llvm/ADT/bit.h"
#include <functional>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

namespace {

constexpr int64_t blockTokens = KVCacheType::blockTokens;
static_assert(blockTokens == vectorWidth, "one vector of scores is one block");

/// Smaller than every score, and finite: its distance to any score is too.
constexpr float masked = -1e30f;

/// Where an FMA's result is needed again only after this many others, its
/// latency is hidden.
constexpr int64_t independentSums = 8;

int64_t largestDivisor(int64_t number, int64_t limit) {
  int64_t divisor = std::min(number, limit);
  while (number % divisor != 0)
    --divisor;
  return divisor;
}

/// How many rows (queries that read the same keys) a tile has, and how they
/// share registers.
struct TileShape {
  int64_t rows = 1;
  /// Blocks of keys multiplied at once.
  int64_t blocks = 1;
  /// Blocks whose scores are held at once, a multiple of `blocks`: sums are
  /// rescaled once for each chunk.
  int64_t chunk = 8;
  /// Sums for each score, over as many interleaved parts of a head.
  int64_t parts = 1;
  /// Channels in one step of the loop over a head, a multiple of `parts`.
  int64_t channels = 1;
  /// Vectors of the head whose weighted values are summed at once.
  int64_t valueVectors = 1;
  /// Tokens in one step of the loop over a block's values.
  int64_t tokens = 1;
};

/// Rows of one tile: where each lies in the query and destination buffers.
struct TileRows {
  /// From the row in the tile to its token.
  std::function<Value(Value)> token;
  /// From the row in the tile to its head's first channel.
  std::function<Value(Value)> channel;
  /// Rows that exist; those beyond are computed and not stored.
  Value count;
  Value sequence;
  /// The cache's head.
  Value head;
  /// Positions that some row attends to.
  Value positions;
  /// Number of the tile among those whose state is kept.
  Value tile;
  /// The head read next, and whether it is read from the next chunk on; null
  /// where nothing is prefetched.
  Value nextHead = {}, endsChunk = {};
};

/// Streaming softmax (FlashAttention-2, algorithm 1) of tiles of queries over
/// the blocks of one sequence and head of the cache.
class AttentionBuilder {
public:
  AttentionBuilder(LoopBuilder &builder, const ProgramContext &program,
                   AttentionOp op)
      : b(builder), program(program), op(op), cache(op.getKvCache()),
        layer(op.getLayer()), zero(builder.index(0)) {
    auto cacheType = cast<MemRefType>(cache.getType());
    cacheHeads = cacheType.getDimSize(2);
    headDim = cacheType.getDimSize(4) / blockTokens;
    queryHeads =
        cast<MemRefType>(op.getQuery().getType()).getDimSize(1) / headDim;
    group = queryHeads / cacheHeads;
    lineElements = 8 * cacheLineBytes / cacheType.getElementTypeBitWidth();
  }

  void buildDecode();
  void buildPrefill();

private:
  void allocateScratch(int64_t tiles);
  void forChunks(Value positions,
                 llvm::function_ref<void(Value firstBlock, Value blocks)> body);
  void loadQueries(const TileRows &rows);
  void addChunk(const TileRows &rows, Value firstBlock, Value blocks);
  void computeScores(const TileRows &rows, Value firstBlock, Value blocks);
  void weighScores(const TileRows &rows, Value firstBlock, Value blocks);
  void addValues(const TileRows &rows, Value firstBlock, Value blocks,
                 ArrayRef<VectorPiece> pieces);
  void storeResult(const TileRows &rows);

  /// The cache's block with number `number` of the tile's sequence.
  Value loadBlock(const TileRows &rows, Value number) {
    return b.loadIndex(op.getBlockTables(), {rows.sequence, number});
  }
  /// The block read one head later in the place of the block `number`.
  Value loadNextBlock(const TileRows &rows, Value number) {
    Value lastBlock = b.div(b.sub(rows.positions, b.index(1)), blockTokens);
    Value inNextChunk = b.min(b.add(number, shape.chunk), lastBlock);
    return loadBlock(
        rows, arith::SelectOp::create(b, rows.endsChunk, inNextChunk, number));
  }
  void prefetch(Value block, Value head, int64_t part, Value offset) {
    memref::PrefetchOp::create(b, cache,
                               {block, layer, head, b.index(part), offset},
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }

  LoopBuilder &b;
  const ProgramContext &program;
  AttentionOp op;
  Value cache, layer, zero;
  int64_t cacheHeads, headDim, queryHeads, group;
  /// Elements of the cache in a cache line.
  int64_t lineElements;
  TileShape shape;
  /// Whether the cache comes from memory: only then prefetching pays.
  bool streams = false;

  /// [tiles, rows, head_dim] queries times the scale.
  Value queries;
  /// [rows, positions of a chunk] scores, then their exponentials.
  Value scores;
  /// [tiles, rows, head_dim] weighted sums of values.
  Value sums;
  /// [tiles, rows, 16] sums of exponentials, by position modulo 16.
  Value totals;
  /// [tiles, 16] one element a row: its largest score so far.
  Value maxima;
  /// [16] one element a row: its position, its largest score in this chunk, and
  /// the factor that follows from that and `maxima`.
  Value limits, chunkMaxima, factors;
};

} // namespace

/// `model_limits::attentionStackBytes` counts the most that this takes.
void AttentionBuilder::allocateScratch(int64_t tiles) {
  assert(shape.rows <= vectorWidth);
  Type f32 = b.getF32Type();
  unsigned place = 0;
  auto allocate = [&](ArrayRef<int64_t> dimensions, Type type) {
    Value &memory =
        program.scratch[{place++, MemRefType::get(dimensions, type)}];
    if (!memory)
      memory = b.scratch(program.function, dimensions, type);
    return memory;
  };
  queries = allocate({tiles, shape.rows, headDim}, f32);
  scores = allocate({shape.rows, shape.chunk * blockTokens}, f32);
  sums = allocate({tiles, shape.rows, headDim}, f32);
  totals = allocate({tiles, shape.rows, vectorWidth}, f32);
  maxima = allocate({tiles, vectorWidth}, f32);
  limits = allocate({vectorWidth}, b.getI32Type());
  chunkMaxima = allocate({vectorWidth}, f32);
  factors = allocate({vectorWidth}, f32);
}

void AttentionBuilder::loadQueries(const TileRows &rows) {
  Value scale = b.constant(op.getScale().convertToFloat());
  b.storeVector(b.splat(masked), maxima, {rows.tile, zero});
  b.storeVector(b.splat(masked), chunkMaxima, zero);
  b.forLoop(zero, b.index(shape.rows), 1, [&](Value row) {
    Value token = rows.token(row), channel = rows.channel(row);
    Value position = memref::LoadOp::create(b, op.getPositions(), token);
    memref::StoreOp::create(b, position, limits, row);
    b.storeVector(b.splat(0), totals, {rows.tile, row, zero});
    b.forVectors(headDim, [&](Value first, int64_t width) {
      Value query =
          b.loadVector(op.getQuery(), {token, b.add(channel, first)}, width);
      b.storeVector(b.mulf(query, b.broadcast(scale, width)), queries,
                    {rows.tile, row, first});
      b.storeVector(b.splat(0, width), sums, {rows.tile, row, first});
    });
  });
}

void AttentionBuilder::computeScores(const TileRows &rows, Value firstBlock,
                                     Value blocks) {
  Value lastBlock = b.sub(b.add(firstBlock, blocks), b.index(1));
  b.forLoop(zero, blocks, shape.blocks, [&](Value block) {
    // Where the number of blocks is no multiple, the last one comes twice.
    SmallVector<Value> cacheBlocks, nextBlocks;
    for (int64_t i = 0; i < shape.blocks; ++i) {
      Value number = b.add(b.add(firstBlock, block), i);
      if (i > 0)
        number = b.min(number, lastBlock);
      cacheBlocks.push_back(loadBlock(rows, number));
      if (streams)
        nextBlocks.push_back(loadNextBlock(rows, number));
    }
    int64_t count = shape.rows * shape.blocks * shape.parts;
    SmallVector<Value> products(count, b.splat(0));
    int64_t stride = shape.rows * shape.blocks;
    products = b.forLoop(
        zero, b.index(headDim), shape.channels, products,
        [&](Value firstChannel, ValueRange carried) {
          SmallVector<Value> next(carried);
          for (int64_t i = 0; i < shape.channels; ++i) {
            Value channel = b.add(firstChannel, i);
            Value offset = b.mul(channel, blockTokens);
            SmallVector<Value> keys;
            for (Value cacheBlock : cacheBlocks)
              keys.push_back(b.loadVector(
                  cache, {cacheBlock, layer, rows.head, zero, offset}));
            size_t sum = i % shape.parts * stride;
            for (int64_t row = 0; row < shape.rows; ++row) {
              Value query = b.broadcast(
                  b.loadScalar(queries, {rows.tile, b.index(row), channel}));
              for (Value key : keys) {
                next[sum] = b.fma(query, key, next[sum]);
                ++sum;
              }
            }
            // Values are read right after the chunk's scores, and after them
            // the next keys. All are prefetched twice: some first prefetches
            // seem to be dropped while too many misses are under way.
            if (streams && i * blockTokens % lineElements == 0)
              for (auto [cacheBlock, nextBlock] :
                   llvm::zip(cacheBlocks, nextBlocks)) {
                prefetch(cacheBlock, rows.head, 1, offset);
                prefetch(nextBlock, rows.nextHead, 0, offset);
              }
          }
          return next;
        });
    for (int64_t i = 0; i < stride; ++i) {
      // Added in pairs.
      for (int64_t width = shape.parts / 2; width > 0; width /= 2)
        for (int64_t part = 0; part < width; ++part)
          products[i + part * stride] =
              b.addf(products[i + part * stride],
                     products[i + (part + width) * stride]);
      Value column = b.mul(b.add(block, i % shape.blocks), blockTokens);
      b.storeVector(products[i], scores, {b.index(i / shape.blocks), column});
    }
  });
}

void AttentionBuilder::weighScores(const TileRows &rows, Value firstBlock,
                                   Value blocks) {
  Value tokens = b.mul(blocks, blockTokens);
  auto positionsType = VectorType::get({vectorWidth}, b.getI32Type());
  auto lanes = llvm::to_vector(llvm::seq<int32_t>(0, vectorWidth));
  Value lane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(positionsType, ArrayRef(lanes)));
  Value firstPosition = arith::IndexCastOp::create(
      b, b.getI32Type(), b.mul(firstBlock, blockTokens));

  // Mask what a row does not attend to: later positions, of which slots that
  // were never written may hold anything.
  b.forLoop(zero, b.index(shape.rows), 1, [&](Value row) {
    Value limit = arith::SubIOp::create(
        b, memref::LoadOp::create(b, limits, row), firstPosition);
    SmallVector<Value> largest = b.forLoop(
        zero, tokens, vectorWidth, b.splat(masked),
        [&](Value column, ValueRange carried) {
          Value offset = arith::IndexCastOp::create(b, b.getI32Type(), column);
          Value positions = arith::AddIOp::create(b, lane, b.broadcast(offset));
          Value attends = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                                positions, b.broadcast(limit));
          Value score = arith::SelectOp::create(
              b, attends, b.loadVector(scores, {row, column}), b.splat(masked));
          b.storeVector(score, scores, {row, column});
          return SmallVector<Value>{b.maxf(score, carried[0])};
        });
    b.storeScalar(b.reduceMax(largest[0]), chunkMaxima, row);
  });

  // All rows in one vector.
  Value before = b.loadVector(maxima, {rows.tile, zero});
  Value after = b.maxf(before, b.loadVector(chunkMaxima, zero));
  b.storeVector(after, maxima, {rows.tile, zero});
  b.storeVector(math::ExpOp::create(b, b.subf(before, after)), factors, zero);

  b.forLoop(zero, b.index(shape.rows), 1, [&](Value row) {
    Value largest = b.broadcast(b.loadScalar(maxima, {rows.tile, row}));
    Value factor = b.broadcast(b.loadScalar(factors, row));
    Value total = b.mulf(b.loadVector(totals, {rows.tile, row, zero}), factor);
    total = b.forLoop(zero, tokens, vectorWidth, total,
                      [&](Value column, ValueRange carried) {
                        Value score = b.loadVector(scores, {row, column});
                        Value weight =
                            math::ExpOp::create(b, b.subf(score, largest));
                        b.storeVector(weight, scores, {row, column});
                        return SmallVector<Value>{b.addf(carried[0], weight)};
                      })[0];
    b.storeVector(total, totals, {rows.tile, row, zero});
  });
}

void AttentionBuilder::addValues(const TileRows &rows, Value firstBlock,
                                 Value blocks, ArrayRef<VectorPiece> pieces) {
  SmallVector<Value> weighted;
  for (int64_t row = 0; row < shape.rows; ++row) {
    Value factor = b.loadScalar(factors, b.index(row));
    for (VectorPiece piece : pieces)
      weighted.push_back(b.mulf(
          b.loadVector(sums, {rows.tile, b.index(row), b.index(piece.first)},
                       piece.width),
          b.broadcast(factor, piece.width)));
  }
  weighted = b.forLoop(
      zero, blocks, 1, weighted, [&](Value block, ValueRange carriedByBlock) {
        Value number = b.add(firstBlock, block);
        Value cacheBlock = loadBlock(rows, number);
        // The keys and values of the next head, or of the next chunk, are read
        // right after these values.
        Value nextBlock;
        if (streams)
          nextBlock = loadNextBlock(rows, number);
        // Slots beyond the last position may hold no numbers: not even zero
        // times them is zero.
        Value rest = b.sub(rows.positions, b.mul(number, blockTokens));
        Value tokens = b.min(rest, b.index(blockTokens));
        Value column = b.mul(block, blockTokens);
        auto addToken = [&](Value token, ValueRange carried) {
          SmallVector<Value> next(carried);
          Value offset = b.mul(token, headDim);
          for (VectorPiece piece : pieces)
            if (streams && piece.first % lineElements == 0) {
              Value element = b.add(offset, piece.first);
              prefetch(nextBlock, rows.nextHead, 0, element);
              prefetch(nextBlock, rows.nextHead, 1, element);
            }
          SmallVector<Value> values;
          for (VectorPiece piece : pieces)
            values.push_back(
                b.loadVector(cache,
                             {cacheBlock, layer, rows.head, b.index(1),
                              b.add(offset, piece.first)},
                             piece.width));
          size_t sum = 0;
          for (int64_t row = 0; row < shape.rows; ++row) {
            Value weight =
                b.loadScalar(scores, {b.index(row), b.add(column, token)});
            for (auto [piece, value] : llvm::zip(pieces, values)) {
              next[sum] =
                  b.fma(b.broadcast(weight, piece.width), value, next[sum]);
              ++sum;
            }
          }
          return next;
        };
        Value whole = b.mul(b.div(tokens, shape.tokens), shape.tokens);
        SmallVector<Value> carried =
            b.forLoop(zero, whole, shape.tokens, carriedByBlock,
                      [&](Value token, ValueRange carried) {
                        SmallVector<Value> next(carried);
                        for (int64_t i = 0; i < shape.tokens; ++i)
                          next = addToken(b.add(token, i), next);
                        return next;
                      });
        if (shape.tokens == 1)
          return carried;
        return b.forLoop(whole, tokens, 1, carried, addToken);
      });
  size_t sum = 0;
  for (int64_t row = 0; row < shape.rows; ++row)
    for (VectorPiece piece : pieces)
      b.storeVector(weighted[sum++], sums,
                    {rows.tile, b.index(row), b.index(piece.first)});
}

void AttentionBuilder::storeResult(const TileRows &rows) {
  b.forLoop(zero, rows.count, 1, [&](Value row) {
    Value total = b.reduceAdd(b.loadVector(totals, {rows.tile, row, zero}));
    Value factor = arith::DivFOp::create(b, b.constant(1), total);
    Value token = rows.token(row), channel = rows.channel(row);
    b.forVectors(headDim, [&](Value first, int64_t width) {
      Value sum = b.loadVector(sums, {rows.tile, row, first}, width);
      b.storeVector(b.mulf(sum, b.broadcast(factor, width)),
                    op.getDestination(), {token, b.add(channel, first)});
    });
  });
}

/// Calls `body` for the chunks of a sequence of `positions`.
void AttentionBuilder::forChunks(
    Value positions,
    llvm::function_ref<void(Value firstBlock, Value blocks)> body) {
  Value blocks = b.div(b.add(positions, blockTokens - 1), blockTokens);
  b.forLoop(zero, blocks, shape.chunk, [&](Value firstBlock) {
    body(firstBlock, b.min(b.sub(blocks, firstBlock), b.index(shape.chunk)));
  });
}

void AttentionBuilder::addChunk(const TileRows &rows, Value firstBlock,
                                Value blocks) {
  SmallVector<VectorPiece> pieces = cutIntoVectors(headDim);
  // Passes over the chunk's values, with about equally many vectors each.
  int64_t passes =
      std::max<int64_t>(1, llvm::divideCeil(pieces.size(), shape.valueVectors));
  int64_t piecesInPass = llvm::divideCeil(pieces.size(), passes);
  computeScores(rows, firstBlock, blocks);
  weighScores(rows, firstBlock, blocks);
  for (ArrayRef<VectorPiece> rest = pieces; !rest.empty();
       rest = rest.drop_front(std::min<size_t>(piecesInPass, rest.size())))
    addValues(rows, firstBlock, blocks, rest.take_front(piecesInPass));
}

/// Each thread takes consecutive heads of every token, so that all get their
/// part of long and of short sequences, and the larger parts in turn. A block's
/// heads are neighbours in memory, one head's blocks are far apart: a thread
/// reads all its heads of a chunk before the next chunk, and keeps the sums of
/// all. The query heads that share the cache's head are the rows of tiles: keys
/// and values are read from memory once for all of them.
void AttentionBuilder::buildDecode() {
  shape.rows = largestDivisor(
      group, std::min<int64_t>(independentSums, program.accumulators));
  shape.blocks = 2 * shape.rows <= program.accumulators ? 2 : 1;
  shape.parts = 1;
  while (shape.parts * shape.blocks * shape.rows < independentSums &&
         2 * shape.parts * shape.blocks * shape.rows <= program.accumulators &&
         headDim % (2 * shape.parts) == 0)
    shape.parts *= 2;
  // A step reads whole cache lines, to prefetch each but twice, and more of
  // them the less there is to do with each.
  int64_t fewRows = llvm::bit_floor<uint64_t>(16 / shape.rows);
  shape.channels = std::max({shape.parts, lineElements / blockTokens, fewRows});
  if (headDim % shape.channels != 0)
    shape.channels = shape.parts;
  shape.tokens = std::max<int64_t>(1, 4 / shape.rows);
  shape.valueVectors = std::max<int64_t>(1, program.accumulators / shape.rows);
  shape.chunk = 2;
  streams = true;
  int64_t tilesOfHead = group / shape.rows;
  allocateScratch(llvm::divideCeil(cacheHeads, program.threads) * tilesOfHead);

  Value tokens = memref::DimOp::create(b, op.getQuery(), 0);
  b.forLoop(zero, tokens, 1, [&](Value token) {
    Value place = b.rem(b.add(program.thread, token), b.index(program.threads));
    auto [firstHead, endHead] =
        b.threadRange(b.index(cacheHeads), place, program.threads);
    Value sequence = b.loadIndex(op.getSequences(), token);
    Value positions = b.add(b.loadIndex(op.getPositions(), token), 1);
    auto forTiles = [&](llvm::function_ref<void(const TileRows &)> body) {
      b.forLoop(firstHead, endHead, 1, [&](Value head) {
        Value following = b.add(head, 1);
        Value endsChunk = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                following, endHead);
        Value nextHead =
            arith::SelectOp::create(b, endsChunk, firstHead, following);
        Value firstTile = b.mul(b.sub(head, firstHead), tilesOfHead);
        b.forLoop(zero, b.index(tilesOfHead), 1, [&](Value tileOfHead) {
          Value firstRow =
              b.add(b.mul(head, group), b.mul(tileOfHead, shape.rows));
          body({[&](Value) { return token; },
                [&](Value row) { return b.mul(b.add(firstRow, row), headDim); },
                b.index(shape.rows), sequence, head, positions,
                b.add(firstTile, tileOfHead), nextHead, endsChunk});
        });
      });
    };
    forTiles([&](const TileRows &rows) { loadQueries(rows); });
    forChunks(positions, [&](Value firstBlock, Value blocks) {
      forTiles(
          [&](const TileRows &rows) { addChunk(rows, firstBlock, blocks); });
    });
    forTiles([&](const TileRows &rows) { storeResult(rows); });
  });
}

/// The rows of a tile are consecutive tokens of one query head. Later tiles
/// attend to more positions: each thread takes one of each n tiles, in turn
/// from the left and from the right, and another one first for every head.
void AttentionBuilder::buildPrefill() {
  shape.blocks = program.accumulators >= 16 ? 2 : 1;
  shape.rows = std::clamp<int64_t>(program.accumulators / shape.blocks, 1, 12);
  shape.parts = shape.channels = 1;
  shape.valueVectors = shape.blocks;
  allocateScratch(/*tiles=*/1);

  Value tokens = memref::DimOp::create(b, op.getQuery(), 0);
  Value tiles = b.div(b.add(tokens, shape.rows - 1), shape.rows);
  int64_t threads = program.threads;
  b.forLoop(zero, b.index(queryHeads), 1, [&](Value queryHead) {
    Value place = b.rem(b.add(program.thread, queryHead), threads);
    Value mirrored = b.sub(b.index(threads - 1), place);
    b.forLoop(zero, tiles, threads, [&](Value firstTile) {
      Value odd = b.rem(b.div(firstTile, threads), 2);
      Value isOdd =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, odd, zero);
      Value tile =
          b.add(firstTile, arith::SelectOp::create(b, isOdd, mirrored, place));
      Value exists =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, tile, tiles);
      b.ifThen(exists, [&] {
        Value firstToken = b.mul(tile, shape.rows);
        Value rest = b.sub(tokens, firstToken);
        Value count = b.min(rest, b.index(shape.rows));
        Value lastToken = b.sub(b.add(firstToken, count), b.index(1));
        Value sequence = b.loadIndex(op.getSequences(), lastToken);
        Value positions = b.add(b.loadIndex(op.getPositions(), lastToken), 1);
        Value firstChannel = b.mul(queryHead, headDim);
        Value head = b.div(queryHead, group);
        TileRows rows{
            [&](Value row) { return b.min(b.add(firstToken, row), lastToken); },
            [&](Value) { return firstChannel; },
            count,
            sequence,
            head,
            positions,
            zero};
        loadQueries(rows);
        forChunks(positions, [&](Value firstBlock, Value blocks) {
          addChunk(rows, firstBlock, blocks);
        });
        storeResult(rows);
      });
    });
  });
}

void lm::lowerAttention(LoopBuilder &builder, const ProgramContext &program,
                        AttentionOp op) {
  AttentionBuilder attention(builder, program, op);
  if (program.phase == Phase::Decode)
    attention.buildDecode();
  else
    attention.buildPrefill();
}
