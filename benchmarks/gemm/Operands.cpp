//===- Operands.cpp - Random operands, and what they give -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operands.h"

#include "sandwich/Quantization/Float8.h"

#include <tbb/parallel_for.h>

#include <bit>
#include <cmath>

using namespace sandwich;
using namespace sandwich::benchmark;

static constexpr float largestScale = 0x1p-5F;

/// SplitMix64 (Steele, Lea, Flood 2014), as a function of the position.
static uint64_t scramble(uint64_t position) {
  uint64_t z = position * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// A value in (-1, 1); a bf16 if `bf16`.
static float randomAt(uint64_t position, bool bf16) {
  const auto value =
      static_cast<float>(static_cast<int64_t>(scramble(position)) >> 40) *
      0x1p-23F;
  const uint32_t mask = bf16 ? 0xffff0000 : 0xffffffff;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & mask);
}

static void store(void *elements, int64_t index, bool bf16, float value) {
  if (bf16)
    static_cast<uint16_t *>(elements)[index] =
        static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  else
    static_cast<float *>(elements)[index] = value;
}

float Operands::inputAt(int64_t row, int64_t i) const {
  if (storage.isQuantized()) {
    // The largest of a group is 127 steps, so that a step is 1.
    constexpr int64_t most = 127;
    const uint64_t random = scramble((uint64_t(1) << 60) + row * k + i);
    const int64_t steps =
        i % storage.groupOf(k) == 0
            ? most
            : static_cast<int64_t>(random % (2 * most + 1)) - most;
    return static_cast<float>(steps) / 128;
  }
  return randomAt((uint64_t(1) << 60) + row * k + i, bf16);
}

uint8_t Operands::storedAt(int64_t layer, int64_t column, int64_t i) const {
  const auto number = static_cast<uint8_t>(
      scramble((layer * n + column) * k + i) & ((1U << storage.bits()) - 1));
  const bool isNaN = storage.number == NumberFormat::FP8 && isFloat8NaN(number);
  return isNaN ? 0 : number;
}

GroupScale Operands::scaleAt(int64_t layer, int64_t column, int64_t i) const {
  const int64_t group = i / storage.groupOf(k);
  const uint64_t random =
      scramble((uint64_t(1) << 61) + (layer * n + column) * k + group);
  // Powers of two: unpacked to bf16, values keep all their bits.
  GroupScale result;
  result.scale = largestScale / static_cast<float>(1 << random % 4);
  if (storage.offset == GroupOffset::Minimum)
    result.minimum = -result.scale * static_cast<float>(storage.storedZero());
  return result;
}

float Operands::weightAt(int64_t layer, int64_t column, int64_t i) const {
  if (storage.isQuantized()) {
    const uint8_t number = storedAt(layer, column, i);
    float value = 0;
    dequantizeGroup(storage, scaleAt(layer, column, i), {&number, 1},
                    {&value, 1});
    return value;
  }
  return randomAt((layer * n + column) * k + i, bf16);
}

void Operands::fillInput(int64_t row, bool asBF16, void *elements) const {
  for (int64_t i = 0; i < k; ++i)
    store(elements, i, asBF16, inputAt(row, i));
}

void Operands::fillWeight(int64_t layer, int64_t rows, void *elements) const {
  tbb::parallel_for(int64_t(0), rows, [&](int64_t row) {
    for (int64_t i = 0; i < k; ++i)
      store(elements, row * k + i, bf16,
            row < n ? weightAt(layer, row, i) : 0.0F);
  });
}

void Operands::fillGroup(int64_t layer, int64_t firstColumn, int64_t group,
                         std::span<uint8_t> numbers,
                         std::span<GroupScale> columns) const {
  const int64_t length = storage.groupOf(k);
  for (size_t column = 0; column < columns.size(); ++column) {
    const int64_t place = firstColumn + static_cast<int64_t>(column);
    columns[column] = scaleAt(layer, place, group * length);
    for (int64_t i = 0; i < length; ++i)
      numbers[column * length + i] = storedAt(layer, place, group * length + i);
  }
}

Operands::Sum Operands::product(int64_t row, int64_t layer,
                                int64_t column) const {
  Sum sum;
  for (int64_t i = 0; i < k; ++i) {
    double product = static_cast<double>(inputAt(row, i)) *
                     static_cast<double>(weightAt(layer, column, i));
    sum.value += product;
    sum.magnitude += std::abs(product);
    sum.inputSquares += static_cast<double>(inputAt(row, i)) * inputAt(row, i);
  }
  return sum;
}

double Operands::largestStep() const {
  constexpr double steps = 127;
  return largestScale * static_cast<double>(storage.storedZero()) / steps;
}
