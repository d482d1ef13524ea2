//===- ApiRequestFuzzer.cpp - Any bytes as the body of a request ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ChatRequest.h"
#include "sandwich/Api/CompletionRequest.h"
#include "sandwich/Api/EncoderAnswers.h"
#include "sandwich/Api/SimilarityRequest.h"

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

static const EncoderCapabilities embedder = {
    .kind = EncoderCapabilities::Kind::Embedding,
    .maxInputTokens = 8,
    .vocabularySize = 100,
    .dimensions = 6,
    .isMatryoshka = true,
    .maxInputs = 4,
    .prompts = {{"query", "query: "}},
    .defaultPrompt = {}};

static const EncoderCapabilities reranker = {
    .kind = EncoderCapabilities::Kind::Reranker,
    .maxInputTokens = 8,
    .vocabularySize = 100,
    .dimensions = 0,
    .isMatryoshka = false,
    .maxInputs = 4,
    .prompts = {},
    .defaultPrompt = {}};

static void check(const InputTruncation &truncation) {
  check(truncation.allowed || !truncation.maxTokens);
  check(truncation.maxTokens.value_or(1) >= 1);
  check(truncation.maxTokens.value_or(1) <= embedder.maxInputTokens);
}

static void check(const EmbeddingRequest &request) {
  check(request.truncation);
  const std::vector<Prompt> &inputs = request.inputs.prompts;
  check(!inputs.empty() && inputs.size() <= embedder.maxInputs);
  check(request.dimensions >= 1 && request.dimensions <= embedder.dimensions);
  for (const Prompt &input : inputs) {
    check(std::visit([](const auto &each) { return !each.empty(); }, input));
    const auto *tokens = std::get_if<std::vector<int32_t>>(&input);
    if (!tokens)
      continue;
    check(request.truncation.allowed ||
          tokens->size() <= embedder.maxInputTokens);
    for (int32_t token : *tokens)
      check(token >= 0 && uint64_t(token) < embedder.vocabularySize);
  }
}

static void check(const SimilarityRequest &request) {
  check(request.truncation);
  check(!request.source.empty());
  check(!request.sentences.empty());
  check(request.sentences.size() < embedder.maxInputs);
  for (const std::string &sentence : request.sentences)
    check(!sentence.empty());
}

/// Answers are JSON, whatever the texts are that they repeat.
static void check(const RerankRequest &request) {
  check(request.truncation);
  check(!request.query.empty());
  check(!request.documents.empty());
  check(request.documents.size() <= reranker.maxInputs);
  check(request.top >= 1 && request.top <= request.documents.size());
  const auto ranks = rankDocuments(
      request, std::vector<float>(request.documents.size(), 0.5F));
  check(ranks && ranks->size() == request.top);
  for (const auto &answer :
       {teiRerankAnswer(request, *ranks),
        rerankAnswer("id", request.model, request, *ranks, 1)})
    check(answer && parseJson(*answer));
}

/// A request is refused with a reason, or within what the model takes.
template <typename Parse>
static void check(std::string_view body, Parse parse,
                  const EncoderCapabilities &model) {
  std::visit([](const auto &parsed) { check(parsed); },
             parse(body, [&](const std::string &) { return &model; }));
}

/// The bytes are a request of every kind: each is refused with a reason, or
/// within its ranges.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view body(reinterpret_cast<const char *>(data), size);
  std::visit([](const auto &parsed) { check(parsed); },
             parseCompletionRequest(body));
  std::visit([](const auto &parsed) { check(parsed); }, parseChatRequest(body));
  check(body, parseEmbeddingRequest, embedder);
  check(body, parseTeiEmbedRequest, embedder);
  check(body, parseTeiEmbedAllRequest, embedder);
  check(body, parseTeiSimilarityRequest, embedder);
  check(body, parseRerankRequest, reranker);
  check(body, parseTeiRerankRequest, reranker);
  return 0;
}
