//===- TensorElements.cpp - Streaming weights as float32 ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The loops are free of branches and calls, so that compilers vectorize them;
/// elements are loaded with memcpy because a safetensors file need not align
/// them.
///
//===----------------------------------------------------------------------===//

#include "Describe.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/IntegerGroups.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

using namespace sandwich;

static_assert(std::endian::native == std::endian::little,
              "safetensors data are little-endian");

static constexpr uint32_t exponentMask = 0x7f800000;

/// `one` where `condition` holds, else `other`; by masks, because compilers
/// turn a conditional expression into a branch around arithmetic on floats.
static uint32_t select(bool condition, uint32_t one, uint32_t other) {
  uint32_t mask = 0u - uint32_t(condition);
  return (one & mask) | (other & ~mask);
}

static float floatFromHalf(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  int32_t magnitude = half & 0x7fff;
  uint32_t shifted = uint32_t(magnitude) << 13;
  // The exponent's bias is 15 in a half and 127 in a float. Infinities and NaNs
  // take the widest exponent; below the normal halves, each unit is 2^-24.
  uint32_t normal = shifted + ((127 - 15) << 23);
  uint32_t subnormal = std::bit_cast<uint32_t>(float(magnitude) * 0x1p-24f);
  uint32_t finite = select(magnitude < 0x0400, subnormal, normal);
  return std::bit_cast<float>(
      sign | select(magnitude >= 0x7c00, shifted | exponentMask, finite));
}

static float floatFromBFloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

template <typename Bits, typename Convert>
static void convertElements(const std::byte *source,
                            std::span<float> destination, Convert convert) {
  for (size_t i = 0; i < destination.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, source + i * sizeof(Bits), sizeof(Bits));
    destination[i] = convert(bits);
  }
}

int64_t sandwich::elementCount(const TensorView &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.shape)
    count *= size;
  return count;
}

int64_t sandwich::rowLength(const TensorView &tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.back();
}

/// Adds what `update` says to the elements from number `first` on of a matrix
/// of `columns`.
static void addUpdate(const LowRankUpdate &update, int64_t columns,
                      int64_t first, std::span<float> destination) {
  const int64_t rank = update.right.shape[0];
  std::vector<float> right(rank * columns), left(rank);
  readElements(update.right, 0, right);
  while (!destination.empty()) {
    const int64_t row = first / columns, column = first % columns;
    const auto count = std::min<int64_t>(
        columns - column, static_cast<int64_t>(destination.size()));
    readRow(update.left, row, left);
    for (int64_t k = 0; k < rank; ++k) {
      const float factor = update.scale * left[k];
      const float *source = right.data() + k * columns + column;
      for (int64_t i = 0; i < count; ++i)
        destination[i] += factor * source[i];
    }
    destination = destination.subspan(count);
    first += count;
  }
}

/// Reads numbers of a type that `isUsableElementType`, in the file's order.
static void readFloats(const TensorView &tensor, int64_t firstElement,
                       std::span<float> destination) {
  assert(isUsableElementType(tensor.elementType));
  size_t elementBytes = bitsPerElement(tensor.elementType) / 8;
  assert(firstElement >= 0 && size_t(firstElement) + destination.size() <=
                                  tensor.bytes.size() / elementBytes);
  if (destination.empty())
    return;
  const std::byte *source = tensor.bytes.data() + firstElement * elementBytes;
  switch (tensor.elementType) {
  case ElementType::F32:
    std::memcpy(destination.data(), source, destination.size_bytes());
    return;
  case ElementType::F16:
    convertElements<uint16_t>(source, destination, floatFromHalf);
    return;
  default:
    convertElements<uint16_t>(source, destination, floatFromBFloat16);
    return;
  }
}

/// Reads what is stored.
static void readStored(const TensorView &tensor, int64_t firstElement,
                       std::span<float> destination) {
  if (!tensor.integers && tensor.alternatingRows == 0) {
    readFloats(tensor, firstElement, destination);
    return;
  }
  // The rows of a vector are single elements.
  const int64_t columns = tensor.shape.size() == 1 ? 1 : tensor.shape[1];
  while (!destination.empty()) {
    const int64_t row = tensor.storedRow(firstElement / columns);
    const int64_t column = firstElement % columns;
    const auto count = std::min<int64_t>(
        columns - column, static_cast<int64_t>(destination.size()));
    if (tensor.integers)
      tensor.integers->readValues(row, column, columns,
                                  destination.first(count));
    else
      readFloats(tensor, row * columns + column, destination.first(count));
    destination = destination.subspan(count);
    firstElement += count;
  }
}

