//===- Parameters.h - What builtins read their arguments with ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_PARAMETERS_H
#define SANDWICH_LIB_TEMPLATE_PARAMETERS_H

#include "RenderState.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

namespace sandwich::jinja {

/// The argument as an integer, or `otherwise` where there is none.
inline Result<int64_t> integerOr(const std::optional<Value> &argument,
                                 int64_t otherwise) {
  if (!argument || argument->isNone())
    return otherwise;
  if (!argument->isInteger())
    return makeError("needs an integer, not ", typeName(*argument));
  return argument->integer();
}

/// An argument that must be given, as an integer.
inline Result<int64_t> integerOf(const std::optional<Value> &argument) {
  if (!argument || !argument->isInteger())
    return makeError("needs an integer, not ",
                     argument ? typeName(*argument) : "nothing");
  return argument->integer();
}

/// Whether the argument is true, or `otherwise` where there is none.
inline bool isTrueOr(const std::optional<Value> &argument, bool otherwise) {
  return argument ? isTrue(*argument) : otherwise;
}

/// The argument's text, or null where there is none.
inline Result<const MarkedText *>
textOrNull(const std::optional<Value> &argument) {
  if (!argument || argument->isNone())
    return static_cast<const MarkedText *>(nullptr);
  if (!argument->isString())
    return makeError("needs a string, not ", typeName(*argument));
  return &argument->text();
}

/// Where an argument comes from; what is not given, from the template.
inline Origin originOf(const std::optional<Value> &argument) {
  return argument ? argument->origin() : Origin::Template;
}

/// The keywords as a dictionary.
inline Result<Value> keywordDictionary(RenderState &state,
                                       const Arguments &arguments) {
  std::vector<Dictionary::Entry> entries;
  for (const Arguments::Keyword &keyword : arguments.keywords)
    entries.emplace_back(
        state.string(std::string(keyword.name), keyword.nameOrigin),
        keyword.value);
  return state.dictionary(std::move(entries));
}

/// The entry called `name` of a table that is sorted by name, or null.
template <typename Entry, size_t count>
const Entry *findByName(const Entry (&table)[count], std::string_view name) {
  const Entry *found = std::lower_bound(
      std::begin(table), std::end(table), name,
      [](const Entry &entry, std::string_view b) { return entry.name < b; });
  return found != std::end(table) && found->name == name ? found : nullptr;
}

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_PARAMETERS_H
