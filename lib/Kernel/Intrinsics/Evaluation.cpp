//===- Evaluation.cpp - Intrinsics computed lane by lane ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Lanes.h"

#include <algorithm>

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
  Lane compute(Kind kind, std::span<const Lane> operands);
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

Lane Evaluator::compute(Kind kind, std::span<const Lane> operands) {
  Result<Lane> lane = computeLane(kind, operands);
  if (lane)
    return *lane;
  fail(lane.error().message);
  return {operands.front().type, 0};
}

Lane Evaluator::combine(Kind fold, Lane lhs, Lane rhs) {
  const Kind kind = fold == Kind::FoldAdd       ? Kind::Add
                    : fold == Kind::FoldMinimum ? Kind::Minimum
                    : fold == Kind::FoldMaximum ? Kind::Maximum
                                                : Kind::Or;
  const Lane lanes[] = {lhs, rhs};
  return compute(kind, lanes);
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
    return convertLane(lanes[0], expression.type.value_or(LaneType::I64));
  case Kind::Saturate:
    return saturateLane(lanes[0], *expression.type);
  case Kind::Reinterpret:
    return {*expression.type, lanes[0].bits};
  default:
    return compute(expression.kind, lanes);
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
