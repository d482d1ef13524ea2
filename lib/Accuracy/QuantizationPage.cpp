//===- QuantizationPage.cpp - A report as HTML ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Accuracy/QuantizationReport.h"

#include "sandwich/Runtime/Measurement/LineChart.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/Markup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <sstream>

using namespace sandwich;

namespace {

constexpr std::string_view style = R"(
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; background: var(--page);
       color: var(--text); }
h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: .15rem 1.2rem .15rem 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
svg.map { width: 100%; height: auto; }
svg.map text { font: 11px system-ui, sans-serif; fill: var(--text); }
svg.map text.on-light { fill: #1f2933; text-anchor: middle; }
svg.map text.on-dark { fill: #ffffff; text-anchor: middle; }
svg.map .kept { fill: none; stroke: var(--grid); stroke-dasharray: 3 3; }
)";

/// printf into a string.
__attribute__((format(printf, 1, 2))) std::string format(const char *pattern,
                                                         ...) {
  std::array<char, 256> text;
  std::va_list list;
  va_start(list, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, list);
  va_end(list);
  return text.data();
}

/// A share with about three digits.
std::string percent(double share) {
  const double value = 100 * share;
  return format(value >= 10  ? "%.1f%%"
                : value >= 1 ? "%.2f%%"
                             : "%.3g%%",
                value);
}

/// From pale to dark as `share` goes from 0 to 1.
struct Color {
  explicit Color(double share) {
    constexpr double stops[][3] = {
        {255, 247, 204}, {254, 178, 76}, {227, 74, 51}, {122, 1, 64}};
    constexpr int last = std::size(stops) - 1;
    const double place = std::clamp(share, 0.0, 1.0) * last;
    const int below = std::min(static_cast<int>(place), last - 1);
    for (int i = 0; i < 3; ++i)
      parts[i] = stops[below][i] +
                 (place - below) * (stops[below + 1][i] - stops[below][i]);
  }

  std::string text() const {
    return format("#%02x%02x%02x", static_cast<int>(parts[0]),
                  static_cast<int>(parts[1]), static_cast<int>(parts[2]));
  }
  /// Whether white is to be read on it, by the brightness of its parts.
  bool isDark() const {
    return 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2] < 140;
  }

  std::array<double, 3> parts;
};

/// Errors of weights, one below the other, over their layers. As formats of
/// different bits differ by orders of magnitude, colours go by the logarithm.
class ErrorMap {
public:
  explicit ErrorMap(const std::vector<WeightRounding> &weights)
      : weights(weights) {
    for (const WeightRounding &weight : weights) {
      layers = std::max(layers, weight.errors.size());
      if (weight.kept)
        continue;
      for (double error : weight.errors)
        if (error > 0) {
          least = std::min(least, error);
          most = std::max(most, error);
        }
    }
    // Small differences are not to look like large ones.
    constexpr double leastRange = 1.5;
    if (most > 0 && most < leastRange * least) {
      const double middle = std::sqrt(most * least);
      least = middle / std::sqrt(leastRange);
      most = middle * std::sqrt(leastRange);
    }
    cell = std::min((right - left) / static_cast<double>(layers), 110.0);
  }

  std::string draw() const {
    const double height =
        top + rowHeight * static_cast<double>(weights.size()) + 44;
    std::ostringstream out;
    out << "<svg class=\"map\" viewBox=\"0 0 1000 " << format("%.0f", height)
        << "\" role=\"img\"><title>relative errors of weights over "
           "layers</title>\n";
    drawLayers(out);
    double y = top;
    for (const WeightRounding &weight : weights) {
      drawWeight(out, weight, y);
      y += rowHeight;
    }
    if (most > 0)
      drawScale(out, y + 18);
    out << "</svg>\n";
    return out.str();
  }

private:
  static constexpr double left = 300, right = 860, top = 26, rowHeight = 26;

  /// Numbers of layers, as many as there is room for.
  void drawLayers(std::ostringstream &out) const {
    if (layers < 2)
      return;
    const auto step = static_cast<size_t>(std::ceil(28 / cell));
    for (size_t layer = 0; layer < layers; layer += step)
      out << format("<text text-anchor=\"middle\" x=\"%.1f\" "
                    "y=\"%.1f\">%zu</text>\n",
                    left + cell * (static_cast<double>(layer) + 0.5), top - 8,
                    layer);
    out << format("<text x=\"%.1f\" y=\"%.1f\">layer</text>\n", left - 40,
                  top - 8);
  }

  double shareOf(double error) const {
    return error <= 0 ? 0 : std::log(error / least) / std::log(most / least);
  }

  void drawWeight(std::ostringstream &out, const WeightRounding &weight,
                  double y) const {
    out << format("<text x=\"0\" y=\"%.1f\">", y + 16)
        << escapeMarkup(weight.name) << "</text>\n"
        << format("<text x=\"%.1f\" y=\"%.1f\">%.3g bits</text>\n", left - 72,
                  y + 16, weight.bitsPerWeight);
    if (weight.kept) {
      out << format("<rect class=\"kept\" x=\"%.1f\" y=\"%.1f\" "
                    "width=\"%.1f\" height=\"%.1f\"/>\n",
                    left, y + 1, cell * static_cast<double>(layers),
                    rowHeight - 2)
          << format("<text x=\"%.1f\" y=\"%.1f\">as in the "
                    "checkpoint</text>\n",
                    left + 8, y + 16);
      return;
    }
    if (weight.errors.empty())
      return;
    for (size_t layer = 0; layer < weight.errors.size(); ++layer)
      drawCell(out, weight, layer, y);
    const auto [lowest, highest] = std::ranges::minmax(weight.errors);
    out << format("<text x=\"%.1f\" y=\"%.1f\">", right + 12, y + 16)
        << percent(lowest);
    if (lowest != highest)
      out << " to " << percent(highest);
    out << "</text>\n";
  }

