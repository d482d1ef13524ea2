//===- MockServer.cpp - A server that makes up tokens ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MockServer.h"

#include <algorithm>
#include <fstream>

using namespace sandwich;
using namespace sandwich::test;

using Clock = std::chrono::steady_clock;

static HttpResponse errorResponse(unsigned status, const std::string &message) {
  return {.status = status,
          .body = Json{{"error", {{"message", message}}}}.dump()};
}

Result<std::unique_ptr<MockServer>> MockServer::create(MockOptions options) {
  std::unique_ptr<MockServer> mock(new MockServer(std::move(options)));
  HttpServerOptions http;
  http.port = 0;
  http.unixSocket = mock->options.unixSocket;
  http.limits.connections = 1 << 16;
  // Whole answers are written at once.
  http.limits.unreadBytes = size_t{64} << 20;
  SANDWICH_ASSIGN_OR_RETURN(
      mock->server,
      HttpServer::create(
          http, [mock = mock.get()](const HttpRequest &request,
                                    std::shared_ptr<HttpExchange> exchange) {
            mock->handle(request, exchange);
          }));
  mock->pacer = std::thread([mock = mock.get()] { mock->run(); });
  return mock;
}

MockServer::~MockServer() {
  {
    std::lock_guard lock(mutex);
    ending = true;
    changed.notify_all();
  }
  if (pacer.joinable())
    pacer.join();
  if (server)
    server->stop();
}

std::vector<Json> MockServer::requests() {
  std::lock_guard lock(mutex);
  return received;
}

size_t MockServer::streams() {
  std::lock_guard lock(mutex);
  return running.size();
}

/// Tokens of a prompt: its ids, or what its words cost.
static uint64_t countTokens(const Json &prompt, const MockOptions &options) {
  if (prompt.is_array())
    return prompt.size();
  const auto &text = prompt.get_ref<const std::string &>();
  const auto words = text.empty() ? 0 : std::ranges::count(text, ' ') + 1;
  return options.moreTokens +
         options.tokensPerWord * static_cast<uint64_t>(words);
}

void MockServer::handle(const HttpRequest &request,
                        const std::shared_ptr<HttpExchange> &exchange) {
  if (!options.apiKey.empty() &&
      request.header("authorization") != "Bearer " + options.apiKey) {
    exchange->respond(errorResponse(401, "the key is not known"));
    return;
  }
  if (request.path == "/v1/models" && options.listsModels) {
    Json model = {{"id", "mock"}, {"object", "model"}};
    if (options.contextTokens > 0)
      model["max_model_len"] = options.contextTokens;
    exchange->respond(
        {.body = Json{{"object", "list"}, {"data", {model}}}.dump()});
    return;
  }
  const Result<Json> body = parseJson(request.body);
  if (request.path == "/tokenize" && options.hasTokenize && body) {
    exchange->respond(
        {.body = Json{{"tokens", std::vector<int>(
                                     countTokens((*body)["content"], options))}}
                     .dump()});
    return;
  }
  const bool isChat = request.path == "/v1/chat/completions";
  if (!isChat && request.path != "/v1/completions")
    exchange->respond(errorResponse(404, "there is no " + request.path));
  else if (!body)
    exchange->respond(errorResponse(400, body.error().message));
  else
    complete(*body, isChat, exchange);
}

bool MockServer::misbehave(size_t number, Stream &stream) {
  const auto isChosen = [&](size_t every) {
    return every > 0 && number >= options.goodRequests &&
           (number - options.goodRequests) % every == 0;
  };
  const std::shared_ptr<HttpExchange> &exchange = stream.exchange;
  if (isChosen(options.failEvery)) {
    exchange->respond(errorResponse(options.failStatus, "told to fail"));
  } else if (isChosen(options.hangEvery)) {
    std::lock_guard lock(mutex);
    hanging.push_back(exchange);
  } else if (isChosen(options.plainEvery)) {
    exchange->respond({.body = "{\"choices\":[]}"});
  } else if (isChosen(options.garbleEvery)) {
    exchange->begin(
        {.contentType = "text/event-stream", .body = "data: {\"choices\n\n"});
    exchange->finish();
  } else if (isChosen(options.errorEvery)) {
    exchange->begin({.contentType = "text/event-stream",
                     .body = "data: {\"error\":{\"message\":\"told to tell "
                             "<&> of one\"}}\n\n"});
    exchange->finish();
  } else {
    if (isChosen(options.breakEvery))
      stream.breaksAfter = stream.tokens / 2;
    return false;
  }
  return true;
}

