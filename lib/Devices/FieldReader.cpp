//===- FieldReader.cpp - The fields of a description ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FieldReader.h"

#include "sandwich/Support/File.h"

using namespace sandwich;

Result<Json> sandwich::readDescription(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(const std::string text,
                            readTextFile(path, mostDescriptionBytes));
  Result<Json> json = parseJson(text);
  if (!json)
    return json.error().inContext(path);
  return json;
}

std::string FieldReader::pathOf(std::string_view name) const {
  return (path.empty() ? "" : path + ".") + std::string(name);
}

Status FieldReader::object() const {
  if (!json.is_object())
    return makeError(ErrorKind::InvalidArgument,
                     path.empty() ? "the description" : path, " is no object");
  return {};
}

const Json *FieldReader::find(std::string_view name) {
  known.emplace(name);
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

Status FieldReader::number(std::string_view name, double low, double high,
                           double &value) {
  const Json *found = find(name);
  if (!found)
    return {};
  if (!found->is_number() || found->get<double>() < low ||
      found->get<double>() > high)
    return makeError(ErrorKind::InvalidArgument, pathOf(name),
                     " is no number from ", low, " to ", high);
  value = found->get<double>();
  return {};
}

Status FieldReader::integer(std::string_view name, uint64_t low, uint64_t high,
                            uint64_t &value) {
  const Json *found = find(name);
  if (!found)
    return {};
  // Negative numbers are integers, but not unsigned ones.
  if (!found->is_number_unsigned() || found->get<uint64_t>() < low ||
      found->get<uint64_t>() > high)
    return makeError(ErrorKind::InvalidArgument, pathOf(name),
                     " is no whole number from ", low, " to ", high);
  value = found->get<uint64_t>();
  return {};
}

Status FieldReader::text(std::string_view name, std::string &value) {
  const Json *found = find(name);
  if (!found)
    return {};
  const auto *text = found->get_ptr<const std::string *>();
  if (!text || text->empty() || text->size() > mostNameBytes)
    return makeError(ErrorKind::InvalidArgument, pathOf(name),
                     " is no text of 1 to ", mostNameBytes, " bytes");
  value = *text;
  return {};
}

Status FieldReader::line(LatencyLine &line) {
  SANDWICH_RETURN_IF_ERROR(require("alpha"));
  SANDWICH_RETURN_IF_ERROR(require("beta"));
  SANDWICH_RETURN_IF_ERROR(number("alpha", 0, maxDeviceSeconds, line.alpha));
  SANDWICH_RETURN_IF_ERROR(number("beta", 0, maxDeviceSeconds, line.beta));
  if (line.seconds(1) <= 0)
    return makeError(ErrorKind::InvalidArgument, pathOf("alpha"), " and ",
                     pathOf("beta"), " are both 0: no query takes no time");
  return {};
}

Status FieldReader::require(std::string_view name) const {
  if (!json.contains(name))
    return makeError(ErrorKind::InvalidArgument, pathOf(name), " is absent");
  return {};
}

Status FieldReader::end() const {
  for (const auto &[name, value] : json.items())
    if (!known.contains(name))
      return makeError(ErrorKind::InvalidArgument, pathOf(name),
                       " is not known");
  return {};
}
