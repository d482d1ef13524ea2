//===- Serve.cpp - sandwich-run serve -------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Hosts.h"
#include "SpeculationArguments.h"
#include "Terminal.h"

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Server/ApiServer.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/Process.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

using namespace sandwich;

namespace {
struct ServeArguments {
  /// [NAME=]ARTIFACT
  std::vector<std::string> artifacts;
  /// ALIAS=NAME
  std::vector<std::string> aliases;
  HttpServerOptions http;
  std::string apiKeyFile;
  std::set<std::string> allowedHosts;
  std::optional<uint64_t> contextLength;
  /// [NAME=]FILE
  std::vector<std::string> devices;
  std::string depthsFile;
  uint64_t batch = 0;
  SchedulerOptions scheduling;
  /// Milliseconds.
  std::optional<double> firstTokenObjective;
  std::optional<double> tokenObjective;
  bool prefixCache = true;
  uint32_t restarts = 3;
  double drainSeconds = 30;
  double stallSeconds = 60;
  std::string logFile;
  LogFormat logFormat = LogFormat::Text;
  bool logsRequests = true;
  bool logsPrompts = false;
  tool::SpeculationArguments speculation;
  tool::EngineArguments engine;
};
} // namespace

/// The name and the path of `text`, which a folder of that very name may be.
static std::pair<std::string, std::string> splitName(const std::string &text) {
  const size_t equals = text.find('=');
  std::error_code ignored;
  if (equals == std::string::npos || std::filesystem::exists(text, ignored))
    return {modelNameOf(text), text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

static Result<std::vector<ServedModelOptions>>
modelOptions(const ServeArguments &arguments) {
  std::vector<ServedModelOptions> models;
  for (const std::string &text : arguments.artifacts) {
    ServedModelOptions model;
    std::tie(model.name, model.artifact) = splitName(text);
    model.contextLength = arguments.contextLength;
    model.engine.prefixCache = arguments.prefixCache;
    SANDWICH_RETURN_IF_ERROR(arguments.engine.apply(model.engine));
    tool::connectToTerminal(model.engine);
    model.service.maxSequences = arguments.batch;
    model.service.scheduling = arguments.scheduling;
    const auto seconds = [](std::optional<double> milliseconds) {
      return milliseconds ? std::optional(*milliseconds / 1e3) : std::nullopt;
    };
    model.service.scheduling.firstTokenObjective =
        seconds(arguments.firstTokenObjective);
    model.service.scheduling.tokenObjective = seconds(arguments.tokenObjective);
    model.service.restartRanks = arguments.restarts > 0;
    model.service.mostRestarts = arguments.restarts;
    model.service.log = model.engine.log;
    arguments.speculation.set(model.service);
    if (model.service.proposals == ProposalSource::Draft)
      model.draft = arguments.speculation.source;
    models.push_back(std::move(model));
  }
  return models;
}

/// Gives each of `models` the devices that are for it.
static Status addDevices(const ServeArguments &arguments,
                         std::vector<ServedModelOptions> &models) {
  if (arguments.devices.empty() && !arguments.depthsFile.empty())
    return makeError("--depths is for --devices");
  if (arguments.devices.size() > 1 && !arguments.depthsFile.empty())
    return makeError("--depths is for one --devices");
  for (const std::string &text : arguments.devices) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos && models.size() > 1)
      return makeError("--devices '", text,
                       "' does not tell which model it is for; give "
                       "NAME=FILE");
    const std::string name = equals == std::string::npos
                                 ? models.front().name
                                 : text.substr(0, equals);
    const auto model =
        std::ranges::find(models, name, &ServedModelOptions::name);
    if (model == models.end())
      return makeError("--devices '", text, "' is for '", name,
                       "', which is no model");
    if (!model->devicesFile.empty())
      return makeError("--devices '", text, "': '", name,
                       "' was given devices before");
    model->devicesFile =
        equals == std::string::npos ? text : text.substr(equals + 1);
    model->depthsFile = arguments.depthsFile;
  }
  return {};
}

static Result<std::map<std::string, std::string>>
readAliases(const std::vector<std::string> &texts) {
  std::map<std::string, std::string> aliases;
  for (const std::string &text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      return makeError("--alias '", text, "' is not ALIAS=NAME");
    if (!aliases.emplace(text.substr(0, equals), text.substr(equals + 1))
             .second)
      return makeError("--alias '", text, "': this alias was given before");
  }
  return aliases;
}

