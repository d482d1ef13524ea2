//===- Operands.h - Random operands, and what they give ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_GEMM_OPERANDS_H
#define SANDWICH_BENCHMARKS_GEMM_OPERANDS_H

#include "sandwich/Quantization/Quantizer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sandwich::benchmark {

/// x [rows, K] and the weights W[layer] [N, K], random values in (-1, 1), each
/// of which can be had by itself: programs that pack differently are given the
/// same ones, and a result can be checked without keeping them.
class Operands {
public:
  Operands(int64_t n, int64_t k, const StorageFormat &storage)
      : n(n), k(k), storage(storage),
        bf16(storage.number == NumberFormat::BF16) {}

  /// K elements of x as bf16, if the operands are, or as f32: instructions that
  /// multiply no bf16 take such weights with an input of f32. Beside integers
  /// they are what rounding them to int8 in groups does not change.
  void fillInput(int64_t row, bool asBF16, void *elements) const;
  /// [N, K] elements of a layer, bf16 or f32, and zeros up to `rows` rows.
  void fillWeight(int64_t layer, int64_t rows, void *elements) const;
  /// Number `group` of the groups of a weight of integers: [columns, group],
  /// and what the numbers of each column have in common.
  void fillGroup(int64_t layer, int64_t firstColumn, int64_t group,
                 std::span<uint8_t> numbers,
                 std::span<GroupScale> columns) const;

  struct Sum {
    double value = 0;
    /// The sum of the absolute values of what was added.
    double magnitude = 0;
    /// The sum of the squares of the row's elements.
    double inputSquares = 0;
  };
  /// Element [row, column] of x W[layer]^T.
  Sum product(int64_t row, int64_t layer, int64_t column) const;
  /// The largest step of 8 bits that a weight of 4 bits has in longer groups.
  double largestStep() const;

private:
  float inputAt(int64_t row, int64_t i) const;
  float weightAt(int64_t layer, int64_t column, int64_t i) const;
  /// Of integers: as it is stored, and of its group.
  uint8_t storedAt(int64_t layer, int64_t column, int64_t i) const;
  GroupScale scaleAt(int64_t layer, int64_t column, int64_t i) const;

  const int64_t n, k;
  const StorageFormat storage;
  const bool bf16;
};

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_GEMM_OPERANDS_H
