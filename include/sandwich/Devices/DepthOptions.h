//===- DepthOptions.h - What queue depths are found by ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEPTHOPTIONS_H
#define SANDWICH_DEVICES_DEPTHOPTIONS_H

#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>

namespace sandwich {

struct DepthOptions {
  /// T of equations 7 to 10: the most seconds that a query may take.
  double sloSeconds = 1;
  /// The share of the SLO that is left free, for latencies that vary: depths
  /// are found for `limitSeconds`.
  double headroom = 0;
  /// No more queries at a time are tried, and no queue is deeper.
  uint32_t mostConcurrency = 4096;
  /// Each profile of a device is of at most so many times the queries of those
  /// before, so that a line of few points is not trusted far beyond them.
  uint32_t growth = 8;
  /// Profiles of each device that are not outliers, and all of them at most.
  size_t leastProfiles = 4;
  size_t mostProfiles = 8;
  /// Measurements of all devices at once, at most.
  size_t mostTuningProfiles = 24;

  /// What a measured latency is compared with.
  double limitSeconds() const { return sloSeconds * (1 - headroom); }

  /// Errors (InvalidArgument): an SLO that is not above 0 and at most
  /// `maxDeviceSeconds`; a headroom that is not at least 0 and below 1; fewer
  /// than 2 or more than `maxQueueDepth` queries; a growth below 2; numbers of
  /// profiles that do not ascend from `LatencyFit::leastPoints` to
  /// `LatencyFit::mostPoints`; no measurement of all devices.
  Status validate() const;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEPTHOPTIONS_H
