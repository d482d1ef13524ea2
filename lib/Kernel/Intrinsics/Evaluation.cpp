//===- Evaluation.cpp - Intrinsics computed lane by lane ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;
using namespace sandwich::kernel;

namespace {

/// Computes expressions of one intrinsic. The first error stays; what is
/// computed from then on means nothing.
class Evaluator {
public:
  Evaluator(const Intrinsic &intrinsic, std::span<const Argument> arguments)
      : intrinsic(intrinsic), arguments(arguments) {}

  Result<std::vector<Lane>> run();

private:
  using Kind = Expression::Kind;

  /// A lane, or of expressions without a type an index as I64.
  Lane evaluate(const Expression &expression);
  int64_t evaluateIndex(const Expression &expression) {
    return toInteger(evaluate(expression));
  }
  Lane evaluateArgument(const Expression &expression);
  Lane evaluateFold(const Expression &expression);
  Lane convert(Lane lane, LaneType type);
  Lane saturate(Lane lane, LaneType type);
  Lane computeFloats(const Expression &expression, std::span<const Lane> lanes);
  Lane computeIntegers(const Expression &expression,
                       std::span<const Lane> lanes);
  Lane combine(Kind fold, Lane lhs, Lane rhs);
  /// The bytes of element `index` of pointer `parameter`; none if it has not so
  /// many.
  std::span<std::byte> elementOf(int64_t parameter, int64_t index);
  void fail(const std::string &reason) {
    if (!error)
      error = makeError(intrinsic.name, ": ", reason);
  }

  const Intrinsic &intrinsic;
  std::span<const Argument> arguments;
  std::map<std::string, int64_t, std::less<>> variables;
  std::optional<Error> error;
};

} // namespace

std::span<std::byte> Evaluator::elementOf(int64_t parameter, int64_t index) {
  const auto number = static_cast<size_t>(parameter);
  const Parameter &pointer = intrinsic.parameters[number];
  const int64_t bytes = std::max<int64_t>(bitsOf(pointer.type.lane) / 8, 1);
  std::span<std::byte> memory = arguments[number].memory;
  if (index < 0 || index >= static_cast<int64_t>(memory.size()) / bytes) {
    fail("element " + std::to_string(index) + " of " + pointer.name +
         " is not there");
    return {};
  }
  return memory.subspan(static_cast<size_t>(index * bytes),
                        static_cast<size_t>(bytes));
}

Lane Evaluator::evaluateArgument(const Expression &expression) {
  const auto number = static_cast<size_t>(expression.number);
  const ParameterType &type = intrinsic.parameters[number].type;
  const int64_t index = expression.operands.empty()
                            ? 0
                            : evaluateIndex(expression.operands.front());
  if (type.kind == ParameterType::Kind::Pointer) {
    const std::span<std::byte> bytes = elementOf(expression.number, index);
    Lane lane{type.lane, 0};
    std::ranges::copy(bytes, reinterpret_cast<std::byte *>(&lane.bits));
    return lane;
  }
  const std::vector<Lane> &lanes = arguments[number].lanes;
  if (index < 0 || index >= static_cast<int64_t>(lanes.size())) {
    fail("lane " + std::to_string(index) + " of " +
         intrinsic.parameters[number].name + " is not there");
    return {type.lane, 0};
  }
  return lanes[static_cast<size_t>(index)];
}

Lane Evaluator::convert(Lane lane, LaneType type) {
  if (isFloat(type))
    return fromDouble(isFloat(lane.type) ? toDouble(lane)
                      : lane.type == LaneType::U64
                          ? static_cast<double>(lane.bits)
                          : static_cast<double>(toInteger(lane)),
                      type);
  if (!isFloat(lane.type))
    return fromInteger(toInteger(lane), type);
  const double value = std::trunc(toDouble(lane));
  const int64_t bits = bitsOf(type);
  const double smallest = isSigned(type) ? -std::ldexp(1, bits - 1) : 0;
  const double end = std::ldexp(1, isSigned(type) ? bits - 1 : bits);
  // What no integer holds is the most negative one, or all ones.
  if (!(value >= smallest && value < end))
    return fromInteger(
        isSigned(type) ? static_cast<int64_t>(uint64_t(1) << (bits - 1)) : -1,
        type);
  return value >= std::ldexp(1, 63)
             ? Lane{type, static_cast<uint64_t>(value)}
             : fromInteger(static_cast<int64_t>(value), type);
}

