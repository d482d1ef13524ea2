//===- SchemaExpansion.cpp - What holds of one value ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaExpansion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

SchemaExpansion::SchemaExpansion(const Json &root, CompileBudget &budget)
    : root(root), budget(budget) {
  pointers.emplace(&root, "#");
}

//===----------------------------------------------------------------------===//
// Keywords
//===----------------------------------------------------------------------===//

/// Those that restrict nothing, or only hold what others refer to.
static bool isAnnotation(std::string_view key) {
  constexpr std::array<std::string_view, 20> annotations = {
      "$schema",         "$comment",     "$defs",
      "definitions",     "title",        "description",
      "default",         "examples",     "example",
      "deprecated",      "readOnly",     "writeOnly",
      "$anchor",         "$vocabulary",  "contentMediaType",
      "externalDocs",    "xml",          "discriminator",
      "contentEncoding", "contentSchema"};
  return key.starts_with("x-") ||
         std::ranges::find(annotations, key) != annotations.end();
}

/// A size, written as a number without fraction.
static bool isSize(const Json &value) {
  if (value.is_number_integer())
    return value.is_number_unsigned() || value.get<int64_t>() >= 0;
  return value.is_number_float() && value.get<double>() >= 0 &&
         value.get<double>() <= 9e15 &&
         std::trunc(value.get<double>()) == value.get<double>();
}

static bool isSchema(const Json &value) {
  return value.is_object() || value.is_boolean();
}

static bool isListOfStrings(const Json &value) {
  return value.is_array() && std::ranges::all_of(value, &Json::is_string);
}

static bool isListOfSchemas(const Json &value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, isSchema);
}

static bool isMapOfSchemas(const Json &value) {
  return value.is_object() && std::ranges::all_of(value, isSchema);
}

static bool isBoundary(const Json &value) {
  return value.is_number() || value.is_boolean();
}

namespace {

/// A keyword that is supported, and what its value must be.
struct Keyword {
  std::string_view name;
  bool (*isValid)(const Json &);
  std::string_view expected;
};

} // namespace

static std::span<const Keyword> keywords() {
  static constexpr std::array<Keyword, 26> all = {{
      {"type",
       [](const Json &value) {
         return value.is_string() || (isListOfStrings(value) && !value.empty());
       },
       "a type or a list of types"},
      {"enum",
       [](const Json &value) { return value.is_array() && !value.empty(); },
       "a list of values"},
      {"const", [](const Json &) { return true; }, ""},
      {"$ref", [](const Json &value) { return value.is_string(); }, "a string"},
      {"allOf", isListOfSchemas, "a list of schemas"},
      {"anyOf", isListOfSchemas, "a list of schemas"},
      {"oneOf", isListOfSchemas, "a list of schemas"},
      {"properties", isMapOfSchemas, "an object of schemas"},
      {"patternProperties", isMapOfSchemas, "an object of schemas"},
      {"additionalProperties", isSchema, "a schema"},
      {"required", isListOfStrings, "a list of strings"},
      {"items",
       [](const Json &value) {
         return isSchema(value) ||
                (value.is_array() && std::ranges::all_of(value, isSchema));
       },
       "a schema or a list of schemas"},
      {"prefixItems", isListOfSchemas, "a list of schemas"},
      {"additionalItems", isSchema, "a schema"},
      {"minItems", isSize, "a size"},
      {"maxItems", isSize, "a size"},
      {"minLength", isSize, "a size"},
      {"maxLength", isSize, "a size"},
      {"pattern", [](const Json &value) { return value.is_string(); },
       "a string"},
      {"format", [](const Json &value) { return value.is_string(); },
       "a string"},
      {"minimum", [](const Json &value) { return value.is_number(); },
       "a number"},
      {"maximum", [](const Json &value) { return value.is_number(); },
       "a number"},
      {"exclusiveMinimum", isBoundary, "a number"},
      {"exclusiveMaximum", isBoundary, "a number"},
      {"multipleOf",
       [](const Json &value) {
         return value.is_number() && value.get<double>() > 0;
       },
       "a number above zero"},
      {"nullable", [](const Json &value) { return value.is_boolean(); },
       "true or false"},
  }};
  return all;
}

