//===- Formatting.cpp - Values in text by formats -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formatting.h"

#include "Access.h"
#include "Characters.h"
#include "Operators.h"
#include "Printing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <locale.h>

using namespace sandwich;
using namespace sandwich::jinja;

namespace {

/// How one value is written: Python's format specification.
struct Style {
  std::string fill = " ";
  char align = 0; ///< of '<', '>', '^', '='; 0: as the kind of value is
  char sign = '-';
  bool isAlternate = false;
  size_t width = 0;
  char grouping = 0; ///< ',' or '_'
  std::optional<size_t> precision;
  char type = 0;
};

/// Digits behind the point that are supported.
constexpr size_t maxPrecision = 100;

} // namespace

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// What comes before a number that is, or is not, negative.
static std::string signText(const Style &style, bool isNegative) {
  if (isNegative)
    return "-";
  return style.sign == '-' ? "" : std::string(1, style.sign);
}

/// Puts `separator` between groups of `size` of the digits at the beginning of
/// `text`.
static void groupDigits(std::string &text, char separator, size_t size) {
  size_t whole = 0;
  while (whole != text.size() && text[whole] >= '0' && text[whole] <= '9')
    ++whole;
  for (size_t i = whole; i > size; i -= size)
    text.insert(i - size, 1, separator);
}

static void toUpperAscii(std::string &text) {
  for (char &c : text)
    if (c >= 'a' && c <= 'z')
      c = static_cast<char>(c - 'a' + 'A');
}

/// The sign and the digits of an integer. Errors: types that are none for it.
static Result<std::pair<std::string, std::string>>
integerParts(int64_t integer, const Style &style) {
  int base = 10;
  std::string prefix;
  switch (style.type) {
  case 0:
  case 'd':
    break;
  case 'b':
    base = 2;
    prefix = "0b";
    break;
  case 'o':
    base = 8;
    prefix = "0o";
    break;
  case 'x':
    base = 16;
    prefix = "0x";
    break;
  case 'X':
    base = 16;
    prefix = "0X";
    break;
  default:
    return makeError("the format '", style.type, "' does not go with an int");
  }
  if (style.precision)
    return makeError("a precision does not go with an int");
  const bool isNegative = integer < 0;
  // The least integer has no negative.
  const uint64_t magnitude =
      isNegative ? 0 - static_cast<uint64_t>(integer) : uint64_t(integer);
  char buffer[64];
  const auto written =
      std::to_chars(std::begin(buffer), std::end(buffer), magnitude, base);
  std::string digits(buffer, static_cast<size_t>(written.ptr - buffer));
  if (style.type == 'X')
    toUpperAscii(digits);
  if (style.grouping)
    groupDigits(digits, style.grouping, base == 10 ? 3 : 4);
  return std::pair(
      signText(style, isNegative) + (style.isAlternate ? prefix : ""), digits);
}

/// The sign and the digits of a number. Errors: types that are none for it.
static Result<std::pair<std::string, std::string>>
floatParts(double number, const Style &style) {
  const bool isNegative = std::signbit(number) && !std::isnan(number);
  const double magnitude = std::fabs(number);
  if (style.isAlternate)
    return makeError("'#' does not go with a float");
  const char type = static_cast<char>(style.type | 0x20);
  std::string digits;
  if (!std::isfinite(number)) {
    digits = std::isnan(number) ? "nan" : "inf";
  } else if (style.type == 0 && !style.precision) {
    digits = floatText(magnitude);
  } else {
    size_t precision = style.precision.value_or(6);
    if (precision > maxPrecision)
      return makeError("a precision of more than ", maxPrecision,
                       " is not supported");
    std::chars_format format;
    if (type == 'f' || style.type == '%')
      format = std::chars_format::fixed;
    else if (type == 'e')
      format = std::chars_format::scientific;
    else if (type == 'g')
      format = std::chars_format::general;
    else
      return makeError("the format '", std::string(style.type != 0, style.type),
                       "' of a float is not supported");
    if (type == 'g' && precision == 0)
      precision = 1;
    char buffer[512];
    const double shown = style.type == '%' ? magnitude * 100 : magnitude;
    const auto written =
        std::to_chars(std::begin(buffer), std::end(buffer), shown, format,
                      static_cast<int>(precision));
    if (written.ec != std::errc())
      return makeError("a number is too long to be formatted");
    digits.assign(buffer, static_cast<size_t>(written.ptr - buffer));
    if (style.type == '%')
      digits += '%';
  }
  if (style.type == 'E' || style.type == 'F' || style.type == 'G')
    toUpperAscii(digits);
  if (style.grouping)
    groupDigits(digits, style.grouping, 3);
  return std::pair(signText(style, isNegative), digits);
}

