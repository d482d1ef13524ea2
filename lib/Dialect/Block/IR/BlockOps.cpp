//===- BlockOps.cpp - Operations of block ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Block/IR/Block.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

#define GET_OP_CLASSES
#include "sandwich/Dialect/Block/IR/BlockOps.cpp.inc"

LogicalResult SizeOp::verify() {
  auto kernel = (*this)->getParentOfType<func::FuncOp>();
  if (!kernel || !isKernel(kernel))
    return emitOpError("(C1) is not in a kernel");
  for (StringAttr name : getSize().getNames())
    if (!parametersOf(kernel).find(name) && !findDimension(kernel, name))
      return emitOpError("(C1) names ")
             << name << ", which is no parameter, and no size of an argument ";
  return success();
}

SmallVector<SizeAttr> block::interleavedSizes(ArrayRef<SizeAttr> sizes) {
  SmallVector<SizeAttr> twice(sizes);
  SizeAttr &last = twice.back();
  if (last.getFactor() > SizeAttr::largestFactor / 2)
    return {};
  last =
      SizeAttr::get(last.getContext(), 2 * last.getFactor(), last.getNames());
  return twice;
}

LogicalResult PositionsOp::verify() {
  if (getResult().getType() !=
      blockOf(getRange().getType().getSize(), IndexType::get(getContext())))
    return emitOpError("(C1) is not of index, or not of the range's size");
  return success();
}

LogicalResult InsideOp::verify() {
  if (getResult().getType() != blockOf(getRange().getType().getSize(),
                                       IntegerType::get(getContext(), 1)))
    return emitOpError("(C1) is not of i1, or not of the range's size");
  return success();
}

SmallVector<SizeAttr> block::sizesOfPlaces(TypeRange places) {
  SmallVector<SizeAttr> sizes;
  for (Type place : places) {
    if (auto range = dyn_cast<RangeType>(place))
      sizes.push_back(range.getSize());
    else if (isBlock(place))
      sizes.push_back(sizesOf(place).front());
  }
  return sizes;
}

/// Checks (C1) and (C2) of what reads or writes `block`.
static LogicalResult verifyAccess(Operation *op, Type block, Value memory,
                                  ValueRange indices) {
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<SizeAttr> sizes = sizesOfPlaces(indices.getTypes());
  if (static_cast<int64_t>(indices.size()) != type.getRank() || sizes.empty())
    return op->emitOpError("(C1) needs ")
           << type.getRank()
           << " indices, one a range or a block of indices or more, has "
           << indices.size() << " with " << sizes.size() << " of those";
  if (sizesOf(block) != ArrayRef(sizes) ||
      cast<RankedTensorType>(block).getElementType() != type.getElementType())
    return op->emitOpError("(C2) has a block that is not ")
           << blockOf(sizes, type.getElementType());
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getResult().getType(), getMemory(), getIndices());
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getValue().getType(), getMemory(), getIndices());
}

LogicalResult PrefetchOp::verify() {
  const int64_t rank = cast<MemRefType>(getMemory().getType()).getRank();
  if (static_cast<int64_t>(getIndices().size()) != rank)
    return emitOpError("(C1) needs ")
           << rank << " indices, has " << getIndices().size();
  return success();
}

LogicalResult ScratchOp::verify() {
  auto type = cast<MemRefType>(getMemory().getType());
  if (!isNumber(type.getElementType()) || !type.getLayout().isIdentity() ||
      type.getRank() > int64_t(mostDimensions) || type.getRank() == 0)
    return emitOpError("(C2) has elements that are no numbers, or a layout");
  if (type.getShape() !=
      memoryOf(getSizes().getSizes(), type.getElementType()).getShape())
    return emitOpError("(C1) has a dimension that is not as its size says");
  if (getPairs() && (type.getRank() < 2 || type.getShape().end()[-2] != 2))
    return emitOpError("(C3) is in pairs, and its dimension before the last is "
                       "not of two");
  return success();
}

LogicalResult SplatOp::verify() {
  if (getNumber().getType() != getElementTypeOrSelf(getResult()))
    return emitOpError("(C1) has a number of another type than the block's");
  return success();
}

