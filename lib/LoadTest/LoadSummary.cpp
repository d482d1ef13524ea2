//===- LoadSummary.cpp - What a server did beside serving -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/LoadSummary.h"

#include "sandwich/Support/Markup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// LoadTimeline
//===----------------------------------------------------------------------===//

/// 1, 2 or 5 times a power of ten, and so long that `seconds` has at most
/// `mostParts` of them.
static double choosePart(double seconds) {
  const double least = seconds / LoadTimeline::mostParts;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least)
      return factor * power;
  return 10 * power;
}

namespace {
/// Adds to the parts of a run.
class TimelineBuilder {
public:
  TimelineBuilder(LoadTimeline &timeline, double end)
      : timeline(timeline), last(timeline.inFlight.size() - 1), end(end) {}

  void add(const ServedRequest &request) {
    addPresence(std::clamp(request.arrival, 0.0, end),
                std::clamp(request.ended, 0.0, end));
    if (request.outputTokens == 0 || request.firstToken == 0)
      return;
    const double tokens = static_cast<double>(request.outputTokens) /
                          static_cast<double>(request.gaps.size() + 1);
    double time = request.firstToken;
    addTokens(time, tokens);
    for (double gap : request.gaps)
      addTokens(time += gap, tokens);
  }

private:
  size_t partOf(double time) const {
    return std::min(static_cast<size_t>(time / timeline.partSeconds), last);
  }
  void addTokens(double time, double tokens) {
    timeline.tokensPerSecond[partOf(std::clamp(time, 0.0, end))] +=
        tokens / timeline.partSeconds;
  }
  void addPresence(double from, double to) {
    for (size_t part = partOf(from); part <= partOf(to); ++part) {
      const double begin = static_cast<double>(part) * timeline.partSeconds;
      const double overlap =
          std::min(to, begin + timeline.partSeconds) - std::max(from, begin);
      timeline.inFlight[part] += std::max(0.0, overlap) / timeline.partSeconds;
    }
  }

  LoadTimeline &timeline;
  const size_t last;
  const double end;
};
} // namespace

LoadTimeline::LoadTimeline(const std::vector<ServedRequest> &requests) {
  double end = 0;
  for (const ServedRequest &request : requests)
    end = std::max(end, request.ended);
  if (!(end > 0))
    return;
  partSeconds = choosePart(end);
  const auto parts = std::clamp<size_t>(
      static_cast<size_t>(std::ceil(end / partSeconds)), 1, mostParts);
  tokensPerSecond.resize(parts);
  inFlight.resize(parts);
  TimelineBuilder builder(*this, end);
  for (const ServedRequest &request : requests)
    builder.add(request);
}

//===----------------------------------------------------------------------===//
// LoadSummary
//===----------------------------------------------------------------------===//

static std::vector<FailureCount>
countFailures(const std::vector<ServedRequest> &requests) {
  std::map<std::string, FailureCount> byKind;
  for (const ServedRequest &request : requests) {
    if (!request.failure)
      continue;
    FailureCount &count = byKind[request.failure->kind];
    if (count.count++ == 0)
      count = {request.failure->kind, 1, request.failure->message};
  }
  std::vector<FailureCount> counts;
  for (auto &[kind, count] : byKind)
    counts.push_back(std::move(count));
  std::ranges::stable_sort(counts, std::greater(), &FailureCount::count);
  return counts;
}

LoadSummary::LoadSummary(const std::vector<ServedRequest> &requests,
                         const ServiceObjectives &objectives)
    : failures(countFailures(requests)), timeline(requests) {
  std::vector<double> refusals, delays;
  uint64_t tokens = 0, pieces = 0;
  double first = requests.empty() ? 0 : requests.front().arrival, end = first;
  if (objectives.any())
    kept = 0;
  for (const ServedRequest &request : requests) {
    first = std::min(first, request.arrival);
    end = std::max(end, request.ended);
    delays.push_back(request.sent - request.arrival);
    failed += request.failure.has_value();
    if (request.refused)
      refusals.push_back(request.ended - request.arrival);
    if (!request.isServed())
      continue;
    ++served;
    cachedPromptTokens += request.cachedPromptTokens;
    tokens += request.outputTokens;
    pieces += request.gaps.size() + 1;
    if (kept)
      *kept += keptScale(request, objectives) <= 1;
  }
  seconds = end - first;
  refusal = Distribution::of(refusals);
  lateness = Distribution::of(delays);
  if (pieces > 0)
    tokensPerPiece = static_cast<double>(tokens) / static_cast<double>(pieces);
}

