//===- Parser.cpp - Templates as trees ------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Has the grammar of `jinja2.parser`, function by function, since precedence
/// differs from Python's in places: `**` is left-associative there, and a minus
/// binds more tightly than it.
///
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "Builtins.h"
#include "Lexer.h"
#include "StringLiteral.h"

#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <unordered_map>

using namespace sandwich;
using namespace sandwich::jinja;

namespace {

using Names = std::span<const std::string_view>;

class Parser {
public:
  Parser(std::vector<Token> tokens, const TemplateLimits &limits)
      : tokens(std::move(tokens)), limits(limits) {}

  Result<Syntax> run();

private:
  //===--- Tokens ---------------------------------------------------------===//

  const Token &current() const { return tokens[position]; }
  const Token &following() const {
    return tokens[std::min(position + 1, tokens.size() - 1)];
  }
  bool is(Token::Kind kind) const { return current().kind == kind; }
  bool isOperator(std::string_view text) const {
    return is(Token::Kind::Operator) && current().text == text;
  }
  bool isName(std::string_view text) const {
    return is(Token::Kind::Name) && current().text == text;
  }
  bool isAnyName(Names names) const {
    return is(Token::Kind::Name) &&
           std::ranges::find(names, current().text) != names.end();
  }
  const Token &take() {
    const Token &token = tokens[position];
    if (token.kind != Token::Kind::End)
      ++position;
    return token;
  }
  bool takeOperator(std::string_view text) {
    return isOperator(text) ? (take(), true) : false;
  }
  bool takeName(std::string_view text) {
    return isName(text) ? (take(), true) : false;
  }
  Status expectOperator(std::string_view text);
  Status expectName(std::string_view text);
  Status expectBlockEnd();
  Result<std::string_view> expectAnyName();
  Error unexpected(std::string_view expected = {}) const;
  template <typename... Parts>
  static Error errorAt(uint32_t line, const Parts &...parts) {
    return makeError("line ", line, ": ", parts...);
  }

  //===--- Nodes ----------------------------------------------------------===//

  NameId idOf(std::string_view name);
  /// Counts a node; an error beyond the limit.
  Status count();
  /// A new expression: the functions that make one set its children, and then
  /// `finish` it.
  template <typename Node> std::unique_ptr<Node> make(uint32_t line) {
    return std::make_unique<Node>(line);
  }
  /// Counts `node` and sees to its depth, which is one more than that of the
  /// deepest of `children`, some of which may be null.
  template <typename Node>
  Result<ExpressionPointer>
  finish(std::unique_ptr<Node> node,
         std::initializer_list<const Expression *> children);
  static size_t depthOf(const ExpressionList &list);
  static size_t depthOf(const CallArguments &arguments);
  Status checkDepth(Expression &node, size_t depth);

  /// How deep the parser is, in functions that call themselves.
  struct Level {
    explicit Level(size_t &level) : level(level) { ++level; }
    ~Level() { --level; }
    Level(const Level &) = delete;
    Level &operator=(const Level &) = delete;
    size_t &level;
  };
  Status checkLevel() const;

  //===--- Expressions ----------------------------------------------------===//

  using Parsed = Result<ExpressionPointer>;

  Parsed parseExpression() { return parseConditional(); }
  Parsed parseConditional();
  Parsed parseOr();
  Parsed parseAnd();
  Parsed parseNot();
  Parsed parseComparison();
  Parsed parseSum();
  Parsed parseConcatenation();
  Parsed parseProduct();
  Parsed parsePower();
  Parsed parseUnary(bool withFilters = true);
  Parsed parsePrimary();
  Parsed parseNumber();
  Parsed parseStrings();
  Parsed parseNameOrConstant();
  Parsed parseList();
  Parsed parseDictionary();
  Parsed parsePostfix(ExpressionPointer node);
  Parsed parseSubscript(ExpressionPointer node);
  Parsed parseBracketSubscript(ExpressionPointer node, uint32_t line);
  Parsed parseFilters(ExpressionPointer node);
  /// The filters from the name of the first on.
  Parsed parseFilterChain(ExpressionPointer node);
  Parsed parseOneFilter(ExpressionPointer node);
  Parsed parseTest(ExpressionPointer node);
  Parsed parseCall(ExpressionPointer callee);
  Result<CallArguments> parseArguments();
  Parsed makeBinary(BinaryOperator operation, ExpressionPointer left,
                    ExpressionPointer right, uint32_t line);
  Parsed makeLiteral(Value value, uint32_t line);

  enum class TupleItems { Expressions, WithoutConditions };
  /// Expressions with commas between them, or one without; none only within
  /// parentheses. Ends before any of `ends` too.
  Parsed parseTuple(TupleItems items = TupleItems::Expressions,
                    bool isInParentheses = false, Names ends = {});
  bool isTupleEnd(Names ends) const;

  //===--- Statements -----------------------------------------------------===//

