//===- Generate.cpp - sandwich-run generate -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Hosts.h"
#include "SamplingArguments.h"
#include "SpeculationArguments.h"
#include "Terminal.h"

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Runtime/Text/ArtifactTokenizer.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Service/Service.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

using namespace sandwich;

namespace {
struct Arguments {
  std::string artifact;
  std::string prompt;
  std::optional<std::string> promptFile;
  std::vector<std::string> tokenIds;
  bool parseSpecialTokens = false;
  uint64_t maxTokens = 128;
  uint32_t continuations = 1;
  tool::SamplingArguments sampling;
  tool::SpeculationArguments speculation;
  tool::EngineArguments engine;
  bool json = false;
};

using Clock = std::chrono::steady_clock;

/// A token, and when it was chosen.
struct TimedToken {
  GeneratedToken generated;
  Clock::time_point time;
};

/// Brings the tokens of a request from the service's thread to the one that
/// prints them: a reader that is slow must not delay steps.
class TokenQueue {
public:
  /// What fills `queue`, which lives as long as the request does.
  static GenerationCallbacks callbacks(std::shared_ptr<TokenQueue> queue) {
    return {[queue](const GeneratedToken &token) {
              std::lock_guard lock(queue->mutex);
              queue->tokens.push_back({token, Clock::now()});
              queue->changed.notify_one();
            },
            [queue](const RequestEnd &reached) {
              std::lock_guard lock(queue->mutex);
              queue->end = reached;
              queue->changed.notify_one();
            }};
  }

  /// The tokens that have come, after waiting for one, for the end, or for
  /// `patience`.
  std::deque<TimedToken> take(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, patience, [&] { return end || !tokens.empty(); });
    return std::exchange(tokens, {});
  }

  /// How the request ended, if it has and all its tokens were taken.
  std::optional<RequestEnd> ended() {
    std::lock_guard lock(mutex);
    return tokens.empty() ? end : std::nullopt;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<TimedToken> tokens;
  std::optional<RequestEnd> end;
};

/// One text that continues the prompt.
struct Continuation {
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<SampledToken> sampled;
  /// Not before the text has ended.
  std::optional<FinishReason> finish;
  /// When its first and its last token were chosen, one that ends the text
  /// among them, and how many those are.
  Clock::time_point firstToken, lastToken;
  uint64_t steps = 0;
};
} // namespace

/// Longest prompt file, in bytes.
static constexpr size_t maxPromptBytes = size_t{1} << 30;

static Result<std::vector<int32_t>>
readPrompt(const Arguments &arguments, const Artifact &artifact,
           const std::optional<Tokenizer> &tokenizer) {
  if (!arguments.tokenIds.empty())
    return tool::checkTokenIds(arguments.tokenIds,
                               artifact.manifest().model().vocab_size());
  if (!tokenizer)
    return makeError(artifact.path(),
                     ": has no tokenizer.json, so it cannot read text; give "
                     "the prompt as --token-ids");
  std::string text = arguments.prompt;
  if (arguments.promptFile) {
    SANDWICH_ASSIGN_OR_RETURN(
        text, tool::readInput(*arguments.promptFile, maxPromptBytes));
  }
  Result<std::vector<int32_t>> ids = tokenizer->encode(
      text, {.addSpecialTokens = true,
             .parseSpecialTokens = arguments.parseSpecialTokens});
  if (!ids)
    return ids.error().inContext("the prompt");
  if (ids->empty())
    return makeError("the prompt is empty; give at least one character");
  return ids;
}

namespace {
/// A request on its way: what came of it, and what of that is printed.
class Generation {
public:
  Generation(Service &service, const Arguments &arguments, uint64_t maxTokens)
      : service(service), arguments(arguments), maxTokens(maxTokens),
        continuations(arguments.continuations) {}

  /// Returns when all texts have ended, or the user wants no more. Errors: what
  /// `Service::submit` refuses, of the request, or standard output's.
  Status run(std::vector<int32_t> prompt);

