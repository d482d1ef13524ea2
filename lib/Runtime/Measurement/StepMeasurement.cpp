//===- StepMeasurement.cpp - Times of an engine's steps -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/StepMeasurement.h"

#include "sandwich/Runtime/Measurement/Benchmark.h"
#include "sandwich/Support/ElapsedTime.h"

#include <algorithm>
#include <chrono>
#include <thread>

using namespace sandwich;

namespace {
using Clock = std::chrono::steady_clock;
} // namespace

/// The most decode steps in a row, for which sequences have room.
static constexpr uint64_t maxDecodeSteps = 32;

uint64_t StepMeasurement::cacheTokens(const StepGrid &grid) {
  uint64_t tokens = static_cast<uint64_t>(grid.promptTokens.back());
  for (int64_t positions : grid.positions)
    tokens += static_cast<uint64_t>(grid.sequences.back()) *
              (static_cast<uint64_t>(positions) + maxDecodeSteps + 1);
  return tokens;
}

uint64_t StepMeasurement::cacheSequences(const StepGrid &grid) {
  return 1 +
         static_cast<uint64_t>(grid.sequences.back()) * grid.positions.size();
}

Status StepMeasurement::checkStop() const {
  if (stop && stop())
    return makeError("interrupted");
  return {};
}

Result<StepMeasurement> StepMeasurement::create(Engine &engine, StepGrid grid,
                                                std::function<bool()> stop) {
  StepMeasurement measurement(engine, std::move(grid), std::move(stop));
  const StepGrid &steps = measurement.grid;
  uint64_t texts = 0;
  for (int64_t positions : steps.positions) {
    std::vector<Sequence> &sequences = measurement.filled.emplace_back();
    for (int64_t i = 0; i < steps.sequences.back(); ++i) {
      SANDWICH_RETURN_IF_ERROR(measurement.checkStop());
      const std::vector<int32_t> tokens = randomTokens(
          engine.vocabSize(), static_cast<uint64_t>(positions), ++texts);
      SANDWICH_RETURN_IF_ERROR(
          engine.feed(sequences.emplace_back(engine.newSequence()), tokens,
                      LogitRows::None));
    }
  }
  return measurement;
}

Result<double> StepMeasurement::timePrompt(int64_t tokens) {
  SANDWICH_RETURN_IF_ERROR(checkStop());
  const std::vector<int32_t> prompt =
      randomTokens(engine->vocabSize(), static_cast<size_t>(tokens));
  Sequence sequence = engine->newSequence();
  // Threads of an engine that ran just before spin for a millisecond.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const Clock::time_point start = Clock::now();
  SANDWICH_RETURN_IF_ERROR(engine->feed(sequence, prompt, LogitRows::Last));
  return secondsSince(start);
}

Result<double> StepMeasurement::timeDecode(std::vector<Sequence> &sequences,
                                           int64_t count) {
  SANDWICH_RETURN_IF_ERROR(checkStop());
  const int32_t token = 0;
  std::vector<Segment> batch;
  for (int64_t i = 0; i < count; ++i)
    batch.push_back({&sequences[static_cast<size_t>(i)], std::span(&token, 1)});
  const uint64_t before = sequences.front().length();
  const uint64_t room = engine->contextLength() - before;
  double seconds = 0;
  uint64_t timed = 0;
  auto run = [&]() -> Status {
    const uint64_t most = std::min(room, maxDecodeSteps + 1);
    constexpr double longEnough = 0.05;
    for (uint64_t step = 0; step < most && seconds < longEnough; ++step) {
      const Clock::time_point start = Clock::now();
      SANDWICH_RETURN_IF_ERROR(engine->step(batch, PhaseKind::Decode));
      // Before the first, something else was in the caches.
      if (step == 0 && most > 1)
        continue;
      seconds += secondsSince(start);
      ++timed;
    }
    return {};
  };
  Status status = run();
  for (const Segment &item : batch)
    item.sequence->truncate(before);
  if (!status)
    return status.error();
  return seconds / static_cast<double>(timed);
}

Result<InterpolatedSteps> StepMeasurement::measure() {
  std::vector<double> prompts;
  for (int64_t tokens : grid.promptTokens) {
    SANDWICH_ASSIGN_OR_RETURN(double seconds, timePrompt(tokens));
    prompts.push_back(seconds);
  }
  std::vector<std::vector<double>> decodes;
  for (int64_t sequences : grid.sequences) {
    std::vector<double> &row = decodes.emplace_back();
    for (std::vector<Sequence> &each : filled) {
      SANDWICH_ASSIGN_OR_RETURN(double seconds, timeDecode(each, sequences));
      row.push_back(seconds);
    }
  }
  return InterpolatedSteps(grid, std::move(prompts), std::move(decodes));
}