LogicalResult ExpandOp::verify() {
  SmallVector<SizeAttr> sizes(sizesOf(getBlock().getType()));
  const uint64_t axis = getAxis();
  const Type element = getElementTypeOrSelf(getBlock());
  if (axis <= sizes.size() && sizes.size() < mostDimensions) {
    sizes.insert(sizes.begin() + axis, SizeAttr::get(getContext(), 1, {}));
    if (getResult().getType() == blockOf(sizes, element))
      return success();
  }
  return emitOpError("(C1) has not the block's sizes with a 1 at axis ")
         << getAxis() << ", or not its numbers";
}

LogicalResult BroadcastOp::verify() {
  std::optional<SmallVector<SizeAttr>> sizes = broadcastSizes(
      sizesOf(getBlock().getType()), sizesOf(getResult().getType()));
  if (!sizes || ArrayRef(*sizes) != sizesOf(getResult().getType()) ||
      getElementTypeOrSelf(getBlock()) != getElementTypeOrSelf(getResult()))
    return emitOpError(
        "(C1) gives other numbers, or sizes that its block is not "
        "repeated to");
  return success();
}

LogicalResult AssertOp::verify() {
  if (!isa<func::FuncOp>((*this)->getParentOp()))
    return emitOpError("(C1) is in a loop or a branch");
  return success();
}

LogicalResult InterleaveOp::verify() {
  if (getResult().getType() !=
      blockOf(interleavedSizes(sizesOf(getLhs().getType())),
              getElementTypeOrSelf(getLhs())))
    return emitOpError("(C1) has not twice the last size, or not its numbers");
  return success();
}

SizeAttr block::productOf(ArrayRef<SizeAttr> sizes) {
  int64_t factor = 1;
  SmallVector<StringRef> names;
  for (SizeAttr size : sizes) {
    // Neither has more than 20 bits.
    factor *= size.getFactor();
    if (factor > SizeAttr::largestFactor)
      return {};
    for (StringAttr name : size.getNames())
      names.push_back(name);
  }
  if (names.size() > mostDimensions)
    return {};
  return SizeAttr::getSorted(sizes.front().getContext(), factor, names);
}

LogicalResult MatmulOp::verify() {
  const ArrayRef<SizeAttr> lhs = sizesOf(getLhs().getType()),
                           rhs = sizesOf(getRhs().getType()),
                           sums = sizesOf(getSums().getType());
  if (lhs.size() != 2 || rhs.size() < 2 || sums.size() != 2)
    return emitOpError("(C1) has ")
           << lhs.size() << ", " << rhs.size() << " and " << sums.size()
           << " dimensions, needs 2, 2 or more, and 2";
  if (sums[0] != lhs[0] || sums[1] != rhs.back() ||
      productOf(rhs.drop_back()) != lhs[1])
    return emitOpError("(C2) has matrices whose sizes do not go together");
  const Type element = getElementTypeOrSelf(getLhs());
  if (element != getElementTypeOrSelf(getRhs()) ||
      !getElementTypeOrSelf(getSums()).isF32() ||
      !(element.isF32() || element.isF16() || element.isBF16()))
    return emitOpError("(C3) multiplies what is not of the same floats of at "
                       "most 32 bits, or adds up in another type than f32");
  return success();
}

LogicalResult ReduceOp::verify() {
  if (getElementTypeOrSelf(getBlock()).isInteger(1))
    return emitOpError("(C3) is of truth, not of numbers");
  SmallVector<SizeAttr> sizes(sizesOf(getBlock().getType()));
  if (std::optional<uint64_t> axis = getAxis()) {
    if (*axis >= sizes.size())
      return emitOpError("(C1) has no dimension ") << *axis;
    sizes.erase(sizes.begin() + *axis);
  } else {
    sizes.clear();
  }
  if (getResult().getType() != blockOf(sizes, getElementTypeOrSelf(getBlock())))
    return emitOpError("(C2) has not the block's other dimensions, or not its "
                       "numbers");
  return success();
}