  std::string summary() const;
  Json toJson() const;

private:
  Status add(const TimedToken &token);
  /// Prints a piece of the first text, or ids where there is no tokenizer.
  Status print(const Continuation &continuation, const std::string &piece,
               bool hasToken);
  /// The texts that were not printed as they were made.
  Status printOthers();
  const char *stopReason(const Continuation &continuation) const;
  double firstTokenMs() const;
  double perTokenMs() const;

  Service &service;
  const Arguments &arguments;
  /// What the KV cache leaves of those asked for.
  const uint64_t maxTokens;
  uint64_t promptTokens = 0;
  Clock::time_point start;
  std::vector<Continuation> continuations;
};
} // namespace

Status Generation::run(std::vector<int32_t> prompt) {
  promptTokens = prompt.size();
  auto queue = std::make_shared<TokenQueue>();
  start = Clock::now();
  SANDWICH_ASSIGN_OR_RETURN(
      const RequestId id,
      service.submit({.prompt = std::move(prompt),
                      .maxTokens = maxTokens,
                      .continuations = arguments.continuations,
                      .sampling = arguments.sampling.sampling,
                      .stop = arguments.sampling.stop},
                     TokenQueue::callbacks(queue)));
  std::optional<RequestEnd> end;
  for (bool wanted = true; !end; end = queue->ended()) {
    // Short enough that Ctrl-C need not wait.
    for (const TimedToken &token : queue->take(std::chrono::milliseconds(20)))
      if (wanted)
        SANDWICH_RETURN_IF_ERROR(add(token));
    if (wanted && (interrupted() || outputClosed())) {
      wanted = false;
      (void)service.cancel(id);
    }
  }
  if (!end->status && end->status.error().kind != ErrorKind::Cancelled)
    return end->status;
  return arguments.json ? Status() : printOthers();
}

Status Generation::add(const TimedToken &timed) {
  const GeneratedToken &generated = timed.generated;
  Continuation &continuation = continuations[generated.text];
  if (continuation.steps++ == 0)
    continuation.firstToken = timed.time;
  continuation.lastToken = timed.time;
  continuation.finish = generated.finish;
  continuation.text += generated.piece;
  const bool hasToken = generated.finish != FinishReason::EndOfText;
  if (hasToken) {
    continuation.tokens.push_back(generated.token.token);
    continuation.sampled.push_back(generated.token);
  }
  return generated.text == 0 && !arguments.json
             ? print(continuation, generated.piece, hasToken)
             : Status();
}

Status Generation::print(const Continuation &continuation,
                         const std::string &piece, bool hasToken) {
  if (service.tokenizer())
    return writeStandardOutput(piece);
  if (!hasToken)
    return {};
  return writeStandardOutput((continuation.tokens.size() > 1 ? " " : "") +
                             std::to_string(continuation.tokens.back()));
}

Status Generation::printOthers() {
  SANDWICH_RETURN_IF_ERROR(writeStandardOutput("\n"));
  for (size_t i = 1; i < continuations.size(); ++i) {
    std::string text = continuations[i].text;
    if (!service.tokenizer())
      for (int32_t token : continuations[i].tokens)
        text += (text.empty() ? "" : " ") + std::to_string(token);
    SANDWICH_RETURN_IF_ERROR(writeStandardOutput(
        "--- continuation " + std::to_string(i + 1) + "\n" + text + "\n"));
  }
  return {};
}

const char *Generation::stopReason(const Continuation &continuation) const {
  if (!continuation.finish)
    return "stopped";
  switch (*continuation.finish) {
  case FinishReason::EndOfText:
    return "end-of-text";
  case FinishReason::Stopped:
    return std::ranges::find(arguments.sampling.stop.tokens,
                             continuation.tokens.back()) ==
                   arguments.sampling.stop.tokens.end()
               ? "stop-string"
               : "stop-token";
  case FinishReason::MaxTokens:
    return maxTokens < arguments.maxTokens ? "cache-full" : "max-tokens";
  case FinishReason::ContextFull:
    return "context-full";
  }
  return "";
}

static double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double Generation::firstTokenMs() const {
  const Continuation &first = continuations.front();
  return first.steps > 0 ? milliseconds(first.firstToken - start) : 0;
}

