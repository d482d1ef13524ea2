//===- Arguments.cpp - The command line of the compiler -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/CommandLine/NumberRange.h"
#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/ScheduleTuner.h"
#include "sandwich/Scheduling/Strategies.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/ServingTrace.h"
#include "sandwich/Target/Target.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

using namespace sandwich;
using namespace sandwich::tool;

namespace {

/// The options, and what may be combined.
class CommandLine {
public:
  explicit CommandLine(Arguments &arguments);

  /// Fills in the arguments. Throws CLI::Success for --help, and
  /// CLI::ParseError for wrong usage.
  void parse(int argc, char **argv);
  /// What --help prints.
  std::string help(const CLI::Success &asked) const;

private:
  void declareCompilation();
  void declareTuning();
  void declarePlanning();
  void checkOutputNames();
  void checkPlanning() const;
  void checkTuning() const;
  void checkOutput() const;

  bool isGiven(const char *option) const { return app.count(option) > 0; }

  const std::map<std::string, Emit> emits = {
      {"model-ir", Emit::ModelIR}, {"schedule-ir", Emit::ScheduleIR},
      {"loop-ir", Emit::LoopIR},   {"llvm-ir", Emit::LLVMIR},
      {"asm", Emit::Assembly},     {"artifact", Emit::Artifact}};
  const std::map<std::string, Tune> tunings = {
      {"none", Tune::None}, {"quick", Tune::Quick}, {"full", Tune::Full}};
  const std::map<std::string, PlanEvaluator> evaluators = {
      {"modelled", PlanEvaluator::Modelled},
      {"measured", PlanEvaluator::Measured},
      {"both", PlanEvaluator::Both}};
  const std::map<std::string, PlanObjective> objectives = {
      {"latency", PlanObjective::Latency},
      {"throughput", PlanObjective::Throughput},
      {"goodput", PlanObjective::Goodput}};
  Arguments &arguments;
  CLI::App app;
  std::string emit = "artifact";
  std::string tune = "none";
  std::string evaluator = "modelled";
  std::string objective = "latency";
  /// Milliseconds.
  std::optional<double> firstTokenMs, tokenMs;
};

} // namespace

CommandLine::CommandLine(Arguments &arguments)
    : arguments(arguments),
      app("Compiles a Hugging Face checkpoint or a GGUF file into an artifact "
          "for one CPU.\n\n"
          "  sandwich-compile models/jargon-llama -o jargon.sandwich\n"
          "  sandwich-compile Llama-3.2-1B -o llama.sandwich --dtype=bf16 "
          "--threads=8\n"
          "  sandwich-compile Llama-3.2-1B-Q4_K_M.gguf -o llama.sandwich\n"
          "  sandwich-compile Llama-3.2-1B --emit=schedule-ir\n",
          "sandwich-compile") {
  declareCompilation();
  declareTuning();
  declarePlanning();
  app.add_flag("-q,--quiet", arguments.quiet, "No progress on standard error");
  checkOutputNames();
}

