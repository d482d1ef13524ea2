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

#include <boost/asio/any_io_executor.hpp>
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
    /// It will not be finished, or the client reads too slowly.
    bool failed = false;

    bool empty() const {
      return !head && pieces.empty() && !finished && !failed;
    }
  };

  HttpExchangeState(const boost::asio::any_io_executor &executor,
                    size_t mostPending)
      : executor(executor), mostPending(mostPending), changed(executor) {}

  // Of the makers.
  void begin(HttpResponse response, bool streams, std::string heartbeat);
  void write(std::string_view piece);
  void finish();
  void abandon();
  void onClosed(std::function<void()> closed);

  // Of the connection, on its executor.
  /// All that there is by now.
  Output take();
  /// `changed` is cancelled when there is more to take.
  boost::asio::steady_timer &whenChanged() { return changed; }
  const std::string &heartbeatText() const { return heartbeat; }
  /// The client has left, or has the whole answer.
  void close();
  bool isClosed();

private:
  /// With the mutex held.
  void wake();
  bool accepts() const {
    return !isOver && !output.finished && !output.failed && !ended;
  }

  boost::asio::any_io_executor executor;
  const size_t mostPending;
  boost::asio::steady_timer changed;

  std::mutex mutex;
  Output output;
  std::string heartbeat;
  bool begun = false;
  /// The makers have said the end.
  bool ended = false;
  /// The connection takes nothing any more.
  bool isOver = false;
  bool waking = false;
  std::function<void()> whenClosed;
};

} // namespace sandwich

#endif // SANDWICH_LIB_HTTP_EXCHANGE_H