double jinja::roundNumber(double number, int64_t digits) {
  // Beyond these nothing, or everything, is rounded.
  if (!std::isfinite(number) || digits > 323)
    return number;
  if (digits < -308)
    return std::copysign(0.0, number);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(number / unit) * unit;
  }
  char buffer[700];
  const auto written =
      std::to_chars(std::begin(buffer), std::end(buffer), number,
                    std::chars_format::fixed, static_cast<int>(digits));
  double rounded = number;
  std::from_chars(buffer, written.ptr, rounded);
  return rounded;
}

//===----------------------------------------------------------------------===//
// One value
//===----------------------------------------------------------------------===//

/// Appends `text` with what fills it up to the width. `lead` is a sign, which
/// '=' keeps before the filling.
static void appendPadded(TextBuilder &output, RenderState &state,
                         const MarkedText &lead, const MarkedText &text,
                         const Style &style, char usualAlign, Origin origin) {
  const size_t length =
      countCharacters(lead.bytes()) + countCharacters(text.bytes());
  const size_t missing = style.width > length ? style.width - length : 0;
  const char align = style.align ? style.align : usualAlign;
  const size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  auto fill = [&](size_t count) {
    for (size_t i = 0; i != count && !state.isExhausted(); ++i)
      output.append(style.fill, origin);
  };
  if (align == '=') {
    output.append(lead);
    fill(missing);
  } else {
    fill(before);
    output.append(lead);
  }
  output.append(text);
  if (align != '=')
    fill(missing - before);
}

/// Appends `value` as `style`, written by `origin`, says. Errors: a style that
/// does not go with it.
static Status appendFormatted(TextBuilder &output, RenderState &state,
                              const Value &value, const Style &style,
                              Origin origin) {
  if (style.type == 'c')
    return makeError("the format 'c' is not supported");
  if (value.isNumber() && !(value.is(Value::Kind::Boolean) && !style.type)) {
    constexpr std::string_view ofFloats = "eEfFgG%";
    const bool isFloat =
        value.is(Value::Kind::Float) ||
        (style.type != 0 && ofFloats.find(style.type) != ofFloats.npos);
    auto parts = isFloat ? floatParts(value.number(), style)
                         : integerParts(value.integer(), style);
    if (!parts)
      return parts.error();
    appendPadded(output, state, MarkedText(parts->first, value.origin()),
                 MarkedText(parts->second, value.origin()), style, '>', origin);
    return {};
  }
  if (style.type != 0 && style.type != 's')
    return makeError("the format '", style.type, "' does not go with a ",
                     typeName(value));
  SANDWICH_ASSIGN_OR_RETURN(Value string, toString(state, value));
  const size_t shown = style.precision
                           ? string.string().offsetOf(*style.precision)
                           : string.text().size();
  const bool isPlain = style.width == 0 && !style.precision;
  if (!value.isString() && !isPlain)
    return makeError("a format with a width does not go with a ",
                     typeName(value));
  if (style.sign != '-' || style.isAlternate || style.grouping ||
      style.align == '=')
    return makeError("a format of numbers does not go with a ",
                     typeName(value));
  appendPadded(output, state, {}, string.text().slice(0, shown), style, '<',
               origin);
  return {};
}

/// Takes a number off the beginning of `text`, at most a million.
static Result<std::optional<size_t>> takeNumber(std::string_view &text) {
  size_t number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ptr == text.data())
    return std::optional<size_t>();
  constexpr size_t most = 1'000'000;
  if (parsed.ec != std::errc() || number > most)
    return makeError("a number in a format is larger than ", most);
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  return std::optional(number);
}

//===----------------------------------------------------------------------===//
// format % arguments
//===----------------------------------------------------------------------===//

namespace {

/// Reads a format of `%` and writes its values.
class PercentFormatter {
public:
  PercentFormatter(RenderState &state, const Value &format,
                   const Value &arguments)
      : state(state), format(format), arguments(arguments), output(state) {}

  Result<Value> run();

private:
  /// One specification, behind its "%".
  Status addConversion(std::string_view &rest);
  Result<Value> nextArgument();

