//===- BenchServe.cpp - sandwich-run bench-serve --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "ServingArguments.h"
#include "Terminal.h"

#include "sandwich/LoadTest/LoadRun.h"
#include "sandwich/LoadTest/LoadSummary.h"
#include "sandwich/LoadTest/TargetServer.h"
#include "sandwich/LoadTest/Workload.h"
#include "sandwich/Runtime/Measurement/RateExperiment.h"
#include "sandwich/Runtime/Measurement/ReplayPage.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <sys/resource.h>

using namespace sandwich;

/// A key and the line's end.
static constexpr size_t mostKeyBytes = 4096;
/// Above this share of a core, the client's own pace may be in its figures.
static constexpr double busyClient = 0.8;

namespace {
struct BenchServeArguments {
  tool::ServingArguments serving;
  std::string url;
  TargetOptions target;
  std::string keyFile;
  std::optional<uint64_t> context;
  bool repeatsPrompts = false;
  std::optional<TokenRange> promptTokens;
  std::optional<TokenRange> outputTokens;
  /// "poisson", "uniform", "burst" or "closed"; empty: as the rest says.
  std::string arrivalName;
  ArrivalOptions arrivals;
  std::optional<double> burstPeriod;
  std::optional<uint64_t> concurrency;
  size_t warmUps = 1;

  bool hasLengths() const { return promptTokens || outputTokens; }
  /// A single rate of a built-in trace draws its arrivals with its lengths, as
  /// in a replay.
  bool drawsArrivalsWithLengths() const {
    return serving.isBuiltIn() && !hasLengths() && !serving.findsGoodput &&
           serving.rates.size() == 1 && arrivalName == "poisson" &&
           arrivals.burstiness == 1;
  }
  uint64_t seed() const { return serving.seed.value_or(1); }
};
} // namespace

/// The requests that the arguments ask for. Error: none are left.
static Result<ServingTrace> findTrace(const BenchServeArguments &arguments) {
  const tool::ServingArguments &serving = arguments.serving;
  const size_t wanted =
      serving.skip + serving.wantedRequests().value_or(usualRequests);
  ServingTrace trace;
  if (arguments.hasLengths()) {
    constexpr TokenRange usual = {128, 128};
    trace =
        drawLengths(wanted, arguments.promptTokens.value_or(usual),
                    arguments.outputTokens.value_or(usual), arguments.seed());
  } else if (serving.isBuiltIn()) {
    SANDWICH_ASSIGN_OR_RETURN(
        trace, makeServingTrace(serving.trace, static_cast<int64_t>(wanted),
                                arguments.drawsArrivalsWithLengths()
                                    ? serving.rates.front()
                                    : 0,
                                arguments.seed()));
  } else {
    SANDWICH_ASSIGN_OR_RETURN(trace, readServingTrace(serving.trace));
  }
  SANDWICH_ASSIGN_OR_RETURN(trace, selectRequests(std::move(trace), serving));
  if (arguments.arrivalName == "closed")
    for (ServingRequest &request : trace)
      request.arrivalSeconds.reset();
  return trace;
}

/// As many connections at a time as the system allows: a server that falls
/// behind leaves thousands open.
static void allowManyConnections() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

static bool isStopped() { return interrupted() || outputClosed(); }

namespace {
/// A server, and the traces that are sent to it one after another.
class LoadExperiment {
public:
  /// Errors: as `findTrace` and `TargetServer::connect`.
  static Result<std::unique_ptr<LoadExperiment>>
  create(const BenchServeArguments &arguments);

  Status run();
  Status report(bool complete) const;
  Status writePage(PendingFile file) const;
  /// Error: there are requests, and none was served.
  Status checkServed() const;

private:
  explicit LoadExperiment(const BenchServeArguments &arguments)
      : arguments(arguments), rates(experimentOptions(arguments)) {}

  static RateExperimentOptions
  experimentOptions(const BenchServeArguments &arguments);

