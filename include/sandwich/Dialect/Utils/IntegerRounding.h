//===- IntegerRounding.h - Groups of numbers as int8 ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_UTILS_INTEGERROUNDING_H
#define SANDWICH_DIALECT_UTILS_INTEGERROUNDING_H

#include "sandwich/Dialect/Utils/LoopBuilder.h"

namespace sandwich {

/// The magnitudes of a vector of f32 as i32, which are in the same order; what
/// is no number is beyond all, and beyond infinity.
mlir::Value magnitudeBits(LoopBuilder &builder, mlir::Value vector);

/// How a group is rounded: what an integer counts for, and what numbers are
/// multiplied by. Both are f32, or vectors, of which each is a group's.
struct IntegerScale {
  mlir::Value scale, inverse;
};
/// That of a group whose largest magnitude, `largest`, becomes 127. So small
/// ones that the inverse would be infinite become 0.
IntegerScale scaleToInt8(LoopBuilder &builder, mlir::Value largest);

/// A vector of f32 times the vector `factor`, rounded to the nearest integers,
/// ties to even, as i32: the last bits are those of the integers, and all are
/// so when `integerRoundingBits` are taken away.
mlir::Value roundToIntegers(LoopBuilder &builder, mlir::Value vector,
                            mlir::Value factor);
inline constexpr int32_t integerRoundingBits = 0x4b400000;

} // namespace sandwich

#endif // SANDWICH_DIALECT_UTILS_INTEGERROUNDING_H
