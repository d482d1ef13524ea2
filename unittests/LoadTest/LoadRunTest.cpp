//===- LoadRunTest.cpp - A trace sent to a server -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/LoadRun.h"

#include "MockServer.h"
#include "TemporaryFolder.h"
#include "sandwich/LoadTest/LoadSummary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;

namespace {
class LoadRunTest : public ::testing::Test {
protected:
  void start(MockOptions options = {}) {
    Result<std::unique_ptr<MockServer>> created =
        MockServer::create(std::move(options));
    ASSERT_TRUE(created) << created.error().message;
    mock = *std::move(created);
    const Result<HttpAddress> address = HttpAddress::parse(mock->address());
    ASSERT_TRUE(address) << address.error().message;
    target.address = *address;
    target.log = [this](LogLevel, const std::string &line) {
      warnings.push_back(line);
    };
  }
  void connect() {
    Result<std::unique_ptr<TargetServer>> connected =
        TargetServer::connect(loop, target);
    ASSERT_TRUE(connected) << connected.error().message;
    server = *std::move(connected);
  }
  std::string connectError() {
    const Result<std::unique_ptr<TargetServer>> connected =
        TargetServer::connect(loop, target);
    return connected ? "" : connected.error().message;
  }
  std::vector<ServedRequest> run(const ServingTrace &trace,
                                 LoadRunOptions options = {}) {
    options.warmUps = 0;
    return runLoad(*server, trace, options).requests;
  }
  /// Waits until the server has noticed that clients left.
  bool becomesIdle() {
    for (int i = 0; i < 10'000; ++i) {
      if (mock->streams() == 0)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  EventLoop loop;
  TargetOptions target;
  std::vector<std::string> warnings;
  std::unique_ptr<MockServer> mock;
  std::unique_ptr<TargetServer> server;
};

std::map<std::string, size_t>
failuresOf(const std::vector<ServedRequest> &requests) {
  std::map<std::string, size_t> counts;
  for (const FailureCount &each : LoadSummary(requests, {}).failures)
    counts[each.kind] = each.count;
  return counts;
}
} // namespace

//===----------------------------------------------------------------------===//
// What is asked and what is told
//===----------------------------------------------------------------------===//

TEST_F(LoadRunTest, ServesOneAfterTheOther) {
  start({.firstTokenSeconds = 0.002, .tokenSeconds = 0.001});
  connect();
  EXPECT_EQ(server->model(), "mock");
  const ServingTrace trace = {{5, 4, {}}, {3, 0, {}}, {40, 6, {}}};
  const std::vector<ServedRequest> served = run(trace);
  ASSERT_EQ(served.size(), 3u);
  double before = 0;
  for (size_t i = 0; i < served.size(); ++i) {
    const ServedRequest &request = served[i];
    EXPECT_TRUE(request.isServed());
    EXPECT_EQ(request.promptTokens,
              static_cast<uint64_t>(trace[i].promptTokens));
    EXPECT_EQ(request.outputTokens, static_cast<uint64_t>(std::max<int64_t>(
                                        trace[i].outputTokens, 1)));
    EXPECT_LE(before, request.arrival);
    EXPECT_EQ(request.arrival, request.sent);
    EXPECT_GE(request.firstTokenSeconds(), 0.002);
    EXPECT_LE(request.gaps.size(), request.outputTokens - 1);
    EXPECT_LE(request.firstToken, request.lastToken);
    EXPECT_LE(request.lastToken, request.ended);
    before = request.ended;
  }
  // The probe comes first.
  const std::vector<Json> requests = mock->requests();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[1]["prompt"].size(), 5u);
  EXPECT_EQ(requests[1]["max_tokens"], 4);
  EXPECT_EQ(requests[1]["model"], "mock");
  EXPECT_EQ(requests[1]["stream"], true);
  EXPECT_EQ(requests[1]["ignore_eos"], true);
  EXPECT_EQ(requests[1]["stream_options"]["include_usage"], true);
  EXPECT_FALSE(requests[1].contains("temperature"));
  EXPECT_NE(requests[1]["prompt"], requests[2]["prompt"]);
}

TEST_F(LoadRunTest, KeepsSoManyUnderWay) {
  start({.firstTokenSeconds = 0.02});
  connect();
  LoadRunOptions options;
  options.concurrency = 3;
  const std::vector<ServedRequest> served =
      run(ServingTrace(7, {4, 1, {}}), options);
  ASSERT_EQ(served.size(), 7u);
  size_t most = 0;
  for (const ServedRequest &each : served)
    most = std::max<size_t>(most, static_cast<size_t>(std::ranges::count_if(
                                      served, [&](const auto &other) {
                                        return other.arrival <= each.arrival &&
                                               each.arrival < other.ended;
                                      })));
  EXPECT_EQ(most, 3u);
}

TEST_F(LoadRunTest, SendsWhenRequestsArriveWhateverTheServerDoes) {
  start({.firstTokenSeconds = 0.3});
  connect();
  ServingTrace trace;
  for (int i = 0; i < 10; ++i)
    trace.push_back({4, 1, 0.01 * i});
  const std::vector<ServedRequest> served = run(trace);
  ASSERT_EQ(served.size(), 10u);
  for (size_t i = 0; i < served.size(); ++i) {
    EXPECT_EQ(served[i].arrival, *trace[i].arrivalSeconds);
    EXPECT_GE(served[i].sent, served[i].arrival);
    // None waited for the one before.
    EXPECT_GE(served[i].firstTokenSeconds(), 0.3);
    EXPECT_LT(served[i].sent, served[0].ended);
  }
}

TEST_F(LoadRunTest, PiecesOfSeveralTokensCountAsThoseThatTheyAre) {
  start(
      {.firstTokenSeconds = 0.001, .tokenSeconds = 0.001, .tokensPerPiece = 4});
  connect();
  const std::vector<ServedRequest> served = run({{4, 16, {}}});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0].outputTokens, 16u);
  EXPECT_LE(served[0].gaps.size(), 3u);
  EXPECT_NEAR(*served[0].secondsPerToken(),
              (served[0].lastToken - served[0].firstToken) / 15, 1e-12);
}

