//===- Thresholds.h - What each threshold of the search is worth -*- C++
//-*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_TUNING_THRESHOLDS_H
#define SANDWICH_BENCHMARKS_TUNING_THRESHOLDS_H

#include "sandwich/Scheduling/ScheduleTuner.h"
#include "sandwich/Target/Target.h"

#include <cstdint>
#include <vector>

namespace sandwich::benchmark {

/// Tunes each shape for every number of rows up to `maxRows` on `threads`
/// threads, once as the search is and once without each of its thresholds, and
/// prints how many measurements that takes and how long prompts take with what
/// it found. The machine is the cost model of `target` with measurements that
/// are off by `noise` (a standard deviation, as a share) and a limit that the
/// best schedule reaches to `limitShare`: the same on every machine. Means of
/// `runs` with other noise. Errors:
/// those of tuning.
Status studyThresholds(const Target &target,
                       const std::vector<MatmulShape> &shapes, int64_t threads,
                       int64_t maxRows, double noise, double limitShare,
                       int64_t runs);

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_TUNING_THRESHOLDS_H
