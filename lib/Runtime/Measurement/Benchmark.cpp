//===- Benchmark.cpp - Speed of a loaded model ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/Benchmark.h"
#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

using namespace sandwich;

namespace {
using Clock = std::chrono::steady_clock;
} // namespace

uint64_t sandwich::decodeWeightBytes(const proto::Manifest &manifest) {
  std::set<std::string> read;
  for (const proto::Phase &phase : manifest.phases())
    if (phase.name() == artifact::decodePhase)
      for (const proto::Schedule &schedule : phase.schedules())
        read.insert(schedule.matmul());
  uint64_t bytes = 0;
  for (const proto::Tensor &tensor : manifest.tensors())
    if (read.empty() || read.count(tensor.name()))
      bytes += tensor.bytes();
  return bytes;
}

std::vector<BenchmarkTest>
sandwich::benchmarkTests(const BenchmarkOptions &options) {
  std::vector<BenchmarkTest> tests;
  tests.reserve(options.promptLengths.size() +
                options.generatedTokens.size() * options.contexts.size());
  for (uint64_t length : options.promptLengths)
    tests.push_back({/*generates=*/false, length});
  for (uint64_t context : options.contexts)
    for (uint64_t length : options.generatedTokens)
      tests.push_back({/*generates=*/true, length, context});
  return tests;
}

Result<uint64_t>
sandwich::benchmarkTokens(const proto::ModelConfiguration &model,
                          const BenchmarkOptions &options) {
  if (options.repetitions == 0)
    return makeError("repetitions is 0; it must be at least 1");
  std::vector<BenchmarkTest> tests = benchmarkTests(options);
  if (tests.empty())
    return makeError("there is nothing to measure; give a prompt length or a "
                     "number of generated tokens");
  uint64_t largest = 0;
  for (const BenchmarkTest &test : tests) {
    if (test.tokens == 0)
      return makeError("a test of 0 tokens measures nothing; give at least 1");
    std::optional<uint64_t> tokens = checkedAdd(test.tokens, test.context);
    if (!tokens || *tokens > model.context_length())
      return makeError(test.name(), " is longer than the model's context of ",
                       model.context_length(), " tokens");
    largest = std::max(largest, *tokens);
  }
  return largest;
}

double sandwich::measureReadBandwidth(Engine &engine, unsigned threads) {
  std::span<const std::byte> weights = engine.weights().bytes();
  return static_cast<double>(weights.size()) /
         readSeconds(engine.team(PhaseKind::Decode), threads, weights) / 1e9;
}

