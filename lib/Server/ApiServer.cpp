//===- ApiServer.cpp - The API over HTTP ----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/ApiServer.h"

#include "Endpoints.h"
#include "GenerationSetup.h"
#include "LoadedEncoder.h"
#include "LoadedModel.h"
#include "Responses.h"
#include "StatusReport.h"

#include "sandwich/Server/Page.h"
#include "sandwich/Service/ServiceWatchdog.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Process.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/string.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <sodium.h>
#include <thread>

using namespace sandwich;

using Clock = std::chrono::steady_clock;

class ApiServer::Implementation {
public:
  Implementation(ApiServerOptions options,
                 std::unique_ptr<ModelRegistry> registry,
                 std::shared_ptr<MemoryLedger> ledger)
      : options(std::move(options)), ledger(std::move(ledger)),
        workers(std::max(1u, this->options.workers)),
        models(std::move(registry)),
        context{.models = *models, .keepsPrompts = this->options.logsPrompts} {
    randombytes_buf(&firstId, sizeof(firstId));
    context.onOver = [this](RequestRecord record) {
      models->count(record);
      if (this->options.requestLog)
        this->options.requestLog->add(std::move(record));
    };
    context.executor = [this](std::function<void()> work) {
      boost::asio::post(workers, [this, work = std::move(work)] {
        runCatching("answer a request", work, [this](const char *reason) {
          report(this->options.log, LogLevel::Warning, reason);
        });
      });
    };
  }
  ~Implementation();

  Status listen();
  Status load();
  void tick();
  Status check() const;
  bool drain(double seconds);
  void stop();
  bool isOpenToAll() const;

  std::unique_ptr<HttpServer> http;

private:
  /// A path of the API, and who answers.
  struct Route {
    std::string_view path;
    std::string_view method;
    /// At once, on the thread of all connections.
    HttpResponse (Implementation::*respond)(const HttpRequest &) const =
        nullptr;
    /// Or a worker.
    void (*answer)(Call &call, const EndpointContext &context) = nullptr;
    /// Without a key.
    bool isOpen = false;
    /// It has a line in the log.
    bool givesTexts = false;
  };
  static const std::vector<Route> &routes();
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  HttpResponse refusal(const HttpRequest &request, const Route *route) const;
  bool checksHost(const HttpRequest &request) const;
  const Route *findRoute(const HttpRequest &request) const;
  void dispatch(const Route &route, HttpRequest request,
                std::shared_ptr<HttpExchange> exchange);
  std::string nextId();

  /// A model that was served and failed, or null.
  const ServedModel *findFailed() const;
  HttpResponse health(const HttpRequest &request) const;
  HttpResponse ready(const HttpRequest &request) const;
  HttpResponse status(const HttpRequest &request) const;
  HttpResponse metrics(const HttpRequest &request) const;
  HttpResponse version(const HttpRequest &request) const;
  HttpResponse info(const HttpRequest &request) const;
  HttpResponse page(const HttpRequest &request) const;
  HttpResponse allModels(const HttpRequest &request) const;
  HttpResponse oneModel(const HttpRequest &request) const;

  ApiServerOptions options;
  /// Of several models.
  const std::shared_ptr<MemoryLedger> ledger;
  /// Models that end may still leave work here.
  boost::asio::thread_pool workers;
  const std::unique_ptr<ModelRegistry> models;
  EndpointContext context;
  const Clock::time_point start = Clock::now();
  uint64_t firstId = 0;
  std::atomic<uint64_t> lastId = 0;
  std::atomic<bool> draining = false;
  /// Of requests that wait for a worker.
  std::atomic<size_t> queuedCalls = 0;
  std::atomic<size_t> queuedBytes = 0;
  mutable std::mutex watchdogMutex;
  /// By model.
  std::map<std::string, ServiceWatchdog> watchdogs;
};

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

/// Names of models follow it.
static constexpr std::string_view modelPrefix = "/v1/models/";

const std::vector<ApiServer::Implementation::Route> &
ApiServer::Implementation::routes() {
  using Self = Implementation;
  static const std::vector<Route> all = {
      {"/v1/completions", "POST", nullptr, answerCompletion, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/v1/chat/completions", "POST", nullptr, answerChat, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/v1/embeddings", "POST", nullptr, answerEmbeddings, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/v1/rerank", "POST", nullptr, answerRerank, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/embed", "POST", nullptr, answerTeiEmbed, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/embed_all", "POST", nullptr, answerTeiEmbedAll, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/rerank", "POST", nullptr, answerTeiRerank, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/similarity", "POST", nullptr, answerTeiSimilarity, /*isOpen=*/false,
       /*givesTexts=*/true},
      {"/info", "GET", &Self::info},
      {"/tokenize", "POST", nullptr, answerTokenize},
      {"/detokenize", "POST", nullptr, answerDetokenize},
      {"/v1/models", "GET", &Self::allModels},
      {modelPrefix, "GET", &Self::oneModel},
      {"/health", "GET", &Self::health, nullptr, /*isOpen=*/true},
      {"/ready", "GET", &Self::ready, nullptr, /*isOpen=*/true},
      {"/status", "GET", &Self::status},
      {"/metrics", "GET", &Self::metrics},
      {"/version", "GET", &Self::version},
      {"/", "GET", &Self::page},
  };
  return all;
}

