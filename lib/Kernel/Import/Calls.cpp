//===- Calls.cpp - The calls of a function --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionImporter.h"

#include "mlir/IR/Diagnostics.h"
#include "clang/AST/DeclCXX.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

/// The function of mathematics that `name` is, as C, C++ or compilers call it.
static std::optional<Function> mathNamed(StringRef name) {
  name.consume_front("__builtin_");
  if (name == "rint" || name == "rintf")
    return Function::RoundToEven;
  if (std::optional<Function> found = symbolizeFunction(name))
    return found;
  return name.consume_back("f") ? symbolizeFunction(name) : std::nullopt;
}

/// Whether `function` is of C's library or of namespace std.
static bool isOfLibrary(const clang::FunctionDecl *function) {
  return (function->isExternC() && !function->getDefinition()) ||
         function->isInStdNamespace() || function->getBuiltinID() != 0;
}

/// Calls that change nothing that a kernel computes.
static bool isHint(StringRef name) {
  return name == "__builtin_prefetch" || name == "_mm256_zeroupper" ||
         name == "_mm256_zeroall" || name == "__builtin_assume" ||
         name == "__builtin_unreachable";
}

FunctionImporter::Result
FunctionImporter::call(const clang::CallExpr *expression, Value result) {
  const clang::SourceLocation at = expression->getBeginLoc();
  const clang::FunctionDecl *callee = expression->getDirectCallee();
  if (!callee)
    return refuse(at, "calls of functions that are only known when they run");
  if (const auto *method = dyn_cast<clang::CXXMethodDecl>(callee)) {
    if (method->getParent()->isLambda()) {
      SmallVector<const clang::Expr *> arguments(expression->arguments());
      if (isa<clang::CXXOperatorCallExpr>(expression))
        arguments.erase(arguments.begin());
      return inlineCall(method, arguments, Value(), result, at);
    }
    if ((method->isCopyAssignmentOperator() ||
         method->isMoveAssignmentOperator()) &&
        method->isTrivial()) {
      Result from = objectPlace(expression->getArg(1));
      if (failed(from))
        return failure();
      Result to = place(expression->getArg(0));
      if (failed(to))
        return failure();
      CopyOp::create(builder, location(at), *from, *to);
      return to;
    }
  }
  const std::string name =
      callee->getIdentifier() ? callee->getName().str() : std::string();
  if (const Intrinsic *intrinsic = IntrinsicTable::x86().find(name))
    return callIntrinsic(*intrinsic, expression);
  if (std::optional<Result> known = callKnown(name, expression))
    return *known;
  if (!callee->getDefinition()) {
    module.emitError(at) << "kernels must not call '"
                         << callee->getNameAsString()
                         << "', which has no body here and is no intrinsic "
                            "that is known";
    return failure();
  }
  SmallVector<const clang::Expr *> arguments(expression->arguments());
  const clang::Expr *object = nullptr;
  if (const auto *method = dyn_cast<clang::CXXMethodDecl>(callee);
      method && method->isInstance()) {
    if (const auto *member = dyn_cast<clang::CXXMemberCallExpr>(expression)) {
      object = member->getImplicitObjectArgument();
    } else {
      object = arguments.front();
      arguments.erase(arguments.begin());
    }
    if (method->getParent()->isEmpty())
      object = nullptr;
  }
  // As C++17 has it: what is assigned is evaluated before what it is assigned
  // to.
  const auto *operation = dyn_cast<clang::CXXOperatorCallExpr>(expression);
  const bool isAssignment = operation && operation->isAssignmentOp();
  const auto evaluateObject = [&]() -> Result {
    if (!object)
      return Value();
    return object->getType()->isPointerType() ? value(object) : place(object);
  };
  return callFunction(callee, arguments, evaluateObject, isAssignment, result,
                      at);
}

FunctionImporter::Result
FunctionImporter::argument(const clang::Expr *expression) {
  if (!expression->getType()->isRecordType())
    return expression->isGLValue() ? place(expression) : value(expression);
  if (expression->isGLValue())
    return place(expression);
  FailureOr<Type> type = typeOf(expression);
  if (failed(type) || !*type)
    return failure();
  Value copy = makeVariable(expression->getBeginLoc(), "argument", *type);
  if (failed(initialize(copy, expression)))
    return failure();
  return copy;
}

