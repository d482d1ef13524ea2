//===- SchemaCompiler.cpp - JSON schemas as rules -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaCompiler.h"

#include "CharacterSet.h"
#include "Formats.h"
#include "Pattern.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

SchemaCompiler::SchemaCompiler(ExpressionPool &pool, NetworkBuilder &builder,
                               const JsonTexts &texts,
                               const GrammarOptions &options,
                               const Json &schema)
    : pool(pool), builder(builder), texts(texts), options(options),
      root(schema), expansion(schema, pool.compileBudget()) {}

Status SchemaCompiler::compile(uint32_t from, uint32_t to) {
  if (!root.is_object() && !root.is_boolean())
    return makeError(ErrorKind::InvalidArgument,
                     "a schema must be an object, true or false");
  SANDWICH_RETURN_IF_ERROR(addValues({&root}, from, to));
  // Rules add rules.
  for (size_t i = 0; i < rules.size() && !builder.isFull(); ++i) {
    const Rule rule = rules[i];
    SANDWICH_RETURN_IF_ERROR(rule.isObject ? addObjects(rule)
                                           : addArrays(rule));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static constexpr unsigned nullType = 1, booleanType = 2, integerType = 4,
                          fractionType = 8, stringType = 16, arrayType = 32,
                          objectType = 64;
static constexpr unsigned numberTypes = integerType | fractionType;
static constexpr unsigned allTypes = 127;

static std::optional<unsigned> typesNamed(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 7> names = {
      {{"null", nullType},
       {"boolean", booleanType},
       {"integer", integerType},
       {"number", numberTypes},
       {"string", stringType},
       {"array", arrayType},
       {"object", objectType}}};
  for (const auto &[each, types] : names)
    if (each == name)
      return types;
  return std::nullopt;
}

static unsigned typeOf(const Json &value) {
  switch (value.type()) {
  case Json::value_t::null:
    return nullType;
  case Json::value_t::boolean:
    return booleanType;
  case Json::value_t::number_integer:
  case Json::value_t::number_unsigned:
    return integerType;
  case Json::value_t::number_float:
    return Decimal::of(value).isInteger() ? integerType : fractionType;
  case Json::value_t::string:
    return stringType;
  case Json::value_t::array:
    return arrayType;
  case Json::value_t::object:
    return objectType;
  default:
    return 0;
  }
}

Result<SchemaCompiler::Types>
SchemaCompiler::typesOf(const SchemaSet &schemas) const {
  Types types = allTypes;
  for (const Json *schema : schemas) {
    const auto type = schema->find("type");
    if (type == schema->end())
      continue;
    Types own = schema->value("nullable", false) ? nullType : 0;
    auto add = [&](const Json &name) -> Status {
      const std::optional<unsigned> named =
          typesNamed(name.get_ref<const std::string &>());
      if (!named)
        return expansion.error(*schema, "there is no type ", name.dump());
      own |= *named;
      return {};
    };
    if (type->is_string())
      SANDWICH_RETURN_IF_ERROR(add(*type));
    else
      for (const Json &name : *type)
        SANDWICH_RETURN_IF_ERROR(add(name));
    types &= own;
  }
  return types;
}

Expression SchemaCompiler::anyCharacter() {
  return CharacterSet::all().expression(pool, Encoding::JsonString);
}

Status SchemaCompiler::addValues(const SchemaSet &schemas, uint32_t from,
                                 uint32_t to) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<SchemaSet> alternatives,
                            expansion.expand(schemas));
  for (const SchemaSet &each : alternatives) {
    if (builder.isFull())
      return {};
    SANDWICH_RETURN_IF_ERROR(addAlternative(each, from, to));
  }
  return {};
}

