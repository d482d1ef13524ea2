//===- RankSum.cpp - Sums in the order of ranks ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankSum.h"

#include "sandwich/Support/WidestVectors.h"

using namespace sandwich;

namespace {
/// As many elements as a cache line holds, at any address of a float.
typedef float Line __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int64_t lineElements = sizeof(Line) / sizeof(float);
} // namespace

SANDWICH_WIDEST_VECTORS
void sandwich::sumRanks(const float *const *sources, int32_t ranks,
                        float *result, float *copy, int64_t count) {
  int64_t i = 0;
  for (; i + 2 * lineElements <= count; i += 2 * lineElements) {
    // Two at once, as each of them waits for its previous addition.
    Line first = *reinterpret_cast<const Line *>(sources[0] + i);
    Line second =
        *reinterpret_cast<const Line *>(sources[0] + i + lineElements);
    for (int32_t rank = 1; rank < ranks; ++rank) {
      first += *reinterpret_cast<const Line *>(sources[rank] + i);
      second +=
          *reinterpret_cast<const Line *>(sources[rank] + i + lineElements);
    }
    *reinterpret_cast<Line *>(result + i) = first;
    *reinterpret_cast<Line *>(result + i + lineElements) = second;
    if (copy) {
      *reinterpret_cast<Line *>(copy + i) = first;
      *reinterpret_cast<Line *>(copy + i + lineElements) = second;
    }
  }
  for (; i < count; ++i) {
    float sum = sources[0][i];
    for (int32_t rank = 1; rank < ranks; ++rank)
      sum += sources[rank][i];
    result[i] = sum;
    if (copy)
      copy[i] = sum;
  }
}
