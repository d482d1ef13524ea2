//===- Endpoints.h - What each path of the API does -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_ENDPOINTS_H
#define SANDWICH_LIB_SERVER_ENDPOINTS_H

#include "GenerationAnswer.h"
#include "ModelRegistry.h"

#include "sandwich/Api/ChatRequest.h"
#include "sandwich/Api/CompletionRequest.h"
#include "sandwich/Http/HttpServer.h"

#include <functional>
#include <memory>
#include <string>

namespace sandwich {

/// A request on a worker, and the way to its answer.
struct Call {
  HttpRequest request;
  std::shared_ptr<HttpExchange> exchange;
  GenerationAnswer::Clock::time_point receivedAt;
  /// Unique among all requests to all servers.
  std::string id;

  void respond(const HttpResponse &response) const {
    (void)exchange->respond(response);
  }
};

/// What the endpoints of texts need beside the models.
struct EndpointContext {
  const ModelRegistry &models;
  /// Told once of each request for texts.
  std::function<void(RequestRecord)> onOver = {};
  /// Of the workers.
  GenerationAnswer::Executor executor = {};
  /// Whether the records have the prompts.
  bool keepsPrompts = false;
};

// Each answers `call`, at once or by and by.
void answerCompletion(Call &call, const EndpointContext &context);
void answerChat(Call &call, const EndpointContext &context);
void answerTokenize(Call &call, const EndpointContext &context);
void answerDetokenize(Call &call, const EndpointContext &context);
void answerEmbeddings(Call &call, const EndpointContext &context);
void answerRerank(Call &call, const EndpointContext &context);
void answerTeiEmbed(Call &call, const EndpointContext &context);
void answerTeiEmbedAll(Call &call, const EndpointContext &context);
void answerTeiRerank(Call &call, const EndpointContext &context);
void answerTeiSimilarity(Call &call, const EndpointContext &context);

/// The answer of `/info`, about the only model that embeds or ranks texts;
/// `workers` tokenize.
HttpResponse describeEncoder(const ModelRegistry &models, unsigned workers);

/// The list of `/v1/models`, or the entry of one.
HttpResponse listModels(const ModelRegistry &models);
HttpResponse describeModel(const ModelRegistry &models,
                           const std::string &name);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_ENDPOINTS_H
