//===- Syntax.h - Templates as trees ----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_SYNTAX_H
#define SANDWICH_LIB_TEMPLATE_SYNTAX_H

#include "Value.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sandwich::jinja {

struct Filter;
struct Test;

/// An index into `Syntax::names`.
using NameId = uint32_t;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

struct Expression {
  enum class Kind : uint8_t {
    Attribute,
    Binary,
    Call,
    Comparison,
    Concatenation,
    Conditional,
    Dictionary,
    FilterCall,
    Literal,
    Logical,
    Name,
    Sequence,
    Slice,
    Subscript,
    TestCall,
    Unary,
  };
  Expression(Kind kind, uint32_t line) : kind(kind), line(line) {}
  virtual ~Expression() = default;

  const Kind kind;
  const uint32_t line;
  /// How many expressions lie in each other here.
  size_t depth = 1;
};

using ExpressionPointer = std::unique_ptr<Expression>;
using ExpressionList = std::vector<ExpressionPointer>;

/// An expression of one kind: `kindOf` is how the evaluator tells.
template <Expression::Kind kindOf> struct ExpressionOf : Expression {
  explicit ExpressionOf(uint32_t line) : Expression(kindOf, line) {}
};

/// What stands between the parentheses of a call.
struct CallArguments {
  ExpressionList positional;
  std::vector<std::pair<std::string, ExpressionPointer>> keywords;
  ExpressionPointer spread;        ///< `*list`, or null
  ExpressionPointer keywordSpread; ///< `**dictionary`, or null
};

struct AttributeExpression : ExpressionOf<Expression::Kind::Attribute> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer object;
  std::string name;
};

enum class BinaryOperator : uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Remainder,
  Power,
};

struct BinaryExpression : ExpressionOf<Expression::Kind::Binary> {
  using ExpressionOf::ExpressionOf;
  BinaryOperator operation{};
  ExpressionPointer left;
  ExpressionPointer right;
};

struct CallExpression : ExpressionOf<Expression::Kind::Call> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer callee;
  CallArguments arguments;
};

enum class ComparisonOperator : uint8_t {
  Equal,
  NotEqual,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual,
  In,
  NotIn,
};

/// `first < second <= third`: every neighbours must compare.
struct ComparisonExpression : ExpressionOf<Expression::Kind::Comparison> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer first;
  std::vector<std::pair<ComparisonOperator, ExpressionPointer>> others;
};

/// `a ~ b ~ c`
struct ConcatenationExpression : ExpressionOf<Expression::Kind::Concatenation> {
  using ExpressionOf::ExpressionOf;
  ExpressionList parts;
};

/// `value if test else otherwise`
struct ConditionalExpression : ExpressionOf<Expression::Kind::Conditional> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer test;
  ExpressionPointer value;
  ExpressionPointer otherwise; ///< or null
};

struct DictionaryExpression : ExpressionOf<Expression::Kind::Dictionary> {
  using ExpressionOf::ExpressionOf;
  std::vector<std::pair<ExpressionPointer, ExpressionPointer>> entries;
};

struct FilterCall : ExpressionOf<Expression::Kind::FilterCall> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer operand; ///< null: the text of the block that it filters
  const Filter *filter = nullptr;
  CallArguments arguments;
};

struct LiteralExpression : ExpressionOf<Expression::Kind::Literal> {
  using ExpressionOf::ExpressionOf;
  Value value;
};

/// `left and right`, `left or right`
struct LogicalExpression : ExpressionOf<Expression::Kind::Logical> {
  using ExpressionOf::ExpressionOf;
  bool isAnd = false;
  ExpressionPointer left;
  ExpressionPointer right;
};

struct NameExpression : ExpressionOf<Expression::Kind::Name> {
  using ExpressionOf::ExpressionOf;
  NameId name = 0;
};

/// A list or a tuple.
struct SequenceExpression : ExpressionOf<Expression::Kind::Sequence> {
  using ExpressionOf::ExpressionOf;
  bool isTuple = false;
  ExpressionList items;
};

/// `object[start:stop:step]`, each of which may be null.
struct SliceExpression : ExpressionOf<Expression::Kind::Slice> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer object;
  ExpressionPointer start;
  ExpressionPointer stop;
  ExpressionPointer step;
};

