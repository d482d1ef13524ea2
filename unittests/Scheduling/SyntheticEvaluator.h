//===- SyntheticEvaluator.h - A speed that tests decide ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An evaluator whose speeds a test gives, so that the optimum is known.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_SCHEDULING_SYNTHETICEVALUATOR_H
#define SANDWICH_UNITTESTS_SCHEDULING_SYNTHETICEVALUATOR_H

#include "sandwich/Scheduling/ScheduleSearch.h"

#include <functional>

namespace sandwich {

struct SyntheticEvaluator : ScheduleEvaluator {
  /// FLOP/s of a slice, and seconds of a payload.
  std::function<double(const Schedule &)> sliceSpeed = [](const Schedule &) {
    return 1e9;
  };
  std::function<double(const Payload &, const Schedule &)> time =
      [](const Payload &payload, const Schedule &) {
        return payload.flops() / 1e9;
      };
  int64_t asked = 0;

  Result<double> sliceSeconds(const MatmulShape &,
                              const Schedule &schedule) override {
    ++asked;
    auto [m, n, k] = schedule.slice;
    return 2.0 * m * n * k / sliceSpeed(schedule);
  }
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override {
    ++asked;
    return time(payload, schedule);
  }
};

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_SCHEDULING_SYNTHETICEVALUATOR_H