TEST_F(LoadRunTest, WithoutUsagePiecesAreCounted) {
  start({.tokensPerPiece = 2, .countsTokens = false});
  connect();
  const std::vector<ServedRequest> served = run({{7, 16, {}}});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0].promptTokens, 7u);
  EXPECT_EQ(served[0].outputTokens, 8u);
}

TEST_F(LoadRunTest, AStreamMayEndWithoutSayingSo) {
  start({.endsWithDone = false});
  connect();
  const std::vector<ServedRequest> served = run({{7, 5, {}}});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_TRUE(served[0].isServed());
  EXPECT_EQ(served[0].outputTokens, 5u);
}

TEST_F(LoadRunTest, TokensThatAreNotSeenEndWithTheStream) {
  start({.hasText = false});
  connect();
  const std::vector<ServedRequest> served = run({{7, 5, {}}});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_TRUE(served[0].isServed());
  EXPECT_EQ(served[0].outputTokens, 5u);
  EXPECT_GT(served[0].firstToken, served[0].sent);
  EXPECT_EQ(served[0].firstToken, served[0].lastToken);
}

TEST_F(LoadRunTest, ChatsOverASocketOfTheFileSystem) {
  TemporaryFolder folder;
  start({.unixSocket = folder.file("socket"), .apiKey = "secret"});
  target.endpoint = Endpoint::Chat;
  target.prompts.asTokens = false;
  target.temperature = 0.5;
  EXPECT_EQ(connectError(),
            "the server lists no models (HTTP 401); --model names one");
  target.apiKey = "secret";
  connect();
  const std::vector<ServedRequest> served = run({{20, 5, {}}});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_TRUE(served[0].isServed());
  EXPECT_EQ(served[0].promptTokens, 20u);
  EXPECT_EQ(served[0].outputTokens, 5u);
  const Json request = mock->requests().back();
  EXPECT_EQ(request["messages"][0]["role"], "user");
  EXPECT_EQ(request["temperature"], 0.5);
}

