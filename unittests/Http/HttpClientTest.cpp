//===- HttpClientTest.cpp - Many requests to one server -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpClient.h"

#include "RawServer.h"
#include "TemporaryFolder.h"
#include "sandwich/Http/HttpServer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

using namespace sandwich;
using sandwich::test::TemporaryFolder;

namespace {

/// What became of a request, which a test waits for.
class Watched {
public:
  /// Takes the place of the callbacks that the test does not give.
  HttpCallbacks callbacks() {
    return {.onHead =
                [this](const HttpResponseHead &told) {
                  std::lock_guard lock(mutex);
                  head = told;
                  changed.notify_all();
                },
            .onBody =
                [this](std::string_view piece) {
                  std::lock_guard lock(mutex);
                  body += piece;
                  ++pieces;
                  changed.notify_all();
                  return true;
                },
            .onEnd =
                [this](const HttpFailure *reason) {
                  std::lock_guard lock(mutex);
                  if (reason)
                    failure = *reason;
                  ++ends;
                  changed.notify_all();
                }};
  }
  template <typename Condition> bool becomes(Condition condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(10), condition);
  }
  bool ended() {
    return becomes([this] { return ends > 0; });
  }
  bool failedWith(HttpFailureKind kind) {
    return ended() && failure && failure->kind == kind;
  }
  std::string message() {
    std::lock_guard lock(mutex);
    return failure ? failure->message : "";
  }

  std::mutex mutex;
  std::condition_variable changed;
  HttpResponseHead head;
  std::string body;
  int pieces = 0;
  int ends = 0;
  std::optional<HttpFailure> failure;
};

HttpAddress addressOf(uint16_t port) {
  return {.host = "127.0.0.1", .port = port};
}

std::unique_ptr<HttpClient> makeClient(HttpAddress server,
                                       const HttpClientLimits &limits = {}) {
  auto created = HttpClient::create({std::move(server), limits});
  EXPECT_TRUE(created) << created.error().message;
  return *std::move(created);
}

/// A server of the room that answers, keeps or drops requests by their path.
class ServedClientTest : public ::testing::Test {
protected:
  ServedClientTest() { options.port = 0; }

  void start() {
    auto created = HttpServer::create(
        options,
        [this](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
          handle(std::move(request), std::move(exchange));
        });
    ASSERT_TRUE(created) << created.error().message;
    server = *std::move(created);
    auto address = HttpAddress::parse(server->address() +
                                      (options.unixSocket ? "" : "/base/"));
    ASSERT_TRUE(address) << address.error().message;
    client = makeClient(*address, limits);
  }

  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    if (request.path.ends_with("/echo")) {
      exchange->respond(
          {.status = 201,
           .contentType = "text/plain",
           .body = request.method + " " + request.path + "?" + request.query +
                   " " + request.body,
           .headers = {{"X-Mark", std::string(request.header("x-mark").value_or(
                                      "none"))}}});
      return;
    }
    if (request.path.ends_with("/drop"))
      return;
    std::lock_guard lock(mutex);
    exchange->onClosed([this] { ++closed; });
    kept.push_back(std::move(exchange));
    changed.notify_all();
  }

  std::shared_ptr<HttpExchange> takeKept() {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(10),
                          [&] { return !kept.empty(); }))
      return nullptr;
    std::shared_ptr<HttpExchange> taken = std::move(kept.back());
    kept.pop_back();
    return taken;
  }

  HttpServerOptions options;
  HttpClientLimits limits;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<HttpExchange>> kept;
  std::atomic<int> closed = 0;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpClient> client;
};

const HttpRequest keepRequest = {
    .method = "GET", .path = "/keep", .query = {}, .headers = {}, .body = {}};

} // namespace

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

