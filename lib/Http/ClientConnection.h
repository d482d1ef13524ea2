//===- ClientConnection.h - Requests of a client, one by one ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A request of a client with its time limits, and a connection that carries
/// one after another.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_HTTP_CLIENTCONNECTION_H
#define SANDWICH_LIB_HTTP_CLIENTCONNECTION_H

#include "sandwich/Http/HttpClient.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>

#include <vector>

namespace sandwich {

using ClientSocket = boost::asio::generic::stream_protocol::socket;

/// A request and what is known of its answer. Of the client's loop.
class HttpCall : public std::enable_shared_from_this<HttpCall> {
public:
  using Clock = EventLoop::Clock;

  HttpCall(boost::asio::io_context &context, HttpCallId id, HttpRequest request,
           HttpCallbacks callbacks, const HttpClientLimits &limits);

  /// Begins to watch the time.
  void begin();
  /// From now on `socket` is what is closed to end the call; null: there is
  /// none.
  void use(ClientSocket *socket);
  /// Calls `interrupt` instead, while there is no socket yet.
  void interruptWith(std::function<void()> interrupt);
  /// Ends the call where it waits. The first reason counts.
  void fail(HttpFailureKind kind, std::string message);
  /// Of the phase that begins now: how long it may take without a piece, and
  /// what to say when it has.
  void enterPhase(double seconds, const char *timeOut);

  void tellHead(const HttpResponseHead &head);
  /// False: the call has ended.
  bool tellBody(std::string_view piece);
  /// Tells the end once, unless `forget` was called.
  void tellEnd();
  /// Nobody is called back any more.
  void forget();

  HttpCallId id() const { return callId; }
  const HttpRequest &request() const { return message; }
  const HttpClientLimits &limits() const { return allowed; }
  const std::optional<HttpFailure> &failure() const { return reason; }

private:
  void watch();
  Clock::time_point timeLimit() const;

  const HttpCallId callId;
  const HttpRequest message;
  HttpCallbacks callbacks;
  const HttpClientLimits &allowed;
  boost::asio::steady_timer timer;
  Clock::time_point lastLimit;
  Clock::time_point lastPiece;
  Clock::duration pause = Clock::duration::zero();
  const char *pauseMessage = "";
  ClientSocket *current = nullptr;
  std::function<void()> interruption;
  std::optional<HttpFailure> reason;
  bool silent = false;
  bool over = false;
};

/// A body that is told to a call, piece by piece, and kept nowhere.
struct CallBody {
  using value_type = HttpCall *;

  class reader {
  public:
    template <bool isRequest, typename Fields>
    reader(boost::beast::http::header<isRequest, Fields> &, value_type &call)
        : call(call) {}
    void init(const boost::optional<uint64_t> &,
              boost::system::error_code &error) {
      error = {};
    }
    template <typename Buffers>
    size_t put(const Buffers &buffers, boost::system::error_code &error) {
      error = {};
      size_t count = 0;
      for (auto part = boost::asio::buffer_sequence_begin(buffers);
           part != boost::asio::buffer_sequence_end(buffers); ++part) {
        const boost::asio::const_buffer bytes = *part;
        if (!call->tellBody(
                {static_cast<const char *>(bytes.data()), bytes.size()})) {
          error = boost::asio::error::operation_aborted;
          return count;
        }
        count += bytes.size();
      }
      return count;
    }
    void finish(boost::system::error_code &error) { error = {}; }

  private:
    /// Set once the head is read.
    value_type &call;
  };
};

/// Carries calls one after another.
class ClientConnection {
public:
  using Endpoints =
      std::vector<boost::asio::generic::stream_protocol::endpoint>;

  explicit ClientConnection(boost::asio::io_context &context)
      : socket(context) {}

  /// Connects to the first of `endpoints` that answers; false: `call` has
  /// failed.
  boost::asio::awaitable<bool> connect(HttpCall &call,
                                       const Endpoints &endpoints,
                                       const HttpAddress &address);
  enum class Ending {
    /// The connection can carry another call.
    Reusable,
    /// It cannot; the call is complete, or has failed.
    Done,
    /// The server ended the connection before it answered anything.
    Unanswered,
  };
  boost::asio::awaitable<Ending> carry(HttpCall &call,
                                       const HttpAddress &address);

  /// Whether the server has neither ended it nor said what nobody asked for.
  bool isUsable();

  HttpCall::Clock::time_point unusedSince;

private:
  using Parser = boost::beast::http::response_parser<CallBody>;
  using ErrorCode = boost::system::error_code;

  boost::asio::awaitable<ErrorCode> write(const HttpCall &call,
                                          const HttpAddress &address);
  /// Reads the head of the answer, after any that only say to go on.
  boost::asio::awaitable<ErrorCode> readHead(std::optional<Parser> &parser,
                                             HttpCall &call);

  ClientSocket socket;
  boost::beast::flat_buffer buffer;
};

} // namespace sandwich

#endif // SANDWICH_LIB_HTTP_CLIENTCONNECTION_H
