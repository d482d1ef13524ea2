//===- Pattern.cpp - Regular expressions as they are written --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pattern.h"

#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

using namespace sandwich;
using namespace sandwich::grammar;

namespace {

/// Groups inside of each other.
constexpr unsigned mostNesting = 100;
constexpr uint32_t mostRepetitions = 1'000'000;

/// A recursive-descent parser that makes expressions on the way.
class PatternParser {
public:
  PatternParser(ExpressionPool &pool, std::string_view pattern,
                PatternScope scope, Encoding encoding)
      : pool(pool), pattern(pattern), scope(scope), encoding(encoding) {}

  Result<Expression> parse();

private:
  /// A number of repetitions.
  struct Quantifier {
    uint32_t least, most;
  };

  template <typename... Parts> Error error(const Parts &...parts) const {
    return makeError(ErrorKind::InvalidArgument, "the pattern has at byte ",
                     position, " ", parts...);
  }

  bool atEnd() const { return position == pattern.size(); }
  char peek() const { return pattern[position]; }
  bool startsWith(std::string_view text) const {
    return pattern.substr(position).starts_with(text);
  }
  /// Goes beyond `text` if that comes next.
  bool skip(std::string_view text) {
    if (!startsWith(text))
      return false;
    position += text.size();
    return true;
  }
  char32_t takeCharacter();

  Result<Expression> parseAlternatives(unsigned nesting);
  Result<Expression> parseSequence(unsigned nesting);
  Result<Expression> parseAtom(unsigned nesting);
  Result<Expression> parseGroup(unsigned nesting);
  Result<std::optional<Quantifier>> parseQuantifier();
  Result<Quantifier> parseCounts();
  Result<uint32_t> parseCount();
  Result<CharacterSet> parseClass();
  Result<CharacterSet> parseClassMember();
  /// What follows a backslash.
  Result<CharacterSet> parseEscape(bool inClass);
  Result<char32_t> parseHexadecimal(size_t digits);
  Result<char32_t> parseCodeUnits();
  Expression any() {
    return pool.repeat(CharacterSet::all().expression(pool, encoding), 0,
                       ExpressionPool::unlimited);
  }
  Expression expressionOf(const CharacterSet &set) {
    return set.expression(pool, encoding);
  }

