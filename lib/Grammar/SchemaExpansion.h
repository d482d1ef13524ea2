//===- SchemaExpansion.h - What holds of one value --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A value must satisfy several schemas at once: one, those it refers to, and
/// those in `allOf`; and one of each `anyOf` or `oneOf`. Expansion collects
/// them, after which only what each says itself is left to look at.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_SCHEMAEXPANSION_H
#define SANDWICH_LIB_GRAMMAR_SCHEMAEXPANSION_H

#include "CompileBudget.h"

#include "sandwich/Support/Json.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace sandwich::grammar {

/// Schemas that all hold of a value, in the order in which they were found.
using SchemaSet = std::vector<const Json *>;

/// Follows a document's references and combinations. The document must outlive
/// it and stay where it is.
class SchemaExpansion {
public:
  /// Combinations of alternatives for one value; more are refused.
  static constexpr size_t mostAlternatives = 1024;

  SchemaExpansion(const Json &root, CompileBudget &budget);

  /// The alternatives of what satisfies all of `schemas`: sets without
  /// booleans, of which only their own keywords are left to look at. Errors
  /// (`InvalidArgument`): keywords that are unknown, not supported or of the
  /// wrong type, references that lead nowhere or to themselves, more than
  /// `mostAlternatives`.
  Result<std::vector<SchemaSet>> expand(const SchemaSet &schemas);

  /// The schema at `key` of `schema`, or null.
  const Json *member(const Json &schema, const char *key);
  /// The schema `found` at `key` of the object, or at that index of the list,
  /// that `schema` has at `keyword`.
  const Json *memberOf(const Json &schema, const char *keyword,
                       const std::string &key, const Json &found);

  /// An error of `schema`, which it names by its JSON pointer.
  template <typename... Parts>
  Error error(const Json &schema, const Parts &...parts) const {
    return makeError(ErrorKind::InvalidArgument, "the schema at ",
                     pointers.at(&schema), ": ", parts...);
  }

private:
  /// A schema to look at, and the one that led to it.
  struct Pending {
    const Json *schema;
    size_t cause;
  };
  struct Cause {
    const Json *schema;
    size_t cause;
  };
  /// Alternatives of which one must be chosen.
  struct Choice {
    const Json *schema;
    const char *keyword;
    size_t cause;
  };
  struct State {
    std::vector<Pending> pending;
    std::vector<Choice> choices;
    SchemaSet chosen;
  };

  static constexpr size_t noCause = static_cast<size_t>(-1);

  /// Takes in one schema; false if it holds of nothing.
  Result<bool> take(State &state, Pending next);
  Result<const Json *> resolve(const Json &schema);
  Status check(const Json &schema);
  Status checkMember(const Json &schema, const std::string &key,
                     const Json &value) const;

  const Json &root;
  CompileBudget &budget;
  std::unordered_map<const Json *, std::string> pointers;
  std::unordered_set<const Json *> checked;
  std::vector<Cause> causes;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_SCHEMAEXPANSION_H
