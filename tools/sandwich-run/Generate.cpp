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
#include "Terminal.h"

#include "sandwich/Runtime/Generation/Generation.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/CheckedMath.h"

#include <cstdio>
#include <memory>
#include <span>

using namespace sandwich;

namespace {
struct Arguments {
  std::string artifact;
  std::string prompt;
  std::optional<std::string> promptFile;
  std::vector<std::string> tokenIds;
  bool parseSpecialTokens = false;
  GenerationOptions generation;
  tool::EngineArguments engine;
  bool json = false;
};

/// Prints the text that continues a prompt as it is made; where there is no
/// tokenizer, prints token ids.
class TextStream {
public:
  TextStream(const std::optional<Tokenizer> &tokenizer,
             std::span<const int32_t> prompt, bool prints)
      : prints(prints) {
    if (!tokenizer)
      return;
    decoder.emplace(*tokenizer, /*skipSpecialTokens=*/true);
    decoder->skip(prompt);
  }

  Status add(int32_t token) {
    if (decoder)
      return append(decoder->decode(token));
    if (!prints)
      return {};
    // Without a tokenizer there are only ids, which are no text.
    if (any)
      SANDWICH_RETURN_IF_ERROR(writeStandardOutput(" "));
    any = true;
    return writeStandardOutput(std::to_string(token));
  }

  Status finish() {
    if (decoder)
      SANDWICH_RETURN_IF_ERROR(append(decoder->flush()));
    return prints ? writeStandardOutput("\n") : Status();
  }

  const std::string &text() const { return made; }

private:
  Status append(const std::string &piece) {
    made += piece;
    return prints ? writeStandardOutput(piece) : Status();
  }

  std::optional<StreamingDecoder> decoder;
  std::string made;
  bool prints;
  bool any = false;
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

static std::string summary(const GenerationStatistics &statistics) {
  char line[200];
  double perToken = statistics.timePerOutputTokenMs;
  std::snprintf(line, sizeof(line),
                "%llu prompt tokens, TTFT %.1f ms; %zu tokens generated, TPOT "
                "%.2f ms, %.2f tokens/s (%s)",
                static_cast<unsigned long long>(statistics.promptTokens),
                statistics.timeToFirstTokenMs, statistics.tokens.size(),
                perToken, perToken > 0 ? 1000.0 / perToken : 0.0,
                stopReasonName(statistics.stopReason));
  return line;
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
  options.kvCacheTokens = std::min<uint64_t>(
      model.context_length(),
      checkedAdd<uint64_t>(prompt.size(), arguments.generation.maxTokens)
          .value_or(model.context_length()));
  options.requiredTokens = prompt.size();
  SANDWICH_RETURN_IF_ERROR(arguments.engine.apply(options));
  tool::connectToTerminal(options);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));

  catchInterrupts();
  Sequence sequence = engine->newSequence();
  TextStream stream(tokenizer, prompt, !arguments.json);
  Status written;
  SANDWICH_ASSIGN_OR_RETURN(GenerationStatistics statistics,
                            generate(
                                *engine, sequence, prompt, arguments.generation,
                                [&](int32_t token) {
                                  written = stream.add(token);
                                  return written && !outputClosed();
                                },
                                interrupted));
  SANDWICH_RETURN_IF_ERROR(written);
  SANDWICH_RETURN_IF_ERROR(stream.finish());
  if (interrupted())
    tool::writeLog("info: interrupted");
  tool::writeLog("info: " + summary(statistics));
  if (!arguments.json)
    return {};
  return tool::writeJson(
      {{"prompt_tokens", statistics.promptTokens},
       {"tokens", statistics.tokens},
       {"text", stream.text()},
       {"ttft_ms", statistics.timeToFirstTokenMs},
       {"tpot_ms", statistics.timePerOutputTokenMs},
       {"tokens_per_second", statistics.timePerOutputTokenMs > 0
                                 ? 1000.0 / statistics.timePerOutputTokenMs
                                 : 0.0},
       {"stop_reason", stopReasonName(statistics.stopReason)}});
}

void tool::addGenerateCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "generate", "Continues a prompt and prints the text as it is made");
  command->footer(R"(Examples:
  sandwich-run generate tiny.sandwich --prompt "Once upon a time"
  sandwich-run generate tiny.sandwich --prompt "Foo is" --temperature 0.8 \
      --top-p 0.95 --seed 7
  sandwich-run generate tiny.sandwich --token-ids 1,15043 --max-tokens 8 --json

Special tokens written out in the prompt, such as </s>, are text like any other
unless --parse-special is given, which is for prompts that follow a template.
The text goes to standard output and the timing to standard error. TTFT is the
time to the first token, TPOT the mean time of each later one. Ctrl-C stops
after the current token.)");
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
  GenerationOptions &generation = arguments->generation;
  command
      ->add_option("--max-tokens", generation.maxTokens,
                   "Stops after so many tokens")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--temperature", generation.sampling.temperature,
                   "0 always takes the most probable token; higher is more "
                   "varied")
      ->type_name("T")
      ->capture_default_str();
  command
      ->add_option("--top-k", generation.sampling.topK,
                   "Chooses among the K most probable tokens; 0: all")
      ->type_name("K")
      ->capture_default_str();
  command
      ->add_option("--top-p", generation.sampling.topP,
                   "Chooses among the most probable tokens that together "
                   "reach probability P")
      ->type_name("P")
      ->capture_default_str();
  addSeedOption(*command, generation.sampling.seed);
  command->add_flag("--ignore-eos", generation.sampling.ignoreEndOfText,
                    "Goes on when the model ends its text");
  addEngineOptions(*command, arguments->engine);
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of the text");
  command->callback([arguments, &action] {
    if (Status valid = arguments->generation.sampling.validate(); !valid)
      throw CLI::ValidationError(valid.error().message);
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