static double mean(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

static double sampleStandardDeviation(const std::vector<double> &values) {
  if (values.size() < 2)
    return 0;
  double center = mean(values);
  double squares = 0;
  for (double value : values)
    squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::vector<int32_t> sandwich::randomTokens(const Engine &engine,
                                            uint64_t count) {
  std::mt19937_64 generator(1);
  std::vector<int32_t> tokens(count);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(generator() % engine.vocabSize());
  return tokens;
}

/// Seconds that `work`, which returns a status, takes; `counters` count
/// meanwhile, unless they are null.
template <typename Work>
static Result<double> timeWork(HardwareCounters *counters, Work work) {
  if (counters)
    counters->start();
  Clock::time_point start = Clock::now();
  SANDWICH_RETURN_IF_ERROR(work());
  double seconds = secondsSince(start);
  if (counters)
    counters->stop();
  return seconds;
}

/// Seconds that a prompt of `tokens` takes.
static Result<double> timePrompt(Engine &engine,
                                 std::span<const int32_t> tokens,
                                 HardwareCounters *counters) {
  Sequence sequence(engine);
  return timeWork(
      counters, [&] { return engine.feed(sequence, tokens, LogitRows::Last); });
}

/// Seconds that one decode step for each of `tokens` takes, after which
/// `sequence` is as before.
static Result<double> timeDecode(Engine &engine, Sequence &sequence,
                                 std::span<const int32_t> tokens,
                                 HardwareCounters *counters) {
  uint64_t context = sequence.length();
  SANDWICH_ASSIGN_OR_RETURN(
      double seconds, timeWork(counters, [&]() -> Status {
        for (const int32_t &token : tokens)
          SANDWICH_RETURN_IF_ERROR(
              engine.feed(sequence, std::span(&token, 1), LogitRows::Last));
        return {};
      }));
  sequence.truncate(context);
  return seconds;
}

namespace {
/// Profiles the steps of an engine from `start` on, while it lives.
class ScopedProfile {
public:
  explicit ScopedProfile(Engine &engine)
      : engine(engine), profilers{StepProfiler(engine.artifact().prefill()),
                                  StepProfiler(engine.artifact().decode())} {}
  ~ScopedProfile() { engine.profileInto(nullptr, nullptr); }
  ScopedProfile(const ScopedProfile &) = delete;
  ScopedProfile &operator=(const ScopedProfile &) = delete;

  void start() { engine.profileInto(&profilers[0], &profilers[1]); }

  /// Of the phases that had steps.
  std::vector<PhaseProfile> profiles() const {
    std::vector<PhaseProfile> result;
    for (const StepProfiler &profiler : profilers)
      if (PhaseProfile profile = profiler.profile(); profile.steps > 0)
        result.push_back(std::move(profile));
    return result;
  }

private:
  Engine &engine;
  std::array<StepProfiler, 2> profilers;
};
} // namespace

Result<std::vector<BenchmarkResult>> sandwich::runBenchmark(
    Engine &engine, const BenchmarkOptions &options,
    const std::function<void(const BenchmarkResult &)> &onResult,
    const std::function<bool()> &stopRequested) {
  SANDWICH_ASSIGN_OR_RETURN(uint64_t largest,
                            benchmarkTokens(engine.model(), options));
  std::vector<int32_t> tokens = randomTokens(engine, largest);
  std::vector<BenchmarkResult> results;
  unsigned decodeThreads = engine.artifact().decode().threads();
  auto weightBytes =
      static_cast<double>(decodeWeightBytes(engine.artifact().manifest()));

  for (const BenchmarkTest &test : benchmarkTests(options)) {
    BenchmarkResult result;
    result.test = test.name();
    std::vector<double> bandwidths;
    // This process may read a shard only, and so would its threads.
    const bool measuresBandwidth =
        test.generates && engine.rankPlacement().size() == 1;
    auto all = std::span<const int32_t>(tokens);
    auto part = all.subspan(test.context, test.tokens);
    Sequence sequence(engine);
    if (test.context > 0)
      SANDWICH_RETURN_IF_ERROR(
          engine.feed(sequence, all.first(test.context), LogitRows::None));
    ScopedProfile profile(engine);
    if (options.counters)
      options.counters->reset();
    // The first repetition warms up caches and pages and is not counted.
    for (uint64_t i = 0; i <= options.repetitions; ++i) {
      if (stopRequested && stopRequested())
        return results;
      if (measuresBandwidth && i > 0)
        bandwidths.push_back(measureReadBandwidth(engine, decodeThreads));
      if (options.profile && i == 1)
        profile.start();
      HardwareCounters *counters = i > 0 ? options.counters : nullptr;
      SANDWICH_ASSIGN_OR_RETURN(
          double seconds, test.generates
                              ? timeDecode(engine, sequence, part, counters)
                              : timePrompt(engine, part, counters));
      if (i > 0)
        result.samples.push_back(static_cast<double>(test.tokens) / seconds);
    }
    result.tokensPerSecond = mean(result.samples);
    result.standardDeviation = sampleStandardDeviation(result.samples);
    if (measuresBandwidth)
      result.bandwidth = {weightBytes * result.tokensPerSecond / 1e9,
                          mean(bandwidths)};
    result.profile = profile.profiles();
    if (options.counters)
      result.counters = options.counters->reading();
    if (onResult)
      onResult(result);
    results.push_back(std::move(result));
  }
  return results;
}
