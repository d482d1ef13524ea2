//===- KernelLowering.cpp - Blocks become vectors -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

/// More numbers than this are no block that registers or caches hold; code has
/// an operation for every row.
static constexpr int64_t mostNumbers = int64_t(1) << 16;
static constexpr int64_t mostRows = 1024;

std::optional<int64_t> block::constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

FailureOr<int64_t> KernelLowering::blockSize(Operation *op,
                                             SizeAttr size) const {
  std::optional<int64_t> known = knownSize(size, bindings);
  if (!known)
    return op->emitError("needs the size ")
           << size.str() << ", which is not known when code is made";
  if (*known < 1 || *known > mostNumbers)
    return op->emitError("has a block of size ")
           << *known << ", which is not between 1 and " << mostNumbers;
  return *known;
}

FailureOr<SmallVector<int64_t>>
KernelLowering::blockSizes(Operation *op, ArrayRef<SizeAttr> sizes) const {
  SmallVector<int64_t> known;
  int64_t numbers = 1, rows = 1;
  for (SizeAttr size : sizes) {
    FailureOr<int64_t> each = blockSize(op, size);
    if (failed(each))
      return failure();
    known.push_back(*each);
    rows = numbers;
    if (llvm::MulOverflow(numbers, *each, numbers) || numbers > mostNumbers ||
        rows > mostRows)
      return op->emitError("has a block of more than ")
             << mostNumbers << " numbers, or " << mostRows << " rows";
  }
  return known;
}

Value KernelLowering::sizeValue(SizeAttr size) {
  if (std::optional<int64_t> known = knownSize(size, bindings))
    return b.index(*known);
  Value product = b.index(size.getFactor());
  for (StringAttr name : size.getNames()) {
    Value each;
    if (auto bound = bindings.find(name.getValue()); bound != bindings.end()) {
      each = b.index(bound->second);
    } else {
      auto [argument, dimension] = *findDimension(kernel, name);
      each = memref::DimOp::create(b, function.getArgument(argument),
                                   static_cast<int64_t>(dimension));
    }
    product = b.mul(product, each);
  }
  return product;
}

