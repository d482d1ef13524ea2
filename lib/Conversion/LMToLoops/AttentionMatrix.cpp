//===- AttentionMatrix.cpp - Attention by matrix instructions -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionMatrix.h"

#include "sandwich/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static constexpr int64_t blockTokens = KVCacheType::blockTokens;

/// Smaller than every score, and finite: its distance to any score is too.
static constexpr float masked = -1e30f;

/// Channels of a key that lie beside each other in the cache, and tokens whose
/// values do once they are packed.
static constexpr int64_t pair = 2;

AttentionMatrixBuilder::AttentionMatrixBuilder(
    LoopBuilder &builder, const ProgramContext &program, AttentionOp op,
    const AttentionSchedule &schedule)
    : b(builder), program(program), op(op), cache(op.getKvCache()),
      layer(op.getLayer()), zero(builder.index(0)),
      cacheType(getKVCacheType(cache.getType())),
      headDim(cacheType.getHeadDim()), tile(schedule.prefill),
      kernels(prefillMicroKernels(schedule, headDim)),
      packing(packingOf(kernels.scores)),
      valuesPacking(packingOf(kernels.values)),
      scale(op.getScale().convertToFloat() * std::numbers::log2e_v<float>) {
  Type f32 = b.getF32Type(), bf16 = b.getBF16Type();
  if (hasTiles(*schedule.instructions))
    tileRows = b.index(tile.rows);
  const int64_t rows = schedule.tiles * tile.rows;
  const int64_t tokens = tile.chunk * blockTokens;
  queries = allocate(0, {rows, headDim}, bf16);
  scores = allocate(1, {tile.rows, tokens}, f32);
  sums = allocate(2, {rows, headDim}, f32);
  totals = allocate(3, {rows, vectorWidth}, f32);
  maxima = allocate(4, {schedule.tiles, vectorWidth}, f32);
  chunkMaxima = allocate(6, {vectorWidth}, f32);
  factors = allocate(7, {vectorWidth}, f32);
  weights = allocate(8, {tile.rows, tokens}, bf16);
  keys = allocate(9, {tokens * headDim}, bf16);
  values = allocate(10, {tokens * headDim}, bf16);
  if (cacheType.hasScales()) {
    keyScales = allocate(11, {tokens}, f32);
    valueScales = allocate(12, {tokens}, f32);
  }
}

//===----------------------------------------------------------------------===//
// Places and memory
//===----------------------------------------------------------------------===//

Value AttentionMatrixBuilder::allocate(unsigned place,
                                       ArrayRef<int64_t> dimensions,
                                       Type type) {
  Value &memory = program.scratch[{place, MemRefType::get(dimensions, type)}];
  if (!memory)
    memory = b.scratch(program.function, dimensions, type);
  return memory;
}

Value lm::positionsAttended(LoopBuilder &builder, AttentionOp op,
                            const SegmentValues &segment, Value token) {
  return builder.add(segment.firstPosition, op.getBidirectional()
                                                ? segment.tokens
                                                : builder.add(token, 1));
}

Value AttentionMatrixBuilder::channelOf(const TileRows &rows, Value row) {
  return b.mul(rows.queryHead(row), headDim);
}

Value AttentionMatrixBuilder::loadBlock(const SegmentValues &segment,
                                        Value number) {
  return b.loadIndex(op.getBlockTables(), b.add(segment.firstBlock, number));
}

void AttentionMatrixBuilder::prefetch(Value block, Value head, int64_t part,
                                      Value offset) {
  memref::PrefetchOp::create(b, cache,
                             {block, layer, head, b.index(part), offset},
                             /*isWrite=*/false, /*localityHint=*/2,
                             /*isDataCache=*/true);
}

