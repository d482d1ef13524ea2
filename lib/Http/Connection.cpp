//===- Connection.cpp - One client's requests, one after another ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>

using namespace sandwich;

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::redirect_error;
using asio::use_awaitable;

/// What one read takes at most, and a client may send ahead of its answer; more
/// ends its connection.
static constexpr size_t readBytes = 4 << 10;
static constexpr size_t mostAhead = 64 << 10;

HttpConnection::HttpConnection(Socket socket, bool isLoopback,
                               HttpConnections &server)
    : stream(std::move(socket)), isLoopback(isLoopback), server(server),
      watchEnded(stream.get_executor()) {
  server.open.insert(this);
}

HttpConnection::~HttpConnection() { server.open.erase(this); }

void HttpConnection::stop() {
  stream.close();
  if (answering)
    answering->close();
}

void HttpConnection::expireAfter(double seconds) {
  stream.expires_after(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(seconds)));
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

asio::awaitable<void> HttpConnection::serve() {
  // A server that is ending answers once more, if only that it is.
  do {
    Parser parser;
    parser.header_limit(server.options.limits.headerBytes);
    parser.body_limit(server.options.limits.bodyBytes);
    // One by one: GCC 12 awaits both sides of an `||`.
    if (!co_await read(parser))
      break;
    if (!co_await answer(parser))
      break;
    // A connection that waits keeps little.
    if (buffer.size() == 0)
      buffer.shrink_to_fit();
  } while (keepsAlive);
  ErrorCode ignored;
  stream.socket().shutdown(Socket::shutdown_both, ignored);
}

asio::awaitable<void> HttpConnection::refuse() {
  co_await fail(503, "this server has as many connections as it allows; try "
                     "again later");
}

asio::awaitable<void> HttpConnection::fail(unsigned status,
                                           std::string message) {
  keepsAlive = false;
  HttpResponse response =
      server.options.describeError
          ? server.options.describeError(status, std::move(message))
          : HttpResponse{.status = status,
                         .contentType = "text/plain",
                         .body = std::move(message)};
  if (!co_await sendWhole(std::move(response)))
    co_return;
  // A socket that is closed with bytes unread is reset, and the client may
  // never see why.
  ErrorCode error;
  stream.socket().shutdown(Socket::shutdown_send, error);
  expireAfter(1);
  char ignored[readBytes];
  for (size_t drained = 0; !error && drained < (size_t{1} << 20);)
    drained += co_await stream.async_read_some(
        asio::buffer(ignored), redirect_error(use_awaitable, error));
}

/// What a client is told of a request that was not understood. 0: nothing.
static unsigned statusOf(const boost::system::error_code &error) {
  if (error == http::error::header_limit)
    return 431;
  if (error == http::error::body_limit)
    return 413;
  if (error == http::error::end_of_stream ||
      error == http::error::partial_message)
    return 0;
  return error.category() ==
                 http::make_error_code(http::error::bad_method).category()
             ? 400
             : 0;
}

/// Whether there is one way only to see where the body ends: what servers read
/// differently, clients can hide from one of them (RFC 9112, section 6.3).
static bool hasClearEnd(const http::request_header<> &request) {
  const auto [first, last] =
      request.equal_range(http::field::transfer_encoding);
  if (first == last)
    return true;
  return std::next(first) == last && request.version() >= 11 &&
         beast::iequals(first->value(), "chunked");
}

asio::awaitable<bool> HttpConnection::read(Parser &parser) {
  ErrorCode error;
  const HttpLimits &limits = server.options.limits;
  if (buffer.size() == 0) {
    expireAfter(limits.idleSeconds);
    const size_t count = co_await stream.async_read_some(
        buffer.prepare(readBytes), redirect_error(use_awaitable, error));
    if (error)
      co_return false;
    buffer.commit(count);
  }
  expireAfter(limits.headerSeconds);
  co_await http::async_read_header(stream, buffer, parser,
                                   redirect_error(use_awaitable, error));
  if (!error) {
    version = parser.get().version();
    keepsAlive = parser.keep_alive();
    isHead = parser.get().method() == http::verb::head;
    if (hasClearEnd(parser.get()))
      co_return co_await readBody(parser);
    co_await fail(400, "a request's Transfer-Encoding must be 'chunked', and "
                       "needs HTTP/1.1");
    co_return false;
  }
  const unsigned status = statusOf(error);
  if (status == 413)
    co_await fail(status, describeTooLarge());
  else if (status == 431)
    co_await fail(status, "the request's headers have more than " +
                              std::to_string(limits.headerBytes) + " bytes");
  else if (status == 400)
    co_await fail(status, "this is no HTTP request: " + error.message());
  co_return false;
}