TEST(HttpAddressTest, ReadsHostsPortsAndPaths) {
  for (auto [url, host, port, base] :
       std::vector<std::tuple<const char *, const char *, int, const char *>>{
           {"http://127.0.0.1:8080", "127.0.0.1", 8080, ""},
           {"http://localhost", "localhost", 80, ""},
           {"http://localhost/", "localhost", 80, ""},
           {"http://a.b:65535/v1/x//", "a.b", 65535, "/v1/x"},
           {"http://[::1]:81/v3", "::1", 81, "/v3"},
           {"http://[::1]", "::1", 80, ""}}) {
    const auto address = HttpAddress::parse(url);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_EQ(address->host, host) << url;
    EXPECT_EQ(address->port, port) << url;
    EXPECT_EQ(address->basePath, base) << url;
    EXPECT_FALSE(address->unixSocket) << url;
  }
  EXPECT_EQ(HttpAddress::parse("http://[::1]:81")->authority(), "[::1]:81");
  EXPECT_EQ(HttpAddress::parse("http://a")->authority(), "a");
  EXPECT_EQ(HttpAddress::parse("unix:/tmp/a b")->unixSocket, "/tmp/a b");
}

TEST(HttpAddressTest, RefusesOthers) {
  for (auto [url, part] : std::map<std::string, std::string>{
           {"https://a", "TLS is not supported"},
           {"ftp://a", "neither http:// nor unix:"},
           {"localhost:8080", "neither http:// nor unix:"},
           {"http://", "no host"},
           {"http://:80", "no host"},
           {"http://a:", "no port"},
           {"http://a:0", "no port"},
           {"http://a:65536", "no port"},
           {"http://a:8o", "no port"},
           {"http://a:+80", "no port"},
           {"http://[::1", "no closing bracket"},
           {"http://[a]", "no address of IPv6"},
           {"http://[::1]x", "no port"},
           {"http://user@a", "nothing else"},
           {"http://a?b", "nothing else"},
           {"http://a/b#c", "nothing else"},
           {"http://a/b c", "spaces"},
           {"http://a\r\nX: y", "spaces"},
           {"unix:", "1 to 107 bytes"},
           {"unix:" + std::string(200, 'x'), "1 to 107 bytes"}}) {
    const auto address = HttpAddress::parse(url);
    ASSERT_FALSE(address) << url;
    EXPECT_NE(address.error().message.find(part), std::string::npos)
        << address.error().message;
  }
}

//===----------------------------------------------------------------------===//
// Requests and answers
//===----------------------------------------------------------------------===//

