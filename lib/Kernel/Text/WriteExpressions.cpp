//===- WriteExpressions.cpp - How values are written ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWriter.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

#include <array>
#include <charconv>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

bool KernelWriter::isRepeated(Operation *op) {
  if (!op || op->getNumResults() != 1 || isNamed(op->getResult(0)))
    return false;
  if (isa<arith::ConstantOp, SizeOp>(op))
    return true;
  if (!isa<SplatOp, BroadcastOp, PositionsOp>(op))
    return false;
  // One that repeats something pending is pending itself.
  Value operand = op->getOperand(0);
  Operation *of = operand.getDefiningOp();
  return !of || isNamed(operand) || isRepeated(of) ||
         isa<scf::ForOp, scf::IfOp>(of) || named.contains(operand);
}

/// The shortest digits that are read as `value`, of type f32 or f64.
static std::string digitsOf(const APFloat &value) {
  std::array<char, 64> buffer;
  bool loses = false;
  APFloat wide = value;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  const double exact = wide.convertToDouble();
  const auto write = [&](auto number) {
    return std::string(
        buffer.data(),
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), number)
            .ptr);
  };
  std::string digits = write(exact);
  APFloat narrow = value;
  narrow.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &loses);
  std::string few = write(narrow.convertToFloat());
  // What is read is rounded to f64 first.
  double reread = 0;
  std::from_chars(few.data(), few.data() + few.size(), reread);
  APFloat back(reread);
  back.convert(value.getSemantics(), APFloat::rmNearestTiesToEven, &loses);
  if (back.bitwiseIsEqual(value))
    digits = few;
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0"
                                                         : digits;
}

/// One with its type, `i32(4)`, is a value; without, it has the type of what it
/// meets.
Text KernelWriter::textOfConstant(arith::ConstantOp constant, bool hasType) {
  Text text;
  const Type type = constant.getType();
  if (auto number = dyn_cast<FloatAttr>(constant.getValue())) {
    const APFloat value = number.getValue();
    if (value.isNaN())
      text.text = "nan";
    else if (value.isInfinity())
      text.text = value.isNegative() ? "-inf" : "inf";
    else
      text.text = digitsOf(value);
  } else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue())) {
    if (type.isInteger(1))
      text.text = integer.getValue().isZero() ? "False" : "True";
    else if (integer.getValue().getSExtValue() == INT64_MIN)
      // The largest number that is written is one less than its distance.
      text = {"-9223372036854775807 - 1", 9};
    else
      text.text = std::to_string(integer.getValue().getSExtValue());
  }
  if (hasType && !type.isInteger(1))
    return {nameOf(type) + "(" + text.text + ")"};
  if (text.text[0] == '-')
    text.precedence = std::min(text.precedence, unaryPrecedence);
  return text;
}

Text KernelWriter::textOfRepeated(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    const Type type = constant.getType();
    return textOfConstant(constant, !type.isF32() && !type.isIndex());
  }
  if (auto size = dyn_cast<SizeOp>(op)) {
    const bool isOne = size.getSize().getFactor() == 1 &&
                       size.getSize().getNames().size() == 1;
    // A product is read as sizes, not multiplied.
    if (isOne)
      return {size.getSize().str()};
    return {"size(" + size.getSize().str() + ")"};
  }
  return {textOfRepetition(op, takeOne(op->getOperand(0)).text)};
}

std::string KernelWriter::textOfRepetition(Operation *op, StringRef inner) {
  if (isa<PositionsOp>(op))
    return ("positions(" + inner + ")").str();
  const bool isZero =
      isa<SplatOp>(op) && matchPattern(op->getOperand(0), m_PosZeroFloat()) &&
      op->getOperand(0).getType().isF32() && !isNamed(op->getOperand(0));
  std::string sizes = sizesText(sizesOf(op->getResult(0).getType()));
  if (isZero)
    return "zeros(" + sizes + ")";
  return ((isa<SplatOp>(op) ? "full(" : "broadcast(") + inner + ", " + sizes +
          ")")
      .str();
}

