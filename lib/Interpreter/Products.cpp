//===- Products.cpp - Matrices multiplied in f64 --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <vector>

using namespace sandwich;

/// Rows and columns of sums that stay in registers.
static constexpr int64_t tileRows = 4, tileColumns = 8;
/// Columns that a thread takes at once, so that it reads the input but once for
/// them, and k that its part of the weight in f64 fits into a cache for.
static constexpr int64_t blockColumns = 64, blockDepth = 256;

// AVX2 without FMA, which rounds otherwise.
#if defined(__x86_64__) && defined(__linux__)
#define SANDWICH_WIDEST_VECTORS                                                \
  __attribute__((target_clones("avx2", "default")))
#else
#define SANDWICH_WIDEST_VECTORS
#endif

/// Adds to `sums`, [tileRows][tileColumns], the products of rows of `depth`
/// numbers and of `panel`, [depth][tileColumns].
SANDWICH_WIDEST_VECTORS static void
addTile(const std::array<const double *, tileRows> &rows, const double *panel,
        int64_t depth, double *sums) {
  using Vector [[gnu::vector_size(4 * sizeof(double))]] = double;
  static_assert(tileColumns == 8, "two vectors");
  // Nothing is aligned to a vector.
  Vector left[tileRows], right[tileRows];
  for (int64_t row = 0; row < tileRows; ++row) {
    std::memcpy(&left[row], sums + row * tileColumns, sizeof(Vector));
    std::memcpy(&right[row], sums + row * tileColumns + 4, sizeof(Vector));
  }
  for (int64_t k = 0; k < depth; ++k) {
    Vector first, second;
    std::memcpy(&first, panel + k * tileColumns, sizeof(Vector));
    std::memcpy(&second, panel + k * tileColumns + 4, sizeof(Vector));
    for (int64_t row = 0; row < tileRows; ++row) {
      left[row] += rows[row][k] * first;
      right[row] += rows[row][k] * second;
    }
  }
  for (int64_t row = 0; row < tileRows; ++row) {
    std::memcpy(sums + row * tileColumns, &left[row], sizeof(Vector));
    std::memcpy(sums + row * tileColumns + 4, &right[row], sizeof(Vector));
  }
}

/// Adds to columns `first` on of `sums` what k `begin` to `end` add.
static void addBlock(const Matrix &input, std::span<const float> weight,
                     int64_t first, int64_t begin, int64_t end, Matrix &sums) {
  const int64_t depth = end - begin;
  std::vector<double> panel(depth * tileColumns);
  const int64_t lastColumn = std::min(first + blockColumns, sums.channels);
  for (int64_t column = first; column < lastColumn; column += tileColumns) {
    const int64_t columns = std::min(tileColumns, lastColumn - column);
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < depth; ++k)
        panel[k * tileColumns + c] =
            weight[(column + c) * input.channels + begin + k];
    for (int64_t row = 0; row < input.rows; row += tileRows) {
      // Missing rows are the last one again, and are not kept.
      const int64_t count = std::min(tileRows, input.rows - row);
      std::array<const double *, tileRows> rows;
      std::array<double, tileRows * tileColumns> tile = {};
      for (int64_t r = 0; r < tileRows; ++r)
        rows[r] = input.values.data() +
                  (row + std::min(r, count - 1)) * input.channels + begin;
      for (int64_t r = 0; r < count; ++r)
        std::copy_n(&sums.at(row + r, column), columns, &tile[r * tileColumns]);
      addTile(rows, panel.data(), depth, tile.data());
      for (int64_t r = 0; r < count; ++r)
        std::copy_n(&tile[r * tileColumns], columns, &sums.at(row + r, column));
    }
  }
}

void sandwich::addProduct(const Matrix &input, std::span<const float> weight,
                          Matrix &sums) {
  assert(sums.rows == input.rows &&
         static_cast<int64_t>(weight.size()) == sums.channels * input.channels);
  const int64_t blocks = (sums.channels + blockColumns - 1) / blockColumns;
  tbb::parallel_for(int64_t(0), blocks, [&](int64_t block) {
    for (int64_t begin = 0; begin < input.channels; begin += blockDepth)
      addBlock(input, weight, block * blockColumns, begin,
               std::min(begin + blockDepth, input.channels), sums);
  });
}