  RenderState &state;
  const Value &format;
  const Value &arguments;
  TextBuilder output;
  size_t used = 0;
  bool usedKeys = false;
};

Result<Value> PercentFormatter::nextArgument() {
  if (arguments.isTuple()) {
    if (used == arguments.items().size())
      return makeError("a format has more conversions than arguments");
    return arguments.items()[used++];
  }
  if (used++ > 0)
    return makeError("a format has more conversions than arguments");
  return arguments;
}

Status PercentFormatter::addConversion(std::string_view &rest) {
  const Origin origin = format.origin();
  std::optional<Value> argument;
  if (rest.starts_with('(')) {
    const size_t end = rest.find(')');
    if (end == rest.npos)
      return makeError("a key in a format has no end");
    if (!arguments.is(Value::Kind::Dictionary))
      return makeError("a format with keys needs a dict");
    const Value *found = arguments.dictionary()->find(rest.substr(1, end - 1));
    if (!found)
      return makeError("a format names a key that is not there");
    argument = *found;
    usedKeys = true;
    rest.remove_prefix(end + 1);
  }
  Style style;
  bool isLeft = false, isZero = false;
  for (; !rest.empty(); rest.remove_prefix(1)) {
    if (rest[0] == '-')
      isLeft = true;
    else if (rest[0] == '0')
      isZero = true;
    else if (rest[0] == '+' || (rest[0] == ' ' && style.sign == '-'))
      style.sign = rest[0];
    else if (rest[0] == '#')
      style.isAlternate = true;
    else if (rest[0] != ' ')
      break;
  }
  SANDWICH_ASSIGN_OR_RETURN(std::optional<size_t> width, takeNumber(rest));
  style.width = width.value_or(0);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    SANDWICH_ASSIGN_OR_RETURN(std::optional<size_t> precision,
                              takeNumber(rest));
    style.precision = precision.value_or(0);
  }
  if (rest.starts_with('*'))
    return makeError("'*' in a format is not supported");
  if (rest.empty())
    return makeError("a format ends within a conversion");
  const char type = rest[0];
  rest.remove_prefix(1);
  if (type == '%') {
    output.append("%", origin);
    return {};
  }
  if (!argument) {
    SANDWICH_ASSIGN_OR_RETURN(argument, nextArgument());
  }
  style.align = isLeft ? '<' : '>';
  if (type == 's' || type == 'r') {
    style.sign = '-';
    style.isAlternate = false;
    SANDWICH_ASSIGN_OR_RETURN(Value text, type == 's'
                                              ? toString(state, *argument)
                                              : represent(state, *argument));
    return appendFormatted(output, state, text, style, origin);
  }
  constexpr std::string_view integers = "diuxXo", floats = "eEfFgG";
  const bool isInteger = integers.find(type) != integers.npos;
  if (!isInteger && floats.find(type) == floats.npos)
    return makeError("a conversion of a format is not supported");
  if (argument->isUndefined())
    return undefinedError(*argument);
  if (!argument->isNumber())
    return makeError("'%", type, "' needs a number, not ", typeName(*argument));
  if (isInteger && style.precision)
    return makeError("a precision of an integer is not supported");
  style.type = type == 'i' || type == 'u' ? 'd' : type;
  if (isZero && !isLeft &&
      !(argument->is(Value::Kind::Float) &&
        !std::isfinite(argument->number()))) {
    style.fill = "0";
    style.align = '=';
  }
  if (!isInteger || argument->isInteger())
    return appendFormatted(output, state, *argument, style, origin);
  // A float as an integer loses what is behind its point.
  constexpr double bound = 9223372036854775808.0;
  const double number = argument->number();
  if (type != 'd' && type != 'i' && type != 'u')
    return makeError("'%", type, "' needs an integer");
  if (!(number > -bound && number < bound))
    return makeError("an integer has more than 64 bits");
  return appendFormatted(
      output, state, Value(static_cast<int64_t>(number), argument->origin()),
      style, origin);
}

Result<Value> PercentFormatter::run() {
  if (format.string().isMarkup)
    return makeError("'%' with markup is not supported");
  const MarkedText &text = format.text();
  std::string_view rest = text.bytes();
  while (!rest.empty()) {
    const size_t begin = text.size() - rest.size();
    const size_t end = std::min(text.bytes().find('%', begin), text.size());
    output.append(text, begin, end);
    rest.remove_prefix(end - begin);
    if (rest.empty())
      break;
    rest.remove_prefix(1);
    SANDWICH_RETURN_IF_ERROR(addConversion(rest));
    SANDWICH_RETURN_IF_ERROR(state.check());
  }
  const size_t given = arguments.isTuple() ? arguments.items().size() : 1;
  // As in Python, whatever has items by key or place.
  const bool mayBeUnused = usedKeys || arguments.is(Value::Kind::Dictionary) ||
                           arguments.is(Value::Kind::Range) ||
                           arguments.isUndefined() || arguments.isList();
  if (used < given && !mayBeUnused)
    return makeError("not all arguments are used by the format");
  return output.finish();
}

