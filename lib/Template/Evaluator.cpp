//===- Evaluator.cpp - Templates run --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "Access.h"
#include "Operators.h"
#include "Printing.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::jinja;

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

Evaluator::InnerScope::InnerScope(Evaluator &evaluator, Scope &parent)
    : evaluator(evaluator), outer(evaluator.scope) {
  if (evaluator.unusedScopes.empty()) {
    evaluator.state.keep(sizeof(Scope) + 2 * sizeof(void *));
    evaluator.scopes.push_back(std::make_unique<Scope>(&parent));
    evaluator.scope = evaluator.scopes.back().get();
    return;
  }
  evaluator.scope = evaluator.unusedScopes.back();
  evaluator.unusedScopes.pop_back();
  evaluator.scope->reset(&parent);
}

Evaluator::InnerScope::~InnerScope() {
  if (!evaluator.scope->isCaptured)
    evaluator.unusedScopes.push_back(evaluator.scope);
  evaluator.scope = outer;
}

Evaluator::Level::Level(Evaluator &evaluator) : evaluator(evaluator) {
  if (++evaluator.level > evaluator.state.limits.recursion)
    evaluator.state.exhaust("its evaluations lie in each other more than " +
                            std::to_string(evaluator.state.limits.recursion) +
                            " deep");
}

Evaluator::Evaluator(const Syntax &syntax, RenderState &state)
    : syntax(syntax), state(state) {
  for (NameId id = 0; id != syntax.names.size(); ++id) {
    const std::string &name = syntax.names[id];
    if (name == "caller")
      callerName = id;
    else if (name == "kwargs")
      keywordsName = id;
    else if (name == "varargs")
      positionalName = id;
    else if (name == "loop")
      loopName = id;
  }
}

Value Evaluator::lookUp(NameId name) {
  for (const Scope *each = scope; each; each = each->parent)
    if (const Value *found = each->find(name))
      return *found;
  return RenderState::undefined("'" + syntax.names[name] + "' is undefined");
}

Scope &Evaluator::captureScope() {
  for (Scope *each = scope; each && !each->isCaptured; each = each->parent)
    each->isCaptured = true;
  return *scope;
}

Status Evaluator::assign(const Target &target, Value value) {
  switch (target.kind) {
  case Target::Kind::Name:
    scope->set(state, target.name, std::move(value));
    return {};
  case Target::Kind::Attribute: {
    const Value object = lookUp(target.name);
    if (!object.is(Value::Kind::Object) ||
        object.object().kind() != Object::Kind::Namespace)
      return makeError("'", syntax.names[target.name],
                       "' is no namespace, and only those have attributes "
                       "that can be set");
    static_cast<Namespace &>(object.object())
        .set(state, target.attribute, Origin::Template, std::move(value));
    return {};
  }
  case Target::Kind::Tuple:
    break;
  }
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items, collect(state, value));
  if (items.size() != target.parts.size())
    return makeError("there are ", items.size(), " values for ",
                     target.parts.size(), " names");
  for (size_t i = 0; i != items.size(); ++i)
    SANDWICH_RETURN_IF_ERROR(assign(target.parts[i], std::move(items[i])));
  return {};
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

/// The messages of a conversation, whose roles may be words of the template.
Result<Value> Evaluator::convertMessages(const Json &messages) {
  const std::vector<std::string> &roles = state.options.trustedRoles;
  std::vector<Value> list;
  for (const Json &message : messages) {
    SANDWICH_ASSIGN_OR_RETURN(Value value,
                              state.fromJson(message, Origin::Data));
    const Value *role = value.is(Value::Kind::Dictionary)
                            ? value.dictionary()->find("role")
                            : nullptr;
    if (role && role->isString() &&
        std::ranges::find(roles, role->bytes()) != roles.end()) {
      std::vector<Dictionary::Entry> entries = value.dictionary()->entries;
      for (auto &[key, each] : entries)
        if (key.bytes() == "role")
          each = state.string(each.bytes(), Origin::Template);
      SANDWICH_ASSIGN_OR_RETURN(
          value, state.dictionary(std::move(entries), Origin::Data));
    }
    list.push_back(std::move(value));
    SANDWICH_RETURN_IF_ERROR(state.check());
  }
  return state.list(std::move(list), Origin::Data);
}

Result<Value> Evaluator::convertVariable(std::string_view name,
                                         const Json &json) {
  if (name == "messages" && json.is_array())
    return convertMessages(json);
  return state.fromJson(json, Origin::Data);
}

