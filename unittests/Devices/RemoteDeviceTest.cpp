//===- RemoteDeviceTest.cpp - A server as a device ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Remote/RemoteDevice.h"

#include "Outcomes.h"
#include "sandwich/Devices/TimedSimulatedDevice.h"
#include "sandwich/Http/HttpServer.h"
#include "sandwich/Support/Json.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

using namespace sandwich;
using namespace sandwich::test;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t dimensions = 4;

/// What a server of embeddings does at the moment.
enum class Behaviour {
  Answer,
  /// As TEI does.
  AnswerLists,
  Slow,
  /// No answer at all; the exchange is kept.
  Hang,
  /// The connection ends instead of an answer.
  Drop,
  /// 429, to come again after two seconds.
  Busy,
  /// Embeddings of fewer queries, of other dimensions, no JSON, too long.
  TooFew,
  TooShort,
  Garbage,
  TooLong,
  BadRequest,
  InternalError,
  /// The health is not well either.
  Unready,
};

/// A server of embeddings at a port that stays when it is killed and started
/// again.
class StubServer {
public:
  explicit StubServer(uint16_t port = 0) { start(port); }

  void start(uint16_t at) {
    HttpServerOptions options;
    options.port = at;
    auto made = HttpServer::create(
        std::move(options),
        [this](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
          handle(std::move(request), std::move(exchange));
        });
    ASSERT_TRUE(made) << made.error().message;
    server = *std::move(made);
    port = server->port();
  }
  void kill() { server.reset(); }
  void restart() { start(port); }

  std::atomic<Behaviour> behaviour = Behaviour::Answer;
  std::atomic<size_t> requests = 0, probes = 0;
  uint16_t port = 0;

  HttpRequest last() {
    const std::lock_guard lock(mutex);
    return lastRequest;
  }

private:
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    const Behaviour now = behaviour;
    if (request.path == "/health") {
      ++probes;
      (void)exchange->respond(
          {.status = now == Behaviour::Unready ? 503u : 200u});
      return;
    }
    ++requests;
    {
      const std::lock_guard lock(mutex);
      lastRequest = request;
    }
    switch (now) {
    case Behaviour::Hang: {
      const std::lock_guard lock(mutex);
      kept.push_back(std::move(exchange));
      return;
    }
    case Behaviour::Drop:
      return;
    case Behaviour::Slow:
      std::this_thread::sleep_for(20ms);
      break;
    case Behaviour::Busy:
      (void)exchange->respond(
          {.status = 429, .headers = {{"Retry-After", "2"}}});
      return;
    case Behaviour::Garbage:
      (void)exchange->respond({.body = "<html>"});
      return;
    case Behaviour::TooLong:
      (void)exchange->respond({.body = std::string(1 << 20, ' ')});
      return;
    case Behaviour::BadRequest:
      (void)exchange->respond({.status = 400});
      return;
    case Behaviour::InternalError:
    case Behaviour::Unready:
      (void)exchange->respond({.status = 500});
      return;
    default:
      break;
    }
    (void)exchange->respond({.body = embed(request.body, now)});
  }

  static std::string embed(const std::string &body, Behaviour now) {
    const auto request = parseJson(body);
    const bool lists = now == Behaviour::AnswerLists;
    Json data = Json::array();
    for (const Json &tokens : (*request)[lists ? "inputs" : "input"]) {
      Embedding embedding = TimedSimulatedDevice::embed(
          tokens.get<std::vector<int32_t>>(), dimensions);
      if (now == Behaviour::TooShort)
        embedding.pop_back();
      if (lists)
        data.push_back(embedding);
      else
        data.push_back({{"index", data.size()}, {"embedding", embedding}});
    }
    if (now == Behaviour::TooFew)
      data.erase(data.size() - 1);
    return lists ? data.dump() : Json{{"data", data}}.dump();
  }

  std::mutex mutex;
  HttpRequest lastRequest;
  std::vector<std::shared_ptr<HttpExchange>> kept;
  // Last, so that it ends before what its handler uses.
  std::unique_ptr<HttpServer> server;
};

