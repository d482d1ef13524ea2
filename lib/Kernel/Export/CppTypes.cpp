//===- CppTypes.cpp - Types and numbers as C++ has them -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CppTypes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

#include <cinttypes>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Words of C++ that C has for names, or that the text around has itself.
static bool isReserved(StringRef name) {
  static const llvm::StringSet<> words = {
      "alignas",   "alignof",  "and",      "asm",      "auto",      "bool",
      "break",     "case",     "catch",    "char",     "class",     "const",
      "constexpr", "continue", "decltype", "default",  "delete",    "do",
      "double",    "else",     "enum",     "explicit", "export",    "extern",
      "false",     "float",    "for",      "friend",   "goto",      "if",
      "inline",    "int",      "long",     "mutable",  "namespace", "new",
      "noexcept",  "not",      "nullptr",  "operator", "or",        "private",
      "protected", "public",   "register", "return",   "short",     "signed",
      "sizeof",    "static",   "struct",   "switch",   "template",  "this",
      "throw",     "true",     "try",      "typedef",  "typeid",    "typename",
      "union",     "unsigned", "using",    "virtual",  "void",      "volatile",
      "while",     "xor",      "std",      "Array"};
  return words.contains(name);
}

std::string kernel::cppName(StringRef text) {
  std::string name;
  for (const char each : text)
    name += llvm::isAlnum(each) || each == '_' ? each : '_';
  if (name.empty() || llvm::isDigit(name.front()))
    name.insert(0, 1, '_');
  if (isReserved(name))
    name += '_';
  return name;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::string CppTypes::structureName(StructureType type) {
  if (auto found = structures.find(type); found != structures.end())
    return found->second;
  const std::string wanted = cppName(type.getName());
  std::string name = wanted;
  for (int number = 2; !structureNames.insert(name).second; ++number)
    name = wanted + "_" + std::to_string(number);
  // Those inside are defined before.
  std::string members;
  for (auto [member, each] :
       llvm::zip_equal(type.getMembers(), type.getTypes()))
    members += "  " + declare(each, cppName(member)) + ";\n";
  text += std::string(type.getIsUnion() ? "union " : "struct ") + name +
          " {\n" + members + "};\n";
  structures[type] = name;
  return name;
}

std::string CppTypes::name(Type type) {
  if (!type)
    return "void";
  if (auto pointer = dyn_cast<PointerType>(type)) {
    const std::string object = name(pointer.getObject());
    const std::string constant = pointer.getIsConst() ? "const " : "";
    // Pointers to const pointers: what is const stands behind.
    if (isa<PointerType>(pointer.getObject()))
      return object + (pointer.getIsConst() ? "const " : "") + "*";
    return constant + object + " *";
  }
  if (auto array = dyn_cast<ArrayType>(type))
    return "Array<" + name(array.getElement()) + ", " +
           std::to_string(array.getSize()) + ">";
  if (auto structure = dyn_cast<StructureType>(type))
    return structureName(structure);
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (isMask(type))
      return "__mmask" + std::to_string(vector.getNumElements());
    if (bitWidthOf(type) == 64)
      return "__m64";
    const std::string prefix = "__m" + std::to_string(bitWidthOf(type));
    const Type lane = vector.getElementType();
    return prefix + (lane.isF32()    ? ""
                     : lane.isF64()  ? "d"
                     : lane.isBF16() ? "bh"
                                     : "i");
  }
  if (type.isInteger(1))
    return "bool";
  if (auto integer = dyn_cast<IntegerType>(type))
    return (integer.isUnsigned() ? "uint" : "int") +
           std::to_string(integer.getWidth()) + "_t";
  return type.isF32()   ? "float"
         : type.isF64() ? "double"
         : type.isF16() ? "_Float16"
                        : "__bf16";
}

std::string CppTypes::declare(Type type, StringRef name) {
  std::string sizes;
  while (auto array = dyn_cast_if_present<ArrayType>(type)) {
    sizes += "[" + std::to_string(array.getSize()) + "]";
    type = array.getElement();
  }
  const std::string element = this->name(type);
  return element + (StringRef(element).ends_with("*") ? "" : " ") + name.str() +
         sizes;
}

std::string CppTypes::definitions() const { return text; }

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static std::string floatText(const APFloat &value, Type type) {
  const bool isDouble = type.isF64();
  const std::string suffix = isDouble ? "" : "f";
  std::string text;
  if (value.isNaN()) {
    text = "__builtin_nan" + suffix + "(\"\")";
  } else if (value.isInfinity()) {
    text = std::string(value.isNegative() ? "-" : "") + "__builtin_inf" +
           suffix + "()";
  } else {
    APFloat wide = value;
    bool losesInfo = false;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
    // The shortest that is the same number again.
    char digits[64];
    for (int precision = 1; precision <= 17; ++precision) {
      std::snprintf(digits, sizeof(digits), "%.*g", precision,
                    wide.convertToDouble());
      const double read = std::strtod(digits, nullptr);
      if (isDouble || !type.isF32()
              ? read == wide.convertToDouble()
              : static_cast<float>(read) ==
                    static_cast<float>(wide.convertToDouble()))
        break;
    }
    text = digits;
    if (text.find_first_of(".e") == std::string::npos)
      text += ".0";
    text += suffix;
  }
  if (type.isF16() || type.isBF16())
    return std::string("(") + (type.isF16() ? "_Float16" : "__bf16") + ")" +
           text;
  return text;
}

static std::string integerText(const APInt &value, IntegerType type) {
  if (type.getWidth() == 1)
    return value.isZero() ? "false" : "true";
  if (type.isUnsigned()) {
    const std::string digits = std::to_string(value.getZExtValue());
    switch (type.getWidth()) {
    case 64:
      return digits + "ull";
    case 32:
      return digits + "u";
    default:
      return "(uint" + std::to_string(type.getWidth()) + "_t)" + digits;
    }
  }
  const int64_t number = value.getSExtValue();
  const std::string digits = std::to_string(number);
  switch (type.getWidth()) {
  case 64:
    return number == std::numeric_limits<int64_t>::min()
               ? "(-9223372036854775807ll - 1)"
               : digits + "ll";
  case 32:
    return number == std::numeric_limits<int32_t>::min() ? "(-2147483647 - 1)"
                                                         : digits;
  default:
    return "(int" + std::to_string(type.getWidth()) + "_t)" + digits;
  }
}

std::string kernel::cppNumber(Attribute value, Type type, CppTypes &types) {
  if (auto elements = dyn_cast<DenseElementsAttr>(value)) {
    std::string lanes;
    const Type lane = elements.getElementType();
    const bool isZero =
        elements.isSplat() &&
        (isa<FloatType>(lane) ? elements.getSplatValue<APFloat>().isPosZero()
                              : elements.getSplatValue<APInt>().isZero());
    if (!isZero)
      for (Attribute each : elements.getValues<Attribute>())
        lanes += (lanes.empty() ? "" : ", ") + cppNumber(each, lane, types);
    return "(" + types.name(type) + "){" + lanes + "}";
  }
  if (auto number = dyn_cast<FloatAttr>(value))
    return floatText(number.getValue(), type);
  return integerText(cast<IntegerAttr>(value).getValue(),
                     cast<IntegerType>(type));
}
