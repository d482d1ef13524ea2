//===- Benchmark.h - Speed of a loaded model --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_BENCHMARK_H
#define SANDWICH_RUNTIME_MEASUREMENT_BENCHMARK_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Runtime/Measurement/HardwareCounters.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

struct BenchmarkOptions {
  /// Prompt lengths; each is a test "ppN".
  std::vector<uint64_t> promptLengths = {16, 128, 512};
  /// Generated tokens; each is a test "tgN" for each context and number of
  /// sequences.
  std::vector<uint64_t> generatedTokens = {32};
  /// Tokens that each sequence holds before it is generated to.
  std::vector<uint64_t> contexts = {0};
  /// Sequences that are generated to together, a token of each in every step.
  std::vector<uint64_t> sequences = {1};
  /// Measured runs of each test, after one that is not.
  uint64_t repetitions = 3;
  /// Whether results tell where the time went.
  bool profile = false;
  /// Counters of the engine's team, which then tell what each test's measured
  /// runs did; null: nothing is counted.
  HardwareCounters *counters = nullptr;
};

/// A prompt of `tokens` tokens, or the generation of as many one by one for
/// each of the sequences, after `context` others.
struct BenchmarkTest {
  bool generates = false;
  uint64_t tokens = 0;
  uint64_t context = 0;
  uint64_t sequences = 1;

  /// "pp128", "tg32", "tg32@1024" after 1024 tokens, or "tg32@1024x8" for 8
  /// sequences.
  std::string name() const {
    std::string text = generates ? "tg" : "pp";
    text += std::to_string(tokens);
    if (context > 0)
      text.append("@").append(std::to_string(context));
    if (sequences > 1)
      text.append("x").append(std::to_string(sequences));
    return text;
  }
};

/// The tests that `options` asks for, in the order in which they run.
std::vector<BenchmarkTest> benchmarkTests(const BenchmarkOptions &options);

struct BenchmarkResult {
  /// As `BenchmarkTest::name`.
  std::string test;
  /// Of all sequences together: mean and sample standard deviation over the
  /// repetitions.
  double tokensPerSecond = 0;
  double standardDeviation = 0;
  /// Of each repetition, in order.
  std::vector<double> samples;

  /// What bounds decoding; only for "tg" tests. GB are 10^9 bytes.
  struct Bandwidth {
    /// Weights that the decode steps read, over their time.
    double weightsGBPerSecond = 0;
    /// The same memory read by the same threads that only add it up, measured
    /// between the repetitions.
    double readGBPerSecond = 0;
  };
  std::optional<Bandwidth> bandwidth;

  /// Of the phases that the measured repetitions ran, where profiles were asked
  /// for.
  std::vector<PhaseProfile> profile;
  /// Over all measured repetitions, where counters were given.
  std::optional<CounterReading> counters;
};

/// Tokens of a vocabulary for measurements, the same each time, and others for
/// each `text`: sequences that hold the same share memory.
std::vector<int32_t> randomTokens(uint64_t vocabSize, uint64_t count,
                                  uint64_t text = 0);

/// Bytes of weights that every decode step reads: all tensors that one of its
/// matmuls reads. A plan without schedules counts every tensor.
uint64_t decodeWeightBytes(const proto::Manifest &manifest);

/// What the sequences of one test need of the KV cache.
struct BenchmarkNeeds {
  /// Of one sequence, and of all of a test together.
  uint64_t tokens = 0;
  uint64_t allTokens = 0;
  uint64_t sequences = 1;
};

/// The largest numbers of all tests. Error: no test, zero tokens, sequences or
/// repetitions, or a test longer than the model's context.
Result<BenchmarkNeeds> benchmarkNeeds(const proto::ModelConfiguration &model,
                                      const BenchmarkOptions &options);

/// Runs the tests in order, each repetition on a new sequence of random tokens.
/// `onResult` gets each result when it is there; `stopRequested` is asked
/// between repetitions, and a test that it stops has no result. Either may be
/// empty.
Result<std::vector<BenchmarkResult>>
runBenchmark(Engine &engine, const BenchmarkOptions &options,
             const std::function<void(const BenchmarkResult &)> &onResult = {},
             const std::function<bool()> &stopRequested = {});

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_BENCHMARK_H
