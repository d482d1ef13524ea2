//===- RequestEvents.h - What comes of a request, for C ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_CAPI_REQUESTEVENTS_H
#define SANDWICH_LIB_RUNTIME_CAPI_REQUESTEVENTS_H

#include "sandwich/Runtime/sandwich.h"
#include "sandwich/Service/Service.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace sandwich::capi {

/// An event as C sees it, whose pointers lead into this.
class ShownEvent {
public:
  ShownEvent() = default;
  ShownEvent(const ShownEvent &) = delete;
  ShownEvent &operator=(const ShownEvent &) = delete;

  const sandwich_event *show(GeneratedToken shown);
  const sandwich_event *show(const RequestEnd &shown);

private:
  GeneratedToken token = {};
  RequestEnd end = {};
  std::vector<sandwich_log_probability> top;
  sandwich_token tokenOfC = {};
  sandwich_request_end endOfC = {};
  sandwich_event event = {};
};

/// Takes a request's events from the service's thread to the caller's callback,
/// or keeps them until the caller asks.
class RequestEvents {
public:
  using Callback = void (*)(void *user_data, const sandwich_event *event);

  /// `callback` may be null.
  RequestEvents(Callback callback, void *userData)
      : callback(callback), userData(userData) {}
  ~RequestEvents() { closeDescriptor(); }

  // The service's thread. Where memory is short, the request ends with an error
  // that says so.
  void tell(const GeneratedToken &token) noexcept;
  void tell(const RequestEnd &end) noexcept;

  /// The next event, or null after `seconds`; negative ones are for ever.
  /// Errors, InvalidArgument: seconds that are NaN, or events that go to a
  /// callback.
  Result<const sandwich_event *> next(double seconds);

  /// Readable while there is an event. Errors: InvalidArgument as `next`, or
  /// the system grants none.
  Result<int> readyDescriptor();

  /// From now on nothing is told; returns when a callback that another thread
  /// is calling has returned.
  void close();

private:
  void call(const sandwich_event *event);
  /// Wakes who waits for events, of which there is one now.
  void announce();
  bool hasEvent() const { return !tokens.empty() || end; }
  void closeDescriptor();

  const Callback callback;
  void *const userData;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<GeneratedToken> tokens;
  std::optional<RequestEnd> end;
  /// A token that there was no memory for.
  bool lostToken = false;
  bool closed = false;
  /// Who is calling the callback.
  std::optional<std::thread::id> caller;
  /// -1 until it is asked for.
  int descriptor = -1;

  /// Of the thread that calls `next` or the callback.
  ShownEvent shown;
};

} // namespace sandwich::capi

#endif // SANDWICH_LIB_RUNTIME_CAPI_REQUESTEVENTS_H