TEST_F(ServedClientTest, AsksAndReadsAnswers) {
  start();
  for (int i = 0; i < 3; ++i) {
    const auto answer = client->ask({.method = "POST",
                                     .path = "/echo",
                                     .query = "a=b",
                                     .headers = {{"X-Mark", "7"}},
                                     .body = "hello"});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->head.status, 201u);
    EXPECT_EQ(answer->head.header("x-mark"), "7");
    EXPECT_EQ(answer->body, "POST /base/echo?a=b hello");
  }
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(ServedClientTest, AsksOverASocketOfTheFileSystem) {
  TemporaryFolder folder;
  options.unixSocket = folder.file("socket");
  start();
  const auto answer = client->ask({.method = "GET",
                                   .path = "/echo",
                                   .query = {},
                                   .headers = {},
                                   .body = {}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "GET /echo? ");
}

TEST_F(ServedClientTest, TakesNoBodyForHead) {
  start();
  for (int i = 0; i < 2; ++i) {
    const auto answer = client->ask({.method = "HEAD",
                                     .path = "/echo",
                                     .query = {},
                                     .headers = {},
                                     .body = {}});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "");
    EXPECT_NE(answer->head.header("content-length"), "0");
  }
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(ServedClientTest, TellsOfPiecesAsTheyCome) {
  start();
  Watched watched;
  client->send(keepRequest, watched.callbacks());
  auto exchange = takeKept();
  ASSERT_TRUE(exchange);
  exchange->begin({.contentType = "text/event-stream", .body = "first"});
  EXPECT_TRUE(watched.becomes([&] { return watched.body == "first"; }));
  EXPECT_EQ(watched.head.header("Content-Type"), "text/event-stream");
  EXPECT_EQ(watched.ends, 0);
  exchange->write("second");
  EXPECT_TRUE(watched.becomes([&] { return watched.body == "firstsecond"; }));
  exchange->finish();
  EXPECT_TRUE(watched.ended());
  EXPECT_FALSE(watched.failure);
  // The connection is used again.
  EXPECT_TRUE(client->ask({"GET", "/echo", "", {}, ""}));
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(ServedClientTest, CarriesManyRequestsAtATime) {
  start();
  constexpr size_t requests = 100;
  std::vector<Watched> watched(requests);
  for (Watched &each : watched)
    client->send(keepRequest, each.callbacks());
  for (size_t i = 0; i < requests; ++i) {
    auto exchange = takeKept();
    ASSERT_TRUE(exchange);
    exchange->respond({.body = "done"});
  }
  for (Watched &each : watched) {
    EXPECT_TRUE(each.ended());
    EXPECT_EQ(each.body, "done");
    EXPECT_EQ(each.ends, 1);
  }
}

TEST_F(ServedClientTest, OthersWaitWhereConnectionsAreLimited) {
  limits.connections = 1;
  start();
  Watched first, second, third;
  client->send(keepRequest, first.callbacks());
  auto exchange = takeKept();
  ASSERT_TRUE(exchange);
  client->send({"GET", "/echo", "", {}, ""}, second.callbacks());
  const HttpCallId id = client->send(keepRequest, third.callbacks());
  // Who waits can leave, too.
  client->cancel(id);
  EXPECT_TRUE(third.failedWith(HttpFailureKind::Cancelled));
  EXPECT_EQ(second.ends, 0);
  exchange->respond({.body = "done"});
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(second.body, "GET /base/echo? ");
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(ServedClientTest, CancelsWhatIsUnderWay) {
  start();
  Watched waiting, streaming;
  const HttpCallId first = client->send(keepRequest, waiting.callbacks());
  auto unanswered = takeKept();
  const HttpCallId second = client->send(keepRequest, streaming.callbacks());
  auto begun = takeKept();
  ASSERT_TRUE(unanswered && begun);
  begun->begin({.body = "begun"});
  EXPECT_TRUE(streaming.becomes([&] { return streaming.body == "begun"; }));
  client->cancel(first);
  client->cancel(second);
  EXPECT_TRUE(waiting.failedWith(HttpFailureKind::Cancelled));
  EXPECT_TRUE(streaming.failedWith(HttpFailureKind::Cancelled));
  // And one that is over, or was never there.
  client->cancel(first);
  client->cancel(12345);
  EXPECT_TRUE(client->ask({"GET", "/echo", "", {}, ""}));
  EXPECT_EQ(waiting.ends, 1);
  EXPECT_EQ(streaming.ends, 1);
  EXPECT_EQ(closed, 2);
}

TEST_F(ServedClientTest, EndsWhenNoMoreIsWanted) {
  start();
  Watched watched;
  HttpCallbacks callbacks = watched.callbacks();
  callbacks.onBody = [](std::string_view) { return false; };
  client->send(keepRequest, callbacks);
  auto exchange = takeKept();
  ASSERT_TRUE(exchange);
  exchange->begin({.body = "begun"});
  EXPECT_TRUE(watched.failedWith(HttpFailureKind::Cancelled));
  const auto answer = client->ask({"GET", "/echo", "", {}, ""}, 4);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "the answer has more than 4 bytes");
}

TEST_F(ServedClientTest, TellsWhoIsUnderWayThatItHasGone) {
  start();
  Watched watched;
  client->send(keepRequest, watched.callbacks());
  auto exchange = takeKept();
  client.reset();
  EXPECT_EQ(watched.ends, 1);
  EXPECT_TRUE(watched.failedWith(HttpFailureKind::Cancelled));
}

TEST_F(ServedClientTest, RefusesToSendWhatWouldBecomeTwoRequests) {
  start();
  for (const HttpRequest &request :
       std::vector<HttpRequest>{{"GET", "/a b", "", {}, ""},
                                {"GET", "/a\r\nX: y", "", {}, ""},
                                {"GET", "a", "", {}, ""},
                                {"GE T", "/a", "", {}, ""},
                                {"", "/a", "", {}, ""},
                                {"GET", "/a", "q r", {}, ""},
                                {"GET", "/a", "", {{"A", "b\r\nC: d"}}, ""},
                                {"GET", "/a", "", {{"A:", "b"}}, ""},
                                {"GET", "/a", "", {{"", "b"}}, ""}}) {
    Watched watched;
    client->send(request, watched.callbacks());
    EXPECT_TRUE(watched.failedWith(HttpFailureKind::Protocol)) << request.path;
  }
  EXPECT_EQ(server->connections(), 0u);
}

TEST_F(ServedClientTest, LivesOnALoopOfItsUser) {
  start();
  EventLoop loop;
  auto onLoop =
      HttpClient::create({addressOf(server->port()), HttpClientLimits()}, loop);
  const auto answer = onLoop->ask({"GET", "/echo", "", {}, ""});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "GET /echo? ");
  // From its own callbacks it can be sent more, and be destroyed.
  std::vector<std::string> order;
  onLoop->send({"GET", "/echo", "", {}, ""},
               {.onEnd = [&](const HttpFailure *failure) {
                 order.emplace_back(failure ? "failed" : "first");
                 onLoop->send(keepRequest, {.onEnd = [&](const HttpFailure *) {
                                order.emplace_back("never");
                              }});
                 onLoop->send({"GET", "/echo", "", {}, ""},
                              {.onEnd = [&](const HttpFailure *) {
                                order.emplace_back("second");
                                onLoop.reset();
                                loop.stop();
                              }});
               }});
  loop.run();
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second"}));
}

TEST_F(ServedClientTest, NobodyHasToWaitForAnAnswer) {
  start();
  const auto answer = client->ask(keepRequest, 1000, [] { return true; });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::Cancelled);
  EXPECT_EQ(answer.error().message, "interrupted");
  EventLoop loop;
  auto onLoop =
      HttpClient::create({addressOf(server->port()), HttpClientLimits()}, loop);
  int asked = 0;
  EXPECT_FALSE(onLoop->ask(keepRequest, 1000, [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
}

TEST(EventLoopTest, RunsUntilSomethingIsDone) {
  EventLoop loop;
  int done = 0;
  for (int i = 0; i < 5; ++i)
    loop.post([&] { ++done; });
  EXPECT_TRUE(loop.runUntil([&] { return done == 3; }));
  EXPECT_EQ(done, 3);
  EXPECT_TRUE(loop.runUntil([&] { return done == 5; }, [] { return false; }));
  EXPECT_FALSE(loop.runUntil([&] { return done == 6; }, [] { return true; }));
}

TEST(EventLoopTest, RunsWorkInTimeAndOrder) {
  EventLoop loop;
  std::string order;
  const auto now = EventLoop::Clock::now();
  loop.callAt(now + std::chrono::milliseconds(20), [&] {
    order += "c";
    EXPECT_GE(EventLoop::Clock::now(), now + std::chrono::milliseconds(20));
    loop.stop();
  });
  loop.callAt(now + std::chrono::milliseconds(5), [&] { order += "b"; });
  loop.post([&] { order += "a"; });
  loop.run();
  EXPECT_EQ(order, "abc");
  // Stopped before it runs, it returns at once; and then it runs again.
  loop.stop();
  loop.run();
  loop.post([&] {
    order += "d";
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(order, "abcd");
}

//===----------------------------------------------------------------------===//
// Servers that misbehave
//===----------------------------------------------------------------------===//

/// What a client makes of a server that reads a request and says `answer`.
static void answerWith(RawServer &server, const std::string &answer,
                       Watched &watched, const HttpClientLimits &limits = {}) {
  auto client = makeClient(addressOf(server.port()), limits);
  client->send(keepRequest, watched.callbacks());
  std::optional<RawClient> connection = server.accept();
  ASSERT_TRUE(connection);
  connection->readUntil("\r\n\r\n");
  connection->send(answer);
  connection->stopSending();
  EXPECT_TRUE(watched.ended());
}

TEST(HttpClientTest, SaysWhyItCannotConnect) {
  uint16_t port;
  {
    RawServer gone;
    port = gone.port();
  }
  auto answer = makeClient(addressOf(port))->ask(keepRequest);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "cannot connect to 127.0.0.1:" + std::to_string(port) +
                ": Connection refused");
  TemporaryFolder folder;
  answer = makeClient(*HttpAddress::parse("unix:" + folder.file("none")))
               ->ask(keepRequest);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("none: No such file or directory"),
            std::string::npos)
      << answer.error().message;
  Watched watched;
  auto client = makeClient(*HttpAddress::parse("http://host.invalid"));
  client->send(keepRequest, watched.callbacks());
  EXPECT_TRUE(watched.failedWith(HttpFailureKind::NotConnected));
  EXPECT_NE(watched.message().find("host.invalid: no such host"),
            std::string::npos);
}

TEST(HttpClientTest, WritesRequestsAsOthersDo) {
  RawServer server;
  // The client tells it that it ends itself.
  Watched watched;
  auto client = makeClient(
      {.host = "127.0.0.1", .port = server.port(), .basePath = "/base"});
  client->send({"POST", "/a", "b=c", {{"X-Key", "value"}}, "body"},
               watched.callbacks());
  auto connection = server.accept();
  ASSERT_TRUE(connection);
  EXPECT_EQ(connection->readUntil("body"),
            "POST /base/a?b=c HTTP/1.1\r\nHost: 127.0.0.1:" +
                std::to_string(server.port()) +
                "\r\nX-Key: value\r\nContent-Length: 4\r\n\r\nbody");
}

TEST(HttpClientTest, BrokenAnswersAreFailures) {
  for (auto [text, kind] : std::map<std::string, HttpFailureKind>{
           {"", HttpFailureKind::Broken},
           {"HTTP/1.1 200 OK\r\nContent-Le", HttpFailureKind::Broken},
           {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
            HttpFailureKind::Broken},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            HttpFailureKind::Broken},
           {"nonsense\r\n\r\n", HttpFailureKind::Protocol},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            HttpFailureKind::Protocol},
           {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            HttpFailureKind::Protocol},
           {"HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x') + "\r\n\r\n",
            HttpFailureKind::TooLarge}}) {
    RawServer server;
    Watched watched;
    answerWith(server, text, watched);
    ASSERT_TRUE(watched.failure) << text.substr(0, 80);
    EXPECT_EQ(watched.failure->kind, kind)
        << text.substr(0, 80) << ": " << watched.message();
    EXPECT_EQ(watched.ends, 1);
  }
}

TEST(HttpClientTest, HeadsThatSayToGoOnAreSkippedWithinReason) {
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
  {
    RawServer server;
    Watched watched;
    answerWith(server,
               interim + interim +
                   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
               watched);
    EXPECT_FALSE(watched.failure);
    EXPECT_EQ(watched.head.status, 200u);
    EXPECT_EQ(watched.body, "ok");
  }
  RawServer server;
  Watched watched;
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += interim;
  answerWith(server, text, watched);
  EXPECT_TRUE(watched.failedWith(HttpFailureKind::Protocol));
}

TEST(HttpClientTest, AnswersMayEndWithTheirConnection) {
  RawServer server;
  Watched watched;
  answerWith(server, "HTTP/1.0 200 OK\r\n\r\nall of it", watched);
  EXPECT_FALSE(watched.failure) << watched.message();
  EXPECT_EQ(watched.body, "all of it");
}

TEST(HttpClientTest, BodiesHaveALimit) {
  const HttpClientLimits limits{.bodyBytes = 8};
  for (const char *text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        "9\r\n123456789\r\n0\r\n\r\n"}) {
    RawServer server;
    Watched watched;
    answerWith(server, text, watched, limits);
    EXPECT_TRUE(watched.failedWith(HttpFailureKind::TooLarge)) << text;
  }
}

