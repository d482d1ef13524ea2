//===- DeviceDescription.cpp - What a service's devices are ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceDescription.h"

#include "FieldReader.h"

#include <set>

using namespace sandwich;

/// Reads a field that is one of `names`, in the order of `T`'s values.
template <typename T, size_t N>
static Status readChoice(FieldReader &fields, std::string_view name,
                         const std::string_view (&names)[N], T &value) {
  std::string text;
  SANDWICH_RETURN_IF_ERROR(fields.text(name, text));
  if (text.empty())
    return {};
  std::string list;
  for (size_t i = 0; i < N; ++i) {
    if (text == names[i]) {
      value = static_cast<T>(i);
      return {};
    }
    list += (i == 0       ? "\""
             : i + 1 == N ? " or \""
                          : ", \"") +
            std::string(names[i]) + "\"";
  }
  return makeError(ErrorKind::InvalidArgument, fields.pathOf(name), " is \"",
                   text, "\"; it must be ", list);
}

static Status readBoolean(FieldReader &fields, std::string_view name,
                          bool &value) {
  const Json *field = fields.find(name);
  if (!field)
    return {};
  if (!field->is_boolean())
    return makeError(ErrorKind::InvalidArgument, fields.pathOf(name),
                     " must be true or false");
  value = field->get<bool>();
  return {};
}

static Status readRemote(FieldReader &fields, DeviceDescription &device) {
  SANDWICH_RETURN_IF_ERROR(fields.require("url"));
  SANDWICH_RETURN_IF_ERROR(fields.text("url", device.url));
  SANDWICH_RETURN_IF_ERROR(fields.text("model", device.model));
  return fields.text("key_variable", device.keyVariable);
}

static Status readSimulated(FieldReader &fields, DeviceDescription &device) {
  device.simulated.name = device.name;
  device.simulated.kind = device.kind;
  SANDWICH_RETURN_IF_ERROR(fields.line(device.simulated.line));
  return fields.number("noise", 0, 1, device.simulated.noise);
}

static Result<DeviceDescription> readDevice(const Json &json,
                                            const std::string &path) {
  FieldReader fields(json, path);
  SANDWICH_RETURN_IF_ERROR(fields.object());
  DeviceDescription device;
  SANDWICH_RETURN_IF_ERROR(fields.require("name"));
  SANDWICH_RETURN_IF_ERROR(fields.text("name", device.name));
  SANDWICH_RETURN_IF_ERROR(fields.require("type"));
  SANDWICH_RETURN_IF_ERROR(
      readChoice(fields, "type", {"cpu", "remote", "simulated"}, device.type));
  // What is no CPU of this machine is an accelerator unless it is told.
  device.kind = device.type == DeviceType::Cpu ? DeviceKind::Cpu
                                               : DeviceKind::Accelerator;
  SANDWICH_RETURN_IF_ERROR(
      readChoice(fields, "kind", {"accelerator", "cpu"}, device.kind));
  if (fields.find("depth")) {
    uint64_t depth = 0;
    SANDWICH_RETURN_IF_ERROR(fields.integer("depth", 1, maxQueueDepth, depth));
    device.depth = static_cast<uint32_t>(depth);
  }
  if (device.type == DeviceType::Remote)
    SANDWICH_RETURN_IF_ERROR(readRemote(fields, device));
  if (device.type == DeviceType::Simulated)
    SANDWICH_RETURN_IF_ERROR(readSimulated(fields, device));
  SANDWICH_RETURN_IF_ERROR(fields.end());
  return device;
}

static Result<DevicesDescription> readDevices(const Json &json) {
  FieldReader fields(json, "");
  SANDWICH_RETURN_IF_ERROR(fields.object());
  DevicesDescription description;
  SANDWICH_RETURN_IF_ERROR(
      readBoolean(fields, "heterogeneous", description.heterogeneous));
  SANDWICH_RETURN_IF_ERROR(fields.number("slo_seconds", 1e-6, maxDeviceSeconds,
                                         description.sloSeconds));
  constexpr uint64_t mostTokens = 1 << 20;
  SANDWICH_RETURN_IF_ERROR(
      fields.integer("query_tokens", 1, mostTokens, description.queryTokens));
  SANDWICH_RETURN_IF_ERROR(fields.require("devices"));
  const Json &list = *fields.find("devices");
  if (!list.is_array() || list.empty() || list.size() > maxDevices)
    return makeError(ErrorKind::InvalidArgument,
                     "devices must be a list of 1 to ", maxDevices, " devices");
  std::set<std::string> names;
  bool hasCpu = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = "devices[" + std::to_string(i) + "]";
    SANDWICH_ASSIGN_OR_RETURN(DeviceDescription device,
                              readDevice(list[i], path));
    if (!names.insert(device.name).second)
      return makeError(ErrorKind::InvalidArgument, path, ".name is \"",
                       device.name, "\", as is that of another device");
    if (device.type == DeviceType::Cpu && std::exchange(hasCpu, true))
      return makeError(ErrorKind::InvalidArgument, path,
                       ".type is \"cpu\", as is that of another device");
    description.devices.push_back(std::move(device));
  }
  SANDWICH_RETURN_IF_ERROR(fields.end());
  return description;
}

Result<DevicesDescription> DevicesDescription::parse(std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  return readDevices(json);
}

Result<DevicesDescription> DevicesDescription::read(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, readDescription(path));
  auto description = readDevices(json);
  if (!description)
    return description.error().inContext(path);
  return description;
}
