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
#include "ReplayPage.h"
#include "SpeculationArguments.h"
#include "Terminal.h"

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Runtime/Measurement/ReplaySummary.h"
#include "sandwich/Runtime/Measurement/TraceReplay.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Serving/GoodputSearch.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Topology/MachineTopology.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <unistd.h>

using namespace sandwich;
using tool::ReplayRun;

namespace {
struct ReplayArguments {
  std::string artifact;
  std::string trace = "sharegpt";
  std::optional<uint64_t> requests;
  uint64_t skip = 0;
  /// Requests a second; none: as the trace says, or one after another.
  std::vector<double> rates;
  std::optional<uint64_t> seed;
  uint64_t batch = usualMaxBatch;
  /// Milliseconds.
  std::optional<double> firstTokenObjective;
  std::optional<double> tokenObjective;
  std::vector<double> objectiveScales = {1};
  bool findsGoodput = false;
  GoodputOptions goodput;
  bool prefixCache = true;
  std::string page;
  tool::SpeculationArguments speculation;
  tool::EngineArguments engine;
  bool json = false;
  bool quiet = false;

  bool isBuiltIn() const { return findLengthDistribution(trace); }
  /// Requests of each rate.
  std::optional<uint64_t> wantedRequests() const {
    return findsGoodput ? std::optional<uint64_t>(goodput.mostRequests)
                        : requests;
  }
  /// Those that attainment is told of.
  ServiceObjectives objectives() const {
    auto seconds = [](std::optional<double> milliseconds) {
      return milliseconds ? std::optional(*milliseconds / 1e3) : std::nullopt;
    };
    return ServiceObjectives{seconds(firstTokenObjective),
                             seconds(tokenObjective)}
        .scaled(objectiveScales.size() == 1 ? objectiveScales.front() : 1);
  }
  /// Those that the scheduler goes by: none where the same times are compared
  /// with several, as it would refuse for one of them what another allows.
  ServiceObjectives scheduledObjectives() const {
    return objectiveScales.size() == 1 ? objectives() : ServiceObjectives();
  }
};
} // namespace

/// The requests that the arguments ask for, without those skipped. A file is
/// repeated where a rate is tried with more than it has. Error: none are left.
static Result<ServingTrace> findTrace(const ReplayArguments &arguments) {
  const std::optional<uint64_t> wanted = arguments.wantedRequests();
  ServingTrace trace;
  if (arguments.isBuiltIn()) {
    SANDWICH_ASSIGN_OR_RETURN(
        trace,
        makeServingTrace(arguments.trace,
                         static_cast<int64_t>(arguments.skip +
                                              wanted.value_or(usualRequests)),
                         arguments.rates.size() == 1 && !arguments.findsGoodput
                             ? arguments.rates.front()
                             : 0,
                         arguments.seed.value_or(1)));
  } else {
    SANDWICH_ASSIGN_OR_RETURN(trace, readServingTrace(arguments.trace));
  }
  if (arguments.skip >= trace.size())
    return makeError(arguments.trace, ": it has ", trace.size(),
                     " requests, and --skip leaves none");
  trace.erase(trace.begin(),
              trace.begin() + static_cast<std::ptrdiff_t>(arguments.skip));
  if (arguments.findsGoodput)
    for (size_t i = 0; trace.size() < *wanted; ++i)
      trace.push_back(ServingRequest(trace[i]));
  if (wanted)
    trace.resize(std::min<uint64_t>(trace.size(), *wanted));
  // The clock starts with the first one that is left.
  if (arguments.skip > 0 && trace.front().arrivalSeconds) {
    const double first = *trace.front().arrivalSeconds;
    for (ServingRequest &request : trace)
      *request.arrivalSeconds -= first;
  }
  return trace;
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
             std::unique_ptr<Service> service)
      : arguments(arguments), trace(std::move(fitted.requests)),
        service(std::move(service)) {}

  Status replay(const ServingTrace &requests, ReplayRun &run,
                const KeptObserver &observe);
  Status replayRates();
  Status searchGoodput();
  /// A line about a rate that was tried.
  void tell(const RateTrial &trial) const;
  Json describeRun(const ReplayRun &run) const;
  Json toJson() const;
  std::string describe() const;

  const ReplayArguments &arguments;
  ServingTrace trace;
  std::unique_ptr<Service> service;
  std::vector<ReplayRun> runs;
  Goodput goodput;
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
  return Experiment(arguments, std::move(trace), std::move(service));
}

