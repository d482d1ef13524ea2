//===- Printing.cpp - Values as text --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Printing.h"

#include "Characters.h"
#include "Objects.h"
#include "Operators.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

using namespace sandwich;
using namespace sandwich::jinja;

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

size_t jinja::findText(std::string_view text, std::string_view part,
                       size_t begin) {
  if (begin > text.size())
    return std::string_view::npos;
  if (part.empty())
    return begin;
  if (part.size() > text.size() - begin)
    return std::string_view::npos;
  // string_view's own search is quadratic, this one of the C library is not.
  const void *found = memmem(text.data() + begin, text.size() - begin,
                             part.data(), part.size());
  return found ? static_cast<size_t>(static_cast<const char *>(found) -
                                     text.data())
               : std::string_view::npos;
}

size_t jinja::findLastText(std::string_view text, std::string_view part) {
  const std::string reversed(text.rbegin(), text.rend());
  const size_t found =
      findText(reversed, std::string(part.rbegin(), part.rend()), 0);
  return found == std::string_view::npos ? found
                                         : text.size() - found - part.size();
}

std::string jinja::floatText(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  // The fewest digits that read back as the number: "-d.ddde+xx".
  char buffer[64];
  const auto written = std::to_chars(std::begin(buffer), std::end(buffer),
                                     number, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(written.ptr - buffer));
  const size_t mark = text.find('e');
  int exponent = 0;
  const size_t sign = text[mark + 1] == '+' ? 1 : 0;
  std::from_chars(text.data() + mark + 1 + sign, text.data() + text.size(),
                  exponent);
  if (exponent < -4 || exponent >= 16)
    return std::string(text);
  const auto fixed = std::to_chars(std::begin(buffer), std::end(buffer), number,
                                   std::chars_format::fixed);
  std::string result(buffer, static_cast<size_t>(fixed.ptr - buffer));
  if (result.find('.') == std::string::npos)
    result += ".0";
  return result;
}

/// Appends the bytes from `begin` on that are what they mean between `quote`
/// and `quote`, printable ASCII, up to the first other. Its place.
static size_t appendPlain(std::string &quoted, std::string_view bytes,
                          size_t begin, char quote) {
  size_t end = begin;
  while (end < bytes.size() && bytes[end] >= ' ' && bytes[end] <= '~' &&
         bytes[end] != quote && bytes[end] != '\\')
    ++end;
  quoted += bytes.substr(begin, end - begin);
  return end;
}

namespace {

/// Writes a value whose parts cannot be told apart any more.
class PlainWriter {
public:
  explicit PlainWriter(RenderState &state)
      : state(state), share(state.share()) {}

  Value finish() { return state.string(std::move(text), origin); }

protected:
  void write(std::string_view part) {
    state.spendBytes(part.size());
    if (!share.grow(part.size()))
      state.exhaustMemory();
    else
      text += part;
  }
  void note(const Value &value) { origin = origin | value.origin(); }

  RenderState &state;
  std::string text;
  Origin origin = Origin::Template;
  MemoryShare share;
};

//===----------------------------------------------------------------------===//
// Python's representations
//===----------------------------------------------------------------------===//

class Representation final : public PlainWriter {
public:
  using PlainWriter::PlainWriter;

  Status add(const Value &value);

private:
  void addString(const std::string &bytes);
  Status addItems(const std::vector<Value> &items);
  Status addEntries(const std::vector<Dictionary::Entry> &entries);
  Status addView(const DictionaryView &view);
  void addRange(const Range &range);
  Status addObject(Object &object);

