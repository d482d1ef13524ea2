//===- RenderState.cpp - What one rendering has ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RenderState.h"

#include "sandwich/Support/Utf8.h"

#include <limits>

using namespace sandwich;
using namespace sandwich::jinja;

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

void RenderState::exhaust(const std::string &reason) {
  if (!exhausted)
    exhausted = Error{reason};
}

void RenderState::exhaustMemory() {
  exhaust("its values take more than " + std::to_string(limits.memoryBytes) +
          " bytes");
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value RenderState::string(MarkedText text, bool isMarkup) {
  MemoryShare memory = share();
  if (!memory.grow(sizeof(String) + text.size() +
                   text.trusted().size() * sizeof(ByteRange)))
    exhaustMemory();
  spendBytes(text.size());
  return Value(
      std::make_shared<String>(std::move(text), isMarkup, std::move(memory)));
}

Value RenderState::sequence(std::vector<Value> items, bool isTuple,
                            Origin origin) {
  MemoryShare memory = share();
  if (!memory.grow(sizeof(Sequence) + items.size() * sizeof(Value)))
    exhaustMemory();
  spend(items.size());
  auto sequence =
      std::make_shared<Sequence>(std::move(items), isTuple, std::move(memory));
  if (sequence->depth > maxValueDepth)
    exhaust("its lists lie in each other more than " +
            std::to_string(maxValueDepth) + " deep");
  return {SequencePointer(std::move(sequence)), origin};
}

Result<Value> RenderState::dictionary(std::vector<Dictionary::Entry> entries,
                                      Origin origin) {
  uint64_t cost = entries.size();
  for (const auto &[key, value] : entries) {
    if (!isHashable(key))
      return makeError("a ", typeName(key), " cannot be a key");
    cost += keyCost(key);
  }
  spend(cost);
  MemoryShare memory = share();
  if (!memory.grow(sizeof(Dictionary) +
                   entries.size() *
                       (sizeof(Dictionary::Entry) + sizeof(uint32_t))))
    exhaustMemory();
  if (entries.size() > std::numeric_limits<uint32_t>::max() || isExhausted())
    return makeError("a dictionary has too many keys");
  auto dictionary =
      std::make_shared<Dictionary>(std::move(entries), std::move(memory));
  if (dictionary->depth > maxValueDepth)
    exhaust("its dictionaries lie in each other more than " +
            std::to_string(maxValueDepth) + " deep");
  return Value(DictionaryPointer(std::move(dictionary)), origin);
}

std::string jinja::excerpt(std::string_view text) {
  constexpr size_t longest = 100;
  if (text.size() <= longest)
    return std::string(text);
  return std::string(
             text.substr(0, lastCharacterOffset(text.substr(0, longest)))) +
         "...";
}

Value RenderState::undefined(std::string reason) {
  return Undefined{std::make_shared<const std::string>(std::move(reason))};
}

Value RenderState::missing(const Value &object, std::string_view name) {
  std::string type(typeName(object));
  if (!object.isNone())
    type += " object";
  return undefined("'" + type + "' has no attribute '" + excerpt(name) + "'");
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Result<Value> RenderState::fromText(const std::string &text, Origin origin) {
  if (std::optional<size_t> offset = findInvalidUtf8(text))
    return makeError("the variables hold a string that is not UTF-8 at byte ",
                     *offset);
  return string(text, origin);
}

Result<Value> RenderState::fromJson(const Json &json, Origin origin) {
  return fromJson(json, origin, 0);
}

Result<Value> RenderState::fromJson(const Json &json, Origin origin,
                                    unsigned depth) {
  if (depth == maxValueDepth)
    return makeError("the variables lie in each other more than ",
                     maxValueDepth, " deep");
  SANDWICH_RETURN_IF_ERROR(check());
  switch (json.type()) {
  case Json::value_t::null:
    return Value::none(origin);
  case Json::value_t::boolean:
    return Value(json.get<bool>(), origin);
  case Json::value_t::number_integer:
    return Value(json.get<int64_t>(), origin);
  case Json::value_t::number_unsigned: {
    const auto number = json.get<uint64_t>();
    if (number > uint64_t(std::numeric_limits<int64_t>::max()))
      return makeError("the variables hold the integer ", number,
                       ", which has more than 64 bits");
    return Value(static_cast<int64_t>(number), origin);
  }
  case Json::value_t::number_float:
    return Value(json.get<double>(), origin);
  case Json::value_t::string:
    return fromText(json.get_ref<const std::string &>(), origin);
  case Json::value_t::array: {
    std::vector<Value> items;
    items.reserve(json.size());
    for (const Json &each : json) {
      SANDWICH_ASSIGN_OR_RETURN(Value item, fromJson(each, origin, depth + 1));
      items.push_back(std::move(item));
    }
    return list(std::move(items), origin);
  }
  case Json::value_t::object: {
    std::vector<Dictionary::Entry> entries;
    entries.reserve(json.size());
    for (const auto &[name, each] : json.items()) {
      SANDWICH_ASSIGN_OR_RETURN(Value key, fromText(name, origin));
      SANDWICH_ASSIGN_OR_RETURN(Value value, fromJson(each, origin, depth + 1));
      entries.emplace_back(std::move(key), std::move(value));
    }
    return dictionary(std::move(entries), origin);
  }
  default:
    return makeError("the variables hold what is no JSON");
  }
}
