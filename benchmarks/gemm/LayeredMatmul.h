//===- LayeredMatmul.h - One matmul, layer after layer ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_GEMM_LAYEREDMATMUL_H
#define SANDWICH_BENCHMARKS_GEMM_LAYEREDMATMUL_H

#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Tuning/MatmulLibrary.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sandwich::benchmark {

/// Multiplies one input with one weight after the other, as a model does with
/// its layers: y = x W[layer]^T, f32 sums, a barrier after each. The code is
/// that of a model's matmul without an epilogue.
class LayeredMatmul {
public:
  /// For up to `maxRows` rows of x, `layers` weights, a team of `threads`.
  /// `shape` has the packing that the schedules of `table` read. Errors: a
  /// target that this CPU cannot run; what the passes report; a system that
  /// loads no code.
  static Result<std::unique_ptr<LayeredMatmul>>
  create(const MatmulShape &shape, const ScheduleTable &table,
         const Target &target, int64_t threads, int64_t maxRows,
         int64_t layers);

  /// Bytes from one packed weight to the next.
  uint64_t layerBytes() const { return program.weightPlace()[1]; }
  /// Whether x is bf16, else f32.
  bool bf16Input() const { return program.bf16Input(); }
  /// Row `row` of x: K elements to be filled in.
  void *input(int64_t row);
  /// Row `row` of the last y: N elements.
  const float *result(int64_t row) const;

  /// Multiplies the first `rows` rows with `count` layers from `first` on.
  void run(PhaseTeam &team, const std::byte *weights, int64_t rows,
           int64_t first, int64_t count);

private:
  LayeredMatmul() = default;

  MatmulProgram program;
  /// Holds the code.
  std::unique_ptr<MatmulLibrary> library;
  MatmulCode code;
  AnonymousMemory workspace;
};

/// A schedule in the form that IR has it in, without `#gemm.schedule`. Errors:
/// what the parser reports.
Result<Schedule> parseSchedule(const std::string &text);

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_GEMM_LAYEREDMATMUL_H
