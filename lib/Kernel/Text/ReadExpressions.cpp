//===- ReadExpressions.cpp - Operators, names and subscripts --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

MaybeOperand KernelReader::read(const Expression &expression) {
  switch (expression.kind) {
  case Expression::Kind::Integer:
    return Operand::ofInteger(expression.integer);
  case Expression::Kind::Float:
    return Operand::ofFloat(expression.number);
  case Expression::Kind::Truth:
    return Operand::ofTruth(expression.integer != 0);
  case Expression::Kind::None:
  case Expression::Kind::All:
    return refuse(expression.place, "'None' and ':' stand only in subscripts");
  case Expression::Kind::Name:
    return readName(expression);
  case Expression::Kind::Unary:
    return readUnary(expression);
  case Expression::Kind::Binary:
    return readBinary(expression);
  case Expression::Kind::Call:
    return readCall(expression);
  case Expression::Kind::Subscript:
    return readSubscript(expression);
  }
  llvm_unreachable("all kinds are handled");
}

MaybeOperand KernelReader::readName(const Expression &expression) {
  const std::string &name = expression.text;
  if (auto found = variables.find(name); found != variables.end())
    return Operand{found->second};
  if (isSizeName(name))
    return Operand{SizeOp::create(builder, location(expression.place),
                                  SizeAttr::getSorted(context, 1, {name}))
                       .getResult()};
  if (name == "inf")
    return Operand::ofFloat(HUGE_VAL);
  if (name == "nan")
    return Operand::ofFloat(std::nan(""));
  if (outOfReach.contains(name))
    return refuse(expression.place,
                  "'" + name +
                      "' is set only within a loop, or on one side of "
                      "a branch, before this");
  return refuse(expression.place, "'" + name + "' is not set before this");
}

MaybeOperand KernelReader::readUnary(const Expression &expression) {
  MaybeOperand operand = read(*expression.operands[0]);
  if (!operand)
    return std::nullopt;
  const Place place = expression.place;
  if (operand->value && isa<MemRefType>(operand->value.getType()))
    return refuse(place, "memory is read by its elements, as in x[i]");
  if (expression.text == "-") {
    if (!operand->value) {
      if (operand->literal == NumberKind::Truth)
        return refuse(place, "truth has no sign");
      operand->integer =
          static_cast<int64_t>(0 - static_cast<uint64_t>(operand->integer));
      operand->number = -operand->number;
      return operand;
    }
    if (isa<FloatType>(getElementTypeOrSelf(operand->value))) {
      Value value = operand->value;
      return Operand{
          arith::NegFOp::create(builder, location(place), value).getResult()};
    }
    return combine(place, "-", Operand::ofInteger(0), *operand);
  }
  // `not` of truth, and `~` of bits.
  const bool isTruth = operand->value
                           ? getElementTypeOrSelf(operand->value).isInteger(1)
                           : operand->literal == NumberKind::Truth;
  if (expression.text == "not" &&
      (!isTruth ||
       (operand->value && block::isBlock(operand->value.getType()))))
    return refuse(place, "'not' is for what is true or false; '~' is for "
                         "blocks of it");
  if (!operand->value && isTruth)
    return Operand::ofTruth(operand->integer == 0);
  return combine(place, "^", *operand,
                 isTruth ? Operand::ofTruth(true) : Operand::ofInteger(-1));
}

