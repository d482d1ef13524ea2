//===- Control.cpp - Loops and branches of kernels ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

/// Code of more turns than this is longer than caches of instructions.
static constexpr uint64_t mostUnrolledTurns = 4096;

//===----------------------------------------------------------------------===//
// What is carried
//===----------------------------------------------------------------------===//

/// Loops carry numbers and blocks, and branches give no others: what memory or
/// range is meant is known where it is used.
static LogicalResult verifyCarried(Operation *op, TypeRange types) {
  for (Type type : types)
    if (!isBlock(type) && !isNumber(type))
      return op->emitError("carries ") << type << ", which is neither a number "
                                       << "nor a block";
  return success();
}

void KernelLowering::flatten(const Lowered &value,
                             SmallVectorImpl<Value> &flat) {
  if (const auto *block = std::get_if<LoweredBlock>(&value)) {
    if (!block->isElsewhere())
      llvm::append_range(flat, block->getRows(b));
    return;
  }
  flat.push_back(std::get<Value>(value));
}

SmallVector<Value> KernelLowering::flatten(ValueRange values) {
  SmallVector<Value> flat;
  for (Value value : values)
    flatten(lookup(value), flat);
  return flat;
}

Lowered KernelLowering::restore(const Lowered &before, ValueRange &flat) {
  const auto *block = std::get_if<LoweredBlock>(&before);
  if (block && block->isElsewhere())
    return before;
  const size_t count = block ? block->rowCount() : 1;
  SmallVector<Value> own(flat.take_front(count));
  flat = flat.drop_front(count);
  if (!block)
    return own[0];
  return LoweredBlock::ofRows(block->getSizes(), block->getElement(),
                              std::move(own));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerTurn(scf::ForOp loop,
                                        function_ref<void()> setVariable,
                                        SmallVectorImpl<Lowered> &carried,
                                        RangeOp given) {
  setVariable();
  for (auto [argument, value] :
       llvm::zip_equal(loop.getRegionIterArgs(), carried))
    set(argument, value);
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != given.getOperation() && failed(lower(&op)))
      return failure();
  for (auto [value, yielded] :
       llvm::zip_equal(carried, loop.getYieldedValues()))
    value = lookup(yielded);
  return success();
}

LogicalResult KernelLowering::lowerTurns(scf::ForOp loop, Value lower,
                                         Value upper, Value step,
                                         function_ref<void(Value)> setVariable,
                                         SmallVectorImpl<Lowered> &carried,
                                         RangeOp given) {
  SmallVector<Value> flat;
  for (const Lowered &each : carried)
    flatten(each, flat);
  auto made = scf::ForOp::create(b, lower, upper, step, flat);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  SmallVector<Lowered> inside;
  ValueRange arguments = made.getRegionIterArgs();
  for (const Lowered &each : carried)
    inside.push_back(restore(each, arguments));
  if (failed(lowerTurn(
          loop, [&] { setVariable(made.getInductionVar()); }, inside, given)))
    return failure();
  SmallVector<Value> next;
  for (const Lowered &each : inside)
    flatten(each, next);
  if (!flat.empty())
    scf::YieldOp::create(b, next);
  ValueRange results = made.getResults();
  for (Lowered &each : carried)
    each = restore(each, results);
  return success();
}

LogicalResult KernelLowering::unroll(scf::ForOp loop) {
  std::optional<int64_t> lower = constantOf(numberOf(loop.getLowerBound()));
  std::optional<int64_t> upper = constantOf(numberOf(loop.getUpperBound()));
  std::optional<int64_t> step = constantOf(numberOf(loop.getStep()));
  if (!lower || !upper || !step)
    return loop.emitError("is to be unrolled, and how many turns it has is not "
                          "known when code is made");
  const uint64_t span =
      *upper > *lower ? static_cast<uint64_t>(*upper) - *lower : 0;
  const uint64_t turns = llvm::divideCeil(span, static_cast<uint64_t>(*step));
  if (turns > mostUnrolledTurns)
    return loop.emitError("is to be unrolled, and has more than ")
           << mostUnrolledTurns << " turns";
  SmallVector<Lowered> carried = llvm::map_to_vector(
      loop.getInits(), [&](Value value) { return lookup(value); });
  for (uint64_t turn = 0; turn < turns; ++turn) {
    const auto index = static_cast<int64_t>(*lower + turn * *step);
    if (failed(lowerTurn(
            loop, [&] { set(loop.getInductionVar(), b.index(index)); },
            carried)))
      return failure();
  }
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), carried))
    set(result, value);
  return success();
}

