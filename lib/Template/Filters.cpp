//===- Filters.cpp - Filters of jinja2 ------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Builtins.h"
#include "Characters.h"
#include "Formatting.h"
#include "Iteration.h"
#include "Operators.h"
#include "Parameters.h"
#include "Printing.h"
#include "TextOperations.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace sandwich;
using namespace sandwich::jinja;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static Result<Value> filterCapitalize(RenderState &state, const Value &self,
                                      BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  return changeText(state, text.string(), capitalize);
}

static Result<Value> filterCenter(RenderState &state, const Value &self,
                                  BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  SANDWICH_ASSIGN_OR_RETURN(int64_t width, integerOr(arguments[0], 80));
  return padText(state, text.string(), width, MarkedText(" ", Origin::Template),
                 Alignment::Center);
}

static Result<Value> filterForceEscape(RenderState &state, const Value &self,
                                       BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  // The longest entity has five bytes.
  if (state.memoryLeft() / 5 < text.text().size())
    state.exhaustMemory();
  SANDWICH_RETURN_IF_ERROR(state.check());
  return state.string(escapeText(text.text()), true);
}

static Result<Value> filterEscape(RenderState &state, const Value &self,
                                  BoundArguments arguments) {
  if (self.isString() && self.string().isMarkup)
    return self;
  return filterForceEscape(state, self, arguments);
}

static Result<Value> filterFormat(RenderState &state, const Value &self,
                                  const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value format, toString(state, self));
  if (arguments.keywords.empty())
    return formatPercent(state, format, state.tuple(arguments.positional));
  if (!arguments.positional.empty())
    return makeError("takes either positional arguments or keywords");
  SANDWICH_ASSIGN_OR_RETURN(Value keywords,
                            keywordDictionary(state, arguments));
  return formatPercent(state, format, keywords);
}

static Result<Value> filterIndent(RenderState &state, const Value &self,
                                  BoundArguments arguments) {
  if (self.isUndefined())
    return undefinedError(self);
  if (!self.isString())
    return makeError("needs a string, not ", typeName(self));
  Value indentation;
  if (arguments[0] && arguments[0]->isString()) {
    indentation = *arguments[0];
  } else {
    SANDWICH_ASSIGN_OR_RETURN(int64_t width, integerOr(arguments[0], 4));
    const Value space = state.string(" ", Origin::Template);
    SANDWICH_ASSIGN_OR_RETURN(
        indentation, applyBinary(state, BinaryOperator::Multiply, space,
                                 Value(width, originOf(arguments[0]))));
  }
  const bool indentsFirst = isTrueOr(arguments[1], false);
  const bool indentsBlank = isTrueOr(arguments[2], false);
  const Value lines = splitLines(state, self.string(), false);
  // A newline is added before the lines are told apart.
  std::vector<Value> all = lines.items();
  const std::string &bytes = self.bytes();
  if (bytes.empty() ||
      (endsLine(lastCharacter(bytes)) && !bytes.ends_with('\r')))
    all.push_back(state.string("", Origin::Template));
  TextBuilder indented(state);
  for (size_t i = 0; i != all.size(); ++i) {
    SANDWICH_RETURN_IF_ERROR(state.check());
    const MarkedText &line = all[i].text();
    if (i > 0)
      indented.append("\n", Origin::Template);
    if (i == 0 ? indentsFirst : indentsBlank || !line.empty())
      indented.append(indentation.text());
    indented.append(line);
  }
  Value result = indented.finish(self.string().isMarkup);
  // The ends of lines are written anew, of whatever they were.
  if (self.origin() == Origin::Data)
    return state.string(MarkedText(result.bytes(), Origin::Data),
                        self.string().isMarkup);
  return result;
}

static Result<Value> filterJoin(RenderState &state, const Value &self,
                                BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items, collect(state, self));
  if (arguments[1] && !arguments[1]->isNone())
    for (Value &item : items) {
      SANDWICH_ASSIGN_OR_RETURN(item, getPath(state, item, *arguments[1]));
    }
  Value separator = state.string("", Origin::Template);
  if (arguments[0]) {
    SANDWICH_ASSIGN_OR_RETURN(separator, toString(state, *arguments[0]));
  }
  return joinTexts(state, separator.text(), items);
}

static Result<Value> filterLower(RenderState &state, const Value &self,
                                 BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  return changeText(state, text.string(), toLower);
}

static Result<Value> filterReplace(RenderState &state, const Value &self,
                                   BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  SANDWICH_ASSIGN_OR_RETURN(Value old, toString(state, *arguments[0]));
  SANDWICH_ASSIGN_OR_RETURN(Value replacement, toString(state, *arguments[1]));
  SANDWICH_ASSIGN_OR_RETURN(int64_t count, integerOr(arguments[2], -1));
  return replaceText(state, text.text(), old.text(), replacement.text(), count);
}

static Result<Value> filterSafe(RenderState &state, const Value &self,
                                BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  return state.string(text.text(), true);
}

static Result<Value> filterString(RenderState &state, const Value &self,
                                  BoundArguments) {
  return toString(state, self);
}

