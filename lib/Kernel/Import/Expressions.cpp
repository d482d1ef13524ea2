//===- Expressions.cpp - The expressions of a function --------------------===//
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

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

Value FunctionImporter::load(clang::SourceLocation place, Value pointer) {
  return LoadOp::create(builder, location(place), pointer);
}

void FunctionImporter::store(clang::SourceLocation place, Value value,
                             Value pointer) {
  StoreOp::create(builder, location(place), value, pointer);
}

Value FunctionImporter::convert(clang::SourceLocation place, Value value,
                                Type type) {
  if (value.getType() == type)
    return value;
  if (isa<VectorType>(value.getType()) && isa<VectorType>(type) &&
      !isMask(type) && !isMask(value.getType()))
    return BitcastOp::create(builder, location(place), type, value);
  return CastOp::create(builder, location(place), type, value);
}

FailureOr<Type> FunctionImporter::typeOf(const clang::Expr *expression) {
  return module.importType(expression->getType(), expression->getBeginLoc());
}

FunctionImporter::Result FunctionImporter::constant(clang::SourceLocation place,
                                                    Type type, int64_t number) {
  TypedAttr attribute;
  if (auto vector = dyn_cast<VectorType>(type)) {
    Attribute element =
        isa<FloatType>(vector.getElementType())
            ? Attribute(FloatAttr::get(vector.getElementType(),
                                       static_cast<double>(number)))
            : Attribute(IntegerAttr::get(vector.getElementType(),
                                         APInt(vector.getElementTypeBitWidth(),
                                               static_cast<uint64_t>(number),
                                               true, true)));
    attribute = SplatElementsAttr::get(vector, element);
  } else if (isa<FloatType>(type)) {
    attribute = FloatAttr::get(type, static_cast<double>(number));
  } else if (auto integer = dyn_cast<IntegerType>(type)) {
    attribute = IntegerAttr::get(
        type, APInt(integer.getWidth(), static_cast<uint64_t>(number),
                    /*isSigned=*/true, /*implicitTrunc=*/true));
  } else {
    return refuse(place, "null pointers");
  }
  return Value(ConstantOp::create(builder, location(place), attribute));
}

std::optional<FunctionImporter::Result>
FunctionImporter::constantValue(const clang::Expr *expression, StringRef name) {
  clang::Expr::EvalResult evaluated;
  if (expression->isValueDependent() || expression->containsErrors() ||
      !expression->EvaluateAsRValue(evaluated, module.ast) ||
      evaluated.HasSideEffects)
    return std::nullopt;
  const clang::APValue &number = evaluated.Val;
  if (!number.isInt() && !number.isFloat())
    return std::nullopt;
  FailureOr<Type> type = typeOf(expression);
  if (failed(type) || !*type)
    return Result(failure());
  Location at = location(expression->getBeginLoc());
  if (!name.empty())
    at = NameLoc::get(builder.getStringAttr(name), at);
  TypedAttr attribute;
  if (number.isInt() && isa<IntegerType>(*type))
    attribute = IntegerAttr::get(
        *type, number.getInt().extOrTrunc((*type).getIntOrFloatBitWidth()));
  else if (number.isFloat() && isa<FloatType>(*type))
    attribute = FloatAttr::get(*type, number.getFloat());
  else
    return std::nullopt;
  return Result(Value(ConstantOp::create(builder, at, attribute)));
}

FunctionImporter::Result FunctionImporter::offset(clang::SourceLocation place,
                                                  Value pointer, Value index,
                                                  bool backwards) {
  if (backwards) {
    Type wide = builder.getIntegerType(64, /*isSigned=*/true);
    index = UnaryOp::create(builder, location(place), UnaryOperator::Negate,
                            convert(place, index, wide));
  }
  return Value(OffsetOp::create(builder, location(place), pointer, index));
}

/// The operator of dialect kernel for C's; nothing if there is none.
static std::optional<BinaryOperator>
operatorOf(clang::BinaryOperatorKind kind) {
  switch (kind) {
  case clang::BO_Add:
    return BinaryOperator::Add;
  case clang::BO_Sub:
    return BinaryOperator::Subtract;
  case clang::BO_Mul:
    return BinaryOperator::Multiply;
  case clang::BO_Div:
    return BinaryOperator::Divide;
  case clang::BO_Rem:
    return BinaryOperator::Remainder;
  case clang::BO_And:
    return BinaryOperator::And;
  case clang::BO_Or:
    return BinaryOperator::Or;
  case clang::BO_Xor:
    return BinaryOperator::Xor;
  case clang::BO_Shl:
    return BinaryOperator::ShiftLeft;
  case clang::BO_Shr:
    return BinaryOperator::ShiftRight;
  default:
    return std::nullopt;
  }
}

