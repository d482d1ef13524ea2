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
#include "sandwich/Quantization/Float8.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

using namespace sandwich;

void IntegerGroups::readValues(int64_t row, int64_t column, int64_t columns,
                               std::span<float> values) const {
  const int64_t size = groupFormat.groupOf(columns);
  std::vector<uint8_t> numbers(size);
  std::vector<float> ofGroup(size);
  while (!values.empty()) {
    const GroupScale scale = read(row, column / size, numbers);
    dequantizeGroup(groupFormat, scale, numbers, ofGroup);
    const auto count = std::min<int64_t>(size - column % size,
                                         static_cast<int64_t>(values.size()));
    std::copy_n(ofGroup.begin() + column % size, count, values.begin());
    values = values.subspan(count);
    column += count;
  }
}

bool sandwich::holds(const StorageFormat &format, const StorageFormat &stored,
                     int64_t columns) {
  return format.isQuantized() && stored.isQuantized() &&
         format.hasIntegers() == stored.hasIntegers() &&
         format.bits() >= stored.bits() &&
         stored.groupOf(columns) % format.groupOf(columns) == 0 &&
         (format.offset == GroupOffset::Minimum ||
          stored.offset == GroupOffset::None);
}

std::optional<StorageFormat> sandwich::join(const StorageFormat &one,
                                            const StorageFormat &other,
                                            int64_t columns) {
  if (one.hasIntegers() != other.hasIntegers())
    return std::nullopt;
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

/// Whether `format` holds `value`, or a number within 2^-11 of it.
static bool fits(ScaleFormat format, float value) {
  return std::abs(roundToScale(format, value) - value) <=
         0x1p-11f * std::abs(value);
}

std::optional<StorageFormat> sandwich::naturalFormat(const TensorView &tensor) {
  if (!tensor.integers || tensor.update ||
      !tensor.integers->hasColumnsInOrder())
    return std::nullopt;
  StorageFormat format = tensor.integers->format();
  if (format.scale == ScaleFormat::F16 || !format.hasIntegers())
    return format;
  // Also of the minimum where other layers have some.
  const auto zero = static_cast<float>(format.storedZero());
  const int64_t groups = tensor.shape[1] / format.groupOf(tensor.shape[1]);
  for (int64_t row = 0; row < tensor.shape[0]; ++row)
    for (int64_t group = 0; group < groups; ++group) {
      const GroupScale scale = tensor.integers->readScale(row, group);
      if (!fits(ScaleFormat::F16, scale.scale) ||
          !fits(ScaleFormat::F16, zero * scale.scale) ||
          !fits(ScaleFormat::F16, scale.minimum))
        return format;
    }
  format.scale = ScaleFormat::F16;
  return format;
}

std::optional<StorageFormat>
sandwich::naturalFormat(const Checkpoint &checkpoint, const std::string &source,
                        int64_t layers) {
  std::optional<StorageFormat> joined;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const TensorView *tensor = checkpoint.find(numberLayer(source, layer));
    const std::optional<StorageFormat> format =
        tensor ? naturalFormat(*tensor) : std::nullopt;
    if (!format)
      return std::nullopt;
    joined = joined ? join(*joined, *format, tensor->shape[1]) : *format;
    if (!joined)
      return std::nullopt;
  }
  return joined;
}

Status sandwich::checkColumnOrder(const Checkpoint &checkpoint,
                                  const std::string &source, int64_t layers) {
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = numberLayer(source, layer);
    const TensorView *tensor = checkpoint.find(name);
    if (tensor && tensor->integers && !tensor->integers->hasColumnsInOrder())
      return makeError(
          checkpoint.pathOf(name), ": tensor ", quote(name),
          " has groups of columns in an order of their own (desc_act, "
          "actorder), so that its integers cannot stay as they are; --dtype "
          "rounds what they stand for to another format");
  }
  return {};
}

bool sandwich::hasGroupsOf(const TensorView &tensor,
                           const StorageFormat &format) {
  return tensor.integers && !tensor.update &&
         tensor.integers->hasColumnsInOrder() &&
         holds(format, tensor.integers->format(), tensor.shape[1]);
}

