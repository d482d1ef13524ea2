//===- Experiments.h - The experiments of section V -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BENCHMARKS_WINDVE_EXPERIMENTS_H
#define BENCHMARKS_WINDVE_EXPERIMENTS_H

#include "sandwich/Support/Result.h"

#include <cstdint>

namespace sandwich::benchmark {

struct ExperimentOptions {
  /// Of each latency, as a share; the paper tells none.
  double noise = 0.001;
  uint64_t seed = 1;
};

// Each prints one table or figure of the paper, ours beside it.
Status printTable1(const ExperimentOptions &options);
Status printTable2(const ExperimentOptions &options);
Status printTable3(const ExperimentOptions &options);
Status printFigure4(const ExperimentOptions &options);
Status printFigure5(const ExperimentOptions &options);
Status printFigure6(const ExperimentOptions &options);

} // namespace sandwich::benchmark

#endif // BENCHMARKS_WINDVE_EXPERIMENTS_H
