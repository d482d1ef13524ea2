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

SizeAttr KernelWidening::widthOf(int64_t lanes, int64_t times) {
  std::string &name = widths[lanes];
  if (name.empty())
    name = uniqueName("LANES");
  return SizeAttr::getSorted(b.getContext(), times, {name});
}

/// The kernel with the function's arguments, whose memory gets sizes, and one
/// of memory for each result.
void KernelWidening::makeKernel() {
  SmallVector<Type> types(function.getArgumentTypes());
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
      kernel.setArgAttr(number, sizesName,
                        block::SizesAttr::get(
                            context, SizeAttr::getSorted(context, 1, {})));
      results.push_back(argument);
      continue;
    }
    BlockArgument old = function.getArgument(number);
    StringRef name = nameOf(old);
    argument.setLoc(
        name.empty()
            ? Location(NameLoc::get(b.getStringAttr(uniqueName("argument"))))
            : old.getLoc());
    map(old, argument);
    if (isa<MemRefType>(argument.getType()))
      kernel.setArgAttr(
          number, sizesName,
          block::SizesAttr::get(
              context,
              SizeAttr::getSorted(
                  context, 1,
                  {uniqueName((nameOf(argument) + "_size").str())})));
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
  if (op && (isa<arith::DivSIOp, arith::RemSIOp, arith::AndIOp,
                 arith::ShRSIOp>(op) &&
             constantOf(op->getOperand(1))))
    return rebuild(op, {index(op->getOperand(0)), index(op->getOperand(1))},
                   b.getIndexType());
  if (auto product = dyn_cast_if_present<arith::MulIOp>(op);
      product && product.hasNoSignedWrap())
    return rebuild(op, {index(op->getOperand(0)), index(op->getOperand(1))},
                   b.getIndexType());
  if (std::optional<Combination> choice = findCombination(op);
      choice && (choice->kind == ReductionKind::Maximum ||
                 choice->kind == ReductionKind::Minimum)) {
    Value lhs = index(choice->lhs), rhs = index(choice->rhs);
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
      part = arith::SubIOp::create(
          b, arith::ConstantIndexOp::create(b, 0), term);
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

Type KernelWidening::blockType(Type vector) {
  auto type = cast<VectorType>(vector);
  SizeAttr size =
      current ? widthOf(current->lanes, current->copies)
              : SizeAttr::getSorted(b.getContext(), type.getNumElements(), {});
  return block::blockOf(size, type.getElementType());
}

Value KernelWidening::splat(Value number, Type block) {
  return block::SplatOp::create(b, block, number);
}

Value KernelWidening::repeated(Value vector) {
  Operation *op = vector.getDefiningOp();
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return mapped(broadcast.getSource());
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return integer(cast<SplatElementsAttr>(constant.getValue())
                       .getSplatValue<TypedAttr>());
  return mapped(vector);
}

Value KernelWidening::block(Value vector) {
  return isUniform(vector) ? splat(repeated(vector), blockType(vector.getType()))
                           : mapped(vector);
}

Value KernelWidening::operand(Value value) {
  return isa<VectorType>(value.getType()) ? block(value) : mapped(value);
}

Value KernelWidening::sum(ReductionKind kind, Value vector) {
  if (loops.sumOf(vector))
    return mapped(vector);
  Type number = getElementTypeOrSelf(vector);
  if (isIdentity(kind, vector))
    return integer(identityOf(kind, number));
  if (isUniform(vector) &&
      (kind == ReductionKind::Maximum || kind == ReductionKind::Minimum))
    return repeated(vector);
  return block::ReduceOp::create(b, number, kind, block(vector), IntegerAttr());
}

Value KernelWidening::combineSums(ReductionKind kind, Value lhs, Value rhs) {
  if (isIdentity(kind, lhs))
    return rhs;
  return isIdentity(kind, rhs) ? lhs : combine(b, b.getLoc(), kind, lhs, rhs);
}

Value KernelWidening::inside() {
  return block::InsideOp::create(
      b, block::blockOf(widthOf(current->lanes, current->copies), b.getI1Type()),
      range);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Whether `vector` is zero where memory is not there.
static bool isZeroOutside(Value vector) {
  Operation *op = vector.getDefiningOp();
  if (isa_and_nonnull<vector::LoadOp>(op))
    return true;
  const auto isFinite = [](Value value) {
    return isUniform(value) && matchPattern(value, m_Constant());
  };
  if (isa_and_nonnull<arith::MulFOp, arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), isZeroOutside) &&
           llvm::all_of(op->getOperands(), [&](Value each) {
             return isZeroOutside(each) || isFinite(each);
           });
  if (isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp,
                      arith::SIToFPOp, arith::UIToFPOp, arith::TruncFOp>(op))
    return isZeroOutside(op->getOperand(0));
  return false;
}

/// A step of a sum in a block loop.
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
  if (std::optional<Combination> step = findCombination(op)) {
    Value added = step->lhs == before ? step->rhs : step->lhs;
    Value made = combine(b, b.getLoc(), step->kind, operand(step->lhs),
                         operand(step->rhs));
    if (step->kind != ReductionKind::Add || !isZeroOutside(added))
      made = arith::SelectOp::create(b, inside(), made, mapped(before));
    map(result, made);
    return success();
  }
  SmallVector<Value> operands =
      llvm::map_to_vector(op->getOperands(),
                          [&](Value each) { return operand(each); });
  Value made = rebuild(op, operands, blockType(result.getType()));
  const bool isZero =
      isa<math::FmaOp>(op)
          ? isZeroOutside(op->getOperand(0)) && isZeroOutside(op->getOperand(1))
          : isZeroOutside(op->getOperand(1));
  if (!isZero)
    made = arith::SelectOp::create(b, inside(), made, mapped(before));
  map(result, made);
  return success();
}