/// What is compiled, and into what.
void CommandLine::declareCompilation() {
  CompileOptions &options = arguments.compile;
  app.add_option("MODEL_DIR", options.modelFolder,
                 "Folder with config.json and *.safetensors, or GGUF file")
      ->required();
  app.add_option(
      "-o,--output", options.output,
      "Artifact to write (NAME.sandwich), or file for --emit's text");
  const auto storageFormat = [](const std::string &text) {
    Result<StorageFormat> format = StorageFormat::parseOption(text);
    return format ? std::string() : format.error().message;
  };
  app.add_option("--dtype", options.dtype,
                 "How weights of matmuls are stored: bf16, f32, int8 or int4 "
                 "(groups of 32 with scales of f16), fp8 (E4M3FN, rows with "
                 "scales of f32), or these with other groups, e.g. "
                 "int4-g64-f16, int8-row-f32, int4-g32-f16-minimum, "
                 "fp8-g128-f16 (default: the integers or the fp8 that the "
                 "checkpoint has, else bf16)")
      ->check(storageFormat);
  app.add_option(
         "--embedding-dtype", options.embeddingDtype,
         "How tables of embeddings are stored that are not the head's "
         "weight as well: integers, fp8, or what vectors are, bf16 beside "
         "these and --dtype otherwise (default: int8 where --dtype is of "
         "integers or fp8, and as the checkpoint has them without --dtype)")
      ->check(storageFormat);
  app.add_option("--head-dtype", options.headDtype,
                 "How the head's weight is stored, which makes the logits: as "
                 "--embedding-dtype (default: --dtype, but int8 where that is "
                 "of 4 bits and the weight is the table of embeddings, too; as "
                 "the checkpoint has it without --dtype)")
      ->check(storageFormat);
  app.add_option("--activations", options.activations,
                 "What is multiplied with weights of integers: int8, inputs "
                 "rounded to it in groups as long as the weight's, or of 128 "
                 "channels beside many tokens and weights of 4 bits, where the "
                 "target multiplies integers; or float, which is slower and "
                 "rounds to no less than the target's bf16 or f32. Weights of "
                 "fp8 are multiplied as floats with either")
      ->check(CLI::IsMember({"int8", "float"}))
      ->capture_default_str();
  app.add_option("--kernel", options.kernels,
                 "OPERATION=FILE: a kernel that computes an operation of the "
                 "model from now on, as rms_norm=kernels/rms_norm.kernel, or "
                 "draws its tokens, as sampling=kernels/sampling.kernel "
                 "(docs/Kernels.md); may be repeated")
      ->type_name("OPERATION=FILE")
      ->allow_extra_args(false);
  app.add_option("--calibration-text", options.calibrationText,
                 "Text, UTF-8, as the model will read it: rounding to integers "
                 "spares the channels of weights that are multiplied with "
                 "large inputs when the model, in floats, reads its first "
                 "tokens (docs/RationaleQuantization.md)")
      ->type_name("FILE");
  app.add_option("--calibration-tokens", options.calibrationTokens,
                 "Tokens of it that are read, at most the context")
      ->check(CLI::Range(1, SANDWICH_MAX_STEP_TOKENS))
      ->type_name("N")
      ->capture_default_str()
      ->needs("--calibration-text");
  app.add_option("--quantization-report", arguments.quantizationReports,
                 "Page that shows what quantization did to weights and to "
                 "predictions, or, by its name, JSON; may be given for both")
      ->type_name("FILE.html|FILE.json")
      ->allow_extra_args(false)
      ->check([](const std::string &name) {
        return name.ends_with(".html") || name.ends_with(".json")
                   ? std::string()
                   : "'" + name + "' ends neither with .html nor with .json";
      });
  app.add_option("--report-text", arguments.reportText,
                 "Text, UTF-8, whose first tokens the report predicts with the "
                 "artifact and with the checkpoint's own values (default: what "
                 "--calibration-text has behind the tokens it is read for)")
      ->type_name("FILE")
      ->needs("--quantization-report");
  app.add_option("--kv-dtype", options.kvDtype,
                 "Element type of the KV cache; bf16 has the range of f32, f16 "
                 "is 8 times as precise but infinite beyond 65504 and zero "
                 "below 3e-8; int8 takes half of their memory, as the channels "
                 "of a head share a scale, and is less precise (default: f32 "
                 "with --dtype=f32, else f16 for checkpoints in f16 and bf16 "
                 "for others)")
      ->check(CLI::IsMember({"bf16", "f16", "f32", "int8"}));
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
  app.add_option(
         "--plan", arguments.planName,
         "Service configuration to compile for, instead of --threads: "
         "a file that --plan-only --json wrote, whose first one counts, "
         "or 'auto' for the best that is found")
      ->type_name("FILE.json|auto");
  app.add_option("--tensor-parallel", options.tensorParallel,
                 "Processes that run the model together, each with its own "
                 "shard of the weights and --threads of its own")
      ->capture_default_str();
  app.add_flag("--deterministic", options.deterministic,
               "Give each text the same bits whatever else is computed with it "
               "(see docs/RationaleServing.md for what it costs)");
  app.add_option("--max-tokens-per-step", options.maxTokens,
                 "Longest piece of a prompt that one step takes, at most " +
                     std::to_string(SANDWICH_MAX_STEP_TOKENS) +
                     "; of models that embed or classify, tokens of a batch "
                     "(default: 2048, or the longest text)")
      ->capture_default_str();
  app.add_option("--context", options.contextLength,
                 "Tokens a sequence may hold, for which plans find room in "
                 "memory (default: the model's, or its sliding window where "
                 "that is less)");
  app.add_option("--task", options.task,
                 "The task whose adapter is added to the weights, of models "
                 "that have adapters (jina-embeddings-v3); its prompt becomes "
                 "the default one")
      ->type_name("NAME");
  app.add_option("--emit", emit,
                 "What to write: model-ir, schedule-ir, loop-ir, llvm-ir, asm "
                 "or artifact")
      ->check(CLI::IsMember(emits))
      ->capture_default_str();
  app.add_option("--ir", options.inputIR,
                 "Start from this model IR or schedule IR, edited by hand, "
                 "instead of the checkpoint's own")
      ->excludes("--embedding-dtype")
      ->excludes("--head-dtype");
  app.add_option("--loop-passes", options.loopPasses,
                 "Passes to run on the loop IR before it becomes machine code, "
                 "as sandwich-opt's --pass-pipeline names them: "
                 "\"canonicalize,cse\"");
}