MemRefType KernelLowering::memoryType(ArrayRef<SizeAttr> sizes,
                                      Type element) const {
  SmallVector<int64_t> shape;
  for (SizeAttr size : sizes)
    shape.push_back(knownSize(size, bindings).value_or(ShapedType::kDynamic));
  return MemRefType::get(shape, element);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerRange(RangeOp op) {
  FailureOr<int64_t> size = blockSize(op, op.getType().getSize());
  if (failed(size))
    return failure();
  LoweredRange range{numberOf(op.getStart()), {}, *size};
  if (checks)
    range.ends = {b.createOrFold<arith::AddIOp>(range.start, b.index(*size))};
  if (op.getEnd()) {
    range.ends.push_back(numberOf(op.getEnd()));
    Value left =
        b.createOrFold<arith::SubIOp>(numberOf(op.getEnd()), range.start);
    std::optional<int64_t> known = constantOf(left);
    if (known)
      left = b.index(std::clamp<int64_t>(*known, 0, *size));
    else
      left = arith::MaxSIOp::create(
          b, b.index(0), arith::MinSIOp::create(b, left, b.index(*size)));
    if (!known || *known < *size)
      range.count = left;
  }
  set(op.getResult(), range);
  return success();
}

Value KernelLowering::maskOf(Value count, int64_t width) {
  return vector::CreateMaskOp::create(
      b, VectorType::get({width}, b.getI1Type()), count);
}

void KernelLowering::lowerPositions(PositionsOp op) {
  const LoweredRange &range = rangeOf(op.getRange());
  if (arePlaces(op.getResult())) {
    SmallVector<Value> places;
    for (int64_t i = 0; i < range.size; ++i)
      places.push_back(b.createOrFold<arith::AddIOp>(
          range.start, b.index(i), arith::IntegerOverflowFlags::nsw));
    set(op.getResult(), LoweredBlock::ofNumbers({range.size}, b.getIndexType(),
                                                std::move(places)));
    return;
  }
  Value positions = range.start;
  if (range.size > 1) {
    auto type = VectorType::get({range.size}, b.getIndexType());
    positions = arith::AddIOp::create(
        b, vector::BroadcastOp::create(b, type, range.start),
        vector::StepOp::create(b, type));
  }
  set(op.getResult(),
      LoweredBlock::ofRows({range.size}, b.getIndexType(), {positions}));
}

void KernelLowering::lowerInside(InsideOp op) {
  const LoweredRange &range = rangeOf(op.getRange());
  auto type = VectorType::get({range.size}, b.getI1Type());
  Value inside;
  if (range.size == 1)
    inside =
        range.count
            ? arith::CmpIOp::create(b, arith::CmpIPredicate::ne, range.count,
                                    b.index(0))
                  .getResult()
            : arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult();
  else
    inside =
        range.count
            ? maskOf(range.count, range.size)
            : arith::ConstantOp::create(b, DenseElementsAttr::get(type, true))
                  .getResult();
  set(op.getResult(),
      LoweredBlock::ofRows({range.size}, b.getI1Type(), {inside}));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// `number`, or a vector of `width` of it.
static Value repeat(LoopBuilder &builder, Value number, int64_t width) {
  if (width == 1)
    return number;
  auto type = VectorType::get({width}, number.getType());
  Attribute constant;
  if (matchPattern(number, m_Constant(&constant)))
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(type, constant));
  return vector::BroadcastOp::create(builder, type, number);
}

LogicalResult KernelLowering::lowerSplat(SplatOp op) {
  FailureOr<SmallVector<int64_t>> sizes =
      blockSizes(op, sizesOf(op.getResult().getType()));
  if (failed(sizes))
    return failure();
  LoweredBlock shape(*sizes, op.getNumber().getType());
  if (arePlaces(op.getResult())) {
    set(op.getResult(), LoweredBlock::ofNumbers(
                            *sizes, shape.getElement(),
                            SmallVector<Value>(shape.rowCount() * shape.width(),
                                               numberOf(op.getNumber()))));
    return success();
  }
  Value row = repeat(b, numberOf(op.getNumber()), shape.width());
  set(op.getResult(),
      LoweredBlock::ofRows(*sizes, op.getNumber().getType(),
                           SmallVector<Value>(shape.rowCount(), row)));
  return success();
}

LogicalResult KernelLowering::lowerExpand(ExpandOp op) {
  const LoweredBlock &from = blockOf(op.getBlock());
  SmallVector<int64_t> sizes(from.getSizes());
  sizes.insert(sizes.begin() + op.getAxis(), 1);
  const bool isLast = op.getAxis() + 1 == sizes.size();
  if (failed(blockSizes(op, sizesOf(op.getResult().getType()))))
    return failure();
  if (isLast || !from.hasRows())
    set(op.getResult(),
        LoweredBlock::ofNumbers(sizes, from.getElement(), from.getNumbers(b)));
  else
    set(op.getResult(),
        LoweredBlock::ofRows(sizes, from.getElement(), from.getRows(b)));
  return success();
}

void KernelLowering::lowerInterleave(InterleaveOp op) {
  const LoweredBlock &lhs = blockOf(op.getLhs()), &rhs = blockOf(op.getRhs());
  SmallVector<int64_t> sizes(lhs.getSizes());
  sizes.back() *= 2;
  SmallVector<Value> values;
  if (lhs.width() == 1) {
    for (auto [left, right] :
         llvm::zip_equal(lhs.getNumbers(b), rhs.getNumbers(b)))
      values.append({left, right});
    set(op.getResult(),
        LoweredBlock::ofNumbers(sizes, lhs.getElement(), std::move(values)));
    return;
  }
  for (auto [left, right] : llvm::zip_equal(lhs.getRows(b), rhs.getRows(b)))
    values.push_back(interleaveRows(b, left, right));
  set(op.getResult(),
      LoweredBlock::ofRows(sizes, lhs.getElement(), std::move(values)));
}

LogicalResult KernelLowering::checkAssertion(AssertOp op) {
  std::optional<bool> holds = evaluate(op, bindings);
  if (!holds)
    return op.emitError("asserts what is not known when code is made: ")
           << op.getMessage();
  if (!*holds)
    return op.emitError("does not hold: ") << op.getMessage();
  return success();
}

LogicalResult KernelLowering::lowerBroadcast(BroadcastOp op) {
  FailureOr<SmallVector<int64_t>> sizes =
      blockSizes(op, sizesOf(op.getResult().getType()));
  if (failed(sizes))
    return failure();
  const LoweredBlock &from = blockOf(op.getBlock());
  LoweredBlock shape(*sizes, from.getElement());
  const size_t more = sizes->size() - from.getSizes().size();
  SmallVector<Value> ownRows;
  for (Value row : from.getRows(b))
    ownRows.push_back(
        from.width() == shape.width() ? row : repeat(b, row, shape.width()));
  SmallVector<Value> rows;
  for (int64_t row = 0; row < shape.rowCount(); ++row) {
    // From the last dimension but one on.
    int64_t rest = row, source = 0, stride = 1;
    for (size_t i = sizes->size() - 1; i-- > more;) {
      const int64_t own = from.getSizes()[i - more];
      source += own == 1 ? 0 : rest % (*sizes)[i] * stride;
      stride *= own;
      rest /= (*sizes)[i];
    }
    rows.push_back(ownRows[source]);
  }
  set(op.getResult(),
      LoweredBlock::ofRows(*sizes, from.getElement(), std::move(rows)));
  return success();
}

/// Of `count` rows from `first` on, each `stride` behind the one before it, the
/// sum of their products: each one is rounded once, with its sum.
Value KernelLowering::sumProducts(const LoweredBlock &lhs,
                                  const LoweredBlock &rhs, int64_t first,
                                  int64_t stride, int64_t count) {
  SmallVector<Value> left = lhs.getRows(b), right = rhs.getRows(b);
  // Chains that wait for each other less.
  constexpr int64_t mostChains = 2;
  SmallVector<Value> sums;
  for (int64_t i = 0; i < count; ++i) {
    Value one = left[first + i * stride], other = right[first + i * stride];
    if (i < mostChains)
      sums.push_back(arith::MulFOp::create(b, one, other));
    else
      sums[i % mostChains] =
          math::FmaOp::create(b, one, other, sums[i % mostChains]);
  }
  return sums.size() == 1 ? sums[0]
                          : combine(b, ReductionKind::Add, sums[0], sums[1]);
}

LogicalResult KernelLowering::lowerReduce(ReduceOp op) {
  const LoweredBlock &from = blockOf(op.getBlock());
  const ReductionKind kind = op.getKind();
  // Neighbors in pairs: the longest chain is short.
  const auto combineAll = [&](SmallVector<Value> values) {
    while (values.size() > 1) {
      SmallVector<Value> next;
      for (size_t i = 0; i + 1 < values.size(); i += 2)
        next.push_back(combine(b, kind, values[i], values[i + 1]));
      if (values.size() % 2 != 0)
        next.push_back(values.back());
      values = std::move(next);
    }
    return values[0];
  };
  SmallVector<int64_t> sizes(from.getSizes());
  SmallVector<Value> rows = from.getRows(b);
  if (!op.getAxis()) {
    set(op.getResult(), reduceRow(b, kind, combineAll(std::move(rows))));
    return success();
  }
  const size_t axis = *op.getAxis();
  const int64_t reduced = sizes[axis];
  const bool isLast = axis + 1 == sizes.size();
  sizes.erase(sizes.begin() + axis);
  if (isLast) {
    SmallVector<Value> numbers = reduceRows(b, kind, rows);
    if (sizes.empty())
      set(op.getResult(), numbers[0]);
    else
      set(op.getResult(), LoweredBlock::ofNumbers(sizes, from.getElement(),
                                                  std::move(numbers)));
    return success();
  }
  // Rows between neighbors along the axis.
  int64_t stride = 1;
  for (int64_t size : ArrayRef(sizes).slice(axis).drop_back())
    stride *= size;
  SmallVector<Value> results;
  const int64_t count = LoweredBlock(sizes, from.getElement()).rowCount();
  auto product = op.getBlock().getDefiningOp<arith::MulFOp>();
  // Of smaller floats CPUs have no such instruction.
  const bool sumsProducts =
      kind == ReductionKind::Add && product && product->hasOneUse() &&
      (from.getElement().isF32() || from.getElement().isF64());
  for (int64_t row = 0; row < count; ++row) {
    const int64_t first = row / stride * stride * reduced + row % stride;
    if (sumsProducts) {
      results.push_back(sumProducts(blockOf(product.getLhs()),
                                    blockOf(product.getRhs()), first, stride,
                                    reduced));
      continue;
    }
    SmallVector<Value> along;
    for (int64_t i = 0; i < reduced; ++i)
      along.push_back(rows[first + i * stride]);
    results.push_back(combineAll(std::move(along)));
  }
  set(op.getResult(),
      LoweredBlock::ofRows(sizes, from.getElement(), std::move(results)));
  return success();
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// `number` in all lanes of `type`, which is one of integers.
static Value constantLike(LoopBuilder &builder, Type type, int64_t number) {
  TypedAttr attribute =
      builder.getIntegerAttr(getElementTypeOrSelf(type), number);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return arith::ConstantOp::create(builder, attribute);
}

/// Where `lhs` and `rhs` are equal, which are integers.
static Value areEqual(LoopBuilder &builder, Value lhs, Value rhs) {
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, lhs, rhs);
}

/// An operation that divides integers, `op`, made safe: CPUs trap where the
/// divisor is zero, as it is in lanes that are not there, and where the
/// quotient has too many bits. The first gives anything, the second what is
/// left of the bits.
static Value divide(LoopBuilder &builder, Operation *op, Value lhs, Value rhs) {
  const bool isSigned =
      isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp>(op);
  const bool isRemainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
  const Type type = lhs.getType();
  std::optional<int64_t> known = constantOf(rhs);
  if (std::optional<int64_t> left = constantOf(lhs);
      left && known && *known > 0 && *left >= 0 && type.isIndex())
    return builder.index(isRemainder ? *left % *known : *left / *known);
  const auto make = [&](Value divisor) -> Value {
    if (isRemainder)
      return isSigned
                 ? arith::RemSIOp::create(builder, lhs, divisor).getResult()
                 : arith::RemUIOp::create(builder, lhs, divisor).getResult();
    return isSigned ? arith::DivSIOp::create(builder, lhs, divisor).getResult()
                    : arith::DivUIOp::create(builder, lhs, divisor).getResult();
  };
  Value safe = rhs, isMinusOne;
  if (!known || *known == 0 || *known == -1) {
    Value one = constantLike(builder, type, 1);
    Value isUnsafe = areEqual(builder, rhs, constantLike(builder, type, 0));
    if (isSigned) {
      isMinusOne = areEqual(builder, rhs, constantLike(builder, type, -1));
      isUnsafe = arith::OrIOp::create(builder, isUnsafe, isMinusOne);
    }
    safe = arith::SelectOp::create(builder, isUnsafe, one, rhs);
  }
  // A remainder by 1, and by -1, is 0.
  Value result = make(safe);
  if (isRemainder)
    return result;
  Value zero = constantLike(builder, type, 0);
  if (isMinusOne)
    result = arith::SelectOp::create(
        builder, isMinusOne, arith::SubIOp::create(builder, zero, lhs), result);
  if (!isa<arith::FloorDivSIOp>(op))
    return result;
  // Rounded down where something is left and one of both is negative.
  using arith::CmpIPredicate;
  Value whole = arith::MulIOp::create(builder, result, rhs);
  Value hasRest = arith::CmpIOp::create(builder, CmpIPredicate::ne, whole, lhs);
  Value isNegative = arith::CmpIOp::create(
      builder, CmpIPredicate::ne,
      arith::CmpIOp::create(builder, CmpIPredicate::slt, lhs, zero),
      arith::CmpIOp::create(builder, CmpIPredicate::slt, rhs, zero));
  Value isAbove = arith::AndIOp::create(builder, hasRest, isNegative);
  Value below =
      arith::SubIOp::create(builder, result, constantLike(builder, type, 1));
  return arith::SelectOp::create(builder, isAbove, below, result);
}

LogicalResult KernelLowering::lowerElementwise(Operation *op) {
  // One of another shape than its operands is none.
  const auto hasOtherSizes = [&](Type each) {
    if (!isBlock(each) && !isNumber(each))
      return true;
    return isBlock(each) &&
           (!isBlock(op->getResult(0).getType()) ||
            sizesOf(each) != sizesOf(op->getResult(0).getType()));
  };
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op) ||
      llvm::any_of(op->getOperandTypes(), hasOtherSizes))
    return op->emitError("is nothing that a kernel may have");
  const auto create = [&](ArrayRef<Value> operands, Type type) -> Value {
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
            arith::FloorDivSIOp>(op))
      return divide(b, op, operands[0], operands[1]);
    IRMapping mapping;
    mapping.map(op->getOperands(), operands);
    if (isa<arith::ExtFOp>(op) && getElementTypeOrSelf(operands[0]).isBF16() &&
        getElementTypeOrSelf(type).isF32())
      return toF32(b, operands[0]);
    Operation *made = b.clone(*op, mapping);
    made->getResult(0).setType(type);
    SmallVector<Value> folded;
    if (succeeded(b.tryFold(made, folded)) && !folded.empty()) {
      made->erase();
      return folded[0];
    }
    return made->getResult(0);
  };
  Type type = op->getResult(0).getType();
  if (!isBlock(type)) {
    SmallVector<Value> operands = llvm::map_to_vector(
        op->getOperands(), [&](Value each) { return numberOf(each); });
    set(op->getResult(0), create(operands, type));
    return success();
  }
  FailureOr<SmallVector<int64_t>> sizes = blockSizes(op, sizesOf(type));
  if (failed(sizes))
    return failure();
  LoweredBlock shape(*sizes, getElementTypeOrSelf(type));
  const bool byNumbers = arePlaces(op->getResult(0));
  const int64_t count = shape.rowCount() * (byNumbers ? shape.width() : 1);
  SmallVector<SmallVector<Value>> all;
  for (Value each : op->getOperands()) {
    if (!isBlock(each.getType()))
      all.emplace_back(count, numberOf(each));
    else
      all.push_back(byNumbers ? blockOf(each).getNumbers(b)
                              : blockOf(each).getRows(b));
  }
  SmallVector<Value> results;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value> operands = llvm::map_to_vector(
        all, [&](const SmallVector<Value> &each) { return each[i]; });
    results.push_back(
        create(operands, byNumbers ? shape.getElement() : shape.rowType()));
  }
  set(op->getResult(0),
      byNumbers ? LoweredBlock::ofNumbers(*sizes, shape.getElement(),
                                          std::move(results))
                : LoweredBlock::ofRows(*sizes, shape.getElement(),
                                       std::move(results)));
  return success();
}