  /// Statements up to a tag named one of `ends`, of which the name is next.
  Result<StatementList> parseStatements(Names ends);
  /// The same, and takes the name and the end of the tag, for one end.
  Result<StatementList> parseBody(std::string_view end);
  Result<StatementPointer> parseStatement();
  Result<StatementPointer> parseOutput();
  Result<StatementPointer> parseFor(uint32_t line);
  Result<StatementPointer> parseIf(uint32_t line);
  Result<StatementPointer> parseSet(uint32_t line);
  Result<StatementPointer> parseMacro(uint32_t line);
  Result<StatementPointer> parseCallBlock(uint32_t line);
  Result<StatementPointer> parseFilterBlock(uint32_t line);
  Result<StatementPointer> parseWith(uint32_t line);
  Result<StatementPointer> parseGeneration(uint32_t line);
  Result<StatementPointer> parseLoopControl(std::string_view name,
                                            uint32_t line);
  Status parseSignature(MacroDescription &macro);
  Status parseMacroBody(MacroDescription &macro, std::string_view end);
  Result<Target> parseTarget(bool allowsAttribute, Names ends = {});
  Result<Target> parseOneTarget();

  std::vector<Token> tokens;
  const TemplateLimits &limits;
  Syntax syntax;
  std::unordered_map<std::string, NameId> ids;
  size_t position = 0;
  size_t nodes = 0;
  size_t level = 0;
  /// Loops around the statement, within its macro or block.
  size_t loops = 0;
  /// The macros and the loops around the statement.
  std::vector<MacroDescription *> macros;
  std::vector<ForStatement *> openLoops;
};

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

Error Parser::unexpected(std::string_view expected) const {
  const Token &token = current();
  std::string found;
  switch (token.kind) {
  case Token::Kind::End:
    found = "the end of the template";
    break;
  case Token::Kind::BlockEnd:
  case Token::Kind::VariableEnd:
    found = "the end of the tag";
    break;
  default:
    found = "'" + std::string(token.text) + "'";
  }
  if (expected.empty())
    return errorAt(token.line, "unexpected ", found);
  return errorAt(token.line, "expected ", expected, ", found ", found);
}

Status Parser::expectOperator(std::string_view text) {
  if (!takeOperator(text))
    return unexpected("'" + std::string(text) + "'");
  return {};
}

Status Parser::expectName(std::string_view text) {
  if (!takeName(text))
    return unexpected("'" + std::string(text) + "'");
  return {};
}

Status Parser::expectBlockEnd() {
  if (!is(Token::Kind::BlockEnd))
    return unexpected("the end of the tag");
  take();
  return {};
}

Result<std::string_view> Parser::expectAnyName() {
  if (!is(Token::Kind::Name))
    return unexpected("a name");
  return take().text;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

NameId Parser::idOf(std::string_view name) {
  auto [position, isNew] =
      ids.emplace(name, static_cast<NameId>(syntax.names.size()));
  if (isNew)
    syntax.names.emplace_back(name);
  return position->second;
}

Status Parser::count() {
  if (++nodes > limits.nodes)
    return errorAt(current().line, "the template has more than ", limits.nodes,
                   " statements and expressions");
  return {};
}

Status Parser::checkLevel() const {
  if (level > limits.nesting)
    return errorAt(current().line, "statements and expressions lie in each ",
                   "other more than ", limits.nesting, " deep");
  return {};
}

size_t Parser::depthOf(const ExpressionList &list) {
  size_t depth = 0;
  for (const ExpressionPointer &each : list)
    depth = std::max(depth, each->depth);
  return depth;
}

size_t Parser::depthOf(const CallArguments &arguments) {
  size_t depth = depthOf(arguments.positional);
  for (const auto &[name, value] : arguments.keywords)
    depth = std::max(depth, value->depth);
  for (const ExpressionPointer *each :
       {&arguments.spread, &arguments.keywordSpread})
    if (*each)
      depth = std::max(depth, (*each)->depth);
  return depth;
}

Status Parser::checkDepth(Expression &node, size_t depth) {
  node.depth = depth + 1;
  if (node.depth > limits.nesting)
    return errorAt(node.line, "expressions lie in each other more than ",
                   limits.nesting, " deep");
  return count();
}

template <typename Node>
Result<ExpressionPointer>
Parser::finish(std::unique_ptr<Node> node,
               std::initializer_list<const Expression *> children) {
  size_t depth = 0;
  for (const Expression *child : children)
    if (child)
      depth = std::max(depth, child->depth);
  SANDWICH_RETURN_IF_ERROR(checkDepth(*node, depth));
  return ExpressionPointer(std::move(node));
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Parser::Parsed Parser::makeBinary(BinaryOperator operation,
                                  ExpressionPointer left,
                                  ExpressionPointer right, uint32_t line) {
  auto node = make<BinaryExpression>(line);
  node->operation = operation;
  node->left = std::move(left);
  node->right = std::move(right);
  const Expression *first = node->left.get(), *second = node->right.get();
  return finish(std::move(node), {first, second});
}

Parser::Parsed Parser::makeLiteral(Value value, uint32_t line) {
  auto node = make<LiteralExpression>(line);
  node->value = std::move(value);
  return finish(std::move(node), {});
}

Parser::Parsed Parser::parseConditional() {
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  const uint32_t line = current().line;
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer value, parseOr());
  while (takeName("if")) {
    auto node = make<ConditionalExpression>(line);
    node->value = std::move(value);
    SANDWICH_ASSIGN_OR_RETURN(node->test, parseOr());
    if (takeName("else")) {
      SANDWICH_ASSIGN_OR_RETURN(node->otherwise, parseConditional());
    }
    const Expression *first = node->value.get(), *test = node->test.get(),
                     *otherwise = node->otherwise.get();
    SANDWICH_ASSIGN_OR_RETURN(
        value, finish(std::move(node), {first, test, otherwise}));
  }
  return value;
}

Parser::Parsed Parser::parseOr() {
  const uint32_t line = current().line;
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer left, parseAnd());
  while (takeName("or")) {
    auto node = make<LogicalExpression>(line);
    node->left = std::move(left);
    SANDWICH_ASSIGN_OR_RETURN(node->right, parseAnd());
    const Expression *first = node->left.get(), *second = node->right.get();
    SANDWICH_ASSIGN_OR_RETURN(left, finish(std::move(node), {first, second}));
  }
  return left;
}

Parser::Parsed Parser::parseAnd() {
  const uint32_t line = current().line;
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer left, parseNot());
  while (takeName("and")) {
    auto node = make<LogicalExpression>(line);
    node->isAnd = true;
    node->left = std::move(left);
    SANDWICH_ASSIGN_OR_RETURN(node->right, parseNot());
    const Expression *first = node->left.get(), *second = node->right.get();
    SANDWICH_ASSIGN_OR_RETURN(left, finish(std::move(node), {first, second}));
  }
  return left;
}

