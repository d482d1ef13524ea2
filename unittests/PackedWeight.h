//===- PackedWeight.h - Where a packed weight has its elements --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_PACKEDWEIGHT_H
#define SANDWICH_UNITTESTS_PACKEDWEIGHT_H

#include "sandwich/Scheduling/Schedule.h"

#include <cstdint>

namespace sandwich::test {

/// The number of element [n, k] of a weight with `depth` columns in memory:
/// the index into panel, step, tile, pack, row of the tile, k of the pack.
inline int64_t packedIndex(const Packing &packing, int64_t depth, int64_t n,
                           int64_t k) {
  int64_t index = n / packing.panel;
  index = index * (depth / packing.kStep) + k / packing.kStep;
  index =
      index * (packing.panel / packing.tile) + n % packing.panel / packing.tile;
  index = index * (packing.kStep / packing.kPack) +
          k % packing.kStep / packing.kPack;
  index = index * packing.tile + n % packing.tile;
  return index * packing.kPack + k % packing.kPack;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_PACKEDWEIGHT_H
