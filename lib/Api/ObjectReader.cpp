//===- ObjectReader.cpp - The fields of a JSON object, checked ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ObjectReader.h"

#include "sandwich/Support/Utf8.h"

#include <cmath>
#include <sstream>

using namespace sandwich;

/// Whole characters of the beginning of a long text.
static std::string shorten(std::string_view text) {
  constexpr size_t longest = 60;
  size_t end = 0;
  while (end < text.size()) {
    const size_t length = characterLength(text[end]);
    if (end + length > longest)
      return std::string(text.substr(0, end)) + "...";
    end += length;
  }
  return std::string(text);
}

std::string sandwich::excerpt(const Json &value) {
  // Of a container only that it is one: it may be megabytes.
  if (value.is_array())
    return "a list";
  if (value.is_object())
    return "an object";
  if (!value.is_string())
    return value.dump();
  return Json(shorten(value.get_ref<const std::string &>())).dump();
}

ObjectReader::ObjectReader(const Json &object, std::string path)
    : contents(object), path(std::move(path)) {
  if (contents.is_object())
    return;
  const std::string problem =
      " is " + excerpt(contents) + "; it must be an object";
  if (this->path.empty()) {
    refuse(ApiError{.message = "the request" + problem});
  } else {
    const std::string name = this->path.substr(0, this->path.size() - 1);
    refuse(ApiError::ofField(name, name + problem));
  }
}

std::string ObjectReader::pathOf(std::string_view name) const {
  return path + std::string(name);
}

void ObjectReader::refuse(ApiError error) {
  if (!problem)
    problem = std::move(error);
}

void ObjectReader::refuse(std::string_view name, std::string message) {
  refuse(ApiError::ofField(pathOf(name), std::move(message)));
}

void ObjectReader::refuseValue(std::string_view name, const Json &value,
                               std::string_view expected) {
  refuse(name, pathOf(name) + " is " + excerpt(value) + "; it must be " +
                   std::string(expected));
}

const Json *ObjectReader::find(std::string_view name) {
  known.emplace(name);
  if (!contents.is_object())
    return nullptr;
  const auto found = contents.find(name);
  return found == contents.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> ObjectReader::boolean(std::string_view name) {
  const Json *value = find(name);
  if (!value)
    return std::nullopt;
  if (value->is_boolean())
    return value->get<bool>();
  refuseValue(name, *value, "true or false");
  return std::nullopt;
}

std::optional<double> ObjectReader::number(std::string_view name, double low,
                                           double high) {
  const Json *value = find(name);
  if (!value)
    return std::nullopt;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= low && number <= high)
      return number;
  }
  std::ostringstream range;
  range << "a number from " << low << " to " << high;
  refuseValue(name, *value, range.str());
  return std::nullopt;
}

std::optional<int64_t> ObjectReader::integer(std::string_view name, int64_t low,
                                             int64_t high) {
  const Json *value = find(name);
  if (!value)
    return std::nullopt;
  // Some clients have no integers, and write 16.0.
  const double asNumber = value->is_number() ? value->get<double>() : 0.5;
  constexpr double exact = 9007199254740992; // 2^53
  const bool isWhole =
      value->is_number_unsigned()
          ? value->get<uint64_t>() <= uint64_t(INT64_MAX)
          : value->is_number_integer() || (std::abs(asNumber) <= exact &&
                                           asNumber == std::trunc(asNumber));
  if (isWhole) {
    const int64_t integer = value->is_number_integer()
                                ? value->get<int64_t>()
                                : static_cast<int64_t>(asNumber);
    if (integer >= low && integer <= high)
      return integer;
  }
  refuseValue(name, *value,
              "a whole number from " + std::to_string(low) + " to " +
                  std::to_string(high));
  return std::nullopt;
}

std::optional<std::string> ObjectReader::string(std::string_view name,
                                                size_t maxBytes) {
  const Json *value = find(name);
  if (!value)
    return std::nullopt;
  if (!value->is_string()) {
    refuseValue(name, *value, "a string");
    return std::nullopt;
  }
  const auto &text = value->get_ref<const std::string &>();
  if (text.size() > maxBytes) {
    refuse(name, pathOf(name) + " has " + std::to_string(text.size()) +
                     " bytes; it must have at most " +
                     std::to_string(maxBytes));
    return std::nullopt;
  }
  return text;
}

const Json *ObjectReader::object(std::string_view name) {
  const Json *value = find(name);
  if (value && !value->is_object()) {
    refuseValue(name, *value, "an object");
    return nullptr;
  }
  return value;
}

const Json *ObjectReader::list(std::string_view name) {
  const Json *value = find(name);
  if (value && !value->is_array()) {
    refuseValue(name, *value, "a list");
    return nullptr;
  }
  return value;
}

std::vector<int32_t> ObjectReader::tokenIds(std::string_view name,
                                            const Json &list) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json &each : list) {
    if (!each.is_number_integer() || each < 0 || each > INT32_MAX) {
      refuseValue(name, each, "a list of token ids");
      return {};
    }
    ids.push_back(each.get<int32_t>());
  }
  return ids;
}

void ObjectReader::ignore(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    known.emplace(name);
}

void ObjectReader::requireDefault(std::string_view name, const Json &usual) {
  if (const Json *value = find(name); value && *value != usual)
    refuse(name, pathOf(name) + " is " + excerpt(*value) +
                     "; this server knows it only as " + excerpt(usual));
}

void ObjectReader::within(std::string_view name,
                          const std::function<void(ObjectReader &)> &read) {
  const Json *value = object(name);
  if (!value)
    return;
  ObjectReader reader(*value, pathOf(name) + ".");
  read(reader);
  if (std::optional<ApiError> error = reader.finish())
    refuse(*std::move(error));
}

std::optional<ApiError> ObjectReader::finish() {
  if (problem || !contents.is_object())
    return problem;
  for (const auto &[name, value] : contents.items())
    if (!value.is_null() && !known.contains(name)) {
      refuse(ApiError{.message = excerpt(pathOf(name)) +
                                 " is not known here, and it might change "
                                 "what you get",
                      .param = pathOf(shorten(name)),
                      .code = "unknown_parameter"});
      break;
    }
  return problem;
}

std::optional<ApiError>
sandwich::readObject(std::string_view body,
                     const std::function<void(ObjectReader &)> &read) {
  Result<Json> json = parseJson(body);
  if (!json)
    return ApiError{.message = "the request's body is " + json.error().message};
  ObjectReader reader(*json, "");
  read(reader);
  return reader.finish();
}

std::string sandwich::indexed(std::string_view name, size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}