//===----------------------------------------------------------------------===//
// format.format(...)
//===----------------------------------------------------------------------===//

/// Reads a format of braces and writes its values.
class BracesFormatter {
public:
  BracesFormatter(RenderState &state, const Value &format,
                  const Arguments &arguments)
      : state(state), format(format), arguments(arguments), output(state) {}

  Result<Value> run();

private:
  /// One field, between its braces.
  Status addField(std::string_view field);
  /// The value that `path` names: "0", "name", "0.name" or "0[key]".
  Result<Value> find(std::string_view path);
  Result<Value> findFirst(std::string_view name);

  RenderState &state;
  const Value &format;
  const Arguments &arguments;
  TextBuilder output;
  size_t automatic = 0;
  enum class Numbering { None, Automatic, Manual } numbering = Numbering::None;
};

Result<Value> BracesFormatter::findFirst(std::string_view name) {
  std::optional<size_t> number;
  std::string_view rest = name;
  if (name.empty()) {
    number = automatic++;
  } else {
    SANDWICH_ASSIGN_OR_RETURN(number, takeNumber(rest));
    if (!rest.empty())
      number.reset();
  }
  if (number) {
    const Numbering wanted =
        name.empty() ? Numbering::Automatic : Numbering::Manual;
    if (numbering != Numbering::None && numbering != wanted)
      return makeError("a format numbers some fields and not others");
    numbering = wanted;
    if (*number >= arguments.positional.size())
      return makeError("a format has more fields than arguments");
    return arguments.positional[*number];
  }
  for (const Arguments::Keyword &keyword : arguments.keywords)
    if (keyword.name == name)
      return keyword.value;
  return makeError("a format names an argument that is not there");
}

Result<Value> BracesFormatter::find(std::string_view path) {
  const size_t end = std::min(path.find_first_of(".["), path.size());
  SANDWICH_ASSIGN_OR_RETURN(Value value, findFirst(path.substr(0, end)));
  path.remove_prefix(end);
  while (!path.empty()) {
    if (path[0] == '.') {
      const size_t length = std::min(path.find_first_of(".[", 1), path.size());
      SANDWICH_ASSIGN_OR_RETURN(
          value, getAttribute(state, value, path.substr(1, length - 1)));
      path.remove_prefix(length);
      continue;
    }
    const size_t close = path.find(']');
    if (path[0] != '[' || close == path.npos)
      return makeError("a field of a format is malformed");
    std::string_view key = path.substr(1, close - 1);
    std::string_view rest = key;
    SANDWICH_ASSIGN_OR_RETURN(std::optional<size_t> number, takeNumber(rest));
    const Value index =
        number && rest.empty()
            ? Value(static_cast<int64_t>(*number), Origin::Template)
            : state.string(std::string(key), format.origin());
    SANDWICH_ASSIGN_OR_RETURN(value, getItem(state, value, index));
    path.remove_prefix(close + 1);
  }
  return value;
}

/// Reads what follows the colon of a field.
Result<Style> readStyle(std::string_view text) {
  Style style;
  auto isAlign = [](char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
  };
  const size_t first = text.empty() ? 0 : characterLength(text[0]);
  if (text.size() > first && first > 0 && isAlign(text[first])) {
    style.fill = text.substr(0, first);
    style.align = text[first];
    text.remove_prefix(first + 1);
  } else if (!text.empty() && isAlign(text[0])) {
    style.align = text[0];
    text.remove_prefix(1);
  }
  if (text.starts_with('+') || text.starts_with('-') || text.starts_with(' ')) {
    style.sign = text[0];
    text.remove_prefix(1);
  }
  if (text.starts_with('#')) {
    style.isAlternate = true;
    text.remove_prefix(1);
  }
  const bool isZero = text.starts_with('0');
  if (isZero && !style.align) {
    style.fill = "0";
    style.align = '=';
  }
  SANDWICH_ASSIGN_OR_RETURN(std::optional<size_t> width, takeNumber(text));
  style.width = width.value_or(0);
  if (text.starts_with(',') || text.starts_with('_')) {
    style.grouping = text[0];
    text.remove_prefix(1);
    if (isZero)
      return makeError("a format with groups of digits and zeros is not "
                       "supported");
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    SANDWICH_ASSIGN_OR_RETURN(style.precision, takeNumber(text));
    if (!style.precision)
      return makeError("a format has a point and no precision");
  }
  if (!text.empty()) {
    style.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty())
    return makeError("a format specification is malformed");
  return style;
}

