//===- Planner.cpp - The best service configurations for a model ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Planning/Planner.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Frontend/ModelConfig.h"
#include "sandwich/Planning/MeasuredEvaluator.h"
#include "sandwich/Serving/Prediction/ModelledEvaluator.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/File.h"
#include "sandwich/Target/Target.h"
#include "sandwich/Topology/Search/OncePerClass.h"
#include "sandwich/Topology/Search/PlanFile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

using namespace sandwich;

static Result<ModelConfig> readConfig(const std::string &folder) {
  constexpr size_t longest = size_t{1} << 20;
  const std::string path = folder + "/config.json";
  SANDWICH_ASSIGN_OR_RETURN(std::string text, readTextFile(path, longest));
  Result<ModelConfig> config = parseModelConfig(text);
  if (!config)
    return config.error().inContext(path);
  return config;
}

static ModelWork workOf(const ModelConfig &config,
                        const CompileOptions &options) {
  ModelWork work;
  work.layers = config.layers;
  work.hiddenSize = config.hiddenSize;
  work.intermediateSize = config.intermediateSize;
  work.queryHeads = config.heads;
  work.keyValueHeads = config.kvHeads;
  work.headDim = config.headDim;
  work.vocabulary = config.vocabSize;
  auto bytes = [](std::string_view dtype) {
    return static_cast<double>(artifact::dtypeBytes(dtype));
  };
  work.bytesPerWeight = bytes(options.dtype);
  // By default the cache's elements are as wide as the weights'.
  work.bytesPerKeyValue = bytes(options.kvDtype.value_or(options.dtype));
  return work;
}

/// `value` as an option that must be positive.
static Result<unsigned> positive(int64_t value, const char *name) {
  if (value < 1)
    return makeError(name, " must be at least 1, not ", value);
  return static_cast<unsigned>(
      std::min<int64_t>(value, std::numeric_limits<unsigned>::max()));
}

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

/// The evaluator that runs configurations.
static Result<std::unique_ptr<MeasuredEvaluator>>
makeMeasuredEvaluator(const PlanOptions &options, ServingTrace trace,
                      const std::function<bool()> &stop) {
  MeasuredEvaluatorOptions measuring;
  measuring.compile = options.compile;
  if (const std::string &output = options.compile.output; !output.empty())
    measuring.folder = std::filesystem::absolute(output).parent_path();
  measuring.progress = [&options, stop](std::string_view stage,
                                        double done) -> Status {
    if (stop && stop())
      return makeError("interrupted");
    if (options.progress)
      options.progress(stage, done);
    return {};
  };
  return MeasuredEvaluator::create(std::move(measuring), std::move(trace));
}

/// Judges the configurations of `plan` again, by running them, each for its
/// class, and calls `measured` after each. If stopped, those that were run
/// remain.
static Status runBest(Plan &plan, MeasuredEvaluator &evaluator,
                      const PlanOptions &options,
                      const std::function<bool()> &stop,
                      const std::function<void()> &measured) {
  const auto start = std::chrono::steady_clock::now();
  const double secondsBefore = plan.search.statistics.seconds;
  std::vector<ConfigurationClass> candidates =
      std::exchange(plan.search.configurations, {});
  for (ConfigurationClass &configuration : candidates) {
    Result<double> milliseconds = evaluator.predict(configuration);
    plan.search.statistics.seconds = secondsBefore + secondsSince(start);
    if (!milliseconds && stop && stop()) {
      plan.search.interrupted = true;
      break;
    }
    if (!milliseconds)
      return milliseconds.error();
    configuration.predictedMs = *milliseconds;
    if (std::isfinite(*milliseconds)) {
      std::vector<ConfigurationClass> &ranked = plan.search.configurations;
      auto place = std::ranges::upper_bound(ranked, *milliseconds, {},
                                            &ConfigurationClass::predictedMs);
      ranked.insert(place, std::move(configuration));
    } else {
      plan.search.statistics.cannotRun += 1 + configuration.equal.count();
      if (options.keepDropped)
        plan.search.dropped.emplace_back(configuration, DropReason::CannotRun,
                                         "cannot run");
    }
    measured();
  }
  return {};
}

