//===- Quantizer.h - From floats to stored numbers --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_QUANTIZATION_QUANTIZER_H
#define SANDWICH_QUANTIZATION_QUANTIZER_H

#include "sandwich/Quantization/StorageFormat.h"

#include <cstdint>
#include <span>

namespace sandwich {

/// What the numbers of a group have in common; both are as `ScaleFormat`
/// stores them, and finite.
struct GroupScale {
  float scale = 0;
  /// 0 without `GroupOffset::Minimum`.
  float minimum = 0;
};

/// `value` as `format` stores it, to the nearest, ties to even; infinite where
/// it is too large.
float roundToScale(ScaleFormat format, float value);

/// Rounds `values`, which are finite, to numbers of `format`, one in each of
/// `numbers` as it is stored. The scale is the one of some near the group's
/// range that gives the least sum of squared errors, each times the
/// `importance` of its value: finite numbers from 0 on, as many as values, or
/// none. Where these differ, that scale is fitted to its numbers by least
/// squares, too, as the range tells little of the few values that count; equal
/// ones give what none do. Errors: values that are too large for a scale of the
/// format.
Result<GroupScale> quantizeGroup(const StorageFormat &format,
                                 std::span<const float> values,
                                 std::span<uint8_t> numbers,
                                 std::span<const float> importance = {});

/// What `numbers` stand for.
void dequantizeGroup(const StorageFormat &format, const GroupScale &group,
                     std::span<const uint8_t> numbers, std::span<float> values);

} // namespace sandwich

#endif // SANDWICH_QUANTIZATION_QUANTIZER_H
