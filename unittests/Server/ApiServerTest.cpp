//===- ApiServerTest.cpp - The whole server, within one process -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What needs the threads of the server, its services and its clients to meet
/// where sanitizers see them. What each path answers is tested from outside, in
/// test/Integration/Server.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Server/ApiServer.h"

#include "HashModel.h"
#include "TemporaryFolder.h"
#include "sandwich/Http/HttpClient.h"
#include "sandwich/Support/Json.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <gtest/gtest.h>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;

namespace {

HttpRequest post(const std::string &path, const Json &body) {
  return {.method = "POST",
          .path = path,
          .headers = {{"Content-Type", "application/json"}},
          .body = body.dump()};
}

HttpRequest get(const std::string &path) {
  return {.method = "GET", .path = path};
}

Json endless() {
  return {{"prompt", Json::array({1, 2, 3})},
          {"max_tokens", 100000},
          {"ignore_eos", true},
          {"stream", true}};
}

/// A stream of which the beginning is waited for.
struct Stream {
  std::atomic<bool> begun = false;
  std::atomic<bool> ended = false;

  HttpCallbacks callbacks() {
    return {.onBody =
                [this](std::string_view) {
                  begun = true;
                  return true;
                },
            .onEnd = [this](const HttpFailure *) { ended = true; }};
  }
};

bool waitFor(const std::function<bool()> &happened) {
  for (int i = 0; i < 6000 && !happened(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return happened();
}

class ApiServerTest : public ::testing::Test {
protected:
  void start() {
    const std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(
        path, {.contextLength = uint32_t{1} << 17, .spoils = false});
    ASSERT_TRUE(written) << written.error().message;
    options.http.port = 0;
    ServedModelOptions model{.name = "group/model", .artifact = path};
    model.service.measuringSeconds = 0;
    model.service.scheduling = scheduling;
    options.models.push_back(std::move(model));
    auto created = ApiServer::create(std::move(options));
    ASSERT_TRUE(created) << created.error().message;
    server = std::move(*created);
    Status loaded = server->load();
    ASSERT_TRUE(loaded) << loaded.error().message;
    auto address = HttpAddress::parse(server->address());
    ASSERT_TRUE(address) << address.error().message;
    auto connected = HttpClient::create({.server = *address});
    ASSERT_TRUE(connected) << connected.error().message;
    client = std::move(*connected);
  }

  HttpAnswer ask(HttpRequest request) {
    auto answer = client->ask(std::move(request));
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : HttpAnswer();
  }

  Stream &send(HttpRequest request) {
    Stream &stream = streams.emplace_back();
    client->send(std::move(request), stream.callbacks());
    return stream;
  }

  void beginStreams(int count) {
    for (int i = 0; i < count; ++i) {
      Stream &stream = send(post("/v1/completions", endless()));
      EXPECT_TRUE(waitFor([&] { return stream.begun.load(); }));
    }
  }

  void expectAllEnd() {
    for (Stream &stream : streams)
      EXPECT_TRUE(waitFor([&] { return stream.ended.load(); }));
  }

  /// Requests that are served or wait.
  int64_t liveRequests() {
    const Json status = Json::parse(ask(get("/status")).body);
    const Json &model = status["models"].front();
    return model["running_requests"].get<int64_t>() +
           model["waiting_requests"].get<int64_t>();
  }

  TemporaryFolder folder;
  ApiServerOptions options;
  SchedulerOptions scheduling;
  /// Live longer than who calls them.
  std::deque<Stream> streams;
  std::unique_ptr<ApiServer> server;
  std::unique_ptr<HttpClient> client;
};

TEST_F(ApiServerTest, EndsWhileTextsAreStreamed) {
  start();
  beginStreams(6);
  server.reset();
  expectAllEnd();
}

TEST_F(ApiServerTest, EndsWhileAnswersAreMade) {
  start();
  // With log-probabilities, which are put together by the workers.
  Json body = {{"prompt", Json::array({1, 2, 3})},
               {"max_tokens", 20},
               {"ignore_eos", true},
               {"logprobs", 5}};
  for (int i = 0; i < 64; ++i)
    send(post("/v1/completions", body));
  EXPECT_TRUE(waitFor([&] {
    return std::ranges::any_of(
        streams, [](const Stream &stream) { return stream.ended.load(); });
  }));
  server.reset();
  expectAllEnd();
}

TEST_F(ApiServerTest, FreesWhatClientsLeave) {
  start();
  beginStreams(6);
  client.reset();
  auto address = HttpAddress::parse(server->address());
  ASSERT_TRUE(address);
  auto other = HttpClient::create({.server = *address});
  ASSERT_TRUE(other);
  client = std::move(*other);
  EXPECT_TRUE(waitFor([&] { return liveRequests() == 0; }));
}

TEST_F(ApiServerTest, TakesAllPromptsOfARequestOrNone) {
  scheduling.maxWaitingRequests = 4;
  start();
  // Texts of their own take all there is, so that others wait.
  beginStreams(8);
  const int64_t before = liveRequests();
  const auto prompts = [](int count) {
    Json body = {{"prompt", Json::array()}, {"max_tokens", 1}};
    for (int i = 0; i < count; ++i)
      body["prompt"].push_back(Json::array({1, 2, i}));
    return post("/v1/completions", body);
  };
  send(prompts(2));
  EXPECT_TRUE(waitFor([&] { return liveRequests() == before + 2; }));
  // There is room for two of three.
  const HttpAnswer answer = ask(prompts(3));
  EXPECT_EQ(answer.head.status, 429u) << answer.body;
  EXPECT_TRUE(answer.head.header("Retry-After"));
  EXPECT_TRUE(waitFor([&] { return liveRequests() == before + 2; }));
  send(prompts(2));
  EXPECT_TRUE(waitFor([&] { return liveRequests() == before + 4; }));
}

TEST_F(ApiServerTest, IsAskedByNamesThatNobodyOwns) {
  options.allowedHosts = AllowedHosts({"chat.example"});
  start();
  HttpRequest request = get("/v1/models");
  request.headers = {{"Host", "evil.example"}};
  const HttpAnswer answer = ask(request);
  EXPECT_EQ(answer.head.status, 403u);
  EXPECT_NE(answer.body.find("evil.example"), std::string::npos);
  request.headers = {{"Host", "chat.example:80"}};
  EXPECT_EQ(ask(request).head.status, 200u);
  // Whoever looks after it uses any name.
  request = get("/health");
  request.headers = {{"Host", "evil.example"}};
  EXPECT_EQ(ask(request).head.status, 200u);
}

TEST_F(ApiServerTest, IsAskedByAnyNameWithAKey) {
  auto keys = ApiKeys::parse("secret");
  ASSERT_TRUE(keys);
  options.keys = *keys;
  start();
  HttpRequest request = get("/v1/models");
  request.headers = {{"Host", "evil.example"}};
  EXPECT_EQ(ask(request).head.status, 401u);
  request.headers.emplace_back("Authorization", "Bearer secret");
  EXPECT_EQ(ask(request).head.status, 200u);
}

TEST_F(ApiServerTest, KnowsModelsByNamesInPaths) {
  start();
  for (const char *path :
       {"/v1/models/group/model", "/v1/models/group%2Fmodel"}) {
    const HttpAnswer answer = ask(get(path));
    EXPECT_EQ(answer.head.status, 200u) << path;
    EXPECT_EQ(Json::parse(answer.body)["id"], "group/model");
  }
  EXPECT_EQ(ask(get("/v1/models/group%2")).head.status, 404u);
}

} // namespace