FunctionImporter::Result FunctionImporter::callFunction(
    const clang::FunctionDecl *callee, ArrayRef<const clang::Expr *> arguments,
    llvm::function_ref<Result()> evaluateObject, bool objectLast, Value result,
    clang::SourceLocation at) {
  if (!callee->getDefinition())
    return refuse(at, llvm::Twine("calls of '") + callee->getNameAsString() +
                          "', which has no body here");
  if (llvm::any_of(callee->parameters(), [](const clang::ParmVarDecl *each) {
        const auto *record =
            each->getType().getNonReferenceType()->getAsCXXRecordDecl();
        return record && record->isLambda();
      })) {
    Result object = evaluateObject();
    return failed(object) ? object
                          : inlineCall(callee->getDefinition(), arguments,
                                       *object, result, at);
  }
  FailureOr<FuncOp> function = module.importFunction(callee);
  if (failed(function)) {
    mlir::emitRemark(module.location(at))
        << "'" << callee->getNameAsString() << "' is called here";
    return failure();
  }
  SmallVector<Value> operands;
  if (callee->getReturnType()->isRecordType()) {
    if (!result) {
      FailureOr<Type> type = module.importType(callee->getReturnType(), at);
      if (failed(type))
        return failure();
      result = makeVariable(at, "unused", *type);
    }
    operands.push_back(result);
  }
  const size_t first = operands.size();
  const auto addObject = [&]() -> LogicalResult {
    Result object = evaluateObject();
    if (failed(object))
      return failure();
    if (*object)
      operands.insert(operands.begin() + static_cast<ptrdiff_t>(first),
                      *object);
    return success();
  };
  if (!objectLast && failed(addObject()))
    return failure();
  for (const clang::Expr *each : arguments) {
    if (isWithoutObject(each->getType())) {
      if (each->HasSideEffects(module.ast))
        return refuse(each->getBeginLoc(),
                      "effects of arguments that have no members");
      continue;
    }
    Result given = argument(each);
    if (failed(given))
      return failure();
    operands.push_back(*given);
  }
  if (objectLast && failed(addObject()))
    return failure();
  const ArrayRef<Type> types = function->getArgumentTypes();
  if (types.size() != operands.size())
    return refuse(at, "calls of this kind");
  for (auto [operand, type] : llvm::zip_equal(operands, types))
    operand = convert(at, operand, type);
  auto made = CallOp::create(builder, location(at), function->getResultTypes(),
                             function->getSymName(), operands);
  return made.getResult() ? Result(made.getResult()) : Result(Value());
}

/// `expression` as it was before it became a pointer to anything.
static const clang::Expr *withoutPointerCasts(const clang::Expr *expression) {
  while (const auto *cast = dyn_cast<clang::ImplicitCastExpr>(expression)) {
    if (cast->getCastKind() != clang::CK_BitCast &&
        cast->getCastKind() != clang::CK_NoOp)
      break;
    expression = cast->getSubExpr();
  }
  return expression;
}