Status Evaluator::defineVariables(const Json &variables) {
  if (!variables.is_object() || !state.options.trustedVariables.is_object())
    return makeError("the variables are no JSON object");
  for (NameId id = 0; id != syntax.names.size(); ++id) {
    const std::string &name = syntax.names[id];
    const Json &trusted = state.options.trustedVariables;
    if (auto found = trusted.find(name); found != trusted.end()) {
      SANDWICH_ASSIGN_OR_RETURN(Value value,
                                state.fromJson(*found, Origin::Template));
      scope->set(state, id, std::move(value));
    } else if (found = variables.find(name); found != variables.end()) {
      SANDWICH_ASSIGN_OR_RETURN(Value value, convertVariable(name, *found));
      scope->set(state, id, std::move(value));
    } else if (const Function *function = findFunction(name)) {
      scope->set(state, id, state.make<BuiltinFunction>(*function));
    }
  }
  return {};
}

Error Evaluator::finishError(const Error &error) const {
  Error finished = error;
  if (Status status = state.check(); !status)
    finished.message =
        "the chat template goes beyond its limits: " + status.error().message;
  else if (error.kind != ErrorKind::InvalidArgument && errorLine != 0)
    finished.message = "line " + std::to_string(errorLine) +
                       " of the chat template: " + error.message;
  finished.kind = ErrorKind::InvalidArgument;
  return finished;
}

Result<RenderedText> Evaluator::run(const Json &variables) {
  scopes.push_back(std::make_unique<Scope>(nullptr));
  scope = scopes.back().get();
  TextBuilder text(state);
  output = &text;
  if (Status status = defineVariables(variables); !status)
    return finishError(status.error());
  Result<Flow> flow = execute(syntax.statements);
  if (!flow)
    return finishError(flow.error());
  if (Status status = state.check(); !status)
    return finishError(status.error());
  auto [bytes, trusted] = text.take().release();
  return RenderedText{std::move(bytes), std::move(trusted)};
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void Evaluator::print(const MarkedText &text) {
  output->append(text);
  if (output->size() > state.limits.outputBytes)
    state.exhaust("its text has more than " +
                  std::to_string(state.limits.outputBytes) + " bytes");
}

Status Evaluator::print(const Value &value) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, toString(state, value));
  print(text.text());
  return {};
}

Status Evaluator::printText(const Value &value) {
  if (!value.isString())
    return makeError("a block gives a ", typeName(value),
                     ", which must be a string");
  print(value.text());
  return {};
}

Result<Value> Evaluator::capture(const StatementList &statements,
                                 Scope &around) {
  const InnerScope inner(*this, around);
  TextBuilder text(state);
  TextBuilder *const outer = std::exchange(output, &text);
  Result<Flow> flow = execute(statements);
  output = outer;
  if (!flow)
    return flow.error();
  return text.finish();
}

Result<Value> Evaluator::applyFilters(const Expression &filters, Value text) {
  const Value *const outer = std::exchange(blockText, &text);
  Result<Value> filtered = evaluate(filters);
  blockText = outer;
  return filtered;
}

