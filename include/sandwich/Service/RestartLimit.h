//===- RestartLimit.h - How often ranks are started anew --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVICE_RESTARTLIMIT_H
#define SANDWICH_SERVICE_RESTARTLIMIT_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace sandwich {

/// Ranks that fail again and again are not worth the time that starting them
/// takes; those that fail once a week are. Times are seconds of one clock,
/// which does not go back.
class RestartLimit {
public:
  /// At most `most` restarts within any `window` seconds; nothing: any number.
  RestartLimit(std::optional<uint32_t> most, double window)
      : most(most), window(window) {}

  /// Takes one of the restarts. Error: there was none left at `now`.
  Status take(double now);

private:
  const std::optional<uint32_t> most;
  const double window;
  /// Of the last `most` at most, in order.
  std::deque<double> taken;
};

} // namespace sandwich

#endif // SANDWICH_SERVICE_RESTARTLIMIT_H