/// Adds to `run` the requests served, until `observe` needs no more.
Status Experiment::replay(const ServingTrace &requests, ReplayRun &run,
                          const KeptObserver &observe) {
  const bool draws = !arguments.quiet && ::isatty(STDERR_FILENO) == 1;
  const ServiceObjectives objectives = arguments.objectives();
  size_t drawn = 0;
  bool enough = false;
  TraceReplayOptions options;
  options.stop = [] { return interrupted() || outputClosed(); };
  options.progress = [&](size_t done) {
    if (draws && done != drawn)
      std::fprintf(stderr, "\r\x1b[K%zu of %zu requests", drawn = done,
                   requests.size());
  };
  if (observe)
    options.observe = [&](const ServedRequest &request) {
      run.served.push_back(request);
      enough = !observe(keptScale(request, objectives) <= 1);
      return !enough;
    };
  Result<std::vector<ServedRequest>> served =
      replayTrace(*service, requests, options);
  if (draws)
    std::fprintf(stderr, "\r\x1b[K");
  if (!served)
    return served.error();
  if (!observe)
    run.served = std::move(*served);
  if (!enough && run.served.size() < requests.size())
    return makeError("interrupted; ", requests.size() - run.served.size(),
                     " requests were not served");
  return {};
}

void Experiment::tell(const RateTrial &trial) const {
  if (arguments.quiet)
    return;
  char line[160];
  std::snprintf(line, sizeof(line),
                "%.4g requests/s: %zu of %zu kept the SLO, %.1f%% (95%% "
                "confidence: %.1f%% to %.1f%%)%s",
                trial.rate, trial.kept, trial.requests,
                100 * trial.attainment(), 100 * trial.interval.low,
                100 * trial.interval.high, trial.certain ? "" : ", uncertain");
  tool::writeLog(line);
}

Status Experiment::replayRates() {
  const bool hasObjectives = arguments.objectives().any();
  for (double rate : arguments.rates) {
    SANDWICH_ASSIGN_OR_RETURN(
        const ServingTrace requests,
        drawArrivals(trace, rate, arguments.seed.value_or(1)));
    RateTrial trial;
    trial.rate = rate;
    ReplayRun run;
    Status status = replay(requests, run, [&](bool kept) {
      ++trial.requests;
      trial.kept += kept;
      return true;
    });
    if (trial.requests > 0)
      trial.conclude(arguments.goodput.attainment);
    run.trial = trial;
    runs.push_back(std::move(run));
    SANDWICH_RETURN_IF_ERROR(status);
    if (hasObjectives)
      tell(trial);
  }
  return {};
}

Status Experiment::searchGoodput() {
  const RateRunner runner = [&](double rate, size_t,
                                const KeptObserver &observe) -> Status {
    SANDWICH_ASSIGN_OR_RETURN(
        const ServingTrace requests,
        drawArrivals(trace, rate, arguments.seed.value_or(1)));
    runs.emplace_back();
    return replay(requests, runs.back(), observe);
  };
  Result<Goodput> found =
      findGoodput(arguments.goodput, runner, [&](const RateTrial &trial) {
        runs.back().trial = trial;
        tell(trial);
      });
  // What was served of a rate that was not finished says nothing about it.
  std::erase_if(runs, [](const ReplayRun &run) { return !run.trial; });
  if (!found)
    return found.error();
  goodput = *found;
  return {};
}

Status Experiment::run() {
  if (arguments.findsGoodput)
    return searchGoodput();
  // A single rate of a built-in trace draws its arrivals with its lengths.
  if (arguments.rates.size() > 1 ||
      (!arguments.rates.empty() && !arguments.isBuiltIn()))
    return replayRates();
  runs.emplace_back();
  return replay(trace, runs.back(), {});
}

Json Experiment::describeRun(const ReplayRun &run) const {
  const ServiceObjectives objectives = arguments.objectives();
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
    for (double scale : arguments.objectiveScales)
      json["scales"].push_back(
          {{"scale", scale},
           {"attainment_percent",
            attainmentPercent(run.served, arguments.objectiveScales.size() == 1
                                              ? objectives
                                              : objectives.scaled(scale))}});
  }
  return json;
}

