//===- ReadStatements.cpp - Assignments, loops and branches ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

void KernelReader::findSet(const syntax::Body &body,
                           SmallVector<StringRef> &names) {
  for (const Statement &statement : body) {
    for (const syntax::ExpressionPointer &target : statement.targets)
      if (target->kind == Expression::Kind::Name &&
          !llvm::is_contained(names, target->text))
        names.push_back(target->text);
    findSet(statement.body, names);
    findSet(statement.otherwise, names);
  }
}

LogicalResult KernelReader::readBody(const syntax::Body &body) {
  for (const Statement &statement : body) {
    Block *block = builder.getInsertionBlock();
    // What stands behind the insertion point stays there.
    Operation *before = builder.getInsertionPoint() == block->begin()
                            ? nullptr
                            : &*std::prev(builder.getInsertionPoint());
    if (failed(readStatement(statement)))
      return failure();
    if (!statement.comment.empty())
      comment += (comment.empty() ? "" : "\n") + statement.comment;
    Operation *last = builder.getInsertionPoint() == block->begin()
                          ? nullptr
                          : &*std::prev(builder.getInsertionPoint());
    if (comment.empty() || last == before)
      continue;
    last->setLoc(FusedLoc::get(context, {last->getLoc()},
                               builder.getStringAttr(comment)));
    comment.clear();
  }
  comment.clear();
  return success();
}

LogicalResult KernelReader::readStatement(const Statement &statement) {
  switch (statement.kind) {
  case Statement::Kind::Pass:
    return success();
  case Statement::Kind::For:
    return readFor(statement);
  case Statement::Kind::If:
    return readIf(statement);
  case Statement::Kind::Assign:
    return readAssignment(statement);
  case Statement::Kind::Call:
    return readPrefetch(*statement.values[0]);
  case Statement::Kind::Assert:
    return readAssert(statement);
  case Statement::Kind::Update: {
    MaybeOperand before = read(*statement.targets[0]);
    MaybeOperand by = before ? read(*statement.values[0]) : std::nullopt;
    MaybeOperand after =
        by ? combine(statement.place, statement.text, *before, *by)
           : std::nullopt;
    return after ? assign(*statement.targets[0], *after) : failure();
  }
  }
  llvm_unreachable("all kinds are handled");
}

/// `prefetch(x[i, c])`, the only call that gives no value.
LogicalResult KernelReader::readPrefetch(const Expression &call) {
  if (call.text != "prefetch") {
    error(call.place) << "'" << call.text
                      << "' gives a value, which nothing takes";
    return failure();
  }
  if (!checkCall(call, 1, 1))
    return failure();
  const Expression &subscript = *call.operands[0];
  if (subscript.kind != Expression::Kind::Subscript) {
    error(subscript.place) << "'prefetch' is for elements of memory, as x[i]";
    return failure();
  }
  std::optional<Access> access = readAccess(subscript);
  if (!access)
    return failure();
  if (!access->axes.empty()) {
    error(subscript.place) << "what is prefetched has no 'None' as an axis";
    return failure();
  }
  PrefetchOp::create(builder, location(call.place), access->memory,
                     access->indices);
  return success();
}

LogicalResult KernelReader::readAssert(const Statement &statement) {
  const Expression &condition = *statement.values[0];
  MaybeOperand operand = read(condition);
  std::optional<Value> value =
      operand ? valueOf(condition.place, *operand) : std::nullopt;
  if (!value)
    return failure();
  if (!value->getType().isInteger(1)) {
    error(condition.place) << "the condition must be true or false";
    return failure();
  }
  if (!isa<func::FuncOp>(builder.getInsertionBlock()->getParentOp())) {
    error(statement.place) << "'assert' stands in no loop and no branch";
    return failure();
  }
  if (!isMessage(statement.text)) {
    error(statement.place) << "the text must be one line without double quotes "
                              "and backslashes";
    return failure();
  }
  AssertOp::create(builder, location(statement.place), *value,
                   builder.getStringAttr(statement.text));
  return success();
}

LogicalResult KernelReader::readAssignment(const Statement &statement) {
  // All values are those from before.
  SmallVector<Operand> values;
  for (const syntax::ExpressionPointer &each : statement.values) {
    MaybeOperand value = read(*each);
    if (!value)
      return failure();
    values.push_back(*value);
  }
  for (auto [target, value] : llvm::zip_equal(statement.targets, values))
    if (failed(assign(*target, value)))
      return failure();
  return success();
}