/// How schedules are found.
void CommandLine::declareTuning() {
  CompileOptions &options = arguments.compile;
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
  const TuningOptions usual;
  app.add_option(
         "--tuning-window", options.tuningWindow,
         "Numbers of tokens that the search looks back on: it tries all "
         "micro-kernels for so many, then those of the last so many "
         "choices (sigma; default: " +
             std::to_string(usual.window) + ")")
      ->check(CLI::Range(1, 4096));
  app.add_option("--reuse-threshold", options.reuseThreshold,
                 "Slices and thread grids that differ from the average of the "
                 "window by no more than this share are not searched again "
                 "(default: " +
                     CLI::detail::to_string(usual.reuseThreshold) + ")")
      ->check(numberRange(0, 10));
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
}

/// How service configurations are searched.
void CommandLine::declarePlanning() {
  PlanOptions &plan = arguments.plan;
  app.add_flag(
         "--plan-only", arguments.planOnly,
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
         "--machine-parameters", arguments.compile.machineParameters,
         "File with the speed of the machine's parts (docs/Topology.md), which "
         "plans and untuned schedules go by; without, they are derived from "
         "its processors and topology")
      ->group("Planning");
  app.add_option("--measure-machine", arguments.measureMachineFile,
                 "Measure the speed of this machine's parts, about ten seconds "
                 "at most, plan with it, and write it to this file for "
                 "--machine-parameters")
      ->type_name("FILE.json")
      ->group("Planning");
  app.add_option(
         "--evaluator", evaluator,
         "Who judges configurations; modelled: a model of the machine, "
         "at once; measured: this machine runs them, some ten seconds for "
         "each, of those that are equal to the model one; both: the "
         "model ranks them all, and the best --top-k run")
      ->check(CLI::IsMember(evaluators))
      ->capture_default_str()
      ->group("Planning");
  app.add_option("--objective", objective,
                 "What a plan is to be good at; latency: the mean time of "
                 "--trace's requests; throughput: tokens a second where all "
                 "requests are there at once; goodput: requests a second that "
                 "get what --ttft and --tpot say, at the highest rate at which "
                 "nine of ten do")
      ->check(CLI::IsMember(objectives))
      ->capture_default_str()
      ->group("Planning");
  const CLI::Validator positive = numberRange(1e-6, 1e9);
  app.add_option("--ttft,--ttft-slo", firstTokenMs,
                 "Milliseconds to the first token that requests are to take at "
                 "most, for --objective=goodput")
      ->check(positive)
      ->type_name("MS")
      ->group("Planning");
  app.add_option("--tpot,--tpot-slo", tokenMs,
                 "Milliseconds from one token to the next, in the mean of a "
                 "request, likewise")
      ->check(positive)
      ->type_name("MS")
      ->group("Planning");
  app.add_option("--rate,--requests-per-second", plan.requestsPerSecond,
                 "Requests of --trace that come in a second, at random, "
                 "instead of at its own times")
      ->check(numberRange(1e-6, 1e6))
      ->type_name("N")
      ->group("Planning");
  app.add_option("--top-k", plan.topK,
                 "Configurations to print, of those of equal prediction and "
                 "size one, and to run with --evaluator=both")
      ->capture_default_str()
      ->group("Planning");
  app.add_option("--patience", plan.patience,
                 "Evaluations without a better configuration after which a "
                 "division into processes is left (default: 200, fewer on more "
                 "than 2,048 cores, 10 with --evaluator=measured)")
      ->group("Planning");
  app.add_option("--reserve-cores", plan.reservedCores,
                 "Cores that are left to the system or to a front end in both "
                 "phases: no plan uses them")
      ->capture_default_str()
      ->group("Planning");
  app.add_option("--threads-per-core", plan.threadsPerCore,
                 "Hardware threads of each core that plans use; with more than "
                 "one, some may sleep in decode (docs/Topology.md)")
      ->capture_default_str()
      ->group("Planning");
  app.add_flag("--explain", plan.keepDropped,
               "Also print which configurations were dropped, why, and what "
               "limits them")
      ->group("Planning");
  app.add_flag("--json", arguments.json, "Print the plan as one JSON object")
      ->group("Planning");
}

