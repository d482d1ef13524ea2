//===- CompletionRequest.cpp - POST /v1/completions -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/CompletionRequest.h"

using namespace sandwich;

std::variant<CompletionRequest, ApiError>
sandwich::parseCompletionRequest(std::string_view body) {
  CompletionRequest request;
  auto error = readObject(body, [&](ObjectReader &reader) {
    request.parameters = readGenerationParameters(reader);
    request.prompts =
        readPrompts(reader, "prompt", size_t{GenerationParameters::mostTexts})
            .prompts;
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
  });
  if (error)
    return *std::move(error);
  return request;
}
