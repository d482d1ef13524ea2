//===- LoadSummary.h - What a server did beside serving ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `ReplaySummary` does not tell of a run, as an engine of this process
/// does not do it: refusals and their times, failures, pieces of several
/// tokens, and the load over time.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LOADTEST_LOADSUMMARY_H
#define SANDWICH_LOADTEST_LOADSUMMARY_H

#include "sandwich/Runtime/Measurement/LineChart.h"
#include "sandwich/Runtime/Measurement/ReplayPage.h"
#include "sandwich/Runtime/Measurement/ReplaySummary.h"
#include "sandwich/Runtime/Measurement/ServedRequest.h"
#include "sandwich/Support/Json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// The failures of a kind, with what one of them says.
struct FailureCount {
  std::string kind;
  size_t count = 0;
  std::string example;
};

/// What happened in each part of a run; all parts take as long.
struct LoadTimeline {
  /// Of each part; 0 where there are none.
  double partSeconds = 0;
  std::vector<double> tokensPerSecond;
  /// Requests that had arrived and not ended, on the average.
  std::vector<double> inFlight;

  /// At most `mostParts` of them.
  static constexpr size_t mostParts = 120;
  explicit LoadTimeline(const std::vector<ServedRequest> &requests);
};

struct LoadSummary {
  size_t served = 0;
  size_t failed = 0;
  /// The most frequent ones first.
  std::vector<FailureCount> failures;
  /// Of requests that were refused, from their arrival to the refusal.
  std::optional<Distribution> refusal;
  /// From the time when a request was to come until it was sent: the client's
  /// own delay, which the other times include.
  std::optional<Distribution> lateness;
  /// Tokens that a piece of a served stream has.
  double tokensPerPiece = 0;
  uint64_t cachedPromptTokens = 0;
  /// From the first arrival to the last end.
  double seconds = 0;
  /// Requests that kept the objectives; nothing without any.
  std::optional<size_t> kept;
  LoadTimeline timeline;

  LoadSummary(const std::vector<ServedRequest> &requests,
              const ServiceObjectives &objectives);

  /// Lines for people.
  std::string describe() const;
  /// Members of an object.
  Json toJson() const;
};

/// A table of all failures, as markup; empty where there are none.
std::string drawFailures(const std::vector<ReplayRun> &runs);

/// Tokens and requests over time, and how long refusals took where there were
/// some.
std::vector<LineChart> drawLoads(const std::vector<ReplayRun> &runs);

} // namespace sandwich

#endif // SANDWICH_LOADTEST_LOADSUMMARY_H
