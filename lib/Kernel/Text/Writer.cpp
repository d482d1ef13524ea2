//===- Writer.cpp - From dialect block to text ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Values become variables: those that have a name keep it, a loop's carried
/// value is one variable in all of its turns, and what is used once, right
/// where it is computed, stands in the expression that uses it. Two values
/// that have one name while both are needed get two: the kernel is written
/// again until no name stands for another value than was meant.
///
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "sandwich/Kernel/Syntax.h"
#include "sandwich/Kernel/Text.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <array>
#include <charconv>
#include <cmath>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

namespace {

/// How an expression is written, and how it binds.
struct Text {
  std::string text;
  unsigned precedence = postfixPrecedence;
};

class KernelWriter {
public:
  explicit KernelWriter(func::FuncOp kernel) : kernel(kernel) {}

  /// What it looks like; fails, with errors emitted, where there are no words
  /// for it.
  FailureOr<std::string> run();

private:
  /// Something computed that the next statement uses.
  struct Pending {
    Value value;
    Text text;
    /// Without the splat or repetition that it ends with, if it does.
    std::optional<Text> bare = std::nullopt;
  };
  /// Where names were set.
  struct Scope {
    /// Names that stood for something else outside, or must not be set here.
    llvm::StringSet<> foreign;
    /// Names that are set for who comes behind.
    llvm::StringSet<> results;
    /// All that were set in it.
    llvm::StringSet<> set;
  };

  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  /// The value of a loop is the variable that its turns carry.
  static Value variableOf(Value value);
  static StringRef hintOf(Value value);
  std::string nameFor(Value value);
  /// The text is written again, with `value` named, or named by itself.
  void nameNext(Value value, StringRef hint = "");
  void conflict(Value value, Value holder);
  void set(const std::string &name, Value value);
  std::string use(Value value);

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  void line(const Twine &text);
  void collectComment(Operation *op);
  LogicalResult writeBlock(Block &block);
  LogicalResult write(Operation *op);
  LogicalResult writeFor(scf::ForOp loop);
  LogicalResult writeIf(scf::IfOp branch);
  LogicalResult writeBody(Block &block, ArrayRef<std::string> names);
  void copy(ArrayRef<std::string> names, ValueRange values);
  std::string writeHeading();

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  /// Whether it is written wherever it is used.
  bool isRepeated(Operation *op);
  bool isNamed(Value value) {
    return named.contains(value) || !hintOf(value).empty();
  }
  std::optional<Text> textOf(Operation *op);
  /// The operands of one operation, in the order that they are written in;
  /// those in `bare` without splats and repetitions.
  SmallVector<Text> take(ValueRange values, ArrayRef<Value> bare = {});
  bool isPending(Value value) {
    return llvm::any_of(
        pending, [&](const Pending &each) { return each.value == value; });
  }
  static bool isUsedOnce(Value value);
  Text takeOne(Value value) { return take(value)[0]; }
  Text textOfRepeated(Operation *op);
  Text textOfConstant(arith::ConstantOp constant, bool hasType);
  /// Those of an elementwise operation, whose splats and repetitions are
  /// understood from the others where they can be. `before` is written before
  /// them, if it is there.
  SmallVector<Text> takeUnified(ValueRange operands, ArrayRef<SizeAttr> sizes,
                                bool takesPositions = true, Value before = {});
  /// How a splat, a repetition or positions of `inner` are written.
  std::string textOfRepetition(Operation *op, StringRef inner);
  std::string within(const Text &text, unsigned precedence) {
    return text.precedence < precedence ? "(" + text.text + ")" : text.text;
  }
  std::string sizesText(ArrayRef<SizeAttr> sizes) {
    return llvm::join(
        llvm::map_range(sizes, [](SizeAttr size) { return size.str(); }), ", ");
  }
  std::optional<Text> textOfElementwise(Operation *op,
                                        const ElementwiseWord &word);
  std::optional<Text> textOfConversion(Operation *op);
  Text textOfAccess(Value memory, ValueRange indices);
  std::optional<std::string> stepOf(scf::ForOp loop);

