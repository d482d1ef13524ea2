//===- SavedDepthsFuzzer.cpp - Any bytes as saved depths ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/SavedDepths.h"

#include "sandwich/Devices/DeviceConfiguration.h"

#include <cstdlib>
#include <string_view>

using namespace sandwich;

/// Whatever is accepted is within its bounds, and is read again as it is
/// written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto saved =
      SavedDepths::parse({reinterpret_cast<const char *>(data), size});
  if (!saved) {
    if (saved.error().message.empty())
      std::abort();
    return 0;
  }
  if (saved->devices.empty() || saved->devices.size() > maxDevices)
    std::abort();
  for (const SavedDepth &device : saved->devices) {
    if (device.depth > maxQueueDepth || (device.depth > 0 && !device.line))
      std::abort();
    if (device.line && !(device.line->seconds(1) > 0 &&
                         device.line->seconds(1) <= 2 * maxDeviceSeconds))
      std::abort();
  }
  const auto again = SavedDepths::parse(saved->describe());
  if (!again || *again != *saved)
    std::abort();
  return 0;
}
