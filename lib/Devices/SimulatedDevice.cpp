//===- SimulatedDevice.cpp - Devices made of numbers ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/SimulatedDevice.h"

#include "FieldReader.h"

#include "sandwich/Support/RandomNumbers.h"

#include <cmath>
#include <set>

using namespace sandwich;

/// Slower batches are hangs.
static constexpr double mostSlowFactor = 1e6;

SimulatedBatch SimulatedDevice::run(uint32_t queries) {
  // All numbers are drawn for each batch, so that a fault of one does not
  // change the noise of the next.
  const double varied = std::exp(described.noise * drawNormal(generator));
  double chance = drawUniform(generator);
  SimulatedBatch batch;
  batch.seconds = described.line.seconds(queries) * varied;
  auto happens = [&chance](double probability) {
    const bool does = chance <= probability;
    chance -= probability;
    return does;
  };
  if (happens(described.hangProbability))
    batch.end = BatchEnd::Hung;
  else if (happens(described.failureProbability))
    batch.end = BatchEnd::Failed;
  else if (happens(described.slowProbability))
    batch.seconds *= described.slowFactor;
  return batch;
}

static Result<SimulatedDeviceModel> readDevice(const Json &json,
                                               const std::string &path) {
  SimulatedDeviceModel device;
  FieldReader reader(json, path);
  SANDWICH_RETURN_IF_ERROR(reader.object());
  for (const char *name : {"name", "kind"})
    SANDWICH_RETURN_IF_ERROR(reader.require(name));
  SANDWICH_RETURN_IF_ERROR(reader.text("name", device.name));
  std::string kind;
  SANDWICH_RETURN_IF_ERROR(reader.text("kind", kind));
  if (kind == nameOf(DeviceKind::Cpu))
    device.kind = DeviceKind::Cpu;
  else if (kind != nameOf(DeviceKind::Accelerator))
    return makeError(ErrorKind::InvalidArgument, path, ".kind is '", kind,
                     "'; it must be accelerator or cpu");
  SANDWICH_RETURN_IF_ERROR(reader.line(device.line));
  SANDWICH_RETURN_IF_ERROR(reader.number("noise", 0, 1, device.noise));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("slow_probability", 0, 1, device.slowProbability));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("slow_factor", 1, mostSlowFactor, device.slowFactor));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("failure_probability", 0, 1, device.failureProbability));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("hang_probability", 0, 1, device.hangProbability));
  SANDWICH_RETURN_IF_ERROR(reader.end());
  if (device.slowProbability + device.failureProbability +
          device.hangProbability >
      1)
    return makeError(ErrorKind::InvalidArgument, path,
                     " has probabilities of more than 1 together");
  return device;
}

static Result<std::vector<SimulatedDeviceModel>> readDevices(const Json &json) {
  FieldReader reader(json, "");
  SANDWICH_RETURN_IF_ERROR(reader.object());
  const Json *list = reader.find("devices");
  if (!list || !list->is_array() || list->empty() || list->size() > maxDevices)
    return makeError(ErrorKind::InvalidArgument, "devices is no list of 1 to ",
                     maxDevices, " devices");
  SANDWICH_RETURN_IF_ERROR(reader.end());
  std::vector<SimulatedDeviceModel> devices;
  std::set<std::string> names;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = "devices[" + std::to_string(i) + "]";
    SANDWICH_ASSIGN_OR_RETURN(SimulatedDeviceModel device,
                              readDevice((*list)[i], path));
    if (!names.insert(device.name).second)
      return makeError(ErrorKind::InvalidArgument, path, ".name is '",
                       device.name, "', as another's");
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<SimulatedDeviceModel>>
sandwich::parseSimulatedDevices(std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  return readDevices(json);
}

Result<std::vector<SimulatedDeviceModel>>
sandwich::readSimulatedDevices(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, readDescription(path));
  auto devices = readDevices(json);
  if (!devices)
    return devices.error().inContext(path);
  return devices;
}
