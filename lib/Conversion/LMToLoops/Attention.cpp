//===- Attention.cpp - lm.attention as loops ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/AttentionSchedule.h"

#include <cstddef>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static constexpr int64_t blockTokens = KVCacheType::blockTokens;

namespace {

/// Deals the segments of a step, the cache's heads and parts of contexts to
/// threads.
class AttentionBuilder {
public:
  AttentionBuilder(LoopBuilder &builder, const ProgramContext &program,
                   AttentionOp op, AttentionTable table)
      : b(builder), program(program), op(op), table(std::move(table)),
        tiles(builder, program, op), shape(op.getShape()),
        headDim(getKVCacheType(op.getKvCache().getType()).getHeadDim()),
        zero(builder.index(0)), one(builder.index(1)) {}

  void build();

private:
  using SegmentBody =
      function_ref<void(Value number, const SegmentValues &segment)>;
  using ScheduleBody = function_ref<void(const AttentionSchedule &schedule)>;

  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, predicate, lhs, rhs);
  }
  SegmentValues loadSegment(Value number);
  /// Calls `body` for the segments that have one token, or more.
  void forSegments(arith::CmpIPredicate tokensAndOne, SegmentBody body);
  Value hasOneToken(const SegmentValues &segment);
  /// The longest context of all segments, in positions.
  Value findLongestContext();
  /// Chooses the entry that serves the step.
  void dispatch(ArrayRef<AttentionTableEntry> entries, ScheduleBody body);

  /// A part of a segment's context: consecutive blocks, of all heads.
  struct Part {
    Value number, firstBlock, endBlock;
    /// What it counts for where work is dealt: blocks times heads.
    Value work;
  };
  Part partOf(int64_t split, Value number, const SegmentValues &segment,
              Value part);
  Value findWork(int64_t split);
  void decode(const AttentionSchedule &schedule);
  using StorePart = function_ref<void(const TileRows &, Value part)>;
  void addParts(const AttentionSchedule &schedule, StorePart store);
  void addPart(const AttentionTile &tile, const SegmentValues &segment,
               const Part &part, Value firstHead, Value endHead,
               StorePart store);
  PartialSums viewPartialSums();
  void mergeParts(int64_t split, const PartialSums &partial, Value number,
                  const SegmentValues &segment, Value queryHead);

  void prefill(const AttentionSchedule &schedule);
  void addTokens(StreamingSoftmaxBuilder &builder,
                 const AttentionSchedule &schedule, Value number,
                 const SegmentValues &segment);
  /// Rows of a segment that meet one head of the cache: each token's query
  /// heads that share it, token by token.
  struct HeadRows {
    const SegmentValues &segment;
    Value head, count;
  };
  TileRows tileOf(const HeadRows &rows, int64_t rowsOfTile, Value firstRow,
                  Value number);
  void addTiles(StreamingSoftmaxBuilder &builder, const AttentionTile &tile,
                const HeadRows &rows, Value firstTile, Value endTile);

  LoopBuilder &b;
  const ProgramContext &program;
  AttentionOp op;
  AttentionTable table;
  AttentionTileBuilder tiles;
  AttentionShape shape;
  int64_t headDim;
  Value zero, one;
  Value segments;
  /// The longest context; null where no entry asks.
  Value longest;
};

} // namespace

//===----------------------------------------------------------------------===//
// Segments of one token
//===----------------------------------------------------------------------===//

/// The blocks of a context of `positions`.
static Value blocksOf(LoopBuilder &b, Value positions) {
  return b.div(b.add(positions, blockTokens - 1), blockTokens);
}

AttentionBuilder::Part AttentionBuilder::partOf(int64_t split, Value number,
                                                const SegmentValues &segment,
                                                Value part) {
  Value blocks = blocksOf(b, b.add(segment.firstPosition, 1));
  auto [first, end] = b.threadRange(blocks, part, split);
  // One without blocks, of a context that is shorter than its parts, is stored
  // as well.
  Value counted = arith::MaxUIOp::create(b, b.sub(end, first), one);
  return {b.add(b.mul(number, split), part), first, end,
          b.mul(counted, shape.cacheHeads)};
}

/// Of all parts of all segments of one token.
Value AttentionBuilder::findWork(int64_t split) {
  auto addSegment = [&](Value number, ValueRange carried) {
    SegmentValues segment = loadSegment(number);
    Value work = b.forLoop(
        zero, b.index(split), 1, zero, [&](Value part, ValueRange sum) {
          Part each = partOf(split, number, segment, part);
          return SmallVector<Value>{b.add(sum[0], each.work)};
        })[0];
    Value counted =
        arith::SelectOp::create(b, hasOneToken(segment), work, zero);
    return SmallVector<Value>{b.add(carried[0], counted)};
  };
  return b.forLoop(zero, segments, 1, zero, addSegment)[0];
}

