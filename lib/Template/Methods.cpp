//===- Methods.cpp - Methods of Python's values ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Characters.h"
#include "Formatting.h"
#include "Objects.h"
#include "Operators.h"
#include "Parameters.h"
#include "Printing.h"
#include "TextOperations.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::jinja;

static Value answer(bool isSo) { return {isSo, Origin::Template}; }

/// The argument, which must be a string.
static Result<const MarkedText *> textOf(const std::optional<Value> &argument) {
  if (!argument || !argument->isString())
    return makeError("needs a string, not ",
                     argument ? typeName(*argument) : "nothing");
  return &argument->text();
}

/// Error: of markup, which would have to escape its arguments.
static Status refuseMarkup(const Value &self) {
  if (self.string().isMarkup)
    return makeError("is not supported for markup");
  return {};
}

//===----------------------------------------------------------------------===//
// Case and classes of characters
//===----------------------------------------------------------------------===//

template <std::string (*change)(std::string_view)>
static Result<Value> stringChange(RenderState &state, const Value &self,
                                  BoundArguments) {
  return changeText(state, self.string(), change);
}

/// Whether there are characters, all of them of a class.
template <bool (*isOfClass)(char32_t)>
static Result<Value> stringHasClass(RenderState &state, const Value &self,
                                    BoundArguments) {
  const std::string_view text = self.bytes();
  state.spendBytes(text.size());
  for (size_t i = 0; i < text.size(); i += characterLength(text[i]))
    if (!isOfClass(firstCharacter(text.substr(i))))
      return answer(false);
  return answer(!text.empty());
}

static bool isAlphanumeric(char32_t character) {
  return character != '_' && isWord(character);
}

static Result<Value> stringIsAscii(RenderState &, const Value &self,
                                   BoundArguments) {
  return answer(self.string().isAscii());
}

static Result<Value> stringIsPrintable(RenderState &state, const Value &self,
                                       BoundArguments arguments) {
  if (self.text().empty())
    return answer(true);
  return stringHasClass<isPrintable>(state, self, arguments);
}

/// Whether there are letters with case, all of one.
template <bool isUpperCase>
static Result<Value> stringHasCase(RenderState &state, const Value &self,
                                   BoundArguments) {
  const std::string_view text = self.bytes();
  state.spendBytes(text.size());
  bool hasAny = false;
  for (size_t i = 0; i < text.size(); i += characterLength(text[i])) {
    const char32_t character = firstCharacter(text.substr(i));
    if (isUpperCase ? isLower(character) : isUpper(character))
      return answer(false);
    hasAny |= isUpperCase ? isUpper(character) : isLower(character);
  }
  return answer(hasAny);
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

namespace {
/// The part of a string that a method's `start` and `end` leave, in bytes, or
/// nothing where the start is behind the end of the string.
struct Window {
  size_t begin;
  size_t end;
  bool isValid;
};
} // namespace

static Result<Window> windowOf(const Value &self,
                               const std::optional<Value> &start,
                               const std::optional<Value> &end) {
  const String &string = self.string();
  const auto length = static_cast<int64_t>(string.characters);
  SANDWICH_ASSIGN_OR_RETURN(int64_t first, integerOr(start, 0));
  SANDWICH_ASSIGN_OR_RETURN(int64_t last, integerOr(end, length));
  auto bounded = [&](int64_t index) {
    if (index < 0)
      index = index < -length ? 0 : index + length;
    return std::min(index, length);
  };
  // Behind the end not even an empty text is found.
  const bool isValid = first <= length && bounded(first) <= bounded(last);
  return Window{string.offsetOf(static_cast<size_t>(bounded(first))),
                string.offsetOf(static_cast<size_t>(bounded(last))), isValid};
}

/// The place, in characters, where a text is found, or -1.
static Result<int64_t> findPlace(RenderState &state, const Value &self,
                                 BoundArguments arguments, bool isLast) {
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *part, textOf(arguments[0]));
  SANDWICH_ASSIGN_OR_RETURN(Window window,
                            windowOf(self, arguments[1], arguments[2]));
  state.spendBytes(self.text().size());
  if (!window.isValid)
    return -1;
  const auto text = std::string_view(self.bytes())
                        .substr(window.begin, window.end - window.begin);
  const size_t found = isLast ? findLastText(text, part->bytes())
                              : findText(text, part->bytes(), 0);
  if (found == text.npos)
    return -1;
  return static_cast<int64_t>(countCharacters(
      std::string_view(self.bytes()).substr(0, window.begin + found)));
}

