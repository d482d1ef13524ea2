//===- Value.cpp - What templates compute with ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Value.h"

#include "Characters.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;
using namespace sandwich::jinja;

/// Below this many entries a dictionary is searched from the first on.
static constexpr size_t fewEntries = 8;

//===----------------------------------------------------------------------===//
// Value
//===----------------------------------------------------------------------===//

bool Value::isList() const { return is(Kind::Sequence) && !sequence().isTuple; }

bool Value::isTuple() const { return is(Kind::Sequence) && sequence().isTuple; }

const std::string &Value::bytes() const { return text().bytes(); }

const MarkedText &Value::text() const { return string().text; }

const std::vector<Value> &Value::items() const { return sequence().items; }

Origin Value::origin() const { return isString() ? text().origin() : from; }

unsigned Value::depth() const {
  switch (kind()) {
  case Kind::Sequence:
    return sequence().depth;
  case Kind::Dictionary:
    return dictionary()->depth;
  case Kind::View:
    return view().dictionary->depth + 1;
  default:
    return 0;
  }
}

bool Value::isSame(const Value &other) const {
  if (kind() != other.kind())
    return false;
  switch (kind()) {
  case Kind::Undefined:
    return std::get<Undefined>(contents).reason ==
           std::get<Undefined>(other.contents).reason;
  case Kind::None:
    return true;
  case Kind::Boolean:
    return boolean() == other.boolean();
  case Kind::Integer:
    return integer() == other.integer();
  case Kind::Float:
    return number() == other.number();
  case Kind::String:
    return &string() == &other.string();
  case Kind::Sequence:
    return &sequence() == &other.sequence();
  case Kind::Dictionary:
    return dictionary() == other.dictionary();
  case Kind::View:
    return false;
  case Kind::Range:
    return &range() == &other.range();
  case Kind::Object:
    return &object() == &other.object();
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Strings and containers
//===----------------------------------------------------------------------===//

String::String(MarkedText text, bool isMarkup, MemoryShare share)
    : text(std::move(text)), characters(countCharacters(this->text.bytes())),
      isMarkup(isMarkup), share(std::move(share)) {}

size_t String::offsetOf(size_t index) const {
  return isAscii() ? std::min(index, text.size())
                   : offsetOfCharacter(text.bytes(), index);
}

Sequence::Sequence(std::vector<Value> items, bool isTuple, MemoryShare share)
    : items(std::move(items)), isTuple(isTuple), share(std::move(share)) {
  for (const Value &item : this->items)
    depth = std::max(depth, item.depth() + 1);
}

/// The indexes of `entries`, by key, and of equal keys by index.
static std::vector<uint32_t>
orderOf(const std::vector<Dictionary::Entry> &entries) {
  std::vector<uint32_t> order(entries.size());
  for (uint32_t i = 0; i != order.size(); ++i)
    order[i] = i;
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return std::is_lt(compareKeys(entries[a].first, entries[b].first));
  });
  return order;
}

Dictionary::Dictionary(std::vector<Entry> given, MemoryShare share)
    : share(std::move(share)) {
  order = orderOf(given);
  // Of equal keys the first keeps its place and gets the last one's value.
  std::vector<bool> isRepeated(given.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i + 1;
    while (end < order.size() &&
           std::is_eq(
               compareKeys(given[order[i]].first, given[order[end]].first))) {
      isRepeated[order[end]] = true;
      ++end;
    }
    if (end - i > 1)
      given[order[i]].second = given[order[end - 1]].second;
    i = end;
  }
  const bool anyRepeated =
      std::ranges::find(isRepeated, true) != isRepeated.end();
  if (!anyRepeated) {
    entries = std::move(given);
  } else {
    for (size_t i = 0; i != given.size(); ++i)
      if (!isRepeated[i])
        entries.push_back(std::move(given[i]));
    order = orderOf(entries);
  }
  if (entries.size() <= fewEntries)
    order = {};
  for (const auto &[key, value] : entries)
    depth = std::max({depth, key.depth() + 1, value.depth() + 1});
}

const Value *Dictionary::find(const Value &key) const {
  if (order.empty()) {
    for (const auto &[name, value] : entries)
      if (std::is_eq(compareKeys(name, key)))
        return &value;
    return nullptr;
  }
  auto found = std::ranges::partition_point(order, [&](uint32_t i) {
    return std::is_lt(compareKeys(entries[i].first, key));
  });
  if (found == order.end() ||
      !std::is_eq(compareKeys(entries[*found].first, key)))
    return nullptr;
  return &entries[*found].second;
}

/// As `compareKeys` with a string.
static std::weak_ordering compareWithString(const Value &key,
                                            std::string_view name) {
  // Numbers, strings, None and tuples come in this order.
  if (key.isString())
    return std::string_view(key.bytes()) <=> name;
  return key.isNumber() ? std::weak_ordering::less
                        : std::weak_ordering::greater;
}

