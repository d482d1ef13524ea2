//===- HttpServerTest.cpp - Connections, requests and answers -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpServer.h"
#include "RawClient.h"
#include "TemporaryFolder.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

using namespace sandwich;
using sandwich::test::TemporaryFolder;

namespace {

/// Whether it becomes true within ten seconds.
template <typename Condition> bool becomesTrue(Condition condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

::testing::AssertionResult tell(bool holds, const std::string &text,
                                const std::string &part) {
  return (holds ? ::testing::AssertionSuccess() : ::testing::AssertionFailure())
         << "text: " << text << "\npart: " << part;
}
::testing::AssertionResult startsWith(const std::string &text,
                                      const std::string &part) {
  return tell(text.starts_with(part), text, part);
}
::testing::AssertionResult endsWith(const std::string &text,
                                    const std::string &part) {
  return tell(text.ends_with(part), text, part);
}
::testing::AssertionResult contains(const std::string &text,
                                    const std::string &part) {
  return tell(text.find(part) != std::string::npos, text, part);
}

class HttpServerTest : public ::testing::Test {
protected:
  HttpServerTest() {
    options.port = 0;
    options.describeError = [](unsigned status, std::string message) {
      return HttpResponse{.status = status, .body = "error: " + message};
    };
  }

  void start() {
    auto created = HttpServer::create(
        options,
        [this](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
          handle(std::move(request), std::move(exchange));
        });
    ASSERT_TRUE(created) << created.error().message;
    server = *std::move(created);
  }

  /// "/echo" answers at once; "/keep" leaves the exchange to the test.
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    if (request.path == "/echo") {
      exchange->respond(
          {.contentType = "text/plain",
           .body = request.method + " " + request.query + " " + request.body,
           .headers = {{"X-Mark", std::string(request.header("x-mark").value_or(
                                      "none"))}}});
      return;
    }
    if (request.path == "/drop")
      return;
    exchange->onClosed([this] { ++closed; });
    std::lock_guard lock(mutex);
    kept.push_back(std::move(exchange));
  }

  std::shared_ptr<HttpExchange> takeKept() {
    std::shared_ptr<HttpExchange> taken;
    EXPECT_TRUE(becomesTrue([&] {
      std::lock_guard lock(mutex);
      if (kept.empty())
        return false;
      taken = std::move(kept.back());
      kept.pop_back();
      return true;
    }));
    return taken;
  }

  RawClient connect() { return RawClient(server->port()); }

  HttpServerOptions options;
  std::atomic<int> closed = 0;
  std::mutex mutex;
  std::vector<std::shared_ptr<HttpExchange>> kept;
  std::unique_ptr<HttpServer> server;
};

/// A socket of the file system at `path`; -1 if that fails.
int bindSocket(const std::string &path) {
  const int made = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return ::bind(made, reinterpret_cast<const sockaddr *>(&address),
                sizeof(address)) == 0
             ? made
             : -1;
}

const std::string keepRequest = "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n";

} // namespace

//===----------------------------------------------------------------------===//
// Requests and answers
//===----------------------------------------------------------------------===//

TEST_F(HttpServerTest, AnswersSeveralRequestsOnOneConnection) {
  start();
  RawClient client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send("POST /echo?a=b HTTP/1.1\r\nHost: a\r\nX-MARK: 7\r\n"
                "Content-Length: 5\r\n\r\nhello");
    const std::string answer = client.readResponse();
    EXPECT_TRUE(startsWith(answer, "HTTP/1.1 200 OK\r\n"));
    EXPECT_TRUE(contains(answer, "X-Mark: 7\r\n"));
    EXPECT_TRUE(contains(answer, "Content-Type: text/plain\r\n"));
    EXPECT_TRUE(endsWith(answer, "\r\n\r\nPOST a=b hello"));
  }
}