double Generation::perTokenMs() const {
  double total = 0;
  uint64_t steps = 0;
  for (const Continuation &continuation : continuations)
    if (continuation.steps > 1) {
      total += milliseconds(continuation.lastToken - continuation.firstToken);
      steps += continuation.steps - 1;
    }
  return steps > 0 ? total / static_cast<double>(steps) : 0;
}

std::string Generation::summary() const {
  uint64_t tokens = 0;
  std::string reasons;
  for (const Continuation &continuation : continuations) {
    tokens += continuation.tokens.size();
    reasons += (reasons.empty() ? "" : ", ");
    reasons += stopReason(continuation);
  }
  const double perToken = perTokenMs();
  char line[200];
  std::snprintf(line, sizeof(line),
                "%llu prompt tokens, TTFT %.1f ms; %llu tokens generated, TPOT "
                "%.2f ms, %.2f tokens/s (",
                static_cast<unsigned long long>(promptTokens), firstTokenMs(),
                static_cast<unsigned long long>(tokens), perToken,
                perToken > 0 ? 1000.0 / perToken : 0.0);
  return line + reasons + ")";
}

/// The log-probabilities of each token, minus infinity as null.
static Json logProbabilities(const std::vector<SampledToken> &sampled) {
  Json list = Json::array();
  for (const SampledToken &token : sampled) {
    Json top = Json::array();
    for (const TokenLogProbability &each : token.top)
      top.push_back(
          {{"token", each.token}, {"log_probability", each.logProbability}});
    list.push_back({{"token", token.token},
                    {"log_probability", token.logProbability.value_or(0)},
                    {"top", std::move(top)}});
  }
  return list;
}

Json Generation::toJson() const {
  auto describe = [&](const Continuation &continuation) {
    Json json = {{"tokens", continuation.tokens},
                 {"text", continuation.text},
                 {"stop_reason", stopReason(continuation)}};
    if (arguments.sampling.sampling.logProbabilities)
      json["log_probabilities"] = logProbabilities(continuation.sampled);
    return json;
  };
  const double perToken = perTokenMs();
  Json json = {{"prompt_tokens", promptTokens}};
  json.update(describe(continuations.front()));
  json["ttft_ms"] = firstTokenMs();
  json["tpot_ms"] = perToken;
  json["tokens_per_second"] = perToken > 0 ? 1000.0 / perToken : 0.0;
  if (continuations.size() > 1) {
    json["continuations"] = Json::array();
    for (const Continuation &continuation : continuations)
      json["continuations"].push_back(describe(continuation));
  }
  return json;
}

/// Tokens that `continuations` texts behind a prompt may hold in a KV cache of
/// `blocks` blocks, its tokens among them; the last one needs no room. They
/// share the whole blocks of the prompt.
static uint64_t tokensOfEach(uint64_t blocks, uint64_t promptTokens,
                             uint64_t continuations) {
  const uint64_t shared =
      continuations > 1
          ? std::min(blocks, promptTokens / SANDWICH_KV_BLOCK_TOKENS)
          : 0;
  return (shared + (blocks - shared) / continuations) *
             SANDWICH_KV_BLOCK_TOKENS +
         1;
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Tokenizer> tokenizer,
                            loadTokenizer(artifact));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<int32_t> prompt,
                            readPrompt(arguments, artifact, tokenizer));
  const proto::ModelConfiguration &model = artifact.manifest().model();
  SANDWICH_RETURN_IF_ERROR(checkPromptLength(model, prompt.size()));

  EngineOptions options;
  const uint64_t tokens = std::min<uint64_t>(
      model.context_length(),
      checkedAdd<uint64_t>(prompt.size(), arguments.maxTokens)
          .value_or(model.context_length()));
  options.kvCacheTokens =
      checkedMultiply<uint64_t>(tokens, arguments.continuations)
          .value_or(tokens);
  options.maxSequences = arguments.continuations;
  options.requiredTokens = prompt.size();
  // There is nobody to share with.
  options.prefixCache = false;
  SANDWICH_RETURN_IF_ERROR(arguments.engine.apply(options));
  tool::connectToTerminal(options);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));
  ServiceOptions serving;
  // A request that is alone need not be planned for.
  serving.measuringSeconds = 0;
  serving.scheduling.maxWaitingTokens =
      std::max(serving.scheduling.maxWaitingTokens, engine->contextLength());
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> draft,
                            arguments.speculation.apply(serving, options));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Service> service,
                            Service::create(std::move(engine),
                                            std::move(tokenizer), serving,
                                            std::move(draft)));

  catchInterrupts();
  const uint64_t room = tokensOfEach(service->statistics().blockCount,
                                     prompt.size(), arguments.continuations);
  // With no room for one token, the service tells why.
  const uint64_t maxTokens =
      room > prompt.size() ? std::min(arguments.maxTokens, room - prompt.size())
                           : 1;
  Generation generation(*service, arguments, maxTokens);
  SANDWICH_RETURN_IF_ERROR(generation.run(std::move(prompt)));
  if (interrupted())
    tool::writeLog("info: interrupted");
  tool::writeLog("info: " + generation.summary());
  if (arguments.speculation.isOn())
    tool::writeLog("info: " +
                   tool::describe(service->statistics().scheduler.speculation));
  return arguments.json ? tool::writeJson(generation.toJson()) : Status();
}