  Status runTrace(std::optional<double> rate, ReplayRun &run,
                  const KeptObserver &observe);
  std::string describeArrivals() const;
  std::string describeTrace() const;
  /// What the report begins with.
  Json describeServer() const;
  std::string describeServerInLines() const;

  const BenchServeArguments &arguments;
  ServingTrace trace;
  EventLoop loop;
  std::unique_ptr<TargetServer> server;
  RateExperiment rates;
  /// The most of all runs.
  double clientLoad = 0;
};
} // namespace

RateExperimentOptions
LoadExperiment::experimentOptions(const BenchServeArguments &arguments) {
  RateExperimentOptions options = arguments.serving.experiment();
  const ServiceObjectives objectives = arguments.serving.objectives();
  options.moreOfRun = [objectives](const ReplayRun &run) {
    return LoadSummary(run.served, objectives).toJson();
  };
  options.moreLinesOfRun = [objectives](const ReplayRun &run) {
    return LoadSummary(run.served, objectives).describe();
  };
  return options;
}

/// The key in a file, without the blanks around it. Errors: it cannot be read;
/// it is empty or no header can hold it.
static Result<std::string> readKey(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(std::string key,
                            tool::readInput(path, mostKeyBytes));
  constexpr std::string_view blanks = " \t\r\n";
  key.erase(std::min(key.find_last_not_of(blanks) + 1, key.size()));
  key.erase(0, key.find_first_not_of(blanks));
  if (key.empty() ||
      !std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7F; }))
    return makeError(path, ": it holds no key of visible ASCII characters");
  return key;
}

Result<std::unique_ptr<LoadExperiment>>
LoadExperiment::create(const BenchServeArguments &arguments) {
  std::unique_ptr<LoadExperiment> experiment(new LoadExperiment(arguments));
  SANDWICH_ASSIGN_OR_RETURN(const ServingTrace requested, findTrace(arguments));
  TargetOptions target = arguments.target;
  SANDWICH_ASSIGN_OR_RETURN(target.address, HttpAddress::parse(arguments.url));
  if (!arguments.keyFile.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(target.apiKey, readKey(arguments.keyFile));
  }
  target.prompts.seed = arguments.seed();
  if (!arguments.repeatsPrompts) {
    std::random_device device;
    target.prompts.seed ^= uint64_t{device()} << 32 | device();
  }
  if (!arguments.serving.quiet)
    target.log = [](LogLevel, const std::string &message) {
      tool::writeLog("warning: " + message);
    };
  SANDWICH_ASSIGN_OR_RETURN(
      experiment->server,
      TargetServer::connect(experiment->loop, std::move(target), isStopped));
  const std::optional<uint64_t> context =
      arguments.context ? arguments.context
                        : experiment->server->contextTokens();
  if (!context) {
    experiment->trace = requested;
    return experiment;
  }
  FittedTrace fitted = fitTrace(requested, *context);
  if (fitted.cut > 0)
    std::fprintf(stderr,
                 "%zu of %zu requests are cut to the model's context of %llu "
                 "tokens\n",
                 fitted.cut, fitted.requests.size(),
                 static_cast<unsigned long long>(*context));
  experiment->trace = std::move(fitted.requests);
  return experiment;
}

Status LoadExperiment::runTrace(std::optional<double> rate, ReplayRun &run,
                                const KeptObserver &observe) {
  ServingTrace requests = trace;
  if (rate && !arguments.drawsArrivalsWithLengths()) {
    SANDWICH_ASSIGN_OR_RETURN(requests, drawArrivals(std::move(requests),
                                                     arguments.arrivals, *rate,
                                                     arguments.seed()));
  }
  tool::ProgressLine line(arguments.serving);
  LoadRunOptions options;
  options.concurrency = arguments.concurrency.value_or(1);
  options.warmUps = arguments.warmUps;
  TraceReplayOptions watched;
  watched.stop = isStopped;
  watched.progress = [&](size_t done) { line.show(done, requests.size()); };
  return serveRun(
      requests.size(), arguments.serving.objectives(), std::move(watched),
      [&](const TraceReplayOptions &observed)
          -> Result<std::vector<ServedRequest>> {
        options.replay = observed;
        LoadRun load = runLoad(*server, requests, options);
        clientLoad = std::max(clientLoad, load.clientLoad);
        return std::move(load.requests);
      },
      run, observe);
}