struct SubscriptExpression : ExpressionOf<Expression::Kind::Subscript> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer object;
  ExpressionPointer index;
};

struct TestCall : ExpressionOf<Expression::Kind::TestCall> {
  using ExpressionOf::ExpressionOf;
  ExpressionPointer operand;
  const Test *test = nullptr;
  CallArguments arguments;
};

enum class UnaryOperator : uint8_t { Minus, Plus, Not };

struct UnaryExpression : ExpressionOf<Expression::Kind::Unary> {
  using ExpressionOf::ExpressionOf;
  UnaryOperator operation{};
  ExpressionPointer operand;
};

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

struct Statement {
  enum class Kind : uint8_t {
    Break,
    Call,
    Continue,
    Data,
    Filter,
    For,
    If,
    Macro,
    Output,
    Scope,
    Set,
    SetBlock,
    With,
  };
  Statement(Kind kind, uint32_t line) : kind(kind), line(line) {}
  virtual ~Statement() = default;

  const Kind kind;
  const uint32_t line;
};

using StatementPointer = std::unique_ptr<Statement>;
using StatementList = std::vector<StatementPointer>;

template <Statement::Kind kindOf> struct StatementOf : Statement {
  explicit StatementOf(uint32_t line) : Statement(kindOf, line) {}
};

/// What is assigned to: a name, the attribute of a namespace, or several.
struct Target {
  enum class Kind : uint8_t { Name, Attribute, Tuple };
  Kind kind = Kind::Name;
  NameId name = 0;
  std::string attribute;
  std::vector<Target> parts;
};

using BreakStatement = StatementOf<Statement::Kind::Break>;
using ContinueStatement = StatementOf<Statement::Kind::Continue>;

/// Text outside of all tags.
struct DataStatement : StatementOf<Statement::Kind::Data> {
  using StatementOf::StatementOf;
  MarkedText text;
};

struct ForStatement : StatementOf<Statement::Kind::For> {
  using StatementOf::StatementOf;
  Target target;
  ExpressionPointer iterable;
  ExpressionPointer test; ///< or null
  bool isRecursive = false;
  bool usesLoop = false; ///< names `loop`
  StatementList body;
  StatementList otherwise;
};

struct IfStatement : StatementOf<Statement::Kind::If> {
  using StatementOf::StatementOf;
  std::vector<std::pair<ExpressionPointer, StatementList>> branches;
  StatementList otherwise;
};

/// The parameters and the body of a macro, or of what a call block gives to
/// one.
struct MacroDescription {
  std::string name;
  std::vector<NameId> parameters;
  /// Of the last parameters.
  ExpressionList defaults;
  StatementList body;
  bool usesCaller = false;
  bool usesKeywords = false;
  bool usesPositional = false;
};

struct MacroStatement : StatementOf<Statement::Kind::Macro> {
  using StatementOf::StatementOf;
  NameId name = 0;
  MacroDescription description;
};

struct CallStatement : StatementOf<Statement::Kind::Call> {
  using StatementOf::StatementOf;
  std::unique_ptr<CallExpression> call;
  MacroDescription caller;
};

struct FilterStatement : StatementOf<Statement::Kind::Filter> {
  using StatementOf::StatementOf;
  ExpressionPointer filters;
  StatementList body;
};

struct OutputStatement : StatementOf<Statement::Kind::Output> {
  using StatementOf::StatementOf;
  ExpressionPointer value;
};

/// Statements whose assignments end with them: `{% generation %}`.
struct ScopeStatement : StatementOf<Statement::Kind::Scope> {
  using StatementOf::StatementOf;
  StatementList body;
};

struct SetStatement : StatementOf<Statement::Kind::Set> {
  using StatementOf::StatementOf;
  Target target;
  ExpressionPointer value;
};

struct SetBlockStatement : StatementOf<Statement::Kind::SetBlock> {
  using StatementOf::StatementOf;
  Target target;
  ExpressionPointer filters; ///< or null
  StatementList body;
};

struct WithStatement : StatementOf<Statement::Kind::With> {
  using StatementOf::StatementOf;
  std::vector<std::pair<Target, ExpressionPointer>> values;
  StatementList body;
};

/// A whole template.
struct Syntax {
  std::vector<std::string> names;
  StatementList statements;
};

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_SYNTAX_H
