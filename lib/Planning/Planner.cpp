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
#include "sandwich/Machine/Indexes.h"
#include "sandwich/Planning/MeasuredEvaluator.h"
#include "sandwich/Serving/Prediction/ModelledEvaluator.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/File.h"
#include "sandwich/Target/Target.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <limits>
#include <memory>
#include <set>
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

/// Leaves the first `threads` CPUs of each core in `node`. Error: a core has
/// fewer.
static Status keepThreads(MachineNode &node, size_t threads) {
  if (node.kind == "core") {
    const size_t has = node.children.size();
    if (has < threads)
      return makeError("threads per core must be at most ", has,
                       ", as the cores have no more, not ", threads);
    node.children.resize(threads);
    return {};
  }
  for (MachineNode &child : node.children)
    SANDWICH_RETURN_IF_ERROR(keepThreads(child, threads));
  return {};
}

/// The parts of `machine` that plans of `options` may use, of which one is
/// chosen.
static Result<std::vector<SymmetricPart>>
findParts(const Machine &machine, const PlanOptions &options) {
  if (options.reservedCores < 0)
    return makeError("reserved cores must be at least 0, not ",
                     options.reservedCores);
  SANDWICH_ASSIGN_OR_RETURN(
      const unsigned threads,
      positive(options.threadsPerCore, "threads per core"));
  SANDWICH_ASSIGN_OR_RETURN(SymmetricPart whole,
                            largestSymmetricPart(machine.root));
  SANDWICH_ASSIGN_OR_RETURN(
      std::vector<SymmetricPart> parts,
      partsWithReservedCores(machine.root, whole,
                             static_cast<uint64_t>(options.reservedCores)));
  for (SymmetricPart &part : parts)
    SANDWICH_RETURN_IF_ERROR(keepThreads(part.root, threads));
  return parts;
}

/// Makes `part` that of `plan`.
static Status usePart(SymmetricPart part, const PlanOptions &options,
                      Plan &plan) {
  plan.part = std::move(part);
  // By default cores: a second thread of one adds no arithmetic, and takes part
  // of its caches.
  SANDWICH_ASSIGN_OR_RETURN(
      plan.tree,
      TopoTree::fromMachine(plan.part.root, options.threadsPerCore > 1
                                                ? TopoLeaves::Cpus
                                                : TopoLeaves::Cores));
  return {};
}