/// A vector that is known by the sum of its lanes.
LogicalResult KernelWidening::emitSum(Operation *op) {
  Value result = op->getResult(0);
  const ReductionKind kind = *loops.sumOf(result);
  Type number = getElementTypeOrSelf(result);
  if (std::optional<MaskedStep> masked = findMaskedStep(op)) {
    Value zero = splat(integer(identityOf(kind, number)),
                       blockType(result.getType()));
    Value added = arith::SelectOp::create(b, block(masked->mask),
                                          block(masked->added), zero);
    map(result, combineSums(kind, sum(kind, masked->sum),
                            block::ReduceOp::create(b, number, kind, added,
                                                    IntegerAttr())));
    return success();
  }
  if (std::optional<Combination> step = findCombination(op);
      step && step->kind == kind) {
    map(result,
        combineSums(kind, sum(kind, step->lhs), sum(kind, step->rhs)));
    return success();
  }
  // Sums are linear.
  if (isa<arith::SubFOp, arith::SubIOp, arith::NegFOp>(op)) {
    SmallVector<Value> operands = llvm::map_to_vector(
        op->getOperands(), [&](Value each) { return sum(kind, each); });
    map(result, rebuild(op, operands, number));
    return success();
  }
  if (isa<arith::MulFOp, arith::MulIOp, arith::DivFOp>(op)) {
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value each) {
          return loops.sumOf(each) ? mapped(each) : repeated(each);
        });
    map(result, rebuild(op, operands, number));
    return success();
  }
  auto fma = cast<math::FmaOp>(op);
  Value product;
  if (loops.sumOf(fma.getC())) {
    product = arith::MulFOp::create(b, block(fma.getA()), block(fma.getB()));
    product =
        block::ReduceOp::create(b, number, kind, product, IntegerAttr());
  } else {
    const auto factor = [&](Value each) {
      return loops.sumOf(each) ? mapped(each) : repeated(each);
    };
    product = arith::MulFOp::create(b, factor(fma.getA()), factor(fma.getB()));
  }
  map(result, combineSums(kind, product, sum(kind, fma.getC())));
  return success();
}