/// All threads get equally much of the work, in the order of segments, parts
/// and heads: whole sequences where there are many, the heads of a few where
/// these are neighbours in memory, and no more than one head of one part beyond
/// the others.
void AttentionBuilder::addParts(const AttentionSchedule &schedule,
                                StorePart store) {
  auto [firstWork, endWork] =
      b.threadRange(findWork(schedule.split), program.thread, program.threads);
  // Heads of the part that begin before `work`.
  auto headsBefore = [&, this](Value work, Value begin, const Part &part) {
    Value blocks = b.div(part.work, shape.cacheHeads);
    Value beyond = b.sub(arith::MaxUIOp::create(b, work, begin), begin);
    Value heads = b.div(b.sub(b.add(beyond, blocks), one), blocks);
    return b.min(heads, b.index(shape.cacheHeads));
  };
  b.forLoop(zero, segments, 1, zero, [&](Value number, ValueRange carried) {
    SegmentValues segment = loadSegment(number);
    Value parts = arith::SelectOp::create(b, hasOneToken(segment),
                                          b.index(schedule.split), zero);
    return b.forLoop(
        zero, parts, 1, carried[0], [&](Value index, ValueRange before) {
          Part part = partOf(schedule.split, number, segment, index);
          Value firstHead = headsBefore(firstWork, before[0], part);
          Value endHead = headsBefore(endWork, before[0], part);
          b.ifThen(compare(arith::CmpIPredicate::ult, firstHead, endHead), [&] {
            addPart(schedule.decode, segment, part, firstHead, endHead, store);
          });
          return SmallVector<Value>{b.add(before[0], part.work)};
        });
  });
}

/// A block's heads are neighbours in memory, one head's blocks are far apart:
/// all heads of a chunk are read before the next chunk, and the sums of all are
/// kept. The query heads that share the cache's head are the rows of tiles:
/// keys and values are read from memory once for all of them.
void AttentionBuilder::addPart(const AttentionTile &tile,
                               const SegmentValues &segment, const Part &part,
                               Value firstHead, Value endHead,
                               StorePart store) {
  int64_t tilesOfHead = shape.group / tile.rows;
  auto forTiles = [&](function_ref<void(const TileRows &)> body) {
    b.forLoop(firstHead, endHead, 1, [&](Value head) {
      Value following = b.add(head, 1);
      Value endsChunk = compare(arith::CmpIPredicate::eq, following, endHead);
      Value nextHead =
          arith::SelectOp::create(b, endsChunk, firstHead, following);
      Value firstTile = b.mul(b.sub(head, firstHead), tilesOfHead);
      b.forLoop(zero, b.index(tilesOfHead), 1, [&](Value tileOfHead) {
        Value firstRow =
            b.add(b.mul(head, shape.group), b.mul(tileOfHead, tile.rows));
        body({segment, [&](Value) { return zero; },
              [&](Value row) { return b.add(firstRow, row); },
              b.index(tile.rows), head, b.add(segment.firstPosition, 1),
              b.add(firstTile, tileOfHead), nextHead, endsChunk});
      });
    });
  };
  forTiles([&](const TileRows &rows) { tiles.loadQueries(rows); });
  b.forLoop(part.firstBlock, part.endBlock, tile.chunk, [&](Value chunk) {
    Value blocks = b.min(b.sub(part.endBlock, chunk), b.index(tile.chunk));
    forTiles(
        [&](const TileRows &rows) { tiles.addChunk(rows, chunk, blocks); });
  });
  forTiles([&](const TileRows &rows) { store(rows, part.number); });
}

PartialSums AttentionBuilder::viewPartialSums() {
  int64_t heads = shape.cacheHeads * shape.group;
  Value memory = op.getPartialSums();
  int64_t bytes = cast<MemRefType>(memory.getType()).getDimSize(0);
  constexpr int64_t elementBytes = sizeof(float);
  int64_t parts = bytes / (heads * (headDim + 2) * elementBytes);
  auto view = [&](int64_t size, int64_t offset) -> Value {
    return memref::ViewOp::create(
        b, MemRefType::get({parts, heads, size}, b.getF32Type()), memory,
        b.index(offset), ValueRange());
  };
  return {view(headDim, 0), view(2, parts * heads * headDim * elementBytes)};
}

