//===- HttpServer.h - Connections, requests and answers ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An HTTP/1.1 server on Boost.Beast: connections, their limits, and answers
/// that are complete or come in pieces. It knows nothing of models, and its
/// users nothing of sockets.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_HTTP_HTTPSERVER_H
#define SANDWICH_HTTP_HTTPSERVER_H

#include "sandwich/Http/HttpMessage.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich {

/// What a server allows its clients.
struct HttpLimits {
  /// Of a request's first line and headers together. Beyond: 431.
  uint32_t headerBytes = 16 << 10;
  /// Beyond: 413.
  uint64_t bodyBytes = uint64_t{16} << 20;
  /// Of all bodies that are on their way, what has come of them. Beyond: 503.
  uint64_t allBodyBytes = uint64_t{1} << 30;
  /// At a time, those that only wait for a request among them. Beyond: 503.
  size_t connections = 4096;
  /// Of an answer that the client has not read. Beyond, its connection ends.
  size_t unreadBytes = size_t{1} << 20;
  /// From a request's first byte to the end of its headers, and from there to
  /// the end of its body. Beyond, the connection ends.
  double headerSeconds = 10;
  double bodySeconds = 60;
  /// Without a request. Beyond, the connection ends.
  double idleSeconds = 75;
  /// Until the client has read a piece of an answer. Beyond, the connection
  /// ends.
  double writeSeconds = 30;
  /// After so long without a piece of an answer comes its heartbeat.
  double heartbeatSeconds = 10;
};

class HttpExchangeState;

/// A request's answer. All calls may come from any thread and wait for nothing.
/// What comes after the end of the answer, or after the client or the server
/// has left, is without effect.
class HttpExchange {
public:
  explicit HttpExchange(std::shared_ptr<HttpExchangeState> state);
  HttpExchange(const HttpExchange &) = delete;
  HttpExchange &operator=(const HttpExchange &) = delete;
  /// Ends the connection of an answer that is not finished, so that the client
  /// sees that it is not.
  ~HttpExchange();

  /// Answers, unless an answer has begun of which something is on its way:
  /// then, and where the client has left, it returns false.
  bool respond(HttpResponse response);

  /// Begins an answer that `write` continues and `finish` ends, with the
  /// response's body as its first piece. It is on its way with the first piece
  /// that is written, or after the time of a heartbeat; `respond` takes its
  /// place until then, so that what fails meanwhile has its own status. While
  /// nothing is written, `heartbeat` is from time to time, if it is not empty.
  void begin(HttpResponse response, std::string heartbeat = {});
  void write(std::string_view piece);
  void finish();

  /// Calls `closed` once if the client leaves before it has the whole answer,
  /// or at once if it has left: on the server's thread or this one.
  void onClosed(std::function<void()> closed);

private:
  std::shared_ptr<HttpExchangeState> state;
};

/// Called on the server's thread, which serves all connections: what takes long
/// is for another thread.
using HttpHandler = std::function<void(HttpRequest request,
                                       std::shared_ptr<HttpExchange> exchange)>;

struct HttpServerOptions {
  /// An address or a name, and 0 for any port that is free.
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  /// A socket of the file system instead. A socket that nobody listens at any
  /// more is replaced.
  std::optional<std::string> unixSocket = {};
  HttpLimits limits = {};
  /// The answer to what no handler sees: requests that break the protocol or a
  /// limit.
  std::function<HttpResponse(unsigned status, std::string message)>
      describeError = {};
  /// Told, by the server's thread, of connections that cannot be accepted.
  LogCallback log = {};
};

/// Begins when it is created, and serves with a thread of its own.
class HttpServer {
public:
  /// Errors: an address that cannot be listened at, with the reason.
  static Result<std::unique_ptr<HttpServer>> create(HttpServerOptions options,
                                                    HttpHandler handler);

  HttpServer(const HttpServer &) = delete;
  HttpServer &operator=(const HttpServer &) = delete;
  /// As `stop`.
  ~HttpServer();

  /// Where it listens: "http://127.0.0.1:8080", or "unix:PATH".
  const std::string &address() const;
  /// 0 for a Unix socket.
  uint16_t port() const;
  /// Whether only programs of this machine can connect.
  bool isLocal() const;
  size_t connections() const;
  /// Requests whose answers their clients do not have yet.
  size_t answering() const;

  /// From now on connections end with their next answer.
  void endConnections();

  /// Ends all connections, finished or not, and returns when no handler and no
  /// `onClosed` runs any more. Not to be called by one.
  void stop();

private:
  class Implementation;
  explicit HttpServer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace sandwich

#endif // SANDWICH_HTTP_HTTPSERVER_H
