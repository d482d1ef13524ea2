//===- Measurement.cpp - Depths of simulated devices ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measurement.h"

#include "sandwich/Devices/WindVESimulation.h"

using namespace sandwich;
using namespace sandwich::benchmark;

/// Of queries that come at once.
static constexpr size_t rounds = 100;

SimulatedDeviceModel benchmark::makeDevice(const LatencyLine &line,
                                           const ExperimentOptions &options) {
  SimulatedDeviceModel device;
  device.line = line;
  device.noise = options.noise;
  return device;
}

Result<DepthEstimate>
benchmark::estimateDepths(const std::vector<SimulatedDeviceModel> &models,
                          double sloSeconds, const ExperimentOptions &options) {
  std::vector<std::string> names;
  std::vector<SimulatedDevice> devices;
  for (const SimulatedDeviceModel &model : models) {
    names.push_back(model.name);
    devices.emplace_back(model, options.seed + devices.size());
  }
  DepthOptions depthOptions;
  depthOptions.sloSeconds = sloSeconds;
  SANDWICH_ASSIGN_OR_RETURN(DepthEstimator estimator,
                            DepthEstimator::create(depthOptions, names));
  while (const auto wanted = estimator.next()) {
    std::vector<double> seconds(devices.size());
    for (size_t i = 0; i < devices.size(); ++i)
      if ((*wanted)[i] > 0)
        seconds[i] = devices[i].run((*wanted)[i]).seconds;
    SANDWICH_RETURN_IF_ERROR(estimator.record(seconds));
  }
  return estimator.estimate();
}

Result<StressResult> benchmark::stress(const SimulatedDeviceModel &model,
                                       double sloSeconds, uint32_t step,
                                       const ExperimentOptions &options) {
  SimulatedDevice device(model, options.seed);
  DepthOptions depthOptions;
  depthOptions.sloSeconds = sloSeconds;
  SANDWICH_ASSIGN_OR_RETURN(StressTest test,
                            StressTest::create(depthOptions, step));
  while (const auto wanted = test.next())
    SANDWICH_RETURN_IF_ERROR(test.record(device.run(*wanted).seconds));
  return StressResult{test.depth(), test.profiles()};
}

Result<double>
benchmark::measureShare(const std::vector<SimulatedDeviceModel> &devices,
                        const DepthEstimate &depths,
                        const ExperimentOptions &options) {
  WindVESystem system;
  system.devices = devices;
  system.seed = options.seed;
  uint32_t all = 0;
  for (const DeviceDepth &device : depths.devices) {
    system.depths.push_back(device.depth);
    all += device.depth;
  }
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<SimulatedQuery> queries,
                            simulateRounds(system, all, rounds));
  return shareWithin(queries, depths.sloSeconds);
}