static std::optional<Comparison> comparisonOf(clang::BinaryOperatorKind kind) {
  switch (kind) {
  case clang::BO_EQ:
    return Comparison::Equal;
  case clang::BO_NE:
    return Comparison::NotEqual;
  case clang::BO_LT:
    return Comparison::Less;
  case clang::BO_LE:
    return Comparison::LessEqual;
  case clang::BO_GT:
    return Comparison::Greater;
  case clang::BO_GE:
    return Comparison::GreaterEqual;
  default:
    return std::nullopt;
  }
}

FunctionImporter::Result
FunctionImporter::combine(clang::SourceLocation place,
                          clang::BinaryOperatorKind kind, Value lhs,
                          Value rhs) {
  const bool leftIsPointer = isa<PointerType>(lhs.getType());
  if (leftIsPointer || isa<PointerType>(rhs.getType())) {
    if (leftIsPointer && isa<PointerType>(rhs.getType()))
      return refuse(place, "differences of pointers");
    if (kind != clang::BO_Add && kind != clang::BO_Sub)
      return refuse(place, "such arithmetic of pointers");
    return leftIsPointer ? offset(place, lhs, rhs, kind == clang::BO_Sub)
                         : offset(place, rhs, lhs);
  }
  const std::optional<BinaryOperator> combiner = operatorOf(kind);
  if (!combiner || !isNumberOrVector(lhs.getType()))
    return refuse(place, llvm::Twine("the operator '") +
                             clang::BinaryOperator::getOpcodeStr(kind) +
                             "' of such operands");
  // What is shifted keeps its type.
  return Value(BinaryOp::create(builder, location(place), *combiner, lhs,
                                convert(place, rhs, lhs.getType())));
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

FunctionImporter::Result
FunctionImporter::memberPlace(Value structure, const clang::FieldDecl *member,
                              clang::SourceLocation at) {
  const auto pointer = cast<PointerType>(structure.getType());
  const auto type = dyn_cast<StructureType>(pointer.getObject());
  Type object = type ? type.getMember(kernel::nameOf(member)) : Type();
  if (!object)
    return refuse(at, "members of such objects");
  return Value(MemberOp::create(
      builder, location(at),
      PointerType::get(builder.getContext(), object, pointer.getIsConst()),
      structure, kernel::nameOf(member)));
}

FunctionImporter::Result
FunctionImporter::variablePlace(const clang::ValueDecl *variable,
                                const clang::Expr *expression) {
  if (auto found = places.find(variable); found != places.end())
    return found->second;
  const clang::SourceLocation place = expression->getBeginLoc();
  if (const auto *table = dyn_cast<clang::VarDecl>(variable)) {
    if (table->getType()->isArrayType()) {
      FailureOr<GlobalOp> global = module.importTable(table, place);
      if (failed(global))
        return failure();
      auto type =
          PointerType::get(builder.getContext(), global->getType(), true);
      return Value(AddressOp::create(builder, location(place), type,
                                     global->getSymName()));
    }
    // A known number that is referred to.
    if (auto number = constantValue(expression, table->getName())) {
      if (failed(*number))
        return failure();
      // For as long as the function runs.
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&op.getBody().front());
      Value known = builder.clone(*(**number).getDefiningOp())->getResult(0);
      Value copy = makeVariable(place, table->getName(), known.getType());
      store(place, known, copy);
      places[variable] = copy;
      return copy;
    }
  }
  return refuse(place, llvm::Twine("uses of '") + variable->getNameAsString() +
                           "', which is not in them");
}