Json Experiment::toJson() const {
  const ServiceStatistics statistics = service->statistics();
  Json json = {{"model", service->model().name()},
               {"trace", arguments.trace},
               {"steps", statistics.scheduler.steps},
               {"preemptions", statistics.scheduler.preemptions},
               {"cached_prompt_tokens", statistics.blocks.promptTokensHit}};
  if (runs.size() == 1 && !arguments.findsGoodput) {
    json.update(describeRun(runs.front()));
    return json;
  }
  if (arguments.findsGoodput) {
    auto orNull = [](std::optional<double> rate) {
      return rate ? Json(*rate) : Json();
    };
    json["wanted_attainment_percent"] = 100 * arguments.goodput.attainment;
    json["goodput_requests_per_second"] = orNull(goodput.rate);
    json["too_high_requests_per_second"] = orNull(goodput.tooHigh);
  }
  json["rates"] = Json::array();
  for (const ReplayRun &run : runs)
    json["rates"].push_back(describeRun(run));
  return json;
}

std::string Experiment::describe() const {
  const ServiceObjectives objectives = arguments.objectives();
  std::string text = tool::describePlacement(service->rankPlacement());
  char line[200];
  for (const ReplayRun &run : runs) {
    if (run.trial) {
      std::snprintf(line, sizeof(line), "\nat %.4g requests/s:\n",
                    run.trial->rate);
      text += line;
    }
    text += ReplaySummary(run.served, objectives).describe();
    if (arguments.objectiveScales.size() > 1)
      for (double scale : arguments.objectiveScales) {
        std::snprintf(line, sizeof(line), "SLO x %-6.4g attained by %.1f%%\n",
                      scale,
                      attainmentPercent(run.served, objectives.scaled(scale)));
        text += line;
      }
  }
  return text;
}

/// "goodput: 3.91 requests/s ..."
static std::string describeGoodput(const Goodput &goodput, double attainment) {
  char line[200];
  if (!goodput.rate)
    std::snprintf(line, sizeof(line),
                  "\ngoodput: none; at %.4g requests/s fewer than %.4g%% kept "
                  "the SLO\n",
                  goodput.tooHigh.value_or(0), 100 * attainment);
  else if (!goodput.tooHigh)
    std::snprintf(line, sizeof(line),
                  "\ngoodput: at least %.4g requests/s, the highest rate "
                  "tried\n",
                  *goodput.rate);
  else
    std::snprintf(line, sizeof(line),
                  "\ngoodput: %.4g requests/s with %.4g%% within the SLO; "
                  "%.4g is too high\n",
                  *goodput.rate, 100 * attainment, *goodput.tooHigh);
  return line;
}

Status Experiment::report(bool complete) const {
  const SpeculationStatistics speculation =
      service->statistics().scheduler.speculation;
  if (arguments.json) {
    Json json = toJson();
    json["interrupted"] = !complete;
    if (arguments.speculation.isOn())
      json["speculation"] = {{"steps", speculation.steps},
                             {"proposed_tokens", speculation.proposedTokens},
                             {"accepted_tokens", speculation.acceptedTokens},
                             {"seconds", speculation.seconds}};
    return tool::writeJson(json);
  }
  std::string text = describe();
  if (arguments.speculation.isOn())
    text += tool::describe(speculation) + "\n";
  if (arguments.findsGoodput && complete)
    text += describeGoodput(goodput, arguments.goodput.attainment);
  return writeStandardOutput(text);
}

Status Experiment::writePage(PendingFile file) const {
  SANDWICH_ASSIGN_OR_RETURN(const Machine machine, readMachineTopology());
  const proto::Manifest &manifest = service->artifact().manifest();
  const ServiceObjectives objectives = arguments.objectives();
  std::string slo;
  char part[80];
  if (objectives.firstToken) {
    std::snprintf(part, sizeof(part), " TTFT %.4g ms",
                  1e3 * *objectives.firstToken);
    slo += part;
  }
  if (objectives.token) {
    std::snprintf(part, sizeof(part), " TPOT %.4g ms", 1e3 * *objectives.token);
    slo += part;
  }
  std::vector<std::string> lines = {
      "Artifact: " + arguments.artifact + ", " + manifest.target().dtype() +
          " for " + manifest.target().name(),
      "Machine: " +
          (machine.cpuModel.empty() ? machine.name : machine.cpuModel),
      "Trace: " + arguments.trace};
  if (!slo.empty())
    lines.push_back("SLO:" + slo);
  if (goodput.rate) {
    std::snprintf(part, sizeof(part), "Goodput: %.4g requests per second",
                  *goodput.rate);
    lines.push_back(part);
  }
  const tool::ReplayPage page{.title = "Serving " + service->model().name(),
                              .lines = std::move(lines),
                              .runs = runs,
                              .objectives = objectives,
                              .wantedAttainment = arguments.goodput.attainment,
                              .data = toJson()};
  SANDWICH_RETURN_IF_ERROR(file.write(page.draw()));
  return file.commit();
}