Status SchemaCompiler::addAlternative(const SchemaSet &schemas, uint32_t from,
                                      uint32_t to) {
  SANDWICH_ASSIGN_OR_RETURN(Types types, typesOf(schemas));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<std::vector<Json>> listed,
                            listedValues(schemas, types));
  if (listed) {
    std::vector<Expression> values;
    for (const Json &value : *listed)
      values.push_back(texts.textOf(pool, value));
    builder.addText(from, pool.either(std::move(values)), to);
    return {};
  }
  std::vector<Expression> words;
  if (types & nullType)
    words.push_back(pool.literal("null"));
  if (types & booleanType)
    words.push_back(pool.literals({"true", "false"}));
  if (!words.empty())
    builder.addText(from, pool.either(std::move(words)), to);
  if (types & numberTypes) {
    SANDWICH_ASSIGN_OR_RETURN(NumberBounds bounds, boundsOf(schemas));
    bounds.integer = (types & fractionType) == 0;
    builder.addText(from, numbers(pool, bounds), to);
  }
  if (types & stringType)
    SANDWICH_RETURN_IF_ERROR(addStrings(schemas, from, to));
  if (types & arrayType)
    builder.addCall(from, ruleOf(false, schemas), to);
  if (types & objectType)
    builder.addCall(from, ruleOf(true, schemas), to);
  return {};
}

//===----------------------------------------------------------------------===//
// Listed values
//===----------------------------------------------------------------------===//

/// Whether the values are the same as JSON schemas see them: 1 and 1.0 are.
static bool isEqual(const Json &left, const Json &right) {
  if (left.is_number() && right.is_number())
    return Decimal::of(left).text() == Decimal::of(right).text();
  // Objects of the same members in another order are, but as the members of
  // these keep an order, they compare unequal; no text is lost that the other
  // list would not have had to spell out as well.
  return left == right;
}

Result<std::optional<std::vector<Json>>>
SchemaCompiler::listedValues(const SchemaSet &schemas, Types types) {
  std::optional<std::vector<Json>> listed;
  auto restrict = [&](const std::vector<Json> &values) {
    if (!listed) {
      listed = values;
      return;
    }
    std::erase_if(*listed, [&](const Json &value) {
      return std::ranges::none_of(
          values, [&](const Json &other) { return isEqual(value, other); });
    });
  };
  for (const Json *schema : schemas) {
    if (const auto list = schema->find("enum"); list != schema->end()) {
      if (!pool.compileBudget().spend((listed ? listed->size() : 1) *
                                      list->size()))
        return expansion.error(*schema, "too many values are listed");
      restrict({list->begin(), list->end()});
    }
    if (const auto value = schema->find("const"); value != schema->end())
      restrict({*value});
  }
  if (!listed)
    return listed;
  SANDWICH_ASSIGN_OR_RETURN(ValueCheck check, checkOf(schemas, types));
  std::vector<Json> kept;
  for (Json &value : *listed) {
    SANDWICH_ASSIGN_OR_RETURN(bool holds, satisfies(value, schemas, check));
    if (holds)
      kept.push_back(std::move(value));
  }
  return std::optional(std::move(kept));
}

/// Whether `schema` restricts values of a type by other keywords than those of
/// types and listed values.
static bool restrictsMembers(const Json &schema, unsigned type) {
  const std::array<const char *, 4> ofObjects = {
      "properties", "patternProperties", "additionalProperties", "required"};
  const std::array<const char *, 5> ofArrays = {
      "items", "prefixItems", "additionalItems", "minItems", "maxItems"};
  auto has = [&](const char *keyword) { return schema.contains(keyword); };
  return type == objectType ? std::ranges::any_of(ofObjects, has)
                            : std::ranges::any_of(ofArrays, has);
}

Result<SchemaCompiler::ValueCheck>
SchemaCompiler::checkOf(const SchemaSet &schemas, Types types) {
  ValueCheck check{.types = types};
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Expression> parts,
                            stringTexts(schemas));
  const StringCondition lengths = lengthsOf(schemas);
  if (lengths.least > lengths.most)
    check.types &= ~stringType;
  else
    parts.push_back(pool.repeat(anyCharacter(), lengths.least, lengths.most));
  check.strings = pool.both(std::move(parts));
  SANDWICH_ASSIGN_OR_RETURN(NumberBounds bounds, boundsOf(schemas));
  check.numbers = numbers(pool, bounds);
  return check;
}