Status LoadExperiment::run() {
  return rates.run([this](std::optional<double> rate, ReplayRun &run,
                          const KeptObserver &observe) {
    return runTrace(rate, run, observe);
  });
}

std::string LoadExperiment::describeArrivals() const {
  char text[80];
  if (arguments.arrivalName == "burst") {
    std::snprintf(text, sizeof(text), "bursts of %zu",
                  arguments.arrivals.burstSize);
    return text;
  }
  if (arguments.arrivalName == "uniform")
    return "uniform";
  if (arguments.arrivalName == "poisson") {
    if (arguments.arrivals.burstiness == 1)
      return "poisson";
    std::snprintf(text, sizeof(text), "gamma, burstiness %.4g",
                  arguments.arrivals.burstiness);
    return text;
  }
  if (trace.front().arrivalSeconds)
    return "as in the trace";
  std::snprintf(
      text, sizeof(text), "closed loop of %llu",
      static_cast<unsigned long long>(arguments.concurrency.value_or(1)));
  return text;
}

std::string LoadExperiment::describeTrace() const {
  if (!arguments.hasLengths())
    return arguments.serving.trace;
  const auto describe = [](const std::optional<TokenRange> &range) {
    const TokenRange tokens = range.value_or(TokenRange{128, 128});
    return tokens.least == tokens.most ? std::to_string(tokens.least)
                                       : std::to_string(tokens.least) + "-" +
                                             std::to_string(tokens.most);
  };
  return describe(arguments.promptTokens) + " tokens of prompts, " +
         describe(arguments.outputTokens) + " generated";
}

Json LoadExperiment::describeServer() const {
  return {{"url", arguments.url},
          {"model", server->model()},
          {"endpoint", arguments.target.endpoint == Endpoint::Chat
                           ? "chat"
                           : "completions"},
          {"prompts", arguments.target.prompts.asTokens ? "tokens" : "text"},
          {"ignore_eos", server->ignoresEndOfText()},
          {"include_usage", server->includesUsage()},
          {"trace", describeTrace()},
          {"arrivals", describeArrivals()},
          {"seed", arguments.seed()},
          {"client_load_percent", 100 * clientLoad}};
}

std::string LoadExperiment::describeServerInLines() const {
  char line[160];
  std::snprintf(
      line, sizeof(line), "client   computed for %.0f%% of a core%s\n",
      100 * clientLoad,
      clientLoad < busyClient ? "" : ": its own pace may be in these figures");
  return "server   " + arguments.url + ", model " + server->model() + "\n" +
         "load     " + describeTrace() + "; arrivals: " + describeArrivals() +
         "\n" + line;
}

Status LoadExperiment::report(bool complete) const {
  return writeReport(arguments.serving, rates, describeServer(),
                     describeServerInLines(), complete);
}

Status LoadExperiment::writePage(PendingFile file) const {
  std::vector<std::string> lines = {"Server: " + arguments.url,
                                    "Load: " + describeTrace() +
                                        "; arrivals: " + describeArrivals()};
  for (std::string &line : rates.pageLines())
    lines.push_back(std::move(line));
  Json data = describeServer();
  data.update(rates.toJson());
  const ReplayPage page{.title = "Load on " + server->model(),
                        .lines = std::move(lines),
                        .runs = rates.runs(),
                        .objectives = arguments.serving.objectives(),
                        .wantedAttainment =
                            arguments.serving.goodput.attainment,
                        .data = std::move(data),
                        .moreMarkup = drawFailures(rates.runs()),
                        .moreCharts = drawLoads(rates.runs())};
  SANDWICH_RETURN_IF_ERROR(file.write(page.draw()));
  return file.commit();
}

