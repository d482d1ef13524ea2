//===- Measurement.cpp - What measuring commands share --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measurement.h"

#include "Terminal.h"

#include "sandwich/Machine/Indexes.h"

using namespace sandwich;

/// "Prompt lengths; 0: none. Default: 16,128,512"
static std::string withDefault(const std::string &description,
                               const std::vector<uint64_t> &list) {
  std::string text = description + ". Default: ";
  for (size_t i = 0; i < list.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(list[i]);
  return text;
}

void tool::addMeasurementOptions(CLI::App &command,
                                 MeasurementArguments &arguments) {
  addArtifactArgument(command, arguments.artifact);
  BenchmarkOptions &benchmark = arguments.benchmark;
  addListOption(
      command, "-p,--prompt-tokens", benchmark.promptLengths, 0,
      withDefault("Prompt lengths; 0: none", benchmark.promptLengths));
  addListOption(command, "-n,--generated-tokens", benchmark.generatedTokens, 0,
                withDefault("Numbers of tokens to generate; 0: none",
                            benchmark.generatedTokens));
  command
      .add_option("-r,--repetitions", benchmark.repetitions,
                  "How often each test is measured")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N")
      ->capture_default_str();
  addListOption(command, "-c,--context", benchmark.contexts, 0,
                withDefault("Tokens in the sequence before it is generated to",
                            benchmark.contexts));
  addListOption(command, "-s,--sequences", benchmark.sequences, 0,
                withDefault("Sequences that are generated to together, a token "
                            "of each in every step",
                            benchmark.sequences));
  addEngineOptions(command, arguments.engine);
}

void tool::finishMeasurementOptions(MeasurementArguments &arguments) {
  // `0` leaves a kind of test out.
  std::erase(arguments.benchmark.promptLengths, 0u);
  std::erase(arguments.benchmark.generatedTokens, 0u);
  if (benchmarkTests(arguments.benchmark).empty())
    throw CLI::ValidationError("there is nothing to measure; give -p or -n a "
                               "number above 0");
}

Result<std::unique_ptr<Engine>>
tool::loadForMeasurement(const MeasurementArguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact));
  EngineOptions options;
  SANDWICH_ASSIGN_OR_RETURN(
      BenchmarkNeeds needs,
      benchmarkNeeds(artifact.manifest().model(), arguments.benchmark));
  options.kvCacheTokens = needs.allTokens;
  options.maxSequences = needs.sequences;
  options.requiredTokens = needs.tokens;
  SANDWICH_RETURN_IF_ERROR(arguments.engine.apply(options));
  connectToTerminal(options);
  return Engine::create(std::move(artifact), options);
}

Status tool::measurementComplete(const BenchmarkOptions &options,
                                 const std::vector<BenchmarkResult> &results) {
  if (!interrupted())
    return {};
  // Results are in the order of the tests.
  std::string missing;
  std::vector<BenchmarkTest> tests = benchmarkTests(options);
  for (size_t i = results.size(); i < tests.size(); ++i)
    missing += (missing.empty() ? "" : ", ") + tests[i].name();
  if (missing.empty())
    return {};
  return makeError("interrupted; these tests were not run: ", missing);
}

/// "decode   on CPUs 0 1 | 2 3", where the system says that the threads of each
/// rank are.
static std::string placementLine(const char *phase,
                                 const std::vector<RankPlacement> &ranks,
                                 TeamPlacement RankPlacement::*team) {
  std::string text = std::string(phase) + " on CPUs";
  const char *separator = "";
  for (const RankPlacement &rank : ranks) {
    text += separator;
    separator = " |";
    for (const std::vector<unsigned> &cpus : rank.*team)
      text += ' ' + (cpus.empty() ? "unknown"
                                  : formatIndexes({cpus.begin(), cpus.end()}));
  }
  return text + "\n";
}

std::string tool::describePlacement(const std::vector<RankPlacement> &ranks) {
  return placementLine("prefill ", ranks, &RankPlacement::prefill) +
         placementLine("decode  ", ranks, &RankPlacement::decode);
}

static Json toJson(const MemoryUse::Part &part) {
  return {{"bytes", part.bytes}, {"huge_page_bytes", part.inHugePages}};
}

Json tool::describeMeasurement(const Engine &engine,
                               const BenchmarkOptions &options,
                               bool interrupted) {
  const proto::Manifest &manifest = engine.artifact().manifest();
  Json ranks = Json::array();
  for (const RankPlacement &rank : engine.rankPlacement())
    ranks.push_back(
        {{"prefill_cores", rank.prefill}, {"decode_cores", rank.decode}});
  MemoryUse memory = engine.memoryUse();
  return {{"model", manifest.model().name()},
          {"dtype", manifest.target().dtype()},
          {"activations", manifest.target().activations()},
          {"kv_dtype", manifest.kv_cache().dtype()},
          {"target", manifest.target().name()},
          {"prefill_threads", engine.artifact().prefill().threads()},
          {"decode_threads", engine.artifact().decode().threads()},
          {"ranks", ranks},
          {"decode_weight_bytes", decodeWeightBytes(manifest)},
          {"memory",
           {{"weights", toJson(memory.weights)},
            {"kv_cache", toJson(memory.kvCache)},
            {"workspace", toJson(memory.workspace)},
            {"logits", toJson(memory.logits)}}},
          {"repetitions", options.repetitions},
          {"interrupted", interrupted}};
}
