//===- RateExperiment.cpp - Requests served at several rates --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/RateExperiment.h"

#include <cstdio>

using namespace sandwich;

void RateExperiment::tell(const RateTrial &trial) const {
  if (!options.tell)
    return;
  char line[160];
  std::snprintf(line, sizeof(line),
                "%.4g requests/s: %zu of %zu kept the SLO, %.1f%% (95%% "
                "confidence: %.1f%% to %.1f%%)%s",
                trial.rate, trial.kept, trial.requests,
                100 * trial.attainment(), 100 * trial.interval.low,
                100 * trial.interval.high, trial.certain ? "" : ", uncertain");
  options.tell(line);
}

Status RateExperiment::runRates(const RunServer &server) {
  for (double rate : options.rates) {
    RateTrial trial;
    trial.rate = rate;
    ReplayRun run;
    Status status = server(rate, run, [&](bool kept) {
      ++trial.requests;
      trial.kept += kept;
      return true;
    });
    if (trial.requests > 0)
      trial.conclude(options.goodput.attainment);
    run.trial = trial;
    served.push_back(std::move(run));
    SANDWICH_RETURN_IF_ERROR(status);
    if (options.objectives.any())
      tell(trial);
  }
  return {};
}

Status RateExperiment::searchGoodput(const RunServer &server) {
  const RateRunner runner = [&](double rate, size_t,
                                const KeptObserver &observe) -> Status {
    served.emplace_back();
    return server(rate, served.back(), observe);
  };
  Result<Goodput> found =
      findGoodput(options.goodput, runner, [&](const RateTrial &trial) {
        served.back().trial = trial;
        tell(trial);
      });
  // What was served of a rate that was not finished says nothing about it.
  std::erase_if(served, [](const ReplayRun &run) { return !run.trial; });
  if (!found)
    return found.error();
  goodput = *found;
  return {};
}

Status RateExperiment::run(const RunServer &server) {
  if (options.findsGoodput)
    return searchGoodput(server);
  if (!options.rates.empty())
    return runRates(server);
  served.emplace_back();
  return server(std::nullopt, served.back(), {});
}

Json RateExperiment::describeRun(const ReplayRun &run) const {
  const ServiceObjectives &objectives = options.objectives;
  Json json = Json::object();
  if (run.trial) {
    json["requests_per_second"] = run.trial->rate;
    if (objectives.any())
      json.update(
          {{"kept", run.trial->kept},
           {"interval_percent",
            {100 * run.trial->interval.low, 100 * run.trial->interval.high}},
           {"certain", run.trial->certain},
           {"attained", run.trial->attained}});
  }
  json.update(ReplaySummary(run.served, objectives).toJson());
  if (objectives.any()) {
    json["scales"] = Json::array();
    for (double scale : options.objectiveScales)
      json["scales"].push_back(
          {{"scale", scale},
           {"attainment_percent",
            attainmentPercent(run.served, options.objectiveScales.size() == 1
                                              ? objectives
                                              : objectives.scaled(scale))}});
  }
  if (options.moreOfRun)
    json.update(options.moreOfRun(run));
  return json;
}

Json RateExperiment::toJson() const {
  if (served.size() == 1 && !options.findsGoodput)
    return describeRun(served.front());
  Json json = Json::object();
  if (options.findsGoodput) {
    auto orNull = [](std::optional<double> rate) {
      return rate ? Json(*rate) : Json();
    };
    json["wanted_attainment_percent"] = 100 * options.goodput.attainment;
    json["goodput_requests_per_second"] = orNull(goodput.rate);
    json["too_high_requests_per_second"] = orNull(goodput.tooHigh);
  }
  json["rates"] = Json::array();
  for (const ReplayRun &run : served)
    json["rates"].push_back(describeRun(run));
  return json;
}

std::string RateExperiment::describeRuns() const {
  const ServiceObjectives &objectives = options.objectives;
  std::string text;
  char line[200];
  for (const ReplayRun &run : served) {
    if (run.trial) {
      std::snprintf(line, sizeof(line), "\nat %.4g requests/s:\n",
                    run.trial->rate);
      text += line;
    }
    text += ReplaySummary(run.served, objectives).describe();
    if (options.objectiveScales.size() > 1)
      for (double scale : options.objectiveScales) {
        std::snprintf(line, sizeof(line), "SLO x %-6.4g attained by %.1f%%\n",
                      scale,
                      attainmentPercent(run.served, objectives.scaled(scale)));
        text += line;
      }
    if (options.moreLinesOfRun)
      text += options.moreLinesOfRun(run);
  }
  return text;
}

std::string RateExperiment::describeGoodput() const {
  if (!options.findsGoodput)
    return {};
  char line[200];
  if (!goodput.rate)
    std::snprintf(line, sizeof(line),
                  "\ngoodput: none; at %.4g requests/s fewer than %.4g%% kept "
                  "the SLO\n",
                  goodput.tooHigh.value_or(0),
                  100 * options.goodput.attainment);
  else if (!goodput.tooHigh)
    std::snprintf(line, sizeof(line),
                  "\ngoodput: at least %.4g requests/s, the highest rate "
                  "tried\n",
                  *goodput.rate);
  else
    std::snprintf(line, sizeof(line),
                  "\ngoodput: %.4g requests/s with %.4g%% within the SLO; "
                  "%.4g is too high\n",
                  *goodput.rate, 100 * options.goodput.attainment,
                  *goodput.tooHigh);
  return line;
}

std::vector<std::string> RateExperiment::pageLines() const {
  std::vector<std::string> lines;
  std::string slo;
  char part[80];
  if (options.objectives.firstToken) {
    std::snprintf(part, sizeof(part), " TTFT %.4g ms",
                  1e3 * *options.objectives.firstToken);
    slo += part;
  }
  if (options.objectives.token) {
    std::snprintf(part, sizeof(part), " TPOT %.4g ms",
                  1e3 * *options.objectives.token);
    slo += part;
  }
  if (!slo.empty())
    lines.push_back("SLO:" + slo);
  if (goodput.rate) {
    std::snprintf(part, sizeof(part), "Goodput: %.4g requests per second",
                  *goodput.rate);
    lines.emplace_back(part);
  }
  return lines;
}

Status sandwich::serveRun(size_t requests, const ServiceObjectives &objectives,
                          TraceReplayOptions options, const TraceServer &server,
                          ReplayRun &run, const KeptObserver &observe) {
  bool enough = false;
  if (observe)
    options.observe = [&](const ServedRequest &request) {
      run.served.push_back(request);
      enough = !observe(keptScale(request, objectives) <= 1);
      return !enough;
    };
  Result<std::vector<ServedRequest>> served = server(options);
  if (!served)
    return served.error();
  if (!observe)
    run.served = std::move(*served);
  if (!enough && run.served.size() < requests)
    return makeError("interrupted; ", requests - run.served.size(),
                     " requests were not served");
  return {};
}
