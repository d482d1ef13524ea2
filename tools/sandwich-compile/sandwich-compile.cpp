//===- sandwich-compile.cpp - The compiler driver -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Compiler/FatalErrors.h"
#include "sandwich/Planning/Planner.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/Strategies.h"
#include "sandwich/Support/CutFiles.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/UnfinishedOutputs.h"
#include "sandwich/Target/Target.h"
#include "sandwich/Topology/CpuBudget.h"
#include "sandwich/Topology/PlanFile.h"
#include "sandwich/Tuning/MachineMeasurement.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <sstream>
#include <unistd.h>

using namespace sandwich;

namespace {

/// Draws each stage on one line of the terminal, or prints a line for each
/// where standard error is no terminal.
class ProgressLine {
public:
  void operator()(std::string_view stage, double done) {
    using namespace std::chrono;
    auto now = steady_clock::now();
    if (stage != current) {
      finishStage();
      current = stage;
      started = now;
      if (!isTerminal)
        std::fprintf(stderr, "%s\n", current.c_str());
    } else if (now - drawn < milliseconds(50) && done < 1) {
      return;
    }
    drawn = now;
    if (!isTerminal)
      return;
    constexpr int width = 30;
    std::string bar(static_cast<size_t>(done * width), '#');
    bar.resize(width, '.');
    if (done > 0) {
      double elapsed = duration<double>(now - started).count();
      std::fprintf(stderr, "\r\x1b[K%-22s [%s] %3.0f%%  %.0f s left",
                   current.c_str(), bar.c_str(), done * 100,
                   elapsed * (1 - done) / done);
    } else {
      std::fprintf(stderr, "\r\x1b[K%-22s", current.c_str());
    }
  }

  /// Removes the line, so that what follows begins on a clean one.
  void finishStage() {
    if (isTerminal && !current.empty())
      std::fprintf(stderr, "\r\x1b[K");
    current.clear();
  }

private:
  bool isTerminal = ::isatty(STDERR_FILENO) == 1;
  std::string current;
  std::chrono::steady_clock::time_point started, drawn;
};

/// Where tuned schedules are kept for the user who names no file.
std::optional<std::string> defaultScheduleFile() {
  const char *cache = std::getenv("XDG_CACHE_HOME");
  const char *home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache && *cache)
    folder = cache;
  else if (home && *home)
    folder = std::filesystem::path(home) / ".cache";
  else
    return std::nullopt;
  folder /= "sandwich";
  // Where that fails, so does the database, with a message.
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  return folder / "schedules.txt";
}

/// --measure-machine: the parameters of `machine`, which `path` then holds too.
Result<MachineParameters> measureIntoFile(const MachineNode &machine,
                                          bool bf16Weights,
                                          const std::string &path, bool quiet) {
  // Where nothing can be written, nothing need be measured.
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(path));
  ProgressLine line;
  Result<MachineMeasurement> measured = measureMachine(
      machine, bf16Weights, [&](std::string_view stage, double done) -> Status {
        if (interrupted())
          return makeError(interruptedMessage());
        if (!quiet)
          line(stage, done);
        return {};
      });
  line.finishStage();
  if (!measured)
    return measured.error();
  for (const std::string &sentence : measured->assumed)
    std::fprintf(stderr, "not measured, but assumed: %s\n", sentence.c_str());
  const Json json = toJson(measured->parameters);
  SANDWICH_RETURN_IF_ERROR(file.write(json.dump(2) + "\n"));
  SANDWICH_RETURN_IF_ERROR(file.commit());
  // As the file is read, whose units round the last digit.
  return machineParametersFromJson(json);
}

