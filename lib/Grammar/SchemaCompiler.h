//===- SchemaCompiler.h - JSON schemas as rules -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_SCHEMACOMPILER_H
#define SANDWICH_LIB_GRAMMAR_SCHEMACOMPILER_H

#include "JsonTexts.h"
#include "Network.h"
#include "Numbers.h"
#include "SchemaExpansion.h"

#include "sandwich/Grammar/Grammar.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandwich::grammar {

/// Adds the values of one JSON schema to a network.
class SchemaCompiler {
public:
  /// `schema` must stay where it is for as long as this lives.
  SchemaCompiler(ExpressionPool &pool, NetworkBuilder &builder,
                 const JsonTexts &texts, const GrammarOptions &options,
                 const Json &schema);

  /// Adds the values from node `from` to node `to`. Errors (`InvalidArgument`):
  /// what is not supported, by its JSON pointer.
  Status compile(uint32_t from, uint32_t to);

private:
  /// Types of values, as bits: an integer is a number without fraction.
  using Types = unsigned;

  /// What listed values must satisfy: strings, as they are written between
  /// their quotes, and numbers without exponent.
  struct ValueCheck {
    Types types;
    Expression strings = ExpressionPool::nothing;
    Expression numbers = ExpressionPool::nothing;
  };
  struct Property {
    std::string name;
    SchemaSet schemas;
    bool required = false;
  };
  /// Names of properties that are not named in the schema.
  struct OtherNames {
    Expression text; ///< with quotes
    StringCondition condition;
    SchemaSet schemas;
  };
  struct Rule {
    bool isObject;
    SchemaSet schemas;
    uint32_t first, last;
  };

  /// Any character inside of a string.
  Expression anyCharacter();

  /// Adds values that satisfy all of `schemas`.
  Status addValues(const SchemaSet &schemas, uint32_t from, uint32_t to);
  Status addAlternative(const SchemaSet &schemas, uint32_t from, uint32_t to);
  Result<Types> typesOf(const SchemaSet &schemas) const;
  /// The values of `enum` and `const`, where `schemas` have any.
  Result<std::optional<std::vector<Json>>>
  listedValues(const SchemaSet &schemas, Types types);
  Result<ValueCheck> checkOf(const SchemaSet &schemas, Types types);
  Result<bool> satisfies(const Json &value, const SchemaSet &schemas,
                         const ValueCheck &check);
  Status addStrings(const SchemaSet &schemas, uint32_t from, uint32_t to);
  /// What `pattern` and `format` say of strings, without quotes.
  Result<std::vector<Expression>> stringTexts(const SchemaSet &schemas);
  StringCondition lengthsOf(const SchemaSet &schemas) const;
  Result<NumberBounds> boundsOf(const SchemaSet &schemas) const;

  /// The rule of objects or arrays that satisfy all of `schemas`.
  uint32_t ruleOf(bool isObject, const SchemaSet &schemas);
  Status addObjects(const Rule &rule);
  Result<std::vector<Property>> propertiesOf(const SchemaSet &schemas);
  /// Of `schema`, what a property must satisfy that it does not name.
  void addSchemaOfOthers(const Json &schema, SchemaSet &schemas);
  /// The names of `properties`, as they are written between their quotes.
  Expression namesOf(const std::vector<Property> &properties);
  Result<std::vector<OtherNames>>
  otherNames(const SchemaSet &schemas, const std::vector<Property> &properties);
  Result<std::vector<OtherNames>>
  namesByPattern(const SchemaSet &schemas,
                 const std::vector<Property> &properties,
                 const std::vector<std::string> &patterns);
  /// The pattern `text`, a key of `patternProperties`.
  Result<Expression> namePattern(const Json &schema, const std::string &text);
  Status addArrays(const Rule &rule);
  /// What the item at `index` must satisfy.
  SchemaSet itemSchemas(const SchemaSet &schemas, size_t index);

  ExpressionPool &pool;
  NetworkBuilder &builder;
  const JsonTexts &texts;
  const GrammarOptions &options;
  const Json &root;
  SchemaExpansion expansion;
  std::vector<Rule> rules;
  std::map<std::pair<bool, SchemaSet>, uint32_t> ruleOfSchemas;
  std::map<std::string, Expression> patternOf;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_SCHEMACOMPILER_H
