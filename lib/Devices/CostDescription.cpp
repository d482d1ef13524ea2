//===- CostDescription.cpp - Costs from JSON ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FieldReader.h"
#include "sandwich/Devices/DeviceCost.h"

using namespace sandwich;

static Result<LatencyLine> fitProfiles(const Json &profiles,
                                       const std::string &path) {
  if (!profiles.is_array() || profiles.size() > LatencyFit::mostPoints)
    return makeError(ErrorKind::InvalidArgument, path,
                     " is no list of at most ", LatencyFit::mostPoints,
                     " profiles");
  std::vector<ProfilePoint> points;
  for (const Json &pair : profiles) {
    const bool holdsPoint =
        pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
        pair[0].get<uint64_t>() <= maxQueueDepth && pair[1].is_number();
    if (!holdsPoint)
      return makeError(ErrorKind::InvalidArgument, path, "[", points.size(),
                       "] is no pair of a concurrency and seconds");
    points.push_back({pair[0].get<uint32_t>(), pair[1].get<double>()});
  }
  const Result<LatencyFit> fit = LatencyFit::create(points);
  if (!fit)
    return fit.error().inContext(path);
  return fit->line;
}

static Status readDevice(const Json *json, const std::string &path,
                         PricedDevice &device) {
  if (!json)
    return {};
  FieldReader reader(*json, path);
  SANDWICH_RETURN_IF_ERROR(reader.object());
  SANDWICH_RETURN_IF_ERROR(reader.text("name", device.name));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("price", 0, maxCostNumber, device.price));
  SANDWICH_RETURN_IF_ERROR(reader.integer("devices_per_instance", 1, 1024,
                                          device.devicesPerInstance));
  if (const Json *profiles = reader.find("profiles")) {
    for (const char *name : {"alpha", "beta"})
      if (reader.find(name))
        return makeError(ErrorKind::InvalidArgument, reader.pathOf(name),
                         " is told, and so are profiles, which it is found "
                         "from");
    SANDWICH_ASSIGN_OR_RETURN(
        device.line, fitProfiles(*profiles, reader.pathOf("profiles")));
  } else if (reader.find("alpha") || reader.find("beta")) {
    SANDWICH_RETURN_IF_ERROR(reader.line(device.line.emplace()));
  }
  return reader.end();
}

static Status readDay(const Json *json, std::vector<double> &day) {
  if (!json)
    return {};
  if (!json->is_array() || json->empty() || json->size() > maxDayParts)
    return makeError(ErrorKind::InvalidArgument,
                     "queries_per_second is no list of 1 to ", maxDayParts,
                     " numbers");
  for (const Json &queries : *json) {
    if (!queries.is_number() || queries.get<double>() < 0 ||
        queries.get<double>() > maxCostNumber)
      return makeError(ErrorKind::InvalidArgument, "queries_per_second[",
                       day.size(), "] is no number from 0 to ", maxCostNumber);
    day.push_back(queries.get<double>());
  }
  return {};
}

static Result<CostDescription> readDescribed(const Json &json) {
  CostDescription description;
  FieldReader reader(json, "");
  SANDWICH_RETURN_IF_ERROR(reader.object());
  SANDWICH_RETURN_IF_ERROR(reader.number("slo_seconds", 1e-6, maxDeviceSeconds,
                                         description.sloSeconds));
  SANDWICH_RETURN_IF_ERROR(readDevice(reader.find("accelerator"), "accelerator",
                                      description.accelerator));
  SANDWICH_RETURN_IF_ERROR(
      readDevice(reader.find("cpu"), "cpu", description.cpu));
  SANDWICH_RETURN_IF_ERROR(reader.integer("instances_per_machine", 1, 1024,
                                          description.instancesPerMachine));
  SANDWICH_RETURN_IF_ERROR(
      readDay(reader.find("queries_per_second"), description.queriesPerSecond));
  if (reader.find("peak_queries"))
    SANDWICH_RETURN_IF_ERROR(reader.number("peak_queries", 0, maxCostNumber,
                                           description.peakQueries.emplace()));
  SANDWICH_RETURN_IF_ERROR(reader.text("currency", description.currency));
  SANDWICH_RETURN_IF_ERROR(reader.end());
  return description;
}

Result<CostDescription> sandwich::parseCostDescription(std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  return readDescribed(json);
}

Result<CostDescription> sandwich::readCostDescription(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, readDescription(path));
  auto description = readDescribed(json);
  if (!description)
    return description.error().inContext(path);
  return description;
}
