//===- BlockTypes.cpp - Sizes, parameters and ranges ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Block/IR/Block.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

#include "sandwich/Dialect/Block/IR/BlockEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/Block/IR/BlockTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Block/IR/BlockAttributes.cpp.inc"

void BlockDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "sandwich/Dialect/Block/IR/BlockTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/Block/IR/BlockAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

bool block::isNumber(Type type) {
  if (isa<IndexType, BFloat16Type, Float16Type, Float32Type, Float64Type>(type))
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.isSignless() &&
         llvm::is_contained({1U, 8U, 16U, 32U, 64U}, integer.getWidth());
}

bool block::isBlock(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 &&
         isa_and_nonnull<SizesAttr>(tensor.getEncoding()) &&
         isNumber(tensor.getElementType());
}

bool block::isBlockOfIndices(Type type) {
  return isBlock(type) && getElementTypeOrSelf(type).isIndex() &&
         sizesOf(type).size() == 1;
}

bool block::isName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

ArrayRef<SizeAttr> block::sizesOf(Type block) {
  return cast<SizesAttr>(cast<RankedTensorType>(block).getEncoding())
      .getSizes();
}

/// What MLIR calls the dimensions.
static SmallVector<int64_t> shapeOf(ArrayRef<SizeAttr> sizes) {
  return llvm::map_to_vector(sizes, [](SizeAttr size) {
    return size.isStatic() ? size.getFactor() : ShapedType::kDynamic;
  });
}

Type block::blockOf(ArrayRef<SizeAttr> sizes, Type element) {
  if (sizes.empty())
    return element;
  return RankedTensorType::get(shapeOf(sizes), element,
                               SizesAttr::get(element.getContext(), sizes));
}

MemRefType block::memoryOf(ArrayRef<SizeAttr> sizes, Type element) {
  return MemRefType::get(shapeOf(sizes), element);
}

std::optional<SmallVector<SizeAttr>>
block::broadcastSizes(ArrayRef<SizeAttr> lhs, ArrayRef<SizeAttr> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  SmallVector<SizeAttr> sizes(lhs);
  const size_t more = lhs.size() - rhs.size();
  for (auto [i, size] : llvm::enumerate(rhs)) {
    SizeAttr &result = sizes[more + i];
    if (result.isStatic() && result.getFactor() == 1)
      result = size;
    else if (result != size && !(size.isStatic() && size.getFactor() == 1))
      return std::nullopt;
  }
  return sizes;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

SizeAttr SizeAttr::getSorted(MLIRContext *context, int64_t factor,
                             ArrayRef<StringRef> names) {
  SmallVector<StringRef> sorted(names);
  llvm::sort(sorted);
  return SizeAttr::get(context, factor,
                       llvm::map_to_vector(sorted, [&](StringRef name) {
                         return StringAttr::get(context, name);
                       }));
}

std::string SizeAttr::str() const {
  SmallVector<std::string> parts;
  if (getFactor() != 1 || isStatic())
    parts.push_back(std::to_string(getFactor()));
  for (StringAttr name : getNames())
    parts.push_back(name.str());
  return llvm::join(parts, " * ");
}

LogicalResult SizeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t factor, ArrayRef<StringAttr> names) {
  if (factor < 1 || factor > largestFactor)
    return emitError() << "(C1) a size has a factor of " << factor
                       << ", which is not between 1 and " << largestFactor;
  const bool isSorted =
      llvm::is_sorted(names, [](StringAttr lhs, StringAttr rhs) {
        return lhs.getValue() < rhs.getValue();
      });
  if (names.size() > mostDimensions || !isSorted ||
      !llvm::all_of(names, [](StringAttr name) { return isName(name); }))
    return emitError() << "(C2) a size is a product of more than "
                       << mostDimensions
                       << " names, or of such as are not in order";
  return success();
}

/// Reads `2 * LANES`; null, with an error emitted, if it is no size.
static SizeAttr parseSize(AsmParser &parser) {
  int64_t factor = 1;
  SmallVector<StringRef> names;
  SMLoc place = parser.getCurrentLocation();
  OptionalParseResult number = parser.parseOptionalInteger(factor);
  if (number.has_value() && failed(*number))
    return nullptr;
  bool more = !number.has_value() || succeeded(parser.parseOptionalStar());
  while (more) {
    StringRef name;
    if (failed(parser.parseKeyword(&name)))
      return nullptr;
    names.push_back(name);
    more = succeeded(parser.parseOptionalStar());
  }
  auto attributes = llvm::map_to_vector(names, [&](StringRef name) {
    return StringAttr::get(parser.getContext(), name);
  });
  return SizeAttr::getChecked([&] { return parser.emitError(place); },
                              parser.getContext(), factor, attributes);
}