static Result<ApiServerOptions> serverOptions(const ServeArguments &arguments) {
  ApiServerOptions options;
  options.http = arguments.http;
  HttpLimits &limits = options.http.limits;
  limits.allBodyBytes = std::max(limits.allBodyBytes, 2 * limits.bodyBytes);
  options.allowedHosts = AllowedHosts(arguments.allowedHosts);
  SANDWICH_ASSIGN_OR_RETURN(options.models, modelOptions(arguments));
  SANDWICH_RETURN_IF_ERROR(addDevices(arguments, options.models));
  SANDWICH_ASSIGN_OR_RETURN(options.aliases, readAliases(arguments.aliases));
  if (!arguments.apiKeyFile.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(options.keys,
                              ApiKeys::read(arguments.apiKeyFile));
  }
  if (arguments.logsRequests) {
    SANDWICH_ASSIGN_OR_RETURN(
        options.requestLog,
        RequestLog::open(arguments.logFile, arguments.logFormat));
  }
  options.logsPrompts = arguments.logsPrompts;
  options.stallSeconds = arguments.stallSeconds;
  options.log = [](LogLevel level, const std::string &message) {
    tool::writeLog((level == LogLevel::Warning ? "warning: " : "info: ") +
                   message);
  };
  return options;
}

/// Waits, and keeps an eye on the server, until somebody asks for the end,
/// `ended` is true, or nothing can be served any more.
static void watch(ApiServer &server, const std::atomic<bool> &ended) {
  constexpr std::chrono::milliseconds often(50);
  while (!interrupted() && !ended && server.check()) {
    server.tick();
    std::this_thread::sleep_for(often);
  }
}

static std::string numberText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", number);
  return text;
}

/// Ends the process if it has not ended by itself within `seconds`, for what is
/// to be finished, and some more, for the step under way then and all that ends
/// behind it: one that never does would keep it for ever.
static void leaveWithin(double seconds) {
  constexpr double patience = 30;
  std::thread([seconds] {
    (void)blockSignals();
    std::this_thread::sleep_for(
        std::chrono::duration<double>(seconds + patience));
    tool::writeLog("error: something that is under way does not end; leaving "
                   "without it");
    std::_Exit(1);
  }).detach();
}

static Status serve(ServeArguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(ApiServerOptions options, serverOptions(arguments));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<ApiServer> server,
                            ApiServer::create(std::move(options)));
  catchInterrupts();
  tool::writeLog("info: listening at " + server->address());
  if (server->isOpenToAll())
    tool::writeLog("warning: whoever reaches this address can use the models; "
                   "with --api-key-file only who has a key can");

  Status loaded;
  std::atomic<bool> done = false;
  std::thread loader([&] {
    (void)blockSignals();
    runCatching(
        "load", [&] { loaded = server->load(); },
        [&](const char *reason) { loaded = makeError(reason); });
    done = true;
  });
  watch(*server, done);
  if (!done) {
    // Models that are ready finish what they have begun.
    leaveWithin(arguments.drainSeconds);
    (void)server->drain(arguments.drainSeconds);
    server->stop();
    tool::writeLog("info: ended while loading");
    std::_Exit(0);
  }
  loader.join();
  if (!loaded) {
    // Those of models that were ready have their errors when this returns.
    leaveWithin(0);
    (void)server->drain(0);
    return loaded;
  }
  tool::writeLog("info: ready at " + server->address());

  const std::atomic<bool> never = false;
  watch(*server, never);
  if (Status served = server->check(); !served) {
    // Requests have their errors when this returns. Whoever has started the
    // server is told by its status that it is to be started again.
    leaveWithin(0);
    (void)server->drain(0);
    return served;
  }
  tool::writeLog("info: shutting down: no more requests are taken, and those "
                 "that run have " +
                 numberText(arguments.drainSeconds) +
                 " s; a second signal ends at once");
  leaveWithin(arguments.drainSeconds);
  if (!server->drain(arguments.drainSeconds))
    tool::writeLog("warning: some requests did not end in time, and were told "
                   "so");
  server.reset();
  tool::writeLog("info: ended");
  return {};
}

