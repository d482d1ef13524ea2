//===- StepMeasurement.h - Times of an engine's steps -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_STEPMEASUREMENT_H
#define SANDWICH_RUNTIME_MEASUREMENT_STEPMEASUREMENT_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Serving/Prediction/StepGrid.h"
#include "sandwich/Support/Result.h"

#include <functional>
#include <vector>

namespace sandwich {

/// Measures the steps of a grid on an engine, as often as one likes.
class StepMeasurement {
public:
  /// Tokens of the KV cache that measuring needs, and in how many sequences,
  /// for `EngineOptions`.
  static uint64_t cacheTokens(const StepGrid &grid);
  static uint64_t cacheSequences(const StepGrid &grid);

  /// Feeds the sequences that decode steps go on from. `grid` is for a trace
  /// and the engine's context (`stepGridFor`); the engine lives longer than the
  /// measurement. `stop` is asked between steps. Errors: of the engine;
  /// stopped.
  static Result<StepMeasurement> create(Engine &engine, StepGrid grid,
                                        std::function<bool()> stop = {});

  /// Runs each step of the grid once, prompts first, and decode steps so often
  /// that clocks and wake-ups do not count. Errors: of the engine; stopped.
  Result<InterpolatedSteps> measure();

private:
  StepMeasurement(Engine &engine, StepGrid grid, std::function<bool()> stop)
      : engine(&engine), grid(std::move(grid)), stop(std::move(stop)) {}

  Status checkStop() const;
  Result<double> timePrompt(int64_t tokens);
  /// Of one step of the first `count` of `sequences`, which are then as before.
  Result<double> timeDecode(std::vector<Sequence> &sequences, int64_t count);

  Engine *engine;
  StepGrid grid;
  std::function<bool()> stop;
  /// [positions] As many as the largest decode step has.
  std::vector<std::vector<Sequence>> filled;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_STEPMEASUREMENT_H
