//===- TargetServer.cpp - The server that is measured ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/TargetServer.h"

#include "StreamedAnswer.h"
#include "sandwich/LoadTest/StreamChunk.h"
#include "sandwich/Support/Json.h"

#include <algorithm>

using namespace sandwich;

/// Tokens of the requests that find out what the server takes.
static constexpr ServingRequest probeRequest = {8, 2, std::nullopt};
/// Words of the prompts that tell what words cost. Their difference is large,
/// as a word more or less may join its neighbours in a token.
static constexpr uint64_t fewWords = 32, manyWords = 288;

TargetServer::TargetServer(EventLoop &loop, TargetOptions given,
                           PromptMaker prompts, std::function<bool()> stop)
    : eventLoop(&loop), stop(std::move(stop)), options(std::move(given)),
      prompts(prompts) {
  if (options.address.basePath.empty())
    options.address.basePath = "/v1";
  HttpClientLimits limits;
  limits.connections = options.connections;
  limits.connectSeconds = limits.pauseSeconds = limits.totalSeconds =
      options.timeout;
  client = HttpClient::create({options.address, limits}, loop);
}

HttpRequest TargetServer::makeRequest(const std::string &path,
                                      std::string body) const {
  HttpRequest request;
  request.method = body.empty() ? "GET" : "POST";
  request.path = path;
  if (options.apiKey)
    request.headers.emplace_back("Authorization", "Bearer " + *options.apiKey);
  if (!body.empty())
    request.headers.emplace_back("Content-Type", "application/json");
  request.headers.emplace_back("Accept", "*/*");
  request.body = std::move(body);
  return request;
}

std::string TargetServer::makePrompt(uint64_t tokens) {
  std::string prompt;
  prompts.append(prompt, tokens, prompted++);
  return prompt;
}

/// `prompt` is JSON. Written piece by piece, as there may be thousands of them
/// a second, with thousands of ids each.
std::string TargetServer::makeBody(const std::string &prompt,
                                   uint64_t outputTokens, bool streams) const {
  std::string body = "{\"model\":" + Json(options.model).dump();
  if (options.endpoint == Endpoint::Chat)
    body += ",\"messages\":[{\"role\":\"user\",\"content\":" + prompt + "}]";
  else
    body += ",\"prompt\":" + prompt;
  body += ",\"max_tokens\":" + std::to_string(outputTokens);
  if (options.temperature)
    body += ",\"temperature\":" + Json(*options.temperature).dump();
  if (options.ignoreEndOfText.value_or(true))
    body += ",\"ignore_eos\":true";
  if (streams) {
    body += ",\"stream\":true";
    if (options.includeUsage.value_or(true))
      body += ",\"stream_options\":{\"include_usage\":true}";
  }
  body += '}';
  return body;
}

HttpCallId TargetServer::send(const ServingRequest &request,
                              Clock::time_point origin, AnswerCallback onEnd) {
  ServedRequest asked;
  asked.promptTokens = static_cast<uint64_t>(request.promptTokens);
  const auto outputTokens =
      static_cast<uint64_t>(std::max<int64_t>(request.outputTokens, 1));
  HttpRequest message = makeRequest(
      options.endpoint == Endpoint::Chat ? "/chat/completions" : "/completions",
      makeBody(makePrompt(asked.promptTokens), outputTokens,
               /*streams=*/true));
  asked.sent = asked.arrival =
      std::chrono::duration<double>(Clock::now() - origin).count();
  asked.outputTokens = outputTokens;
  auto answer = std::make_shared<StreamedAnswer>(origin, asked);
  return client->send(
      std::move(message),
      {.onHead =
           [answer](const HttpResponseHead &head) { answer->readHead(head); },
       .onBody =
           [answer](std::string_view piece) { return answer->readBody(piece); },
       .onEnd =
           [answer, onEnd = std::move(onEnd)](const HttpFailure *failure) {
             onEnd(answer->finish(failure));
           }});
}

//===----------------------------------------------------------------------===//
// Finding out what the server takes
//===----------------------------------------------------------------------===//

Result<HttpAnswer> TargetServer::ask(HttpClient &asked,
                                     HttpRequest request) const {
  constexpr size_t mostBytes = size_t{16} << 20;
  return asked.ask(std::move(request), mostBytes, stop);
}

/// The first model of a list, if it is one.
static const Json *firstModel(const Json &list) {
  if (!list.is_object())
    return nullptr;
  const auto data = list.find("data");
  if (data == list.end() || !data->is_array() || data->empty() ||
      !data->front().is_object())
    return nullptr;
  return &data->front();
}

