//===- ModuleImporter.cpp - What all functions of a file share ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModuleImporter.h"

#include "FunctionImporter.h"

#include "mlir/IR/Diagnostics.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/RawCommentList.h"
#include "clang/AST/RecordLayout.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

Location ModuleImporter::location(clang::SourceLocation place) {
  const clang::PresumedLoc presumed =
      ast.getSourceManager().getPresumedLoc(place);
  if (presumed.isInvalid())
    return builder.getUnknownLoc();
  return FileLineColLoc::get(builder.getContext(), presumed.getFilename(),
                             presumed.getLine(), presumed.getColumn());
}

std::string kernel::plainText(StringRef comment) {
  std::string text;
  SmallVector<StringRef> lines;
  comment.split(lines, '\n');
  for (StringRef line : lines) {
    line = line.trim();
    for (StringRef mark : {"///<", "///", "//", "/**", "/*", "*"})
      if (line.consume_front(mark))
        break;
    line.consume_back("*/");
    line = line.trim();
    if (line.empty())
      continue;
    text += (text.empty() ? "" : "\n") + line.str();
  }
  return text;
}

InFlightDiagnostic ModuleImporter::emitError(clang::SourceLocation place) {
  return mlir::emitError(location(place));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::string kernel::nameOf(const clang::FieldDecl *member) {
  if (!member->getName().empty())
    return member->getName().str();
  return "unnamed" + std::to_string(member->getFieldIndex());
}

bool kernel::isWithoutObject(clang::QualType type) {
  const auto *record = type.getNonReferenceType()->getAsCXXRecordDecl();
  return record &&
         (record->isLambda() || (record->hasDefinition() && record->isEmpty()));
}

FailureOr<Type> ModuleImporter::importType(clang::QualType type,
                                           clang::SourceLocation place) {
  type = type.getCanonicalType().getUnqualifiedType();
  MLIRContext *context = builder.getContext();
  if (const auto *enumeration = type->getAs<clang::EnumType>()) {
    const clang::QualType integer = enumeration->getDecl()->getIntegerType();
    if (!integer.isNull())
      return importType(integer, place);
  }
  if (type->isBooleanType())
    return Type(builder.getI1Type());
  if (type->isIntegerType() && !type->isBitIntType()) {
    const uint64_t bits = ast.getTypeSize(type);
    if (bits <= 64)
      return Type(IntegerType::get(context, static_cast<unsigned>(bits),
                                   type->isSignedIntegerType()
                                       ? IntegerType::Signed
                                       : IntegerType::Unsigned));
  }
  if (const auto *simple = type->getAs<clang::BuiltinType>()) {
    switch (simple->getKind()) {
    case clang::BuiltinType::Float:
      return Type(builder.getF32Type());
    case clang::BuiltinType::Double:
      return Type(builder.getF64Type());
    case clang::BuiltinType::Float16:
    case clang::BuiltinType::Half:
      return Type(builder.getF16Type());
    case clang::BuiltinType::BFloat16:
      return Type(builder.getBF16Type());
    default:
      break;
    }
  }
  if (const auto *vector = type->getAs<clang::VectorType>()) {
    FailureOr<Type> element = importType(vector->getElementType(), place);
    if (failed(element))
      return failure();
    return Type(VectorType::get(vector->getNumElements(), *element));
  }
  if (type->isPointerType() || type->isReferenceType()) {
    FailureOr<PointerType> pointer = pointerTo(type->getPointeeType(), place);
    if (failed(pointer))
      return failure();
    return Type(*pointer);
  }
  if (const auto *array = ast.getAsConstantArrayType(type)) {
    FailureOr<Type> element = importType(array->getElementType(), place);
    if (failed(element) || !*element)
      return failure();
    auto imported = ArrayType::getChecked(
        [&] { return emitError(place); }, context,
        static_cast<int64_t>(array->getZExtSize()), *element);
    if (!imported)
      return failure();
    if (!layoutOf(imported)) {
      emitError(place) << "kernels must not have arrays of more than 2^40 "
                          "bytes";
      return failure();
    }
    return Type(imported);
  }
  if (const auto *record = type->getAsRecordDecl())
    return importRecord(record, place);
  emitError(place) << "kernels must not have values of type '"
                   << type.getAsString() << "'";
  return failure();
}

FailureOr<PointerType> ModuleImporter::pointerTo(clang::QualType type,
                                                 clang::SourceLocation place) {
  const bool isConst =
      type.isConstQualified() ||
      (type->isArrayType() && ast.getBaseElementType(type).isConstQualified());
  // Bytes of anything, as C allows to read them.
  Type object =
      IntegerType::get(builder.getContext(), 8, IntegerType::Unsigned);
  if (!type->isVoidType()) {
    FailureOr<Type> imported = importType(type, place);
    if (failed(imported) || !*imported)
      return failure();
    object = *imported;
    if (isa<VectorType>(object) &&
        ast.getTypeAlign(type) < ast.getTypeSize(type)) {
      emitError(place)
          << "kernels must not have vectors in memory that are not "
             "aligned as such; intrinsics read those";
      return failure();
    }
  }
  return PointerType::get(builder.getContext(), object, isConst);
}

FailureOr<Type> ModuleImporter::importRecord(const clang::RecordDecl *record,
                                             clang::SourceLocation place) {
  record = record->getDefinition();
  const auto refuse = [&](const llvm::Twine &what) {
    emitError(place) << "kernels must not have " << what;
    return failure();
  };
  if (!record)
    return refuse("objects of types that are only declared");
  if (auto found = records.find(record); found != records.end())
    return found->second;
  if (!outerRecords.insert(record))
    return refuse("structures that point to their own kind");
  const llvm::scope_exit leave([&] { outerRecords.remove(record); });
  if (const auto *cxx = dyn_cast<clang::CXXRecordDecl>(record)) {
    if (cxx->isPolymorphic() || cxx->getNumVBases() > 0)
      return refuse("classes with virtual functions");
    if (!cxx->hasTrivialDestructor())
      return refuse("classes with destructors");
  }
  SmallVector<StringAttr> members;
  SmallVector<Type> types;
  // A class that another one derives from is its first member.
  if (const auto *cxx = dyn_cast<clang::CXXRecordDecl>(record))
    for (const clang::CXXBaseSpecifier &base : cxx->bases()) {
      if (base.getType()->getAsCXXRecordDecl()->isEmpty())
        continue;
      if (!members.empty())
        return refuse("classes that derive from several");
      FailureOr<Type> type = importType(base.getType(), place);
      if (failed(type))
        return failure();
      members.push_back(
          builder.getStringAttr("base" + std::to_string(members.size())));
      types.push_back(*type);
    }
  for (const clang::FieldDecl *member : record->fields()) {
    if (member->isBitField())
      return refuse("members of single bits");
    if (member->isInvalidDecl())
      return refuse("members of types that are wrong");
    if (member->getType()->isReferenceType())
      return refuse("members that are references");
    FailureOr<Type> type = importType(member->getType(), place);
    if (failed(type) || !*type)
      return failure();
    members.push_back(builder.getStringAttr(kernel::nameOf(member)));
    types.push_back(*type);
  }
  if (members.empty())
    return refuse("objects of structures without members");
  StringRef name = record->getName();
  if (const clang::TypedefNameDecl *other = record->getTypedefNameForAnonDecl();
      name.empty() && other)
    name = other->getName();
  auto structure = StructureType::get(
      builder.getContext(), record->isUnion(),
      builder.getStringAttr(name.empty() ? "unnamed" : name), members, types);
  const std::optional<Layout> layout = layoutOf(structure);
  const clang::ASTRecordLayout &known = ast.getASTRecordLayout(record);
  bool agrees = layout && layout->size == known.getSize().getQuantity() &&
                layout->alignment == known.getAlignment().getQuantity();
  for (const clang::FieldDecl *member : record->fields())
    agrees = agrees && offsetOf(structure, kernel::nameOf(member)) * 8 ==
                           static_cast<int64_t>(
                               known.getFieldOffset(member->getFieldIndex()));
  if (!agrees)
    return refuse("structures that are packed or aligned in ways of their own");
  records[record] = structure;
  return Type(structure);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// `name` with what C does not allow in names left out.
static std::string sanitize(StringRef name) {
  std::string text;
  for (const char each : name)
    if (llvm::isAlnum(each) || each == '_')
      text += each;
    else if (!text.empty() && text.back() != '_')
      text += '_';
  while (!text.empty() && text.back() == '_')
    text.pop_back();
  return text;
}

std::string ModuleImporter::nameOf(const clang::FunctionDecl *declaration) {
  std::string name;
  if (const auto *method = dyn_cast<clang::CXXMethodDecl>(declaration))
    name = method->getParent()->getName().str() + "_";
  if (isa<clang::CXXConstructorDecl>(declaration))
    name += "construct";
  else if (declaration->isOverloadedOperator())
    name += "operator_" + StringRef(clang::getOperatorSpelling(
                                        declaration->getOverloadedOperator()))
                              .str();
  else
    name += declaration->getNameAsString();
  if (const auto *arguments = declaration->getTemplateSpecializationArgs())
    for (const clang::TemplateArgument &each : arguments->asArray()) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      each.print(ast.getPrintingPolicy(), stream, false);
      name += "_" + text;
    }
  return sanitize(name);
}

/// `wanted`, or with a number behind it, which no other has.
static std::string uniqueName(llvm::StringSet<> &names,
                              const std::string &wanted) {
  std::string name = wanted;
  for (int number = 2; !names.insert(name).second; ++number)
    name = wanted + "_" + std::to_string(number);
  return name;
}

StringRef ModuleImporter::nameFunction(const clang::FunctionDecl *definition) {
  std::string &name = functionNames[definition];
  if (name.empty())
    name = uniqueName(names, nameOf(definition));
  return name;
}

FailureOr<FuncOp>
ModuleImporter::importFunction(const clang::FunctionDecl *declaration) {
  const clang::FunctionDecl *definition = declaration->getDefinition();
  const clang::SourceLocation place = definition->getLocation();
  if (auto found = functions.find(definition); found != functions.end()) {
    if (!found->second)
      return failure();
    if (callers.contains(definition)) {
      emitError(place) << "kernels must not call themselves, as '"
                       << definition->getNameAsString() << "' does";
      return failure();
    }
    return found->second;
  }
  // Null until all is well: an error is told once.
  functions[definition] = {};
  if (failed(findFailure(definition)))
    return failure();
  if (definition->isInvalidDecl()) {
    emitError(place) << "'" << definition->getNameAsString()
                     << "' is declared in a way that clang does not understand";
    return failure();
  }
  if (definition->isVariadic()) {
    emitError(place) << "kernels must not have functions with any number of "
                        "arguments";
    return failure();
  }
  SmallVector<Type> arguments, results;
  SmallVector<Location> places;
  const auto add = [&](FailureOr<Type> type, StringRef name,
                       clang::SourceLocation at) {
    if (failed(type) || !*type)
      return failure();
    arguments.push_back(*type);
    places.push_back(NameLoc::get(builder.getStringAttr(name), location(at)));
    return success();
  };
  const auto addPointer = [&](clang::QualType type, StringRef name,
                              clang::SourceLocation at) -> LogicalResult {
    FailureOr<PointerType> pointer = pointerTo(type, at);
    if (failed(pointer))
      return failure();
    return add(Type(*pointer), name, at);
  };
  const clang::QualType returned = definition->getReturnType();
  if (returned->isRecordType()) {
    if (failed(addPointer(returned.getUnqualifiedType(), "returned", place)))
      return failure();
  } else if (!returned->isVoidType()) {
    FailureOr<Type> type = importType(returned, place);
    if (failed(type))
      return failure();
    results.push_back(*type);
  }
  if (const auto *method = dyn_cast<clang::CXXMethodDecl>(definition);
      method && method->isInstance()) {
    const clang::QualType object = method->getFunctionObjectParameterType();
    if (!method->getParent()->isEmpty() &&
        failed(addPointer(object, "self", place)))
      return failure();
  }
  for (const clang::ParmVarDecl *each : definition->parameters()) {
    const clang::QualType type = each->getType();
    if (isWithoutObject(type))
      continue;
    const LogicalResult added =
        type->isRecordType()
            ? addPointer(type, each->getName(), each->getLocation())
            : add(importType(type, each->getLocation()), each->getName(),
                  each->getLocation());
    if (failed(added))
      return failure();
  }
  OpBuilder at = OpBuilder::atBlockEnd(module.getBody());
  Location whole = location(place);
  if (const clang::RawComment *comment =
          ast.getRawCommentForAnyRedecl(definition))
    whole = FusedLoc::get(builder.getContext(), {whole},
                          builder.getStringAttr(plainText(
                              comment->getRawText(ast.getSourceManager()))));
  auto op =
      FuncOp::create(at, whole, builder.getStringAttr(nameFunction(definition)),
                     TypeAttr::get(builder.getFunctionType(arguments, results)),
                     /*arg_attrs=*/ArrayAttr(), /*res_attrs=*/ArrayAttr());
  SymbolTable::setSymbolVisibility(op, SymbolTable::Visibility::Private);
  op.getBody().emplaceBlock().addArguments(arguments, places);
  functions[definition] = op;
  callers.insert(definition);
  const LogicalResult imported =
      FunctionImporter(*this, definition, op).import();
  callers.remove(definition);
  if (failed(imported)) {
    functions[definition] = {};
    return failure();
  }
  // Callees come first, as C wants it.
  op->moveBefore(module.getBody(), module.getBody()->end());
  return op;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// The numbers in `value`, an array of arrays or of numbers, as many as `array`
/// has; false if there is anything else.
static bool collectNumbers(const clang::APValue &value, Type type,
                           SmallVectorImpl<Attribute> &numbers) {
  if (auto array = dyn_cast<ArrayType>(type)) {
    if (!value.isArray())
      return false;
    for (int64_t i = 0; i < array.getSize(); ++i) {
      const auto number = static_cast<unsigned>(i);
      const clang::APValue &element = number < value.getArrayInitializedElts()
                                          ? value.getArrayInitializedElt(number)
                                          : value.getArrayFiller();
      if (!collectNumbers(element, array.getElement(), numbers))
        return false;
    }
    return true;
  }
  if (value.isInt() && isa<IntegerType>(type)) {
    numbers.push_back(IntegerAttr::get(type, value.getInt()));
    return true;
  }
  if (value.isFloat() && isa<FloatType>(type)) {
    numbers.push_back(FloatAttr::get(type, value.getFloat()));
    return true;
  }
  return false;
}

FailureOr<GlobalOp> ModuleImporter::importTable(const clang::VarDecl *variable,
                                                clang::SourceLocation user) {
  // Beyond that it is no table that somebody wrote.
  constexpr size_t mostNumbers = size_t{1} << 20;
  const clang::VarDecl *definition = variable->getInitializingDeclaration();
  GlobalOp &op = tables[definition ? definition : variable];
  if (op)
    return op;
  const auto refuse = [&](const llvm::Twine &why) {
    emitError(user) << "kernels must not use what is defined outside of them, "
                       "as '"
                    << variable->getNameAsString() << "', " << why;
    return failure();
  };
  if (!definition || !definition->getInit())
    return refuse("whose numbers are not here");
  if (!definition->getType().isConstQualified() &&
      !ast.getBaseElementType(definition->getType()).isConstQualified())
    return refuse("which is not const");
  const clang::APValue *value = definition->evaluateValue();
  if (!value)
    return refuse("whose numbers are not known");
  FailureOr<Type> type = importType(definition->getType(), user);
  if (failed(type) || !*type)
    return failure();
  SmallVector<Attribute> numbers;
  const std::optional<Layout> layout = layoutOf(*type);
  if (!isa<ArrayType>(*type) || !layout ||
      layout->size > static_cast<int64_t>(mostNumbers) ||
      !collectNumbers(*value, *type, numbers))
    return refuse("unless it is an array of at most 2^20 bytes of numbers");
  Type element = *type;
  while (auto array = dyn_cast<ArrayType>(element))
    element = array.getElement();
  OpBuilder at = OpBuilder::atBlockBegin(module.getBody());
  op = GlobalOp::create(
      at, location(definition->getLocation()),
      uniqueName(names, sanitize(definition->getNameAsString())), *type,
      DenseElementsAttr::get(
          RankedTensorType::get(static_cast<int64_t>(numbers.size()), element),
          numbers));
  return op;
}