Status LoadExperiment::checkServed() const {
  const ServedRequest *failed = nullptr;
  bool refused = false;
  for (const ReplayRun &run : rates.runs())
    for (const ServedRequest &request : run.served) {
      if (request.isServed())
        return {};
      refused |= request.refused;
      if (request.failure && !failed)
        failed = &request;
    }
  if (failed)
    return makeError("no request was served: ", failed->failure->kind, ": ",
                     failed->failure->message);
  if (refused)
    return makeError("no request was served: all were refused (HTTP 429)");
  return {};
}

static Status run(const BenchServeArguments &arguments) {
  // From here on there may be a file to remove.
  catchInterrupts();
  allowManyConnections();
  SANDWICH_ASSIGN_OR_RETURN(std::optional<PendingFile> page,
                            openPage(arguments.serving));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<LoadExperiment> experiment,
                            LoadExperiment::create(arguments));
  const Status status = experiment->run();
  // Other errors leave nothing to report.
  if (!status && !isStopped())
    return status;
  SANDWICH_RETURN_IF_ERROR(experiment->report(bool(status)));
  if (status && page)
    SANDWICH_RETURN_IF_ERROR(experiment->writePage(*std::move(page)));
  return status ? experiment->checkServed() : status;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Wrong usage: options for arrivals that do not go together. Sets the name of
/// the arrivals, unless they are those of a file.
static void finishArrivals(BenchServeArguments &arguments,
                           const CLI::App &command) {
  tool::ServingArguments &serving = arguments.serving;
  if (arguments.burstPeriod) {
    if (!serving.rates.empty())
      throw CLI::ValidationError("--burst-period excludes --rate, which with "
                                 "--burst-size says the same");
    serving.rates = {static_cast<double>(arguments.arrivals.burstSize) /
                     *arguments.burstPeriod};
  }
  std::string &name = arguments.arrivalName;
  const bool hasRate = !serving.rates.empty() || serving.findsGoodput;
  if (name.empty() && (arguments.burstPeriod || command.count("--burst-size")))
    name = "burst";
  if (name.empty() && arguments.concurrency)
    name = "closed";
  if (name.empty() && hasRate)
    name = "poisson";
  if (name == "closed" && hasRate)
    throw CLI::ValidationError("a closed loop has no --rate and no goodput: "
                               "requests come when others are done");
  if (!name.empty() && name != "closed" && !hasRate)
    throw CLI::ValidationError("--arrivals=" + name + " needs --rate");
  if (arguments.concurrency && name != "closed")
    throw CLI::ValidationError("--concurrency is for a closed loop");
  if (name != "burst" &&
      (arguments.burstPeriod || command.count("--burst-size")))
    throw CLI::ValidationError(
        "--burst-size and --burst-period are for --arrivals=burst");
  if (name != "poisson" && command.count("--burstiness"))
    throw CLI::ValidationError("--burstiness is for --arrivals=poisson");
  if (name == "burst")
    arguments.arrivals.process = ArrivalProcess::Burst;
  else if (name == "uniform")
    arguments.arrivals.process = ArrivalProcess::Uniform;
}

/// Wrong usage: options that do not go together.
static void finishArguments(BenchServeArguments &arguments,
                            const CLI::App &command) {
  tool::ServingArguments &serving = arguments.serving;
  if (arguments.hasLengths() && command.count("--trace"))
    throw CLI::ValidationError(
        "--prompt-tokens and --output-tokens take the place of a --trace");
  finishArrivals(arguments, command);
  if (!serving.isBuiltIn() && !arguments.hasLengths() && serving.seed &&
      serving.rates.empty() && !serving.findsGoodput)
    throw CLI::ValidationError("--seed is for lengths and arrivals that are "
                               "drawn; a file has its own");
  if (const Result<HttpAddress> address = HttpAddress::parse(arguments.url);
      !address)
    throw CLI::ValidationError(address.error().message);
  PromptOptions &prompts = arguments.target.prompts;
  const bool isChat = arguments.target.endpoint == Endpoint::Chat;
  if (isChat && command.count("--prompt-as") && prompts.asTokens)
    throw CLI::ValidationError("a chat's prompts are text");
  if (isChat)
    prompts.asTokens = false;
  if (const Result<PromptMaker> maker = PromptMaker::create(prompts); !maker)
    throw CLI::ValidationError("--vocabulary: " + maker.error().message);
  finishObjectiveOptions(serving);
}

