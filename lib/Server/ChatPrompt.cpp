//===- ChatPrompt.cpp - A conversation as a prompt ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatPrompt.h"

#include <algorithm>
#include <ctime>

using namespace sandwich;

static std::tm localTime() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::localtime_r(&now, &parts);
  return parts;
}

/// What the template reads.
static Json variablesOf(const ChatRequest &request, bool hasTools) {
  Json variables = request.templateArguments;
  variables["messages"] = request.messages;
  variables["tools"] = hasTools ? request.tools : Json();
  variables["add_generation_prompt"] = request.addGenerationPrompt;
  return variables;
}

static bool isSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// Where the message ends that came last, of which the template wrote `text`.
/// What the template says itself, behind it, may look the same.
static std::optional<size_t> endOfLast(std::string_view text,
                                       const RenderedText &rendered) {
  const auto isTrusted = [&](size_t begin) {
    return std::ranges::any_of(
        rendered.trusted, [begin](const ByteRange &range) {
          return range.begin <= begin && begin < range.end;
        });
  };
  size_t found = rendered.text.rfind(text);
  while (found != std::string::npos && isTrusted(found))
    found =
        found == 0 ? std::string::npos : rendered.text.rfind(text, found - 1);
  if (found == std::string::npos)
    return std::nullopt;
  return found + text.size();
}

/// Cuts what the template wrote behind the last message, which the model is to
/// continue: transformers' `continue_final_message`.
static std::optional<ApiError> cutAfterLastMessage(const ChatRequest &request,
                                                   RenderedText &rendered) {
  const Json &message = request.messages.back();
  const auto content = message.find("content");
  if (content == message.end() || !content->is_string())
    return ApiError::ofField("continue_final_message",
                             "continue_final_message: the last message has no "
                             "text that could be continued");
  std::string_view text = content->get_ref<const std::string &>();
  std::optional<size_t> found = endOfLast(text, rendered);
  if (!found) {
    // Templates as a rule trim what they write.
    while (!text.empty() && isSpace(text.back()))
      text.remove_suffix(1);
    while (!text.empty() && isSpace(text.front()))
      text.remove_prefix(1);
    found = endOfLast(text, rendered);
  }
  if (text.empty())
    return ApiError::ofField("continue_final_message",
                             "continue_final_message: the last message is "
                             "empty, so that where it ends cannot be told");
  if (!found)
    return ApiError::ofField("continue_final_message",
                             "continue_final_message: the chat template does "
                             "not write the last message as it is");
  const size_t end = *found;
  rendered.text.resize(end);
  std::erase_if(rendered.trusted,
                [&](const ByteRange &range) { return range.begin >= end; });
  for (ByteRange &range : rendered.trusted)
    range.end = std::min(range.end, end);
  return std::nullopt;
}

std::variant<ChatPrompt, ApiError>
sandwich::renderChat(const LoadedModel &model, const ChatRequest &request) {
  if (!model.templates || !model.tokenizer())
    return ApiError{.message = "the model '" + model.name + "' " +
                               model.templateProblem +
                               "; /v1/completions takes prompts as they are",
                    .code = "chat_template_missing"};
  const bool hasTools = !request.tools.is_null() &&
                        request.toolChoice.kind != ToolChoice::Kind::None;
  if (hasTools && !model.toolCalls)
    return ApiError::ofField("tools", "the chat template of '" + model.name +
                                          "' knows no tools");
  Result<ChatTemplate> chosen = model.templates->choose(hasTools);
  if (!chosen)
    return ApiError{.message = chosen.error().message,
                    .code = "chat_template_missing"};
  Result<RenderedText> rendered =
      chosen->render(variablesOf(request, hasTools),
                     {.trustedVariables = model.templates->specialTokens(),
                      .now = localTime()});
  if (!rendered)
    return ApiError::ofField("messages",
                             "the chat template refuses the conversation: " +
                                 rendered.error().message);
  if (request.continueFinalMessage)
    if (auto error = cutAfterLastMessage(request, *rendered))
      return *std::move(error);
  Result<std::vector<int32_t>> tokens = model.tokenizer()->encode(
      rendered->text,
      {.parseSpecialTokens = true, .trustedRanges = rendered->trusted});
  if (!tokens)
    return ApiError::ofField("messages", "messages: " + tokens.error().message);
  return ChatPrompt{.tokens = *std::move(tokens),
                    .text = std::move(rendered->text)};
}
