//===- StepCostModel.h - How long steps will take ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Predicts the time of a step from what is in it, and learns from the times
/// that steps took. A step's matmuls see its tokens, and attention the
/// positions that these read, so there are a curve over the tokens for each
/// phase and a time for each position.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_STEPCOSTMODEL_H
#define SANDWICH_SERVING_STEPCOSTMODEL_H

#include "sandwich/Support/Result.h"

#include <array>
#include <cstdint>
#include <vector>

namespace sandwich {

/// Whose plan of cores and schedules runs a step.
enum class StepPhase {
  /// Any tokens of any sequences.
  Prefill,
  /// One token of each sequence.
  Decode,
};

/// What the time of a step depends on.
struct StepShape {
  StepPhase phase = StepPhase::Decode;
  /// Tokens of pieces of prompts, and the positions that they read, each its
  /// own and all before it.
  uint64_t promptTokens = 0;
  uint64_t promptPositions = 0;
  /// Sequences that get one token each, and the positions that they read.
  uint64_t decodeSequences = 0;
  uint64_t decodePositions = 0;

  uint64_t tokens() const { return promptTokens + decodeSequences; }

  /// A piece of `tokens` tokens behind `computed` others.
  void addPiece(uint64_t computed, uint64_t tokens);
  /// One token behind `computed` others.
  void addDecode(uint64_t computed);

  bool operator==(const StepShape &) const = default;
};

/// Times of steps, measured or assumed.
struct StepCosts {
  struct Point {
    uint64_t tokens;
    double seconds;
  };
  /// Steps of so many tokens that read next to nothing; tokens ascend. In
  /// between times lie on lines, beyond the last point they go on as between
  /// the last two.
  std::vector<Point> prefill;
  std::vector<Point> decode;
  /// What each position read adds.
  double secondsPerPromptPosition = 0;
  double secondsPerDecodePosition = 0;
};

/// Where nothing is measured yet: decode steps of 50 ms, and 1 ms for each
/// token beyond 16, up to which the weights are what takes time. Numbers of a
/// 1.3B model on two cores of a server, in the right order of magnitude at
/// best; a few observed steps correct them.
StepCosts assumedStepCosts();

/// Its times are finite and positive, and never fall when a step gets more
/// tokens or positions, whatever was observed.
class StepCostModel {
public:
  /// Points whose times fall, as noise lets them, are raised to the one before.
  /// Errors: a phase without points, tokens that do not ascend, times that are
  /// not positive and finite, positions that take negative or infinite time.
  static Result<StepCostModel> create(const StepCosts &costs);

  double seconds(const StepShape &shape) const;

  /// A step of this shape took `seconds`. Moves the points beside it, and all
  /// that were hardly observed, a part of the way: one tenth in the long run,
  /// more at first, and never by more than a factor of two, so that a step
  /// during which the machine did something else does little harm. Times that
  /// are not positive and finite are ignored. What positions take is not
  /// learned.
  void observe(const StepShape &shape, double seconds);

private:
  struct Knot {
    double tokens;
    double seconds;
    /// Observations, each as a part that tells how near it was.
    double observed = 0;
  };
  using Curve = std::vector<Knot>;

  /// The knots around a number of tokens, and how near the right one is: 0 to 1
  /// between them, more beyond the end.
  struct Place {
    size_t left, right;
    double share;
  };

  static Result<Curve> curveOf(const std::vector<StepCosts::Point> &points);
  /// The same times, with knots that can learn also between and beyond those
  /// that were measured.
  static Curve refine(const Curve &measured);
  static Place find(const Curve &curve, double tokens);
  static double interpolate(const Curve &curve, double tokens);
  double positionSeconds(const StepShape &shape) const;
  const Curve &curve(StepPhase phase) const {
    return phase == StepPhase::Prefill ? prefill : decode;
  }

  Curve prefill;
  Curve decode;
  double perPromptPosition = 0;
  double perDecodePosition = 0;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_STEPCOSTMODEL_H