FunctionImporter::Result
FunctionImporter::place(const clang::Expr *expression) {
  expression = expression->IgnoreParens();
  const clang::SourceLocation at = expression->getBeginLoc();
  if (const auto *name = dyn_cast<clang::DeclRefExpr>(expression))
    return variablePlace(name->getDecl(), expression);
  if (const auto *element = dyn_cast<clang::ArraySubscriptExpr>(expression)) {
    const clang::Expr *base = element->getBase();
    Value pointer;
    if (base->getType()->isVectorType()) {
      // A lane of a vector in memory.
      Result vector = place(base->IgnoreImpCasts());
      FailureOr<PointerType> lane = module.pointerTo(expression->getType(), at);
      if (failed(vector) || failed(lane))
        return failure();
      pointer = convert(at, *vector, *lane);
    } else {
      Result first = value(base);
      if (failed(first))
        return failure();
      pointer = *first;
    }
    Result index = value(element->getIdx());
    if (failed(index))
      return failure();
    return offset(at, pointer, *index);
  }
  if (const auto *member = dyn_cast<clang::MemberExpr>(expression)) {
    const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl());
    if (!field) {
      // A static member, known or a table.
      return variablePlace(member->getMemberDecl(), expression);
    }
    Result base =
        member->isArrow() ? value(member->getBase()) : place(member->getBase());
    if (failed(base))
      return failure();
    return memberPlace(*base, field, member->getMemberLoc());
  }
  if (const auto *unary = dyn_cast<clang::UnaryOperator>(expression)) {
    switch (unary->getOpcode()) {
    case clang::UO_Deref:
      return value(unary->getSubExpr());
    case clang::UO_Extension:
      return place(unary->getSubExpr());
    case clang::UO_PreInc:
    case clang::UO_PreDec: {
      Value to;
      return failed(count(unary, &to)) ? Result(failure()) : Result(to);
    }
    default:
      break;
    }
  }
  if (const auto *cast = dyn_cast<clang::CastExpr>(expression)) {
    switch (cast->getCastKind()) {
    case clang::CK_NoOp:
    case clang::CK_LValueBitCast:
    case clang::CK_UncheckedDerivedToBase:
    case clang::CK_DerivedToBase: {
      Result from = place(cast->getSubExpr());
      FailureOr<PointerType> type = module.pointerTo(cast->getType(), at);
      if (failed(from) || failed(type))
        return failure();
      return convert(at, *from, *type);
    }
    default:
      break;
    }
  }
  if (const auto *binary = dyn_cast<clang::BinaryOperator>(expression)) {
    if (binary->getOpcode() == clang::BO_Comma) {
      if (failed(importEffect(binary->getLHS())))
        return failure();
      return place(binary->getRHS());
    }
    if (binary->isAssignmentOp()) {
      const auto *combined = dyn_cast<clang::CompoundAssignOperator>(binary);
      Value to;
      if (failed(combined ? assignCombined(combined, &to)
                          : assign(binary, &to)))
        return failure();
      return to;
    }
  }
  if (isa<clang::CXXThisExpr>(expression))
    return self;
  if (const auto *choice = dyn_cast<clang::ConditionalOperator>(expression);
      choice && choice->isGLValue()) {
    FailureOr<PointerType> type = module.pointerTo(choice->getType(), at);
    return failed(type)
               ? Result(failure())
               : conditional(choice, *type, [&](const clang::Expr *side) {
                   return place(side);
                 });
  }
  if (const auto *literal = dyn_cast<clang::CompoundLiteralExpr>(expression)) {
    FailureOr<Type> type = typeOf(literal);
    if (failed(type) || !*type)
      return failure();
    Value variable = makeVariable(at, "literal", *type);
    if (failed(initialize(variable, literal->getInitializer())))
      return failure();
    return variable;
  }
  if (const auto *call = dyn_cast<clang::CallExpr>(expression);
      call && expression->isGLValue())
    return this->call(call);
  if (const auto *opaque = dyn_cast<clang::OpaqueValueExpr>(expression))
    return place(opaque->getSourceExpr());
  if (const auto *parameter =
          dyn_cast<clang::SubstNonTypeTemplateParmExpr>(expression))
    return place(parameter->getReplacement());
  if (expression->isPRValue() ||
      isa<clang::MaterializeTemporaryExpr, clang::ExprWithCleanups>(
          expression)) {
    // What has no place gets one.
    if (const auto *cleaned = dyn_cast<clang::ExprWithCleanups>(expression))
      return place(cleaned->getSubExpr());
    FailureOr<Type> type = typeOf(expression);
    if (failed(type) || !*type)
      return failure();
    Value variable = makeVariable(at, "temporary", *type);
    const auto *made = dyn_cast<clang::MaterializeTemporaryExpr>(expression);
    if (failed(initialize(variable, made ? made->getSubExpr() : expression)))
      return failure();
    return variable;
  }
  return refuse(at, llvm::Twine("an expression of this kind: ") +
                        expression->getStmtClassName());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