/// Makes that of `parts` the plan's whose best configuration is the fastest; if
/// none can run, the first. What has fewer cores than one before must be faster
/// by `search.leastGain`, as what lets them sleep must be.
static Status useFastest(const std::vector<SymmetricPart> &parts,
                         const PlanOptions &options,
                         ConfigurationEvaluator &evaluator,
                         ConfigurationSearchOptions search, Plan &plan) {
  search.topK = 1;
  double least = std::numeric_limits<double>::infinity();
  const SymmetricPart *fastest = &parts.front();
  for (const SymmetricPart &part : parts) {
    SANDWICH_RETURN_IF_ERROR(usePart(part, options, plan));
    SANDWICH_ASSIGN_OR_RETURN(
        SearchResult found,
        searchConfigurations(*plan.tree, evaluator, search));
    if (!found.configurations.empty() &&
        found.configurations.front().predictedMs <
            (1 - search.leastGain) * least) {
      least = found.configurations.front().predictedMs;
      fastest = &part;
    }
  }
  return usePart(*fastest, options, plan);
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

/// Judges the configurations of `plan` again, by running them, and calls
/// `measured` after each. If stopped, those that were run remain.
static Status runBest(Plan &plan, MeasuredEvaluator &evaluator,
                      const PlanOptions &options,
                      const std::function<bool()> &stop,
                      const std::function<void()> &measured) {
  const auto start = std::chrono::steady_clock::now();
  const double secondsBefore = plan.search.statistics.seconds;
  std::vector<ServiceConfiguration> candidates =
      std::exchange(plan.search.configurations, {});
  for (ServiceConfiguration &configuration : candidates) {
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
      std::vector<ServiceConfiguration> &ranked = plan.search.configurations;
      auto place = std::ranges::upper_bound(ranked, *milliseconds, {},
                                            &ServiceConfiguration::predictedMs);
      ranked.insert(place, std::move(configuration));
    } else {
      ++plan.search.statistics.cannotRun;
      if (options.keepDropped)
        plan.dropped.emplace_back(std::move(configuration), "cannot run");
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
  SANDWICH_ASSIGN_OR_RETURN(const int64_t context,
                            contextOf(options.compile, config));
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
  SANDWICH_ASSIGN_OR_RETURN(plan.identity, planMachine(plan.machine));
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<SymmetricPart> parts,
                            findParts(plan.machine, options));
  SANDWICH_RETURN_IF_ERROR(usePart(parts.front(), options, plan));
  if (options.measure) {
    SANDWICH_ASSIGN_OR_RETURN(description, options.measure(plan.machine));
  }
  // The whole machine: what is left out of the plan can still do the system's
  // own work.
  SANDWICH_ASSIGN_OR_RETURN(LatencyModel model,
                            LatencyModel::create(plan.machine.root, description,
                                                 work.hasBF16Weights(),
                                                 plan.machine.memories));
  SANDWICH_ASSIGN_OR_RETURN(
      TracePrediction prediction,
      TracePrediction::create(trace,
                              {.stepTokens = options.compile.maxTokens}));
  ModelledEvaluator modelled(
      std::move(model), work, std::move(prediction),
      ModelMemoryOptions{.contextTokens = context,
                         .stepTokens = options.compile.maxTokens,
                         .tiedEmbeddings = config.tieWordEmbeddings});
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
  if (models && parts.size() > 1)
    SANDWICH_RETURN_IF_ERROR(
        useFastest(parts, options, modelled, search, plan));
  if (options.progress && models)
    search.progress = [&](const SearchStatistics &statistics) {
      options.progress("searching configurations",
                       static_cast<double>(statistics.processSets) /
                           static_cast<double>(statistics.processSetsInAll));
    };
  if (options.keepDropped)
    search.dropped = [&](const ServiceConfiguration &configuration, DropReason,
                         const std::string &reason) {
      plan.dropped.emplace_back(configuration, reason);
    };
  const auto addNotes = [&](SearchResult &found) {
    if (measured)
      for (const std::string &note : measured->notes())
        found.notes.push_back(note);
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
  ConfigurationEvaluator *evaluator = measured.get();
  if (models)
    evaluator = &modelled;
  SANDWICH_ASSIGN_OR_RETURN(
      plan.search, searchConfigurations(*plan.tree, *evaluator, search));
  for (ServiceConfiguration &configuration : plan.search.configurations) {
    SANDWICH_ASSIGN_OR_RETURN(configuration.memoryNodes,
                              modelled.memoryNodesOf(configuration));
  }
  if (search.soFar)
    search.soFar(plan.search);
  if (options.evaluator == PlanEvaluator::Both && !plan.search.interrupted)
    SANDWICH_RETURN_IF_ERROR(runBest(plan, *measured, options, stop,
                                     [&] { tellSoFar(plan.search); }));
  addNotes(plan.search);
  if (plan.search.configurations.empty() && plan.search.interrupted)
    return makeError("interrupted before anything was ",
                     runs ? "measured" : "found");
  if (!plan.search.configurations.empty())
    return plan;
  std::string reason;
  if (measured && !measured->notes().empty())
    reason = ": " + measured->notes().front();
  else if (models && modelled.leastShortage())
    reason =
        ": " + *modelled.leastShortage() + "; a smaller --context takes less";
  return makeError("no configuration of ", plan.tree->describe(),
                   " can run this model", reason);
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
  if (!plan.dropped.empty())
    json["dropped"] = Json::array();
  for (const auto &[configuration, reason] : plan.dropped)
    json["dropped"].push_back({{"derivation", configuration.derivation},
                               {"depth", configuration.depth},
                               {"reason", reason}});
  return json;
}

/// "18 + 18 of 24" is too long for many processes: the awake cores of one, or
/// CPUs where these are what `leaves` are.
static std::string describeCores(const ServiceConfiguration &configuration,
                                 std::string_view leaves) {
  std::ostringstream text;
  size_t prefill = configuration.prefillCores.front().size();
  size_t decode = configuration.decodeCores.front().size();
  text << configuration.processes()
       << (configuration.processes() == 1 ? " process" : " processes") << " of "
       << prefill << " " << leaves << (prefill == 1 ? "" : "s");
  if (decode < prefill)
    text << ", " << decode << " of them in decode";
  if (configuration.hasOtherMemory()) {
    std::set<unsigned> nodes;
    for (const std::vector<unsigned> &own : configuration.memoryNodes)
      if (!own.empty())
        nodes.insert(own.front());
    text << ", in memory of numa "
         << formatIndexes({nodes.begin(), nodes.end()}) << " first";
  }
  return text.str();
}

/// Whether plans use more than one thread of a core.
static bool usesThreads(const Plan &plan) {
  return countParts(plan.part.root, "cpu") > countParts(plan.part.root, "core");
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
  for (const auto &[configuration, reason] : plan.dropped)
    text << "  dropped "
         << (configuration.derivation.empty() ? "all cores"
                                              : configuration.derivation)
         << " cut at depth " << configuration.depth << ": " << reason << "\n";
  if (plan.search.interrupted)
    text << "  interrupted: the best so far\n";
  text << (plan.evaluator == PlanEvaluator::Modelled ? "rank  predicted ms"
                                                     : "rank   measured ms")
       << "  configuration\n";
  size_t rank = 0;
  for (const ServiceConfiguration &configuration : plan.search.configurations) {
    text << std::setw(4) << ++rank << std::setw(14) << std::setprecision(1)
         << configuration.predictedMs << "  "
         << describeCores(configuration, usesThreads(plan) ? "CPU" : "core");
    if (!configuration.derivation.empty())
      text << "; " << configuration.derivation;
    text << "\n";
  }
  return text.str();
}