LogicalResult KernelLowering::countMade(Operation *op, int64_t rows) {
  constexpr int64_t mostRowsMade = int64_t(1) << 17;
  rowsMade += rows;
  if (rowsMade > mostRowsMade)
    return op->emitError("is too much: the kernel takes more than ")
           << mostRowsMade << " operations with these parameters";
  return success();
}

LogicalResult KernelLowering::verifyOperation(Operation *op) {
  const auto isKnown = [&](Value value) {
    auto found = lowered.find(value);
    if (found == lowered.end())
      return false;
    if (isBlock(value.getType()))
      return std::holds_alternative<LoweredBlock>(found->second);
    if (isa<RangeType>(value.getType()))
      return std::holds_alternative<LoweredRange>(found->second);
    return std::holds_alternative<Value>(found->second);
  };
  if (!llvm::all_of(op->getOperands(), isKnown))
    return op->emitError("takes what a kernel must not have");
  for (Type type : op->getResultTypes())
    if (!isNumber(type) && !isBlock(type) && !isa<RangeType>(type) &&
        !isa<ScratchOp>(op))
      return op->emitError("is nothing that a kernel may have");
  // What is made of a row takes an instruction or more.
  int64_t made = 1;
  for (Type type : op->getResultTypes())
    if (isBlock(type)) {
      FailureOr<SmallVector<int64_t>> sizes = blockSizes(op, sizesOf(type));
      if (failed(sizes))
        return failure();
      LoweredBlock shape(*sizes, getElementTypeOrSelf(type));
      // Places are single numbers.
      made +=
          shape.rowCount() * (arePlaces(op->getResult(0)) ? shape.width() : 1);
    }
  return countMade(op, made);
}