  func::FuncOp kernel;
  /// Kept from one attempt to the next: values that get a name though they
  /// have none, with what it should be, and those whose name is their own.
  llvm::DenseMap<Value, std::string> named;
  llvm::DenseSet<Value> unique;
  bool again = false;

  std::string out;
  unsigned depth = 1;
  std::string comments;
  SmallVector<Pending> pending;
  llvm::DenseMap<Value, std::string> names;
  llvm::StringSet<> taken;
  llvm::StringMap<Value> holders;
  SmallVector<Scope> scopes;
};

} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Value KernelWriter::variableOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (result && isa<scf::ForOp>(result.getOwner()))
    return cast<scf::ForOp>(result.getOwner())
        .getRegionIterArg(result.getResultNumber());
  return value;
}

StringRef KernelWriter::hintOf(Value value) {
  value = variableOf(value);
  // What a branch gives is called as what its sides give.
  if (auto result = dyn_cast<OpResult>(value))
    if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
      for (Block *side : {branch.thenBlock(), branch.elseBlock()})
        if (Value given = side->getTerminator()->getOperand(
                result.getResultNumber());
            isa<BlockArgument>(given) ||
            !isa<scf::IfOp>(given.getDefiningOp()))
          if (StringRef hint = hintOf(given); !hint.empty())
            return hint;
      return "";
    }
  auto location = value.getLoc()->findInstanceOf<NameLoc>();
  return location ? location.getName().getValue() : StringRef();
}

std::string KernelWriter::nameFor(Value value) {
  value = variableOf(value);
  if (auto known = names.find(value); known != names.end())
    return known->second;
  std::string name = hintOf(value).str();
  if (auto wanted = named.find(value);
      name.empty() && wanted != named.end())
    name = wanted->second;
  const bool isUsable = block::isName(name) && !isReserved(name) &&
                        !parametersOf(kernel).find(name) &&
                        !findDimension(kernel, name);
  if (!isUsable)
    name = "value";
  if (!isUsable || unique.contains(value)) {
    const std::string base = name + "_";
    for (unsigned number = 1;; ++number) {
      name = base + std::to_string(number);
      if (taken.insert(name).second)
        break;
    }
  }
  names[value] = name;
  return name;
}

void KernelWriter::nameNext(Value value, StringRef hint) {
  again |= named.try_emplace(value, hint.str()).second;
}

void KernelWriter::conflict(Value value, Value holder) {
  if (unique.insert(variableOf(value)).second ||
      (holder && unique.insert(variableOf(holder)).second))
    again = true;
}

void KernelWriter::set(const std::string &name, Value value) {
  for (Scope &scope : llvm::reverse(scopes)) {
    if (scope.foreign.contains(name))
      conflict(value, Value());
    scope.set.insert(name);
    // Who comes behind sets it as well.
    if (scope.results.contains(name))
      break;
  }
  holders[name] = value;
}

std::string KernelWriter::use(Value value) {
  std::string name = nameFor(value);
  auto holder = holders.find(name);
  if (holder == holders.end() || holder->second != value)
    conflict(value, holder == holders.end() ? Value() : holder->second);
  return name;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

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
    return std::string(buffer.data(),
                       std::to_chars(buffer.data(),
                                     buffer.data() + buffer.size(), number)
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
    else
      text.text = std::to_string(integer.getValue().getSExtValue());
  }
  if (hasType && !type.isInteger(1))
    return {nameOf(type) + "(" + text.text + ")"};
  if (text.text[0] == '-')
    text.precedence = unaryPrecedence;
  return text;
}