//===----------------------------------------------------------------------===//
// Finding out what the server takes
//===----------------------------------------------------------------------===//

TEST_F(LoadRunTest, LeavesOutWhatTheServerDoesNotTake) {
  start({.unknownMembers = {"ignore_eos", "stream_options"}});
  connect();
  EXPECT_FALSE(server->ignoresEndOfText());
  EXPECT_FALSE(server->includesUsage());
  EXPECT_EQ(warnings,
            (std::vector<std::string>{
                "the server does not take ignore_eos: ignore_eos is not known",
                "the server does not take stream_options: stream_options is "
                "not known"}));
  const std::vector<ServedRequest> served = run({{4, 3, {}}});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_TRUE(served[0].isServed());
  // What is wanted expressly is not left out.
  target.ignoreEndOfText = true;
  EXPECT_EQ(connectError(), "a first request failed: HTTP 400: ignore_eos is "
                            "not known");
}

TEST_F(LoadRunTest, SaysWhatTheServerRefuses) {
  start({.takesIds = false});
  EXPECT_EQ(connectError(),
            "a first request failed: HTTP 400: prompts are text");
}

TEST_F(LoadRunTest, ListsOfModelsAreOptional) {
  start({.listsModels = false});
  EXPECT_EQ(connectError(),
            "the server lists no models (HTTP 404); --model names one");
  target.model = "a \"name\"";
  connect();
  EXPECT_EQ(server->model(), "a \"name\"");
  EXPECT_EQ(mock->requests().back()["model"], "a \"name\"");
  EXPECT_FALSE(server->contextTokens());
}

TEST_F(LoadRunTest, LearnsTheContext) {
  start({.contextTokens = 4096});
  connect();
  EXPECT_EQ(server->contextTokens(), 4096u);
}

TEST_F(LoadRunTest, SaysWhereNobodyListens) {
  TemporaryFolder folder;
  target.address = *HttpAddress::parse("unix:" + folder.file("none"));
  EXPECT_EQ(connectError(), "cannot connect to " + folder.file("none") +
                                ": No such file or directory");
}