Value AttentionMatrixBuilder::loadScales(Value block, Value head,
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

Value AttentionMatrixBuilder::firstRowOf(const TileRows &rows) {
  return b.mul(rows.tile, tile.rows);
}

/// Blocks whose positions are whole steps of the instructions.
Value AttentionMatrixBuilder::wholeBlocks(Value blocks) {
  const int64_t step = llvm::divideCeil(packing.kStep, blockTokens);
  return b.mul(b.div(b.add(blocks, step - 1), step), step);
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Where in a panel packed as `packing` the pair at `k` of the column `column`
/// lies, both multiples of what lies beside each other.
Value AttentionMatrixBuilder::elementOf(const Packing &packing, Value k,
                                        Value column) {
  Value step = b.mul(b.div(k, packing.kStep), packing.kStep * packing.panel);
  Value tile = b.mul(b.div(column, packing.tile), packing.tile * packing.kStep);
  Value pairs = b.mul(b.rem(k, packing.kStep), packing.tile);
  Value inTile = b.mul(b.rem(column, packing.tile), packing.kPack);
  return b.add(b.add(step, tile), b.add(pairs, inTile));
}

/// A vector of a block's keys or values as bf16.
Value AttentionMatrixBuilder::loadPacked(Value cacheBlock, Value head,
                                         int64_t part, Value offset) {
  Value place[] = {cacheBlock, layer, head, b.index(part), offset};
  auto type = VectorType::get({vectorWidth}, b.getBF16Type());
  if (cacheType.getElementType().isBF16())
    return vector::LoadOp::create(b, type, cache, place);
  return arith::TruncFOp::create(b, type, b.loadVector(cache, place));
}

/// Channels are in pairs, which bf16 keys are in the cache.
void AttentionMatrixBuilder::packKeys(Value cacheBlock, Value head,
                                      Value block) {
  auto type = VectorType::get({pair * blockTokens}, b.getBF16Type());
  Value panel =
      b.mul(b.div(block, tile.keyBlocks), kernels.scores.columns * headDim);
  Value column = b.mul(b.rem(block, tile.keyBlocks), blockTokens);
  b.forLoop(zero, b.index(headDim), pair, [&](Value channel) {
    Value offset = b.mul(channel, blockTokens);
    Value keyPair;
    if (cacheType.getKeyChannelsTogether() == pair)
      keyPair = vector::LoadOp::create(
          b, type, cache, ValueRange{cacheBlock, layer, head, zero, offset});
    else
      keyPair = vector::InterleaveOp::create(
          b, loadPacked(cacheBlock, head, 0, offset),
          loadPacked(cacheBlock, head, 0, b.add(offset, blockTokens)));
    vector::StoreOp::create(b, keyPair, keys,
                            b.add(panel, elementOf(packing, channel, column)));
  });
}

/// Two tokens' values are interleaved. What was never written may hold no
/// numbers, and the weights of later positions are zero: the last one of
/// `tokens` stands for those beyond.
void AttentionMatrixBuilder::packValues(Value cacheBlock, Value head,
                                        Value block, Value tokens) {
  const int64_t columns = kernels.values.columns;
  const int64_t panel = tile.chunk * blockTokens * columns;
  Value last = b.sub(tokens, b.index(1));
  b.forLoop(zero, b.index(blockTokens), pair, [&](Value token) {
    Value places[pair];
    for (int64_t i = 0; i < pair; ++i)
      places[i] = b.mul(b.min(b.add(token, i), last), headDim);
    Value row = b.add(b.mul(block, blockTokens), token);
    for (int64_t channel = 0; channel < headDim; channel += vectorWidth) {
      auto load = [&](Value place) {
        return loadPacked(cacheBlock, head, 1, b.add(place, channel));
      };
      Value element = elementOf(valuesPacking, row, b.index(channel % columns));
      Value both =
          vector::InterleaveOp::create(b, load(places[0]), load(places[1]));
      vector::StoreOp::create(b, both, values,
                              b.add(element, channel / columns * panel));
    }
  });
}

/// Where no value was written, the scale is 0, so that a weight of zero stays
/// zero. The scores of such keys are masked.
void AttentionMatrixBuilder::packScales(Value cacheBlock, Value head,
                                        Value block, Value tokens) {
  Value column = b.mul(block, blockTokens);
  b.storeVector(loadScales(cacheBlock, head, 0), keyScales, column);
  Value written = vector::CreateMaskOp::create(
      b, VectorType::get({blockTokens}, b.getI1Type()), tokens);
  Value scales = arith::SelectOp::create(
      b, written, loadScales(cacheBlock, head, 1), b.splat(0));
  b.storeVector(scales, valueScales, column);
}

void AttentionMatrixBuilder::readChunk(const ChunkValues &chunk) {
  current.emplace(chunk);
  // What fills up a step weighs nothing, but must be numbers: the last block is
  // there once more.
  Value last = b.sub(chunk.blocks, b.index(1));
  b.forLoop(zero, wholeBlocks(chunk.blocks), 1, [&](Value block) {
    Value number = b.add(chunk.firstBlock, b.min(block, last));
    Value cacheBlock = loadBlock(chunk.segment, number);
    Value tokens = b.sub(chunk.positions, b.mul(number, blockTokens));
    packKeys(cacheBlock, chunk.head, block);
    packValues(cacheBlock, chunk.head, block, tokens);
    if (cacheType.hasScales())
      packScales(cacheBlock, chunk.head, block, tokens);
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void AttentionMatrixBuilder::loadQueries(const TileRows &rows) {
  Value firstRow = firstRowOf(rows);
  if (tileRows)
    tile::ConfigureOp::create(b, tileRows);
  b.storeVector(b.splat(masked), maxima, {rows.tile, zero});
  b.storeVector(b.splat(masked), chunkMaxima, zero);
  b.forLoop(zero, b.index(tile.rows), 1, [&](Value number) {
    Value row = b.add(firstRow, number);
    Value token = b.add(rows.segment.firstToken, rows.token(number));
    Value channel = channelOf(rows, number);
    b.storeVector(b.splat(0), totals, {row, zero});
    b.forVectors(headDim, [&](Value first, int64_t width) {
      b.storeVector(
          b.loadVector(op.getQuery(), {token, b.add(channel, first)}, width),
          queries, {row, first});
    });
  });
}

/// `sums[sumsRow, sumsColumn]` and what is beside and below it, by the first
/// `k` of the input's rows and the panel at `offset`.
void AttentionMatrixBuilder::multiply(const MicroKernel &kernel, Value input,
                                      Value firstRow, Value k, Value packed,
                                      Value offset, Value result,
                                      Value resultRow, Value resultColumn,
                                      Value accumulate) {
  MicroKernelSpecialization specialization{
      .kernel = kernel,
      .inputStride = cast<MemRefType>(input.getType()).getDimSize(1),
      .packing = packingOf(kernel)};
  program.kernels.call(b, specialization,
                       {.input = input,
                        .firstRow = firstRow,
                        .firstK = zero,
                        .k = k,
                        .weight = packed,
                        .weightOffset = offset,
                        .panelStride = zero,
                        .sums = result,
                        .sumsRow = resultRow,
                        .sumsColumn = resultColumn,
                        .accumulate = accumulate,
                        .prefetchOffset = zero,
                        .prefetchStride = zero,
                        .prefetchStreamStride = zero,
                        .tileRows = tileRows,
                        .lastTileRow = tileRows ? firstRow : Value()});
}

/// Of the next chunk, what falls to one of the products of one of the tiles: so
/// few cache lines arrive while it is computed.
void AttentionMatrixBuilder::prefetchNextChunk(Value number, Value block) {
  const int64_t products = llvm::divideCeil(tile.chunk, tile.keyBlocks);
  const int64_t lineElements =
      8 * cacheLineBytes / cacheType.getElementType().getIntOrFloatBitWidth();
  const int64_t elements = cast<MemRefType>(cache.getType()).getDimSize(4);
  const int64_t lines = llvm::divideCeil(elements / lineElements, products);
  Value first = b.mul(b.div(block, tile.keyBlocks), lines * lineElements);
  Value begin = b.add(current->firstBlock, tile.chunk);
  Value end =
      b.min(b.add(begin, tile.chunk),
            b.div(b.add(current->positions, blockTokens - 1), blockTokens));
  // More than one of the blocks where tiles are fewer.
  Value last = b.sub(b.add(current->tiles, b.index(tile.chunk)), b.index(1));
  b.forLoop(zero, b.div(last, current->tiles), 1, [&](Value turn) {
    Value next = b.add(b.add(begin, number), b.mul(turn, current->tiles));
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, next, end);
    b.ifThen(exists, [&] {
      Value cacheBlock = loadBlock(current->segment, next);
      for (int64_t part : {0, 1})
        for (int64_t line = 0; line < lines; ++line)
          prefetch(cacheBlock, current->head, part,
                   b.add(first, line * lineElements));
    });
  });
}

/// Where the number of blocks is no multiple, some scores are of no key.
void AttentionMatrixBuilder::computeScores(const TileRows &rows, Value blocks) {
  Value overwrite = arith::ConstantIntOp::create(b, 0, 1);
  b.forLoop(zero, blocks, tile.keyBlocks, [&](Value block) {
    Value column = b.mul(block, blockTokens);
    prefetchNextChunk(rows.tile, block);
    multiply(kernels.scores, queries, firstRowOf(rows), b.index(headDim), keys,
             b.mul(column, headDim), scores, zero, column, overwrite);
    if (keyScales)
      scaleScores(block);
  });
}

/// Of the keys from `block` on that were multiplied at once.
void AttentionMatrixBuilder::scaleScores(Value block) {
  SmallVector<Value> columns, scales;
  for (int64_t i = 0; i < tile.keyBlocks; ++i) {
    columns.push_back(b.mul(b.add(block, i), blockTokens));
    scales.push_back(b.loadVector(keyScales, columns.back()));
  }
  b.forLoop(zero, b.index(tile.rows), 1, [&](Value row) {
    for (auto [column, scale] : llvm::zip_equal(columns, scales))
      b.storeVector(b.mulf(b.loadVector(scores, {row, column}), scale), scores,
                    {row, column});
  });
}

/// Positions behind the last that a row attends to, of which slots that were
/// never written may hold anything. Rows are in the order of their positions.
void AttentionMatrixBuilder::maskScores(const TileRows &rows,
                                        Value firstPosition, Value tokens) {
  // How many of the chunk's positions a row attends to.
  auto attendedBy = [&](Value row) {
    Value end = positionsAttended(b, op, rows.segment, rows.token(row));
    return b.sub(arith::MaxUIOp::create(b, end, firstPosition), firstPosition);
  };
  Value ofAll = b.min(attendedBy(zero), tokens);
  Value firstColumn = b.mul(b.div(ofAll, blockTokens), blockTokens);
  auto columnsType = VectorType::get({vectorWidth}, b.getI32Type());
  auto lanes = llvm::to_vector(llvm::seq<int32_t>(0, vectorWidth));
  Value lane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(columnsType, ArrayRef(lanes)));
  auto toI32 = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, b.getI32Type(), index);
  };
  b.ifThen(
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, firstColumn, tokens),
      [&] {
        b.forLoop(zero, b.index(tile.rows), 1, [&](Value row) {
          Value attended = b.broadcast(toI32(attendedBy(row)));
          b.forLoop(firstColumn, tokens, vectorWidth, [&](Value column) {
            Value columns =
                arith::AddIOp::create(b, lane, b.broadcast(toI32(column)));
            Value attends = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                                  columns, attended);
            Value score = b.loadVector(scores, {row, column});
            b.storeVector(
                arith::SelectOp::create(b, attends, score, b.splat(masked)),
                scores, {row, column});
          });
        });
      });
}

