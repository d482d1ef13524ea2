//===- Planner.cpp - The best service configurations for a model ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Planning/Planner.h"

#include "InstanceParts.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/IntegerGroups.h"
#include "sandwich/Planning/MeasuredEvaluator.h"
#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Serving/Prediction/ModelledEvaluator.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/File.h"
#include "sandwich/Target/Target.h"
#include "sandwich/Topology/Search/OncePerClass.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

using namespace sandwich;

namespace {

/// What a plan needs to know of a checkpoint.
struct PlannedModel {
  ModelConfig config;
  /// Bits that a weight takes on average where nobody asks for a format;
  /// nothing of one whose weights were not looked at.
  std::optional<double> storedBits;
};

} // namespace

/// The bits that a number of the matrices of `checkpoint` takes in an artifact.
static double averageBits(const Checkpoint &checkpoint) {
  const ModelConfig &config = checkpoint.config();
  const std::string firstLayer = layerTensorName(0, "");
  double bits = 0, elements = 0;
  for (const ExpectedTensor &expected : expectedTensors(config)) {
    if (expected.shape.size() != 2)
      continue;
    // All layers have one format.
    std::string source = expected.name;
    int64_t layers = 1;
    if (source.starts_with(firstLayer)) {
      source = "model.layers.{}." + source.substr(firstLayer.size());
      layers = config.layers;
    } else if (source.starts_with("model.layers.")) {
      continue;
    }
    const auto count = static_cast<double>(layers * expected.shape[0]) *
                       static_cast<double>(expected.shape[1]);
    bits += count * bitsPerWeight(naturalFormat(checkpoint, source, layers)
                                      .value_or(StorageFormat::bf16()),
                                  expected.shape[1]);
    elements += count;
  }
  return elements == 0 ? 0 : bits / elements;
}

static Result<PlannedModel> openPlannedModel(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                            Checkpoint::open(path));
  // What is wrong with the weights is told when they are packed.
  return PlannedModel{checkpoint.config(),
                      checkpoint.checkTensors()
                          ? std::optional(averageBits(checkpoint))
                          : std::nullopt};
}

/// Reads what `path` tells: of a folder with floats without looking at the
/// weights, which need not be there for a plan.
static Result<PlannedModel> readPlannedModel(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored))
    return openPlannedModel(path);
  constexpr size_t longest = size_t{1} << 20;
  const std::string configPath = path + "/config.json";
  SANDWICH_ASSIGN_OR_RETURN(std::string text,
                            readTextFile(configPath, longest));
  Result<ModelConfig> config = parseModelConfig(text);
  if (!config)
    return config.error().inContext(configPath);
  if (config->quantization)
    return openPlannedModel(path);
  return PlannedModel{*std::move(config), std::nullopt};
}