/// jinja2's own title case: what follows a space, a hyphen or an opening
/// bracket is in upper case.
static std::string titleOf(std::string_view text) {
  std::string title;
  constexpr std::string_view brackets = "-({[<";
  for (size_t i = 0; i < text.size();) {
    auto isBreak = [&](size_t place) {
      return brackets.find(text[place]) != brackets.npos ||
             isSpace(firstCharacter(text.substr(place)));
    };
    size_t end = i;
    const bool startsBreak = isBreak(i);
    while (end < text.size() && isBreak(end) == startsBreak)
      end += characterLength(text[end]);
    const std::string_view word = text.substr(i, end - i);
    if (startsBreak) {
      title += word;
    } else {
      const size_t first = characterLength(word[0]);
      title += toUpper(word.substr(0, first)) + toLower(word.substr(first));
    }
    i = end;
  }
  return title;
}

static Result<Value> filterTitle(RenderState &state, const Value &self,
                                 BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  return changeText(state, text.string(), titleOf);
}

static Result<Value> filterToJson(RenderState &state, const Value &self,
                                  BoundArguments arguments) {
  JsonStyle style;
  style.isAscii = isTrueOr(arguments[0], false);
  style.sortsKeys = isTrueOr(arguments[3], false);
  Origin origin = Origin::Template;
  if (arguments[1] && !arguments[1]->isNone()) {
    style.itemSeparator = ",";
    const Value &indentation = *arguments[1];
    origin = indentation.origin();
    if (indentation.isString()) {
      style.indentation = indentation.bytes();
    } else {
      SANDWICH_ASSIGN_OR_RETURN(int64_t width, integerOr(arguments[1], 0));
      constexpr int64_t most = 1000;
      if (width > most)
        return makeError("an indentation of more than ", most,
                         " is not supported");
      style.indentation =
          std::string(static_cast<size_t>(std::max<int64_t>(0, width)), ' ');
    }
  }
  if (arguments[2] && !arguments[2]->isNone()) {
    SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> separators,
                              collect(state, *arguments[2]));
    if (separators.size() != 2 || !separators[0].isString() ||
        !separators[1].isString())
      return makeError("the separators must be two strings");
    style.itemSeparator = separators[0].bytes();
    style.keySeparator = separators[1].bytes();
    origin = origin | separators[0].origin() | separators[1].origin();
  }
  SANDWICH_ASSIGN_OR_RETURN(Value json, toJson(state, self, style));
  if (origin == Origin::Data)
    return state.string(MarkedText(json.bytes(), Origin::Data));
  return json;
}

static Result<Value> filterTrim(RenderState &state, const Value &self,
                                BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  SANDWICH_ASSIGN_OR_RETURN(const MarkedText *characters,
                            textOrNull(arguments[0]));
  return stripText(state, text.string(), characters, Ends::Both);
}

static Result<Value> filterTruncate(RenderState &state, const Value &self,
                                    BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(size_t ownLength, lengthOf(self));
  SANDWICH_ASSIGN_OR_RETURN(int64_t length, integerOr(arguments[0], 255));
  const bool killsWords = isTrueOr(arguments[1], false);
  Value end = state.string("...", Origin::Template);
  if (arguments[2])
    end = *arguments[2];
  if (!end.isString())
    return makeError("the end must be a string");
  SANDWICH_ASSIGN_OR_RETURN(int64_t leeway, integerOr(arguments[3], 5));
  const auto endLength = static_cast<int64_t>(end.string().characters);
  if (length < endLength || leeway < 0)
    return makeError("the length must be that of the end or more");
  const auto size = static_cast<int64_t>(ownLength);
  if (size <= length || size - length <= leeway)
    return self;
  if (!self.isString())
    return makeError("needs a string, not ", typeName(self));
  const Value limit(length - endLength, originOf(arguments[0]));
  SANDWICH_ASSIGN_OR_RETURN(Value kept,
                            getSlice(state, self, nullptr, &limit, nullptr));
  if (!killsWords) {
    const MarkedText space(" ", Origin::Template);
    SANDWICH_ASSIGN_OR_RETURN(Value parts,
                              splitText(state, kept.string(), &space, 1, true));
    kept = parts.items()[0];
  }
  return applyBinary(state, BinaryOperator::Add, kept, end);
}

static Result<Value> filterUpper(RenderState &state, const Value &self,
                                 BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  return changeText(state, text.string(), toUpper);
}

static Result<Value> filterWordCount(RenderState &state, const Value &self,
                                     BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, self));
  const std::string_view bytes = text.bytes();
  int64_t words = 0;
  bool isInside = false;
  for (size_t i = 0; i < bytes.size(); i += characterLength(bytes[i])) {
    const bool isPart = isWord(firstCharacter(bytes.substr(i)));
    words += isPart && !isInside;
    isInside = isPart;
  }
  return Value(words, text.origin());
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static Result<Value> filterAbs(RenderState &state, const Value &self,
                               BoundArguments) {
  if (self.isUndefined())
    return undefinedError(self);
  if (!self.isNumber())
    return makeError("needs a number, not ", typeName(self));
  if (self.is(Value::Kind::Float))
    return Value(std::fabs(self.number()), self.origin());
  if (self.integer() >= 0)
    return Value(self.integer(), self.origin());
  return applyUnary(state, UnaryOperator::Minus, self);
}

