//===- Json.cpp - Reading untrusted JSON ----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Json.h"

#include <unordered_set>
#include <vector>

using namespace sandwich;

namespace {

/// Watches the parse for what nlohmann-json accepts and we do not. It runs as
/// a SAX pass of its own because the parser's callback cannot stop it.
class StrictnessCheck final : public nlohmann::json_sax<Json> {
public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(std::size_t) override {
    keys.emplace_back();
    return enter();
  }
  bool key(string_t &name) override {
    if (keys.back().insert(name).second)
      return true;
    problem = "duplicate key \"" + name + "\"";
    return false;
  }
  bool end_object() override {
    keys.pop_back();
    --depth;
    return true;
  }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override {
    --depth;
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    problem = "not valid JSON at byte " + std::to_string(position);
    return false;
  }

private:
  bool enter() {
    if (++depth <= maxJsonDepth)
      return true;
    problem = "JSON nested deeper than " + std::to_string(maxJsonDepth);
    return false;
  }

  std::vector<std::unordered_set<std::string>> keys;
  int depth = 0;
};

} // namespace

Result<Json> sandwich::parseJson(std::string_view text) {
  StrictnessCheck check;
  if (!Json::sax_parse(text, &check))
    return Error{check.problem.empty() ? "not valid JSON" : check.problem};
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return Error{"not valid JSON"};
  return document;
}
