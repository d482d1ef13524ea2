//===- Connection.h - One client's requests, one after another --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads requests, hands them on and sends their answers, within limits.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_HTTP_CONNECTION_H
#define SANDWICH_LIB_HTTP_CONNECTION_H

#include "Exchange.h"
#include "sandwich/Http/HttpServer.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <atomic>
#include <set>

namespace sandwich {

class HttpConnection;

/// What the connections of a server share. Of the server's thread.
struct HttpConnections {
  HttpServerOptions options;
  HttpHandler handler;
  std::shared_ptr<boost::asio::io_context> context;
  /// Of the bodies on their way.
  uint64_t bodyBytes = 0;
  /// Requests that were handed on, and whose answers are not sent.
  std::atomic<size_t> answering = 0;
  /// All that there are.
  std::set<HttpConnection *> open = {};
  bool ending = false;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  HttpConnection(Socket socket, bool isLoopback, HttpConnections &server);
  ~HttpConnection();

  /// Until the client leaves, breaks a limit or the server stops.
  boost::asio::awaitable<void> serve();
  /// Tells that there are too many connections.
  boost::asio::awaitable<void> refuse();
  void stop();

private:
  using Stream =
      boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;
  using ErrorCode = boost::system::error_code;

  /// Reads a request; false: there is none, and nothing to say about it.
  boost::asio::awaitable<bool> read(Parser &parser);
  boost::asio::awaitable<bool> readBody(Parser &parser);
  std::string describeTooLarge() const;
  /// False: the connection has ended.
  boost::asio::awaitable<bool> answer(Parser &parser);
  boost::asio::awaitable<bool> send(HttpExchangeState &exchange);
  boost::asio::awaitable<bool> sendHead(HttpResponse response, bool streams);
  boost::asio::awaitable<bool> sendWhole(HttpResponse response);
  boost::asio::awaitable<bool> sendPiece(std::string piece);
  boost::asio::awaitable<bool> sendEnd();
  boost::asio::awaitable<void> fail(unsigned status, std::string message);
  /// Sees the client leave while its answer is made, and keeps what it sends
  /// meanwhile.
  boost::asio::awaitable<void>
  watch(std::shared_ptr<HttpExchangeState> exchange);
  void expireAfter(double seconds);

  Stream stream;
  const bool isLoopback;
  HttpConnections &server;
  boost::beast::flat_buffer buffer;
  /// Of the request that is answered.
  unsigned version = 11;
  bool keepsAlive = false;
  bool isHead = false;
  /// What is answered, if anything.
  std::shared_ptr<HttpExchangeState> answering;
  bool watching = false;
  boost::asio::steady_timer watchEnded;
};

} // namespace sandwich

#endif // SANDWICH_LIB_HTTP_CONNECTION_H