/// Takes a sign and, where Python does, single underscores off the digits of a
/// number.
static std::optional<std::string> plainDigits(std::string_view text) {
  text = withoutTrailingSpace(withoutLeadingSpace(text));
  std::string digits;
  for (size_t i = 0; i != text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
      continue;
    }
    auto isAlphanumeric = [&](size_t place) {
      return place < text.size() &&
             isWord(static_cast<unsigned char>(text[place])) &&
             text[place] != '_';
    };
    if (i == 0 || !isAlphanumeric(i - 1) || !isAlphanumeric(i + 1))
      return std::nullopt;
  }
  if (digits.starts_with('+'))
    digits.erase(0, 1);
  if (digits.starts_with('+') || digits.starts_with("--"))
    return std::nullopt;
  return digits;
}

/// Python's `int(text, base)`, or nothing. Error: more than 64 bits.
static Result<std::optional<int64_t>> parseInteger(std::string_view text,
                                                   int64_t base) {
  using Parsed = std::optional<int64_t>;
  std::optional<std::string> digits = plainDigits(text);
  if (!digits || base < 0 || base == 1 || base > 36)
    return Parsed();
  const bool isNegative = digits->starts_with('-');
  std::string magnitude = digits->substr(isNegative ? 1 : 0);
  const char letter =
      magnitude.size() > 2 && magnitude[0] == '0' ? magnitude[1] : 0;
  const int64_t named = letter == 'x' || letter == 'X'   ? 16
                        : letter == 'o' || letter == 'O' ? 8
                        : letter == 'b' || letter == 'B' ? 2
                                                         : 0;
  if (named != 0 && (base == 0 || base == named)) {
    magnitude.erase(0, 2);
    base = named;
  } else if (base == 0) {
    // Zeros before a decimal number are none of Python's.
    if (magnitude.size() > 1 && magnitude[0] == '0' &&
        magnitude.find_first_not_of('0') != std::string::npos)
      return Parsed();
    base = 10;
  }
  if (isNegative)
    magnitude.insert(0, "-");
  int64_t integer = 0;
  const char *end = magnitude.data() + magnitude.size();
  const auto parsed =
      std::from_chars(magnitude.data(), end, integer, static_cast<int>(base));
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument)
    return Parsed();
  if (parsed.ec != std::errc())
    return makeError("an integer has more than 64 bits");
  return Parsed(integer);
}

/// Python's `float(text)`, or nothing.
static std::optional<double> parseFloat(std::string_view text) {
  const std::optional<std::string> digits = plainDigits(text);
  if (!digits)
    return std::nullopt;
  const std::string lower = toLower(*digits);
  const bool isNegative = lower.starts_with('-');
  const std::string_view magnitude =
      std::string_view(lower).substr(isNegative ? 1 : 0);
  if (magnitude == "inf" || magnitude == "infinity")
    return isNegative ? -HUGE_VAL : HUGE_VAL;
  if (magnitude == "nan")
    return std::nan("");
  if (magnitude.find_first_not_of("0123456789.e+-") != magnitude.npos ||
      magnitude.starts_with('-'))
    return std::nullopt;
  double number = 0;
  const char *end = magnitude.data() + magnitude.size();
  const auto parsed = std::from_chars(magnitude.data(), end, number);
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument)
    return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) {
    // Too small or too large: the digits before the exponent do not tell, the
    // exponent does.
    const size_t mark = magnitude.find('e');
    const bool isSmall =
        mark != magnitude.npos && magnitude.substr(mark + 1).starts_with('-');
    number = isSmall ? 0 : HUGE_VAL;
  }
  return isNegative ? -number : number;
}

static Result<Value> filterFloat(RenderState &, const Value &self,
                                 BoundArguments arguments) {
  const Value otherwise =
      arguments[0] ? *arguments[0] : Value(0.0, Origin::Template);
  if (self.isUndefined())
    return undefinedError(self);
  if (self.isNumber())
    return Value(self.number(), self.origin());
  if (!self.isString())
    return otherwise;
  const std::optional<double> number = parseFloat(self.bytes());
  return number ? Value(*number, self.origin()) : otherwise;
}

/// Python's `int` of a float, or nothing of what is no number.
static Result<std::optional<int64_t>> truncated(double number) {
  if (!std::isfinite(number))
    return std::optional<int64_t>();
  constexpr double bound = 9223372036854775808.0;
  if (!(number > -bound && number < bound))
    return makeError("an integer has more than 64 bits");
  return std::optional(static_cast<int64_t>(number));
}