/// Turns `numbers`, which `stored` has with `scale`, into those of `format`;
/// nothing if that would change the scale too much.
static std::optional<GroupScale> convert(const StorageFormat &stored,
                                         const GroupScale &scale,
                                         const StorageFormat &format,
                                         std::span<uint8_t> numbers) {
  GroupScale converted = scale;
  const bool addsMinimum = stored.offset == GroupOffset::None &&
                           format.offset == GroupOffset::Minimum;
  if (addsMinimum)
    converted.minimum =
        -static_cast<float>(stored.storedZero()) * converted.scale;
  if (!fits(format.scale, converted.scale) ||
      !fits(format.scale, converted.minimum))
    return std::nullopt;
  converted.scale = roundToScale(format.scale, converted.scale);
  // So that a number of 0 stays one.
  if (addsMinimum)
    converted.minimum =
        -static_cast<float>(stored.storedZero()) * converted.scale;
  converted.minimum = roundToScale(format.scale, converted.minimum);
  if (format.offset == GroupOffset::None)
    for (uint8_t &number : numbers)
      number += format.storedZero() - stored.storedZero();
  return converted;
}

/// `readGroup`, without the name in errors.
static Result<GroupScale> readNumbers(const TensorView &tensor,
                                      const StorageFormat &format, int64_t row,
                                      int64_t column,
                                      std::span<uint8_t> numbers) {
  const StorageFormat &stored = tensor.integers->format();
  const int64_t group = stored.groupOf(tensor.shape[1]);
  const auto count = static_cast<int64_t>(numbers.size());
  const int64_t storedRow = tensor.storedRow(row);
  GroupScale scale;
  if (count == group) {
    scale = tensor.integers->read(storedRow, column / group, numbers);
  } else {
    std::vector<uint8_t> all(group);
    scale = tensor.integers->read(storedRow, column / group, all);
    std::copy_n(all.begin() + column % group, count, numbers.begin());
  }
  if (!std::isfinite(scale.scale) || !std::isfinite(scale.minimum))
    return makeError("the scale of elements ", column, " to ",
                     column + count - 1, " is not finite");
  // Of any of its numbers, so that errors do not depend on which there are.
  const float largest = stored.hasIntegers()
                            ? static_cast<float>(int64_t(1) << stored.bits())
                            : largestFloat8;
  if (!std::isfinite(std::abs(scale.scale) * largest + std::abs(scale.minimum)))
    return makeError("the scale of elements ", column, " to ",
                     column + count - 1, ", ", scale.scale,
                     ", is too large for what it scales");
  if (!format.hasIntegers())
    for (int64_t i = 0; i < count; ++i)
      if (isFloat8NaN(numbers[i]))
        return makeError("element ", column + i,
                         " is NaN; weights must be finite");
  if (std::optional<GroupScale> converted =
          convert(stored, scale, format, numbers))
    return *converted;
  std::vector<float> values(numbers.size());
  dequantizeGroup(stored, scale, numbers, values);
  return quantizeGroup(format, values, numbers);
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
  assert(hasGroupsOf(tensor, format));
  return inTensor(readNumbers(tensor, format, row, column, numbers), name, row);
}

Status sandwich::readRounded(std::string_view name, const TensorView &tensor,
                             const StorageFormat &format,
                             std::span<float> values) {
  const int64_t columns = tensor.shape[1], size = format.groupOf(columns);
  const bool hasGroups = hasGroupsOf(tensor, format);
  std::vector<uint8_t> numbers(size);
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    std::span<float> rest = values.subspan(row * columns, columns);
    if (!hasGroups) {
      readRow(tensor, row, rest);
      SANDWICH_RETURN_IF_ERROR(checkFinite(name, tensor, row * columns, rest));
    }
    for (int64_t column = 0; column < columns; column += size) {
      const std::span<float> part = rest.subspan(column, size);
      SANDWICH_ASSIGN_OR_RETURN(
          GroupScale scale,
          hasGroups
              ? readGroup(name, tensor, format, row, column, numbers)
              : inTensor(quantizeGroup(format, part, numbers), name, row));
      dequantizeGroup(format, scale, numbers, part);
    }
  }
  return {};
}
