//===- DeviceConfiguration.cpp - Which queues are set up ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceConfiguration.h"

#include <algorithm>
#include <set>
#include <sstream>

using namespace sandwich;

std::string_view sandwich::nameOf(DeviceKind kind) {
  return kind == DeviceKind::Accelerator ? "accelerator" : "cpu";
}

static Status checkWorkers(DeviceKind kind,
                           const std::optional<uint32_t> &workers) {
  if (workers && (*workers < 1 || *workers > maxDevices))
    return makeError(ErrorKind::InvalidArgument, "workers of kind ",
                     nameOf(kind), " are ", *workers, "; they must be 1 to ",
                     maxDevices);
  return {};
}

static Status check(std::span<const DeviceCandidate> candidates,
                    const DetectorSettings &settings) {
  if (candidates.size() > maxDevices)
    return makeError(ErrorKind::InvalidArgument, "there are ",
                     candidates.size(), " devices; at most ", maxDevices,
                     " can be used");
  std::set<std::string_view> names;
  for (const DeviceCandidate &candidate : candidates) {
    if (candidate.name.empty())
      return makeError(ErrorKind::InvalidArgument, "a device has no name");
    if (!names.insert(candidate.name).second)
      return makeError(ErrorKind::InvalidArgument, "two devices are named '",
                       candidate.name, "'");
  }
  SANDWICH_RETURN_IF_ERROR(
      checkWorkers(DeviceKind::Accelerator, settings.acceleratorWorkers));
  return checkWorkers(DeviceKind::Cpu, settings.cpuWorkers);
}

/// The queue of the usable devices of `kind`; none where there is no such
/// device.
static std::optional<DeviceQueue>
queueOf(DeviceKind kind, std::span<const DeviceCandidate> candidates,
        const std::optional<uint32_t> &workers) {
  DeviceQueue queue;
  queue.kind = kind;
  for (const DeviceCandidate &candidate : candidates)
    if (candidate.kind == kind && candidate.present && candidate.configured)
      queue.devices.push_back(candidate.name);
  if (queue.devices.empty())
    return std::nullopt;
  const auto usual = kind == DeviceKind::Cpu
                         ? uint32_t{1}
                         : static_cast<uint32_t>(queue.devices.size());
  queue.workers = workers.value_or(usual);
  return queue;
}

Result<DeviceConfiguration>
sandwich::configureDevices(std::span<const DeviceCandidate> candidates,
                           const DetectorSettings &settings) {
  SANDWICH_RETURN_IF_ERROR(check(candidates, settings));
  DeviceConfiguration configuration;
  std::vector<std::string> &reasons = configuration.reasons;
  for (const DeviceCandidate &candidate : candidates)
    if (candidate.configured != candidate.present)
      reasons.push_back(candidate.name +
                        (candidate.configured
                             ? " is configured but not there"
                             : " is there but not configured"));
  const std::optional<DeviceQueue> accelerators =
      queueOf(DeviceKind::Accelerator, candidates, settings.acceleratorWorkers);
  const std::optional<DeviceQueue> cpus =
      queueOf(DeviceKind::Cpu, candidates, settings.cpuWorkers);
  if (!accelerators && !cpus)
    return makeError(ErrorKind::InvalidArgument,
                     "no device is both there and configured");
  if (accelerators)
    configuration.queues.push_back(*accelerators);
  if (cpus && (!accelerators || settings.heterogeneous))
    configuration.queues.push_back(*cpus);
  configuration.heterogeneous = configuration.queues.size() > 1;
  if (!accelerators || !cpus)
    reasons.push_back(std::string("there is one kind of device, so there is "
                                  "one queue") +
                      (settings.heterogeneous
                           ? " and heterogeneous mode is forced off"
                           : ""));
  else if (settings.heterogeneous)
    reasons.push_back("there are both kinds of devices and heterogeneous mode "
                      "is on, so what is too much for the accelerator goes to "
                      "the CPU");
  else
    reasons.push_back("there are both kinds of devices but heterogeneous mode "
                      "is off, so only accelerators have a queue");
  if (configuration.queues.back().kind == DeviceKind::Cpu &&
      configuration.queues.back().workers > 1)
    reasons.push_back("the CPU has " +
                      std::to_string(configuration.queues.back().workers) +
                      " instances; one for each machine has the lower latency");
  return configuration;
}

std::string DeviceConfiguration::describe() const {
  std::ostringstream text;
  for (const DeviceQueue &queue : queues) {
    text << "queue    " << nameOf(queue.kind) << ":";
    for (const std::string &device : queue.devices)
      text << " " << device;
    text << ", " << queue.workers
         << (queue.workers == 1 ? " instance\n" : " instances\n");
  }
  text << "overflow " << (heterogeneous ? "on" : "off") << "\n";
  for (const std::string &reason : reasons)
    text << "because  " << reason << "\n";
  return text.str();
}
