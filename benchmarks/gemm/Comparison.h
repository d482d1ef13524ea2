//===- Comparison.h - A matmul against its limit and a peer -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_GEMM_COMPARISON_H
#define SANDWICH_BENCHMARKS_GEMM_COMPARISON_H

#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandwich::benchmark {

struct ComparisonOptions {
  int64_t threads = 1;
  std::vector<unsigned> cpus;
  /// Numbers of rows, ascending.
  std::vector<int64_t> rows;
  /// Bytes of weights that are walked through in turn.
  uint64_t weightBytes = uint64_t(768) << 20;
  /// How often each is measured, in turn.
  int64_t rounds = 15;
  /// Least seconds of each measurement.
  double sampleSeconds = 0.01;
  bool comparePeer = true;
};

/// What was measured for one number of rows, medians of all rounds.
struct Comparison {
  int64_t rows = 0;
  Schedule schedule;
  /// Of one matmul.
  double seconds = 0;
  /// Of reading as many bytes of weights with plain loads, right after.
  double readSeconds = 0;
  /// The larger of reading and multiplying at full speed, over `seconds`:
  /// medians of that share in each round.
  double shareOfLimit = 0, shareOfReading = 0;
  /// Floating-point operations a second, operands in cache.
  double peakFlops = 0;
  /// Of the peer's matmul, and how many times longer it took than ours.
  std::optional<double> peerSeconds, ratio;
};

/// Measures x W^T for each number of rows, with weights from memory, against
/// the limits of the machine and the peer. Results are checked first. `report`
/// hears of each number of rows. Errors: a wrong result, what stops the
/// compiler, too little memory.
Status compare(const MatmulShape &shape, const ScheduleTable &table,
               const Target &target, const ComparisonOptions &options,
               std::string &peerName,
               const std::function<void(const Comparison &)> &report);

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_GEMM_COMPARISON_H
