//===- Bench.cpp - sandwich-run bench -------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Runtime/Benchmark.h"

#include <cstdio>
#include <memory>

using namespace sandwich;

namespace {
struct Arguments {
  std::string artifact;
  BenchmarkOptions benchmark;
  std::optional<WeightPlacement> weights;
  bool json = false;
};
} // namespace

static Status printLine(const BenchmarkResult &result) {
  char line[200];
  std::snprintf(line, sizeof(line), "%-8s %10.2f +- %.2f tokens/s",
                result.test.c_str(), result.tokensPerSecond,
                result.standardDeviation);
  std::string text = line;
  if (result.bandwidth) {
    std::snprintf(line, sizeof(line),
                  ", weights at %.1f GB/s, %.0f%% of the %.1f GB/s that plain "
                  "reading reaches",
                  result.bandwidth->weightsGBPerSecond,
                  100 * result.bandwidth->weightsGBPerSecond /
                      result.bandwidth->readGBPerSecond,
                  result.bandwidth->readGBPerSecond);
    text += line;
  }
  return writeStandardOutput(text + "\n");
}

static Json toJson(const BenchmarkResult &result) {
  Json json = {{"test", result.test},
               {"tokens_per_second", result.tokensPerSecond},
               {"stddev", result.standardDeviation},
               {"samples", result.samples}};
  if (result.bandwidth) {
    json["weights_gb_per_second"] = result.bandwidth->weightsGBPerSecond;
    json["read_gb_per_second"] = result.bandwidth->readGBPerSecond;
    json["bandwidth_ratio"] = result.bandwidth->weightsGBPerSecond /
                              result.bandwidth->readGBPerSecond;
  }
  return json;
}

/// The names of the tests that `results`, in the order of `benchmarkTests`, has
/// not reached: "pp512, tg32".
static std::string
testsWithoutResult(const BenchmarkOptions &options,
                   const std::vector<BenchmarkResult> &results) {
  std::string names;
  std::vector<BenchmarkTest> tests = benchmarkTests(options);
  for (size_t i = results.size(); i < tests.size(); ++i)
    names += (names.empty() ? "" : ", ") + tests[i].name();
  return names;
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact));
  EngineOptions options;
  SANDWICH_ASSIGN_OR_RETURN(
      options.kvCacheTokens,
      benchmarkTokens(artifact.manifest().model(), arguments.benchmark));
  options.weightPlacement = arguments.weights;
  tool::connectToTerminal(options);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));
  catchInterrupts();
  Status written;
  SANDWICH_ASSIGN_OR_RETURN(
      std::vector<BenchmarkResult> results,
      runBenchmark(
          *engine, arguments.benchmark,
          [&](const BenchmarkResult &result) {
            if (!arguments.json && written)
              written = printLine(result);
          },
          [&] { return interrupted() || outputClosed() || !written; }));
  SANDWICH_RETURN_IF_ERROR(written);
  // Whatever was measured is printed, and then what was not.
  std::string missing =
      interrupted() ? testsWithoutResult(arguments.benchmark, results) : "";
  Status complete;
  if (!missing.empty())
    complete = makeError("interrupted; these tests were not run: ", missing);
  if (!arguments.json)
    return complete;
  Json list = Json::array();
  for (const BenchmarkResult &result : results)
    list.push_back(toJson(result));
  const proto::Manifest &manifest = engine->artifact().manifest();
  SANDWICH_RETURN_IF_ERROR(tool::writeJson(
      {{"model", manifest.model().name()},
       {"dtype", manifest.target().dtype()},
       {"target", manifest.target().name()},
       {"prefill_threads", engine->artifact().prefill().threads()},
       {"decode_threads", engine->artifact().decode().threads()},
       {"decode_weight_bytes", decodeWeightBytes(manifest)},
       {"repetitions", arguments.benchmark.repetitions},
       {"interrupted", !missing.empty()},
       {"results", list}}));
  return complete;
}

/// `0` leaves a kind of test out.
static void dropZeros(std::vector<uint64_t> &lengths) {
  std::erase(lengths, 0u);
}

void tool::addBenchCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "bench", "Measures tokens per second of prompts and of generation");
  command->footer(R"(Example:
  sandwich-run bench llama.sandwich -p 128,512 -n 32 -r 5

ppN is a prompt of N tokens, tgN the generation of N tokens one by one; each
repetition starts a new sequence, and one before the first is not counted.
tokens/s are mean and standard deviation. Ctrl-C stops after the current
repetition: what was measured is printed, and the exit status is 1. Beside tgN stands how fast the
weights were read, and how fast the same threads read the same memory when
they do nothing else, measured in turn.)");
  addArtifactArgument(*command, arguments->artifact);
  BenchmarkOptions &benchmark = arguments->benchmark;
  addListOption(*command, "-p,--prompt-tokens", benchmark.promptLengths, 0,
                "Prompt lengths; 0: none. Default: 16,128,512");
  addListOption(*command, "-n,--generated-tokens", benchmark.generatedTokens, 0,
                "Numbers of tokens to generate; 0: none. Default: 32");
  command
      ->add_option("-r,--repetitions", benchmark.repetitions,
                   "How often each test is measured")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N")
      ->capture_default_str();
  addWeightsOption(*command, arguments->weights);
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of lines");
  command->callback([arguments, &action] {
    dropZeros(arguments->benchmark.promptLengths);
    dropZeros(arguments->benchmark.generatedTokens);
    if (benchmarkTests(arguments->benchmark).empty())
      throw CLI::ValidationError("there is nothing to measure; give -p or -n a "
                                 "number above 0");
    action = [arguments] { return run(*arguments); };
  });
}