void AttentionMatrixBuilder::findMaxima(Value tokens) {
  SmallVector<Value> largest(tile.rows, b.splat(masked));
  largest =
      b.forLoop(zero, tokens, vectorWidth, largest,
                [&](Value column, ValueRange carried) {
                  SmallVector<Value> next;
                  for (auto [row, value] : llvm::enumerate(carried))
                    next.push_back(b.maxf(
                        b.loadVector(scores, {b.index(row), column}), value));
                  return next;
                });
  for (auto [row, value] : llvm::enumerate(largest))
    b.storeScalar(b.reduceMax(value), chunkMaxima, b.index(row));
}

/// A masked intrinsic of AVX-512 on all lanes, rounded as elsewhere.
Value AttentionMatrixBuilder::callAVX512(StringRef name, Value lhs, Value rhs) {
  auto constant = [&](int64_t value, unsigned width) -> Value {
    return arith::ConstantIntOp::create(b, value, width);
  };
  constexpr int64_t currentRounding = 4;
  return LLVM::CallIntrinsicOp::create(
             b, lhs.getType(), b.getStringAttr(name),
             ValueRange{lhs, rhs, lhs, constant(-1, vectorWidth),
                        constant(currentRounding, 32)})
      .getResult(0);
}

/// Two to the power of f32, to 13 bits: as bf16 has 8, more would be lost.
Value AttentionMatrixBuilder::exp2(Value exponent) {
  // What is above the largest integer that is not larger, rounding errors
  // without exceptions.
  constexpr int32_t aboveFloor = 0b1001;
  Value rest = callAVX512("llvm.x86.avx512.mask.reduce.ps.512", exponent,
                          arith::ConstantIntOp::create(b, aboveFloor, 32));
  // Minimax on [0, 1], exact at both ends.
  Value power = b.splat(0.07826797f);
  for (float coefficient : {0.22630768f, 0.69542435f, 1.0f})
    power = b.fma(power, rest, b.splat(coefficient));
  // Times two to the power of that integer.
  return callAVX512("llvm.x86.avx512.mask.scalef.ps.512", power, exponent);
}

