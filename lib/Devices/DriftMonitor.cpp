//===- DriftMonitor.cpp - Devices that get slower or faster ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DriftMonitor.h"

#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace sandwich;

/// Batches tell alpha from beta where the largest has so many times the queries
/// of the smallest, and there are so many sizes.
static constexpr uint32_t leastSpread = 2;
static constexpr size_t leastSizes = 3;

Status DriftOptions::validate() const {
  for (const double share : {slack, threshold, mostOfOne})
    if (!(share > 0 && std::isfinite(share)))
      return makeError(ErrorKind::InvalidArgument, "a share of a drift is ",
                       share, "; it must be above 0 and finite");
  if (leastBatches < LatencyFit::leastPoints || mostBatches < leastBatches ||
      mostBatches > LatencyFit::mostPoints)
    return makeError(ErrorKind::InvalidArgument, "a drift is of ", leastBatches,
                     " to ", mostBatches, " batches; these must ascend from ",
                     LatencyFit::leastPoints, " to ", LatencyFit::mostPoints);
  return {};
}

Result<DriftMonitor> DriftMonitor::create(const DriftOptions &options,
                                          const LatencyLine &line,
                                          double sloSeconds) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the SLO", sloSeconds));
  if (line.alpha < 0 || line.beta < 0)
    return makeError(ErrorKind::InvalidArgument,
                     "alpha and beta must not be below 0");
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("a batch of one query", line.seconds(1)));
  return DriftMonitor(options, line, sloSeconds);
}

void DriftMonitor::Sum::add(double excess) {
  value += excess;
  ++batches;
  if (value <= 0)
    *this = {};
}

std::optional<Drift> DriftMonitor::observe(uint32_t concurrency,
                                           double seconds) {
  if (concurrency < 1 || concurrency > maxQueueDepth ||
      !checkSeconds("a batch", seconds))
    return std::nullopt;
  recent.push_back({concurrency, seconds});
  if (recent.size() > options.mostBatches)
    recent.pop_front();
  const double off = seconds / current.seconds(concurrency) - 1;
  slower.add(std::min(off - options.slack, options.mostOfOne));
  faster.add(std::min(-off - options.slack, options.mostOfOne));
  for (const Sum &sum : {slower, faster})
    if (sum.value > options.threshold && sum.batches >= options.leastBatches)
      return findAgain(std::min(sum.batches, recent.size()));
  return std::nullopt;
}

Drift DriftMonitor::findAgain(size_t batches) {
  const std::vector<ProfilePoint> points(
      recent.end() - static_cast<std::ptrdiff_t>(batches), recent.end());
  std::set<uint32_t> sizes;
  std::vector<double> ratios;
  for (const ProfilePoint &point : points) {
    sizes.insert(point.concurrency);
    ratios.push_back(point.seconds / current.seconds(point.concurrency));
  }
  Drift drift;
  drift.batches = batches;
  if (sizes.size() >= leastSizes &&
      *sizes.rbegin() / *sizes.begin() >= leastSpread)
    if (const Result<LatencyFit> fit = LatencyFit::create(points)) {
      drift.line = fit->line;
      drift.fitted = true;
    }
  if (!drift.fitted) {
    const double ratio = median(std::move(ratios));
    drift.line = {current.alpha * ratio, current.beta * ratio};
  }
  drift.depth = drift.line.depthFor(sloSeconds);
  current = drift.line;
  slower = faster = {};
  return drift;
}
