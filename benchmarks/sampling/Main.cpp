//===- Main.cpp - What it costs to choose the tokens of a step ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times `sampleBatch` for the rows of one decode step with several options, in
/// turn, and beside them plain reading of the same logits by the same threads.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Sampling/Sampler.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/Statistics.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace sandwich;

namespace {

struct Settings {
  unsigned threads = 0;
  size_t rows = 64;
  size_t vocabulary = 128256;
  float deviation = 1;
  size_t seenTokens = 1000;
  int rounds = 30;
};

/// Options that are timed.
struct Contestant {
  std::string name;
  SamplingOptions options;
  /// One token in so many is allowed; 0: all are, without a constraint.
  size_t rarity = 0;
  std::vector<double> milliseconds = {};
};

std::vector<Contestant> makeContestants() {
  const SamplingOptions usual{
      .temperature = 0.8f, .minP = 0.05f, .topK = 50, .topP = 0.95f};
  SamplingOptions withPenalties = usual;
  withPenalties.repetitionPenalty = 1.1f;
  withPenalties.frequencyPenalty = 0.1f;
  withPenalties.presencePenalty = 0.1f;
  SamplingOptions withProbabilities = usual;
  withProbabilities.logProbabilities = 5;
  SamplingOptions withBoth = withPenalties;
  withBoth.logProbabilities = 5;
  return {
      {"greedy", {}},
      {"0.8, top-k 50, top-p 0.95, min-p 0.05", usual},
      {"the same with penalties", withPenalties},
      {"the same with 5 log-probabilities", withProbabilities},
      {"the same with both", withBoth},
      {"temperature 1", {.temperature = 1}},
      {"temperature 1, 5 log-probabilities",
       {.temperature = 1, .logProbabilities = 5}},
      {"0.8, min-p 0.05", {.temperature = 0.8f, .minP = 0.05f}},
      {"0.8, top-p 0.95", {.temperature = 0.8f, .topP = 0.95f}},
      {"greedy, all tokens allowed", {}, 1},
      {"greedy, every second token allowed", {}, 2},
      {"greedy, one in a thousand allowed", {}, 1000},
      {"0.8, top-k 50 ..., all allowed", usual, 1},
      {"0.8, top-k 50 ..., every second allowed", usual, 2},
      {"0.8, top-k 50 ..., one in a thousand", usual, 1000},
      {"temperature 1, every second allowed", {.temperature = 1}, 2},
  };
}

std::vector<float> makeLogits(const Settings &settings) {
  std::mt19937_64 generator(1);
  std::normal_distribution<float> normal(0, settings.deviation);
  std::vector<float> logits(settings.rows * settings.vocabulary);
  std::ranges::generate(logits, [&] { return normal(generator); });
  return logits;
}

/// A sampler for each row, which has seen random tokens.
std::vector<Sampler> makeSamplers(const Settings &settings,
                                  const SamplingOptions &options) {
  std::mt19937_64 generator(2);
  std::uniform_int_distribution<int32_t> anyToken(
      0, static_cast<int32_t>(settings.vocabulary) - 1);
  std::vector<Sampler> samplers;
  for (size_t row = 0; row < settings.rows; ++row) {
    SamplingOptions own = options;
    own.seed = row;
    samplers.emplace_back(own);
    for (size_t i = 0; i < settings.seenTokens; ++i)
      samplers.back().accept(anyToken(generator));
  }
  return samplers;
}

/// Lets the threads of `team` take tasks as they have time.
ParallelFor runOn(PhaseTeam &team) {
  return [&team](size_t count, const std::function<void(size_t)> &task) {
    struct Work {
      size_t count;
      const std::function<void(size_t)> &task;
      std::atomic<size_t> next{0};
    } work{count, task};
    team.run(
        team.size(),
        [](void *context, int32_t) {
          auto &work = *static_cast<Work *>(context);
          for (size_t index; (index = work.next.fetch_add(1)) < work.count;)
            work.task(index);
        },
        &work);
  };
}

/// Bits as a constraint gives them, of one token in `rarity`; none for 0.
std::vector<uint64_t> makeAllowed(const Settings &settings, size_t rarity) {
  std::vector<uint64_t> allowed;
  if (rarity == 0)
    return allowed;
  allowed.resize((settings.vocabulary + 63) / 64);
  for (size_t token = 0; token < settings.vocabulary; token += rarity)
    allowed[token / 64] |= uint64_t{1} << (token % 64);
  return allowed;
}

Status measure(Contestant &contestant, const Settings &settings,
               std::span<const float> logits, PhaseTeam &team) {
  std::vector<Sampler> samplers = makeSamplers(settings, contestant.options);
  const std::vector<uint64_t> allowed =
      makeAllowed(settings, contestant.rarity);
  std::vector<SamplingRow> rows;
  for (size_t row = 0; row < settings.rows; ++row)
    rows.push_back(
        {&samplers[row],
         logits.subspan(row * settings.vocabulary, settings.vocabulary),
         allowed});
  const ParallelFor parallelFor = runOn(team);
  constexpr int uncounted = 1, counted = 3;
  for (int i = 0; i < uncounted + counted; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Result<SampledToken>> tokens =
        sampleBatch(rows, team.size(), parallelFor);
    const double seconds = secondsSince(start);
    for (const Result<SampledToken> &token : tokens)
      if (!token)
        return token.error();
    if (i >= uncounted)
      contestant.milliseconds.push_back(seconds * 1e3);
  }
  return {};
}

Status run(Settings settings) {
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  if (settings.threads == 0)
    settings.threads = budget.threads();
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<PhaseTeam> team,
      PhaseTeam::create(
          {.threads = settings.threads,
           .cpus = budget.cpusFor(settings.threads),
           .oversubscribed = settings.threads > budget.threads()}));
  const std::vector<float> logits = makeLogits(settings);
  std::vector<Contestant> contestants = makeContestants();
  const std::span<const std::byte> memory = std::as_bytes(std::span(logits));
  const MemoryReader reader(*team, settings.threads, memory);
  std::vector<double> reading;
  for (int round = 0; round < settings.rounds; ++round) {
    for (int i = 0; i < 3; ++i)
      reading.push_back(reader.seconds(memory) * 1e3);
    for (Contestant &contestant : contestants)
      SANDWICH_RETURN_IF_ERROR(measure(contestant, settings, logits, *team));
  }
  std::string text;
  auto print = [&text](const std::string &name,
                       const std::vector<double> &milliseconds) {
    char line[160];
    std::snprintf(line, sizeof(line), "%-40s %8.2f ms, least: %8.2f ms\n",
                  name.c_str(), median(milliseconds),
                  std::ranges::min(milliseconds));
    text += line;
  };
  print("plain reading", reading);
  for (const Contestant &contestant : contestants)
    print(contestant.name, contestant.milliseconds);
  return writeStandardOutput(text);
}

} // namespace

int main(int argc, char **argv) try {
  CLI::App app{"Times choosing the tokens of a step.\n\n"
               "  sandwich-benchmark-sampling --threads=2"};
  Settings settings;
  app.add_option("--threads", settings.threads,
                 "Threads (default: what this machine allows)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--rows", settings.rows, "Sequences in the step")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--vocabulary", settings.vocabulary, "Tokens of the model")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--deviation", settings.deviation,
                 "Standard deviation of the logits, which are normal")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--seen", settings.seenTokens,
                 "Tokens each sequence has seen, for penalties")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Rounds of 3 steps each")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &wrong) {
    std::fprintf(stderr, "error: %s\n", wrong.what());
    return 2;
  }
  if (Status status = run(settings); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
