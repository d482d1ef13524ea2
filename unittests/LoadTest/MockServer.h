//===- MockServer.h - A server that makes up tokens -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A server of OpenAI's API without a model, as fast or as slow and as
/// well-behaved as a test wants it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_LOADTEST_MOCKSERVER_H
#define SANDWICH_UNITTESTS_LOADTEST_MOCKSERVER_H

#include "sandwich/Http/HttpServer.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sandwich::test {

struct MockOptions {
  /// A socket of the file system instead of a port that is free.
  std::optional<std::string> unixSocket = {};
  /// Before the first token, and from each to the next; 0: all at once.
  double firstTokenSeconds = 0;
  double tokenSeconds = 0;
  size_t tokensPerPiece = 1;
  /// Whether answers end with their usage where a request asks for it.
  bool countsTokens = true;
  bool endsWithDone = true;
  /// Otherwise tokens are not seen, as those that are no text.
  bool hasText = true;
  bool listsModels = true;
  bool hasTokenize = true;
  /// What it tells of its context; 0: nothing.
  uint64_t contextTokens = 0;
  /// At a time; beyond, 429.
  size_t mostStreams = 1 << 20;
  /// 400 for requests with one of these members.
  std::vector<std::string> unknownMembers = {};
  /// 400 for prompts of ids.
  bool takesIds = true;
  /// 401 for requests without it.
  std::string apiKey = {};
  /// Made when the fifth request comes; empty: none is.
  std::string startedFile = {};
  /// What prompts of words cost.
  uint64_t tokensPerWord = 1;
  uint64_t moreTokens = 0;

  // Of every so many requests one misbehaves in such a way, from the first
  // after the first `goodRequests` on; 0: none does.
  size_t goodRequests = 1;
  size_t failEvery = 0;
  unsigned failStatus = 503;
  size_t breakEvery = 0;
  size_t hangEvery = 0;
  size_t garbleEvery = 0;
  size_t errorEvery = 0;
  size_t plainEvery = 0;
};

class MockServer {
public:
  static Result<std::unique_ptr<MockServer>> create(MockOptions options);
  MockServer(const MockServer &) = delete;
  MockServer &operator=(const MockServer &) = delete;
  ~MockServer();

  /// "http://127.0.0.1:1234" or "unix:PATH".
  const std::string &address() const { return server->address(); }

  /// The bodies of all requests for completions that came until now.
  std::vector<Json> requests();
  /// Streams under way.
  size_t streams();

private:
  /// An answer under way.
  struct Stream {
    std::shared_ptr<HttpExchange> exchange;
    bool isChat = false;
    bool wantsUsage = false;
    uint64_t promptTokens = 0;
    uint64_t tokens = 0;
    uint64_t sent = 0;
    /// After how many it ends in a way that it should not.
    std::optional<uint64_t> breaksAfter = {};
    std::chrono::steady_clock::time_point begin;
    std::shared_ptr<bool> left = std::make_shared<bool>(false);
  };

  explicit MockServer(MockOptions options) : options(std::move(options)) {}

  void handle(const HttpRequest &request,
              const std::shared_ptr<HttpExchange> &exchange);
  void complete(const Json &body, bool isChat,
                const std::shared_ptr<HttpExchange> &exchange);
  /// Whether the request was to misbehave, and did.
  bool misbehave(size_t number, Stream &stream);
  void start(Stream stream);
  /// What is due by now; false: it is over.
  bool advance(Stream &stream, std::chrono::steady_clock::time_point now) const;
  std::string pieceOf(const Stream &stream) const;
  std::string endOf(const Stream &stream) const;
  void run();

  const MockOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  // Of all that follows.
  std::list<Stream> running;
  std::vector<std::shared_ptr<HttpExchange>> hanging;
  std::vector<Json> received;
  bool ending = false;

  std::thread pacer;
  std::unique_ptr<HttpServer> server;
};

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_LOADTEST_MOCKSERVER_H
