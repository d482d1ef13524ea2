//===- LineChart.h - Curves as SVG ------------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_LINECHART_H
#define SANDWICH_RUNTIME_MEASUREMENT_LINECHART_H

#include "sandwich/Support/Statistics.h"

#include <optional>
#include <string>
#include <vector>

namespace sandwich {

struct ChartPoint {
  double x = 0;
  double y = 0;
  /// Where y lies with confidence.
  std::optional<Interval> interval = {};
};

struct ChartSeries {
  std::string name;
  /// Finite, by x.
  std::vector<ChartPoint> points;
  /// Draws each point, too.
  bool marks = false;
};

/// Curves over one axis. Both axes begin at 0.
struct LineChart {
  std::string title;
  /// With units.
  std::string xLabel;
  std::string yLabel;
  std::vector<ChartSeries> series;
  /// The end of the y axis; nothing: as the points need it.
  std::optional<double> yEnd = {};
  /// A line across, and what it says.
  std::optional<double> goal = {};
  std::string goalName = {};

  /// An element `svg` of HTML, with a text for who cannot see it. Colours are
  /// those of `styleSheet`.
  std::string draw() const;
  /// CSS for all charts of a page, in light and dark.
  static const char *styleSheet();
};

/// The points of the share of `values`, in percent, that are not larger than
/// each, out of `total`, at least one; infinite ones never are reached. At most
/// some hundred points.
std::vector<ChartPoint> cumulativeShares(std::vector<double> values,
                                         size_t total);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_LINECHART_H