static Result<Value> filterInt(RenderState &, const Value &self,
                               BoundArguments arguments) {
  const Value otherwise =
      arguments[0] ? *arguments[0] : Value(int64_t{0}, Origin::Template);
  SANDWICH_ASSIGN_OR_RETURN(int64_t base, integerOr(arguments[1], 10));
  if (self.isUndefined())
    return undefinedError(self);
  if (self.isInteger())
    return Value(self.integer(), self.origin());
  std::optional<int64_t> integer;
  if (self.is(Value::Kind::Float)) {
    SANDWICH_ASSIGN_OR_RETURN(integer, truncated(self.number()));
  } else if (self.isString()) {
    SANDWICH_ASSIGN_OR_RETURN(integer, parseInteger(self.bytes(), base));
    if (!integer)
      if (std::optional<double> number = parseFloat(self.bytes())) {
        SANDWICH_ASSIGN_OR_RETURN(integer, truncated(*number));
      }
  }
  return integer ? Value(*integer, self.origin()) : otherwise;
}

/// An integer rounded to tens, hundreds and so on, a tie to the even one.
static Result<Value> roundInteger(const Value &self, int64_t digits) {
  if (digits >= 0)
    return Value(self.integer(), self.origin());
  if (digits < -18) {
    // The nearest is zero, but for the largest integers among those of 19
    // digits.
    constexpr int64_t half = 5'000'000'000'000'000'000;
    if (digits == -19 && (self.integer() > half || self.integer() < -half))
      return makeError("an integer has more than 64 bits");
    return Value(int64_t{0}, self.origin());
  }
  int64_t unit = 1;
  for (int64_t i = digits; i != 0; ++i)
    unit *= 10;
  const int64_t number = self.integer();
  int64_t below = number / unit;
  int64_t rest = number % unit;
  if (rest < 0) {
    rest += unit;
    --below;
  }
  if (rest > unit - rest || (rest == unit - rest && below % 2 != 0))
    ++below;
  int64_t rounded = 0;
  if (__builtin_mul_overflow(below, unit, &rounded))
    return makeError("an integer has more than 64 bits");
  return Value(rounded, self.origin());
}

static Result<Value> filterRound(RenderState &, const Value &self,
                                 BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(int64_t digits, integerOr(arguments[0], 0));
  std::string_view method = "common";
  if (arguments[1]) {
    if (!arguments[1]->isString())
      return makeError("the method must be a string");
    method = arguments[1]->bytes();
  }
  if (method != "common" && method != "ceil" && method != "floor")
    return makeError("the method must be common, ceil or floor");
  if (self.isUndefined())
    return undefinedError(self);
  if (!self.isNumber())
    return makeError("needs a number, not ", typeName(self));
  if (method == "common") {
    if (self.isInteger())
      return roundInteger(self, digits);
    return Value(roundNumber(self.number(), digits), self.origin());
  }
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = self.number() * unit;
  if (!std::isfinite(scaled) || unit == 0)
    return makeError("a number is out of range");
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) /
                   unit,
               self.origin());
}

//===----------------------------------------------------------------------===//
// Keys of items
//===----------------------------------------------------------------------===//

/// A string in lower case, where case does not count; anything else itself.
static Value foldCase(RenderState &state, Value value, bool isCaseSensitive) {
  if (isCaseSensitive || !value.isString())
    return value;
  return changeText(state, value.string(), toLower);
}

/// What an item is compared by: itself, or what `attribute` names.
static Result<Value> keyOf(RenderState &state, const Value &item,
                           const std::optional<Value> &attribute,
                           bool isCaseSensitive,
                           const Value *otherwise = nullptr) {
  Value key = item;
  if (attribute && !attribute->isNone()) {
    SANDWICH_ASSIGN_OR_RETURN(key, getPath(state, item, *attribute, otherwise));
  }
  return foldCase(state, std::move(key), isCaseSensitive);
}

/// The same for several attributes with commas between them, as a list: so
/// Python compares what is not defined, too.
static Result<Value> sortKeyOf(RenderState &state, const Value &item,
                               const std::optional<Value> &attribute,
                               bool isCaseSensitive) {
  std::vector<Value> keys;
  if (!attribute || !attribute->isString()) {
    SANDWICH_ASSIGN_OR_RETURN(Value key,
                              keyOf(state, item, attribute, isCaseSensitive));
    keys.push_back(std::move(key));
    return state.list(std::move(keys));
  }
  const MarkedText comma(",", Origin::Template);
  SANDWICH_ASSIGN_OR_RETURN(
      Value parts, splitText(state, attribute->string(), &comma, -1, false));
  for (const Value &part : parts.items()) {
    SANDWICH_ASSIGN_OR_RETURN(Value key,
                              keyOf(state, item, part, isCaseSensitive));
    keys.push_back(std::move(key));
  }
  return state.list(std::move(keys));
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

static Result<Value> filterBatch(RenderState &state, const Value &self,
                                 BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(int64_t count, integerOr(arguments[0], 0));
  const std::optional<Value> filling = arguments[1];
  auto source = std::make_shared<std::optional<ValueIterator>>();
  // A generator's errors come when it is used.
  return makeGenerator(
      state,
      [&state, self, count, filling, source,
       left = std::vector<Value>()]() mutable -> Result<std::optional<Value>> {
        if (!*source) {
          SANDWICH_ASSIGN_OR_RETURN(*source, ValueIterator::over(self));
        }
        std::vector<Value> batch = std::exchange(left, {});
        MemoryShare memory = state.share();
        while (true) {
          SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item,
                                    (*source)->next(state));
          if (!item)
            break;
          // With a count of none the first batch is empty, as in Python.
          if (static_cast<int64_t>(batch.size()) == count) {
            left = {*std::move(item)};
            return std::optional(state.list(std::move(batch)));
          }
          if (!memory.grow(sizeof(Value)))
            state.exhaustMemory();
          batch.push_back(*std::move(item));
        }
        if (batch.empty())
          return std::optional<Value>();
        if (filling && !filling->isNone())
          while (static_cast<int64_t>(batch.size()) < count) {
            state.spend(1);
            if (!memory.grow(sizeof(Value)))
              state.exhaustMemory();
            SANDWICH_RETURN_IF_ERROR(state.check());
            batch.push_back(*filling);
          }
        return std::optional(state.list(std::move(batch)));
      });
}