Result<Evaluator::Flow> Evaluator::execute(const StatementList &statements) {
  for (const StatementPointer &statement : statements) {
    SANDWICH_ASSIGN_OR_RETURN(Flow flow, execute(*statement));
    if (flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

Result<Evaluator::Flow> Evaluator::execute(const Statement &statement) {
  const Level inside(*this);
  state.spend(1);
  SANDWICH_RETURN_IF_ERROR(state.check());
  Result<Flow> flow = executeKind(statement);
  if (!flow && errorLine == 0)
    errorLine = statement.line;
  return flow;
}

Result<Evaluator::Flow> Evaluator::executeKind(const Statement &statement) {
  auto next = [](const Status &status) -> Result<Flow> {
    if (!status)
      return status.error();
    return Flow::Next;
  };
  switch (statement.kind) {
  case Statement::Kind::Break:
    return Flow::Break;
  case Statement::Kind::Call:
    return next(executeCall(static_cast<const CallStatement &>(statement)));
  case Statement::Kind::Continue:
    return Flow::Continue;
  case Statement::Kind::Data:
    print(static_cast<const DataStatement &>(statement).text);
    return Flow::Next;
  case Statement::Kind::Filter:
    return next(executeFilter(static_cast<const FilterStatement &>(statement)));
  case Statement::Kind::For:
    return executeFor(static_cast<const ForStatement &>(statement));
  case Statement::Kind::If:
    return executeIf(static_cast<const IfStatement &>(statement));
  case Statement::Kind::Macro:
    return next(executeMacro(static_cast<const MacroStatement &>(statement)));
  case Statement::Kind::Output:
    return next(executeOutput(static_cast<const OutputStatement &>(statement)));
  case Statement::Kind::Scope: {
    const InnerScope inner(*this, *scope);
    return execute(static_cast<const ScopeStatement &>(statement).body);
  }
  case Statement::Kind::Set:
    return next(executeSet(static_cast<const SetStatement &>(statement)));
  case Statement::Kind::SetBlock:
    return next(
        executeSetBlock(static_cast<const SetBlockStatement &>(statement)));
  case Statement::Kind::With:
    return executeWith(static_cast<const WithStatement &>(statement));
  }
  return Flow::Next;
}

Result<Evaluator::Flow> Evaluator::executeIf(const IfStatement &statement) {
  for (const auto &[test, body] : statement.branches) {
    SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*test));
    if (isTrue(value))
      return execute(body);
  }
  return execute(statement.otherwise);
}

Status Evaluator::executeSet(const SetStatement &statement) {
  SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*statement.value));
  return assign(statement.target, std::move(value));
}

Status Evaluator::executeSetBlock(const SetBlockStatement &statement) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, capture(statement.body, *scope));
  if (statement.filters) {
    SANDWICH_ASSIGN_OR_RETURN(
        text, applyFilters(*statement.filters, std::move(text)));
  }
  return assign(statement.target, std::move(text));
}

Status Evaluator::executeMacro(const MacroStatement &statement) {
  scope->set(state, statement.name,
             state.make<Macro>(statement.description, captureScope()));
  return {};
}

Status Evaluator::executeCall(const CallStatement &statement) {
  SANDWICH_ASSIGN_OR_RETURN(Value callee, evaluate(*statement.call->callee));
  SANDWICH_ASSIGN_OR_RETURN(Arguments arguments,
                            evaluateArguments(statement.call->arguments));
  arguments.keywords.push_back(
      {"caller", Origin::Template,
       state.make<Macro>(statement.caller, captureScope())});
  SANDWICH_ASSIGN_OR_RETURN(Value value, call(callee, std::move(arguments)));
  return printText(value);
}

Status Evaluator::executeFilter(const FilterStatement &statement) {
  SANDWICH_ASSIGN_OR_RETURN(Value text, capture(statement.body, *scope));
  SANDWICH_ASSIGN_OR_RETURN(text,
                            applyFilters(*statement.filters, std::move(text)));
  return printText(text);
}

Status Evaluator::executeOutput(const OutputStatement &statement) {
  SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*statement.value));
  return print(value);
}

Result<Evaluator::Flow> Evaluator::executeWith(const WithStatement &statement) {
  // The values do not see each other.
  std::vector<Value> values;
  for (const auto &[target, expression] : statement.values) {
    SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*expression));
    values.push_back(std::move(value));
  }
  const InnerScope inner(*this, *scope);
  for (size_t i = 0; i != values.size(); ++i)
    SANDWICH_RETURN_IF_ERROR(
        assign(statement.values[i].first, std::move(values[i])));
  return execute(statement.body);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Result<Evaluator::Flow> Evaluator::executeFor(const ForStatement &statement) {
  SANDWICH_ASSIGN_OR_RETURN(Value iterable, evaluate(*statement.iterable));
  Scope &around = statement.isRecursive ? captureScope() : *scope;
  return runLoop(statement, iterable, around, 1);
}

Result<bool> Evaluator::passes(const ForStatement &statement, const Value &item,
                               Scope &around) {
  const InnerScope inner(*this, around);
  SANDWICH_RETURN_IF_ERROR(assign(statement.target, item));
  SANDWICH_ASSIGN_OR_RETURN(Value decision, evaluate(*statement.test));
  return isTrue(decision);
}

Result<Value> Evaluator::passedOn(const Target &target, Value item) {
  if (target.kind != Target::Kind::Tuple)
    return item;
  SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> parts, collect(state, item));
  for (size_t i = 0; i != std::min(parts.size(), target.parts.size()); ++i) {
    SANDWICH_ASSIGN_OR_RETURN(parts[i],
                              passedOn(target.parts[i], std::move(parts[i])));
  }
  return state.tuple(std::move(parts), item.origin());
}