Status BracesFormatter::addField(std::string_view field) {
  const size_t end = std::min(field.find_first_of("!:"), field.size());
  SANDWICH_ASSIGN_OR_RETURN(Value value, find(field.substr(0, end)));
  field.remove_prefix(end);
  if (field.starts_with('!')) {
    const char conversion = field.size() > 1 ? field[1] : 0;
    if (conversion != 's' && conversion != 'r')
      return makeError("a conversion of a format is not supported");
    field.remove_prefix(2);
    SANDWICH_ASSIGN_OR_RETURN(value, conversion == 's'
                                         ? toString(state, value)
                                         : represent(state, value));
  }
  if (!field.empty() && field[0] != ':')
    return makeError("a field of a format is malformed");
  SANDWICH_ASSIGN_OR_RETURN(
      Style style, readStyle(field.substr(std::min<size_t>(1, field.size()))));
  return appendFormatted(output, state, value, style, format.origin());
}

Result<Value> BracesFormatter::run() {
  if (format.string().isMarkup)
    return makeError("'format' of markup is not supported");
  const MarkedText &text = format.text();
  const std::string_view bytes = text.bytes();
  for (size_t i = 0; i < bytes.size();) {
    SANDWICH_RETURN_IF_ERROR(state.check());
    const size_t brace = std::min(bytes.find_first_of("{}", i), bytes.size());
    output.append(text, i, brace);
    if (brace == bytes.size())
      break;
    // A brace twice is a brace.
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      output.append(text, brace, brace + 1);
      i = brace + 2;
      continue;
    }
    const size_t end = bytes.find_first_of("{}", brace + 1);
    if (bytes[brace] == '}' || end == bytes.npos)
      return makeError("a format has a brace that is alone");
    if (bytes[end] == '{')
      return makeError("a field within a field of a format is not supported");
    SANDWICH_RETURN_IF_ERROR(
        addField(bytes.substr(brace + 1, end - brace - 1)));
    i = end + 1;
  }
  return output.finish();
}

} // namespace

Result<Value> jinja::formatPercent(RenderState &state, const Value &format,
                                   const Value &arguments) {
  return PercentFormatter(state, format, arguments).run();
}

Result<Value> jinja::formatBraces(RenderState &state, const Value &format,
                                  const Arguments &arguments) {
  return BracesFormatter(state, format, arguments).run();
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// What the directive `letter` makes of `time` in the C locale, whatever this
/// process has set.
static std::string timeText(char letter, bool isUnpadded, const std::tm &time) {
  static const locale_t cLocale = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string format =
      std::string("%") + (isUnpadded ? "-" : "") + letter;
  char buffer[128];
  const size_t length =
      strftime_l(buffer, sizeof(buffer), format.c_str(), &time, cLocale);
  return std::string(buffer, length);
}

/// Brings what a caller left out into the ranges that the C library reads.
static std::tm validTime(std::tm time) {
  time.tm_sec = std::clamp(time.tm_sec, 0, 60);
  time.tm_min = std::clamp(time.tm_min, 0, 59);
  time.tm_hour = std::clamp(time.tm_hour, 0, 23);
  time.tm_mday = std::clamp(time.tm_mday, 1, 31);
  time.tm_mon = std::clamp(time.tm_mon, 0, 11);
  time.tm_year = std::clamp(time.tm_year, -900, 8099);
  time.tm_wday = std::clamp(time.tm_wday, 0, 6);
  time.tm_yday = std::clamp(time.tm_yday, 0, 365);
  return time;
}

Result<Value> jinja::formatTime(RenderState &state, const Value &format,
                                const std::tm &time) {
  const std::tm valid = validTime(time);
  const MarkedText &text = format.text();
  const std::string &bytes = text.bytes();
  TextBuilder output(state);
  for (size_t i = 0; i < bytes.size();) {
    SANDWICH_RETURN_IF_ERROR(state.check());
    const size_t mark = std::min(bytes.find('%', i), bytes.size());
    output.append(text, i, mark);
    if (mark == bytes.size())
      break;
    const bool isUnpadded = bytes.compare(mark + 1, 1, "-") == 0;
    const size_t place = mark + (isUnpadded ? 2 : 1);
    const char letter = place < bytes.size() ? bytes[place] : 0;
    constexpr std::string_view letters = "aAbBcCdDeFgGhHIjmMnprRStTuUVwWxXyY%";
    if (letter == 'f')
      output.append("000000", text.origin());
    else if (letter && letters.find(letter) != letters.npos)
      output.append(timeText(letter, isUnpadded, valid), text.origin());
    else if (letter != 'z' && letter != 'Z')
      // Of a time without a zone these two are empty.
      return makeError("a directive of the format of a time is not supported");
    i = place + 1;
  }
  return output.finish();
}