namespace {
/// Of the memory that all bodies on their way may take.
class BodyShare {
public:
  /// Of `all`, which are `most` together.
  BodyShare(uint64_t &all, uint64_t most) : all(all), most(most) {}
  BodyShare(const BodyShare &) = delete;
  BodyShare &operator=(const BodyShare &) = delete;
  ~BodyShare() { all -= bytes; }

  /// Whether there was room for a body that has come to `size` bytes.
  bool grow(uint64_t size) {
    if (size - bytes > most - all)
      return false;
    all += size - bytes;
    bytes = size;
    return true;
  }

private:
  uint64_t &all;
  const uint64_t most;
  uint64_t bytes = 0;
};
} // namespace

std::string HttpConnection::describeTooLarge() const {
  return "the request's body has more than " +
         std::to_string(server.options.limits.bodyBytes) + " bytes";
}

asio::awaitable<bool> HttpConnection::readBody(Parser &parser) {
  ErrorCode error;
  const HttpLimits &limits = server.options.limits;
  if (beast::iequals(parser.get()[http::field::expect], "100-continue") &&
      !parser.is_done()) {
    http::response<http::empty_body> go(http::status::continue_, version);
    expireAfter(limits.writeSeconds);
    co_await http::async_write(stream, go,
                               redirect_error(use_awaitable, error));
    if (error)
      co_return false;
  }
  expireAfter(limits.bodySeconds);
  // What has come counts, not what was announced: that costs addresses only.
  bool hasRoom = true;
  {
    BodyShare share(server.bodyBytes, limits.allBodyBytes);
    while (!error && hasRoom && !parser.is_done()) {
      co_await http::async_read_some(stream, buffer, parser,
                                     redirect_error(use_awaitable, error));
      hasRoom = share.grow(parser.get().body().size());
    }
  }
  if (!hasRoom) {
    // Others have the memory before this client has heard of it.
    parser.get().body() = std::string();
    co_await fail(503, "this server receives as many bodies as it has memory "
                       "for; try again later");
    co_return false;
  }
  if (!error)
    co_return true;
  const unsigned status = statusOf(error);
  if (status == 413)
    co_await fail(status, describeTooLarge());
  else if (status == 400)
    co_await fail(status, "the request's body is no HTTP: " + error.message());
  co_return false;
}

static HttpRequest toRequest(http::request<http::string_body> message,
                             bool isFromLoopback) {
  HttpRequest request;
  request.isFromLoopback = isFromLoopback;
  request.method = message.method() == http::verb::head
                       ? "GET"
                       : std::string(message.method_string());
  const std::string_view target(message.target().data(),
                                message.target().size());
  const size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos)
    request.query = target.substr(question + 1);
  for (const auto &field : message)
    request.headers.emplace_back(field.name_string(), field.value());
  request.body = std::move(message.body());
  return request;
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

namespace {
/// Counts an answer as long as it is made and sent.
class Answering {
public:
  explicit Answering(std::atomic<size_t> &count) : count(count) { ++count; }
  Answering(const Answering &) = delete;
  Answering &operator=(const Answering &) = delete;
  ~Answering() { --count; }

private:
  std::atomic<size_t> &count;
};
} // namespace

asio::awaitable<bool> HttpConnection::answer(Parser &parser) {
  auto exchange = std::make_shared<HttpExchangeState>(
      server.context, server.options.limits.unreadBytes,
      [weak = weak_from_this()] {
        if (std::shared_ptr<HttpConnection> self = weak.lock())
          self->stop();
      });
  answering = exchange;
  const Answering counted(server.answering);
  server.handler(toRequest(parser.release(), isLoopback),
                 std::make_shared<HttpExchange>(exchange));
  stream.expires_never();
  watching = true;
  watchEnded.expires_at(asio::steady_timer::time_point::max());
  asio::co_spawn(stream.get_executor(), watch(exchange),
                 [self = shared_from_this()](const std::exception_ptr &) {
                   self->watching = false;
                   self->watchEnded.cancel();
                 });
  const bool sent = co_await send(*exchange);
  if (sent)
    exchange->complete();
  else
    stop();
  answering.reset();
  stream.cancel();
  ErrorCode ignored;
  while (watching)
    co_await watchEnded.async_wait(redirect_error(use_awaitable, ignored));
  co_return sent;
}

