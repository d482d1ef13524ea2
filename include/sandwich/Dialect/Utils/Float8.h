//===- Float8.h - Floats of eight bits in vectors ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_UTILS_FLOAT8_H
#define SANDWICH_DIALECT_UTILS_FLOAT8_H

#include "sandwich/Dialect/Utils/LoopBuilder.h"

namespace sandwich {

/// The numbers of E4M3 (sandwich/Quantization/Float8.h) that are bits `shift`
/// to `shift + 7` of each element of `line`, a vector of i32, as a vector of
/// f32: exactly, subnormal ones, too. What is no number becomes 480.
mlir::Value extendFloat8(LoopBuilder &builder, mlir::Value line, int64_t shift);

} // namespace sandwich

#endif // SANDWICH_DIALECT_UTILS_FLOAT8_H
