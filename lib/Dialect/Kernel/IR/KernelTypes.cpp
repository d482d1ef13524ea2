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
  // Far more lanes than any vector of C has.
  constexpr int64_t mostLanes = 4096;
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getRank() == 1 && !vector.isScalable() &&
           vector.getNumElements() <= mostLanes &&
           isNumber(vector.getElementType());
  return isNumber(type) || isa<PointerType>(type);
}

bool kernel::isMask(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getElementType().isInteger(1);
}

bool kernel::isNumberOrVector(Type type) {
  return isValue(type) && !isa<PointerType>(type) && !isMask(type);
}

bool kernel::isObject(Type type) {
  return isValue(type) || isa<ArrayType, StructureType>(type);
}

int64_t kernel::bitWidthOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * vector.getElementTypeBitWidth();
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
}

//===----------------------------------------------------------------------===//
// Types of intrinsics
//===----------------------------------------------------------------------===//

Type kernel::typeOf(LaneType type, MLIRContext *context) {
  switch (type) {
  case LaneType::Bool:
    return IntegerType::get(context, 1);
  case LaneType::F16:
    return Float16Type::get(context);
  case LaneType::BF16:
    return BFloat16Type::get(context);
  case LaneType::F32:
    return Float32Type::get(context);
  case LaneType::F64:
    return Float64Type::get(context);
  default:
    return IntegerType::get(context, static_cast<unsigned>(bitsOf(type)),
                            isSigned(type) ? IntegerType::Signed
                                           : IntegerType::Unsigned);
  }
}

Type kernel::typeOf(const ParameterType &type, MLIRContext *context) {
  Type lane = typeOf(type.lane, context);
  switch (type.kind) {
  case ParameterType::Kind::Number:
  case ParameterType::Kind::Immediate:
    return lane;
  case ParameterType::Kind::Vector:
  case ParameterType::Kind::Mask:
    return VectorType::get({type.lanes}, lane);
  case ParameterType::Kind::Pointer:
    return PointerType::get(
        context, type.lanes > 0 ? VectorType::get({type.lanes}, lane) : lane,
        type.isConst);
  }
  llvm_unreachable("there are no other kinds");
}

bool kernel::areInterchangeable(Type given, Type wanted) {
  if (given == wanted)
    return true;
  if (auto pointer = dyn_cast<PointerType>(given))
    if (auto other = dyn_cast<PointerType>(wanted))
      return pointer.getIsConst() == other.getIsConst() &&
             areInterchangeable(pointer.getObject(), other.getObject());
  auto isOfIntegers = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector && !isMask(type) &&
           (isa<IntegerType>(vector.getElementType()) ||
            vector.getElementType().isF16());
  };
  return isOfIntegers(given) && isOfIntegers(wanted) &&
         bitWidthOf(given) == bitWidthOf(wanted);
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// `size` rounded up to a multiple of `alignment`.
static int64_t alignUp(int64_t size, int64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

/// Far from where sizes overflow.
static constexpr int64_t mostBytes = int64_t{1} << 40;

/// The layouts of the members of `structure`, which begin at `offsets`, and its
/// own.
static std::optional<Layout> layOutMembers(StructureType structure,
                                           SmallVectorImpl<int64_t> &offsets) {
  Layout all = {.size = 0, .alignment = 1};
  for (Type type : structure.getTypes()) {
    const std::optional<Layout> member = layoutOf(type);
    if (!member)
      return std::nullopt;
    const int64_t offset =
        structure.getIsUnion() ? 0 : alignUp(all.size, member->alignment);
    offsets.push_back(offset);
    all.size = std::max(all.size, offset + member->size);
    all.alignment = std::max(all.alignment, member->alignment);
    if (all.size > mostBytes)
      return std::nullopt;
  }
  all.size = alignUp(all.size, all.alignment);
  return all;
}

std::optional<Layout> kernel::layoutOf(Type type) {
  if (auto array = dyn_cast<ArrayType>(type)) {
    const std::optional<Layout> element = layoutOf(array.getElement());
    if (!element || array.getSize() > mostBytes / element->size)
      return std::nullopt;
    return Layout{.size = array.getSize() * element->size,
                  .alignment = element->alignment};
  }
  if (auto structure = dyn_cast<StructureType>(type)) {
    SmallVector<int64_t> offsets;
    return layOutMembers(structure, offsets);
  }
  if (isa<PointerType>(type))
    return Layout{.size = 8, .alignment = 8};
  const int64_t bytes = llvm::divideCeil(bitWidthOf(type), 8);
  return Layout{.size = bytes,
                .alignment = static_cast<int64_t>(llvm::PowerOf2Ceil(bytes))};
}

int64_t kernel::offsetOf(StructureType structure, StringRef name) {
  SmallVector<int64_t> offsets;
  layOutMembers(structure, offsets);
  for (auto [member, offset] : llvm::zip_equal(structure.getMembers(), offsets))
    if (member.getValue() == name)
      return offset;
  llvm_unreachable("the structure has the member");
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

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
  if (failed(verifyObject(emitError, "what a pointer points to", object)))
    return failure();
  if (!layoutOf(object))
    return emitError() << "what a pointer points to has more than 2^40 bytes";
  return success();
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
                      bool /*isUnion*/, StringAttr /*name*/,
                      ArrayRef<StringAttr> members, ArrayRef<Type> types) {
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
  if (parser.parseLess())
    return {};
  const bool isUnion = succeeded(parser.parseOptionalKeyword("union"));
  if (parser.parseString(&name))
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
      [&] { return parser.emitError(place); }, parser.getContext(), isUnion,
      parser.getBuilder().getStringAttr(name), members, types);
}

void StructureType::print(AsmPrinter &printer) const {
  printer << "<" << (getIsUnion() ? "union " : "") << getName();
  for (auto [member, type] : llvm::zip_equal(getMembers(), getTypes())) {
    printer << ", ";
    printer.printKeywordOrString(member.getValue());
    printer << ": " << type;
  }
  printer << ">";
}
