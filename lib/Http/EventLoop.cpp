//===- EventLoop.cpp - A thread that waits for many things ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/EventLoop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

using namespace sandwich;

namespace asio = boost::asio;

EventLoop::EventLoop() : context(std::make_unique<asio::io_context>(1)) {}

EventLoop::~EventLoop() = default;

void EventLoop::run() {
  // Whatever stopped it before: somebody, or that there was nothing to do.
  context->restart();
  const auto busy = asio::make_work_guard(*context);
  context->run();
}

bool EventLoop::runUntil(const std::function<bool()> &isDone,
                         const std::function<bool()> &stop) {
  const auto busy = asio::make_work_guard(*context);
  while (!isDone()) {
    if (stop && stop())
      return false;
    context->restart();
    context->run_one_for(std::chrono::milliseconds(100));
  }
  return true;
}

void EventLoop::stop() {
  // Behind what was posted before, and also seen by a `run` that comes later.
  asio::post(*context, [context = context.get()] { context->stop(); });
}

void EventLoop::post(Work work) { asio::post(*context, std::move(work)); }

void EventLoop::callAt(Clock::time_point time, Work work) {
  auto timer = std::make_shared<asio::steady_timer>(*context, time);
  timer->async_wait(
      [timer, work = std::move(work)](const boost::system::error_code &error) {
        if (!error)
          work();
      });
}
