//===- Replay.cpp - sandwich-run replay -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Hosts.h"
#include "Measurement.h"
#include "ServingArguments.h"
#include "SpeculationArguments.h"
#include "Terminal.h"

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Runtime/Measurement/RateExperiment.h"
#include "sandwich/Runtime/Measurement/ReplayPage.h"
#include "sandwich/Runtime/Measurement/TraceReplay.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cstdio>
#include <memory>

using namespace sandwich;

namespace {
struct ReplayArguments {
  std::string artifact;
  tool::ServingArguments serving;
  uint64_t batch = usualMaxBatch;
  bool prefixCache = true;
  tool::SpeculationArguments speculation;
  tool::EngineArguments engine;

  /// Those that the scheduler goes by: none where the same times are compared
  /// with several, as it would refuse for one of them what another allows.
  ServiceObjectives scheduledObjectives() const {
    return serving.objectiveScales.size() == 1 ? serving.objectives()
                                               : ServiceObjectives();
  }
  /// A single rate of a built-in trace draws its arrivals with its lengths.
  bool drawsArrivalsWithLengths() const {
    return serving.isBuiltIn() && serving.rates.size() == 1 &&
           !serving.findsGoodput;
  }
};
} // namespace

/// The requests that the arguments ask for. Error: none are left.
static Result<ServingTrace> findTrace(const ReplayArguments &arguments) {
  const tool::ServingArguments &serving = arguments.serving;
  ServingTrace trace;
  if (serving.isBuiltIn()) {
    SANDWICH_ASSIGN_OR_RETURN(
        trace,
        makeServingTrace(
            serving.trace,
            static_cast<int64_t>(
                serving.skip +
                serving.wantedRequests().value_or(usualRequests)),
            arguments.drawsArrivalsWithLengths() ? serving.rates.front() : 0,
            serving.seed.value_or(1)));
  } else {
    SANDWICH_ASSIGN_OR_RETURN(trace, readServingTrace(serving.trace));
  }
  return selectRequests(std::move(trace), serving);
}

namespace {
/// A service, and the traces that it serves one after another.
class Experiment {
public:
  /// Errors: as `Artifact::open`, `Engine::create` and `Service::create`.
  static Result<Experiment> create(const ReplayArguments &arguments);

  /// What the arguments ask for. Errors: what a replay finds, and that it was
  /// interrupted; what was served until then is in the report.
  Status run();
  Status report(bool complete) const;
  /// Writes a page of charts.
  Status writePage(PendingFile file) const;

private:
  Experiment(const ReplayArguments &arguments, FittedTrace fitted,
             std::unique_ptr<Service> service, RateExperimentOptions options)
      : arguments(arguments), trace(std::move(fitted.requests)),
        service(std::move(service)), rates(std::move(options)) {}

  Status replay(std::optional<double> rate, ReplayRun &run,
                const KeptObserver &observe);
  /// What the report begins with.
  Json describeService() const;

  const ReplayArguments &arguments;
  ServingTrace trace;
  std::unique_ptr<Service> service;
  RateExperiment rates;
};
} // namespace

Result<Experiment> Experiment::create(const ReplayArguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(ServingTrace requested, findTrace(arguments));
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact));
  const uint64_t context = artifact.manifest().model().context_length();
  FittedTrace trace = fitTrace(requested, context);
  if (trace.cut > 0)
    std::fprintf(stderr,
                 "%zu of %zu requests are cut to the model's context of %llu "
                 "tokens\n",
                 trace.cut, trace.requests.size(),
                 static_cast<unsigned long long>(context));
  const uint64_t batch =
      std::min(arguments.batch, artifact.maxDecodeSequences());
  if (batch < arguments.batch && trace.requests.size() > batch)
    std::fprintf(stderr,
                 "the artifact's decode steps take %llu sequences at a time\n",
                 static_cast<unsigned long long>(batch));
  EngineOptions options;
  options.prefixCache = arguments.prefixCache;
  options.kvCacheTokens = replayTokens(trace.requests, batch);
  options.maxSequences = std::min<uint64_t>(batch, trace.requests.size());
  SANDWICH_RETURN_IF_ERROR(arguments.engine.apply(options));
  tool::connectToTerminal(options);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));
  ServiceOptions serving;
  serving.maxSequences = batch;
  const ServiceObjectives objectives = arguments.scheduledObjectives();
  serving.scheduling.firstTokenObjective = objectives.firstToken;
  serving.scheduling.tokenObjective = objectives.token;
  makeRoomFor(trace.requests, serving.scheduling);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> draft,
                            arguments.speculation.apply(serving, options));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Service> service,
                            Service::create(std::move(engine), std::nullopt,
                                            serving, std::move(draft)));
  RateExperimentOptions rates = arguments.serving.experiment();
  if (arguments.drawsArrivalsWithLengths())
    rates.rates.clear();
  return Experiment(arguments, std::move(trace), std::move(service),
                    std::move(rates));
}

