//===- Lanes.h - Arithmetic of lanes ----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_LANES_H
#define SANDWICH_KERNEL_LANES_H

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

/// As `Expression::Kind::Convert` and `Saturate` have it.
Lane convertLane(Lane lane, LaneType type);
Lane saturateLane(Lane lane, LaneType type);
/// What any other operation of an expression that is computed of lanes alone
/// gives. An error if there is none for such lanes, or none for these.
Result<Lane> computeLane(Expression::Kind kind, std::span<const Lane> operands);

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_LANES_H
