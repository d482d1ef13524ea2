//===- Control.cpp - Loops, branches and calls ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Raiser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::raising;

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

FailureOr<Value> Raiser::buildIf(
    Location location, Value condition, Type result, ArrayRef<Slot> written,
    llvm::function_ref<FailureOr<std::optional<Datum>>(bool)> fill) {
  const Environment before = slots;
  SmallVector<Type> types;
  if (result)
    types.push_back(result);
  for (const Slot &slot : written) {
    const auto *value = std::get_if<Value>(&before.find(slot)->second);
    types.push_back(value ? value->getType() : Type(builder.getIndexType()));
  }
  auto branch = scf::IfOp::create(builder, location, types, condition,
                                  /*withElseRegion=*/true);
  for (const bool first : {true, false}) {
    OpBuilder::InsertionGuard guard(builder);
    Region &region = first ? branch.getThenRegion() : branch.getElseRegion();
    if (region.empty())
      region.emplaceBlock();
    if (!region.front().empty())
      region.front().back().erase();
    builder.setInsertionPointToEnd(&region.front());
    slots = before;
    FailureOr<std::optional<Datum>> given = fill(first);
    if (failed(given))
      return failure();
    SmallVector<Value> yielded;
    if (result) {
      const auto *value = *given ? std::get_if<Value>(&**given) : nullptr;
      if (!value)
        return emitWarning(location)
               << "is not raised: a choice between places, or no result";
      yielded.push_back(*value);
    }
    FailureOr<SmallVector<Value>> values = valuesOf(written, before, location);
    if (failed(values))
      return failure();
    yielded.append(*values);
    scf::YieldOp::create(builder, location, yielded);
  }
  slots = before;
  assign(written, branch.getResults().drop_front(result ? 1 : 0), before);
  return result ? branch.getResult(0) : Value();
}

LogicalResult Raiser::raiseIf(kernel::IfOp branch) {
  const SmallVector<Slot> written =
      slotsWritten({&branch.getThen(), &branch.getOtherwise()});
  return LogicalResult(
      buildIf(branch.getLoc(), number(branch.getCondition()), Type(), written,
              [&](bool first) -> FailureOr<std::optional<Datum>> {
                Block &block =
                    (first ? branch.getThen() : branch.getOtherwise()).front();
                if (failed(raise(block.begin(), block.end(), Within::Branch)))
                  return failure();
                return std::optional<Datum>();
              }));
}

LogicalResult Raiser::raiseConditional(kernel::ConditionalOp choice) {
  const bool isUsed = !choice.getResult().use_empty();
  if (isUsed && isa<kernel::PointerType>(choice.getType()))
    return refuse(choice, "a choice between places");
  const SmallVector<Slot> written =
      slotsWritten({&choice.getThen(), &choice.getOtherwise()});
  FailureOr<Value> result = buildIf(
      choice.getLoc(), number(choice.getCondition()), lowered(choice.getType()),
      written, [&](bool first) -> FailureOr<std::optional<Datum>> {
        Block &block =
            (first ? choice.getThen() : choice.getOtherwise()).front();
        auto yield = cast<kernel::YieldOp>(block.back());
        for (Operation &op : block.without_terminator())
          if (failed(raiseOperation(&op)))
            return failure();
        return std::optional<Datum>(get(yield.getValue()));
      });
  if (failed(result))
    return failure();
  if (isUsed)
    set(choice.getResult(), *result);
  return success();
}

/// What ends `block` before its end, if anything does.
static Operation *earlyEnd(Block &block) {
  Operation *last = block.empty() ? nullptr : &block.back();
  return last && isa<kernel::ReturnOp, kernel::ContinueOp, kernel::BreakOp,
                     kernel::TrapOp>(last)
             ? last
             : nullptr;
}

