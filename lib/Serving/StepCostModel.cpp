//===- StepCostModel.cpp - How long steps will take -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/StepCostModel.h"

#include <algorithm>
#include <cmath>
#include <span>

using namespace sandwich;

/// No step is faster or slower, so that products of times stay finite.
static constexpr double fastest = 1e-9, slowest = 1e6;

/// Of the last observation, in the long run.
static constexpr double leastWeight = 0.1;

/// Neighbouring knots have at most so many times each other's tokens, as far as
/// steps may be large, so that a curve can bend where none was measured.
static constexpr double growth = 4, largestStep = 4096;

/// After which more of them change nothing.
static constexpr double enoughObservations = 1000;

/// How much more or less than predicted is believed at a time.
static constexpr double largestRatio = 2;

void StepShape::addPiece(uint64_t computed, uint64_t tokens) {
  promptTokens += tokens;
  promptPositions += computed * tokens + tokens * (tokens + 1) / 2;
}

void StepShape::addDecode(uint64_t computed) {
  ++decodeSequences;
  decodePositions += computed + 1;
}

StepCosts sandwich::assumedStepCosts() {
  return {.prefill = {{1, 0.05}, {16, 0.05}, {64, 0.098}, {1024, 1.058}},
          .decode = {{1, 0.05}, {16, 0.052}, {64, 0.1}}};
}

Result<StepCostModel::Curve>
StepCostModel::curveOf(const std::vector<StepCosts::Point> &points) {
  if (points.empty())
    return makeError("there is no time of any step");
  Curve curve;
  for (const StepCosts::Point &point : points) {
    const auto tokens = static_cast<double>(point.tokens);
    if (!curve.empty() && tokens <= curve.back().tokens)
      return makeError("times of steps must be of more and more tokens, but ",
                       point.tokens, " come after ", curve.back().tokens);
    if (!std::isfinite(point.seconds) || point.seconds <= 0)
      return makeError("a step of ", point.tokens, " tokens cannot take ",
                       point.seconds, " seconds");
    const double before = curve.empty() ? fastest : curve.back().seconds;
    curve.push_back({tokens, std::clamp(point.seconds, before, slowest)});
  }
  return refine(curve);
}

StepCostModel::Curve StepCostModel::refine(const Curve &measured) {
  Curve curve;
  // A few tokens take about as long as the fewest that were measured.
  for (const double few : {1.0, growth})
    if (few < measured.front().tokens)
      curve.push_back({few, measured.front().seconds});
  curve.push_back(measured.front());
  auto goOn = [&](double until) {
    for (double next = curve.back().tokens * growth; next < until;
         next *= growth)
      curve.push_back({next, std::min(interpolate(measured, next), slowest)});
  };
  for (const Knot &knot : std::span(measured).subspan(1)) {
    goOn(knot.tokens);
    curve.push_back(knot);
  }
  goOn(largestStep + 1);
  return curve;
}

Result<StepCostModel> StepCostModel::create(const StepCosts &costs) {
  for (double each :
       {costs.secondsPerPromptPosition, costs.secondsPerDecodePosition})
    if (!std::isfinite(each) || each < 0)
      return makeError("a position cannot take ", each, " seconds");
  StepCostModel model;
  SANDWICH_ASSIGN_OR_RETURN(model.prefill, curveOf(costs.prefill));
  SANDWICH_ASSIGN_OR_RETURN(model.decode, curveOf(costs.decode));
  model.perPromptPosition = costs.secondsPerPromptPosition;
  model.perDecodePosition = costs.secondsPerDecodePosition;
  return model;
}

StepCostModel::Place StepCostModel::find(const Curve &curve, double tokens) {
  if (curve.size() == 1 || tokens <= curve.front().tokens)
    return {0, 0, 1};
  const auto above = std::ranges::lower_bound(curve, tokens, {}, &Knot::tokens);
  const size_t right =
      std::min(static_cast<size_t>(above - curve.begin()), curve.size() - 1);
  const double from = curve[right - 1].tokens;
  return {right - 1, right, (tokens - from) / (curve[right].tokens - from)};
}

double StepCostModel::interpolate(const Curve &curve, double tokens) {
  const Place place = find(curve, tokens);
  return std::lerp(curve[place.left].seconds, curve[place.right].seconds,
                   place.share);
}

double StepCostModel::positionSeconds(const StepShape &shape) const {
  return static_cast<double>(shape.promptPositions) * perPromptPosition +
         static_cast<double>(shape.decodePositions) * perDecodePosition;
}

double StepCostModel::seconds(const StepShape &shape) const {
  return interpolate(curve(shape.phase), static_cast<double>(shape.tokens())) +
         positionSeconds(shape);
}

void StepCostModel::observe(const StepShape &shape, double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0)
    return;
  Curve &knots = shape.phase == StepPhase::Prefill ? prefill : decode;
  const auto tokens = static_cast<double>(shape.tokens());
  const double ratio = std::clamp((seconds - positionSeconds(shape)) /
                                      interpolate(knots, tokens),
                                  1 / largestRatio, largestRatio);
  const Place place = find(knots, tokens);
  const double share = std::min(place.share, 1.0);
  auto rate = [](const Knot &knot) {
    return std::max(leastWeight, 1 / (knot.observed + 1));
  };
  // What was hardly observed moves as the nearest does.
  const double along = rate(knots[share < 0.5 ? place.left : place.right]);
  for (size_t i = 0; i < knots.size(); ++i) {
    Knot &knot = knots[i];
    const double part = i == place.right  ? share
                        : i == place.left ? 1 - share
                                          : 0;
    const double weight = knot.observed < 1 ? along : part * rate(knot);
    knot.seconds =
        std::clamp(knot.seconds * std::pow(ratio, weight), fastest, slowest);
    knot.observed = std::min(knot.observed + part, enoughObservations);
  }
  // Those that rose push the ones above, those that fell the ones below.
  for (size_t i = place.right; i + 1 < knots.size(); ++i)
    knots[i + 1].seconds = std::max(knots[i + 1].seconds, knots[i].seconds);
  for (size_t i = place.right; i > 0; --i)
    knots[i - 1].seconds = std::min(knots[i - 1].seconds, knots[i].seconds);
}
