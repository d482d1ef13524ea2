//===- AttentionTile.cpp - Queries that meet the same keys ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "sandwich/Target/Target.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static constexpr int64_t blockTokens = KVCacheType::blockTokens;
static_assert(blockTokens == vectorWidth, "one vector of scores is one block");
static_assert(maxAttentionRows <= vectorWidth, "rows are elements of a vector");

/// Smaller than every score, and finite: its distance to any score is too.
static constexpr float masked = -1e30f;

StreamingSoftmaxBuilder::StreamingSoftmaxBuilder(LoopBuilder &builder,
                                                 const ProgramContext &program,
                                                 AttentionOp op)
    : b(builder), program(program), op(op), cache(op.getKvCache()),
      layer(op.getLayer()), zero(builder.index(0)),
      cacheType(getKVCacheType(cache.getType())),
      headDim(cacheType.getHeadDim()) {}

AttentionTileBuilder::AttentionTileBuilder(LoopBuilder &builder,
                                           const ProgramContext &program,
                                           AttentionOp op)
    : StreamingSoftmaxBuilder(builder, program, op),
      lineElements(8 * cacheLineBytes /
                   cacheType.getElementType().getIntOrFloatBitWidth()),
      together(cacheType.getKeyChannelsTogether()) {}

//===----------------------------------------------------------------------===//
// Shapes and memory
//===----------------------------------------------------------------------===//

void AttentionTileBuilder::setShape(const AttentionTile &tile, int64_t kept,
                                    bool reads) {
  shape = Shape();
  shape.rows = tile.rows;
  shape.blocks = tile.keyBlocks;
  shape.chunk = tile.chunk;
  shape.valueVectors = std::max<int64_t>(1, program.accumulators / shape.rows);
  shape.evenAndOdd = cacheType.getElementType().isBF16() &&
                     headDim % (2 * vectorWidth) == 0 && shape.valueVectors > 1;
  if (shape.evenAndOdd)
    shape.valueVectors -= shape.valueVectors % 2;
  streams = reads;
  if (streams) {
    shape.parts = scoreParts(tile, headDim, program.accumulators);
    shapeForStream();
  }
  shape.channels = std::max(shape.channels, together);
  allocateScratch(kept);
}

void AttentionTileBuilder::shapeForStream() {
  // A step reads whole cache lines, to prefetch each but once, and more of
  // them the less there is to do with each.
  int64_t fewRows = llvm::bit_floor<uint64_t>(16 / shape.rows);
  shape.channels = std::max({shape.parts, lineElements / blockTokens, fewRows});
  if (headDim % shape.channels != 0)
    shape.channels = shape.parts;
  shape.tokens = std::max<int64_t>(1, 4 / shape.rows);
}

/// `model_limits::attentionStackBytes` and `attentionScoreBytes` count the most
/// that this takes.
void AttentionTileBuilder::allocateScratch(int64_t tiles) {
  Type f32 = b.getF32Type();
  queries = allocate(0, {tiles, shape.rows, headDim}, f32);
  scores = allocate(1, {shape.rows, shape.chunk * blockTokens}, f32);
  sums = allocate(2, {tiles, shape.rows, headDim}, f32);
  totals = allocate(3, {tiles, shape.rows, vectorWidth}, f32);
  maxima = allocate(4, {tiles, vectorWidth}, f32);
  limits = allocate(5, {tiles, vectorWidth}, b.getI32Type());
  chunkMaxima = allocate(6, {vectorWidth}, f32);
  factors = allocate(7, {vectorWidth}, f32);
}