FailureOr<Raiser::Ending> Raiser::raiseEarlyEnd(kernel::IfOp branch,
                                                Block::iterator rest,
                                                Block::iterator end,
                                                Within within) {
  Block &then = branch.getThen().front(),
        &otherwise = branch.getOtherwise().front();
  // What is never reached is left out.
  for (auto [ends, other] :
       {std::pair(&then, &otherwise), std::pair(&otherwise, &then)})
    if (isa_and_nonnull<kernel::TrapOp>(earlyEnd(*ends))) {
      if (failed(raise(other->begin(), other->end(), Within::Branch)))
        return failure();
      return raise(rest, end, within);
    }
  Operation *last = earlyEnd(then) ? earlyEnd(then) : earlyEnd(otherwise);
  if (isa<kernel::BreakOp>(last))
    return refuse(last, "a loop that is left early");
  if (isa<kernel::ReturnOp>(last) && within != Within::Function)
    return refuse(last, "a function that ends within a loop or a branch");
  if (isa<kernel::ContinueOp>(last) && within != Within::Loop)
    return refuse(last, "a loop that goes on within a branch");
  std::set<Slot> found;
  Mapping none;
  collectWritten(branch, none, found);
  for (auto at = rest; at != end; ++at)
    collectWritten(&*at, none, found);
  const SmallVector<Slot> written = carried(found);
  Type result = within == Within::Function ? resultType : Type();
  FailureOr<Value> value = buildIf(
      branch.getLoc(), number(branch.getCondition()), result, written,
      [&](bool first) -> FailureOr<std::optional<Datum>> {
        Block &block = first ? then : otherwise;
        if (earlyEnd(block)) {
          FailureOr<Ending> ending = raise(block.begin(), block.end(), within);
          return failed(ending) ? FailureOr<std::optional<Datum>>(failure())
                                : ending->result;
        }
        if (failed(raise(block.begin(), block.end(), Within::Branch)))
          return failure();
        FailureOr<Ending> ending = raise(rest, end, within);
        return failed(ending) ? FailureOr<std::optional<Datum>>(failure())
                              : ending->result;
      });
  if (failed(value))
    return failure();
  Ending ending;
  if (*value)
    ending.result = *value;
  return ending;
}

LogicalResult
Raiser::buildWhile(Location location, ArrayRef<Region *> written,
                   llvm::function_ref<LogicalResult()> fillBefore,
                   Block &condition,
                   llvm::function_ref<LogicalResult()> fillAfter) {
  const Environment before = slots;
  const SmallVector<Slot> moved = slotsWritten(written);
  FailureOr<SmallVector<Value>> first = valuesOf(moved, before, location);
  if (failed(first))
    return failure();
  const SmallVector<Type> types =
      llvm::to_vector(ValueRange(*first).getTypes());
  auto repeat = scf::WhileOp::create(builder, location, types, *first);
  OpBuilder::InsertionGuard guard(builder);
  const SmallVector<Location> places = llvm::map_to_vector(
      moved, [&](const Slot &slot) { return named(slot, location); });

  Block *head = builder.createBlock(&repeat.getBefore(), {}, types, places);
  assign(moved, head->getArguments(), before);
  if (failed(fillBefore()))
    return failure();
  for (Operation &op : condition.without_terminator())
    if (failed(raiseOperation(&op)))
      return failure();
  Value holds = number(cast<kernel::YieldOp>(condition.back()).getValue());
  FailureOr<SmallVector<Value>> passed = valuesOf(moved, before, location);
  if (failed(passed))
    return failure();
  scf::ConditionOp::create(builder, location, holds, *passed);

  Block *tail = builder.createBlock(&repeat.getAfter(), {}, types, places);
  slots = before;
  assign(moved, tail->getArguments(), before);
  if (failed(fillAfter()))
    return failure();
  FailureOr<SmallVector<Value>> next = valuesOf(moved, before, location);
  if (failed(next))
    return failure();
  scf::YieldOp::create(builder, location, *next);
  slots = before;
  assign(moved, repeat.getResults(), before);
  return success();
}

LogicalResult Raiser::raiseFor(kernel::ForOp loop) {
  return buildWhile(
      loop.getLoc(), {&loop.getCondition(), &loop.getStep(), &loop.getBody()},
      [] { return success(); }, loop.getCondition().front(),
      [&]() -> LogicalResult {
        Block &body = loop.getBody().front();
        if (failed(raise(body.begin(), body.end(), Within::Loop)))
          return failure();
        Block &step = loop.getStep().front();
        return raise(step.begin(), step.end(), Within::Branch);
      });
}

LogicalResult Raiser::raiseDo(kernel::DoOp loop) {
  return buildWhile(
      loop.getLoc(), {&loop.getBody(), &loop.getCondition()},
      [&]() -> LogicalResult {
        Block &body = loop.getBody().front();
        return raise(body.begin(), body.end(), Within::Loop);
      },
      loop.getCondition().front(), [] { return success(); });
}

LogicalResult Raiser::raiseCall(kernel::CallOp call) {
  kernel::FuncOp callee = functions.lookup(call.getCallee());
  Block &body = callee.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), call.getOperands()))
    set(argument, get(operand));
  Type outer = resultType;
  const bool hasNumber =
      call.getResult() && !isa<kernel::PointerType>(call.getResult().getType());
  resultType = hasNumber ? lowered(call.getResult().getType()) : Type();
  FailureOr<Ending> ending = raise(body.begin(), body.end(), Within::Function);
  resultType = outer;
  // Its variables are gone.
  std::erase_if(slots, [&](const auto &entry) {
    return entry.first.variable->template getParentOfType<kernel::FuncOp>() ==
           callee;
  });

  if (failed(ending))
    return failure();
  if (!call.getResult())
    return success();
  if (!ending->result)
    return refuse(call, "a function that chooses between places, or ends "
                        "without its result");
  set(call.getResult(), *ending->result);
  return success();
}

