//===- DeviceProfiling.cpp - A few profiles of one device -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceProfiling.h"

#include <algorithm>

using namespace sandwich;

/// A depth that is larger than the largest profile by less than this share is
/// not worth another one.
static constexpr uint32_t reachShare = 16;

Result<DeviceProfiling> DeviceProfiling::create(const DepthOptions &options) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  return DeviceProfiling(options);
}

Status DeviceProfiling::record(double seconds) {
  if (!wanted)
    return makeError(ErrorKind::InvalidArgument, "no profile was asked for");
  SANDWICH_RETURN_IF_ERROR(checkSeconds("a profile", seconds));
  points.push_back({*wanted, seconds});
  return choose();
}

Status DeviceProfiling::choose() {
  const double limit = options.limitSeconds();
  const uint32_t largest = largestMeasured();
  if (largest == 1) {
    const bool slow = !keepsSlo(points.back().seconds, limit);
    // One slow query may have been an accident.
    const bool again = slow && points.size() == 1;
    tooSlow = slow && !again;
    if (tooSlow)
      wanted.reset();
    else if (!again)
      wanted = std::min(options.growth, options.mostConcurrency);
    return {};
  }
  LatencyLine line;
  if (points.size() < LatencyFit::leastPoints) {
    const ProfilePoint &first = points.front(), &last = points.back();
    line.alpha = std::max(0.0, (last.seconds - first.seconds) /
                                   (last.concurrency - first.concurrency));
    line.beta = std::max(0.0, first.seconds - line.alpha * first.concurrency);
  } else {
    SANDWICH_ASSIGN_OR_RETURN(found, LatencyFit::create(points));
    line = found->line;
  }
  const uint32_t predicted =
      std::min(line.depthFor(limit), options.mostConcurrency);
  const size_t counting = points.size() - (found ? found->outliers.size() : 0);
  const bool enough = counting >= options.leastProfiles;
  if (points.size() >= options.mostProfiles ||
      (enough && predicted <= largest + largest / reachShare))
    wanted.reset();
  else if (predicted > largest)
    wanted = static_cast<uint32_t>(
        std::min<uint64_t>(predicted, uint64_t{largest} * options.growth));
  else if (predicted > 0 && !wasMeasured(predicted))
    wanted = predicted;
  else
    wanted = inWidestGap().value_or(std::max(predicted, uint32_t{1}));
  return {};
}

uint32_t DeviceProfiling::depth() const {
  if (!found)
    return 0;
  const uint32_t fitted = found->line.depthFor(options.limitSeconds());
  return std::clamp(fitted, uint32_t{1}, options.mostConcurrency);
}

bool DeviceProfiling::wasMeasured(uint32_t concurrency) const {
  return std::ranges::find(points, concurrency, &ProfilePoint::concurrency) !=
         points.end();
}

uint32_t DeviceProfiling::largestMeasured() const {
  return std::ranges::max(points, {}, &ProfilePoint::concurrency).concurrency;
}

std::optional<uint32_t> DeviceProfiling::inWidestGap() const {
  std::vector<uint32_t> measured;
  for (const ProfilePoint &point : points)
    measured.push_back(point.concurrency);
  std::ranges::sort(measured);
  uint32_t widest = 1;
  std::optional<uint32_t> middle;
  for (size_t i = 1; i < measured.size(); ++i) {
    const uint32_t gap = measured[i] - measured[i - 1];
    if (gap > widest) {
      widest = gap;
      middle = measured[i - 1] + gap / 2;
    }
  }
  return middle;
}
