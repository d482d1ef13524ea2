//===- ClientConnection.cpp - Requests of a client, one by one ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClientConnection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sys/socket.h>
#include <utility>

using namespace sandwich;

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::redirect_error;
using asio::use_awaitable;

/// So much is read at once from the beginning on: many small pieces, or a
/// large one.
static constexpr size_t readBytes = 16 << 10;
/// Heads that only say to go on, before a server is not believed any more.
static constexpr int mostInterimHeads = 16;

static HttpCall::Clock::duration toDuration(double seconds) {
  return std::chrono::duration_cast<HttpCall::Clock::duration>(
      std::chrono::duration<double>(seconds));
}

//===----------------------------------------------------------------------===//
// HttpCall
//===----------------------------------------------------------------------===//

HttpCall::HttpCall(asio::io_context &context, HttpCallId id,
                   HttpRequest request, HttpCallbacks callbacks,
                   const HttpClientLimits &limits)
    : callId(id), message(std::move(request)), callbacks(std::move(callbacks)),
      allowed(limits), timer(context) {}

void HttpCall::begin() {
  lastPiece = Clock::now();
  lastLimit = lastPiece + toDuration(allowed.totalSeconds);
}

HttpCall::Clock::time_point HttpCall::timeLimit() const {
  return std::min(lastLimit, lastPiece + pause);
}

void HttpCall::enterPhase(double seconds, const char *timeOut) {
  lastPiece = Clock::now();
  pause = toDuration(seconds);
  pauseMessage = timeOut;
  watch();
}

/// Pieces only move the limit: there may be thousands before the timer ends,
/// which then begins anew.
void HttpCall::watch() {
  timer.expires_at(timeLimit());
  timer.async_wait(
      [weak = weak_from_this()](const boost::system::error_code &error) {
        const std::shared_ptr<HttpCall> self = weak.lock();
        if (error || !self || self->over)
          return;
        const Clock::time_point now = Clock::now();
        if (now < self->timeLimit())
          self->watch();
        else
          self->fail(HttpFailureKind::TimedOut,
                     now < self->lastLimit ? self->pauseMessage
                                           : "the answer took too long");
      });
}

void HttpCall::use(ClientSocket *socket) {
  current = socket;
  interruption = {};
}

void HttpCall::interruptWith(std::function<void()> interrupt) {
  interruption = std::move(interrupt);
}

void HttpCall::fail(HttpFailureKind kind, std::string message) {
  if (over || reason)
    return;
  reason = HttpFailure{kind, std::move(message)};
  boost::system::error_code ignored;
  if (current)
    (void)current->close(ignored);
  if (interruption)
    interruption();
}

void HttpCall::tellHead(const HttpResponseHead &head) {
  lastPiece = Clock::now();
  if (callbacks.onHead && !silent)
    callbacks.onHead(head);
}

bool HttpCall::tellBody(std::string_view piece) {
  if (reason)
    return false;
  lastPiece = Clock::now();
  if (silent || !callbacks.onBody || callbacks.onBody(piece))
    return !reason;
  fail(HttpFailureKind::Cancelled, "no more of the answer was wanted");
  return false;
}

void HttpCall::tellEnd() {
  if (std::exchange(over, true))
    return;
  timer.cancel();
  // What they hold is given back now, whoever still holds the call.
  const HttpCallbacks told = std::exchange(callbacks, {});
  if (told.onEnd && !silent)
    told.onEnd(reason ? &*reason : nullptr);
}

void HttpCall::forget() {
  // One of the callbacks may be who asks.
  silent = true;
  fail(HttpFailureKind::Cancelled, "the client has gone");
}

//===----------------------------------------------------------------------===//
// ClientConnection
//===----------------------------------------------------------------------===//

