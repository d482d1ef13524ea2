//===- BlockKernels.h - Vectorized loops over blocks of logits --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SAMPLING_BLOCKKERNELS_H
#define SANDWICH_LIB_SAMPLING_BLOCKKERNELS_H

#include <cstddef>
#include <cstdint>

namespace sandwich {

/// Logits of a block: few enough for the L1 cache to keep them while they are
/// looked at more than once, many enough that there are few blocks in a row.
inline constexpr size_t blockSize = 256;

/// The largest relative error of a weight that `sumWeights` adds, and so of the
/// sum, beside 2^-990 for weights too small for it.
inline constexpr double weightError = 4e-9;

/// The largest relative error of what `sumWeightsRoughly` returns.
inline constexpr double roughWeightError = 1e-5;

// All compute with the widest vectors that the CPU has; `logits` points to
// `blockSize` floats.

/// The largest of `logits`, or plus infinity if any of them is NaN.
float findLargest(const float *logits);

/// The sum of exp((logit - largest) * scale) over `logits`, none of which is
/// above `largest`, a finite number; `scale` is above zero.
double sumWeights(const float *logits, float largest, double scale);

/// The same for scale 1, in float and twice as fast: with a relative error of
/// at most `roughWeightError`.
double sumWeightsRoughly(const float *logits, float largest);

/// Copies `logits` to `copy`, which may be the same, with minus infinity where
/// the bit of the position in `allowed` is not set.
void barOthers(const float *logits, const uint64_t allowed[blockSize / 64],
               float *copy);

/// Writes the positions in `logits`, ascending, of those that are at least
/// `threshold`, and returns how many they are.
size_t findAtLeast(const float *logits, float threshold,
                   uint32_t positions[blockSize]);

} // namespace sandwich

#endif // SANDWICH_LIB_SAMPLING_BLOCKKERNELS_H