const ApiServer::Implementation::Route *
ApiServer::Implementation::findRoute(const HttpRequest &request) const {
  for (const Route &route : routes())
    if (request.path == route.path ||
        (route.path == modelPrefix && request.path.starts_with(modelPrefix) &&
         request.path.size() > modelPrefix.size()))
      return &route;
  return nullptr;
}

/// Whether the body is said to be JSON. Browsers send other types to servers
/// that they were not told by a page of that server; those are not taken.
static bool isJson(const HttpRequest &request) {
  const std::string_view type = request.header("Content-Type").value_or("");
  return boost::beast::iequals(type.substr(0, type.find_first_of("; \t")),
                               "application/json");
}

static HttpResponse keyRefusal(const HttpRequest &request) {
  HttpResponse response = toResponse(ApiError::invalidKey());
  // A browser that opens the page asks a person.
  if (request.path == "/")
    response.headers.back().second = "Basic realm=\"sandwich: the password is "
                                     "an API key\"";
  return response;
}

bool ApiServer::Implementation::isOpenToAll() const {
  return options.keys.empty() && !http->isLocal();
}

/// Where anybody on this machine may ask, so may a page of any site that a
/// browser here shows, once it has its own name point to this machine.
bool ApiServer::Implementation::checksHost(const HttpRequest &request) const {
  return options.keys.empty() &&
         (request.isFromLoopback || options.allowedHosts.hasNames());
}

/// The answer to what nobody handles. Status 0: it can be handled.
HttpResponse ApiServer::Implementation::refusal(const HttpRequest &request,
                                                const Route *route) const {
  if (!(route && route->isOpen)) {
    if (!options.keys.allow(request))
      return keyRefusal(request);
    if (checksHost(request) && !options.allowedHosts.allow(request))
      return toResponse(ApiError::unknownHost(
          std::string(request.header("Host").value_or(""))));
  }
  if (!route)
    return toResponse(ApiError::unknownPath(request.path));
  if (request.method != route->method) {
    HttpResponse response = toResponse(
        ApiError::unknownMethod(request.method, std::string(route->method)));
    response.headers.emplace_back("Allow", route->method == "GET"
                                               ? "GET, HEAD"
                                               : std::string(route->method));
    return response;
  }
  if (route->answer && !isJson(request))
    return toResponse(ApiError::ofStatus(
        415, "the request's Content-Type must be application/json"));
  if (route->answer && draining)
    return toResponse(
        ApiError::unavailable("this server is shutting down; try another"));
  return {.status = 0};
}

void ApiServer::Implementation::handle(HttpRequest request,
                                       std::shared_ptr<HttpExchange> exchange) {
  const Route *route = findRoute(request);
  if (HttpResponse refused = refusal(request, route); refused.status != 0) {
    (void)exchange->respond(std::move(refused));
    return;
  }
  if (route->respond) {
    (void)exchange->respond((this->*route->respond)(request));
    return;
  }
  dispatch(*route, std::move(request), std::move(exchange));
}

std::string ApiServer::Implementation::nextId() {
  char text[40];
  std::snprintf(text, sizeof(text), "%016llx%08llx",
                static_cast<unsigned long long>(firstId),
                static_cast<unsigned long long>(++lastId));
  return text;
}

/// Requests, and bytes of them, that may wait for a worker.
static constexpr size_t mostQueuedCalls = 512;
static constexpr size_t mostQueuedBytes = size_t{256} << 20;

