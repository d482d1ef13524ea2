//===- DepthTuning.cpp - Depths of devices that work together -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DepthTuning.h"

#include <algorithm>

using namespace sandwich;

Result<DepthTuning> DepthTuning::create(const DepthOptions &options,
                                        std::span<const uint32_t> estimates) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  DepthTuning tuning(options);
  for (const uint32_t estimate : estimates) {
    Device device;
    device.trial = std::min(estimate, options.mostConcurrency);
    // A device without queries has nothing to find.
    device.broken = device.trial ? options.mostConcurrency + 1 : 1;
    tuning.devices.push_back(device);
  }
  tuning.choose();
  return tuning;
}

void DepthTuning::Device::learn(bool keeps) {
  if (keeps) {
    kept = std::max(kept, trial);
    return;
  }
  broken = trial;
  // What was kept before is not any more, beside what the others do now.
  if (kept >= broken) {
    kept = 0;
    step = 1;
  }
}

void DepthTuning::Device::choose(uint32_t most) {
  if (isFound()) {
    trial = kept;
  } else if (broken > most) {
    trial = std::min(kept + step, most);
    step *= 2;
  } else if (kept == 0) {
    trial = broken > step ? broken - step : 1;
    step *= 2;
  } else {
    trial = kept + (broken - kept) / 2;
  }
}

Status DepthTuning::record(std::span<const double> seconds) {
  if (!wanted)
    return makeError(ErrorKind::InvalidArgument,
                     "no measurement was asked for");
  if (seconds.size() != devices.size())
    return makeError(ErrorKind::InvalidArgument, "there are ", seconds.size(),
                     " latencies for ", devices.size(), " devices");
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].trial > 0)
      SANDWICH_RETURN_IF_ERROR(checkSeconds("a latency", seconds[i]));
  ++measured;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].trial == 0)
      continue;
    devices[i].learn(keepsSlo(seconds[i], options.limitSeconds()));
    devices[i].choose(options.mostConcurrency);
  }
  choose();
  return {};
}

void DepthTuning::choose() {
  wanted.reset();
  if (measured >= options.mostTuningProfiles ||
      std::ranges::all_of(devices, &Device::isFound))
    return;
  wanted.emplace();
  for (const Device &device : devices)
    wanted->push_back(device.trial);
}

std::vector<uint32_t> DepthTuning::depths() const {
  std::vector<uint32_t> depths;
  for (const Device &device : devices)
    depths.push_back(device.kept);
  return depths;
}
