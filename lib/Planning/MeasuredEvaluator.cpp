//===- MeasuredEvaluator.cpp - Configurations run here --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Planning/MeasuredEvaluator.h"

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Runtime/Measurement/StepMeasurement.h"
#include "sandwich/Serving/Prediction/TracePrediction.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>

using namespace sandwich;

namespace fs = std::filesystem;

/// Each step of the grid is run once in a round. Rounds end when the time is
/// spent; before the first, one is not counted.
static constexpr int leastRounds = 3;
static constexpr int mostRounds = 15;
static constexpr double secondsForRounds = 6;

/// Calls `round` until enough was measured, and returns the median of what it
/// returned but for the first time.
static Result<double>
medianOfRounds(const std::function<Result<double>()> &round) {
  using Clock = std::chrono::steady_clock;
  SANDWICH_RETURN_IF_ERROR(round());
  const Clock::time_point start = Clock::now();
  const auto end = start + std::chrono::duration<double>(secondsForRounds);
  std::vector<double> values;
  for (int i = 0; i < mostRounds && (i < leastRounds || Clock::now() < end);
       ++i) {
    SANDWICH_ASSIGN_OR_RETURN(double value, round());
    values.push_back(value);
  }
  return median(std::move(values));
}

/// `trace`, whose requests come at once where their objective lets them be
/// served together.
static ServingTrace steppedTrace(ServingTrace trace,
                                 const TracePredictionOptions &serving) {
  if (serving.objective != PlanObjective::Latency)
    for (ServingRequest &request : trace)
      request.arrivalSeconds = 0;
  return trace;
}

/// A configuration that is loaded.
class MeasuredEvaluator::Candidate {
public:
  static Result<std::unique_ptr<Candidate>>
  load(Artifact artifact, const PlanCores &cores, const ServingTrace &requests,
       TracePredictionOptions serving, const std::function<bool()> &stop) {
    // Otherwise there would be no position to decode from.
    const uint64_t context = artifact.manifest().model().context_length();
    if (context < 2)
      return makeError("a context of ", context,
                       " tokens has no room for a decode step");
    ServingTrace trace = fitTrace(requests, context).requests;
    const auto maxBatch = static_cast<int64_t>(
        std::min<uint64_t>(artifact.maxDecodeSequences(), usualMaxBatch));
    const StepGrid grid = stepGridFor(steppedTrace(trace, serving),
                                      static_cast<int64_t>(context), maxBatch);
    EngineOptions options;
    options.plan = cores;
    options.kvCacheTokens = StepMeasurement::cacheTokens(grid);
    options.requiredTokens = options.kvCacheTokens;
    options.maxSequences = StepMeasurement::cacheSequences(grid);
    SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                              Engine::create(std::move(artifact), options));
    SANDWICH_ASSIGN_OR_RETURN(StepMeasurement measurement,
                              StepMeasurement::create(*engine, grid, stop));
    serving.maxBatch = maxBatch;
    serving.stepTokens =
        static_cast<int64_t>(engine->limits(PhaseKind::Prefill).tokens);
    SANDWICH_ASSIGN_OR_RETURN(
        TracePrediction prediction,
        TracePrediction::create(std::move(trace), serving));
    return std::unique_ptr<Candidate>(new Candidate(
        std::move(engine), std::move(measurement), std::move(prediction)));
  }

  /// What serving the trace costs in seconds with steps measured once.
  Result<double> cost() {
    SANDWICH_ASSIGN_OR_RETURN(InterpolatedSteps steps, measurement.measure());
    return trace.cost(
        [&](const StepShape &shape) { return steps.seconds(shape); });
  }

private:
  Candidate(std::unique_ptr<Engine> engine, StepMeasurement measurement,
            TracePrediction trace)
      : engine(std::move(engine)), measurement(std::move(measurement)),
        trace(std::move(trace)) {}

  std::unique_ptr<Engine> engine;
  StepMeasurement measurement;
  /// As the context holds it.
  TracePrediction trace;
};

static ConfigurationShape shapeOf(const PlanCores &cores) {
  return {cores.prefill.size(), cores.prefill.front().size(),
          cores.decode.front().size()};
}

/// "2x8-6.sandwich": processes, and the threads of each in both phases.
static std::string nameOf(const ConfigurationShape &shape) {
  return std::to_string(shape.processes) + "x" +
         std::to_string(shape.prefillCores) + "-" +
         std::to_string(shape.decodeCores) + ".sandwich";
}

struct MeasuredEvaluator::Reference {
  std::unique_ptr<Candidate> candidate;
  ConfigurationShape shape;
  /// Measured by itself.
  double seconds;
};