Result<bool> SchemaCompiler::satisfies(const Json &value,
                                       const SchemaSet &schemas,
                                       const ValueCheck &check) {
  const unsigned type = typeOf(value);
  if ((check.types & type) == 0)
    return false;
  if (type == stringType)
    return pool.matches(check.strings,
                        jsonEscaped(value.get_ref<const std::string &>()));
  if ((type & numberTypes) != 0)
    return pool.matches(check.numbers, Decimal::of(value).text());
  if (type == arrayType || type == objectType)
    for (const Json *schema : schemas)
      if (restrictsMembers(*schema, type))
        return expansion.error(*schema,
                               "enum or const with a list or an object, beside "
                               "keywords for its members, is not supported");
  return true;
}

//===----------------------------------------------------------------------===//
// Strings and numbers
//===----------------------------------------------------------------------===//

/// A size of a schema; what is beyond all texts stays so.
static uint32_t sizeIn(const Json &schema, const char *keyword,
                       uint32_t absent) {
  const auto found = schema.find(keyword);
  if (found == schema.end())
    return absent;
  return static_cast<uint32_t>(
      std::min(found->get<double>(), double(ExpressionPool::unlimited)));
}

StringCondition SchemaCompiler::lengthsOf(const SchemaSet &schemas) const {
  StringCondition lengths;
  for (const Json *schema : schemas) {
    lengths.least = std::max(lengths.least, sizeIn(*schema, "minLength", 0));
    lengths.most = std::min(
        lengths.most, sizeIn(*schema, "maxLength", ExpressionPool::unlimited));
  }
  return lengths;
}

/// Formats that OpenAPI gives to numbers, or that say how to show a value.
static bool isFormatOfOthers(std::string_view format) {
  constexpr std::array<std::string_view, 6> formats = {
      "int32", "int64", "float", "double", "password", "binary"};
  return std::ranges::find(formats, format) != formats.end();
}

Result<std::vector<Expression>>
SchemaCompiler::stringTexts(const SchemaSet &schemas) {
  std::vector<Expression> parts;
  for (const Json *schema : schemas) {
    if (const auto pattern = schema->find("pattern");
        pattern != schema->end()) {
      Result<Expression> texts =
          parsePattern(pool, pattern->get_ref<const std::string &>(),
                       PatternScope::Part, Encoding::JsonString);
      if (!texts)
        return expansion.error(*schema, texts.error().message);
      parts.push_back(*texts);
    }
    const auto format = schema->find("format");
    if (format == schema->end())
      continue;
    const auto &name = format->get_ref<const std::string &>();
    if (isFormatOfOthers(name))
      continue;
    const std::optional<Expression> texts = stringFormat(pool, name);
    if (!texts)
      return expansion.error(*schema, "the format ", format->dump(),
                             " is not supported");
    parts.push_back(*texts);
  }
  return parts;
}

Status SchemaCompiler::addStrings(const SchemaSet &schemas, uint32_t from,
                                  uint32_t to) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Expression> parts,
                            stringTexts(schemas));
  const StringCondition lengths = lengthsOf(schemas);
  if (lengths.least > lengths.most)
    return {};
  if (parts.empty()) {
    builder.addText(from, texts.string, lengths, to);
    return {};
  }
  if (lengths != StringCondition())
    parts.push_back(pool.repeat(anyCharacter(), lengths.least, lengths.most));
  builder.addText(from, JsonTexts::quoted(pool, pool.both(std::move(parts))),
                  to);
  return {};
}

/// The power of ten that `value` is, if it is one.
static std::optional<int> powerOfTen(const Decimal &value) {
  auto isOneBetweenZeros = [](const std::string &digits) {
    return std::ranges::count(digits, '0') + 1 ==
               static_cast<std::ptrdiff_t>(digits.size()) &&
           digits.find('1') != std::string::npos;
  };
  if (value.fraction.empty() && value.integer.front() == '1' &&
      isOneBetweenZeros(value.integer))
    return static_cast<int>(value.integer.size()) - 1;
  if (value.integer == "0" && value.fraction.ends_with('1') &&
      isOneBetweenZeros(value.fraction))
    return -static_cast<int>(value.fraction.size());
  return std::nullopt;
}

/// Whether `left` is less than `right`.
static bool isLess(const Decimal &left, const Decimal &right) {
  if (left.negative != right.negative)
    return left.negative;
  const Decimal &small = left.negative ? right : left;
  const Decimal &large = left.negative ? left : right;
  if (small.integer.size() != large.integer.size())
    return small.integer.size() < large.integer.size();
  return std::pair(small.integer, small.fraction) <
         std::pair(large.integer, large.fraction);
}