RangeOp kernel::findBlocks(scf::ForOp loop) {
  auto range = dyn_cast<RangeOp>(loop.getBody()->front());
  if (!range || range.getStart() != loop.getInductionVar() ||
      range.getEnd() != loop.getUpperBound() ||
      !loop.getInductionVar().hasOneUse() ||
      loop->hasAttr(BlockDialect::unrollName))
    return nullptr;
  SizeAttr size = range.getType().getSize();
  APInt constant;
  if (matchPattern(loop.getStep(), m_ConstantInt(&constant)))
    return size.isStatic() && constant == size.getFactor() ? range : RangeOp();
  auto step = loop.getStep().getDefiningOp<SizeOp>();
  return step && step.getSize() == size ? range : RangeOp();
}

Operation *KernelWriter::findOnlyUser(Value value) {
  Operation *user = nullptr;
  for (OpOperand &use : value.getUses()) {
    auto range = dyn_cast<RangeOp>(use.getOwner());
    auto loop =
        range ? dyn_cast<scf::ForOp>(range->getParentOp()) : scf::ForOp();
    if (loop && loop.getUpperBound() == value && findBlocks(loop) == range)
      continue;
    if (user)
      return nullptr;
    user = use.getOwner();
  }
  return user;
}

SmallVector<Text> KernelWriter::take(ValueRange values, ArrayRef<Value> bare) {
  // What is pending is used in the order in which it was computed, the last
  // first.
  SmallVector<Value> wanted;
  for (Value value : values)
    if (isPending(value))
      wanted.push_back(value);
  bool inOrder = wanted.size() <= pending.size();
  const size_t first = inOrder ? pending.size() - wanted.size() : 0;
  for (size_t i = 0; inOrder && i < wanted.size(); ++i)
    inOrder = pending[first + i].value == wanted[i];
  if (!inOrder)
    for (const Pending &each : pending)
      if (llvm::is_contained(wanted, each.value))
        nameNext(each.computed);
  SmallVector<Text> texts;
  for (Value value : values) {
    auto *found = llvm::find_if(
        pending, [&](const Pending &each) { return each.value == value; });
    if (found != pending.end()) {
      texts.push_back(found->bare && llvm::is_contained(bare, value)
                          ? *found->bare
                          : found->text);
      pending.erase(found);
    } else if (Operation *op = value.getDefiningOp(); isRepeated(op)) {
      texts.push_back(textOfRepeated(op));
    } else {
      texts.push_back({use(value)});
    }
  }
  return texts;
}