Parser::Parsed Parser::parseNot() {
  if (!isName("not"))
    return parseComparison();
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  auto node = make<UnaryExpression>(take().line);
  node->operation = UnaryOperator::Not;
  SANDWICH_ASSIGN_OR_RETURN(node->operand, parseNot());
  const Expression *operand = node->operand.get();
  return finish(std::move(node), {operand});
}

Parser::Parsed Parser::parseComparison() {
  static constexpr std::array<std::pair<std::string_view, ComparisonOperator>,
                              6>
      operators = {{{"==", ComparisonOperator::Equal},
                    {"!=", ComparisonOperator::NotEqual},
                    {"<", ComparisonOperator::Less},
                    {"<=", ComparisonOperator::LessOrEqual},
                    {">", ComparisonOperator::Greater},
                    {">=", ComparisonOperator::GreaterOrEqual}}};
  auto takeComparison = [&]() -> std::optional<ComparisonOperator> {
    for (auto [text, operation] : operators)
      if (takeOperator(text))
        return operation;
    if (takeName("in"))
      return ComparisonOperator::In;
    if (!isName("not") || following().kind != Token::Kind::Name ||
        following().text != "in")
      return std::nullopt;
    take();
    take();
    return ComparisonOperator::NotIn;
  };
  const uint32_t line = current().line;
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer first, parseSum());
  auto node = make<ComparisonExpression>(line);
  size_t depth = first->depth;
  while (std::optional<ComparisonOperator> operation = takeComparison()) {
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer other, parseSum());
    depth = std::max(depth, other->depth);
    node->others.emplace_back(*operation, std::move(other));
  }
  if (node->others.empty())
    return first;
  node->first = std::move(first);
  SANDWICH_RETURN_IF_ERROR(checkDepth(*node, depth));
  return ExpressionPointer(std::move(node));
}

Parser::Parsed Parser::parseSum() {
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer left, parseConcatenation());
  while (isOperator("+") || isOperator("-")) {
    const Token token = take();
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer right, parseConcatenation());
    SANDWICH_ASSIGN_OR_RETURN(
        left, makeBinary(token.text == "+" ? BinaryOperator::Add
                                           : BinaryOperator::Subtract,
                         std::move(left), std::move(right), token.line));
  }
  return left;
}

Parser::Parsed Parser::parseConcatenation() {
  const uint32_t line = current().line;
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer first, parseProduct());
  if (!isOperator("~"))
    return first;
  auto node = make<ConcatenationExpression>(line);
  node->parts.push_back(std::move(first));
  while (takeOperator("~")) {
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer part, parseProduct());
    node->parts.push_back(std::move(part));
  }
  SANDWICH_RETURN_IF_ERROR(checkDepth(*node, depthOf(node->parts)));
  return ExpressionPointer(std::move(node));
}

Parser::Parsed Parser::parseProduct() {
  static constexpr std::array<std::pair<std::string_view, BinaryOperator>, 4>
      operators = {{{"*", BinaryOperator::Multiply},
                    {"/", BinaryOperator::Divide},
                    {"//", BinaryOperator::FloorDivide},
                    {"%", BinaryOperator::Remainder}}};
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer left, parsePower());
  while (true) {
    const auto *found = std::ranges::find_if(
        operators, [&](const auto &each) { return isOperator(each.first); });
    if (found == operators.end())
      return left;
    const uint32_t line = take().line;
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer right, parsePower());
    SANDWICH_ASSIGN_OR_RETURN(left, makeBinary(found->second, std::move(left),
                                               std::move(right), line));
  }
}

Parser::Parsed Parser::parsePower() {
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer left, parseUnary());
  while (isOperator("**")) {
    const uint32_t line = take().line;
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer right, parseUnary());
    SANDWICH_ASSIGN_OR_RETURN(left,
                              makeBinary(BinaryOperator::Power, std::move(left),
                                         std::move(right), line));
  }
  return left;
}