void sandwich::readElements(const TensorView &tensor, int64_t firstElement,
                            std::span<float> destination) {
  readStored(tensor, firstElement, destination);
  if (tensor.update)
    addUpdate(*tensor.update, rowLength(tensor), firstElement, destination);
}

void sandwich::readRow(const TensorView &tensor, int64_t row,
                       std::span<float> destination) {
  assert(int64_t(destination.size()) == rowLength(tensor));
  readElements(tensor, row * rowLength(tensor), destination);
}

void sandwich::roundToBFloat16(std::span<const float> source,
                               std::span<uint16_t> destination) {
  assert(source.size() == destination.size());
  for (size_t i = 0; i < source.size(); ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(source[i]);
    uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    // Rounding could carry a NaN's mantissa away; setting its quiet bit cannot.
    bool isNaN = (bits & 0x7fffffff) > exponentMask;
    destination[i] = uint16_t((isNaN ? bits | 0x00400000 : rounded) >> 16);
  }
}

/// The number of the first of `values` whose bits are bad, if any is.
template <typename IsBad>
static std::optional<size_t> findFirst(std::span<const float> values,
                                       IsBad isBad) {
  uint32_t bad = 0;
  for (float value : values)
    bad |= uint32_t(isBad(std::bit_cast<uint32_t>(value)));
  if (!bad)
    return std::nullopt;
  size_t first = 0;
  while (!isBad(std::bit_cast<uint32_t>(values[first])))
    ++first;
  return first;
}

/// "tensor NAME: element INDEX" for the element number `element`.
static std::string describeElement(std::string_view name,
                                   const TensorView &tensor, int64_t element) {
  std::vector<int64_t> index(tensor.shape.size());
  for (size_t i = index.size(); i-- > 0;) {
    index[i] = element % tensor.shape[i];
    element /= tensor.shape[i];
  }
  return "tensor " + quote(name) + ": element " + describeShape(index);
}

Status sandwich::checkFinite(std::string_view name, const TensorView &tensor,
                             int64_t firstElement,
                             std::span<const float> values) {
  auto first = findFirst(values, [](uint32_t bits) {
    return (bits & exponentMask) == exponentMask;
  });
  if (!first)
    return {};
  return makeError(
      describeElement(name, tensor, firstElement + int64_t(*first)), " is ",
      std::isnan(values[*first]) ? "NaN" : "infinite",
      "; weights must be finite");
}

Status sandwich::checkFitsBFloat16(std::string_view name,
                                   const TensorView &tensor,
                                   int64_t firstElement,
                                   std::span<const float> values) {
  // Half a unit beyond the largest bfloat16, whose last bit is odd, so that it
  // rounds up.
  constexpr uint32_t leastThatOverflows = 0x7f7f8000;
  auto first = findFirst(values, [](uint32_t bits) {
    return (bits & 0x7fffffff) >= leastThatOverflows;
  });
  if (!first)
    return {};
  return makeError(
      describeElement(name, tensor, firstElement + int64_t(*first)), " is ",
      values[*first], ", which bf16 cannot hold; compile the model as f32");
}

Status sandwich::checkSameElements(std::string_view name,
                                   const TensorView &tensor,
                                   std::string_view otherName,
                                   const TensorView &other) {
  assert(tensor.shape == other.shape);
  constexpr int64_t pieceElements = 1 << 14;
  std::vector<float> piece(pieceElements), otherPiece(pieceElements);
  const int64_t count = elementCount(tensor);
  for (int64_t begin = 0; begin < count; begin += pieceElements) {
    auto size = size_t(std::min(pieceElements, count - begin));
    std::span<float> values(piece.data(), size);
    std::span<float> others(otherPiece.data(), size);
    readElements(tensor, begin, values);
    readElements(other, begin, others);
    auto [value, different] = std::ranges::mismatch(values, others);
    if (value == values.end())
      continue;
    return makeError(
        describeElement(name, tensor, begin + (value - values.begin())), " is ",
        *value, ", but ", *different, " in ", quote(otherName));
  }
  return {};
}