LogicalResult KernelReader::assign(const Expression &target, Operand operand) {
  if (target.kind == Expression::Kind::Subscript)
    return store(target, operand);
  if (!checkName(target.place, target.text))
    return failure();
  auto known = variables.find(target.text);
  if (known != variables.end() && isa<MemRefType>(known->second.getType())) {
    error(target.place) << "'" << target.text << "' is memory: set an element";
    return failure();
  }
  std::optional<Value> value = valueOf(target.place, operand);
  if (!value)
    return failure();
  variables[target.text] = *value;
  // What has just been computed for it has its name.
  Operation *op = value->getDefiningOp();
  if (op && !op->getLoc()->findInstanceOf<NameLoc>() &&
      op->getNumResults() == 1 && !isa<scf::ForOp, scf::IfOp>(op))
    op->setLoc(NameLoc::get(builder.getStringAttr(target.text), op->getLoc()));
  return success();
}

LogicalResult KernelReader::store(const Expression &target, Operand operand) {
  std::optional<Access> access = readAccess(target);
  if (!access)
    return failure();
  Type element = cast<MemRefType>(access->memory.getType()).getElementType();
  std::optional<Value> value = valueOf(target.place, operand, element);
  if (!value)
    return failure();
  Location where = location(target.place);
  Value stored = withoutRange(where, *value);
  if (!access->axes.empty()) {
    error(target.place) << "what is set must not have 'None' as an axis";
    return failure();
  }
  SmallVector<SizeAttr> given = sizesOrNone(stored.getType());
  std::optional<SmallVector<SizeAttr>> both =
      broadcastSizes(access->sizes, given);
  if (isa<MemRefType>(stored.getType()) || !both || *both != access->sizes ||
      getElementTypeOrSelf(stored) != element) {
    error(target.place) << "'" << target.operands[0]->text << "' has "
                        << describe(blockOf(access->sizes, element))
                        << " there, which " << describe(stored.getType())
                        << " does not fit";
    return failure();
  }
  stored = broadcastTo(where, stored, access->sizes);
  if (access->sizes.empty())
    memref::StoreOp::create(builder, where, stored, access->memory,
                            access->indices);
  else
    StoreOp::create(builder, where, stored, access->memory, access->indices);
  return success();
}

LogicalResult KernelReader::readFor(const Statement &statement) {
  const Expression &range = *statement.values[0];
  const bool isBlocks = range.text == "blocks";
  if (range.kind != Expression::Kind::Call ||
      !llvm::is_contained({"range", "blocks", "unroll"}, range.text)) {
    error(range.place) << "loops are over range(first, end, step), "
                          "unroll(first, end, step) or "
                          "blocks(first, end, SIZE)";
    return failure();
  }
  if (!checkCall(range, isBlocks ? 2 : 1, 3) ||
      !checkName(statement.place, statement.text))
    return failure();
  if (variables.contains(statement.text)) {
    error(statement.place) << "'" << statement.text
                           << "' is set before the loop, and must not be what "
                              "it counts";
    return failure();
  }
  const size_t count = range.operands.size();
  const bool hasStep = isBlocks || count == 3;
  const bool hasFirst = count - (hasStep ? 1 : 0) == 2;
  Location where = location(statement.place);
  const auto readIndex = [&](size_t number) -> std::optional<Value> {
    MaybeOperand operand = read(*range.operands[number]);
    return operand ? indexOf(range.operands[number]->place, *operand)
                   : std::nullopt;
  };
  std::optional<Value> first =
      hasFirst ? readIndex(0)
               : arith::ConstantIndexOp::create(builder, where, 0).getResult();
  std::optional<Value> end = first ? readIndex(hasFirst ? 1 : 0) : std::nullopt;
  if (!end)
    return failure();
  SizeAttr size = SizeAttr::get(context, 1, {});
  if (hasStep) {
    std::optional<SizeAttr> given = readSize(*range.operands.back());
    if (!given)
      return failure();
    size = *given;
  }
  Value step =
      size.isStatic()
          ? arith::ConstantIndexOp::create(builder, where, size.getFactor())
                .getResult()
          : SizeOp::create(builder, where, size).getResult();

  // What the loop sets and knew before goes from turn to turn.
  SmallVector<StringRef> set, carried;
  findSet(statement.body, set);
  SmallVector<Value> before;
  for (StringRef name : set)
    if (auto known = variables.find(name); known != variables.end()) {
      if (isa<MemRefType, RangeType>(known->second.getType())) {
        error(statement.place)
            << "'" << name << "' is " << describe(known->second.getType())
            << " and must not be set in the loop";
        return failure();
      }
      carried.push_back(name);
      before.push_back(known->second);
    }
  // A loop is called as what it counts.
  Location named = NameLoc::get(builder.getStringAttr(statement.text), where);
  auto loop = scf::ForOp::create(builder, named, *first, *end, step, before);
  if (range.text == "unroll")
    loop->setAttr(BlockDialect::unrollName, builder.getUnitAttr());
  {
    OpBuilder::InsertionGuard guard(builder);
    llvm::StringMap<Value> outside = variables;
    builder.setInsertionPointToStart(loop.getBody());
    for (auto [name, value] :
         llvm::zip_equal(carried, loop.getRegionIterArgs())) {
      value.setLoc(NameLoc::get(builder.getStringAttr(name), where));
      variables[name] = value;
    }
    if (isBlocks) {
      loop.getInductionVar().setLoc(where);
      variables[statement.text] =
          RangeOp::create(builder, named, RangeType::get(context, size),
                          loop.getInductionVar(), *end);
    } else {
      loop.getInductionVar().setLoc(named);
      variables[statement.text] = loop.getInductionVar();
    }
    if (failed(readBody(statement.body)))
      return failure();
    SmallVector<Value> after;
    for (auto [name, value] : llvm::zip_equal(carried, before)) {
      after.push_back(variables[name]);
      if (after.back().getType() != value.getType()) {
        error(statement.place)
            << "'" << name << "' is " << describe(value.getType())
            << " before the loop and " << describe(after.back().getType())
            << " after a turn of it";
        return failure();
      }
    }
    if (!carried.empty())
      scf::YieldOp::create(builder, where, after);
    for (const auto &each : variables)
      if (!outside.contains(each.first()))
        outOfReach.insert(each.first());
    variables = std::move(outside);
  }
  for (auto [name, value] : llvm::zip_equal(carried, loop.getResults()))
    variables[name] = value;
  return success();
}

