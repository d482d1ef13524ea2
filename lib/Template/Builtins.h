//===- Builtins.h - Filters, tests, functions and methods -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_BUILTINS_H
#define SANDWICH_LIB_TEMPLATE_BUILTINS_H

#include "RenderState.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace sandwich::jinja {

/// The arguments of a call by parameter; nothing for those not given.
using BoundArguments = std::span<const std::optional<Value>>;

/// Something that is called by a name of jinja2's or Python's, with what it is
/// called on: the filtered or tested value, or the receiver of a method.
struct Builtin {
  using Call = Result<Value> (*)(RenderState &state, const Value &self,
                                 BoundArguments arguments);
  using FreeCall = Result<Value> (*)(RenderState &state, const Value &self,
                                     const Arguments &arguments);
  static constexpr size_t maxParameters = 5;

  std::string_view name;
  /// One of them; of those that exist, but are not supported, none.
  Call call = nullptr;
  FreeCall freeCall = nullptr;
  /// The names of the parameters, empty after the last.
  std::array<std::string_view, maxParameters> parameters = {};
  /// How many must be given.
  size_t required = 0;
};

struct Filter : Builtin {};
struct Test : Builtin {};
struct Function : Builtin {};
struct Method : Builtin {};

/// What is called `name`, or null.
const Filter *findFilter(std::string_view name);
const Test *findTest(std::string_view name);
const Function *findFunction(std::string_view name);
/// A method of the kind of value that `receiver` is.
const Method *findMethod(const Value &receiver, std::string_view name);
/// Whether a method of this name would change `receiver`, which no template is
/// allowed to.
bool isMutating(const Value &receiver, std::string_view name);

/// Calls `builtin`. `kind` says what it is in errors: arguments that it does
/// not take, or its own.
Result<Value> callBuiltin(RenderState &state, std::string_view kind,
                          const Builtin &builtin, const Value &self,
                          const Arguments &arguments);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_BUILTINS_H
