//===- DeviceDescription.h - What a service's devices are -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEVICEDESCRIPTION_H
#define SANDWICH_DEVICES_DEVICEDESCRIPTION_H

#include "sandwich/Devices/DeviceConfiguration.h"
#include "sandwich/Devices/SimulatedDevice.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

enum class DeviceType {
  Cpu,       ///< the artifact, in this process
  Remote,    ///< a server of embeddings
  Simulated, ///< waits as long as a line says, and answers nonsense
};

struct DeviceDescription {
  std::string name;
  DeviceType type = DeviceType::Cpu;
  DeviceKind kind = DeviceKind::Cpu;
  /// Of its queue; nothing: it is measured, or known from before.
  std::optional<uint32_t> depth = {};
  /// Of a server: "http://host:port/v1/embeddings" or ".../embed".
  std::string url = {};
  /// What the server calls the model, and the environment variable that has its
  /// key; empty: none.
  std::string model = {};
  std::string keyVariable = {};
  /// Of what is simulated.
  SimulatedDeviceModel simulated = {};
};

/// A file of JSON, the most preferred device first of each kind:
///
///   {"heterogeneous": true, "slo_seconds": 1, "devices": [
///     {"name": "gpu", "type": "remote", "kind": "accelerator",
///      "url": "http://127.0.0.1:8081/v1/embeddings", "depth": 44},
///     {"name": "cpu", "type": "cpu"}]}
struct DevicesDescription {
  /// The option for heterogeneous computing (WindVE, IV.C).
  bool heterogeneous = false;
  /// The most seconds that a query may take.
  double sloSeconds = 1;
  /// Tokens of the queries that depths are measured with.
  uint64_t queryTokens = 75;
  std::vector<DeviceDescription> devices;

  /// Errors name the field, the reason and what would be right: one that is
  /// absent, unknown, of another type or out of its range; no device, or more
  /// than `maxDevices`; two of one name; two that are the CPU.
  static Result<DevicesDescription> parse(std::string_view json);

  /// The same from a file, which errors name.
  static Result<DevicesDescription> read(const std::string &path);
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEVICEDESCRIPTION_H