Lane Evaluator::saturate(Lane lane, LaneType type) {
  const int64_t bits = bitsOf(type);
  const int64_t smallest = isSigned(type) ? -(int64_t(1) << (bits - 1)) : 0;
  const int64_t largest =
      (int64_t(1) << (isSigned(type) ? bits - 1 : bits)) - 1;
  if (!isFloat(lane.type))
    return fromInteger(std::clamp(toInteger(lane), smallest, largest), type);
  const double value = std::trunc(toDouble(lane));
  if (std::isnan(value))
    return {type, 0};
  return fromInteger(
      static_cast<int64_t>(std::clamp(value, static_cast<double>(smallest),
                                      static_cast<double>(largest))),
      type);
}

/// The sum of a product and an addend, rounded once to the type of `sum`.
static Lane multiplyAdd(Lane x, Lane y, Lane sum) {
  if (sum.type == LaneType::F64)
    return fromDouble(std::fma(toDouble(x), toDouble(y), toDouble(sum)),
                      sum.type);
  if (sum.type == LaneType::F32)
    return fromDouble(std::fma(static_cast<float>(toDouble(x)),
                               static_cast<float>(toDouble(y)),
                               static_cast<float>(toDouble(sum))),
                      sum.type);
  // A product of 22 bits and a sum of it are exact in f64, but for the last
  // ones of numbers far apart, which no rounding to 16 bits sees.
  return fromDouble(std::fma(toDouble(x), toDouble(y), toDouble(sum)),
                    sum.type);
}

Lane Evaluator::computeFloats(const Expression &expression,
                              std::span<const Lane> lanes) {
  const LaneType type = lanes.front().type;
  auto number = [&](size_t i) { return toDouble(lanes[i]); };
  // Of f32 and less f64 has more than twice the digits, so that rounding its
  // result once more gives what rounding once would.
  auto rounded = [&](double value) { return fromDouble(value, type); };
  const uint64_t sign = uint64_t(1) << (bitsOf(type) - 1);
  switch (expression.kind) {
  case Kind::Negate:
    return {type, lanes[0].bits ^ sign};
  case Kind::Absolute:
    return {type, lanes[0].bits & ~sign};
  case Kind::Add:
    return rounded(number(0) + number(1));
  case Kind::Subtract:
    return rounded(number(0) - number(1));
  case Kind::Multiply:
    return rounded(number(0) * number(1));
  case Kind::Divide:
    return rounded(number(0) / number(1));
  case Kind::Fma:
    return multiplyAdd(lanes[0], lanes[1], lanes[2]);
  case Kind::SquareRoot:
    return rounded(std::sqrt(number(0)));
  case Kind::Round:
    return rounded(std::nearbyint(number(0)));
  case Kind::Floor:
    return rounded(std::floor(number(0)));
  case Kind::Ceil:
    return rounded(std::ceil(number(0)));
  case Kind::Truncate:
    return rounded(std::trunc(number(0)));
  case Kind::PowerOfTwo:
    return rounded(std::exp2(number(0)));
  case Kind::Minimum:
  case Kind::Maximum: {
    if (std::isnan(number(0)) || std::isnan(number(1)))
      return rounded(std::nan(""));
    const bool takesFirst = expression.kind == Kind::Minimum
                                ? number(0) < number(1)
                                : number(0) > number(1);
    return lanes[takesFirst ? 0 : 1];
  }
  case Kind::Equal:
    return {LaneType::Bool, number(0) == number(1)};
  case Kind::NotEqual:
    return {LaneType::Bool, number(0) != number(1)};
  case Kind::Less:
    return {LaneType::Bool, number(0) < number(1)};
  case Kind::LessEqual:
    return {LaneType::Bool, number(0) <= number(1)};
  default:
    fail("floats have no such operation");
    return {type, 0};
  }
}

