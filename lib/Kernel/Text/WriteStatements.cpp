//===- WriteStatements.cpp - Assignments, loops and branches --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWriter.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

void KernelWriter::line(const Twine &text) {
  // What is still pending was computed before, and is no part of it.
  for (const Pending &each : pending)
    nameNext(each.computed);
  const std::string indent(4 * depth, ' ');
  if (!comments.empty()) {
    SmallVector<StringRef> lines;
    StringRef(comments).split(lines, '\n');
    for (StringRef each : lines)
      out += indent + StringRef("# " + each.str()).rtrim().str() + "\n";
    comments.clear();
  }
  out += indent + text.str() + "\n";
}

void KernelWriter::collectComment(Operation *op) {
  auto fused = op->getLoc()->findInstanceOf<FusedLocWith<StringAttr>>();
  if (!fused)
    return;
  std::string text = fused.getMetadata().str();
  llvm::erase(text, '\r');
  comments += (comments.empty() ? "" : "\n") + text;
}

void KernelWriter::copy(ArrayRef<std::string> names, ValueRange values,
                        bool inOrder) {
  SmallVector<std::string> targets;
  SmallVector<Value> sources;
  for (auto [name, value] : llvm::zip_equal(names, values)) {
    auto holder = holders.find(name);
    if (holder != holders.end() && holder->second == value)
      continue;
    // What is computed for it alone is called as it is.
    if (isPending(value))
      nameNext(value, inOrder ? StringRef() : StringRef(name));
    targets.push_back(name);
    sources.push_back(value);
  }
  if (targets.empty())
    return;
  SmallVector<Text> texts = take(sources);
  const auto readsTarget = [&](const Text &text) {
    return llvm::is_contained(targets, text.text);
  };
  if (llvm::any_of(texts, readsTarget)) {
    line(llvm::join(targets, ", ") + " = " +
         llvm::join(
             llvm::map_range(texts, [](const Text &text) { return text.text; }),
             ", "));
  } else {
    for (auto [target, text] : llvm::zip_equal(targets, texts)) {
      keep(target);
      line(target + " = " + text.text);
    }
  }
  for (auto [target, value] : llvm::zip_equal(targets, sources))
    set(target, value);
}

std::optional<std::string> KernelWriter::stepOf(scf::ForOp loop) {
  APInt constant;
  if (matchPattern(loop.getStep(), m_ConstantInt(&constant)))
    return std::to_string(constant.getSExtValue());
  if (auto size = loop.getStep().getDefiningOp<SizeOp>())
    return size.getSize().str();
  return std::nullopt;
}

/// The body of a loop or of one side of a branch, whose values are called
/// `names` behind it.
LogicalResult KernelWriter::writeBody(Block &block,
                                      ArrayRef<std::string> names) {
  ++depth;
  const size_t start = out.size();
  if (failed(writeBlock(block)))
    return failure();
  copy(names, block.getTerminator()->getOperands(),
       ordered.contains(block.getParentOp()));
  for (const Pending &each : pending)
    nameNext(each.computed);
  if (out.size() == start)
    line("pass");
  --depth;
  return success();
}

/// Whoever reads the text takes the names that a body sets in the order that it
/// does so first: where that is not the order of `names`, or where one is not
/// set, all are set at the begin of the body, to what they are, or, where they
/// are nothing before `op`, at its end.
void KernelWriter::orderNames(Operation *op, ArrayRef<std::string> names,
                              size_t bodyBegin) {
  SmallVector<std::string> order;
  for (const std::string &each : scopes.back().order)
    if (llvm::is_contained(names, each))
      order.push_back(each);
  if (ArrayRef(order) == names)
    return;
  if (!llvm::all_of(names, [&](const std::string &each) {
        return holders.contains(each);
      })) {
    for (Value result : op->getResults())
      unique.insert(variableOf(result));
    // What is computed for a result has a name of its own, too.
    for (Region &side : op->getRegions())
      for (Value value : side.front().getTerminator()->getOperands())
        if (auto wanted = named.find(value); wanted != named.end())
          wanted->second.clear();
    again |= ordered.insert(op).second;
    return;
  }
  std::string list = llvm::join(names, ", ");
  out.insert(bodyBegin,
             std::string(4 * (depth + 1), ' ') + list + " = " + list + "\n");
}