  /// Of namespaces, which may hold themselves.
  unsigned depth = 0;
};

Status Representation::add(const Value &value) {
  state.spend(1);
  SANDWICH_RETURN_IF_ERROR(state.check());
  note(value);
  switch (value.kind()) {
  case Value::Kind::Undefined:
    write("Undefined");
    return {};
  case Value::Kind::None:
    write("None");
    return {};
  case Value::Kind::Boolean:
    write(value.boolean() ? "True" : "False");
    return {};
  case Value::Kind::Integer:
    write(std::to_string(value.integer()));
    return {};
  case Value::Kind::Float:
    write(floatText(value.number()));
    return {};
  case Value::Kind::String:
    if (value.string().isMarkup)
      write("Markup(");
    addString(value.bytes());
    if (value.string().isMarkup)
      write(")");
    return {};
  case Value::Kind::Sequence:
    write(value.isTuple() ? "(" : "[");
    SANDWICH_RETURN_IF_ERROR(addItems(value.items()));
    if (value.isTuple() && value.items().size() == 1)
      write(",");
    write(value.isTuple() ? ")" : "]");
    return {};
  case Value::Kind::Dictionary:
    write("{");
    SANDWICH_RETURN_IF_ERROR(addEntries(value.dictionary()->entries));
    write("}");
    return {};
  case Value::Kind::View:
    return addView(value.view());
  case Value::Kind::Range:
    addRange(value.range());
    return {};
  case Value::Kind::Object:
    return addObject(value.object());
  }
  return {};
}

/// Appends `character` as Python's repr shows what cannot be printed.
static void appendEscape(std::string &text, char32_t character) {
  constexpr char digits[] = "0123456789abcdef";
  const int count = character < 0x100 ? 2 : character < 0x10000 ? 4 : 8;
  text += count == 2 ? "\\x" : count == 4 ? "\\u" : "\\U";
  for (int i = count - 1; i >= 0; --i)
    text += digits[character >> (4 * i) & 0xF];
}

void Representation::addString(const std::string &bytes) {
  const bool hasApostrophe = bytes.find('\'') != std::string::npos;
  const char quote =
      hasApostrophe && bytes.find('"') == std::string::npos ? '"' : '\'';
  std::string quoted(1, quote);
  // The longest escape of a byte has four.
  if (state.memoryLeft() / 4 < bytes.size())
    return state.exhaustMemory();
  for (size_t i = 0; (i = appendPlain(quoted, bytes, i, quote)) != bytes.size();
       i += characterLength(bytes[i])) {
    const char32_t character =
        firstCharacter(std::string_view(bytes).substr(i));
    if (character == static_cast<char32_t>(quote) || character == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(character);
    } else if (character == '\n') {
      quoted += "\\n";
    } else if (character == '\r') {
      quoted += "\\r";
    } else if (character == '\t') {
      quoted += "\\t";
    } else if (isPrintable(character)) {
      quoted.append(bytes, i, characterLength(bytes[i]));
    } else {
      appendEscape(quoted, character);
    }
  }
  quoted += quote;
  write(quoted);
}

Status Representation::addItems(const std::vector<Value> &items) {
  for (size_t i = 0; i != items.size(); ++i) {
    if (i > 0)
      write(", ");
    SANDWICH_RETURN_IF_ERROR(add(items[i]));
  }
  return {};
}

Status
Representation::addEntries(const std::vector<Dictionary::Entry> &entries) {
  for (size_t i = 0; i != entries.size(); ++i) {
    if (i > 0)
      write(", ");
    SANDWICH_RETURN_IF_ERROR(add(entries[i].first));
    write(": ");
    SANDWICH_RETURN_IF_ERROR(add(entries[i].second));
  }
  return {};
}

Status Representation::addView(const DictionaryView &view) {
  write(typeName(Value(view, Origin::Template)));
  write("([");
  for (size_t i = 0; i != view.dictionary->entries.size(); ++i) {
    if (i > 0)
      write(", ");
    SANDWICH_RETURN_IF_ERROR(add(viewItem(state, view, i)));
  }
  write("])");
  return {};
}

void Representation::addRange(const Range &range) {
  write("range(" + std::to_string(range.start) + ", " +
        std::to_string(range.stop));
  if (range.step != 1)
    write(", " + std::to_string(range.step));
  write(")");
}

Status Representation::addObject(Object &object) {
  if (object.kind() == Object::Kind::Macro) {
    const auto &macro = static_cast<const Macro &>(object);
    // What a call block gives has no name.
    write(macro.description.name.empty()
              ? "<Macro anonymous>"
              : "<Macro '" + macro.description.name + "'>");
    return {};
  }
  if (object.kind() != Object::Kind::Namespace)
    return makeError("a ", typeName(Value(object)), " cannot be printed");
  if (++depth > maxValueDepth)
    return makeError("a namespace that lies in itself cannot be printed");
  const auto &space = static_cast<Namespace &>(object);
  origin = origin | space.namesOrigin();
  write("<Namespace {");
  bool isFirst = true;
  for (const auto &[name, value] : space.attributes()) {
    if (!isFirst)
      write(", ");
    isFirst = false;
    addString(name);
    write(": ");
    SANDWICH_RETURN_IF_ERROR(add(value));
  }
  write("}>");
  --depth;
  return {};
}

} // namespace

