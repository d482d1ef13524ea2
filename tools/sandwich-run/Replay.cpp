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
#include "Terminal.h"

#include "sandwich/Runtime/Measurement/TraceReplay.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <unistd.h>

using namespace sandwich;

namespace {
struct ReplayArguments {
  std::string artifact;
  std::string trace = "sharegpt";
  std::optional<uint64_t> requests;
  uint64_t skip = 0;
  double requestsPerSecond = 0;
  std::optional<uint64_t> seed;
  uint64_t batch = usualMaxBatch;
  /// Milliseconds.
  std::optional<double> firstTokenObjective;
  std::optional<double> tokenObjective;
  double objectiveScale = 1;
  bool prefixCache = true;
  tool::EngineArguments engine;
  bool json = false;
  bool quiet = false;
};

/// Of some requests; milliseconds.
struct Distribution {
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double p99 = 0;
};
} // namespace

/// Nothing of no times.
static std::optional<Distribution>
distributionOf(const std::vector<double> &seconds) {
  if (seconds.empty())
    return std::nullopt;
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return Distribution{1e3 * sum / static_cast<double>(seconds.size()),
                      1e3 * quantile(seconds, 0.5),
                      1e3 * quantile(seconds, 0.9),
                      1e3 * quantile(seconds, 0.99)};
}

namespace {
/// What a replay comes to.
struct Summary {
  size_t requests = 0;
  size_t refused = 0;
  /// Of the objectives, in percent of all requests, refused ones too; nothing
  /// without objectives.
  std::optional<double> attainment;
  uint64_t promptTokens = 0;
  uint64_t outputTokens = 0;
  double seconds = 0;
  std::optional<Distribution> latency;
  /// Time to first token, time per output token after it, and from each token
  /// to the next (inter-token latency).
  std::optional<Distribution> ttft;
  std::optional<Distribution> tpot;
  std::optional<Distribution> itl;

  /// Objectives are in seconds.
  Summary(const std::vector<ServedRequest> &served,
          std::optional<double> firstTokenObjective,
          std::optional<double> tokenObjective)
      : requests(served.size()) {
    std::vector<double> latencies, firsts, others, gaps;
    size_t attained = 0;
    for (const ServedRequest &request : served) {
      if (request.refused) {
        ++refused;
        continue;
      }
      promptTokens += request.promptTokens;
      outputTokens += request.outputTokens;
      seconds = std::max(seconds, request.lastToken);
      latencies.push_back(request.lastToken - request.arrival);
      firsts.push_back(request.firstToken - request.arrival);
      gaps.insert(gaps.end(), request.gaps.begin(), request.gaps.end());
      double perToken = 0;
      if (request.outputTokens > 1) {
        perToken = (request.lastToken - request.firstToken) /
                   static_cast<double>(request.outputTokens - 1);
        others.push_back(perToken);
      }
      attained +=
          firsts.back() <= firstTokenObjective.value_or(firsts.back()) &&
          perToken <= tokenObjective.value_or(perToken);
    }
    if (firstTokenObjective || tokenObjective)
      attainment = 100.0 * static_cast<double>(attained) /
                   static_cast<double>(std::max<size_t>(requests, 1));
    latency = distributionOf(latencies);
    ttft = distributionOf(firsts);
    tpot = distributionOf(others);
    itl = distributionOf(gaps);
  }

  double perSecond(uint64_t tokens) const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};
} // namespace

static std::string describe(const char *name,
                            const std::optional<Distribution> &times) {
  if (!times)
    return {};
  char line[160];
  std::snprintf(line, sizeof(line),
                "%-8s mean %.2f ms, median %.2f, p90 %.2f, p99 %.2f\n", name,
                times->mean, times->median, times->p90, times->p99);
  return line;
}

static std::string describe(const Summary &summary) {
  char line[200];
  std::snprintf(line, sizeof(line),
                "%zu request%s, %llu tokens of prompts and %llu generated in "
                "%.2f s: %.2f tokens/s generated, %.2f in all\n",
                summary.requests, summary.requests == 1 ? "" : "s",
                static_cast<unsigned long long>(summary.promptTokens),
                static_cast<unsigned long long>(summary.outputTokens),
                summary.seconds, summary.perSecond(summary.outputTokens),
                summary.perSecond(summary.promptTokens + summary.outputTokens));
  std::string text = line + describe("latency", summary.latency) +
                     describe("TTFT", summary.ttft) +
                     describe("TPOT", summary.tpot) +
                     describe("ITL", summary.itl);
  if (summary.attainment) {
    std::snprintf(line, sizeof(line),
                  "SLO      attained by %.1f%% of all requests; %zu refused\n",
                  *summary.attainment, summary.refused);
    text += line;
  }
  return text;
}

static Json toJson(const std::optional<Distribution> &times) {
  if (!times)
    return nullptr;
  return {{"mean", times->mean},
          {"median", times->median},
          {"p90", times->p90},
          {"p99", times->p99}};
}

/// The requests that the arguments ask for. Error: none are left.
static Result<ServingTrace> findTrace(const ReplayArguments &arguments) {
  ServingTrace trace;
  if (findLengthDistribution(arguments.trace)) {
    SANDWICH_ASSIGN_OR_RETURN(
        trace,
        makeServingTrace(
            arguments.trace,
            static_cast<int64_t>(arguments.skip +
                                 arguments.requests.value_or(usualRequests)),
            arguments.requestsPerSecond, arguments.seed.value_or(1)));
  } else {
    SANDWICH_ASSIGN_OR_RETURN(trace, readServingTrace(arguments.trace));
  }
  if (arguments.skip >= trace.size())
    return makeError(arguments.trace, ": it has ", trace.size(),
                     " requests, and --skip leaves none");
  trace.erase(trace.begin(),
              trace.begin() + static_cast<std::ptrdiff_t>(arguments.skip));
  if (arguments.requests)
    trace.resize(std::min<uint64_t>(trace.size(), *arguments.requests));
  // The clock starts with the first one that is left.
  if (arguments.skip > 0 && trace.front().arrivalSeconds) {
    const double first = *trace.front().arrivalSeconds;
    for (ServingRequest &request : trace)
      *request.arrivalSeconds -= first;
  }
  return trace;
}

