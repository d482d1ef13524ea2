//===- ChatEndpoint.cpp - POST /v1/chat/completions -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatPrompt.h"
#include "GenerationSetup.h"
#include "OutputConstraint.h"

#include <variant>

using namespace sandwich;

/// Sets what the text must be like: the format, or calls of tools.
static std::optional<ApiError> constrain(const ChatRequest &request,
                                         const LoadedModel &model,
                                         GenerationRequest &generation,
                                         ToolCallOptions &toolCalls) {
  const bool mayCall = request.toolChoice.kind != ToolChoice::Kind::None;
  const bool mustCall =
      mayCall && request.toolChoice.kind != ToolChoice::Kind::Auto;
  const OutputFormat &format = request.parameters.format;
  // Texts that are kept to a format are no calls, whatever they look like.
  if (mayCall && format.kind == OutputFormat::Kind::Text)
    toolCalls.syntax = model.toolCalls;
  if (!request.parallelToolCalls)
    toolCalls.mostCalls = 1;
  for (const Json &tool : request.tools)
    toolCalls.tools.insert(tool["function"]["name"].get<std::string>());
  if (mustCall && format.kind != OutputFormat::Kind::Text)
    return ApiError::ofField(format.param,
                             format.param + " and a tool_choice that demands "
                                            "a call contradict each other");
  ConstraintOrError made =
      mustCall ? constrainToolCalls(request, *model.toolCalls, model)
               : constrainFormat(request.parameters, model);
  if (auto *error = std::get_if<ApiError>(&made))
    return std::move(*error);
  generation.constraint =
      std::get<std::shared_ptr<const TokenConstraint>>(std::move(made));
  // The tag that begins calls must be seen.
  if (toolCalls.syntax && !toolCalls.syntax->open.empty())
    if (auto token = model.tokenizer()->idOf(toolCalls.syntax->open))
      if (model.tokenizer()->isSpecial(*token))
        generation.skipSpecialTokens = false;
  return std::nullopt;
}

static std::variant<PreparedGeneration, ApiError>
prepareChat(const ChatRequest &request, const LoadedModel &model) {
  auto rendered = renderChat(model, request);
  if (auto *error = std::get_if<ApiError>(&rendered))
    return std::move(*error);
  auto &prompt = std::get<ChatPrompt>(rendered);
  auto tokens = chooseMaxTokens(model, prompt.tokens.size(),
                                request.parameters.maxTokens, std::nullopt);
  if (auto *error = std::get_if<ApiError>(&tokens))
    return std::move(*error);
  auto made = toGenerationRequest(request.parameters, model);
  if (auto *error = std::get_if<ApiError>(&made))
    return std::move(*error);
  auto &generation = std::get<GenerationRequest>(made);
  generation.prompt = std::move(prompt.tokens);
  generation.maxTokens = std::get<uint64_t>(tokens);
  PreparedGeneration prepared{.promptText = std::move(prompt.text)};
  if (auto error = constrain(request, model, generation, prepared.toolCalls))
    return *std::move(error);
  prepared.prompts.push_back({.request = std::move(generation)});
  return prepared;
}

void sandwich::answerChat(Call &call, const EndpointContext &context) {
  auto parsed = parseChatRequest(call.request.body);
  if (const auto *error = std::get_if<ApiError>(&parsed))
    return refuse(call, context, "", *error);
  const auto &request = std::get<ChatRequest>(parsed);
  generate(
      call, context, request.parameters, {"chatcmpl-", chatShape},
      [&](const LoadedModel &model) { return prepareChat(request, model); });
}