void AttentionMatrixBuilder::weighScores(const TileRows &rows, Value tokens,
                                         Value hasSums) {
  Value firstRow = firstRowOf(rows);
  Value before = b.loadVector(maxima, {rows.tile, zero});
  Value after = b.maxf(before, b.loadVector(chunkMaxima, zero));
  b.storeVector(after, maxima, {rows.tile, zero});
  Value grows =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, before, after);
  Value anyGrows =
      vector::ReductionOp::create(b, vector::CombiningKind::OR, grows);
  b.ifThen(arith::AndIOp::create(b, anyGrows, hasSums), [&] {
    b.storeVector(exp2(b.mulf(b.subf(before, after), b.splat(scale))), factors,
                  zero);
    b.forLoop(zero, b.index(tile.rows), 1, [&](Value number) {
      Value row = b.add(firstRow, number);
      Value factor = b.loadScalar(factors, number);
      auto rescale = [&](Value memory, Value first, int64_t width) {
        b.storeVector(b.mulf(b.loadVector(memory, {row, first}, width),
                             b.broadcast(factor, width)),
                      memory, {row, first});
      };
      rescale(totals, zero, vectorWidth);
      b.forVectors(headDim, [&](Value first, int64_t width) {
        rescale(sums, first, width);
      });
    });
  });
  b.forLoop(zero, b.index(tile.rows), 1, [&](Value number) {
    Value row = b.add(firstRow, number);
    Value largest = b.loadScalar(maxima, {rows.tile, number});
    Value offset = b.broadcast(b.mulf(largest, b.constant(-scale)));
    Value total = b.forLoop(
        zero, tokens, vectorWidth, b.loadVector(totals, {row, zero}),
        [&](Value column, ValueRange carried) {
          Value weight = exp2(b.fma(b.loadVector(scores, {number, column}),
                                    b.splat(scale), offset));
          Value scaled = weight;
          if (valueScales)
            scaled = b.mulf(weight, b.loadVector(valueScales, column));
          b.storeVector(scaled, weights, {number, column});
          return SmallVector<Value>{b.addf(carried[0], weight)};
        })[0];
    b.storeVector(total, totals, {row, zero});
  });
}