RemoteDeviceOptions optionsFor(const StubServer &server) {
  RemoteDeviceOptions options;
  options.facts = {.name = "remote",
                   .kind = DeviceKind::Accelerator,
                   .dimensions = dimensions,
                   .batchQueries = 64};
  options.server = {.host = "127.0.0.1", .port = server.port};
  options.model = "bge";
  options.answerSeconds = 5;
  options.retrySeconds = 0.005;
  options.breaker = {.failures = 1000, .openSeconds = 0.05, .jitter = 0};
  return options;
}

std::unique_ptr<RemoteDevice> make(RemoteDeviceOptions options) {
  auto device = RemoteDevice::create(std::move(options));
  EXPECT_TRUE(device) << device.error().message;
  return device ? *std::move(device) : nullptr;
}

std::future<BatchAnswer> submit(Device &device, size_t queries = 2) {
  DeviceBatch batch;
  for (size_t i = 0; i < queries; ++i)
    batch.push_back({i, std::make_shared<const std::vector<int32_t>>(
                            std::vector<int32_t>{static_cast<int32_t>(i), 7})});
  auto answer = std::make_shared<std::promise<BatchAnswer>>();
  device.submit(std::move(batch), [answer](BatchAnswer told) {
    answer->set_value(std::move(told));
  });
  return answer->get_future();
}

DeviceErrorKind errorOf(Device &device) {
  const BatchAnswer answer = submit(device).get();
  EXPECT_TRUE(answer.error);
  EXPECT_TRUE(answer.embeddings.empty());
  return answer.error ? answer.error->kind : DeviceErrorKind::Failed;
}

bool isAlive(Device &device) {
  auto alive = std::make_shared<std::promise<bool>>();
  device.probe(
      [alive](std::optional<DeviceError> error) { alive->set_value(!error); });
  return alive->get_future().get();
}

void expectEmbeddings(const BatchAnswer &answer, size_t queries) {
  EXPECT_FALSE(answer.error) << answer.error->message;
  ASSERT_EQ(answer.embeddings.size(), queries);
  for (size_t i = 0; i < queries; ++i) {
    const std::vector<int32_t> tokens = {static_cast<int32_t>(i), 7};
    EXPECT_EQ(answer.embeddings[i],
              TimedSimulatedDevice::embed(tokens, dimensions));
  }
}

} // namespace

TEST(RemoteDeviceTest, SpeaksOpenAI) {
  StubServer server;
  RemoteDeviceOptions options = optionsFor(server);
  options.apiKey = "secret";
  options.server.basePath = "/base";
  const auto device = make(std::move(options));
  expectEmbeddings(submit(*device, 3).get(), 3);
  const HttpRequest request = server.last();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/base/v1/embeddings");
  EXPECT_EQ(request.header("Authorization"), "Bearer secret");
  EXPECT_EQ(request.header("Content-Type"), "application/json");
  EXPECT_EQ(request.body, R"({"model":"bge","encoding_format":"base64",)"
                          R"("input":[[0,7],[1,7],[2,7]]})");
}

TEST(RemoteDeviceTest, SpeaksTEI) {
  StubServer server;
  server.behaviour = Behaviour::AnswerLists;
  RemoteDeviceOptions options = optionsFor(server);
  options.api = EmbeddingApi::TextEmbeddingsInference;
  const auto device = make(std::move(options));
  expectEmbeddings(submit(*device).get(), 2);
  EXPECT_EQ(server.last().path, "/embed");
}

TEST(RemoteDeviceTest, BatchesGoOverSeveralConnections) {
  StubServer server;
  const auto device = make(optionsFor(server));
  std::vector<std::future<BatchAnswer>> answers;
  for (int i = 0; i < 32; ++i)
    answers.push_back(submit(*device));
  for (std::future<BatchAnswer> &answer : answers)
    expectEmbeddings(answer.get(), 2);
  EXPECT_EQ(server.requests, 32u);
}

