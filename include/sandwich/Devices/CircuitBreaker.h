//===- CircuitBreaker.h - When to try again ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_CIRCUITBREAKER_H
#define SANDWICH_DEVICES_CIRCUITBREAKER_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <random>

namespace sandwich {

struct CircuitBreakerOptions {
  /// So many failures in a row open the circuit.
  uint32_t failures = 1;
  /// Until the first trial, and how much longer until each one that follows, at
  /// most.
  double openSeconds = 1;
  double growth = 2;
  double mostOpenSeconds = 60;
  /// The share by which these times vary, so that many clients of one server
  /// do not all try at once.
  double jitter = 0.2;

  /// Errors (InvalidArgument): no failures; times that are not above 0 and at
  /// most `maxDeviceSeconds`, or descend; a growth below 1; a jitter that is
  /// not at least 0 and below 1.
  Status validate() const;
};

/// Keeps away from what fails (Nygard, Release It!, 2007): closed, all may use
/// it; open, nobody does for a while; half open, one trial decides. A state
/// machine without clock: it is told the time, in seconds that never descend.
///
/// The times grow until something succeeds while the circuit is closed. That
/// the trial does is not enough: what flaps passes its trials.
class CircuitBreaker {
public:
  enum class State { Closed, Open, HalfOpen };

  /// `seed`: of the jitter. Errors: as `CircuitBreakerOptions::validate`.
  static Result<CircuitBreaker> create(const CircuitBreakerOptions &options,
                                       uint64_t seed);

  /// Whether it may be used now. Open, and the time has come: yes, and that is
  /// the trial, of which `succeed` or `fail` tells the end.
  bool allow(double now);
  /// Begins a trial now, whatever the state.
  void beginTrial() { current = State::HalfOpen; }

  void succeed();
  void fail(double now);

  State state() const { return current; }
  /// While it is open: when the next trial may be.
  double trialTime() const { return nextTrial; }

private:
  CircuitBreaker(const CircuitBreakerOptions &options, uint64_t seed)
      : options(options), generator(seed), seconds(options.openSeconds) {}

  CircuitBreakerOptions options;
  std::mt19937_64 generator;
  State current = State::Closed;
  uint32_t failuresInARow = 0;
  /// How long it is open next time.
  double seconds;
  double nextTrial = 0;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_CIRCUITBREAKER_H