Result<Next> Evaluator::fetchItems(const ForStatement &statement,
                                   const Value &iterable, Scope &around) {
  SANDWICH_ASSIGN_OR_RETURN(ValueIterator iterator,
                            ValueIterator::over(iterable));
  if (!statement.test)
    return Next([this, iterator]() mutable { return iterator.next(state); });
  return Next([this, &statement, &around,
               iterator]() mutable -> Result<std::optional<Value>> {
    while (true) {
      SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item,
                                iterator.next(state));
      if (!item)
        return item;
      SANDWICH_ASSIGN_OR_RETURN(bool isKept, passes(statement, *item, around));
      if (!isKept)
        continue;
      SANDWICH_ASSIGN_OR_RETURN(item,
                                passedOn(statement.target, *std::move(item)));
      return item;
    }
  });
}

Result<Evaluator::Flow> Evaluator::runBody(const ForStatement &statement,
                                           Value item, Scope &around,
                                           Loop *loop) {
  const InnerScope inner(*this, around);
  if (loop)
    scope->set(state, *loopName, *loop);
  SANDWICH_RETURN_IF_ERROR(assign(statement.target, std::move(item)));
  return execute(statement.body);
}

Result<Evaluator::Flow> Evaluator::runLoop(const ForStatement &statement,
                                           const Value &iterable, Scope &around,
                                           size_t depth) {
  SANDWICH_ASSIGN_OR_RETURN(Next fetch,
                            fetchItems(statement, iterable, around));
  Loop *loop = nullptr;
  if (statement.usesLoop)
    loop =
        &state.make<Loop>(statement, around, fetch, depth, iterable.origin());
  bool isEmpty = true;
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item,
                              loop ? loop->advance() : fetch());
    if (!item)
      break;
    isEmpty = false;
    SANDWICH_ASSIGN_OR_RETURN(
        Flow flow, runBody(statement, *std::move(item), around, loop));
    if (flow == Flow::Break)
      break;
  }
  if (!isEmpty || statement.otherwise.empty())
    return Flow::Next;
  const InnerScope inner(*this, around);
  return execute(statement.otherwise);
}

Result<Value> Evaluator::callLoop(const Loop &loop,
                                  const Arguments &arguments) {
  if (!loop.statement.isRecursive)
    return makeError("a loop that is called must say 'recursive'");
  if (arguments.positional.size() != 1 || !arguments.keywords.empty())
    return makeError("a loop is called with the items to go through");
  const Level inside(*this);
  SANDWICH_RETURN_IF_ERROR(state.check());
  TextBuilder text(state);
  TextBuilder *const outer = std::exchange(output, &text);
  Result<Flow> flow = runLoop(loop.statement, arguments.positional[0],
                              loop.scope, loop.depth + 1);
  output = outer;
  if (!flow)
    return flow.error();
  return text.finish();
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Result<Value> Evaluator::evaluate(const Expression &expression) {
  const Level inside(*this);
  state.spend(1);
  SANDWICH_RETURN_IF_ERROR(state.check());
  Result<Value> value = evaluateKind(expression);
  if (!value && errorLine == 0)
    errorLine = expression.line;
  return value;
}

Result<Value> Evaluator::evaluateKind(const Expression &expression) {
  switch (expression.kind) {
  case Expression::Kind::Attribute:
    return evaluateAttribute(
        static_cast<const AttributeExpression &>(expression));
  case Expression::Kind::Binary:
    return evaluateBinary(static_cast<const BinaryExpression &>(expression));
  case Expression::Kind::Call:
    return evaluateCall(static_cast<const CallExpression &>(expression));
  case Expression::Kind::Comparison:
    return evaluateComparison(
        static_cast<const ComparisonExpression &>(expression));
  case Expression::Kind::Concatenation:
    return evaluateConcatenation(
        static_cast<const ConcatenationExpression &>(expression));
  case Expression::Kind::Conditional:
    return evaluateConditional(
        static_cast<const ConditionalExpression &>(expression));
  case Expression::Kind::Dictionary:
    return evaluateDictionary(
        static_cast<const DictionaryExpression &>(expression));
  case Expression::Kind::FilterCall:
    return evaluateFilter(static_cast<const FilterCall &>(expression));
  case Expression::Kind::Literal:
    return static_cast<const LiteralExpression &>(expression).value;
  case Expression::Kind::Logical:
    return evaluateLogical(static_cast<const LogicalExpression &>(expression));
  case Expression::Kind::Name:
    return lookUp(static_cast<const NameExpression &>(expression).name);
  case Expression::Kind::Sequence:
    return evaluateSequence(
        static_cast<const SequenceExpression &>(expression));
  case Expression::Kind::Slice:
    return evaluateSlice(static_cast<const SliceExpression &>(expression));
  case Expression::Kind::Subscript:
    return evaluateSubscript(
        static_cast<const SubscriptExpression &>(expression));
  case Expression::Kind::TestCall:
    return evaluateTest(static_cast<const TestCall &>(expression));
  case Expression::Kind::Unary:
    return evaluateUnary(static_cast<const UnaryExpression &>(expression));
  }
  return Value();
}

Result<Value>
Evaluator::evaluateAttribute(const AttributeExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value object, evaluate(*expression.object));
  return getAttribute(state, object, expression.name);
}