Lane Evaluator::computeIntegers(const Expression &expression,
                                std::span<const Lane> lanes) {
  const LaneType type = lanes.front().type;
  const bool compareBits = type == LaneType::U64;
  const int64_t x = toInteger(lanes[0]);
  const int64_t y = lanes.size() > 1 ? toInteger(lanes[1]) : 0;
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  auto wrapped = [&](uint64_t value) {
    return fromInteger(static_cast<int64_t>(value), type);
  };
  const bool less = compareBits ? ux < uy : x < y;
  switch (expression.kind) {
  case Kind::Negate:
    return wrapped(0 - ux);
  case Kind::Not:
    return wrapped(~ux);
  case Kind::Add:
    return wrapped(ux + uy);
  case Kind::Subtract:
    return wrapped(ux - uy);
  case Kind::Multiply:
    return wrapped(ux * uy);
  case Kind::Divide:
  case Kind::Remainder:
    if (y == 0 || (y == -1 && !compareBits)) {
      if (y == 0)
        fail("an integer is divided by 0");
      return wrapped(expression.kind == Kind::Divide ? 0 - ux : 0);
    }
    if (compareBits)
      return wrapped(expression.kind == Kind::Divide ? ux / uy : ux % uy);
    return fromInteger(expression.kind == Kind::Divide ? x / y : x % y, type);
  case Kind::And:
    return wrapped(ux & uy);
  case Kind::Or:
    return wrapped(ux | uy);
  case Kind::Xor:
    return wrapped(ux ^ uy);
  case Kind::ShiftLeft:
    return wrapped(y < 0 || y >= bitsOf(type) ? 0 : ux << y);
  case Kind::ShiftRight: {
    const bool isAll = y < 0 || y >= bitsOf(type);
    if (isSigned(type))
      return fromInteger(x >> (isAll ? bitsOf(type) - 1 : y), type);
    return wrapped(isAll ? 0 : ux >> y);
  }
  case Kind::Absolute:
    return wrapped(x < 0 ? 0 - ux : ux);
  case Kind::Minimum:
    return lanes[less ? 0 : 1];
  case Kind::Maximum:
    return lanes[less ? 1 : 0];
  case Kind::Equal:
    return {LaneType::Bool, x == y};
  case Kind::NotEqual:
    return {LaneType::Bool, x != y};
  case Kind::Less:
    return {LaneType::Bool, less};
  case Kind::LessEqual:
    return {LaneType::Bool, less || x == y};
  default:
    fail("integers have no such operation");
    return {type, 0};
  }
}

Lane Evaluator::combine(Kind fold, Lane lhs, Lane rhs) {
  Expression operation;
  operation.kind = fold == Kind::FoldAdd       ? Kind::Add
                   : fold == Kind::FoldMinimum ? Kind::Minimum
                   : fold == Kind::FoldMaximum ? Kind::Maximum
                                               : Kind::Or;
  const Lane lanes[] = {lhs, rhs};
  return isFloat(lhs.type) ? computeFloats(operation, lanes)
                           : computeIntegers(operation, lanes);
}

Lane Evaluator::evaluateFold(const Expression &expression) {
  std::vector<Lane> lanes;
  for (int64_t value = 0; value < expression.number; ++value) {
    variables[expression.name] = value;
    lanes.push_back(evaluate(expression.operands.front()));
  }
  variables.erase(expression.name);
  while (lanes.size() > 1) {
    const size_t half = lanes.size() / 2;
    for (size_t i = 0; i < half; ++i)
      lanes[i] = expression.pairs
                     ? combine(expression.kind, lanes[2 * i], lanes[2 * i + 1])
                     : combine(expression.kind, lanes[i], lanes[i + half]);
    lanes.resize(half);
  }
  return lanes.front();
}

