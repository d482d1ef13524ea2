//===- Objects.h - Values that have state or are called ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_OBJECTS_H
#define SANDWICH_LIB_TEMPLATE_OBJECTS_H

#include "Builtins.h"
#include "Iteration.h"
#include "Syntax.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace sandwich::jinja {

/// The variables of a part of a template.
class Scope {
public:
  explicit Scope(Scope *parent) : parent(parent) {}

  const Value *find(NameId name) const {
    for (const auto &[each, value] : variables)
      if (each == name)
        return &value;
    return nullptr;
  }
  void set(RenderState &state, NameId name, Value value);
  /// As new, inside of `outer`.
  void reset(Scope *outer) {
    variables.clear();
    parent = outer;
  }

  Scope *parent;
  /// Macros see it, for as long as they live.
  bool isCaptured = false;

private:
  std::vector<std::pair<NameId, Value>> variables;
};

/// `namespace()`, the only value that changes.
class Namespace final : public Object {
public:
  Namespace() : Object(Kind::Namespace) {}

  const Value *find(std::string_view name) const;
  void set(RenderState &state, std::string_view name, Origin nameOrigin,
           Value value);
  const std::vector<std::pair<std::string, Value>> &attributes() const {
    return members;
  }
  /// Data, if any name is.
  Origin namesOrigin() const { return origin; }

private:
  std::vector<std::pair<std::string, Value>> members;
  Origin origin = Origin::Template;
};

/// A macro, or what a call block gives to one, where it was defined.
class Macro final : public Object {
public:
  Macro(const MacroDescription &description, Scope &scope)
      : Object(Kind::Macro), description(description), scope(scope) {}
  const MacroDescription &description;
  Scope &scope;
};

/// A function that every template has: `range` and so on.
class BuiltinFunction final : public Object {
public:
  explicit BuiltinFunction(const Function &function)
      : Object(Kind::Function), function(function) {}
  const Function &function;
};

/// `text.strip`, which is not called yet.
class BoundMethod final : public Object {
public:
  BoundMethod(Value receiver, const Method &method)
      : Object(Kind::BoundMethod), receiver(std::move(receiver)),
        method(method) {}
  const Value receiver;
  const Method &method;
};

/// `cycler(...)`
class Cycler final : public Object {
public:
  explicit Cycler(std::vector<Value> items)
      : Object(Kind::Cycler), items(std::move(items)) {}
  const std::vector<Value> items;
  size_t position = 0;
};

/// `joiner(...)`
class Joiner final : public Object {
public:
  explicit Joiner(Value separator)
      : Object(Kind::Joiner), separator(std::move(separator)) {}
  const Value separator;
  bool isUsed = false;
};

/// `loop` within a loop. Items are fetched when they are needed, as in jinja2,
/// where the condition of a loop sees what its body did before.
class Loop final : public Object {
public:
  Loop(const ForStatement &statement, Scope &scope, Next fetch, size_t depth,
       Origin origin)
      : Object(Kind::Loop), statement(statement), scope(scope), depth(depth),
        origin(origin), fetch(std::move(fetch)) {}

  /// Goes to the next item, nothing at the end.
  Result<std::optional<Value>> advance();
  /// The item after this one, which is not gone to yet.
  Result<std::optional<Value>> peek();
  /// How many items there are.
  Result<size_t> length(RenderState &state);

  const ForStatement &statement;
  /// Where the loop stands.
  Scope &scope;
  const size_t depth; ///< of loops that call themselves, from 1
  /// Where the items come from.
  const Origin origin;
  size_t index = 0; ///< of the item, from 1; 0 before the first
  std::optional<Value> previous;
  std::optional<Value> current;
  /// What `changed` was called with last.
  std::optional<Value> lastSeen;

private:
  Next fetch;
  std::deque<Value> ahead;
};

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_OBJECTS_H