FunctionImporter::Result
FunctionImporter::truth(const clang::Expr *expression) {
  expression = expression->IgnoreParens();
  const clang::SourceLocation at = expression->getBeginLoc();
  if (const auto *binary = dyn_cast<clang::BinaryOperator>(expression)) {
    if (binary->isLogicalOp())
      return logicalValue(binary);
    if (const std::optional<Comparison> comparison =
            comparisonOf(binary->getOpcode())) {
      Result lhs = value(binary->getLHS());
      if (failed(lhs))
        return failure();
      Result rhs = value(binary->getRHS());
      if (failed(rhs))
        return failure();
      if (isa<VectorType>((*lhs).getType()))
        return refuse(at, "comparisons of whole vectors");
      return Value(CompareOp::create(
          builder, location(binary->getOperatorLoc()), *comparison, *lhs,
          convert(at, *rhs, (*lhs).getType())));
    }
  }
  if (const auto *unary = dyn_cast<clang::UnaryOperator>(expression);
      unary && unary->getOpcode() == clang::UO_LNot) {
    Result holds = truth(unary->getSubExpr());
    Result none = constant(at, builder.getI1Type(), 0);
    if (failed(holds) || failed(none))
      return failure();
    return Value(CompareOp::create(builder, location(at), Comparison::Equal,
                                   *holds, *none));
  }
  if (const auto *cast = dyn_cast<clang::CastExpr>(expression))
    switch (cast->getCastKind()) {
    case clang::CK_IntegralToBoolean:
    case clang::CK_FloatingToBoolean:
      return truth(cast->getSubExpr());
    case clang::CK_IntegralCast:
      // C's truths are integers, which are cast as such.
      if (cast->getSubExpr()->isKnownToHaveBooleanValue())
        return truth(cast->getSubExpr());
      break;
    default:
      break;
    }
  if (const auto *builtin = dyn_cast<clang::CallExpr>(expression))
    if (const clang::FunctionDecl *callee = builtin->getDirectCallee();
        callee && callee->getBuiltinID() != 0 &&
        (callee->getName() == "__builtin_expect" ||
         callee->getName() == "__builtin_unpredictable"))
      return truth(builtin->getArg(0));
  Result number = value(expression);
  if (failed(number))
    return failure();
  Type type = (*number).getType();
  if (type.isInteger(1))
    return number;
  Result zero = constant(at, type, 0);
  if (failed(zero))
    return failure();
  return Value(CompareOp::create(builder, location(at), Comparison::NotEqual,
                                 *number, *zero));
}

std::optional<bool> FunctionImporter::knownTruth(const clang::Expr *condition) {
  bool holds = false;
  if (condition->isValueDependent() || condition->HasSideEffects(module.ast) ||
      !condition->EvaluateAsBooleanCondition(holds, module.ast))
    return std::nullopt;
  return holds;
}

FunctionImporter::Result FunctionImporter::conditional(
    const clang::ConditionalOperator *choice, Type type,
    llvm::function_ref<Result(const clang::Expr *)> evaluate) {
  const clang::Expr *condition = choice->getCond();
  if (const std::optional<bool> holds = knownTruth(condition))
    return evaluate(*holds ? choice->getTrueExpr() : choice->getFalseExpr());
  Result decided = truth(condition);
  if (failed(decided))
    return failure();
  auto made = ConditionalOp::create(builder, location(choice->getQuestionLoc()),
                                    type, *decided);
  for (auto [region, side] :
       {std::pair(&made.getThen(), choice->getTrueExpr()),
        std::pair(&made.getOtherwise(), choice->getFalseExpr())})
    if (failed(importInto(*region, [&, side = side]() -> LogicalResult {
          Result given = evaluate(side);
          if (failed(given))
            return failure();
          if (!*given)
            return refuse(side->getBeginLoc(), "choices without a value");
          YieldOp::create(builder, location(side->getBeginLoc()),
                          convert(side->getBeginLoc(), *given, type));
          return success();
        })))
      return failure();
  return Value(made.getResult());
}

FunctionImporter::Result
FunctionImporter::logicalValue(const clang::BinaryOperator *expression) {
  const clang::SourceLocation at = expression->getOperatorLoc();
  Result first = truth(expression->getLHS());
  if (failed(first))
    return failure();
  const bool isAnd = expression->getOpcode() == clang::BO_LAnd;
  auto choice =
      ConditionalOp::create(builder, location(at), builder.getI1Type(), *first);
  const auto fill = [&](bool computes) -> LogicalResult {
    Result given = computes ? truth(expression->getRHS())
                            : constant(at, builder.getI1Type(), !isAnd);
    if (failed(given))
      return failure();
    YieldOp::create(builder, location(at), *given);
    return success();
  };
  if (failed(importInto(choice.getThen(), [&] { return fill(isAnd); })) ||
      failed(importInto(choice.getOtherwise(), [&] { return fill(!isAnd); })))
    return failure();
  return Value(choice.getResult());
}

/// Whether `expression`, an integer, is a pointer with bytes added to it.
static bool isPointerSum(const clang::Expr *expression) {
  expression = expression->IgnoreParenImpCasts();
  if (const auto *cast = dyn_cast<clang::CastExpr>(expression))
    return cast->getCastKind() == clang::CK_PointerToIntegral;
  const auto *sum = dyn_cast<clang::BinaryOperator>(expression);
  return sum &&
         ((sum->isAdditiveOp() && isPointerSum(sum->getLHS())) ||
          (sum->getOpcode() == clang::BO_Add && isPointerSum(sum->getRHS())));
}