LogicalResult KernelWidening::emitElementwise(Operation *op) {
  Value result = op->getResult(0);
  auto vector = dyn_cast<VectorType>(result.getType());
  if (!vector) {
    for (Value each : op->getOperands()) {
      if (isa<VectorType>(each.getType()))
        return refuse(op, "a number that is computed of a vector");
      // The place of a turn, of which its accesses know.
      if (!mapped(each))
        return success();
    }
    SmallVector<Value> operands = llvm::map_to_vector(
        op->getOperands(), [&](Value each) { return mapped(each); });
    if (std::optional<Combination> combination = findCombination(op))
      for (auto [one, other] : {std::pair(combination->lhs, combination->rhs),
                                std::pair(combination->rhs, combination->lhs)})
        if (empty.contains(mapped(one))) {
          map(result, mapped(other));
          return success();
        }
    map(result, rebuild(op, operands, result.getType()));
    return success();
  }
  if (vector.getRank() != 1)
    return refuse(op, "a vector of several dimensions");
  if (isUniform(result)) {
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value each) {
          return isa<VectorType>(each.getType()) ? repeated(each)
                                                 : mapped(each);
        });
    map(result, rebuild(op, operands, vector.getElementType()));
    return success();
  }
  if (current && current->partialSums.contains(result))
    return emitStep(op);
  if (loops.sumOf(result))
    return emitSum(op);
  if (onlyChooses(op) && llvm::any_of(op->getOperands(), [&](Value each) {
        return loops.sumOf(each) ||
               (current && current->partialSums.contains(each));
      }))
    return success();
  SmallVector<Value> operands;
  for (Value each : op->getOperands()) {
    operands.push_back(operand(each));
    if (!operands.back())
      return refuse(op, "lanes that go no way of their own");
  }
  map(result, rebuild(op, operands, blockType(vector)));
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LogicalResult KernelWidening::emitAccess(Operation *op) {
  Value memory, value, mask, other;
  if (auto load = dyn_cast<vector::LoadOp>(op)) {
    memory = load.getBase();
  } else if (auto store = dyn_cast<vector::StoreOp>(op)) {
    memory = store.getBase();
    value = store.getValueToStore();
  } else if (auto load = dyn_cast<vector::MaskedLoadOp>(op)) {
    memory = load.getBase();
    mask = load.getMask();
    other = load.getPassThru();
  } else {
    auto masked = cast<vector::MaskedStoreOp>(op);
    memory = masked.getBase();
    value = masked.getValueToStore();
    mask = masked.getMask();
  }
  if (current && value && current->repetitions.contains(op))
    return success();
  Value made = mapped(memory);
  if (!made)
    return refuse(op, "memory that is seen in several ways");
  Value place = placeOf(op);
  auto vector = cast<VectorType>(value ? value.getType()
                                       : op->getResult(0).getType());
  if (vector.getRank() != 1)
    return refuse(op, "a vector of several dimensions");
  Value where;
  if (current) {
    scf::ForOp loop = current->loop;
    IndexForm base = indexFormOf(place).without(loop.getInductionVar());
    where = range;
    if (!base.terms.empty() || base.constant != 0)
      where = block::ShiftOp::create(b, range, form(base));
  } else {
    Value start = index(place), end;
    if (mask) {
      Value count = counts.lookup(mask);
      if (!count)
        return refuse(op, "a mask that is not one of the first lanes");
      end = arith::AddIOp::create(b, start, count);
    }
    where = block::RangeOp::create(
        b,
        block::RangeType::get(b.getContext(),
                              SizeAttr::getSorted(b.getContext(),
                                                  vector.getNumElements(), {})),
        start, end);
  }
  if (value) {
    block::StoreOp::create(b, block(value), made, ValueRange(where));
    return success();
  }
  Value loaded =
      block::LoadOp::create(b, blockType(vector), made, ValueRange(where));
  if (other && !isIdentity(ReductionKind::Add, other))
    loaded = arith::SelectOp::create(b, block(mask), loaded, block(other));
  map(op->getResult(0), loaded);
  return success();
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

LogicalResult KernelWidening::emitMask(vector::CreateMaskOp mask) {
  if (mask.getOperands().size() != 1)
    return refuse(mask, "a mask of several dimensions");
  SizeAttr size = SizeAttr::getSorted(b.getContext(),
                                      mask.getType().getNumElements(), {});
  Value end = index(mask.getOperands().front());
  Value first = arith::ConstantIndexOp::create(b, 0);
  Value lanes = block::RangeOp::create(
      b, block::RangeType::get(b.getContext(), size), first, end);
  counts[mask] = end;
  map(mask, block::InsideOp::create(b, block::blockOf(size, b.getI1Type()),
                                    lanes));
  return success();
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// `value` as what `like`, a loop's variable or a result, is.
Value KernelWidening::carried(Value value, Value like) {
  if (std::optional<ReductionKind> kind = loops.sumOf(like))
    return sum(*kind, value);
  return operand(value);
}

LogicalResult KernelWidening::emitFor(scf::ForOp loop) {
  std::optional<int64_t> step = constantOf(loop.getStep());
  if (!step || *step < 1 || loop.getUnsignedCmp())
    return refuse(loop, "a loop that counts without a sign, or by what is not "
                        "known");
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

LogicalResult KernelWidening::emitBlockLoop(const BlockLoop &found) {
  scf::ForOp loop = found.loop;
  const int64_t step = *constantOf(loop.getStep());
  // Where a turn's places are not all before the loop's end, it has them anyway.
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
  SizeAttr size = widthOf(found.lanes, found.copies);
  Value by = block::SizeOp::create(b, size);
  current = &found;
  SmallVector<Value> inits;
  for (auto [number, kind] : llvm::enumerate(found.reductions)) {
    Type type = loop.getRegionIterArg(number).getType();
    if (found.leaders[number] == number)
      inits.push_back(splat(integer(identityOf(kind, getElementTypeOrSelf(type))),
                            blockType(type)));
  }
  auto made = scf::ForOp::create(b, begin, end, by, inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    range = block::RangeOp::create(
        b, block::RangeType::get(b.getContext(), size), made.getInductionVar(),
        end);
    if (!nameOf(loop.getInductionVar()).empty())
      range.getDefiningOp()->setLoc(loop.getInductionVar().getLoc());
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
    Value result = loop.getResult(number), all = sum(kind, loop.getInits()[number]);
    if (found.leaders[number] == number)
      all = combineSums(kind, all,
                        block::ReduceOp::create(
                            b, getElementTypeOrSelf(result), kind,
                            made.getResult(next++), IntegerAttr()));
    else if (isIdentity(kind, all))
      empty.insert(all);
    map(result, all);
  }
  return success();
}

LogicalResult KernelWidening::emitIf(scf::IfOp branch) {
  Value condition = mapped(branch.getCondition());
  if (!condition)
    return refuse(branch, "it decides on the place of a turn");
  SmallVector<Type> types;
  for (Value each : branch.getResults())
    types.push_back(loops.sumOf(each) ? getElementTypeOrSelf(each)
                    : isa<VectorType>(each.getType())
                        ? blockType(each.getType())
                        : each.getType());
  auto made = scf::IfOp::create(b, types, condition,
                                branch.elseBlock() != nullptr);
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
    memref::StoreOp::create(
        b, mapped(value), memory,
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
    const BlockLoop *found = loops.find(loop);
    return found ? emitBlockLoop(*found) : emitFor(loop);
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto back = dyn_cast<func::ReturnOp>(op))
    return emitReturn(back);
  if (isa<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp,
          vector::MaskedStoreOp>(op))
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
        block::ScratchOp::create(b, block::memoryOf(sizes, type.getElementType()),
                                 block::SizesAttr::get(b.getContext(), sizes)));
    return success();
  }
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    Value memory = mapped(load.getMemRef());
    if (!memory)
      return refuse(op, "memory that is seen in several ways");
    map(load.getResult(),
        memref::LoadOp::create(b, memory,
                               ValueRange(index(load.getIndices().front()))));
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    Value memory = mapped(store.getMemRef());
    if (!memory)
      return refuse(op, "memory that is seen in several ways");
    memref::StoreOp::create(b, mapped(store.getValue()), memory,
                            ValueRange(index(store.getIndices().front())));
    return success();
  }
  if (auto reduction = dyn_cast<vector::ReductionOp>(op)) {
    if (reduction.getAcc())
      return refuse(op, "a sum that goes on");
    map(reduction.getResult(), sum(kindOf(reduction), reduction.getVector()));
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
  return refuse(op, "an operation of this kind");
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
  for (const auto &[op, name] : tileNames)
    add(name, {8, 16, 32, 64, 128}, tiles.find(cast<scf::ForOp>(op))->size);
  kernel->setAttr(BlockDialect::parametersName,
                  block::ParametersAttr::get(context, parameters));
  return kernel;
}
