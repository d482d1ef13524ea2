//===- Objects.cpp - Values of arrays, structures and classes -------------===//
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

/// Elements that a function sets one by one: more are no lists that somebody
/// wrote.
static constexpr int64_t mostListed = 65536;

LogicalResult FunctionImporter::initializeZero(Value to, clang::QualType type,
                                               clang::SourceLocation at) {
  auto pointer = cast<PointerType>(to.getType());
  if (auto array = dyn_cast<ArrayType>(pointer.getObject())) {
    if ((listed += array.getSize()) > mostListed)
      return refuse(at, "arrays of so many elements that are set");
    Value first = ElementsOp::create(
        builder, location(at),
        PointerType::get(builder.getContext(), array.getElement(), false), to);
    const clang::QualType element =
        module.ast.getAsArrayType(type)->getElementType();
    for (int64_t i = 0; i < array.getSize(); ++i) {
      Result index = constant(at, builder.getIntegerType(32, true), i);
      Result each = offset(at, first, *index);
      if (failed(each) || failed(initializeZero(*each, element, at)))
        return failure();
    }
    return success();
  }
  if (isa<StructureType>(pointer.getObject())) {
    for (const clang::FieldDecl *each : type->getAsRecordDecl()->fields()) {
      Result member = memberPlace(to, each, at);
      if (failed(member) ||
          failed(initializeZero(*member, each->getType(), at)))
        return failure();
      if (type->isUnionType())
        break;
    }
    return success();
  }
  Result zero = constant(at, pointer.getObject(), 0);
  if (failed(zero))
    return failure();
  store(at, *zero, to);
  return success();
}

LogicalResult
FunctionImporter::initializeList(Value to, const clang::InitListExpr *list) {
  const clang::SourceLocation at = list->getBeginLoc();
  auto pointer = cast<PointerType>(to.getType());
  if (auto array = dyn_cast<ArrayType>(pointer.getObject())) {
    if ((listed += array.getSize()) > mostListed)
      return refuse(at, "arrays of so many elements that are set");
    const clang::QualType element =
        module.ast.getAsArrayType(list->getType())->getElementType();
    Value first = ElementsOp::create(
        builder, location(at),
        PointerType::get(builder.getContext(), array.getElement(), false), to);
    for (int64_t i = 0; i < array.getSize(); ++i) {
      Result index = constant(at, builder.getIntegerType(32, true), i);
      if (failed(index))
        return failure();
      Result each = offset(at, first, *index);
      if (failed(each))
        return failure();
      const bool isListed = i < static_cast<int64_t>(list->getNumInits());
      const clang::Expr *init = isListed
                                    ? list->getInit(static_cast<unsigned>(i))
                                    : list->getArrayFiller();
      const LogicalResult set = init && !isa<clang::ImplicitValueInitExpr>(init)
                                    ? initialize(*each, init)
                                    : initializeZero(*each, element, at);
      if (failed(set))
        return failure();
    }
    return success();
  }
  const clang::RecordDecl *record = list->getType()->getAsRecordDecl();
  if (const auto *derived = dyn_cast<clang::CXXRecordDecl>(record);
      derived && derived->getNumBases() > 0)
    return refuse(at, "lists of values for classes with bases");
  unsigned next = 0;
  for (const clang::FieldDecl *each : record->fields()) {
    if (record->isUnion() && each != list->getInitializedFieldInUnion())
      continue;
    Result member = memberPlace(to, each, at);
    if (failed(member))
      return failure();
    // What members are by default is told of this object.
    Value outer = std::exchange(self, to);
    if (next < list->getNumInits() &&
        !isa<clang::CXXDefaultInitExpr>(list->getInit(next)))
      self = outer;
    const LogicalResult set =
        next < list->getNumInits()
            ? initialize(*member, list->getInit(next))
            : initializeZero(*member, each->getType(), at);
    self = outer;
    ++next;
    if (failed(set))
      return failure();
  }
  return success();
}

LogicalResult FunctionImporter::construct(
    Value to, const clang::CXXConstructorDecl *constructor,
    ArrayRef<const clang::Expr *> arguments, clang::SourceLocation at) {
  auto array = dyn_cast<ArrayType>(cast<PointerType>(to.getType()).getObject());
  if (!array)
    return LogicalResult(callFunction(
        constructor, arguments, [&]() -> Result { return to; },
        /*objectLast=*/false, Value(), at));
  if ((listed += array.getSize()) > mostListed)
    return refuse(at, "arrays of so many elements that are set");
  Value first = ElementsOp::create(
      builder, location(at),
      PointerType::get(builder.getContext(), array.getElement(), false), to);
  for (int64_t i = 0; i < array.getSize(); ++i) {
    Result index = constant(at, builder.getIntegerType(32, true), i);
    Result each = offset(at, first, *index);
    if (failed(each) || failed(construct(*each, constructor, arguments, at)))
      return failure();
  }
  return success();
}