const Value *Dictionary::find(std::string_view key) const {
  if (order.empty()) {
    for (const auto &[name, value] : entries)
      if (name.isString() && name.bytes() == key)
        return &value;
    return nullptr;
  }
  auto found = std::ranges::partition_point(order, [&](uint32_t i) {
    return std::is_lt(compareWithString(entries[i].first, key));
  });
  if (found == order.end() ||
      !std::is_eq(compareWithString(entries[*found].first, key)))
    return nullptr;
  return &entries[*found].second;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

std::string_view jinja::typeName(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Undefined:
    return "Undefined";
  case Value::Kind::None:
    return "None";
  case Value::Kind::Boolean:
    return "bool";
  case Value::Kind::Integer:
    return "int";
  case Value::Kind::Float:
    return "float";
  case Value::Kind::String:
    return "str";
  case Value::Kind::Sequence:
    return value.isTuple() ? "tuple" : "list";
  case Value::Kind::Dictionary:
    return "dict";
  case Value::Kind::View:
    switch (value.view().part) {
    case DictionaryView::Part::Keys:
      return "dict_keys";
    case DictionaryView::Part::Values:
      return "dict_values";
    case DictionaryView::Part::Items:
      return "dict_items";
    }
    break;
  case Value::Kind::Range:
    return "range";
  case Value::Kind::Object:
    switch (value.object().kind()) {
    case Object::Kind::BoundMethod:
      return "method";
    case Object::Kind::Cycler:
      return "cycler";
    case Object::Kind::Function:
      return "function";
    case Object::Kind::Generator:
      return "generator";
    case Object::Kind::Joiner:
      return "joiner";
    case Object::Kind::Loop:
      return "loop";
    case Object::Kind::Macro:
      return "macro";
    case Object::Kind::Namespace:
      return "namespace";
    }
    break;
  }
  return "value";
}

bool jinja::isHashable(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::None:
  case Value::Kind::Boolean:
  case Value::Kind::Integer:
  case Value::Kind::Float:
  case Value::Kind::String:
    return true;
  case Value::Kind::Sequence:
    return value.isTuple() && std::ranges::all_of(value.items(), [](auto &v) {
             return v.depth() == 0 && isHashable(v);
           });
  default:
    return false;
  }
}

size_t jinja::keyCost(const Value &key) {
  if (key.isString())
    return key.text().size() / 64;
  if (!key.isTuple())
    return 0;
  size_t cost = key.items().size();
  for (const Value &item : key.items())
    if (item.isString())
      cost += item.text().size() / 64;
  return cost;
}

/// Where the kind of `key` stands in the order of keys.
static int rankOf(const Value &key) {
  return key.isNumber() ? 0 : key.isString() ? 1 : key.isNone() ? 2 : 3;
}

std::weak_ordering jinja::compareKeys(const Value &a, const Value &b) {
  if (const int rank = rankOf(a); rank != rankOf(b))
    return rank <=> rankOf(b);
  if (a.isString())
    return a.bytes() <=> b.bytes();
  if (a.isNumber()) {
    const std::partial_ordering order = compareNumbers(a, b);
    if (order != std::partial_ordering::unordered)
      return std::is_lt(order)   ? std::weak_ordering::less
             : std::is_gt(order) ? std::weak_ordering::greater
                                 : std::weak_ordering::equivalent;
    // What is no number comes last.
    return std::isnan(a.number()) <=> std::isnan(b.number());
  }
  if (!a.isTuple() || !b.isTuple())
    return std::weak_ordering::equivalent;
  const std::vector<Value> &left = a.items(), &right = b.items();
  for (size_t i = 0; i != std::min(left.size(), right.size()); ++i)
    if (auto order = compareKeys(left[i], right[i]); !std::is_eq(order))
      return order;
  return left.size() <=> right.size();
}

/// Compares an integer with a number that may lie between two integers.
static std::partial_ordering compareMixed(int64_t integer, double number) {
  if (std::isnan(number))
    return std::partial_ordering::unordered;
  // 2^63, from where on no double is an int64_t.
  constexpr double bound = 9223372036854775808.0;
  if (number >= bound)
    return std::partial_ordering::less;
  if (number < -bound)
    return std::partial_ordering::greater;
  const double whole = std::floor(number);
  const auto rounded = static_cast<int64_t>(whole);
  if (integer != rounded)
    return integer <=> rounded;
  return whole < number ? std::partial_ordering::less
                        : std::partial_ordering::equivalent;
}

static std::partial_ordering reversed(std::partial_ordering order) {
  return 0 <=> order;
}

std::partial_ordering jinja::compareNumbers(const Value &a, const Value &b) {
  if (a.isInteger() && b.isInteger())
    return a.integer() <=> b.integer();
  if (a.isInteger())
    return compareMixed(a.integer(), b.number());
  if (b.isInteger())
    return reversed(compareMixed(b.integer(), a.number()));
  return a.number() <=> b.number();
}

bool jinja::isTrue(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Undefined:
  case Value::Kind::None:
    return false;
  case Value::Kind::Boolean:
  case Value::Kind::Integer:
    return value.integer() != 0;
  case Value::Kind::Float:
    return value.number() != 0;
  case Value::Kind::String:
    return !value.text().empty();
  case Value::Kind::Sequence:
    return !value.items().empty();
  case Value::Kind::Dictionary:
    return !value.dictionary()->entries.empty();
  case Value::Kind::View:
    return !value.view().dictionary->entries.empty();
  case Value::Kind::Range:
    return value.range().size != 0;
  case Value::Kind::Object:
    return true;
  }
  return false;
}
