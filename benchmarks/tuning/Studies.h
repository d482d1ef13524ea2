//===- Studies.h - What each part of the search is worth --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The Sandwich paper's ablation and its table 3, and how near the search comes
/// to an exhaustive one, all on measurements of this machine.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_TUNING_STUDIES_H
#define SANDWICH_BENCHMARKS_TUNING_STUDIES_H

#include "sandwich/Scheduling/Strategies.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace sandwich::benchmark {

struct StudyOptions {
  int64_t threads = 1;
  std::vector<unsigned> cpus;
  bool bf16 = true;
  /// Of the final comparisons.
  size_t rounds = 15;
  /// The most rows that are measured.
  int64_t mostRows = 512;
};

/// Runs studies and prints them. Errors: those of measuring.
class Studies {
public:
  static Result<std::unique_ptr<Studies>> create(const StudyOptions &options);

  /// For each shape and number of rows: what the cost model chooses, what fast
  /// start adds, then finetune over grids that split rows and columns, then
  /// split-k. The speeds are compared side by side.
  Status ablation(const std::vector<MatmulShape> &shapes,
                  const std::vector<int64_t> &rows);

  /// `points` random matmuls of `shapes` with 1 to `maxRows` rows: the search
  /// against measuring all of a coarse space, or `mostSchedules` drawn from it,
  /// and against scaling up and out.
  Status sample(const std::vector<MatmulShape> &shapes, int64_t maxRows,
                int64_t points, int64_t mostSchedules, uint64_t seed);

  /// Every number of rows up to `maxRows` of each shape, tuned with each window
  /// sigma and each reuse threshold: what tuning takes, and how long matmuls of
  /// prompts then take.
  Status window(const std::vector<MatmulShape> &shapes, int64_t maxRows,
                const std::vector<int64_t> &windows,
                const std::vector<double> &thresholds);

  /// The last schedule tuned for up to `maxRows` rows of each shape against the
  /// untuned rule, for up to `StudyOptions::mostRows`.
  Status extension(const std::vector<MatmulShape> &shapes, int64_t maxRows);

private:
  explicit Studies(const StudyOptions &options, Target target);

  std::vector<MicroKernel> menuFor(const MatmulShape &shape) const;
  Result<Choice> search(Strategy strategy, const Payload &payload,
                        TuningOptions tuning, int64_t &measurements,
                        SearchLog &log);
  /// Up to the fast start, or up to finetune over the grids of `payload`.
  Result<Schedule> fastStartOnly(const Payload &payload,
                                 MeasuringSession &session);
  Result<Schedule> finetuned(const Payload &payload, MeasuringSession &session);

  const StudyOptions options;
  const Target target;
  CostModel model;
  std::unique_ptr<MeasuringEvaluator> evaluator;
};

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_TUNING_STUDIES_H
