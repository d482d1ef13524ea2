//===- Access.cpp - Parts of values ---------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"

#include "Characters.h"
#include "Objects.h"
#include "Operators.h"
#include "Printing.h"

#include <algorithm>
#include <charconv>

using namespace sandwich;
using namespace sandwich::jinja;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static Value count(size_t number, Origin origin) {
  return {static_cast<int64_t>(number), origin};
}

/// An attribute of `loop`. What tells how many items there are comes from where
/// they come from; which one it is, from the template that goes through them.
static Result<std::optional<Value>>
loopAttribute(RenderState &state, Loop &loop, std::string_view name) {
  using Attribute = std::optional<Value>;
  constexpr Origin here = Origin::Template;
  if (name == "index")
    return Attribute(count(loop.index, here));
  if (name == "index0")
    return Attribute(count(loop.index - 1, here));
  if (name == "first")
    return Attribute(Value(loop.index == 1, here));
  if (name == "depth")
    return Attribute(count(loop.depth, here));
  if (name == "depth0")
    return Attribute(count(loop.depth - 1, here));
  if (name == "previtem")
    return Attribute(loop.previous
                         ? *loop.previous
                         : RenderState::undefined("there is no previous item"));
  if (name == "last" || name == "nextitem") {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> next, loop.peek());
    if (name == "last")
      return Attribute(Value(!next, here));
    return Attribute(next ? *next
                          : RenderState::undefined("there is no next item"));
  }
  if (name != "length" && name != "revindex" && name != "revindex0")
    return Attribute();
  SANDWICH_ASSIGN_OR_RETURN(size_t length, loop.length(state));
  const size_t number = name == "length"     ? length
                        : name == "revindex" ? length - loop.index + 1
                                             : length - loop.index;
  return Attribute(count(number, loop.origin));
}

static Result<std::optional<Value>>
objectAttribute(RenderState &state, Object &object, std::string_view name) {
  using Attribute = std::optional<Value>;
  switch (object.kind()) {
  case Object::Kind::Loop:
    return loopAttribute(state, static_cast<Loop &>(object), name);
  case Object::Kind::Namespace: {
    const Value *found = static_cast<Namespace &>(object).find(name);
    return found ? Attribute(*found) : Attribute();
  }
  case Object::Kind::Cycler: {
    const auto &cycler = static_cast<Cycler &>(object);
    return name == "current" ? Attribute(cycler.items[cycler.position])
                             : Attribute();
  }
  case Object::Kind::Macro:
    return name == "name" ? Attribute(state.string(
                                static_cast<Macro &>(object).description.name,
                                Origin::Template))
                          : Attribute();
  default:
    return Attribute();
  }
}

/// A method or an attribute, or nothing.
static Result<std::optional<Value>>
findMember(RenderState &state, const Value &object, std::string_view name) {
  using Attribute = std::optional<Value>;
  if (isMutating(object, name))
    return Attribute(RenderState::undefined(
        "'" + std::string(name) + "' of a " + std::string(typeName(object)) +
        " changes it, which templates "
        "cannot"));
  if (const Method *method = findMethod(object, name))
    return Attribute(state.make<BoundMethod>(object, *method));
  if (object.is(Value::Kind::Object))
    return objectAttribute(state, object.object(), name);
  if (object.isTuple() && object.sequence().isGroup) {
    if (name == "grouper")
      return Attribute(object.items()[0]);
    if (name == "list")
      return Attribute(object.items()[1]);
  }
  return Attribute();
}

Result<Value> jinja::getMember(RenderState &state, const Value &object,
                               std::string_view name) {
  if (object.isUndefined())
    return undefinedError(object);
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> member,
                            findMember(state, object, name));
  return member ? *member : RenderState::missing(object, name);
}

Result<Value> jinja::getAttribute(RenderState &state, const Value &object,
                                  std::string_view name) {
  if (object.isUndefined())
    return undefinedError(object);
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> member,
                            findMember(state, object, name));
  if (member)
    return *std::move(member);
  if (object.is(Value::Kind::Dictionary))
    if (const Value *found = object.dictionary()->find(name))
      return *found;
  return RenderState::missing(object, name);
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

/// The index of a list of `size` that `index` is from its end or beginning.
static std::optional<size_t> placeOf(int64_t index, size_t size) {
  const auto length = static_cast<int64_t>(size);
  if (index < -length || index >= length)
    return std::nullopt;
  return static_cast<size_t>(index < 0 ? index + length : index);
}

/// The item at an integer index, or nothing.
static std::optional<Value> itemAt(RenderState &state, const Value &object,
                                   const Value &index) {
  switch (object.kind()) {
  case Value::Kind::String: {
    const String &string = object.string();
    const auto place = placeOf(index.integer(), string.characters);
    if (!place)
      return std::nullopt;
    state.spendBytes(string.text.size());
    const size_t begin = string.offsetOf(*place);
    const size_t end = begin + characterLength(string.text.bytes()[begin]);
    // Which character it is the request says, then.
    if (index.origin() == Origin::Data)
      return state.string(string.text.bytes().substr(begin, end - begin),
                          Origin::Data);
    return state.string(string.text.slice(begin, end), string.isMarkup);
  }
  case Value::Kind::Sequence: {
    const auto place = placeOf(index.integer(), object.items().size());
    return place ? std::optional(object.items()[*place]) : std::nullopt;
  }
  case Value::Kind::Range: {
    const Range &range = object.range();
    const auto place =
        placeOf(index.integer(), static_cast<size_t>(range.size));
    if (!place)
      return std::nullopt;
    return Value(range.at(static_cast<int64_t>(*place)),
                 object.origin() | index.origin());
  }
  default:
    return std::nullopt;
  }
}

