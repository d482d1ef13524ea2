//===- GenerationSetup.cpp - From a request to what is generated ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenerationSetup.h"

#include "Responses.h"
#include "sandwich/Support/ElapsedTime.h"

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

std::optional<ApiError> sandwich::checkTokens(const std::string &name,
                                              std::span<const int32_t> tokens,
                                              uint64_t vocabulary) {
  for (int32_t token : tokens)
    if (static_cast<uint64_t>(token) >= vocabulary)
      return ApiError::ofField(
          name, name + " has the token " + std::to_string(token) +
                    ", and the model has " + std::to_string(vocabulary));
  return std::nullopt;
}

std::variant<GenerationRequest, ApiError>
sandwich::toGenerationRequest(const GenerationParameters &parameters,
                              const LoadedModel &model) {
  const uint64_t vocabulary = model.service->model().vocab_size();
  GenerationRequest request;
  request.continuations = parameters.continuations;
  request.sampling = parameters.sampling;
  if (!parameters.hasSeed)
    request.sampling.seed = randomSeed();
  if (!parameters.stop.strings.empty() && !model.tokenizer())
    return ApiError::ofField("stop", "the model has no tokenizer, so that it "
                                     "cannot stop at a string");
  const uint64_t most = model.service->maxContinuations();
  if (parameters.continuations > most)
    return ApiError::ofField("n", "n is " +
                                      std::to_string(parameters.continuations) +
                                      ", and this server generates at most " +
                                      std::to_string(most) + " texts together");
  request.stop = parameters.stop;
  request.skipSpecialTokens = parameters.skipSpecialTokens;
  request.priority = parameters.priority;
  if (!parameters.cacheSalt.empty())
    request.salt =
        XXH3_64bits(parameters.cacheSalt.data(), parameters.cacheSalt.size());
  // The fields' names are known here, and not behind the service.
  std::vector<int32_t> biased;
  for (const auto &[token, bias] : parameters.sampling.logitBias)
    biased.push_back(token);
  if (auto error = checkTokens("logit_bias", biased, vocabulary))
    return *std::move(error);
  if (auto error =
          checkTokens("stop_token_ids", parameters.stop.tokens, vocabulary))
    return *std::move(error);
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

/// Log-probabilities of one answer that are kept until it is sent: about a
/// quarter of a gigabyte as JSON.
static constexpr uint64_t mostScores = uint64_t{1} << 20;
/// Bytes that are told before the first token of a stream, of several texts.
static constexpr uint64_t mostEchoBytes = uint64_t{512} << 10;

/// Whether an answer of this size can be made at all: its prompts fit into the
/// queue, and what is kept of it until it is sent into memory. Errors name the
/// field and both numbers.
static std::optional<ApiError>
checkAnswerSize(const std::vector<GenerationAnswer::Prompt> &prompts,
                const GenerationParameters &parameters,
                const LoadedModel &model) {
  if (prompts.size() > model.maxWaitingRequests)
    return ApiError::ofField("prompt",
                             "prompt has " + std::to_string(prompts.size()) +
                                 " prompts, and the queue holds " +
                                 std::to_string(model.maxWaitingRequests));
  uint64_t promptTokens = 0, scoredTokens = 0, echoBytes = 0;
  for (const GenerationAnswer::Prompt &each : prompts) {
    const bool scores = parameters.sampling.logProbabilities.has_value();
    promptTokens += each.request.prompt.size();
    if (scores && each.request.promptLogProbabilities)
      scoredTokens += each.request.prompt.size();
    if (scores && !parameters.stream)
      scoredTokens += each.request.maxTokens;
    echoBytes += each.echo.size();
  }
  if (promptTokens > model.maxWaitingTokens)
    return ApiError::ofField(
        "prompt", "the prompts have " + std::to_string(promptTokens) +
                      " tokens, and the queue holds " +
                      std::to_string(model.maxWaitingTokens));
  // Far from 64 bits: the queue and the context bound the tokens.
  const uint64_t scores =
      scoredTokens * parameters.continuations *
      (parameters.sampling.logProbabilities.value_or(0) + 1);
  if (scores > mostScores)
    return ApiError::ofField(
        "logprobs", "logprobs would tell " + std::to_string(scores) +
                        " log-probabilities in one answer, and at most " +
                        std::to_string(mostScores) +
                        " can be; ask for fewer, for fewer tokens, or for a "
                        "stream");
  const uint64_t told = echoBytes * parameters.continuations + 128 * scores;
  if (parameters.stream && parameters.continuations > 1 && told > mostEchoBytes)
    return ApiError::ofField("echo", "echo would begin the stream with about " +
                                         std::to_string(told) +
                                         " bytes, and at most " +
                                         std::to_string(mostEchoBytes) +
                                         " can be where n is above 1");
  return std::nullopt;
}

static AnswerShape::Identity identityOf(const Call &call,
                                        const LoadedModel &model,
                                        const GenerationParameters &parameters,
                                        const char *idPrefix) {
  return {.id = idPrefix + call.id,
          .model = parameters.model.empty() ? model.name : parameters.model,
          .fingerprint = model.fingerprint,
          .created = static_cast<int64_t>(unixSeconds()),
          .scored = parameters.sampling.logProbabilities.has_value(),
          .hasUsage = parameters.includeUsage || parameters.continuousUsage};
}

void sandwich::refuse(const Call &call, const EndpointContext &context,
                      const std::string &model, const ApiError &error) {
  call.respond(toResponse(error));
  tellUnserved(call, context, model, error.status, error.message);
}

void sandwich::tellUnserved(const Call &call, const EndpointContext &context,
                            const std::string &model, unsigned status,
                            const std::string &reason) {
  RequestRecord record;
  record.id = call.id;
  record.path = call.request.path;
  record.model = model;
  record.status = status;
  record.error = reason;
  record.seconds = std::chrono::duration<double>(
                       GenerationAnswer::Clock::now() - call.receivedAt)
                       .count();
  if (context.onOver)
    context.onOver(std::move(record));
}

void sandwich::generate(
    const Call &call, const EndpointContext &context,
    const GenerationParameters &parameters, AnswerKind kind,
    const std::function<std::variant<PreparedGeneration, ApiError>(
        const LoadedModel &)> &prepare) {
  auto found = context.models.find(parameters.model);
  if (const auto *error = std::get_if<ApiError>(&found))
    return refuse(call, context, parameters.model, *error);
  const auto [model, metrics] = std::get<ReadyModel>(found);
  auto made = prepare(*model);
  if (const auto *error = std::get_if<ApiError>(&made))
    return refuse(call, context, model->name, *error);
  auto &prepared = std::get<PreparedGeneration>(made);
  if (auto error = checkAnswerSize(prepared.prompts, parameters, *model))
    return refuse(call, context, model->name, *error);

  AnswerShape::Identity identity =
      identityOf(call, *model, parameters, kind.idPrefix);
  RequestRecord record;
  record.id = identity.id;
  record.path = call.request.path;
  record.model = identity.model;
  if (context.keepsPrompts)
    record.prompt = std::move(prepared.promptText);
  GenerationAnswer::Options options = {
      .streams = parameters.stream,
      .includesUsage = parameters.includeUsage,
      .continuousUsage = parameters.continuousUsage,
      .toolCalls = std::move(prepared.toolCalls),
      .continuations = parameters.continuations,
      .receivedAt = call.receivedAt};
  auto answer = std::make_shared<GenerationAnswer>(
      call.exchange, kind.makeShape(std::move(identity), model->tokenizer()),
      std::move(options), *model->service, *metrics, std::move(record),
      context.onOver, context.executor);
  answer->start(std::move(prepared.prompts));
}
