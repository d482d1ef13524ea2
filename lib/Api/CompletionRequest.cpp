//===- CompletionRequest.cpp - POST /v1/completions -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/CompletionRequest.h"

using namespace sandwich;

static void addPrompt(ObjectReader &reader, const std::string &name,
                      const Json &value, std::vector<Prompt> &prompts) {
  if (value.is_string())
    prompts.emplace_back(value.get<std::string>());
  else if (!value.is_array())
    reader.refuseValue(name, value,
                       "a string, a list of strings, or token ids");
  else
    prompts.emplace_back(reader.tokenIds(name, value));
}

static std::vector<Prompt> readPrompts(ObjectReader &reader) {
  std::vector<Prompt> prompts;
  const Json *value = reader.find("prompt");
  if (!value) {
    reader.refuse("prompt", "prompt is missing");
    return prompts;
  }
  const bool isList =
      value->is_array() && !value->empty() && !value->front().is_number();
  if (!isList) {
    addPrompt(reader, "prompt", *value, prompts);
    return prompts;
  }
  if (value->size() > size_t{GenerationParameters::mostTexts}) {
    reader.refuse("prompt",
                  "prompt has " + std::to_string(value->size()) +
                      " prompts; it must have at most " +
                      std::to_string(GenerationParameters::mostTexts));
    return prompts;
  }
  for (size_t i = 0; i < value->size(); ++i)
    addPrompt(reader, "prompt[" + std::to_string(i) + "]", (*value)[i],
              prompts);
  return prompts;
}

std::variant<CompletionRequest, ApiError>
sandwich::parseCompletionRequest(std::string_view body) {
  Result<Json> json = parseJson(body);
  if (!json)
    return ApiError{.message = "the request's body is " + json.error().message};
  ObjectReader reader(*json, "");
  CompletionRequest request;
  request.parameters = readGenerationParameters(reader);
  request.prompts = readPrompts(reader);
  request.echo = reader.boolean("echo").value_or(false);
  request.addSpecialTokens =
      reader.boolean("add_special_tokens").value_or(true);
  if (auto scores =
          reader.integer("logprobs", 0, SamplingOptions::maxLogProbabilities))
    request.parameters.sampling.logProbabilities =
        static_cast<uint32_t>(*scores);
  if (auto tokens = reader.integer("truncate_prompt_tokens", 1, INT32_MAX))
    request.truncatePromptTokens = static_cast<uint64_t>(*tokens);
  // Without a token to make there is only the prompt to score.
  if (auto tokens = reader.integer("max_tokens", request.echo ? 0 : 1,
                                   GenerationParameters::mostTokens))
    request.parameters.maxTokens = static_cast<uint64_t>(*tokens);
  reader.requireDefault("suffix", "");
  if (request.prompts.size() * request.parameters.continuations >
      size_t{GenerationParameters::mostTexts})
    reader.refuse("n", "n and the number of prompts ask for more than " +
                           std::to_string(GenerationParameters::mostTexts) +
                           " texts");
  if (std::optional<ApiError> error = reader.finish())
    return *std::move(error);
  return request;
}
