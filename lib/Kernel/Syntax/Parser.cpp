//===- Parser.cpp - From tokens to syntax trees ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include <algorithm>
#include <array>
#include <span>

using namespace sandwich::kernel::syntax;

/// How deep expressions are nested at most: who walks one does so on the stack.
static constexpr unsigned mostNesting = 100;
/// Of how many values an expression is made at most: long sums nest, too, in
/// their first operands.
static constexpr unsigned mostValues = 2000;

namespace {

/// Operators by how they bind, from the weakest on; one row is one level.
constexpr std::array<std::string_view, 2> logicalOperators = {"or", "and"};
constexpr std::array<std::string_view, 6> comparisons = {"<",  "<=", ">",
                                                         ">=", "==", "!="};
struct Level {
  std::array<std::string_view, 4> operators;
};
constexpr std::array<Level, 6> levels = {{{{"|"}},
                                          {{"^"}},
                                          {{"&"}},
                                          {{"<<", ">>"}},
                                          {{"+", "-"}},
                                          {{"*", "/", "//", "%"}}}};

class Parser {
public:
  Parser(std::vector<Token> tokens, SyntaxError &error)
      : tokens(std::move(tokens)), error(error) {}

  std::optional<std::vector<Kernel>> run();

private:
  const Token &peek() const { return tokens[at]; }
  bool is(std::string_view symbol) const {
    return peek().kind == Token::Kind::Symbol && peek().text == symbol;
  }
  bool is(Token::Kind kind) const { return peek().kind == kind; }
  /// Goes on behind the token, if it is `symbol`.
  bool accept(std::string_view symbol) {
    if (!is(symbol))
      return false;
    ++at;
    return true;
  }
  bool accept(Token::Kind kind) {
    if (!is(kind))
      return false;
    ++at;
    return true;
  }
  std::nullptr_t fail(Place where, std::string message) {
    error = {where, std::move(message)};
    return nullptr;
  }
  std::nullptr_t failHere(const std::string &expected);
  bool expect(std::string_view symbol) {
    if (accept(symbol))
      return true;
    failHere("'" + std::string(symbol) + "'");
    return false;
  }
  ExpressionPointer make(Expression::Kind kind, Place place,
                         std::string text = "") {
    auto expression = std::make_unique<Expression>();
    expression->kind = kind;
    expression->place = place;
    expression->text = std::move(text);
    return expression;
  }

  /// One level deeper; false, with the error set, if that is too deep.
  bool nest() {
    if (++nesting <= mostNesting)
      return true;
    fail(peek().place, "expressions must not be nested more than " +
                           std::to_string(mostNesting) + " deep");
    return false;
  }
  /// The operator that is next, without its operands.
  ExpressionPointer takeOperator() {
    ExpressionPointer whole =
        make(Expression::Kind::Binary, peek().place, peek().text);
    ++at;
    return whole;
  }
  /// `whole` of both operands; null if the second is.
  static ExpressionPointer combine(ExpressionPointer whole,
                                   ExpressionPointer lhs,
                                   ExpressionPointer rhs) {
    if (!rhs)
      return nullptr;
    whole->operands.push_back(std::move(lhs));
    whole->operands.push_back(std::move(rhs));
    return whole;
  }

  ExpressionPointer parseExpression();
  ExpressionPointer parseLogical(size_t level);
  ExpressionPointer parseNot();
  ExpressionPointer parseComparison();
  ExpressionPointer parseBinary(size_t level);
  ExpressionPointer parseUnary();
  ExpressionPointer parsePostfix();
  ExpressionPointer parsePrimary();
  bool parseCall(Expression &call);
  bool parseSubscript(Expression &subscript);

  bool parseBody(Body &body);
  bool parseStatement(Body &body);
  bool parseIf(Statement &statement);
  bool parseAssignment(Statement &statement);
  bool parseAssert(Statement &statement);
  bool endLine();
  bool parseKernel(Kernel &kernel);

  std::vector<Token> tokens;
  SyntaxError &error;
  size_t at = 0;
  unsigned nesting = 0;
  /// Of the statement so far.
  unsigned values = 0;
};

} // namespace

