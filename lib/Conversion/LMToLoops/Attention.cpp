//===- Attention.cpp - lm.attention as loops ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Runtime/PhaseABI.h"

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
        shape(op.getShape()), zero(builder.index(0)), one(builder.index(1)) {}

  /// Errors are emitted.
  LogicalResult build();

private:
  using SegmentBody =
      function_ref<void(Value number, const SegmentValues &segment)>;
  using ScheduleBody = function_ref<void(const AttentionSchedule &schedule)>;

  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, predicate, lhs, rhs);
  }
  /// Keeps what went wrong while loops are built.
  void note(LogicalResult result) {
    if (failed(result))
      outcome = failure();
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
  using AddPart = function_ref<void(const SegmentValues &, const Part &,
                                    Value firstHead, Value endHead)>;
  void addParts(int64_t split, AddPart add);

  void prefill(const AttentionSchedule &schedule);
  using AddPiece = function_ref<void(Value head, Value first, Value end)>;
  void dealPieces(Value number, Value units, int64_t unitsOfPiece,
                  AddPiece add);

  LoopBuilder &b;
  const ProgramContext &program;
  AttentionOp op;
  AttentionTable table;
  AttentionShape shape;
  Value zero, one;
  Value segments;
  /// The longest context; null where no entry asks.
  Value longest;
  LogicalResult outcome = success();
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
void AttentionBuilder::addParts(int64_t split, AddPart add) {
  auto [firstWork, endWork] =
      b.threadRange(findWork(split), program.thread, program.threads);
  // Heads of the part that begin before `work`.
  auto headsBefore = [&, this](Value work, Value begin, const Part &part) {
    Value blocks = b.div(part.work, shape.cacheHeads);
    Value beyond = b.sub(arith::MaxUIOp::create(b, work, begin), begin);
    Value heads = b.div(b.sub(b.add(beyond, blocks), one), blocks);
    return b.min(heads, b.index(shape.cacheHeads));
  };
  b.forLoop(zero, segments, 1, zero, [&](Value number, ValueRange carried) {
    SegmentValues segment = loadSegment(number);
    Value parts =
        arith::SelectOp::create(b, hasOneToken(segment), b.index(split), zero);
    return b.forLoop(
        zero, parts, 1, carried[0], [&](Value index, ValueRange before) {
          Part part = partOf(split, number, segment, index);
          Value firstHead = headsBefore(firstWork, before[0], part);
          Value endHead = headsBefore(endWork, before[0], part);
          b.ifThen(compare(arith::CmpIPredicate::ult, firstHead, endHead),
                   [&] { add(segment, part, firstHead, endHead); });
          return SmallVector<Value>{b.add(before[0], part.work)};
        });
  });
}

void AttentionBuilder::decode(const AttentionSchedule &schedule) {
  const int64_t split = schedule.split;
  FailureOr<AttentionKernel> kernel =
      AttentionKernel::make(program, op, schedule.decode,
                            {.tokens = 1,
                             .heads = shape.cacheHeads,
                             .streams = true,
                             .isPart = split > 1});
  if (failed(kernel))
    return note(failure());
  Value partial;
  if (split > 1)
    partial = AttentionKernel::viewPartialSums(b, op);
  addParts(split, [&](const SegmentValues &segment, const Part &part,
                      Value firstHead, Value endHead) {
    // A block's heads are neighbours in memory, one head's blocks are far
    // apart: the kernel reads all heads of a chunk before the next chunk.
    Value blocks = b.sub(part.endBlock, part.firstBlock);
    Value first = b.mul(part.firstBlock, blockTokens);
    Value seen = b.sub(b.add(segment.firstPosition, 1), first);
    note(kernel->call(b,
                      {.firstToken = segment.firstToken,
                       .tokens = one,
                       .firstHead = firstHead,
                       .heads = b.sub(endHead, firstHead),
                       .firstBlock = b.add(segment.firstBlock, part.firstBlock),
                       .blocks = blocks,
                       .context = b.min(seen, b.mul(blocks, blockTokens)),
                       .part = part.number},
                      partial));
  });
  if (split == 1)
    return;
  // All threads have chosen the same schedule, and meet here.
  phase::BarrierOp::create(
      b, phase::getArgument(program.function, phase::ProgramArgument::Team));
  forSegments(arith::CmpIPredicate::eq, [&](Value number,
                                            const SegmentValues &segment) {
    auto [first, end] = b.threadRange(b.index(shape.cacheHeads * shape.group),
                                      program.thread, program.threads);
    note(mergeParts(b, program, op, partial, b.mul(number, split), split,
                    segment.firstToken, first, b.sub(end, first)));
  });
}

//===----------------------------------------------------------------------===//
// Segments of several tokens
//===----------------------------------------------------------------------===//

/// Later tokens of a segment may attend to more positions: all pieces of work
/// are dealt to the threads in turn from the left and from the right, and to
/// another one first for every segment.
void AttentionBuilder::dealPieces(Value number, Value units,
                                  int64_t unitsOfPiece, AddPiece add) {
  const int64_t threads = program.threads;
  // Of a head, where there are as many units: enough that all threads have
  // about equally much.
  const int64_t fewestPieces = llvm::divideCeil(4 * threads, shape.cacheHeads);
  Value pieces = arith::MaxUIOp::create(
      b, b.div(b.add(units, unitsOfPiece - 1), unitsOfPiece),
      b.min(units, b.index(fewestPieces)));
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
      auto firstUnitOf = [&](Value piece) {
        return b.div(b.mul(piece, units), pieces);
      };
      add(b.div(own, pieces), firstUnitOf(piece), firstUnitOf(b.add(piece, 1)));
    });
  });
}

void AttentionBuilder::prefill(const AttentionSchedule &schedule) {
  const auto [tokens, unit, rows] = prefillPieces(schedule, shape);
  FailureOr<AttentionKernel> kernel = AttentionKernel::make(
      program, op, schedule.prefill,
      {.tokens = tokens, .instructions = schedule.instructions});
  if (failed(kernel))
    return note(failure());
  forSegments(arith::CmpIPredicate::ne, [&](Value number,
                                            const SegmentValues &segment) {
    Value units = b.div(b.add(segment.tokens, unit - 1), unit);
    dealPieces(
        number, units, tokens / unit,
        [&](Value head, Value firstUnit, Value endUnit) {
          Value first = b.mul(firstUnit, unit);
          Value end = b.min(b.mul(endUnit, unit), segment.tokens);
          Value context = b.add(segment.firstPosition,
                                op.getBidirectional() ? segment.tokens : end);
          note(kernel->call(b, {.firstToken = b.add(segment.firstToken, first),
                                .tokens = b.sub(end, first),
                                .firstHead = head,
                                .heads = one,
                                .firstBlock = segment.firstBlock,
                                .blocks = blocksOf(b, context),
                                .context = context}));
        });
  });
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

LogicalResult AttentionBuilder::build() {
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
  return outcome;
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
  return AttentionBuilder(builder, program, op, std::move(table)).build();
}

void lm::attachAttentionLowering(MLIRContext &context) {
  AttentionOp::attachInterface<LoopLoweringModel<AttentionOp, lowerAttention>>(
      context);
}