static Result<Value> filterDictSort(RenderState &state, const Value &self,
                                    BoundArguments arguments) {
  if (self.isUndefined())
    return undefinedError(self);
  if (!self.is(Value::Kind::Dictionary))
    return makeError("needs a dict, not ", typeName(self));
  const bool isCaseSensitive = isTrueOr(arguments[0], false);
  std::string_view by = "key";
  if (arguments[1] && arguments[1]->isString())
    by = arguments[1]->bytes();
  if (by != "key" && by != "value")
    return makeError("sorts by 'key' or 'value'");
  std::vector<Value> items, keys;
  for (const auto &[key, value] : self.dictionary()->entries) {
    items.push_back(state.tuple({key, value}));
    keys.push_back(foldCase(state, by == "key" ? key : value, isCaseSensitive));
    SANDWICH_RETURN_IF_ERROR(state.check());
  }
  SANDWICH_RETURN_IF_ERROR(
      sortByKeys(state, items, keys, isTrueOr(arguments[2], false)));
  return state.list(std::move(items), self.origin());
}

static Result<Value> filterFirst(RenderState &state, const Value &self,
                                 BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(ValueIterator iterator, ValueIterator::over(self));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> first, iterator.next(state));
  return first ? *first : RenderState::undefined("there is no first item");
}

/// A group of `groupby`.
static Value makeGroup(RenderState &state, Value key,
                       std::vector<Value> items) {
  const Value list = state.list(std::move(items));
  auto group = std::make_shared<Sequence>(
      std::vector<Value>{std::move(key), list}, true, state.share());
  group->isGroup = true;
  state.keep(sizeof(Sequence) + 2 * sizeof(Value));
  if (group->depth > maxValueDepth)
    state.exhaust("its lists lie in each other too deep");
  return {SequencePointer(std::move(group)), Origin::Template};
}

static Result<Value> filterGroupBy(RenderState &state, const Value &self,
                                   BoundArguments arguments) {
  const std::optional<Value> &attribute = arguments[0];
  const bool isCaseSensitive = isTrueOr(arguments[2], false);
  const Value *otherwise =
      arguments[1] && !arguments[1]->isNone() ? &*arguments[1] : nullptr;
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items, collect(state, self));
  std::vector<Value> keys;
  for (const Value &item : items) {
    SANDWICH_ASSIGN_OR_RETURN(
        Value key, keyOf(state, item, attribute, isCaseSensitive, otherwise));
    keys.push_back(std::move(key));
  }
  SANDWICH_RETURN_IF_ERROR(sortByKeys(state, items, keys, false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin != items.size();) {
    size_t end = begin + 1;
    while (end != items.size() && equals(state, keys[begin], keys[end]))
      ++end;
    SANDWICH_RETURN_IF_ERROR(state.check());
    // The key as the first item of the group has it.
    SANDWICH_ASSIGN_OR_RETURN(
        Value key, keyOf(state, items[begin], attribute, true, otherwise));
    groups.push_back(makeGroup(
        state, std::move(key),
        std::vector<Value>(items.begin() + static_cast<ptrdiff_t>(begin),
                           items.begin() + static_cast<ptrdiff_t>(end))));
    begin = end;
  }
  return state.list(std::move(groups));
}

static Result<Value> filterItems(RenderState &state, const Value &self,
                                 BoundArguments) {
  return makeGenerator(
      state,
      [&state, self,
       place = size_t{0}]() mutable -> Result<std::optional<Value>> {
        if (self.isUndefined())
          return std::optional<Value>();
        if (!self.is(Value::Kind::Dictionary))
          return makeError("the filter 'items' needs a dict, not ",
                           typeName(self));
        const DictionaryView view{self.dictionary(),
                                  DictionaryView::Part::Items};
        if (place == self.dictionary()->entries.size())
          return std::optional<Value>();
        return std::optional(viewItem(state, view, place++));
      });
}

