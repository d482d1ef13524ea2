//===- Partition.h - How a grid divides a matmul ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The formula by which a thread grid divides a matmul, written once for
/// integers, with which tuning measures, and for index values in IR, with which
/// compiled models run.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_PARTITION_H
#define SANDWICH_SCHEDULING_PARTITION_H

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace sandwich {

/// Arithmetic on numbers that are known. The formulas below take anything with
/// these members; operands are not negative.
struct IntegerArithmetic {
  static int64_t index(int64_t value) { return value; }
  static int64_t add(int64_t a, int64_t b) { return a + b; }
  static int64_t mul(int64_t a, int64_t b) { return a * b; }
  static int64_t div(int64_t a, int64_t b) { return a / b; }
  static int64_t rem(int64_t a, int64_t b) { return a % b; }
  static int64_t min(int64_t a, int64_t b) { return std::min(a, b); }
};

/// What is divided, and by which grid tM x tN x tK. Columns and k are divided
/// in whole units, the last of which may be cut.
struct Division {
  std::array<int64_t, 3> grid;
  int64_t columns, columnUnit;
  int64_t k, kUnit;
};

/// The part of a thread: half-open ranges, and which part of K it is.
template <typename Number> struct Part {
  Number rowBegin, rowEnd;
  Number columnBegin, columnEnd;
  Number kBegin, kEnd;
  Number partOfK;
};

/// Where part `part` of `parts` begins, of `size` in units of `unit`; part
/// `parts` begins at the end.
template <typename Arithmetic, typename Number>
Number unitBoundary(Arithmetic &&on, Number part, int64_t parts, int64_t size,
                    int64_t unit) {
  Number units = on.div(on.mul(part, divideUp(size, unit)), parts);
  return on.min(on.mul(units, unit), on.index(size));
}

/// The part of thread `thread`, of `rows` rows. Rows vary fastest, then K, so
/// that neighbours share the weights they read; threads beyond the grid get no
/// columns. What is not split takes no arithmetic.
template <typename Arithmetic, typename Number>
Part<Number> partOfThread(Arithmetic &&on, const Division &division,
                          Number rows, Number thread) {
  auto [tM, tN, tK] = division.grid;
  Part<Number> part;
  Number partOfRows = tM == 1 ? on.index(0) : on.rem(thread, tM);
  Number others = on.div(thread, tM);
  part.partOfK = tK == 1 ? on.index(0) : on.rem(others, tK);
  Number partOfColumns = on.min(on.div(others, tK), on.index(tN));

  if (tM == 1) {
    part.rowBegin = on.index(0);
    part.rowEnd = rows;
  } else {
    // The first parts have the rows that are left over, one each.
    Number quotient = on.div(rows, tM), rest = on.rem(rows, tM);
    auto boundary = [&](Number number) {
      return on.add(on.mul(number, quotient), on.min(number, rest));
    };
    part.rowBegin = boundary(partOfRows);
    part.rowEnd = boundary(on.add(partOfRows, 1));
  }

  auto column = [&](Number number) {
    return unitBoundary(on, number, tN, division.columns, division.columnUnit);
  };
  part.columnBegin = column(partOfColumns);
  part.columnEnd = column(on.min(on.add(partOfColumns, 1), on.index(tN)));

  if (tK == 1) {
    part.kBegin = on.index(0);
    part.kEnd = on.index(division.k);
  } else {
    auto boundary = [&](Number number) {
      return unitBoundary(on, number, tK, division.k, division.kUnit);
    };
    part.kBegin = boundary(part.partOfK);
    part.kEnd = boundary(on.add(part.partOfK, 1));
  }
  return part;
}

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_PARTITION_H