FunctionImporter::Result
FunctionImporter::callIntrinsic(const Intrinsic &intrinsic,
                                const clang::CallExpr *expression) {
  const clang::SourceLocation at = expression->getBeginLoc();
  if (expression->getNumArgs() != intrinsic.parameters.size())
    return refuse(at,
                  "calls with as many arguments of '" + intrinsic.name + "'");
  SmallVector<Value> operands;
  for (auto [argument, parameter] :
       llvm::zip_equal(expression->arguments(), intrinsic.parameters)) {
    const ParameterType &type = parameter.type;
    Type wanted = kernel::typeOf(type, builder.getContext());
    if (type.kind == ParameterType::Kind::Immediate) {
      const auto number = argument->getIntegerConstantExpr(module.ast);
      clang::Expr::EvalResult evaluated;
      if (!number && !argument->EvaluateAsInt(evaluated, module.ast))
        return refuse(argument->getBeginLoc(),
                      "a value that is not known as '" + parameter.name +
                          "' of '" + intrinsic.name + "'");
      const int64_t immediate =
          (number ? *number : evaluated.Val.getInt()).getExtValue();
      if (immediate < type.first || immediate > type.last)
        return refuse(argument->getBeginLoc(),
                      llvm::Twine(immediate) + " as '" + parameter.name +
                          "' of '" + intrinsic.name + "', which is between " +
                          llvm::Twine(type.first) + " and " +
                          llvm::Twine(type.last) + " where it is known");
      Result given = constant(argument->getBeginLoc(), wanted, immediate);
      operands.push_back(*given);
      continue;
    }
    // Pointers of any kind become those that headers differ about.
    Result given = value(type.kind == ParameterType::Kind::Pointer
                             ? withoutPointerCasts(argument)
                             : argument);
    if (failed(given))
      return failure();
    if (!areInterchangeable((*given).getType(), wanted))
      *given = convert(argument->getBeginLoc(), *given, wanted);
    operands.push_back(*given);
  }
  SmallVector<Type> results;
  if (intrinsic.result) {
    FailureOr<Type> type = typeOf(expression);
    if (failed(type))
      return failure();
    const bool isMask = intrinsic.result->kind == ParameterType::Kind::Mask;
    results.push_back(
        isMask ? kernel::typeOf(*intrinsic.result, builder.getContext())
               : *type);
  }
  auto made =
      IntrinsicOp::create(builder, location(at), results,
                          builder.getStringAttr(intrinsic.name), operands);
  if (!made.getResult())
    return Value();
  FailureOr<Type> type = typeOf(expression);
  return convert(at, made.getResult(), *type);
}

FunctionImporter::Result
FunctionImporter::callMath(Function function,
                           const clang::CallExpr *expression) {
  SmallVector<Value> operands;
  FailureOr<Type> type = typeOf(expression);
  if (failed(type))
    return failure();
  for (const clang::Expr *each : expression->arguments()) {
    // std::exp and the like take what they are given.
    Result given = value(each);
    if (failed(given))
      return failure();
    operands.push_back(convert(each->getBeginLoc(), *given, *type));
  }
  return Value(MathOp::create(builder, location(expression->getBeginLoc()),
                              *type, function, operands));
}

FunctionImporter::Result
FunctionImporter::copyMemory(const clang::CallExpr *expression) {
  const clang::SourceLocation at = expression->getBeginLoc();
  Result to = value(withoutPointerCasts(expression->getArg(0)));
  Result from = value(withoutPointerCasts(expression->getArg(1)));
  if (failed(to) || failed(from))
    return failure();
  clang::Expr::EvalResult size;
  if (!expression->getArg(2)->EvaluateAsInt(size, module.ast))
    return refuse(at, "copies of as many bytes as are not known");
  const Type target = cast<PointerType>((*to).getType()).getObject(),
             source = cast<PointerType>((*from).getType()).getObject();
  const std::optional<Layout> targetLayout = layoutOf(target),
                              sourceLayout = layoutOf(source);
  const int64_t bytes = size.Val.getInt().getExtValue();
  // The object that has as many bytes says what is read or written.
  Type object = targetLayout && targetLayout->size == bytes   ? target
                : sourceLayout && sourceLayout->size == bytes ? source
                                                              : Type();
  MLIRContext *context = builder.getContext();
  if (!object && (bytes < 1 || bytes > (int64_t{1} << 20)))
    return refuse(at, "copies of none or of more than 2^20 bytes");
  if (!object)
    object = ArrayType::get(context, bytes, builder.getIntegerType(8, false));
  CopyOp::create(
      builder, location(at),
      convert(
          at, *from,
          PointerType::get(context, object,
                           cast<PointerType>((*from).getType()).getIsConst())),
      convert(at, *to, PointerType::get(context, object, false)));
  return *to;
}