TEST(HttpClientTest, TellsWhatAServerSaysThatReadsNoBody) {
  RawServer server;
  auto client = makeClient(addressOf(server.port()));
  Watched watched;
  HttpRequest request = {"POST", "/a", "", {}, std::string(8 << 20, 'x')};
  client->send(std::move(request), watched.callbacks());
  auto connection = server.accept();
  ASSERT_TRUE(connection);
  connection->readUntil("\r\n\r\n");
  connection->send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
  // Reset, as bytes are left unread.
  connection->stopSending();
  connection->leave();
  EXPECT_TRUE(watched.ended());
  if (!watched.failure) {
    EXPECT_EQ(watched.head.status, 413u);
  }
}

TEST(HttpClientTest, ServersThatAreSilentAreLeft) {
  RawServer server;
  auto client = makeClient(addressOf(server.port()), {.pauseSeconds = 0.05});
  Watched silent, pausing;
  client->send(keepRequest, silent.callbacks());
  auto first = server.accept();
  EXPECT_TRUE(silent.failedWith(HttpFailureKind::TimedOut));
  EXPECT_EQ(silent.message(), "the server sent nothing for too long");
  client->send(keepRequest, pausing.callbacks());
  auto second = server.accept();
  ASSERT_TRUE(second);
  second->readUntil("\r\n\r\n");
  second->send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
  EXPECT_TRUE(pausing.failedWith(HttpFailureKind::TimedOut));
}