static void addRange(CLI::App &command, const std::string &name,
                     std::optional<TokenRange> &range,
                     const std::string &description) {
  command
      .add_option_function<std::string>(
          name,
          [&range, name](const std::string &text) {
            const Result<TokenRange> parsed = TokenRange::parse(text);
            if (!parsed)
              throw CLI::ValidationError(name, parsed.error().message);
            range = *parsed;
          },
          description)
      ->type_name("N|N-N");
}

static void addWorkloadOptions(CLI::App &command,
                               BenchServeArguments &arguments) {
  addTraceOptions(command, arguments.serving);
  addRange(command, "--prompt-tokens", arguments.promptTokens,
           "Lengths of prompts instead of a trace, drawn from a range "
           "(default: 128)");
  addRange(command, "--output-tokens", arguments.outputTokens,
           "Lengths of what is generated (default: 128)");
  command
      .add_option("--arrivals", arguments.arrivalName,
                  "How requests come (default: poisson with --rate, otherwise "
                  "as the file says, or closed)")
      ->check(CLI::IsMember({"poisson", "uniform", "burst", "closed"}))
      ->type_name("poisson|uniform|burst|closed");
  command
      .add_option("--burstiness", arguments.arrivals.burstiness,
                  "Of poisson: the shape of a gamma distribution of the times "
                  "between requests; below 1 they come in clusters, above it "
                  "evenly")
      ->check(tool::numberRange(1e-3, 1e6))
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option("--burst-size", arguments.arrivals.burstSize,
                  "Of burst: requests that come at once")
      ->check(CLI::Range(size_t{1}, size_t{1} << 20))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--burst-period", arguments.burstPeriod,
                  "Of burst: seconds from one to the next, instead of --rate")
      ->check(tool::numberRange(1e-3, 1e6))
      ->type_name("SECONDS");
  command
      .add_option("--concurrency", arguments.concurrency,
                  "Of closed: requests under way at a time (default: 1)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 16))
      ->type_name("N");
  command
      .add_option("--warmup", arguments.warmUps,
                  "Requests before those that count, one after another")
      ->check(CLI::Range(size_t{0}, size_t{1} << 16))
      ->type_name("N")
      ->capture_default_str();
}

static void addPromptOptions(CLI::App &command,
                             BenchServeArguments &arguments) {
  PromptOptions &prompts = arguments.target.prompts;
  command
      .add_option_function<std::string>(
          "--prompt-as",
          [&prompts](const std::string &kind) {
            prompts.asTokens = kind == "tokens";
          },
          "Prompts of token ids, exact in length, or of words (default: "
          "tokens; text for a chat)")
      ->check(CLI::IsMember({"tokens", "text"}))
      ->type_name("tokens|text");
  command
      .add_option("--vocabulary", prompts.vocabulary,
                  "Token ids of prompts are from 3 up to this")
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--prefix-share", prompts.prefixTokens,
                  "Tokens that all prompts begin with")
      ->check(CLI::Range(uint64_t{0}, static_cast<uint64_t>(maxTraceTokens)))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--repeat-prompts", arguments.repeatsPrompts,
                   "The same prompts in each run with the same --seed, which a "
                   "server may have kept");
  command
      .add_option("--context", arguments.context,
                  "Cuts requests to so many tokens in all (default: to the "
                  "server's max_model_len, if it tells)")
      ->check(CLI::Range(uint64_t{1}, static_cast<uint64_t>(maxTraceTokens)))
      ->type_name("N");
}

/// Adds a flag that nobody need have set, either way.
static void addSwitch(CLI::App &command, const std::string &names,
                      std::optional<bool> &value,
                      const std::string &description) {
  command.add_flag_function(
      names, [&value](int64_t count) { value = count > 0; }, description);
}