static Status run(const ReplayArguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(ServingTrace requested, findTrace(arguments));
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact));
  const uint64_t context = artifact.manifest().model().context_length();
  const FittedTrace trace = fitTrace(requested, context);
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
  auto scaled = [&](std::optional<double> objective) {
    return objective
               ? std::optional(*objective * arguments.objectiveScale / 1e3)
               : std::nullopt;
  };
  serving.scheduling.firstTokenObjective =
      scaled(arguments.firstTokenObjective);
  serving.scheduling.tokenObjective = scaled(arguments.tokenObjective);
  makeRoomFor(trace.requests, serving.scheduling);
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Service> service,
      Service::create(std::move(engine), std::nullopt, serving));
  catchInterrupts();
  const bool draws = !arguments.quiet && ::isatty(STDERR_FILENO) == 1;
  size_t drawn = 0;
  TraceReplayOptions replay;
  replay.stop = [] { return interrupted() || outputClosed(); };
  replay.progress = [&](size_t done) {
    if (draws && done != drawn)
      std::fprintf(stderr, "\r\x1b[K%zu of %zu requests", drawn = done,
                   trace.requests.size());
  };
  Result<std::vector<ServedRequest>> served =
      replayTrace(*service, trace.requests, replay);
  if (draws)
    std::fprintf(stderr, "\r\x1b[K");
  if (!served)
    return served.error();
  const Status complete =
      served->size() == trace.requests.size()
          ? Status()
          : makeError("interrupted; ", trace.requests.size() - served->size(),
                      " requests were not served");
  const Summary summary(*served, serving.scheduling.firstTokenObjective,
                        serving.scheduling.tokenObjective);
  const ServiceStatistics statistics = service->statistics();
  if (!arguments.json) {
    SANDWICH_RETURN_IF_ERROR(writeStandardOutput(
        tool::describePlacement(service->rankPlacement()) + describe(summary)));
    return complete;
  }
  SANDWICH_RETURN_IF_ERROR(tool::writeJson(
      {{"model", service->model().name()},
       {"trace", arguments.trace},
       {"requests", summary.requests},
       {"refused", summary.refused},
       {"attainment_percent",
        summary.attainment ? Json(*summary.attainment) : Json()},
       {"steps", statistics.scheduler.steps},
       {"preemptions", statistics.scheduler.preemptions},
       {"cached_prompt_tokens", statistics.blocks.promptTokensHit},
       {"prompt_tokens", summary.promptTokens},
       {"output_tokens", summary.outputTokens},
       {"seconds", summary.seconds},
       {"output_tokens_per_second", summary.perSecond(summary.outputTokens)},
       {"latency_ms", toJson(summary.latency)},
       {"ttft_ms", toJson(summary.ttft)},
       {"tpot_ms", toJson(summary.tpot)},
       {"itl_ms", toJson(summary.itl)},
       {"interrupted", !complete}}));
  return complete;
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

Requests have random tokens. Steps have pieces of the prompts of those who have
arrived and the next tokens of all who generate (continuous batching): as much
of prompts as leaves streams their pace, which is --tpot-slo where that is
given. With --ttft-slo who would wait longer for the first token is refused.
The share of requests that got both is the attainment. sharegpt and
lmsys have lengths like those of the data sets; a file has a request on each
line: "12 30", tokens of the prompt and generated, or an object of JSON with
"prompt_tokens", "output_tokens" and "arrival_seconds". Without arrival times
each request comes when the one before is done.

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
  command
      ->add_option("--requests-per-second", arguments->requestsPerSecond,
                   "Mean rate at which those of sharegpt and lmsys arrive, at "
                   "random (default: one after another)")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("RATE");
  command
      ->add_option("--skip", arguments->skip,
                   "Requests to leave out at the beginning")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->type_name("N");
  command
      ->add_option("--seed", arguments->seed,
                   "Of lengths and arrivals of sharegpt and lmsys; each seed "
                   "has its own (default: 1, the trace that plans are for)")
      ->type_name("S");
  command
      ->add_option("--batch", arguments->batch,
                   "Sequences that generate at a time")
      ->check(CLI::Range(uint64_t{1}, uint64_t{SANDWICH_MAX_STEP_TOKENS}))
      ->type_name("N")
      ->capture_default_str();
  const CLI::Range positive(1e-6, 1e9);
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
  command
      ->add_option("--slo-scale", arguments->objectiveScale, "Multiplies both")
      ->check(CLI::Range(1e-3, 1e3))
      ->type_name("X")
      ->capture_default_str();
  command->add_flag("!--no-prefix-cache", arguments->prefixCache,
                    "Keeps no KV cache blocks for prompts that begin alike");
  addEngineOptions(*command, arguments->engine);
  command->add_flag("-q,--quiet", arguments->quiet,
                    "No progress on standard error");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of lines");
  command->callback([arguments, &action] {
    if (!findLengthDistribution(arguments->trace) &&
        (arguments->seed || arguments->requestsPerSecond > 0))
      throw CLI::ValidationError("--seed and --requests-per-second are for "
                                 "sharegpt and lmsys; a file has its own "
                                 "arrival times");
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
