//===- DriftMonitor.h - Devices that get slower or faster -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DRIFTMONITOR_H
#define SANDWICH_DEVICES_DRIFTMONITOR_H

#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace sandwich {

struct DriftOptions {
  /// Latencies that are off by less than this share of the line are no drift.
  double slack = 0.05;
  /// How much they must be off beyond the slack, in shares of the line, summed
  /// over batches: 1 is 20 batches that take 10% too long.
  double threshold = 1;
  /// The most that one batch adds, so that a few outliers are no drift.
  double mostOfOne = 0.25;
  /// A line is fitted to at least so many batches, and at most.
  size_t leastBatches = 16;
  size_t mostBatches = 256;

  /// Errors (InvalidArgument): a slack, a threshold or a share that is not
  /// above 0 and finite; numbers of batches that do not ascend from
  /// `LatencyFit::leastPoints` to `LatencyFit::mostPoints`.
  Status validate() const;
};

/// What a drift was found to be.
struct Drift {
  LatencyLine line;
  /// For the SLO, on the new line.
  uint32_t depth = 0;
  /// Batches that the new line is of.
  size_t batches = 0;
  /// Both parts of the line were fitted; otherwise the batches were too alike,
  /// and the old line was scaled.
  bool fitted = false;
};

/// Watches the batches that a device serves and finds its line again when the
/// old one does not hold any more (WindVE's estimator, made to go on).
///
/// The criterion is a two-sided cumulative sum (Page 1954) of the residuals, as
/// shares of the line, less the slack. Where it passes the threshold, the
/// batches since it was last 0 are those of the new regime, by which the line
/// is fitted anew. Until then nothing changes, and afterwards the sums begin at
/// 0 with the new line, so that a depth changes only after many batches that
/// agree, and never twice for the same ones. Keeps `mostBatches` batches.
class DriftMonitor {
public:
  /// Errors (InvalidArgument): as `DriftOptions::validate`; an SLO or a line of
  /// more than `maxDeviceSeconds`; a line without seconds.
  static Result<DriftMonitor> create(const DriftOptions &options,
                                     const LatencyLine &line,
                                     double sloSeconds);

  /// A batch of `concurrency` queries took `seconds`. What makes no sense (no
  /// queries, no time, as `LatencyFit` would refuse it) is left out. Something:
  /// the line changed.
  std::optional<Drift> observe(uint32_t concurrency, double seconds);

  const LatencyLine &line() const { return current; }
  uint32_t depth() const { return current.depthFor(sloSeconds); }

private:
  DriftMonitor(const DriftOptions &options, const LatencyLine &line,
               double sloSeconds)
      : options(options), current(line), sloSeconds(sloSeconds) {}

  /// A sum, and how many batches it is of.
  struct Sum {
    double value = 0;
    size_t batches = 0;

    void add(double excess);
  };

  Drift findAgain(size_t batches);

  DriftOptions options;
  LatencyLine current;
  double sloSeconds;
  std::deque<ProfilePoint> recent;
  Sum slower, faster;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DRIFTMONITOR_H
