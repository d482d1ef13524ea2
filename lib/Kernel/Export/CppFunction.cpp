//===- CppFunction.cpp - A function as C++ --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CppFunction.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

/// The comment of `location`, in lines of C++; empty if it has none.
static std::string commentOf(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  auto comment =
      fused ? dyn_cast_if_present<StringAttr>(fused.getMetadata()) : nullptr;
  if (!comment)
    return "";
  SmallVector<StringRef> lines;
  comment.getValue().split(lines, '\n');
  std::string text;
  for (StringRef line : lines) {
    // Nothing that goes on with the next line, or that no editor shows.
    std::string plain = line.rtrim("\\ \t").str();
    std::replace_if(
        plain.begin(), plain.end(),
        [](char each) { return !llvm::isPrint(each); }, '?');
    text += "// " + plain + "\n";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// What is read and written
//===----------------------------------------------------------------------===//

/// Whether `op` only says where something is.
static bool isAddress(Operation *op) {
  return isa<MemberOp, ElementsOp, OffsetOp>(op) ||
         (isa<CastOp>(op) && isa<PointerType>(op->getResult(0).getType()));
}

bool CppFunction::escapes(Value pointer) {
  for (OpOperand &use : pointer.getUses()) {
    Operation *user = use.getOwner();
    if (isAddress(user)
            ? escapes(user->getResult(0))
            : isa<CallOp, YieldOp, ReturnOp, CompareOp>(user) ||
                  (isa<StoreOp>(user) && use.getOperandNumber() == 0))
      return true;
  }
  return false;
}

Operation *CppFunction::rootOf(Value pointer) {
  Operation *op = pointer.getDefiningOp();
  while (op && isAddress(op))
    op = op->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<VariableOp>(op))
    return nullptr;
  auto [found, isNew] = escaping.try_emplace(op, false);
  if (isNew)
    found->second = escapes(op->getResult(0));
  return found->second ? nullptr : op;
}

/// The pointers that intrinsics read or write by.
template <typename Visit>
static void visitPointers(IntrinsicOp op, bool written, Visit visit) {
  const kernel::Intrinsic *intrinsic = IntrinsicTable::x86().find(op.getName());
  for (auto [number, operand] : llvm::enumerate(op.getOperands()))
    if (isa<PointerType>(operand.getType()) &&
        written == (intrinsic->store && intrinsic->store->parameter ==
                                            static_cast<int64_t>(number)))
      visit(operand);
}

CppFunction::Places CppFunction::writtenBy(Operation *root) {
  Places places;
  root->walk([&](Operation *op) {
    if (auto store = dyn_cast<StoreOp>(op))
      places.insert(rootOf(store.getPointer()));
    else if (auto copy = dyn_cast<CopyOp>(op))
      places.insert(rootOf(copy.getTo()));
    else if (isa<CallOp>(op))
      places.insert(nullptr);
    else if (auto intrinsic = dyn_cast<IntrinsicOp>(op))
      visitPointers(intrinsic, true,
                    [&](Value pointer) { places.insert(rootOf(pointer)); });
  });
  return places;
}

CppFunction::Places CppFunction::readBy(Operation *op) {
  Places places;
  if (auto load = dyn_cast<LoadOp>(op))
    places.insert(rootOf(load.getPointer()));
  else if (auto intrinsic = dyn_cast<IntrinsicOp>(op))
    visitPointers(intrinsic, false,
                  [&](Value pointer) { places.insert(rootOf(pointer)); });
  for (Value operand : op->getOperands())
    if (auto found = pending.find(operand); found != pending.end())
      places.insert_range(found->second.reads);
  return places;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::string CppFunction::makeName(StringRef wanted) {
  const std::string plain = cppName(wanted);
  std::string name = plain;
  for (int number = 2; types.isTaken(name) || !names.insert(name).second;
       ++number)
    name = plain + "_" + std::to_string(number);
  return name;
}

CppFunction::Expression CppFunction::get(Value value) {
  if (auto found = named.find(value); found != named.end())
    return found->second;
  return pending.find(value)->second.expression;
}

std::string CppFunction::text(Value value, Binding binding) {
  const Expression expression = get(value);
  return expression.binding > binding ? "(" + expression.text + ")"
                                      : expression.text;
}

std::string CppFunction::object(Value pointer, Binding binding) {
  const Expression expression = get(pointer);
  if (expression.object.empty()) {
    const std::string object = "*" + text(pointer, Binding::Unary);
    return binding < Binding::Unary ? "(" + object + ")" : object;
  }
  return expression.objectBinding > binding ? "(" + expression.object + ")"
                                            : expression.object;
}

void CppFunction::emit(Statements &statements, std::string text,
                       bool isExpression) {
  std::string remark = std::exchange(comments, "");
  isExpression &= remark.empty();
  statements.push_back({std::move(remark) + std::move(text), isExpression});
}

void CppFunction::nameValue(Value value, Statements &statements) {
  const Expression expression = pending.find(value)->second.expression;
  pending.erase(value);
  const std::string name = makeName("value");
  emit(statements,
       types.declare(value.getType(), name) + " = " + expression.text + ";\n",
       false);
  named[value] = {.text = name};
}

void CppFunction::nameReaders(const Places &written, Operation *before,
                              Statements &statements) {
  Block *block = before->getBlock();
  // What is not used any more is forgotten, so that this takes linear time.
  SmallVector<Value> rest;
  for (Value value : readers) {
    if (!pending.contains(value))
      continue;
    if (value.getParentBlock() != block) {
      rest.push_back(value);
      continue;
    }
    const bool isUsedLater =
        llvm::any_of(value.getUsers(), [&](Operation *user) {
          Operation *ancestor = block->findAncestorOpInBlock(*user);
          return ancestor &&
                 (ancestor == before ? before->getNumRegions() > 0
                                     : before->isBeforeInBlock(ancestor));
        });
    const bool isUsedNow = llvm::is_contained(value.getUsers(), before);
    if (!isUsedLater) {
      if (isUsedNow)
        rest.push_back(value);
      continue;
    }
    if (llvm::any_of(pending.find(value)->second.reads,
                     [&](Operation *each) { return written.contains(each); }))
      nameValue(value, statements);
    else
      rest.push_back(value);
  }
  readers = std::move(rest);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

std::string CppFunction::callText(StringRef name, OperandRange operands) {
  std::string arguments;
  for (Value operand : operands)
    arguments +=
        (arguments.empty() ? "" : ", ") + text(operand, Binding::Choice);
  return name.str() + "(" + arguments + ")";
}

static StringRef symbolOf(BinaryOperator kind) {
  static constexpr StringRef symbols[] = {"+", "-", "*", "/",  "%",
                                          "&", "|", "^", "<<", ">>"};
  return symbols[static_cast<size_t>(kind)];
}

static StringRef symbolOf(Comparison comparison) {
  static constexpr StringRef symbols[] = {"==", "!=", "<", "<=", ">", ">="};
  return symbols[static_cast<size_t>(comparison)];
}

/// The name of a function of <cmath>.
static std::string mathName(Function function) {
  return "std::" + stringifyFunction(function).str();
}

FailureOr<CppFunction::Expression> CppFunction::castExpression(CastOp cast) {
  Value operand = cast.getOperand();
  return Expression{.text = "(" + types.name(cast.getType()) + ")" +
                            text(operand, Binding::Unary),
                    .binding = Binding::Unary};
}

/// Whether the types that intrinsics have compute as `type` does: vectors of
/// integers are those of 64 bits there.
static bool hasOperators(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return !vector || vector.getElementType().isF32() ||
         vector.getElementType().isF64() ||
         vector.getElementType().isSignedInteger(64);
}

/// Whether C computes with `type` in more bits.
static bool isPromoted(Type type) {
  return isa<IntegerType>(type) && bitWidthOf(type) < 32;
}

FailureOr<CppFunction::Expression> CppFunction::expressionOf(Operation *op) {
  using Result = FailureOr<Expression>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp constant) -> Result {
        const std::string number =
            cppNumber(constant.getValue(), constant.getType(), types);
        const bool isPlain = llvm::isDigit(number.front());
        return Expression{.text = number,
                          .binding =
                              isPlain ? Binding::Primary : Binding::Unary};
      })
      .Case([&](AddressOp address) -> Result {
        const std::string name = types.symbol(address.getTable());
        return Expression{
            .text = "&" + name, .binding = Binding::Unary, .object = name};
      })
      .Case([&](LoadOp load) -> Result {
        const Expression pointer = get(load.getPointer());
        if (pointer.object.empty())
          return Expression{.text = object(load.getPointer()),
                            .binding = Binding::Unary};
        return Expression{.text = pointer.object,
                          .binding = pointer.objectBinding};
      })
      .Case([&](MemberOp member) -> Result {
        const Expression pointer = get(member.getStructure());
        const std::string name =
            (pointer.object.empty()
                 ? text(member.getStructure(), Binding::Primary) + "->"
                 : object(member.getStructure(), Binding::Primary) + ".") +
            cppName(member.getName());
        return Expression{
            .text = "&" + name, .binding = Binding::Unary, .object = name};
      })
      .Case([&](ElementsOp elements) -> Result {
        const std::string array = object(elements.getArray(), Binding::Primary);
        return Expression{.text = array, .object = array + "[0]"};
      })
      .Case([&](OffsetOp offset) -> Result {
        const std::string place =
            text(offset.getPointer(), Binding::Primary) + "[" +
            text(offset.getIndex(), Binding::Choice) + "]";
        return Expression{.text = text(offset.getPointer(), Binding::Unary) +
                                  " + " +
                                  text(offset.getIndex(), Binding::Unary),
                          .binding = Binding::Binary,
                          .object = place};
      })
      .Case([&](BinaryOp binary) -> Result {
        const Type type = binary.getType();
        if (!hasOperators(type))
          return op->emitOpError("of ")
                 << type << " has no operator in C++ that is as short";
        Expression made{.text = text(binary.getLhs(), Binding::Unary) + " " +
                                symbolOf(binary.getKind()).str() + " " +
                                text(binary.getRhs(), Binding::Unary),
                        .binding = Binding::Binary};
        if (isPromoted(type))
          made = {.text = "(" + types.name(type) + ")(" + made.text + ")",
                  .binding = Binding::Unary};
        return made;
      })
      .Case([&](UnaryOp unary) -> Result {
        const Type type = unary.getType();
        if (!hasOperators(type))
          return op->emitOpError("of ")
                 << type << " has no operator in C++ that is as short";
        // Two signs in a row are another operator.
        Expression made{
            .text = (unary.getKind() == UnaryOperator::Negate ? "-" : "~") +
                    text(unary.getOperand(), Binding::Primary),
            .binding = Binding::Unary};
        if (isPromoted(type))
          made.text = "(" + types.name(type) + ")" + made.text;
        return made;
      })
      .Case([&](CompareOp compare) -> Result {
        return Expression{.text = text(compare.getLhs(), Binding::Unary) + " " +
                                  symbolOf(compare.getComparison()).str() +
                                  " " + text(compare.getRhs(), Binding::Unary),
                          .binding = Binding::Binary};
      })
      .Case([&](CastOp cast) -> Result { return castExpression(cast); })
      .Case([&](BitcastOp cast) -> Result {
        if (types.name(cast.getType()) ==
            types.name(cast.getOperand().getType()))
          return get(cast.getOperand());
        if (isa<VectorType>(cast.getType()) &&
            isa<VectorType>(cast.getOperand().getType()) &&
            !isMask(cast.getType()) && !isMask(cast.getOperand().getType()))
          return Expression{.text = "(" + types.name(cast.getType()) + ")" +
                                    text(cast.getOperand(), Binding::Unary),
                            .binding = Binding::Unary};
        return Expression{
            .text = "__builtin_bit_cast(" + types.name(cast.getType()) + ", " +
                    text(cast.getOperand(), Binding::Choice) + ")"};
      })
      .Case([&](MathOp math) -> Result {
        return Expression{
            .text = callText(mathName(math.getFunction()), math.getOperands())};
      })
      .Case([&](IntrinsicOp intrinsic) -> Result {
        return Expression{
            .text = callText(intrinsic.getName(), intrinsic.getOperands())};
      })
      .Case([&](CallOp call) -> Result {
        return Expression{.text = callText(types.symbol(call.getCallee()),
                                           call.getOperands())};
      })
      .Default([](Operation *other) -> Result {
        return other->emitOpError("cannot be written as C++");
      });
}

FailureOr<CppFunction::Expression>
CppFunction::yielded(Block &block, Statements &statements) {
  auto yield = dyn_cast<YieldOp>(block.back());
  for (Operation &op : block)
    if (&op != yield && failed(writeOperation(&op, statements)))
      return failure();
  return get(yield.getValue());
}

FailureOr<CppFunction::Expression> CppFunction::asExpression(Block &block) {
  Statements statements;
  FailureOr<Expression> expression = yielded(block, statements);
  if (failed(expression) || statements.empty())
    return expression;
  std::string text = "[&] { ";
  for (const Statement &each : statements)
    text += each.text + (StringRef(each.text).ends_with("\n") ? "" : " ");
  return Expression{.text = text + "return " + expression->text + "; }()"};
}

/// The constant truth that `block` yields, if it does nothing else.
static std::optional<bool> constantTruth(Block &block) {
  auto yield = cast<YieldOp>(block.back());
  auto constant = yield.getValue().getDefiningOp<ConstantOp>();
  if (!constant || !constant.getType().isInteger(1) ||
      llvm::range_size(block) != 2)
    return std::nullopt;
  return !cast<IntegerAttr>(constant.getValue()).getValue().isZero();
}

LogicalResult CppFunction::writeConditional(ConditionalOp choice,
                                            Statements &statements) {
  // Its sides are computed where it is used, so what they read is, too.
  Places reads = readBy(choice);
  const Places written = writtenBy(choice);
  if (!written.empty())
    nameReaders(written, choice, statements);
  choice.walk([&](Operation *op) { reads.insert_range(readBy(op)); });
  FailureOr<Expression> then = asExpression(choice.getThen().front()),
                        otherwise = asExpression(choice.getOtherwise().front());
  if (failed(then) || failed(otherwise))
    return failure();
  const auto bound = [](const Expression &expression, Binding binding) {
    return expression.binding > binding ? "(" + expression.text + ")"
                                        : expression.text;
  };
  const std::string condition = text(choice.getCondition(), Binding::Unary);
  Expression made;
  if (constantTruth(choice.getOtherwise().front()) == false)
    made = {.text = condition + " && " + bound(*then, Binding::Unary),
            .binding = Binding::Binary};
  else if (constantTruth(choice.getThen().front()) == true)
    made = {.text = condition + " || " + bound(*otherwise, Binding::Unary),
            .binding = Binding::Binary};
  else
    made = {.text = condition + " ? " + bound(*then, Binding::Unary) + " : " +
                    bound(*otherwise, Binding::Unary),
            .binding = Binding::Choice};
  pending[choice.getResult()] = {made, reads};
  readers.push_back(choice.getResult());
  if (!written.empty() || !choice.getResult().hasOneUse())
    nameValue(choice.getResult(), statements);
  return success();
}

LogicalResult CppFunction::writeExpression(Operation *op,
                                           Statements &statements) {
  const Places written = writtenBy(op);
  if (!written.empty())
    nameReaders(written, op, statements);
  FailureOr<Expression> expression = expressionOf(op);
  if (failed(expression))
    return failure();
  if (op->getNumResults() == 0) {
    emit(statements, expression->text + ";\n", true);
    return success();
  }
  Value result = op->getResult(0);
  if (result.use_empty()) {
    if (!written.empty())
      emit(statements, expression->text + ";\n", true);
    return success();
  }
  pending[result] = {*expression, readBy(op)};
  if (!pending[result].reads.empty())
    readers.push_back(result);
  const bool isCheap =
      isa<ConstantOp, AddressOp>(op) || isAddress(op) ||
      (isa<LoadOp>(op) && expression->binding == Binding::Primary &&
       llvm::all_of(expression->text, [](char each) {
         return llvm::isAlnum(each) || each == '_';
       }));
  // What is computed with effects is computed once, and now.
  const bool isNext = result.hasOneUse() && op->getNextNode() &&
                      *result.user_begin() == op->getNextNode() &&
                      isa<StoreOp, ReturnOp>(op->getNextNode());
  if (written.empty() ? !isCheap && !result.hasOneUse() : !isNext)
    nameValue(result, statements);
  return success();
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void CppFunction::writeVariable(VariableOp variable, Statements &statements) {
  const std::string name = makeName(variable.getName());
  named[variable.getResult()] = {
      .text = "&" + name, .binding = Binding::Unary, .object = name};
  // It is declared where it gets its first value, if that is told here.
  Operation *first = nullptr;
  for (Operation *user : variable->getUsers()) {
    Operation *ancestor = variable->getBlock()->findAncestorOpInBlock(*user);
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  auto store = dyn_cast_if_present<StoreOp>(first);
  if (store && !variable.getAlignment() &&
      store.getPointer() == variable.getResult() &&
      store.getValue() != variable.getResult()) {
    declaring.insert(store);
    return;
  }
  const std::string alignment =
      variable.getAlignment()
          ? "alignas(" + std::to_string(*variable.getAlignment()) + ") "
          : "";
  emit(statements,
       alignment + types.declare(variable.getType().getObject(), name) + ";\n",
       false);
}

LogicalResult CppFunction::writeStore(StoreOp store, Statements &statements) {
  nameReaders(writtenBy(store), store, statements);
  const std::string value = text(store.getValue(), Binding::Choice);
  const std::string place = object(store.getPointer());
  if (!declaring.contains(store)) {
    emit(statements, place + " = " + value + ";\n", true);
    return success();
  }
  const std::string declaration =
      types.declare(store.getValue().getType(), place) + " = " + value;
  auto loop = dyn_cast_if_present<ForOp>(store->getNextNode());
  Value variable = store.getPointer();
  const bool isOfLoop =
      loop && llvm::all_of(variable.getUsers(), [&](Operation *user) {
        return user == store || loop->isProperAncestor(user);
      });
  // What the head of the loop says comes behind all that is said before.
  if (isOfLoop && comments.empty()) {
    loopInit = declaration;
    loopVariable = place;
  } else {
    emit(statements, declaration + ";\n", false);
  }
  return success();
}

/// `text`, of several lines, two columns to the right.
static std::string indent(StringRef text) {
  std::string indented;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    indented += (line.empty() ? "" : "  ") + line.str() + "\n";
    text = rest;
  }
  return indented;
}

FailureOr<std::string> CppFunction::braced(Block &block) {
  Statements statements;
  const llvm::StringSet<> outer = names;
  if (failed(writeBlock(block, statements)))
    return failure();
  names = outer;
  std::string text = "{\n";
  for (const Statement &each : statements)
    text += indent(each.text);
  return text + "}";
}

LogicalResult CppFunction::writeFor(ForOp loop, Statements &statements) {
  nameReaders(writtenBy(loop), loop, statements);
  const std::string init = std::exchange(loopInit, "");
  const std::string variable = loopVariable;
  std::string text = std::exchange(comments, "");
  FailureOr<Expression> condition = asExpression(loop.getCondition().front());
  Statements step;
  if (failed(condition) || failed(writeBlock(loop.getStep().front(), step)))
    return failure();
  FailureOr<std::string> body = braced(loop.getBody().front());
  if (failed(body))
    return failure();
  std::string stepText;
  if (llvm::all_of(step,
                   [](const Statement &each) { return each.isExpression; })) {
    for (const Statement &each : step)
      stepText += (stepText.empty() ? "" : ", ") +
                  StringRef(each.text).drop_back(2).str();
  } else {
    stepText = "[&] {\n";
    for (const Statement &each : step)
      stepText += indent(each.text);
    stepText += "}()";
  }
  if (loop.getUnroll())
    text += *loop.getUnroll() == 0
                ? "#pragma unroll\n"
                : "#pragma unroll " + std::to_string(*loop.getUnroll()) + "\n";
  if (init.empty() && stepText.empty())
    text += "while (" + condition->text + ") ";
  else
    text += "for (" + init + "; " + condition->text + ";" +
            (stepText.empty() ? "" : " ") + stepText + ") ";
  emit(statements, text + *body + "\n", false);
  if (!init.empty())
    names.erase(variable);
  return success();
}

LogicalResult CppFunction::writeIf(IfOp branch, Statements &statements) {
  nameReaders(writtenBy(branch), branch, statements);
  const std::string remark = std::exchange(comments, "");
  const std::string condition = text(branch.getCondition(), Binding::Choice);
  FailureOr<std::string> then = braced(branch.getThen().front());
  if (failed(then))
    return failure();
  std::string written = remark + "if (" + condition + ") " + *then;
  Block &otherwise = branch.getOtherwise().front();
  if (!otherwise.empty()) {
    FailureOr<std::string> text = braced(otherwise);
    if (failed(text))
      return failure();
    written += " else " + *text;
  }
  emit(statements, written + "\n", false);
  return success();
}

LogicalResult CppFunction::writeOperation(Operation *op,
                                          Statements &statements) {
  comments += commentOf(op->getLoc());
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](VariableOp variable) {
        writeVariable(variable, statements);
        return success();
      })
      .Case([&](StoreOp store) { return writeStore(store, statements); })
      .Case([&](CopyOp copy) {
        nameReaders(writtenBy(copy), copy, statements);
        const auto object = copy.getTo().getType().getObject();
        // C++ does not assign arrays.
        if (isa<ArrayType>(object)) {
          emit(statements,
               "std::memcpy(" + text(copy.getTo(), Binding::Choice) + ", " +
                   text(copy.getFrom(), Binding::Choice) + ", sizeof(" +
                   types.name(object) + "));\n",
               true);
          return success();
        }
        // Nor do types that alias nothing else reach other objects.
        const bool isCast = llvm::any_of(copy->getOperands(), [](Value each) {
          return isa_and_nonnull<CastOp>(each.getDefiningOp());
        });
        if (isCast)
          emit(statements,
               "std::memcpy(" + text(copy.getTo(), Binding::Choice) + ", " +
                   text(copy.getFrom(), Binding::Choice) + ", sizeof(" +
                   types.name(object) + "));\n",
               true);
        else
          emit(statements,
               this->object(copy.getTo()) + " = " +
                   this->object(copy.getFrom()) + ";\n",
               true);
        return success();
      })
      .Case([&](ConditionalOp choice) {
        return writeConditional(choice, statements);
      })
      .Case([&](ForOp loop) { return writeFor(loop, statements); })
      .Case([&](IfOp branch) { return writeIf(branch, statements); })
      .Case([&](DoOp loop) -> LogicalResult {
        nameReaders(writtenBy(loop), loop, statements);
        const std::string remark = std::exchange(comments, "");
        FailureOr<std::string> body = braced(loop.getBody().front());
        if (failed(body))
          return failure();
        FailureOr<Expression> condition =
            asExpression(loop.getCondition().front());
        if (failed(condition))
          return failure();
        emit(statements, "do " + *body + " while (" + condition->text + ");\n",
             false);
        return success();
      })
      .Case([&](BreakOp) {
        emit(statements, "break;\n", false);
        return success();
      })
      .Case([&](TrapOp) {
        emit(statements, "__builtin_trap();\n", false);
        return success();
      })
      .Case([&](ContinueOp) {
        emit(statements, "continue;\n", false);
        return success();
      })
      .Case([&](ReturnOp op) {
        emit(statements,
             op.getValue()
                 ? "return " + text(op.getValue(), Binding::Choice) + ";\n"
                 : "return;\n",
             false);
        return success();
      })
      .Default(
          [&](Operation *other) { return writeExpression(other, statements); });
}

