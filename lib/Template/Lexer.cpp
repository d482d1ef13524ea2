//===- Lexer.cpp - Templates as tokens ------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Has the behaviour of `jinja2.lexer`, whose regular expressions decide what
/// whitespace belongs to which tag.
///
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include "Characters.h"

#include <algorithm>
#include <array>

using namespace sandwich;
using namespace sandwich::jinja;

std::string jinja::normalizeLines(std::string_view source) {
  std::string normalized;
  normalized.reserve(source.size());
  for (size_t i = 0; i != source.size(); ++i) {
    if (source[i] != '\r') {
      normalized += source[i];
      continue;
    }
    normalized += '\n';
    if (i + 1 != source.size() && source[i + 1] == '\n')
      ++i;
  }
  if (normalized.ends_with('\n'))
    normalized.pop_back();
  return normalized;
}

namespace {

bool isAsciiDigit(char c) { return c >= '0' && c <= '9'; }
bool beginsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool continuesName(char c) { return beginsName(c) || isAsciiDigit(c); }

class Lexer {
public:
  explicit Lexer(std::string_view source) : source(source) {}

  Result<std::vector<Token>> run();

private:
  /// Text, up to and with the beginning of the next tag.
  Status lexText();
  Status lexComment();
  /// What stands between `{% raw %}` and `{% endraw %}`.
  Status lexRaw();
  /// What stands in a tag, up to and with its end.
  Status lexTag(Token::Kind endKind);
  Status lexOperator();
  Status lexString();
  /// The length of the number at the position, or 0.
  size_t floatLength() const;
  size_t integerLength() const;
  /// Whether the tag ends here: the position goes behind it.
  bool takeTagEnd(Token::Kind endKind);

  /// Adds the text between `begin` and `end`, without the whitespace that the
  /// tag that follows takes: all that is there for '-', what is on the tag's
  /// own line for none.
  void addData(size_t begin, size_t end, char sign, bool isVariable);
  void add(Token::Kind kind, size_t length);
  /// Goes on to `end`.
  void advance(size_t end);
  void skipSpace();

  std::string_view rest() const { return source.substr(position); }
  bool takes(std::string_view text) const { return rest().starts_with(text); }
  template <typename... Parts> Error error(const Parts &...parts) const {
    return makeError("line ", line, ": ", parts...);
  }