/// Whether `value` makes a keyword that is not supported restrict nothing.
static bool restrictsNothing(std::string_view key, const Json &value) {
  if (key == "uniqueItems")
    return value == false;
  if (key == "minProperties" || key == "minContains")
    return value == 0;
  if (key == "unevaluatedProperties" || key == "unevaluatedItems" ||
      key == "propertyNames")
    return value == true || value == Json::object();
  return false;
}

Status SchemaExpansion::checkMember(const Json &schema, const std::string &key,
                                    const Json &value) const {
  for (const Keyword &keyword : keywords())
    if (keyword.name == key)
      return keyword.isValid(value)
                 ? Status()
                 : error(schema, key, " must be ", keyword.expected);
  // Elsewhere it would change what references mean.
  const bool isHarmlessId = (key == "$id" || key == "id") && &schema == &root;
  if (isAnnotation(key) || isHarmlessId || restrictsNothing(key, value))
    return {};
  return error(schema, "the keyword \"", key, "\" is not supported");
}

Status SchemaExpansion::check(const Json &schema) {
  if (!checked.insert(&schema).second)
    return {};
  for (const auto &[key, value] : schema.items())
    SANDWICH_RETURN_IF_ERROR(checkMember(schema, key, value));
  return {};
}

//===----------------------------------------------------------------------===//
// Places in the document
//===----------------------------------------------------------------------===//

/// `key` as a part of a JSON pointer (RFC 6901).
static std::string pointerPart(std::string_view key) {
  std::string part = "/";
  for (char byte : key)
    if (byte == '~')
      part += "~0";
    else if (byte == '/')
      part += "~1";
    else
      part += byte;
  return part;
}

const Json *SchemaExpansion::member(const Json &schema, const char *key) {
  const auto found = schema.find(key);
  if (found == schema.end())
    return nullptr;
  if (!pointers.contains(&*found))
    pointers.emplace(&*found, pointers.at(&schema) + pointerPart(key));
  return &*found;
}

const Json *SchemaExpansion::memberOf(const Json &schema, const char *keyword,
                                      const std::string &key,
                                      const Json &found) {
  if (!pointers.contains(&found))
    pointers.emplace(&found, pointers.at(&schema) + pointerPart(keyword) +
                                 pointerPart(key));
  return &found;
}

/// The parts of `pointer`, a JSON pointer in the fragment of a URI.
static std::vector<std::string> partsOfPointer(std::string_view pointer) {
  std::vector<std::string> parts;
  auto digit = [&](size_t i) {
    const std::string_view digits = "0123456789abcdef";
    return i < pointer.size()
               ? digits.find(static_cast<char>(pointer[i] | 0x20))
               : std::string_view::npos;
  };
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      parts.emplace_back();
      continue;
    }
    if (parts.empty())
      parts.emplace_back();
    if (pointer[i] == '%' && digit(i + 1) < 16 && digit(i + 2) < 16) {
      parts.back() += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
      i += 2;
    } else if (pointer[i] == '~' && i + 1 < pointer.size() &&
               (pointer[i + 1] == '0' || pointer[i + 1] == '1'))
      parts.back() += pointer[++i] == '0' ? '~' : '/';
    else
      parts.back() += pointer[i];
  }
  return parts;
}

/// What `current` has at `part` of a pointer, or null.
static const Json *childAt(const Json &current, const std::string &part) {
  if (current.is_object()) {
    const auto found = current.find(part);
    return found == current.end() ? nullptr : &*found;
  }
  const bool isIndex =
      !part.empty() && part.size() < 10 &&
      std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  if (!current.is_array() || !isIndex || std::stoul(part) >= current.size())
    return nullptr;
  return &current[std::stoul(part)];
}