TEST_F(LoadRunTest, MeasuresWhatWordsCost) {
  for (bool byUsage : {true, false}) {
    start({.countsTokens = byUsage, .tokensPerWord = 3, .moreTokens = 11});
    target.prompts.asTokens = false;
    connect();
    (void)run({{41, 1, {}}});
    const auto prompt = mock->requests().back()["prompt"].get<std::string>();
    EXPECT_EQ(std::ranges::count(prompt, ' ') + 1, 10);
  }
  EXPECT_TRUE(warnings.empty());
  start({.countsTokens = false, .hasTokenize = false});
  connect();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("a word is taken for one"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Servers that refuse and fail
//===----------------------------------------------------------------------===//

TEST_F(LoadRunTest, RefusalsAreCountedApart) {
  start({.firstTokenSeconds = 0.2, .mostStreams = 2});
  connect();
  const std::vector<ServedRequest> served = run(ServingTrace(10, {4, 1, 0.0}));
  ASSERT_EQ(served.size(), 10u);
  EXPECT_EQ(std::ranges::count_if(served, &ServedRequest::refused), 8);
  EXPECT_EQ(std::ranges::count_if(served, &ServedRequest::isServed), 2);
  const LoadSummary summary(served, {});
  EXPECT_EQ(summary.failed, 0u);
  ASSERT_TRUE(summary.refusal);
  EXPECT_GT(summary.refusal->mean, 0);
}

TEST_F(LoadRunTest, FailuresAreCountedByKind) {
  target.timeout = 0.5;
  const std::vector<std::pair<MockOptions, std::string>> cases = {
      {{.failEvery = 2, .failStatus = 503}, "HTTP 503"},
      {{.failEvery = 2, .failStatus = 500}, "HTTP 500"},
      {{.breakEvery = 2}, "broken stream"},
      {{.hangEvery = 2}, "time-out"},
      {{.garbleEvery = 2}, "invalid stream"},
      {{.errorEvery = 2}, "error in a stream"},
      {{.plainEvery = 2}, "no stream"}};
  for (const auto &[options, kind] : cases) {
    start(options);
    connect();
    const std::vector<ServedRequest> served = run(ServingTrace(6, {4, 8, 0.0}));
    ASSERT_EQ(served.size(), 6u) << kind;
    EXPECT_EQ(failuresOf(served), (std::map<std::string, size_t>{{kind, 3}}));
    EXPECT_EQ(std::ranges::count_if(served, &ServedRequest::isServed), 3);
    for (const ServedRequest &request : served)
      EXPECT_FALSE(request.failure && request.failure->message.empty()) << kind;
  }
}

TEST_F(LoadRunTest, ServersThatEndAreFailures) {
  start();
  connect();
  mock.reset();
  const std::vector<ServedRequest> served = run(ServingTrace(3, {4, 8, {}}));
  EXPECT_EQ(failuresOf(served),
            (std::map<std::string, size_t>{{"no connection", 3}}));
}

//===----------------------------------------------------------------------===//
// Stopping
//===----------------------------------------------------------------------===//

TEST_F(LoadRunTest, ShowsRequestsInTheirOrderUntilNoMoreAreNeeded) {
  start({.firstTokenSeconds = 0.001, .tokenSeconds = 0.002});
  connect();
  // The first one takes longest.
  const ServingTrace trace = {
      {5, 80, 0.}, {5, 1, 0.}, {5, 2, 0.}, {5, 100'000, 0.}, {5, 1, 1000.}};
  std::vector<uint64_t> shown;
  LoadRunOptions options;
  options.replay.observe = [&](const ServedRequest &request) {
    shown.push_back(request.outputTokens);
    return shown.size() < 3;
  };
  const std::vector<ServedRequest> served = run(trace, options);
  EXPECT_EQ(shown, (std::vector<uint64_t>{80, 1, 2}));
  EXPECT_EQ(served.size(), 3u);
  EXPECT_TRUE(becomesIdle());
}

TEST_F(LoadRunTest, StopsWhenAsked) {
  start({.firstTokenSeconds = 0.001, .tokenSeconds = 0.001});
  connect();
  size_t done = 0;
  LoadRunOptions options;
  options.replay.progress = [&](size_t count) { done = count; };
  options.replay.stop = [&] { return done >= 1; };
  const std::vector<ServedRequest> served =
      run({{5, 4, 0.}, {5, 100'000, 0.}, {5, 4, 1e9}}, options);
  ASSERT_EQ(served.size(), 1u);
  EXPECT_TRUE(served[0].isServed());
  EXPECT_EQ(done, 1u);
  EXPECT_TRUE(becomesIdle());
  // Requests before the first one can be stopped as well.
  options.warmUps = 1000;
  options.replay.stop = [] { return true; };
  EXPECT_TRUE(runLoad(*server, {{5, 100'000, 0.}}, options).requests.empty());
  EXPECT_TRUE(becomesIdle());
}

TEST_F(LoadRunTest, RunsFollowEachOther) {
  start();
  connect();
  for (int i = 0; i < 3; ++i) {
    LoadRunOptions options;
    options.warmUps = 2;
    const LoadRun load =
        runLoad(*server, ServingTrace(20, {4, 8, 0.0}), options);
    EXPECT_EQ(load.requests.size(), 20u);
    EXPECT_GT(load.clientLoad, 0);
  }
  EXPECT_EQ(mock->requests().size(), 1 + 3 * 22u);
  EXPECT_TRUE(runLoad(*server, {}).requests.empty());
}
