//===- DeviceProfiling.h - A few profiles of one device ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEVICEPROFILING_H
#define SANDWICH_DEVICES_DEVICEPROFILING_H

#include "sandwich/Devices/DepthOptions.h"

#include <optional>
#include <vector>

namespace sandwich {

/// Finds the line and the depth of one device from a few profiles at growing
/// concurrency (WindVE, IV.B.2). Says what to measure and is told how long it
/// took; how that is measured is the caller's.
///
/// Profiles grow until the line's own depth lies among them, so that it is
/// interpolated. Then one is taken at that depth, and, while there are fewer
/// than the least or the fit leaves some out, one in the widest gap.
///
/// Where a single query takes too long, twice, the device takes none at all
/// (equation 11) and no line is fitted.
class DeviceProfiling {
public:
  /// Errors: as `DepthOptions::validate`.
  static Result<DeviceProfiling> create(const DepthOptions &options);

  /// How many queries to send at a time. Nothing: done.
  std::optional<uint32_t> next() const { return wanted; }

  /// The latency of what `next` asked for: of the last query answered. Errors
  /// (InvalidArgument): nothing was asked for; as `checkSeconds`.
  Status record(double seconds);

  // Once done:

  /// Equation 11 holds.
  bool isTooSlow() const { return tooSlow; }
  /// Nothing where the device is too slow.
  const std::optional<LatencyFit> &fit() const { return found; }
  /// At least 1 unless the device is too slow: that much was measured.
  uint32_t depth() const;

  const std::vector<ProfilePoint> &profiles() const { return points; }

private:
  explicit DeviceProfiling(const DepthOptions &options) : options(options) {}

  Status choose();
  bool wasMeasured(uint32_t concurrency) const;
  uint32_t largestMeasured() const;
  /// In the middle of the widest gap between profiles.
  std::optional<uint32_t> inWidestGap() const;

  DepthOptions options;
  std::vector<ProfilePoint> points;
  std::optional<uint32_t> wanted = 1;
  std::optional<LatencyFit> found;
  bool tooSlow = false;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEVICEPROFILING_H