/// What the `$ref` of `schema` refers to.
Result<const Json *> SchemaExpansion::resolve(const Json &schema) {
  const auto &reference = schema["$ref"].get_ref<const std::string &>();
  if (reference != "#" && !reference.starts_with("#/"))
    return error(schema, "the reference \"", reference,
                 "\" is not supported; only those within the schema are, such "
                 "as #/$defs/name");
  const Json *target = &root;
  for (const std::string &part :
       partsOfPointer(std::string_view(reference).substr(1))) {
    if (!budget.spend(target->size()))
      return error(schema, "too many references");
    target = childAt(*target, part);
    if (!target)
      return error(schema, "the reference \"", reference,
                   "\" leads to nothing");
  }
  if (!isSchema(*target))
    return error(schema, "the reference \"", reference,
                 "\" leads to what is no schema");
  pointers.emplace(target, reference);
  return target;
}

//===----------------------------------------------------------------------===//
// Expansion
//===----------------------------------------------------------------------===//

Result<bool> SchemaExpansion::take(State &state, Pending next) {
  const Json &schema = *next.schema;
  if (schema.is_boolean())
    return schema.get<bool>();
  for (size_t cause = next.cause; cause != noCause;
       cause = causes[cause].cause) {
    if (!budget.spend(1))
      return error(schema, "too many references");
    if (causes[cause].schema == &schema)
      return error(schema, "refers to itself without a value in between");
  }
  if (!budget.spend(1 + state.chosen.size()))
    return error(schema, "too many schemas of one value");
  if (std::ranges::find(state.chosen, &schema) != state.chosen.end())
    return true;
  SANDWICH_RETURN_IF_ERROR(check(schema));
  state.chosen.push_back(&schema);
  const size_t own = causes.size();
  causes.push_back({&schema, next.cause});
  if (const Json *all = member(schema, "allOf"))
    for (size_t i = all->size(); i-- > 0;)
      state.pending.push_back(
          {memberOf(schema, "allOf", std::to_string(i), (*all)[i]), own});
  if (schema.contains("$ref")) {
    SANDWICH_ASSIGN_OR_RETURN(const Json *target, resolve(schema));
    state.pending.push_back({target, own});
  }
  for (const char *keyword : {"anyOf", "oneOf"})
    if (schema.contains(keyword))
      state.choices.push_back({&schema, keyword, own});
  return true;
}

Result<std::vector<SchemaSet>>
SchemaExpansion::expand(const SchemaSet &schemas) {
  causes.clear();
  std::vector<SchemaSet> results;
  State first;
  for (size_t i = schemas.size(); i-- > 0;)
    first.pending.push_back({schemas[i], noCause});
  std::vector<State> states = {std::move(first)};
  while (!states.empty()) {
    State state = std::move(states.back());
    states.pop_back();
    bool holds = true;
    while (holds && !state.pending.empty()) {
      const Pending next = state.pending.back();
      state.pending.pop_back();
      SANDWICH_ASSIGN_OR_RETURN(holds, take(state, next));
    }
    if (!holds)
      continue;
    if (state.choices.empty()) {
      results.push_back(std::move(state.chosen));
    } else {
      const Choice choice = state.choices.back();
      state.choices.pop_back();
      const Json &members = (*choice.schema)[choice.keyword];
      // The first is looked at first, and so comes first.
      for (size_t i = members.size(); i-- > 0;) {
        State with = state;
        with.pending = {{memberOf(*choice.schema, choice.keyword,
                                  std::to_string(i), members[i]),
                         choice.cause}};
        states.push_back(std::move(with));
      }
    }
    if (results.size() + states.size() > mostAlternatives)
      return error(schemas.empty() ? root : *schemas.front(), "more than ",
                   mostAlternatives, " combinations of alternatives");
  }
  return results;
}