MeasuredEvaluator::MeasuredEvaluator(MeasuredEvaluatorOptions options,
                                     ServingTrace trace)
    : options(std::move(options)), trace(std::move(trace)) {}

Result<std::unique_ptr<MeasuredEvaluator>>
MeasuredEvaluator::create(MeasuredEvaluatorOptions options,
                          ServingTrace trace) {
  std::unique_ptr<MeasuredEvaluator> evaluator(
      new MeasuredEvaluator(std::move(options), std::move(trace)));
  SANDWICH_ASSIGN_OR_RETURN(
      evaluator->folder,
      ScratchFolder::create("sandwich-plan", evaluator->options.folder));
  return evaluator;
}

MeasuredEvaluator::~MeasuredEvaluator() = default;

/// "configuration 3: STAGE"
Status MeasuredEvaluator::report(std::string_view stage, double done) const {
  if (!options.progress)
    return {};
  std::string text = "configuration " + std::to_string(evaluated) + ": ";
  return options.progress(text.append(stage), done);
}

/// The model compiled for the shape of `cores`.
Result<std::string> MeasuredEvaluator::artifactFor(const PlanCores &cores) {
  const ConfigurationShape wanted = shapeOf(cores);
  const fs::path path = fs::path(folder.path()) / nameOf(wanted);
  if ((shape && *shape == wanted) || (reference && reference->shape == wanted))
    return path.string();
  if (shape && !(reference && reference->shape == *shape)) {
    std::error_code ignored;
    fs::remove_all(fs::path(folder.path()) / nameOf(*shape), ignored);
  }
  shape.reset();
  CompileOptions compilation = options.compile;
  compilation.emit = Emit::Artifact;
  compilation.output = path;
  compilation.tuningReport.reset();
  // Which does not change how long anything takes.
  compilation.calibrationText.reset();
  compilation.plan = cores;
  compilation.tensorParallel = static_cast<int64_t>(wanted.processes);
  compilation.threads = static_cast<int64_t>(wanted.prefillCores);
  compilation.decodeThreads.reset();
  compilation.cpus = cores.prefill.front();
  SANDWICH_RETURN_IF_ERROR(
      compile(compilation, [&](std::string_view stage, double done) {
        return report(stage, done);
      }));
  shape = wanted;
  return path.string();
}

/// Compiles, loads and measures `cores`: the mean latency in seconds.
Result<double> MeasuredEvaluator::evaluate(const PlanCores &cores) {
  SANDWICH_ASSIGN_OR_RETURN(std::string path, artifactFor(cores));
  SANDWICH_RETURN_IF_ERROR(report("loading", 0));
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Candidate> candidate,
      Candidate::load(std::move(artifact), cores, trace, options.serving,
                      [this] { return !report("loading", 0); }));
  if (!reference) {
    SANDWICH_ASSIGN_OR_RETURN(
        double seconds, medianOfRounds([&]() -> Result<double> {
          SANDWICH_RETURN_IF_ERROR(report("measuring", 0));
          return candidate->cost();
        }));
    reference.reset(
        new Reference{std::move(candidate), shapeOf(cores), seconds});
    return seconds;
  }
  SANDWICH_ASSIGN_OR_RETURN(
      double ratio, medianOfRounds([&]() -> Result<double> {
        SANDWICH_RETURN_IF_ERROR(report("measuring", 0));
        Result<double> known = reference->candidate->cost();
        if (!known) {
          referenceFailed = true;
          return known.error();
        }
        SANDWICH_ASSIGN_OR_RETURN(double seconds, candidate->cost());
        return seconds / *known;
      }));
  return reference->seconds * ratio;
}

Result<double>
MeasuredEvaluator::predict(const ServiceConfiguration &configuration) {
  constexpr double millisecondsPerSecond = 1e3;
  ++evaluated;
  const PlanCores cores{configuration.prefillCores, configuration.decodeCores};
  Result<double> seconds = evaluate(cores);
  if (seconds)
    return millisecondsPerSecond * *seconds;
  // Whoever stops the evaluation, or has nothing left to compare with, ends.
  SANDWICH_RETURN_IF_ERROR(report("measuring", 1));
  if (referenceFailed)
    return seconds.error();
  const size_t processes = cores.prefill.size();
  problems.push_back("configuration " + std::to_string(evaluated) + ", " +
                     std::to_string(processes) +
                     (processes == 1 ? " process" : " processes") +
                     ", cannot run: " + seconds.error().message);
  return std::numeric_limits<double>::infinity();
}
