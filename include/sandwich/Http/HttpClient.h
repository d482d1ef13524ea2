//===- HttpClient.h - Many requests to one server ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An HTTP/1.1 client on Boost.Beast: as many requests at a time as one likes,
/// over connections that are used again, and answers that are told of as they
/// come. There is no TLS.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_HTTP_HTTPCLIENT_H
#define SANDWICH_HTTP_HTTPCLIENT_H

#include "sandwich/Http/EventLoop.h"
#include "sandwich/Http/HttpMessage.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich {

/// Where a server listens.
struct HttpAddress {
  /// A name or an address, without the brackets of IPv6.
  std::string host;
  uint16_t port = 80;
  /// Put before the path of each request; it does not end with a slash.
  std::string basePath = {};
  /// A socket of the file system instead of a host.
  std::optional<std::string> unixSocket = {};

  /// Reads "http://host:port/base" or "unix:/path/of/socket". Errors: https,
  /// as there is no TLS; users, queries and fragments; what is no URL.
  static Result<HttpAddress> parse(std::string_view url);
  /// What the header Host has.
  std::string authority() const;
};

/// What a client allows its server.
struct HttpClientLimits {
  /// Of an answer's first line and headers together, and of its body.
  uint32_t headerBytes = 64 << 10;
  uint64_t bodyBytes = uint64_t{1} << 32;
  /// Requests under way at a time; others wait.
  size_t connections = 4096;
  /// Until a connection is made, and between any two pieces of an answer, the
  /// first one after the request.
  double connectSeconds = 10;
  double pauseSeconds = 600;
  /// From `send` to the end of the answer.
  double totalSeconds = 3600;
  /// An unused connection is not used again after so long.
  double idleSeconds = 60;
};

struct HttpClientOptions {
  HttpAddress server;
  HttpClientLimits limits = {};
  /// Send a request once more whose connection was used before and ends before
  /// the answer begins. The server may have acted on it all the same: not for
  /// requests that must not happen twice.
  bool resendUnanswered = true;
};

enum class HttpFailureKind {
  /// Nobody listens there, or the address is not known.
  NotConnected,
  TimedOut,
  /// The server ended the connection before the answer was complete.
  Broken,
  /// What it says is no HTTP, or the request is none.
  Protocol,
  /// A limit of the client's.
  TooLarge,
  /// By `cancel`, by a callback, or as the client has gone.
  Cancelled,
};

/// Why there is no complete answer.
struct HttpFailure {
  HttpFailureKind kind;
  /// A sentence without its end.
  std::string message;
};

struct HttpResponseHead {
  unsigned status = 0;
  HttpHeaders headers;

  /// The first header of this name; nothing: there is none.
  std::optional<std::string_view> header(std::string_view name) const {
    return findHeader(headers, name);
  }
};

/// Called on the client's thread; any may be empty.
struct HttpCallbacks {
  std::function<void(const HttpResponseHead &head)> onHead = {};
  /// A piece of the body, which lives as long as the call; false: no more is
  /// wanted, and the request ends as cancelled.
  std::function<bool(std::string_view piece)> onBody = {};
  /// Once, last. Null: the answer is complete.
  std::function<void(const HttpFailure *failure)> onEnd = {};
};

/// Names a request of a client.
using HttpCallId = uint64_t;

/// The whole of a small answer.
struct HttpAnswer {
  HttpResponseHead head;
  std::string body;
};

/// All calls may come from any thread, callbacks among them, and wait for
/// nothing. A request whose connection was used before and ends before the
/// answer begins is sent once more on a new one, as servers end connections
/// that wait, unless `HttpClientOptions::resendUnanswered` is false.
class HttpClient {
public:
  /// With a thread of its own. Error: the system grants none.
  static Result<std::unique_ptr<HttpClient>> create(HttpClientOptions options);
  /// Lives on `loop`, which runs as long as anything is to happen and outlives
  /// the client.
  static std::unique_ptr<HttpClient> create(HttpClientOptions options,
                                            EventLoop &loop);

  HttpClient(const HttpClient &) = delete;
  HttpClient &operator=(const HttpClient &) = delete;
  /// With a thread of its own it cancels all requests, and returns when no
  /// callback runs any more; not to be called by one. On a loop it is destroyed
  /// by the loop's thread or while the loop does not run, and nobody is called
  /// back any more.
  ~HttpClient();

  /// Sends a request; its path begins with a slash, and its headers need not
  /// have Host, Content-Length or Connection.
  HttpCallId send(HttpRequest request, HttpCallbacks callbacks);

  /// Ends a request, and its connection, if it is under way.
  void cancel(HttpCallId id);

  /// Sends a request and returns its answer, of whose body at most `mostBytes`
  /// are taken. Runs the loop meanwhile, if the client lives on one. Not to be
  /// called by a callback. `stop`, which may be empty, is asked some ten times
  /// a second. Error: there is no complete answer, and why.
  Result<HttpAnswer> ask(HttpRequest request,
                         size_t mostBytes = size_t{1} << 20,
                         const std::function<bool()> &stop = {});

private:
  class Implementation;
  explicit HttpClient(std::shared_ptr<Implementation> implementation);
  std::shared_ptr<Implementation> implementation;
};

} // namespace sandwich

#endif // SANDWICH_HTTP_HTTPCLIENT_H