template <bool isLast, bool mustExist>
static Result<Value> stringFind(RenderState &state, const Value &self,
                                BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(int64_t place,
                            findPlace(state, self, arguments, isLast));
  if (mustExist && place < 0)
    return makeError("finds no such part");
  return Value(place, self.origin() | arguments[0]->origin());
}

static Result<Value> stringCount(RenderState &state, const Value &self,
                                 BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *part, textOf(arguments[0]));
  SANDWICH_ASSIGN_OR_RETURN(Window window,
                            windowOf(self, arguments[1], arguments[2]));
  state.spendBytes(self.text().size());
  const Origin origin = self.origin() | part->origin();
  if (!window.isValid)
    return Value(int64_t{0}, origin);
  const auto text = std::string_view(self.bytes())
                        .substr(window.begin, window.end - window.begin);
  if (part->empty())
    return Value(static_cast<int64_t>(countCharacters(text)) + 1, origin);
  int64_t count = 0;
  for (size_t i = findText(text, part->bytes(), 0); i != text.npos;
       i = findText(text, part->bytes(), i + part->size()))
    ++count;
  return Value(count, origin);
}

/// Whether the string begins, or ends, with a text or one of a tuple of them.
template <bool isEnd>
static Result<Value> stringHasEnd(RenderState &, const Value &self,
                                  BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Window window,
                            windowOf(self, arguments[1], arguments[2]));
  const auto text = std::string_view(self.bytes())
                        .substr(window.begin, window.end - window.begin);
  auto matches = [&](const Value &part) -> Result<bool> {
    SANDWICH_ASSIGN_OR_RETURN(const MarkedText *bytes, textOf(part));
    return window.isValid && (isEnd ? text.ends_with(bytes->bytes())
                                    : text.starts_with(bytes->bytes()));
  };
  const Value &argument = *arguments[0];
  if (!argument.isTuple()) {
    SANDWICH_ASSIGN_OR_RETURN(bool isMatch, matches(argument));
    return answer(isMatch);
  }
  for (const Value &each : argument.items()) {
    SANDWICH_ASSIGN_OR_RETURN(bool isMatch, matches(each));
    if (isMatch)
      return answer(true);
  }
  return answer(false);
}

//===----------------------------------------------------------------------===//
// Parts of strings
//===----------------------------------------------------------------------===//

template <Ends ends>
static Result<Value> stringStrip(RenderState &state, const Value &self,
                                 BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *characters,
                            textOrNull(arguments[0]));
  return stripText(state, self.string(), characters, ends);
}

template <bool isFromRight>
static Result<Value> stringSplit(RenderState &state, const Value &self,
                                 BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *separator,
                            textOrNull(arguments[0]));
  SANDWICH_ASSIGN_OR_RETURN(int64_t count, integerOr(arguments[1], -1));
  return splitText(state, self.string(), separator, count, isFromRight);
}

static Result<Value> stringSplitLines(RenderState &state, const Value &self,
                                      BoundArguments arguments) {
  return splitLines(state, self.string(), isTrueOr(arguments[0], false));
}

template <bool isFromRight>
static Result<Value> stringPartition(RenderState &state, const Value &self,
                                     BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *separator, textOf(arguments[0]));
  SANDWICH_ASSIGN_OR_RETURN(
      Value parts, splitText(state, self.string(), separator, 1, isFromRight));
  std::vector<Value> items = parts.items();
  const Value nothing = state.string("", Origin::Template);
  if (items.size() == 2) {
    items.insert(items.begin() + 1, *arguments[0]);
  } else if (isFromRight) {
    items = {nothing, nothing, self};
  } else {
    items = {self, nothing, nothing};
  }
  return state.tuple(std::move(items), self.origin());
}

