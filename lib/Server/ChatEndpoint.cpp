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

namespace {
/// What a chat asks the service for.
struct PreparedChat {
  GenerationAnswer::Prompt prompt;
  std::optional<ToolCallSyntax> toolCalls;
  std::string text;
};
} // namespace

/// Sets what the text must be like: the format, or calls of tools.
static std::optional<ApiError> constrain(const ChatRequest &request,
                                         const LoadedModel &model,
                                         PreparedChat &prepared) {
  const bool mayCall = request.toolChoice.kind != ToolChoice::Kind::None;
  const bool mustCall =
      mayCall && request.toolChoice.kind != ToolChoice::Kind::Auto;
  const OutputFormat &format = request.parameters.format;
  // Texts that are kept to a format are no calls, whatever they look like.
  if (mayCall && format.kind == OutputFormat::Kind::Text)
    prepared.toolCalls = model.toolCalls;
  if (mustCall && format.kind != OutputFormat::Kind::Text)
    return ApiError::ofField(format.param,
                             format.param + " and a tool_choice that demands "
                                            "a call contradict each other");
  ConstraintOrError made =
      mustCall ? constrainToolCalls(request, *model.toolCalls, model)
               : constrainFormat(request.parameters, model);
  if (auto *error = std::get_if<ApiError>(&made))
    return std::move(*error);
  GenerationRequest &generation = prepared.prompt.request;
  generation.constraint =
      std::get<std::shared_ptr<const TokenConstraint>>(std::move(made));
  // The tag that begins calls must be seen.
  if (prepared.toolCalls && !prepared.toolCalls->open.empty())
    if (auto token = model.tokenizer()->idOf(prepared.toolCalls->open))
      if (model.tokenizer()->isSpecial(*token))
        generation.skipSpecialTokens = false;
  return std::nullopt;
}

static std::variant<PreparedChat, ApiError>
prepareChat(const ChatRequest &request, const LoadedModel &model) {
  PreparedChat prepared;
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
  prepared.prompt.request = std::move(std::get<GenerationRequest>(made));
  prepared.prompt.request.prompt = std::move(prompt.tokens);
  prepared.prompt.request.maxTokens = std::get<uint64_t>(tokens);
  prepared.text = std::move(prompt.text);
  if (auto error = constrain(request, model, prepared))
    return *std::move(error);
  return prepared;
}

void sandwich::answerChat(Call &call, const EndpointContext &context) {
  auto parsed = parseChatRequest(call.request.body);
  if (const auto *error = std::get_if<ApiError>(&parsed))
    return refuse(call, context, "", *error);
  const auto &request = std::get<ChatRequest>(parsed);
  const GenerationParameters &parameters = request.parameters;
  auto found = context.models.find(parameters.model);
  if (const auto *error = std::get_if<ApiError>(&found))
    return refuse(call, context, parameters.model, *error);
  const ReadyModel ready = std::get<ReadyModel>(found);
  auto made = prepareChat(request, *ready.model);
  if (const auto *error = std::get_if<ApiError>(&made))
    return refuse(call, context, ready.model->name, *error);
  auto &prepared = std::get<PreparedChat>(made);
  std::vector<GenerationAnswer::Prompt> prompts;
  prompts.push_back(std::move(prepared.prompt));
  if (auto error = checkAnswerSize(prompts, parameters, *ready.model))
    return refuse(call, context, ready.model->name, *error);

  AnswerShape::Identity identity =
      identityOf(call, *ready.model, parameters, "chatcmpl-");
  RequestRecord record = recordOf(identity, call);
  if (context.keepsPrompts)
    record.prompt = std::move(prepared.text);
  GenerationAnswer::Options options = answerOptions(call, parameters);
  options.toolCalls = std::move(prepared.toolCalls);
  if (!request.parallelToolCalls)
    options.mostCalls = 1;
  for (const Json &tool : request.tools)
    options.tools.insert(tool["function"]["name"].get<std::string>());
  auto answer = std::make_shared<GenerationAnswer>(
      call.exchange, chatShape(std::move(identity), ready.model->tokenizer()),
      std::move(options), *ready.model->service, *ready.metrics,
      std::move(record), context.onOver, context.executor);
  answer->start(std::move(prompts));
}
