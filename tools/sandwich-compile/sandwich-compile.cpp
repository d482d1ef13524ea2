//===- sandwich-compile.cpp - The compiler driver -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Progress.h"
#include "sandwich/Accuracy/QuantizationReporter.h"
#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Compiler/FatalErrors.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Planning/ArtifactMeasurement.h"
#include "sandwich/Planning/Planner.h"
#include "sandwich/Support/CutFiles.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/UnfinishedOutputs.h"
#include "sandwich/Topology/Search/PlanFile.h"
#include "sandwich/Tuning/MachineMeasurement.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace sandwich;
using namespace sandwich::tool;

/// Ends the process for `error`. What fails while the process is being
/// interrupted does so for that.
[[noreturn]] static void fail(const Error &error) {
  if (interrupted())
    exitInterrupted();
  exitWithError({error.message});
}

/// Draws what is done on `line`, unless that is to be quiet, and ends what is
/// done once the process is interrupted. Both outlive it.
static CompileProgress progressOf(const Arguments &arguments,
                                  ProgressLine &line) {
  return [&](std::string_view stage, double done) -> Status {
    if (interrupted())
      return makeError(interruptedMessage());
    if (!arguments.quiet)
      line(stage, done);
    return {};
  };
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// --measure-machine: the description of `machine`, which the file then holds
/// too.
static Result<MachineDescription> measureIntoFile(const Machine &machine,
                                                  const Arguments &arguments,
                                                  InterruptedMessage &message) {
  const std::string &path = *arguments.measureMachineFile;
  // Where nothing can be written, nothing need be measured.
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(path));
  ProgressLine line;
  Result<MachineMeasurement> measured =
      measureMachine(machine, progressOf(arguments, line));
  line.finishStage();
  if (!measured)
    return measured.error();
  for (const std::string &sentence : measured->unmeasured)
    std::fprintf(stderr, "not measured: %s\n", sentence.c_str());
  for (const std::string &sentence : measured->notes)
    std::fprintf(stderr, "note: %s\n", sentence.c_str());
  const Json json = toJson(measured->description);
  SANDWICH_RETURN_IF_ERROR(file.write(json.dump(2) + "\n"));
  SANDWICH_RETURN_IF_ERROR(file.commit());
  message.keep("what was measured of the machine is in " + path);
  // As the file is read, whose units round the last digit.
  return machineDescriptionFromJson(json, measured->description);
}

/// Searches with progress on standard error. Most searches of the model are
/// done before anybody would read of them, so only a terminal shows theirs.
static Result<Plan> searchPlanWithProgress(PlanOptions options, bool quiet) {
  ProgressLine line;
  if (!quiet && (::isatty(STDERR_FILENO) == 1 ||
                 options.evaluator != PlanEvaluator::Modelled))
    options.progress = [&](std::string_view stage, double done) {
      line(stage, done);
    };
  Result<Plan> plan = searchPlan(options, interrupted);
  line.finishStage();
  return plan;
}

/// --plan-only: what is found goes to standard output.
static Status runPlan(const Arguments &arguments,
                      const InterruptedMessage &message) {
  const auto textOf = [&](const Plan &plan) {
    return arguments.json ? toJson(plan).dump(2) + "\n" : explain(plan);
  };
  const auto keepFound = [&](const Plan &found) {
    message.say("what was found is printed", textOf(found));
  };
  PlanOptions options = arguments.plan;
  options.measured = keepFound;
  SANDWICH_ASSIGN_OR_RETURN(Plan plan,
                            searchPlanWithProgress(options, arguments.quiet));
  if (plan.search.interrupted) {
    keepFound(plan);
    exitInterrupted();
  }
  message.say("not all was printed");
  return writeAll(textOf(plan));
}

/// --plan: the cores of the file, or of the best plan that is found.
static Result<PlanCores> findPlan(const Arguments &arguments) {
  if (arguments.planName != "auto") {
    SANDWICH_ASSIGN_OR_RETURN(Machine machine,
                              readMachineTopology(arguments.plan.topology));
    return readPlanCores(arguments.planName, machine);
  }
  SANDWICH_ASSIGN_OR_RETURN(
      Plan plan, searchPlanWithProgress(arguments.plan, arguments.quiet));
  if (plan.search.interrupted)
    return makeError(interruptedMessage());
  const ServiceConfiguration &best = plan.search.configurations.front();
  if (best.instances.size() > 1 && !arguments.quiet)
    std::fprintf(
        stderr,
        "plan: one of %zu instances that each have cores of their own; "
        "--plan-only --json tells which\n",
        best.instances.size());
  return PlanCores{best.prefillCores, best.decodeCores};
}

