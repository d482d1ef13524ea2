//===- JsonField.cpp - A JSON value that knows where it stands ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonField.h"

using namespace sandwich;
using namespace sandwich::tokenizer;

static constexpr size_t longestExcerpt = 60;

std::string tokenizer::inQuotes(std::string_view text) {
  bool cut = text.size() > longestExcerpt;
  std::string written = Json(text.substr(0, longestExcerpt))
                            .dump(-1, ' ', /*ensure_ascii=*/false,
                                  Json::error_handler_t::replace);
  return cut ? written + "..." : written;
}

/// The value as an error shows it.
static std::string excerpt(const Json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "a list";
  return value.is_string() ? inQuotes(value.get_ref<const std::string &>())
                           : value.dump();
}

Error JsonField::unsupported() const {
  return error(excerpt(*value), " is not supported");
}

std::string JsonField::memberPath(std::string_view key) const {
  return name.empty() ? std::string(key) : name + "." + std::string(key);
}

Result<std::optional<JsonField>>
JsonField::optionalMember(std::string_view key) const {
  if (!value->is_object())
    return error("must be an object, is ", excerpt(*value));
  auto position = value->find(std::string(key));
  if (position == value->end() || position->is_null())
    return std::optional<JsonField>();
  return std::optional<JsonField>(JsonField(*position, memberPath(key)));
}

Result<JsonField> JsonField::member(std::string_view key) const {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> found,
                            optionalMember(key));
  if (!found)
    return makeError(memberPath(key), ": is missing");
  return *std::move(found);
}

Result<std::vector<JsonField>> JsonField::elements() const {
  if (!value->is_array())
    return error("must be a list, is ", excerpt(*value));
  std::vector<JsonField> fields;
  for (size_t i = 0; i != value->size(); ++i)
    fields.emplace_back((*value)[i], name + "[" + std::to_string(i) + "]");
  return fields;
}

Result<std::string> JsonField::string() const {
  if (!value->is_string())
    return error("must be a string, is ", excerpt(*value));
  return value->get<std::string>();
}

Result<bool> JsonField::boolean() const {
  if (!value->is_boolean())
    return error("must be true or false, is ", excerpt(*value));
  return value->get<bool>();
}

Result<uint64_t> JsonField::unsignedInteger() const {
  if (!value->is_number_unsigned())
    return error("must be a whole number that is not negative, is ",
                 excerpt(*value));
  return value->get<uint64_t>();
}

Result<int32_t> JsonField::tokenId(size_t vocabularySize) const {
  SANDWICH_ASSIGN_OR_RETURN(uint64_t id, unsignedInteger());
  if (id >= vocabularySize)
    return error("id ", id, " is beyond the vocabulary of ", vocabularySize,
                 " tokens");
  return static_cast<int32_t>(id);
}

Result<std::string> JsonField::stringMember(std::string_view key) const {
  SANDWICH_ASSIGN_OR_RETURN(JsonField field, member(key));
  return field.string();
}

Result<bool> JsonField::booleanMember(std::string_view key) const {
  SANDWICH_ASSIGN_OR_RETURN(JsonField field, member(key));
  return field.boolean();
}

Result<std::string> JsonField::stringMember(std::string_view key,
                                            std::string_view otherwise) const {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> field,
                            optionalMember(key));
  return field ? field->string() : Result<std::string>(std::string(otherwise));
}

Result<bool> JsonField::booleanMember(std::string_view key,
                                      bool otherwise) const {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> field,
                            optionalMember(key));
  return field ? field->boolean() : Result<bool>(otherwise);
}
