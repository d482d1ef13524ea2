//===- ByteRange.h - A part of a text ---------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_BYTERANGE_H
#define SANDWICH_SUPPORT_BYTERANGE_H

#include <cstddef>

namespace sandwich {

/// The bytes `[begin, end)` of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
  bool operator==(const ByteRange &) const = default;
};

} // namespace sandwich

#endif // SANDWICH_SUPPORT_BYTERANGE_H