LogicalResult Raiser::raiseOperation(Operation *op) {
  Location location = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](kernel::VariableOp each) { return raiseVariable(each); })
      .Case([&](kernel::AddressOp each) { return raiseAddress(each); })
      .Case([&](kernel::LoadOp each) { return raiseLoad(each); })
      .Case([&](kernel::StoreOp each) { return raiseStore(each); })
      .Case([&](kernel::CopyOp each) { return raiseCopy(each); })
      .Case([&](kernel::IfOp each) { return raiseIf(each); })
      .Case([&](kernel::ForOp each) { return raiseFor(each); })
      .Case([&](kernel::DoOp each) { return raiseDo(each); })
      .Case([&](kernel::ConditionalOp each) { return raiseConditional(each); })
      .Case([&](kernel::CallOp each) { return raiseCall(each); })
      .Case([&](kernel::IntrinsicOp each) { return raiseIntrinsic(each); })
      .Case([&](kernel::CastOp each) { return raiseCast(each); })
      .Case([&](kernel::ConstantOp constant) {
        Type type = lowered(constant.getType());
        Attribute value = constant.getValue();
        if (auto integer = dyn_cast<IntegerAttr>(value))
          value = IntegerAttr::get(type, integer.getValue());
        else if (auto dense = dyn_cast<DenseElementsAttr>(value))
          value = dense.bitcast(getElementTypeOrSelf(type));
        set(constant.getResult(),
            Value(arith::ConstantOp::create(builder, location,
                                            cast<TypedAttr>(value))));
        return success();
      })
      .Case([&](kernel::BitcastOp cast) {
        set(cast.getResult(),
            bitcast(builder, location, number(cast.getOperand()),
                    lowered(cast.getType())));
        return success();
      })
      .Case([&](kernel::BinaryOp binary) -> LogicalResult {
        FailureOr<Value> value = raiseBinary(binary);
        if (failed(value))
          return failure();
        set(binary.getResult(), *value);
        return success();
      })
      .Case([&](kernel::MathOp math) {
        set(math.getResult(), raiseMath(math));
        return success();
      })
      .Case([&](kernel::UnaryOp unary) {
        Value x = number(unary.getOperand());
        if (isa<FloatType>(getElementTypeOrSelf(x.getType()))) {
          set(unary.getResult(),
              Value(arith::NegFOp::create(builder, location, x)));
          return success();
        }
        const bool negates = unary.getKind() == kernel::UnaryOperator::Negate;
        Type type = x.getType();
        APInt bits(getElementTypeOrSelf(type).getIntOrFloatBitWidth(), 0);
        if (!negates)
          bits.setAllBits();
        TypedAttr attribute = isa<VectorType>(type)
                                  ? TypedAttr(SplatElementsAttr::get(
                                        cast<VectorType>(type), bits))
                                  : TypedAttr(IntegerAttr::get(type, bits));
        Value constant =
            arith::ConstantOp::create(builder, location, attribute);
        set(unary.getResult(),
            negates
                ? Value(arith::SubIOp::create(builder, location, constant, x))
                : Value(arith::XOrIOp::create(builder, location, x, constant)));
        return success();
      })
      .Case([&](kernel::CompareOp compare) -> LogicalResult {
        using kernel::Comparison;
        const Datum lhs = get(compare.getLhs()), rhs = get(compare.getRhs());
        Value x, y;
        bool noSign = true;
        if (const auto *first = std::get_if<MemoryPlace>(&lhs)) {
          const auto *second = std::get_if<MemoryPlace>(&rhs);
          if (!second || first->base != second->base)
            return refuse(op, "pointers that are compared");
          x = first->offset;
          y = second->offset;
          noSign = false;
        } else if (std::holds_alternative<Value>(lhs)) {
          x = std::get<Value>(lhs);
          y = std::get<Value>(rhs);
          noSign = isUnsigned(compare.getLhs().getType());
        } else {
          return refuse(op, "pointers that are compared");
        }
        const auto which = static_cast<size_t>(compare.getComparison());
        if (isa<FloatType>(x.getType())) {
          using P = arith::CmpFPredicate;
          static constexpr P predicates[] = {P::OEQ, P::UNE, P::OLT,
                                             P::OLE, P::OGT, P::OGE};
          set(compare.getResult(),
              Value(arith::CmpFOp::create(builder, location, predicates[which],
                                          x, y)));
          return success();
        }
        using P = arith::CmpIPredicate;
        static constexpr P with[] = {P::eq,  P::ne,  P::slt,
                                     P::sle, P::sgt, P::sge};
        static constexpr P without[] = {P::eq,  P::ne,  P::ult,
                                        P::ule, P::ugt, P::uge};
        set(compare.getResult(),
            Value(arith::CmpIOp::create(builder, location,
                                        noSign ? without[which] : with[which],
                                        x, y)));
        return success();
      })
      .Case([&](kernel::OffsetOp offset) -> LogicalResult {
        FailureOr<MemoryPlace> from = place(op, offset.getPointer());
        if (failed(from))
          return failure();
        const int64_t size =
            kernel::layoutOf(objectOf(offset.getResult()))->size;
        if (std::optional<int64_t> known = knownIndex(offset)) {
          set(offset.getResult(), advance(location, *from, {}, *known * size));
          return success();
        }
        Value index = asIndex(location, number(offset.getIndex()),
                              offset.getIndex().getType());
        set(offset.getResult(), advance(location, *from, index, size));
        return success();
      })
      .Case([&](kernel::ElementsOp elements) -> LogicalResult {
        FailureOr<MemoryPlace> from = place(op, elements.getArray());
        if (failed(from))
          return failure();
        set(elements.getResult(), *from);
        return success();
      })
      .Case([&](kernel::MemberOp member) -> LogicalResult {
        const Datum datum = get(member.getStructure());
        if (const auto *slot = std::get_if<Slot>(&datum)) {
          set(member.getResult(),
              Slot{slot->variable, slot->path + "." + member.getName().str()});
          return success();
        }
        FailureOr<MemoryPlace> from = place(op, member.getStructure());
        if (failed(from))
          return failure();
        const int64_t bytes = kernel::offsetOf(
            cast<kernel::StructureType>(objectOf(member.getStructure())),
            member.getName());
        set(member.getResult(), advance(location, *from, {}, bytes));
        return success();
      })
      .Default([&](Operation *other) {
        return refuse(other, "an operation of this kind");
      });
}

