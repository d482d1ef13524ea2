//===- Evaluator.h - Templates run ------------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_EVALUATOR_H
#define SANDWICH_LIB_TEMPLATE_EVALUATOR_H

#include "Objects.h"
#include "RenderState.h"
#include "Syntax.h"

#include <memory>
#include <vector>

namespace sandwich::jinja {

/// Runs one template once.
class Evaluator {
public:
  Evaluator(const Syntax &syntax, RenderState &state);

  /// The text that the template makes of `variables`. Errors: as
  /// `ChatTemplate::render`.
  Result<RenderedText> run(const Json &variables);

private:
  /// How a statement ends.
  enum class Flow : uint8_t { Next, Break, Continue };

  //===--- Scopes ---------------------------------------------------------===//

  /// A new scope while it lives.
  class InnerScope {
  public:
    InnerScope(Evaluator &evaluator, Scope &parent);
    ~InnerScope();
    InnerScope(const InnerScope &) = delete;
    InnerScope &operator=(const InnerScope &) = delete;

  private:
    Evaluator &evaluator;
    Scope *const outer;
  };

  /// A level of evaluations that lie in each other, while it lives.
  class Level {
  public:
    explicit Level(Evaluator &evaluator);
    ~Level() { --evaluator.level; }
    Level(const Level &) = delete;
    Level &operator=(const Level &) = delete;

  private:
    Evaluator &evaluator;
  };

  Status defineVariables(const Json &variables);
  Result<Value> convertVariable(std::string_view name, const Json &json);
  Result<Value> convertMessages(const Json &messages);
  Value lookUp(NameId name);
  /// The current scope and those around it stay as they are, since a macro has
  /// seen them.
  Scope &captureScope();
  Status assign(const Target &target, Value value);

  //===--- Statements -----------------------------------------------------===//

  Result<Flow> execute(const StatementList &statements);
  Result<Flow> execute(const Statement &statement);
  Result<Flow> executeKind(const Statement &statement);
  Result<Flow> executeIf(const IfStatement &statement);
  Status executeSet(const SetStatement &statement);
  Status executeSetBlock(const SetBlockStatement &statement);
  Status executeMacro(const MacroStatement &statement);
  Status executeCall(const CallStatement &statement);
  Status executeFilter(const FilterStatement &statement);
  Status executeOutput(const OutputStatement &statement);
  Result<Flow> executeWith(const WithStatement &statement);
  Result<Flow> executeFor(const ForStatement &statement);
  /// Runs the loop over `iterable`, in a scope within `around`.
  Result<Flow> runLoop(const ForStatement &statement, const Value &iterable,
                       Scope &around, size_t depth);
  /// What fetches the items of a loop that its condition lets pass.
  Result<Next> fetchItems(const ForStatement &statement, const Value &iterable,
                          Scope &around);
  /// The item as the condition of a loop passes it on: where it is taken apart,
  /// as tuples.
  Result<Value> passedOn(const Target &target, Value item);
  Result<bool> passes(const ForStatement &statement, const Value &item,
                      Scope &around);
  Result<Flow> runBody(const ForStatement &statement, Value item, Scope &around,
                       Loop *loop);
  void print(const MarkedText &text);
  Status print(const Value &value);
  /// The same for what blocks give, which jinja2 takes strings from only.
  Status printText(const Value &value);
  /// The text of `statements`, in a scope within `around`.
  Result<Value> capture(const StatementList &statements, Scope &around);
  /// What `filters` make of a block's text.
  Result<Value> applyFilters(const Expression &filters, Value text);

  //===--- Expressions ----------------------------------------------------===//

  Result<Value> evaluate(const Expression &expression);
  Result<Value> evaluateKind(const Expression &expression);
  Result<Value> evaluateAttribute(const AttributeExpression &expression);
  Result<Value> evaluateBinary(const BinaryExpression &expression);
  Result<Value> evaluateCall(const CallExpression &expression);
  Result<Value> evaluateComparison(const ComparisonExpression &expression);
  Result<Value>
  evaluateConcatenation(const ConcatenationExpression &expression);
  Result<Value> evaluateConditional(const ConditionalExpression &expression);
  Result<Value> evaluateDictionary(const DictionaryExpression &expression);
  Result<Value> evaluateFilter(const FilterCall &expression);
  Result<Value> evaluateLogical(const LogicalExpression &expression);
  Result<Value> evaluateSequence(const SequenceExpression &expression);
  Result<Value> evaluateSlice(const SliceExpression &expression);
  Result<Value> evaluateSubscript(const SubscriptExpression &expression);
  Result<Value> evaluateTest(const TestCall &expression);
  Result<Value> evaluateUnary(const UnaryExpression &expression);
  Result<Arguments> evaluateArguments(const CallArguments &arguments);
  Status addSpreads(const CallArguments &arguments, Arguments &evaluated);

  //===--- Calls ----------------------------------------------------------===//

  Result<Value> call(const Value &callee, Arguments arguments);
  Result<Value> callMacro(const Macro &macro, Arguments arguments);
  /// Defines the parameters of a macro in the current scope.
  Status bindParameters(const MacroDescription &macro, Arguments arguments);
  Status bindRest(const MacroDescription &macro, Arguments arguments);
  Result<Value> callLoop(const Loop &loop, const Arguments &arguments);

  Error finishError(const Error &error) const;

  const Syntax &syntax;
  RenderState &state;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::vector<Scope *> unusedScopes;
  Scope *scope = nullptr;
  TextBuilder *output = nullptr;
  /// The text that a filter without an operand filters.
  const Value *blockText = nullptr;
  size_t level = 0;
  uint32_t errorLine = 0;
  // Names that mean something to the evaluator; nothing where the template does
  // not use them.
  std::optional<NameId> callerName, keywordsName, positionalName, loopName;
};

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_EVALUATOR_H