Parser::Parsed Parser::parseUnary(bool withFilters) {
  ExpressionPointer value;
  if (isOperator("-") || isOperator("+")) {
    const Level inside(level);
    SANDWICH_RETURN_IF_ERROR(checkLevel());
    const Token token = take();
    auto node = make<UnaryExpression>(token.line);
    node->operation =
        token.text == "-" ? UnaryOperator::Minus : UnaryOperator::Plus;
    SANDWICH_ASSIGN_OR_RETURN(node->operand, parseUnary(false));
    const Expression *operand = node->operand.get();
    SANDWICH_ASSIGN_OR_RETURN(value, finish(std::move(node), {operand}));
  } else {
    SANDWICH_ASSIGN_OR_RETURN(value, parsePrimary());
  }
  SANDWICH_ASSIGN_OR_RETURN(value, parsePostfix(std::move(value)));
  if (withFilters)
    return parseFilters(std::move(value));
  return value;
}

//===----------------------------------------------------------------------===//
// Primary expressions
//===----------------------------------------------------------------------===//

Parser::Parsed Parser::parsePrimary() {
  switch (current().kind) {
  case Token::Kind::Name:
    return parseNameOrConstant();
  case Token::Kind::String:
    return parseStrings();
  case Token::Kind::Integer:
  case Token::Kind::Float:
    return parseNumber();
  default:
    break;
  }
  if (isOperator("["))
    return parseList();
  if (isOperator("{"))
    return parseDictionary();
  if (!takeOperator("("))
    return unexpected();
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer inside,
                            parseTuple(TupleItems::Expressions, true));
  SANDWICH_RETURN_IF_ERROR(expectOperator(")"));
  return inside;
}

Parser::Parsed Parser::parseNameOrConstant() {
  const Token token = take();
  if (token.text == "true" || token.text == "True")
    return makeLiteral(Value(true, Origin::Template), token.line);
  if (token.text == "false" || token.text == "False")
    return makeLiteral(Value(false, Origin::Template), token.line);
  if (token.text == "none" || token.text == "None")
    return makeLiteral(Value(), token.line);
  for (MacroDescription *macro : macros) {
    macro->usesCaller |= token.text == "caller";
    macro->usesKeywords |= token.text == "kwargs";
    macro->usesPositional |= token.text == "varargs";
  }
  for (ForStatement *loop : openLoops)
    loop->usesLoop |= token.text == "loop";
  auto node = make<NameExpression>(token.line);
  node->name = idOf(token.text);
  return finish(std::move(node), {});
}

Parser::Parsed Parser::parseStrings() {
  const uint32_t line = current().line;
  std::string text;
  while (is(Token::Kind::String)) {
    const Token token = take();
    Status decoded =
        appendStringLiteral(token.text.substr(1, token.text.size() - 2), text);
    if (!decoded)
      return errorAt(token.line, decoded.error().message);
  }
  auto string = std::make_shared<String>(
      MarkedText(std::move(text), Origin::Template), false, MemoryShare());
  return makeLiteral(Value(StringPointer(std::move(string))), line);
}

Parser::Parsed Parser::parseNumber() {
  const Token token = take();
  std::string digits(token.text);
  std::erase(digits, '_');
  if (token.kind == Token::Kind::Float) {
    double number = 0;
    auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec != std::errc())
      return errorAt(token.line, "the number ", token.text, " is out of range");
    return makeLiteral(Value(number, Origin::Template), token.line);
  }
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  }
  const char *begin = digits.data() + (base == 10 ? 0 : 2);
  int64_t integer = 0;
  auto parsed =
      std::from_chars(begin, digits.data() + digits.size(), integer, base);
  if (parsed.ec != std::errc())
    return errorAt(token.line, "the integer ", token.text,
                   " has more than 64 bits, which is not supported");
  return makeLiteral(Value(integer, Origin::Template), token.line);
}

Parser::Parsed Parser::parseList() {
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  auto node = make<SequenceExpression>(take().line);
  while (!isOperator("]")) {
    if (!node->items.empty())
      SANDWICH_RETURN_IF_ERROR(expectOperator(","));
    if (isOperator("]"))
      break;
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer item, parseExpression());
    node->items.push_back(std::move(item));
  }
  SANDWICH_RETURN_IF_ERROR(expectOperator("]"));
  SANDWICH_RETURN_IF_ERROR(checkDepth(*node, depthOf(node->items)));
  return ExpressionPointer(std::move(node));
}

Parser::Parsed Parser::parseDictionary() {
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  auto node = make<DictionaryExpression>(take().line);
  size_t depth = 0;
  while (!isOperator("}")) {
    if (!node->entries.empty())
      SANDWICH_RETURN_IF_ERROR(expectOperator(","));
    if (isOperator("}"))
      break;
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer key, parseExpression());
    SANDWICH_RETURN_IF_ERROR(expectOperator(":"));
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer value, parseExpression());
    depth = std::max({depth, key->depth, value->depth});
    node->entries.emplace_back(std::move(key), std::move(value));
  }
  SANDWICH_RETURN_IF_ERROR(expectOperator("}"));
  SANDWICH_RETURN_IF_ERROR(checkDepth(*node, depth));
  return ExpressionPointer(std::move(node));
}

bool Parser::isTupleEnd(Names ends) const {
  return is(Token::Kind::VariableEnd) || is(Token::Kind::BlockEnd) ||
         isOperator(")") || isAnyName(ends);
}

