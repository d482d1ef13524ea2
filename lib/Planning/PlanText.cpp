//===- PlanText.cpp - Plans for people and programs ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Indexes.h"
#include "sandwich/Planning/Planner.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

using namespace sandwich;

std::string_view sandwich::name(PlanEvaluator evaluator) {
  switch (evaluator) {
  case PlanEvaluator::Modelled:
    return "modelled";
  case PlanEvaluator::Measured:
    return "measured";
  case PlanEvaluator::Both:
    return "both";
  }
  return "";
}

std::string_view sandwich::name(PlanObjective objective) {
  switch (objective) {
  case PlanObjective::Latency:
    return "latency";
  case PlanObjective::Throughput:
    return "throughput";
  case PlanObjective::Goodput:
    return "goodput";
  }
  return "";
}

Json sandwich::toJson(const Plan &plan) {
  Json json = toJson(plan.search);
  std::vector<std::string> leftOut = plan.machine.leftOut;
  leftOut.insert(leftOut.end(), plan.part.leftOut.begin(),
                 plan.part.leftOut.end());
  json["evaluator"] = name(plan.evaluator);
  json["machine"] = toJson(plan.identity);
  json["left_out"] = leftOut;
  json["notes"] = plan.search.notes;
  json["interrupted"] = plan.search.interrupted;
  json["objective"] = name(plan.objective);
  json["predicted_ms_of"] = plan.objective == PlanObjective::Latency ? "request"
                            : plan.objective == PlanObjective::Throughput
                                ? "token"
                                : "good request";
  if (plan.switchingGain)
    json["switching_gain"] = *plan.switchingGain;
  for (const auto &[shape, milliseconds] : plan.steps)
    json["steps"].push_back(shape.promptTokens > 0
                                ? Json{{"phase", "prefill"},
                                       {"tokens", shape.promptTokens},
                                       {"predicted_ms", milliseconds}}
                                : Json{{"phase", "decode"},
                                       {"sequences", shape.decodeSequences},
                                       {"positions", shape.decodePositions},
                                       {"predicted_ms", milliseconds}});
  return json;
}

/// What the milliseconds of the ranking are, where they are no latency.
static std::string_view unitOf(PlanObjective objective) {
  switch (objective) {
  case PlanObjective::Latency:
    return "";
  case PlanObjective::Throughput:
    return "for each token, all requests being there at once";
  case PlanObjective::Goodput:
    return "for each request that gets what it is to get";
  }
  return "";
}

/// What the best plan's steps should take, and what two sets of cores are good
/// for.
static std::string describeBest(const Plan &plan) {
  std::ostringstream text;
  text << std::fixed;
  if (!plan.steps.empty())
    text << "predicted steps of the best:\n";
  for (const auto &[shape, milliseconds] : plan.steps) {
    text << "  ";
    if (shape.promptTokens > 0)
      text << "prefill of " << shape.promptTokens << " tokens";
    else
      text << "decode of " << shape.decodeSequences
           << (shape.decodeSequences == 1 ? " sequence" : " sequences");
    text << ": " << std::setprecision(2) << milliseconds << " ms\n";
  }
  if (plan.switchingGain && *plan.switchingGain > 0)
    text << "switching between its two sets of cores gains "
         << std::setprecision(1) << 100 * *plan.switchingGain
         << "% over the better single one\n";
  return text.str();
}

/// "numa bandwidth 83%": what takes the longest of a phase, and how much of it.
static std::string describeLimit(const TimeParts &parts) {
  const std::string limit = limitOf(parts);
  if (limit.empty())
    return "-";
  double all = 0;
  for (const auto &[name, milliseconds] : parts)
    all += milliseconds;
  return limit + " " +
         std::to_string(std::lround(100 * parts.at(limit) / all)) + "%";
}

/// "and 9 equal to it, by stride"
static std::string describeEqual(const EqualConfigurations &equal) {
  return "and " + std::to_string(equal.count()) + " equal to it, by " +
         std::string(equal.differBy());
}

/// Lines of cells, in columns as wide as their widest cell. `alignment` has an
/// 'l' or 'r' for each column but the last, to which side its cells are moved.
static std::string table(const std::vector<std::vector<std::string>> &lines,
                         std::string_view alignment) {
  std::vector<size_t> widths(alignment.size());
  for (const std::vector<std::string> &line : lines)
    for (size_t column = 0; column < widths.size(); ++column)
      widths[column] = std::max(widths[column], line[column].size());
  std::string text;
  for (const std::vector<std::string> &line : lines) {
    for (size_t column = 0; column < widths.size(); ++column) {
      const std::string space(widths[column] - line[column].size(), ' ');
      text += alignment[column] == 'r' ? space + line[column]
                                       : line[column] + space;
      text += "  ";
    }
    text += line.back() + "\n";
  }
  return text;
}