Lane Evaluator::evaluate(const Expression &expression) {
  switch (expression.kind) {
  case Kind::Constant:
    return fromInteger(expression.number,
                       expression.type.value_or(LaneType::I64));
  case Kind::Undefined:
    return fromInteger(0, expression.type.value_or(LaneType::I64));
  case Kind::Index:
    return fromInteger(variables.find(expression.name)->second, LaneType::I64);
  case Kind::Immediate:
    return fromInteger(
        toInteger(
            arguments[static_cast<size_t>(expression.number)].lanes.front()),
        LaneType::I64);
  case Kind::Argument:
    return evaluateArgument(expression);
  case Kind::Select: {
    const bool holds = evaluate(expression.operands[0]).bits != 0;
    return evaluate(expression.operands[holds ? 1 : 2]);
  }
  case Kind::FoldAdd:
  case Kind::FoldMinimum:
  case Kind::FoldMaximum:
  case Kind::FoldOr:
    return evaluateFold(expression);
  default:
    break;
  }
  std::vector<Lane> lanes;
  for (const Expression &operand : expression.operands)
    lanes.push_back(evaluate(operand));
  switch (expression.kind) {
  case Kind::Convert:
    return convert(lanes[0], expression.type.value_or(LaneType::I64));
  case Kind::Saturate:
    return saturate(lanes[0], *expression.type);
  case Kind::Reinterpret:
    return {*expression.type, lanes[0].bits};
  default:
    return isFloat(lanes[0].type) ? computeFloats(expression, lanes)
                                  : computeIntegers(expression, lanes);
  }
}

Result<std::vector<Lane>> Evaluator::run() {
  std::vector<Lane> result;
  const int64_t lanes = intrinsic.store
                            ? intrinsic.store->lanes
                            : std::max<int64_t>(intrinsic.result->lanes, 1);
  for (int64_t lane = 0; lane < lanes && !error; ++lane) {
    variables["i"] = lane;
    if (!intrinsic.store) {
      result.push_back(evaluate(intrinsic.value));
      continue;
    }
    const Store &store = *intrinsic.store;
    if (store.condition && evaluate(*store.condition).bits == 0)
      continue;
    const Lane value = evaluate(store.value);
    const std::span<std::byte> bytes =
        elementOf(store.parameter, evaluateIndex(store.index));
    std::copy_n(reinterpret_cast<const std::byte *>(&value.bits), bytes.size(),
                bytes.begin());
  }
  if (error)
    return *error;
  return result;
}

/// Why `argument` is none of `type`; empty if it is one.
static std::string whyNot(const Argument &argument, const ParameterType &type) {
  if (type.kind == ParameterType::Kind::Pointer)
    return argument.lanes.empty() ? "" : "is memory";
  const int64_t lanes = std::max<int64_t>(type.lanes, 1);
  if (static_cast<int64_t>(argument.lanes.size()) != lanes)
    return "has " + std::to_string(lanes) + " lanes";
  for (const Lane &lane : argument.lanes)
    if (lane.type != type.lane)
      return "has lanes of " + std::string(name(type.lane));
  if (type.kind == ParameterType::Kind::Immediate)
    if (const int64_t value = toInteger(argument.lanes.front());
        value < type.first || value > type.last)
      return "is between " + std::to_string(type.first) + " and " +
             std::to_string(type.last);
  return "";
}

Result<std::vector<Lane>>
kernel::evaluate(const Intrinsic &intrinsic,
                 std::span<const Argument> arguments) {
  if (arguments.size() != intrinsic.parameters.size())
    return makeError(intrinsic.name, " has ", intrinsic.parameters.size(),
                     " parameters, not ", arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const std::string reason =
            whyNot(arguments[i], intrinsic.parameters[i].type);
        !reason.empty())
      return makeError(intrinsic.name, ": ", intrinsic.parameters[i].name, " ",
                       reason);
  return Evaluator(intrinsic, arguments).run();
}