FunctionImporter::Result
FunctionImporter::bytesFrom(const clang::Expr *expression) {
  expression = expression->IgnoreParenImpCasts();
  const clang::SourceLocation at = expression->getBeginLoc();
  if (const auto *cast = dyn_cast<clang::CastExpr>(expression)) {
    Result pointer = value(cast->getSubExpr());
    if (failed(pointer))
      return failure();
    const auto from = mlir::cast<PointerType>((*pointer).getType());
    return convert(at, *pointer,
                   PointerType::get(builder.getContext(),
                                    builder.getIntegerType(8, false),
                                    from.getIsConst()));
  }
  const auto *sum = mlir::cast<clang::BinaryOperator>(expression);
  const bool isFirst = isPointerSum(sum->getLHS());
  Result pointer = bytesFrom(isFirst ? sum->getLHS() : sum->getRHS());
  Result bytes = value(isFirst ? sum->getRHS() : sum->getLHS());
  if (failed(pointer) || failed(bytes))
    return failure();
  return offset(at, *pointer, *bytes, sum->getOpcode() == clang::BO_Sub);
}

FunctionImporter::Result
FunctionImporter::castValue(const clang::CastExpr *cast) {
  const clang::Expr *inner = cast->getSubExpr();
  const clang::SourceLocation at = cast->getBeginLoc();
  FailureOr<Type> type = FailureOr<Type>(Type());
  if (!cast->getType()->isVoidType()) {
    type = typeOf(cast);
    if (failed(type))
      return failure();
  }
  switch (cast->getCastKind()) {
  case clang::CK_LValueToRValue: {
    const auto *name = dyn_cast<clang::DeclRefExpr>(inner->IgnoreParens());
    if (name) {
      if (auto found = values.find(name->getDecl()); found != values.end())
        return found->second;
      if (!places.contains(name->getDecl()))
        if (auto number = constantValue(cast, name->getDecl()->getName()))
          return *number;
    }
    if (const auto *parameter =
            dyn_cast<clang::SubstNonTypeTemplateParmExpr>(inner))
      return value(parameter->getReplacement());
    if (!isValue(*type))
      return refuse(at, "such objects as values");
    const auto read = [&](const clang::Expr *of) -> Result {
      Result from = place(of);
      return failed(from) ? from : Result(load(of->getBeginLoc(), *from));
    };
    if (const auto *call = dyn_cast<clang::CallExpr>(inner->IgnoreParens()))
      if (std::optional<Result> chosen = largerOrSmaller(call))
        return *chosen;
    const auto *choice =
        dyn_cast<clang::ConditionalOperator>(inner->IgnoreParens());
    return choice ? conditional(choice, *type, read) : read(inner);
  }
  case clang::CK_ArrayToPointerDecay: {
    Result array = place(inner);
    if (failed(array))
      return failure();
    auto pointer = mlir::cast<PointerType>((*array).getType());
    auto object = dyn_cast<ArrayType>(pointer.getObject());
    if (!object)
      return refuse(at, "arrays of this kind");
    return Value(ElementsOp::create(builder, location(at),
                                    PointerType::get(builder.getContext(),
                                                     object.getElement(),
                                                     pointer.getIsConst()),
                                    *array));
  }
  case clang::CK_IntegralToBoolean:
  case clang::CK_FloatingToBoolean:
    return truth(inner);
  case clang::CK_PointerToBoolean:
  case clang::CK_NullToPointer:
    return refuse(at, "null pointers");
  case clang::CK_IntegralToPointer: {
    // Bytes are counted as an integer, and it is a pointer again.
    if (isPointerSum(inner)) {
      Result byte = bytesFrom(inner);
      return failed(byte) ? byte : Result(convert(at, *byte, *type));
    }
    return refuse(at, "pointers that are made of integers");
  }
  case clang::CK_PointerToIntegral:
    return refuse(at, "pointers that become integers");
  case clang::CK_NoOp:
  case clang::CK_BitCast:
  case clang::CK_DerivedToBase:
  case clang::CK_UncheckedDerivedToBase:
  case clang::CK_IntegralCast:
  case clang::CK_BooleanToSignedIntegral:
  case clang::CK_FloatingCast:
  case clang::CK_IntegralToFloating:
  case clang::CK_FloatingToIntegral: {
    Result from = value(inner);
    if (failed(from))
      return failure();
    const bool hasPointer = isa<PointerType>((*from).getType());
    if (hasPointer != isa<PointerType>(*type))
      return refuse(at, "pointers that become something else");
    return convert(at, *from, *type);
  }
  case clang::CK_ConstructorConversion:
  case clang::CK_UserDefinedConversion:
    return value(inner);
  case clang::CK_VectorSplat:
    return refuse(at, "numbers that become vectors by themselves");
  case clang::CK_ToVoid:
    if (failed(importEffect(inner)))
      return failure();
    return Value();
  default:
    return refuse(at, llvm::Twine("a conversion of this kind: ") +
                          cast->getCastKindName());
  }
}

