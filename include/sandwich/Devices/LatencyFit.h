//===- LatencyFit.h - Latency as a line over concurrency --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Latency grows linearly with the number of queries that a device processes at
/// a time (WindVE, equation 12): seconds = alpha * concurrency + beta. The line
/// is fitted to a few profiles, and tells how deep the device's queue may be.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_LATENCYFIT_H
#define SANDWICH_DEVICES_LATENCYFIT_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// The deepest queue of a device, and the most queries of a batch.
inline constexpr uint32_t maxQueueDepth = 1 << 20;

/// The longest latency and the longest SLO that are taken, in seconds: sums and
/// products of them stay finite.
inline constexpr double maxDeviceSeconds = 1e6;

/// Whether a query of `seconds` is within the SLO; what is above it by less
/// than a billionth of it is, so that no rounding of binary fractions decides.
inline bool keepsSlo(double seconds, double sloSeconds) {
  return seconds <= sloSeconds * (1 + 1e-9);
}

/// Equation 12: alpha is what each query adds (computing, input and output),
/// beta what a batch of any size takes (reading the model).
struct LatencyLine {
  /// Seconds for each query, at least 0.
  double alpha = 0;
  /// Seconds for each batch, at least 0.
  double beta = 0;

  /// Of a batch of `concurrency` queries.
  double seconds(double concurrency) const {
    return alpha * concurrency + beta;
  }

  /// The most queries at a time within `sloSeconds` (equations 7 to 10), at
  /// most `maxQueueDepth`. 0: a single query takes longer (equation 11), so
  /// that nothing can be moved to the device.
  uint32_t depthFor(double sloSeconds) const;

  bool operator==(const LatencyLine &) const = default;
};

/// One profile: a batch of this many queries took so long.
struct ProfilePoint {
  uint32_t concurrency = 1;
  double seconds = 0;
};

/// A line fitted to profiles.
struct LatencyFit {
  static constexpr size_t leastPoints = 3;
  /// The fit looks at each pair of points.
  static constexpr size_t mostPoints = 512;

  LatencyLine line;
  /// Measured less predicted seconds, of each point.
  std::vector<double> residuals;
  /// Points that are too far from the line to count, in ascending order.
  std::vector<size_t> outliers;
  /// The share of the variance of all points, outliers too, that the line
  /// explains: at most 1; 1 where all are on the line.
  double rSquared = 1;

  /// Fits alpha, beta >= 0.
  ///
  /// Starts at the repeated median of the slopes (Siegel 1982), which nearly
  /// half of the points may be wrong without moving far: one of four, where the
  /// median of all slopes (Theil 1950, Sen 1968) stands 29%. Goes on with least
  /// squares whose weights fall with the residual and are 0 beyond 4.685
  /// deviations (Beaton and Tukey 1974). The deviation is by the median
  /// absolute residual of the start, and stays (Yohai 1987), so that the
  /// weights of a few points cannot chase each other. Without outliers that is
  /// least squares but for weights near 1.
  ///
  /// Errors (InvalidArgument): fewer than `leastPoints` or more than
  /// `mostPoints` points, all of one concurrency, a concurrency that is not
  /// from 1 to `maxQueueDepth`, seconds that are not above 0 and at most
  /// `maxDeviceSeconds`.
  static Result<LatencyFit> create(std::span<const ProfilePoint> points);

  /// "alpha 17.9 ms, beta 270 ms, R^2 0.999, 1 of 5 points left out".
  std::string describe() const;
};

/// Error (InvalidArgument): `seconds`, which messages call `name`, is not above
/// 0 and at most `maxDeviceSeconds`.
Status checkSeconds(const char *name, double seconds);

} // namespace sandwich

#endif // SANDWICH_DEVICES_LATENCYFIT_H