LogicalResult KernelReader::readIf(const Statement &statement) {
  MaybeOperand read = this->read(*statement.values[0]);
  std::optional<Value> condition =
      read ? valueOf(statement.place, *read) : std::nullopt;
  if (!condition)
    return failure();
  if (!condition->getType().isInteger(1)) {
    error(statement.values[0]->place)
        << "a condition is " << describe(condition->getType())
        << ", and must be true or false";
    return failure();
  }
  Location where = location(statement.place);
  const bool hasElse = !statement.otherwise.empty();
  // Which results there are is known when both sides are read.
  auto branch = scf::IfOp::create(builder, where, TypeRange(), *condition,
                                  /*withElseRegion=*/true);
  const llvm::StringMap<Value> outside = variables;
  SmallVector<llvm::StringMap<Value>, 2> sides;
  for (auto [body, block] :
       {std::pair(&statement.body, branch.thenBlock()),
        std::pair(&statement.otherwise, branch.elseBlock())}) {
    OpBuilder::InsertionGuard guard(builder);
    if (!block->empty())
      block->back().erase();
    builder.setInsertionPointToStart(block);
    variables = outside;
    if (failed(readBody(*body)))
      return failure();
    sides.push_back(variables);
  }
  SmallVector<StringRef> set, changed;
  findSet(statement.body, set);
  findSet(statement.otherwise, set);
  SmallVector<Type> types;
  for (StringRef name : set) {
    auto lhs = sides[0].find(name), rhs = sides[1].find(name);
    if (lhs == sides[0].end() || rhs == sides[1].end()) {
      outOfReach.insert(name);
      continue;
    }
    if (isa<RangeType, MemRefType>(lhs->second.getType())) {
      if (lhs->second == rhs->second)
        continue;
      error(statement.place)
          << "'" << name << "' is " << describe(lhs->second.getType())
          << ", and must not be set on one side of a branch";
      return failure();
    }
    if (lhs->second.getType() != rhs->second.getType()) {
      error(statement.place)
          << "'" << name << "' is " << describe(lhs->second.getType())
          << " after one side and " << describe(rhs->second.getType())
          << " after the other";
      return failure();
    }
    changed.push_back(name);
    types.push_back(lhs->second.getType());
  }
  for (size_t number : {0, 1}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(number == 0 ? branch.thenBlock()
                                               : branch.elseBlock());
    SmallVector<Value> results;
    for (StringRef name : changed)
      results.push_back(sides[number].lookup(name));
    scf::YieldOp::create(builder, where, results);
  }
  auto whole = scf::IfOp::create(builder, where, types, *condition,
                                 hasElse || !changed.empty());
  whole.getThenRegion().takeBody(branch.getThenRegion());
  if (hasElse || !changed.empty())
    whole.getElseRegion().takeBody(branch.getElseRegion());
  branch.erase();
  variables = outside;
  for (auto [name, value] : llvm::zip_equal(changed, whole.getResults()))
    variables[name] = value;
  return success();
}