/// Searches with progress on standard error. Most searches of the model are
/// done before anybody would read of them, so only a terminal shows theirs.
Result<Plan> searchPlanWithProgress(PlanOptions options, bool quiet) {
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

/// Ends the process for `error`. What fails while the process is being
/// interrupted does so for that.
[[noreturn]] void fail(const Error &error) {
  exitWithError({interrupted() ? interruptedMessage() : error.message});
}

/// Writes `text` to standard output, and nothing after it.
Status writeAll(const std::string &text) {
  SANDWICH_RETURN_IF_ERROR(writeStandardOutput(text));
  return finishStandardOutput();
}

/// --plan-only: what was found goes to standard output.
int runPlan(const PlanOptions &options, bool json, bool quiet) {
  Result<Plan> plan = searchPlanWithProgress(options, quiet);
  if (!plan)
    fail(plan.error());
  const std::string text = json ? toJson(*plan).dump(2) + "\n" : explain(*plan);
  Status status = writeAll(text);
  if (status && plan->search.interrupted)
    sayWhenInterrupted("interrupted; what was found is printed");
  if (!status || plan->search.interrupted)
    fail(status.error());
  return 0;
}

/// --plan: the cores of the file `name`, or of the best plan that is found.
Result<PlanCores> findPlan(const std::string &name, const PlanOptions &options,
                           bool quiet) {
  if (name != "auto") {
    SANDWICH_ASSIGN_OR_RETURN(Machine machine,
                              readMachineTopology(options.topology));
    return readPlanCores(name, machine);
  }
  SANDWICH_ASSIGN_OR_RETURN(Plan plan, searchPlanWithProgress(options, quiet));
  if (plan.search.interrupted)
    return makeError(interruptedMessage());
  const ServiceConfiguration &best = plan.search.configurations.front();
  return PlanCores{best.prefillCores, best.decodeCores};
}

/// Whether `outputs` can be written without harm to `inputs` or to each other.
Status checkOutputs(const std::vector<std::string> &outputs,
                    const ToolInputs &inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    SANDWICH_RETURN_IF_ERROR(checkOutputPlace(*output, inputs));
    for (auto other = outputs.begin(); other != output; ++other) {
      std::error_code ignored;
      if (std::filesystem::weakly_canonical(*output, ignored) ==
          std::filesystem::weakly_canonical(*other, ignored))
        return makeError(*output, ": is written twice; name another file");
    }
  }
  return {};
}

/// "plan: 2 processes, each with 8 cores in prefill and 6 in decode"
std::string describe(const PlanCores &plan) {
  const size_t processes = plan.prefill.size();
  return "plan: " + std::to_string(processes) +
         (processes == 1 ? " process with " : " processes, each with ") +
         std::to_string(plan.prefill.front().size()) +
         " cores in prefill and " + std::to_string(plan.decode.front().size()) +
         " in decode";
}

} // namespace

#ifdef SANDWICH_INCLUDE_TESTS
namespace sandwich::test {
void registerTestPasses();
} // namespace sandwich::test
#endif

