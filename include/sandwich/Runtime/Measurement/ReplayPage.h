//===- ReplayPage.h - A replay as a page of charts --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_REPLAYPAGE_H
#define SANDWICH_RUNTIME_MEASUREMENT_REPLAYPAGE_H

#include "sandwich/Runtime/Measurement/LineChart.h"
#include "sandwich/Runtime/Measurement/ReplaySummary.h"
#include "sandwich/Serving/GoodputSearch.h"
#include "sandwich/Support/Json.h"

#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// A trace that was served.
struct ReplayRun {
  /// Where the rate of the arrivals was drawn.
  std::optional<RateTrial> trial;
  std::vector<ServedRequest> served;

  /// "2 requests/s", or "all requests" where no rate was drawn.
  std::string name() const;
};

/// Those that charts with a curve for each run show, by their rates: all, or of
/// many the ones around the highest rate that was served well.
std::vector<const ReplayRun *> chosenRuns(const std::vector<ReplayRun> &runs);

/// What a page shows.
struct ReplayPage {
  /// Of its head: the model, and lines about artifact, machine and trace.
  std::string title;
  std::vector<std::string> lines;
  const std::vector<ReplayRun> &runs;
  ServiceObjectives objectives;
  /// The attainment that is a line in charts.
  double wantedAttainment = 0.9;
  /// All numbers, which the page holds, too.
  Json data;
  /// Markup that follows the table of runs, and charts that follow the others.
  std::string moreMarkup = {};
  std::vector<LineChart> moreCharts = {};

  /// HTML that needs no other file, and is well-formed XML.
  std::string draw() const;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_REPLAYPAGE_H
