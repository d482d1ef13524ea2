//===- render-templates.cpp - Chat templates for other programs -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads an array of cases from standard input and writes what each template
/// makes of its variables, both as JSON. A case is an object of `template`,
/// `variables` and optionally `trusted`, the trusted variables; `variables` may
/// be the index of an earlier case that has the same, and so may `template`. A
/// result is an object of `text` and `trusted`, its ranges, or of `error`, with
/// `raised` where the template raised it, and `parse` where it was not parsed.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Template/ChatTemplate.h"

#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>

using namespace sandwich;

/// The clock of all cases: 2024-07-26, 15:04:05, a Friday.
static std::tm testTime() {
  std::tm time = {};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 15;
  time.tm_min = 4;
  time.tm_sec = 5;
  time.tm_wday = 5;
  time.tm_yday = 207;
  return time;
}

static Json render(const ChatTemplate &parsed, const Json &variables,
                   const Json &trusted) {
  RenderOptions options;
  options.trustedVariables = trusted;
  options.now = testTime();
  Result<RenderedText> rendered = parsed.render(variables, options);
  if (!rendered) {
    const std::string &message = rendered.error().message;
    const bool isRaised = !message.starts_with("line ") &&
                          !message.starts_with("the chat template goes");
    return {{"error", message}, {"raised", isRaised}};
  }
  Json ranges = Json::array();
  for (const ByteRange &range : rendered->trusted)
    ranges.push_back({range.begin, range.end});
  return {{"text", rendered->text}, {"trusted", ranges}};
}

/// The field of a case, or of the earlier one that it names by its index.
static const Json &fieldOf(const Json &cases, const Json &given,
                           const char *name) {
  const Json &field = given.at(name);
  return field.is_number() ? cases.at(field.get<size_t>()).at(name) : field;
}

int main() try {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const Json cases = Json::parse(text);
  Json results = Json::array();
  for (const Json &given : cases) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(
        fieldOf(cases, given, "template").get_ref<const std::string &>());
    if (!parsed) {
      results.push_back({{"error", parsed.error().message}, {"parse", true}});
      continue;
    }
    results.push_back(render(*parsed, fieldOf(cases, given, "variables"),
                             given.value("trusted", Json::object())));
  }
  return writeStandardOutput(results.dump() + "\n") ? 0 : 1;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
