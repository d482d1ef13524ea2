//===- TuningReport.cpp - What tuning did, in pictures --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/TuningReport.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <map>
#include <sstream>
#include <string_view>

using namespace sandwich;

namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 13px; }
td, th { text-align: left; padding: .15rem .8rem .15rem 0; }
svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.axis { stroke: currentColor; opacity: .35; }
.limit { fill: none; stroke: currentColor; stroke-dasharray: 5 4; }
.speed { fill: none; stroke: #1f77b4; stroke-width: 1.5; }
.measured { fill: #1f77b4; }
.band { opacity: .13; }
.accepted { stroke: currentColor; stroke-width: 1; }
.work { fill: #8c8c8c; }
)";

constexpr std::array<std::string_view, 10> colors = {
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
    "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};

std::string_view colorOf(size_t number) {
  return colors[number % colors.size()];
}

std::string escape(std::string_view text) {
  std::string result;
  for (char c : text)
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  return result;
}

/// A coordinate, or a figure with few digits.
std::string number(double value, int digits = 1) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string describe(const Schedule &schedule) {
  std::ostringstream out;
  auto list = [&](const std::array<int64_t, 3> &sizes) {
    out << sizes[0] << " x " << sizes[1] << " x " << sizes[2];
  };
  out << "<td>" << schedule.microKernel.name() << "</td><td>";
  list(schedule.slice);
  out << "</td><td>";
  list(schedule.threads);
  out << "</td><td>" << schedule.prefetchLines << " lines";
  if (schedule.prefetchDistance > 0)
    out << ", " << schedule.prefetchDistance << " bytes ahead";
  else if (schedule.prefetchLines > 0 && schedule.groupK > 0)
    out << " of what is copied next";
  else if (schedule.prefetchLines > 0)
    out << " of the next slice in " << schedule.prefetchStreams << " streams";
  if (schedule.prefetchLines > 0)
    out << ", " << name(schedule.prefetchHint);
  out << "</td><td>" << name(schedule.order) << ", " << name(schedule.stores)
      << " stores";
  if (schedule.chunkK > 0)
    out << ", K in chunks of " << schedule.chunkK;
  if (schedule.packsInput)
    out << ", input packed";
  if (schedule.streamed != StreamedOperands::None)
    out << ", " << name(schedule.streamed) << " streamed";
  if (schedule.groupK > 0)
    out << ", scales for " << schedule.groupK << " k";
  if (schedule.copiesAhead)
    out << ", copied ahead";
  out << "</td>";
  return out.str();
}

/// Numbers of tokens along the width of a picture, by their logarithm.
class TokenAxis {
public:
  explicit TokenAxis(int64_t most)
      : most(std::max<double>(std::log2(static_cast<double>(most)), 1)) {}
  double x(double tokens) const {
    return left + (right - left) * std::log2(std::max(tokens, 1.0)) / most;
  }
  std::string ticks(double bottom) const {
    std::ostringstream out;
    for (int power = 0; power <= static_cast<int>(most); ++power) {
      double tokens = std::exp2(power);
      out << "<text x=\"" << number(x(tokens) - 4) << "\" y=\""
          << number(bottom + 14) << "\">" << number(tokens, 0) << "</text>";
    }
    out << "<text x=\"" << right - 40 << "\" y=\"" << number(bottom + 28)
        << "\">tokens</text>";
    return out.str();
  }

  static constexpr double left = 60, right = 940;

private:
  double most;
};

class GroupWriter {
public:
  GroupWriter(std::ostringstream &out, const TunedGroup &group,
              const TunedModel &model)
      : out(out), group(group), model(model),
        axis(group.choices.empty() ? 1 : group.choices.back().rows) {}

  void write();

private:
  double limitFlops(double rows) const;
  double flops(const Choice &choice) const {
    const MatmulShape &shape = group.group.shape;
    return 2.0 * choice.rows * shape.n * shape.k / choice.seconds;
  }
  void writeTable();
  void writeSpeed();
  void writeWork();
  void writePath(int64_t rows, const std::vector<const SearchStep *> &steps);

  std::ostringstream &out;
  const TunedGroup &group;
  const TunedModel &model;
  TokenAxis axis;
};

} // namespace

/// FLOP/s that reading the weight and multiplying allow; 0 if not measured.
double GroupWriter::limitFlops(double rows) const {
  const MatmulShape &shape = group.group.shape;
  if (model.flopsPerSecond <= 0 || model.readBytesPerSecond <= 0)
    return 0;
  double bytes =
      static_cast<double>(weightBytes(shape.storage, shape.n, shape.k));
  double reading =
      2.0 * rows * shape.n * shape.k / (bytes / model.readBytesPerSecond);
  return std::min(reading, model.flopsPerSecond);
}

void GroupWriter::writeTable() {
  out << "<table><tr><th></th><th>tokens</th><th>micro-kernel</th>"
         "<th>slice</th><th>threads</th><th>prefetch</th><th>order</th></tr>";
  int64_t from = 1;
  for (size_t i = 0; i < group.table.size(); ++i) {
    const ScheduleTableEntry &entry = group.table[i];
    bool last = i + 1 == group.table.size();
    out << "<tr><td style=\"background:" << colorOf(i) << "\">&nbsp;</td><td>"
        << from;
    if (last)
      out << " and more";
    else if (entry.maxRows > from)
      out << " to " << entry.maxRows;
    out << "</td>" << describe(entry.schedule) << "</tr>\n";
    from = last ? from : entry.maxRows + 1;
  }
  out << "</table>\n";
}

void GroupWriter::writeSpeed() {
  constexpr double top = 10, bottom = 230;
  double most = model.flopsPerSecond;
  for (const Choice &choice : group.choices)
    most = std::max(most, flops(choice));
  auto y = [&](double speed) { return bottom - (bottom - top) * speed / most; };
  double largest = static_cast<double>(group.choices.back().rows);
  out << "<svg viewBox=\"0 0 1000 265\" role=\"img\"><title>speed over "
         "tokens</title>";
  int64_t from = 1;
  for (size_t i = 0; i < group.table.size() && from <= largest; ++i) {
    double end = static_cast<double>(group.table[i].maxRows);
    double x = axis.x(static_cast<double>(from));
    out << "<rect class=\"band\" x=\"" << number(x) << "\" y=\"" << top
        << "\" width=\"" << number(axis.x(std::min(end + 1, largest)) - x)
        << "\" height=\"" << bottom - top << "\" fill=\"" << colorOf(i)
        << "\"/>";
    from = i + 1 == group.table.size() ? from : group.table[i].maxRows + 1;
  }
  for (int tick = 0; tick <= 4; ++tick) {
    double speed = most * tick / 4;
    out << "<line class=\"axis\" x1=\"" << TokenAxis::left << "\" x2=\""
        << TokenAxis::right << "\" y1=\"" << number(y(speed)) << "\" y2=\""
        << number(y(speed)) << "\"/><text x=\"4\" y=\"" << number(y(speed) + 4)
        << "\">" << number(speed / 1e9, 0) << (tick == 4 ? " GFLOP/s" : "")
        << "</text>";
  }
  std::ostringstream limit, line, points;
  for (const Choice &choice : group.choices) {
    double rows = static_cast<double>(choice.rows);
    if (limitFlops(rows) > 0)
      limit << number(axis.x(rows)) << "," << number(y(limitFlops(rows)))
            << " ";
    line << number(axis.x(rows)) << "," << number(y(flops(choice))) << " ";
    if (choice.measured)
      points << "<circle class=\"measured\" r=\"2\" cx=\""
             << number(axis.x(rows)) << "\" cy=\"" << number(y(flops(choice)))
             << "\"/>";
  }
  out << "<polyline class=\"limit\" points=\"" << limit.str()
      << "\"/><polyline class=\"speed\" points=\"" << line.str() << "\"/>"
      << points.str() << axis.ticks(bottom) << "</svg>\n";
}

/// How many steps the search took for each number of tokens.
void GroupWriter::writeWork() {
  std::map<int64_t, int64_t> steps;
  int64_t most = 1;
  for (const SearchStep &step : group.log)
    most = std::max(most, ++steps[step.rows]);
  constexpr double top = 8, bottom = 70;
  out << "<svg viewBox=\"0 0 1000 105\" role=\"img\"><title>steps of the "
         "search over tokens</title><text x=\"4\" y=\"18\">"
      << most << " steps</text>";
  for (auto [rows, count] : steps) {
    double height =
        (bottom - top) * static_cast<double>(count) / static_cast<double>(most);
    out << "<rect class=\"work\" x=\""
        << number(axis.x(static_cast<double>(rows)) - 1.5) << "\" y=\""
        << number(bottom - height) << "\" width=\"3\" height=\""
        << number(height) << "\"/>";
  }
  out << axis.ticks(bottom) << "</svg>\n";
}

void GroupWriter::writePath(int64_t rows,
                            const std::vector<const SearchStep *> &steps) {
  // Slices on one thread have times of their own; only the team's compare.
  double best = INFINITY, worst = 0;
  for (const SearchStep *step : steps) {
    best = std::min(best, step->seconds);
    worst = std::max(worst, step->seconds);
  }
  constexpr double top = 10, bottom = 150;
  double range = std::max(std::log(worst / best), 1e-3);
  out << "<h3>The search for " << rows
      << " tokens</h3><svg viewBox=\"0 0 1000 185\" role=\"img\"><title>times "
         "of the candidates in the order they were tried</title><text x=\"4\" "
         "y=\"18\">"
      << number(worst * 1e6, 0) << " us</text><text x=\"4\" y=\"" << bottom
      << "\">" << number(best * 1e6, 0) << " us</text>";
  std::map<SearchPhase, size_t> phases;
  for (size_t i = 0; i < steps.size(); ++i) {
    const SearchStep &step = *steps[i];
    size_t color = phases.emplace(step.phase, phases.size()).first->second;
    double x = TokenAxis::left +
               (TokenAxis::right - TokenAxis::left) * (i + 0.5) / steps.size();
    double y = bottom - (bottom - top) * std::log(step.seconds / best) / range;
    out << "<circle cx=\"" << number(x) << "\" cy=\"" << number(y)
        << "\" r=\"4\" fill=\"" << colorOf(color) << "\""
        << (step.accepted ? " class=\"accepted\"" : "") << "><title>"
        << name(step.phase) << ": " << step.schedule.microKernel.name() << ", "
        << step.schedule.slice[0] << " x " << step.schedule.slice[1] << " x "
        << step.schedule.slice[2] << ", " << number(step.seconds * 1e6, 1)
        << " us</title></circle>";
  }
  double x = TokenAxis::left;
  for (auto [phase, color] : phases) {
    out << "<circle cx=\"" << x << "\" cy=\"172\" r=\"4\" fill=\""
        << colorOf(color) << "\"/><text x=\"" << x + 8 << "\" y=\"176\">"
        << name(phase) << "</text>";
    x += 110;
  }
  out << "</svg>\n";
}

void GroupWriter::write() {
  const MatmulShape &shape = group.group.shape;
  out << "<h2>" << shape.n << " x " << shape.k << ", " << shape.storage.name()
      << " weights, " << group.group.threads
      << (group.group.threads == 1 ? " thread" : " threads") << "</h2>\n<p>";
  if (group.log.empty())
    out << (group.complete ? "Found in the database."
                           : "The budget was spent before its turn.");
  else
    out << group.measurements << " measurements in " << number(group.seconds)
        << " s for " << group.choices.size() << " numbers of tokens"
        << (group.complete ? "." : "; the budget was spent before the end.");
  if (shape.packing)
    out << " Panels of " << shape.packing->panel << " columns.";
  out << "</p>\n";
  writeTable();
  if (group.choices.empty())
    return;
  out << "<p>Speed of the chosen schedules; dots are measured, the dashed line "
         "is what reading the weight and multiplying allow.</p>\n";
  writeSpeed();
  if (group.log.empty())
    return;
  writeWork();
  // The longest searches tell most.
  constexpr size_t shownPaths = 2;
  std::map<int64_t, std::vector<const SearchStep *>> paths;
  for (const SearchStep &step : group.log)
    if (step.phase != SearchPhase::Probe &&
        step.phase != SearchPhase::FastStart && step.seconds > 0)
      paths[step.rows].push_back(&step);
  std::vector<int64_t> longest;
  longest.reserve(paths.size());
  for (const auto &[rows, steps] : paths)
    longest.push_back(rows);
  std::ranges::stable_sort(longest, [&](int64_t a, int64_t b) {
    return paths[a].size() > paths[b].size();
  });
  if (longest.size() > shownPaths)
    longest.erase(longest.begin() + shownPaths, longest.end());
  std::ranges::sort(longest);
  for (int64_t rows : longest)
    writePath(rows, paths[rows]);
}

std::string sandwich::writeTuningReport(const TunedModel &tuned,
                                        const std::string &model) {
  std::ostringstream out;
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
         "<title>Tuning of "
      << escape(model) << "</title><style>" << style
      << "</style></head><body>\n<h1>Tuning of " << escape(model)
      << "</h1>\n<p>" << tuned.measurements << " measurements and "
      << tuned.compilations << " compilations in " << number(tuned.seconds)
      << " s.";
  if (tuned.flopsPerSecond > 0)
    out << " The machine's limits: its instructions multiply "
        << number(tuned.flopsPerSecond / 1e9, 0)
        << " GFLOP/s at most, micro-kernels with all operands in cache "
        << number(tuned.flopsPerSecondInCache / 1e9, 0) << "; plain loads read "
        << number(tuned.readBytesPerSecond / 1e9) << " GB/s.";
  out << "</p>\n";
  for (const TunedGroup &group : tuned.groups)
    GroupWriter(out, group, tuned).write();
  out << "</body></html>\n";
  return out.str();
}