/// Adds up what the parts of a context gave one query head, in their order.
void AttentionBuilder::mergeParts(int64_t split, const PartialSums &partial,
                                  Value number, const SegmentValues &segment,
                                  Value queryHead) {
  Value firstPart = b.mul(number, split);
  auto forParts = [&](ValueRange initial, LoopBuilder::CarryingLoopBody body) {
    return b.forLoop(firstPart, b.add(firstPart, split), 1, initial, body);
  };
  auto load = [&](Value part, Value scale) {
    return b.loadScalar(partial.scales, {part, queryHead, scale});
  };
  Value largest =
      forParts(load(firstPart, zero), [&](Value part, ValueRange carried) {
        return SmallVector<Value>{b.maxf(load(part, zero), carried[0])};
      })[0];
  auto factorOf = [&](Value part, int64_t width) -> Value {
    return math::ExpOp::create(
        b, b.broadcast(b.subf(load(part, zero), largest), width));
  };
  auto addUp = [&](int64_t width, function_ref<Value(Value part)> term) {
    return forParts(b.splat(0, width), [&](Value part, ValueRange carried) {
      Value factor = factorOf(part, width);
      return SmallVector<Value>{b.fma(factor, term(part), carried[0])};
    })[0];
  };
  b.forVectors(headDim, [&](Value first, int64_t width) {
    Value total = addUp(
        width, [&](Value part) { return b.broadcast(load(part, one), width); });
    Value sum = addUp(width, [&](Value part) {
      return b.loadVector(partial.sums, {part, queryHead, first}, width);
    });
    b.storeVector(
        arith::DivFOp::create(b, sum, total), op.getDestination(),
        {segment.firstToken, b.add(b.mul(queryHead, headDim), first)});
  });
}

void AttentionBuilder::decode(const AttentionSchedule &schedule) {
  tiles.setShape(schedule.decode,
                 shape.cacheHeads * shape.group / schedule.decode.rows,
                 /*streams=*/true);
  if (schedule.split == 1) {
    addParts(schedule,
             [&](const TileRows &rows, Value) { tiles.storeResult(rows); });
    return;
  }
  PartialSums partial = viewPartialSums();
  addParts(schedule, [&](const TileRows &rows, Value part) {
    tiles.storePart(rows, part, partial);
  });
  // All threads have chosen the same schedule, and meet here.
  phase::BarrierOp::create(
      b, phase::getArgument(program.function, phase::ProgramArgument::Team));
  forSegments(arith::CmpIPredicate::eq, [&](Value number,
                                            const SegmentValues &segment) {
    auto [first, end] = b.threadRange(b.index(shape.cacheHeads * shape.group),
                                      program.thread, program.threads);
    b.forLoop(first, end, 1, [&](Value queryHead) {
      mergeParts(schedule.split, partial, number, segment, queryHead);
    });
  });
}

//===----------------------------------------------------------------------===//
// Segments of several tokens
//===----------------------------------------------------------------------===//

/// The rows from `firstRow` on, at most `rowsOfTile`.
TileRows AttentionBuilder::tileOf(const HeadRows &rows, int64_t rowsOfTile,
                                  Value firstRow, Value number) {
  Value count = b.min(b.sub(rows.count, firstRow), b.index(rowsOfTile));
  Value lastRow = b.sub(b.add(firstRow, count), one);
  auto rowOf = [this, firstRow, lastRow](Value row) {
    return b.min(b.add(firstRow, row), lastRow);
  };
  Value firstHead = b.mul(rows.head, shape.group);
  Value lastToken = b.div(lastRow, shape.group);
  return {rows.segment,
          [this, rowOf](Value row) { return b.div(rowOf(row), shape.group); },
          [this, rowOf, firstHead](Value row) {
            return b.add(firstHead, b.rem(rowOf(row), shape.group));
          },
          count,
          rows.head,
          positionsAttended(b, op, rows.segment, lastToken),
          number};
}

