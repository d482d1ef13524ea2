//===- BenchEmbed.cpp - sandwich-run bench-embed --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "ProfileTable.h"
#include "Terminal.h"

#include "sandwich/Runtime/Engine/EncoderEngine.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>

using namespace sandwich;
using Clock = std::chrono::steady_clock;

namespace {
struct Arguments {
  std::string artifact;
  std::vector<uint64_t> batches = {1, 8, 32};
  uint64_t tokens = 75;
  uint64_t repetitions = 5;
  uint64_t seed = 0;
  std::optional<WeightPlacement> weights;
  bool verify = false;
  bool profile = false;
  bool json = false;
};

/// Of one number of texts.
struct Measured {
  uint64_t texts;
  double seconds;
  double fastest, slowest;
  /// Of all batches that were measured.
  PhaseProfile profile;

  /// Floating-point operations of a batch, those of attention included.
  double flops() const {
    double all = 0;
    for (const OperationProfile &operation : profile.operations)
      all += operation.flops;
    return all / static_cast<double>(repetitions);
  }
  uint64_t repetitions;
};
} // namespace

/// A batch in steps that the engine takes.
static Status runAll(EncoderEngine &engine,
                     std::span<const std::vector<int32_t>> texts) {
  std::vector<EncoderInput> step;
  uint64_t tokens = 0;
  auto flush = [&]() -> Status {
    if (step.empty())
      return {};
    Result<std::span<const float>> rows =
        engine.run(step, EncoderOutput::Texts);
    step.clear();
    tokens = 0;
    return rows ? Status() : Status(rows.error());
  };
  for (const std::vector<int32_t> &text : texts) {
    if (tokens + text.size() > engine.maxTokens() ||
        step.size() == engine.maxTexts())
      SANDWICH_RETURN_IF_ERROR(flush());
    step.push_back({text});
    tokens += text.size();
  }
  return flush();
}

static Result<Measured> measure(EncoderEngine &engine, uint64_t texts,
                                const Arguments &arguments) {
  std::mt19937_64 random(arguments.seed + texts);
  std::vector<std::vector<int32_t>> batch(texts);
  for (std::vector<int32_t> &text : batch)
    for (uint64_t token = 0; token < arguments.tokens; ++token)
      text.push_back(
          static_cast<int32_t>(random() % engine.model().vocab_size()));
  std::vector<double> seconds;
  StepProfiler profiler(engine.phaseOf(EncoderOutput::Texts));
  // The first one is not counted.
  for (uint64_t i = 0; i <= arguments.repetitions; ++i) {
    if (interrupted())
      return makeError("interrupted");
    if (i == 1)
      engine.profileInto(&profiler);
    const Clock::time_point start = Clock::now();
    SANDWICH_RETURN_IF_ERROR(runAll(engine, batch));
    if (i > 0)
      seconds.push_back(secondsSince(start));
  }
  engine.profileInto(nullptr);
  const auto [fastest, slowest] = std::ranges::minmax(seconds);
  return Measured{texts,   median(seconds),    fastest,
                  slowest, profiler.profile(), arguments.repetitions};
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(
      Artifact artifact,
      Artifact::open(arguments.artifact, {.use = ModelUse::Encode}));
  EncoderEngineOptions options;
  options.weightPlacement = arguments.weights.value_or(WeightPlacement::Mapped);
  options.verifyWeights = arguments.verify;
  options.progress = tool::progressToTerminal();
  options.log = tool::logToTerminal();
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<EncoderEngine> engine,
      EncoderEngine::create(std::move(artifact), options));
  if (arguments.tokens > engine->contextLength())
    return makeError("texts of ", arguments.tokens,
                     " tokens are longer than the model's ",
                     engine->contextLength());
  catchInterrupts();
  Json results = Json::array();
  if (!arguments.json)
    std::printf("%10s %10s %12s %12s %12s %10s\n", "texts", "tokens",
                "ms a batch", "texts/s", "tokens/s", "GFLOP/s");
  for (uint64_t texts : arguments.batches) {
    SANDWICH_ASSIGN_OR_RETURN(Measured measured,
                              measure(*engine, texts, arguments));
    const auto count = static_cast<double>(texts);
    const double perSecond = count / measured.seconds;
    if (!arguments.json)
      std::printf("%10llu %10llu %12.2f %12.2f %12.0f %10.1f\n",
                  static_cast<unsigned long long>(texts),
                  static_cast<unsigned long long>(arguments.tokens),
                  measured.seconds * 1e3, perSecond,
                  perSecond * static_cast<double>(arguments.tokens),
                  measured.flops() / measured.seconds * 1e-9);
    std::fflush(stdout);
    if (arguments.profile && !arguments.json)
      SANDWICH_RETURN_IF_ERROR(tool::printProfile(measured.profile));
    Json result = {
        {"texts", texts},
        {"tokens", arguments.tokens},
        {"seconds", measured.seconds},
        {"fastest_seconds", measured.fastest},
        {"slowest_seconds", measured.slowest},
        {"texts_per_second", perSecond},
        {"tokens_per_second",
         perSecond * static_cast<double>(arguments.tokens)},
        {"gflop_per_second", measured.flops() / measured.seconds * 1e-9}};
    if (arguments.profile)
      result["profile"] = tool::toJson(measured.profile);
    results.push_back(std::move(result));
  }
  if (!arguments.json)
    return {};
  return tool::writeJson(Json{{"artifact", arguments.artifact},
                              {"threads", engine->team().size()},
                              {"repetitions", arguments.repetitions},
                              {"results", std::move(results)}});
}

void tool::addBenchEmbedCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "bench-embed", "Measures how fast a model embeds or scores batches");
  command->footer(R"(Example:
  sandwich-run bench-embed bge.sandwich --batches 1,8,32 --tokens 75

Texts are random tokens, the same for the same seed. Times are medians; one
batch before them is not counted.)");
  addArtifactArgument(*command, arguments->artifact);
  addListOption(*command, "--batches", arguments->batches, 1,
                "Texts of a batch")
      ->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "Tokens of each text")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("-r,--repetitions", arguments->repetitions,
                   "Batches that are measured")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
  addSeedOption(*command, arguments->seed);
  addWeightOptions(*command, arguments->weights, arguments->verify);
  command->add_flag("--profile", arguments->profile,
                    "Tells where the time goes, operation by operation");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of a table");
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
