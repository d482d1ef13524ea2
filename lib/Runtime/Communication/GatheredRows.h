//===- GatheredRows.h - Rows that ranks have parts of -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_COMMUNICATION_GATHEREDROWS_H
#define SANDWICH_LIB_RUNTIME_COMMUNICATION_GATHEREDROWS_H

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sandwich {

/// Copies elements [begin, begin + count) of a part with rows of `columns`
/// elements, which `from` points to, to where they belong in rows of `stride`
/// elements; `to` is where the part's first element belongs.
inline void placeElements(float *to, int64_t stride, const float *from,
                          int64_t begin, int64_t count, int64_t columns) {
  while (count > 0) {
    int64_t row = begin / columns;
    int64_t column = begin % columns;
    int64_t size = std::min(count, columns - column);
    std::memcpy(to + row * stride + column, from,
                static_cast<size_t>(size) * sizeof(float));
    from += size;
    begin += size;
    count -= size;
  }
}

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_COMMUNICATION_GATHEREDROWS_H
