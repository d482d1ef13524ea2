//===- Objects.cpp - Values that have state or are called -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Objects.h"

using namespace sandwich;
using namespace sandwich::jinja;

void Scope::set(RenderState &state, NameId name, Value value) {
  for (auto &[each, old] : variables)
    if (each == name) {
      old = std::move(value);
      return;
    }
  if (variables.size() == variables.capacity()) {
    const size_t more = std::max<size_t>(4, variables.size());
    state.keep(more * sizeof(variables[0]));
    variables.reserve(variables.size() + more);
  }
  variables.emplace_back(name, std::move(value));
}

const Value *Namespace::find(std::string_view name) const {
  for (const auto &[each, value] : members)
    if (each == name)
      return &value;
  return nullptr;
}

void Namespace::set(RenderState &state, std::string_view name,
                    Origin nameOrigin, Value value) {
  for (auto &[each, old] : members)
    if (each == name) {
      old = std::move(value);
      return;
    }
  state.keep(sizeof(members[0]) + name.size());
  origin = origin | nameOrigin;
  members.emplace_back(name, std::move(value));
}

Result<std::optional<Value>> Loop::advance() {
  std::optional<Value> next;
  if (!ahead.empty()) {
    next = std::move(ahead.front());
    ahead.pop_front();
  } else {
    SANDWICH_ASSIGN_OR_RETURN(next, fetch());
  }
  if (!next)
    return next;
  ++index;
  previous = std::exchange(current, next);
  return next;
}

Result<std::optional<Value>> Loop::peek() {
  if (ahead.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> next, fetch());
    if (!next)
      return next;
    ahead.push_back(*std::move(next));
  }
  return std::optional(ahead.front());
}

Result<size_t> Loop::length(RenderState &state) {
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> next, fetch());
    if (!next)
      return index + ahead.size();
    state.keep(sizeof(Value));
    ahead.push_back(*std::move(next));
  }
}
