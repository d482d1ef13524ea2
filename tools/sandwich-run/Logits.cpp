//===- Logits.cpp - sandwich-run logits -----------------------------------===//
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

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

using namespace sandwich;

static_assert(std::endian::native == std::endian::little,
              "the file is little-endian as the memory is");

namespace {
struct Arguments {
  std::string artifact;
  std::vector<std::string> tokenIds;
  std::string out;
  /// Tokens of each piece; the last number holds for all that follow. None: as
  /// many as a step takes.
  std::vector<uint64_t> chunks;
  tool::EngineArguments engine;
};
} // namespace

/// Error: one of `logits`, [rows, `vocabSize`], of the tokens from `position`
/// on is NaN or plus infinity; minus infinity bars a token.
static Status checkLogits(std::span<const float> logits, uint64_t position,
                          uint64_t vocabSize) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // False for NaN as well.
  auto bad = std::ranges::find_if_not(
      logits, [](float logit) { return logit < infinity; });
  if (bad == logits.end())
    return {};
  const auto index = static_cast<uint64_t>(bad - logits.begin());
  return makeError("the logit of token ", index % vocabSize, " at position ",
                   position + index / vocabSize, " is ", *bad,
                   "; the model computed no finite number");
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact));
  const proto::ModelConfiguration &model = artifact.manifest().model();
  SANDWICH_ASSIGN_OR_RETURN(
      std::vector<int32_t> tokens,
      tool::checkTokenIds(arguments.tokenIds, model.vocab_size()));
  SANDWICH_RETURN_IF_ERROR(checkPromptLength(model, tokens.size()));
  SANDWICH_RETURN_IF_ERROR(checkOutputPlace(arguments.out, {}));
  // From here on there is a file to remove.
  catchInterrupts();
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file,
                            PendingFile::create(arguments.out));

  EngineOptions options;
  options.kvCacheTokens = tokens.size();
  options.requiredTokens = tokens.size();
  SANDWICH_RETURN_IF_ERROR(arguments.engine.apply(options));
  tool::connectToTerminal(options);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));
  Sequence sequence = engine->newSequence();
  const auto feed = [&](size_t first, size_t count, uint64_t chunk) {
    return engine->feed(
        sequence, std::span(tokens).subspan(first, count), LogitRows::All,
        [&](std::span<const float> logits, uint64_t position,
            uint64_t) -> Status {
          if (interrupted())
            return makeError("interrupted before ", arguments.out,
                             " was complete; it was not written");
          SANDWICH_RETURN_IF_ERROR(
              checkLogits(logits, first + position, engine->vocabSize()));
          return file.write(std::as_bytes(logits));
        },
        chunk);
  };
  const std::vector<uint64_t> &chunks = arguments.chunks;
  size_t fed = 0;
  for (size_t i = 0; fed < tokens.size(); ++i) {
    const uint64_t chunk =
        chunks.empty() ? 0 : chunks[std::min(i, chunks.size() - 1)];
    size_t count = tokens.size() - fed;
    if (i + 1 < chunks.size())
      count = std::min<uint64_t>(chunk, count);
    SANDWICH_RETURN_IF_ERROR(feed(fed, count, chunk));
    fed += count;
  }
  SANDWICH_RETURN_IF_ERROR(file.commit());
  tool::writeLog("info: wrote " + arguments.out + ": float32 [" +
                 std::to_string(tokens.size()) + ", " +
                 std::to_string(engine->vocabSize()) + "]");
  return {};
}

void tool::addLogitsCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "logits", "Writes the logits after every token of a prompt");
  command->footer(R"(Example:
  sandwich-run logits tiny.sandwich --token-ids 1,2,3 --out logits.bin
  python3 -c 'import numpy; print(numpy.fromfile("logits.bin", "<f4"))'

The file holds little-endian float32 numbers of the shape [tokens, vocabulary],
where one is NaN or plus infinity, that is an error, and nothing is written.)");
  addArtifactArgument(*command, arguments->artifact);
  addTokenIdsOption(*command, arguments->tokenIds)->required();
  command->add_option("--out", arguments->out, "The file to write")
      ->check(findOutputNameProblem)
      ->required()
      ->type_name("FILE");
  addListOption(*command, "--chunk", arguments->chunks, 1,
                "Feeds the prompt in pieces of N tokens, or of each of the "
                "numbers in turn, of which the last holds for the rest; a "
                "piece of one token runs the decode phase. By default as "
                "large as the plan takes")
      ->type_name("N[,N...]");
  addEngineOptions(*command, arguments->engine);
  command->callback([arguments, &action] {
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