LogicalResult KernelWriter::writeFor(scf::ForOp loop) {
  collectComment(loop);
  std::string remark = std::exchange(comments, "");
  if (!loop.getInductionVar().getType().isIndex() || loop.getUnsignedCmp())
    return loop.emitOpError("counts in another type than index, or without a "
                            "sign, for which text of kernels has no words");
  SmallVector<std::string> names;
  for (BlockArgument carried : loop.getRegionIterArgs())
    names.push_back(nameFor(carried));
  RangeOp range = findBlocks(loop);
  std::optional<std::string> step = stepOf(loop);
  if (!step)
    return loop.emitError("a loop has a step that is no size");
  // What is carried is set before the bounds are computed, if it must be set.
  SmallVector<Text> bounds = take({loop.getLowerBound(), loop.getUpperBound()});
  copy(names, loop.getInits());
  Value variable = range ? range.getResult() : Value(loop.getInductionVar());
  std::string heading = range                                     ? "blocks("
                        : loop->hasAttr(BlockDialect::unrollName) ? "unroll("
                                                                  : "range(";
  if (!matchPattern(loop.getLowerBound(), m_Zero()) ||
      (!range && *step != "1") || isNamed(loop.getLowerBound()))
    heading += bounds[0].text + ", ";
  heading += bounds[1].text;
  if (range || *step != "1")
    heading += ", " + *step;
  comments = std::move(remark);
  std::string name = nameFor(variable);
  if (auto holder = holders.find(name); holder != holders.end())
    conflict(variable, Value());
  line("for " + name + " in " + heading + "):");

  llvm::StringMap<Value> outside = holders;
  Scope scope;
  for (const auto &each : holders)
    if (!llvm::is_contained(names, each.first()))
      scope.foreign.insert(each.first());
  for (const std::string &each : names)
    scope.results.insert(each);
  for (auto [each, carried] : llvm::zip_equal(names, loop.getRegionIterArgs()))
    holders[each] = carried;
  holders[name] = variable;
  scope.foreign.erase(name);
  scopes.push_back(std::move(scope));
  const size_t bodyBegin = out.size();
  if (failed(writeBody(*loop.getBody(), names)))
    return failure();
  holders = std::move(outside);
  orderNames(loop, names, bodyBegin);
  scopes.pop_back();
  for (auto [each, result] : llvm::zip_equal(names, loop.getResults()))
    set(each, result);
  return success();
}

LogicalResult KernelWriter::writeIf(scf::IfOp branch) {
  collectComment(branch);
  SmallVector<std::string> names;
  for (Value result : branch.getResults())
    names.push_back(nameFor(result));
  // Two results with one name are two variables.
  for (size_t i = 0; i < names.size(); ++i)
    if (llvm::is_contained(ArrayRef(names).take_front(i), names[i]))
      conflict(branch.getResult(i), Value());
  line("if " + takeOne(branch.getCondition()).text + ":");
  const llvm::StringMap<Value> outside = holders;
  Scope scope;
  for (const auto &each : holders)
    if (!llvm::is_contained(names, each.first()))
      scope.foreign.insert(each.first());
  for (const std::string &each : names)
    scope.results.insert(each);
  scopes.push_back(scope);
  const size_t bodyBegin = out.size();
  if (failed(writeBody(*branch.thenBlock(), names)))
    return failure();
  // What both sides set is seen behind them.
  for (const std::string &each : scopes.back().order)
    if (!llvm::is_contained(names, each))
      scope.foreign.insert(each);
  scopes.back().foreign = std::move(scope.foreign);
  holders = outside;
  if (branch.elseBlock()) {
    const std::string before = std::exchange(out, "");
    if (failed(writeBody(*branch.elseBlock(), names)))
      return failure();
    const std::string other = std::exchange(out, before);
    // An empty side is left out where nothing is lost by it.
    const std::string empty = std::string(4 * (depth + 1), ' ') + "pass\n";
    if (other != empty || names.empty())
      out += std::string(4 * depth, ' ') + "else:\n" + other;
  }
  holders = outside;
  orderNames(branch, names, bodyBegin);
  scopes.pop_back();
  for (auto [each, result] : llvm::zip_equal(names, branch.getResults()))
    set(each, result);
  return success();
}