Attribute SizeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return nullptr;
  SizeAttr size = parseSize(parser);
  return !size || parser.parseGreater() ? nullptr : size;
}

void SizeAttr::print(AsmPrinter &printer) const {
  printer << "<" << str() << ">";
}

Attribute SizesAttr::parse(AsmParser &parser, Type) {
  SmallVector<SizeAttr> sizes;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        sizes.push_back(parseSize(parser));
        return success(sizes.back() != nullptr);
      }))
    return nullptr;
  return SizesAttr::get(parser.getContext(), sizes);
}

void SizesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getSizes(), printer,
                        [&](SizeAttr size) { printer << size.str(); });
  printer << ">";
}

LogicalResult
SizesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                          function_ref<InFlightDiagnostic()> emitError) const {
  if (getSizes().size() != shape.size() || shape.size() > mostDimensions)
    return emitError() << "(C1) a block of " << shape.size()
                       << " dimensions has " << getSizes().size()
                       << " sizes, or more than " << mostDimensions;
  if (shape != ArrayRef<int64_t>(shapeOf(getSizes())))
    return emitError()
           << "(C2) a dimension of a block is not as its size "
              "says: a number where that is one, '?' where it has a "
              "name";
  return success();
}

Type RangeType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return nullptr;
  SizeAttr size = parseSize(parser);
  if (!size || parser.parseGreater())
    return nullptr;
  return RangeType::get(parser.getContext(), size);
}

void RangeType::print(AsmPrinter &printer) const {
  printer << "<" << getSize().str() << ">";
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

LogicalResult
ParameterAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringAttr name, ArrayRef<int64_t> choices,
                      int64_t untuned) {
  if (!isName(name))
    return emitError() << "(C1) " << name << " is no name of a parameter";
  SmallVector<int64_t> sorted(choices);
  llvm::sort(sorted);
  if (choices.size() > mostChoices ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
      llvm::any_of(choices, [](int64_t choice) {
        return choice < 0 || choice > largestChoice;
      }))
    return emitError() << "(C2) parameter " << name << " has more than "
                       << mostChoices << " choices, one of them twice, or one "
                       << "that is not between 0 and " << largestChoice;
  if (choices.empty() ? untuned != 0 : !llvm::is_contained(choices, untuned))
    return emitError() << "(C3) parameter " << name << " is " << untuned
                       << " untuned, which is none of its choices";
  return success();
}

/// Reads `LANES in [8, 16] = 16` or `CAUSAL`.
static ParameterAttr parseParameter(AsmParser &parser) {
  StringRef name;
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> choices;
  int64_t untuned = 0;
  if (parser.parseKeyword(&name))
    return nullptr;
  if (succeeded(parser.parseOptionalKeyword("in")) &&
      (parser.parseCommaSeparatedList(
           AsmParser::Delimiter::Square,
           [&] { return parser.parseInteger(choices.emplace_back()); }) ||
       parser.parseEqual() || parser.parseInteger(untuned)))
    return nullptr;
  return ParameterAttr::getChecked(
      [&] { return parser.emitError(place); }, parser.getContext(),
      StringAttr::get(parser.getContext(), name), ArrayRef(choices), untuned);
}

static void printParameter(ParameterAttr parameter, AsmPrinter &printer) {
  printer << parameter.getName().getValue();
  if (!parameter.isTuned())
    return;
  printer << " in [";
  llvm::interleaveComma(parameter.getChoices(), printer);
  printer << "] = " << parameter.getUntuned();
}

Attribute ParameterAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return nullptr;
  ParameterAttr parameter = parseParameter(parser);
  return !parameter || parser.parseGreater() ? nullptr : parameter;
}

void ParameterAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printParameter(*this, printer);
  printer << ">";
}

ParameterAttr ParametersAttr::find(StringRef name) const {
  const auto *found =
      llvm::find_if(getParameters(), [&](ParameterAttr parameter) {
        return parameter.getName().getValue() == name;
      });
  return found == getParameters().end() ? ParameterAttr() : *found;
}

LogicalResult
ParametersAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       ArrayRef<ParameterAttr> parameters) {
  llvm::StringSet<> names;
  for (ParameterAttr parameter : parameters)
    if (!names.insert(parameter.getName()).second)
      return emitError() << "(C1) there are two parameters "
                         << parameter.getName();
  return success();
}

Attribute ParametersAttr::parse(AsmParser &parser, Type) {
  SmallVector<ParameterAttr> parameters;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        parameters.push_back(parseParameter(parser));
        return success(parameters.back() != nullptr);
      }))
    return nullptr;
  return ParametersAttr::getChecked([&] { return parser.emitError(place); },
                                    parser.getContext(), parameters);
}

void ParametersAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getParameters(), printer, [&](ParameterAttr parameter) {
    printParameter(parameter, printer);
  });
  printer << ">";
}