Text KernelWriter::textOfRepeated(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    const Type type = constant.getType();
    return textOfConstant(constant, !type.isF32() && !type.isIndex());
  }
  if (auto size = dyn_cast<SizeOp>(op)) {
    const bool isOne =
        size.getSize().getFactor() == 1 && size.getSize().getNames().size() == 1;
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

/// The range that a loop over blocks goes by; null if it is none.
static RangeOp findBlocks(scf::ForOp loop) {
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

/// Whether it has one use, not counting that of the range that a loop over
/// blocks makes of its end.
bool KernelWriter::isUsedOnce(Value value) {
  unsigned uses = 0;
  for (OpOperand &use : value.getUses()) {
    auto range = dyn_cast<RangeOp>(use.getOwner());
    auto loop = range ? dyn_cast<scf::ForOp>(range->getParentOp()) : scf::ForOp();
    uses += !loop || loop.getUpperBound() != value || findBlocks(loop) != range;
  }
  return uses == 1;
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
    for (Value value : wanted)
      nameNext(value);
  SmallVector<Text> texts;
  for (Value value : values) {
    auto *found = llvm::find_if(pending, [&](const Pending &each) {
      return each.value == value;
    });
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
  for (Value &value : bare) {
    Operation *op = value.getDefiningOp();
    while (isa_and_nonnull<SplatOp, BroadcastOp>(op) && !isNamed(value)) {
      value = op->getOperand(0);
      op = value.getDefiningOp();
    }
    if (takesPositions && isOfPositions(value))
      value = value.getDefiningOp()->getOperand(0);
    std::optional<SmallVector<SizeAttr>> both =
        broadcastSizes(joint, sizesOrNone(value.getType()));
    goTogether &= both.has_value();
    if (both)
      joint = *both;
  }
  if (!goTogether || ArrayRef(joint) != sizes)
    for (auto [value, operand] : llvm::zip_equal(bare, operands))
      if (value != operand && !isa<RangeType>(value.getType())) {
        value = operand;
        break;
      }
  // Numbers have the type of the others: of numbers alone the first says it.
  const auto constantOf = [&](Value value) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    return constant && !isNamed(value) ? constant : arith::ConstantOp();
  };
  const bool allNumbers = llvm::all_of(
      bare, [&](Value value) { return constantOf(value) != nullptr; });
  // A repetition that is pending stands for what it repeats.
  SmallVector<Value> others, withoutRepetition;
  if (before) {
    // A condition is repeated as the others are, if they have all sizes.
    auto repeated = before.getDefiningOp<BroadcastOp>();
    const bool isBare =
        repeated && !isNamed(before) && goTogether && ArrayRef(joint) == sizes;
    others.push_back(isBare && !isPending(before) ? repeated.getBlock()
                                                  : before);
    if (isBare)
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
      texts.push_back(textOfConstant(constant, allNumbers && number == 0));
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
  SmallVector<Text> operands =
      takeUnified(op->getOperands(), sizes, word.precedence != 9);
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
  const bool isUnsigned =
      isa<arith::ExtUIOp, arith::UIToFPOp, arith::FPToUIOp,
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
  std::string inner = take(operand, isa<FloatType>(to) ? operand : Value())[0].text;
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
    SmallVector<Text> texts =
        takeUnified({select.getTrueValue(), select.getFalseValue()}, sizes,
                    /*takesPositions=*/true, select.getCondition());
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
                sizesText(scratch.getSizes().getSizes()) + ")"};
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
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    std::string inner = takeOne(reduce.getBlock()).text;
    std::string axis =
        reduce.getAxis() ? ", axis=" + std::to_string(*reduce.getAxis()) : "";
    return Text{nameOf(reduce.getKind()).str() + "(" + inner + axis + ")"};
  }
  return textOfConversion(op);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void KernelWriter::line(const Twine &text) {
  // What is still pending was computed before, and is no part of it.
  for (const Pending &each : pending)
    nameNext(each.value);
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
  auto fused =
      op->getLoc()->findInstanceOf<FusedLocWith<StringAttr>>();
  if (!fused)
    return;
  comments += (comments.empty() ? "" : "\n") + fused.getMetadata().str();
}

void KernelWriter::copy(ArrayRef<std::string> names, ValueRange values) {
  SmallVector<std::string> targets;
  SmallVector<Value> sources;
  for (auto [name, value] : llvm::zip_equal(names, values)) {
    auto holder = holders.find(name);
    if (holder != holders.end() && holder->second == value)
      continue;
    // What is computed for it alone is called as it is.
    if (isPending(value))
      nameNext(value, name);
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
         llvm::join(llvm::map_range(texts,
                                    [](const Text &text) { return text.text; }),
                    ", "));
  } else {
    for (auto [target, text] : llvm::zip_equal(targets, texts))
      line(target + " = " + text.text);
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
  copy(names, block.getTerminator()->getOperands());
  for (const Pending &each : pending)
    nameNext(each.value);
  if (out.size() == start)
    line("pass");
  --depth;
  return success();
}

LogicalResult KernelWriter::writeFor(scf::ForOp loop) {
  collectComment(loop);
  std::string remark = std::exchange(comments, "");
  if (!loop.getInductionVar().getType().isIndex())
    return loop.emitError("kernels count in index alone");
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
  std::string heading = range                                        ? "blocks("
                        : loop->hasAttr(BlockDialect::unrollName) ? "unroll("
                                                                      : "range(";
  if (!matchPattern(loop.getLowerBound(), m_Zero()) || (!range && *step != "1") ||
      isNamed(loop.getLowerBound()))
    heading += bounds[0].text + ", ";
  heading += bounds[1].text;
  if (range || *step != "1")
    heading += ", " + *step;
  comments = std::move(remark);
  std::string name = nameFor(variable);
  line("for " + name + " in " + heading + "):");

  llvm::StringMap<Value> outside = holders;
  Scope scope;
  for (const auto &each : holders)
    if (!llvm::is_contained(names, each.first()))
      scope.foreign.insert(each.first());
  for (const std::string &each : names)
    scope.results.insert(each);
  for (auto [each, carried] :
       llvm::zip_equal(names, loop.getRegionIterArgs()))
    holders[each] = carried;
  holders[name] = variable;
  scope.foreign.erase(name);
  scopes.push_back(std::move(scope));
  if (failed(writeBody(*loop.getBody(), names)))
    return failure();
  scopes.pop_back();
  holders = std::move(outside);
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
  if (failed(writeBody(*branch.thenBlock(), names)))
    return failure();
  // What both sides set is seen behind them.
  for (const auto &each : scopes.back().set)
    if (!llvm::is_contained(names, each.getKey()))
      scope.foreign.insert(each.getKey());
  scopes.back() = std::move(scope);
  holders = outside;
  if (branch.elseBlock()) {
    const std::string before = out;
    out.clear();
    if (failed(writeBody(*branch.elseBlock(), names)))
      return failure();
    const std::string other = std::exchange(out, before);
    // An empty side is left out where nothing is lost by it.
    const std::string empty = std::string(4 * (depth + 1), ' ') + "pass\n";
    if (other != empty || names.empty())
      out += std::string(4 * depth, ' ') + "else:\n" + other;
  }
  scopes.pop_back();
  holders = outside;
  for (auto [each, result] : llvm::zip_equal(names, branch.getResults()))
    set(each, result);
  return success();
}

LogicalResult KernelWriter::write(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return writeFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return writeIf(branch);
  if (isRepeated(op))
    return success();
  collectComment(op);
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
    std::string list = llvm::join(
        llvm::map_range(ArrayRef(texts).take_back(indices.size()),
                        [](const Text &text) { return text.text; }),
        ", ");
    line(use(memory) + "[" + list + "] = " + stored.text);
    return success();
  }
  // What repeats something pending takes its place.
  if (isa<SplatOp, BroadcastOp, PositionsOp>(op) && !isNamed(op->getResult(0)))
    for (Pending &each : pending)
      if (each.value == op->getOperand(0)) {
        if (!each.bare)
          each.bare = each.text;
        each.text = {textOfRepetition(op, each.text.text)};
        each.value = op->getResult(0);
        return success();
      }
  std::optional<Text> text = op->getNumResults() == 1 && op->getNumRegions() == 0
                                 ? textOf(op)
                                 : std::nullopt;
  if (!text)
    return op->emitError("is nothing that text of kernels has words for");
  Value result = op->getResult(0);
  if (!isNamed(result) && isUsedOnce(result) && !isa<ScratchOp>(op) &&
      result.getUses().begin()->getOwner()->getBlock() == op->getBlock()) {
    pending.push_back({result, *text});
    if (isa<arith::IndexCastOp>(op) &&
        getElementTypeOrSelf(op->getOperand(0)).isIndex() &&
        getElementTypeOrSelf(result).isInteger(64))
      pending.back().bare = {
          StringRef(text->text).drop_front(4).drop_back().str()};
    return success();
  }
  nameNext(result);
  std::string name = nameFor(result);
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

std::string KernelWriter::writeHeading() {
  std::string heading;
  auto fused =
      kernel.getLoc()->findInstanceOf<FusedLocWith<StringAttr>>();
  if (fused) {
    SmallVector<StringRef> lines;
    fused.getMetadata().getValue().split(lines, '\n');
    for (StringRef each : lines)
      heading += StringRef("# " + each.str()).rtrim().str() + "\n";
  }
  SmallVector<std::string> arguments;
  for (BlockArgument argument : kernel.getArguments()) {
    std::string name = nameFor(argument);
    holders[name] = argument;
    SizesAttr sizes = sizesOfArgument(kernel, argument.getArgNumber());
    std::string type = nameOf(getElementTypeOrSelf(argument));
    arguments.push_back(name + ": " + type +
                        (sizes ? "[" + sizesText(sizes.getSizes()) + "]" : ""));
  }
  for (ParameterAttr parameter : parametersOf(kernel).getParameters()) {
    std::string text = parameter.getName().str() + ": ";
    if (!parameter.isTuned()) {
      arguments.push_back(text + "constant");
      continue;
    }
    text += "tune(" +
            llvm::join(llvm::map_range(parameter.getChoices(),
                                       [](int64_t choice) {
                                         return std::to_string(choice);
                                       }),
                       ", ") +
            ")";
    if (parameter.getUntuned() != parameter.getChoices().front())
      text += " = " + std::to_string(parameter.getUntuned());
    arguments.push_back(text);
  }
  // As many in a line as fit.
  heading += "def " + kernel.getSymName().str() + "(";
  const std::string whole = llvm::join(arguments, ", ");
  constexpr size_t width = 100;
  if (heading.size() - heading.rfind('\n') + whole.size() + 2 <= width) {
    heading += whole;
  } else {
    for (const std::string &each : arguments)
      heading += "\n        " + each + ",";
    heading.pop_back();
  }
  heading += "):\n";
  if (auto text = kernel->getAttrOfType<StringAttr>(
          BlockDialect::documentationName))
    heading += "    \"\"\"" + text.str() + "\"\"\"\n";
  return heading;
}

FailureOr<std::string> KernelWriter::run() {
  if (!kernel.getFunctionType().getResults().empty() ||
      !llvm::hasSingleElement(kernel.getBody()))
    return kernel.emitError("kernels of text give no results and have one "
                            "block");
  if (isReserved(kernel.getSymName()) || !block::isName(kernel.getSymName()))
    return kernel.emitError("has a name that is none of a kernel in text");
  do {
    again = false;
    out.clear();
    depth = 1;
    comments.clear();
    pending.clear();
    names.clear();
    taken.clear();
    holders.clear();
    scopes.clear();
    // A name that is made up is no other value's.
    kernel.walk([&](Operation *op) {
      for (Value result : op->getResults())
        taken.insert(hintOf(result));
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            taken.insert(hintOf(argument));
    });
    std::string heading = writeHeading();
    if (failed(writeBlock(kernel.getBody().front())))
      return failure();
    for (const Pending &each : pending)
      nameNext(each.value);
    if (out.empty())
      line("pass");
    out = heading + out;
  } while (again);
  return out;
}

LogicalResult kernel::writeText(ModuleOp module, raw_ostream &stream) {
  std::string text;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || !block::isKernel(function))
      return op.emitError("is no kernel: a function with '")
             << BlockDialect::parametersName << "'";
    FailureOr<std::string> each = KernelWriter(function).run();
    if (failed(each))
      return failure();
    text += (text.empty() ? "" : "\n\n") + *each;
  }
  stream << text;
  return success();
}