static ModelWork workOf(const PlannedModel &model,
                        const CompileOptions &options) {
  const ModelConfig &config = model.config;
  ModelWork work;
  work.layers = config.layers;
  work.hiddenSize = config.hiddenSize;
  work.intermediateSize = config.intermediateSize;
  work.queryHeads = config.heads;
  work.keyValueHeads = config.kvHeads;
  work.headDim = config.headDim;
  work.vocabulary = config.vocabSize;
  const double bits = !options.dtype && model.storedBits
                          ? *model.storedBits
                          : bitsPerWeight(*StorageFormat::parseOption(
                                              options.dtype.value_or("bf16")),
                                          work.hiddenSize);
  work.bytesPerWeight = bits / 8;
  // By default the cache's elements are those of weights that are floats.
  const auto headDim = static_cast<uint64_t>(config.headDim);
  work.bytesPerKeyValue =
      static_cast<double>(artifact::keyValueBytes(
          options.kvDtype.value_or(options.dtype == "f32" ? "f32" : "bf16"),
          headDim)) /
      static_cast<double>(headDim);
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

/// How configurations serve the trace.
static TracePredictionOptions servingOf(const PlanOptions &options) {
  return {.stepTokens = options.compile.maxTokens,
          .objective = options.objective,
          .objectives = options.objectives};
}

/// The evaluator that runs configurations.
static Result<std::unique_ptr<MeasuredEvaluator>>
makeMeasuredEvaluator(const PlanOptions &options, ServingTrace trace,
                      const std::function<bool()> &stop) {
  MeasuredEvaluatorOptions measuring;
  measuring.compile = options.compile;
  measuring.serving = servingOf(options);
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

namespace {

/// One search; its parts share what was read and found.
class PlanSearch {
public:
  PlanSearch(const PlanOptions &options, const std::function<bool()> &stop)
      : options(options), stop(stop) {}

  Result<Plan> run();

private:
  /// Sockets or NUMA nodes as instances, and who judges them.
  struct Instances {
    InstanceParts parts;
    std::unique_ptr<ModelledEvaluator> evaluator;
  };

  /// By default cores: a second thread of one adds no arithmetic, and takes
  /// part of its caches.
  TopoLeaves leaves() const {
    return options.threadsPerCore > 1 ? TopoLeaves::Cpus : TopoLeaves::Cores;
  }
  bool runs() const { return options.evaluator != PlanEvaluator::Modelled; }
  /// Whether the model ranks all.
  bool models() const { return options.evaluator != PlanEvaluator::Measured; }

  Status readModel();
  Status readMachine();
  Status readOptions();
  Status makeEvaluators();
  /// Where nobody said otherwise.
  unsigned usualPatience() const;
  /// Makes `part` the plan's.
  Status usePart(SymmetricPart part);
  /// The same of that of `parts` whose best configuration is the fastest; if
  /// none can run, the first. What has fewer cores than one before must be
  /// faster by `leastGain`, as what lets them sleep must be.
  Status useFastestPart();
  /// Who judges `instances` of the model, the others where `others` say.
  Result<std::unique_ptr<ModelledEvaluator>>
  modelledEvaluator(int64_t instances,
                    std::vector<ModelledEvaluator::OtherInstance> others);
  /// Searches `tree`, whose configurations `evaluator` predicts.
  Result<SearchResult> searchTree(const TopoTree &tree,
                                  ModelledEvaluator &evaluator);
  Status searchInstances();
  /// Adds what was found of `instances` to what is ranked already.
  Status add(SearchResult found, const Instances &instances);
  /// Who judged `configuration`.
  ModelledEvaluator &judgeOf(const ServiceConfiguration &configuration) const;
  Status predictSteps();
  Status findSwitchingGain();
  void addNotes(SearchResult &found) const;
  void tellSoFar(const SearchResult &found) const;
  /// Why there is no plan.
  Error nothingFound() const;

  const PlanOptions &options;
  const std::function<bool()> &stop;
  ModelConfig config;
  ModelWork work;
  int64_t context = 0;
  ServingTrace trace;
  MachineDescription description;
  /// Those that plans may use.
  std::vector<SymmetricPart> parts;
  std::optional<LatencyModel> model;
  ConfigurationSearchOptions search;
  std::unique_ptr<ModelledEvaluator> modelled;
  std::unique_ptr<MeasuredEvaluator> measured;
  std::vector<Instances> instances;
  uint64_t spared = 0;
  Plan plan;
};

} // namespace

Status PlanSearch::readModel() {
  SANDWICH_ASSIGN_OR_RETURN(PlannedModel planned,
                            readPlannedModel(options.compile.modelFolder));
  work = workOf(planned, options.compile);
  config = std::move(planned.config);
  SANDWICH_ASSIGN_OR_RETURN(context, contextOf(options.compile, config));
  SANDWICH_ASSIGN_OR_RETURN(trace, findServingTrace(options.trace));
  if (options.requestsPerSecond) {
    constexpr uint64_t seed = 1;
    SANDWICH_ASSIGN_OR_RETURN(
        trace,
        drawArrivals(std::move(trace), *options.requestsPerSecond, seed));
  }
  return {};
}

Status PlanSearch::readMachine() {
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(options.compile.target));
  work.roundsInputs =
      StorageFormat::parseOption(options.compile.dtype.value_or("bf16"))
          ->hasIntegers() &&
      options.compile.activations == name(MatrixElement::Int8) &&
      std::ranges::any_of(target.matrixISAs, multipliesIntegers);
  SANDWICH_ASSIGN_OR_RETURN(plan.machine,
                            readMachineTopology(options.topology));
  description = describeMachine(plan.machine, target);
  if (const auto &file = options.compile.machineParameters) {
    SANDWICH_ASSIGN_OR_RETURN(
        description, readMachineDescription(*file, plan.machine, target));
  }
  SANDWICH_ASSIGN_OR_RETURN(plan.identity, planMachine(plan.machine));
  SANDWICH_ASSIGN_OR_RETURN(parts, findParts(plan.machine, options));
  SANDWICH_RETURN_IF_ERROR(usePart(parts.front()));
  if (options.measure) {
    SANDWICH_ASSIGN_OR_RETURN(description, options.measure(plan.machine));
  }
  // The whole machine: what is left out of the plan can still do the system's
  // own work.
  SANDWICH_ASSIGN_OR_RETURN(
      model, LatencyModel::create(plan.machine.root, description,
                                  work.matrixElement(), plan.machine.memories));
  return {};
}

Status PlanSearch::usePart(SymmetricPart part) {
  plan.part = std::move(part);
  SANDWICH_ASSIGN_OR_RETURN(plan.tree,
                            TopoTree::fromMachine(plan.part.root, leaves()));
  return {};
}

Status PlanSearch::useFastestPart() {
  ConfigurationSearchOptions one = search;
  one.topK = 1;
  one.keepDropped = false;
  double least = std::numeric_limits<double>::infinity();
  const SymmetricPart *fastest = &parts.front();
  for (const SymmetricPart &part : parts) {
    SANDWICH_RETURN_IF_ERROR(usePart(part));
    SANDWICH_ASSIGN_OR_RETURN(SearchResult found,
                              searchConfigurations(*plan.tree, *modelled, one));
    if (!found.configurations.empty() &&
        found.configurations.front().predictedMs <
            (1 - search.leastGain) * least) {
      least = found.configurations.front().predictedMs;
      fastest = &part;
    }
  }
  return usePart(*fastest);
}

Status PlanSearch::readOptions() {
  SANDWICH_ASSIGN_OR_RETURN(search.topK, positive(options.topK, "top-k"));
  if (options.patience) {
    SANDWICH_ASSIGN_OR_RETURN(search.patience,
                              positive(*options.patience, "patience"));
  }
  constexpr unsigned leastClasses = 5;
  search.leastClasses = leastClasses;
  search.interrupted = stop;
  search.keepDropped = options.keepDropped;
  if (options.progress && models())
    search.progress = [this](const SearchStatistics &statistics) {
      options.progress("searching configurations",
                       static_cast<double>(statistics.processSets) /
                           static_cast<double>(statistics.processSetsInAll));
    };
  if (options.evaluator == PlanEvaluator::Measured)
    search.soFar = [this](const SearchResult &found) { tellSoFar(found); };
  return {};
}

Result<std::unique_ptr<ModelledEvaluator>> PlanSearch::modelledEvaluator(
    int64_t count, std::vector<ModelledEvaluator::OtherInstance> others) {
  TracePredictionOptions serving = servingOf(options);
  serving.instances = count;
  SANDWICH_ASSIGN_OR_RETURN(TracePrediction prediction,
                            TracePrediction::create(trace, serving));
  return std::make_unique<ModelledEvaluator>(
      *model, work, std::move(prediction),
      ModelMemoryOptions{.contextTokens = context,
                         .stepTokens = options.compile.maxTokens,
                         .tiedEmbeddings = config.tieWordEmbeddings},
      std::move(others));
}

unsigned PlanSearch::usualPatience() const {
  constexpr unsigned whereMeasured = 10, whereModelled = 200, least = 20;
  constexpr unsigned manyCores = 2048;
  if (!models())
    return whereMeasured;
  const unsigned cores = std::max(plan.tree->leafCount(), manyCores);
  return std::max(whereModelled * manyCores / cores, least);
}

Status PlanSearch::makeEvaluators() {
  if (!options.patience)
    search.patience = usualPatience();
  SANDWICH_ASSIGN_OR_RETURN(modelled, modelledEvaluator(1, {}));
  if (runs()) {
    SANDWICH_ASSIGN_OR_RETURN(measured,
                              makeMeasuredEvaluator(options, trace, stop));
  }
  search.limits = limitsOf(work);
  // About what the model knows of a measured machine, and of others.
  constexpr double measuredGain = 0.01, guessedGain = 0.05;
  if (models())
    search.leastGain = description.isKnown() ? measuredGain : guessedGain;
  return {};
}

Result<SearchResult> PlanSearch::searchTree(const TopoTree &tree,
                                            ModelledEvaluator &evaluator) {
  if (models())
    return searchConfigurations(tree, evaluator, search);
  OncePerClass once(evaluator, *measured);
  Result<SearchResult> found = searchConfigurations(tree, once, search);
  spared += once.spared();
  return found;
}

/// Sockets and NUMA nodes that are alike can each serve the model by itself.
Status PlanSearch::searchInstances() {
  // Whoever interrupts it gets what was found before.
  search.soFar = nullptr;
  SANDWICH_ASSIGN_OR_RETURN(
      std::vector<InstanceParts> levels,
      findInstanceParts(*plan.tree, plan.part.root, leaves()));
  for (InstanceParts &parts : levels) {
    std::vector<ModelledEvaluator::OtherInstance> others;
    auto shared = std::make_shared<const InstanceParts>(parts);
    for (size_t part = 1; part < parts.count(); ++part)
      others.emplace_back([shared, part](const std::vector<RankCpus> &ranks) {
        return shared->move(ranks, part);
      });
    SANDWICH_ASSIGN_OR_RETURN(
        std::unique_ptr<ModelledEvaluator> evaluator,
        modelledEvaluator(static_cast<int64_t>(parts.count()),
                          std::move(others)));
    if (runs() && evaluator->isBesideBusyInstances()) {
      plan.search.notes.emplace_back(
          "several instances at once are predicted only, not run, and so not "
          "compared with what is run");
      return {};
    }
    if (plan.search.interrupted)
      return {};
    Instances each{std::move(parts), std::move(evaluator)};
    SANDWICH_ASSIGN_OR_RETURN(SearchResult found,
                              searchTree(each.parts.tree, *each.evaluator));
    instances.push_back(std::move(each));
    SANDWICH_RETURN_IF_ERROR(add(std::move(found), instances.back()));
  }
  return {};
}

Status PlanSearch::add(SearchResult found, const Instances &of) {
  SearchResult &all = plan.search;
  const InstanceParts &parts = of.parts;
  const std::string each = "an instance on each " + parts.kind;
  // Where an instance is busy while the others sleep, it must gain as much as
  // what lets cores sleep must.
  double enough = std::numeric_limits<double>::infinity();
  if (!of.evaluator->isBesideBusyInstances() && !all.configurations.empty())
    enough = all.configurations.front().predictedMs;
  for (ConfigurationClass &configuration : found.configurations) {
    for (size_t part = 0; part < parts.count(); ++part)
      configuration.instances.push_back(parts.move(configuration, part));
    configuration.derivation = each +
                               (configuration.derivation.empty() ? "" : "; ") +
                               configuration.derivation;
    if (configuration.predictedMs < enough &&
        configuration.predictedMs > (1 - search.leastGain) * enough) {
      all.statistics.noImprovement += 1 + configuration.equal.count();
      if (options.keepDropped)
        all.dropped.emplace_back(configuration, DropReason::NoImprovement,
                                 "not better by more than chance or guesses "
                                 "than the whole machine");
      continue;
    }
    all.configurations.push_back(std::move(configuration));
  }
  std::ranges::stable_sort(all.configurations, {},
                           &ConfigurationClass::predictedMs);
  while (all.configurations.size() > search.topK) {
    const ConfigurationClass &last = all.configurations.back();
    all.statistics.belowTop += 1 + last.equal.count();
    if (options.keepDropped)
      all.dropped.emplace_back(last, DropReason::BelowTop,
                               std::to_string(search.topK) +
                                   " configurations are better");
    all.configurations.pop_back();
  }
  for (DroppedClass &dropped : found.dropped) {
    dropped.shape.instances = parts.count();
    dropped.derivation =
        each + (dropped.derivation.empty() ? "" : "; ") + dropped.derivation;
    all.dropped.push_back(std::move(dropped));
  }
  std::ranges::stable_sort(all.dropped, {}, &DroppedClass::predictedMs);
  for (std::string &note : found.notes)
    if (std::ranges::find(all.notes, note) == all.notes.end())
      all.notes.push_back(std::move(note));
  // Its trees are parts of those of the whole machine.
  found.statistics.trees = found.statistics.crossSections = 0;
  all.statistics += found.statistics;
  all.interrupted |= found.interrupted;
  return {};
}

ModelledEvaluator &
PlanSearch::judgeOf(const ServiceConfiguration &configuration) const {
  for (const Instances &each : instances)
    if (each.parts.count() == configuration.instances.size())
      return *each.evaluator;
  return *modelled;
}

/// What steps of the best plan should take.
Status PlanSearch::predictSteps() {
  const ConfigurationClass &best = plan.search.configurations.front();
  ModelledEvaluator &judge = judgeOf(best);
  std::vector<StepShape> shapes;
  for (uint64_t tokens : {128, 512})
    if (tokens <= static_cast<uint64_t>(options.compile.maxTokens))
      shapes.emplace_back(StepShape{.phase = StepPhase::Prefill})
          .addPiece(0, tokens);
  constexpr uint64_t positions = 128;
  for (unsigned sequences : {1, 8, 32})
    for (StepShape &shape = shapes.emplace_back();
         shape.decodeSequences < sequences;)
      shape.addDecode(positions);
  for (const StepShape &shape : shapes) {
    SANDWICH_ASSIGN_OR_RETURN(const double milliseconds,
                              judge.stepMilliseconds(best, shape));
    plan.steps.push_back({shape, milliseconds});
  }
  return {};
}

/// Compares the best plan with those that use the same cores in both phases.
Status PlanSearch::findSwitchingGain() {
  const ConfigurationClass &best = plan.search.configurations.front();
  double single = std::numeric_limits<double>::infinity();
  for (const ConfigurationClass &each : plan.search.configurations)
    if (each.prefillCores == each.decodeCores)
      single = std::min(single, each.predictedMs);
  ModelledEvaluator &judge = judgeOf(best);
  for (const auto *cores : {&best.prefillCores, &best.decodeCores}) {
    ServiceConfiguration same = best;
    same.prefillCores = same.decodeCores = *cores;
    SANDWICH_ASSIGN_OR_RETURN(const double milliseconds, judge.predict(same));
    single = std::min(single, milliseconds);
  }
  plan.switchingGain = 1 - std::min(best.predictedMs, single) / single;
  return {};
}

void PlanSearch::addNotes(SearchResult &found) const {
  if (measured)
    for (const std::string &note : measured->notes())
      found.notes.push_back(note);
  if (spared > 0)
    found.notes.push_back(
        std::to_string(spared) +
        " configurations were not run, as others were that are equal " +
        (description.isKnown()
             ? "to the latency model"
             : "by guesses: the speed of the machine's parts was not "
               "measured (--measure-machine)"));
  if (models() && !description.isKnown())
    found.notes.emplace_back(
        runs() ? "the speed of the machine's parts was not measured, so what "
                 "was run was chosen by guesses (--measure-machine)"
               : "the speed of the machine's parts was not measured, so times "
                 "are guesses (--measure-machine)");
}

void PlanSearch::tellSoFar(const SearchResult &found) const {
  if (!options.measured || found.configurations.empty())
    return;
  Plan soFar = plan;
  soFar.search = found;
  soFar.search.interrupted = true;
  addNotes(soFar.search);
  options.measured(soFar);
}

Error PlanSearch::nothingFound() const {
  if (plan.search.interrupted)
    return makeError("interrupted before anything was ",
                     runs() ? "measured" : "found");
  std::string reason;
  if (models() && modelled->leastShortage())
    reason =
        ": " + *modelled->leastShortage() + "; a smaller --context takes less";
  else if (measured && !measured->notes().empty())
    reason = ": " + measured->notes().front();
  else if (options.objective == PlanObjective::Goodput)
    reason = trace.front().arrivalSeconds
                 ? ": no request gets what --ttft and --tpot say"
                 : ": none serves nine of ten requests as --ttft and --tpot "
                   "say";
  return makeError("no configuration of ", plan.tree->describe(),
                   " can run this model", reason);
}

Result<Plan> PlanSearch::run() {
  plan.evaluator = options.evaluator;
  plan.objective = options.objective;
  SANDWICH_RETURN_IF_ERROR(readOptions());
  SANDWICH_RETURN_IF_ERROR(readModel());
  SANDWICH_RETURN_IF_ERROR(readMachine());
  SANDWICH_RETURN_IF_ERROR(makeEvaluators());
  if (models() && parts.size() > 1)
    SANDWICH_RETURN_IF_ERROR(useFastestPart());
  SANDWICH_ASSIGN_OR_RETURN(plan.search, searchTree(*plan.tree, *modelled));
  if (search.soFar)
    search.soFar(plan.search);
  SANDWICH_RETURN_IF_ERROR(searchInstances());
  for (ConfigurationClass &configuration : plan.search.configurations) {
    SANDWICH_ASSIGN_OR_RETURN(
        configuration.memoryNodes,
        judgeOf(configuration).memoryNodesOf(configuration));
    // The others are like the first, but for the numbers of their nodes.
    for (ServiceConfiguration &instance : configuration.instances) {
      SANDWICH_ASSIGN_OR_RETURN(instance.memoryNodes,
                                modelled->memoryNodesOf(instance));
    }
  }
  if (options.evaluator == PlanEvaluator::Measured)
    tellSoFar(plan.search);
  if (options.evaluator == PlanEvaluator::Both && !plan.search.interrupted)
    SANDWICH_RETURN_IF_ERROR(runBest(plan, *measured, options, stop,
                                     [&] { tellSoFar(plan.search); }));
  addNotes(plan.search);
  if (plan.search.configurations.empty())
    return nothingFound();
  SANDWICH_RETURN_IF_ERROR(predictSteps());
  if (!runs())
    SANDWICH_RETURN_IF_ERROR(findSwitchingGain());
  return std::move(plan);
}

Result<Plan> sandwich::searchPlan(const PlanOptions &options,
                                  const std::function<bool()> &stop) {
  SANDWICH_RETURN_IF_ERROR(checkElementTypes(options.compile));
  if (options.evaluator != PlanEvaluator::Modelled)
    SANDWICH_RETURN_IF_ERROR(checkRunsHere(options));
  return PlanSearch(options, stop).run();
}