/// Whether the language has words for all that `op` says.
static bool hasWords(Operation *op) {
  // Constants are numbers, and there is one NaN.
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      return !number.getValue().isNaN() ||
             number.getValue().bitwiseIsEqual(
                 APFloat::getNaN(number.getValue().getSemantics()));
    return isa<IntegerAttr>(constant.getValue());
  }
  if (auto math = dyn_cast<arith::ArithFastMathInterface>(op);
      math && math.getFastMathFlagsAttr() &&
      math.getFastMathFlagsAttr().getValue() != arith::FastMathFlags::none)
    return false;
  if (auto integer = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
      integer && integer.getOverflowAttr() &&
      integer.getOverflowAttr().getValue() != arith::IntegerOverflowFlags::none)
    return false;
  if (auto required = dyn_cast<AssertOp>(op))
    return isMessage(required.getMessage());
  const auto nontemporal = op->getAttrOfType<BoolAttr>("nontemporal");
  if (op->hasAttr("isExact") || op->hasAttr("nonNeg") ||
      (nontemporal && nontemporal.getValue()))
    return false;
  return llvm::all_of(op->getResultTypes(), [&](Type type) {
    return block::isNumber(type) || block::isBlock(type) ||
           (op->getNumRegions() == 0 && isa<RangeType, MemRefType>(type));
  });
}

LogicalResult KernelWriter::write(Operation *op) {
  if (!hasWords(op))
    return op->emitOpError("is nothing that text of kernels has words for");
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return writeFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return writeIf(branch);
  if (isRepeated(op))
    return success();
  collectComment(op);
  if (auto prefetch = dyn_cast<PrefetchOp>(op)) {
    std::string access =
        textOfAccess(prefetch.getMemory(), prefetch.getIndices()).text;
    line("prefetch(" + access + ")");
    return success();
  }
  if (auto required = dyn_cast<AssertOp>(op)) {
    std::string condition = takeOne(required.getCondition()).text;
    line("assert " + condition + ", \"" + required.getMessage().str() + "\"");
    return success();
  }
  if (isa<StoreOp, memref::StoreOp>(op)) {
    // The value is computed first.
    auto store = dyn_cast<StoreOp>(op);
    Value value = op->getOperand(0), memory = op->getOperand(1);
    ValueRange indices = op->getOperands().drop_front(2);
    SmallVector<SizeAttr> sizes;
    if (store)
      sizes = llvm::to_vector(sizesOf(value.getType()));
    Value bare = value;
    while (isa_and_nonnull<SplatOp, BroadcastOp>(bare.getDefiningOp()) &&
           !isNamed(bare) && !isPending(bare))
      bare = bare.getDefiningOp()->getOperand(0);
    auto constant = bare.getDefiningOp<arith::ConstantOp>();
    const bool isNumber = constant && !isNamed(bare);
    SmallVector<Value> all;
    if (!isNumber)
      all.push_back(bare);
    llvm::append_range(all, indices);
    SmallVector<Text> texts = take(all, bare);
    Text stored = isNumber ? textOfConstant(constant, false) : texts[0];
    std::string list =
        llvm::join(llvm::map_range(ArrayRef(texts).take_back(indices.size()),
                                   [](const Text &text) { return text.text; }),
                   ", ");
    line(use(memory) + "[" + list + "] = " + stored.text);
    return success();
  }
  // What repeats something pending takes its place.
  if (isa<SplatOp, BroadcastOp, PositionsOp>(op) && !isNamed(op->getResult(0)))
    for (Pending &each : pending)
      if (each.value == op->getOperand(0)) {
        // What is repeated several times needs a name.
        if (!op->getResult(0).hasOneUse()) {
          nameNext(each.computed);
          return success();
        }
        if (!each.bare)
          each.bare = each.text;
        each.text = {textOfRepetition(op, each.text.text)};
        each.value = op->getResult(0);
        return success();
      }
  std::optional<Text> text =
      op->getNumResults() == 1 && op->getNumRegions() == 0 ? textOf(op)
                                                           : std::nullopt;
  if (!text)
    return op->emitOpError("is nothing that text of kernels has words for");
  Value result = op->getResult(0);
  Operation *user = findOnlyUser(result);
  if (!isNamed(result) && user && user->getBlock() == op->getBlock() &&
      !isa<ScratchOp>(op)) {
    pending.push_back({result, *text, result});
    if (isa<arith::IndexCastOp>(op) &&
        getElementTypeOrSelf(op->getOperand(0)).isIndex() &&
        getElementTypeOrSelf(result).isInteger(64))
      pending.back().bare = {
          StringRef(text->text).drop_front(4).drop_back().str()};
    return success();
  }
  nameNext(result);
  std::string name = nameFor(result);
  keep(name);
  line(name + " = " + text->text);
  set(name, result);
  return success();
}

LogicalResult KernelWriter::writeBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    auto loop = dyn_cast<scf::ForOp>(block.getParentOp());
    if (loop && &op == &block.front() && findBlocks(loop))
      continue;
    if (failed(write(&op)))
      return failure();
  }
  return success();
}
