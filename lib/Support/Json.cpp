//===- Json.cpp - Reading untrusted JSON ----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Json.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

using namespace sandwich;

namespace {

/// Builds the document and refuses what nlohmann-json would accept. Its own
/// builder searches an ordered object for each key it adds, which is quadratic
/// on a vocabulary; this one appends, and looks for duplicates at the end.
class StrictBuilder final : public nlohmann::json_sax<Json> {
public:
  Json document;
  std::string problem;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return add(value);
  }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return false; }
  bool start_object(std::size_t) override { return enter(Json::object()); }
  bool key(string_t &name) override {
    pendingKey = std::move(name);
    return true;
  }
  bool end_object() override {
    const auto &members = containers.back()->get_ref<Json::object_t &>();
    containers.pop_back();
    return hasUniqueKeys(members);
  }
  bool start_array(std::size_t) override { return enter(Json::array()); }
  bool end_array() override {
    containers.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    problem = "not valid JSON at byte " + std::to_string(position);
    return false;
  }

private:
  /// Puts `value` where the parse stands. A container's elements stay in place
  /// while any container inside it is open, so the pointers kept here hold.
  Json &place(Json value) {
    if (containers.empty())
      return document = std::move(value);
    Json &parent = *containers.back();
    if (parent.is_array())
      return parent.get_ref<Json::array_t &>().emplace_back(std::move(value));
    auto &members = parent.get_ref<Json::object_t &>();
    return static_cast<Json::object_t::Container &>(members)
        .emplace_back(std::move(pendingKey), std::move(value))
        .second;
  }

  template <typename T> bool add(T &&value) {
    place(Json(std::forward<T>(value)));
    return true;
  }

  bool enter(Json container) {
    if (containers.size() == maxJsonDepth) {
      problem = "JSON nested deeper than " + std::to_string(maxJsonDepth);
      return false;
    }
    containers.push_back(&place(std::move(container)));
    return true;
  }

  bool hasUniqueKeys(const Json::object_t &members) {
    // Sorted, as whoever wrote the text may know the keys of one hash.
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto &[name, value] : members)
      keys.push_back(name);
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice == keys.end())
      return true;
    problem = "duplicate key \"" + shorten(*twice) + "\"";
    return false;
  }

  /// Whole characters of the beginning of a long text.
  static std::string shorten(std::string_view text) {
    constexpr size_t longest = 60;
    if (text.size() <= longest)
      return std::string(text);
    size_t end = longest;
    while (end > 0 && (text[end] & 0xC0) == 0x80)
      --end;
    return std::string(text.substr(0, end)) + "...";
  }

  std::vector<Json *> containers;
  std::string pendingKey;
};

} // namespace

Result<Json> sandwich::parseJson(std::string_view text) {
  StrictBuilder builder;
  if (!Json::sax_parse(text, &builder))
    return Error{builder.problem.empty() ? "not valid JSON" : builder.problem};
  return std::move(builder.document);
}