Result<Value> Evaluator::evaluateBinary(const BinaryExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value left, evaluate(*expression.left));
  SANDWICH_ASSIGN_OR_RETURN(Value right, evaluate(*expression.right));
  return applyBinary(state, expression.operation, left, right);
}

Result<Value>
Evaluator::evaluateComparison(const ComparisonExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value left, evaluate(*expression.first));
  bool isSo = true;
  for (const auto &[operation, other] : expression.others) {
    SANDWICH_ASSIGN_OR_RETURN(Value right, evaluate(*other));
    SANDWICH_ASSIGN_OR_RETURN(isSo, compare(state, operation, left, right));
    if (!isSo)
      break;
    left = std::move(right);
  }
  return Value(isSo, Origin::Template);
}

Result<Value>
Evaluator::evaluateConcatenation(const ConcatenationExpression &expression) {
  TextBuilder text(state);
  for (const ExpressionPointer &part : expression.parts) {
    SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*part));
    SANDWICH_RETURN_IF_ERROR(appendString(state, value, text));
  }
  return text.finish();
}

Result<Value>
Evaluator::evaluateConditional(const ConditionalExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value test, evaluate(*expression.test));
  if (isTrue(test))
    return evaluate(*expression.value);
  if (expression.otherwise)
    return evaluate(*expression.otherwise);
  return RenderState::undefined("the condition of an 'if' without 'else' is "
                                "false");
}

Result<Value>
Evaluator::evaluateDictionary(const DictionaryExpression &expression) {
  std::vector<Dictionary::Entry> entries;
  for (const auto &[keyExpression, valueExpression] : expression.entries) {
    SANDWICH_ASSIGN_OR_RETURN(Value key, evaluate(*keyExpression));
    SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*valueExpression));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return state.dictionary(std::move(entries));
}

Result<Value> Evaluator::evaluateFilter(const FilterCall &expression) {
  Value operand;
  if (expression.operand) {
    SANDWICH_ASSIGN_OR_RETURN(operand, evaluate(*expression.operand));
  } else {
    operand = *blockText;
  }
  SANDWICH_ASSIGN_OR_RETURN(Arguments arguments,
                            evaluateArguments(expression.arguments));
  return callBuiltin(state, "filter", *expression.filter, operand, arguments);
}

Result<Value> Evaluator::evaluateLogical(const LogicalExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value left, evaluate(*expression.left));
  if (isTrue(left) != expression.isAnd)
    return left;
  return evaluate(*expression.right);
}

Result<Value>
Evaluator::evaluateSequence(const SequenceExpression &expression) {
  std::vector<Value> items;
  items.reserve(expression.items.size());
  for (const ExpressionPointer &each : expression.items) {
    SANDWICH_ASSIGN_OR_RETURN(Value item, evaluate(*each));
    items.push_back(std::move(item));
  }
  return state.sequence(std::move(items), expression.isTuple, Origin::Template);
}

Result<Value> Evaluator::evaluateSlice(const SliceExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value object, evaluate(*expression.object));
  std::optional<Value> start, stop, step;
  for (auto [part, value] :
       {std::pair(&expression.start, &start),
        std::pair(&expression.stop, &stop), std::pair(&expression.step, &step)})
    if (*part) {
      SANDWICH_ASSIGN_OR_RETURN(*value, evaluate(**part));
    }
  auto pointer = [](const std::optional<Value> &part) {
    return part ? &*part : nullptr;
  };
  return getSlice(state, object, pointer(start), pointer(stop), pointer(step));
}

