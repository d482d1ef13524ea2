//===- StepCostMeasurement.cpp - What an engine's steps take --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/StepCostMeasurement.h"

#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <chrono>
#include <vector>

using namespace sandwich;

/// Up to so many tokens a step takes the time of its weights.
static constexpr uint64_t fewTokens = 16;

/// Each step that is measured has so many times the tokens of the one before.
static constexpr uint64_t growth = 4;

/// Tokens of the long text, at most, and without which its slope would be
/// noise.
static constexpr uint64_t longText = 1024, leastLongText = 64;

namespace {
class Measurement {
public:
  Measurement(Engine &engine, const StepCostMeasurementOptions &options)
      : engine(engine), options(options) {}

  Result<StepCosts> run();

private:
  Status tell() const;
  bool affords(double seconds) const {
    return secondsSince(start) + seconds <= options.seconds;
  }
  /// Steps in which one of so many tokens is run.
  int runsOf(uint64_t tokens) const {
    return options.samples + (tokens <= fewTokens ? 1 : 0);
  }
  std::vector<int32_t> makeTokens(uint64_t count);
  Result<double> timeStep(std::vector<Sequence> &sequences, uint64_t tokens,
                          PhaseKind phase);
  Result<double> timePiece(uint64_t tokens);
  Result<double> timeDecode(uint64_t sequences);
  Status measureLongText();
  double predictPiece(uint64_t tokens) const;

  Engine &engine;
  const StepCostMeasurementOptions &options;
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  uint64_t texts = 0;
  StepCosts costs;
};
} // namespace

Status Measurement::tell() const {
  if (!options.progress)
    return {};
  return options.progress(std::min(1.0, secondsSince(start) / options.seconds));
}

/// Others each time, so that no two texts share blocks.
std::vector<int32_t> Measurement::makeTokens(uint64_t count) {
  ++texts;
  std::vector<int32_t> tokens(count);
  for (uint64_t i = 0; i < count; ++i)
    tokens[i] =
        static_cast<int32_t>((texts * 7919 + i * 104729) % engine.vocabSize());
  return tokens;
}

/// One step that appends `tokens` tokens to each of `sequences`, which are then
/// as before: the median of the samples, in seconds.
Result<double> Measurement::timeStep(std::vector<Sequence> &sequences,
                                     uint64_t tokens, PhaseKind phase) {
  const uint64_t before = sequences.front().length();
  std::vector<double> seconds;
  const int runs = runsOf(tokens * sequences.size());
  for (int run = 0; run < runs; ++run) {
    SANDWICH_RETURN_IF_ERROR(tell());
    std::vector<std::vector<int32_t>> ids;
    std::vector<Segment> segments;
    for (Sequence &sequence : sequences)
      segments.push_back({&sequence, ids.emplace_back(makeTokens(tokens))});
    const auto began = std::chrono::steady_clock::now();
    SANDWICH_RETURN_IF_ERROR(engine.step(segments, phase));
    const double taken = secondsSince(began);
    for (Sequence &sequence : sequences)
      sequence.truncate(before);
    if (run >= runs - options.samples)
      seconds.push_back(taken);
  }
  return median(std::move(seconds));
}

Result<double> Measurement::timePiece(uint64_t tokens) {
  std::vector<Sequence> one;
  one.push_back(engine.newSequence());
  return timeStep(one, tokens, PhaseKind::Prefill);
}

Result<double> Measurement::timeDecode(uint64_t sequences) {
  std::vector<Sequence> all;
  for (uint64_t i = 0; i < sequences; ++i)
    all.push_back(engine.newSequence());
  return timeStep(all, 1, PhaseKind::Decode);
}

/// What a step of so many tokens takes at most, as far as is known: in
/// proportion to its tokens beyond what was measured.
double Measurement::predictPiece(uint64_t tokens) const {
  for (const StepCosts::Point &point : costs.prefill)
    if (tokens <= point.tokens)
      return point.seconds;
  const StepCosts::Point &last = costs.prefill.back();
  return last.seconds * static_cast<double>(tokens) /
         static_cast<double>(last.tokens);
}

/// From a long text: what each position that attention reads takes, which the
/// curves are then without.
Status Measurement::measureLongText() {
  const uint64_t room =
      std::min(engine.contextLength(),
               engine.blockPool().freeBlocks() * SANDWICH_KV_BLOCK_TOKENS);
  const uint64_t length = std::min(room / 2, longText);
  if (length < leastLongText)
    return {};
  const uint64_t most = engine.limits(PhaseKind::Prefill).tokens;
  StepCosts::Point piece = costs.prefill.front();
  for (const StepCosts::Point &point : costs.prefill)
    if (point.tokens <= leastLongText)
      piece = point;
  const auto pieces = static_cast<double>((length + most - 1) / most);
  if (!affords(pieces * predictPiece(std::min(length, most)) +
               runsOf(piece.tokens) * piece.seconds +
               runsOf(1) * costs.decode.front().seconds))
    return {};
  std::vector<Sequence> text;
  text.push_back(engine.newSequence());
  SANDWICH_RETURN_IF_ERROR(tell());
  SANDWICH_RETURN_IF_ERROR(
      engine.feed(text.front(), makeTokens(length), LogitRows::None));
  SANDWICH_ASSIGN_OR_RETURN(double decodeSeconds,
                            timeStep(text, 1, PhaseKind::Decode));
  SANDWICH_ASSIGN_OR_RETURN(double pieceSeconds,
                            timeStep(text, piece.tokens, PhaseKind::Prefill));
  const auto positions = static_cast<double>(length);
  costs.secondsPerDecodePosition =
      std::max(0.0, (decodeSeconds - costs.decode.front().seconds) / positions);
  costs.secondsPerPromptPosition =
      std::max(0.0, (pieceSeconds - piece.seconds) /
                        (positions * static_cast<double>(piece.tokens)));
  for (StepCosts::Point &point : costs.prefill) {
    StepShape shape;
    shape.addPiece(0, point.tokens);
    // Noise must not make a step free.
    point.seconds =
        std::max(point.seconds / 2,
                 point.seconds - static_cast<double>(shape.promptPositions) *
                                     costs.secondsPerPromptPosition);
  }
  return {};
}