Parser::Parsed Parser::parseTuple(TupleItems items, bool isInParentheses,
                                  Names ends) {
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  auto node = make<SequenceExpression>(current().line);
  node->isTuple = true;
  bool hasComma = false;
  while (true) {
    if (!node->items.empty())
      SANDWICH_RETURN_IF_ERROR(expectOperator(","));
    if (isTupleEnd(ends))
      break;
    SANDWICH_ASSIGN_OR_RETURN(
        ExpressionPointer item,
        items == TupleItems::Expressions ? parseExpression() : parseOr());
    node->items.push_back(std::move(item));
    if (!isOperator(","))
      break;
    hasComma = true;
  }
  if (!hasComma && !node->items.empty())
    return std::move(node->items[0]);
  if (!hasComma && !isInParentheses)
    return unexpected("an expression");
  SANDWICH_RETURN_IF_ERROR(checkDepth(*node, depthOf(node->items)));
  return ExpressionPointer(std::move(node));
}

//===----------------------------------------------------------------------===//
// What follows an expression
//===----------------------------------------------------------------------===//

Parser::Parsed Parser::parsePostfix(ExpressionPointer node) {
  while (true) {
    if (isOperator(".") || isOperator("[")) {
      SANDWICH_ASSIGN_OR_RETURN(node, parseSubscript(std::move(node)));
    } else if (isOperator("(")) {
      SANDWICH_ASSIGN_OR_RETURN(node, parseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Parser::Parsed Parser::parseSubscript(ExpressionPointer object) {
  const Token token = take();
  if (token.text == "[")
    return parseBracketSubscript(std::move(object), token.line);
  if (is(Token::Kind::Name)) {
    auto node = make<AttributeExpression>(token.line);
    node->name = take().text;
    node->object = std::move(object);
    const Expression *child = node->object.get();
    return finish(std::move(node), {child});
  }
  if (!is(Token::Kind::Integer))
    return unexpected("a name or a number");
  auto node = make<SubscriptExpression>(token.line);
  SANDWICH_ASSIGN_OR_RETURN(node->index, parseNumber());
  node->object = std::move(object);
  const Expression *child = node->object.get(), *index = node->index.get();
  return finish(std::move(node), {child, index});
}

Parser::Parsed Parser::parseBracketSubscript(ExpressionPointer object,
                                             uint32_t line) {
  // The three parts of a slice; of a subscript the first.
  std::array<ExpressionPointer, 3> parts;
  size_t colons = 0;
  while (!isOperator("]")) {
    if (takeOperator(":")) {
      if (++colons == 3)
        return unexpected("']'");
      continue;
    }
    if (isOperator(",") || parts[colons])
      return errorAt(current().line, "a subscript of several parts is not "
                                     "supported");
    SANDWICH_ASSIGN_OR_RETURN(parts[colons], parseExpression());
  }
  if (colons == 0 && !parts[0])
    return unexpected("an expression");
  take();
  auto [first, second, third] =
      std::array{parts[0].get(), parts[1].get(), parts[2].get()};
  const Expression *child = object.get();
  if (colons == 0) {
    auto node = make<SubscriptExpression>(line);
    node->object = std::move(object);
    node->index = std::move(parts[0]);
    return finish(std::move(node), {child, first});
  }
  auto node = make<SliceExpression>(line);
  node->object = std::move(object);
  node->start = std::move(parts[0]);
  node->stop = std::move(parts[1]);
  node->step = std::move(parts[2]);
  return finish(std::move(node), {child, first, second, third});
}

Parser::Parsed Parser::parseCall(ExpressionPointer callee) {
  auto node = make<CallExpression>(current().line);
  SANDWICH_ASSIGN_OR_RETURN(node->arguments, parseArguments());
  node->callee = std::move(callee);
  SANDWICH_RETURN_IF_ERROR(checkDepth(
      *node, std::max(node->callee->depth, depthOf(node->arguments))));
  return ExpressionPointer(std::move(node));
}

Result<CallArguments> Parser::parseArguments() {
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  SANDWICH_RETURN_IF_ERROR(expectOperator("("));
  CallArguments arguments;
  bool isFirst = true;
  while (!isOperator(")")) {
    if (!isFirst)
      SANDWICH_RETURN_IF_ERROR(expectOperator(","));
    isFirst = false;
    if (isOperator(")"))
      break;
    const uint32_t line = current().line;
    const Error order = errorAt(
        line, "the arguments of a call are in no order that is allowed");
    if (takeOperator("*")) {
      if (arguments.spread || arguments.keywordSpread)
        return order;
      SANDWICH_ASSIGN_OR_RETURN(arguments.spread, parseExpression());
    } else if (takeOperator("**")) {
      if (arguments.keywordSpread)
        return order;
      SANDWICH_ASSIGN_OR_RETURN(arguments.keywordSpread, parseExpression());
    } else if (is(Token::Kind::Name) &&
               following().kind == Token::Kind::Operator &&
               following().text == "=") {
      if (arguments.keywordSpread)
        return order;
      std::string name(take().text);
      take();
      SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer value, parseExpression());
      for (const auto &[other, ignored] : arguments.keywords)
        if (other == name)
          return errorAt(line, "the argument ", name, " is given twice");
      arguments.keywords.emplace_back(std::move(name), std::move(value));
    } else {
      if (arguments.spread || arguments.keywordSpread ||
          !arguments.keywords.empty())
        return order;
      SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer value, parseExpression());
      arguments.positional.push_back(std::move(value));
    }
  }
  SANDWICH_RETURN_IF_ERROR(expectOperator(")"));
  return arguments;
}

Parser::Parsed Parser::parseFilters(ExpressionPointer node) {
  while (true) {
    if (takeOperator("|")) {
      SANDWICH_ASSIGN_OR_RETURN(node, parseOneFilter(std::move(node)));
    } else if (isName("is")) {
      SANDWICH_ASSIGN_OR_RETURN(node, parseTest(std::move(node)));
    } else if (isOperator("(")) {
      SANDWICH_ASSIGN_OR_RETURN(node, parseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Parser::Parsed Parser::parseOneFilter(ExpressionPointer operand) {
  auto node = make<FilterCall>(current().line);
  SANDWICH_ASSIGN_OR_RETURN(std::string_view name, expectAnyName());
  node->filter = findFilter(name);
  if (!node->filter || isOperator("."))
    return errorAt(node->line, "the filter '", name, "' is not supported");
  if (isOperator("(")) {
    SANDWICH_ASSIGN_OR_RETURN(node->arguments, parseArguments());
  }
  node->operand = std::move(operand);
  SANDWICH_RETURN_IF_ERROR(
      checkDepth(*node, std::max(node->operand ? node->operand->depth : 0,
                                 depthOf(node->arguments))));
  return ExpressionPointer(std::move(node));
}

Parser::Parsed Parser::parseFilterChain(ExpressionPointer node) {
  SANDWICH_ASSIGN_OR_RETURN(node, parseOneFilter(std::move(node)));
  while (takeOperator("|")) {
    SANDWICH_ASSIGN_OR_RETURN(node, parseOneFilter(std::move(node)));
  }
  return node;
}

Parser::Parsed Parser::parseTest(ExpressionPointer operand) {
  static constexpr std::string_view operators[] = {"else", "or", "and"};
  auto node = make<TestCall>(take().line);
  const bool isNegated = takeName("not");
  SANDWICH_ASSIGN_OR_RETURN(std::string_view name, expectAnyName());
  node->test = findTest(name);
  if (!node->test || isOperator("."))
    return errorAt(node->line, "the test '", name, "' is not supported");
  if (isOperator("(")) {
    SANDWICH_ASSIGN_OR_RETURN(node->arguments, parseArguments());
  } else if ((is(Token::Kind::Name) && !isAnyName(operators)) ||
             is(Token::Kind::String) || is(Token::Kind::Integer) ||
             is(Token::Kind::Float) || isOperator("[") || isOperator("{")) {
    if (isName("is"))
      return errorAt(current().line, "tests cannot follow each other");
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer argument, parsePrimary());
    SANDWICH_ASSIGN_OR_RETURN(argument, parsePostfix(std::move(argument)));
    node->arguments.positional.push_back(std::move(argument));
  }
  node->operand = std::move(operand);
  const uint32_t line = node->line;
  SANDWICH_RETURN_IF_ERROR(checkDepth(
      *node, std::max(node->operand->depth, depthOf(node->arguments))));
  if (!isNegated)
    return ExpressionPointer(std::move(node));
  auto negation = make<UnaryExpression>(line);
  negation->operation = UnaryOperator::Not;
  negation->operand = std::move(node);
  const Expression *child = negation->operand.get();
  return finish(std::move(negation), {child});
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

Result<StatementList> Parser::parseStatements(Names ends) {
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  StatementList statements;
  while (true) {
    switch (current().kind) {
    case Token::Kind::Data: {
      SANDWICH_RETURN_IF_ERROR(count());
      const Token token = take();
      auto data = std::make_unique<DataStatement>(token.line);
      data->text = MarkedText(std::string(token.text), Origin::Template);
      statements.push_back(std::move(data));
      break;
    }
    case Token::Kind::VariableBegin: {
      SANDWICH_ASSIGN_OR_RETURN(StatementPointer output, parseOutput());
      statements.push_back(std::move(output));
      break;
    }
    case Token::Kind::BlockBegin: {
      take();
      if (isAnyName(ends))
        return statements;
      SANDWICH_ASSIGN_OR_RETURN(StatementPointer statement, parseStatement());
      statements.push_back(std::move(statement));
      SANDWICH_RETURN_IF_ERROR(expectBlockEnd());
      break;
    }
    default:
      if (ends.empty())
        return statements;
      return errorAt(current().line, "the template ends where {% ", ends.back(),
                     " %} is missing");
    }
  }
}

Result<StatementList> Parser::parseBody(std::string_view end) {
  SANDWICH_RETURN_IF_ERROR(expectBlockEnd());
  SANDWICH_ASSIGN_OR_RETURN(StatementList body,
                            parseStatements(Names(&end, 1)));
  take();
  return body;
}

Result<StatementPointer> Parser::parseOutput() {
  SANDWICH_RETURN_IF_ERROR(count());
  auto output = std::make_unique<OutputStatement>(take().line);
  SANDWICH_ASSIGN_OR_RETURN(output->value, parseTuple());
  if (!is(Token::Kind::VariableEnd))
    return unexpected("the end of the tag");
  take();
  return StatementPointer(std::move(output));
}

Result<StatementPointer> Parser::parseStatement() {
  SANDWICH_RETURN_IF_ERROR(count());
  const uint32_t line = current().line;
  SANDWICH_ASSIGN_OR_RETURN(std::string_view name, expectAnyName());
  if (name == "for")
    return parseFor(line);
  if (name == "if")
    return parseIf(line);
  if (name == "set")
    return parseSet(line);
  if (name == "macro")
    return parseMacro(line);
  if (name == "call")
    return parseCallBlock(line);
  if (name == "filter")
    return parseFilterBlock(line);
  if (name == "with")
    return parseWith(line);
  if (name == "generation")
    return parseGeneration(line);
  if (name == "break" || name == "continue")
    return parseLoopControl(name, line);
  if (name.starts_with("end") || name == "else" || name == "elif")
    return errorAt(line, "{% ", name, " %} ends nothing that is open");
  return errorAt(line, "the statement '", name, "' is not supported");
}

Result<StatementPointer> Parser::parseFor(uint32_t line) {
  static constexpr std::string_view in[] = {"in"};
  static constexpr std::string_view recursive[] = {"recursive"};
  static constexpr std::string_view ends[] = {"else", "endfor"};
  auto node = std::make_unique<ForStatement>(line);
  SANDWICH_ASSIGN_OR_RETURN(node->target, parseTarget(false, in));
  SANDWICH_RETURN_IF_ERROR(expectName("in"));
  SANDWICH_ASSIGN_OR_RETURN(
      node->iterable,
      parseTuple(TupleItems::WithoutConditions, false, recursive));
  if (takeName("if")) {
    SANDWICH_ASSIGN_OR_RETURN(node->test, parseExpression());
  }
  node->isRecursive = takeName("recursive");
  SANDWICH_RETURN_IF_ERROR(expectBlockEnd());
  ++loops;
  openLoops.push_back(node.get());
  SANDWICH_ASSIGN_OR_RETURN(node->body, parseStatements(ends));
  openLoops.pop_back();
  --loops;
  if (takeName("else")) {
    SANDWICH_ASSIGN_OR_RETURN(node->otherwise, parseBody("endfor"));
  } else {
    take();
  }
  return StatementPointer(std::move(node));
}

Result<StatementPointer> Parser::parseIf(uint32_t line) {
  static constexpr std::string_view ends[] = {"elif", "else", "endif"};
  auto node = std::make_unique<IfStatement>(line);
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer test,
                              parseTuple(TupleItems::WithoutConditions));
    SANDWICH_RETURN_IF_ERROR(expectBlockEnd());
    SANDWICH_ASSIGN_OR_RETURN(StatementList body, parseStatements(ends));
    node->branches.emplace_back(std::move(test), std::move(body));
    if (takeName("elif"))
      continue;
    if (takeName("else")) {
      SANDWICH_ASSIGN_OR_RETURN(node->otherwise, parseBody("endif"));
    } else {
      take();
    }
    return StatementPointer(std::move(node));
  }
}

Result<StatementPointer> Parser::parseSet(uint32_t line) {
  SANDWICH_ASSIGN_OR_RETURN(Target target, parseTarget(true));
  if (takeOperator("=")) {
    auto node = std::make_unique<SetStatement>(line);
    node->target = std::move(target);
    SANDWICH_ASSIGN_OR_RETURN(node->value, parseTuple());
    return StatementPointer(std::move(node));
  }
  auto node = std::make_unique<SetBlockStatement>(line);
  node->target = std::move(target);
  if (takeOperator("|")) {
    SANDWICH_ASSIGN_OR_RETURN(node->filters, parseFilterChain(nullptr));
  }
  SANDWICH_ASSIGN_OR_RETURN(node->body, parseBody("endset"));
  return StatementPointer(std::move(node));
}

Status Parser::parseSignature(MacroDescription &macro) {
  SANDWICH_RETURN_IF_ERROR(expectOperator("("));
  while (!isOperator(")")) {
    if (!macro.parameters.empty())
      SANDWICH_RETURN_IF_ERROR(expectOperator(","));
    SANDWICH_ASSIGN_OR_RETURN(Target parameter, parseOneTarget());
    if (parameter.kind != Target::Kind::Name)
      return unexpected("the name of a parameter");
    if (std::ranges::find(macro.parameters, parameter.name) !=
        macro.parameters.end())
      return errorAt(current().line, "the macro has two parameters named '",
                     syntax.names[parameter.name], "'");
    macro.parameters.push_back(parameter.name);
    if (takeOperator("=")) {
      SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer value, parseExpression());
      macro.defaults.push_back(std::move(value));
    } else if (!macro.defaults.empty()) {
      return errorAt(current().line,
                     "a parameter without a default follows one with");
    }
  }
  return expectOperator(")");
}

Status Parser::parseMacroBody(MacroDescription &macro, std::string_view end) {
  const size_t outerLoops = std::exchange(loops, 0);
  macros.push_back(&macro);
  SANDWICH_ASSIGN_OR_RETURN(macro.body, parseBody(end));
  macros.pop_back();
  loops = outerLoops;
  return {};
}

Result<StatementPointer> Parser::parseMacro(uint32_t line) {
  auto node = std::make_unique<MacroStatement>(line);
  SANDWICH_ASSIGN_OR_RETURN(Target name, parseOneTarget());
  if (name.kind != Target::Kind::Name)
    return unexpected("the name of a macro");
  node->name = name.name;
  MacroDescription &macro = node->description;
  macro.name = syntax.names[name.name];
  SANDWICH_RETURN_IF_ERROR(parseSignature(macro));
  SANDWICH_RETURN_IF_ERROR(parseMacroBody(macro, "endmacro"));
  return StatementPointer(std::move(node));
}

Result<StatementPointer> Parser::parseCallBlock(uint32_t line) {
  auto node = std::make_unique<CallStatement>(line);
  if (isOperator("("))
    SANDWICH_RETURN_IF_ERROR(parseSignature(node->caller));
  SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer call, parseExpression());
  if (call->kind != Expression::Kind::Call)
    return errorAt(line, "expected a call in {% call %}");
  node->call.reset(static_cast<CallExpression *>(call.release()));
  SANDWICH_RETURN_IF_ERROR(parseMacroBody(node->caller, "endcall"));
  return StatementPointer(std::move(node));
}

Result<StatementPointer> Parser::parseFilterBlock(uint32_t line) {
  auto node = std::make_unique<FilterStatement>(line);
  SANDWICH_ASSIGN_OR_RETURN(node->filters, parseFilterChain(nullptr));
  SANDWICH_ASSIGN_OR_RETURN(node->body, parseBody("endfilter"));
  return StatementPointer(std::move(node));
}

Result<StatementPointer> Parser::parseWith(uint32_t line) {
  auto node = std::make_unique<WithStatement>(line);
  while (!is(Token::Kind::BlockEnd)) {
    if (!node->values.empty())
      SANDWICH_RETURN_IF_ERROR(expectOperator(","));
    SANDWICH_ASSIGN_OR_RETURN(Target target, parseOneTarget());
    SANDWICH_RETURN_IF_ERROR(expectOperator("="));
    SANDWICH_ASSIGN_OR_RETURN(ExpressionPointer value, parseExpression());
    node->values.emplace_back(std::move(target), std::move(value));
  }
  SANDWICH_ASSIGN_OR_RETURN(node->body, parseBody("endwith"));
  return StatementPointer(std::move(node));
}

Result<StatementPointer> Parser::parseGeneration(uint32_t line) {
  auto node = std::make_unique<ScopeStatement>(line);
  // Loops outside of it cannot be left from within.
  const size_t outerLoops = std::exchange(loops, 0);
  SANDWICH_ASSIGN_OR_RETURN(node->body, parseBody("endgeneration"));
  loops = outerLoops;
  return StatementPointer(std::move(node));
}

Result<StatementPointer> Parser::parseLoopControl(std::string_view name,
                                                  uint32_t line) {
  if (loops == 0)
    return errorAt(line, "{% ", name, " %} is in no loop");
  if (name == "break")
    return StatementPointer(std::make_unique<BreakStatement>(line));
  return StatementPointer(std::make_unique<ContinueStatement>(line));
}

Result<Target> Parser::parseOneTarget() {
  const Level inside(level);
  SANDWICH_RETURN_IF_ERROR(checkLevel());
  SANDWICH_RETURN_IF_ERROR(count());
  if (takeOperator("(")) {
    SANDWICH_ASSIGN_OR_RETURN(Target target, parseTarget(false));
    SANDWICH_RETURN_IF_ERROR(expectOperator(")"));
    return target;
  }
  static constexpr std::string_view constants[] = {"true", "false", "none",
                                                   "True", "False", "None"};
  if (isAnyName(constants))
    return errorAt(current().line, "cannot assign to '", current().text, "'");
  SANDWICH_ASSIGN_OR_RETURN(std::string_view name, expectAnyName());
  Target target;
  target.name = idOf(name);
  return target;
}

Result<Target> Parser::parseTarget(bool allowsAttribute, Names ends) {
  if (allowsAttribute && is(Token::Kind::Name) &&
      following().kind == Token::Kind::Operator && following().text == ".") {
    SANDWICH_RETURN_IF_ERROR(count());
    Target target;
    target.kind = Target::Kind::Attribute;
    target.name = idOf(take().text);
    take();
    SANDWICH_ASSIGN_OR_RETURN(target.attribute, expectAnyName());
    return target;
  }
  SANDWICH_ASSIGN_OR_RETURN(Target first, parseOneTarget());
  if (!isOperator(","))
    return first;
  Target tuple;
  tuple.kind = Target::Kind::Tuple;
  tuple.parts.push_back(std::move(first));
  while (takeOperator(",")) {
    if (isTupleEnd(ends) || isOperator("="))
      break;
    SANDWICH_ASSIGN_OR_RETURN(Target part, parseOneTarget());
    tuple.parts.push_back(std::move(part));
  }
  return tuple;
}

Result<Syntax> Parser::run() {
  SANDWICH_ASSIGN_OR_RETURN(syntax.statements, parseStatements({}));
  return std::move(syntax);
}

} // namespace

Result<Syntax> jinja::parseTemplate(std::string_view source,
                                    const TemplateLimits &limits) {
  if (source.size() > limits.sourceBytes)
    return makeError("the template has ", source.size(),
                     " bytes; there must be at most ", limits.sourceBytes);
  if (std::optional<size_t> offset = findInvalidUtf8(source))
    return makeError("the template is not UTF-8 at byte ", *offset);
  const std::string normalized = normalizeLines(source);
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Token> tokens, lex(normalized));
  return Parser(std::move(tokens), limits).run();
}