  void drawCell(std::ostringstream &out, const WeightRounding &weight,
                size_t layer, double y) const {
    const double error = weight.errors[layer];
    const Color color(shareOf(error));
    const double x = left + cell * static_cast<double>(layer);
    out << format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                  "height=\"%.1f\" fill=\"",
                  x, y + 1, std::max(cell - 1, 0.5), rowHeight - 2)
        << color.text() << "\"><title>" << escapeMarkup(weight.name);
    if (weight.errors.size() > 1)
      out << ", layer " << layer;
    out << ": " << percent(error) << "</title></rect>\n";
    if (cell >= 40)
      out << format("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">",
                    color.isDark() ? "on-dark" : "on-light", x + cell / 2,
                    y + 16)
          << percent(error) << "</text>\n";
  }

  void drawScale(std::ostringstream &out, double y) const {
    constexpr int steps = 40;
    constexpr double width = 5;
    out << format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", left - 8,
                  y + 11)
        << percent(least) << "</text>\n";
    for (int i = 0; i < steps; ++i)
      out << format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                    "height=\"14\" fill=\"",
                    left + width * i, y, width)
          << Color((i + 0.5) / steps).text() << "\"/>\n";
    out << format("<text x=\"%.1f\" y=\"%.1f\">", left + width * steps + 8,
                  y + 11)
        << percent(most) << "</text>\n";
  }

  const std::vector<WeightRounding> &weights;
  size_t layers = 1;
  double cell = 0;
  double least = std::numeric_limits<double>::infinity(), most = 0;
};

void writeRow(std::ostringstream &out, std::string_view what,
              const std::string &artifact, const std::string &original) {
  out << "<tr><th>" << what << "</th><td class=\"number\">" << artifact
      << "</td><td class=\"number\">" << original << "</td></tr>\n";
}

} // namespace

/// The figures, of the artifact and its original side by side.
static void writeFigures(std::ostringstream &out,
                         const QuantizationReport &report) {
  out << "<table><tr><th></th><th class=\"number\">artifact</th>"
         "<th class=\"number\">checkpoint</th></tr>\n";
  writeRow(out, "weights", formatBytes(report.weightBytes),
           formatBytes(report.originalWeightBytes));
  writeRow(out, "bits per weight", format("%.2f", report.bitsPerWeight()),
           format("%.2f", report.originalBitsPerWeight()));
  if (report.predictions) {
    const PredictionComparison &predictions = *report.predictions;
    writeRow(out, "perplexity", format("%.4f", predictions.perplexity),
             format("%.4f", predictions.originalPerplexity));
    writeRow(out, "mean divergence, nats",
             format("%.3e", predictions.meanDivergence()), "");
    writeRow(out, "divergence of 99% of tokens at most",
             format("%.3e", predictions.divergenceOfShare(0.99)), "");
    writeRow(out, "largest divergence",
             format("%.3e", predictions.divergenceOfShare(1)), "");
    writeRow(out, "same likeliest token",
             format("%.2f%%", 100 * predictions.agreement()), "");
  }
  out << "</table>\n";
}

/// Which share of tokens has at most so much divergence.
static LineChart drawDivergences(const PredictionComparison &predictions) {
  LineChart chart;
  chart.title = "how divergences are distributed";
  chart.xLabel = "divergence, nats";
  chart.yLabel = "tokens with at most that, %";
  chart.yEnd = 100;
  chart.series.push_back(
      {.name = "tokens",
       .points = cumulativeShares(predictions.divergences,
                                  predictions.divergences.size())});
  return chart;
}

std::string sandwich::drawQuantizationReport(const QuantizationReport &report) {
  std::ostringstream out;
  const std::string title = "Quantization of " + escapeMarkup(report.model);
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
         "<meta name=\"viewport\" content=\"width=device-width\"/><title>"
      << title << "</title><style>" << LineChart::styleSheet() << style
      << "</style></head><body>\n<h1>" << title << "</h1>\n<p>Weights as "
      << escapeMarkup(report.dtype);
  if (!report.activations.empty())
    out << " by inputs as " << escapeMarkup(report.activations);
  out << ", keys and values as " << escapeMarkup(report.cacheType) << ", for "
      << escapeMarkup(report.target) << ".</p>\n";
  writeFigures(out, report);
  if (report.predictions)
    out << "<p>Predictions of " << report.predictions->divergences.size()
        << " tokens of " << escapeMarkup(report.text) << ", from number "
        << report.firstToken
        << " on, by the artifact as it runs here, and by the checkpoint's "
           "values in f64. The divergence is Kullback and Leibler's, of the "
           "artifact's probabilities from the checkpoint's.</p>\n";
  else
    out << "<p>How far predictions are from the checkpoint's is not known: "
        << escapeMarkup(report.missing) << ".</p>\n";
  out << "<h2>Errors of weights</h2>\n";
  if (report.weights.empty()) {
    out << "<p>No weight is quantized.</p>\n";
  } else {
    out << "<p>The root mean square of what rounding changed, over that of the "
           "values.</p>\n"
        << ErrorMap(report.weights).draw();
  }
  if (report.predictions)
    out << "<h2>Divergences</h2>\n"
        << drawDivergences(*report.predictions).draw();
  out << "</body></html>\n";
  return out.str();
}