MaybeOperand KernelReader::fold(Place place, StringRef word, Operand lhs,
                                Operand rhs) {
  const auto isTruth = [](const Operand &each) {
    return each.literal == NumberKind::Truth;
  };
  if (isTruth(lhs) != isTruth(rhs))
    return refuse(place, "truth and numbers do not go together");
  const bool isFloat = lhs.literal == NumberKind::Float ||
                       rhs.literal == NumberKind::Float || word == "/";
  const double a = isFloat && lhs.literal == NumberKind::Integer
                       ? double(lhs.integer)
                       : lhs.number;
  const double b = isFloat && rhs.literal == NumberKind::Integer
                       ? double(rhs.integer)
                       : rhs.number;
  if (isTruth(lhs)) {
    if (word == "and" || word == "&")
      return Operand::ofTruth(lhs.integer & rhs.integer);
    if (word == "or" || word == "|")
      return Operand::ofTruth(lhs.integer | rhs.integer);
    if (word == "^")
      return Operand::ofTruth(lhs.integer != rhs.integer);
    return refuse(place, "'" + word + "' is not for truth");
  }
  if (llvm::is_contained({"<", "<=", ">", ">=", "==", "!="}, word)) {
    const auto compare = [&](auto x, auto y) {
      return word == "<"    ? x < y
             : word == "<=" ? x <= y
             : word == ">"  ? x > y
             : word == ">=" ? x >= y
             : word == "==" ? x == y
                            : x != y;
    };
    return Operand::ofTruth(isFloat ? compare(a, b)
                                    : compare(lhs.integer, rhs.integer));
  }
  if (isFloat) {
    if (word == "+")
      return Operand::ofFloat(a + b);
    if (word == "-")
      return Operand::ofFloat(a - b);
    if (word == "*")
      return Operand::ofFloat(a * b);
    if (word == "/" && b != 0)
      return Operand::ofFloat(a / b);
    return refuse(place, "'" + word + "' is not for these numbers");
  }
  int64_t result = 0;
  bool overflows = false;
  if (word == "+")
    overflows = llvm::AddOverflow(lhs.integer, rhs.integer, result);
  else if (word == "-")
    overflows = llvm::SubOverflow(lhs.integer, rhs.integer, result);
  else if (word == "*")
    overflows = llvm::MulOverflow(lhs.integer, rhs.integer, result);
  else if (word == "//" && rhs.integer > 0)
    result = llvm::divideFloorSigned(lhs.integer, rhs.integer);
  else if (word == "%" && rhs.integer > 0)
    result = llvm::mod(lhs.integer, rhs.integer);
  else if (word == "<<" && rhs.integer >= 0 && rhs.integer < 63)
    overflows =
        llvm::MulOverflow(lhs.integer, int64_t(1) << rhs.integer, result);
  else if (word == ">>" && rhs.integer >= 0 && rhs.integer < 64)
    result = lhs.integer >> rhs.integer;
  else if (word == "&")
    result = lhs.integer & rhs.integer;
  else if (word == "|")
    result = lhs.integer | rhs.integer;
  else if (word == "^")
    result = lhs.integer ^ rhs.integer;
  else
    return refuse(place, "'" + word + "' is not for these numbers");
  if (overflows)
    return refuse(place, "the number is too large");
  return Operand::ofInteger(result);
}

/// Whether something in `expression` is read from memory.
static bool readsMemory(const Expression &expression) {
  const bool isAccess =
      expression.kind == Expression::Kind::Subscript &&
      !llvm::all_of(llvm::drop_begin(expression.operands),
                    [](const auto &each) {
                      return each->kind == Expression::Kind::None ||
                             each->kind == Expression::Kind::All;
                    });
  return isAccess || llvm::any_of(expression.operands, [](const auto &each) {
           return readsMemory(*each);
         });
}

MaybeOperand KernelReader::readBinary(const Expression &expression) {
  // Python would not look at what the first operand makes needless.
  if ((expression.text == "and" || expression.text == "or") &&
      readsMemory(*expression.operands[1]))
    return refuse(expression.operands[1]->place,
                  "what stands behind '" + expression.text +
                      "' is computed in any case, and must not read memory: "
                      "read it before, or within 'if'");
  MaybeOperand lhs = read(*expression.operands[0]);
  MaybeOperand rhs = lhs ? read(*expression.operands[1]) : std::nullopt;
  if (!rhs)
    return std::nullopt;
  return combine(expression.place, expression.text, *lhs, *rhs);
}

