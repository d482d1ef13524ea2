//===- SimulatedDevice.h - Devices made of numbers --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A device that takes alpha * batch + beta seconds, with noise and faults: for
/// tests, for planning and for the experiments of WindVE. It is data and a
/// random number generator; who waits for the seconds is the caller's.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_SIMULATEDDEVICE_H
#define SANDWICH_DEVICES_SIMULATEDDEVICE_H

#include "sandwich/Devices/DeviceConfiguration.h"
#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

struct SimulatedDeviceModel {
  std::string name = {};
  DeviceKind kind = DeviceKind::Accelerator;
  LatencyLine line = {};
  /// The standard deviation of the logarithm of a batch's seconds: 0.02 is
  /// about 2%. At most 1.
  double noise = 0;
  /// The share of batches that take `slowFactor` times as long.
  double slowProbability = 0;
  double slowFactor = 4;
  /// The share of batches that fail, when they would be done.
  double failureProbability = 0;
  /// The share of batches that never end.
  double hangProbability = 0;
};

enum class BatchEnd { Done, Failed, Hung };

struct SimulatedBatch {
  BatchEnd end = BatchEnd::Done;
  /// Until the batch is done or fails; of no meaning where it hangs.
  double seconds = 0;
};

/// Batches of one device, the same for the same seed on every machine.
class SimulatedDevice {
public:
  SimulatedDevice(SimulatedDeviceModel model, uint64_t seed)
      : described(std::move(model)), generator(seed) {}

  /// What becomes of the next batch, of `queries` queries.
  SimulatedBatch run(uint32_t queries);

  const SimulatedDeviceModel &model() const { return described; }

private:
  SimulatedDeviceModel described;
  std::mt19937_64 generator;
};

/// Reads an object with a list of `devices`, the most preferred first; each has
/// `name`, `kind` ("accelerator" or "cpu"), `alpha` and `beta` in seconds, and
/// may have `noise`, `slow_probability`, `slow_factor`, `failure_probability`
/// and `hang_probability`.
///
/// Errors: a field that is absent, unknown or out of its range; probabilities
/// of more than 1 together; no device or more than `maxDevices`; two of one
/// name.
Result<std::vector<SimulatedDeviceModel>>
parseSimulatedDevices(std::string_view json);

/// The same from a file, which errors name.
Result<std::vector<SimulatedDeviceModel>>
readSimulatedDevices(const std::string &path);

} // namespace sandwich

#endif // SANDWICH_DEVICES_SIMULATEDDEVICE_H