/// All tiles add a chunk before the next one is read. Those of earlier tokens
/// may attend to fewer.
void AttentionBuilder::addTiles(StreamingSoftmaxBuilder &builder,
                                const AttentionTile &tile, const HeadRows &rows,
                                Value firstTile, Value endTile) {
  auto forTiles = [&](function_ref<void(const TileRows &)> body) {
    b.forLoop(firstTile, endTile, 1, [&](Value number) {
      body(tileOf(rows, tile.rows, b.mul(number, tile.rows),
                  b.sub(number, firstTile)));
    });
  };
  forTiles([&](const TileRows &each) { builder.loadQueries(each); });
  Value endRow = b.min(b.mul(endTile, tile.rows), rows.count);
  Value lastToken = b.div(b.sub(endRow, one), shape.group);
  Value positions = positionsAttended(b, op, rows.segment, lastToken);
  Value blocks = blocksOf(b, positions);
  b.forLoop(zero, blocks, tile.chunk, [&](Value chunk) {
    auto blocksBefore = [&](Value end) {
      return b.min(b.sub(end, chunk), b.index(tile.chunk));
    };
    builder.readChunk({rows.segment, rows.head, chunk, blocksBefore(blocks),
                       positions, b.sub(endTile, firstTile)});
    forTiles([&](const TileRows &each) {
      Value end = blocksOf(b, each.positions);
      b.ifThen(compare(arith::CmpIPredicate::ult, chunk, end),
               [&] { builder.addChunk(each, chunk, blocksBefore(end)); });
    });
  });
  forTiles([&](const TileRows &each) { builder.storeResult(each); });
}

/// Later tiles may attend to more positions: all pieces of work of the segment
/// are dealt to the threads in turn from the left and from the right, and to
/// another one first for every segment.
void AttentionBuilder::addTokens(StreamingSoftmaxBuilder &builder,
                                 const AttentionSchedule &schedule,
                                 Value number, const SegmentValues &segment) {
  const AttentionTile &tile = schedule.prefill;
  const int64_t threads = program.threads;
  Value rowsOfHead = b.mul(segment.tokens, shape.group);
  Value tileCount = b.div(b.add(rowsOfHead, tile.rows - 1), tile.rows);
  // Of a head, where there are as many tiles: enough that all threads have
  // about equally much.
  const int64_t fewestPieces = llvm::divideCeil(4 * threads, shape.cacheHeads);
  Value pieces = arith::MaxUIOp::create(
      b, b.div(b.add(tileCount, schedule.tiles - 1), schedule.tiles),
      b.min(tileCount, b.index(fewestPieces)));
  Value place = b.rem(b.add(program.thread, number), threads);
  Value mirrored = b.sub(b.index(threads - 1), place);
  Value allPieces = b.mul(pieces, shape.cacheHeads);
  b.forLoop(zero, allPieces, threads, [&](Value firstPiece) {
    Value odd = b.rem(b.div(firstPiece, threads), 2);
    Value isOdd = compare(arith::CmpIPredicate::ne, odd, zero);
    Value own =
        b.add(firstPiece, arith::SelectOp::create(b, isOdd, mirrored, place));
    b.ifThen(compare(arith::CmpIPredicate::ult, own, allPieces), [&] {
      Value piece = b.rem(own, pieces);
      auto firstTileOf = [&](Value piece) {
        return b.div(b.mul(piece, tileCount), pieces);
      };
      addTiles(builder, tile, {segment, b.div(own, pieces), rowsOfHead},
               firstTileOf(piece), firstTileOf(b.add(piece, 1)));
    });
  });
}

void AttentionBuilder::prefill(const AttentionSchedule &schedule) {
  auto addSegments = [&](StreamingSoftmaxBuilder &builder) {
    forSegments(arith::CmpIPredicate::ne,
                [&](Value number, const SegmentValues &segment) {
                  addTokens(builder, schedule, number, segment);
                });
  };
  if (schedule.instructions) {
    AttentionMatrixBuilder matrices(b, program, op, schedule);
    addSegments(matrices);
  } else {
    tiles.setShape(schedule.prefill, schedule.tiles, /*streams=*/false);
    addSegments(tiles);
  }
}

//===----------------------------------------------------------------------===//
// All segments
//===----------------------------------------------------------------------===//

SegmentValues AttentionBuilder::loadSegment(Value number) {
  auto load = [&](size_t offset) {
    return b.loadIndex(
        op.getSegments(),
        {number, b.index(static_cast<int64_t>(offset / sizeof(int32_t)))});
  };
  return {load(offsetof(SandwichSegment, first_token)),
          load(offsetof(SandwichSegment, num_tokens)),
          load(offsetof(SandwichSegment, first_position)),
          load(offsetof(SandwichSegment, first_block))};
}

Value AttentionBuilder::hasOneToken(const SegmentValues &segment) {
  return compare(arith::CmpIPredicate::eq, segment.tokens, one);
}

void AttentionBuilder::forSegments(arith::CmpIPredicate tokensAndOne,
                                   SegmentBody body) {
  b.forLoop(zero, segments, 1, [&](Value number) {
    SegmentValues segment = loadSegment(number);
    b.ifThen(compare(tokensAndOne, segment.tokens, one),
             [&] { body(number, segment); });
  });
}

