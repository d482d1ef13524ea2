//===- Functions.cpp - Functions that every template has ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formatting.h"
#include "Objects.h"
#include "Operators.h"
#include "Parameters.h"
#include "Printing.h"

#include "sandwich/Support/CheckedMath.h"

using namespace sandwich;
using namespace sandwich::jinja;

static Result<Value> functionCycler(RenderState &state, const Value &,
                                    const Arguments &arguments) {
  if (arguments.positional.empty() || !arguments.keywords.empty())
    return makeError("needs items to cycle through");
  state.keep(arguments.positional.size() * sizeof(Value));
  return Value(state.make<Cycler>(arguments.positional));
}

/// What `dict(...)` and `namespace(...)` are made of.
static Result<std::vector<Dictionary::Entry>>
entriesOf(RenderState &state, const Arguments &arguments) {
  std::vector<Dictionary::Entry> entries;
  if (arguments.positional.size() > 1)
    return makeError("takes at most 1 positional argument");
  if (!arguments.positional.empty()) {
    const Value &source = arguments.positional[0];
    if (source.is(Value::Kind::Dictionary)) {
      entries = source.dictionary()->entries;
    } else {
      SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> pairs,
                                collect(state, source));
      for (const Value &pair : pairs) {
        SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items,
                                  collect(state, pair));
        if (items.size() != 2)
          return makeError("needs pairs of keys and values");
        entries.emplace_back(std::move(items[0]), std::move(items[1]));
      }
    }
  }
  for (const Arguments::Keyword &keyword : arguments.keywords)
    entries.emplace_back(
        state.string(std::string(keyword.name), keyword.nameOrigin),
        keyword.value);
  return entries;
}

static Result<Value> functionDict(RenderState &state, const Value &,
                                  const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Dictionary::Entry> entries,
                            entriesOf(state, arguments));
  return state.dictionary(std::move(entries));
}

static Result<Value> functionJoiner(RenderState &state, const Value &,
                                    BoundArguments arguments) {
  Value separator = state.string(", ", Origin::Template);
  if (arguments[0])
    separator = *arguments[0];
  return Value(state.make<Joiner>(std::move(separator)));
}

static Result<Value> functionNamespace(RenderState &state, const Value &,
                                       const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Dictionary::Entry> entries,
                            entriesOf(state, arguments));
  auto &space = state.make<Namespace>();
  for (auto &[name, value] : entries) {
    if (!name.isString())
      return makeError("needs names that are strings, not ", typeName(name));
    state.spend(space.attributes().size() / 8);
    SANDWICH_RETURN_IF_ERROR(state.check());
    space.set(state, name.bytes(), name.origin(), std::move(value));
  }
  return Value(space);
}

static Result<Value> functionRaiseException(RenderState &state, const Value &,
                                            BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value message, toString(state, *arguments[0]));
  return makeError(ErrorKind::InvalidArgument, message.bytes());
}

static Result<Value> functionRange(RenderState &state, const Value &,
                                   BoundArguments arguments) {
  auto range = std::make_shared<Range>();
  Origin origin = Origin::Template;
  for (const std::optional<Value> &argument : arguments) {
    if (argument && !argument->isInteger())
      return makeError("needs integers, not ", typeName(*argument));
    origin = origin | originOf(argument);
  }
  range->stop = arguments[0]->integer();
  if (arguments[1]) {
    range->start = arguments[0]->integer();
    range->stop = arguments[1]->integer();
  }
  if (arguments[2])
    range->step = arguments[2]->integer();
  if (range->step == 0)
    return makeError("the step is zero");
  // As unsigned numbers, since the distance may have one bit more.
  const bool isDown = range->step < 0;
  const auto low = static_cast<uint64_t>(isDown ? range->stop : range->start);
  const auto high = static_cast<uint64_t>(isDown ? range->start : range->stop);
  const bool isEmpty =
      isDown ? range->start <= range->stop : range->start >= range->stop;
  const uint64_t step = isDown ? 0 - static_cast<uint64_t>(range->step)
                               : static_cast<uint64_t>(range->step);
  const uint64_t size = isEmpty ? 0 : divideUp(high - low, step);
  // As in jinja2's sandbox.
  constexpr uint64_t most = 100'000;
  if (size > most)
    return makeError("the range has ", size, " numbers; there must be at most ",
                     most);
  range->size = static_cast<int64_t>(size);
  state.spend(1);
  return Value(RangePointer(std::move(range)), origin);
}

static Result<Value> functionStrftimeNow(RenderState &state, const Value &,
                                         BoundArguments arguments) {
  if (!arguments[0]->isString())
    return makeError("needs a string, not ", typeName(*arguments[0]));
  return formatTime(state, *arguments[0], state.options.now);
}

const Function *jinja::findFunction(std::string_view name) {
  static constexpr Function functions[] = {
      {{"cycler", nullptr, functionCycler}},
      {{"dict", nullptr, functionDict}},
      {{"joiner", functionJoiner, nullptr, {"sep"}}},
      {{"namespace", nullptr, functionNamespace}},
      {{"raise_exception", functionRaiseException, nullptr, {"message"}, 1}},
      {{"range", functionRange, nullptr, {"start", "stop", "step"}, 1}},
      {{"strftime_now", functionStrftimeNow, nullptr, {"format"}, 1}},
  };
  return findByName(functions, name);
}