TEST(HttpClientTest, AnswersThatDripHaveATimeInAll) {
  RawServer server;
  auto client = makeClient(addressOf(server.port()),
                           {.pauseSeconds = 60, .totalSeconds = 0.1});
  Watched watched;
  client->send(keepRequest, watched.callbacks());
  auto connection = server.accept();
  ASSERT_TRUE(connection);
  connection->readUntil("\r\n\r\n");
  connection->send("HTTP/1.1 200 OK\r\n\r\n");
  for (int i = 0; i < 2000 && connection->send("x"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::lock_guard lock(watched.mutex);
    if (watched.ends > 0)
      break;
  }
  EXPECT_TRUE(watched.failedWith(HttpFailureKind::TimedOut));
  EXPECT_EQ(watched.message(), "the answer took too long");
}

TEST(HttpClientTest, ConnectionsThatServersEndedAreReplaced) {
  RawServer server;
  auto client = makeClient(addressOf(server.port()));
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  Watched first, second, third, fourth;
  client->send(keepRequest, first.callbacks());
  auto connection = server.accept();
  ASSERT_TRUE(connection);
  connection->readUntil("\r\n\r\n");
  connection->send(answer);
  EXPECT_TRUE(first.ended());
  // Ended while nobody used it.
  connection->leave();
  client->send(keepRequest, second.callbacks());
  connection.emplace(*server.accept());
  connection->readUntil("\r\n\r\n");
  connection->send(answer);
  EXPECT_TRUE(second.ended());
  EXPECT_FALSE(second.failure);
  // Ended when the next request had come: it comes again, on a new one.
  client->send(keepRequest, third.callbacks());
  connection->readUntil("\r\n\r\n");
  connection->leave();
  connection.emplace(*server.accept());
  EXPECT_TRUE(connection->readUntil("\r\n\r\n").starts_with("GET /keep "));
  connection->send(answer);
  EXPECT_TRUE(third.ended());
  EXPECT_FALSE(third.failure);
  // But once only, not again and again.
  client->send(keepRequest, fourth.callbacks());
  connection->readUntil("\r\n\r\n");
  connection->leave();
  connection.emplace(*server.accept());
  connection->readUntil("\r\n\r\n");
  connection->leave();
  EXPECT_TRUE(fourth.failedWith(HttpFailureKind::Broken));
}

TEST(HttpClientTest, WhatNobodyAskedForEndsAConnection) {
  RawServer server;
  auto client = makeClient(addressOf(server.port()));
  Watched first, second;
  client->send(keepRequest, first.callbacks());
  auto connection = server.accept();
  ASSERT_TRUE(connection);
  connection->readUntil("\r\n\r\n");
  // The second answer must not be taken for that of the next request.
  connection->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                   "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  EXPECT_TRUE(first.ended());
  EXPECT_FALSE(first.failure);
  client->send(keepRequest, second.callbacks());
  auto other = server.accept();
  ASSERT_TRUE(other);
  other->readUntil("\r\n\r\n");
  other->send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(second.body, "good");
}
