//===- KernelTypes.cpp - Pointers, arrays and structures ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Kernel/IR/Kernel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

#include "sandwich/Dialect/Kernel/IR/KernelEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/Kernel/IR/KernelTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Kernel/IR/KernelAttributes.cpp.inc"

void KernelDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "sandwich/Dialect/Kernel/IR/KernelTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/Kernel/IR/KernelAttributes.cpp.inc"
      >();
}

bool kernel::isNumber(Type type) {
  if (isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type))
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return false;
  return integer.isSignless()
             ? integer.getWidth() == 1
             : llvm::is_contained({8U, 16U, 32U, 64U}, integer.getWidth());
}

bool kernel::isValue(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getRank() == 1 && !vector.isScalable() &&
           isNumber(vector.getElementType());
  return isNumber(type) || isa<PointerType>(type);
}

bool kernel::isObject(Type type) {
  return isValue(type) || isa<ArrayType, StructureType>(type);
}

/// An error if `type`, of `what`, is none of an object.
static LogicalResult verifyObject(function_ref<InFlightDiagnostic()> emitError,
                                  StringRef what, Type type) {
  if (isObject(type))
    return success();
  return emitError() << what
                     << " is a number, a vector, a pointer, an array or "
                     << "a structure, not " << type;
}

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

LogicalResult PointerType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  Type object, bool /*isConst*/) {
  return verifyObject(emitError, "what a pointer points to", object);
}

Type PointerType::parse(AsmParser &parser) {
  Type object;
  if (parser.parseLess())
    return {};
  const bool isConst = succeeded(parser.parseOptionalKeyword("const"));
  const SMLoc place = parser.getCurrentLocation();
  if (parser.parseType(object) || parser.parseGreater())
    return {};
  return PointerType::getChecked([&] { return parser.emitError(place); },
                                 parser.getContext(), object, isConst);
}

void PointerType::print(AsmPrinter &printer) const {
  printer << "<" << (getIsConst() ? "const " : "") << getObject() << ">";
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

LogicalResult ArrayType::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t size, Type element) {
  if (size < 1)
    return emitError() << "an array has one element or more, not " << size;
  return verifyObject(emitError, "an array's element", element);
}

//===----------------------------------------------------------------------===//
// Structures
//===----------------------------------------------------------------------===//

LogicalResult
StructureType::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringAttr /*name*/, ArrayRef<StringAttr> members,
                      ArrayRef<Type> types) {
  if (members.empty() || members.size() != types.size())
    return emitError() << "a structure has members, and a type for each";
  llvm::StringSet<> known;
  for (auto [member, type] : llvm::zip_equal(members, types)) {
    if (!known.insert(member.getValue()).second)
      return emitError() << "a structure has one member " << member.getValue();
    if (failed(verifyObject(emitError, member.getValue(), type)))
      return failure();
  }
  return success();
}

Type StructureType::getMember(StringRef name) const {
  for (auto [member, type] : llvm::zip_equal(getMembers(), getTypes()))
    if (member.getValue() == name)
      return type;
  return {};
}

Type StructureType::parse(AsmParser &parser) {
  std::string name;
  SmallVector<StringAttr> members;
  SmallVector<Type> types;
  const SMLoc place = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseString(&name))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    std::string member;
    Type type;
    if (parser.parseKeywordOrString(&member) || parser.parseColonType(type))
      return {};
    members.push_back(parser.getBuilder().getStringAttr(member));
    types.push_back(type);
  }
  if (parser.parseGreater())
    return {};
  return StructureType::getChecked(
      [&] { return parser.emitError(place); }, parser.getContext(),
      parser.getBuilder().getStringAttr(name), members, types);
}

void StructureType::print(AsmPrinter &printer) const {
  printer << "<" << getName();
  for (auto [member, type] : llvm::zip_equal(getMembers(), getTypes())) {
    printer << ", ";
    printer.printKeywordOrString(member.getValue());
    printer << ": " << type;
  }
  printer << ">";
}