Result<Value>
Evaluator::evaluateSubscript(const SubscriptExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value object, evaluate(*expression.object));
  SANDWICH_ASSIGN_OR_RETURN(Value index, evaluate(*expression.index));
  return getItem(state, object, index);
}

Result<Value> Evaluator::evaluateTest(const TestCall &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value operand, evaluate(*expression.operand));
  SANDWICH_ASSIGN_OR_RETURN(Arguments arguments,
                            evaluateArguments(expression.arguments));
  return callBuiltin(state, "test", *expression.test, operand, arguments);
}

Result<Value> Evaluator::evaluateUnary(const UnaryExpression &expression) {
  SANDWICH_ASSIGN_OR_RETURN(Value operand, evaluate(*expression.operand));
  return applyUnary(state, expression.operation, operand);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Result<Arguments> Evaluator::evaluateArguments(const CallArguments &arguments) {
  Arguments evaluated;
  evaluated.positional.reserve(arguments.positional.size());
  for (const ExpressionPointer &each : arguments.positional) {
    SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*each));
    evaluated.positional.push_back(std::move(value));
  }
  for (const auto &[name, expression] : arguments.keywords) {
    SANDWICH_ASSIGN_OR_RETURN(Value value, evaluate(*expression));
    evaluated.keywords.push_back({name, Origin::Template, std::move(value)});
  }
  SANDWICH_RETURN_IF_ERROR(addSpreads(arguments, evaluated));
  return evaluated;
}

Status Evaluator::addSpreads(const CallArguments &arguments,
                             Arguments &evaluated) {
  if (arguments.spread) {
    SANDWICH_ASSIGN_OR_RETURN(Value list, evaluate(*arguments.spread));
    SANDWICH_ASSIGN_OR_RETURN(std::vector<Value> items, collect(state, list));
    for (Value &item : items)
      evaluated.positional.push_back(std::move(item));
  }
  if (!arguments.keywordSpread)
    return {};
  SANDWICH_ASSIGN_OR_RETURN(evaluated.spread,
                            evaluate(*arguments.keywordSpread));
  if (!evaluated.spread.is(Value::Kind::Dictionary))
    return makeError("'**' needs a dict, not ", typeName(evaluated.spread));
  for (const auto &[key, value] : evaluated.spread.dictionary()->entries) {
    if (!key.isString())
      return makeError("'**' needs keys that are strings");
    for (const auto &[name, ignored] : arguments.keywords)
      if (name == key.bytes())
        return makeError("the argument '", name, "' is given twice");
    state.spend(arguments.keywords.size());
    evaluated.keywords.push_back({key.bytes(), key.origin(), value});
  }
  return {};
}

Result<Value> Evaluator::evaluateCall(const CallExpression &expression) {
  Value callee;
  const Method *method = nullptr;
  if (expression.callee->kind == Expression::Kind::Attribute) {
    // A method that is called at once needs no value of its own.
    const auto &attribute =
        static_cast<const AttributeExpression &>(*expression.callee);
    SANDWICH_ASSIGN_OR_RETURN(Value receiver, evaluate(*attribute.object));
    method = findMethod(receiver, attribute.name);
    if (method) {
      callee = std::move(receiver);
    } else {
      SANDWICH_ASSIGN_OR_RETURN(callee,
                                getAttribute(state, receiver, attribute.name));
    }
  } else {
    SANDWICH_ASSIGN_OR_RETURN(callee, evaluate(*expression.callee));
  }
  SANDWICH_ASSIGN_OR_RETURN(Arguments arguments,
                            evaluateArguments(expression.arguments));
  if (method)
    return callBuiltin(state, "method", *method, callee, arguments);
  return call(callee, std::move(arguments));
}