TEST(RemoteDeviceTest, TellsWhatHappened) {
  StubServer server;
  RemoteDeviceOptions options = optionsFor(server);
  options.answerSeconds = 0.1;
  const auto device = make(std::move(options));
  const std::pair<Behaviour, DeviceErrorKind> cases[] = {
      {Behaviour::Hang, DeviceErrorKind::TimedOut},
      {Behaviour::Drop, DeviceErrorKind::Failed},
      {Behaviour::TooFew, DeviceErrorKind::WrongAnswer},
      {Behaviour::TooShort, DeviceErrorKind::WrongAnswer},
      {Behaviour::Garbage, DeviceErrorKind::WrongAnswer},
      {Behaviour::TooLong, DeviceErrorKind::WrongAnswer},
      {Behaviour::BadRequest, DeviceErrorKind::Rejected},
      {Behaviour::InternalError, DeviceErrorKind::Failed}};
  for (const auto &[behaviour, kind] : cases) {
    server.behaviour = behaviour;
    EXPECT_EQ(errorOf(*device), kind) << static_cast<int>(behaviour);
  }
  server.behaviour = Behaviour::Answer;
  expectEmbeddings(submit(*device).get(), 2);
}

TEST(RemoteDeviceTest, BusyServersTellForHowLong) {
  StubServer server;
  server.behaviour = Behaviour::Busy;
  const auto device = make(optionsFor(server));
  const BatchAnswer answer = submit(*device).get();
  EXPECT_EQ(answer.error.value().kind, DeviceErrorKind::Busy);
  EXPECT_EQ(answer.error->retryAfterSeconds, 2);
}

/// A request that was sent may have been done: it is not sent again, not even
/// where the connection was used before.
TEST(RemoteDeviceTest, SendsNothingTwice) {
  StubServer server;
  const auto device = make(optionsFor(server));
  expectEmbeddings(submit(*device).get(), 2);
  server.behaviour = Behaviour::Drop;
  EXPECT_EQ(errorOf(*device), DeviceErrorKind::Failed);
  EXPECT_EQ(server.requests, 2u);
}

/// Nothing was sent: it is tried again, and the server is there by then.
TEST(RemoteDeviceTest, TriesRefusedConnectionsAgain) {
  StubServer server;
  server.kill();
  RemoteDeviceOptions options = optionsFor(server);
  options.connectAttempts = 1000;
  const auto device = make(std::move(options));
  std::future<BatchAnswer> answer = submit(*device);
  EXPECT_EQ(answer.wait_for(30ms), std::future_status::timeout);
  server.restart();
  expectEmbeddings(answer.get(), 2);
  EXPECT_EQ(server.requests, 1u);
}

TEST(RemoteDeviceTest, IsUnreachableWhenItsServerIsKilled) {
  StubServer server;
  const auto device = make(optionsFor(server));
  EXPECT_TRUE(isAlive(*device));
  server.kill();
  EXPECT_EQ(errorOf(*device), DeviceErrorKind::Unreachable);
  EXPECT_FALSE(isAlive(*device));
  server.restart();
  EXPECT_TRUE(isAlive(*device));
  server.behaviour = Behaviour::Unready;
  EXPECT_FALSE(isAlive(*device));
}

/// Closed, open, half open, and back.
TEST(RemoteDeviceTest, LeavesAServerAloneThatFailsTooOften) {
  StubServer server;
  RemoteDeviceOptions options = optionsFor(server);
  options.breaker.failures = 2;
  const auto device = make(std::move(options));
  server.behaviour = Behaviour::InternalError;
  EXPECT_EQ(errorOf(*device), DeviceErrorKind::Failed);
  EXPECT_EQ(errorOf(*device), DeviceErrorKind::Failed);
  EXPECT_EQ(errorOf(*device), DeviceErrorKind::Unreachable);
  EXPECT_EQ(server.requests, 2u);
  // The time of a trial, which fails.
  std::this_thread::sleep_for(60ms);
  EXPECT_EQ(errorOf(*device), DeviceErrorKind::Failed);
  EXPECT_EQ(errorOf(*device), DeviceErrorKind::Unreachable);
  EXPECT_EQ(server.requests, 3u);
  // A probe is a trial, whenever it comes.
  server.behaviour = Behaviour::Answer;
  EXPECT_TRUE(isAlive(*device));
  expectEmbeddings(submit(*device).get(), 2);
}

TEST(RemoteDeviceTest, EndsWithBatchesUnderWay) {
  StubServer server;
  server.behaviour = Behaviour::Hang;
  const auto device = make(optionsFor(server));
  std::atomic<bool> told = false;
  device->submit({{0, std::make_shared<const std::vector<int32_t>>(1, 1)}},
                 [&](BatchAnswer) { told = true; });
  EXPECT_TRUE(becomes([&] { return server.requests == 1; }));
}