template <bool isSuffix>
static Result<Value> stringRemoveEnd(RenderState &state, const Value &self,
                                     BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *end, textOf(arguments[0]));
  const std::string_view text = self.bytes();
  if (end->empty() || !(isSuffix ? text.ends_with(end->bytes())
                                 : text.starts_with(end->bytes())))
    return self;
  // A request that says what is cut off makes what is left data.
  const size_t begin = isSuffix ? 0 : end->size();
  const MarkedText rest =
      self.text().slice(begin, begin + text.size() - end->size());
  if (end->origin() == Origin::Data)
    return state.string(MarkedText(rest.bytes(), Origin::Data),
                        self.string().isMarkup);
  return state.string(rest, self.string().isMarkup);
}

//===----------------------------------------------------------------------===//
// Strings from parts
//===----------------------------------------------------------------------===//

static Result<Value> stringFormat(RenderState &state, const Value &self,
                                  const Arguments &arguments) {
  return formatBraces(state, self, arguments);
}

static Result<Value> stringJoin(RenderState &state, const Value &self,
                                BoundArguments arguments) {
  SANDWICH_RETURN_IF_ERROR(refuseMarkup(self));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items,
                            collect(state, *arguments[0]));
  for (const Value &item : items)
    if (!item.isString())
      return makeError("needs strings, not ", typeName(item));
  return joinTexts(state, self.text(), items);
}

static Result<Value> stringReplace(RenderState &state, const Value &self,
                                   BoundArguments arguments) {
  SANDWICH_RETURN_IF_ERROR(refuseMarkup(self));
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *old, textOf(arguments[0]));
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *replacement,
                            textOf(arguments[1]));
  SANDWICH_ASSIGN_OR_RETURN(int64_t count, integerOr(arguments[2], -1));
  return replaceText(state, self.text(), *old, *replacement, count);
}

template <Alignment alignment>
static Result<Value> stringPad(RenderState &state, const Value &self,
                               BoundArguments arguments) {
  SANDWICH_RETURN_IF_ERROR(refuseMarkup(self));
  SANDWICH_ASSIGN_OR_RETURN(int64_t width, integerOf(arguments[0]));
  MarkedText fill(" ", Origin::Template);
  if (arguments[1]) {
    SANDWICH_ASSIGN_OR_RETURN(const MarkedText *given, textOf(arguments[1]));
    if (countCharacters(given->bytes()) != 1)
      return makeError("fills with one character");
    fill = *given;
  }
  return padText(state, self.string(), width, fill, alignment);
}

static Result<Value> stringZeroFill(RenderState &state, const Value &self,
                                    BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(int64_t width, integerOf(arguments[0]));
  const MarkedText zero("0", Origin::Template);
  const MarkedText &text = self.text();
  const bool isSigned =
      text.bytes().starts_with('-') || text.bytes().starts_with('+');
  if (!isSigned)
    return padText(state, self.string(), width, zero, Alignment::Right);
  const Value digits = state.string(text.slice(1, text.size()));
  const Value filled =
      padText(state, digits.string(), std::max<int64_t>(width, 1) - 1, zero,
              Alignment::Right);
  return applyBinary(state, BinaryOperator::Add, state.string(text.slice(0, 1)),
                     filled);
}

static Result<Value> stringExpandTabs(RenderState &state, const Value &self,
                                      BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(int64_t size, integerOr(arguments[0], 8));
  const MarkedText &text = self.text();
  const std::string &bytes = text.bytes();
  TextBuilder expanded(state);
  int64_t column = 0;
  for (size_t i = 0; i < bytes.size(); i += characterLength(bytes[i])) {
    SANDWICH_RETURN_IF_ERROR(state.check());
    const size_t end = i + characterLength(bytes[i]);
    if (bytes[i] != '\t') {
      column = bytes[i] == '\n' || bytes[i] == '\r' ? 0 : column + 1;
      expanded.append(text, i, end);
      continue;
    }
    const Origin origin = text.slice(i, end).origin();
    const int64_t count = size > 0 ? size - column % size : 0;
    for (int64_t k = 0; k < count && !state.isExhausted(); ++k)
      expanded.append(" ", origin);
    column += count;
  }
  return expanded.finish(self.string().isMarkup);
}

//===----------------------------------------------------------------------===//
// Lists and dictionaries
//===----------------------------------------------------------------------===//