std::nullptr_t Parser::failHere(const std::string &expected) {
  const Token &token = peek();
  std::string found;
  switch (token.kind) {
  case Token::Kind::Name:
  case Token::Kind::Symbol:
    found = "'" + token.text + "'";
    break;
  case Token::Kind::Integer:
  case Token::Kind::Float:
    found = "a number";
    break;
  case Token::Kind::String:
    found = "a text";
    break;
  case Token::Kind::EndOfLine:
    found = "the line's end";
    break;
  case Token::Kind::Indent:
    found = "a line that is indented";
    break;
  case Token::Kind::Dedent:
    found = "the end of the indented lines";
    break;
  case Token::Kind::EndOfText:
    found = "the end";
    break;
  }
  return fail(token.place, expected + " expected, not " + found);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

ExpressionPointer Parser::parseExpression() {
  if (!nest())
    return nullptr;
  ExpressionPointer result = parseLogical(0);
  --nesting;
  return result;
}

ExpressionPointer Parser::parseLogical(size_t level) {
  if (level == logicalOperators.size())
    return parseNot();
  ExpressionPointer lhs = parseLogical(level + 1);
  while (lhs && is(logicalOperators[level])) {
    ExpressionPointer whole = takeOperator();
    lhs = combine(std::move(whole), std::move(lhs), parseLogical(level + 1));
  }
  return lhs;
}

ExpressionPointer Parser::parseNot() {
  if (!is("not"))
    return parseComparison();
  if (!nest())
    return nullptr;
  ExpressionPointer whole = make(Expression::Kind::Unary, peek().place, "not");
  ++at;
  ExpressionPointer operand = parseNot();
  --nesting;
  if (!operand)
    return nullptr;
  whole->operands.push_back(std::move(operand));
  return whole;
}

ExpressionPointer Parser::parseComparison() {
  ExpressionPointer lhs = parseBinary(0);
  const auto isComparison = [&] {
    return std::any_of(comparisons.begin(), comparisons.end(),
                       [&](std::string_view each) { return is(each); });
  };
  if (!lhs || !isComparison())
    return lhs;
  ExpressionPointer whole = takeOperator();
  ExpressionPointer rhs = parseBinary(0);
  if (!rhs)
    return nullptr;
  if (isComparison())
    return fail(peek().place, "one comparison must not follow another: write "
                              "'a < b and b < c'");
  return combine(std::move(whole), std::move(lhs), std::move(rhs));
}

ExpressionPointer Parser::parseBinary(size_t level) {
  if (level == levels.size())
    return parseUnary();
  ExpressionPointer lhs = parseBinary(level + 1);
  const auto isOfLevel = [&] {
    return std::any_of(
        levels[level].operators.begin(), levels[level].operators.end(),
        [&](std::string_view each) { return !each.empty() && is(each); });
  };
  while (lhs && isOfLevel()) {
    ExpressionPointer whole = takeOperator();
    lhs = combine(std::move(whole), std::move(lhs), parseBinary(level + 1));
  }
  return lhs;
}

ExpressionPointer Parser::parseUnary() {
  if (!is("-") && !is("~"))
    return parsePostfix();
  if (!nest())
    return nullptr;
  ExpressionPointer whole =
      make(Expression::Kind::Unary, peek().place, peek().text);
  ++at;
  ExpressionPointer operand = parseUnary();
  --nesting;
  if (!operand)
    return nullptr;
  whole->operands.push_back(std::move(operand));
  return whole;
}

ExpressionPointer Parser::parsePostfix() {
  ExpressionPointer value = parsePrimary();
  while (value && is("[")) {
    if (++values > mostValues)
      return fail(peek().place, "the expression is too long");
    ExpressionPointer whole = make(Expression::Kind::Subscript, value->place);
    ++at;
    whole->operands.push_back(std::move(value));
    if (!parseSubscript(*whole))
      return nullptr;
    value = std::move(whole);
  }
  return value;
}

bool Parser::parseSubscript(Expression &subscript) {
  do {
    if (is("]") && subscript.operands.size() > 1)
      break;
    if (is(":")) {
      subscript.operands.push_back(make(Expression::Kind::All, peek().place));
      ++at;
      continue;
    }
    ExpressionPointer index = parseExpression();
    if (!index)
      return false;
    subscript.operands.push_back(std::move(index));
  } while (accept(","));
  return expect("]");
}

bool Parser::parseCall(Expression &call) {
  while (!is(")")) {
    std::string keyword;
    if (is(Token::Kind::Name) && tokens[at + 1].kind == Token::Kind::Symbol &&
        tokens[at + 1].text == "=") {
      keyword = peek().text;
      if (std::find(call.keywords.begin(), call.keywords.end(), keyword) !=
          call.keywords.end()) {
        fail(peek().place, "'" + keyword + "' is given twice");
        return false;
      }
      at += 2;
    } else if (!call.keywords.empty()) {
      failHere("'NAME='");
      return false;
    }
    ExpressionPointer operand = parseExpression();
    if (!operand)
      return false;
    call.operands.push_back(std::move(operand));
    if (!keyword.empty())
      call.keywords.push_back(std::move(keyword));
    if (!accept(","))
      break;
  }
  return expect(")");
}

ExpressionPointer Parser::parsePrimary() {
  const Token &token = peek();
  const Place place = token.place;
  if (++values > mostValues)
    return fail(place, "the expression is too long");
  if (accept("(")) {
    ExpressionPointer inner = parseExpression();
    if (!inner || !expect(")"))
      return nullptr;
    return inner;
  }
  if (is(Token::Kind::Integer)) {
    ExpressionPointer number = make(Expression::Kind::Integer, place);
    number->integer = token.integer;
    ++at;
    return number;
  }
  if (is(Token::Kind::Float)) {
    ExpressionPointer number = make(Expression::Kind::Float, place);
    number->number = token.number;
    ++at;
    return number;
  }
  if (is("True") || is("False")) {
    ExpressionPointer truth = make(Expression::Kind::Truth, place);
    truth->integer = is("True") ? 1 : 0;
    ++at;
    return truth;
  }
  if (accept("None"))
    return make(Expression::Kind::None, place);
  if (!is(Token::Kind::Name))
    return failHere("a value");
  std::string name = token.text;
  ++at;
  if (!accept("("))
    return make(Expression::Kind::Name, place, std::move(name));
  ExpressionPointer call = make(Expression::Kind::Call, place, std::move(name));
  if (!parseCall(*call))
    return nullptr;
  return call;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

bool Parser::endLine() {
  if (accept(Token::Kind::EndOfLine))
    return true;
  failHere("the line's end");
  return false;
}

/// From the colon before indented lines to their end.
bool Parser::parseBody(Body &body) {
  if (!expect(":"))
    return false;
  if (!accept(Token::Kind::EndOfLine) || !accept(Token::Kind::Indent)) {
    failHere("an indented line");
    return false;
  }
  while (!accept(Token::Kind::Dedent))
    if (!parseStatement(body))
      return false;
  return true;
}

bool Parser::parseIf(Statement &statement) {
  ExpressionPointer condition = parseExpression();
  if (!condition)
    return false;
  statement.values.push_back(std::move(condition));
  if (!parseBody(statement.body))
    return false;
  const Place place = peek().place;
  if (is("elif")) {
    // Each nests in the one before.
    if (++nesting >= mostNesting) {
      fail(place, "there are too many branches");
      return false;
    }
    Statement inner{Statement::Kind::If, place, peek().comment};
    ++at;
    const bool parsed = parseIf(inner);
    --nesting;
    if (!parsed)
      return false;
    statement.otherwise.push_back(std::move(inner));
    return true;
  }
  return !accept("else") || parseBody(statement.otherwise);
}

bool Parser::parseAssignment(Statement &statement) {
  const auto parseList = [&](std::vector<ExpressionPointer> &list) {
    do {
      ExpressionPointer each = parseExpression();
      if (!each)
        return false;
      list.push_back(std::move(each));
    } while (accept(","));
    return true;
  };
  if (!parseList(statement.targets))
    return false;
  if (statement.targets.size() == 1 && is(Token::Kind::EndOfLine) &&
      statement.targets[0]->kind == Expression::Kind::Call) {
    statement.kind = Statement::Kind::Call;
    statement.values = std::exchange(statement.targets, {});
    return endLine();
  }
  for (const ExpressionPointer &target : statement.targets)
    if (target->kind != Expression::Kind::Name &&
        target->kind != Expression::Kind::Subscript) {
      fail(target->place, "only names and elements of memory are set");
      return false;
    }
  static constexpr std::array<std::string_view, 10> updates = {
      "+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", "<<="};
  const bool isUpdate =
      is(">>=") || std::any_of(updates.begin(), updates.end(),
                               [&](std::string_view each) { return is(each); });
  if (isUpdate && statement.targets.size() == 1) {
    statement.kind = Statement::Kind::Update;
    statement.text = peek().text.substr(0, peek().text.size() - 1);
    ++at;
  } else if (!expect("=")) {
    return false;
  }
  if (!parseList(statement.values))
    return false;
  if (statement.targets.size() != statement.values.size()) {
    fail(statement.place,
         std::to_string(statement.targets.size()) + " are set by " +
             std::to_string(statement.values.size()) + " values");
    return false;
  }
  return endLine();
}

bool Parser::parseAssert(Statement &statement) {
  ExpressionPointer condition = parseExpression();
  if (!condition || !expect(","))
    return false;
  statement.values.push_back(std::move(condition));
  if (!is(Token::Kind::String)) {
    failHere("a text");
    return false;
  }
  statement.text = peek().text;
  ++at;
  return endLine();
}

bool Parser::parseStatement(Body &body) {
  if (is(Token::Kind::Indent)) {
    failHere("a statement");
    return false;
  }
  Statement statement{Statement::Kind::Assign, peek().place, peek().comment};
  bool parsed = false;
  values = 0;
  if (accept("pass")) {
    statement.kind = Statement::Kind::Pass;
    parsed = endLine();
  } else if (accept("assert")) {
    statement.kind = Statement::Kind::Assert;
    parsed = parseAssert(statement);
  } else if (accept("if")) {
    statement.kind = Statement::Kind::If;
    parsed = parseIf(statement);
  } else if (accept("for")) {
    statement.kind = Statement::Kind::For;
    if (!is(Token::Kind::Name)) {
      failHere("a name");
      return false;
    }
    statement.text = peek().text;
    ++at;
    if (!expect("in"))
      return false;
    ExpressionPointer range = parseExpression();
    if (!range)
      return false;
    statement.values.push_back(std::move(range));
    parsed = parseBody(statement.body);
  } else if (is("while") || is("return") || is("break") || is("continue")) {
    fail(peek().place, "kernels must not have '" + peek().text + "'");
    return false;
  } else {
    parsed = parseAssignment(statement);
  }
  body.push_back(std::move(statement));
  return parsed;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool Parser::parseKernel(Kernel &kernel) {
  kernel.place = peek().place;
  if (!is(Token::Kind::Name)) {
    failHere("a name");
    return false;
  }
  kernel.name = peek().text;
  ++at;
  if (!expect("("))
    return false;
  while (!is(")")) {
    Argument argument{peek().place, peek().text};
    if (!accept(Token::Kind::Name)) {
      failHere("the name of an argument");
      return false;
    }
    if (!expect(":"))
      return false;
    argument.type = parseExpression();
    if (!argument.type)
      return false;
    if (accept("=")) {
      argument.untuned = parseExpression();
      if (!argument.untuned)
        return false;
    }
    if (!argument.untuned && !kernel.arguments.empty() &&
        kernel.arguments.back().untuned) {
      fail(argument.place, "one without a value must not stand behind one that "
                           "has one");
      return false;
    }
    kernel.arguments.push_back(std::move(argument));
    if (!accept(","))
      break;
  }
  if (!expect(")"))
    return false;
  if (is(":") && tokens[at + 1].kind == Token::Kind::EndOfLine &&
      tokens[at + 2].kind == Token::Kind::Indent &&
      tokens[at + 3].kind == Token::Kind::String) {
    kernel.documentation = tokens[at + 3].text;
    at += 3;
    if (tokens[at + 1].kind != Token::Kind::EndOfLine) {
      ++at;
      return endLine();
    }
    at += 2;
    while (!accept(Token::Kind::Dedent))
      if (!parseStatement(kernel.body))
        return false;
    return true;
  }
  return parseBody(kernel.body);
}

std::optional<std::vector<Kernel>> Parser::run() {
  std::vector<Kernel> kernels;
  std::string comment;
  while (!is(Token::Kind::EndOfText)) {
    if (is("@") || is("import") || is("from")) {
      // Python's own; one that stands before a kernel has its comment.
      comment = is("@") ? peek().comment : "";
      while (!accept(Token::Kind::EndOfLine))
        ++at;
      continue;
    }
    if (is(Token::Kind::String) && kernels.empty() &&
        tokens[at + 1].kind == Token::Kind::EndOfLine) {
      at += 2;
      continue;
    }
    Kernel kernel;
    kernel.comment = comment.empty() ? peek().comment : comment;
    comment.clear();
    if (!accept("def")) {
      failHere("'def'");
      return std::nullopt;
    }
    if (!parseKernel(kernel))
      return std::nullopt;
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::optional<std::vector<Kernel>>
sandwich::kernel::syntax::parse(std::string_view text, SyntaxError &error) {
  std::optional<std::vector<Token>> tokens = tokenize(text, error);
  if (!tokens)
    return std::nullopt;
  return Parser(std::move(*tokens), error).run();
}