Status Experiment::replay(std::optional<double> rate, ReplayRun &run,
                          const KeptObserver &observe) {
  ServingTrace requests = trace;
  if (rate) {
    SANDWICH_ASSIGN_OR_RETURN(requests,
                              drawArrivals(std::move(requests), *rate,
                                           arguments.serving.seed.value_or(1)));
  }
  tool::ProgressLine line(arguments.serving);
  TraceReplayOptions options;
  options.stop = [] { return interrupted() || outputClosed(); };
  options.progress = [&](size_t done) { line.show(done, requests.size()); };
  return serveRun(
      requests.size(), arguments.serving.objectives(), std::move(options),
      [&](const TraceReplayOptions &observed) {
        return replayTrace(*service, requests, observed);
      },
      run, observe);
}

Status Experiment::run() {
  return rates.run([this](std::optional<double> rate, ReplayRun &run,
                          const KeptObserver &observe) {
    return replay(rate, run, observe);
  });
}

Json Experiment::describeService() const {
  const ServiceStatistics statistics = service->statistics();
  Json json = {{"model", service->model().name()},
               {"trace", arguments.serving.trace},
               {"steps", statistics.scheduler.steps},
               {"preemptions", statistics.scheduler.preemptions},
               {"cached_prompt_tokens", statistics.blocks.promptTokensHit}};
  const SpeculationStatistics &speculation = statistics.scheduler.speculation;
  if (arguments.speculation.isOn())
    json["speculation"] = {{"steps", speculation.steps},
                           {"proposed_tokens", speculation.proposedTokens},
                           {"accepted_tokens", speculation.acceptedTokens},
                           {"seconds", speculation.seconds}};
  return json;
}

Status Experiment::report(bool complete) const {
  std::string text = tool::describePlacement(service->rankPlacement());
  if (arguments.speculation.isOn())
    text += tool::describe(service->statistics().scheduler.speculation) + "\n";
  return writeReport(arguments.serving, rates, describeService(), text,
                     complete);
}

Status Experiment::writePage(PendingFile file) const {
  SANDWICH_ASSIGN_OR_RETURN(const Machine machine, readMachineTopology());
  const proto::Manifest &manifest = service->artifact().manifest();
  std::vector<std::string> lines = {
      "Artifact: " + arguments.artifact + ", " + manifest.target().dtype() +
          " for " + manifest.target().name(),
      "Machine: " +
          (machine.cpuModel.empty() ? machine.name : machine.cpuModel),
      "Trace: " + arguments.serving.trace};
  for (std::string &line : rates.pageLines())
    lines.push_back(std::move(line));
  Json data = describeService();
  data.update(rates.toJson());
  const ReplayPage page{.title = "Serving " + service->model().name(),
                        .lines = std::move(lines),
                        .runs = rates.runs(),
                        .objectives = arguments.serving.objectives(),
                        .wantedAttainment =
                            arguments.serving.goodput.attainment,
                        .data = std::move(data)};
  SANDWICH_RETURN_IF_ERROR(file.write(page.draw()));
  return file.commit();
}

