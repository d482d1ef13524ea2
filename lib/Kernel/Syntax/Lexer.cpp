//===- Lexer.cpp - From characters to tokens ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

using namespace sandwich::kernel::syntax;

/// Deeper than any kernel, and shallow enough for the stack of who walks it.
static constexpr size_t mostIndentations = 64;

bool sandwich::kernel::syntax::isKeyword(std::string_view name) {
  static constexpr std::array<std::string_view, 35> keywords = {
      "False",  "None",   "True",    "and",      "as",       "assert", "async",
      "await",  "break",  "class",   "continue", "def",      "del",    "elif",
      "else",   "except", "finally", "for",      "from",     "global", "if",
      "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
      "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};
  return std::find(keywords.begin(), keywords.end(), name) != keywords.end();
}

namespace {

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isDigit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
public:
  Lexer(std::string_view text, SyntaxError &error) : text(text), error(error) {}

  std::optional<std::vector<Token>> run();

private:
  bool fail(Place where, std::string message) {
    error = {where, std::move(message)};
    return false;
  }
  char peek(size_t ahead = 0) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }
  bool isAtEnd() const { return at >= text.size(); }
  void skip(size_t count) {
    at += count;
    here.column += count;
  }
  void startLine() {
    ++at;
    ++here.line;
    here.column = 1;
  }
  void add(Token::Kind kind, Place where, std::string content = "") {
    Token token{kind, where, std::move(content)};
    if (kind != Token::Kind::Dedent)
      token.comment = std::exchange(comment, "");
    tokens.push_back(std::move(token));
  }
  bool lexIndentation();
  bool lexToken();
  bool lexNumber();
  bool lexString(char quote);
  bool lexSymbol();

  std::string_view text;
  SyntaxError &error;
  size_t at = 0;
  Place here;
  std::vector<Token> tokens;
  std::vector<unsigned> indentations = {0};
  size_t brackets = 0;
  std::string comment;
};

} // namespace

/// At the begin of a line outside of brackets: leaves out what is blank or a
/// comment.
bool Lexer::lexIndentation() {
  while (!isAtEnd()) {
    unsigned spaces = 0;
    while (peek() == ' ') {
      skip(1);
      ++spaces;
    }
    if (peek() == '\t')
      return fail(here, "lines must be indented by spaces, not by tabs");
    if (peek() == '\r' && peek(1) == '\n')
      skip(1);
    if (peek() == '\n' && !isAtEnd()) {
      startLine();
      continue;
    }
    if (peek() == '#') {
      skip(1);
      if (peek() == ' ')
        skip(1);
      const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
      if (!comment.empty())
        comment += '\n';
      comment += text.substr(at, end - at);
      // An empty line of a comment is one as well.
      if (end == at && comment.empty())
        comment = " ";
      skip(end - at);
      continue;
    }
    if (isAtEnd())
      break;
    if (spaces > indentations.back()) {
      if (indentations.size() > mostIndentations)
        return fail(here, "blocks must not be nested more than " +
                              std::to_string(mostIndentations) + " deep");
      indentations.push_back(spaces);
      add(Token::Kind::Indent, here);
      // Comments are those of the statement behind it.
      comment = std::exchange(tokens.back().comment, "");
    }
    while (spaces < indentations.back()) {
      indentations.pop_back();
      add(Token::Kind::Dedent, here);
    }
    if (spaces != indentations.back())
      return fail(here, "the line is indented as none before it");
    return true;
  }
  return true;
}

bool Lexer::lexNumber() {
  const Place where = here;
  const char *begin = text.data() + at, *end = text.data() + text.size();
  // What belongs to it, so that `1x` is no number and a name.
  const char *last = begin;
  bool isFloat = false;
  const bool isHexadecimal =
      peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
  while (last != end && (isLetter(*last) || isDigit(*last) || *last == '.' ||
                         ((*last == '+' || *last == '-') && !isHexadecimal &&
                          (last[-1] == 'e' || last[-1] == 'E')))) {
    isFloat |=
        *last == '.' || (!isHexadecimal && (*last == 'e' || *last == 'E'));
    ++last;
  }
  const std::string_view digits(begin, last - begin);
  Token token{isFloat ? Token::Kind::Float : Token::Kind::Integer, where, ""};
  std::from_chars_result result{};
  if (isFloat)
    result = std::from_chars(begin, last, token.number);
  else if (isHexadecimal)
    result = std::from_chars(begin + 2, last, token.integer, 16);
  else
    result = std::from_chars(begin, last, token.integer);
  if (!isFloat && !isHexadecimal && digits.size() > 1 && digits[0] == '0')
    return fail(where, "a number must not begin with 0");
  if (result.ec == std::errc::result_out_of_range)
    return fail(where, std::string(digits) + " is too large or too small");
  if (result.ec != std::errc() || result.ptr != last)
    return fail(where, std::string(digits) + " is no number");
  token.comment = std::exchange(comment, "");
  tokens.push_back(std::move(token));
  skip(digits.size());
  return true;
}

