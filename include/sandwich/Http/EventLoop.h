//===- EventLoop.h - A thread that waits for many things --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_HTTP_EVENTLOOP_H
#define SANDWICH_HTTP_EVENTLOOP_H

#include <chrono>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
} // namespace boost::asio

namespace sandwich {

/// Runs, on the thread that calls `run`, what clients do and what they call,
/// so that all of it needs no locks.
class EventLoop {
public:
  using Clock = std::chrono::steady_clock;
  using Work = std::function<void()>;

  EventLoop();
  EventLoop(const EventLoop &) = delete;
  EventLoop &operator=(const EventLoop &) = delete;
  /// Forgets what has not run.
  ~EventLoop();

  /// Until `stop`; may be called again then, and goes on where it stopped.
  void run();
  /// Until `isDone`, which is asked after all that is run. False: `stop`, which
  /// may be empty, said before that nobody waits for it any more; it is asked
  /// as often, and some ten times a second.
  bool runUntil(const std::function<bool()> &isDone,
                const std::function<bool()> &stop = {});

  // From any thread.

  /// Lets `run` return, soon or, if it does not run, when it is called next.
  void stop();
  /// Runs `work` as soon as possible, after what was posted before.
  void post(Work work);
  /// Runs `work` at `time`, or as soon after it as possible.
  void callAt(Clock::time_point time, Work work);

private:
  friend class HttpClient;
  std::unique_ptr<boost::asio::io_context> context;
};

} // namespace sandwich

#endif // SANDWICH_HTTP_EVENTLOOP_H
