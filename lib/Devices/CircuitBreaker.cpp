//===- CircuitBreaker.cpp - When to try again -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/CircuitBreaker.h"

#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/RandomNumbers.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

Status CircuitBreakerOptions::validate() const {
  if (failures < 1)
    return makeError(ErrorKind::InvalidArgument,
                     "no failures cannot open a circuit");
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("the time of an open circuit", openSeconds));
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("the longest time of an open circuit", mostOpenSeconds));
  if (mostOpenSeconds < openSeconds)
    return makeError(ErrorKind::InvalidArgument, "a circuit is open for ",
                     openSeconds, " s at first and for ", mostOpenSeconds,
                     " s at most");
  if (!(growth >= 1 && std::isfinite(growth)))
    return makeError(ErrorKind::InvalidArgument, "the growth is ", growth,
                     "; it must be at least 1");
  if (!(jitter >= 0 && jitter < 1))
    return makeError(ErrorKind::InvalidArgument, "the jitter is ", jitter,
                     "; it must be at least 0 and below 1");
  return {};
}

Result<CircuitBreaker>
CircuitBreaker::create(const CircuitBreakerOptions &options, uint64_t seed) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  return CircuitBreaker(options, seed);
}

bool CircuitBreaker::allow(double now) {
  if (current == State::Open && now >= nextTrial)
    current = State::HalfOpen;
  else if (current != State::Closed)
    return false;
  return true;
}

void CircuitBreaker::succeed() {
  if (current == State::Closed)
    seconds = options.openSeconds;
  current = State::Closed;
  failuresInARow = 0;
}

void CircuitBreaker::fail(double now) {
  if (current == State::Open)
    return;
  if (current == State::Closed && ++failuresInARow < options.failures)
    return;
  current = State::Open;
  failuresInARow = 0;
  const double varied = 1 + options.jitter * (2 * drawUniform(generator) - 1);
  nextTrial = now + seconds * varied;
  seconds = std::min(seconds * options.growth, options.mostOpenSeconds);
}