static void addServerOptions(CLI::App &command,
                             BenchServeArguments &arguments) {
  TargetOptions &target = arguments.target;
  command
      .add_option("--model", target.model,
                  "Its name (default: the first one that the server lists)")
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--endpoint",
          [&target](const std::string &name) {
            target.endpoint =
                name == "chat" ? Endpoint::Chat : Endpoint::Completions;
          },
          "What is asked for (default: completions)")
      ->check(CLI::IsMember({"completions", "chat"}))
      ->type_name("completions|chat");
  command
      .add_option("--api-key-file", arguments.keyFile,
                  "A file with the key that the server wants, or - for "
                  "standard input")
      ->type_name("FILE");
  addSwitch(command, "--ignore-eos,!--no-ignore-eos", target.ignoreEndOfText,
            "Texts go on behind their end, so that they have the length of the "
            "trace (default: where the server takes it)");
  addSwitch(command, "--usage,!--no-usage", target.includeUsage,
            "Asks the server to count tokens (default: where it takes it)");
  command
      .add_option("--temperature", target.temperature,
                  "Of sampling (default: the server's)")
      ->check(tool::numberRange(0, 100))
      ->type_name("X");
  command
      .add_option("--timeout", target.timeout,
                  "Seconds that an answer may take")
      ->check(tool::numberRange(1e-3, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
}

void tool::addBenchServeCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<BenchServeArguments>();
  CLI::App *command = app.add_subcommand(
      "bench-serve", "Sends load to a server of OpenAI's API, and tells how "
                     "long it took to serve");
  command->footer(R"(Examples:
  sandwich-run bench-serve http://127.0.0.1:8080
  sandwich-run bench-serve http://127.0.0.1:8080 --trace=lmsys --rate=1,2,4 \
      --ttft-slo=2000 --tpot-slo=100 --html=load.html
  sandwich-run bench-serve http://127.0.0.1:8080 --find-goodput \
      --ttft-slo=2000 --tpot-slo=100
  sandwich-run bench-serve http://127.0.0.1:8080 --concurrency=8 \
      --prompt-tokens=512 --output-tokens=64-128
  sandwich-run bench-serve http://127.0.0.1:8080 --burst-size=32 \
      --burst-period=10
  sandwich-run bench-serve unix:/run/server.socket --endpoint=chat --rate=2

URL says where the API begins; without a path, that is /v1. There is no TLS.

Requests ask for streams. sharegpt and lmsys have lengths like those of the data
sets; a file has a request on each line: "12 30", tokens of the prompt and
generated, or an object of JSON with "prompt_tokens", "output_tokens" and
"arrival_seconds". With --rate they arrive whether those before are done or not,
several rates one after another. In a closed loop each comes when another is
done, so that a slow server gets less to do: it shows what a server can do, not
how long users wait.

Prompts are random token ids, which llama-server and vLLM take as ours does, or
random words (--prompt-as=text), whose number of tokens is measured first. No
two are alike, unless --prefix-share says so.

Latency is from a request's arrival to its last token, TTFT to its first one,
TPOT the mean time of each after it, by the number of tokens that the server
counts, of each request, and ITL the time from any piece of a stream to the
next. What the client delays is in them: 'sent' tells how late it was. 429 is a
refusal, and all else that is no complete stream a failure; neither keeps an
SLO.

--find-goodput looks for the highest rate at which nine of ten requests keep the
SLO, as in 'sandwich-run replay --help'.)");
  command->add_option("URL", arguments->url, "http://HOST:PORT or unix:PATH")
      ->required();
  addServerOptions(*command, *arguments);
  addWorkloadOptions(*command, *arguments);
  addPromptOptions(*command, *arguments);
  addObjectiveOptions(*command, arguments->serving);
  addPageOption(*command, arguments->serving);
  addReportOptions(*command, arguments->serving);
  command->callback([arguments, command, &action] {
    finishArguments(*arguments, *command);
    action = [arguments] { return run(*arguments); };
  });
}
