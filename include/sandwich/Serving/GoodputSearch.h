//===- GoodputSearch.h - The highest rate that is served well ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Goodput: the highest rate of requests at which a share of them, nine of ten
/// as a rule, is served within the objectives (section 7.1 of the paper, after
/// Zhong et al. 2024). How a rate is tried is the caller's: on an engine, or in
/// simulated time.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_GOODPUTSEARCH_H
#define SANDWICH_SERVING_GOODPUTSEARCH_H

#include "sandwich/Support/Result.h"
#include "sandwich/Support/Statistics.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace sandwich {

struct GoodputOptions {
  /// Of all requests, refused ones too.
  double attainment = 0.9;
  /// The first rate that is tried, and the range of the others; requests a
  /// second.
  double firstRate = 1;
  double lowestRate = 1.0 / 256;
  double highestRate = 4096;
  /// The search ends when the lowest rate known to be too high is at most so
  /// many times the highest one that is not.
  double precision = 1.05;
  /// A rate is tried with `leastRequests`, and with twice as many again and
  /// again until the interval of its attainment excludes the one wanted, or
  /// there are `mostRequests`. The least are so many that queues can fill.
  size_t leastRequests = 100;
  size_t mostRequests = 400;

  /// Errors (InvalidArgument): an attainment that is not between 0 and 1, rates
  /// that do not ascend from above 0, a precision of not more than 1, fewer
  /// than one request or fewer at most than at least.
  Status validate() const;
};

/// A rate that was tried.
struct RateTrial {
  double rate = 0;
  size_t requests = 0;
  /// Requests that got what the objectives promise.
  size_t kept = 0;
  /// Of the attainment, at 95% confidence of one look at independent requests.
  /// Neighbours in a queue are not quite independent, and a rate may be looked
  /// at twice or three times.
  Interval interval;
  /// The interval excludes the attainment wanted. Otherwise the share of the
  /// requests decides.
  bool certain = false;
  bool attained = false;

  /// Sets the last three from the others; there is a request.
  void conclude(double wantedAttainment);

  double attainment() const {
    return static_cast<double>(kept) / static_cast<double>(requests);
  }
};

/// Is told of each request in the order of their arrivals whether it kept the
/// objectives; false: no more are needed.
using KeptObserver = std::function<bool(bool kept)>;

/// Serves at most `requests` requests that arrive at random, `rate` a second,
/// and tells `observe` of them.
using RateRunner = std::function<Status(double rate, size_t requests,
                                        const KeptObserver &observe)>;

struct Goodput {
  /// Nothing: not even the lowest rate is served well.
  std::optional<double> rate;
  /// The lowest rate tried that is not; nothing: even the highest is.
  std::optional<double> tooHigh;
};

/// Doubles or halves the rate until one is served well and another is not, and
/// bisects the ratio between them. `onTrial` gets each rate that was tried.
/// Errors: invalid options, and the runner's.
Result<Goodput>
findGoodput(const GoodputOptions &options, const RateRunner &runner,
            const std::function<void(const RateTrial &)> &onTrial);

} // namespace sandwich

#endif // SANDWICH_SERVING_GOODPUTSEARCH_H
