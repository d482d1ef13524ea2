//===- ReadValues.cpp - Numbers, and what goes together -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

std::string KernelReader::describe(Type type) {
  if (isa<MemRefType>(type))
    return "memory";
  if (auto range = dyn_cast<RangeType>(type))
    return "a range of " + range.getSize().str();
  if (!block::isBlock(type))
    return nameOf(type);
  SmallVector<std::string> sizes = llvm::map_to_vector(
      sizesOf(type), [](SizeAttr size) { return size.str(); });
  return nameOf(getElementTypeOrSelf(type)) + "[" + llvm::join(sizes, ", ") +
         "]";
}

std::optional<Value> KernelReader::valueOf(Place place, Operand operand,
                                           Type type) {
  if (operand.value)
    return operand.value;
  Location where = location(place);
  const bool isFloat = operand.literal == NumberKind::Float;
  if (!type)
    type = isFloat ? Type(builder.getF32Type())
           : operand.literal == NumberKind::Truth
               ? Type(builder.getI1Type())
               : Type(builder.getIndexType());
  const NumberKind kind = kindOf(type);
  if ((kind == NumberKind::Truth) != (operand.literal == NumberKind::Truth) ||
      (isFloat && kind != NumberKind::Float)) {
    refuse(place, "a number here is none of type " + nameOf(type));
    return std::nullopt;
  }
  if (kind == NumberKind::Float) {
    const double given = isFloat ? operand.number : double(operand.integer);
    bool loses = false;
    APFloat number(given);
    number.convert(cast<FloatType>(type).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &loses);
    if (number.isInfinity() && !std::isinf(given)) {
      refuse(place, "the number is too large for " + nameOf(type));
      return std::nullopt;
    }
    return arith::ConstantOp::create(builder, where,
                                     builder.getFloatAttr(type, number))
        .getResult();
  }
  const unsigned width =
      type.isIndex() ? 64 : cast<IntegerType>(type).getWidth();
  if (kind == NumberKind::Integer && !llvm::isIntN(width, operand.integer) &&
      !llvm::isUIntN(width, operand.integer)) {
    refuse(place, "the number does not fit into " + nameOf(type));
    return std::nullopt;
  }
  const APInt bits(width, static_cast<uint64_t>(operand.integer),
                   /*isSigned=*/true, /*implicitTrunc=*/true);
  return arith::ConstantOp::create(builder, where,
                                   builder.getIntegerAttr(type, bits))
      .getResult();
}

std::optional<Value> KernelReader::indexOf(Place place,
                                           const Operand &operand) {
  std::optional<Value> value =
      valueOf(place, operand, operand.value ? Type() : builder.getIndexType());
  if (value && !value->getType().isIndex()) {
    refuse(place, "this is " + describe(value->getType()) +
                      ", and must be one number of type index");
    return std::nullopt;
  }
  return value;
}

Value KernelReader::withoutRange(Location where, Value value) {
  auto range = dyn_cast<RangeType>(value.getType());
  if (!range)
    return value;
  return PositionsOp::create(
      builder, where, blockOf(range.getSize(), builder.getIndexType()), value);
}

Value KernelReader::broadcastTo(Location where, Value value,
                                ArrayRef<SizeAttr> sizes) {
  if (sizesOrNone(value.getType()) == sizes)
    return value;
  Type type = blockOf(sizes, getElementTypeOrSelf(value));
  if (!block::isBlock(value.getType()))
    return SplatOp::create(builder, where, type, value);
  return BroadcastOp::create(builder, where, type, value);
}

std::optional<SmallVector<Value>>
KernelReader::unify(Place place, ArrayRef<Operand> operands) {
  Location where = location(place);
  Type element;
  for (const Operand &each : operands) {
    if (!each.value)
      continue;
    if (isa<MemRefType>(each.value.getType())) {
      refuse(place, "memory is read by its elements, as in x[i]");
      return std::nullopt;
    }
    Type type = isa<RangeType>(each.value.getType())
                    ? Type(builder.getIndexType())
                    : getElementTypeOrSelf(each.value);
    if (element && type != element) {
      refuse(place, nameOf(element) + " and " + nameOf(type) +
                        " do not go together: convert one, as in " +
                        nameOf(element) + "(x)");
      return std::nullopt;
    }
    element = type;
  }
  // Numbers alone: floats, if one is.
  if (!element && llvm::any_of(operands, [](const Operand &each) {
        return each.literal == NumberKind::Float;
      }))
    element = builder.getF32Type();
  SmallVector<Value> values;
  SmallVector<SizeAttr> sizes;
  for (const Operand &each : operands) {
    std::optional<Value> value = valueOf(place, each, element);
    if (!value)
      return std::nullopt;
    values.push_back(withoutRange(where, *value));
    SmallVector<SizeAttr> own = sizesOrNone(values.back().getType());
    std::optional<SmallVector<SizeAttr>> both = broadcastSizes(sizes, own);
    if (!both) {
      refuse(place,
             "sizes do not go together: " +
                 describe(blockOf(sizes, getElementTypeOrSelf(values.back()))) +
                 " and " + describe(values.back().getType()));
      return std::nullopt;
    }
    sizes = *both;
  }
  for (Value &value : values)
    value = broadcastTo(where, value, sizes);
  return values;
}
