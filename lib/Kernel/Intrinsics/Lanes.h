//===- Lanes.h - Arithmetic of lanes ----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_INTRINSICS_LANES_H
#define SANDWICH_LIB_KERNEL_INTRINSICS_LANES_H

#include "sandwich/Kernel/Intrinsics.h"

namespace sandwich::kernel {

/// The value of a float, which f64 holds exactly.
double toDouble(Lane lane);
/// `value` rounded to a float `type`, to the nearest, of two the even one.
Lane fromDouble(double value, LaneType type);
/// The value of an integer or a lane of a mask; of U64 the same bits.
int64_t toInteger(Lane lane);
/// What `type`, an integer, keeps of the bits of `value`.
Lane fromInteger(int64_t value, LaneType type);

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_INTRINSICS_LANES_H