LogicalResult FunctionImporter::initialize(Value to,
                                           const clang::Expr *initializer) {
  initializer = initializer->IgnoreParens();
  const clang::QualType type = initializer->getType();
  const clang::SourceLocation at = initializer->getBeginLoc();
  auto pointer = cast<PointerType>(to.getType());
  // A member of a const object is written once, here.
  if (pointer.getIsConst())
    to = convert(
        at, to,
        PointerType::get(builder.getContext(), pointer.getObject(), false));
  if (!type->isRecordType() && !type->isArrayType()) {
    Result given =
        type->isReferenceType() ? place(initializer) : value(initializer);
    if (failed(given))
      return failure();
    if (!*given)
      return refuse(at, "values of expressions that have none");
    store(at, convert(at, *given, pointer.getObject()), to);
    return success();
  }
  if (const auto *list = dyn_cast<clang::InitListExpr>(initializer)) {
    if (list->isTransparent())
      return initialize(to, list->getInit(0));
    return initializeList(to, list);
  }
  if (isa<clang::ImplicitValueInitExpr, clang::CXXScalarValueInitExpr>(
          initializer))
    return initializeZero(to, type, at);
  if (const auto *cleaned = dyn_cast<clang::ExprWithCleanups>(initializer))
    return initialize(to, cleaned->getSubExpr());
  if (const auto *made = dyn_cast<clang::MaterializeTemporaryExpr>(initializer))
    return initialize(to, made->getSubExpr());
  if (const auto *bound = dyn_cast<clang::CXXBindTemporaryExpr>(initializer))
    return initialize(to, bound->getSubExpr());
  if (const auto *init = dyn_cast<clang::CXXDefaultInitExpr>(initializer))
    return initialize(to, init->getExpr());
  if (const auto *init = dyn_cast<clang::CXXDefaultArgExpr>(initializer))
    return initialize(to, init->getExpr());
  if (const auto *literal = dyn_cast<clang::CompoundLiteralExpr>(initializer))
    return initialize(to, literal->getInitializer());
  if (const auto *made = dyn_cast<clang::CXXConstructExpr>(initializer)) {
    const clang::CXXConstructorDecl *constructor = made->getConstructor();
    if (constructor->isCopyOrMoveConstructor() &&
        (constructor->isTrivial() || made->isElidable()))
      return initialize(to, made->getArg(0));
    if (made->requiresZeroInitialization() &&
        failed(initializeZero(to, type, at)))
      return failure();
    if (constructor->isTrivial())
      return success();
    SmallVector<const clang::Expr *> arguments(
        made->getArgs(), made->getArgs() + made->getNumArgs());
    return construct(to, constructor, arguments, at);
  }
  if (const auto *call = dyn_cast<clang::CallExpr>(initializer);
      call && call->isPRValue())
    return LogicalResult(this->call(call, to));
  if (const auto *cast = dyn_cast<clang::CastExpr>(initializer)) {
    switch (cast->getCastKind()) {
    case clang::CK_ConstructorConversion:
    case clang::CK_UserDefinedConversion:
    case clang::CK_NoOp:
    case clang::CK_LValueToRValue:
      return initialize(to, cast->getSubExpr());
    default:
      break;
    }
  }
  if (const auto *choice = dyn_cast<clang::ConditionalOperator>(initializer)) {
    Result decided = truth(choice->getCond());
    if (failed(decided))
      return failure();
    auto branch = IfOp::create(builder, location(at), *decided);
    if (failed(importInto(
            branch.getThen(),
            [&] { return initialize(to, choice->getTrueExpr()); })) ||
        failed(importInto(branch.getOtherwise(), [&] {
          return initialize(to, choice->getFalseExpr());
        })))
      return failure();
    return success();
  }
  if (initializer->isGLValue()) {
    Result from = place(initializer);
    if (failed(from))
      return failure();
    CopyOp::create(builder, location(at), *from, to);
    return success();
  }
  return refuse(at, llvm::Twine("an initial value of this kind: ") +
                        initializer->getStmtClassName());
}