/// The error that using an item makes which is not there.
static Value missingItem(RenderState &state, const Value &object,
                         const Value &index) {
  if (index.isString())
    return RenderState::missing(object, index.bytes());
  std::string shown(typeName(index));
  if (index.isNumber())
    if (Result<Value> text = represent(state, index))
      shown = text->bytes();
  return RenderState::undefined(std::string(typeName(object)) +
                                " object has no element " + shown);
}

Result<Value> jinja::getItem(RenderState &state, const Value &object,
                             const Value &index) {
  if (object.isUndefined())
    return undefinedError(object);
  if (object.is(Value::Kind::Dictionary)) {
    if (isHashable(index)) {
      state.spend(keyCost(index));
      if (const Value *found = object.dictionary()->find(index))
        return *found;
    }
  } else if (index.isInteger()) {
    if (std::optional<Value> item = itemAt(state, object, index))
      return *std::move(item);
  }
  if (!index.isString())
    return missingItem(state, object, index);
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> member,
                            findMember(state, object, index.bytes()));
  return member ? *member : missingItem(state, object, index);
}

//===----------------------------------------------------------------------===//
// Slices and paths
//===----------------------------------------------------------------------===//

/// The characters that `slice` says.
static Value sliceString(RenderState &state, const String &string,
                         const SliceIndexes &slice, Origin origin) {
  const MarkedText &text = string.text;
  MarkedText part;
  if (slice.step == 1) {
    const size_t begin =
        string.offsetOf(static_cast<size_t>(std::max<int64_t>(0, slice.start)));
    const size_t length =
        offsetOfCharacter(std::string_view(text.bytes()).substr(begin),
                          static_cast<size_t>(slice.count));
    part = text.slice(begin, begin + length);
  } else {
    std::vector<size_t> offsets;
    MemoryShare memory = state.share();
    if (!memory.grow(string.characters * sizeof(size_t))) {
      state.exhaustMemory();
      return state.string("", Origin::Template);
    }
    for (size_t i = 0; i < text.size(); i += characterLength(text.bytes()[i]))
      offsets.push_back(i);
    for (int64_t i = 0; i != slice.count; ++i) {
      const size_t begin =
          offsets[static_cast<size_t>(slice.start + i * slice.step)];
      part.append(text, begin, begin + characterLength(text.bytes()[begin]));
    }
  }
  state.spendBytes(text.size());
  if (origin == Origin::Data)
    return state.string(MarkedText(part.bytes(), Origin::Data),
                        string.isMarkup);
  return state.string(std::move(part), string.isMarkup);
}

Result<Value> jinja::getSlice(RenderState &state, const Value &object,
                              const Value *start, const Value *stop,
                              const Value *step) {
  if (object.isUndefined())
    return undefinedError(object);
  // What a request has chosen is data.
  Origin origin = Origin::Template;
  for (const Value *part : {start, stop, step})
    if (part)
      origin = origin | part->origin();
  if (!object.isString() && !object.is(Value::Kind::Sequence) &&
      !object.is(Value::Kind::Range))
    return makeError("a ", typeName(object), " has no slices");
  SANDWICH_ASSIGN_OR_RETURN(size_t length, lengthOf(object));
  SANDWICH_ASSIGN_OR_RETURN(SliceIndexes slice,
                            sliceIndexes(start, stop, step, length));
  if (object.isString())
    return sliceString(state, object.string(), slice, origin);
  origin = origin | object.origin();
  if (object.is(Value::Kind::Range)) {
    const Range &whole = object.range();
    auto part = std::make_shared<Range>();
    part->start = whole.at(slice.start);
    part->step = Range{.step = whole.step}.at(slice.step);
    part->stop = whole.at(slice.stop);
    part->size = slice.count;
    return Value(RangePointer(std::move(part)), origin);
  }
  std::vector<Value> items;
  for (int64_t i = 0; i != slice.count; ++i)
    items.push_back(
        object.items()[static_cast<size_t>(slice.start + i * slice.step)]);
  return state.sequence(std::move(items), object.isTuple(), origin);
}

Result<Value> jinja::getPath(RenderState &state, const Value &object,
                             const Value &path, const Value *otherwise) {
  auto orOtherwise = [&](Value found) {
    return otherwise && found.isUndefined() ? *otherwise : found;
  };
  if (!path.isString()) {
    SANDWICH_ASSIGN_OR_RETURN(Value found, getItem(state, object, path));
    return orOtherwise(std::move(found));
  }
  Value value = object;
  std::string_view rest = path.bytes();
  while (true) {
    const size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    int64_t number = 0;
    const auto parsed =
        std::from_chars(part.data(), part.data() + part.size(), number);
    const bool isNumber = !part.empty() && part[0] != '-' &&
                          parsed.ptr == part.data() + part.size() &&
                          parsed.ec == std::errc();
    SANDWICH_ASSIGN_OR_RETURN(
        value,
        getItem(state, value,
                isNumber ? Value(number, path.origin())
                         : state.string(std::string(part), path.origin())));
    value = orOtherwise(std::move(value));
    if (end == rest.size())
      return value;
    rest.remove_prefix(end + 1);
  }
}