TEST(RemoteDeviceTest, RefusesOptionsThatMakeNoSense) {
  const StubServer server;
  const auto refuses = [&](auto change) {
    RemoteDeviceOptions options = optionsFor(server);
    change(options);
    const Status status = options.validate();
    return !status && status.error().kind == ErrorKind::InvalidArgument;
  };
  using Options = RemoteDeviceOptions;
  EXPECT_FALSE(refuses([](Options &) {}));
  EXPECT_TRUE(refuses([](Options &it) { it.facts.dimensions = 0; }));
  EXPECT_TRUE(refuses([](Options &it) { it.connectSeconds = 0; }));
  EXPECT_TRUE(refuses([](Options &it) { it.answerSeconds = 1e9; }));
  EXPECT_TRUE(refuses([](Options &it) { it.connections = 0; }));
  EXPECT_TRUE(refuses([](Options &it) { it.connectAttempts = 0; }));
  EXPECT_TRUE(refuses([](Options &it) { it.healthPath = "health"; }));
  EXPECT_TRUE(refuses([](Options &it) { it.breaker.failures = 0; }));
  EXPECT_TRUE(refuses([](Options &it) {
    it.facts.dimensions = 65536;
    it.facts.batchQueries = 1024;
  }));
}

/// A server that flaps, hangs, is slow, drops, answers nonsense and is killed,
/// in front of a device that works: each query once, and right.
TEST(RemoteDeviceTest, TheDispatcherLivesWithAnyServer) {
  StubServer server;
  RemoteDeviceOptions options = optionsFor(server);
  options.answerSeconds = 0.05;
  auto local = TimedSimulatedDevice::create(
      {.name = "cpu", .line = {1e-5, 1e-4}}, {.dimensions = dimensions}, 1);
  ASSERT_TRUE(local);
  std::vector<DispatchedDevice> devices;
  devices.push_back({make(std::move(options)), 32});
  devices.push_back({*std::move(local), 256});
  DispatcherOptions dispatcherOptions;
  dispatcherOptions.closing = {.openSeconds = 0.002, .mostOpenSeconds = 0.01};
  dispatcherOptions.mostBusySeconds = 0.01;
  auto made =
      Dispatcher::create(std::move(devices), std::move(dispatcherOptions));
  ASSERT_TRUE(made) << made.error().message;
  Outcomes outcomes;
  uint64_t submitted = 0;
  const Behaviour behaviours[] = {
      Behaviour::Answer,  Behaviour::Slow,   Behaviour::Hang,
      Behaviour::Answer,  Behaviour::Drop,   Behaviour::Busy,
      Behaviour::TooFew,  Behaviour::Answer, Behaviour::Garbage,
      Behaviour::TooLong, Behaviour::Unready};
  for (int round = 0; round < 3; ++round)
    for (const Behaviour behaviour : behaviours) {
      server.behaviour = behaviour;
      if (behaviour == Behaviour::Slow && round > 0) {
        server.kill();
        std::this_thread::sleep_for(5ms);
        server.restart();
      }
      for (int i = 0; i < 100; ++i) {
        (*made)->submit(
            {.id = submitted++, .tokens = {static_cast<int32_t>(submitted), 3}},
            outcomes.callback());
        std::this_thread::sleep_for(200us);
      }
    }
  ASSERT_TRUE(outcomes.come(submitted));
  size_t answered = 0, remote = 0;
  std::vector<bool> seen(submitted);
  for (const QueryOutcome &outcome : outcomes.all()) {
    EXPECT_FALSE(seen.at(outcome.id));
    seen[outcome.id] = true;
    if (outcome.refusal)
      continue;
    ++answered;
    remote += outcome.device == 0;
    const std::vector<int32_t> tokens = {static_cast<int32_t>(outcome.id + 1),
                                         3};
    EXPECT_EQ(outcome.embedding,
              TimedSimulatedDevice::embed(tokens, dimensions));
  }
  EXPECT_GT(answered, submitted * 9 / 10);
  EXPECT_GT(remote, 100u);
  EXPECT_GT((*made)->counters().devices[0].failed, 3u);
}