void tool::addGenerateCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "generate", "Continues a prompt and prints the text as it is made");
  command->footer(R"(Examples:
  sandwich-run generate tiny.sandwich --prompt "Once upon a time"
  sandwich-run generate tiny.sandwich --prompt "Foo is" --temperature 0.8 \
      --top-p 0.95 --seed 7
  sandwich-run generate tiny.sandwich --prompt "Foo is" --temperature 1 -n 4 \
      --stop "." --logit-bias 15043=-inf
  sandwich-run generate tiny.sandwich --token-ids 1,15043 --max-tokens 8 --json

Special tokens written out in the prompt, such as </s>, are text like any other
unless --parse-special is given, which is for prompts that follow a template.
The text goes to standard output and the timing to standard error. TTFT is the
time to the first token, TPOT the mean time of each later one. Ctrl-C stops
after the current token. Of several continuations the first is printed as it is
made, the others behind it.

Adjustments of logits come first, then --min-p, --top-k and --top-p. With
--json, "tokens" has all but the model's token that ends a text, "stop_reason"
is end-of-text, stop-string, stop-token, max-tokens, context-full, cache-full or
stopped, and with -n above 1 there is one object for each of "continuations".)");
  addArtifactArgument(*command, arguments->artifact);
  auto *prompt = command->add_option_group("Prompt", "One of:");
  prompt->add_option("--prompt", arguments->prompt, "The text to continue");
  prompt
      ->add_option("--prompt-file", arguments->promptFile,
                   "A file with the text to continue; - is standard input")
      ->type_name("FILE");
  addTokenIdsOption(*prompt, arguments->tokenIds);
  prompt->require_option(1);
  command->add_flag("--parse-special", arguments->parseSpecialTokens,
                    "Takes special tokens written out in the prompt for those "
                    "tokens; only for text that no stranger wrote");
  command
      ->add_option("--max-tokens", arguments->maxTokens,
                   "Stops after so many tokens")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("-n,--continuations", arguments->continuations,
                   "Continues the prompt so many times; the seeds follow each "
                   "other")
      ->check(CLI::Range(uint32_t{1}, uint32_t{SANDWICH_MAX_STEP_TOKENS}))
      ->type_name("N")
      ->capture_default_str();
  addSamplingOptions(*command, arguments->sampling);
  CLI::Option *logProbabilities =
      command
          ->add_option("--logprobs",
                       arguments->sampling.sampling.logProbabilities,
                       "With --json: the log-probability of each token, and N "
                       "of the most probable ones with theirs")
          ->check(CLI::Range(uint32_t{0}, SamplingOptions::maxLogProbabilities))
          ->type_name("N");
  addSpeculationOptions(*command, arguments->speculation);
  addEngineOptions(*command, arguments->engine);
  logProbabilities->needs(command->add_flag(
      "--json", arguments->json, "Prints one JSON object instead of the text"));
  command->callback([arguments, &action] {
    finishSamplingOptions(arguments->sampling);
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
