//===- Bench.cpp - sandwich-run bench -------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Hosts.h"
#include "Measurement.h"
#include "ProfileTable.h"
#include "Terminal.h"

#include "sandwich/Runtime/Measurement/Benchmark.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>

using namespace sandwich;

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
  SANDWICH_RETURN_IF_ERROR(writeStandardOutput(text + "\n"));
  for (const PhaseProfile &profile : result.profile)
    SANDWICH_RETURN_IF_ERROR(tool::printProfile(profile));
  return {};
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
  for (const PhaseProfile &profile : result.profile)
    json["profile"].push_back(tool::toJson(profile));
  return json;
}

/// Adds `--collectives`.
static void addCollectivesOption(CLI::App &command, Collectives &collectives) {
  std::vector<std::string> names;
  for (Collectives each : allCollectives())
    names.emplace_back(name(each));
  command
      .add_option_function<std::string>(
          "--collectives",
          [&collectives](const std::string &text) {
            collectives = *collectivesNamed(text);
          },
          "How the ranks of a host sum: 'rank-shifted', the default, where "
          "each begins with the next and none waits for a master, or "
          "'master-copies', where rank 0 sums for all, to see what the first "
          "is worth. The sums are the same, and one rank has none")
      ->check(CLI::IsMember(names))
      ->type_name("rank-shifted|master-copies");
}

static Status run(const tool::MeasurementArguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            tool::loadForMeasurement(arguments));
  if (!arguments.json)
    SANDWICH_RETURN_IF_ERROR(
        writeStandardOutput(tool::describePlacement(engine->rankPlacement())));
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
  Status complete = tool::measurementComplete(arguments.benchmark, results);
  if (!arguments.json)
    return complete;
  Json json =
      tool::describeMeasurement(*engine, arguments.benchmark, !complete);
  if (engine->rankPlacement().size() > 1)
    json["collectives"] = name(arguments.engine.collectives);
  json["results"] = Json::array();
  for (const BenchmarkResult &result : results)
    json["results"].push_back(toJson(result));
  SANDWICH_RETURN_IF_ERROR(tool::writeJson(json));
  return complete;
}

void tool::addBenchCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<MeasurementArguments>();
  CLI::App *command = app.add_subcommand(
      "bench", "Measures tokens per second of prompts and of generation");
  command->footer(R"(Example:
  sandwich-run bench llama.sandwich -p 128,512 -n 32 -r 5

ppN is a prompt of N tokens, tgN the generation of N tokens one by one; each
repetition starts a new sequence, and one before the first is not counted.
tokens/s are mean and standard deviation. Ctrl-C stops after the current
repetition: what was measured is printed, and the exit status is 1. Beside tgN
stands how fast the weights were read, and how fast the same threads read the
same memory when they do nothing else, measured in turn.

  sandwich-run bench llama.sandwich -p 512 -n 32 --context 1024 --profile

tgN@M is the generation of N tokens after M others, and tgN@MxS that of N tokens
of each of S sequences, whose tokens/s are those of all together. A profile tells for each
operation how often a thread called it in all repetitions, how long that took
as the mean of the threads, what share of the steps that is, and how fast it
read weights and KV cache and computed, where that is known. At a barrier
threads wait for those that were slower before it; 'other' is what went into
starting and ending steps.)");
  addMeasurementOptions(*command, *arguments);
  addCollectivesOption(*command, arguments->engine.collectives);
  command->add_flag("--profile", arguments->benchmark.profile,
                    "Tells where the time of each test went");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of lines");
  command->callback([arguments, &action] {
    finishMeasurementOptions(*arguments);
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
