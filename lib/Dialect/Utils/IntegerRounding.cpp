//===- IntegerRounding.cpp - Groups of numbers as int8 --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Utils/IntegerRounding.h"

#include <bit>

using namespace mlir;
using namespace sandwich;

/// `vector`, of f32, as a vector of i32.
static Value bitsOf(LoopBuilder &b, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  return vector::BitCastOp::create(b, type.clone(b.getI32Type()), vector);
}

Value sandwich::magnitudeBits(LoopBuilder &b, Value vector) {
  Value bits = bitsOf(b, vector);
  Value magnitude = arith::ConstantOp::create(
      b, DenseElementsAttr::get(cast<ShapedType>(bits.getType()),
                                b.getI32IntegerAttr(0x7fffffff)));
  return arith::AndIOp::create(b, bits, magnitude);
}

IntegerScale sandwich::scaleToInt8(LoopBuilder &b, Value largest) {
  constexpr float mostSteps = 127;
  constexpr float smallestNumber = 1e-36f;
  auto vector = dyn_cast<VectorType>(largest.getType());
  auto number = [&](float value) {
    return vector ? b.splat(value, vector.getNumElements()) : b.constant(value);
  };
  Value scale = b.mulf(largest, number(1 / mostSteps));
  Value isSome = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, largest,
                                       number(smallestNumber));
  Value inverse = arith::SelectOp::create(
      b, isSome, arith::DivFOp::create(b, number(mostSteps), largest),
      number(0));
  return {scale, inverse};
}

Value sandwich::roundToIntegers(LoopBuilder &b, Value vector, Value factor) {
  // The last bits of a number that is rounded so far up are an integer's.
  constexpr float roundingNumber = 3 << 22;
  static_assert(std::bit_cast<float>(integerRoundingBits) == roundingNumber);
  const int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  return bitsOf(b, b.fma(vector, factor, b.splat(roundingNumber, width)));
}