LogicalResult KernelLowering::lower(Operation *op) {
  if (failed(verifyOperation(op)))
    return failure();
  b.setLoc(op->getLoc());
  if (auto size = dyn_cast<SizeOp>(op)) {
    set(size.getResult(), sizeValue(size.getSize()));
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && !isBlock(constant.getType())) {
    set(constant.getResult(), b.clone(*op)->getResult(0));
    return success();
  }
  if (auto range = dyn_cast<RangeOp>(op))
    return lowerRange(range);
  if (auto shift = dyn_cast<ShiftOp>(op)) {
    LoweredRange range = rangeOf(shift.getRange());
    const auto move = [&](Value &place) {
      // What is checked may wrap around.
      place = b.createOrFold<arith::AddIOp>(
          place, numberOf(shift.getBy()),
          checks ? arith::IntegerOverflowFlags::none
                 : arith::IntegerOverflowFlags::nsw);
    };
    move(range.start);
    if (checks) {
      move(range.first);
      llvm::for_each(range.ends, move);
    }
    set(shift.getResult(), range);
    return success();
  }
  if (auto positions = dyn_cast<PositionsOp>(op))
    return lowerPositions(positions), success();
  if (auto inside = dyn_cast<InsideOp>(op))
    return lowerInside(inside), success();
  if (auto splat = dyn_cast<SplatOp>(op))
    return lowerSplat(splat);
  if (auto expand = dyn_cast<ExpandOp>(op))
    return lowerExpand(expand);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return lowerBroadcast(broadcast);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return lowerReduce(reduce);
  if (auto interleave = dyn_cast<InterleaveOp>(op))
    return lowerInterleave(interleave), success();
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return lowerMatmul(matmul);
  if (auto prefetch = dyn_cast<PrefetchOp>(op))
    return lowerPrefetch(prefetch);
  if (auto assertion = dyn_cast<AssertOp>(op))
    return checkAssertion(assertion);
  if (auto scratch = dyn_cast<ScratchOp>(op))
    return lowerScratch(scratch);
  if (auto load = dyn_cast<LoadOp>(op))
    return lowerLoad(load);
  if (auto store = dyn_cast<StoreOp>(op))
    return lowerStore(store);
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return lowerNumber(load), success();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return lowerNumber(store), success();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lowerFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return lowerIf(branch);
  return lowerElementwise(op);
}

LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(lower(&op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

FailureOr<func::FuncOp> KernelLowering::run(StringRef name,
                                            ArrayRef<Type> argumentTypes) {
  if (kernel.getNumResults() != 0)
    return kernel.emitError("gives results, which kernels do not");
  if (failed(bindParameters(kernel, bindings)))
    return failure();
  // What becomes of a value depends on what is done with it, on the sides that
  // are taken.
  func::FuncOp original = kernel;
  OwningOpRef<func::FuncOp> copy = original.clone();
  kernel = *copy;
  foldBranches(kernel, bindings);
  SmallVector<Type> types(argumentTypes);
  for (BlockArgument argument : types.empty()
                                    ? kernel.getArguments()
                                    : MutableArrayRef<BlockArgument>()) {
    SizesAttr sizes = sizesOfArgument(kernel, argument.getArgNumber());
    types.push_back(
        sizes ? memoryType(sizes.getSizes(), getElementTypeOrSelf(argument))
              : argument.getType());
  }
  b.setInsertionPointAfter(original);
  SmallVector<Type> results;
  if (checks)
    results.push_back(b.getI64Type());
  function = func::FuncOp::create(b, name, b.getFunctionType(types, results));
  SymbolTable::setSymbolVisibility(function,
                                   SymbolTable::getSymbolVisibility(original));
  Block *body = function.addEntryBlock();
  for (auto [from, to] :
       llvm::zip_equal(kernel.getArguments(), body->getArguments())) {
    to.setLoc(from.getLoc());
    set(from, to);
  }
  b.setInsertionPointToStart(body);
  if (!llvm::hasSingleElement(kernel.getBody())) {
    function.erase();
    return kernel.emitError("has more than one block of operations");
  }
  LogicalResult lowered = success();
  const auto lowerBody = [&] {
    lowered = lowerBlock(kernel.getBody().front());
  };
  if (checks) {
    line = b.scratch(function, {1}, b.getI64Type());
    Value zero = b.index(0);
    Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
    memref::StoreOp::create(b, none, line, ValueRange(zero));
    if (Value areLarge = checkArguments())
      b.ifThen(areLarge, lowerBody);
    else
      lowerBody();
    b.setLoc(kernel.getLoc());
    func::ReturnOp::create(
        b, ValueRange(memref::LoadOp::create(b, line, ValueRange(zero))));
  } else {
    lowerBody();
    func::ReturnOp::create(b);
  }
  if (failed(lowered)) {
    function.erase();
    return failure();
  }
  return function;
}

FailureOr<func::FuncOp> block::makeFunction(func::FuncOp kernel, StringRef name,
                                            const Bindings &bindings,
                                            const FunctionOptions &options) {
  return KernelLowering(kernel, bindings, options)
      .run(name, options.argumentTypes);
}