static Result<Value> filterLast(RenderState &state, const Value &self,
                                BoundArguments) {
  if (self.is(Value::Kind::Object))
    return makeError("a ", typeName(self), " has no last item");
  if (self.is(Value::Kind::Dictionary) && isTrue(self))
    return self.dictionary()->entries.back().first;
  if (self.is(Value::Kind::View) && isTrue(self))
    return viewItem(state, self.view(),
                    self.view().dictionary->entries.size() - 1);
  if (!isTrue(self)) {
    SANDWICH_ASSIGN_OR_RETURN(ValueIterator ignored, ValueIterator::over(self));
    return RenderState::undefined("there is no last item");
  }
  if (!self.isString() && !self.is(Value::Kind::Sequence) &&
      !self.is(Value::Kind::Range))
    return makeError("a ", typeName(self), " has no last item");
  return getItem(state, self, Value(int64_t{-1}, Origin::Template));
}

static Result<Value> filterLength(RenderState &, const Value &self,
                                  BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(size_t length, lengthOf(self));
  return Value(static_cast<int64_t>(length), self.origin());
}

static Result<Value> filterList(RenderState &state, const Value &self,
                                BoundArguments) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items, collect(state, self));
  return state.list(std::move(items), self.origin());
}

/// The least item, or the greatest.
static Result<Value> extreme(RenderState &state, const Value &self,
                             BoundArguments arguments, bool isMaximum) {
  const bool isCaseSensitive = isTrueOr(arguments[0], false);
  SANDWICH_ASSIGN_OR_RETURN(ValueIterator iterator, ValueIterator::over(self));
  std::optional<Value> best, bestKey;
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item, iterator.next(state));
    if (!item)
      break;
    SANDWICH_ASSIGN_OR_RETURN(
        Value key, keyOf(state, *item, arguments[1], isCaseSensitive));
    bool isBetter = !best;
    if (best) {
      SANDWICH_ASSIGN_OR_RETURN(isBetter, isMaximum
                                              ? isLess(state, *bestKey, key)
                                              : isLess(state, key, *bestKey));
    }
    if (isBetter) {
      best = std::move(item);
      bestKey = std::move(key);
    }
  }
  return best ? *best : RenderState::undefined("there is no item to choose");
}

static Result<Value> filterMax(RenderState &state, const Value &self,
                               BoundArguments arguments) {
  return extreme(state, self, arguments, true);
}

static Result<Value> filterMin(RenderState &state, const Value &self,
                               BoundArguments arguments) {
  return extreme(state, self, arguments, false);
}

/// Items from the last to the first.
static Result<Value> filterReverse(RenderState &state, const Value &self,
                                   BoundArguments) {
  if (self.isString()) {
    const Value step(int64_t{-1}, Origin::Template);
    return getSlice(state, self, nullptr, nullptr, &step);
  }
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items, collect(state, self));
  std::ranges::reverse(items);
  Value list = state.list(std::move(items), self.origin());
  // Python makes a list only of what cannot be gone through backwards.
  if (self.is(Value::Kind::Object))
    return list;
  return makeGenerator(
      state,
      [list, place = size_t{0}]() mutable -> Result<std::optional<Value>> {
        if (place == list.items().size())
          return std::optional<Value>();
        return std::optional(list.items()[place++]);
      });
}

static Result<Value> filterSlice(RenderState &state, const Value &self,
                                 BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(int64_t slices, integerOr(arguments[0], 0));
  const std::optional<Value> filling = arguments[1];
  auto items = std::make_shared<std::optional<std::vector<Value>>>();
  return makeGenerator(
      state,
      [&state, self, slices, filling, items, number = int64_t{0},
       place = size_t{0}]() mutable -> Result<std::optional<Value>> {
        if (!*items) {
          SANDWICH_ASSIGN_OR_RETURN(*items, collect(state, self));
          state.keep((*items)->size() * sizeof(Value));
        }
        if (slices == 0)
          return makeError("the filter 'slice' needs a number of slices");
        if (number >= slices)
          return std::optional<Value>();
        state.spend(1);
        const auto count = static_cast<int64_t>((*items)->size());
        const bool hasExtra = number < count % slices;
        const auto size =
            static_cast<size_t>(count / slices + (hasExtra ? 1 : 0));
        std::vector<Value> slice(
            (*items)->begin() + static_cast<ptrdiff_t>(place),
            (*items)->begin() + static_cast<ptrdiff_t>(place + size));
        if (filling && !filling->isNone() && !hasExtra)
          slice.push_back(*filling);
        place += size;
        ++number;
        return std::optional(state.list(std::move(slice)));
      });
}

static Result<Value> filterSort(RenderState &state, const Value &self,
                                BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items, collect(state, self));
  std::vector<Value> keys;
  for (const Value &item : items) {
    SANDWICH_ASSIGN_OR_RETURN(
        Value key,
        sortKeyOf(state, item, arguments[2], isTrueOr(arguments[1], false)));
    keys.push_back(std::move(key));
    SANDWICH_RETURN_IF_ERROR(state.check());
  }
  SANDWICH_RETURN_IF_ERROR(
      sortByKeys(state, items, keys, isTrueOr(arguments[0], false)));
  return state.list(std::move(items), self.origin());
}

