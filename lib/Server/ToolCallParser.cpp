//===- ToolCallParser.cpp - Calls of tools in a model's text --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToolCallParser.h"

#include <algorithm>

using namespace sandwich;

/// A call that goes on beyond this is text.
static constexpr size_t mostCallBytes = size_t{1} << 20;

std::optional<ToolCallSyntax>
sandwich::findToolCallSyntax(std::string_view templateText) {
  const auto has = [&](std::string_view text) {
    return templateText.find(text) != std::string_view::npos;
  };
  if (!has("tools") && !has("tool_calls"))
    return std::nullopt;
  if (has("<tool_call>"))
    return ToolCallSyntax{
        .open = "<tool_call>", .close = "</tool_call>", .padding = "\n"};
  if (has("[TOOL_CALLS]"))
    return ToolCallSyntax{.open = "[TOOL_CALLS]", .isList = true};
  if (has("<|tool_call|>"))
    return ToolCallSyntax{.open = "<|tool_call|>",
                          .close =
                              has("<|/tool_call|>") ? "<|/tool_call|>" : "",
                          .isList = true};
  return ToolCallSyntax{
      .argumentsKey = has("parameters") && !has("arguments\":") ? "parameters"
                                                                : "arguments"};
}

/// How many bytes at the end of `text` begin `marker`, without all of it.
static size_t pendingMarker(std::string_view text, std::string_view marker) {
  for (size_t length = std::min(text.size(), marker.size() - 1); length > 0;
       --length)
    if (text.ends_with(marker.substr(0, length)))
      return length;
  return 0;
}

static constexpr std::string_view spaces = " \t\r\n";

static std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

/// The name and the arguments of one call, as JSON.
static std::optional<ToolCallPart> readCall(const Json &call) {
  if (!call.is_object() || !call.contains("name") || !call["name"].is_string())
    return std::nullopt;
  ToolCallPart part;
  part.name = call["name"].get<std::string>();
  part.arguments = "{}";
  for (const char *key : {"arguments", "parameters"})
    if (const auto found = call.find(key); found != call.end()) {
      // Some models write them as a string, as the API does.
      part.arguments =
          found->is_string() ? found->get<std::string>() : found->dump();
      return part;
    }
  return part;
}

std::optional<std::vector<ToolCallPart>>
ToolCallParser::parse(std::string_view body) const {
  Result<Json> json = parseJson(trimmed(body));
  if (!json)
    return std::nullopt;
  std::vector<ToolCallPart> calls;
  const Json list = json->is_array() ? *std::move(json) : Json::array({*json});
  for (const Json &each : list) {
    std::optional<ToolCallPart> call = readCall(each);
    if (!call || (!tools.empty() && !tools.contains(call->name)))
      return std::nullopt;
    calls.push_back(*std::move(call));
  }
  if (calls.empty())
    return std::nullopt;
  return calls;
}

void ToolCallParser::takeCalls(Step &step, std::string_view body,
                               std::string_view raw) {
  std::optional<std::vector<ToolCallPart>> calls = parse(body);
  followsCall = calls.has_value();
  if (!calls) {
    step.text += raw;
    return;
  }
  for (ToolCallPart &call : *calls) {
    if (count == mostCalls)
      return;
    call.index = count++;
    call.id = idPrefix + std::to_string(call.index);
    step.calls.push_back(std::move(call));
  }
}

void ToolCallParser::tell(Step &step, size_t end) {
  const std::string_view before = std::string_view(held).substr(0, end);
  step.text += before;
  if (!before.empty())
    followsCall = false;
  held.erase(0, end);
}

bool ToolCallParser::findOpen(Step &step, bool atEnd) {
  const size_t open = held.find(syntax.open);
  const size_t end = open != std::string::npos ? open
                     : atEnd ? held.size()
                             : held.size() - pendingMarker(held, syntax.open);
  // Spaces before a call, and those behind the last one, say nothing. They are
  // known for that only when more has come.
  const std::string_view before = std::string_view(held).substr(0, end);
  const size_t last = before.find_last_not_of(spaces);
  const size_t text = last == std::string_view::npos ? 0 : last + 1;
  if (open == std::string::npos) {
    tell(step, atEnd && (text > 0 || !followsCall) ? end : text);
    return false;
  }
  tell(step, text);
  callBegin = open - text;
  return true;
}

void ToolCallParser::advance(Step &step, bool atEnd) {
  while (!held.empty()) {
    if (!inCall && !findOpen(step, atEnd))
      return;
    inCall = true;
    const size_t begin = callBegin + syntax.open.size();
    const size_t close =
        syntax.close.empty()
            ? std::string::npos
            : held.find(syntax.close, std::max(begin, searched));
    if (close == std::string::npos && !atEnd && held.size() <= mostCallBytes) {
      // A call may be long, and comes in small pieces.
      searched = held.size() - std::min(held.size(), syntax.close.size());
      return;
    }
    const size_t bodyEnd = std::min(close, held.size());
    const size_t end =
        close == std::string::npos ? bodyEnd : close + syntax.close.size();
    takeCalls(step, std::string_view(held).substr(begin, bodyEnd - begin),
              std::string_view(held).substr(0, end));
    held.erase(0, end);
    inCall = false;
    searched = 0;
  }
}

ToolCallParser::Step ToolCallParser::add(std::string_view piece) {
  Step step;
  held += piece;
  if (!syntax.open.empty()) {
    advance(step, /*atEnd=*/false);
    return step;
  }
  // Only a text that begins like JSON may be calls.
  const std::string_view start = trimmed(held);
  if (start.empty())
    return step;
  if ((!isText && start.front() != '{' && start.front() != '[') ||
      held.size() > mostCallBytes)
    isText = true;
  if (isText) {
    step.text = std::exchange(held, {});
    return step;
  }
  return step;
}

ToolCallParser::Step ToolCallParser::finish() {
  Step step;
  if (!syntax.open.empty())
    advance(step, /*atEnd=*/true);
  else if (isText)
    step.text = std::exchange(held, {});
  else if (!held.empty())
    takeCalls(step, held, held);
  held.clear();
  return step;
}