Value AttentionBuilder::findLongestContext() {
  return b.forLoop(
      zero, segments, 1, zero, [&](Value number, ValueRange carried) {
        SegmentValues segment = loadSegment(number);
        Value positions = b.add(segment.firstPosition, segment.tokens);
        return SmallVector<Value>{
            arith::MaxUIOp::create(b, positions, carried[0])};
      })[0];
}

void AttentionBuilder::dispatch(ArrayRef<AttentionTableEntry> entries,
                                ScheduleBody body) {
  const AttentionTableEntry &entry = entries.front();
  if (entries.size() == 1)
    return body(entry.schedule);
  Value serves =
      compare(arith::CmpIPredicate::ule, segments, b.index(entry.maxSegments));
  if (entry.maxPositions != AttentionTableEntry::unlimited)
    serves = arith::AndIOp::create(b, serves,
                                   compare(arith::CmpIPredicate::ule, longest,
                                           b.index(entry.maxPositions)));
  b.ifThenElse(
      serves, [&] { body(entry.schedule); },
      [&] { dispatch(entries.drop_front(), body); });
}

/// The entries without those that the next one serves in the same way.
static AttentionTable withoutRepeats(
    const AttentionTable &table,
    function_ref<bool(const AttentionSchedule &, const AttentionSchedule &)>
        isSame) {
  AttentionTable kept;
  for (const AttentionTableEntry &entry : llvm::reverse(table))
    if (kept.empty() || !isSame(kept.back().schedule, entry.schedule) ||
        kept.back().maxSegments < entry.maxSegments ||
        kept.back().maxPositions < entry.maxPositions)
      kept.push_back(entry);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

void AttentionBuilder::build() {
  segments = memref::DimOp::create(b, op.getSegments(), 0);
  AttentionTable decoding =
      withoutRepeats(table, [](const auto &lhs, const auto &rhs) {
        return lhs.decode == rhs.decode && lhs.split == rhs.split;
      });
  AttentionTable prefilling =
      withoutRepeats(table, [](const auto &lhs, const auto &rhs) {
        return lhs.prefill == rhs.prefill && lhs.tiles == rhs.tiles &&
               lhs.instructions == rhs.instructions;
      });
  auto asksForPositions = [](const AttentionTableEntry &entry) {
    return entry.maxPositions != AttentionTableEntry::unlimited;
  };
  if (llvm::any_of(decoding, asksForPositions) ||
      llvm::any_of(prefilling, asksForPositions))
    longest = findLongestContext();
  dispatch(prefilling,
           [&](const AttentionSchedule &schedule) { prefill(schedule); });
  dispatch(decoding,
           [&](const AttentionSchedule &schedule) { decode(schedule); });
}

/// Checks that the partial sums of `attention` have room for all parts of a
/// step of at most `maxTokens` tokens.
static LogicalResult verifyPartialSums(AttentionOp attention, int64_t maxTokens,
                                       SymbolTableCollection &symbols) {
  Value sums = attention.getPartialSums();
  int64_t needed = attention.getPartialSumsBytes(maxTokens, symbols);
  int64_t bytes = sums ? cast<MemRefType>(sums.getType()).getNumElements() : 0;
  if (bytes < needed)
    return attention.emitOpError("needs ")
           << needed << " bytes of partial sums, has " << bytes;
  return success();
}

/// Checks that `target` has the instructions that schedules multiply with.
static LogicalResult verifyInstructions(AttentionOp attention,
                                        const Target &target) {
  if (!attention.getSchedules())
    return success();
  for (const AttentionTableEntry &entry : attention.getSchedules()->getTable())
    if (std::optional<MatrixISA> isa = entry.schedule.instructions;
        isa && !llvm::is_contained(target.matrixISAs, *isa))
      return attention.emitOpError("multiplies by ")
             << sandwich::name(*isa) << ", which " << target.name
             << " does not have";
  return success();
}

static LogicalResult lowerAttention(LoopBuilder &builder,
                                    const ProgramContext &program,
                                    AttentionOp op) {
  if (failed(verifyPartialSums(op, program.maxTokens, program.symbols)) ||
      failed(verifyInstructions(op, program.target)))
    return failure();
  AttentionTable table;
  if (op.getSchedules()) {
    table = op.getSchedules()->getTable();
  } else {
    // What splits contexts would need memory for their parts.
    table = {chooseUntuned(op.getShape(), program.target, program.threads,
                           isDeterministic(op))
                 .back()};
  }
  AttentionBuilder(builder, program, op, std::move(table)).build();
  return success();
}

void lm::attachAttentionLowering(MLIRContext &context) {
  AttentionOp::attachInterface<LoopLoweringModel<AttentionOp, lowerAttention>>(
      context);
}
