//===- ReplaySummary.cpp - What a replay comes to -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/ReplaySummary.h"

#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>

using namespace sandwich;

double sandwich::keptScale(const ServedRequest &request,
                           const ServiceObjectives &objectives) {
  if (!request.isServed())
    return std::numeric_limits<double>::infinity();
  double scale = 0;
  if (objectives.firstToken)
    scale = request.firstTokenSeconds() / *objectives.firstToken;
  if (objectives.token)
    scale = std::max(scale,
                     request.secondsPerToken().value_or(0) / *objectives.token);
  return scale;
}

double sandwich::attainmentPercent(const std::vector<ServedRequest> &served,
                                   const ServiceObjectives &objectives) {
  const auto kept = std::ranges::count_if(served, [&](const auto &request) {
    return keptScale(request, objectives) <= 1;
  });
  return 100.0 * static_cast<double>(kept) /
         static_cast<double>(std::max<size_t>(served.size(), 1));
}

ReplayTimes::ReplayTimes(const std::vector<ServedRequest> &served) {
  for (const ServedRequest &request : served) {
    if (!request.isServed())
      continue;
    latency.push_back(request.latencySeconds());
    firstToken.push_back(request.firstTokenSeconds());
    if (std::optional<double> seconds = request.secondsPerToken())
      perToken.push_back(*seconds);
    betweenTokens.insert(betweenTokens.end(), request.gaps.begin(),
                         request.gaps.end());
  }
}

std::optional<Distribution>
Distribution::of(const std::vector<double> &seconds) {
  if (seconds.empty())
    return std::nullopt;
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return Distribution{1e3 * sum / static_cast<double>(seconds.size()),
                      1e3 * quantile(seconds, 0.5),
                      1e3 * quantile(seconds, 0.9),
                      1e3 * quantile(seconds, 0.99)};
}

ReplaySummary::ReplaySummary(const std::vector<ServedRequest> &served,
                             const ServiceObjectives &objectives)
    : requests(served.size()) {
  for (const ServedRequest &request : served) {
    refused += request.refused;
    if (!request.isServed())
      continue;
    promptTokens += request.promptTokens;
    outputTokens += request.outputTokens;
    seconds = std::max(seconds, request.lastToken);
  }
  if (objectives.any())
    attainment = attainmentPercent(served, objectives);
  const ReplayTimes times(served);
  latency = Distribution::of(times.latency);
  ttft = Distribution::of(times.firstToken);
  tpot = Distribution::of(times.perToken);
  itl = Distribution::of(times.betweenTokens);
}

std::string Distribution::describe() const {
  char text[160];
  std::snprintf(text, sizeof(text),
                "mean %.2f ms, median %.2f, p90 %.2f, p99 %.2f", mean, median,
                p90, p99);
  return text;
}

static std::string describeTimes(const char *name,
                                 const std::optional<Distribution> &times) {
  if (!times)
    return {};
  char line[16];
  std::snprintf(line, sizeof(line), "%-8s ", name);
  return line + times->describe() + "\n";
}

std::string ReplaySummary::describe() const {
  char line[200];
  std::snprintf(line, sizeof(line),
                "%zu request%s, %llu tokens of prompts and %llu generated in "
                "%.2f s: %.2f tokens/s generated, %.2f in all\n",
                requests, requests == 1 ? "" : "s",
                static_cast<unsigned long long>(promptTokens),
                static_cast<unsigned long long>(outputTokens), seconds,
                perSecond(outputTokens),
                perSecond(promptTokens + outputTokens));
  std::string text = line + describeTimes("latency", latency) +
                     describeTimes("TTFT", ttft) + describeTimes("TPOT", tpot) +
                     describeTimes("ITL", itl);
  if (attainment) {
    std::snprintf(line, sizeof(line),
                  "SLO      attained by %.1f%% of all requests; %zu refused\n",
                  *attainment, refused);
    text += line;
  }
  return text;
}

Json Distribution::toJson(const std::optional<Distribution> &times) {
  if (!times)
    return nullptr;
  return {{"mean", times->mean},
          {"median", times->median},
          {"p90", times->p90},
          {"p99", times->p99}};
}

Json ReplaySummary::toJson() const {
  return {{"requests", requests},
          {"refused", refused},
          {"attainment_percent", attainment ? Json(*attainment) : Json()},
          {"prompt_tokens", promptTokens},
          {"output_tokens", outputTokens},
          {"seconds", seconds},
          {"output_tokens_per_second", perSecond(outputTokens)},
          {"latency_ms", Distribution::toJson(latency)},
          {"ttft_ms", Distribution::toJson(ttft)},
          {"tpot_ms", Distribution::toJson(tpot)},
          {"itl_ms", Distribution::toJson(itl)}};
}
