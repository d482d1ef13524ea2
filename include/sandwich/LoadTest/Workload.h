//===- Workload.h - What requests come, and when ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LOADTEST_WORKLOAD_H
#define SANDWICH_LOADTEST_WORKLOAD_H

#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sandwich {

/// Numbers of tokens, all as probable, both ends included.
struct TokenRange {
  int64_t least = 1;
  int64_t most = 1;

  /// Reads "128" or "64-256". Errors: anything else; fewer than 1 or more than
  /// `maxTraceTokens`; a range that descends.
  static Result<TokenRange> parse(std::string_view text);

  bool operator==(const TokenRange &) const = default;
};

/// `requests` requests with lengths in these ranges and without arrival times,
/// the same for the same `seed`.
ServingTrace drawLengths(size_t requests, TokenRange prompt, TokenRange output,
                         uint64_t seed);

/// How requests come that do not wait for one another.
enum class ArrivalProcess {
  /// At random; the times between two are gamma-distributed.
  Random,
  /// One after each equal part of time.
  Uniform,
  /// Several at once, after each equal part of time.
  Burst,
};

struct ArrivalOptions {
  ArrivalProcess process = ArrivalProcess::Random;
  /// Of random arrivals: the shape of the distribution of the times between
  /// them. 1: exponential, as in a Poisson process; less: more of them come
  /// close together; more: they are more evenly spread.
  double burstiness = 1;
  /// How many come at once.
  size_t burstSize = 8;
};

/// `trace` with arrivals of its own, `requestsPerSecond` on the average, the
/// same for the same `seed`. With a burstiness of 1 they are those of the other
/// `drawArrivals`. Bursts and uniform arrivals begin at 0. Errors: a rate or a
/// burstiness that is not above 0 and finite; bursts of none.
Result<ServingTrace> drawArrivals(ServingTrace trace,
                                  const ArrivalOptions &options,
                                  double requestsPerSecond, uint64_t seed);

} // namespace sandwich

#endif // SANDWICH_LOADTEST_WORKLOAD_H