asio::awaitable<bool> ClientConnection::connect(HttpCall &call,
                                                const Endpoints &endpoints,
                                                const HttpAddress &address) {
  ErrorCode error = asio::error::host_not_found;
  for (const auto &endpoint : endpoints) {
    ErrorCode ignored;
    (void)socket.close(ignored);
    call.use(&socket);
    co_await socket.async_connect(endpoint,
                                  redirect_error(use_awaitable, error));
    if (call.failure())
      co_return false;
    if (error)
      continue;
    // Requests are written at once; waiting for more would only delay them.
    if (!address.unixSocket)
      (void)socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    buffer.reserve(readBytes);
    co_return true;
  }
  call.fail(
      HttpFailureKind::NotConnected,
      "cannot connect to " +
          (address.unixSocket ? *address.unixSocket : address.authority()) +
          ": " + error.message());
  co_return false;
}

bool ClientConnection::isUsable() {
  char byte;
  const ssize_t count =
      ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

asio::awaitable<boost::system::error_code>
ClientConnection::write(const HttpCall &call, const HttpAddress &address) {
  const HttpRequest &request = call.request();
  http::request<http::string_body> message;
  message.method_string(request.method);
  message.target(address.basePath + request.path +
                 (request.query.empty() ? "" : "?" + request.query));
  message.version(11);
  message.set(http::field::host, address.authority());
  for (const auto &[name, value] : request.headers)
    message.set(name, value);
  message.body() = request.body;
  message.prepare_payload();
  ErrorCode error;
  co_await http::async_write(socket, message,
                             redirect_error(use_awaitable, error));
  co_return error;
}

asio::awaitable<boost::system::error_code>
ClientConnection::readHead(std::optional<Parser> &parser, HttpCall &call) {
  ErrorCode error;
  for (int heads = 0; heads < mostInterimHeads; ++heads) {
    parser.emplace();
    parser->header_limit(call.limits().headerBytes);
    parser->body_limit(call.limits().bodyBytes);
    parser->get().body() = &call;
    parser->skip(call.request().method == "HEAD");
    co_await http::async_read_header(socket, buffer, *parser,
                                     redirect_error(use_awaitable, error));
    if (error || parser->get().result_int() >= 200)
      co_return error;
  }
  co_return http::error::bad_status;
}

static HttpFailure describe(const boost::system::error_code &error,
                            bool begun) {
  if (error == http::error::header_limit)
    return {HttpFailureKind::TooLarge, "the answer's headers are too large"};
  if (error == http::error::body_limit)
    return {HttpFailureKind::TooLarge, "the answer's body is too large"};
  if (error == http::error::end_of_stream ||
      error == http::error::partial_message ||
      error.category() == asio::error::get_system_category() ||
      error.category() == asio::error::get_misc_category())
    return {HttpFailureKind::Broken,
            begun ? "the server ended the connection within its answer"
                  : "the server ended the connection without an answer"};
  return {HttpFailureKind::Protocol,
          "the server's answer is no HTTP: " + error.message()};
}

asio::awaitable<ClientConnection::Ending>
ClientConnection::carry(HttpCall &call, const HttpAddress &address) {
  call.use(&socket);
  // A server that will not read all of a request may have said why before it
  // ended the connection.
  const ErrorCode unwritten = co_await write(call, address);
  if (call.failure())
    co_return Ending::Done;
  call.enterPhase(call.limits().pauseSeconds,
                  "the server sent nothing for too long");
  std::optional<Parser> parser;
  ErrorCode error = co_await readHead(parser, call);
  if (call.failure())
    co_return Ending::Done;
  if (error) {
    const HttpFailure failure = describe(error, parser->got_some());
    if (failure.kind == HttpFailureKind::Broken && !parser->got_some())
      co_return Ending::Unanswered;
    call.fail(failure.kind, failure.message);
    co_return Ending::Done;
  }
  HttpResponseHead head{.status = parser->get().result_int(), .headers = {}};
  for (const auto &field : parser->get())
    head.headers.emplace_back(field.name_string(), field.value());
  call.tellHead(head);
  if (call.failure())
    co_return Ending::Done;
  co_await http::async_read(socket, buffer, *parser,
                            redirect_error(use_awaitable, error));
  if (!call.failure() && error) {
    const HttpFailure failure = describe(error, true);
    call.fail(failure.kind, failure.message);
  }
  if (call.failure() || unwritten || !parser->keep_alive() || buffer.size() > 0)
    co_return Ending::Done;
  co_return Ending::Reusable;
}
