//===- Float8.cpp - Floats of eight bits in vectors -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Utils/Float8.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

Value sandwich::extendFloat8(LoopBuilder &b, Value line, int64_t shift) {
  auto type = cast<VectorType>(line.getType());
  auto splat = [&](uint32_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               type, b.getI32IntegerAttr(static_cast<int32_t>(value))));
  };
  // The number moves to the top, so that its sign is that of f32, and its
  // exponent and mantissa then to where those of f32 end and begin. What is
  // between them are copies of the sign.
  if (shift < 24)
    line = arith::ShLIOp::create(b, line, splat(24 - shift));
  line = arith::ShRSIOp::create(b, line, splat(4));
  line = arith::AndIOp::create(b, line, splat(0x87f00000));
  Value numbers =
      vector::BitCastOp::create(b, type.clone(b.getF32Type()), line);
  // The exponent of f32 is biased by 120 more.
  return b.mulf(numbers, b.splat(0x1p120f, type.getNumElements()));
}