/// "plan: 2 processes, each with 8 threads in prefill and 6 in decode"
static std::string describe(const PlanCores &plan) {
  const size_t processes = plan.prefill.size();
  return "plan: " + std::to_string(processes) +
         (processes == 1 ? " process with " : " processes, each with ") +
         std::to_string(plan.prefill.front().size()) +
         " threads in prefill and " +
         std::to_string(plan.decode.front().size()) + " in decode";
}

//===----------------------------------------------------------------------===//
// Compilations
//===----------------------------------------------------------------------===//

/// Says in `options` which processes and threads run the model, and where they
/// are tuned for: as the plan or --threads says, or as many as this process
/// may have.
static Status chooseThreads(const Arguments &arguments,
                            CompileOptions &options) {
  if (!arguments.planName.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(PlanCores cores, findPlan(arguments));
    // By now the file is there.
    if (arguments.measureMachineFile)
      options.machineParameters = arguments.measureMachineFile;
    if (!arguments.quiet)
      std::fprintf(stderr, "%s\n", describe(cores).c_str());
    options.threads = static_cast<int64_t>(cores.prefill.front().size());
    options.tensorParallel = static_cast<int64_t>(cores.prefill.size());
    options.plan = std::move(cores);
  }
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  if (!arguments.threadsAreGiven && !options.plan) {
    const int64_t processes = std::max<int64_t>(options.tensorParallel, 1);
    options.threads = std::max<int64_t>(budget.threads() / processes, 1);
    options.threadsAreDefault = true;
    if (!arguments.quiet)
      std::fprintf(stderr, "using %lld threads%s, limited by %s\n",
                   static_cast<long long>(options.threads),
                   processes > 1 ? " for each process" : "",
                   budget.limit().c_str());
  }
  if (options.tune == Tune::None)
    return {};
  if (options.plan)
    options.cpus = options.plan->prefill.front();
  else if (options.threads > 0)
    options.cpus = budget.cpusFor(static_cast<unsigned>(options.threads));
  return {};
}

/// Tells what --tune did.
static void describeTuning(const TuningSummary &summary,
                           const std::string &schedules) {
  std::fprintf(stderr,
               "tuned %lld matmuls and %lld attentions in %.1f s with %lld "
               "measurements, found %lld in %s\n",
               static_cast<long long>(summary.matmuls),
               static_cast<long long>(summary.attentions), summary.seconds,
               static_cast<long long>(summary.measurements),
               static_cast<long long>(summary.known), schedules.c_str());
  if (summary.kernels > 0)
    std::fprintf(stderr, "tuned the parameters of %lld kernels\n",
                 static_cast<long long>(summary.kernels));
  if (!summary.complete)
    std::fprintf(stderr, "the budget for tuning was spent before all was "
                         "measured; the same command goes on\n");
}

/// Keeps what was tuned in what an interrupted run says.
static void keepTuned(const CompileOptions &options,
                      InterruptedMessage &message) {
  message.keep("what was tuned is in " + *options.schedules +
               ", and the same command goes on");
}

/// Lets the artifact that was tuned and written say how long its steps take.
/// Where that cannot be measured, the artifact stays without, and a line says
/// why.
static void measureSteps(const CompileOptions &options, ProgressLine &line,
                         bool quiet) {
  sayWhenInterrupted("interrupted; the artifact was written, without the times "
                     "of its steps");
  const Status status = measureArtifact(
      options.output, [&](std::string_view stage, double done) -> Status {
        if (interrupted())
          return makeError(interruptedMessage());
        if (!quiet)
          line(stage, done);
        return {};
      });
  line.finishStage();
  if (interrupted())
    exitInterrupted();
  if (!status && !quiet)
    std::fprintf(stderr, "the times of steps were not measured: %s\n",
                 status.error().message.c_str());
}

namespace {

/// The files of --quantization-report, and what fills them.
struct PendingReports {
  std::unique_ptr<QuantizationReporter> reporter;
  /// By their names.
  std::vector<std::pair<std::string, PendingFile>> files;
};

} // namespace

