//===- DepthEstimator.h - How deep the queues may be ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEPTHESTIMATOR_H
#define SANDWICH_DEVICES_DEPTHESTIMATOR_H

#include "sandwich/Devices/DepthTuning.h"
#include "sandwich/Devices/DeviceProfiling.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// What was found of one device.
struct DeviceDepth {
  std::string name;
  /// Nothing: a single query takes too long (equation 11).
  std::optional<LatencyFit> fit;
  /// From the line alone.
  uint32_t estimated = 0;
  /// Beside the other devices. 0: the device gets no queries.
  uint32_t depth = 0;
  /// Of this device alone.
  size_t profiles = 0;
};

struct DepthEstimate {
  double sloSeconds = 0;
  std::vector<DeviceDepth> devices;
  /// Of all devices at once.
  size_t tuningProfiles = 0;

  /// All that were needed.
  size_t profiles() const;
  /// What was found of each device, a line each, and which of them take no
  /// queries, with the reason.
  std::string describe() const;
};

/// WindVE's estimator of queue depths (IV.B.2): a few profiles of each device
/// alone, a line through them, the SLO's depth on it, and fine-tuning with all
/// devices busy. Has no clock and runs nothing: it asks for a measurement and
/// is told the latencies.
class DepthEstimator {
public:
  /// `names`: of the devices, the most preferred first. Errors
  /// (InvalidArgument): as `DepthOptions::validate`; no device, or more than
  /// `maxDevices`.
  static Result<DepthEstimator> create(const DepthOptions &options,
                                       std::vector<std::string> names);

  /// How many queries to send to each device at a time, to all at once; 0: the
  /// device is idle. Nothing: done.
  std::optional<std::vector<uint32_t>> next() const;

  /// For each device the seconds until the last query of what `next` asked for
  /// was answered; those of idle devices are not looked at. Errors
  /// (InvalidArgument): nothing was asked for; another number of latencies than
  /// of devices; as `checkSeconds`.
  Status record(std::span<const double> seconds);

  /// What is known so far; all of it once `next` gives nothing.
  DepthEstimate estimate() const;

private:
  DepthEstimator(const DepthOptions &options, std::vector<std::string> names)
      : options(options), names(std::move(names)) {}

  DepthOptions options;
  std::vector<std::string> names;
  std::vector<DeviceProfiling> profilings;
  /// The first device that is not profiled yet.
  size_t current = 0;
  /// Once all are.
  std::optional<DepthTuning> tuning;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEPTHESTIMATOR_H
