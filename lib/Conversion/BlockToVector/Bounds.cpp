//===- Bounds.cpp - Places that kernels must not reach --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

using Set = ValueBoundsConstraintSet;

/// The line of an operation's source; 1 where that is not known.
static unsigned lineOf(Operation *op) {
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  return place && place.getLine() > 0 ? place.getLine() : 1;
}

/// Whether it is proven that `lhs` is at most `rhs`.
static bool isAtMost(Value lhs, Value rhs) {
  std::optional<int64_t> left = constantOf(lhs), right = constantOf(rhs);
  if (left && right)
    return *left <= *right;
  if (lhs == rhs)
    return true;
  return Set::compare(lhs, Set::LE, rhs);
}

Value KernelLowering::extentOf(Value memory, unsigned number) {
  if (auto argument = dyn_cast<BlockArgument>(memory))
    return sizeValue(
        sizesOfArgument(kernel, argument.getArgNumber()).getSizes()[number]);
  return b.index(
      cast<MemRefType>(numberOf(memory).getType()).getDimSize(number));
}

void KernelLowering::keepLine(Operation *op, Value isInside) {
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value isOutside = arith::XOrIOp::create(b, isInside, yes);
  b.ifThen(isOutside, [&] {
    Value zero = b.index(0);
    Value known = memref::LoadOp::create(b, line, ValueRange(zero));
    Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
    Value own = arith::ConstantOp::create(b, b.getI64IntegerAttr(lineOf(op)));
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, known, none);
    memref::StoreOp::create(b, arith::SelectOp::create(b, isFirst, own, known),
                            line, ValueRange(zero));
  });
}

Value KernelLowering::checkBounds(Operation *op, Value memory,
                                  ValueRange indices) {
  if (!checks)
    return {};
  ++checks->accesses;
  Value zero = b.index(0), isInside;
  const auto require = [&](Value condition) {
    isInside = isInside
                   ? arith::AndIOp::create(b, isInside, condition).getResult()
                   : condition;
  };
  const auto atMost = [&](Value lhs, Value rhs) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, lhs, rhs);
  };
  for (auto [number, index] : llvm::enumerate(indices)) {
    Value extent = extentOf(memory, number);
    if (isBlock(index.getType())) {
      for (Value place : placesOf(index)) {
        require(atMost(zero, place));
        require(
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, place, extent));
      }
      continue;
    }
    if (!isa<RangeType>(index.getType())) {
      Value place = numberOf(index);
      Value next = b.createOrFold<arith::AddIOp>(
          place, b.index(1), arith::IntegerOverflowFlags::nsw);
      if (isAtMost(zero, place) && isAtMost(next, extent))
        continue;
      require(atMost(zero, place));
      require(
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, place, extent));
      continue;
    }
    const LoweredRange &range = rangeOf(index);
    const bool endsBefore = llvm::any_of(
        range.ends, [&](Value end) { return isAtMost(end, extent); });
    if (endsBefore && isAtMost(zero, range.first))
      continue;
    // Where nothing is there, it does not matter where that would be.
    Value count = range.count ? range.count : b.index(range.size);
    // A difference of sizes does not wrap around.
    Value last = arith::SubIOp::create(b, extent, count);
    Value isWithin = arith::AndIOp::create(b, atMost(zero, range.start),
                                           atMost(range.start, last));
    if (range.count)
      isWithin = arith::OrIOp::create(b, isWithin, atMost(count, zero));
    require(isWithin);
  }
  if (!isInside) {
    ++checks->proven;
    return {};
  }
  const unsigned own = lineOf(op);
  auto at = llvm::lower_bound(checks->checkedLines, own);
  if (at == checks->checkedLines.end() || *at != own)
    checks->checkedLines.insert(at, own);
  keepLine(op, isInside);
  return isInside;
}

Value KernelLowering::checkArguments() {
  Value areLarge;
  for (BlockArgument argument : kernel.getArguments()) {
    SizesAttr sizes = sizesOfArgument(kernel, argument.getArgNumber());
    if (!sizes)
      continue;
    Value memory = numberOf(argument);
    for (auto [number, size] : llvm::enumerate(sizes.getSizes())) {
      Value own =
          b.createOrFold<memref::DimOp>(memory, static_cast<int64_t>(number));
      Value declared = sizeValue(size);
      if (own == declared || (constantOf(own) && constantOf(declared) &&
                              *constantOf(own) == *constantOf(declared)))
        continue;
      // The one that has the name is as large by definition.
      if (auto defined = size.getNames().size() == 1 && size.getFactor() == 1
                             ? findDimension(kernel, size.getNames().front())
                             : std::nullopt;
          defined && defined->first == argument.getArgNumber() &&
          defined->second == number)
        continue;
      Value isEqual =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own, declared);
      areLarge = areLarge
                     ? arith::AndIOp::create(b, areLarge, isEqual).getResult()
                     : isEqual;
    }
  }
  if (areLarge)
    keepLine(kernel, areLarge);
  return areLarge;
}
