//===- ServiceWatchdog.h - Whether a service still works --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds a service that has work and does none. It decides nothing but that:
/// without threads and clocks, and told from time to time what can be seen of
/// the service from outside.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVICE_SERVICEWATCHDOG_H
#define SANDWICH_SERVICE_SERVICEWATCHDOG_H

#include <cstdint>
#include <optional>

namespace sandwich {

class ServiceWatchdog {
public:
  /// What a look has found.
  struct Verdict {
    /// Whether it has stalled, or goes on after it had.
    bool stalled;
    /// Seconds without the end of a step, so far or altogether.
    double seconds;
  };

  /// A service has stalled that had work for more than `seconds` and ended no
  /// step meanwhile.
  explicit ServiceWatchdog(double seconds) : limit(seconds) {}

  /// One look at `now`, in seconds of one clock that does not go back: whether
  /// there is work, queued or in a step under way, and how many steps have
  /// ended so far. Returns something once when the
  /// service is found stalled, and once when it goes on or has nothing to do.
  std::optional<Verdict> look(double now, bool hasWork, uint64_t stepsEnded);

  bool stalled() const { return told; }

private:
  const double limit;
  /// The look since which there was work, and no step ended.
  std::optional<double> since;
  uint64_t steps = 0;
  bool told = false;
};

} // namespace sandwich

#endif // SANDWICH_SERVICE_SERVICEWATCHDOG_H