static Result<Value> filterSum(RenderState &state, const Value &self,
                               BoundArguments arguments) {
  Value sum =
      arguments[1] ? *arguments[1] : Value(int64_t{0}, Origin::Template);
  if (sum.isString())
    return makeError("does not add strings");
  SANDWICH_ASSIGN_OR_RETURN(ValueIterator iterator, ValueIterator::over(self));
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item, iterator.next(state));
    if (!item)
      return sum;
    if (arguments[0] && !arguments[0]->isNone()) {
      SANDWICH_ASSIGN_OR_RETURN(item, getPath(state, *item, *arguments[0]));
    }
    SANDWICH_ASSIGN_OR_RETURN(
        sum, applyBinary(state, BinaryOperator::Add, sum, *item));
  }
}

static Result<Value> filterUnique(RenderState &state, const Value &self,
                                  BoundArguments arguments) {
  const bool isCaseSensitive = isTrueOr(arguments[0], false);
  const std::optional<Value> attribute = arguments[1];
  auto source = std::make_shared<std::optional<ValueIterator>>();
  auto less = [](const Value &a, const Value &b) {
    return std::is_lt(compareKeys(a, b));
  };
  using Keys = std::vector<Value>;
  return makeGenerator(
      state,
      [&state, self, isCaseSensitive, attribute, source, less, seen = Keys(),
       isUndefinedSeen = false]() mutable -> Result<std::optional<Value>> {
        if (!*source) {
          SANDWICH_ASSIGN_OR_RETURN(*source, ValueIterator::over(self));
        }
        while (true) {
          SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item,
                                    (*source)->next(state));
          if (!item)
            return std::optional<Value>();
          SANDWICH_ASSIGN_OR_RETURN(
              Value key, keyOf(state, *item, attribute, isCaseSensitive));
          if (key.isUndefined()) {
            if (!std::exchange(isUndefinedSeen, true))
              return item;
            continue;
          }
          if (!isHashable(key))
            return makeError("a ", typeName(key), " cannot be a key");
          // Inserting moves what comes behind.
          state.spend(keyCost(key) + seen.size() / 64);
          auto place = std::ranges::lower_bound(seen, key, less);
          if (place != seen.end() && !less(key, *place))
            continue;
          state.keep(sizeof(Value));
          seen.insert(place, std::move(key));
          return item;
        }
      });
}

//===----------------------------------------------------------------------===//
// Filters by the names of filters and tests
//===----------------------------------------------------------------------===//

static Result<Value> filterAttr(RenderState &state, const Value &self,
                                BoundArguments arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Value name, toString(state, *arguments[0]));
  return getMember(state, self, name.bytes());
}

/// What is left of `arguments` behind the first `count` positional ones.
static Arguments argumentsBehind(const Arguments &arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() +
                            static_cast<ptrdiff_t>(count));
  return rest;
}

using Change = std::function<Result<Value>(const Value &)>;

/// What `map` does with each item.
static Result<Change> prepareMap(RenderState &state,
                                 const Arguments &arguments) {
  if (!arguments.positional.empty()) {
    const Value &name = arguments.positional[0];
    const Filter *filter = name.isString() ? findFilter(name.bytes()) : nullptr;
    if (!filter)
      return makeError("the filter 'map' needs the name of a filter that is "
                       "supported");
    return Change([&state, filter,
                   rest = argumentsBehind(arguments, 1)](const Value &item) {
      return callBuiltin(state, "filter", *filter, item, rest);
    });
  }
  std::optional<Value> attribute, otherwise;
  for (const Arguments::Keyword &keyword : arguments.keywords)
    if (keyword.name == "attribute")
      attribute = keyword.value;
    else if (keyword.name == "default")
      otherwise = keyword.value;
    else
      return makeError("the filter 'map' has no argument '",
                       excerpt(keyword.name), "'");
  if (!attribute)
    return makeError("the filter 'map' needs a filter or an attribute");
  if (otherwise && otherwise->isNone())
    otherwise.reset();
  return Change([&state, attribute, otherwise](const Value &item) {
    return getPath(state, item, *attribute, otherwise ? &*otherwise : nullptr);
  });
}

static Result<Value> filterMap(RenderState &state, const Value &self,
                               const Arguments &arguments) {
  auto source = std::make_shared<std::optional<ValueIterator>>();
  return makeGenerator(
      state,
      [&state, self, arguments, source,
       change = Change()]() mutable -> Result<std::optional<Value>> {
        if (!isTrue(self))
          return std::optional<Value>();
        if (!*source) {
          SANDWICH_ASSIGN_OR_RETURN(change, prepareMap(state, arguments));
          SANDWICH_ASSIGN_OR_RETURN(*source, ValueIterator::over(self));
        }
        SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item,
                                  (*source)->next(state));
        if (!item)
          return item;
        SANDWICH_ASSIGN_OR_RETURN(Value changed, change(*item));
        return std::optional(std::move(changed));
      });
}

using Decision = std::function<Result<bool>(const Value &)>;

