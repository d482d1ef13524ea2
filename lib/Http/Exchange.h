//===- Exchange.h - An answer on its way to a connection --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the threads that make an answer leave for the connection that sends it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_HTTP_EXCHANGE_H
#define SANDWICH_LIB_HTTP_EXCHANGE_H

#include "sandwich/Http/HttpServer.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <mutex>

namespace sandwich {

class HttpExchangeState
    : public std::enable_shared_from_this<HttpExchangeState> {
public:
  /// What a connection is to send next.
  struct Output {
    /// Set once, first.
    std::optional<HttpResponse> head;
    /// With the head: whether pieces follow.
    bool streams = false;
    /// Behind the head's body.
    std::string pieces;
    bool finished = false;
    /// Nobody will finish it.
    bool abandoned = false;

    bool empty() const {
      return !head && pieces.empty() && !finished && !abandoned;
    }
  };

  /// `overflow` is called on the connection's thread where more than
  /// `mostPending` bytes wait to be taken.
  HttpExchangeState(std::shared_ptr<boost::asio::io_context> context,
                    size_t mostPending, std::function<void()> overflow)
      : context(std::move(context)), mostPending(mostPending),
        overflow(std::move(overflow)), changed(*this->context) {}

  // Of the makers.
  bool respond(HttpResponse response);
  void begin(HttpResponse response, std::string heartbeat);
  void write(std::string_view piece);
  void finish();
  void abandon();
  void onClosed(std::function<void()> closed);

  // Of the connection, on its executor.
  /// All that there is by now.
  Output take();
  /// An answer has begun of which nothing was taken.
  bool isPrepared();
  /// Its head is to be taken, though there is no piece; false: there is none.
  bool releasePrepared();
  /// Cancelled when there is more to take, or it is closed.
  boost::asio::steady_timer &whenChanged() { return changed; }
  const std::string &heartbeatText() const { return heartbeat; }
  /// The client or the server has left.
  void close() { conclude(/*left=*/true); }
  /// The client has the whole answer.
  void complete() { conclude(/*left=*/false); }
  bool isClosed();

private:
  void conclude(bool left);
  // With the mutex held.
  void wake();
  /// The head of the answer that has begun is the next to be taken.
  void releaseHead();
  bool accepts() const { return !isOver && !ended && !overflown; }

  /// Who makes the answer may outlive the server.
  std::shared_ptr<boost::asio::io_context> context;
  const size_t mostPending;
  const std::function<void()> overflow;
  boost::asio::steady_timer changed;

  std::mutex mutex;
  Output output;
  std::string heartbeat;
  /// The head of an answer that has begun, until there is a piece.
  std::optional<HttpResponse> prepared;
  /// There is a head that was or will be taken.
  bool begun = false;
  /// The makers have said the end.
  bool ended = false;
  /// Bytes that may still be added to the pieces of `output`.
  size_t room = 0;
  bool overflown = false;
  /// The connection takes nothing any more.
  bool isOver = false;
  bool waking = false;
  std::function<void()> whenClosed;
};

} // namespace sandwich

#endif // SANDWICH_LIB_HTTP_EXCHANGE_H
