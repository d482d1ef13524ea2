//===- IntegerGroups.cpp - Matrices that a file has as integers -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/IntegerGroups.h"

#include "Describe.h"
#include "sandwich/Frontend/Checkpoint.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace sandwich;

bool sandwich::holds(const StorageFormat &format, const StorageFormat &stored,
                     int64_t columns) {
  return format.isQuantized() && stored.isQuantized() &&
         format.bits() >= stored.bits() &&
         stored.groupOf(columns) % format.groupOf(columns) == 0 &&
         (format.offset == GroupOffset::Minimum ||
          stored.offset == GroupOffset::None);
}

StorageFormat sandwich::join(const StorageFormat &one,
                             const StorageFormat &other, int64_t columns) {
  StorageFormat joined = one.bits() >= other.bits() ? one : other;
  if (one.groupSize != other.groupSize)
    joined.groupSize = std::gcd(one.groupOf(columns), other.groupOf(columns));
  if (other.offset == GroupOffset::Minimum ||
      one.offset == GroupOffset::Minimum)
    joined.offset = GroupOffset::Minimum;
  if (other.scale == ScaleFormat::F32 || one.scale == ScaleFormat::F32)
    joined.scale = ScaleFormat::F32;
  return joined;
}

/// Whether f16 holds `value`, or the next number to it within 2^-11.
static bool isInNormalRange(float value) {
  constexpr float smallest = 0x1p-14f, largest = 65504;
  const float size = std::abs(value);
  return value == 0 || (size >= smallest && size <= largest);
}

std::optional<StorageFormat> sandwich::naturalFormat(const TensorView &tensor) {
  if (!tensor.integers || tensor.update)
    return std::nullopt;
  StorageFormat format = tensor.integers->format();
  if (format.scale == ScaleFormat::F16)
    return format;
  const int64_t groups = tensor.shape[1] / format.groupOf(tensor.shape[1]);
  for (int64_t row = 0; row < tensor.shape[0]; ++row)
    for (int64_t group = 0; group < groups; ++group) {
      const GroupScale scale = tensor.integers->readScale(row, group);
      if (!isInNormalRange(scale.scale) || !isInNormalRange(scale.minimum))
        return format;
    }
  format.scale = ScaleFormat::F16;
  return format;
}

/// The file's own integers, which `format` holds.
static Result<GroupScale> copyGroup(const TensorView &tensor,
                                    const StorageFormat &format, int64_t row,
                                    int64_t column,
                                    std::span<uint8_t> numbers) {
  const StorageFormat &stored = tensor.integers->format();
  const int64_t group = stored.groupOf(tensor.shape[1]);
  const auto count = static_cast<int64_t>(numbers.size());
  GroupScale scale;
  if (count == group) {
    scale =
        tensor.integers->read(tensor.storedRow(row), column / group, numbers);
  } else {
    std::vector<uint8_t> all(group);
    scale = tensor.integers->read(tensor.storedRow(row), column / group, all);
    std::copy_n(all.begin() + column % group, count, numbers.begin());
  }
  if (!std::isfinite(scale.scale) || !std::isfinite(scale.minimum))
    return makeError("the scale of elements ", column, " to ",
                     column + count - 1, " is not finite");
  scale.scale = roundToScale(format.scale, scale.scale);
  if (stored.offset == GroupOffset::None) {
    const auto zero = static_cast<float>(stored.storedZero());
    if (format.offset == GroupOffset::Minimum)
      scale.minimum = -zero * scale.scale;
    else if (format.storedZero() != stored.storedZero())
      for (uint8_t &number : numbers)
        number += format.storedZero() - stored.storedZero();
  }
  scale.minimum = roundToScale(format.scale, scale.minimum);
  if (!std::isfinite(scale.scale) || !std::isfinite(scale.minimum))
    return makeError("the scale of elements ", column, " to ",
                     column + count - 1, " is too large for ",
                     name(format.scale));
  return scale;
}

static Result<GroupScale> inTensor(Result<GroupScale> scale,
                                   std::string_view name, int64_t row) {
  if (scale)
    return scale;
  return scale.error().inContext("tensor " + quote(name) + ": row " +
                                 std::to_string(row));
}

Result<GroupScale> sandwich::readGroup(std::string_view name,
                                       const TensorView &tensor,
                                       const StorageFormat &format, int64_t row,
                                       int64_t column,
                                       std::span<uint8_t> numbers) {
  const int64_t columns = tensor.shape[1];
  if (tensor.integers && !tensor.update &&
      holds(format, tensor.integers->format(), columns))
    return inTensor(copyGroup(tensor, format, row, column, numbers), name, row);
  std::vector<float> values(numbers.size());
  const int64_t first = row * columns + column;
  readElements(tensor, first, values);
  SANDWICH_RETURN_IF_ERROR(checkFinite(name, tensor, first, values));
  return inTensor(quantizeGroup(format, values, numbers), name, row);
}

Status sandwich::readRounded(std::string_view name, const TensorView &tensor,
                             const StorageFormat &format,
                             std::span<float> values) {
  const int64_t columns = tensor.shape[1], size = format.groupOf(columns);
  std::vector<uint8_t> numbers(size);
  for (int64_t row = 0; row < tensor.shape[0]; ++row)
    for (int64_t column = 0; column < columns; column += size) {
      SANDWICH_ASSIGN_OR_RETURN(
          GroupScale scale,
          readGroup(name, tensor, format, row, column, numbers));
      dequantizeGroup(format, scale, numbers, values.first(size));
      values = values.subspan(size);
    }
  return {};
}
