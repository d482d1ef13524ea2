//===- Measurement.h - Depths of simulated devices --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BENCHMARKS_WINDVE_MEASUREMENT_H
#define BENCHMARKS_WINDVE_MEASUREMENT_H

#include "Experiments.h"

#include "sandwich/Devices/DepthEstimator.h"
#include "sandwich/Devices/SimulatedDevice.h"
#include "sandwich/Devices/StressTest.h"

#include <vector>

namespace sandwich::benchmark {

SimulatedDeviceModel makeDevice(const LatencyLine &line,
                                const ExperimentOptions &options);

/// Runs the estimator on `devices`, the most preferred first.
Result<DepthEstimate>
estimateDepths(const std::vector<SimulatedDeviceModel> &devices,
               double sloSeconds, const ExperimentOptions &options);

/// What the stress test finds, and from how many profiles.
struct StressResult {
  uint32_t depth = 0;
  size_t profiles = 0;
};
Result<StressResult> stress(const SimulatedDeviceModel &device,
                            double sloSeconds, uint32_t step,
                            const ExperimentOptions &options);

/// The share of queries that are answered within the SLO where as many come at
/// once, in rounds like the paper's, as the queues of all devices hold.
Result<double> measureShare(const std::vector<SimulatedDeviceModel> &devices,
                            const DepthEstimate &depths,
                            const ExperimentOptions &options);

} // namespace sandwich::benchmark

#endif // BENCHMARKS_WINDVE_MEASUREMENT_H
