//===- EmbeddingDevices.h - All that embeds for a service -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The devices of a service, detected, measured where that is needed, and put
/// behind one dispatcher (WindVE, IV): accelerators first, the CPU for what
/// finds their queues full.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ENCODING_EMBEDDINGDEVICES_H
#define SANDWICH_ENCODING_EMBEDDINGDEVICES_H

#include "sandwich/Devices/DeviceDescription.h"
#include "sandwich/Devices/Dispatcher.h"
#include "sandwich/Devices/SavedDepths.h"
#include "sandwich/Encoding/EncodingService.h"
#include "sandwich/Support/Log.h"

#include <functional>
#include <memory>
#include <string>

namespace sandwich {

/// The service as a device; both live as long as one of them is used.
std::unique_ptr<Device> makeEncodingDevice(std::string name,
                                           EncodingService &service);

/// Asks every device of `description` whether it is there, and decides by the
/// detector's rules who gets queries. The CPU is there. Errors: no device is
/// there; URLs and keys that are none.
Result<DeviceConfiguration> detectDevices(const DevicesDescription &description,
                                          const LogCallback &log);

struct EmbeddingDevicesOptions {
  DevicesDescription description;
  /// Where depths are kept; empty: nowhere. Those of another model, SLO or
  /// other devices are measured again.
  std::string depthsFile = {};
  /// What depths are measured for.
  std::string modelChecksum = {};
  /// Whether the process is to end, asked between two measurements.
  std::function<bool()> isStopped = {};
  LogCallback log = {};
};

class EmbeddingDevices {
public:
  /// Asks every device whether it is there, decides by the detector's rules who
  /// gets queries, measures the depths that are not told and not known, and
  /// starts. `service`, the CPU's, lives longer. Errors: no device is there;
  /// URLs and keys that are none; what `Dispatcher::create` refuses; a device
  /// that fails while it is measured; a file of depths that cannot be read or
  /// written; stopped.
  static Result<std::unique_ptr<EmbeddingDevices>>
  create(EncodingService &service, const EmbeddingDevicesOptions &options);

  Dispatcher &dispatcher() { return *queues; }
  const Dispatcher &dispatcher() const { return *queues; }
  /// The detector's decisions.
  const DeviceConfiguration &configuration() const { return detected; }

private:
  EmbeddingDevices(DeviceConfiguration detected,
                   std::unique_ptr<Dispatcher> queues)
      : detected(std::move(detected)), queues(std::move(queues)) {}

  DeviceConfiguration detected;
  std::unique_ptr<Dispatcher> queues;
};

} // namespace sandwich

#endif // SANDWICH_ENCODING_EMBEDDINGDEVICES_H