static bool isPlainName(const std::string &name) {
  constexpr size_t mostBytes = 300;
  return !name.empty() && name.size() <= mostBytes &&
         std::ranges::none_of(
             name, [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

Status TargetServer::findModel() {
  const Result<HttpAnswer> answer = ask(*client, makeRequest("/models", ""));
  if (!answer)
    return answer.error();
  const Result<Json> list = parseJson(answer->body);
  const Json *model =
      answer->head.status == 200 && list ? firstModel(*list) : nullptr;
  const auto id = model ? model->find("id") : Json::const_iterator();
  if (!model || id == model->end() || !id->is_string()) {
    if (!options.model.empty())
      return {};
    return makeError("the server lists no models (HTTP ", answer->head.status,
                     "); --model names one");
  }
  // It is shown on terminals.
  const auto &name = id->get_ref<const std::string &>();
  if (options.model.empty() && !isPlainName(name))
    return makeError("the first model that the server lists has a name that "
                     "cannot be shown; --model names one");
  if (options.model.empty())
    options.model = name;
  if (options.model != name)
    return {};
  // vLLM tells it.
  if (const auto length = model->find("max_model_len");
      length != model->end() && length->is_number_unsigned() && *length > 0)
    context = length->get<uint64_t>();
  return {};
}

bool TargetServer::leaveOut(const ServingFailure &failure) {
  if (failure.kind != "HTTP 400" && failure.kind != "HTTP 422")
    return false;
  const auto tryWithout = [&](std::optional<bool> &wanted, const char *name) {
    if (wanted || failure.message.find(name) == std::string::npos)
      return false;
    wanted = false;
    report(options.log, LogLevel::Warning,
           std::string("the server does not take ") + name + ": " +
               failure.message);
    return true;
  };
  return tryWithout(options.ignoreEndOfText, "ignore_eos") ||
         tryWithout(options.includeUsage, "stream_options");
}

Status TargetServer::negotiate() {
  while (true) {
    const auto answer = std::make_shared<std::optional<ServedRequest>>();
    const HttpCallId id =
        send(probeRequest, Clock::now(),
             [answer](ServedRequest ended) { *answer = std::move(ended); });
    if (!eventLoop->runUntil([&] { return answer->has_value(); }, stop)) {
      client->cancel(id);
      return makeError(ErrorKind::Cancelled, "interrupted");
    }
    if (!(*answer)->failure)
      break;
    if (!leaveOut(*(*answer)->failure))
      return makeError("a first request failed: ", (*answer)->failure->kind,
                       ": ", (*answer)->failure->message);
  }
  options.ignoreEndOfText = options.ignoreEndOfText.value_or(true);
  options.includeUsage = options.includeUsage.value_or(true);
  return {};
}

/// Tokens that an answer of /tokenize counts or lists.
static std::optional<uint64_t> countListed(const Json &answer) {
  if (!answer.is_object())
    return std::nullopt;
  if (const auto count = answer.find("count");
      count != answer.end() && count->is_number_unsigned())
    return count->get<uint64_t>();
  if (const auto tokens = answer.find("tokens");
      tokens != answer.end() && tokens->is_array())
    return tokens->size();
  return std::nullopt;
}

std::optional<uint64_t> TargetServer::countTokens(uint64_t words) {
  const std::string text = Json(prompts.words(words, prompted++)).dump();
  const Result<HttpAnswer> completed =
      ask(*client,
          makeRequest(options.endpoint == Endpoint::Chat ? "/chat/completions"
                                                         : "/completions",
                      makeBody(text, 1, /*streams=*/false)));
  if (completed && completed->head.status == 200)
    if (const Result<StreamChunk> answer = parseStreamChunk(completed->body);
        answer && answer->promptTokens)
      return answer->promptTokens;
  // Beside the API: "content" is llama.cpp's word for it, "prompt" vLLM's.
  HttpAddress beside = options.address;
  beside.basePath.clear();
  const std::unique_ptr<HttpClient> other =
      HttpClient::create({beside, HttpClientLimits()}, *eventLoop);
  const Result<HttpAnswer> tokenized =
      ask(*other,
          makeRequest("/tokenize", "{\"model\":" + Json(options.model).dump() +
                                       ",\"content\":" + text +
                                       ",\"prompt\":" + text + "}"));
  if (tokenized && tokenized->head.status == 200)
    if (const Result<Json> answer = parseJson(tokenized->body))
      return countListed(*answer);
  return std::nullopt;
}

Status TargetServer::measureWords() {
  const std::optional<uint64_t> few = countTokens(fewWords);
  const std::optional<uint64_t> many = countTokens(manyWords);
  if (stop && stop())
    return makeError(ErrorKind::Cancelled, "interrupted");
  if (!few || !many || *many <= *few) {
    report(options.log, LogLevel::Warning,
           "the server does not tell how many tokens a prompt has; a word is "
           "taken for one");
    return {};
  }
  WordCosts costs;
  costs.tokensPerWord = static_cast<double>(*many - *few) /
                        static_cast<double>(manyWords - fewWords);
  costs.moreTokens =
      std::max(0.0, static_cast<double>(*few) -
                        costs.tokensPerWord * static_cast<double>(fewWords));
  prompts.setWordCosts(costs);
  return {};
}

Result<std::unique_ptr<TargetServer>>
TargetServer::connect(EventLoop &loop, TargetOptions options,
                      const std::function<bool()> &stop) {
  SANDWICH_ASSIGN_OR_RETURN(PromptMaker prompts,
                            PromptMaker::create(options.prompts));
  std::unique_ptr<TargetServer> server(
      new TargetServer(loop, std::move(options), prompts, stop));
  SANDWICH_RETURN_IF_ERROR(server->findModel());
  SANDWICH_RETURN_IF_ERROR(server->negotiate());
  if (!prompts.asTokens())
    SANDWICH_RETURN_IF_ERROR(server->measureWords());
  return server;
}
