//===- ToolCallFuzzer.cpp - Any text of a model, cut anywhere -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToolCallParser.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

namespace {
/// What a text was divided into.
struct Divided {
  std::string text;
  std::vector<std::string> calls;

  void take(const ToolCallParser::Step &step) {
    text += step.text;
    for (const ToolCallPart &part : step.calls) {
      check(part.index == calls.size());
      check(!part.id.empty());
      calls.push_back(part.name + part.arguments);
    }
  }
  bool operator==(const Divided &) const = default;
};
} // namespace

/// Cuts `text` behind as many bytes as `lengths` says, again and again.
static Divided divide(const ToolCallSyntax &syntax, std::string_view text,
                      std::string_view lengths) {
  ToolCallParser parser(syntax, "id");
  Divided divided;
  for (size_t i = 0; !text.empty(); ++i) {
    const size_t length =
        lengths.empty()
            ? text.size()
            : std::min<size_t>(
                  text.size(),
                  static_cast<unsigned char>(lengths[i % lengths.size()]) % 16);
    divided.take(parser.add(text.substr(0, length)));
    text.remove_prefix(length);
    // Lengths of nothing but zeros.
    if (i == 1 << 12)
      lengths = {};
  }
  divided.take(parser.finish());
  check(parser.hasCalls() == !divided.calls.empty());
  return divided;
}

/// The first byte says how calls are written, those up to the next zero where
/// the rest is cut: the same comes of it as of the whole.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  if (rest.empty())
    return 0;
  static const ToolCallSyntax syntaxes[] = {
      {.open = "<tool_call>", .close = "</tool_call>", .padding = "\n"},
      {.open = "[TOOL_CALLS]", .isList = true},
      {.open = "<a", .close = "<", .isList = true},
      {}};
  const ToolCallSyntax &syntax = syntaxes[(rest[0] & 0x7F) % 4];
  rest.remove_prefix(1);
  const std::string_view lengths = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), lengths.size() + 1));
  const Divided whole = divide(syntax, rest, {});
  check(divide(syntax, rest, lengths) == whole);
  // Nothing is lost where there is no call.
  if (whole.calls.empty())
    check(whole.text == rest);
  return 0;
}