void ApiServer::Implementation::dispatch(
    const Route &route, HttpRequest request,
    std::shared_ptr<HttpExchange> exchange) {
  const size_t bytes = request.body.size();
  auto call = std::make_shared<Call>(Call{.request = std::move(request),
                                          .exchange = std::move(exchange),
                                          .receivedAt = Clock::now(),
                                          .id = nextId()});
  const auto fail = [this, call,
                     isTold = route.givesTexts](const ApiError &error) {
    if (call->exchange->respond(toResponse(error)) && isTold)
      tellUnserved(*call, context, "", error.status, error.message);
  };
  if (queuedCalls >= mostQueuedCalls ||
      (queuedBytes > 0 && bytes + queuedBytes > mostQueuedBytes))
    return fail(ApiError::overloaded(
        "more requests come than can be read; try again later", 1));
  ++queuedCalls;
  queuedBytes += bytes;
  auto left = std::make_shared<std::atomic<bool>>(false);
  call->exchange->onClosed([left] { *left = true; });
  boost::asio::post(workers, [this, call, left, bytes, fail, &route] {
    --queuedCalls;
    queuedBytes -= bytes;
    runCatching(
        "answer a request",
        [&] {
          if (!*left)
            return route.answer(*call, context);
          if (route.givesTexts)
            tellUnserved(*call, context, "", RequestRecord::clientLeft,
                         "the client left");
        },
        [&](const char *reason) {
          fail(ApiError::ofStatus(500, reason));
          report(options.log, LogLevel::Warning, reason);
        });
  });
}

//===----------------------------------------------------------------------===//
// How it is
//===----------------------------------------------------------------------===//

/// Of a model that can be asked no more, or of none.
static Status checkRunning(const ServedModel &model) {
  const LoadedModel *loaded = model.loaded();
  return loaded ? loaded->service->checkRunning() : Status();
}

const ServedModel *ApiServer::Implementation::findFailed() const {
  for (const std::unique_ptr<ServedModel> &model : models->models())
    if (!checkRunning(*model))
      return model.get();
  return nullptr;
}

Status ApiServer::Implementation::check() const {
  Status first;
  for (const std::unique_ptr<ServedModel> &model : models->models()) {
    const Status running = checkRunning(*model);
    if (running)
      return {};
    if (first)
      first = running.error().inContext(model->name());
  }
  return first;
}

HttpResponse ApiServer::Implementation::health(const HttpRequest &) const {
  std::lock_guard lock(watchdogMutex);
  for (const auto &[name, watchdog] : watchdogs)
    if (watchdog.stalled())
      return toResponse(Json{{"status", "stalled"}, {"model", name}}, 503);
  if (const ServedModel *failed = findFailed())
    return toResponse(Json{{"status", "failed"}, {"model", failed->name()}},
                      503);
  return toResponse(Json{{"status", "ok"}});
}

HttpResponse ApiServer::Implementation::ready(const HttpRequest &) const {
  if (draining)
    return toResponse(Json{{"status", "draining"}}, 503);
  if (!models->allReady())
    return toResponse(Json{{"status", "loading"}}, 503);
  if (const ServedModel *failed = findFailed())
    return toResponse(Json{{"status", "failed"}, {"model", failed->name()}},
                      503);
  return toResponse(Json{{"status", "ready"}});
}

HttpResponse ApiServer::Implementation::status(const HttpRequest &) const {
  return toResponse(describeStatus(*models, secondsSince(start), draining));
}

HttpResponse ApiServer::Implementation::metrics(const HttpRequest &) const {
  return {.contentType = "text/plain; version=0.0.4; charset=utf-8",
          .body = models->metricsText(
              options.requestLog ? std::optional(options.requestLog->lost())
                                 : std::nullopt)};
}

HttpResponse ApiServer::Implementation::version(const HttpRequest &) const {
  return toResponse(Json{{"version", SANDWICH_VERSION}});
}

HttpResponse ApiServer::Implementation::info(const HttpRequest &) const {
  return describeEncoder(*models, options.workers);
}

HttpResponse ApiServer::Implementation::page(const HttpRequest &) const {
  return {.contentType = "text/html; charset=utf-8",
          .body = std::string(chatPage()),
          .headers = {
              {"Content-Security-Policy", contentSecurityPolicy(chatPage())},
              {"X-Content-Type-Options", "nosniff"},
              {"Referrer-Policy", "no-referrer"}}};
}

HttpResponse ApiServer::Implementation::allModels(const HttpRequest &) const {
  return listModels(*models);
}