FailureOr<Raiser::Ending> Raiser::raise(Block::iterator at, Block::iterator end,
                                        Within within) {
  for (; at != end; ++at) {
    Operation *op = &*at;
    if (auto back = dyn_cast<kernel::ReturnOp>(op)) {
      if (within != Within::Function)
        return refuse(op, "a function that ends within a loop or a branch");
      Ending ending;
      if (back.getValue())
        ending.result = get(back.getValue());
      return ending;
    }
    if (isa<kernel::ContinueOp>(op) && within == Within::Loop)
      return Ending();
    if (isa<kernel::ContinueOp, kernel::BreakOp>(op))
      return refuse(op, "a loop that is left early");
    auto branch = dyn_cast<kernel::IfOp>(op);
    if (branch && (earlyEnd(branch.getThen().front()) ||
                   earlyEnd(branch.getOtherwise().front())))
      return raiseEarlyEnd(branch, std::next(at), end, within);
    if (failed(raiseOperation(op)))
      return failure();
  }
  return Ending();
}

FailureOr<func::FuncOp> Raiser::run() {
  SmallVector<Type> arguments, results;
  for (BlockArgument each : function.getBody().getArguments()) {
    auto pointer = dyn_cast<kernel::PointerType>(each.getType());
    arguments.push_back(pointer ? Type(MemRefType::get(
                                      {ShapedType::kDynamic},
                                      memoryElement(each, pointer.getObject())))
                                : lowered(each.getType()));
  }
  for (Type each : function.getResultTypes()) {
    if (isa<kernel::PointerType>(each))
      return refuse(function, "a function that returns a pointer");
    results.push_back(lowered(each));
  }
  Location location = function.getLoc();
  builder.setInsertionPoint(function);
  made = func::FuncOp::create(builder, location, function.getSymName(),
                              builder.getFunctionType(arguments, results));
  Block *entry = made.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  for (auto [argument, value] : llvm::zip_equal(
           function.getBody().getArguments(), entry->getArguments())) {
    value.setLoc(argument.getLoc());
    if (isa<IntegerType>(argument.getType()) && isUnsigned(argument.getType()))
      made.setArgAttr(value.getArgNumber(), unsignedName,
                      builder.getUnitAttr());
    if (isa<kernel::PointerType>(argument.getType()))
      set(argument, MemoryPlace{value, arith::ConstantIndexOp::create(
                                           builder, location, 0)});
    else
      set(argument, value);
  }
  resultType = results.empty() ? Type() : results.front();
  Block &body = function.getBody().front();
  FailureOr<Ending> ending = raise(body.begin(), body.end(), Within::Function);
  SmallVector<Value> returned;
  if (succeeded(ending) && resultType) {
    if (ending->result)
      returned.push_back(std::get<Value>(*ending->result));
    else
      (void)refuse(function, "a function that ends without its result");
  }
  if (failed(ending) || returned.size() != results.size()) {
    made.erase();
    return failure();
  }
  func::ReturnOp::create(builder, location, returned);
  return made;
}
