//===- GenerationSetup.cpp - From what a request says to what is generated
//-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenerationSetup.h"

#include "Responses.h"

#include <algorithm>
#include <chrono>
#include <sodium.h>
#include <xxhash.h>

using namespace sandwich;

static uint64_t randomSeed() {
  uint64_t seed = 0;
  randombytes_buf(&seed, sizeof(seed));
  return seed;
}

std::variant<GenerationRequest, ApiError>
sandwich::toGenerationRequest(const GenerationParameters &parameters,
                              const LoadedModel &model) {
  GenerationRequest request;
  request.continuations = parameters.continuations;
  request.sampling = parameters.sampling;
  if (!parameters.hasSeed)
    request.sampling.seed = randomSeed();
  request.stop = parameters.stop;
  request.skipSpecialTokens = parameters.skipSpecialTokens;
  request.priority = parameters.priority;
  if (!parameters.cacheSalt.empty())
    request.salt =
        XXH3_64bits(parameters.cacheSalt.data(), parameters.cacheSalt.size());
  const uint64_t vocabulary = model.service->model().vocab_size();
  // The field's name is known here, and not behind the service.
  if (!parameters.sampling.logitBias.empty() &&
      static_cast<uint64_t>(parameters.sampling.logitBias.rbegin()->first) >=
          vocabulary)
    return ApiError::ofField(
        "logit_bias",
        "logit_bias names the token " +
            std::to_string(parameters.sampling.logitBias.rbegin()->first) +
            ", and the model has " + std::to_string(vocabulary));
  for (int32_t token : parameters.stop.tokens)
    if (static_cast<uint64_t>(token) >= vocabulary)
      return ApiError::ofField(
          "stop_token_ids", "stop_token_ids names the token " +
                                std::to_string(token) + ", and the model has " +
                                std::to_string(vocabulary));
  return request;
}

std::variant<uint64_t, ApiError>
sandwich::chooseMaxTokens(const LoadedModel &model, uint64_t promptTokens,
                          const std::optional<uint64_t> &wanted,
                          const std::optional<uint64_t> &usual) {
  const uint64_t context = model.contextLength;
  const std::string holds =
      "; the context of this model holds " + std::to_string(context);
  // Where one token more is wanted there must be room for it.
  if (promptTokens > context || (promptTokens == context && wanted != 0u))
    return ApiError::contextLength("the prompt has " +
                                   std::to_string(promptTokens) + " tokens" +
                                   holds + ", a text's first token among them");
  const uint64_t room = context - promptTokens;
  if (!wanted)
    return std::min(usual.value_or(room), room);
  if (*wanted > room)
    return ApiError::contextLength(
        "the prompt has " + std::to_string(promptTokens) + " tokens, and " +
        std::to_string(*wanted) + " more are asked for: " +
        std::to_string(promptTokens + *wanted) + " tokens" + holds);
  return *wanted;
}

static int64_t unixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

AnswerShape::Identity
sandwich::identityOf(const Call &call, const LoadedModel &model,
                     const GenerationParameters &parameters,
                     const char *idPrefix) {
  return {.id = idPrefix + call.id,
          .model = parameters.model.empty() ? model.name : parameters.model,
          .fingerprint = model.fingerprint,
          .created = unixSeconds(),
          .scored = parameters.sampling.logProbabilities.has_value(),
          .hasUsage = parameters.includeUsage || parameters.continuousUsage};
}

RequestRecord sandwich::recordOf(const AnswerShape::Identity &identity,
                                 const Call &call) {
  RequestRecord record;
  record.id = identity.id;
  record.path = call.request.path;
  record.model = identity.model;
  return record;
}

void sandwich::refuse(const Call &call, const EndpointContext &context,
                      const std::string &model, const ApiError &error) {
  call.respond(toResponse(error));
  RequestRecord record;
  record.id = call.id;
  record.path = call.request.path;
  record.model = model;
  record.status = error.status;
  record.error = error.message;
  record.seconds = std::chrono::duration<double>(
                       GenerationAnswer::Clock::now() - call.receivedAt)
                       .count();
  if (context.onOver)
    context.onOver(std::move(record));
}

GenerationAnswer::Options
sandwich::answerOptions(const Call &call,
                        const GenerationParameters &parameters) {
  return {.streams = parameters.stream,
          .includesUsage = parameters.includeUsage,
          .continuousUsage = parameters.continuousUsage,
          .continuations = parameters.continuations,
          .receivedAt = call.receivedAt};
}