/// Whether what is compiled for `options` runs here.
static Status checkRunsHere(const PlanOptions &options) {
  if (options.topology != "host")
    return makeError("configurations run on this machine only, not on ",
                     options.topology);
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(options.compile.target));
  if (!CpuFeatures::host().hasAll(target.features))
    return makeError("configurations run on this machine, which lacks "
                     "instructions of target ",
                     target.name);
  return {};
}

Result<Plan> sandwich::searchPlan(const PlanOptions &options,
                                  const std::function<bool()> &stop) {
  SANDWICH_RETURN_IF_ERROR(checkElementTypes(options.compile));
  const bool runs = options.evaluator != PlanEvaluator::Modelled;
  if (runs)
    SANDWICH_RETURN_IF_ERROR(checkRunsHere(options));
  ConfigurationSearchOptions search;
  SANDWICH_ASSIGN_OR_RETURN(search.topK, positive(options.topK, "top-k"));
  SANDWICH_ASSIGN_OR_RETURN(search.patience,
                            positive(options.patience, "patience"));
  SANDWICH_ASSIGN_OR_RETURN(ModelConfig config,
                            readConfig(options.compile.modelFolder));
  const ModelWork work = workOf(config, options.compile);
  SANDWICH_ASSIGN_OR_RETURN(ServingTrace trace,
                            findServingTrace(options.trace));
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(options.compile.target));
  Plan plan;
  plan.evaluator = options.evaluator;
  SANDWICH_ASSIGN_OR_RETURN(plan.machine,
                            readMachineTopology(options.topology));
  MachineDescription description = describeMachine(plan.machine, target);
  if (options.description) {
    SANDWICH_ASSIGN_OR_RETURN(
        description,
        readMachineDescription(*options.description, plan.machine, target));
  }
  SANDWICH_ASSIGN_OR_RETURN(plan.part, largestSymmetricPart(plan.machine.root));
  // A second thread of a core adds no arithmetic, and takes part of its caches.
  SANDWICH_ASSIGN_OR_RETURN(
      plan.tree, TopoTree::fromMachine(plan.part.root, TopoLeaves::Cores));
  if (options.measure) {
    SANDWICH_ASSIGN_OR_RETURN(description, options.measure(plan.machine));
  }
  // The whole machine: what is left out of the plan can still do the system's
  // own work.
  SANDWICH_ASSIGN_OR_RETURN(LatencyModel model,
                            LatencyModel::create(plan.machine.root, description,
                                                 work.hasBF16Weights()));
  SANDWICH_ASSIGN_OR_RETURN(
      TracePrediction prediction,
      TracePrediction::create(trace,
                              {.stepTokens = options.compile.maxTokens}));
  ModelledEvaluator modelled(std::move(model), work, std::move(prediction));
  std::unique_ptr<MeasuredEvaluator> measured;
  if (runs) {
    SANDWICH_ASSIGN_OR_RETURN(
        measured, makeMeasuredEvaluator(options, std::move(trace), stop));
  }
  const bool models = options.evaluator != PlanEvaluator::Measured;
  // About what the model knows of a measured machine, and of others.
  constexpr double measuredGain = 0.01, guessedGain = 0.05;
  if (models)
    search.leastGain = description.isKnown() ? measuredGain : guessedGain;
  search.limits = limitsOf(work);
  search.interrupted = stop;
  if (options.progress && models)
    search.progress = [&](const SearchStatistics &statistics) {
      options.progress("searching configurations",
                       static_cast<double>(statistics.processSets) /
                           static_cast<double>(statistics.processSetsInAll));
    };
  search.keepDropped = options.keepDropped;
  std::optional<OncePerClass> oncePerClass;
  if (!models)
    oncePerClass.emplace(modelled, *measured);
  const auto addNotes = [&](SearchResult &found) {
    if (measured)
      for (const std::string &note : measured->notes())
        found.notes.push_back(note);
    if (!models && oncePerClass->spared() > 0)
      found.notes.push_back(
          std::to_string(oncePerClass->spared()) +
          " configurations were not run, as others were that are equal " +
          (description.isKnown()
               ? "to the latency model"
               : "by guesses: the speed of the machine's parts was not "
                 "measured (--measure-machine)"));
    if (models && !description.isKnown())
      found.notes.emplace_back(
          runs ? "the speed of the machine's parts was not measured, so what "
                 "was run was chosen by guesses (--measure-machine)"
               : "the speed of the machine's parts was not measured, so times "
                 "are guesses (--measure-machine)");
  };
  const auto tellSoFar = [&](const SearchResult &found) {
    if (!options.measured || found.configurations.empty())
      return;
    Plan soFar = plan;
    soFar.search = found;
    soFar.search.interrupted = true;
    addNotes(soFar.search);
    options.measured(soFar);
  };
  if (options.evaluator == PlanEvaluator::Measured)
    search.soFar = tellSoFar;
  ConfigurationEvaluator *evaluator = &modelled;
  if (oncePerClass)
    evaluator = &*oncePerClass;
  SANDWICH_ASSIGN_OR_RETURN(
      plan.search, searchConfigurations(*plan.tree, *evaluator, search));
  if (search.soFar)
    search.soFar(plan.search);
  if (options.evaluator == PlanEvaluator::Both && !plan.search.interrupted)
    SANDWICH_RETURN_IF_ERROR(runBest(plan, *measured, options, stop,
                                     [&] { tellSoFar(plan.search); }));
  addNotes(plan.search);
  if (plan.search.configurations.empty() && plan.search.interrupted)
    return makeError("interrupted before anything was ",
                     runs ? "measured" : "found");
  if (plan.search.configurations.empty())
    return makeError("no configuration of ", plan.tree->describe(),
                     " can run this model",
                     measured && !measured->notes().empty()
                         ? ": " + measured->notes().front()
                         : std::string());
  return plan;
}