int main(int argc, char **argv) try {
  prepareStandardStreams();
  exitOnCutFiles();
#ifdef SANDWICH_INCLUDE_TESTS
  test::registerTestPasses();
#endif
  exitOnFatalErrors();
  sayWhenInterrupted("interrupted; nothing was written");
  exitSoonWhenInterrupted();
  CompileOptions options;
  CLI::App app{
      "Compiles a Hugging Face checkpoint into an artifact for one CPU.\n\n"
      "  sandwich-compile models/jargon-llama -o jargon.sandwich\n"
      "  sandwich-compile Llama-3.2-1B -o llama.sandwich --dtype=bf16 "
      "--threads=8\n"
      "  sandwich-compile Llama-3.2-1B --emit=schedule-ir\n",
      "sandwich-compile"};
  app.add_option("MODEL_DIR", options.modelFolder,
                 "Folder with config.json and *.safetensors")
      ->required();
  app.add_option(
      "-o,--output", options.output,
      "Artifact to write (NAME.sandwich), or file for --emit's text");
  app.add_option("--dtype", options.dtype, "Element type of weights")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--kv-dtype", options.kvDtype,
                 "Element type of the KV cache; bf16 has the range of f32, f16 "
                 "is 8 times as precise but infinite beyond 65504 and zero "
                 "below 3e-8 (default: f32 with --dtype=f32, else f16 for "
                 "checkpoints in f16 and bf16 for others)")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}));
  std::vector<std::string> targets = targetNames();
  targets.push_back("host");
  app.add_option("--target", options.target, "CPU to compile for")
      ->check(CLI::IsMember(targets))
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Threads of the team, at most " +
                     std::to_string(SANDWICH_MAX_THREADS) +
                     " (default: what this machine allows)");
  app.add_option("--decode-threads", options.decodeThreads,
                 "Threads of the team in decode (default: as --threads)");
  std::string planName;
  app.add_option(
         "--plan", planName,
         "Service configuration to compile for, instead of --threads: "
         "a file that --plan-only --json wrote, whose first one counts, "
         "or 'auto' for the best that is found")
      ->type_name("FILE.json|auto");
  app.add_option("--tensor-parallel", options.tensorParallel,
                 "Processes that run the model together, each with its own "
                 "shard of the weights and --threads of its own")
      ->capture_default_str();
  app.add_option("--max-tokens-per-step", options.maxTokens,
                 "Longest piece of a prompt that one step takes, at most " +
                     std::to_string(SANDWICH_MAX_STEP_TOKENS))
      ->capture_default_str();
  app.add_option("--context", options.contextLength,
                 "Tokens a sequence may hold (default: the model's, or its "
                 "sliding window where that is less)");
  const std::map<std::string, Emit> kinds = {
      {"model-ir", Emit::ModelIR}, {"schedule-ir", Emit::ScheduleIR},
      {"loop-ir", Emit::LoopIR},   {"llvm-ir", Emit::LLVMIR},
      {"asm", Emit::Assembly},     {"artifact", Emit::Artifact}};
  std::string emit = "artifact";
  app.add_option("--emit", emit,
                 "What to write: model-ir, schedule-ir, loop-ir, llvm-ir, asm "
                 "or artifact")
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  app.add_option("--ir", options.inputIR,
                 "Start from this model IR or schedule IR, edited by hand, "
                 "instead of the checkpoint's own");
  const std::map<std::string, Tune> tunings = {
      {"none", Tune::None}, {"quick", Tune::Quick}, {"full", Tune::Full}};
  std::string tune = "none";
  app.add_option(
         "--tune", tune,
         "Measure which schedules are fast on this machine; none: a model "
         "of the CPU decides at once, quick: for some numbers of "
         "tokens, full: for each")
      ->check(CLI::IsMember(tunings))
      ->capture_default_str();
  app.add_option("--schedules", options.schedules,
                 "File of schedules tuned on this machine. --tune adds to it, "
                 "and measures nothing that it knows (default then: "
                 "sandwich/schedules.txt in $XDG_CACHE_HOME or ~/.cache)");
  std::vector<std::string> strategies;
  for (Strategy strategy : allStrategies())
    strategies.emplace_back(name(strategy));
  app.add_option("--strategy", options.strategy, "How --tune searches")
      ->check(CLI::IsMember(strategies))
      ->capture_default_str();
  app.add_option("--tuning-seconds", options.tuningSeconds,
                 "The most that --tune takes; the rest is left to the rule of "
                 "--tune=none (default: no limit)");
  app.add_option(
      "--trace", options.trace,
      "File with the requests to tune or plan for, a line for each: tokens "
      "of the prompt and tokens generated, or an object of JSON "
      "with \"prompt_tokens\" and \"output_tokens\"; or sharegpt (what "
      "plans are for by default) or lmsys");
  app.add_option("--tuning-report", options.tuningReport,
                 "Page of HTML that shows what --tune found and how");
  app.add_option("--loop-passes", options.loopPasses,
                 "Passes to run on the loop IR before it becomes machine code, "
                 "as sandwich-opt's --pass-pipeline names them: "
                 "\"canonicalize,cse\"");
  PlanOptions plan;
  bool planOnly = false;
  bool explainPlan = false;
  bool json = false;
  app.add_flag(
         "--plan-only", planOnly,
         "Write no artifact: search the service configurations (processes, "
         "and the cores of each in prefill and decode) and print the "
         "best")
      ->group("Planning");
  app.add_option("--topology", plan.topology,
                 "Machine to plan for: 'host', an hwloc XML file, or "
                 "'synthetic:' and a description as hwloc reads it")
      ->type_name("host|FILE.xml|synthetic:TEXT")
      ->capture_default_str()
      ->group("Planning");
  app.add_option(
         "--machine-parameters", plan.parameters,
         "File with the speed of the machine's parts (docs/Topology.md); "
         "middling ones are assumed without")
      ->group("Planning");
  std::optional<std::string> measureMachineFile;
  app.add_option("--measure-machine", measureMachineFile,
                 "Measure the speed of this machine's parts, about ten seconds "
                 "at most, plan with it, and write it to this file for "
                 "--machine-parameters")
      ->type_name("FILE.json")
      ->group("Planning");
  const std::map<std::string, PlanEvaluator> evaluators = {
      {"modelled", PlanEvaluator::Modelled},
      {"measured", PlanEvaluator::Measured},
      {"both", PlanEvaluator::Both}};
  std::string evaluator = "modelled";
  app.add_option("--evaluator", evaluator,
                 "Who judges configurations; modelled: a model of the machine, "
                 "at once; measured: this machine runs each of them, some ten "
                 "seconds for each; both: the model ranks them all, and the "
                 "best --top-k run")
      ->check(CLI::IsMember(evaluators))
      ->capture_default_str()
      ->group("Planning");
  app.add_option("--top-k", plan.topK,
                 "Configurations to print, and to run with --evaluator=both")
      ->capture_default_str()
      ->group("Planning");
  app.add_option("--patience", plan.patience,
                 "Evaluations without a better configuration after which a "
                 "division into processes is left (10 with "
                 "--evaluator=measured)")
      ->capture_default_str()
      ->group("Planning");
  app.add_flag("--explain", explainPlan,
               "Also print every configuration that was dropped, and why")
      ->group("Planning");
  app.add_flag("--json", json, "Print the plan as one JSON object")
      ->group("Planning");
  bool quiet = false;
  app.add_flag("-q,--quiet", quiet, "No progress on standard error");

  for (const char *option :
       {"--output", "--schedules", "--tuning-report", "--measure-machine"})
    app.get_option(option)->check([option](const std::string &name) {
      // Standard output takes the text of --emit.
      const bool isText = std::string_view(option) == "--output";
      return isText && name == "-" ? std::string()
                                   : findOutputNameProblem(name);
    });

  try {
    app.parse(argc, argv);
    options.emit = kinds.at(emit);
    options.tune = tunings.at(tune);
    if (!planOnly)
      for (const char *option : {"--explain", "--json"})
        if (app.count(option) > 0)
          throw CLI::RequiresError(option, "--plan-only");
    if (!planOnly && planName != "auto")
      for (const char *option : {"--machine-parameters", "--measure-machine",
                                 "--patience", "--evaluator", "--top-k"})
        if (app.count(option) > 0)
          throw CLI::RequiresError(option, "--plan-only or --plan=auto");
    if (!planOnly && planName.empty() && app.count("--topology") > 0)
      throw CLI::RequiresError("--topology", "--plan-only or --plan");
    if (!planName.empty())
      for (const char *option :
           {"--threads", "--decode-threads", "--tensor-parallel"})
        if (app.count(option) > 0)
          throw CLI::ExcludesError(option, "--plan");
    if (planOnly)
      for (const char *option :
           {"--output", "--target", "--threads", "--decode-threads",
            "--tensor-parallel", "--plan", "--max-tokens-per-step", "--context",
            "--emit", "--ir", "--tune", "--schedules", "--strategy",
            "--tuning-seconds", "--tuning-report", "--loop-passes"})
        if (app.count(option) > 0)
          throw CLI::ExcludesError(option, "--plan-only");
    if (evaluator == "measured")
      for (const char *option : {"--machine-parameters", "--measure-machine"})
        if (app.count(option) > 0)
          throw CLI::ExcludesError(option, "--evaluator=measured");
    if (measureMachineFile && plan.parameters)
      throw CLI::ExcludesError("--measure-machine", "--machine-parameters");
    if (measureMachineFile && plan.topology != "host")
      throw CLI::ValidationError(
          "--measure-machine",
          "measures this machine, not that of --topology " + plan.topology);
    if (options.tune == Tune::None && !planOnly)
      for (const char *option :
           {"--strategy", "--tuning-seconds", "--tuning-report"})
        if (app.count(option) > 0)
          throw CLI::RequiresError(option, "--tune=quick or --tune=full");
    if (options.tune == Tune::None && !planOnly && planName != "auto" &&
        options.trace)
      throw CLI::RequiresError("--trace",
                               "--tune=quick, --tune=full or --plan=auto");
    if (options.emit == Emit::Artifact && options.output.empty() && !planOnly)
      throw CLI::RequiredError("--output");
    if (options.emit == Emit::Artifact && options.output == "-")
      throw CLI::ValidationError(
          "--output", "an artifact is a folder; '-' takes the text of --emit");
  } catch (const CLI::Success &help) {
    std::ostringstream text;
    app.exit(help, text);
    const Status status = writeAll(text.str());
    if (!status)
      std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return status ? 0 : 1;
  } catch (const CLI::ParseError &wrong) {
    std::fprintf(stderr, "error: %s\nRun with --help for more information.\n",
                 wrong.what());
    return 2;
  }

  if (options.tune != Tune::None && !options.schedules)
    options.schedules = defaultScheduleFile();
  if (options.tune != Tune::None && !options.schedules) {
    std::fprintf(stderr, "error: neither XDG_CACHE_HOME nor HOME is set; "
                         "name a file with --schedules\n");
    return 1;
  }
  plan.compile = options;
  // Each evaluation takes seconds then.
  constexpr int64_t measuredPatience = 10;
  if (evaluator == "measured" && app.count("--patience") == 0)
    plan.patience = measuredPatience;
  plan.evaluator = evaluators.at(evaluator);
  plan.trace = options.trace.value_or(plan.trace);
  plan.keepDropped = explainPlan;
  if (measureMachineFile)
    plan.measure = [&](const MachineNode &machine) {
      return measureIntoFile(machine, options.dtype == "bf16",
                             *measureMachineFile, quiet);
    };
  std::vector<std::string> inputs, outputs;
  for (const std::optional<std::string> &input :
       {options.inputIR, options.trace, plan.parameters,
        std::optional(planName), std::optional(plan.topology)})
    if (input && !input->empty())
      inputs.push_back(*input);
  for (const std::optional<std::string> &output :
       {std::optional(options.output), options.schedules, options.tuningReport,
        measureMachineFile})
    if (output && !output->empty() && *output != "-")
      outputs.push_back(*output);
  if (Status status = checkOutputs(outputs, {options.modelFolder, inputs});
      !status)
    fail(status.error());
  if (planOnly)
    return runPlan(plan, json, quiet);
  if (!planName.empty()) {
    Result<PlanCores> cores = findPlan(planName, plan, quiet);
    if (!cores)
      fail(cores.error());
    if (!quiet)
      std::fprintf(stderr, "%s\n", describe(*cores).c_str());
    options.threads = static_cast<int64_t>(cores->prefill.front().size());
    options.tensorParallel = static_cast<int64_t>(cores->prefill.size());
    options.plan = std::move(*cores);
  }
  Result<CpuBudget> budget = readCpuBudget();
  if (!budget)
    fail(budget.error());
  if (app.count("--threads") == 0 && !options.plan) {
    const int64_t processes = std::max<int64_t>(options.tensorParallel, 1);
    options.threads = std::max<int64_t>(budget->threads() / processes, 1);
    options.threadsAreDefault = true;
    if (!quiet)
      std::fprintf(stderr, "using %lld threads%s, limited by %s\n",
                   static_cast<long long>(options.threads),
                   processes > 1 ? " for each process" : "",
                   budget->limit().c_str());
  }
  if (options.tune != Tune::None) {
    if (options.plan)
      options.cpus = options.plan->prefill.front();
    else if (options.threads > 0)
      options.cpus = budget->cpusFor(static_cast<unsigned>(options.threads));
  }
  ProgressLine line;
  const std::string interruptedTuning = "interrupted; what was tuned is in " +
                                        options.schedules.value_or("no file") +
                                        ", and the same command goes on";
  CompileProgress progress = [&](std::string_view stage,
                                 double done) -> Status {
    sayWhenInterrupted(stage == "tuning" ? interruptedTuning.c_str()
                                         : "interrupted; nothing was written");
    if (interrupted())
      return makeError(interruptedMessage());
    if (!quiet)
      line(stage, done);
    return {};
  };
  TuningSummary summary;
  Status status = compile(options, progress, &summary);
  line.finishStage();
  if (status)
    status = finishStandardOutput();
  if (status)
    sayWhenInterrupted("interrupted; all was written");
  if (!status)
    fail(status.error());
  if (options.tune != Tune::None && !quiet) {
    std::fprintf(stderr,
                 "tuned %lld matmuls in %.1f s with %lld measurements, found "
                 "%lld in %s\n",
                 static_cast<long long>(summary.shapes - summary.known),
                 summary.seconds, static_cast<long long>(summary.measurements),
                 static_cast<long long>(summary.known),
                 options.schedules->c_str());
    if (!summary.complete)
      std::fprintf(stderr, "the budget for tuning was spent before all was "
                           "measured; the same command goes on\n");
  }
  return 0;
} catch (const std::bad_alloc &) {
  exitOutOfMemory();
} catch (const std::exception &exception) {
  // Libraries without exceptions were left as they were, so nothing more of
  // them may run.
  exitWithError({exception.what()});
}
