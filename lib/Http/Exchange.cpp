//===- Exchange.cpp - An answer on its way to a connection ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exchange.h"

#include <boost/asio/post.hpp>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// HttpExchangeState
//===----------------------------------------------------------------------===//

void HttpExchangeState::wake() {
  // A connection that has much to do is told once of many pieces.
  if (std::exchange(waking, true))
    return;
  boost::asio::post(*context, [self = shared_from_this()] {
    bool full;
    {
      std::lock_guard lock(self->mutex);
      self->waking = false;
      full = self->overflown;
    }
    if (full)
      self->overflow();
    self->changed.cancel();
  });
}

bool HttpExchangeState::respond(HttpResponse response) {
  std::lock_guard lock(mutex);
  if (!accepts() || begun)
    return false;
  prepared.reset();
  begun = true;
  output.head = std::move(response);
  output.streams = false;
  output.finished = ended = true;
  wake();
  return true;
}

void HttpExchangeState::begin(HttpResponse response, std::string text) {
  std::lock_guard lock(mutex);
  if (!accepts() || begun || prepared)
    return;
  prepared = std::move(response);
  heartbeat = std::move(text);
  if (!prepared->body.empty())
    releaseHead();
  wake();
}

void HttpExchangeState::releaseHead() {
  output.head = *std::exchange(prepared, std::nullopt);
  output.streams = begun = true;
}

bool HttpExchangeState::releasePrepared() {
  std::lock_guard lock(mutex);
  if (!accepts() || !prepared)
    return false;
  releaseHead();
  return true;
}

void HttpExchangeState::write(std::string_view piece) {
  std::lock_guard lock(mutex);
  if (!(begun || prepared) || !accepts() || piece.empty())
    return;
  if (prepared)
    releaseHead();
  // The first one may be of any size.
  if (output.pieces.empty()) {
    output.pieces = piece;
    room = mostPending;
  } else if (piece.size() > room) {
    overflown = true;
    output.pieces = {};
  } else {
    output.pieces += piece;
    room -= piece.size();
  }
  wake();
}

void HttpExchangeState::finish() {
  std::lock_guard lock(mutex);
  if (!(begun || prepared) || !accepts())
    return;
  if (prepared)
    releaseHead();
  output.finished = ended = true;
  wake();
}

void HttpExchangeState::abandon() {
  std::lock_guard lock(mutex);
  if (!accepts())
    return;
  output.abandoned = ended = true;
  wake();
}

void HttpExchangeState::onClosed(std::function<void()> closed) {
  {
    std::lock_guard lock(mutex);
    if (!isOver) {
      whenClosed = std::move(closed);
      return;
    }
  }
  closed();
}

HttpExchangeState::Output HttpExchangeState::take() {
  std::lock_guard lock(mutex);
  return std::exchange(output, {});
}

bool HttpExchangeState::isPrepared() {
  std::lock_guard lock(mutex);
  return prepared.has_value();
}

void HttpExchangeState::conclude(bool left) {
  std::function<void()> closed;
  {
    std::lock_guard lock(mutex);
    if (std::exchange(isOver, true))
      return;
    closed = std::exchange(whenClosed, {});
  }
  changed.cancel();
  if (closed && left)
    closed();
}

bool HttpExchangeState::isClosed() {
  std::lock_guard lock(mutex);
  return isOver;
}

//===----------------------------------------------------------------------===//
// HttpExchange
//===----------------------------------------------------------------------===//

HttpExchange::HttpExchange(std::shared_ptr<HttpExchangeState> state)
    : state(std::move(state)) {}

HttpExchange::~HttpExchange() { state->abandon(); }

bool HttpExchange::respond(HttpResponse response) {
  return state->respond(std::move(response));
}

void HttpExchange::begin(HttpResponse response, std::string heartbeat) {
  state->begin(std::move(response), std::move(heartbeat));
}

void HttpExchange::write(std::string_view piece) { state->write(piece); }

void HttpExchange::finish() { state->finish(); }

void HttpExchange::onClosed(std::function<void()> closed) {
  state->onClosed(std::move(closed));
}