/// Refuses names of outputs that look like options.
void CommandLine::checkOutputNames() {
  for (const char *option : {"--output", "--schedules", "--tuning-report",
                             "--measure-machine", "--quantization-report"})
    app.get_option(option)->check([option](const std::string &name) {
      // Standard output takes the text of --emit.
      const bool isText = std::string_view(option) == "--output";
      return isText && name == "-" ? std::string()
                                   : findOutputNameProblem(name);
    });
}

void CommandLine::parse(int argc, char **argv) {
  app.parse(argc, argv);
  arguments.compile.emit = emits.at(emit);
  arguments.compile.tune = tunings.at(tune);
  arguments.plan.evaluator = evaluators.at(evaluator);
  arguments.plan.objective = objectives.at(objective);
  constexpr double secondsPerMillisecond = 1e-3;
  for (const auto &[given, seconds] :
       {std::pair(&firstTokenMs, &arguments.plan.objectives.firstToken),
        std::pair(&tokenMs, &arguments.plan.objectives.token)})
    if (*given)
      *seconds = **given * secondsPerMillisecond;
  arguments.threadsAreGiven = isGiven("--threads");
  arguments.compile.maxTokensAreDefault = !isGiven("--max-tokens-per-step");
  checkPlanning();
  checkTuning();
  checkOutput();
  arguments.plan.trace = arguments.compile.trace.value_or(arguments.plan.trace);
}

std::string CommandLine::help(const CLI::Success &asked) const {
  std::ostringstream text;
  app.exit(asked, text);
  return text.str();
}

void CommandLine::checkPlanning() const {
  const bool planOnly = arguments.planOnly;
  const std::string &planName = arguments.planName;
  if (!planOnly)
    for (const char *option : {"--explain", "--json"})
      if (isGiven(option))
        throw CLI::RequiresError(option, "--plan-only");
  if (!planOnly && planName != "auto")
    for (const char *option :
         {"--measure-machine", "--patience", "--evaluator", "--top-k",
          "--objective", "--ttft", "--tpot", "--rate", "--reserve-cores",
          "--threads-per-core"})
      if (isGiven(option))
        throw CLI::RequiresError(option, "--plan-only or --plan=auto");
  if (!planOnly && planName.empty() && isGiven("--topology"))
    throw CLI::RequiresError("--topology", "--plan-only or --plan");
  if (!planName.empty())
    for (const char *option :
         {"--threads", "--decode-threads", "--tensor-parallel"})
      if (isGiven(option))
        throw CLI::ExcludesError(option, "--plan");
  if (planOnly)
    for (const char *option :
         {"--output", "--threads", "--decode-threads", "--tensor-parallel",
          "--plan", "--deterministic", "--max-tokens-per-step", "--emit",
          "--ir", "--tune", "--schedules", "--strategy", "--tuning-window",
          "--reuse-threshold", "--tuning-seconds", "--tuning-report",
          "--loop-passes", "--calibration-text", "--quantization-report"})
      if (isGiven(option))
        throw CLI::ExcludesError(option, "--plan-only");
  const bool isGoodput = arguments.plan.objective == PlanObjective::Goodput;
  if (isGoodput && !arguments.plan.objectives.any())
    throw CLI::RequiresError("--objective=goodput", "--ttft or --tpot");
  if (!isGoodput)
    for (const char *option : {"--ttft", "--tpot"})
      if (isGiven(option))
        throw CLI::RequiresError(option, "--objective=goodput");
  if (isGiven("--rate") &&
      arguments.plan.objective == PlanObjective::Throughput)
    throw CLI::ExcludesError("--rate", "--objective=throughput");
  if (arguments.measureMachineFile && arguments.compile.machineParameters)
    throw CLI::ExcludesError("--measure-machine", "--machine-parameters");
  if (arguments.measureMachineFile && arguments.plan.topology != "host")
    throw CLI::ValidationError(
        "--measure-machine", "measures this machine, not that of --topology " +
                                 arguments.plan.topology);
}