  std::string_view source;
  size_t position = 0;
  uint32_t line = 1;
  /// Whether what came last ended a line, or nothing came.
  bool beginsLine = true;
  std::string openBrackets; ///< the ends of those that are open
  std::vector<Token> tokens;
};

void Lexer::advance(size_t end) {
  const std::string_view passed = source.substr(position, end - position);
  line += static_cast<uint32_t>(std::ranges::count(passed, '\n'));
  beginsLine = passed.ends_with('\n');
  position = end;
}

void Lexer::skipSpace() {
  const size_t end = source.size() - withoutLeadingSpace(rest()).size();
  if (end != position)
    advance(end);
}

void Lexer::add(Token::Kind kind, size_t length) {
  tokens.push_back({kind, rest().substr(0, length), line});
  advance(position + length);
}

void Lexer::addData(size_t begin, size_t end, char sign, bool isVariable) {
  std::string_view text = source.substr(begin, end - begin);
  if (sign == '-') {
    text = withoutTrailingSpace(text);
  } else if (sign != '+' && !isVariable) {
    const size_t newline = text.rfind('\n');
    const size_t lineBegin = newline == text.npos ? 0 : newline + 1;
    if ((lineBegin > 0 || beginsLine) &&
        withoutLeadingSpace(text.substr(lineBegin)).empty())
      text = text.substr(0, lineBegin);
  }
  if (!text.empty())
    tokens.push_back({Token::Kind::Data, text, line});
}

/// The sign at the beginning of a tag, behind its two characters, or 0.
static char signAt(std::string_view source, size_t position) {
  const char sign = position < source.size() ? source[position] : 0;
  return sign == '-' || sign == '+' ? sign : 0;
}

/// The length of `-%}` and the whitespace behind it or of `%}`, at the
/// beginning of `text`; 0 if there is neither.
static size_t rawBeginEnd(std::string_view text) {
  if (text.starts_with("%}"))
    return 2;
  if (!text.starts_with("-%}"))
    return 0;
  return text.size() - withoutLeadingSpace(text.substr(3)).size();
}

Status Lexer::lexText() {
  size_t tag = position;
  while (true) {
    tag = source.find('{', tag);
    if (tag == source.npos || tag + 1 == source.size())
      tag = source.npos;
    else if (source[tag + 1] != '%' && source[tag + 1] != '{' &&
             source[tag + 1] != '#') {
      ++tag;
      continue;
    }
    break;
  }
  if (tag == source.npos) {
    add(Token::Kind::Data, rest().size());
    return {};
  }
  const char kind = source[tag + 1];
  const char sign = signAt(source, tag + 2);
  const size_t tagEnd = tag + (sign ? 3 : 2);
  addData(position, tag, sign, kind == '{');
  if (kind == '#') {
    advance(tagEnd);
    return lexComment();
  }
  if (kind == '{') {
    advance(tagEnd);
    tokens.push_back({Token::Kind::VariableBegin, "{{", line});
    return lexTag(Token::Kind::VariableEnd);
  }
  std::string_view after = withoutLeadingSpace(source.substr(tagEnd));
  if (after.starts_with("raw")) {
    after = withoutLeadingSpace(after.substr(3));
    if (const size_t length = rawBeginEnd(after)) {
      advance(source.size() - after.size() + length);
      return lexRaw();
    }
  }
  advance(tagEnd);
  tokens.push_back({Token::Kind::BlockBegin, "{%", line});
  return lexTag(Token::Kind::BlockEnd);
}

Status Lexer::lexComment() {
  // jinja2 looks for the end of a comment only where anything follows.
  if (position == source.size())
    return {};
  const size_t mark = source.find("#}", position);
  if (mark == source.npos)
    return error("a comment has no end, #}");
  const char sign = mark > position ? source[mark - 1] : 0;
  advance(mark + 2);
  if (sign == '-')
    skipSpace();
  else if (sign != '+' && takes("\n"))
    advance(position + 1);
  return {};
}

Status Lexer::lexRaw() {
  if (position == source.size())
    return {};
  for (size_t tag = source.find("{%", position); tag != source.npos;
       tag = source.find("{%", tag + 1)) {
    const char sign = signAt(source, tag + 2);
    std::string_view after =
        withoutLeadingSpace(source.substr(tag + (sign ? 3 : 2)));
    if (!after.starts_with("endraw"))
      continue;
    after = withoutLeadingSpace(after.substr(6));
    const char endSign = signAt(after, 0);
    if (!after.substr(endSign ? 1 : 0).starts_with("%}"))
      continue;
    addData(position, tag, sign, false);
    advance(source.size() - after.size() + (endSign ? 3 : 2));
    if (endSign == '-')
      skipSpace();
    else if (!endSign && takes("\n"))
      advance(position + 1);
    return {};
  }
  return error("a raw block has no end, {% endraw %}");
}

bool Lexer::takeTagEnd(Token::Kind endKind) {
  const bool isBlock = endKind == Token::Kind::BlockEnd;
  const std::string_view end = isBlock ? "%}" : "}}";
  const char sign = signAt(source, position);
  if (sign == '+' && !isBlock)
    return false;
  if (!rest().substr(sign ? 1 : 0).starts_with(end))
    return false;
  tokens.push_back({endKind, end, line});
  advance(position + (sign ? 3 : 2));
  if (sign == '-')
    skipSpace();
  else if (isBlock && !sign && takes("\n"))
    advance(position + 1);
  return true;
}

Status Lexer::lexTag(Token::Kind endKind) {
  openBrackets.clear();
  while (true) {
    // A tag does not end within brackets.
    if (openBrackets.empty() && takeTagEnd(endKind))
      return {};
    if (position == source.size())
      return error("the template ends within a tag");
    const size_t before = position;
    skipSpace();
    if (position != before)
      continue;
    const char c = source[position];
    if (const size_t length = floatLength()) {
      add(Token::Kind::Float, length);
    } else if (const size_t digits = integerLength()) {
      add(Token::Kind::Integer, digits);
    } else if (beginsName(c)) {
      size_t end = position + 1;
      while (end != source.size() && continuesName(source[end]))
        ++end;
      add(Token::Kind::Name, end - position);
    } else if (c == '\'' || c == '"') {
      SANDWICH_RETURN_IF_ERROR(lexString());
    } else {
      SANDWICH_RETURN_IF_ERROR(lexOperator());
    }
  }
}

/// The length of digits at the beginning of `text`, single underscores among
/// them.
template <typename IsDigit>
static size_t digitsLength(std::string_view text, IsDigit isDigit) {
  size_t length = 0;
  for (size_t i = 0; i != text.size(); ++i) {
    if (isDigit(text[i]))
      length = i + 1;
    else if (text[i] != '_' || length != i || i == 0)
      break;
  }
  return length;
}

size_t Lexer::floatLength() const {
  if (position > 0 && source[position - 1] == '.')
    return 0;
  const std::string_view text = rest();
  const size_t whole = digitsLength(text, isAsciiDigit);
  if (whole == 0)
    return 0;
  size_t length = whole;
  if (text.substr(length).starts_with('.'))
    if (size_t digits = digitsLength(text.substr(length + 1), isAsciiDigit))
      length += 1 + digits;
  const std::string_view exponent = text.substr(length);
  if (exponent.starts_with('e') || exponent.starts_with('E')) {
    const size_t sign = signAt(exponent, 1) ? 2 : 1;
    if (size_t digits = digitsLength(exponent.substr(sign), isAsciiDigit))
      return length + sign + digits;
  }
  return length > whole ? length : 0;
}

size_t Lexer::integerLength() const {
  const std::string_view text = rest();
  auto prefixed = [&](char letter, auto isDigit) -> size_t {
    if (text.size() < 3 || text[0] != '0' || (text[1] | 0x20) != letter)
      return 0;
    // An underscore may follow the letter.
    const size_t skip = text[2] == '_' ? 3 : 2;
    const size_t digits = digitsLength(text.substr(skip), isDigit);
    return digits ? skip + digits : 0;
  };
  auto isHexadecimal = [](char c) {
    return isAsciiDigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
  };
  if (size_t length =
          prefixed('b', [](char c) { return c == '0' || c == '1'; }))
    return length;
  if (size_t length = prefixed('o', [](char c) { return c >= '0' && c < '8'; }))
    return length;
  if (size_t length = prefixed('x', isHexadecimal))
    return length;
  if (text.starts_with('0'))
    return digitsLength(text, [](char c) { return c == '0'; });
  return digitsLength(text, isAsciiDigit);
}

Status Lexer::lexString() {
  const char quote = source[position];
  for (size_t i = position + 1; i < source.size(); ++i) {
    if (source[i] == '\\') {
      ++i;
    } else if (source[i] == quote) {
      add(Token::Kind::String, i + 1 - position);
      return {};
    }
  }
  return error("a string has no end");
}

Status Lexer::lexOperator() {
  // The longer ones first.
  static constexpr std::array<std::string_view, 26> operators = {
      "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  for (std::string_view each : operators) {
    if (!takes(each))
      continue;
    const char c = each[0];
    if (c == '(' || c == '[' || c == '{') {
      openBrackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (openBrackets.empty())
        return error("unexpected '", each, "'");
      if (openBrackets.back() != c)
        return error("unexpected '", each, "', expected '", openBrackets.back(),
                     "'");
      openBrackets.pop_back();
    }
    add(Token::Kind::Operator, each.size());
    return {};
  }
  const size_t length = characterLength(source[position]);
  return error("unexpected character '", source.substr(position, length), "'");
}

Result<std::vector<Token>> Lexer::run() {
  while (position != source.size())
    SANDWICH_RETURN_IF_ERROR(lexText());
  tokens.push_back({Token::Kind::End, "", line});
  return std::move(tokens);
}

} // namespace

Result<std::vector<Token>> jinja::lex(std::string_view source) {
  return Lexer(source).run();
}