bool Lexer::lexString(char quote) {
  const Place where = here;
  const bool isLong = peek(1) == quote && peek(2) == quote;
  skip(isLong ? 3 : 1);
  std::string content;
  for (;;) {
    const char c = peek();
    if (isAtEnd() || (!isLong && (c == '\n' || c == '\r')))
      return fail(where, "a text has no end");
    if (c == '\\')
      return fail(here, "texts must not have backslashes");
    if (c == quote && (!isLong || (peek(1) == quote && peek(2) == quote)))
      break;
    content += c;
    if (c == '\n')
      startLine();
    else
      skip(1);
  }
  skip(isLong ? 3 : 1);
  add(Token::Kind::String, where, std::move(content));
  return true;
}

bool Lexer::lexSymbol() {
  static constexpr std::array<std::string_view, 46> symbols = {
      "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->",
      "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", ":=", "+",  "-",  "*",
      "/",   "%",   "&",   "|",  "^",  "~",  "<",  ">",  "(",  ")",  "[",  "]",
      "{",   "}",   ",",   ":",  ".",  "=",  "@",  ";",  "!",  "?"};
  for (std::string_view symbol : symbols) {
    if (text.substr(at, symbol.size()) != symbol)
      continue;
    if (symbol == "(" || symbol == "[" || symbol == "{")
      ++brackets;
    if ((symbol == ")" || symbol == "]" || symbol == "}") && brackets > 0)
      --brackets;
    add(Token::Kind::Symbol, here, std::string(symbol));
    skip(symbol.size());
    return true;
  }
  const auto byte = static_cast<unsigned char>(peek());
  static constexpr char digits[] = "0123456789abcdef";
  return fail(here, byte >= 0x20 && byte < 0x7f
                        ? std::string("'") + peek() + "' is no part of kernels"
                        : std::string("byte 0x") + digits[byte >> 4] +
                              digits[byte & 15] + " is no part of kernels");
}

bool Lexer::lexToken() {
  const char c = peek();
  if (isLetter(c)) {
    const Place where = here;
    size_t length = 1;
    while (isLetter(peek(length)) || isDigit(peek(length)))
      ++length;
    std::string word(text.substr(at, length));
    add(isKeyword(word) ? Token::Kind::Symbol : Token::Kind::Name, where, word);
    skip(length);
    return true;
  }
  if (isDigit(c) || (c == '.' && isDigit(peek(1))))
    return lexNumber();
  if (c == '"' || c == '\'')
    return lexString(c);
  return lexSymbol();
}

std::optional<std::vector<Token>> Lexer::run() {
  bool startsLine = true;
  while (!isAtEnd()) {
    if (startsLine) {
      if (!lexIndentation())
        return std::nullopt;
      startsLine = false;
      continue;
    }
    const char c = peek();
    if (c == ' ' || c == '\t' || (c == '\r' && peek(1) == '\n')) {
      skip(1);
    } else if (c == '\\' &&
               (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      skip(peek(1) == '\r' ? 2 : 1);
      startLine();
    } else if (c == '#') {
      // One behind code is kept nowhere.
      skip(std::min(text.find('\n', at), text.size()) - at);
    } else if (c == '\n') {
      const Place end = here;
      startLine();
      if (brackets > 0)
        continue;
      add(Token::Kind::EndOfLine, end);
      startsLine = true;
    } else if (!lexToken()) {
      return std::nullopt;
    }
  }
  if (!tokens.empty() && tokens.back().kind != Token::Kind::EndOfLine)
    add(Token::Kind::EndOfLine, here);
  for (; indentations.size() > 1; indentations.pop_back())
    add(Token::Kind::Dedent, here);
  add(Token::Kind::EndOfText, here);
  return std::move(tokens);
}

std::optional<std::vector<Token>>
sandwich::kernel::syntax::tokenize(std::string_view text, SyntaxError &error) {
  return Lexer(text, error).run();
}
