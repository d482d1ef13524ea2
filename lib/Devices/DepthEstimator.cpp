//===- DepthEstimator.cpp - How deep the queues may be --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DepthEstimator.h"

#include "sandwich/Devices/DeviceConfiguration.h"

#include <sstream>

using namespace sandwich;

Result<DepthEstimator> DepthEstimator::create(const DepthOptions &options,
                                              std::vector<std::string> names) {
  if (names.empty() || names.size() > maxDevices)
    return makeError(ErrorKind::InvalidArgument, "there are ", names.size(),
                     " devices; there must be 1 to ", maxDevices);
  DepthEstimator estimator(options, std::move(names));
  for (size_t i = 0; i < estimator.names.size(); ++i) {
    SANDWICH_ASSIGN_OR_RETURN(DeviceProfiling profiling,
                              DeviceProfiling::create(options));
    estimator.profilings.push_back(std::move(profiling));
  }
  return estimator;
}

std::optional<std::vector<uint32_t>> DepthEstimator::next() const {
  if (tuning)
    return tuning->next();
  std::vector<uint32_t> wanted(names.size());
  wanted[current] = profilings[current].next().value_or(0);
  return wanted;
}

Status DepthEstimator::record(std::span<const double> seconds) {
  if (tuning)
    return tuning->record(seconds);
  if (seconds.size() != names.size())
    return makeError(ErrorKind::InvalidArgument, "there are ", seconds.size(),
                     " latencies for ", names.size(), " devices");
  SANDWICH_RETURN_IF_ERROR(profilings[current].record(seconds[current]));
  if (profilings[current].next())
    return {};
  if (++current < profilings.size())
    return {};
  std::vector<uint32_t> estimates;
  for (const DeviceProfiling &profiling : profilings)
    estimates.push_back(profiling.depth());
  SANDWICH_ASSIGN_OR_RETURN(tuning, DepthTuning::create(options, estimates));
  return {};
}

DepthEstimate DepthEstimator::estimate() const {
  DepthEstimate estimate;
  estimate.sloSeconds = options.sloSeconds;
  const std::vector<uint32_t> tuned =
      tuning ? tuning->depths() : std::vector<uint32_t>(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const DeviceProfiling &profiling = profilings[i];
    estimate.devices.push_back({names[i], profiling.fit(), profiling.depth(),
                                tuned[i], profiling.profiles().size()});
  }
  estimate.tuningProfiles = tuning ? tuning->profiles() : 0;
  return estimate;
}

size_t DepthEstimate::profiles() const {
  size_t all = tuningProfiles;
  for (const DeviceDepth &device : devices)
    all += device.profiles;
  return all;
}

std::string DepthEstimate::describe() const {
  std::ostringstream text;
  for (const DeviceDepth &device : devices) {
    text << device.name << ": ";
    if (!device.fit)
      text << "a single query takes longer than " << sloSeconds
           << " s, so that it gets none\n";
    else
      text << device.fit->describe() << ", depth " << device.estimated
           << " by the line and " << device.depth << " beside the others"
           << (device.depth ? "\n" : ", so that it gets no queries\n");
  }
  text << profiles() << " measurements, " << tuningProfiles
       << " of them of all devices at once\n";
  return text.str();
}