HttpResponse
ApiServer::Implementation::oneModel(const HttpRequest &request) const {
  const std::string name = request.path.substr(modelPrefix.size());
  const std::optional<std::string> decoded = decodePercents(name);
  return describeModel(*models, decoded.value_or(name));
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

Status ApiServer::Implementation::listen() {
  HttpServerOptions http = options.http;
  http.log = options.log;
  http.describeError = [](unsigned status, std::string message) {
    return toResponse(ApiError::ofStatus(status, std::move(message)));
  };
  SANDWICH_ASSIGN_OR_RETURN(
      this->http,
      HttpServer::create(
          std::move(http),
          [this](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
            handle(std::move(request), std::move(exchange));
          }));
  return {};
}

/// A model that is alone has the machine to itself.
static Status share(std::vector<ServedModelOptions> &models,
                    std::shared_ptr<MemoryLedger> &ledger) {
  if (models.empty() || (models.size() == 1 && models.front().draft.empty()))
    return {};
  ledger = std::make_shared<MemoryLedger>();
  SANDWICH_ASSIGN_OR_RETURN(const std::shared_ptr<CoreArbiter> arbiter,
                            CoreArbiter::create());
  for (ServedModelOptions &model : models) {
    model.engine.memoryLedger = ledger;
    model.engine.coreArbiter = arbiter;
  }
  return {};
}

Status ApiServer::Implementation::load() {
  // All are told to the ledger before the first one takes anything.
  for (const std::unique_ptr<ServedModel> &model : models->models())
    SANDWICH_RETURN_IF_ERROR(model->open(ledger.get()));
  for (const std::unique_ptr<ServedModel> &model : models->models()) {
    if (Status loaded = model->load(); !loaded)
      return loaded;
    report(options.log, LogLevel::Information,
           "'" + model->name() + "' is ready");
  }
  return {};
}

void ApiServer::Implementation::tick() {
  for (const std::unique_ptr<ServedModel> &model : models->models()) {
    bool hasWork = false;
    uint64_t steps = 0;
    if (const LoadedModel *loaded = model->loaded()) {
      const SchedulerStatistics now = loaded->service->statistics().scheduler;
      hasWork = now.runningRequests + now.waitingRequests > 0;
      steps = now.steps;
    } else if (const LoadedEncoder *encoder = model->encoder()) {
      const EncodingCounts now = encoder->service->counts();
      hasWork = now.runningTexts + now.waitingTexts > 0;
      steps = now.batches;
    } else {
      continue;
    }
    std::lock_guard lock(watchdogMutex);
    ServiceWatchdog &watchdog =
        watchdogs.try_emplace(model->name(), options.stallSeconds)
            .first->second;
    const auto verdict = watchdog.look(secondsSince(start), hasWork, steps);
    if (!verdict)
      continue;
    const std::string seconds =
        std::to_string(static_cast<int64_t>(verdict->seconds));
    report(options.log, LogLevel::Warning,
           "'" + model->name() + "' " +
               (verdict->stalled
                    ? "has work, and no step of it ended for " + seconds + " s"
                    : "goes on, after " + seconds + " s without a step"));
  }
}

bool ApiServer::Implementation::drain(double seconds) {
  draining = true;
  http->endConnections();
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(seconds));
  // What workers have not submitted yet is refused by the services.
  bool all = true;
  for (const std::unique_ptr<ServedModel> &model : models->models()) {
    const double left = std::max(
        std::chrono::duration<double>(end - Clock::now()).count(), 0.0);
    if (const LoadedModel *loaded = model->loaded())
      all &= loaded->service->drainWithin(left);
    if (const LoadedEncoder *encoder = model->encoder())
      all &= encoder->service->drainWithin(left);
  }
  // Answers are on their way to their clients.
  constexpr std::chrono::milliseconds often(5);
  const Clock::time_point sent =
      std::max(end, Clock::now() + std::chrono::seconds(2));
  while (http->answering() > 0 && Clock::now() < sent)
    std::this_thread::sleep_for(often);
  return all && http->answering() == 0;
}

void ApiServer::Implementation::stop() {
  http->stop();
  if (options.requestLog)
    options.requestLog->flush();
}

ApiServer::Implementation::~Implementation() {
  // First nobody comes any more, then nobody answers, then nothing computes.
  if (http)
    http->stop();
  workers.join();
}

//===----------------------------------------------------------------------===//
// ApiServer
//===----------------------------------------------------------------------===//

ApiServer::ApiServer(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}

ApiServer::~ApiServer() = default;

Result<std::unique_ptr<ApiServer>> ApiServer::create(ApiServerOptions options) {
  if (sodium_init() < 0)
    return makeError("the system gives no random numbers");
  std::shared_ptr<MemoryLedger> ledger;
  SANDWICH_RETURN_IF_ERROR(share(options.models, ledger));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<ModelRegistry> models,
                            ModelRegistry::create(std::move(options.models),
                                                  std::move(options.aliases)));
  auto made = std::make_unique<Implementation>(
      std::move(options), std::move(models), std::move(ledger));
  SANDWICH_RETURN_IF_ERROR(made->listen());
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(made)));
}

const std::string &ApiServer::address() const {
  return implementation->http->address();
}

Status ApiServer::load() { return implementation->load(); }

void ApiServer::tick() { implementation->tick(); }

void ApiServer::stop() { implementation->stop(); }

Status ApiServer::check() const { return implementation->check(); }

bool ApiServer::isOpenToAll() const { return implementation->isOpenToAll(); }

bool ApiServer::drain(double seconds) { return implementation->drain(seconds); }
