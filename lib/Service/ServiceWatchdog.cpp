//===- ServiceWatchdog.cpp - Whether a service still works ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/ServiceWatchdog.h"

#include <utility>

using namespace sandwich;

std::optional<ServiceWatchdog::Verdict>
ServiceWatchdog::look(double now, bool hasWork, uint64_t stepsEnded) {
  const bool moved = std::exchange(steps, stepsEnded) != stepsEnded;
  if (moved || !hasWork || !since) {
    const double began = since.value_or(now);
    since = hasWork ? std::optional(now) : std::nullopt;
    if (!std::exchange(told, false))
      return std::nullopt;
    return Verdict{false, now - began};
  }
  if (told || now - *since <= limit)
    return std::nullopt;
  told = true;
  return Verdict{true, now - *since};
}
