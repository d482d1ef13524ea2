//===- RankSum.h - Sums in the order of ranks -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_COMMUNICATION_RANKSUM_H
#define SANDWICH_LIB_RUNTIME_COMMUNICATION_RANKSUM_H

#include <cstdint>

namespace sandwich {

/// Puts the element-wise sums of the `ranks` arrays `sources`, of `count`
/// elements each, into `result` and, unless it is null, into `copy`. Adds in
/// the order of `sources`, so that the same arrays give the same bits. `result`
/// and `copy` may be among the sources.
void sumRanks(const float *const *sources, int32_t ranks, float *result,
              float *copy, int64_t count);

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_COMMUNICATION_RANKSUM_H
