//===- Builtins.cpp - Calls by the names of parameters --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Builtins.h"

#include <algorithm>
#include <string>

using namespace sandwich;
using namespace sandwich::jinja;

/// Calls `builtin` with its arguments by parameter.
static Result<Value> callBound(RenderState &state, const Builtin &builtin,
                               const Value &self, const Arguments &arguments) {
  const auto *end = std::ranges::find(builtin.parameters, std::string_view());
  const auto count = static_cast<size_t>(end - builtin.parameters.begin());
  if (arguments.positional.size() > count)
    return makeError("takes at most ", count, " arguments, not ",
                     arguments.positional.size());
  std::array<std::optional<Value>, Builtin::maxParameters> bound;
  std::ranges::copy(arguments.positional, bound.begin());
  for (const Arguments::Keyword &keyword : arguments.keywords) {
    const auto *found =
        std::find(builtin.parameters.begin(), end, keyword.name);
    if (found == end)
      return makeError("has no argument '", excerpt(keyword.name), "'");
    std::optional<Value> &place =
        bound[static_cast<size_t>(found - builtin.parameters.begin())];
    if (place)
      return makeError("gets the argument '", keyword.name, "' twice");
    place = keyword.value;
  }
  for (size_t i = 0; i != builtin.required; ++i)
    if (!bound[i])
      return makeError("needs the argument '", builtin.parameters[i], "'");
  return builtin.call(state, self, bound);
}

Result<Value> jinja::callBuiltin(RenderState &state, std::string_view kind,
                                 const Builtin &builtin, const Value &self,
                                 const Arguments &arguments) {
  const auto name = [&] {
    return "the " + std::string(kind) + " '" + std::string(builtin.name) + "'";
  };
  if (!builtin.call && !builtin.freeCall)
    return makeError(name(), " is not supported");
  Result<Value> result = builtin.freeCall
                             ? builtin.freeCall(state, self, arguments)
                             : callBound(state, builtin, self, arguments);
  // What a template raises is a message of its own.
  if (result || result.error().kind == ErrorKind::InvalidArgument)
    return result;
  return result.error().inContext(name());
}