/// Whole blocks in a loop, and what is left of one behind it.
LogicalResult KernelLowering::lowerBlocks(scf::ForOp loop, RangeOp range) {
  FailureOr<int64_t> size = blockSize(range, range.getType().getSize());
  if (failed(size))
    return failure();
  Value lower = numberOf(loop.getLowerBound());
  Value upper = numberOf(loop.getUpperBound());
  Value step = numberOf(loop.getStep());
  SmallVector<Lowered> carried = llvm::map_to_vector(
      loop.getInits(), [&](Value value) { return lookup(value); });
  const auto setRange = [&](Value index, Value count) {
    set(loop.getInductionVar(), index);
    LoweredRange neighbors{index, count, *size};
    neighbors.first = lower;
    neighbors.ends = {upper};
    set(range.getResult(), neighbors);
  };

  Value span = b.createOrFold<arith::SubIOp>(upper, lower);
  std::optional<int64_t> known = constantOf(span);
  Value turns, end;
  if (known) {
    const int64_t whole = std::max<int64_t>(*known, 0) / *size * *size;
    turns = b.index(whole);
  } else {
    Value positive = arith::MaxSIOp::create(b, span, b.index(0));
    turns = b.mul(b.div(positive, *size), *size);
  }
  end = b.createOrFold<arith::AddIOp>(lower, turns,
                                      arith::IntegerOverflowFlags::nsw);
  if (known && *known < *size) {
    end = lower;
  } else if (failed(lowerTurns(
                 loop, lower, end, step,
                 [&](Value index) { setRange(index, {}); }, carried, range))) {
    return failure();
  }
  const auto turnOfRest = [&](SmallVectorImpl<Lowered> &values) {
    Value count = b.createOrFold<arith::SubIOp>(upper, end);
    return lowerTurn(loop, [&] { setRange(end, count); }, values, range);
  };
  if (known) {
    if (*known > 0 && *known % *size != 0 && failed(turnOfRest(carried)))
      return failure();
  } else {
    SmallVector<Value> flat;
    for (const Lowered &each : carried)
      flatten(each, flat);
    Value isLeft =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, end, upper);
    auto branch = scf::IfOp::create(b, ValueRange(flat).getTypes(), isLeft,
                                    /*withElseRegion=*/!flat.empty());
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      SmallVector<Lowered> inside = carried;
      if (failed(turnOfRest(inside)))
        return failure();
      SmallVector<Value> next;
      for (const Lowered &each : inside)
        flatten(each, next);
      if (!flat.empty()) {
        scf::YieldOp::create(b, next);
        b.setInsertionPointToStart(branch.elseBlock());
        scf::YieldOp::create(b, flat);
      }
    }
    ValueRange results = branch.getResults();
    for (Lowered &each : carried)
      each = restore(each, results);
  }
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), carried))
    set(result, value);
  return success();
}

bool block::isUnrolled(scf::ForOp loop) {
  return loop->hasAttr(BlockDialect::unrollName);
}

RangeOp block::rangeOfBlocks(scf::ForOp loop) {
  auto range = dyn_cast<RangeOp>(loop.getBody()->front());
  if (range && range.getStart() == loop.getInductionVar() &&
      range.getEnd() == loop.getUpperBound())
    return range;
  return {};
}