void AttentionMatrixBuilder::addChunk(const TileRows &rows, Value firstBlock,
                                      Value blocks) {
  Value firstPosition = b.mul(firstBlock, blockTokens);
  Value tokens = b.mul(wholeBlocks(blocks), blockTokens);
  // Nothing was summed before the first chunk.
  Value hasSums =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, firstBlock, zero);
  computeScores(rows, blocks);
  maskScores(rows, firstPosition, tokens);
  findMaxima(tokens);
  weighScores(rows, tokens, hasSums);
  // Whole steps, of which the last weights may be zero.
  Value attended = b.min(b.sub(rows.positions, firstPosition), tokens);
  const int64_t step = packing.kStep;
  Value k = b.mul(b.div(b.add(attended, step - 1), step), step);
  const int64_t columns = kernels.values.columns;
  for (int64_t channel = 0; channel < headDim; channel += columns)
    multiply(kernels.values, weights, zero, k, values,
             b.index(channel * tile.chunk * blockTokens), sums,
             firstRowOf(rows), b.index(channel), hasSums);
}

void AttentionMatrixBuilder::storeResult(const TileRows &rows) {
  b.forLoop(zero, rows.count, 1, [&](Value number) {
    Value row = b.add(firstRowOf(rows), number);
    Value total = b.reduceAdd(b.loadVector(totals, {row, zero}));
    Value factor = arith::DivFOp::create(b, b.constant(1), total);
    Value token = b.add(rows.segment.firstToken, rows.token(number));
    Value channel = channelOf(rows, number);
    b.forVectors(headDim, [&](Value first, int64_t width) {
      b.storeVector(b.mulf(b.loadVector(sums, {row, first}, width),
                           b.broadcast(factor, width)),
                    op.getDestination(), {token, b.add(channel, first)});
    });
  });
}