static Status run(const ReplayArguments &arguments) {
  // From here on there may be a file to remove.
  catchInterrupts();
  std::optional<PendingFile> page;
  if (!arguments.page.empty()) {
    const std::string read[] = {arguments.trace};
    SANDWICH_RETURN_IF_ERROR(checkOutputPlace(arguments.page, {"", read}));
    SANDWICH_ASSIGN_OR_RETURN(page, PendingFile::create(arguments.page));
  }
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
  if (!arguments.isBuiltIn() && arguments.seed && arguments.rates.empty() &&
      !arguments.findsGoodput)
    throw CLI::ValidationError("--seed is for sharegpt and lmsys, or with "
                               "--rate; a file has its own arrival times");
  const bool hasObjectives =
      arguments.firstTokenObjective || arguments.tokenObjective;
  if (arguments.objectiveScales.size() > 1 && !hasObjectives)
    throw CLI::ValidationError(
        "--slo-scale: several are for --ttft-slo or --tpot-slo");
  if (!arguments.findsGoodput)
    return;
  if (!hasObjectives)
    throw CLI::ValidationError("--find-goodput needs --ttft-slo or --tpot-slo");
  if (arguments.rates.size() > 1 || arguments.objectiveScales.size() > 1)
    throw CLI::ValidationError(
        "--find-goodput takes one --rate to begin with, and one --slo-scale");
  GoodputOptions &goodput = arguments.goodput;
  if (!arguments.rates.empty())
    goodput.firstRate = arguments.rates.front();
  goodput.lowestRate = goodput.firstRate / 256;
  goodput.highestRate = goodput.firstRate * 256;
  goodput.mostRequests = arguments.requests.value_or(goodput.mostRequests);
  goodput.leastRequests = std::min(goodput.leastRequests, goodput.mostRequests);
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
  command
      ->add_option("--trace", arguments->trace,
                   "sharegpt, lmsys, or a file of requests")
      ->capture_default_str();
  command
      ->add_option("--requests", arguments->requests,
                   "How many of them (default: all of a file, 64 otherwise)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N");
  addNumberListOption(
      *command, "--rate,--requests-per-second", arguments->rates, 1e-6, 1e6,
      "Mean rates at which requests arrive, at random; those of "
      "a file as well (default: as the file says, otherwise "
      "one after another)");
  command
      ->add_option("--skip", arguments->skip,
                   "Requests to leave out at the beginning")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->type_name("N");
  command
      ->add_option("--seed", arguments->seed,
                   "Of lengths and arrivals that are drawn; each seed has its "
                   "own (default: 1, the trace that plans are for)")
      ->type_name("S");
  command
      ->add_option("--batch", arguments->batch,
                   "Sequences that generate at a time")
      ->check(CLI::Range(uint64_t{1}, uint64_t{SANDWICH_MAX_STEP_TOKENS}))
      ->type_name("N")
      ->capture_default_str();
  const CLI::Validator positive = numberRange(1e-6, 1e9);
  command
      ->add_option("--ttft-slo", arguments->firstTokenObjective,
                   "Milliseconds to the first token that requests may take")
      ->check(positive)
      ->type_name("MS");
  command
      ->add_option("--tpot-slo", arguments->tokenObjective,
                   "Milliseconds that each token after it may take")
      ->check(positive)
      ->type_name("MS");
  addNumberListOption(*command, "--slo-scale", arguments->objectiveScales, 1e-3,
                      1e3, "Multiplies both (default: 1)");
  CLI::Option *finds =
      command->add_flag("--find-goodput", arguments->findsGoodput,
                        "Looks for the highest rate that keeps the SLO");
  command
      ->add_option("--attainment", arguments->goodput.attainment,
                   "Share of requests that have to keep it")
      ->check(numberRange(0.01, 0.999))
      ->type_name("SHARE")
      ->needs(finds)
      ->capture_default_str();
  command->add_flag("!--no-prefix-cache", arguments->prefixCache,
                    "Keeps no KV cache blocks for prompts that begin alike");
  command
      ->add_option("--html", arguments->page,
                   "Also draws charts into FILE, a page that needs no other "
                   "file")
      ->check(findOutputNameProblem)
      ->type_name("FILE");
  addSpeculationOptions(*command, arguments->speculation);
  addEngineOptions(*command, arguments->engine);
  command->add_flag("-q,--quiet", arguments->quiet,
                    "No progress on standard error");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of lines");
  command->callback([arguments, &action] {
    finishArguments(*arguments);
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