/// What can be wrong with reports before there is an artifact shows here.
static Result<PendingReports> prepareReports(const Arguments &arguments,
                                             const CompileOptions &options) {
  PendingReports reports;
  for (const std::string &name : arguments.quantizationReports) {
    SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(name));
    reports.files.emplace_back(name, std::move(file));
  }
  if (reports.files.empty())
    return reports;
  SANDWICH_ASSIGN_OR_RETURN(
      reports.reporter,
      QuantizationReporter::create(options, arguments.reportText));
  return reports;
}

/// Runs what was compiled, and writes the reports about it.
static Status writeReports(const Arguments &arguments, PendingReports reports,
                           ProgressLine &line) {
  sayWhenInterrupted("interrupted; the artifact was written, without the "
                     "report of its quantization");
  Result<QuantizationReport> report = reports.reporter->report(
      arguments.compile.output, progressOf(arguments, line));
  line.finishStage();
  if (!report)
    return report.error();
  if (!report->missing.empty())
    std::fprintf(stderr, "the report has errors of weights only: %s\n",
                 report->missing.c_str());
  for (auto &[name, file] : reports.files) {
    SANDWICH_RETURN_IF_ERROR(file.write(name.ends_with(".json")
                                            ? toJson(*report).dump(2) + "\n"
                                            : drawQuantizationReport(*report)));
    SANDWICH_RETURN_IF_ERROR(file.commit());
  }
  return {};
}

/// Plans where that is asked for, compiles, and tells what was tuned.
static Status runCompilation(const Arguments &arguments,
                             InterruptedMessage &message) {
  CompileOptions options = arguments.compile;
  const bool tunes = options.tune != Tune::None;
  // Each configuration that is run is tuned before.
  if (tunes && arguments.plan.evaluator != PlanEvaluator::Modelled)
    keepTuned(options, message);
  SANDWICH_RETURN_IF_ERROR(chooseThreads(arguments, options));
  SANDWICH_ASSIGN_OR_RETURN(PendingReports reports,
                            prepareReports(arguments, options));
  ProgressLine line;
  const CompileProgress show = progressOf(arguments, line);
  const CompileProgress progress = [&](std::string_view stage,
                                       double done) -> Status {
    if (stage == stageTuning)
      keepTuned(options, message);
    if (stage == stagePrinting)
      message.say("not all was printed");
    if (stage == stageDone)
      sayWhenInterrupted("interrupted; all was written");
    return show(stage, done);
  };
  TuningSummary summary;
  Status status = compile(options, progress, &summary);
  if (status && tunes && options.emit == Emit::Artifact)
    measureSteps(options, line, arguments.quiet);
  line.finishStage();
  SANDWICH_RETURN_IF_ERROR(status);
  if (reports.reporter)
    SANDWICH_RETURN_IF_ERROR(writeReports(arguments, std::move(reports), line));
  SANDWICH_RETURN_IF_ERROR(finishStandardOutput());
  if (tunes && !arguments.quiet)
    describeTuning(summary, *options.schedules);
  return {};
}

#ifdef SANDWICH_INCLUDE_TESTS
namespace sandwich::test {
void registerTestPasses();
} // namespace sandwich::test
#endif

int main(int argc, char **argv) try {
  exitOnFatalErrors();
  prepareStandardStreams();
  exitOnCutFiles();
#ifdef SANDWICH_INCLUDE_TESTS
  test::registerTestPasses();
#endif
  InterruptedMessage message;
  exitSoonWhenInterrupted();
  Arguments arguments;
  if (std::optional<int> status = readArguments(argc, argv, arguments))
    return *status;
  if (Status status = checkPlaces(arguments); !status)
    fail(status.error());
  if (arguments.measureMachineFile)
    arguments.plan.measure = [&](const Machine &machine) {
      return measureIntoFile(machine, arguments, message);
    };
  const Status status = arguments.planOnly ? runPlan(arguments, message)
                                           : runCompilation(arguments, message);
  if (!status)
    fail(status.error());
  return 0;
} catch (const std::bad_alloc &) {
  exitOutOfMemory();
} catch (const std::exception &exception) {
  // Libraries without exceptions were left as they were, so nothing more of
  // them may run.
  exitWithError({exception.what()});
}