static bool isInteger(const Operand &operand) {
  if (!operand.value)
    return operand.literal == NumberKind::Integer;
  Type type = operand.value.getType();
  return isa<RangeType>(type) ||
         (!isa<MemRefType>(type) &&
          kindOf(getElementTypeOrSelf(type)) == NumberKind::Integer);
}

/// As Python has it, with the divisor's sign: `a - a // b * b`, which is how it
/// is written. A size is there as often as it stands in that.
MaybeOperand KernelReader::remainder(Place place, Operand lhs, Operand rhs) {
  Operand dividend = lhs, factor = rhs;
  if (lhs.value)
    if (auto size = lhs.value.getDefiningOp<SizeOp>()) {
      OpBuilder behind(context);
      behind.setInsertionPointAfter(size);
      dividend.value = behind.clone(*size)->getResult(0);
    }
  // A range less something would be a range.
  if (lhs.value)
    lhs.value = withoutRange(location(place), lhs.value);
  MaybeOperand quotient = combine(place, "//", dividend, rhs);
  if (!quotient)
    return std::nullopt;
  if (rhs.value)
    if (auto size = rhs.value.getDefiningOp<SizeOp>())
      factor.value = builder.clone(*size)->getResult(0);
  MaybeOperand whole = combine(place, "*", *quotient, factor);
  return whole ? combine(place, "-", lhs, *whole) : std::nullopt;
}

