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

std::string CppTypes::takeName(StringRef wanted) {
  const std::string plain = cppName(wanted);
  std::string name = plain;
  for (int number = 2; !fileNames.insert(name).second; ++number)
    name = plain + "_" + std::to_string(number);
  return name;
}

/// What C's library, whose headers are included, calls its own.
static bool isOfLibrary(StringRef name) {
  return symbolizeFunction(name) ||
         llvm::is_contained(
             {"abs",    "labs",    "llabs",  "div",    "ldiv",   "exit",
              "abort",  "random",  "rand",   "index",  "rindex", "gamma",
              "j0",     "j1",      "jn",     "y0",     "y1",     "yn",
              "memcpy", "memmove", "memset", "memcmp", "strlen", "remainder",
              "ldexp",  "frexp",   "modf",   "hypot",  "cbrt",   "log1p",
              "log10",  "expm1",   "tan",    "atan",   "atan2",  "asin",
              "acos",   "sinh",    "cosh",   "rint",   "lround", "signbit",
              "isnan",  "isinf"},
             name) ||
         (name.ends_with("f") && symbolizeFunction(name.drop_back()));
}

void CppTypes::nameAll(ModuleOp module) {
  // Those that others link with keep their names.
  for (const bool isPublic : {true, false})
    for (Operation &op : *module.getBody()) {
      StringRef name = SymbolTable::getSymbolName(&op).getValue();
      if ((isa<FuncOp>(op) && SymbolTable::getSymbolVisibility(&op) ==
                                  SymbolTable::Visibility::Public) != isPublic)
        continue;
      symbols[name] =
          takeName(isOfLibrary(name) ? name.str() + "_kernel" : name.str());
    }
  module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          this->name(type);
    for (Type type : op->getResultTypes())
      this->name(type);
  });
}

std::string CppTypes::symbol(StringRef name) const {
  return symbols.lookup(name);
}

std::string CppTypes::structureName(StructureType type) {
  if (auto found = structures.find(type); found != structures.end())
    return found->second;
  const std::string name = takeName(type.getName());
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
    // With its bits.
    const APInt bits = value.bitcastToAPInt();
    return std::string("__builtin_bit_cast(") +
           (isDouble       ? "double"
            : type.isF32() ? "float"
            : type.isF16() ? "_Float16"
                           : "__bf16") +
           ", (uint" + std::to_string(bits.getBitWidth()) + "_t)" +
           std::to_string(bits.getZExtValue()) + "ull)";
  }
  if (value.isInfinity()) {
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
    // Vectors of integers are those of 64 bits.
    const unsigned bits = lane.getIntOrFloatBitWidth();
    if (!isZero && (isa<IntegerType>(lane) || lane.isF16()) && bits < 64) {
      uint64_t word = 0;
      unsigned filled = 0;
      for (Attribute each : elements.getValues<Attribute>()) {
        const APInt number =
            isa<FloatAttr>(each)
                ? cast<FloatAttr>(each).getValue().bitcastToAPInt()
                : cast<IntegerAttr>(each).getValue();
        word |= number.getZExtValue() << filled;
        filled += bits;
        if (filled < 64)
          continue;
        lanes += (lanes.empty() ? "(long long)" : ", (long long)") +
                 std::to_string(word) + "ull";
        word = 0;
        filled = 0;
      }
      return "(" + types.name(type) + "){" + lanes + "}";
    }
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
