//===- LineChart.cpp - Curves as SVG --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/LineChart.h"

#include "sandwich/Support/Markup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace sandwich;

// Of the drawing, in its own units.
static constexpr double width = 640, height = 360;
static constexpr double left = 64, right = 16, top = 16, bottom = 56;
/// Of the style sheet.
static constexpr size_t colours = 6;

const char *LineChart::styleSheet() {
  return R"(:root { color-scheme: light dark; --text: #1f2933; --soft: #52606d;
  --page: #ffffff; --grid: #d9e2ec; --c0: #0b69a3; --c1: #c2410c; --c2: #2f7d32;
  --c3: #8e24aa; --c4: #6d4c1f; --c5: #ad1457; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7eb; --soft: #9aa5b1;
  --page: #14191f; --grid: #323f4b; --c0: #62b0e8; --c1: #f6a15b; --c2: #81c784;
  --c3: #ce93d8; --c4: #d7b98a; --c5: #f48fb1; } }
svg.chart { width: 100%; max-width: 640px; height: auto; }
svg.chart text { fill: var(--text); font-size: 12px; }
svg.chart .grid { stroke: var(--grid); stroke-width: 1; }
svg.chart .axis { stroke: var(--soft); stroke-width: 1; }
svg.chart .goal { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 5 4; }
svg.chart .curve { fill: none; stroke-width: 2; }
)";
}

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

/// In the drawing's units, where a tenth is enough.
static std::string place(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

/// 1, 2 or 5 times a power of ten, so that an axis to `end` has about six.
static double tickStep(double end) {
  const double rough = end / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough)
      return factor * power;
  return 10 * power;
}

namespace {
/// A chart, and where its numbers lie in the drawing.
class Drawing {
public:
  explicit Drawing(const LineChart &chart) : chart(chart) {
    double xMost = 0, yMost = chart.goal.value_or(0);
    for (const ChartSeries &series : chart.series)
      for (const ChartPoint &point : series.points) {
        xMost = std::max(xMost, point.x);
        yMost = std::max(
            {yMost, point.y, point.interval ? point.interval->high : 0.0});
      }
    xEnd = xMost > 0 ? xMost : 1;
    yEnd = chart.yEnd.value_or(yMost > 0 ? 1.05 * yMost : 1);
  }

  std::string run() {
    text = "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 " + number(width) +
           " " + number(height) + "\">\n<title>" + escapeMarkup(chart.title) +
           "</title>\n<desc>" + escapeMarkup(description()) + "</desc>\n";
    drawAxes();
    if (chart.goal)
      drawGoal();
    for (size_t i = 0; i < chart.series.size(); ++i)
      drawSeries(chart.series[i],
                 "var(--c" + std::to_string(i % colours) + ")");
    return text + "</svg>\n";
  }

private:
  double xOf(double value) const {
    return left + (width - left - right) * value / xEnd;
  }
  double yOf(double value) const {
    return height - bottom - (height - top - bottom) * value / yEnd;
  }

  /// Each curve in words, by its last point.
  std::string description() const {
    std::string words = chart.yLabel + " over " + chart.xLabel + ".";
    for (const ChartSeries &series : chart.series)
      if (!series.points.empty())
        words += " " + series.name + ": from " +
                 number(series.points.front().y) + " at " +
                 number(series.points.front().x) + " to " +
                 number(series.points.back().y) + " at " +
                 number(series.points.back().x) + ".";
    return words;
  }

  void line(const char *kind, double x1, double y1, double x2, double y2) {
    text += std::string("<line class=\"") + kind + "\" x1=\"" + place(x1) +
            "\" y1=\"" + place(y1) + "\" x2=\"" + place(x2) + "\" y2=\"" +
            place(y2) + "\"/>\n";
  }

  void write(double x, double y, const char *anchor, const std::string &words,
             const std::string &more = "") {
    text += "<text x=\"" + place(x) + "\" y=\"" + place(y) +
            "\" text-anchor=\"" + anchor + "\"" + more + ">" +
            escapeMarkup(words) + "</text>\n";
  }

  void drawAxes() {
    const double xStep = tickStep(xEnd), yStep = tickStep(yEnd);
    // Steps do not add up exactly.
    constexpr double slack = 1 + 1e-9;
    for (double y = 0; y <= yEnd * slack; y += yStep) {
      line("grid", left, yOf(y), width - right, yOf(y));
      write(left - 8, yOf(y) + 4, "end", number(y));
    }
    for (double x = 0; x <= xEnd * slack; x += xStep) {
      line("grid", xOf(x), top, xOf(x), height - bottom);
      write(xOf(x), height - bottom + 18, "middle", number(x));
    }
    line("axis", left, top, left, height - bottom);
    line("axis", left, height - bottom, width - right, height - bottom);
    write((left + width - right) / 2, height - 14, "middle", chart.xLabel);
    const double middle = (top + height - bottom) / 2;
    write(16, middle, "middle", chart.yLabel,
          " transform=\"rotate(-90 16 " + place(middle) + ")\"");
  }

  void drawGoal() {
    line("goal", left, yOf(*chart.goal), width - right, yOf(*chart.goal));
    write(width - right - 4, yOf(*chart.goal) + 14, "end", chart.goalName);
  }

  void drawSeries(const ChartSeries &series, const std::string &colour) {
    if (series.points.empty())
      return;
    text +=
        "<polyline class=\"curve\" style=\"stroke: " + colour + "\" points=\"";
    for (const ChartPoint &point : series.points)
      text += place(xOf(point.x)) + "," + place(yOf(point.y)) + " ";
    text += "\"/>\n";
    for (const ChartPoint &point : series.points) {
      if (point.interval)
        line("axis", xOf(point.x), yOf(point.interval->low), xOf(point.x),
             yOf(point.interval->high));
      if (series.marks)
        text += "<circle r=\"3.5\" style=\"fill: " + colour + "\" cx=\"" +
                place(xOf(point.x)) + "\" cy=\"" + place(yOf(point.y)) +
                "\"><title>" + escapeMarkup(series.name) + ": " +
                number(point.y) + " at " + number(point.x) +
                "</title></circle>\n";
    }
  }

  const LineChart &chart;
  double xEnd = 1;
  double yEnd = 1;
  std::string text;
};
} // namespace

std::string LineChart::draw() const {
  std::string figure = "<figure>\n<figcaption>" + escapeMarkup(title) +
                       "</figcaption>\n" + Drawing(*this).run();
  if (series.size() > 1) {
    figure += "<ul class=\"legend\">\n";
    for (size_t i = 0; i < series.size(); ++i)
      figure += "<li><span style=\"background: var(--c" +
                std::to_string(i % colours) + ")\"></span>" +
                escapeMarkup(series[i].name) + "</li>\n";
    figure += "</ul>\n";
  }
  return figure + "</figure>\n";
}

std::vector<ChartPoint> sandwich::cumulativeShares(std::vector<double> values,
                                                   size_t total) {
  // More cannot be told apart.
  constexpr size_t most = 400;
  std::ranges::sort(values);
  const size_t stride = values.size() / most + 1;
  std::vector<ChartPoint> points;
  double before = 0;
  for (size_t i = 0; i < values.size() && std::isfinite(values[i]); ++i) {
    const bool last = i + 1 == values.size() || !std::isfinite(values[i + 1]);
    if (i % stride != 0 && !last)
      continue;
    // A step: the share grows where the value is.
    points.push_back({values[i], before});
    before = 100.0 * static_cast<double>(i + 1) / static_cast<double>(total);
    points.push_back({values[i], before});
  }
  return points;
}