std::optional<FunctionImporter::Result>
FunctionImporter::largerOrSmaller(const clang::CallExpr *expression) {
  const clang::FunctionDecl *callee = expression->getDirectCallee();
  if (!callee || !callee->getIdentifier() || !callee->isInStdNamespace() ||
      expression->getNumArgs() != 2 ||
      !expression->getType()->isArithmeticType() ||
      !expression->getArg(1)->getType()->isArithmeticType())
    return std::nullopt;
  const bool larger = callee->getName() == "max";
  if (!larger && callee->getName() != "min")
    return std::nullopt;
  const clang::SourceLocation at = expression->getBeginLoc();
  Result first = place(expression->getArg(0));
  Result second = place(expression->getArg(1));
  if (failed(first) || failed(second))
    return Result(failure());
  *first = load(at, *first);
  *second = load(at, *second);
  // The first one where they are equal, or no numbers.
  Value less =
      CompareOp::create(builder, location(at), Comparison::Less,
                        larger ? *first : *second, larger ? *second : *first);
  auto choice =
      ConditionalOp::create(builder, location(at), (*first).getType(), less);
  for (auto [region, number] : {std::pair(&choice.getThen(), *second),
                                std::pair(&choice.getOtherwise(), *first)})
    if (failed(importInto(*region, [&, number = number] {
          YieldOp::create(builder, location(at), number);
          return success();
        })))
      return Result(failure());
  return Result(Value(choice.getResult()));
}

std::optional<FunctionImporter::Result>
FunctionImporter::callKnown(StringRef name, const clang::CallExpr *expression) {
  const clang::FunctionDecl *callee = expression->getDirectCallee();
  if (isHint(name)) {
    for (const clang::Expr *each : expression->arguments())
      if (each->HasSideEffects(module.ast))
        return Result(refuse(each->getBeginLoc(), "effects in hints"));
    return Result(Value());
  }
  if (callee->isNoReturn()) {
    TrapOp::create(builder, location(expression->getBeginLoc()));
    return Result(Value());
  }
  if (callee->isInStdNamespace() &&
      (name == "forward" || name == "move" || name == "as_const"))
    return place(expression->getArg(0));
  if (name == "__builtin_expect" || name == "__builtin_unpredictable" ||
      name == "__builtin_assume_aligned")
    return value(expression->getArg(0));
  if (!name.empty() && isOfLibrary(callee)) {
    if (name == "memcpy" || name == "__builtin_memcpy")
      return copyMemory(expression);
    if (const std::optional<Function> function = mathNamed(name);
        function && expression->getType()->isRealFloatingType())
      return callMath(*function, expression);
    // Infinity, and what else compilers know.
    if (expression->isPRValue() &&
        (callee->getBuiltinID() != 0 || callee->isConstexpr()))
      if (std::optional<Result> number = constantValue(expression))
        return number;
  }
  return std::nullopt;
}

/// Why lambdas of `record` cannot be inlined; empty if they can.
static std::string whyNotInlined(const clang::CXXRecordDecl *record) {
  const clang::CXXMethodDecl *call = record->getLambdaCallOperator();
  for (const clang::LambdaCapture &each : record->captures()) {
    if (each.getCaptureKind() == clang::LCK_StarThis)
      return "lambdas that copy their object";
    if (each.getCaptureKind() != clang::LCK_ByCopy)
      continue;
    if (!each.capturesVariable() || each.isPackExpansion())
      return "lambdas that copy other than variables";
    const auto *made = dyn_cast<clang::VarDecl>(each.getCapturedVar());
    if (made && made->isInitCapture())
      return "lambdas with variables of their own";
    if (call && !call->isConst())
      return "lambdas that change their copies";
  }
  return "";
}

