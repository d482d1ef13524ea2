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

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

using namespace sandwich;

static_assert(std::endian::native == std::endian::little,
              "safetensors data are little-endian");

static constexpr uint32_t exponentMask = 0x7f800000;

static float floatFromHalf(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t magnitude = uint32_t(half & 0x7fff) << 13;
  // The shifted bits read as a float are the value times 2^-112, for subnormal
  // halves as well; infinities and NaNs only need the widest exponent.
  uint32_t finite =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  bool special = (half & 0x7c00) == 0x7c00;
  return std::bit_cast<float>(sign |
                              (special ? magnitude | exponentMask : finite));
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

int64_t sandwich::rowLength(const TensorView &tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.back();
}

void sandwich::readElements(const TensorView &tensor, int64_t firstElement,
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

Status sandwich::checkFinite(std::string_view name, const TensorView &tensor,
                             int64_t firstElement,
                             std::span<const float> values) {
  auto isFinite = [](float value) {
    return (std::bit_cast<uint32_t>(value) & exponentMask) != exponentMask;
  };
  uint32_t bad = 0;
  for (float value : values)
    bad |= uint32_t(!isFinite(value));
  if (!bad)
    return {};
  size_t first = 0;
  while (isFinite(values[first]))
    ++first;
  std::vector<int64_t> index(tensor.shape.size());
  int64_t rest = firstElement + int64_t(first);
  for (size_t i = index.size(); i-- > 0;) {
    index[i] = rest % tensor.shape[i];
    rest /= tensor.shape[i];
  }
  const char *kind = std::isnan(values[first]) ? "NaN" : "infinite";
  return makeError("tensor ", quote(name), ": element ", describeShape(index),
                   " is ", kind, "; weights must be finite");
}
