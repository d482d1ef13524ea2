//===- Operators.cpp - Python's operators ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operators.h"

#include "Formatting.h"
#include "Iteration.h"
#include "Printing.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;
using namespace sandwich::jinja;

static std::string_view symbolOf(BinaryOperator operation) {
  switch (operation) {
  case BinaryOperator::Add:
    return "+";
  case BinaryOperator::Subtract:
    return "-";
  case BinaryOperator::Multiply:
    return "*";
  case BinaryOperator::Divide:
    return "/";
  case BinaryOperator::FloorDivide:
    return "//";
  case BinaryOperator::Remainder:
    return "%";
  case BinaryOperator::Power:
    return "**";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static Error tooLarge() { return Error{"an integer has more than 64 bits"}; }
static Error divisionByZero() { return Error{"division by zero"}; }

/// Rounded to minus infinity, as Python divides.
static int64_t floorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// `base` to the power of `exponent`, which is not negative.
static std::optional<int64_t> powerOf(int64_t base, int64_t exponent) {
  // Without these the loop could take as many turns as the exponent is large.
  if (base == 0 || base == 1)
    return exponent == 0 ? 1 : base;
  if (base == -1)
    return exponent % 2 == 0 ? 1 : -1;
  std::optional<int64_t> result = 1;
  for (; exponent > 0 && result; --exponent)
    result = checkedMultiply(*result, base);
  return result;
}

static Result<Value> applyToIntegers(BinaryOperator operation, int64_t a,
                                     int64_t b, Origin origin) {
  std::optional<int64_t> result;
  switch (operation) {
  case BinaryOperator::Add:
    result = checkedAdd(a, b);
    break;
  case BinaryOperator::Subtract:
    if (int64_t difference; !__builtin_sub_overflow(a, b, &difference))
      result = difference;
    break;
  case BinaryOperator::Multiply:
    result = checkedMultiply(a, b);
    break;
  case BinaryOperator::Divide:
    if (b == 0)
      return divisionByZero();
    return Value(static_cast<double>(static_cast<long double>(a) /
                                     static_cast<long double>(b)),
                 origin);
  case BinaryOperator::FloorDivide:
  case BinaryOperator::Remainder:
    if (b == 0)
      return divisionByZero();
    // The one quotient that does not fit, and whose remainder traps.
    if (b == -1) {
      if (operation == BinaryOperator::Remainder)
        return Value(int64_t{0}, origin);
      result = checkedMultiply<int64_t>(a, -1);
      break;
    }
    result = floorDivide(a, b);
    if (operation == BinaryOperator::Remainder)
      result = a - *result * b;
    break;
  case BinaryOperator::Power:
    if (b >= 0) {
      result = powerOf(a, b);
      break;
    }
    if (a == 0)
      return divisionByZero();
    return Value(std::pow(static_cast<double>(a), static_cast<double>(b)),
                 origin);
  }
  if (!result)
    return tooLarge();
  return Value(*result, origin);
}

/// The quotient, rounded to minus infinity, and what is left, as Python's
/// `float.__divmod__`.
static std::pair<double, double> divideFloats(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (quotient == 0)
    return {std::copysign(0.0, a / b), remainder};
  double whole = std::floor(quotient);
  if (quotient - whole > 0.5)
    whole += 1;
  return {whole, remainder};
}

static Result<Value> applyToFloats(BinaryOperator operation, double a, double b,
                                   Origin origin) {
  switch (operation) {
  case BinaryOperator::Add:
    return Value(a + b, origin);
  case BinaryOperator::Subtract:
    return Value(a - b, origin);
  case BinaryOperator::Multiply:
    return Value(a * b, origin);
  case BinaryOperator::Divide:
    if (b == 0)
      return divisionByZero();
    return Value(a / b, origin);
  case BinaryOperator::FloorDivide:
    if (b == 0)
      return divisionByZero();
    return Value(divideFloats(a, b).first, origin);
  case BinaryOperator::Remainder:
    if (b == 0)
      return divisionByZero();
    return Value(divideFloats(a, b).second, origin);
  case BinaryOperator::Power:
    break;
  }
  if (a == 0 && b < 0)
    return divisionByZero();
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    return makeError("complex numbers are not supported");
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
    return makeError("a number is out of range");
  return Value(power, origin);
}

//===----------------------------------------------------------------------===//
// Strings and lists
//===----------------------------------------------------------------------===//

MarkedText jinja::escapeText(const MarkedText &text) {
  MarkedText escaped;
  const std::string &bytes = text.bytes();
  size_t done = 0;
  for (size_t i = 0; i != bytes.size(); ++i) {
    std::string_view entity;
    switch (bytes[i]) {
    case '&':
      entity = "&amp;";
      break;
    case '<':
      entity = "&lt;";
      break;
    case '>':
      entity = "&gt;";
      break;
    case '\'':
      entity = "&#39;";
      break;
    case '"':
      entity = "&#34;";
      break;
    default:
      continue;
    }
    escaped.append(text, done, i);
    escaped.append(entity, text.slice(i, i + 1).origin());
    done = i + 1;
  }
  escaped.append(text, done, text.size());
  return escaped;
}

static Value addStrings(RenderState &state, const Value &left,
                        const Value &right) {
  const bool isMarkup = left.string().isMarkup || right.string().isMarkup;
  TextBuilder sum(state);
  for (const Value *each : {&left, &right})
    if (isMarkup && !each->string().isMarkup)
      sum.append(escapeText(each->text()));
    else
      sum.append(each->text());
  return sum.finish(isMarkup);
}

static Value addSequences(RenderState &state, const Value &left,
                          const Value &right) {
  std::vector<Value> items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  return state.sequence(std::move(items), left.isTuple(),
                        left.origin() | right.origin());
}

static Value repeat(RenderState &state, const Value &value,
                    const Value &count) {
  const int64_t times = std::max<int64_t>(0, count.integer());
  const Origin origin = value.origin() | count.origin();
  if (value.isString()) {
    TextBuilder repeated(state);
    for (int64_t i = 0; i < times && !value.text().empty(); ++i) {
      if (state.isExhausted())
        break;
      // How often data says so is no text of the template.
      if (count.origin() == Origin::Data)
        repeated.append(value.bytes(), Origin::Data);
      else
        repeated.append(value.text());
      state.spend(1);
    }
    return repeated.finish(value.string().isMarkup);
  }
  const std::vector<Value> &items = value.items();
  std::vector<Value> repeated;
  if (!items.empty() && static_cast<uint64_t>(times) >
                            state.memoryLeft() / (items.size() * sizeof(Value)))
    state.exhaustMemory();
  for (int64_t i = 0; i < times && !items.empty() && !state.isExhausted(); ++i)
    repeated.insert(repeated.end(), items.begin(), items.end());
  return state.sequence(std::move(repeated), value.isTuple(), origin);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Result<Value> jinja::applyBinary(RenderState &state, BinaryOperator operation,
                                 const Value &left, const Value &right) {
  if (left.isUndefined())
    return undefinedError(left);
  if (left.isString() && operation == BinaryOperator::Remainder)
    return formatPercent(state, left, right);
  if (right.isUndefined())
    return undefinedError(right);
  const Origin origin = left.origin() | right.origin();
  if (left.isInteger() && right.isInteger())
    return applyToIntegers(operation, left.integer(), right.integer(), origin);
  if (left.isNumber() && right.isNumber())
    return applyToFloats(operation, left.number(), right.number(), origin);
  if (operation == BinaryOperator::Add) {
    if (left.isString() && right.isString())
      return addStrings(state, left, right);
    if ((left.isList() && right.isList()) ||
        (left.isTuple() && right.isTuple()))
      return addSequences(state, left, right);
  }
  if (operation == BinaryOperator::Multiply) {
    auto isRepeatable = [](const Value &value) {
      return value.isString() || value.is(Value::Kind::Sequence);
    };
    if (isRepeatable(left) && right.isInteger())
      return repeat(state, left, right);
    if (isRepeatable(right) && left.isInteger())
      return repeat(state, right, left);
  }
  return makeError("'", symbolOf(operation), "' does not go with ",
                   typeName(left), " and ", typeName(right));
}

Result<Value> jinja::applyUnary(RenderState &state, UnaryOperator operation,
                                const Value &operand) {
  if (operation == UnaryOperator::Not)
    return Value(!isTrue(operand), Origin::Template);
  if (operand.isUndefined())
    return undefinedError(operand);
  if (!operand.isNumber())
    return makeError("a sign does not go with ", typeName(operand));
  if (operand.is(Value::Kind::Float))
    return Value(operation == UnaryOperator::Minus ? -operand.number()
                                                   : operand.number(),
                 operand.origin());
  if (operation == UnaryOperator::Plus)
    return Value(operand.integer(), operand.origin());
  const std::optional<int64_t> negated =
      checkedMultiply<int64_t>(operand.integer(), -1);
  if (!negated)
    return tooLarge();
  return Value(*negated, operand.origin());
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

static bool equalSequences(RenderState &state, const Value &a, const Value &b) {
  if (a.isTuple() != b.isTuple() || a.items().size() != b.items().size())
    return false;
  for (size_t i = 0; i != a.items().size(); ++i)
    if (!equals(state, a.items()[i], b.items()[i]))
      return false;
  return true;
}

static bool equalDictionaries(RenderState &state, const Dictionary &a,
                              const Dictionary &b) {
  if (a.entries.size() != b.entries.size())
    return false;
  for (const auto &[key, value] : a.entries) {
    state.spend(1 + keyCost(key));
    const Value *other = b.find(key);
    if (!other || !equals(state, value, *other))
      return false;
  }
  return true;
}

static bool equalRanges(const Range &a, const Range &b) {
  if (a.size != b.size)
    return false;
  if (a.size == 0)
    return true;
  return a.start == b.start && (a.size == 1 || a.step == b.step);
}

bool jinja::equals(RenderState &state, const Value &a, const Value &b) {
  state.spend(1);
  // The result does not matter then.
  if (state.isExhausted())
    return false;
  if (a.isNumber() && b.isNumber())
    return std::is_eq(compareNumbers(a, b));
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Value::Kind::Undefined:
  case Value::Kind::None:
    return true;
  case Value::Kind::String:
    state.spendBytes(std::min(a.text().size(), b.text().size()));
    return a.bytes() == b.bytes();
  case Value::Kind::Sequence:
    return a.isSame(b) || equalSequences(state, a, b);
  case Value::Kind::Dictionary:
    return a.isSame(b) ||
           equalDictionaries(state, *a.dictionary(), *b.dictionary());
  case Value::Kind::View:
    // Views of items compare as sets do; of one dictionary that is all.
    return a.view().part == b.view().part &&
           a.view().part != DictionaryView::Part::Values &&
           equalDictionaries(state, *a.view().dictionary, *b.view().dictionary);
  case Value::Kind::Range:
    return equalRanges(a.range(), b.range());
  default:
    return a.isSame(b);
  }
}

Result<bool> jinja::isLess(RenderState &state, const Value &a, const Value &b) {
  state.spend(1);
  SANDWICH_RETURN_IF_ERROR(state.check());
  for (const Value *each : {&a, &b})
    if (each->isUndefined())
      return undefinedError(*each);
  if (a.isNumber() && b.isNumber())
    return std::is_lt(compareNumbers(a, b));
  if (a.isString() && b.isString()) {
    state.spendBytes(std::min(a.text().size(), b.text().size()));
    return a.bytes() < b.bytes();
  }
  if ((a.isList() && b.isList()) || (a.isTuple() && b.isTuple())) {
    // The first items that differ decide.
    const auto &left = a.items(), &right = b.items();
    for (size_t i = 0; i != std::min(left.size(), right.size()); ++i)
      if (!equals(state, left[i], right[i]))
        return isLess(state, left[i], right[i]);
    return left.size() < right.size();
  }
  return makeError("'<' does not go with ", typeName(a), " and ", typeName(b));
}

/// Whether `a <= b`, which of numbers that are none is not `not b < a`.
static Result<bool> isLessOrEqual(RenderState &state, const Value &a,
                                  const Value &b) {
  if (a.isNumber() && b.isNumber())
    return std::is_lteq(compareNumbers(a, b));
  SANDWICH_ASSIGN_OR_RETURN(bool isGreater, isLess(state, b, a));
  return !isGreater;
}

Result<bool> jinja::compare(RenderState &state, ComparisonOperator operation,
                            const Value &left, const Value &right) {
  switch (operation) {
  case ComparisonOperator::Equal:
    return equals(state, left, right);
  case ComparisonOperator::NotEqual:
    return !equals(state, left, right);
  case ComparisonOperator::Less:
    return isLess(state, left, right);
  case ComparisonOperator::LessOrEqual:
    return isLessOrEqual(state, left, right);
  case ComparisonOperator::Greater:
    return isLess(state, right, left);
  case ComparisonOperator::GreaterOrEqual:
    return isLessOrEqual(state, right, left);
  case ComparisonOperator::In:
    return contains(state, right, left);
  case ComparisonOperator::NotIn: {
    SANDWICH_ASSIGN_OR_RETURN(bool isIn, contains(state, right, left));
    return !isIn;
  }
  }
  return false;
}

Result<bool> jinja::contains(RenderState &state, const Value &container,
                             const Value &item) {
  if (container.isString()) {
    if (!item.isString())
      return makeError("'in' a string needs a string, not ", typeName(item));
    state.spendBytes(container.text().size());
    return findText(container.bytes(), item.bytes(), 0) !=
           std::string_view::npos;
  }
  if (container.is(Value::Kind::Dictionary) ||
      (container.is(Value::Kind::View) &&
       container.view().part == DictionaryView::Part::Keys)) {
    const Dictionary &dictionary = container.is(Value::Kind::Dictionary)
                                       ? *container.dictionary()
                                       : *container.view().dictionary;
    // An undefined value can be looked for, and is not there.
    if (item.isUndefined())
      return false;
    if (!isHashable(item))
      return makeError("a ", typeName(item), " cannot be a key");
    state.spend(keyCost(item));
    return dictionary.find(item) != nullptr;
  }
  SANDWICH_ASSIGN_OR_RETURN(ValueIterator iterator,
                            ValueIterator::over(container));
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> each, iterator.next(state));
    if (!each)
      return false;
    if (equals(state, *each, item))
      return true;
  }
}

//===----------------------------------------------------------------------===//
// Sorting and slices
//===----------------------------------------------------------------------===//

/// Merges sorted runs of `width` indexes into runs of twice as many. With any
/// comparison, also one that is no order, it ends and stays within bounds.
static Status mergeRuns(RenderState &state, const std::vector<Value> &keys,
                        const std::vector<size_t> &from,
                        std::vector<size_t> &to, size_t width,
                        bool isReversed) {
  const size_t count = from.size();
  for (size_t begin = 0; begin < count; begin += 2 * width) {
    const size_t middle = std::min(begin + width, count);
    const size_t end = std::min(begin + 2 * width, count);
    size_t left = begin, right = middle;
    for (size_t place = begin; place != end; ++place) {
      bool takesRight = left == middle;
      if (left != middle && right != end) {
        // Of equal ones the left stays first, in either direction.
        const Value &a = keys[from[left]], &b = keys[from[right]];
        SANDWICH_ASSIGN_OR_RETURN(takesRight, isReversed ? isLess(state, a, b)
                                                         : isLess(state, b, a));
      }
      to[place] = from[takesRight ? right++ : left++];
    }
  }
  return {};
}

Status jinja::sortByKeys(RenderState &state, std::vector<Value> &values,
                         std::vector<Value> &keys, bool isReversed) {
  std::vector<size_t> order(values.size()), merged(values.size());
  for (size_t i = 0; i != order.size(); ++i)
    order[i] = i;
  for (size_t width = 1; width < order.size(); width *= 2) {
    SANDWICH_RETURN_IF_ERROR(
        mergeRuns(state, keys, order, merged, width, isReversed));
    order.swap(merged);
  }
  std::vector<Value> sortedValues, sortedKeys;
  for (size_t i : order) {
    sortedValues.push_back(values[i]);
    sortedKeys.push_back(keys[i]);
  }
  values = std::move(sortedValues);
  keys = std::move(sortedKeys);
  return {};
}

/// A part of a slice, or `otherwise` where there is none.
static Result<int64_t> slicePart(const Value *part, int64_t otherwise) {
  if (!part || part->isNone())
    return otherwise;
  if (!part->isInteger())
    return makeError("a slice needs integers, not ", typeName(*part));
  return part->integer();
}

Result<SliceIndexes> jinja::sliceIndexes(const Value *start, const Value *stop,
                                         const Value *step, size_t length) {
  const auto size = static_cast<int64_t>(length);
  SANDWICH_ASSIGN_OR_RETURN(int64_t stride, slicePart(step, 1));
  if (stride == 0)
    return makeError("the step of a slice is zero");
  // Larger ones than the length are all the same, and cannot overflow then.
  stride = std::clamp(stride, -size - 1, size + 1);
  const bool isBackward = stride < 0;
  auto bounded = [&](int64_t index) {
    if (index < 0)
      index = index < -size ? -1 : index + size;
    return std::clamp(index, isBackward ? int64_t{-1} : int64_t{0},
                      isBackward ? size - 1 : size);
  };
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  SANDWICH_ASSIGN_OR_RETURN(int64_t first,
                            slicePart(start, isBackward ? most : 0));
  SANDWICH_ASSIGN_OR_RETURN(int64_t last,
                            slicePart(stop, isBackward ? least : most));
  first = bounded(first);
  last = bounded(last);
  const int64_t distance = isBackward ? first - last : last - first;
  const int64_t count =
      distance > 0 ? divideUp(distance, isBackward ? -stride : stride) : 0;
  return SliceIndexes{first, last, count, stride};
}