FunctionImporter::Result
FunctionImporter::count(const clang::UnaryOperator *expression,
                        Value *counted) {
  const clang::SourceLocation at = expression->getOperatorLoc();
  Result to = place(expression->getSubExpr());
  if (failed(to))
    return failure();
  if (counted)
    *counted = *to;
  Value before = load(at, *to);
  Type type = before.getType();
  if (type.isInteger(1))
    return refuse(at, "truths that are counted");
  Result one = constant(
      at,
      isa<PointerType>(type) ? Type(builder.getIntegerType(32, true)) : type,
      1);
  if (failed(one))
    return failure();
  Result after =
      combine(at, expression->isIncrementOp() ? clang::BO_Add : clang::BO_Sub,
              before, *one);
  if (failed(after))
    return failure();
  store(at, *after, *to);
  return expression->isPrefix() ? *after : before;
}

FunctionImporter::Result
FunctionImporter::unaryValue(const clang::UnaryOperator *expression) {
  const clang::SourceLocation at = expression->getOperatorLoc();
  switch (expression->getOpcode()) {
  case clang::UO_PostInc:
  case clang::UO_PostDec:
  case clang::UO_PreInc:
  case clang::UO_PreDec:
    return count(expression);
  case clang::UO_AddrOf:
    return place(expression->getSubExpr());
  case clang::UO_Plus:
  case clang::UO_Extension:
    return value(expression->getSubExpr());
  case clang::UO_LNot: {
    Result holds = truth(expression);
    FailureOr<Type> type = typeOf(expression);
    if (failed(holds) || failed(type))
      return failure();
    return convert(at, *holds, *type);
  }
  case clang::UO_Minus:
  case clang::UO_Not: {
    Result operand = value(expression->getSubExpr());
    if (failed(operand))
      return failure();
    const auto kind = expression->getOpcode() == clang::UO_Minus
                          ? UnaryOperator::Negate
                          : UnaryOperator::Complement;
    return Value(UnaryOp::create(builder, location(at), kind, *operand));
  }
  default:
    return refuse(
        at, llvm::Twine("the operator '") +
                clang::UnaryOperator::getOpcodeStr(expression->getOpcode()) +
                "' as a value");
  }
}

FunctionImporter::Result
FunctionImporter::assign(const clang::BinaryOperator *expression,
                         Value *assigned) {
  const clang::SourceLocation at = expression->getOperatorLoc();
  const clang::Expr *rhs = expression->getRHS();
  // As C++17 has it, and C allows: what is assigned is evaluated first, and a
  // structure is complete before it is.
  Result from =
      expression->getType()->isRecordType() ? objectPlace(rhs) : value(rhs);
  if (failed(from))
    return failure();
  Result to = place(expression->getLHS());
  if (failed(to))
    return failure();
  if (assigned)
    *assigned = *to;
  if (expression->getType()->isRecordType()) {
    CopyOp::create(builder, location(at), *from, *to);
    return Value();
  }
  Value converted =
      convert(at, *from, mlir::cast<PointerType>((*to).getType()).getObject());
  store(at, converted, *to);
  return converted;
}

FunctionImporter::Result
FunctionImporter::objectPlace(const clang::Expr *expression) {
  const clang::Expr *plain = expression->IgnoreParens();
  if (const auto *cast = dyn_cast<clang::ImplicitCastExpr>(plain);
      cast && cast->getCastKind() == clang::CK_LValueToRValue)
    plain = cast->getSubExpr();
  if (plain->isGLValue() && !isa<clang::MaterializeTemporaryExpr>(plain))
    return place(plain);
  FailureOr<Type> type = typeOf(expression);
  if (failed(type))
    return failure();
  Value variable = makeVariable(expression->getBeginLoc(), "temporary", *type);
  if (failed(initialize(variable, expression)))
    return failure();
  return variable;
}