asio::awaitable<void>
HttpConnection::watch(std::shared_ptr<HttpExchangeState> exchange) {
  ErrorCode error;
  // What is cancelled may be done already: then nobody cancels the next.
  while (!error && !exchange->isClosed() && buffer.size() < mostAhead) {
    const size_t count = co_await stream.async_read_some(
        buffer.prepare(readBytes), redirect_error(use_awaitable, error));
    buffer.commit(count);
  }
  if (error == asio::error::operation_aborted)
    co_return;
  // The end of what a client sends is told once.
  if (error)
    keepsAlive = false;
  // Behind more than is read nobody would see the client leave.
  exchange->close();
}

asio::awaitable<bool> HttpConnection::send(HttpExchangeState &exchange) {
  bool streams = false;
  while (!exchange.isClosed()) {
    HttpExchangeState::Output output = exchange.take();
    if (output.empty()) {
      ErrorCode interrupted;
      asio::steady_timer &changed = exchange.whenChanged();
      if (exchange.isPrepared() ||
          (streams && !exchange.heartbeatText().empty()))
        changed.expires_after(
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(
                    server.options.limits.heartbeatSeconds)));
      else
        changed.expires_at(asio::steady_timer::time_point::max());
      co_await changed.async_wait(redirect_error(use_awaitable, interrupted));
      if (!interrupted && !exchange.releasePrepared() && streams)
        if (!co_await sendPiece(exchange.heartbeatText()))
          co_return false;
      continue;
    }
    if (output.head && !output.streams)
      co_return co_await sendWhole(*std::move(output.head));
    if (output.head) {
      streams = true;
      output.pieces.insert(0, output.head->body);
      if (!co_await sendHead(*std::move(output.head), true))
        co_return false;
    }
    if (!co_await sendPiece(std::move(output.pieces)))
      co_return false;
    if (output.abandoned)
      co_return false;
    if (output.finished)
      co_return co_await sendEnd();
  }
  co_return false;
}

template <typename Message>
static void describe(Message &message, const HttpResponse &response) {
  message.result(response.status);
  message.set(http::field::server, "sandwich");
  message.set(http::field::content_type, response.contentType);
  for (const auto &[name, value] : response.headers)
    message.set(name, value);
}

asio::awaitable<bool> HttpConnection::sendWhole(HttpResponse response) {
  if (isHead)
    co_return co_await sendHead(std::move(response), false);
  keepsAlive = keepsAlive && !server.ending;
  http::response<http::string_body> message;
  message.version(version);
  describe(message, response);
  message.keep_alive(keepsAlive);
  message.body() = std::move(response.body);
  message.prepare_payload();
  ErrorCode error;
  expireAfter(server.options.limits.writeSeconds);
  co_await http::async_write(stream, message,
                             redirect_error(use_awaitable, error));
  co_return !error;
}

asio::awaitable<bool> HttpConnection::sendHead(HttpResponse response,
                                               bool streams) {
  // Before HTTP/1.1 an answer of unknown length ends with its connection.
  keepsAlive = keepsAlive && !server.ending && (!streams || version >= 11);
  http::response<http::empty_body> message;
  message.version(version);
  describe(message, response);
  message.keep_alive(keepsAlive);
  if (!streams)
    message.content_length(response.body.size());
  else if (version >= 11)
    message.chunked(true);
  http::response_serializer<http::empty_body> serializer(message);
  ErrorCode error;
  expireAfter(server.options.limits.writeSeconds);
  co_await http::async_write_header(stream, serializer,
                                    redirect_error(use_awaitable, error));
  co_return !error;
}

asio::awaitable<bool> HttpConnection::sendPiece(std::string piece) {
  if (piece.empty() || isHead)
    co_return true;
  ErrorCode error;
  expireAfter(server.options.limits.writeSeconds);
  const asio::const_buffer bytes = asio::buffer(piece);
  if (version >= 11)
    co_await asio::async_write(stream, http::make_chunk(bytes),
                               redirect_error(use_awaitable, error));
  else
    co_await asio::async_write(stream, bytes,
                               redirect_error(use_awaitable, error));
  co_return !error;
}

asio::awaitable<bool> HttpConnection::sendEnd() {
  if (version < 11 || isHead)
    co_return true;
  ErrorCode error;
  expireAfter(server.options.limits.writeSeconds);
  co_await asio::async_write(stream, http::make_chunk_last(),
                             redirect_error(use_awaitable, error));
  co_return !error;
}