MaybeOperand KernelReader::combine(Place place, StringRef word, Operand lhs,
                                   Operand rhs) {
  if (!lhs.value && !rhs.value)
    return fold(place, word, lhs, rhs);
  Location where = location(place);
  // A range goes on or back as a whole.
  const auto isRange = [](const Operand &operand) {
    return operand.value && isa<RangeType>(operand.value.getType());
  };
  const auto isOneIndex = [](const Operand &operand) {
    return operand.value ? operand.value.getType().isIndex()
                         : operand.literal == NumberKind::Integer;
  };
  if (word == "+" && isRange(rhs) && isOneIndex(lhs))
    std::swap(lhs, rhs);
  if (isRange(lhs) && isOneIndex(rhs) && (word == "+" || word == "-")) {
    if (word == "-") {
      MaybeOperand negated =
          rhs.value ? combine(place, "-", Operand::ofInteger(0), rhs)
                    : Operand::ofInteger(static_cast<int64_t>(
                          0 - static_cast<uint64_t>(rhs.integer)));
      rhs = *negated;
    }
    std::optional<Value> by = indexOf(place, rhs);
    if (!by)
      return std::nullopt;
    return Operand{ShiftOp::create(builder, where, lhs.value, *by).getResult()};
  }
  if (word == "%" && isInteger(lhs) && isInteger(rhs))
    return remainder(place, lhs, rhs);
  std::optional<SmallVector<Value>> values = unify(place, {lhs, rhs});
  if (!values)
    return std::nullopt;
  Type type = getElementTypeOrSelf((*values)[0]);
  const ElementwiseWord *found = findWord(word, kindOf(type), 2);
  if (!found)
    return refuse(place, "'" + word + "' is not for " + nameOf(type));
  if (kindOf(type) == NumberKind::Float && found->predicate >= 0)
    return Operand{arith::CmpFOp::create(
                       builder, where,
                       static_cast<arith::CmpFPredicate>(found->predicate),
                       (*values)[0], (*values)[1])
                       .getResult()};
  if (found->predicate >= 0)
    return Operand{arith::CmpIOp::create(
                       builder, where,
                       static_cast<arith::CmpIPredicate>(found->predicate),
                       (*values)[0], (*values)[1])
                       .getResult()};
  Operation *op = builder.create(where, builder.getStringAttr(found->operation),
                                 *values, (*values)[0].getType());
  return Operand{op->getResult(0)};
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

std::optional<KernelReader::Access>
KernelReader::readAccess(const Expression &subscript) {
  const Expression &base = *subscript.operands[0];
  MaybeOperand memory = read(base);
  if (!memory)
    return std::nullopt;
  if (!memory->value || !isa<MemRefType>(memory->value.getType())) {
    refuse(subscript.place, "only memory has elements to set");
    return std::nullopt;
  }
  Access access{memory->value};
  for (const auto &each : llvm::drop_begin(subscript.operands)) {
    if (each->kind == Expression::Kind::None) {
      access.axes.push_back(access.sizes.size() + access.axes.size());
      continue;
    }
    if (each->kind == Expression::Kind::All) {
      refuse(each->place, "memory is read by ranges: block(0, SIZE) for ':'");
      return std::nullopt;
    }
    MaybeOperand index = read(*each);
    if (!index)
      return std::nullopt;
    if (index->value && (isa<RangeType>(index->value.getType()) ||
                         isBlockOfIndices(index->value.getType()))) {
      llvm::append_range(access.sizes, sizesOfPlaces(index->value.getType()));
      access.indices.push_back(index->value);
      continue;
    }
    std::optional<Value> one = indexOf(each->place, *index);
    if (!one)
      return std::nullopt;
    access.indices.push_back(*one);
  }
  const int64_t rank = cast<MemRefType>(access.memory.getType()).getRank();
  if (static_cast<int64_t>(access.indices.size()) != rank) {
    refuse(subscript.place, "memory of " + Twine(rank) + " dimensions has " +
                                Twine(access.indices.size()) + " indices");
    return std::nullopt;
  }
  return access;
}

MaybeOperand KernelReader::expand(Place place, Value value,
                                  ArrayRef<unsigned> axes) {
  for (unsigned axis : axes) {
    SmallVector<SizeAttr> sizes(sizesOrNone(value.getType()));
    if (sizes.empty() || sizes.size() == mostDimensions)
      return refuse(place, "one number has no axes, and a block has at most " +
                               Twine(mostDimensions));
    sizes.insert(sizes.begin() + axis, SizeAttr::get(context, 1, {}));
    value = ExpandOp::create(builder, location(place),
                             blockOf(sizes, getElementTypeOrSelf(value)), value,
                             axis);
  }
  return Operand{value};
}

MaybeOperand KernelReader::readSubscript(const Expression &expression) {
  const Expression &base = *expression.operands[0];
  // Memory has a name; all else is a block.
  auto known = base.kind == Expression::Kind::Name ? variables.find(base.text)
                                                   : variables.end();
  if (known != variables.end() && isa<MemRefType>(known->second.getType())) {
    std::optional<Access> access = readAccess(expression);
    if (!access)
      return std::nullopt;
    Location where = location(expression.place);
    Type element = cast<MemRefType>(access->memory.getType()).getElementType();
    Value loaded =
        access->sizes.empty()
            ? memref::LoadOp::create(builder, where, access->memory,
                                     access->indices)
                  .getResult()
            : LoadOp::create(builder, where, blockOf(access->sizes, element),
                             access->memory, access->indices)
                  .getResult();
    return expand(expression.place, loaded, access->axes);
  }
  MaybeOperand operand = read(base);
  if (!operand)
    return std::nullopt;
  if (!operand->value)
    return refuse(expression.place, "a number has no elements");
  Value value = withoutRange(location(expression.place), operand->value);
  SmallVector<unsigned> axes;
  size_t dimensions = 0;
  for (auto [position, each] :
       llvm::enumerate(llvm::drop_begin(expression.operands))) {
    if (each->kind == Expression::Kind::None)
      axes.push_back(position);
    else if (each->kind == Expression::Kind::All)
      ++dimensions;
    else
      return refuse(each->place, "of a block no elements are taken: its "
                                 "subscript has ':' and 'None'");
  }
  if (!block::isBlock(value.getType()) ||
      dimensions != sizesOf(value.getType()).size())
    return refuse(expression.place, describe(value.getType()) +
                                        " has not as many dimensions as "
                                        "the subscript has ':'");
  return expand(expression.place, value, axes);
}