Result<Value> Evaluator::call(const Value &callee, Arguments arguments) {
  if (callee.isUndefined())
    return undefinedError(callee);
  if (!callee.is(Value::Kind::Object))
    return makeError("a ", typeName(callee), " cannot be called");
  Object &object = callee.object();
  switch (object.kind()) {
  case Object::Kind::BoundMethod: {
    const auto &bound = static_cast<BoundMethod &>(object);
    return callBuiltin(state, "method", bound.method, bound.receiver,
                       arguments);
  }
  case Object::Kind::Function:
    return callBuiltin(state, "function",
                       static_cast<BuiltinFunction &>(object).function, Value(),
                       arguments);
  case Object::Kind::Joiner: {
    auto &joiner = static_cast<Joiner &>(object);
    if (!arguments.positional.empty() || !arguments.keywords.empty())
      return makeError("a joiner takes no arguments");
    return std::exchange(joiner.isUsed, true)
               ? joiner.separator
               : state.string("", Origin::Template);
  }
  case Object::Kind::Loop:
    return callLoop(static_cast<Loop &>(object), arguments);
  case Object::Kind::Macro:
    return callMacro(static_cast<Macro &>(object), std::move(arguments));
  default:
    return makeError("a ", typeName(callee), " cannot be called");
  }
}

Result<Value> Evaluator::callMacro(const Macro &macro, Arguments arguments) {
  const Level inside(*this);
  SANDWICH_RETURN_IF_ERROR(state.check());
  const InnerScope inner(*this, macro.scope);
  if (Status bound = bindParameters(macro.description, std::move(arguments));
      !bound)
    return bound.error();
  TextBuilder text(state);
  TextBuilder *const outer = std::exchange(output, &text);
  Result<Flow> flow = execute(macro.description.body);
  output = outer;
  if (!flow)
    return flow.error();
  return text.finish();
}

Status Evaluator::bindParameters(const MacroDescription &macro,
                                 Arguments arguments) {
  const std::vector<NameId> &parameters = macro.parameters;
  std::vector<std::optional<Value>> values(parameters.size());
  bool hasCaller = false;
  for (size_t i = 0; i != parameters.size(); ++i) {
    if (i < arguments.positional.size()) {
      values[i] = std::move(arguments.positional[i]);
      continue;
    }
    const std::string &name = syntax.names[parameters[i]];
    hasCaller |= name == "caller";
    auto found =
        std::ranges::find(arguments.keywords, name, &Arguments::Keyword::name);
    if (found == arguments.keywords.end())
      continue;
    values[i] = std::move(found->value);
    arguments.keywords.erase(found);
  }
  const size_t used = std::min(parameters.size(), arguments.positional.size());
  arguments.positional.erase(arguments.positional.begin(),
                             arguments.positional.begin() +
                                 static_cast<ptrdiff_t>(used));
  const size_t firstDefault = parameters.size() - macro.defaults.size();
  for (size_t i = 0; i != parameters.size(); ++i) {
    // A default sees the parameters before it.
    if (!values[i] && i >= firstDefault) {
      SANDWICH_ASSIGN_OR_RETURN(values[i],
                                evaluate(*macro.defaults[i - firstDefault]));
    }
    if (!values[i])
      values[i] = RenderState::undefined(
          "the parameter '" + syntax.names[parameters[i]] + "' was not given");
    scope->set(state, parameters[i], *std::move(values[i]));
  }
  if (macro.usesCaller && !hasCaller) {
    auto found = std::ranges::find(arguments.keywords, "caller",
                                   &Arguments::Keyword::name);
    Value caller = RenderState::undefined("no caller is defined");
    if (found != arguments.keywords.end()) {
      caller = std::move(found->value);
      arguments.keywords.erase(found);
    }
    scope->set(state, *callerName, std::move(caller));
  }
  return bindRest(macro, std::move(arguments));
}

Status Evaluator::bindRest(const MacroDescription &macro, Arguments arguments) {
  if (macro.usesKeywords) {
    std::vector<Dictionary::Entry> entries;
    for (Arguments::Keyword &keyword : arguments.keywords)
      entries.emplace_back(
          state.string(std::string(keyword.name), keyword.nameOrigin),
          std::move(keyword.value));
    SANDWICH_ASSIGN_OR_RETURN(Value keywords,
                              state.dictionary(std::move(entries)));
    scope->set(state, *keywordsName, std::move(keywords));
  } else if (!arguments.keywords.empty()) {
    return makeError("the macro '", macro.name, "' has no parameter '",
                     excerpt(arguments.keywords[0].name), "'");
  }
  if (macro.usesPositional)
    scope->set(state, *positionalName,
               state.tuple(std::move(arguments.positional)));
  else if (!arguments.positional.empty())
    return makeError("the macro '", macro.name, "' takes at most ",
                     macro.parameters.size(), " arguments");
  return {};
}