FunctionImporter::Result FunctionImporter::assignCombined(
    const clang::CompoundAssignOperator *expression, Value *assigned) {
  const clang::SourceLocation at = expression->getOperatorLoc();
  Result rhs = value(expression->getRHS());
  if (failed(rhs))
    return failure();
  Result to = place(expression->getLHS());
  if (failed(to))
    return failure();
  if (assigned)
    *assigned = *to;
  Value before = load(at, *to);
  FailureOr<Type> wide = before.getType();
  if (!isa<PointerType>(before.getType())) {
    wide = module.importType(expression->getComputationLHSType(), at);
    if (failed(wide))
      return failure();
  }
  Result after = combine(at,
                         clang::BinaryOperator::getOpForCompoundAssignment(
                             expression->getOpcode()),
                         convert(at, before, *wide), *rhs);
  if (failed(after))
    return failure();
  Value narrow = convert(at, *after, before.getType());
  store(at, narrow, *to);
  return narrow;
}

FunctionImporter::Result
FunctionImporter::binaryValue(const clang::BinaryOperator *expression) {
  const clang::SourceLocation at = expression->getOperatorLoc();
  if (expression->getOpcode() == clang::BO_Comma) {
    if (failed(importEffect(expression->getLHS())))
      return failure();
    return value(expression->getRHS());
  }
  if (const auto *combined =
          dyn_cast<clang::CompoundAssignOperator>(expression))
    return assignCombined(combined);
  if (expression->isAssignmentOp())
    return assign(expression);
  if (expression->isComparisonOp() || expression->isLogicalOp()) {
    Result holds = truth(expression);
    FailureOr<Type> type = typeOf(expression);
    if (failed(holds) || failed(type))
      return failure();
    return convert(at, *holds, *type);
  }
  Result lhs = value(expression->getLHS());
  if (failed(lhs))
    return failure();
  Result rhs = value(expression->getRHS());
  if (failed(rhs))
    return failure();
  return combine(at, expression->getOpcode(), *lhs, *rhs);
}

static bool hasReturn(const clang::Stmt *statement) {
  return statement && (isa<clang::ReturnStmt>(statement) ||
                       llvm::any_of(statement->children(), hasReturn));
}

FunctionImporter::Result
FunctionImporter::value(const clang::Expr *expression) {
  expression = expression->IgnoreParens();
  const clang::SourceLocation at = expression->getBeginLoc();
  if (const auto *cast = dyn_cast<clang::CastExpr>(expression))
    return castValue(cast);
  if (const auto *combined = dyn_cast<clang::BinaryOperator>(expression))
    return binaryValue(combined);
  if (const auto *unary = dyn_cast<clang::UnaryOperator>(expression))
    return unaryValue(unary);
  if (const auto *choice = dyn_cast<clang::ConditionalOperator>(expression)) {
    FailureOr<Type> type = typeOf(choice);
    return failed(type)
               ? Result(failure())
               : conditional(choice, *type, [&](const clang::Expr *side) {
                   return value(side);
                 });
  }
  if (const auto *call = dyn_cast<clang::CallExpr>(expression)) {
    return this->call(call);
  }
  if (const auto *cleaned = dyn_cast<clang::ExprWithCleanups>(expression))
    return value(cleaned->getSubExpr());
  if (const auto *known = dyn_cast<clang::ConstantExpr>(expression))
    return value(known->getSubExpr());
  if (const auto *parameter =
          dyn_cast<clang::SubstNonTypeTemplateParmExpr>(expression)) {
    if (auto number = constantValue(parameter->getReplacement(),
                                    parameter->getParameter()->getName()))
      return *number;
    return value(parameter->getReplacement());
  }
  if (const auto *bound = dyn_cast<clang::CXXBindTemporaryExpr>(expression))
    return value(bound->getSubExpr());
  if (const auto *init = dyn_cast<clang::CXXDefaultArgExpr>(expression))
    return value(init->getExpr());
  if (const auto *init = dyn_cast<clang::CXXDefaultInitExpr>(expression))
    return value(init->getExpr());
  if (const auto *block = dyn_cast<clang::StmtExpr>(expression)) {
    const clang::CompoundStmt *compound = block->getSubStmt();
    if (hasReturn(compound))
      return refuse(at, "an expression that returns");
    for (const clang::Stmt *each : compound->body()) {
      if (each != compound->body_back()) {
        if (failed(importStatement(each)))
          return failure();
        continue;
      }
      if (const auto *last = dyn_cast<clang::Expr>(each))
        return expression->getType()->isVoidType()
                   ? (failed(importEffect(last)) ? Result(failure())
                                                 : Result(Value()))
                   : value(last);
      if (failed(importStatement(each)))
        return failure();
    }
    return Value();
  }
  if (const auto *list = dyn_cast<clang::InitListExpr>(expression)) {
    if (list->getNumInits() == 1 && !expression->getType()->isVectorType())
      return value(list->getInit(0));
    FailureOr<Type> type = typeOf(list);
    if (failed(type))
      return failure();
    bool isZero = true;
    for (const clang::Expr *each : list->inits()) {
      clang::Expr::EvalResult evaluated;
      isZero &=
          isa<clang::ImplicitValueInitExpr>(each) ||
          (each->EvaluateAsRValue(evaluated, module.ast) &&
           ((evaluated.Val.isInt() && evaluated.Val.getInt() == 0) ||
            (evaluated.Val.isFloat() && evaluated.Val.getFloat().isPosZero())));
    }
    if (isZero)
      return constant(at, *type, 0);
    // Lane by lane, in memory.
    auto vector = dyn_cast<VectorType>(*type);
    if (!vector)
      return refuse(at, "such lists of values");
    Value variable = makeVariable(at, "lanes", vector);
    Result none = constant(at, vector, 0);
    if (failed(none))
      return failure();
    store(at, *none, variable);
    Value lanes = convert(
        at, variable,
        PointerType::get(builder.getContext(), vector.getElementType(), false));
    for (auto [number, each] : llvm::enumerate(list->inits())) {
      Result index = constant(at, builder.getIntegerType(32, true),
                              static_cast<int64_t>(number));
      Result lane = value(each);
      if (failed(index) || failed(lane))
        return failure();
      Result to = offset(at, lanes, *index);
      if (failed(to))
        return failure();
      store(at, *lane, *to);
    }
    return load(at, variable);
  }
  if (isa<clang::ImplicitValueInitExpr, clang::CXXScalarValueInitExpr>(
          expression)) {
    FailureOr<Type> type = typeOf(expression);
    return failed(type) ? Result(failure()) : constant(at, *type, 0);
  }
  if (isa<clang::CXXThisExpr>(expression))
    return self ? Result(self)
                : Result(refuse(at, "objects of classes without members"));
  // Literals, sizes, enumerators and what else is known.
  StringRef name;
  if (const auto *used = dyn_cast<clang::DeclRefExpr>(expression))
    name = used->getDecl()->getName();
  if (auto number = constantValue(expression, name))
    return *number;
  if (expression->isGLValue()) {
    Result from = place(expression);
    return failed(from) ? Result(failure()) : Result(load(at, *from));
  }
  return refuse(at, llvm::Twine("an expression of this kind: ") +
                        expression->getStmtClassName());
}