TEST_F(HttpServerTest, AnswersRequestsThatCameTogetherInTheirOrder) {
  start();
  RawClient client = connect();
  client.send("GET /echo?1 HTTP/1.1\r\nHost: a\r\n\r\n"
              "GET /echo?2 HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(endsWith(client.readResponse(), "GET 1 "));
  EXPECT_TRUE(endsWith(client.readResponse(), "GET 2 "));
}

TEST_F(HttpServerTest, SendsNoBodyForHead) {
  start();
  RawClient client = connect();
  client.send("HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string answer = client.readAll();
  EXPECT_TRUE(contains(answer, "Content-Length: 5\r\n"));
  EXPECT_TRUE(endsWith(answer, "\r\n\r\n"));
}

TEST_F(HttpServerTest, TakesBodiesInChunks) {
  start();
  RawClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\n"
              "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n"
              "0\r\n\r\n");
  EXPECT_TRUE(endsWith(client.readResponse(), "POST  abcde"));
}

TEST_F(HttpServerTest, TellsClientsThatAskToGoOn) {
  start();
  RawClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
              "Content-Length: 2\r\n\r\n");
  EXPECT_TRUE(startsWith(client.readUntil("\r\n\r\n"), "HTTP/1.1 100 "));
  client.send("ab");
  EXPECT_TRUE(endsWith(client.readResponse(), "POST  ab"));
}