void CommandLine::checkTuning() const {
  if (arguments.compile.tune != Tune::None || arguments.planOnly)
    return;
  for (const char *option :
       {"--strategy", "--tuning-window", "--reuse-threshold",
        "--tuning-seconds", "--tuning-report"})
    if (isGiven(option))
      throw CLI::RequiresError(option, "--tune=quick or --tune=full");
  if (arguments.planName != "auto" && isGiven("--trace"))
    throw CLI::RequiresError("--trace",
                             "--tune=quick, --tune=full or --plan=auto");
}

void CommandLine::checkOutput() const {
  if (arguments.compile.emit != Emit::Artifact) {
    for (const char *option : {"--calibration-text", "--quantization-report"})
      if (isGiven(option))
        throw CLI::RequiresError(option, "--emit=artifact");
    return;
  }
  if (arguments.compile.output.empty() && !arguments.planOnly)
    throw CLI::RequiredError("--output");
  if (arguments.compile.output == "-")
    throw CLI::ValidationError(
        "--output", "an artifact is a folder; '-' takes the text of --emit");
}

/// Where tuned schedules are kept for the user who names no file.
static std::optional<std::string> defaultScheduleFile() {
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

Status tool::writeAll(const std::string &text) {
  SANDWICH_RETURN_IF_ERROR(writeStandardOutput(text));
  return finishStandardOutput();
}

std::optional<int> tool::readArguments(int argc, char **argv,
                                       Arguments &arguments) {
  constexpr int wrongUsage = 2;
  CommandLine commandLine(arguments);
  try {
    commandLine.parse(argc, argv);
  } catch (const CLI::Success &asked) {
    const Status status = writeAll(commandLine.help(asked));
    if (!status)
      std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return status ? 0 : 1;
  } catch (const CLI::ParseError &wrong) {
    std::fprintf(stderr, "error: %s\nRun with --help for more information.\n",
                 wrong.what());
    return wrongUsage;
  }
  CompileOptions &options = arguments.compile;
  if (options.tune != Tune::None && !options.schedules)
    options.schedules = defaultScheduleFile();
  if (options.tune != Tune::None && !options.schedules) {
    std::fprintf(stderr, "error: neither XDG_CACHE_HOME nor HOME is set; "
                         "name a file with --schedules\n");
    return 1;
  }
  arguments.plan.compile = options;
  return std::nullopt;
}

/// Adds `place` to `places` where it was given.
static void addGiven(std::vector<std::string> &places,
                     const std::optional<std::string> &place) {
  if (place && !place->empty())
    places.push_back(*place);
}

/// The files that are read, beside the model.
static std::vector<std::string> listInputs(const Arguments &arguments) {
  std::vector<std::string> inputs;
  const CompileOptions &options = arguments.compile;
  const std::string &topology = arguments.plan.topology;
  addGiven(inputs, options.inputIR);
  if (options.trace && !findLengthDistribution(*options.trace))
    addGiven(inputs, options.trace);
  if (options.tune == Tune::None)
    addGiven(inputs, options.schedules);
  addGiven(inputs, arguments.compile.machineParameters);
  addGiven(inputs, arguments.compile.calibrationText);
  addGiven(inputs, arguments.reportText);
  if (arguments.planName != "auto")
    addGiven(inputs, arguments.planName);
  if (topology != "host" && !topology.starts_with(syntheticPrefix))
    addGiven(inputs, topology);
  return inputs;
}

/// The files and folders that are written.
static std::vector<std::string> listOutputs(const Arguments &arguments) {
  std::vector<std::string> outputs;
  const CompileOptions &options = arguments.compile;
  if (options.output != "-")
    addGiven(outputs, options.output);
  if (options.tune != Tune::None)
    addGiven(outputs, options.schedules);
  addGiven(outputs, options.tuningReport);
  for (const std::string &report : arguments.quantizationReports)
    addGiven(outputs, report);
  addGiven(outputs, arguments.measureMachineFile);
  return outputs;
}

Status tool::checkPlaces(const Arguments &arguments) {
  const std::vector<std::string> inputs = listInputs(arguments);
  const std::vector<std::string> outputs = listOutputs(arguments);
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    SANDWICH_RETURN_IF_ERROR(
        checkOutputPlace(*output, {arguments.compile.modelFolder, inputs}));
    for (auto other = outputs.begin(); other != output; ++other) {
      std::error_code ignored;
      if (std::filesystem::weakly_canonical(*output, ignored) ==
          std::filesystem::weakly_canonical(*other, ignored))
        return makeError(*output, ": is written twice; name another file");
    }
  }
  return {};
}