static Result<Value> sequenceCount(RenderState &state, const Value &self,
                                   BoundArguments arguments) {
  int64_t count = 0;
  for (const Value &item : self.items())
    count += equals(state, item, *arguments[0]);
  return Value(count, self.origin());
}

static Result<Value> sequenceIndex(RenderState &state, const Value &self,
                                   BoundArguments arguments) {
  for (size_t i = 0; i != self.items().size(); ++i)
    if (equals(state, self.items()[i], *arguments[0]))
      return Value(static_cast<int64_t>(i), self.origin());
  return makeError("finds no such item");
}

static Result<Value> copySelf(RenderState &, const Value &self,
                              BoundArguments) {
  return self;
}

static Result<Value> dictionaryGet(RenderState &state, const Value &self,
                                   BoundArguments arguments) {
  const Value &key = *arguments[0];
  if (!key.isUndefined() && !isHashable(key))
    return makeError("a ", typeName(key), " cannot be a key");
  state.spend(keyCost(key));
  if (!key.isUndefined())
    if (const Value *found = self.dictionary()->find(key))
      return *found;
  return arguments[1] ? *arguments[1] : Value();
}

template <DictionaryView::Part part>
static Result<Value> dictionaryView(RenderState &, const Value &self,
                                    BoundArguments) {
  return Value(DictionaryView{self.dictionary(), part}, self.origin());
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

static Result<Value> cyclerNext(RenderState &, const Value &self,
                                BoundArguments) {
  auto &cycler = static_cast<Cycler &>(self.object());
  const Value &item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

static Result<Value> cyclerReset(RenderState &, const Value &self,
                                 BoundArguments) {
  static_cast<Cycler &>(self.object()).position = 0;
  return Value();
}

static Result<Value> loopCycle(RenderState &, const Value &self,
                               const Arguments &arguments) {
  const auto &loop = static_cast<Loop &>(self.object());
  if (arguments.positional.empty() || !arguments.keywords.empty())
    return makeError("needs items to cycle through");
  return arguments.positional[(loop.index - 1) % arguments.positional.size()];
}

static Result<Value> loopChanged(RenderState &state, const Value &self,
                                 const Arguments &arguments) {
  auto &loop = static_cast<Loop &>(self.object());
  Value seen = state.tuple(arguments.positional);
  const bool isSame = loop.lastSeen && equals(state, *loop.lastSeen, seen);
  if (!isSame)
    loop.lastSeen = std::move(seen);
  return answer(!isSame);
}

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

static const Method *findStringMethod(std::string_view name) {
  static constexpr Method methods[] = {
      {{"capitalize", stringChange<capitalize>}},
      {{"casefold"}},
      {{"center",
        stringPad<Alignment::Center>,
        nullptr,
        {"width", "fillchar"},
        1}},
      {{"count", stringCount, nullptr, {"sub", "start", "end"}, 1}},
      {{"encode"}},
      {{"endswith",
        stringHasEnd<true>,
        nullptr,
        {"suffix", "start", "end"},
        1}},
      {{"expandtabs", stringExpandTabs, nullptr, {"tabsize"}}},
      {{"find", stringFind<false, false>, nullptr, {"sub", "start", "end"}, 1}},
      {{"format", nullptr, stringFormat}},
      {{"format_map"}},
      {{"index", stringFind<false, true>, nullptr, {"sub", "start", "end"}, 1}},
      {{"isalnum", stringHasClass<isAlphanumeric>}},
      {{"isalpha", stringHasClass<isAlphabetic>}},
      {{"isascii", stringIsAscii}},
      {{"isdecimal", stringHasClass<isDecimal>}},
      {{"isdigit", stringHasClass<isDigit>}},
      {{"isidentifier"}},
      {{"islower", stringHasCase<false>}},
      {{"isnumeric"}},
      {{"isprintable", stringIsPrintable}},
      {{"isspace", stringHasClass<isSpace>}},
      {{"istitle"}},
      {{"isupper", stringHasCase<true>}},
      {{"join", stringJoin, nullptr, {"iterable"}, 1}},
      {{"ljust",
        stringPad<Alignment::Left>,
        nullptr,
        {"width", "fillchar"},
        1}},
      {{"lower", stringChange<toLower>}},
      {{"lstrip", stringStrip<Ends::Left>, nullptr, {"chars"}}},
      {{"maketrans"}},
      {{"partition", stringPartition<false>, nullptr, {"sep"}, 1}},
      {{"removeprefix", stringRemoveEnd<false>, nullptr, {"prefix"}, 1}},
      {{"removesuffix", stringRemoveEnd<true>, nullptr, {"suffix"}, 1}},
      {{"replace", stringReplace, nullptr, {"old", "new", "count"}, 2}},
      {{"rfind", stringFind<true, false>, nullptr, {"sub", "start", "end"}, 1}},
      {{"rindex", stringFind<true, true>, nullptr, {"sub", "start", "end"}, 1}},
      {{"rjust",
        stringPad<Alignment::Right>,
        nullptr,
        {"width", "fillchar"},
        1}},
      {{"rpartition", stringPartition<true>, nullptr, {"sep"}, 1}},
      {{"rsplit", stringSplit<true>, nullptr, {"sep", "maxsplit"}}},
      {{"rstrip", stringStrip<Ends::Right>, nullptr, {"chars"}}},
      {{"split", stringSplit<false>, nullptr, {"sep", "maxsplit"}}},
      {{"splitlines", stringSplitLines, nullptr, {"keepends"}}},
      {{"startswith",
        stringHasEnd<false>,
        nullptr,
        {"prefix", "start", "end"},
        1}},
      {{"strip", stringStrip<Ends::Both>, nullptr, {"chars"}}},
      {{"swapcase", stringChange<swapCase>}},
      {{"title", stringChange<toTitle>}},
      {{"translate"}},
      {{"upper", stringChange<toUpper>}},
      {{"zfill", stringZeroFill, nullptr, {"width"}, 1}},
  };
  return findByName(methods, name);
}

static const Method *findSequenceMethod(bool isTuple, std::string_view name) {
  static constexpr Method methods[] = {
      {{"copy", copySelf}},
      {{"count", sequenceCount, nullptr, {"value"}, 1}},
      {{"index", sequenceIndex, nullptr, {"value"}, 1}},
  };
  if (isTuple && name == "copy")
    return nullptr;
  return findByName(methods, name);
}

static const Method *findDictionaryMethod(std::string_view name) {
  using Part = DictionaryView::Part;
  static constexpr Method methods[] = {
      {{"copy", copySelf}},
      {{"fromkeys"}},
      {{"get", dictionaryGet, nullptr, {"key", "default"}, 1}},
      {{"items", dictionaryView<Part::Items>}},
      {{"keys", dictionaryView<Part::Keys>}},
      {{"values", dictionaryView<Part::Values>}},
  };
  return findByName(methods, name);
}

static const Method *findObjectMethod(const Object &object,
                                      std::string_view name) {
  static constexpr Method ofCycler[] = {
      {{"next", cyclerNext}},
      {{"reset", cyclerReset}},
  };
  static constexpr Method ofLoop[] = {
      {{"changed", nullptr, loopChanged}},
      {{"cycle", nullptr, loopCycle}},
  };
  switch (object.kind()) {
  case Object::Kind::Cycler:
    return findByName(ofCycler, name);
  case Object::Kind::Loop:
    return findByName(ofLoop, name);
  default:
    return nullptr;
  }
}

const Method *jinja::findMethod(const Value &receiver, std::string_view name) {
  switch (receiver.kind()) {
  case Value::Kind::String:
    return findStringMethod(name);
  case Value::Kind::Sequence:
    return findSequenceMethod(receiver.isTuple(), name);
  case Value::Kind::Dictionary:
    return findDictionaryMethod(name);
  case Value::Kind::Object:
    return findObjectMethod(receiver.object(), name);
  default:
    return nullptr;
  }
}

bool jinja::isMutating(const Value &receiver, std::string_view name) {
  static constexpr std::string_view ofLists[] = {"append",  "clear", "extend",
                                                 "insert",  "pop",   "remove",
                                                 "reverse", "sort"};
  static constexpr std::string_view ofDictionaries[] = {
      "clear", "pop", "popitem", "setdefault", "update"};
  if (receiver.isList())
    return std::ranges::find(ofLists, name) != std::end(ofLists);
  return receiver.is(Value::Kind::Dictionary) &&
         std::ranges::find(ofDictionaries, name) != std::end(ofDictionaries);
}