TEST_F(HttpServerTest, StreamsPieces) {
  start();
  RawClient client = connect();
  client.send(keepRequest);
  auto exchange = takeKept();
  exchange->begin({.contentType = "text/event-stream", .body = "first"});
  const std::string head = client.readUntil("first\r\n");
  EXPECT_TRUE(contains(head, "Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(endsWith(head, "\r\n\r\n5\r\nfirst\r\n"));
  exchange->write("second");
  EXPECT_EQ(client.readUntil("second\r\n"), "6\r\nsecond\r\n");
  exchange->finish();
  exchange->write("late");
  EXPECT_EQ(client.readUntil("0\r\n\r\n"), "0\r\n\r\n");
  // The connection lives on.
  client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(endsWith(client.readResponse(), "GET  "));
  EXPECT_EQ(closed, 0);
}

TEST_F(HttpServerTest, StreamsToOldClientsUntilTheConnectionEnds) {
  start();
  RawClient client = connect();
  client.send("GET /keep HTTP/1.0\r\n\r\n");
  auto exchange = takeKept();
  exchange->begin({.body = "one "});
  exchange->write("two");
  exchange->finish();
  const std::string answer = client.readAll();
  EXPECT_FALSE(contains(answer, "chunked"));
  EXPECT_TRUE(endsWith(answer, "\r\n\r\none two"));
}

TEST_F(HttpServerTest, SendsHeartbeatsWhileNothingComes) {
  options.limits.heartbeatSeconds = 0.02;
  start();
  RawClient client = connect();
  client.send(keepRequest);
  auto exchange = takeKept();
  exchange->begin({.body = "begin"}, ": wait\n\n");
  EXPECT_TRUE(contains(client.readUntil(": wait\n\n"), "begin"));
  EXPECT_TRUE(endsWith(client.readUntil(": wait\n\n"), ": wait\n\n"));
  exchange->finish();
  EXPECT_TRUE(endsWith(client.readUntil("0\r\n\r\n"), "0\r\n\r\n"));
}

TEST_F(HttpServerTest, EndsTheConnectionOfAnAnswerThatIsDropped) {
  start();
  RawClient client = connect();
  client.send("GET /drop HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.readAll(), "");

  RawClient other = connect();
  other.send(keepRequest);
  auto exchange = takeKept();
  exchange->begin({.body = "begun"});
  other.readUntil("begun\r\n");
  exchange.reset();
  // No last chunk: the client sees that the answer is not complete.
  EXPECT_EQ(other.readAll(), "");
}

//===----------------------------------------------------------------------===//
// Clients that leave
//===----------------------------------------------------------------------===//

TEST_F(HttpServerTest, TellsOfClientsThatLeaveBeforeTheAnswer) {
  start();
  RawClient client = connect();
  client.send(keepRequest);
  auto exchange = takeKept();
  client.leave();
  EXPECT_TRUE(becomesTrue([&] { return closed == 1; }));
  exchange->respond({.body = "nobody reads this"});
  exchange->finish();
}

TEST_F(HttpServerTest, TellsOfClientsThatLeaveWithinAnAnswer) {
  start();
  RawClient client = connect();
  client.send(keepRequest);
  auto exchange = takeKept();
  exchange->begin({.body = "begun"});
  client.readUntil("begun");
  client.leave();
  EXPECT_TRUE(becomesTrue([&] { return closed == 1; }));
  int later = 0;
  exchange->onClosed([&] { ++later; });
  EXPECT_EQ(later, 1);
  EXPECT_TRUE(becomesTrue([&] { return server->connections() == 0; }));
}

TEST_F(HttpServerTest, SeesClientsLeaveThatHaveSentMoreRequests) {
  start();
  RawClient client = connect();
  client.send(keepRequest + keepRequest);
  auto exchange = takeKept();
  client.leave();
  EXPECT_TRUE(becomesTrue([&] { return closed == 1; }));
}

// The end of what a client sends is told once, and may come with the answer.
TEST_F(HttpServerTest, EndsConnectionsOfClientsThatSendNoMore) {
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(connect());
    clients.back().send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    clients.back().stopSending();
  }
  EXPECT_TRUE(becomesTrue([&] { return server->connections() == 0; }));
}

TEST_F(HttpServerTest, EndsClientsThatSendMuchAhead) {
  start();
  RawClient client = connect();
  client.send(keepRequest + std::string(200 << 10, ' '));
  auto exchange = takeKept();
  EXPECT_TRUE(becomesTrue([&] { return closed == 1; }));
  EXPECT_EQ(client.readAll(), "");
}

// A request that arrives together with the end of the answer before it.
TEST_F(HttpServerTest, AnswersRequestsThatMeetAnAnswer) {
  start();
  const std::string request = "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n";
  std::vector<std::thread> clients;
  std::atomic<int> answers = 0;
  constexpr int threads = 4, rounds = 2000;
  for (int i = 0; i < threads; ++i)
    clients.emplace_back([&] {
      RawClient client = connect();
      client.send(request);
      for (int round = 0; round < rounds; ++round) {
        client.send(request);
        const std::string answer = client.readUntil("GET  ");
        if (!answer.ends_with("GET  "))
          return;
        ++answers;
      }
    });
  for (std::thread &client : clients)
    client.join();
  EXPECT_EQ(answers, threads * rounds);
}

TEST_F(HttpServerTest, EndsClientsThatDoNotRead) {
  options.limits.unreadBytes = 256 << 10;
  start();
  RawClient reader = connect();
  RawClient client = connect();
  client.send(keepRequest);
  auto exchange = takeKept();
  exchange->begin({.body = "begun"});
  const std::string piece(32 << 10, 'x');
  // What the system buffers comes first.
  EXPECT_TRUE(becomesTrue([&] {
    exchange->write(piece);
    return closed == 1;
  }));
  // Others do not notice.
  reader.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(endsWith(reader.readResponse(), "GET  "));
}

// As the prompt that a stream may begin with.
TEST_F(HttpServerTest, APieceOfAnySizeIsNoReasonToEndAClient) {
  options.limits.unreadBytes = 64 << 10;
  start();
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) {
    RawClient client = connect();
    client.send(keepRequest);
    auto exchange = takeKept();
    exchange->begin({});
    exchange->write(large);
    exchange->write("the end");
    exchange->finish();
    EXPECT_TRUE(contains(client.readUntil("0\r\n\r\n"), "the end"));
  }
}

TEST_F(HttpServerTest, EndsClientsThatTakeTooLongToRead) {
  options.limits.unreadBytes = size_t{64} << 20;
  options.limits.writeSeconds = 0.1;
  start();
  RawClient client = connect();
  client.send(keepRequest);
  auto exchange = takeKept();
  exchange->begin({.body = std::string(size_t{32} << 20, 'x')});
  EXPECT_TRUE(becomesTrue([&] { return closed == 1; }));
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

TEST_F(HttpServerTest, RefusesWhatIsNoRequest) {
  start();
  for (const char *text :
       {"nonsense\r\n\r\n", "GET /echo HTTP/9.9\r\n\r\n",
        "GET /echo HTTP/1.1\r\nno colon\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    RawClient client = connect();
    client.send(text);
    const std::string answer = client.readAll();
    EXPECT_TRUE(startsWith(answer, "HTTP/1.1 400 ")) << text;
    EXPECT_TRUE(contains(answer, "error: ")) << text;
    EXPECT_TRUE(contains(answer, "Connection: close\r\n")) << text;
  }
}

TEST_F(HttpServerTest, RefusesBodiesWithoutAClearEnd) {
  start();
  for (const char *headers :
       {"HTTP/1.1\r\nTransfer-Encoding: gzip",
        "HTTP/1.1\r\nTransfer-Encoding: chunked, gzip",
        "HTTP/1.1\r\nTransfer-Encoding: gzip, chunked",
        "HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "HTTP/1.0\r\nTransfer-Encoding: chunked",
        "HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked",
        "HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3"}) {
    RawClient client = connect();
    client.send(std::string("POST /echo ") + headers +
                "\r\n\r\n{}GET /echo HTTP/1.1\r\n\r\n");
    const std::string answer = client.readAll();
    EXPECT_TRUE(startsWith(answer, "HTTP/1."));
    EXPECT_TRUE(contains(answer, " 400 Bad Request\r\n")) << headers;
    // No other request is found in what may be the body.
    EXPECT_FALSE(contains(answer, " 200 OK\r\n")) << headers;
  }
}

TEST_F(HttpServerTest, RefusesHugeHeaders) {
  options.limits.headerBytes = 1024;
  start();
  RawClient client = connect();
  client.send("GET /echo HTTP/1.1\r\nA: " + std::string(4096, 'x') +
              "\r\n\r\n");
  const std::string answer = client.readAll();
  EXPECT_TRUE(startsWith(answer, "HTTP/1.1 431 "));
  EXPECT_TRUE(endsWith(answer, "error: the request's headers have more than "
                               "1024 bytes"));
}

TEST_F(HttpServerTest, RefusesHugeBodiesBeforeTheyAreSent) {
  options.limits.bodyBytes = 1000;
  start();
  RawClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\n"
              "Content-Length: 1001\r\n\r\n");
  const std::string answer = client.readAll();
  EXPECT_TRUE(startsWith(answer, "HTTP/1.1 413 "));
  EXPECT_TRUE(
      endsWith(answer, "error: the request's body has more than 1000 bytes"));

  RawClient exact = connect();
  exact.send("POST /echo HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" +
             std::string(1000, 'x'));
  EXPECT_TRUE(startsWith(exact.readResponse(), "HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, RefusesBodiesInChunksThatBecomeTooLarge) {
  options.limits.bodyBytes = 1000;
  start();
  RawClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
              "400\r\n" +
              std::string(0x400, 'x') + "\r\n0\r\n\r\n");
  EXPECT_TRUE(startsWith(client.readAll(), "HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, ReceivesNoMoreBodiesAtATimeThanAllowed) {
  options.limits.allBodyBytes = 1500;
  start();
  const std::string head =
      "POST /echo HTTP/1.1\r\nContent-Length: 1000\r\n\r\n";
  const std::string whole = head + std::string(1000, 'x');
  // What is only announced takes no memory.
  RawClient announced = connect();
  announced.send(head);
  RawClient early = connect();
  early.send(whole);
  EXPECT_TRUE(startsWith(early.readResponse(), "HTTP/1.1 200 "));
  RawClient first = connect();
  first.send(whole.substr(0, whole.size() - 100));
  // The server may take a while to read what was sent.
  std::string answer;
  for (int i = 0; i < 1000 && !startsWith(answer, "HTTP/1.1 503 "); ++i) {
    RawClient second = connect();
    second.send(whole);
    answer = second.readResponse();
  }
  EXPECT_TRUE(startsWith(answer, "HTTP/1.1 503 ")) << answer;
  first.send(std::string(100, 'x'));
  EXPECT_TRUE(startsWith(first.readResponse(), "HTTP/1.1 200 "));
  RawClient third = connect();
  third.send(whole);
  EXPECT_TRUE(startsWith(third.readResponse(), "HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, EndsClientsThatSendSlowly) {
  options.limits.headerSeconds = 0.05;
  options.limits.bodySeconds = 0.05;
  start();
  RawClient header = connect();
  header.send("GET /echo HT");
  EXPECT_EQ(header.readAll(), "");
  // A byte now and then does not help.
  RawClient dripping = connect();
  for (int i = 0; i < 1000 && dripping.send("G"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(dripping.readAll(), "");
  RawClient body = connect();
  body.send("POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(body.readAll(), "");
}

TEST_F(HttpServerTest, EndsConnectionsThatWaitForNothing) {
  options.limits.idleSeconds = 0.05;
  start();
  RawClient client = connect();
  EXPECT_EQ(client.readAll(), "");
  EXPECT_TRUE(becomesTrue([&] { return server->connections() == 0; }));
}

TEST_F(HttpServerTest, RefusesConnectionsOverTheLimit) {
  options.limits.connections = 1;
  start();
  {
    RawClient first = connect();
    first.send("GET /echo HTTP/1.1\r\n\r\n");
    first.readResponse();
    RawClient second = connect();
    EXPECT_TRUE(startsWith(second.readAll(), "HTTP/1.1 503 "));
    first.send("GET /echo HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(startsWith(first.readResponse(), "HTTP/1.1 200 "));
  }
  ASSERT_TRUE(becomesTrue([&] { return server->connections() == 0; }));
  RawClient third = connect();
  third.send("GET /echo HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(startsWith(third.readResponse(), "HTTP/1.1 200 "));
}

//===----------------------------------------------------------------------===//
// The server's life
//===----------------------------------------------------------------------===//

TEST_F(HttpServerTest, ListensAtASocketOfTheFileSystem) {
  TemporaryFolder folder;
  options.unixSocket = folder.file("socket");
  for (int i = 0; i < 2; ++i) {
    start();
    EXPECT_EQ(server->address(), "unix:" + *options.unixSocket);
    RawClient client(*options.unixSocket);
    client.send("GET /echo HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(startsWith(client.readResponse(), "HTTP/1.1 200 "));
    auto second = HttpServer::create(options, [](auto &&...) {});
    ASSERT_FALSE(second);
    EXPECT_TRUE(
        contains(second.error().message, "another process listens there"));
    server.reset();
    EXPECT_FALSE(std::filesystem::exists(*options.unixSocket));
  }
  // Nobody listens at what a server that was killed has left.
  const int left = bindSocket(*options.unixSocket);
  ASSERT_GE(left, 0);
  ::close(left);
  start();
  RawClient client(*options.unixSocket);
  EXPECT_TRUE(client.isConnected());
}

TEST_F(HttpServerTest, TakesNoPathThatIsNotItsOwn) {
  TemporaryFolder folder;
  options.unixSocket = folder.file("notes.txt");
  std::ofstream(*options.unixSocket) << "notes";
  auto created = HttpServer::create(options, [](auto &&...) {});
  ASSERT_FALSE(created);
  EXPECT_TRUE(contains(created.error().message, "notes.txt: cannot listen: "));
  EXPECT_EQ(std::filesystem::file_size(*options.unixSocket), 5u);

  // Somebody who listens, and takes nobody at the moment.
  options.unixSocket = folder.file("busy");
  const int busy = bindSocket(*options.unixSocket);
  ASSERT_GE(busy, 0);
  ASSERT_EQ(::listen(busy, 0), 0);
  RawClient first(*options.unixSocket);
  created = HttpServer::create(options, [](auto &&...) {});
  ASSERT_FALSE(created);
  EXPECT_TRUE(
      contains(created.error().message, "another process listens there"));
  EXPECT_TRUE(std::filesystem::is_socket(*options.unixSocket));
  ::close(busy);
}

TEST_F(HttpServerTest, SaysWhereItCannotListen) {
  start();
  HttpServerOptions taken = options;
  taken.port = server->port();
  auto second = HttpServer::create(taken, [](auto &&...) {});
  ASSERT_FALSE(second);
  EXPECT_TRUE(contains(second.error().message,
                       "127.0.0.1:" + std::to_string(server->port()) +
                           ": cannot listen: Address already in use"));

  options.host = "256.1.1.1";
  auto nowhere = HttpServer::create(options, [](auto &&...) {});
  ASSERT_FALSE(nowhere);
  EXPECT_TRUE(startsWith(nowhere.error().message, "256.1.1.1: "));

  options.unixSocket = std::string(200, 'x');
  auto longPath = HttpServer::create(options, [](auto &&...) {});
  ASSERT_FALSE(longPath);
  EXPECT_TRUE(contains(longPath.error().message, "1 to 107 bytes"));
}

TEST_F(HttpServerTest, EndsConnectionsWithTheirNextAnswer) {
  start();
  RawClient client = connect();
  client.send(keepRequest);
  auto exchange = takeKept();
  server->endConnections();
  EXPECT_TRUE(becomesTrue([&] {
    exchange->respond({.body = "last"});
    return true;
  }));
  const std::string answer = client.readAll();
  EXPECT_TRUE(contains(answer, "Connection: close\r\n"));
  EXPECT_TRUE(endsWith(answer, "last"));
}

TEST_F(HttpServerTest, AnswersConnectionsThatComeWhileItEnds) {
  start();
  server->endConnections();
  RawClient client = connect();
  client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string answer = client.readAll();
  EXPECT_TRUE(startsWith(answer, "HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(contains(answer, "Connection: close\r\n"));
}

TEST_F(HttpServerTest, StopsWithAnswersUnderWay) {
  start();
  RawClient waiting = connect(), streaming = connect(), idle = connect();
  waiting.send(keepRequest);
  auto first = takeKept();
  streaming.send(keepRequest);
  auto second = takeKept();
  second->begin({.body = "begun"});
  streaming.readUntil("begun\r\n");
  server->stop();
  EXPECT_EQ(closed, 2);
  EXPECT_EQ(waiting.readAll(), "");
  EXPECT_EQ(streaming.readAll(), "");
  EXPECT_EQ(idle.readAll(), "");
  server.reset();
  // Who makes the answers may be slow to notice.
  first->respond({.body = "late"});
  second->write("late");
  second->finish();
}

TEST_F(HttpServerTest, TakesAnswersFromManyThreadsWhileClientsComeAndGo) {
  start();
  std::atomic<bool> ended = false;
  std::thread maker([&] {
    while (!ended) {
      std::vector<std::shared_ptr<HttpExchange>> taken;
      {
        std::lock_guard lock(mutex);
        taken.swap(kept);
      }
      for (auto &exchange : taken) {
        exchange->begin({.body = "a"});
        for (int i = 0; i < 10; ++i)
          exchange->write("bc");
        exchange->finish();
      }
    }
  });
  std::vector<std::thread> clients;
  std::atomic<int> complete = 0;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&, i] {
      for (int k = 0; k < 100; ++k) {
        RawClient client = connect();
        client.send(keepRequest);
        if ((k + i) % 3 == 0)
          continue;
        if (client.readUntil("0\r\n\r\n").ends_with("0\r\n\r\n"))
          ++complete;
      }
    });
  for (std::thread &client : clients)
    client.join();
  ended = true;
  maker.join();
  EXPECT_EQ(complete, 400 - 134);
  EXPECT_TRUE(becomesTrue([&] { return server->connections() == 0; }));
}
