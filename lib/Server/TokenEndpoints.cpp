//===- TokenEndpoints.cpp - POST /tokenize and /detokenize ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatPrompt.h"
#include "GenerationSetup.h"
#include "Responses.h"

#include <variant>

using namespace sandwich;

namespace {
/// A model as far as tokens are concerned.
struct TokenModel {
  const Tokenizer *tokenizer;
  uint64_t contextLength;
  uint64_t vocabularySize;
  /// Null where it generates no text.
  const LoadedModel *generating;
};
} // namespace

/// The model of a request about tokens, which needs a tokenizer. Where none is
/// named, the one that generates, if there is one.
static std::variant<TokenModel, ApiError>
findModel(const EndpointContext &context, const std::string &name) {
  auto withoutTokenizer = [](const std::string &model) {
    return ApiError::ofField("model",
                             "the model '" + model + "' has no tokenizer");
  };
  auto found = context.models.find(name);
  if (const auto *ready = std::get_if<ReadyModel>(&found)) {
    const LoadedModel &model = *ready->model;
    if (!model.tokenizer())
      return withoutTokenizer(model.name);
    return TokenModel{&*model.tokenizer(), model.contextLength,
                      model.service->model().vocab_size(), &model};
  }
  auto other = context.models.findEncoder(name, std::nullopt);
  if (!std::holds_alternative<const LoadedEncoder *>(other))
    return std::get<ApiError>(std::move(found));
  const LoadedEncoder &encoder = *std::get<const LoadedEncoder *>(other);
  if (!encoder.text)
    return withoutTokenizer(encoder.name);
  return TokenModel{&encoder.text->tokenizer(), encoder.contextLength(),
                    encoder.capabilities.vocabularySize, nullptr};
}

static HttpResponse describeTokens(const std::vector<int32_t> &tokens,
                                   bool withTexts, const TokenModel &model) {
  Json json = {{"count", tokens.size()},
               {"max_model_len", model.contextLength},
               {"tokens", tokens}};
  if (withTexts) {
    json["token_strs"] = Json::array();
    for (int32_t token : tokens)
      json["token_strs"].push_back(
          std::string(model.tokenizer->tokenOf(token).value_or("")));
  }
  return toResponse(json);
}

void sandwich::answerTokenize(Call &call, const EndpointContext &context) {
  std::string model;
  std::string text;
  ChatRequest chat;
  bool isChat = false, addSpecialTokens = true, withTexts = false;
  const auto error = readObject(call.request.body, [&](ObjectReader &reader) {
    model =
        reader.string("model", GenerationParameters::nameBytes).value_or("");
    isChat = reader.find("messages") != nullptr;
    if (isChat)
      readConversation(reader, chat);
    else if (auto prompt = reader.string("prompt", Tokenizer::maxTextBytes))
      text = *std::move(prompt);
    else
      reader.refuse("prompt", "prompt or messages is missing");
    // A chat template writes them itself.
    if (isChat)
      reader.requireDefault("add_special_tokens", false);
    else
      addSpecialTokens = reader.boolean("add_special_tokens").value_or(true);
    withTexts = reader.boolean("return_token_strs").value_or(false);
  });
  if (error)
    return call.respond(toResponse(*error));
  auto found = findModel(context, model);
  if (const auto *missing = std::get_if<ApiError>(&found))
    return call.respond(toResponse(*missing));
  const auto &loaded = std::get<TokenModel>(found);
  if (isChat) {
    if (!loaded.generating)
      return call.respond(toResponse(ApiError::ofField(
          "messages", "the model has no chats; give a prompt")));
    auto prompt = renderChat(*loaded.generating, chat);
    if (const auto *wrong = std::get_if<ApiError>(&prompt))
      return call.respond(toResponse(*wrong));
    return call.respond(
        describeTokens(std::get<ChatPrompt>(prompt).tokens, withTexts, loaded));
  }
  Result<std::vector<int32_t>> tokens =
      loaded.tokenizer->encode(text, {.addSpecialTokens = addSpecialTokens});
  call.respond(tokens ? describeTokens(*tokens, withTexts, loaded)
                      : toResponse(ApiError::ofField(
                            "prompt", "prompt: " + tokens.error().message)));
}

void sandwich::answerDetokenize(Call &call, const EndpointContext &context) {
  std::string model;
  std::vector<int32_t> tokens;
  const auto error = readObject(call.request.body, [&](ObjectReader &reader) {
    model =
        reader.string("model", GenerationParameters::nameBytes).value_or("");
    const Json *list = reader.list("tokens");
    if (!list)
      return reader.refuse("tokens", "tokens is missing");
    tokens = reader.tokenIds("tokens", *list);
  });
  if (error)
    return call.respond(toResponse(*error));
  auto found = findModel(context, model);
  if (const auto *missing = std::get_if<ApiError>(&found))
    return call.respond(toResponse(*missing));
  const auto &loaded = std::get<TokenModel>(found);
  if (const auto unknown = checkTokens("tokens", tokens, loaded.vocabularySize))
    return call.respond(toResponse(*unknown));
  call.respond(toResponse(
      Json{{"prompt",
            loaded.tokenizer->decode(tokens, /*skipSpecialTokens=*/false)}}));
}
