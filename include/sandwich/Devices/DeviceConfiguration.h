//===- DeviceConfiguration.h - Which queues are set up ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The rules of WindVE's device detector (IV.C) as a function: from what is
/// there, what is configured and whether devices of both kinds shall work
/// together, to the queues that are set up.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEVICECONFIGURATION_H
#define SANDWICH_DEVICES_DEVICECONFIGURATION_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// The paper's NPUs and GPUs are one kind, CPUs the other. In the order of
/// preference.
enum class DeviceKind { Accelerator, Cpu };

/// "accelerator" or "cpu".
std::string_view nameOf(DeviceKind kind);

/// The most devices of one service.
inline constexpr size_t maxDevices = 64;

/// What the detector knows of one device.
struct DeviceCandidate {
  std::string name;
  DeviceKind kind = DeviceKind::Cpu;
  /// It was found to be there.
  bool present = false;
  /// The service may use it.
  bool configured = false;
};

struct DetectorSettings {
  /// The option for heterogeneous computing.
  bool heterogeneous = false;
  /// How many instances, each with a copy of the model, serve the queue of each
  /// kind. By default one for each accelerator, and one for the CPU of a
  /// machine, which the paper recommends for latency.
  std::optional<uint32_t> acceleratorWorkers = std::nullopt;
  std::optional<uint32_t> cpuWorkers = std::nullopt;
};

/// A queue, and who serves it.
struct DeviceQueue {
  DeviceKind kind = DeviceKind::Cpu;
  std::vector<std::string> devices;
  uint32_t workers = 1;
};

struct DeviceConfiguration {
  /// The most preferred first.
  std::vector<DeviceQueue> queues;
  /// Queries may overflow from the first queue to the second.
  bool heterogeneous = false;
  /// Each decision, as one sentence.
  std::vector<std::string> reasons;

  /// The queues and the reasons, a line each.
  std::string describe() const;
};

/// Sets up one queue for each kind of device that is both there and configured:
/// of one kind only, one queue, and heterogeneous mode is forced off; of both
/// kinds without heterogeneous mode, the accelerators' queue only; of both
/// kinds with it, two queues.
///
/// Errors (InvalidArgument): no device is there and configured, more than
/// `maxDevices`, two of one name or one without, no workers, or more than
/// `maxDevices`.
Result<DeviceConfiguration>
configureDevices(std::span<const DeviceCandidate> candidates,
                 const DetectorSettings &settings);

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEVICECONFIGURATION_H
