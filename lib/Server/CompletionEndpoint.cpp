//===- CompletionEndpoint.cpp - POST /v1/completions ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenerationSetup.h"
#include "OutputConstraint.h"

#include <variant>

using namespace sandwich;

namespace {
/// A prompt as tokens, and, where it is asked for, as the text that `echo`
/// tells.
struct EncodedPrompt {
  std::vector<int32_t> tokens;
  std::string text;
};
} // namespace

static std::variant<EncodedPrompt, ApiError>
encode(const Prompt &prompt, const CompletionRequest &request,
       const LoadedModel &model) {
  EncodedPrompt encoded;
  bool isTextKnown = true;
  const std::optional<Tokenizer> &tokenizer = model.tokenizer();
  if (const auto *text = std::get_if<std::string>(&prompt)) {
    if (!tokenizer)
      return ApiError::ofField("prompt", "the model has no tokenizer; its "
                                         "prompts are lists of token ids");
    Result<std::vector<int32_t>> tokens = tokenizer->encode(
        *text, {.addSpecialTokens = request.addSpecialTokens});
    if (!tokens)
      return ApiError::ofField("prompt", "prompt: " + tokens.error().message);
    encoded.tokens = *std::move(tokens);
    encoded.text = *text;
  } else {
    encoded.tokens = std::get<std::vector<int32_t>>(prompt);
    if (auto error = checkTokens("prompt", encoded.tokens,
                                 model.service->model().vocab_size()))
      return *std::move(error);
    isTextKnown = false;
  }
  if (const auto &most = request.truncatePromptTokens;
      most && encoded.tokens.size() > *most) {
    encoded.tokens.erase(encoded.tokens.begin(),
                         encoded.tokens.end() -
                             static_cast<std::ptrdiff_t>(*most));
    isTextKnown = false;
  }
  if (!isTextKnown && request.echo && tokenizer)
    encoded.text =
        tokenizer->decode(encoded.tokens, /*skipSpecialTokens=*/false);
  if (encoded.tokens.empty())
    return ApiError::ofField("prompt", "prompt has no token; give at least "
                                       "one character");
  return encoded;
}

/// What the service gets of each prompt.
static std::variant<PreparedGeneration, ApiError>
prepareCompletion(const CompletionRequest &request, const LoadedModel &model) {
  ConstraintOrError format = constrainFormat(request.parameters, model);
  if (auto *error = std::get_if<ApiError>(&format))
    return std::move(*error);
  const auto constraint =
      std::get<std::shared_ptr<const TokenConstraint>>(std::move(format));
  PreparedGeneration generation;
  if (const auto *text = std::get_if<std::string>(&request.prompts.front()))
    generation.promptText = *text;
  for (const Prompt &each : request.prompts) {
    auto encoded = encode(each, request, model);
    if (auto *error = std::get_if<ApiError>(&encoded))
      return std::move(*error);
    auto &prompt = std::get<EncodedPrompt>(encoded);
    auto tokens = chooseMaxTokens(model, prompt.tokens.size(),
                                  request.parameters.maxTokens,
                                  CompletionRequest::usualTokens);
    if (auto *error = std::get_if<ApiError>(&tokens))
      return std::move(*error);
    auto made = toGenerationRequest(request.parameters, model);
    if (auto *error = std::get_if<ApiError>(&made))
      return std::move(*error);
    GenerationAnswer::Prompt prepared;
    prepared.request = std::move(std::get<GenerationRequest>(made));
    prepared.request.maxTokens = std::get<uint64_t>(tokens);
    prepared.request.prompt = std::move(prompt.tokens);
    prepared.request.constraint = constraint;
    if (request.echo) {
      prepared.echo = std::move(prompt.text);
      prepared.request.promptLogProbabilities =
          request.parameters.sampling.logProbabilities;
    }
    // Where no token is made, the prompt is computed to be scored, or for
    // nothing.
    if (prepared.request.maxTokens == 0 &&
        !prepared.request.promptLogProbabilities)
      prepared.request.promptLogProbabilities = 0;
    generation.prompts.push_back(std::move(prepared));
  }
  return generation;
}

void sandwich::answerCompletion(Call &call, const EndpointContext &context) {
  auto parsed = parseCompletionRequest(call.request.body);
  if (const auto *error = std::get_if<ApiError>(&parsed))
    return refuse(call, context, "", *error);
  const auto &request = std::get<CompletionRequest>(parsed);
  generate(call, context, request.parameters, {"cmpl-", completionShape},
           [&](const LoadedModel &model) {
             return prepareCompletion(request, model);
           });
}
