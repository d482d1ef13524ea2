//===- ApiRequestFuzzer.cpp - Any bytes as the body of a request ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ChatRequest.h"
#include "sandwich/Api/CompletionRequest.h"

#include <cstdint>
#include <cstdlib>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

/// What is told of a request is small, and JSON whatever the request was.
static void check(const ApiError &error) {
  check(error.status == 400);
  check(!error.message.empty());
  // Throws where a text is no UTF-8.
  check(error.toJson().dump().size() < 8192);
}

/// What is taken is within the ranges of those who get it.
static void check(const GenerationParameters &parameters) {
  check(bool(parameters.sampling.validate()));
  check(bool(parameters.stop.validate()));
  check(parameters.continuations >= 1);
  check(parameters.continuations <= GenerationParameters::mostTexts);
  check(parameters.maxTokens.value_or(0) <=
        uint64_t{GenerationParameters::mostTokens});
  check(parameters.model.size() <= GenerationParameters::nameBytes);
  check(parameters.format.kind == OutputFormat::Kind::Text ||
        !parameters.format.param.empty());
  check(parameters.format.kind != OutputFormat::Kind::Choice ||
        !parameters.format.choices.empty());
}

static void check(const CompletionRequest &request) {
  check(request.parameters);
  check(!request.prompts.empty());
  check(request.prompts.size() * request.parameters.continuations <=
        size_t{GenerationParameters::mostTexts});
  for (const Prompt &prompt : request.prompts)
    if (const auto *tokens = std::get_if<std::vector<int32_t>>(&prompt))
      for (int32_t token : *tokens)
        check(token >= 0);
}

static void check(const ChatRequest &request) {
  check(request.parameters);
  check(request.messages.is_array() && !request.messages.empty());
  for (const Json &message : request.messages) {
    check(message.is_object());
    check(message["role"].is_string());
    const auto content = message.find("content");
    check(content == message.end() || content->is_string() ||
          content->is_null());
    const auto calls = message.find("tool_calls");
    if (calls == message.end())
      continue;
    for (const Json &call : *calls)
      check(call["function"]["name"].is_string());
  }
  for (const Json &tool : request.tools)
    check(findFunction(request.tools,
                       tool["function"]["name"].get<std::string>()));
  check(request.toolChoice.kind != ToolChoice::Kind::Function ||
        findFunction(request.tools, request.toolChoice.function));
  check(!(request.addGenerationPrompt && request.continueFinalMessage));
}

/// The bytes are a completion and a chat: each is refused with a reason, or
/// within its ranges.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view body(reinterpret_cast<const char *>(data), size);
  std::visit([](const auto &parsed) { check(parsed); },
             parseCompletionRequest(body));
  std::visit([](const auto &parsed) { check(parsed); }, parseChatRequest(body));
  return 0;
}