LogicalResult FunctionImporter::importEffect(const clang::Expr *expression) {
  expression = expression->IgnoreParens();
  if (const auto *cast = dyn_cast<clang::CastExpr>(expression);
      cast && cast->getCastKind() == clang::CK_ToVoid)
    return importEffect(cast->getSubExpr());
  if (const auto *cleaned = dyn_cast<clang::ExprWithCleanups>(expression))
    return importEffect(cleaned->getSubExpr());
  if (const auto *binary = dyn_cast<clang::BinaryOperator>(expression);
      binary && binary->isAssignmentOp())
    return LogicalResult(binaryValue(binary));
  // Named alone, so that compilers do not warn.
  if (isa<clang::DeclRefExpr>(expression) ||
      isa<clang::IntegerLiteral>(expression))
    return success();
  if (const auto *cast = dyn_cast<clang::ImplicitCastExpr>(expression))
    return importEffect(cast->getSubExpr());
  if (const auto *choice = dyn_cast<clang::ConditionalOperator>(expression)) {
    if (const std::optional<bool> holds = knownTruth(choice->getCond()))
      return importEffect(*holds ? choice->getTrueExpr()
                                 : choice->getFalseExpr());
    if (choice->getType()->isVoidType()) {
      Result decided = truth(choice->getCond());
      if (failed(decided))
        return failure();
      auto branch =
          IfOp::create(builder, location(choice->getQuestionLoc()), *decided);
      if (failed(importInto(
              branch.getThen(),
              [&] { return importEffect(choice->getTrueExpr()); })) ||
          failed(importInto(branch.getOtherwise(), [&] {
            return importEffect(choice->getFalseExpr());
          })))
        return failure();
      return success();
    }
  }
  if (const auto *comma = dyn_cast<clang::BinaryOperator>(expression);
      comma && comma->getOpcode() == clang::BO_Comma) {
    if (failed(importEffect(comma->getLHS())))
      return failure();
    return importEffect(comma->getRHS());
  }
  if (const auto *call = dyn_cast<clang::CallExpr>(expression)) {
    Value result;
    if (call->getType()->isRecordType() && call->isPRValue()) {
      FailureOr<Type> type = typeOf(call);
      if (failed(type) || !*type)
        return failure();
      result = makeVariable(call->getBeginLoc(), "unused", *type);
    }
    return LogicalResult(this->call(call, result));
  }
  if (expression->getType()->isRecordType() || expression->isGLValue())
    return LogicalResult(place(expression));
  return LogicalResult(value(expression));
}