SmallVector<Text> KernelWriter::takeUnified(ValueRange operands,
                                            ArrayRef<SizeAttr> sizes,
                                            bool isOperator,
                                            bool takesPositions, Value before) {
  const auto sizesOrNone = [](Type type) {
    if (auto range = dyn_cast<RangeType>(type))
      return SmallVector<SizeAttr>{range.getSize()};
    return block::isBlock(type) ? llvm::to_vector(sizesOf(type))
                                : SmallVector<SizeAttr>();
  };
  const auto isOfPositions = [&](Value value) {
    return isa_and_nonnull<PositionsOp>(value.getDefiningOp()) &&
           !isNamed(value);
  };
  // Without splats and repetitions, if the rest still has all sizes.
  SmallVector<Value> bare(operands);
  SmallVector<SizeAttr> joint;
  bool goTogether = true;
  const auto join = [&](Value value) {
    std::optional<SmallVector<SizeAttr>> both =
        broadcastSizes(joint, sizesOrNone(value.getType()));
    goTogether &= both.has_value();
    if (both)
      joint = *both;
  };
  // A condition is repeated as the others are.
  Value bareBefore = before;
  if (before && !isNamed(before))
    if (auto repeated = before.getDefiningOp<BroadcastOp>())
      bareBefore = repeated.getBlock();
  if (before)
    join(bareBefore);
  for (Value &value : bare) {
    Operation *op = value.getDefiningOp();
    while (isa_and_nonnull<SplatOp, BroadcastOp>(op) && !isNamed(value)) {
      value = op->getOperand(0);
      op = value.getDefiningOp();
    }
    if (takesPositions && isOfPositions(value))
      value = value.getDefiningOp()->getOperand(0);
    join(value);
  }
  if (!goTogether || ArrayRef(joint) != sizes) {
    bareBefore = before;
    for (auto [value, operand] : llvm::zip_equal(bare, operands))
      if (value != operand && !isa<RangeType>(value.getType())) {
        value = operand;
        break;
      }
  }
  // Numbers have the type of the others: of numbers alone the first says it.
  const auto constantOf = [&](Value value) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    return constant && !isNamed(value) ? constant : arith::ConstantOp();
  };
  const bool allNumbers = llvm::all_of(
      bare, [&](Value value) { return constantOf(value) != nullptr; });
  // Of operators two numbers would become one.
  const Type element = getElementTypeOrSelf(operands[0]);
  const bool saysType =
      allNumbers && (isOperator || (!element.isF32() && !element.isIndex()));
  // A repetition that is pending stands for what it repeats.
  SmallVector<Value> others, withoutRepetition;
  if (before) {
    others.push_back(isPending(before) ? before : bareBefore);
    if (bareBefore != before)
      withoutRepetition.push_back(before);
  }
  for (auto [value, operand] : llvm::zip_equal(bare, operands)) {
    if (constantOf(value))
      continue;
    others.push_back(isPending(operand) ? operand : value);
    if (value != operand)
      withoutRepetition.push_back(operand);
  }
  SmallVector<Text> taken = take(others, withoutRepetition);
  SmallVector<Text> texts;
  size_t next = 0;
  if (before)
    texts.push_back(taken[next++]);
  for (auto [number, value] : llvm::enumerate(bare)) {
    if (arith::ConstantOp constant = constantOf(value))
      texts.push_back(textOfConstant(constant, saysType && number == 0));
    else
      texts.push_back(taken[next++]);
  }
  return texts;
}

std::optional<Text>
KernelWriter::textOfElementwise(Operation *op, const ElementwiseWord &word) {
  Type type = op->getResult(0).getType();
  SmallVector<SizeAttr> sizes;
  if (block::isBlock(type))
    sizes = llvm::to_vector(sizesOf(type));
  // A range and a number would be a range that goes on.
  SmallVector<Text> operands = takeUnified(
      op->getOperands(), sizes, word.precedence != 0, word.precedence != 9);
  if (word.precedence == 0) {
    std::string list = llvm::join(
        llvm::map_range(operands, [](Text &text) { return text.text; }), ", ");
    return Text{word.word.str() + "(" + list + ")"};
  }
  if (word.operands == 1)
    return Text{word.word.str() + within(operands[0], unaryPrecedence),
                unaryPrecedence};
  // Comparisons do not follow each other, all else is from left to right.
  const bool isComparison = word.predicate >= 0;
  return Text{within(operands[0], word.precedence + (isComparison ? 1 : 0)) +
                  " " + word.word.str() + " " +
                  within(operands[1], word.precedence + 1),
              word.precedence};
}

std::optional<Text> KernelWriter::textOfConversion(Operation *op) {
  const bool isUnsigned = isa<arith::ExtUIOp, arith::UIToFPOp, arith::FPToUIOp,
                              arith::IndexCastUIOp>(op);
  if (!isUnsigned &&
      !isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::TruncIOp,
           arith::SIToFPOp, arith::FPToSIOp, arith::IndexCastOp>(op))
    return std::nullopt;
  const Type from = getElementTypeOrSelf(op->getOperand(0));
  const Type to = getElementTypeOrSelf(op->getResult(0));
  // The language takes truth for 0 and 1, and makes none of numbers.
  if ((from.isInteger(1) && !isUnsigned) || to.isInteger(1))
    return std::nullopt;
  // An index becomes a float by way of an integer, which is not written.
  Value operand = op->getOperand(0);
  std::string inner =
      take(operand, isa<FloatType>(to) ? operand : Value())[0].text;
  return Text{nameOf(to) + "(" + inner +
              (isUnsigned && !from.isInteger(1) ? ", unsigned=True)" : ")")};
}