  ExpressionPool &pool;
  std::string_view pattern;
  PatternScope scope;
  Encoding encoding;
  size_t position = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

static CharacterSet digits() { return CharacterSet().add('0', '9'); }

static CharacterSet wordCharacters() {
  return digits().add('a', 'z').add('A', 'Z').add('_');
}

/// ECMA-262's WhiteSpace and LineTerminator.
static CharacterSet spaces() {
  return CharacterSet()
      .add('\t', '\r')
      .add(' ')
      .add(0xA0)
      .add(0x1680)
      .add(0x2000, 0x200A)
      .add(0x2028, 0x2029)
      .add(0x202F)
      .add(0x205F)
      .add(0x3000)
      .add(0xFEFF);
}

static CharacterSet allButLineTerminators() {
  return CharacterSet().add('\n').add('\r').add(0x2028, 0x2029).complement();
}

char32_t PatternParser::takeCharacter() {
  const char32_t character = firstCharacter(pattern.substr(position));
  position += characterLength(peek());
  return character;
}

static std::optional<char32_t> digitValue(char digit) {
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  if (digit >= 'a' && digit <= 'f')
    return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F')
    return digit - 'A' + 10;
  return std::nullopt;
}

Result<char32_t> PatternParser::parseHexadecimal(size_t digits) {
  char32_t value = 0;
  for (size_t i = 0; i < digits; ++i) {
    const std::optional<char32_t> digit =
        atEnd() ? std::nullopt : digitValue(peek());
    if (!digit)
      return error("no hexadecimal digit in an escape");
    value = value * 16 + *digit;
    ++position;
  }
  return value;
}

/// What follows `\u`: four digits, twice for a surrogate pair, or any number of
/// them in braces.
Result<char32_t> PatternParser::parseCodeUnits() {
  if (skip("{")) {
    char32_t value = 0;
    do {
      SANDWICH_ASSIGN_OR_RETURN(char32_t digit, parseHexadecimal(1));
      value = value * 16 + digit;
      if (value > 0x10FFFF)
        return error("an escape beyond U+10FFFF");
    } while (!skip("}"));
    if (value >= 0xD800 && value <= 0xDFFF)
      return error("a surrogate, which is no character");
    return value;
  }
  SANDWICH_ASSIGN_OR_RETURN(char32_t value, parseHexadecimal(4));
  if (value < 0xD800 || value > 0xDFFF)
    return value;
  if (value > 0xDBFF || !skip("\\u"))
    return error("a surrogate without the other");
  SANDWICH_ASSIGN_OR_RETURN(char32_t low, parseHexadecimal(4));
  if (low < 0xDC00 || low > 0xDFFF)
    return error("a surrogate without the other");
  return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
}

Result<CharacterSet> PatternParser::parseEscape(bool inClass) {
  if (atEnd())
    return error("nothing after a backslash");
  const char letter = peek();
  if (letter >= '1' && letter <= '9')
    return error("a back-reference, which is not regular");
  switch (letter) {
  case 'b':
    if (!inClass)
      return error("a word boundary, which is not supported");
    break;
  case 'B':
    return error("a word boundary, which is not supported");
  case 'k':
    return error("a back-reference, which is not regular");
  case 'p':
  case 'P':
    return error("a Unicode property, which is not supported");
  default:
    break;
  }
  const char32_t character = takeCharacter();
  CharacterSet set;
  switch (letter) {
  case 'd':
    return digits();
  case 'D':
    return digits().complement();
  case 'w':
    return wordCharacters();
  case 'W':
    return wordCharacters().complement();
  case 's':
    return spaces();
  case 'S':
    return spaces().complement();
  case 'b':
    return set.add('\b');
  case 'f':
    return set.add('\f');
  case 'n':
    return set.add('\n');
  case 'r':
    return set.add('\r');
  case 't':
    return set.add('\t');
  case 'v':
    return set.add('\v');
  case '0':
    if (!atEnd() && peek() >= '0' && peek() <= '9')
      return error("an octal escape, which is not supported");
    return set.add(0);
  case 'c': {
    const char control = atEnd() ? '\0' : peek();
    if (!((control >= 'a' && control <= 'z') ||
          (control >= 'A' && control <= 'Z')))
      return error("no letter after \\c");
    ++position;
    return set.add(static_cast<char32_t>(control % 32));
  }
  case 'x': {
    SANDWICH_ASSIGN_OR_RETURN(char32_t value, parseHexadecimal(2));
    return set.add(value);
  }
  case 'u': {
    SANDWICH_ASSIGN_OR_RETURN(char32_t value, parseCodeUnits());
    return set.add(value);
  }
  default:
    break;
  }
  if (character < 0x80 && wordCharacters().contains(character) &&
      character != '_') {
    position -= 1;
    return error("the escape \\", letter, ", which is not supported");
  }
  return set.add(character);
}

Result<CharacterSet> PatternParser::parseClassMember() {
  if (atEnd())
    return error("the end inside of a class");
  if (skip("\\"))
    return parseEscape(true);
  if (startsWith("[:") || startsWith("[=") || startsWith("[."))
    return error("a POSIX class, which is not supported");
  return CharacterSet().add(takeCharacter());
}

/// The only member of `set`, which was `written` so; nothing for a class.
static std::optional<char32_t> singleMember(const CharacterSet &set,
                                            std::string_view written) {
  // Of the escapes, only those of classes stand for several characters.
  if (written.size() == 2 && written[0] == '\\' &&
      std::string_view("dDwWsS").find(written[1]) != std::string_view::npos)
    return std::nullopt;
  return set.first();
}

/// What follows `[`, up to `]`.
Result<CharacterSet> PatternParser::parseClass() {
  const bool negated = skip("^");
  if (startsWith("]"))
    return error("an empty class; dialects differ in what it is");
  CharacterSet set;
  while (!skip("]")) {
    size_t begin = position;
    SANDWICH_ASSIGN_OR_RETURN(CharacterSet member, parseClassMember());
    const std::optional<char32_t> first =
        singleMember(member, pattern.substr(begin, position - begin));
    if (!startsWith("-") || startsWith("-]")) {
      set.add(member);
      continue;
    }
    ++position;
    begin = position;
    SANDWICH_ASSIGN_OR_RETURN(CharacterSet end, parseClassMember());
    const std::optional<char32_t> last =
        singleMember(end, pattern.substr(begin, position - begin));
    if (!first || !last)
      return error("a range before it whose end is a class");
    if (*first > *last)
      return error("a range before it that ends before it begins");
    set.add(*first, *last);
  }
  return negated ? set.complement() : set;
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Result<uint32_t> PatternParser::parseCount() {
  uint32_t value = 0;
  const size_t begin = position;
  for (; !atEnd() && peek() >= '0' && peek() <= '9'; ++position) {
    value = value * 10 + static_cast<uint32_t>(peek() - '0');
    if (value > mostRepetitions)
      return error("a number of repetitions above ", mostRepetitions);
  }
  if (position == begin)
    return error("a brace that is no number of repetitions; a literal one is "
                 "written \\{");
  return value;
}

/// What follows `{`, up to `}`.
Result<PatternParser::Quantifier> PatternParser::parseCounts() {
  SANDWICH_ASSIGN_OR_RETURN(uint32_t least, parseCount());
  Quantifier quantifier{least, least};
  if (skip(",")) {
    quantifier.most = ExpressionPool::unlimited;
    if (!startsWith("}")) {
      SANDWICH_ASSIGN_OR_RETURN(quantifier.most, parseCount());
    }
  }
  if (!skip("}"))
    return error("no end of a number of repetitions");
  if (quantifier.most < quantifier.least)
    return error("before it a number of repetitions that ends before it "
                 "begins");
  return quantifier;
}

Result<std::optional<PatternParser::Quantifier>>
PatternParser::parseQuantifier() {
  std::optional<Quantifier> quantifier;
  if (skip("*"))
    quantifier = {0, ExpressionPool::unlimited};
  else if (skip("+"))
    quantifier = {1, ExpressionPool::unlimited};
  else if (skip("?"))
    quantifier = {0, 1};
  else if (skip("{")) {
    SANDWICH_ASSIGN_OR_RETURN(quantifier, parseCounts());
  } else
    return quantifier;
  // Which of several ways to match is tried first makes no difference here.
  skip("?");
  if (!atEnd() &&
      (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{'))
    return error("a quantifier of a quantifier");
  return quantifier;
}

/// What follows `(`, up to `)`.
Result<Expression> PatternParser::parseGroup(unsigned nesting) {
  if (nesting == mostNesting)
    return error("groups nested deeper than ", mostNesting);
  if (startsWith("?=") || startsWith("?!") || startsWith("?<=") ||
      startsWith("?<!"))
    return error("a look-around, which is not supported");
  if (skip("?<") || skip("?P<")) {
    const size_t end = pattern.find('>', position);
    if (end == std::string_view::npos || end == position)
      return error("no name of a group");
    position = end + 1;
  } else if (!skip("?:") && startsWith("?"))
    return error("a kind of group that is not supported");
  SANDWICH_ASSIGN_OR_RETURN(Expression inner, parseAlternatives(nesting + 1));
  if (!skip(")"))
    return error("no end of a group");
  return inner;
}

Result<Expression> PatternParser::parseAtom(unsigned nesting) {
  if (skip("("))
    return parseGroup(nesting);
  if (skip("[")) {
    SANDWICH_ASSIGN_OR_RETURN(CharacterSet set, parseClass());
    return expressionOf(set);
  }
  if (skip("\\")) {
    SANDWICH_ASSIGN_OR_RETURN(CharacterSet set, parseEscape(false));
    return expressionOf(set);
  }
  if (skip("."))
    return expressionOf(allButLineTerminators());
  if (startsWith("^") || startsWith("$"))
    return error("an anchor that is not at the beginning or end");
  if (startsWith("*") || startsWith("+") || startsWith("?") || startsWith("{"))
    return error("a quantifier of nothing");
  return expressionOf(CharacterSet().add(takeCharacter()));
}

Result<Expression> PatternParser::parseSequence(unsigned nesting) {
  const bool isOuter = nesting == 0;
  std::vector<Expression> parts;
  if (!(isOuter && skip("^")) && isOuter && scope == PatternScope::Part)
    parts.push_back(any());
  bool endsAnchored = false;
  while (!atEnd() && peek() != '|' && peek() != ')') {
    if (isOuter && (pattern.substr(position) == "$" || startsWith("$|"))) {
      ++position;
      endsAnchored = true;
      break;
    }
    SANDWICH_ASSIGN_OR_RETURN(Expression atom, parseAtom(nesting));
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Quantifier> quantifier,
                              parseQuantifier());
    parts.push_back(quantifier
                        ? pool.repeat(atom, quantifier->least, quantifier->most)
                        : atom);
  }
  if (isOuter && scope == PatternScope::Part && !endsAnchored)
    parts.push_back(any());
  Expression sequence = ExpressionPool::empty;
  for (size_t i = parts.size(); i-- > 0;)
    sequence = pool.concat(parts[i], sequence);
  return sequence;
}

Result<Expression> PatternParser::parseAlternatives(unsigned nesting) {
  std::vector<Expression> alternatives;
  do {
    SANDWICH_ASSIGN_OR_RETURN(Expression each, parseSequence(nesting));
    alternatives.push_back(each);
  } while (skip("|"));
  return pool.either(std::move(alternatives));
}

Result<Expression> PatternParser::parse() {
  if (std::optional<size_t> offset = findInvalidUtf8(pattern))
    return makeError(ErrorKind::InvalidArgument,
                     "the pattern is not UTF-8 at byte ", *offset);
  SANDWICH_ASSIGN_OR_RETURN(Expression whole, parseAlternatives(0));
  if (!atEnd())
    return error("a parenthesis that closes nothing");
  return whole;
}

Result<Expression> sandwich::grammar::parsePattern(ExpressionPool &pool,
                                                   std::string_view pattern,
                                                   PatternScope scope,
                                                   Encoding encoding) {
  return PatternParser(pool, pattern, scope, encoding).parse();
}
