//===- MatmulProgram.h - A compiled phase of one matmul ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_GEMM_MATMULPROGRAM_H
#define SANDWICH_BENCHMARKS_GEMM_MATMULPROGRAM_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sandwich::benchmark {

/// A phase program that multiplies one input with one weight after the other,
/// as a model does with its layers: y = x W[layer]^T, f32 sums, a barrier after
/// each. It is made by the compiler's own passes and code generator, with the
/// schedules as constants in its machine code.
class MatmulProgram {
public:
  /// For up to `maxRows` rows of x, `layers` weights, a team of `threads`.
  /// `shape` has the packing that the schedules of `table` read. Errors: what
  /// the passes report; a system that loads no code.
  static Result<std::unique_ptr<MatmulProgram>>
  create(const MatmulShape &shape, const ScheduleTable &table,
         const Target &target, int64_t threads, int64_t maxRows,
         int64_t layers);

  MatmulProgram(const MatmulProgram &) = delete;
  MatmulProgram &operator=(const MatmulProgram &) = delete;
  ~MatmulProgram();

  /// Bytes from one packed weight to the next.
  uint64_t layerBytes() const { return layerStride; }
  /// Whether x is bf16, else f32.
  bool bf16Input() const { return inputIsBF16; }
  /// Row `row` of x: K elements to be filled in.
  void *input(int64_t row);
  /// Row `row` of the last y: N elements.
  const float *result(int64_t row) const;

  /// Multiplies the first `rows` rows with `count` layers from `first` on.
  void run(PhaseTeam &team, const std::byte *weights, int64_t rows,
           int64_t first, int64_t count);

private:
  MatmulProgram() = default;

  void *library = nullptr;
  SandwichPhaseFunction function = nullptr;
  AnonymousMemory workspace;
  int64_t threads = 0;
  bool inputIsBF16 = false;
  /// Elements from row to row.
  int64_t inputStride = 0, resultStride = 0;
  uint64_t resultOffset = 0, layerStride = 0;
};

/// A schedule in the form that IR has it in, without `#gemm.schedule`. Errors:
/// what the parser reports.
Result<Schedule> parseSchedule(const std::string &text);

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_GEMM_MATMULPROGRAM_H