static void raise(std::optional<NumberBounds::Bound> &lower,
                  NumberBounds::Bound bound) {
  if (!lower || isLess(lower->value, bound.value))
    lower = std::move(bound);
  else if (!isLess(bound.value, lower->value))
    lower->exclusive |= bound.exclusive;
}

static void reduce(std::optional<NumberBounds::Bound> &upper,
                   NumberBounds::Bound bound) {
  if (!upper || isLess(bound.value, upper->value))
    upper = std::move(bound);
  else if (!isLess(upper->value, bound.value))
    upper->exclusive |= bound.exclusive;
}

Result<NumberBounds> SchemaCompiler::boundsOf(const SchemaSet &schemas) const {
  NumberBounds bounds;
  auto parse = [](const char *digits) {
    return Decimal::of(Json::parse(digits));
  };
  for (const Json *schema : schemas) {
    auto find = [&](const char *keyword) -> const Json * {
      const auto found = schema->find(keyword);
      return found == schema->end() ? nullptr : &*found;
    };
    // Draft 4 has true and false beside the bound.
    const Json *above = find("exclusiveMinimum");
    const Json *below = find("exclusiveMaximum");
    auto isTrue = [](const Json *value) { return value && *value == true; };
    if (const Json *least = find("minimum"))
      raise(bounds.lower, {Decimal::of(*least), isTrue(above)});
    if (const Json *most = find("maximum"))
      reduce(bounds.upper, {Decimal::of(*most), isTrue(below)});
    if (above && above->is_number())
      raise(bounds.lower, {Decimal::of(*above), true});
    if (below && below->is_number())
      reduce(bounds.upper, {Decimal::of(*below), true});
    const std::string format = schema->value("format", "");
    if (format == "int32" || format == "int64") {
      const bool isLong = format == "int64";
      raise(bounds.lower,
            {parse(isLong ? "-9223372036854775808" : "-2147483648")});
      reduce(bounds.upper,
             {parse(isLong ? "9223372036854775807" : "2147483647")});
    }
    if (const Json *divisor = find("multipleOf")) {
      const std::optional<int> power = powerOfTen(Decimal::of(*divisor));
      if (!power)
        return expansion.error(*schema, "multipleOf ", divisor->dump(),
                               " is not supported; only powers of ten are");
      bounds.powerOfTen = std::max(*power, bounds.powerOfTen.value_or(*power));
    }
  }
  return bounds;
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

uint32_t SchemaCompiler::ruleOf(bool isObject, const SchemaSet &schemas) {
  SchemaSet relevant;
  for (const Json *schema : schemas)
    if (restrictsMembers(*schema, isObject ? objectType : arrayType))
      relevant.push_back(schema);
  const auto [position, isNew] = ruleOfSchemas.try_emplace(
      {isObject, relevant}, static_cast<uint32_t>(rules.size()));
  if (!isNew)
    return position->second;
  const uint32_t first = builder.addNode(), last = builder.addNode();
  rules.push_back({isObject, std::move(relevant), first, last});
  return position->second = builder.addRule(first, last);
}

void SchemaCompiler::addSchemaOfOthers(const Json &schema, SchemaSet &schemas) {
  static const Json nothing = false;
  if (const Json *others = expansion.member(schema, "additionalProperties"))
    schemas.push_back(others);
  else if (options.closedObjects && schema.contains("properties"))
    schemas.push_back(&nothing);
}

Result<Expression> SchemaCompiler::namePattern(const Json &schema,
                                               const std::string &text) {
  const auto known = patternOf.find(text);
  if (known != patternOf.end())
    return known->second;
  Result<Expression> pattern =
      parsePattern(pool, text, PatternScope::Part, Encoding::JsonString);
  if (!pattern)
    return expansion.error(schema,
                           "patternProperties: ", pattern.error().message);
  patternOf.emplace(text, *pattern);
  return pattern;
}

Result<std::vector<SchemaCompiler::Property>>
SchemaCompiler::propertiesOf(const SchemaSet &schemas) {
  std::vector<Property> properties;
  std::unordered_map<std::string, size_t> indexes;
  auto add = [&](const std::string &name) -> Property & {
    const auto [position, isNew] = indexes.try_emplace(name, properties.size());
    if (isNew)
      properties.push_back({.name = name, .schemas = {}});
    return properties[position->second];
  };
  for (const Json *schema : schemas)
    if (const auto named = schema->find("properties"); named != schema->end())
      for (const auto &[name, value] : named->items())
        add(name);
  for (const Json *schema : schemas)
    if (const auto names = schema->find("required"); names != schema->end())
      for (const Json &name : *names)
        add(name.get_ref<const std::string &>()).required = true;
  for (const Json *schema : schemas) {
    const auto named = schema->find("properties");
    const auto byPattern = schema->find("patternProperties");
    // Members of an ordered object are found one by one.
    std::unordered_set<std::string_view> own;
    if (named != schema->end())
      for (const auto &[name, value] : named->items()) {
        own.insert(name);
        properties[indexes.at(name)].schemas.push_back(
            expansion.memberOf(*schema, "properties", name, value));
      }
    for (Property &property : properties) {
      bool isNamed = own.contains(property.name);
      if (byPattern != schema->end())
        for (const auto &[text, value] : byPattern->items()) {
          SANDWICH_ASSIGN_OR_RETURN(Expression pattern,
                                    namePattern(*schema, text));
          if (!pool.matches(pattern, jsonEscaped(property.name)))
            continue;
          isNamed = true;
          property.schemas.push_back(
              expansion.memberOf(*schema, "patternProperties", text, value));
        }
      if (!isNamed)
        addSchemaOfOthers(*schema, property.schemas);
    }
  }
  return properties;
}

Expression SchemaCompiler::namesOf(const std::vector<Property> &properties) {
  std::vector<std::string> names;
  names.reserve(properties.size());
  for (const Property &property : properties)
    names.push_back(jsonEscaped(property.name));
  return pool.literals(std::move(names));
}

Result<std::vector<SchemaCompiler::OtherNames>>
SchemaCompiler::namesByPattern(const SchemaSet &schemas,
                               const std::vector<Property> &properties,
                               const std::vector<std::string> &patterns) {
  const Expression others =
      pool.both(pool.repeat(anyCharacter(), 0, ExpressionPool::unlimited),
                pool.complement(namesOf(properties)));
  std::vector<OtherNames> names;
  // Names of one pattern each, and then of none.
  for (size_t i = 0; i <= patterns.size(); ++i) {
    OtherNames each;
    std::vector<Expression> parts = {others};
    for (size_t j = 0; j < patterns.size(); ++j) {
      SANDWICH_ASSIGN_OR_RETURN(Expression pattern,
                                namePattern(*schemas.front(), patterns[j]));
      parts.push_back(i == j ? pattern : pool.complement(pattern));
    }
    each.text = JsonTexts::quoted(pool, pool.both(std::move(parts)));
    for (const Json *schema : schemas) {
      const auto byPattern = schema->find("patternProperties");
      if (i < patterns.size() && byPattern != schema->end() &&
          byPattern->contains(patterns[i]))
        each.schemas.push_back(expansion.memberOf(*schema, "patternProperties",
                                                  patterns[i],
                                                  byPattern->at(patterns[i])));
      else
        addSchemaOfOthers(*schema, each.schemas);
    }
    names.push_back(std::move(each));
  }
  return names;
}

Result<std::vector<SchemaCompiler::OtherNames>>
SchemaCompiler::otherNames(const SchemaSet &schemas,
                           const std::vector<Property> &properties) {
  std::vector<std::string> patterns;
  for (const Json *schema : schemas)
    if (const auto map = schema->find("patternProperties");
        map != schema->end())
      for (const auto &[text, value] : map->items())
        if (std::ranges::find(patterns, text) == patterns.end())
          patterns.push_back(text);
  if (!patterns.empty())
    return namesByPattern(schemas, properties, patterns);
  OtherNames names{.text = texts.string, .condition = {}, .schemas = {}};
  for (const Json *schema : schemas)
    addSchemaOfOthers(*schema, names.schemas);
  const bool barsAll =
      std::ranges::any_of(names.schemas, [](const Json *schema) {
        return schema->is_boolean() && !schema->get<bool>();
      });
  if (barsAll)
    return std::vector<OtherNames>();
  if (!properties.empty()) {
    names.text = texts.plainString;
    names.condition.barred = builder.automatonOf(namesOf(properties));
  }
  return std::vector{std::move(names)};
}

Status SchemaCompiler::addObjects(const Rule &rule) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Property> properties,
                            propertiesOf(rule.schemas));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<OtherNames> others,
                            otherNames(rule.schemas, properties));
  // Node `after` follows a value; those before property i may be missing.
  bool mayBegin = true;
  uint32_t after = builder.addNode();
  for (const Property &property : properties) {
    if (builder.isFull())
      return {};
    const uint32_t value = builder.addNode(), next = builder.addNode();
    const Expression name =
        pool.concat(JsonTexts::quoted(pool, property.name), texts.colon);
    if (mayBegin)
      builder.addText(rule.first, pool.concat(texts.openObject, name), value);
    builder.addText(after, pool.concat(texts.comma, name), value);
    SANDWICH_RETURN_IF_ERROR(addValues(property.schemas, value, next));
    if (property.required)
      mayBegin = false;
    else
      builder.addEmpty(after, next);
    after = next;
  }
  builder.addText(after, texts.closeObject, rule.last);
  if (mayBegin)
    builder.addText(rule.first, texts.emptyObject, rule.last);
  if (others.empty())
    return {};
  const uint32_t name = builder.addNode();
  builder.addText(after, texts.comma, name);
  if (mayBegin)
    builder.addText(rule.first, texts.openObject, name);
  for (const OtherNames &each : others) {
    const uint32_t colon = builder.addNode(), value = builder.addNode();
    builder.addText(name, each.text, each.condition, colon);
    builder.addText(colon, texts.colon, value);
    SANDWICH_RETURN_IF_ERROR(addValues(each.schemas, value, after));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// The keyword with the schemas of the first items, and that of all others.
static std::pair<const char *, const char *> itemKeywords(const Json &schema) {
  const auto items = schema.find("items");
  if (items != schema.end() && items->is_array())
    return {"items", "additionalItems"};
  return {"prefixItems", "items"};
}

static size_t firstItems(const Json &schema) {
  const auto first = schema.find(itemKeywords(schema).first);
  return first == schema.end() ? 0 : first->size();
}

SchemaSet SchemaCompiler::itemSchemas(const SchemaSet &schemas, size_t index) {
  SchemaSet result;
  for (const Json *schema : schemas) {
    const auto [first, others] = itemKeywords(*schema);
    if (index < firstItems(*schema))
      result.push_back(expansion.memberOf(*schema, first, std::to_string(index),
                                          schema->at(first)[index]));
    else if (const Json *rest = expansion.member(*schema, others))
      result.push_back(rest);
  }
  return result;
}

Status SchemaCompiler::addArrays(const Rule &rule) {
  uint32_t least = 0, most = ExpressionPool::unlimited;
  size_t listed = 0;
  for (const Json *schema : rule.schemas) {
    least = std::max(least, sizeIn(*schema, "minItems", 0));
    most =
        std::min(most, sizeIn(*schema, "maxItems", ExpressionPool::unlimited));
    listed = std::max(listed, firstItems(*schema));
  }
  if (least > most)
    return {};
  if (least == 0)
    builder.addText(rule.first, texts.emptyArray, rule.last);
  // From `before`, where an item may begin, to `after`, where it has ended.
  uint32_t before = builder.addNode();
  builder.addText(rule.first, texts.openArray, before);
  for (uint32_t count = 0; count < most && !builder.isFull(); ++count) {
    const uint32_t after = builder.addNode();
    SANDWICH_RETURN_IF_ERROR(
        addValues(itemSchemas(rule.schemas, count), before, after));
    if (count + 1 >= least)
      builder.addText(after, texts.closeArray, rule.last);
    if (most == ExpressionPool::unlimited && count >= listed &&
        count + 1 >= least) {
      // All others are like this one.
      builder.addText(after, texts.comma, before);
      break;
    }
    before = builder.addNode();
    builder.addText(after, texts.comma, before);
  }
  return {};
}