/// Whether `select` and the like keep an item.
static Result<Decision> prepareSelection(RenderState &state,
                                         const Arguments &arguments,
                                         bool hasAttribute) {
  std::optional<Value> attribute;
  size_t used = 0;
  if (hasAttribute) {
    if (arguments.positional.empty())
      return makeError("the filter needs the name of an attribute");
    attribute = arguments.positional[used++];
  }
  const Test *test = nullptr;
  if (used != arguments.positional.size()) {
    const Value &name = arguments.positional[used++];
    test = name.isString() ? findTest(name.bytes()) : nullptr;
    if (!test)
      return makeError("the filter needs the name of a test that is supported");
  }
  return Decision([&state, attribute, test,
                   rest = argumentsBehind(arguments, used)](
                      const Value &item) -> Result<bool> {
    Value tested = item;
    if (attribute) {
      SANDWICH_ASSIGN_OR_RETURN(tested, getPath(state, item, *attribute));
    }
    if (!test)
      return isTrue(tested);
    SANDWICH_ASSIGN_OR_RETURN(Value result,
                              callBuiltin(state, "test", *test, tested, rest));
    return isTrue(result);
  });
}

template <bool keeps, bool hasAttribute>
static Result<Value> filterSelect(RenderState &state, const Value &self,
                                  const Arguments &arguments) {
  auto source = std::make_shared<std::optional<ValueIterator>>();
  return makeGenerator(
      state,
      [&state, self, arguments, source,
       decide = Decision()]() mutable -> Result<std::optional<Value>> {
        if (!isTrue(self))
          return std::optional<Value>();
        if (!*source) {
          SANDWICH_ASSIGN_OR_RETURN(
              decide, prepareSelection(state, arguments, hasAttribute));
          SANDWICH_ASSIGN_OR_RETURN(*source, ValueIterator::over(self));
        }
        while (true) {
          SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item,
                                    (*source)->next(state));
          if (!item)
            return item;
          SANDWICH_ASSIGN_OR_RETURN(bool decision, decide(*item));
          if (decision == keeps)
            return item;
        }
      });
}

static Result<Value> filterDefault(RenderState &state, const Value &self,
                                   BoundArguments arguments) {
  if (!self.isUndefined() && !(isTrueOr(arguments[1], false) && !isTrue(self)))
    return self;
  return arguments[0] ? *arguments[0] : state.string("", Origin::Template);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

const Filter *jinja::findFilter(std::string_view name) {
  static constexpr Filter filters[] = {
      {{"abs", filterAbs}},
      {{"attr", filterAttr, nullptr, {"name"}, 1}},
      {{"batch", filterBatch, nullptr, {"linecount", "fill_with"}, 1}},
      {{"capitalize", filterCapitalize}},
      {{"center", filterCenter, nullptr, {"width"}}},
      {{"count", filterLength}},
      {{"d", filterDefault, nullptr, {"default_value", "boolean"}}},
      {{"default", filterDefault, nullptr, {"default_value", "boolean"}}},
      {{"dictsort",
        filterDictSort,
        nullptr,
        {"case_sensitive", "by", "reverse"}}},
      {{"e", filterEscape}},
      {{"escape", filterEscape}},
      {{"first", filterFirst}},
      {{"float", filterFloat, nullptr, {"default"}}},
      {{"forceescape", filterForceEscape}},
      {{"format", nullptr, filterFormat}},
      {{"groupby",
        filterGroupBy,
        nullptr,
        {"attribute", "default", "case_sensitive"},
        1}},
      {{"indent", filterIndent, nullptr, {"width", "first", "blank"}}},
      {{"int", filterInt, nullptr, {"default", "base"}}},
      {{"items", filterItems}},
      {{"join", filterJoin, nullptr, {"d", "attribute"}}},
      {{"last", filterLast}},
      {{"length", filterLength}},
      {{"list", filterList}},
      {{"lower", filterLower}},
      {{"map", nullptr, filterMap}},
      {{"max", filterMax, nullptr, {"case_sensitive", "attribute"}}},
      {{"min", filterMin, nullptr, {"case_sensitive", "attribute"}}},
      {{"reject", nullptr, filterSelect<false, false>}},
      {{"rejectattr", nullptr, filterSelect<false, true>}},
      {{"replace", filterReplace, nullptr, {"old", "new", "count"}, 2}},
      {{"reverse", filterReverse}},
      {{"round", filterRound, nullptr, {"precision", "method"}}},
      {{"safe", filterSafe}},
      {{"select", nullptr, filterSelect<true, false>}},
      {{"selectattr", nullptr, filterSelect<true, true>}},
      {{"slice", filterSlice, nullptr, {"slices", "fill_with"}, 1}},
      {{"sort",
        filterSort,
        nullptr,
        {"reverse", "case_sensitive", "attribute"}}},
      {{"string", filterString}},
      {{"sum", filterSum, nullptr, {"attribute", "start"}}},
      {{"title", filterTitle}},
      {{"tojson",
        filterToJson,
        nullptr,
        {"ensure_ascii", "indent", "separators", "sort_keys"}}},
      {{"trim", filterTrim, nullptr, {"chars"}}},
      {{"truncate",
        filterTruncate,
        nullptr,
        {"length", "killwords", "end", "leeway"}}},
      {{"unique", filterUnique, nullptr, {"case_sensitive", "attribute"}}},
      {{"upper", filterUpper}},
      {{"wordcount", filterWordCount}},
  };
  return findByName(filters, name);
}