static void addNetworkOptions(CLI::App &command, ServeArguments &arguments) {
  HttpServerOptions &http = arguments.http;
  auto *group = command.add_option_group("Network");
  group->add_option("--host", http.host, "The address to listen at")
      ->capture_default_str();
  group->add_option("--port", http.port, "The port; 0: any that is free")
      ->type_name("N")
      ->capture_default_str();
  group
      ->add_option("--unix-socket", http.unixSocket,
                   "Listens at a socket of the file system instead")
      ->type_name("PATH")
      ->excludes("--host")
      ->excludes("--port");
  group
      ->add_option("--api-key-file", arguments.apiKeyFile,
                   "A file with a key on each line; requests need one of them "
                   "for everything but /health and /ready")
      ->type_name("FILE");
  group
      ->add_option(
          "--allowed-host", arguments.allowedHosts,
          "A name that the server may be asked by where it needs no "
          "key, beside localhost and addresses, which are all that "
          "clients on this machine may use otherwise; '*' for any; may "
          "be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME");
  HttpLimits &limits = http.limits;
  group
      ->add_option("--max-connections", limits.connections,
                   "At a time; one more gets 503")
      ->check(CLI::Range(size_t{1}, size_t{1} << 20))
      ->type_name("N")
      ->capture_default_str();
  const auto addSize = [&](const char *name, auto &bytes, const char *help) {
    group
        ->add_option_function<std::string>(
            name,
            [&bytes, name](const std::string &text) {
              const std::optional<uint64_t> size = parseBytes(text);
              if (!size || *size < 1024 || *size > (uint64_t{1} << 31))
                throw CLI::ValidationError(
                    name, "'" + text + "' is no size from 1KiB to 2GiB");
              bytes =
                  static_cast<std::remove_reference_t<decltype(bytes)>>(*size);
            },
            help + (" (default: " + formatBytes(bytes) + ")"))
        ->type_name("SIZE");
  };
  addSize("--max-header", limits.headerBytes,
          "Of a request's headers; more gets 431");
  addSize("--max-body", limits.bodyBytes, "Of a request's body; more gets 413");
  addSize("--max-unread", limits.unreadBytes,
          "Of an answer that its client does not read; more ends it");
  const auto addSeconds = [&](const char *name, double &seconds,
                              const char *help) {
    group->add_option(name, seconds, help)
        ->check(tool::numberRange(1e-3, 1e6))
        ->type_name("S")
        ->capture_default_str();
  };
  addSeconds("--header-seconds", limits.headerSeconds,
             "For a request's headers, from their first byte on");
  addSeconds("--body-seconds", limits.bodySeconds, "For a request's body");
  addSeconds("--idle-seconds", limits.idleSeconds,
             "That a connection may wait for its next request");
  addSeconds("--write-seconds", limits.writeSeconds,
             "For a client to take a piece of its answer");
  addSeconds("--heartbeat-seconds", limits.heartbeatSeconds,
             "After which a stream says that it still waits");
}