Text KernelWriter::textOfAccess(Value memory, ValueRange indices) {
  SmallVector<Text> taken = take(indices);
  std::string list = llvm::join(
      llvm::map_range(taken, [](Text &text) { return text.text; }), ", ");
  return {use(memory) + "[" + list + "]"};
}

std::optional<Text> KernelWriter::textOf(Operation *op) {
  if (isa<arith::ConstantOp>(op)) {
    auto constant = cast<arith::ConstantOp>(op);
    const Type type = constant.getType();
    return textOfConstant(constant, !type.isF32() && !type.isIndex());
  }
  if (isa<SizeOp, SplatOp, BroadcastOp, PositionsOp>(op))
    return textOfRepeated(op);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    SmallVector<SizeAttr> sizes;
    if (block::isBlock(select.getType()))
      sizes = llvm::to_vector(sizesOf(select.getType()));
    SmallVector<Text> texts = takeUnified(
        {select.getTrueValue(), select.getFalseValue()}, sizes,
        /*isOperator=*/false, /*takesPositions=*/true, select.getCondition());
    return Text{"where(" + texts[0].text + ", " + texts[1].text + ", " +
                texts[2].text + ")"};
  }
  if (isa<arith::BitcastOp>(op)) {
    std::string inner = takeOne(op->getOperand(0)).text;
    return Text{"bitcast(" + inner + ", " +
                nameOf(getElementTypeOrSelf(op->getResult(0))) + ")"};
  }
  if (const ElementwiseWord *word = findWord(op))
    return textOfElementwise(op, *word);
  if (auto load = dyn_cast<LoadOp>(op))
    return textOfAccess(load.getMemory(), load.getIndices());
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return textOfAccess(load.getMemRef(), load.getIndices());
  if (auto range = dyn_cast<RangeOp>(op)) {
    SmallVector<Text> texts = take(range->getOperands());
    return Text{"block(" + texts[0].text + ", " +
                range.getType().getSize().str() +
                (texts.size() > 1 ? ", " + texts[1].text : "") + ")"};
  }
  if (auto shift = dyn_cast<ShiftOp>(op)) {
    SmallVector<Text> texts = take(shift->getOperands());
    constexpr unsigned sum = 9;
    return Text{within(texts[0], sum) + " + " + within(texts[1], sum + 1), sum};
  }
  if (auto inside = dyn_cast<InsideOp>(op))
    return Text{"inside(" + takeOne(inside.getRange()).text + ")"};
  if (auto scratch = dyn_cast<ScratchOp>(op)) {
    auto type = cast<MemRefType>(scratch.getMemory().getType());
    return Text{"scratch(" + nameOf(type.getElementType()) + ", " +
                sizesText(scratch.getSizes().getSizes()) +
                (scratch.getPairs() ? ", pairs=True)" : ")")};
  }
  if (auto expand = dyn_cast<ExpandOp>(op)) {
    std::string text =
        within(takeOne(expand.getBlock()), postfixPrecedence) + "[";
    const size_t rank = sizesOf(expand.getType()).size();
    for (size_t i = 0; i < rank; ++i)
      text += std::string(i > 0 ? ", " : "") +
              (i == expand.getAxis() ? "None" : ":");
    return Text{text + "]"};
  }
  if (isa<MatmulOp>(op)) {
    SmallVector<Text> texts = take(op->getOperands());
    return Text{"matmul(" + texts[0].text + ", " + texts[1].text + ", " +
                texts[2].text + ")"};
  }
  if (isa<InterleaveOp>(op)) {
    SmallVector<Text> texts = take(op->getOperands());
    return Text{"interleave(" + texts[0].text + ", " + texts[1].text + ")"};
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    std::string inner = takeOne(reduce.getBlock()).text;
    std::string axis =
        reduce.getAxis() ? ", axis=" + std::to_string(*reduce.getAxis()) : "";
    return Text{nameOf(reduce.getKind()).str() + "(" + inner + axis + ")"};
  }
  return textOfConversion(op);
}