Json sandwich::toJson(const Plan &plan) {
  Json json = toJson(plan.search);
  std::vector<std::string> leftOut = plan.machine.leftOut;
  leftOut.insert(leftOut.end(), plan.part.leftOut.begin(),
                 plan.part.leftOut.end());
  json["evaluator"] = name(plan.evaluator);
  json["machine"] = toJson(planMachine(plan.machine, *plan.tree));
  json["left_out"] = leftOut;
  json["notes"] = plan.search.notes;
  json["interrupted"] = plan.search.interrupted;
  return json;
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
                           PlanEvaluator evaluator) {
  std::vector<std::vector<std::string>> lines = {
      {evaluator == PlanEvaluator::Measured ? "measured ms" : "predicted ms",
       "configuration", "equal", "prefill is limited by",
       "decode is limited by", "tree", "dropped because"}};
  for (const DroppedClass &each : dropped) {
    std::ostringstream milliseconds;
    milliseconds << std::fixed << std::setprecision(1) << each.predictedMs;
    std::string tree = each.derivation.empty() ? "all cores" : each.derivation;
    tree += " cut at depth " + std::to_string(each.depth);
    lines.push_back({std::isfinite(each.predictedMs) ? milliseconds.str() : "-",
                     describe(each.shape), std::to_string(each.equal.count()),
                     describeLimit(each.time.prefill),
                     describeLimit(each.time.decode), std::move(tree),
                     each.text});
  }
  return table(lines, "rlrlll");
}

std::string sandwich::explain(const Plan &plan) {
  std::ostringstream text;
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
         << tableOf(plan.search.dropped, plan.evaluator);
  if (plan.search.interrupted)
    text << "  interrupted: the best so far\n";
  text << (plan.evaluator == PlanEvaluator::Modelled ? "rank  predicted ms"
                                                     : "rank   measured ms")
       << "  configuration\n";
  size_t rank = 0;
  for (const ConfigurationClass &configuration : plan.search.configurations) {
    text << std::setw(4) << ++rank << std::setw(14) << std::setprecision(1)
         << configuration.predictedMs << "  "
         << describe(configuration.shape());
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
  return text.str();
}
