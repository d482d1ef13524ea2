//===- RemoteDevice.cpp - A server as a device ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Remote/RemoteDevice.h"

#include "sandwich/Http/EventLoop.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Process.h"

#include <algorithm>
#include <thread>

using namespace sandwich;

Status RemoteDeviceOptions::validate() const {
  SANDWICH_RETURN_IF_ERROR(facts.validate());
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the time to connect", connectSeconds));
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the time to answer", answerSeconds));
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("the time of an unused connection", idleSeconds));
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("the time between two attempts", retrySeconds));
  SANDWICH_RETURN_IF_ERROR(breaker.validate());
  if (connections < 1)
    return makeError(ErrorKind::InvalidArgument,
                     "a server needs at least one connection");
  if (connectAttempts < 1)
    return makeError(ErrorKind::InvalidArgument,
                     "a connection must be tried at least once");
  if (!healthPath.starts_with('/'))
    return makeError(ErrorKind::InvalidArgument, "the health path is '",
                     healthPath, "'; it must begin with a slash");
  const auto bytes = mostAnswerBytes(facts.batchQueries, facts.dimensions);
  if (!bytes || *bytes > maxRemoteAnswerBytes)
    return makeError(ErrorKind::InvalidArgument, "answers of ",
                     facts.batchQueries, " embeddings of ", facts.dimensions,
                     " numbers may have more than ", maxRemoteAnswerBytes,
                     " bytes");
  return {};
}

//===----------------------------------------------------------------------===//
// Implementation
//===----------------------------------------------------------------------===//

class RemoteDevice::Implementation {
public:
  Implementation(RemoteDeviceOptions given, const CircuitBreaker &breaker)
      : options(std::move(given)), breaker(breaker) {
    HttpClientOptions client;
    client.server = options.server;
    client.resendUnanswered = false;
    client.limits.connections = options.connections;
    client.limits.connectSeconds = options.connectSeconds;
    client.limits.pauseSeconds = options.answerSeconds;
    client.limits.totalSeconds = options.connectSeconds + options.answerSeconds;
    client.limits.idleSeconds = options.idleSeconds;
    // Of which less is taken: what the batch may have.
    client.limits.bodyBytes = maxRemoteAnswerBytes;
    http = HttpClient::create(std::move(client), loop);
  }
  ~Implementation();

  Status begin();
  void submit(DeviceBatch batch, BatchCompletion completion);
  void probe(ProbeCompletion completion);

  const RemoteDeviceOptions options;

private:
  /// A batch, or a probe, whose batch is empty.
  struct Call {
    DeviceBatch batch = {};
    BatchCompletion completion = {};
    ProbeCompletion probed = {};
    uint32_t attempts = 0;
    size_t mostBytes = 0;
    // Of the answer.
    unsigned status = 0;
    std::optional<double> retryAfterSeconds = std::nullopt;
    std::string body = {};
    bool tooLarge = false;
  };
  using SharedCall = std::shared_ptr<Call>;

  double now() const { return secondsSince(origin); }
  HttpRequest makeRequest(const Call &call) const;
  void send(const SharedCall &call);
  void end(const SharedCall &call, const HttpFailure *failure);
  BatchAnswer read(const Call &call, const HttpFailure *failure) const;
  void tell(Call &call, BatchAnswer answer);

  const std::chrono::steady_clock::time_point origin =
      std::chrono::steady_clock::now();
  // All that follows is the loop's thread's.
  EventLoop loop;
  std::unique_ptr<HttpClient> http;
  CircuitBreaker breaker;
  std::thread thread;
};

Status RemoteDevice::Implementation::begin() {
  SANDWICH_ASSIGN_OR_RETURN(thread,
                            startThread("device '" + options.facts.name + "'",
                                        [this] { loop.run(); }));
  return {};
}

RemoteDevice::Implementation::~Implementation() {
  if (thread.joinable()) {
    loop.stop();
    thread.join();
  }
  // Before the loop; nobody is called back any more.
  http.reset();
}

void RemoteDevice::Implementation::submit(DeviceBatch batch,
                                          BatchCompletion completion) {
  auto call = std::make_shared<Call>();
  // The sizes were checked for the largest batch of all.
  call->mostBytes = mostAnswerBytes(batch.size(), options.facts.dimensions)
                        .value_or(maxRemoteAnswerBytes);
  call->batch = std::move(batch);
  call->completion = std::move(completion);
  loop.post([this, call] {
    if (breaker.allow(now()))
      return send(call);
    tell(*call, {.error = DeviceError{DeviceErrorKind::Unreachable,
                                      "it failed too often and is left alone "
                                      "for a while"}});
  });
}

void RemoteDevice::Implementation::probe(ProbeCompletion completion) {
  auto call = std::make_shared<Call>();
  call->mostBytes = *mostAnswerBytes(0, options.facts.dimensions);
  call->probed = std::move(completion);
  loop.post([this, call] {
    breaker.beginTrial();
    send(call);
  });
}

