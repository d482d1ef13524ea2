//===- ReplayPage.cpp - A replay as a page of charts ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/ReplayPage.h"

#include "sandwich/Support/Markup.h"

#include <algorithm>
#include <cstdio>
#include <functional>

using namespace sandwich;

static constexpr char pageStyle[] = R"(
body { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  color: var(--text); background: var(--page); max-width: 1340px;
  margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
.charts { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
figure { margin: 0; }
figcaption { font-weight: 600; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1rem;
  padding: 0; margin: 0; }
.legend span { display: inline-block; width: 1rem; height: .3rem;
  margin-right: .4rem; vertical-align: middle; }
table { border-collapse: collapse; }
th, td { padding: .2rem .8rem; text-align: right;
  border-bottom: 1px solid var(--grid); }
)";

/// More curves cannot be told apart.
static constexpr size_t mostCurves = 6;

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

std::string ReplayRun::name() const {
  return trial ? number(trial->rate) + " requests/s" : "all requests";
}

/// By their rates.
static std::vector<const ReplayRun *>
byRate(const std::vector<ReplayRun> &runs) {
  std::vector<const ReplayRun *> sorted;
  for (const ReplayRun &run : runs)
    if (run.trial && run.trial->requests > 0)
      sorted.push_back(&run);
  std::ranges::sort(sorted, {},
                    [](const ReplayRun *run) { return run->trial->rate; });
  return sorted;
}

std::vector<const ReplayRun *>
sandwich::chosenRuns(const std::vector<ReplayRun> &runs) {
  std::vector<const ReplayRun *> chosen = byRate(runs);
  if (chosen.empty())
    for (const ReplayRun &run : runs)
      chosen.push_back(&run);
  if (chosen.size() <= mostCurves)
    return chosen;
  const auto firstBad = std::ranges::find_if(
      chosen, [](const ReplayRun *run) { return !run->trial->attained; });
  const auto place = static_cast<size_t>(firstBad - chosen.begin());
  const size_t begin = std::min(place - std::min(place, mostCurves / 2),
                                chosen.size() - mostCurves);
  return {chosen.begin() + static_cast<std::ptrdiff_t>(begin),
          chosen.begin() + static_cast<std::ptrdiff_t>(begin + mostCurves)};
}

/// The share of requests over the times that `times` takes of a run.
static std::string
drawShares(const ReplayPage &page, const std::string &title,
           const std::string &xLabel, const std::string &yLabel,
           const std::function<std::vector<double>(const ReplayRun &)> &times,
           bool ofAll) {
  LineChart chart{.title = title,
                  .xLabel = xLabel,
                  .yLabel = yLabel,
                  .series = {},
                  .yEnd = 100};
  for (const ReplayRun *run : chosenRuns(page.runs)) {
    std::vector<double> values = times(*run);
    const size_t total = ofAll ? run->served.size() : values.size();
    if (total > 0)
      chart.series.push_back(
          {run->name(), cumulativeShares(std::move(values), total)});
  }
  if (ofAll) {
    chart.goal = 100 * page.wantedAttainment;
    chart.goalName = number(*chart.goal) + "%";
  }
  return chart.draw();
}

static std::string drawTimes(const ReplayPage &page, const std::string &title,
                             const std::string &xLabel,
                             std::vector<double> ReplayTimes::*member) {
  return drawShares(
      page, title, xLabel, "requests served (%)",
      [member](const ReplayRun &run) {
        std::vector<double> values = ReplayTimes(run.served).*member;
        for (double &seconds : values)
          seconds *= 1e3;
        return values;
      },
      /*ofAll=*/false);
}

static std::string drawAttainmentByRate(const ReplayPage &page) {
  LineChart chart{.title = "Attainment by rate, with 95% intervals",
                  .xLabel = "requests per second",
                  .yLabel = "requests within the SLO (%)",
                  .series = {{"attainment", {}, true}},
                  .yEnd = 100,
                  .goal = 100 * page.wantedAttainment,
                  .goalName = number(100 * page.wantedAttainment) + "%"};
  for (const ReplayRun *run : byRate(page.runs)) {
    const RateTrial &trial = *run->trial;
    chart.series.front().points.push_back(
        {trial.rate, 100 * trial.attainment(),
         Interval{100 * trial.interval.low, 100 * trial.interval.high}});
  }
  return chart.draw();
}

static std::string
drawP90ByRate(const ReplayPage &page, const std::string &title,
              std::optional<Distribution> ReplaySummary::*times,
              std::optional<double> objective) {
  LineChart chart{.title = title,
                  .xLabel = "requests per second",
                  .yLabel = "milliseconds",
                  .series = {{"P90", {}, true}}};
  if (objective) {
    chart.goal = 1e3 * *objective;
    chart.goalName = "SLO";
  }
  for (const ReplayRun *run : byRate(page.runs)) {
    const ReplaySummary summary(run->served, page.objectives);
    if (const std::optional<Distribution> &distribution = summary.*times)
      chart.series.front().points.push_back(
          {run->trial->rate, distribution->p90});
  }
  return chart.draw();
}

static std::string drawTable(const ReplayPage &page) {
  std::string text = "<table>\n<thead><tr><th>arrivals</th><th>requests</th>"
                     "<th>refused</th><th>within the SLO (%)</th>"
                     "<th>TTFT P90 (ms)</th><th>TPOT P90 (ms)</th>"
                     "<th>latency P90 (ms)</th></tr></thead>\n<tbody>\n";
  auto cell = [&](const std::string &words) {
    text += "<td>" + escapeMarkup(words) + "</td>";
  };
  for (const ReplayRun &run : page.runs) {
    const ReplaySummary summary(run.served, page.objectives);
    text += "<tr>";
    cell(run.name());
    cell(std::to_string(summary.requests));
    cell(std::to_string(summary.refused));
    cell(summary.attainment ? number(*summary.attainment) : "-");
    for (const auto &times : {summary.ttft, summary.tpot, summary.latency})
      cell(times ? number(times->p90) : "-");
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

/// What JSON may hold, and a script element must not.
static std::string asScript(const Json &data) {
  std::string text;
  for (char c : data.dump(-1, ' ', false, Json::error_handler_t::replace))
    if (c == '<')
      text += "\\u003c";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  return text;
}

std::string ReplayPage::draw() const {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>" +
      escapeMarkup(title) + "</title>\n<style>\n" + LineChart::styleSheet() +
      pageStyle + "</style>\n</head>\n<body>\n<h1>" + escapeMarkup(title) +
      "</h1>\n";
  for (const std::string &line : lines)
    text += "<p>" + escapeMarkup(line) + "</p>\n";
  text += drawTable(*this) + moreMarkup + "<div class=\"charts\">\n";
  text += drawTimes(*this, "Time to first token", "TTFT (ms)",
                    &ReplayTimes::firstToken);
  text += drawTimes(*this, "Time per output token", "TPOT (ms)",
                    &ReplayTimes::perToken);
  text += drawTimes(*this, "Latency of requests", "latency (ms)",
                    &ReplayTimes::latency);
  if (objectives.any())
    text += drawShares(
        *this, "Attainment by scale of the SLO", "SLO scale",
        "requests within the SLO (%)",
        [&](const ReplayRun &run) {
          std::vector<double> scales;
          scales.reserve(run.served.size());
          for (const ServedRequest &request : run.served)
            scales.push_back(keptScale(request, objectives));
          return scales;
        },
        /*ofAll=*/true);
  if (byRate(runs).size() > 1) {
    if (objectives.any())
      text += drawAttainmentByRate(*this);
    text += drawP90ByRate(*this, "TTFT by rate", &ReplaySummary::ttft,
                          objectives.firstToken);
    text += drawP90ByRate(*this, "TPOT by rate", &ReplaySummary::tpot,
                          objectives.token);
  }
  for (const LineChart &chart : moreCharts)
    text += chart.draw();
  return text + "</div>\n<script type=\"application/json\" id=\"data\">" +
         asScript(data) + "</script>\n</body>\n</html>\n";
}