Value StreamingSoftmaxBuilder::allocate(unsigned place,
                                        ArrayRef<int64_t> dimensions,
                                        Type type) {
  Value &memory = program.scratch[{place, MemRefType::get(dimensions, type)}];
  if (!memory)
    memory = b.scratch(program.function, dimensions, type);
  return memory;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value lm::positionsAttended(LoopBuilder &builder, AttentionOp op,
                            const SegmentValues &segment, Value token) {
  return builder.add(segment.firstPosition, op.getBidirectional()
                                                ? segment.tokens
                                                : builder.add(token, 1));
}

Value StreamingSoftmaxBuilder::channelOf(const TileRows &rows, Value row) {
  return b.mul(rows.queryHead(row), headDim);
}

Value StreamingSoftmaxBuilder::loadBlock(const SegmentValues &segment,
                                         Value number) {
  return b.loadIndex(op.getBlockTables(), b.add(segment.firstBlock, number));
}

Value AttentionTileBuilder::loadNextBlock(const TileRows &rows, Value number) {
  Value lastBlock = b.div(b.sub(rows.positions, b.index(1)), blockTokens);
  Value inNextChunk = b.min(b.add(number, shape.chunk), lastBlock);
  return loadBlock(rows.segment, arith::SelectOp::create(b, rows.endsChunk,
                                                         inNextChunk, number));
}

void StreamingSoftmaxBuilder::prefetch(Value block, Value head, int64_t part,
                                       Value offset, unsigned locality) {
  memref::PrefetchOp::create(b, cache,
                             {block, layer, head, b.index(part), offset},
                             /*isWrite=*/false, locality,
                             /*isDataCache=*/true);
}

Value StreamingSoftmaxBuilder::loadScales(Value block, Value head,
                                          int64_t part) {
  auto bytes =
      VectorType::get({blockTokens * KVCacheType::scaleBytes}, b.getI8Type());
  Value loaded =
      vector::LoadOp::create(b, bytes, cache,
                             ValueRange{block, layer, head, b.index(part),
                                        b.index(cacheType.getScalesOffset())});
  return vector::BitCastOp::create(
      b, VectorType::get({blockTokens}, b.getF32Type()), loaded);
}

void StreamingSoftmaxBuilder::prefetchScales(Value block, Value head,
                                             int64_t part) {
  prefetch(block, head, part, b.index(cacheType.getScalesOffset()));
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

void AttentionTileBuilder::loadQueries(const TileRows &rows) {
  Value scale = b.constant(op.getScale().convertToFloat());
  b.storeVector(b.splat(masked), maxima, {rows.tile, zero});
  b.storeVector(b.splat(masked), chunkMaxima, zero);
  b.forLoop(zero, b.index(shape.rows), 1, [&](Value row) {
    Value token = rows.token(row), channel = channelOf(rows, row);
    Value attended = positionsAttended(b, op, rows.segment, token);
    memref::StoreOp::create(
        b, arith::IndexCastOp::create(b, b.getI32Type(), attended), limits,
        ValueRange{rows.tile, row});
    token = b.add(rows.segment.firstToken, token);
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

/// Of each channel that lies together with others, those of all blocks.
SmallVector<SmallVector<Value>>
AttentionTileBuilder::loadKeys(ArrayRef<Value> cacheBlocks, Value head,
                               Value offset) {
  SmallVector<SmallVector<Value>> keys(together);
  for (Value cacheBlock : cacheBlocks) {
    Value place[] = {cacheBlock, layer, head, zero, offset};
    if (together == 1) {
      keys[0].push_back(b.loadVector(cache, place));
      continue;
    }
    auto [even, odd] = b.loadEvenAndOdd(cache, place);
    keys[0].push_back(even);
    keys[1].push_back(odd);
  }
  return keys;
}

void AttentionTileBuilder::computeScores(const TileRows &rows, Value firstBlock,
                                         Value blocks) {
  Value lastBlock = b.sub(b.add(firstBlock, blocks), b.index(1));
  b.forLoop(zero, blocks, shape.blocks, [&](Value block) {
    // Where the number of blocks is no multiple, the last one comes twice.
    SmallVector<Value> cacheBlocks, nextBlocks;
    for (int64_t i = 0; i < shape.blocks; ++i) {
      Value number = b.add(b.add(firstBlock, block), i);
      if (i > 0)
        number = b.min(number, lastBlock);
      cacheBlocks.push_back(loadBlock(rows.segment, number));
      if (streams)
        nextBlocks.push_back(loadNextBlock(rows, number));
    }
    int64_t count = shape.rows * shape.blocks * shape.parts;
    SmallVector<Value> products(count, b.splat(0));
    int64_t stride = shape.rows * shape.blocks;
    products =
        b.forLoop(zero, b.index(headDim), shape.channels, products,
                  [&](Value firstChannel, ValueRange carried) {
                    SmallVector<Value> next(carried);
                    SmallVector<SmallVector<Value>> keys;
                    for (int64_t i = 0; i < shape.channels; ++i) {
                      Value channel = b.add(firstChannel, i);
                      Value offset = b.mul(channel, blockTokens);
                      if (i % together == 0)
                        keys = loadKeys(cacheBlocks, rows.head, offset);
                      size_t sum = i % shape.parts * stride;
                      for (int64_t row = 0; row < shape.rows; ++row) {
                        Value query = b.broadcast(b.loadScalar(
                            queries, {rows.tile, b.index(row), channel}));
                        for (Value key : keys[i % together]) {
                          next[sum] = b.fma(query, key, next[sum]);
                          ++sum;
                        }
                      }
                      // Keys and values are asked for once, while those of the
                      // head before are read.
                      if (streams && i * blockTokens % lineElements == 0)
                        for (Value nextBlock : nextBlocks)
                          prefetch(nextBlock, rows.nextHead, 0, offset);
                    }
                    return next;
                  });
    SmallVector<Value> scales;
    if (cacheType.hasScales()) {
      for (Value cacheBlock : cacheBlocks)
        scales.push_back(loadScales(cacheBlock, rows.head, 0));
      for (Value nextBlock : nextBlocks)
        prefetchScales(nextBlock, rows.nextHead, 0);
    }
    for (int64_t i = 0; i < stride; ++i) {
      // Added in pairs.
      for (int64_t width = shape.parts / 2; width > 0; width /= 2)
        for (int64_t part = 0; part < width; ++part)
          products[i + part * stride] =
              b.addf(products[i + part * stride],
                     products[i + (part + width) * stride]);
      if (!scales.empty())
        products[i] = b.mulf(products[i], scales[i % shape.blocks]);
      Value column = b.mul(b.add(block, i % shape.blocks), blockTokens);
      b.storeVector(products[i], scores, {b.index(i / shape.blocks), column});
    }
  });
}

void AttentionTileBuilder::weighScores(const TileRows &rows, Value firstBlock,
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
        b, memref::LoadOp::create(b, limits, ValueRange{rows.tile, row}),
        firstPosition);
    SmallVector<Value> largest = b.forLoop(
        zero, tokens, vectorWidth, b.splat(masked),
        [&](Value column, ValueRange carried) {
          Value offset = arith::IndexCastOp::create(b, b.getI32Type(), column);
          Value positions = arith::AddIOp::create(b, lane, b.broadcast(offset));
          Value attends = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                                positions, b.broadcast(limit));
          Value score = arith::SelectOp::create(
              b, attends, b.loadVector(scores, {row, column}), b.splat(masked));
          b.storeVector(score, scores, {row, column});
          return SmallVector<Value>{b.maxf(score, carried[0])};
        });
    b.storeScalar(b.reduceMax(largest[0]), chunkMaxima, row);
  });

  // By the scales of the values that they weigh.
  auto scaleWeights = [&](Value weights, Value column) {
    if (!cacheType.hasScales())
      return weights;
    Value number = b.add(firstBlock, b.div(column, blockTokens));
    return b.mulf(weights,
                  loadScales(loadBlock(rows.segment, number), rows.head, 1));
  };

  // All rows in one vector.
  Value before = b.loadVector(maxima, {rows.tile, zero});
  Value after = b.maxf(before, b.loadVector(chunkMaxima, zero));
  b.storeVector(after, maxima, {rows.tile, zero});
  b.storeVector(math::ExpOp::create(b, b.subf(before, after)), factors, zero);

  b.forLoop(zero, b.index(shape.rows), 1, [&](Value row) {
    Value largest = b.broadcast(b.loadScalar(maxima, {rows.tile, row}));
    Value factor = b.broadcast(b.loadScalar(factors, row));
    Value total = b.mulf(b.loadVector(totals, {rows.tile, row, zero}), factor);
    total = b.forLoop(
        zero, tokens, vectorWidth, total,
        [&](Value column, ValueRange carried) {
          Value score = b.loadVector(scores, {row, column});
          Value weight = math::ExpOp::create(b, b.subf(score, largest));
          b.storeVector(scaleWeights(weight, column), scores, {row, column});
          return SmallVector<Value>{b.addf(carried[0], weight)};
        })[0];
    b.storeVector(total, totals, {rows.tile, row, zero});
  });
}

void AttentionTileBuilder::addValues(const TileRows &rows, Value firstBlock,
                                     Value blocks,
                                     ArrayRef<VectorPiece> pieces) {
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
        Value cacheBlock = loadBlock(rows.segment, number);
        // Of the next head, or of the next chunk.
        Value nextBlock;
        if (streams) {
          nextBlock = loadNextBlock(rows, number);
          if (cacheType.hasScales())
            prefetchScales(nextBlock, rows.nextHead, 1);
        }
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
              prefetch(nextBlock, rows.nextHead, 1, element);
            }
          SmallVector<Value> values;
          for (VectorPiece piece : pieces) {
            Value place[] = {cacheBlock, layer, rows.head, b.index(1),
                             b.add(offset, piece.first)};
            if (!shape.evenAndOdd) {
              values.push_back(b.loadVector(cache, place, piece.width));
            } else if (piece.first % (2 * vectorWidth) == 0) {
              auto [even, odd] = b.loadEvenAndOdd(cache, place);
              values.append({even, odd});
            }
          }
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

void StreamingSoftmaxBuilder::storeRow(
    const TileRows &rows, Value row, Value totals,
    function_ref<Value(Value first, int64_t width)> loadSums) {
  Value factor = arith::DivFOp::create(b, b.constant(1), b.reduceAdd(totals));
  Value token = b.add(rows.segment.firstToken, rows.token(row));
  Value channel = channelOf(rows, row);
  b.forVectors(headDim, [&](Value first, int64_t width) {
    b.storeVector(b.mulf(loadSums(first, width), b.broadcast(factor, width)),
                  op.getDestination(), {token, b.add(channel, first)});
  });
}

/// Sums of channels in their order.
Value AttentionTileBuilder::loadSums(const TileRows &rows, Value row,
                                     Value first, int64_t width) {
  auto load = [&](Value place, int64_t count) {
    return b.loadVector(sums, {rows.tile, row, place}, count);
  };
  if (!shape.evenAndOdd)
    return load(first, width);
  // A vector of even channels is followed by that of the odd ones.
  constexpr int64_t both = 2 * vectorWidth;
  Value even =
      b.add(b.mul(b.div(first, both), both), b.div(b.rem(first, both), 2));
  return vector::InterleaveOp::create(
      b, load(even, width / 2), load(b.add(even, vectorWidth), width / 2));
}

void AttentionTileBuilder::storeResult(const TileRows &rows) {
  b.forLoop(zero, rows.count, 1, [&](Value row) {
    storeRow(rows, row, b.loadVector(totals, {rows.tile, row, zero}),
             [&](Value first, int64_t width) {
               return loadSums(rows, row, first, width);
             });
  });
}

void AttentionTileBuilder::addChunk(const TileRows &rows, Value firstBlock,
                                    Value blocks) {
  SmallVector<VectorPiece> pieces = cutIntoVectors(headDim);
  // Passes over the chunk's values, with about equally many vectors each.
  int64_t passes =
      std::max<int64_t>(1, llvm::divideCeil(pieces.size(), shape.valueVectors));
  int64_t piecesInPass = llvm::divideCeil(pieces.size(), passes);
  if (shape.evenAndOdd)
    piecesInPass += piecesInPass % 2;
  computeScores(rows, firstBlock, blocks);
  weighScores(rows, firstBlock, blocks);
  for (ArrayRef<VectorPiece> rest = pieces; !rest.empty();
       rest = rest.drop_front(std::min<size_t>(piecesInPass, rest.size())))
    addValues(rows, firstBlock, blocks, rest.take_front(piecesInPass));
}

void AttentionTileBuilder::storePart(const TileRows &rows, Value part,
                                     const PartialSums &partial) {
  b.forLoop(zero, rows.count, 1, [&](Value row) {
    Value head = rows.queryHead(row);
    b.storeScalar(b.loadScalar(maxima, {rows.tile, row}), partial.scales,
                  {part, head, zero});
    b.storeScalar(b.reduceAdd(b.loadVector(totals, {rows.tile, row, zero})),
                  partial.scales, {part, head, b.index(1)});
    b.forVectors(headDim, [&](Value first, int64_t width) {
      b.storeVector(loadSums(rows, row, first, width), partial.sums,
                    {part, head, first});
    });
  });
}