Result<Value> jinja::represent(RenderState &state, const Value &value) {
  Representation representation(state);
  SANDWICH_RETURN_IF_ERROR(representation.add(value));
  return representation.finish();
}

Result<Value> jinja::toString(RenderState &state, const Value &value) {
  if (value.isString())
    return value;
  if (value.isUndefined())
    return state.string("", Origin::Template);
  return represent(state, value);
}

Status jinja::appendString(RenderState &state, const Value &value,
                           TextBuilder &text) {
  SANDWICH_ASSIGN_OR_RETURN(Value string, toString(state, value));
  text.append(string.text());
  return {};
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace {

class JsonWriter final : public PlainWriter {
public:
  JsonWriter(RenderState &state, const JsonStyle &style)
      : PlainWriter(state), style(style) {}

  Status add(const Value &value);

private:
  void addString(const std::string &bytes);
  Status addKey(const Value &key);
  Status addList(const std::vector<Value> &items);
  Status addObject(const Dictionary &dictionary);
  Status addMember(const Value &key, const Value &value);
  void addNumber(double number);
  /// What comes before the element `index` of a container, or after the last.
  void beginElement(size_t index);
  void endElements();
  void addLine();

  const JsonStyle &style;
  size_t level = 0;
};

Status JsonWriter::add(const Value &value) {
  state.spend(1);
  SANDWICH_RETURN_IF_ERROR(state.check());
  note(value);
  switch (value.kind()) {
  case Value::Kind::None:
    write("null");
    return {};
  case Value::Kind::Boolean:
    write(value.boolean() ? "true" : "false");
    return {};
  case Value::Kind::Integer:
    write(std::to_string(value.integer()));
    return {};
  case Value::Kind::Float:
    addNumber(value.number());
    return {};
  case Value::Kind::String:
    addString(value.bytes());
    return {};
  case Value::Kind::Sequence:
    return addList(value.items());
  case Value::Kind::Dictionary:
    return addObject(*value.dictionary());
  case Value::Kind::Undefined:
    return makeError("a value that is not defined is no JSON: ",
                     value.undefinedReason());
  default:
    return makeError("a ", typeName(value), " is no JSON");
  }
}

void JsonWriter::addNumber(double number) {
  if (std::isnan(number))
    write("NaN");
  else if (std::isinf(number))
    write(number < 0 ? "-Infinity" : "Infinity");
  else
    write(floatText(number));
}

/// Appends `\uXXXX` for a UTF-16 unit.
static void appendUnit(std::string &text, char32_t unit) {
  constexpr char digits[] = "0123456789abcdef";
  text += "\\u";
  for (int i = 3; i >= 0; --i)
    text += digits[unit >> (4 * i) & 0xF];
}

/// The letter that stands for `character` behind a backslash in JSON, or 0.
static char jsonEscape(char32_t character) {
  switch (character) {
  case '"':
  case '\\':
    return static_cast<char>(character);
  case '\b':
    return 'b';
  case '\f':
    return 'f';
  case '\n':
    return 'n';
  case '\r':
    return 'r';
  case '\t':
    return 't';
  default:
    return 0;
  }
}

void JsonWriter::addString(const std::string &bytes) {
  // The longest escape of a byte has six.
  if (state.memoryLeft() / 6 < bytes.size())
    return state.exhaustMemory();
  std::string quoted = "\"";
  for (size_t i = 0; (i = appendPlain(quoted, bytes, i, '"')) != bytes.size();
       i += characterLength(bytes[i])) {
    const char32_t character =
        firstCharacter(std::string_view(bytes).substr(i));
    if (const char letter = jsonEscape(character)) {
      quoted += '\\';
      quoted += letter;
    } else if (character < 0x20 ||
               (style.isAscii && character >= 0x7F && character < 0x10000)) {
      appendUnit(quoted, character);
    } else if (style.isAscii && character >= 0x10000) {
      appendUnit(quoted, 0xD800 + ((character - 0x10000) >> 10));
      appendUnit(quoted, 0xDC00 + ((character - 0x10000) & 0x3FF));
    } else {
      quoted.append(bytes, i, characterLength(bytes[i]));
    }
  }
  quoted += '"';
  write(quoted);
}

void JsonWriter::addLine() {
  write("\n");
  for (size_t i = 0; i != level; ++i)
    write(*style.indentation);
}

void JsonWriter::beginElement(size_t index) {
  if (index > 0)
    write(style.itemSeparator);
  if (style.indentation)
    addLine();
}

void JsonWriter::endElements() {
  --level;
  if (style.indentation)
    addLine();
}

Status JsonWriter::addList(const std::vector<Value> &items) {
  if (items.empty()) {
    write("[]");
    return {};
  }
  write("[");
  ++level;
  for (size_t i = 0; i != items.size(); ++i) {
    beginElement(i);
    SANDWICH_RETURN_IF_ERROR(add(items[i]));
  }
  endElements();
  write("]");
  return {};
}

Status JsonWriter::addKey(const Value &key) {
  note(key);
  switch (key.kind()) {
  case Value::Kind::String:
    addString(key.bytes());
    return {};
  case Value::Kind::None:
  case Value::Kind::Boolean:
  case Value::Kind::Integer:
  case Value::Kind::Float:
    write("\"");
    SANDWICH_RETURN_IF_ERROR(add(key));
    write("\"");
    return {};
  default:
    return makeError("a ", typeName(key), " is no key of JSON");
  }
}

Status JsonWriter::addMember(const Value &key, const Value &value) {
  SANDWICH_RETURN_IF_ERROR(addKey(key));
  write(style.keySeparator);
  return add(value);
}

Status JsonWriter::addObject(const Dictionary &dictionary) {
  if (dictionary.entries.empty()) {
    write("{}");
    return {};
  }
  write("{");
  ++level;
  if (!style.sortsKeys) {
    for (size_t i = 0; i != dictionary.entries.size(); ++i) {
      const auto &[key, value] = dictionary.entries[i];
      beginElement(i);
      SANDWICH_RETURN_IF_ERROR(addMember(key, value));
    }
  } else {
    std::vector<Value> keys, values;
    for (const auto &[key, value] : dictionary.entries) {
      keys.push_back(key);
      values.push_back(value);
    }
    SANDWICH_RETURN_IF_ERROR(sortByKeys(state, values, keys, false));
    for (size_t i = 0; i != keys.size(); ++i) {
      beginElement(i);
      SANDWICH_RETURN_IF_ERROR(addMember(keys[i], values[i]));
    }
  }
  endElements();
  write("}");
  return {};
}

} // namespace

Result<Value> jinja::toJson(RenderState &state, const Value &value,
                            const JsonStyle &style) {
  JsonWriter writer(state, style);
  SANDWICH_RETURN_IF_ERROR(writer.add(value));
  return writer.finish();
}