Result<StepCosts> Measurement::run() {
  const StepLimits &prefill = engine.limits(PhaseKind::Prefill);
  const StepLimits &decode = engine.limits(PhaseKind::Decode);
  const uint64_t blocks = engine.blockPool().freeBlocks();
  const uint64_t mostTokens = std::min({prefill.tokens, engine.contextLength(),
                                        blocks * SANDWICH_KV_BLOCK_TOKENS});
  const uint64_t mostSequences =
      std::min({decode.tokens, decode.logitRows, blocks});
  if (mostTokens == 0 || mostSequences == 0)
    return makeError("the KV cache has no room for a step");

  auto addPiece = [&](uint64_t tokens) -> Status {
    SANDWICH_ASSIGN_OR_RETURN(double seconds, timePiece(tokens));
    costs.prefill.push_back({tokens, seconds});
    return {};
  };
  auto addDecode = [&](uint64_t sequences) -> Status {
    SANDWICH_ASSIGN_OR_RETURN(double seconds, timeDecode(sequences));
    costs.decode.push_back({sequences, seconds});
    return {};
  };
  uint64_t pieceTokens = std::min(fewTokens, mostTokens);
  uint64_t sequences = 1;
  SANDWICH_RETURN_IF_ERROR(addPiece(pieceTokens));
  SANDWICH_RETURN_IF_ERROR(addDecode(sequences));
  while (true) {
    // From one point nobody knows what more tokens take, so two are measured
    // whatever that takes.
    const bool isSecond = costs.prefill.size() == 1;
    // What a prompt of as many tokens takes, a decode step hardly exceeds.
    const uint64_t moreSequences = std::min(
        sequences == 1 ? fewTokens : sequences * growth, mostSequences);
    if (moreSequences > sequences &&
        (isSecond || affords(runsOf(moreSequences) *
                             std::max(predictPiece(moreSequences),
                                      costs.decode.back().seconds)))) {
      sequences = moreSequences;
      SANDWICH_RETURN_IF_ERROR(addDecode(sequences));
    }
    const uint64_t moreTokens = std::min(pieceTokens * growth, mostTokens);
    if (moreTokens == pieceTokens ||
        !(isSecond || affords(runsOf(moreTokens) * predictPiece(moreTokens))))
      break;
    pieceTokens = moreTokens;
    SANDWICH_RETURN_IF_ERROR(addPiece(pieceTokens));
  }
  SANDWICH_RETURN_IF_ERROR(measureLongText());
  return costs;
}

Result<StepCosts>
sandwich::measureStepCosts(Engine &engine,
                           const StepCostMeasurementOptions &options) {
  Result<StepCosts> costs = Measurement(engine, options).run();
  // Nobody asks for these texts again.
  engine.blockPool().clearPrefixCache();
  return costs;
}

std::optional<StepCosts>
sandwich::stepCostsOf(const proto::Manifest &manifest) {
  if (!manifest.has_step_times())
    return std::nullopt;
  const proto::StepTimes &times = manifest.step_times();
  StepCosts costs;
  for (const proto::StepTimes::Point &point : times.prefill())
    costs.prefill.push_back({point.tokens(), point.seconds()});
  for (const proto::StepTimes::Point &point : times.decode())
    costs.decode.push_back({point.tokens(), point.seconds()});
  costs.secondsPerPromptPosition = times.seconds_per_prompt_position();
  costs.secondsPerDecodePosition = times.seconds_per_decode_position();
  return costs;
}

proto::StepTimes sandwich::toStepTimes(const StepCosts &costs) {
  proto::StepTimes times;
  auto add = [](const StepCosts::Point &point, proto::StepTimes::Point &added) {
    added.set_tokens(static_cast<uint32_t>(point.tokens));
    added.set_seconds(point.seconds);
  };
  for (const StepCosts::Point &point : costs.prefill)
    add(point, *times.add_prefill());
  for (const StepCosts::Point &point : costs.decode)
    add(point, *times.add_decode());
  times.set_seconds_per_prompt_position(costs.secondsPerPromptPosition);
  times.set_seconds_per_decode_position(costs.secondsPerDecodePosition);
  return times;
}