LogicalResult CppFunction::writeBlock(Block &block, Statements &statements) {
  for (Operation &op : block)
    if (failed(writeOperation(&op, statements)))
      return failure();
  return success();
}

std::string CppFunction::head() {
  named.clear();
  names.clear();
  std::string arguments;
  for (BlockArgument argument : function.getBody().getArguments()) {
    auto location = dyn_cast<NameLoc>(argument.getLoc());
    const std::string name =
        makeName(location ? location.getName().getValue() : "argument");
    named[argument] = {.text = name};
    arguments += (arguments.empty() ? "" : ", ") +
                 types.declare(argument.getType(), name);
  }
  const ArrayRef<Type> results = function.getResultTypes();
  const bool isPublic = SymbolTable::getSymbolVisibility(function) ==
                        SymbolTable::Visibility::Public;
  return std::string(isPublic ? "extern \"C\" " : "static ") +
         types.declare(results.empty() ? Type() : results.front(),
                       types.symbol(function.getSymName())) +
         "(" + arguments + ")";
}

FailureOr<std::string> CppFunction::write() {
  const std::string heading = head();
  FailureOr<std::string> body = braced(function.getBody().front());
  if (failed(body))
    return failure();
  return commentOf(function.getLoc()) + heading + " " + *body + "\n";
}
