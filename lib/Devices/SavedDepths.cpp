//===- SavedDepths.cpp - Depths that were found before --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/SavedDepths.h"

#include "FieldReader.h"
#include "sandwich/Devices/DeviceConfiguration.h"
#include "sandwich/Support/File.h"

#include <set>

using namespace sandwich;

static constexpr uint64_t currentVersion = 1;

SavedDepths SavedDepths::from(const DepthEstimate &estimate,
                              std::string modelChecksum) {
  SavedDepths saved{.modelChecksum = std::move(modelChecksum),
                    .sloSeconds = estimate.sloSeconds,
                    .devices = {}};
  for (const DeviceDepth &device : estimate.devices) {
    SavedDepth &depth = saved.devices.emplace_back();
    depth.name = device.name;
    depth.depth = device.depth;
    if (device.fit)
      depth.line = device.fit->line;
  }
  return saved;
}

static Result<SavedDepth> readDepth(const Json &json, const std::string &path) {
  SavedDepth saved;
  FieldReader reader(json, path);
  SANDWICH_RETURN_IF_ERROR(reader.object());
  for (const char *name : {"name", "depth"})
    SANDWICH_RETURN_IF_ERROR(reader.require(name));
  SANDWICH_RETURN_IF_ERROR(reader.text("name", saved.name));
  uint64_t depth = 0;
  SANDWICH_RETURN_IF_ERROR(reader.integer("depth", 0, maxQueueDepth, depth));
  saved.depth = static_cast<uint32_t>(depth);
  if (reader.find("alpha") || reader.find("beta"))
    SANDWICH_RETURN_IF_ERROR(reader.line(saved.line.emplace()));
  else if (saved.depth > 0)
    return makeError(ErrorKind::InvalidArgument, reader.pathOf("depth"), " is ",
                     saved.depth, ", but there is no alpha and no beta");
  SANDWICH_RETURN_IF_ERROR(reader.end());
  return saved;
}

static Result<SavedDepths> readSaved(const Json &json) {
  SavedDepths saved;
  FieldReader reader(json, "");
  SANDWICH_RETURN_IF_ERROR(reader.object());
  for (const char *name :
       {"version", "model_checksum", "slo_seconds", "devices"})
    SANDWICH_RETURN_IF_ERROR(reader.require(name));
  uint64_t version = 0;
  SANDWICH_RETURN_IF_ERROR(
      reader.integer("version", currentVersion, currentVersion, version));
  SANDWICH_RETURN_IF_ERROR(reader.text("model_checksum", saved.modelChecksum));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("slo_seconds", 1e-6, maxDeviceSeconds, saved.sloSeconds));
  const Json &list = *reader.find("devices");
  if (!list.is_array() || list.empty() || list.size() > maxDevices)
    return makeError(ErrorKind::InvalidArgument, "devices is no list of 1 to ",
                     maxDevices, " devices");
  SANDWICH_RETURN_IF_ERROR(reader.end());
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = "devices[" + std::to_string(i) + "]";
    SANDWICH_ASSIGN_OR_RETURN(SavedDepth depth, readDepth(list[i], path));
    if (!names.insert(depth.name).second)
      return makeError(ErrorKind::InvalidArgument, path, ".name is '",
                       depth.name, "', as another's");
    saved.devices.push_back(std::move(depth));
  }
  return saved;
}

Result<SavedDepths> SavedDepths::parse(std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  return readSaved(json);
}

Result<SavedDepths> SavedDepths::read(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, readDescription(path));
  auto saved = readSaved(json);
  if (!saved)
    return saved.error().inContext(path);
  return saved;
}

std::string SavedDepths::describe() const {
  Json list = Json::array();
  for (const SavedDepth &device : devices) {
    Json json = {{"name", device.name}};
    if (device.line) {
      json["alpha"] = device.line->alpha;
      json["beta"] = device.line->beta;
    }
    json["depth"] = device.depth;
    list.push_back(std::move(json));
  }
  const Json json = {{"version", currentVersion},
                     {"model_checksum", modelChecksum},
                     {"slo_seconds", sloSeconds},
                     {"devices", std::move(list)}};
  // Names may be any bytes; those that are no UTF-8 do not hold for anybody.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status SavedDepths::write(const std::string &path) const {
  const std::string text = describe();
  // A file that could not be read again would be found out too late.
  if (const Result<SavedDepths> again = parse(text); !again)
    return again.error().inContext(path);
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(path));
  SANDWICH_RETURN_IF_ERROR(file.write(text));
  return file.commit();
}

std::optional<std::string>
SavedDepths::reasonToIgnore(const DepthsSubject &subject) const {
  const auto differs = [](const auto &...parts) {
    return makeError(parts...).message;
  };
  if (modelChecksum != subject.modelChecksum)
    return differs("the depths are for the model ", modelChecksum,
                   ", and this one is ", subject.modelChecksum);
  if (sloSeconds != subject.sloSeconds)
    return differs("the depths are for an SLO of ", sloSeconds,
                   " s, and this one is ", subject.sloSeconds, " s");
  if (devices.size() != subject.devices.size())
    return differs("the depths are for ", devices.size(), " devices, and ",
                   subject.devices.size(), " are there");
  // What is beside a device, and before it, changes its depth.
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].name != subject.devices[i])
      return differs("device ", i, " was '", devices[i].name, "', and is '",
                     subject.devices[i], "'");
  return std::nullopt;
}