LogicalResult KernelLowering::lowerFor(scf::ForOp loop) {
  if (!loop.getInductionVar().getType().isIndex() || loop.getUnsignedCmp())
    return loop.emitError("counts in another type than index, or without a "
                          "sign");
  if (std::optional<int64_t> step = constantOf(numberOf(loop.getStep()));
      !step || *step < 1)
    return loop.emitError("has a step that is not known when code is made, or "
                          "not 1 or more");
  if (failed(verifyCarried(loop, loop.getResultTypes())))
    return failure();
  if (isUnrolled(loop))
    return unroll(loop);
  if (RangeOp range = rangeOfBlocks(loop)) {
    std::optional<int64_t> step = constantOf(numberOf(loop.getStep()));
    std::optional<int64_t> size =
        knownSize(range.getType().getSize(), bindings);
    if (step && size && *step == *size)
      return lowerBlocks(loop, range);
  }
  SmallVector<Lowered> carried = llvm::map_to_vector(
      loop.getInits(), [&](Value value) { return lookup(value); });
  std::optional<unsigned> sums = carriedInTiles(loop);
  Tiling tiling;
  if (sums) {
    Value argument = loop.getRegionIterArg(*sums);
    tiling = *tilingOf(cast<MatmulOp>(*argument.user_begin()));
    if (failed(loadTiles(loop, tiling, loop.getInits()[*sums])))
      return failure();
    const auto &block = std::get<LoweredBlock>(carried[*sums]);
    carried[*sums] = LoweredBlock(block.getSizes(), block.getElement());
    sumsInTiles.insert(argument);
  }
  if (failed(lowerTurns(
          loop, numberOf(loop.getLowerBound()), numberOf(loop.getUpperBound()),
          numberOf(loop.getStep()),
          [&](Value index) { set(loop.getInductionVar(), index); }, carried)))
    return failure();
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), carried))
    set(result, value);
  return sums ? finishTiles(tiling, loop.getResult(*sums)) : success();
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerIf(scf::IfOp branch) {
  if (failed(verifyCarried(branch, branch.getResultTypes())))
    return failure();
  Value condition = numberOf(branch.getCondition());
  // Of what is unrolled, a turn may decide; what parameters decide is gone.
  if (std::optional<int64_t> known = constantOf(condition)) {
    Block *side = *known != 0 ? branch.thenBlock() : branch.elseBlock();
    if (!side)
      return success();
    if (failed(lowerBlock(*side)))
      return failure();
    for (auto [result, value] : llvm::zip_equal(
             branch.getResults(), side->getTerminator()->getOperands()))
      set(result, lookup(value));
    return success();
  }
  // Which types there are is known when both sides are made.
  auto draft = scf::IfOp::create(b, TypeRange(), condition,
                                 /*withElseRegion=*/true);
  SmallVector<Lowered> results;
  SmallVector<Type> types;
  for (auto [side, block] :
       {std::pair(branch.thenBlock(), draft.thenBlock()),
        std::pair(branch.elseBlock(), draft.elseBlock())}) {
    OpBuilder::InsertionGuard guard(b);
    block->clear();
    b.setInsertionPointToStart(block);
    if (side && failed(lowerBlock(*side)))
      return failure();
    SmallVector<Value> flat;
    if (side)
      flat = flatten(side->getTerminator()->getOperands());
    scf::YieldOp::create(b, flat);
    if (side == branch.thenBlock()) {
      for (Value value : side->getTerminator()->getOperands())
        results.push_back(lookup(value));
      llvm::append_range(types, ValueRange(flat).getTypes());
    }
  }
  auto made =
      scf::IfOp::create(b, types, condition, branch.elseBlock() != nullptr);
  made.getThenRegion().takeBody(draft.getThenRegion());
  if (branch.elseBlock())
    made.getElseRegion().takeBody(draft.getElseRegion());
  draft.erase();
  ValueRange flat = made.getResults();
  for (auto [result, value] : llvm::zip_equal(branch.getResults(), results))
    set(result, restore(value, flat));
  return success();
}