std::string LoadSummary::describe() const {
  std::string text;
  char line[256];
  if (refusal)
    text += "refused  within " + refusal->describe() + "\n";
  if (failed > 0) {
    std::snprintf(line, sizeof(line), "failed   %zu request%s:\n", failed,
                  failed == 1 ? "" : "s");
    text += line;
    for (const FailureCount &each : failures)
      text += "  " + std::to_string(each.count) + " x " + each.kind + ": " +
              each.example + "\n";
  }
  if (tokensPerPiece > 1.05) {
    std::snprintf(line, sizeof(line),
                  "pieces   of %.2f tokens; ITL is the time between pieces\n",
                  tokensPerPiece);
    text += line;
  }
  if (cachedPromptTokens > 0)
    text += "cached   " + std::to_string(cachedPromptTokens) +
            " tokens of prompts\n";
  if (lateness) {
    std::snprintf(line, sizeof(line),
                  "sent     %.2f ms late on the average, p99 %.2f\n",
                  lateness->mean, lateness->p99);
    text += line;
  }
  return text;
}

Json LoadSummary::toJson() const {
  Json kinds = Json::array();
  for (const FailureCount &each : failures)
    kinds.push_back({{"kind", each.kind},
                     {"count", each.count},
                     {"example", each.example}});
  const auto perSecond = [this](size_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  return {{"served", served},
          {"failed", failed},
          {"failures", std::move(kinds)},
          {"served_per_second", perSecond(served)},
          {"kept_per_second", kept ? Json(perSecond(*kept)) : Json()},
          {"refusal_ms", Distribution::toJson(refusal)},
          {"sent_late_ms", Distribution::toJson(lateness)},
          {"tokens_per_piece", tokensPerPiece},
          {"cached_tokens_of_prompts", cachedPromptTokens},
          {"timeline",
           {{"part_seconds", timeline.partSeconds},
            {"tokens_per_second", timeline.tokensPerSecond},
            {"in_flight", timeline.inFlight}}}};
}

//===----------------------------------------------------------------------===//
// Markup
//===----------------------------------------------------------------------===//

std::string sandwich::drawFailures(const std::vector<ReplayRun> &runs) {
  std::string rows;
  for (const ReplayRun &run : runs)
    for (const FailureCount &each : countFailures(run.served))
      rows += "<tr><td>" + escapeMarkup(run.name()) + "</td><td>" +
              std::to_string(each.count) + "</td><td>" +
              escapeMarkup(each.kind) + "</td><td>" +
              escapeMarkup(each.example) + "</td></tr>\n";
  if (rows.empty())
    return {};
  return "<table>\n<thead><tr><th>arrivals</th><th>failed</th><th>how</th>"
         "<th>for example</th></tr></thead>\n<tbody>\n" +
         rows + "</tbody>\n</table>\n";
}

/// A curve for each run, of the values at the middle of each part.
static LineChart drawTimelines(const std::vector<ReplayRun> &runs,
                               const std::string &title,
                               const std::string &label,
                               std::vector<double> LoadTimeline::*values) {
  LineChart chart{
      .title = title, .xLabel = "seconds", .yLabel = label, .series = {}};
  for (const ReplayRun *run : chosenRuns(runs)) {
    const LoadTimeline timeline(run->served);
    ChartSeries series{run->name(), {}};
    for (size_t i = 0; i < (timeline.*values).size(); ++i)
      series.points.push_back(
          {(static_cast<double>(i) + 0.5) * timeline.partSeconds,
           (timeline.*values)[i]});
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::vector<LineChart> sandwich::drawLoads(const std::vector<ReplayRun> &runs) {
  std::vector<LineChart> charts = {
      drawTimelines(runs, "Tokens over time", "tokens per second",
                    &LoadTimeline::tokensPerSecond),
      drawTimelines(runs, "Requests under way", "requests",
                    &LoadTimeline::inFlight)};
  LineChart refusals{.title = "Time to a refusal",
                     .xLabel = "refusal (ms)",
                     .yLabel = "requests refused (%)",
                     .series = {},
                     .yEnd = 100};
  for (const ReplayRun *run : chosenRuns(runs)) {
    std::vector<double> times;
    for (const ServedRequest &request : run->served)
      if (request.refused)
        times.push_back(1e3 * (request.ended - request.arrival));
    const size_t total = times.size();
    if (total > 0)
      refusals.series.push_back(
          {run->name(), cumulativeShares(std::move(times), total)});
  }
  if (!refusals.series.empty())
    charts.push_back(std::move(refusals));
  return charts;
}
