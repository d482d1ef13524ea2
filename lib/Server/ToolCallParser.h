//===- ToolCallParser.h - Calls of tools in a model's text ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_TOOLCALLPARSER_H
#define SANDWICH_LIB_SERVER_TOOLCALLPARSER_H

#include "sandwich/Support/Json.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// How a model writes calls, which its chat template tells.
struct ToolCallSyntax {
  /// Around a call, which is an object of JSON, or a list of them. Without
  /// `open`, the whole text is either calls or none; without `close`, calls go
  /// on to the end of the text.
  std::string open = {};
  std::string close = {};
  /// Text between `open` and the JSON, and between the JSON and `close`, that
  /// the model is used to.
  std::string padding = {};
  /// A call is in a list, also where it is the only one.
  bool isList = false;
  /// What the object calls the arguments.
  std::string argumentsKey = "arguments";
};

/// What the models of this template use, by what it writes itself of earlier
/// calls: the tags of Hermes and Qwen, Mistral's and Phi's lists, or else
/// objects as Llama's. Nothing: the template knows no tools.
std::optional<ToolCallSyntax> findToolCallSyntax(std::string_view templateText);

/// A call, or what follows of it.
struct ToolCallPart {
  /// Counts the calls of a text from 0.
  uint32_t index = 0;
  /// Empty: more arguments of the call before.
  std::string id = {};
  std::string name = {};
  std::string arguments = {};
};

/// Divides a text, as it comes, into what is said and calls. What looks like a
/// call and is none is told as text.
class ToolCallParser {
public:
  /// `idPrefix` makes the calls' ids unique. Only calls of `tools` are calls;
  /// none: of any name. Of more than `mostCalls` the first ones are told.
  ToolCallParser(ToolCallSyntax syntax, std::string idPrefix,
                 std::set<std::string> tools = {},
                 uint32_t mostCalls = UINT32_MAX)
      : syntax(std::move(syntax)), idPrefix(std::move(idPrefix)),
        tools(std::move(tools)), mostCalls(mostCalls) {}

  struct Step {
    std::string text = {};
    std::vector<ToolCallPart> calls = {};
  };
  Step add(std::string_view piece);
  /// What was held back, at the end of the text.
  Step finish();

  bool hasCalls() const { return count > 0; }

private:
  void advance(Step &step, bool atEnd);
  /// Tells the text before the next call; whether one begins, which `held`
  /// then begins with, behind spaces.
  bool findOpen(Step &step, bool atEnd);
  /// Tells what is held up to `end`.
  void tell(Step &step, size_t end);
  /// Takes `body` as calls, or `raw` as text.
  void takeCalls(Step &step, std::string_view body, std::string_view raw);
  std::optional<std::vector<ToolCallPart>> parse(std::string_view body) const;

  const ToolCallSyntax syntax;
  const std::string idPrefix;
  const std::set<std::string> tools;
  const uint32_t mostCalls;
  /// Not told yet; begins with `callBegin` spaces and `open` where `inCall`.
  std::string held;
  bool inCall = false;
  size_t callBegin = 0;
  /// Up to where `held` has no `close`.
  size_t searched = 0;
  /// Nothing was told since the last call.
  bool followsCall = false;
  /// Without `open`: the text is none of calls.
  bool isText = false;
  uint32_t count = 0;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_TOOLCALLPARSER_H
