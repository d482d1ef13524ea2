//===- DeviceCostDrawing.cpp - Costs as a picture -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceCostReport.h"
#include "sandwich/Support/Markup.h"

#include <algorithm>
#include <sstream>

using namespace sandwich;

static constexpr double margin = 60;
static constexpr double width = 640;
static constexpr double height = 220;
static constexpr double barRoom = 24;
/// Longer days are drawn by the busiest second of each part.
static constexpr size_t mostBars = 160;

static constexpr char style[] = R"(
text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  font-size: 12px; fill: #1f2933; }
.title { font-size: 16px; font-weight: 600; }
.day { fill: #8ecae6; }
.alone { fill: #9aa5b1; stroke: #52606d; }
.overflow { fill: #57ae7b; stroke: #2d7a4f; }
.line { stroke-width: 2; stroke-dasharray: 6 3; }
)";

namespace {
class CostDrawing {
public:
  CostDrawing(const CostDescription &description, const DeviceCost &cost)
      : description(description), cost(cost) {}

  std::string run() {
    text(margin, 28, "Queries a second over the day", "title");
    drawDay();
    drawCosts();
    std::ostringstream document;
    document << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""
             << width + 2 * margin << "\" height=\"" << bottom << "\">\n<style>"
             << style
             << "</style>\n<rect width=\"100%\" height=\"100%\" "
                "fill=\"#ffffff\"/>\n"
             << body.str() << "</svg>\n";
    return document.str();
  }

private:
  void text(double x, double y, const std::string &words,
            const char *kind = "label") {
    body << "<text class=\"" << kind << "\" x=\"" << x << "\" y=\"" << y
         << "\">" << escapeMarkup(words) << "</text>\n";
  }

  void bar(double x, double y, double w, double h, const char *kind,
           const std::string &tooltip) {
    body << "<rect class=\"" << kind << "\" x=\"" << x << "\" y=\"" << y
         << "\" width=\"" << w << "\" height=\"" << h << "\"><title>"
         << escapeMarkup(tooltip) << "</title></rect>\n";
  }

  static std::string number(double value) {
    std::ostringstream words;
    words.precision(6);
    words << value;
    return words.str();
  }

  void drawDay() {
    const std::vector<double> &day = description.queriesPerSecond;
    // What the devices bought by the average do.
    const auto instances =
        static_cast<double>(cost.byAverage.withOverflow.instances);
    const double own = instances * cost.accelerator.queriesPerSecond;
    const double both =
        own + static_cast<double>(cost.byAverage.withOverflow.machines) *
                  cost.cpu.queriesPerSecond;
    // Something to divide by, on a day without queries.
    const double top = std::max({std::ranges::max(day), both, 1e-9}) * 1.05;
    const double foot = 40 + height;
    const size_t bars = std::min(day.size(), mostBars);
    const double each = width / static_cast<double>(bars);
    for (size_t i = 0; i < bars; ++i) {
      const auto begin =
          day.begin() + static_cast<std::ptrdiff_t>(i * day.size() / bars);
      const auto end = day.begin() +
                       static_cast<std::ptrdiff_t>((i + 1) * day.size() / bars);
      const double busiest = *std::max_element(begin, end);
      const double high = busiest / top * height;
      bar(margin + static_cast<double>(i) * each, foot - high, each * 0.9, high,
          "day", number(busiest) + " queries a second");
    }
    auto line = [&](double value, const char *kind, const std::string &words) {
      const double y = foot - value / top * height;
      body << "<line class=\"line " << kind << "\" x1=\"" << margin
           << "\" x2=\"" << margin + width << "\" y1=\"" << y << "\" y2=\"" << y
           << "\"/>\n";
      bottom += 18;
      text(margin, bottom, words);
    };
    bottom = foot + 4;
    const std::string devices =
        number(instances) + " accelerator instances, bought by the average";
    line(own, "alone", "grey: " + devices + ", do " + number(own));
    if (cost.cpu.depth > 0)
      line(both, "overflow",
           "green: with the CPUs of their machines " + number(both));
  }

  void drawCosts() {
    bottom += 40;
    text(margin, bottom, "Cost", "title");
    const double most = std::max(
        {cost.byPeak.alone.cost, cost.byPeak.withOverflow.cost,
         cost.byAverage.alone.cost, cost.byAverage.withOverflow.cost, 1e-9});
    auto row = [&](const std::string &title, const Deployment &deployment,
                   const char *kind) {
      bottom += barRoom;
      const double wide = deployment.cost / most * (width - 280);
      const std::string words = number(deployment.cost) + " " +
                                description.currency + ", " +
                                std::to_string(deployment.devices) + " devices";
      text(margin, bottom, title);
      bar(margin + 160, bottom - 12, wide, barRoom - 8, kind, words);
      text(margin + 168 + wide, bottom, words);
    };
    row("peak, alone", cost.byPeak.alone, "alone");
    row("peak, with overflow", cost.byPeak.withOverflow, "overflow");
    row("average, alone", cost.byAverage.alone, "alone");
    row("average, with overflow", cost.byAverage.withOverflow, "overflow");
    bottom += barRoom;
  }

  const CostDescription &description;
  const DeviceCost &cost;
  /// Of what is drawn so far.
  double bottom = 0;
  std::ostringstream body;
};
} // namespace

std::string sandwich::drawCost(const CostDescription &description,
                               const DeviceCost &cost) {
  return CostDrawing(description, cost).run();
}