static void addServingOptions(CLI::App &command, ServeArguments &arguments) {
  auto *group = command.add_option_group("Serving");
  group
      ->add_option("--alias", arguments.aliases,
                   "Another name for a model; may be repeated")
      ->allow_extra_args(false)
      ->type_name("ALIAS=NAME");
  group
      ->add_option("--devices", arguments.devices,
                   "What embeds for the model NAME, this CPU among it or not: "
                   "accelerators behind other servers first, the CPU for what "
                   "finds their queues full (docs/Serving.md)")
      ->allow_extra_args(false)
      ->type_name("[NAME=]FILE.json");
  group
      ->add_option(
          "--depths", arguments.depthsFile,
          "Where the depths of their queues are kept, so that the next "
          "start need not measure them")
      ->check(findOutputNameProblem)
      ->type_name("FILE.json");
  group
      ->add_option("--context-length", arguments.contextLength,
                   "Tokens of a prompt and its text together (default: as the "
                   "model has it)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 31))
      ->type_name("N");
  group
      ->add_option("--batch", arguments.batch,
                   "Texts that are generated at a time (default: as many as a "
                   "step of the artifact takes)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{SANDWICH_MAX_STEP_TOKENS}))
      ->type_name("N");
  group
      ->add_option("--max-waiting", arguments.scheduling.maxWaitingRequests,
                   "Requests that may wait; one more gets 429")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N")
      ->capture_default_str();
  group
      ->add_option("--max-waiting-tokens",
                   arguments.scheduling.maxWaitingTokens,
                   "Tokens of the prompts that may wait, at least a context")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
  const CLI::Validator positive = tool::numberRange(1e-6, 1e9);
  group
      ->add_option("--ttft-slo", arguments.firstTokenObjective,
                   "Milliseconds to the first token; who would wait longer "
                   "gets 429 at once")
      ->check(positive)
      ->type_name("MS");
  group
      ->add_option("--tpot-slo", arguments.tokenObjective,
                   "Milliseconds from one token to the next that prompts of "
                   "others leave")
      ->check(positive)
      ->type_name("MS");
  group->add_flag("!--no-prefix-cache", arguments.prefixCache,
                  "Keeps no KV cache blocks for prompts that begin alike");
}

static void addOperationOptions(CLI::App &command, ServeArguments &arguments) {
  auto *group = command.add_option_group("Operation");
  const CLI::Validator time = tool::numberRange(0, 1e6);
  group
      ->add_option("--drain-seconds", arguments.drainSeconds,
                   "For requests to end after SIGTERM or Ctrl-C")
      ->check(time)
      ->type_name("S")
      ->capture_default_str();
  group
      ->add_option("--restarts", arguments.restarts,
                   "How often ranks that failed are started again; 0: never")
      ->type_name("N")
      ->capture_default_str();
  group
      ->add_option("--stall-seconds", arguments.stallSeconds,
                   "After so long without a step, while requests wait for one, "
                   "/health fails and the log says so")
      ->check(tool::numberRange(0.1, 1e6))
      ->type_name("S")
      ->capture_default_str();
  group
      ->add_option("--log-file", arguments.logFile,
                   "Where the lines of requests go (default: standard error)")
      ->type_name("FILE");
  group
      ->add_option_function<std::string>(
          "--log-format",
          [&arguments](const std::string &name) {
            arguments.logFormat =
                name == "json" ? LogFormat::Json : LogFormat::Text;
          },
          "Of the lines of requests (default: text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("text|json");
  group->add_flag("!--no-log-requests", arguments.logsRequests,
                  "No lines for requests");
  group->add_flag("--log-prompts", arguments.logsPrompts,
                  "Their lines have the prompts");
}

void tool::addServeCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App *command = app.add_subcommand(
      "serve", "Serves models over HTTP, as the API of OpenAI");
  command->footer(R"(Examples:
  sandwich-run serve llama.sandwich
  sandwich-run serve chat=llama.sandwich code=qwen.sandwich --alias gpt-4o=chat
  sandwich-run serve llama.sandwich --ttft-slo=2000 --tpot-slo=100 --port=8000
  sandwich-run serve llama.sandwich --host=0.0.0.0 --api-key-file=keys.txt

  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \
      -d '{"messages": [{"role": "user", "content": "Hello"}], "stream": true}'

GET / is a page to try it. /v1/models, /v1/completions, /v1/chat/completions,
/tokenize and /detokenize are the API; /health, /ready, /metrics (Prometheus),
/status and /version tell how it is. docs/Serving.md has the whole of it.

It answers from the start: /health at once, /ready when all models are loaded.
SIGTERM or Ctrl-C lets the requests that run finish, within --drain-seconds;
the second one ends at once. There is no TLS: put a proxy in front.

Beside the limits above: bodies that are being received have 1 GiB together, or
two of --max-body; more get 503. 512 requests, or 256 MiB of them, may wait to
be read; more get 429.)");
  command
      ->add_option("ARTIFACT", arguments->artifacts,
                   "Folders that sandwich-compile wrote. A model is called as "
                   "its folder, without .sandwich, or NAME of NAME=ARTIFACT")
      ->required();
  addNetworkOptions(*command, *arguments);
  addServingOptions(*command, *arguments);
  addOperationOptions(*command, *arguments);
  addSpeculationOptions(*command, arguments->speculation);
  addEngineOptions(*command, arguments->engine);
  command->callback([arguments, &action] {
    if (arguments->artifacts.size() > 1 &&
        (arguments->engine.mpi || arguments->engine.plan))
      throw CLI::ValidationError("--mpi and --plan are for one model");
    action = [arguments] {
      return runOnHosts(arguments->engine,
                        splitName(arguments->artifacts.front()).second,
                        [&] { return serve(*arguments); });
    };
  });
}
