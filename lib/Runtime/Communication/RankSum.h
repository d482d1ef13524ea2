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
/// elements each, into `result`, which may be among them. Adds in the order of
/// `sources`, so that the same arrays give the same bits.
void sumRanks(const float *const *sources, int32_t ranks, float *result,
              int64_t count);

/// As `sumRanks`, into `terms[rank]`, this rank's own. All other terms are
/// boxes that other ranks have written and this one writes next: the first
/// `answerCount` elements of each become those of `answer` as soon as they are
/// read. `answerCount` is at most `count`; if it is not 0, `count` is a
/// multiple of 32.
void sumAndAnswer(float *const *terms, int32_t rank, int32_t ranks,
                  int64_t count, const float *answer, int64_t answerCount);

/// Begins to fetch `count` floats of a box that another rank has written, so
/// that no other core keeps them: this rank reads them now and writes them
/// next.
void takeBox(const float *box, int64_t count);

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_COMMUNICATION_RANKSUM_H
