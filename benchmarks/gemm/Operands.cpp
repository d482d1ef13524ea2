//===- Operands.cpp - Random operands, and what they give -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operands.h"

#include <tbb/parallel_for.h>

#include <bit>
#include <cmath>

using namespace sandwich::benchmark;

/// SplitMix64 (Steele, Lea, Flood 2014), as a function of the position.
static uint64_t scramble(uint64_t position) {
  uint64_t z = position * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// A value in (-1, 1); a bf16 if `bf16`.
static float randomAt(uint64_t position, bool bf16) {
  auto value =
      static_cast<float>(static_cast<int64_t>(scramble(position)) >> 40) *
      0x1p-23F;
  if (!bf16)
    return value;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000);
}

static void store(void *elements, int64_t index, bool bf16, float value) {
  if (bf16)
    static_cast<uint16_t *>(elements)[index] =
        static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  else
    static_cast<float *>(elements)[index] = value;
}

float Operands::inputAt(int64_t row, int64_t i) const {
  return randomAt((uint64_t(1) << 60) + row * k + i, bf16);
}

float Operands::weightAt(int64_t layer, int64_t column, int64_t i) const {
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

Operands::Sum Operands::product(int64_t row, int64_t layer,
                                int64_t column) const {
  Sum sum;
  for (int64_t i = 0; i < k; ++i) {
    double product = static_cast<double>(inputAt(row, i)) *
                     static_cast<double>(weightAt(layer, column, i));
    sum.value += product;
    sum.magnitude += std::abs(product);
  }
  return sum;
}