HttpRequest RemoteDevice::Implementation::makeRequest(const Call &call) const {
  HttpRequest request;
  if (!options.apiKey.empty())
    request.headers.emplace_back("Authorization", "Bearer " + options.apiKey);
  if (call.probed) {
    request.method = "GET";
    request.path = options.healthPath;
    return request;
  }
  request.method = "POST";
  request.path = pathOf(options.api);
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = makeEmbeddingRequest(options.api, options.encoding,
                                      options.model, call.batch);
  return request;
}

void RemoteDevice::Implementation::send(const SharedCall &call) {
  ++call->attempts;
  http->send(
      makeRequest(*call),
      {.onHead =
           [call](const HttpResponseHead &head) {
             call->status = head.status;
             if (const auto value = head.header("Retry-After"))
               call->retryAfterSeconds = parseRetryAfter(*value);
           },
       .onBody =
           [call](std::string_view piece) {
             if (piece.size() > call->mostBytes - call->body.size()) {
               call->tooLarge = true;
               return false;
             }
             call->body += piece;
             return true;
           },
       .onEnd = [this,
                 call](const HttpFailure *failure) { end(call, failure); }});
}

void RemoteDevice::Implementation::end(const SharedCall &call,
                                       const HttpFailure *failure) {
  if (failure && failure->kind == HttpFailureKind::NotConnected &&
      call->attempts < options.connectAttempts) {
    loop.callAt(EventLoop::Clock::now() +
                    std::chrono::duration_cast<EventLoop::Clock::duration>(
                        std::chrono::duration<double>(options.retrySeconds)),
                [this, call] { send(call); });
    return;
  }
  BatchAnswer answer = read(*call, failure);
  // Whoever says that it is busy, or what is wrong, is there.
  const bool isThere = !answer.error ||
                       answer.error->kind == DeviceErrorKind::Busy ||
                       answer.error->kind == DeviceErrorKind::Rejected;
  if (isThere)
    breaker.succeed();
  else
    breaker.fail(now());
  tell(*call, std::move(answer));
}

static DeviceErrorKind kindOf(HttpFailureKind kind) {
  switch (kind) {
  case HttpFailureKind::NotConnected:
    return DeviceErrorKind::Unreachable;
  case HttpFailureKind::TimedOut:
    return DeviceErrorKind::TimedOut;
  case HttpFailureKind::Protocol:
  case HttpFailureKind::TooLarge:
    return DeviceErrorKind::WrongAnswer;
  case HttpFailureKind::Broken:
  case HttpFailureKind::Cancelled:
    break;
  }
  return DeviceErrorKind::Failed;
}

BatchAnswer
RemoteDevice::Implementation::read(const Call &call,
                                   const HttpFailure *failure) const {
  const auto fail = [&](DeviceErrorKind kind, std::string message) {
    return BatchAnswer{
        .error = DeviceError{kind, std::move(message), call.retryAfterSeconds}};
  };
  if (call.tooLarge)
    return fail(DeviceErrorKind::WrongAnswer,
                makeError("the answer has more than ", call.mostBytes, " bytes")
                    .message);
  if (failure)
    return fail(kindOf(failure->kind), failure->message);
  // What a server says of its errors may hold what its users sent.
  const std::string status =
      makeError("the server answers with status ", call.status).message;
  if (call.status == 429)
    return fail(DeviceErrorKind::Busy, status);
  if (!call.probed &&
      (call.status == 400 || call.status == 413 || call.status == 422))
    return fail(DeviceErrorKind::Rejected, status);
  if (call.status < 200 || call.status >= 300)
    return fail(DeviceErrorKind::Failed, status);
  if (call.probed)
    return {};
  auto embeddings = parseEmbeddings(options.api, call.body, call.batch.size(),
                                    options.facts.dimensions);
  if (!embeddings)
    return fail(DeviceErrorKind::WrongAnswer, embeddings.error().message);
  return {.embeddings = *std::move(embeddings)};
}

void RemoteDevice::Implementation::tell(Call &call, BatchAnswer answer) {
  if (call.probed)
    call.probed(std::move(answer.error));
  else
    call.completion(std::move(answer));
}

//===----------------------------------------------------------------------===//
// RemoteDevice
//===----------------------------------------------------------------------===//

RemoteDevice::RemoteDevice(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}

RemoteDevice::~RemoteDevice() = default;

Result<std::unique_ptr<RemoteDevice>>
RemoteDevice::create(RemoteDeviceOptions options) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  SANDWICH_ASSIGN_OR_RETURN(
      CircuitBreaker breaker,
      CircuitBreaker::create(options.breaker, options.seed));
  auto made = std::make_unique<Implementation>(std::move(options), breaker);
  SANDWICH_RETURN_IF_ERROR(made->begin());
  return std::unique_ptr<RemoteDevice>(new RemoteDevice(std::move(made)));
}

const DeviceFacts &RemoteDevice::facts() const {
  return implementation->options.facts;
}

void RemoteDevice::submit(DeviceBatch batch, BatchCompletion completion) {
  implementation->submit(std::move(batch), std::move(completion));
}

void RemoteDevice::probe(ProbeCompletion completion) {
  implementation->probe(std::move(completion));
}
