//===- StepGrid.h - Times of a few steps stand for all ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PREDICTION_STEPGRID_H
#define SANDWICH_SERVING_PREDICTION_STEPGRID_H

#include "sandwich/Serving/StepCostModel.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstdint>
#include <vector>

namespace sandwich {

/// A few of the steps that a trace has. All lists ascend, and none is empty.
struct StepGrid {
  /// Lengths of prompts.
  std::vector<int64_t> promptTokens;
  /// Sequences of a decode step, and the positions that each of them holds
  /// before it.
  std::vector<int64_t> sequences;
  std::vector<int64_t> positions;
};

/// The steps to measure for `trace`, at least one request, in a context of
/// `contextLength` tokens, at least 2: where most of its time goes. Prompts at
/// the length below which three of four of all their tokens are, and shorter
/// ones; decode steps at the positions below which a tenth and nine tenths of
/// all are. Shortest and longest differ by a factor of two and more, so that
/// noise does not become a slope. Single sequences where requests come one
/// after the other, else also 4 and 16 at a time, at most `maxSequences`.
StepGrid stepGridFor(const ServingTrace &trace, int64_t contextLength,
                     int64_t maxSequences);

/// Steps whose times lie on lines between those of a grid, and beyond its ends
/// go on as between the last two, but never downwards.
class InterpolatedSteps {
public:
  /// Seconds: `promptSeconds` [prompt], `decodeSeconds` [sequences, positions].
  InterpolatedSteps(StepGrid grid, std::vector<double> promptSeconds,
                    std::vector<std::vector<double>> decodeSeconds)
      : grid(std::move(grid)), prompts(std::move(promptSeconds)),
        decodes(std::move(decodeSeconds)) {}

  /// A piece of a prompt takes what a prompt up to its end takes longer than
  /// one up to its beginning; several count as one. Sequences that generate
  /// beside it are tokens of it, and add what their positions do. Positive.
  double seconds(const StepShape &shape) const;

private:
  /// A prompt of `tokens` tokens.
  double promptSeconds(double tokens) const;
  /// A token each for sequences that hold `positions` positions each.
  double decodeSeconds(double sequences, double positions) const;

  StepGrid grid;
  std::vector<double> prompts;
  std::vector<std::vector<double>> decodes;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_PREDICTION_STEPGRID_H