static Status run(const ReplayArguments &arguments) {
  // From here on there may be a file to remove.
  catchInterrupts();
  SANDWICH_ASSIGN_OR_RETURN(std::optional<PendingFile> page,
                            openPage(arguments.serving));
  SANDWICH_ASSIGN_OR_RETURN(Experiment experiment,
                            Experiment::create(arguments));
  const Status status = experiment.run();
  // Other errors leave nothing to report.
  if (!status && !interrupted() && !outputClosed())
    return status;
  SANDWICH_RETURN_IF_ERROR(experiment.report(bool(status)));
  if (status && page)
    return experiment.writePage(*std::move(page));
  return status;
}

/// Wrong usage: options that do not go together.
static void finishArguments(ReplayArguments &arguments) {
  tool::ServingArguments &serving = arguments.serving;
  if (!serving.isBuiltIn() && serving.seed && serving.rates.empty() &&
      !serving.findsGoodput)
    throw CLI::ValidationError("--seed is for sharegpt and lmsys, or with "
                               "--rate; a file has its own arrival times");
  finishObjectiveOptions(serving);
}

void tool::addReplayCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App *command = app.add_subcommand(
      "replay", "Serves a trace of requests in real time, and tells how long "
                "they took");
  command->footer(R"(Examples:
  sandwich-run replay llama.sandwich --trace=sharegpt --requests=16
  sandwich-run replay llama.sandwich --trace=lmsys --requests-per-second=4
  sandwich-run replay llama.sandwich --trace=requests.jsonl --plan=plan.json
  sandwich-run replay llama.sandwich --trace=requests.jsonl --rate=1,2,4 \
      --ttft-slo=200 --tpot-slo=100
  sandwich-run replay llama.sandwich --slo-scale=0.5,1,1.5,2 --ttft-slo=2200 \
      --tpot-slo=70
  sandwich-run replay llama.sandwich --ttft-slo=2000 --tpot-slo=280 \
      --find-goodput --html=goodput.html

Requests have random tokens. Steps have pieces of the prompts of those who have
arrived and the next tokens of all who generate (continuous batching): as much
of prompts as leaves streams their pace, which is --tpot-slo where that is
given. With --ttft-slo who would wait longer for the first token is refused.
The share of requests that got both is the attainment. sharegpt and
lmsys have lengths like those of the data sets; a file has a request on each
line: "12 30", tokens of the prompt and generated, or an object of JSON with
"prompt_tokens", "output_tokens" and "arrival_seconds". Without arrival times
each request comes when the one before is done, and with --rate at random, so
many a second on the average (a Poisson process). Several rates are served one
after another.

--find-goodput looks for the highest rate at which nine of ten requests keep the
SLO. It doubles or halves --rate, by default 1, up to 256 times, and then
bisects. A rate is tried
with 100 requests at least, and with twice as many until the 95% confidence
interval (Wilson's) of the attainment excludes the nine of ten, or there are
--requests, by default 400; then the share decides. Progress goes to standard
error.

--html draws a page: the shares of requests over TTFT, TPOT and latency, and the
attainment over scales of the SLO and over rates.

With several scales of the SLO, the scheduler is told of no SLO, and the same
times are compared with each.

Latency is from a request's arrival to its last token, TTFT to its first one,
TPOT the mean time of each after it, of each request, and ITL the time from any
token to the next.)");
  addArtifactArgument(*command, arguments->artifact);
  addTraceOptions(*command, arguments->serving);
  command
      ->add_option("--batch", arguments->batch,
                   "Sequences that generate at a time")
      ->check(CLI::Range(uint64_t{1}, uint64_t{SANDWICH_MAX_STEP_TOKENS}))
      ->type_name("N")
      ->capture_default_str();
  addObjectiveOptions(*command, arguments->serving);
  command->add_flag("!--no-prefix-cache", arguments->prefixCache,
                    "Keeps no KV cache blocks for prompts that begin alike");
  addPageOption(*command, arguments->serving);
  addSpeculationOptions(*command, arguments->speculation);
  addEngineOptions(*command, arguments->engine);
  addReportOptions(*command, arguments->serving);
  command->callback([arguments, &action] {
    finishArguments(*arguments);
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