/// What was dropped, a class on each line, with times that `evaluator` told.
static std::string tableOf(const std::vector<DroppedClass> &dropped,
                           PlanEvaluator evaluator, std::string_view leaves) {
  std::vector<std::vector<std::string>> lines = {
      {evaluator == PlanEvaluator::Measured ? "measured ms" : "predicted ms",
       "configuration", "equal", "prefill is limited by",
       "decode is limited by", "tree", "dropped because"}};
  for (const DroppedClass &each : dropped) {
    std::ostringstream milliseconds;
    milliseconds << std::fixed << std::setprecision(1) << each.predictedMs;
    std::string tree = each.derivation.empty() ? "all cores" : each.derivation;
    tree += " cut at depth " + std::to_string(each.depth);
    lines.push_back(
        {std::isfinite(each.predictedMs) ? milliseconds.str() : "-",
         describe(each.shape, leaves), std::to_string(each.equal.count()),
         describeLimit(each.time.prefill), describeLimit(each.time.decode),
         std::move(tree), each.text});
  }
  return table(lines, "rlrlll");
}

/// "in memory of numa 8-15 first", where that is not what the cores' nodes are;
/// else nothing.
static std::string describeMemory(const ServiceConfiguration &configuration) {
  if (!configuration.hasOtherMemory())
    return {};
  std::set<unsigned> nodes;
  for (const std::vector<unsigned> &own : configuration.memoryNodes)
    if (!own.empty())
      nodes.insert(own.front());
  return "in memory of numa " + formatIndexes({nodes.begin(), nodes.end()}) +
         " first";
}

/// Whether plans use more than one thread of a core.
static bool usesThreads(const Plan &plan) {
  return countParts(plan.part.root, "cpu") > countParts(plan.part.root, "core");
}

std::string sandwich::explain(const Plan &plan) {
  std::ostringstream text;
  const std::string_view leaves = usesThreads(plan) ? "CPU" : "core";
  const SearchStatistics &statistics = plan.search.statistics;
  text << plan.machine.name << ": " << plan.tree->describe() << "\n";
  for (const auto *sentences : {&plan.machine.leftOut, &plan.part.leftOut})
    for (const std::string &sentence : *sentences)
      text << "  left out: " << sentence << "\n";
  text << statistics.trees << " trees by group, cut "
       << statistics.crossSections << " times: " << statistics.configurations
       << " configurations evaluated in " << std::fixed << std::setprecision(2)
       << statistics.seconds << " s\n";
  const std::pair<uint64_t, const char *> pruned[] = {
      {statistics.refused, "cross-sections that the model's operators refuse"},
      {statistics.equal, "equal to one that was met"},
      {statistics.noImprovement,
       "no better than with more cores awake, and all below them"},
      {statistics.cannotRun, "cannot run"},
      {statistics.belowTop, "good, but others are better"},
      {statistics.stoppedEarly,
       "sets of processes left early, their patience spent"}};
  for (auto [number, reason] : pruned)
    if (number > 0)
      text << "  " << number << " " << reason << "\n";
  for (const std::string &note : plan.search.notes)
    text << "  " << note << "\n";
  if (!plan.search.dropped.empty())
    text << "dropped, one line for all that are equal:\n"
         << tableOf(plan.search.dropped, plan.evaluator, leaves);
  if (plan.search.interrupted)
    text << "  interrupted: the best so far\n";
  text << (plan.evaluator == PlanEvaluator::Modelled ? "rank  predicted ms"
                                                     : "rank   measured ms")
       << "  configuration\n";
  if (const std::string_view unit = unitOf(plan.objective); !unit.empty())
    text << "      (" << unit << ")\n";
  // Times of single tokens are short.
  const int digits = plan.objective == PlanObjective::Throughput ? 4 : 1;
  size_t rank = 0;
  for (const ConfigurationClass &configuration : plan.search.configurations) {
    text << std::setw(4) << ++rank << std::setw(14) << std::setprecision(digits)
         << configuration.predictedMs << "  "
         << describe(configuration.shape(), leaves);
    if (const std::string memory = describeMemory(configuration);
        !memory.empty())
      text << ", " << memory;
    if (!configuration.derivation.empty())
      text << "; " << configuration.derivation;
    if (configuration.equal.count() > 0)
      text << ", " << describeEqual(configuration.equal);
    text << "\n";
    const auto &[prefill, decode] = configuration.time;
    if (!prefill.empty() || !decode.empty())
      text << std::string(20, ' ') << "limits: prefill by "
           << describeLimit(prefill) << ", decode by " << describeLimit(decode)
           << "\n";
  }
  text << describeBest(plan);
  return text.str();
}