LogicalResult FunctionImporter::makeLambda(const clang::Expr *lambda) {
  const clang::SourceLocation at = lambda->getBeginLoc();
  const auto *record =
      lambda->getType().getNonReferenceType()->getAsCXXRecordDecl();
  const clang::Expr *made = lambda->IgnoreUnlessSpelledInSource();
  if (!record || !record->isLambda())
    return success();
  const bool hasCopies =
      llvm::any_of(record->captures(), [](const clang::LambdaCapture &each) {
        return each.getCaptureKind() == clang::LCK_ByCopy;
      });
  if (!isa<clang::LambdaExpr>(made))
    return hasCopies && lambda->isPRValue()
               ? refuse(at, "copies of lambdas that have copies")
               : success();
  const std::string reason = whyNotInlined(record);
  if (!reason.empty())
    return refuse(at, reason);
  objectsOfLambdas[record] = self;
  // What they copy is what it is now, whatever it will be.
  auto &copies = captures[record];
  copies.clear();
  for (const clang::LambdaCapture &each : record->captures()) {
    if (!each.capturesVariable() || each.getCaptureKind() != clang::LCK_ByCopy)
      continue;
    const clang::ValueDecl *captured = each.getCapturedVar();
    auto found = places.find(captured);
    if (found == places.end())
      continue;
    auto pointer = cast<PointerType>(found->second.getType());
    Value copy = makeVariable(at, captured->getName(), pointer.getObject());
    CopyOp::create(builder, location(at), found->second, copy);
    copies.emplace_back(captured, copy);
  }
  return success();
}

FunctionImporter::Result FunctionImporter::inlineCall(
    const clang::FunctionDecl *callee, ArrayRef<const clang::Expr *> arguments,
    Value object, Value result, clang::SourceLocation at) {
  // Beyond that nobody wrote it.
  constexpr int64_t mostInlined = 4096;
  const auto *body = dyn_cast_or_null<clang::CompoundStmt>(callee->getBody());
  if (!body || callee->getNumParams() != arguments.size() ||
      isa<clang::CXXConstructorDecl>(callee))
    return refuse(at, "such calls of lambdas, or with them");
  if (callee->getReturnType()->isReferenceType())
    return refuse(at, "lambdas, or functions that take some, that return "
                      "references");
  if (++inlinedCalls > mostInlined)
    return refuse(at, "so many calls of lambdas");
  SmallVector<std::pair<const clang::ParmVarDecl *, Value>> passed;
  for (auto [parameter, given] :
       llvm::zip_equal(callee->parameters(), arguments)) {
    const clang::QualType type = parameter->getType();
    if (isWithoutObject(type)) {
      if (failed(makeLambda(given)))
        return failure();
      continue;
    }
    if (type->isReferenceType() || type->isRecordType()) {
      Result referred = argument(given);
      if (failed(referred))
        return failure();
      passed.emplace_back(parameter, *referred);
      continue;
    }
    Result number = value(given);
    if (failed(number))
      return failure();
    Value variable =
        makeVariable(at, parameter->getName(), (*number).getType());
    store(at, *number, variable);
    passed.emplace_back(parameter, variable);
  }
  if (!inlining.insert(callee).second)
    return refuse(at, "lambdas that call themselves");
  for (auto [parameter, place] : passed)
    places[parameter] = place;
  // Copies stand for what was copied, while the lambda runs.
  SmallVector<std::pair<const clang::ValueDecl *, Value>> outer;
  const auto *method = dyn_cast<clang::CXXMethodDecl>(callee);
  const bool isLambda = method && method->getParent()->isLambda();
  if (isLambda)
    for (auto [variable, copy] : captures.lookup(method->getParent())) {
      outer.emplace_back(variable, places.lookup(variable));
      places[variable] = copy;
    }
  // A lambda's object is that of the function it was made in.
  Value outerSelf = self;
  if (!isLambda)
    self = object;
  else if (auto found = objectsOfLambdas.find(method->getParent());
           found != objectsOfLambdas.end())
    self = found->second;
  std::optional<Inlined> around = std::exchange(
      inlined,
      Inlined{body->body_empty() ? nullptr : body->body_back(), result, {}});
  const LogicalResult imported = importCompound(body);
  Value given = inlined->value;
  inlined = around;
  self = outerSelf;
  inlining.erase(callee);
  for (auto [variable, pointer] : llvm::reverse(outer))
    if (pointer)
      places[variable] = pointer;
    else
      places.erase(variable);
  if (failed(imported))
    return failure();
  return given;
}
