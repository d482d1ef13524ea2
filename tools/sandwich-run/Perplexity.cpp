//===- Perplexity.cpp - sandwich-run perplexity ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Hosts.h"
#include "Terminal.h"

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Runtime/Measurement/Perplexity.h"
#include "sandwich/Runtime/Text/ArtifactTokenizer.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/Json.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

using namespace sandwich;

namespace {
struct Arguments {
  std::string artifact;
  std::string text;
  std::optional<uint64_t> window, stride;
  bool json = false;
  tool::EngineArguments engine;
};
} // namespace

/// Of a text whose perplexity is measured.
static constexpr size_t maxTextBytes = size_t{1} << 30;

/// The ids of the file's text, at least two.
static Result<std::vector<int32_t>> readTokens(const Arguments &arguments,
                                               const Artifact &artifact) {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Tokenizer> tokenizer,
                            loadTokenizer(artifact));
  if (!tokenizer)
    return makeError(arguments.artifact,
                     ": has no tokenizer.json, so it cannot read text");
  SANDWICH_ASSIGN_OR_RETURN(std::string text,
                            tool::readInput(arguments.text, maxTextBytes));
  Result<std::vector<int32_t>> ids = tokenizer->encode(text);
  if (!ids)
    return ids.error().inContext(arguments.text);
  if (ids->size() < 2)
    return makeError(arguments.text, ": has ", ids->size(),
                     " tokens; perplexity needs at least 2");
  return ids;
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact));
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                            readTokens(arguments, artifact));
  constexpr uint64_t usualWindow = 512;
  const uint64_t context = artifact.manifest().model().context_length();
  const uint64_t window =
      arguments.window.value_or(std::min(usualWindow, context));
  const uint64_t stride =
      arguments.stride.value_or(std::max<uint64_t>(window / 2, 1));
  if (window < 2 || window > context)
    return makeError("--window: ", window,
                     " tokens; windows have 2 to the context's ", context);
  if (stride > window)
    return makeError("--stride: ", stride, " is more than the window's ",
                     window);
  const std::vector<PerplexityWindow> windows =
      perplexityWindows(tokens.size(), window, stride);

  catchInterrupts();
  EngineOptions options;
  options.requiredTokens = std::min<uint64_t>(window + 1, context);
  options.kvCacheTokens = options.requiredTokens;
  SANDWICH_RETURN_IF_ERROR(arguments.engine.apply(options));
  tool::connectToTerminal(options);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds silence(5);
  Clock::time_point told = Clock::now();
  SANDWICH_ASSIGN_OR_RETURN(
      const Perplexity perplexity,
      measurePerplexity(
          *engine, tokens, windows, [&](uint64_t scored) -> Status {
            if (interrupted())
              return makeError("interrupted");
            if (Clock::now() - told < silence)
              return {};
            told = Clock::now();
            tool::writeLog("info: scored " + std::to_string(scored) + " of " +
                           std::to_string(tokens.size() - 1) + " tokens");
            return {};
          }));
  if (arguments.json)
    return tool::writeJson({{"perplexity", perplexity.value()},
                            {"error", perplexity.error()},
                            {"nats_per_token", perplexity.meanNats},
                            {"tokens", perplexity.tokens},
                            {"window", window},
                            {"stride", stride}});
  char line[200];
  std::snprintf(
      line, sizeof(line),
      "perplexity %.4f +/- %.4f (%llu tokens, %.4f nats each; windows "
      "of %llu, stride %llu)\n",
      perplexity.value(), perplexity.error(),
      static_cast<unsigned long long>(perplexity.tokens), perplexity.meanNats,
      static_cast<unsigned long long>(window),
      static_cast<unsigned long long>(stride));
  return writeStandardOutput(line);
}

void tool::addPerplexityCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "perplexity", "Measures how well a model predicts a text");
  command->footer(R"(Examples:
  sandwich-run perplexity llama.sandwich --text wiki.test.raw
  sandwich-run perplexity llama.sandwich --text book.txt --window 2048 --json

Perplexity is e to the mean of the tokens' negative log-probabilities; less is
better. The text is fed in windows, each STRIDE tokens after the one before; what
a window shares with the one before it is context and not scored again. Compare
models by the same text, window, stride and tokenizer only.)");
  addArtifactArgument(*command, arguments->artifact);
  command
      ->add_option("--text", arguments->text,
                   "The text, UTF-8; - is standard input")
      ->required()
      ->type_name("FILE");
  const CLI::Range positive(uint64_t{1}, uint64_t{1} << 40);
  command
      ->add_option("--window", arguments->window,
                   "Tokens of a window (default: 512, at most the context)")
      ->check(positive)
      ->type_name("N");
  command
      ->add_option("--stride", arguments->stride,
                   "Tokens from one window to the next (default: half of a "
                   "window)")
      ->check(positive)
      ->type_name("N");
  command->add_flag("--json", arguments->json, "Prints JSON");
  addEngineOptions(*command, arguments->engine);
  command->callback([arguments, &action] {
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
