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
  tests.reserve(options.promptLengths.size() + options.generatedTokens.size() *
                                                   options.contexts.size() *
                                                   options.sequences.size());
  for (uint64_t length : options.promptLengths)
    tests.push_back({/*generates=*/false, length});
  for (uint64_t context : options.contexts)
    for (uint64_t sequences : options.sequences)
      for (uint64_t length : options.generatedTokens)
        tests.push_back({/*generates=*/true, length, context, sequences});
  return tests;
}

Result<BenchmarkNeeds>
sandwich::benchmarkNeeds(const proto::ModelConfiguration &model,
                         const BenchmarkOptions &options) {
  if (options.repetitions == 0)
    return makeError("repetitions is 0; it must be at least 1");
  std::vector<BenchmarkTest> tests = benchmarkTests(options);
  if (tests.empty())
    return makeError("there is nothing to measure; give a prompt length or a "
                     "number of generated tokens");
  BenchmarkNeeds needs;
  for (const BenchmarkTest &test : tests) {
    if (test.tokens == 0)
      return makeError("a test of 0 tokens measures nothing; give at least 1");
    std::optional<uint64_t> tokens = checkedAdd(test.tokens, test.context);
    if (!tokens || *tokens > model.context_length())
      return makeError(test.name(), " is longer than the model's context of ",
                       model.context_length(), " tokens");
    if (test.sequences == 0)
      return makeError("a test of 0 sequences measures nothing; give at least "
                       "1");
    std::optional<uint64_t> all = checkedMultiply(*tokens, test.sequences);
    if (!all)
      return makeError(test.name(), " has more tokens than can be counted");
    needs.tokens = std::max(needs.tokens, *tokens);
    needs.allTokens = std::max(needs.allTokens, *all);
    needs.sequences = std::max(needs.sequences, test.sequences);
  }
  return needs;
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

std::vector<int32_t> sandwich::randomTokens(uint64_t vocabSize, uint64_t count,
                                            uint64_t text) {
  std::mt19937_64 generator(1 + text);
  std::vector<int32_t> tokens(count);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(generator() % vocabSize);
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
  Sequence sequence = engine.newSequence();
  return timeWork(
      counters, [&] { return engine.feed(sequence, tokens, LogitRows::Last); });
}

/// Seconds that one decode step for each of `tokens` takes, which every one of
/// the `sequences` gets; they are as before then.
static Result<double> timeDecode(Engine &engine,
                                 std::vector<Sequence> &sequences,
                                 std::span<const int32_t> tokens,
                                 HardwareCounters *counters) {
  uint64_t context = sequences.front().length();
  std::vector<Segment> segments(sequences.size());
  SANDWICH_ASSIGN_OR_RETURN(
      double seconds, timeWork(counters, [&]() -> Status {
        for (size_t i = 0; i < tokens.size(); ++i) {
          for (size_t each = 0; each < sequences.size(); ++each)
            // Not the same ones, so that what sequences hold differs.
            segments[each] = {&sequences[each],
                              tokens.subspan((i + each) % tokens.size(), 1)};
          SANDWICH_RETURN_IF_ERROR(engine.step(segments, PhaseKind::Decode));
        }
        return {};
      }));
  for (Sequence &sequence : sequences)
    sequence.truncate(context);
  return seconds;
}

/// The sequences of `test`, each of which holds its context.
static Result<std::vector<Sequence>> makeContexts(Engine &engine,
                                                  const BenchmarkTest &test) {
  std::vector<Sequence> sequences;
  for (uint64_t i = 0; i < test.sequences; ++i) {
    sequences.push_back(engine.newSequence());
    if (test.context > 0)
      SANDWICH_RETURN_IF_ERROR(engine.feed(
          sequences.back(), randomTokens(engine.vocabSize(), test.context, i),
          LogitRows::None));
  }
  return sequences;
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
  SANDWICH_ASSIGN_OR_RETURN(BenchmarkNeeds needs,
                            benchmarkNeeds(engine.model(), options));
  std::vector<int32_t> tokens = randomTokens(engine.vocabSize(), needs.tokens);
  std::vector<BenchmarkResult> results;
  unsigned decodeThreads = engine.artifact().decode().threads();
  auto weightBytes =
      static_cast<double>(decodeWeightBytes(engine.artifact().manifest()));

  for (const BenchmarkTest &test : benchmarkTests(options)) {
    BenchmarkResult result;
    result.test = test.name();
    const std::span<const std::byte> weights = engine.weights().bytes();
    std::optional<MemoryReader> reader;
    std::vector<double> bandwidths;
    // This process may read a shard only, and so would its threads.
    const bool measuresBandwidth =
        test.generates && engine.rankPlacement().size() == 1;
    auto all = std::span<const int32_t>(tokens);
    auto part = all.subspan(test.context, test.tokens);
    SANDWICH_ASSIGN_OR_RETURN(std::vector<Sequence> sequences,
                              makeContexts(engine, test));
    ScopedProfile profile(engine);
    if (options.counters)
      options.counters->reset();
    // The first repetition warms up caches and pages and is not counted.
    for (uint64_t i = 0; i <= options.repetitions; ++i) {
      if (stopRequested && stopRequested())
        return results;
      if (measuresBandwidth && i > 0) {
        if (!reader)
          reader.emplace(engine.team(PhaseKind::Decode), decodeThreads,
                         weights);
        bandwidths.push_back(static_cast<double>(weights.size()) /
                             reader->seconds(weights) / 1e9);
      }
      if (options.profile && i == 1)
        profile.start();
      HardwareCounters *counters = i > 0 ? options.counters : nullptr;
      SANDWICH_ASSIGN_OR_RETURN(
          double seconds, test.generates
                              ? timeDecode(engine, sequences, part, counters)
                              : timePrompt(engine, part, counters));
      if (i > 0)
        result.samples.push_back(
            static_cast<double>(test.tokens * test.sequences) / seconds);
    }
    result.tokensPerSecond = mean(result.samples);
    result.standardDeviation = sampleStandardDeviation(result.samples);
    if (measuresBandwidth)
      result.bandwidth = {weightBytes * result.tokensPerSecond /
                              static_cast<double>(test.sequences) / 1e9,
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
