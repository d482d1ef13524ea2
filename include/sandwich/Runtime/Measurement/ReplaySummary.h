//===- ReplaySummary.h - What a replay comes to -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_REPLAYSUMMARY_H
#define SANDWICH_RUNTIME_MEASUREMENT_REPLAYSUMMARY_H

#include "sandwich/Runtime/Measurement/ServedRequest.h"
#include "sandwich/Serving/ServiceObjectives.h"
#include "sandwich/Support/Json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// The smallest scale at which a request kept the objectives: 1 or less if it
/// kept these, infinity if it was not served.
double keptScale(const ServedRequest &request,
                 const ServiceObjectives &objectives);

/// In percent, the requests that kept the objectives; others than served ones
/// did not. 0
/// of no requests.
double attainmentPercent(const std::vector<ServedRequest> &served,
                         const ServiceObjectives &objectives);

/// Of some requests; milliseconds.
struct Distribution {
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double p99 = 0;

  /// Nothing of no times.
  static std::optional<Distribution> of(const std::vector<double> &seconds);
  /// Null where there is none.
  static Json toJson(const std::optional<Distribution> &times);
  /// "mean 1.00 ms, median 1.00, p90 1.00, p99 1.00".
  std::string describe() const;
};

/// Times of requests that were served, in seconds.
struct ReplayTimes {
  /// From the arrival to the last token, and to the first one.
  std::vector<double> latency;
  std::vector<double> firstToken;
  /// The mean of each token after the first, of requests that have some.
  std::vector<double> perToken;
  /// From each token to the next.
  std::vector<double> betweenTokens;

  explicit ReplayTimes(const std::vector<ServedRequest> &served);
};

struct ReplaySummary {
  size_t requests = 0;
  size_t refused = 0;
  /// In percent; nothing without objectives.
  std::optional<double> attainment;
  uint64_t promptTokens = 0;
  uint64_t outputTokens = 0;
  double seconds = 0;
  /// As in `ReplayTimes`; nothing of no times.
  std::optional<Distribution> latency;
  std::optional<Distribution> ttft;
  std::optional<Distribution> tpot;
  std::optional<Distribution> itl;

  ReplaySummary(const std::vector<ServedRequest> &served,
                const ServiceObjectives &objectives);

  double perSecond(uint64_t tokens) const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
  /// Lines for people.
  std::string describe() const;
  /// Members of an object.
  Json toJson() const;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_REPLAYSUMMARY_H
