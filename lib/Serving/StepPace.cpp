//===- StepPace.cpp - How fast prompts go beside streams ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Scheduler.h"

#include <algorithm>
#include <limits>
#include <ranges>

using namespace sandwich;

static constexpr double unlimited = std::numeric_limits<double>::infinity();
/// As much of the objective steps may be predicted to take. Where more comes
/// than can be served, all of them take as much; half of the texts would miss
/// an objective that their steps only meet on average.
static constexpr double paceTolerance = 0.85;

double Scheduler::streamPace(double alone) const {
  return options.tokenObjective ? paceTolerance * *options.tokenObjective
                                : options.slowdown * alone;
}

StepShape Scheduler::streamsShape() const {
  StepShape shape;
  for (const Entry *entry : order)
    for (const Text &text : entry->texts)
      if (text.streams(entry->promptLength))
        shape.addDecode(text.sequence.length());
  return shape;
}

uint64_t Scheduler::runningTexts() const {
  uint64_t texts = 0;
  for (const Entry *entry : order)
    if (entry->running)
      texts += entry->liveTexts();
  return texts;
}

uint64_t Scheduler::promptTokensDue(const Entry &entry) const {
  if (!entry.running)
    return entry.knownTokens();
  uint64_t due = 0;
  for (const Text &text : entry.texts)
    if (text.runs() && !text.streams(entry.promptLength))
      due += text.due();
  return due;
}

uint64_t Scheduler::mostPromptTokens(const StepShape &shape, uint64_t computed,
                                     uint64_t most, double seconds) const {
  auto takes = [&](uint64_t tokens) {
    StepShape with = shape;
    with.addPiece(computed, tokens);
    return costs.seconds(with);
  };
  if (most == 0 || takes(most) <= seconds)
    return most;
  return *std::ranges::partition_point(
             std::views::iota(uint64_t{1}, most),
             [&](uint64_t tokens) { return takes(tokens) <= seconds; }) -
         1;
}

bool Scheduler::canMix(uint64_t streams) const {
  const SchedulerLimits::Phase &limits = options.limits.prefill;
  return streams <
         std::min({limits.tokens, limits.sequences, limits.logitRows});
}

uint64_t Scheduler::affordableTexts(const StepShape &streams) const {
  if (!options.tokenObjective)
    return maxTexts();
  const uint64_t each =
      streams.decodePositions / std::max<uint64_t>(1, streams.decodeSequences);
  auto secondsOf = [&](uint64_t texts) {
    StepShape shape = {.decodeSequences = texts,
                       .decodePositions = texts * each};
    StepShape piece = {.phase = StepPhase::Prefill};
    piece.addPiece(0, leastPiece);
    double seconds = costs.seconds(shape) + costs.seconds(piece);
    shape.phase = StepPhase::Prefill;
    shape.addPiece(0, leastPiece);
    if (canMix(texts))
      seconds = std::min(seconds, costs.seconds(shape));
    return seconds;
  };
  // Where not even one text keeps the pace, it may still keep the objective.
  for (double limit : {streamPace(0), *options.tokenObjective}) {
    const uint64_t texts =
        *std::ranges::partition_point(
            std::views::iota(uint64_t{1}, maxTexts() + 1),
            [&](uint64_t count) { return secondsOf(count) <= limit; }) -
        1;
    if (texts > 0)
      return texts;
  }
  return maxTexts();
}

Scheduler::PromptPace Scheduler::promptPace(const StepShape &streams,
                                            uint64_t tokensDue) const {
  const SchedulerLimits::Phase &limits = options.limits.prefill;
  const uint64_t most = std::min(limits.tokens, tokensDue);
  const StepShape apart = {.phase = StepPhase::Prefill};
  auto takes = [&](StepShape shape, uint64_t tokens) {
    shape.addPiece(0, tokens);
    return costs.seconds(shape);
  };
  if (streams.decodeSequences == 0)
    return {true, unlimited, most, takes(apart, most)};

  const double alone = costs.seconds(streams);
  const double limit = streamPace(alone);
  const uint64_t taken = streams.decodeSequences;
  StepShape both = streams;
  both.phase = StepPhase::Prefill;
  const uint64_t room =
      canMix(taken) ? std::min(most, limits.tokens - taken) : 0;
  const uint64_t mixed = mostPromptTokens(both, 0, room, limit);
  const uint64_t apartTokens = mostPromptTokens(apart, 0, most, limit - alone);
  const uint64_t either =
      std::max({mixed, apartTokens, std::min(room, leastPiece)});
  // As many tokens in less time, or more of them in the time there is.
  const bool mixes = canMix(taken) &&
                     (mixed == apartTokens
                          ? takes(both, either) <= alone + takes(apart, either)
                          : mixed > apartTokens);
  if (mixes)
    return {true, limit, either, takes(both, either)};
  if (apartTokens > 0)
    return {false, limit - alone, apartTokens,
            alone + takes(apart, apartTokens)};
  // The streams get slower in any case: one step may at least be useful.
  const uint64_t useful = std::max(mostPromptTokens(apart, 0, most, limit),
                                   std::min(most, leastPiece));
  return {false, limit, useful, alone + takes(apart, useful)};
}

Scheduler::StepKind Scheduler::chooseKind() const {
  const StepShape streams = streamsShape();
  uint64_t due = 0;
  for (const Entry *entry : order)
    due += promptTokensDue(*entry);
  if (due == 0 || streams.decodeSequences == 0)
    return {due == 0, due > 0, unlimited};
  const PromptPace pace = promptPace(streams, due);
  if (pace.mixed)
    return {true, true, pace.seconds};
  if (streamsWereLast)
    return {false, true, pace.seconds};
  return {true, false, unlimited};
}
