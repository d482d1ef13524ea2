//===- KernelWidening.cpp - One function becomes a kernel -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWidening.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;
using block::BlockDialect;
using block::ReductionKind;
using block::SizeAttr;

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

/// The name of a value in its source; empty if it has none.
static StringRef nameOf(Value value) {
  auto name = value.getLoc()->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

SizeAttr KernelWidening::sizeOf(const TileLoop &tile) {
  std::string &name = tileNames[tile.loop];
  if (name.empty())
    name = uniqueName(tile.name);
  return SizeAttr::getSorted(b.getContext(), 1, {name});
}

std::string KernelWidening::uniqueName(StringRef wanted) {
  std::string name = block::isName(wanted) ? wanted.str() : "value";
  for (int number = 2; !names.insert(name).second; ++number)
    name = wanted.str() + "_" + std::to_string(number);
  return name;
}

SizeAttr KernelWidening::lanesOf(Type vector) {
  if (!current)
    return SizeAttr::getSorted(b.getContext(),
                               cast<VectorType>(vector).getNumElements(), {});
  std::string &name = widths[current->lanes];
  if (name.empty())
    name = uniqueName("LANES");
  return SizeAttr::getSorted(b.getContext(), current->copies, {name});
}

SizeAttr KernelWidening::rowsOf() {
  if (rowsName.empty())
    rowsName = uniqueName("ROWS");
  return SizeAttr::getSorted(b.getContext(), 1, {rowsName});
}

/// The kernel with the function's arguments, whose memory gets sizes, and one
/// of memory for each result.
void KernelWidening::makeKernel() {
  SmallVector<Type> types(function.getArgumentTypes());
  for (auto [type, argument] : llvm::zip_equal(types, function.getArguments()))
    if (std::optional<int64_t> length = matrices.lengthOf(argument))
      type = MemRefType::get({ShapedType::kDynamic, *length},
                             getElementTypeOrSelf(type));
  for (Type each : function.getResultTypes())
    types.push_back(MemRefType::get({1}, each));
  b.setInsertionPoint(function);
  kernel = func::FuncOp::create(b, function.getSymName(),
                                b.getFunctionType(types, {}));
  Block *body = kernel.addEntryBlock();
  for (BlockArgument each : function.getArguments())
    names.insert(nameOf(each));
  MLIRContext *context = b.getContext();
  const auto sizesName = b.getStringAttr(BlockDialect::sizesName);
  for (auto [number, argument] : llvm::enumerate(body->getArguments())) {
    if (number >= function.getNumArguments()) {
      argument.setLoc(NameLoc::get(b.getStringAttr(uniqueName("result"))));
      kernel.setArgAttr(
          number, sizesName,
          block::SizesAttr::get(context, SizeAttr::getSorted(context, 1, {})));
      results.push_back(argument);
      continue;
    }
    BlockArgument old = function.getArgument(number);
    StringRef name = nameOf(old);
    argument.setLoc(name.empty() ? Location(NameLoc::get(
                                       b.getStringAttr(uniqueName("argument"))))
                                 : old.getLoc());
    map(old, argument);
    if (!isa<MemRefType>(argument.getType()))
      continue;
    std::optional<int64_t> length = matrices.lengthOf(old);
    SmallVector<SizeAttr> sizes = {SizeAttr::getSorted(
        context, 1,
        {uniqueName((nameOf(argument) + (length ? "_rows" : "_size")).str())})};
    if (length)
      sizes.push_back(SizeAttr::getSorted(context, *length, {}));
    kernel.setArgAttr(number, sizesName, block::SizesAttr::get(context, sizes));
  }
  b.setInsertionPointToStart(body);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value KernelWidening::termIndex(Value value) {
  if (Value counter = counters.lookup(value))
    return counter;
  if (const TileLoop *tile = tiles.findTurn(value)) {
    scf::ForOp loop = tile->loop;
    IndexForm rest = indexFormOf(loop.getUpperBound());
    rest.add(indexFormOf(loop.getInductionVar()), -1);
    Value left = form(rest);
    return arith::MinSIOp::create(b, left,
                                  block::SizeOp::create(b, sizeOf(*tile)));
  }
  if (value.getType().isIndex())
    return mapped(value);
  Operation *op = value.getDefiningOp();
  if (op &&
      (isa<arith::DivSIOp, arith::RemSIOp, arith::AndIOp, arith::ShRSIOp>(op) &&
       constantOf(op->getOperand(1))))
    return rebuild(op, {index(op->getOperand(0)), index(op->getOperand(1))},
                   b.getIndexType());
  if (auto product = dyn_cast_if_present<arith::MulIOp>(op);
      product && product.hasNoSignedWrap())
    return rebuild(op, {index(op->getOperand(0)), index(op->getOperand(1))},
                   b.getIndexType());
  if (std::optional<Combination> choice =
          depth < deepestChoice ? findCombination(op) : std::nullopt;
      choice && (choice->kind == ReductionKind::Maximum ||
                 choice->kind == ReductionKind::Minimum)) {
    ++depth;
    Value lhs = index(choice->lhs), rhs = index(choice->rhs);
    --depth;
    return choice->kind == ReductionKind::Maximum
               ? arith::MaxSIOp::create(b, lhs, rhs).getResult()
               : arith::MinSIOp::create(b, lhs, rhs).getResult();
  }
  return arith::IndexCastOp::create(b, b.getIndexType(), mapped(value));
}

Value KernelWidening::form(const IndexForm &form) {
  // What is taken as often goes together.
  llvm::MapVector<int64_t, Value> parts;
  for (const auto &[value, factor] : form.terms) {
    Value &part = parts[std::abs(factor)];
    Value term = termIndex(value);
    if (!part && factor < 0)
      part =
          arith::SubIOp::create(b, arith::ConstantIndexOp::create(b, 0), term);
    else if (!part)
      part = term;
    else if (factor < 0)
      part = arith::SubIOp::create(b, part, term);
    else
      part = arith::AddIOp::create(b, part, term);
  }
  Value result;
  for (auto [factor, part] : parts) {
    if (factor != 1)
      part = arith::MulIOp::create(b, part,
                                   arith::ConstantIndexOp::create(b, factor));
    result = result ? arith::AddIOp::create(b, result, part) : part;
  }
  if (!result)
    return arith::ConstantIndexOp::create(b, form.constant);
  if (form.constant != 0)
    result = arith::AddIOp::create(
        b, result, arith::ConstantIndexOp::create(b, form.constant));
  return result;
}

Value KernelWidening::rebuild(Operation *op, ArrayRef<SizeAttr> sizes,
                              Value result) {
  SmallVector<Value> operands;
  for (Value each : op->getOperands())
    operands.push_back(as(each, sizes));
  return rebuild(op, operands, typeOf(result));
}

Value KernelWidening::rebuild(Operation *op, ValueRange operands, Type type) {
  OperationState state(b.getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(type);
  state.addAttributes(op->getAttrs());
  // Numbers of more bits do not wrap around; that is not said again.
  state.attributes.erase("overflowFlags");
  Operation *made = b.create(state);
  return made->getResult(0);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

bool KernelWidening::hasLanes(Value value) const {
  return isa<VectorType>(value.getType()) && !isUniform(value) &&
         !loops.sumOf(value);
}

SmallVector<SizeAttr> KernelWidening::sizesOf(Value value) {
  SmallVector<SizeAttr> sizes;
  if (row && row->perRow.contains(value))
    sizes.push_back(rowsOf());
  if (hasLanes(value))
    sizes.push_back(lanesOf(value.getType()));
  return sizes;
}

Type KernelWidening::typeOf(Value value) {
  return block::blockOf(sizesOf(value), getElementTypeOrSelf(value));
}

Value KernelWidening::repeated(Value value) {
  if (!isUniform(value))
    return mapped(value);
  Operation *op = value.getDefiningOp();
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return mapped(broadcast.getSource());
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return number(cast<SplatElementsAttr>(constant.getValue())
                      .getSplatValue<TypedAttr>());
  return mapped(value);
}

Value KernelWidening::adapt(Value made, bool hasLanes,
                            ArrayRef<SizeAttr> sizes) {
  if (!made || sizes.empty())
    return made;
  const bool isBlock = block::isBlock(made.getType());
  Type type = block::blockOf(sizes, getElementTypeOrSelf(made));
  if (!isBlock)
    return block::SplatOp::create(b, type, made);
  if (made.getType() == type)
    return made;
  // A number for each row.
  if (!hasLanes) {
    SizeAttr one = SizeAttr::getSorted(b.getContext(), 1, {});
    made = block::ExpandOp::create(
        b, block::blockOf({sizes.front(), one}, getElementTypeOrSelf(made)),
        made, b.getI64IntegerAttr(1));
  }
  return block::BroadcastOp::create(b, type, made);
}

Value KernelWidening::as(Value value, ArrayRef<SizeAttr> sizes) {
  return adapt(repeated(value), hasLanes(value), sizes);
}

Value KernelWidening::reduce(ReductionKind kind, Value made, bool isByRow) {
  ArrayRef<SizeAttr> sizes = block::sizesOf(made.getType());
  Type number = getElementTypeOrSelf(made);
  if (sizes.size() == 1)
    return block::ReduceOp::create(b, number, kind, made, IntegerAttr());
  // What is left has a number for each row, or for each lane.
  SizeAttr left = isByRow ? sizes.front() : sizes.back();
  return block::ReduceOp::create(b, block::blockOf(left, number), kind, made,
                                 b.getI64IntegerAttr(isByRow ? 1 : 0));
}

Value KernelWidening::sum(ReductionKind kind, Value vector) {
  if (loops.sumOf(vector))
    return mapped(vector);
  if (isIdentity(kind, vector))
    return number(identityOf(kind, getElementTypeOrSelf(vector)));
  if (isUniform(vector) &&
      (kind == ReductionKind::Maximum || kind == ReductionKind::Minimum))
    return repeated(vector);
  SmallVector<SizeAttr> sizes = sizesOf(vector);
  if (isUniform(vector))
    sizes.push_back(lanesOf(vector.getType()));
  return reduce(kind, as(vector, sizes), /*isByRow=*/true);
}

Value KernelWidening::combineSums(ReductionKind kind, Value lhs, Value rhs) {
  if (isIdentity(kind, lhs))
    return rhs;
  if (isIdentity(kind, rhs))
    return lhs;
  for (Value each : {lhs, rhs})
    if (block::isBlock(each.getType())) {
      lhs = adapt(lhs, false, block::sizesOf(each.getType()));
      rhs = adapt(rhs, false, block::sizesOf(each.getType()));
    }
  return combine(b, b.getLoc(), kind, lhs, rhs);
}

/// `made` where places of the block loop's turn are there, else `other`.
Value KernelWidening::whereInside(Value made, Value other) {
  Value inside = block::InsideOp::create(
      b, block::blockOf(range.getType().getSize(), b.getI1Type()), range);
  ArrayRef<SizeAttr> sizes = block::sizesOf(made.getType());
  return arith::SelectOp::create(b, adapt(inside, true, sizes), made, other);
}

/// `made`, which has a number or lanes for each row, where rows are there, else
/// what changes no sum.
Value KernelWidening::whereRows(ReductionKind kind, Value made) {
  Value inside = block::InsideOp::create(
      b, block::blockOf(rowRange.getType().getSize(), b.getI1Type()), rowRange);
  ArrayRef<SizeAttr> sizes = block::sizesOf(made.getType());
  Value other =
      adapt(number(identityOf(kind, getElementTypeOrSelf(made))), false, sizes);
  return arith::SelectOp::create(b, adapt(inside, false, sizes), made, other);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Whether `vector` is zero where memory is not there.
static bool isZeroOutside(Value vector, unsigned depth = 0) {
  Operation *op = vector.getDefiningOp();
  if (isa_and_nonnull<vector::LoadOp>(op))
    return true;
  constexpr unsigned deepest = 16;
  if (depth > deepest)
    return false;
  const auto isZero = [&](Value value) {
    return isZeroOutside(value, depth + 1);
  };
  const auto isFinite = [](Value value) {
    SplatElementsAttr constant;
    if (!matchPattern(value, m_Constant(&constant)))
      return false;
    auto number = dyn_cast<FloatAttr>(constant.getSplatValue<Attribute>());
    return !number || number.getValue().isFinite();
  };
  if (isa_and_nonnull<arith::MulFOp, arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), isZero) &&
           llvm::all_of(op->getOperands(), [&](Value each) {
             return isFinite(each) || isZero(each);
           });
  if (isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp,
                      arith::SIToFPOp, arith::UIToFPOp, arith::TruncFOp>(op))
    return isZero(op->getOperand(0));
  return false;
}

LogicalResult KernelWidening::emitStep(Operation *op) {
  Value result = op->getResult(0);
  Value before;
  for (Value each : op->getOperands())
    if (current->partialSums.contains(each))
      before = each;
  if (current->repetitions.contains(op)) {
    map(result, mapped(before));
    return success();
  }
  const SmallVector<SizeAttr> sizes = sizesOf(result);
  Value made;
  bool isZero = false;
  if (std::optional<Combination> step = findCombination(op)) {
    made = combine(b, b.getLoc(), step->kind, as(step->lhs, sizes),
                   as(step->rhs, sizes));
    isZero = step->kind == ReductionKind::Add &&
             isZeroOutside(step->lhs == before ? step->rhs : step->lhs);
  } else {
    made = rebuild(op, sizes, result);
    isZero = isa<math::FmaOp>(op) ? isZeroOutside(op->getOperand(0)) &&
                                        isZeroOutside(op->getOperand(1))
                                  : isZeroOutside(op->getOperand(1));
  }
  map(result, isZero ? made : whereInside(made, as(before, sizes)));
  return success();
}

LogicalResult KernelWidening::emitRowStep(Operation *op) {
  Combination step = *findCombination(op);
  Value before = step.lhs, added = step.rhs;
  if (!row->partialSums.contains(before))
    std::swap(before, added);
  Value number = mapped(added);
  if (row->perRow.contains(added))
    number = reduce(step.kind, whereRows(step.kind, mapped(added)),
                    /*isByRow=*/false);
  map(op->getResult(0), combineSums(step.kind, mapped(before), number));
  return success();
}

LogicalResult KernelWidening::emitMemoryStep(Operation *op) {
  Value before = row->memorySums.find(op)->second;
  const SmallVector<SizeAttr> lanes = sizesOf(before);
  SmallVector<SizeAttr> sizes = {rowsOf()};
  llvm::append_range(sizes, lanes);
  constexpr ReductionKind kind = ReductionKind::Add;
  Value added;
  if (auto fma = dyn_cast<math::FmaOp>(op)) {
    // Rows that are not there are zero where they are read, and what they are
    // multiplied with may be anything.
    SmallVector<Value> factors;
    bool isZero = false;
    for (Value each : {fma.getA(), fma.getB()})
      isZero |= row->perRow.contains(each) && isZeroOutside(each);
    bool isMasked = false;
    for (Value each : {fma.getA(), fma.getB()}) {
      Value factor = repeated(each);
      const bool isNumber = row->perRow.contains(each) && !hasLanes(each);
      if (isNumber && isZero && !isMasked) {
        factor = whereRows(kind, factor);
        isMasked = true;
      }
      factors.push_back(adapt(factor, hasLanes(each), sizes));
    }
    added = arith::MulFOp::create(b, factors[0], factors[1]);
    if (!isMasked)
      added = whereRows(kind, added);
  } else {
    Combination step = *findCombination(op);
    Value other = step.lhs == before ? step.rhs : step.lhs;
    added = whereRows(kind, as(other, sizes));
  }
  map(op->getResult(0), combineSums(kind, mapped(before),
                                    reduce(kind, added, /*isByRow=*/false)));
  return success();
}

LogicalResult KernelWidening::emitSum(Operation *op) {
  Value result = op->getResult(0);
  const ReductionKind kind = *loops.sumOf(result);
  Type element = getElementTypeOrSelf(result);
  if (std::optional<MaskedStep> masked = findMaskedStep(op)) {
    SmallVector<SizeAttr> sizes = sizesOf(masked->added);
    if (!hasLanes(masked->added))
      sizes.push_back(lanesOf(result.getType()));
    Value nothing = adapt(number(identityOf(kind, element)), false, sizes);
    Value added = arith::SelectOp::create(b, as(masked->mask, sizes),
                                          as(masked->added, sizes), nothing);
    map(result, combineSums(kind, sum(kind, masked->sum),
                            reduce(kind, added, /*isByRow=*/true)));
    return success();
  }
  if (std::optional<Combination> step = findCombination(op);
      step && step->kind == kind) {
    map(result, combineSums(kind, sum(kind, step->lhs), sum(kind, step->rhs)));
    return success();
  }
  // Sums are linear.
  const SmallVector<SizeAttr> sizes = sizesOf(result);
  if (isa<arith::SubFOp, arith::SubIOp, arith::NegFOp, arith::ExtFOp>(op)) {
    SmallVector<Value> operands;
    for (Value each : op->getOperands())
      operands.push_back(adapt(sum(kind, each), false, sizes));
    map(result, rebuild(op, operands, typeOf(result)));
    return success();
  }
  if (isa<arith::MulFOp, arith::MulIOp, arith::DivFOp>(op)) {
    map(result, rebuild(op, sizes, result));
    return success();
  }
  auto fma = cast<math::FmaOp>(op);
  Value product;
  if (!loops.sumOf(fma.getA()) && !loops.sumOf(fma.getB())) {
    SmallVector<SizeAttr> wide = sizes;
    wide.push_back(lanesOf(result.getType()));
    product =
        arith::MulFOp::create(b, as(fma.getA(), wide), as(fma.getB(), wide));
    product = reduce(kind, product, /*isByRow=*/true);
  } else {
    product =
        arith::MulFOp::create(b, as(fma.getA(), sizes), as(fma.getB(), sizes));
  }
  map(result, combineSums(kind, product, sum(kind, fma.getC())));
  return success();
}

LogicalResult KernelWidening::emitElementwise(Operation *op) {
  Value result = op->getResult(0);
  auto vector = dyn_cast<VectorType>(result.getType());
  const auto isPartial = [&](Value each) {
    return loops.sumOf(each) ||
           (current && current->partialSums.contains(each)) ||
           (row && row->partialSums.contains(each));
  };
  if (onlyChooses(op) && llvm::any_of(op->getOperands(), isPartial))
    return success();
  if (row && row->memorySums.contains(op))
    return emitMemoryStep(op);
  if (row && row->partialSums.contains(result))
    return emitRowStep(op);
  if (vector && vector.getRank() != 1)
    return refuse(op, "a vector of several dimensions");
  if (current && current->partialSums.contains(result))
    return emitStep(op);
  if (loops.sumOf(result))
    return emitSum(op);
  for (Value each : op->getOperands()) {
    if (!vector && hasLanes(each))
      return refuse(op, "a number that is computed of a vector");
    // The place of a turn, of which its accesses know.
    if (!isa<VectorType>(each.getType()) && !mapped(each))
      return success();
    if (!repeated(each))
      return refuse(op, "lanes that go no way of their own");
  }
  // Sums of copies are part of those of the first one.
  if (std::optional<Combination> combination = findCombination(op))
    for (auto [one, other] : {std::pair(combination->lhs, combination->rhs),
                              std::pair(combination->rhs, combination->lhs)})
      if (empty.contains(repeated(one))) {
        map(result, repeated(other));
        return success();
      }
  const SmallVector<SizeAttr> sizes = sizesOf(result);
  // Truths are equal where they do not differ.
  if (auto compare = dyn_cast<arith::CmpIOp>(op);
      compare && getElementTypeOrSelf(compare.getLhs()).isInteger(1) &&
      (compare.getPredicate() == arith::CmpIPredicate::eq ||
       compare.getPredicate() == arith::CmpIPredicate::ne)) {
    Value differ = arith::XOrIOp::create(b, as(compare.getLhs(), sizes),
                                         as(compare.getRhs(), sizes));
    if (compare.getPredicate() == arith::CmpIPredicate::eq)
      differ = arith::XOrIOp::create(
          b, differ, adapt(number(b.getBoolAttr(true)), false, sizes));
    map(result, differ);
    return success();
  }
  map(result, rebuild(op, sizes, result));
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelWidening::shifted(TypedValue<block::RangeType> neighbors,
                              const IndexForm &by) {
  if (by.terms.empty() && by.constant == 0)
    return neighbors;
  return block::ShiftOp::create(b, neighbors, form(by));
}

LogicalResult KernelWidening::emitAccess(Operation *op) {
  Value memory = mapped(accessedMemory(op)), value = writtenValue(op);
  if (!memory)
    return refuse(op, "memory that is seen in several ways");
  if (current && current->repetitions.contains(op))
    return success();
  Type type = value ? value.getType() : op->getResult(0).getType();
  auto vector = dyn_cast<VectorType>(type);
  if (vector && vector.getRank() != 1)
    return refuse(op, "a vector of several dimensions");
  Value mask, other;
  if (auto load = dyn_cast<vector::MaskedLoadOp>(op)) {
    mask = load.getMask();
    other = load.getPassThru();
  } else if (auto store = dyn_cast<vector::MaskedStoreOp>(op)) {
    mask = store.getMask();
  }
  Place place = matrices.placeOf(accessedMemory(op), accessedIndex(op));
  SmallVector<Value> indices;
  SmallVector<SizeAttr> sizes;
  // The rows of a turn; of memory without them, their numbers.
  scf::ForOp rowLoop = row ? row->loop : scf::ForOp();
  const auto rowsAt = [&](const IndexForm &at) -> Value {
    if (!row || at.factorOf(rowLoop.getInductionVar()) == 0)
      return form(at);
    sizes.push_back(rowsOf());
    return shifted(rowRange, at.without(rowLoop.getInductionVar()));
  };
  if (matrices.lengthOf(accessedMemory(op)))
    indices.push_back(rowsAt(place.row));
  if (!vector) {
    indices.push_back(rowsAt(place.column));
  } else if (current) {
    scf::ForOp loop = current->loop;
    indices.push_back(
        shifted(range, place.column.without(loop.getInductionVar())));
    sizes.push_back(lanesOf(vector));
  } else {
    Value start = form(place.column), end;
    if (mask) {
      Value count = counts.lookup(mask);
      if (!count)
        return refuse(op, "a mask that is not one of the first lanes");
      end = arith::AddIOp::create(b, start, count);
    }
    sizes.push_back(lanesOf(vector));
    indices.push_back(block::RangeOp::create(
        b, block::RangeType::get(b.getContext(), sizes.back()), start, end));
  }
  if (value) {
    Value written = as(value, sizes);
    if (!written)
      return refuse(op, "what it writes is the place of a turn");
    if (sizes.empty())
      memref::StoreOp::create(b, written, memory, indices);
    else
      block::StoreOp::create(b, written, memory, indices);
    return success();
  }
  Value loaded;
  if (sizes.empty())
    loaded = memref::LoadOp::create(b, memory, indices);
  else
    loaded = block::LoadOp::create(
        b, block::blockOf(sizes, getElementTypeOrSelf(type)), memory, indices);
  if (other && !isIdentity(ReductionKind::Add, other))
    loaded =
        arith::SelectOp::create(b, as(mask, sizes), loaded, as(other, sizes));
  map(op->getResult(0), loaded);
  return success();
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

LogicalResult KernelWidening::emitMask(vector::CreateMaskOp mask) {
  if (mask.getOperands().size() != 1)
    return refuse(mask, "a mask of several dimensions");
  SizeAttr size =
      SizeAttr::getSorted(b.getContext(), mask.getType().getNumElements(), {});
  Value end = index(mask.getOperands().front());
  Value first = arith::ConstantIndexOp::create(b, 0);
  Value lanes = block::RangeOp::create(
      b, block::RangeType::get(b.getContext(), size), first, end);
  counts[mask] = end;
  map(mask,
      block::InsideOp::create(b, block::blockOf(size, b.getI1Type()), lanes));
  return success();
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// `value` as what `like`, a loop's variable or a result, is.
Value KernelWidening::carried(Value value, Value like) {
  std::optional<ReductionKind> kind = loops.sumOf(like);
  const SmallVector<SizeAttr> sizes = sizesOf(like);
  return kind ? adapt(sum(*kind, value), false, sizes) : as(value, sizes);
}

/// The body of `loop` in that of `made`, which carries the same, and results.
LogicalResult KernelWidening::emitTurn(scf::ForOp loop, scf::ForOp made) {
  for (auto [old, argument] :
       llvm::zip_equal(loop.getRegionIterArgs(), made.getRegionIterArgs())) {
    argument.setLoc(old.getLoc());
    map(old, argument);
  }
  if (failed(emitBlock(*loop.getBody())))
    return failure();
  SmallVector<Value> yielded;
  for (auto [value, argument] :
       llvm::zip_equal(loop.getYieldedValues(), loop.getRegionIterArgs()))
    yielded.push_back(carried(value, argument));
  if (llvm::is_contained(yielded, Value()))
    return refuse(loop, "it carries what is not known");
  if (!yielded.empty())
    scf::YieldOp::create(b, yielded);
  for (auto [old, result] :
       llvm::zip_equal(loop.getResults(), made.getResults()))
    map(old, result);
  return success();
}

LogicalResult KernelWidening::emitFor(scf::ForOp loop) {
  std::optional<int64_t> step = constantOf(loop.getStep());
  if (!step || *step < 1 || *step > SizeAttr::largestFactor ||
      loop.getUnsignedCmp())
    return refuse(loop, "a loop that counts without a sign, or by what is not "
                        "known, or too large");
  SmallVector<Value> inits;
  for (auto [init, argument] :
       llvm::zip_equal(loop.getInits(), loop.getRegionIterArgs())) {
    inits.push_back(carried(init, argument));
    if (!inits.back())
      return refuse(loop, "it carries what is not known");
  }
  const TileLoop *tile = tiles.find(loop);
  Value begin = index(loop.getLowerBound()), end = index(loop.getUpperBound());
  Value by = tile ? block::SizeOp::create(b, sizeOf(*tile)).getResult()
                  : arith::ConstantIndexOp::create(b, *step).getResult();
  auto made = scf::ForOp::create(b, begin, end, by, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  Value variable = loop.getInductionVar();
  made.getInductionVar().setLoc(variable.getLoc());
  counters[variable] = made.getInductionVar();
  map(variable, variable.getType().isIndex()
                    ? Value(made.getInductionVar())
                    : Value(arith::IndexCastOp::create(
                          b, variable.getType(), made.getInductionVar())));
  return emitTurn(loop, made);
}

/// Those from the index of `made` to its end, called as the index of `loop` is.
TypedValue<block::RangeType>
KernelWidening::rangeOfTurn(scf::ForOp loop, scf::ForOp made, SizeAttr size) {
  auto neighbors =
      block::RangeOp::create(b, block::RangeType::get(b.getContext(), size),
                             made.getInductionVar(), made.getUpperBound());
  Value index = loop.getInductionVar();
  if (!nameOf(index).empty())
    neighbors->setLoc(index.getLoc());
  return neighbors;
}

LogicalResult KernelWidening::emitBlockLoop(const BlockLoop &found) {
  scf::ForOp loop = found.loop;
  const int64_t step = *constantOf(loop.getStep());
  // Where a turn's places are not all before the loop's end, it has them
  // anyway.
  IndexForm lower, upper, span = indexFormOf(loop.getUpperBound());
  lower.add(indexFormOf(loop.getLowerBound()), found.scale);
  upper.add(span, found.scale);
  span.add(indexFormOf(loop.getLowerBound()), -1);
  Value begin = form(lower), end;
  if (isMultipleOf(span, step)) {
    end = form(upper);
  } else {
    const int64_t places = step * found.scale;
    span.constant += step - 1;
    Value turns = arith::FloorDivSIOp::create(
        b, form(span), arith::ConstantIndexOp::create(b, step));
    end = arith::MulIOp::create(b, turns,
                                arith::ConstantIndexOp::create(b, places));
    if (!lower.terms.empty() || lower.constant != 0)
      end = arith::AddIOp::create(b, begin, end);
  }
  current = &found;
  SizeAttr size = lanesOf(Type());
  Value by = block::SizeOp::create(b, size);
  SmallVector<Value> inits;
  for (auto [number, kind] : llvm::enumerate(found.reductions)) {
    Value variable = loop.getRegionIterArg(number);
    if (found.leaders[number] == number)
      inits.push_back(
          adapt(this->number(identityOf(kind, getElementTypeOrSelf(variable))),
                false, sizesOf(variable)));
  }
  auto made = scf::ForOp::create(b, begin, end, by, inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    range = rangeOfTurn(loop, made, size);
    unsigned next = 0;
    for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs()))
      if (found.leaders[number] == number) {
        made.getRegionIterArg(next).setLoc(argument.getLoc());
        map(argument, made.getRegionIterArg(next++));
      }
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    SmallVector<Value> yielded;
    for (auto [number, value] : llvm::enumerate(loop.getYieldedValues()))
      if (found.leaders[number] == number)
        yielded.push_back(mapped(value));
    if (!yielded.empty())
      scf::YieldOp::create(b, yielded);
  }
  current = nullptr;
  range = {};
  unsigned next = 0;
  for (auto [number, kind] : llvm::enumerate(found.reductions)) {
    Value result = loop.getResult(number),
          all = sum(kind, loop.getInits()[number]);
    if (found.leaders[number] == number)
      all = combineSums(kind, all,
                        reduce(kind, made.getResult(next++), /*isByRow=*/true));
    else if (isIdentity(kind, all))
      empty.insert(all);
    map(result, all);
  }
  return success();
}

LogicalResult KernelWidening::emitRowLoop(const RowLoop &found) {
  scf::ForOp loop = found.loop;
  Value begin = index(loop.getLowerBound()), end = index(loop.getUpperBound());
  SizeAttr size = rowsOf();
  Value by = block::SizeOp::create(b, size);
  SmallVector<Value> inits;
  for (Value each : loop.getInits())
    inits.push_back(mapped(each));
  auto made = scf::ForOp::create(b, begin, end, by, inits);
  row = &found;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    rowRange = rangeOfTurn(loop, made, size);
    if (failed(emitTurn(loop, made)))
      return failure();
  }
  row = nullptr;
  rowRange = {};
  return success();
}

LogicalResult KernelWidening::emitIf(scf::IfOp branch) {
  Value condition = mapped(branch.getCondition());
  if (!condition)
    return refuse(branch, "it decides on the place of a turn");
  SmallVector<Type> types;
  for (Value each : branch.getResults())
    types.push_back(typeOf(each));
  auto made =
      scf::IfOp::create(b, types, condition, branch.elseBlock() != nullptr);
  for (auto [from, to] : {std::pair(branch.thenBlock(), made.thenBlock()),
                          std::pair(branch.elseBlock(), made.elseBlock())}) {
    if (!from)
      continue;
    OpBuilder::InsertionGuard guard(b);
    to->clear();
    b.setInsertionPointToStart(to);
    if (failed(emitBlock(*from)))
      return failure();
    SmallVector<Value> yielded;
    for (auto [value, result] : llvm::zip_equal(
             from->getTerminator()->getOperands(), branch.getResults()))
      yielded.push_back(carried(value, result));
    if (llvm::is_contained(yielded, Value()))
      return refuse(branch, "it gives what is not known");
    scf::YieldOp::create(b, yielded);
  }
  for (auto [old, result] :
       llvm::zip_equal(branch.getResults(), made.getResults()))
    map(old, result);
  return success();
}

LogicalResult KernelWidening::emitReturn(func::ReturnOp op) {
  for (auto [value, memory] : llvm::zip_equal(op.getOperands(), results)) {
    if (isa<VectorType>(value.getType()))
      return refuse(op, "a vector as a result");
    memref::StoreOp::create(b, mapped(value), memory,
                            ValueRange(arith::ConstantIndexOp::create(b, 0)));
  }
  func::ReturnOp::create(b);
  return success();
}

/// `location` without names, which belong to what is made last.
static Location withoutNames(Location location) {
  auto name = location->findInstanceOf<NameLoc>();
  return name ? name.getChildLoc() : location;
}

LogicalResult KernelWidening::emitNamed(Operation *op) {
  Operation *before = b.getInsertionPoint() == b.getInsertionBlock()->begin()
                          ? nullptr
                          : &*std::prev(b.getInsertionPoint());
  if (failed(emit(op)))
    return failure();
  if (op->getNumResults() != 1 || nameOf(op->getResult(0)).empty())
    return success();
  Value made = mapped(op->getResult(0));
  Operation *last = made ? made.getDefiningOp() : nullptr;
  if (last && last != before && last->getBlock() == b.getInsertionBlock() &&
      std::next(last->getIterator()) == b.getInsertionPoint())
    last->setLoc(op->getLoc());
  return success();
}

LogicalResult KernelWidening::emit(Operation *op) {
  b.setLoc(withoutNames(op->getLoc()));
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (const BlockLoop *found = loops.find(loop))
      return emitBlockLoop(*found);
    const RowLoop *rows = rowLoops.find(loop);
    return rows ? emitRowLoop(*rows) : emitFor(loop);
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto back = dyn_cast<func::ReturnOp>(op))
    return emitReturn(back);
  if (accessedMemory(op))
    return emitAccess(op);
  if (auto cast = dyn_cast<memref::CastOp>(op)) {
    map(cast.getResult(), mapped(cast.getSource()));
    return success();
  }
  if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
    MemRefType type = alloca.getType();
    SmallVector<SizeAttr> sizes;
    for (int64_t each : type.getShape())
      sizes.push_back(SizeAttr::getSorted(b.getContext(), each, {}));
    if (const TileLoop *tile = tiles.findMemory(alloca))
      sizes = {sizeOf(*tile)};
    if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
        llvm::is_contained(type.getShape(), 0))
      return refuse(op, "memory of such a shape");
    map(alloca.getResult(),
        block::ScratchOp::create(b,
                                 block::memoryOf(sizes, type.getElementType()),
                                 block::SizesAttr::get(b.getContext(), sizes)));
    return success();
  }
  if (auto reduction = dyn_cast<vector::ReductionOp>(op)) {
    std::optional<ReductionKind> kind = kindOf(reduction);
    if (reduction.getAcc() || !kind)
      return refuse(op, "a reduction of this kind");
    map(reduction.getResult(), sum(*kind, reduction.getVector()));
    return success();
  }
  if (isa<vector::BroadcastOp, arith::ConstantOp>(op)) {
    Value result = op->getResult(0);
    if (isUniform(result))
      return success();
    if (!isa<VectorType>(result.getType())) {
      map(result, b.clone(*op)->getResult(0));
      return success();
    }
    return refuse(op, "lanes that differ");
  }
  if (auto mask = dyn_cast<vector::CreateMaskOp>(op))
    return emitMask(mask);
  if (isElementwise(op))
    return emitElementwise(op);
  return refuse(op, "an operation " + op->getName().getStringRef());
}

LogicalResult KernelWidening::emitBlock(Block &block) {
  for (Operation &op : block)
    if (!isa<scf::YieldOp>(op) && failed(emitNamed(&op)))
      return failure();
  return success();
}

FailureOr<func::FuncOp> KernelWidening::run() {
  if (!llvm::hasSingleElement(function.getBody()))
    return refuse(function, "jumps between its operations");
  for (Type each : function.getArgumentTypes())
    if (!isa<MemRefType>(each) && !block::isNumber(each))
      return refuse(function, "a vector as an argument");
  makeKernel();
  if (failed(emitBlock(function.getBody().front()))) {
    kernel.erase();
    return failure();
  }
  // Choices around what it was written for.
  SmallVector<block::ParameterAttr> parameters;
  MLIRContext *context = b.getContext();
  const auto add = [&](StringRef name, SmallVector<int64_t> choices,
                       int64_t written) {
    if (!llvm::is_contained(choices, written))
      choices.insert(llvm::lower_bound(choices, written), written);
    parameters.push_back(block::ParameterAttr::get(
        context, b.getStringAttr(name), choices, written));
  };
  for (const auto &[lanes, name] : widths)
    add(name, {8, 16, 32, 64}, lanes);
  if (!rowsName.empty())
    add(rowsName, {1, 4, 8, 16, 32}, 1);
  for (const auto &[op, name] : tileNames)
    add(name, {16, 64, 256, 1024}, tiles.find(cast<scf::ForOp>(op))->size);
  kernel->setAttr(BlockDialect::parametersName,
                  block::ParametersAttr::get(context, parameters));
  return kernel;
}
