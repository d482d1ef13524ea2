//===- RequestEvents.cpp - What comes of a request, for C -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RequestEvents.h"

#include "Calls.h"

#include <chrono>
#include <cmath>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

using namespace sandwich;
using namespace sandwich::capi;

static sandwich_finish_reason
finishReasonOf(const std::optional<FinishReason> &reason) {
  if (!reason)
    return SANDWICH_FINISH_NONE;
  switch (*reason) {
  case FinishReason::EndOfText:
    return SANDWICH_FINISH_END_OF_TEXT;
  case FinishReason::Stopped:
    return SANDWICH_FINISH_STOPPED;
  case FinishReason::MaxTokens:
    return SANDWICH_FINISH_MAX_TOKENS;
  case FinishReason::ContextFull:
    return SANDWICH_FINISH_CONTEXT_FULL;
  }
  return SANDWICH_FINISH_NONE;
}

const sandwich_event *ShownEvent::show(GeneratedToken shown) {
  token = std::move(shown);
  const SampledToken &sampled = token.token;
  top.clear();
  for (const TokenLogProbability &each : sampled.top)
    top.push_back({each.token, each.logProbability});
  tokenOfC = {.text_index = token.text,
              .token = sampled.token,
              .piece = token.piece.c_str(),
              .piece_bytes = token.piece.size(),
              .finish_reason = finishReasonOf(token.finish),
              .log_probability = sampled.logProbability.value_or(0),
              .top = top.empty() ? nullptr : top.data(),
              .top_count = top.size()};
  event = {.token = &tokenOfC, .end = nullptr};
  return &event;
}

const sandwich_event *ShownEvent::show(const RequestEnd &shown) {
  end = shown;
  endOfC = {.status =
                end.status ? SANDWICH_OK : statusOf(end.status.error().kind),
            .error = end.status ? nullptr : end.status.error().message.c_str(),
            .queue_seconds = end.queueSeconds,
            .prefill_seconds = end.prefillSeconds,
            .decode_seconds = end.decodeSeconds,
            .prompt_tokens = end.promptTokens,
            .cached_tokens = end.cachedTokens,
            .generated_tokens = end.generatedTokens,
            .preemptions = end.preemptions};
  event = {.token = nullptr, .end = &endOfC};
  return &event;
}

void RequestEvents::call(const sandwich_event *event) {
  {
    std::lock_guard lock(mutex);
    if (closed)
      return;
    caller = std::this_thread::get_id();
  }
  callback(userData, event);
  {
    std::lock_guard lock(mutex);
    caller.reset();
  }
  changed.notify_all();
}

void RequestEvents::announce() {
  changed.notify_all();
  if (descriptor >= 0)
    (void)::eventfd_write(descriptor, 1);
}

void RequestEvents::tell(const GeneratedToken &token) noexcept {
  try {
    if (callback)
      return call(shown.show(token));
    std::lock_guard lock(mutex);
    if (closed)
      return;
    tokens.push_back(token);
    announce();
  } catch (const std::bad_alloc &) {
    lostToken = true;
  }
}

void RequestEvents::tell(const RequestEnd &told) noexcept {
  RequestEnd ended;
  try {
    ended = told;
    if (lostToken && ended.status)
      ended.status = makeError("there was not enough memory for its tokens");
  } catch (const std::bad_alloc &) {
    // Short enough to need no memory.
    ended.status = Error{"out of memory"};
  }
  if (callback) {
    try {
      return call(shown.show(ended));
    } catch (const std::bad_alloc &) {
      ended.status = Error{"out of memory"};
      return call(shown.show(ended));
    }
  }
  std::lock_guard lock(mutex);
  if (closed)
    return;
  end = std::move(ended);
  announce();
}

static Error calledError() {
  return makeError(ErrorKind::InvalidArgument,
                   "the request's events go to its on_event");
}

Result<const sandwich_event *> RequestEvents::next(double seconds) {
  if (callback)
    return calledError();
  if (std::isnan(seconds))
    return makeError(ErrorKind::InvalidArgument,
                     "timeout_seconds is not a number");
  std::unique_lock lock(mutex);
  const auto ready = [&] { return hasEvent(); };
  // Longer waits than this the clock cannot count.
  constexpr double longest = 1e9;
  if (seconds < 0 || seconds > longest)
    changed.wait(lock, ready);
  else if (!changed.wait_for(lock, std::chrono::duration<double>(seconds),
                             ready))
    return nullptr;
  if (tokens.empty())
    return shown.show(*end);
  GeneratedToken token = std::move(tokens.front());
  tokens.pop_front();
  eventfd_t announced = 0;
  if (!hasEvent() && descriptor >= 0)
    (void)::eventfd_read(descriptor, &announced);
  return shown.show(std::move(token));
}

Result<int> RequestEvents::readyDescriptor() {
  if (callback)
    return calledError();
  std::lock_guard lock(mutex);
  if (descriptor < 0) {
    descriptor = ::eventfd(hasEvent() ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0)
      return systemError("make a descriptor for a request's events");
  }
  return descriptor;
}

void RequestEvents::close() {
  std::unique_lock lock(mutex);
  closed = true;
  tokens.clear();
  // Who polls a duplicate of the descriptor.
  announce();
  closeDescriptor();
  changed.wait(
      lock, [&] { return !caller || *caller == std::this_thread::get_id(); });
}

void RequestEvents::closeDescriptor() {
  if (descriptor >= 0)
    ::close(std::exchange(descriptor, -1));
}