void MockServer::complete(const Json &body, bool isChat,
                          const std::shared_ptr<HttpExchange> &exchange) {
  size_t number;
  {
    std::lock_guard lock(mutex);
    number = received.size();
    received.push_back(body);
  }
  if (number == 4 && !options.startedFile.empty())
    std::ofstream(options.startedFile) << "started\n";
  for (const std::string &name : options.unknownMembers)
    if (body.contains(name)) {
      exchange->respond(errorResponse(400, name + " is not known"));
      return;
    }
  const Json &prompt =
      isChat ? body.at("messages").at(0).at("content") : body.at("prompt");
  if (prompt.is_array() && !options.takesIds) {
    exchange->respond(errorResponse(400, "prompts are text"));
    return;
  }
  Stream stream;
  stream.exchange = exchange;
  stream.isChat = isChat;
  stream.promptTokens = countTokens(prompt, options);
  stream.tokens = body.at("max_tokens").get<uint64_t>();
  if (!body.value("stream", false)) {
    Json answer = {{"choices", {{{"text", "x"}}}}};
    if (options.countsTokens)
      answer["usage"] = {{"prompt_tokens", stream.promptTokens},
                         {"completion_tokens", stream.tokens}};
    exchange->respond({.body = answer.dump()});
    return;
  }
  const auto wanted = body.find("stream_options");
  stream.wantsUsage = options.countsTokens && wanted != body.end() &&
                      wanted->value("include_usage", false);
  if (misbehave(number, stream))
    return;
  if (streams() < options.mostStreams) {
    start(std::move(stream));
    return;
  }
  HttpResponse refusal = errorResponse(429, "too many requests");
  refusal.headers = {{"Retry-After", "1"}};
  exchange->respond(std::move(refusal));
}

std::string MockServer::pieceOf(const Stream &stream) const {
  const uint64_t count =
      std::min<uint64_t>(options.tokensPerPiece, stream.tokens - stream.sent);
  std::string text;
  for (uint64_t i = 0; options.hasText && i < count; ++i)
    text += " word";
  const std::string head =
      "data: {\"id\":\"mock-1\",\"object\":\"text_completion\",\"created\":"
      "1700000000,\"model\":\"mock\",\"choices\":[{\"index\":0,";
  if (stream.isChat)
    return head + "\"delta\":{\"content\":\"" + text +
           "\"},\"finish_reason\":null}]}\n\n";
  return head + "\"text\":\"" + text +
         "\",\"logprobs\":null,\"finish_reason\":null}]}\n\n";
}

std::string MockServer::endOf(const Stream &stream) const {
  std::string text =
      stream.isChat
          ? "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"
            "\"length\"}]}\n\n"
          : "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":"
            "\"length\"}]}\n\n";
  if (stream.wantsUsage)
    text += "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" +
            std::to_string(stream.promptTokens) +
            ",\"completion_tokens\":" + std::to_string(stream.tokens) +
            ",\"total_tokens\":" +
            std::to_string(stream.promptTokens + stream.tokens) + "}}\n\n";
  if (options.endsWithDone)
    text += "data: [DONE]\n\n";
  return text;
}

void MockServer::start(Stream stream) {
  stream.exchange->begin(
      {.contentType = "text/event-stream",
       .body = stream.isChat
                   ? "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":"
                     "\"assistant\",\"content\":\"\"}}]}\n\n"
                   : ": mock\n\n"});
  stream.begin = Clock::now();
  // Whoever advances the stream holds the mutex.
  stream.exchange->onClosed([this, left = stream.left] {
    std::lock_guard lock(mutex);
    *left = true;
    changed.notify_all();
  });
  if (options.tokenSeconds == 0 && options.firstTokenSeconds == 0) {
    (void)advance(stream, stream.begin);
    return;
  }
  std::lock_guard lock(mutex);
  running.push_back(std::move(stream));
  changed.notify_all();
}

bool MockServer::advance(Stream &stream, Clock::time_point now) const {
  const double elapsed =
      std::chrono::duration<double>(now - stream.begin).count() -
      options.firstTokenSeconds;
  const uint64_t end = stream.breaksAfter.value_or(stream.tokens);
  uint64_t due = 0;
  if (elapsed >= 0)
    due = options.tokenSeconds > 0
              ? 1 + static_cast<uint64_t>(elapsed / options.tokenSeconds)
              : end;
  std::string text;
  while (stream.sent < std::min(due, end)) {
    text += pieceOf(stream);
    stream.sent += options.tokensPerPiece;
  }
  const bool isOver = stream.sent >= end && elapsed >= 0;
  if (isOver && !stream.breaksAfter)
    text += endOf(stream);
  if (!text.empty())
    stream.exchange->write(text);
  if (isOver && !stream.breaksAfter)
    stream.exchange->finish();
  return !isOver;
}

void MockServer::run() {
  std::unique_lock lock(mutex);
  while (!ending) {
    if (running.empty()) {
      changed.wait(lock);
      continue;
    }
    const Clock::time_point now = Clock::now();
    // An exchange that is let go tells nobody, so that none waits for us.
    running.remove_if(
        [&](Stream &stream) { return *stream.left || !advance(stream, now); });
    changed.wait_for(lock, std::chrono::microseconds(500));
  }
}
