//===- StressTest.h - Depths found step by step -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_STRESSTEST_H
#define SANDWICH_DEVICES_STRESSTEST_H

#include "sandwich/Devices/DepthOptions.h"

#include <cstddef>
#include <optional>

namespace sandwich {

/// What the estimator is compared with (WindVE, equations 7 to 10 and V.C): the
/// concurrency of one device grows by a step until the SLO is not kept any
/// more. The last that kept it is the depth, up to a step less than possible.
class StressTest {
public:
  /// Errors (InvalidArgument): as `DepthOptions::validate`; a step of 0 or
  /// above the most concurrency.
  static Result<StressTest> create(const DepthOptions &options, uint32_t step);

  /// How many queries to send at a time. Nothing: done.
  std::optional<uint32_t> next() const { return wanted; }

  /// The latency of what `next` asked for. Errors (InvalidArgument): nothing
  /// was asked for; as `checkSeconds`.
  Status record(double seconds);

  uint32_t depth() const { return kept; }
  size_t profiles() const { return measured; }

private:
  StressTest(const DepthOptions &options, uint32_t step)
      : options(options), step(step), wanted(step) {}

  DepthOptions options;
  uint32_t step;
  std::optional<uint32_t> wanted;
  uint32_t kept = 0;
  size_t measured = 0;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_STRESSTEST_H
