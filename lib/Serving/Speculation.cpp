//===- Speculation.cpp - Whether proposed tokens pay ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Speculation.h"

#include "sandwich/Serving/Scheduler.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <queue>
#include <utility>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Estimates
//===----------------------------------------------------------------------===//

/// Before anything was proposed, and as many tokens as that counts for.
static constexpr double firstGuess = 0.6, guessTrials = 4;

/// Tokens of others that a text's own proposals count as much as.
static constexpr double othersTrials = 4;

/// Tokens that a probe proposes at most.
static constexpr uint64_t probeTokens = 4;

/// Proposing that takes less than this part of a step is not worth a decision.
static constexpr double littleTime = 0.01;

/// Steps without proposals before there are any, as costs may be assumed ones,
/// and steps with proposals after which there is another one: nothing else
/// would tell that they have become cheaper.
static constexpr uint64_t firstPlainSteps = 4, mostWithoutPlain = 64;

/// So much more tokens a second than without proposals are worth it: less is
/// within the noise of what steps take.
static constexpr double leastGain = 1.02;

/// How much of the mean is the last one.
static constexpr double weightOfLast = 0.1;

void AcceptanceRate::observeOne(double outcome) {
  accepted = accepted * keep + outcome;
  trials = trials * keep + 1;
}

void AcceptanceRate::observe(uint64_t count, bool refused) {
  for (uint64_t i = 0; i < count; ++i)
    observeOne(1);
  if (refused)
    observeOne(0);
}

double sandwich::expectedAccepted(double rate, uint64_t count) {
  double expected = 0, all = 1;
  for (uint64_t i = 0; i < count; ++i)
    expected += all *= rate;
  return expected;
}

void ProbeSchedule::observe(bool probed, uint64_t proposed, uint64_t accepted) {
  skipped = 0;
  // A probe that was right by half may have been lucky.
  if (accepted == proposed || (!probed && 2 * accepted >= proposed))
    interval = least;
  else if (probed && 2 * accepted < proposed)
    interval = std::min(2 * interval, most);
}

double Scheduler::acceptanceOf(const Text &text) const {
  return text.acceptance.estimate(acceptance.estimate(firstGuess, guessTrials),
                                  othersTrials);
}

//===----------------------------------------------------------------------===//
// What to ask for
//===----------------------------------------------------------------------===//

uint64_t Scheduler::mostProposals(const Entry &entry, const Text &text) const {
  if (!text.streams(entry.promptLength))
    return 0;
  // The token behind the proposals is drawn, too.
  const uint64_t generated = text.tokens.size() - entry.promptLength;
  const uint64_t wanted = entry.request.maxTokens - generated - 1;
  const uint64_t room =
      options.limits.contextLength - text.sequence.length() - 1;
  return std::min({options.speculation.maxTokens, wanted, room});
}

/// `shape` with one more proposed token behind `computed` tokens, the known one
/// and `proposed` others.
static void addProposal(StepShape &shape, uint64_t computed,
                        uint64_t proposed) {
  if (proposed == 0) {
    --shape.decodeSequences;
    shape.decodePositions -= computed + 1;
    shape.addPiece(computed, 2);
  } else {
    shape.addPiece(computed + 1 + proposed, 1);
  }
  shape.phase = StepPhase::Prefill;
}

uint64_t Scheduler::bestDepth(const std::vector<ProposalRequest> &texts,
                              const StepShape &streams) const {
  const auto count = static_cast<double>(streams.decodeSequences);
  double best = leastGain * count / plainSeconds(streams);
  uint64_t bestDepth = 0;
  StepShape shape = streams;
  for (uint64_t depth = 1; depth <= options.speculation.maxTokens; ++depth) {
    double drawn = count;
    for (const ProposalRequest &each : texts) {
      const Text &text = entries.at(each.request).texts[each.text];
      drawn += expectedAccepted(acceptanceOf(text), std::min(each.most, depth));
      if (depth <= each.most)
        addProposal(shape, text.sequence.length(), depth - 1);
    }
    const double rate =
        drawn / (costs.seconds(shape) +
                 static_cast<double>(depth) * secondsPerProposal);
    if (rate > best) {
      best = rate;
      bestDepth = depth;
    }
  }
  return bestDepth;
}

bool Scheduler::comparesNext() const {
  return !options.speculation.always &&
         (plainSteps < firstPlainSteps || stepsSincePlain >= mostWithoutPlain);
}

double Scheduler::plainSeconds(StepShape streams) const {
  // Either program could run it.
  const double decode = costs.seconds(streams);
  streams.phase = StepPhase::Prefill;
  return std::min(decode, costs.seconds(streams));
}

bool Scheduler::proposesAtNoCost(const StepShape &streams) const {
  const auto deepest = static_cast<double>(options.speculation.maxTokens);
  return deepest * secondsPerProposal < littleTime * costs.seconds(streams);
}

std::vector<ProposalRequest> Scheduler::wantedProposals() {
  std::vector<ProposalRequest> wanted;
  probing = false;
  if (options.speculation.maxTokens == 0 || stepUnderWay || comparesNext())
    return wanted;
  for (Entry *entry : order) {
    if (entry->outcome || !entry->running)
      continue;
    // A step with prompts has none.
    if (promptTokensDue(*entry) > 0)
      return {};
    for (uint32_t i = 0; i < entry->texts.size(); ++i)
      if (const uint64_t most = mostProposals(*entry, entry->texts[i]))
        wanted.push_back({entry->id, i, entry->texts[i].tokens, most});
  }
  const StepShape streams = streamsShape();
  if (wanted.empty() || !canMix(streams.decodeSequences))
    return {};
  if (options.speculation.always || proposesAtNoCost(streams))
    return wanted;
  if (const uint64_t depth = bestDepth(wanted, streams); depth > 0) {
    for (ProposalRequest &each : wanted)
      each.most = std::min(each.most, depth);
    return wanted;
  }
  probing = probes.skip();
  if (!probing)
    return {};
  // The likeliest one tells the most at the least cost.
  const auto likeliest =
      std::ranges::max_element(wanted, {}, [&](const ProposalRequest &each) {
        return acceptanceOf(entries.at(each.request).texts[each.text]);
      });
  std::vector<ProposalRequest> probe = {*likeliest};
  probe[0].most = std::min(probe[0].most, probeTokens);
  return probe;
}

void Scheduler::propose(RequestId request, uint32_t text,
                        std::span<const int32_t> tokens) {
  const auto found = entries.find(request);
  if (found == entries.end() || found->second.outcome ||
      text >= found->second.texts.size())
    return;
  Entry &entry = found->second;
  const size_t count =
      std::min<size_t>(tokens.size(), mostProposals(entry, entry.texts[text]));
  entry.texts[text].proposal.assign(
      tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

void Scheduler::noteProposing(uint64_t depth, double seconds) {
  speculation.seconds += std::max(0.0, seconds);
  if (depth == 0 || !(seconds >= 0))
    return;
  const double each = seconds / static_cast<double>(depth);
  secondsPerProposal = secondsPerProposal == 0
                           ? each
                           : std::lerp(secondsPerProposal, each, weightOfLast);
}

//===----------------------------------------------------------------------===//
// What to take
//===----------------------------------------------------------------------===//

namespace {
/// A proposed token that a step might have next, for the segment `segment`.
struct Gain {
  /// How probable it is that it is drawn.
  double drawn;
  size_t segment;

  bool operator<(const Gain &other) const {
    return drawn != other.drawn ? drawn < other.drawn : segment > other.segment;
  }
};
} // namespace

std::vector<uint64_t> Scheduler::chooseProposals(const StepPlan &plan) const {
  const SchedulerLimits::Phase &limits = options.limits.prefill;
  const uint64_t streams = plan.segments.size();
  // What each segment has in the step that is planned, and in the best one.
  std::vector<uint64_t> counts(streams), best;
  std::vector<double> rates;
  std::priority_queue<Gain> gains;
  StepShape shape;
  for (size_t i = 0; i < streams; ++i) {
    const Text &text = textOf(plan.segments[i]);
    shape.addDecode(text.sequence.length());
    rates.push_back(acceptanceOf(text));
    if (!text.proposal.empty())
      gains.push({rates.back(), i});
  }
  const double alone = plainSeconds(shape);
  // Those that nothing is proposed for would only wait.
  const double patience = streamPace(alone);
  double drawn = static_cast<double>(streams);
  double bestRate = leastGain * drawn / alone;
  uint64_t without = streams;
  while (!gains.empty() &&
         shape.tokens() < std::min(limits.tokens, limits.logitRows)) {
    const Gain gain = gains.top();
    gains.pop();
    const size_t i = gain.segment;
    const Text &text = textOf(plan.segments[i]);
    without -= counts[i] == 0;
    addProposal(shape, text.sequence.length(), counts[i]);
    if (++counts[i] < text.proposal.size())
      gains.push({gain.drawn * rates[i], i});
    drawn += gain.drawn;
    const double seconds = costs.seconds(shape);
    const bool pays =
        drawn / seconds > bestRate && (without == 0 || seconds <= patience);
    if (!pays && !options.speculation.always)
      continue;
    bestRate = drawn / seconds;
    best = counts;
  }
  return best;
}

std::vector<uint64_t> Scheduler::probe(const StepPlan &plan) {
  const SchedulerLimits::Phase &limits = options.limits.prefill;
  const uint64_t room =
      std::min(limits.tokens, limits.logitRows) - plan.segments.size();
  size_t likeliest = plan.segments.size();
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const Text &text = textOf(plan.segments[i]);
    if (!text.proposal.empty() &&
        (likeliest == plan.segments.size() ||
         acceptanceOf(text) > acceptanceOf(textOf(plan.segments[likeliest]))))
      likeliest = i;
  }
  if (likeliest == plan.segments.size() || room == 0)
    return {};
  if (!(proposesAtNoCost(streamsShape()) ? probes.skip() : probing))
    return {};
  std::vector<uint64_t> counts(plan.segments.size());
  counts[likeliest] = std::min<uint64_t>(
      {textOf(plan.segments[likeliest]).proposal.size(), probeTokens, room});
  return counts;
}

void Scheduler::speculate(StepPlan &plan) {
  // Segments of one token each, and a row of logits for every one.
  const bool onlyStreams =
      std::ranges::all_of(plan.segments, [&](const StepSegment &segment) {
        return textOf(segment).streams(
                   entries.at(segment.request).promptLength) &&
               segment.samples == 1;
      });
  if (!plan.segments.empty() && onlyStreams && canMix(plan.segments.size())) {
    std::vector<uint64_t> counts;
    if (!comparesNext()) {
      counts = chooseProposals(plan);
      probed = probing || counts.empty();
      if (counts.empty())
        counts = probe(plan);
    }
    for (size_t i = 0; i < counts.size(); ++i)
      addProposals(plan.segments[i], counts[i]);
    stepsSincePlain = counts.empty() ? 0 : stepsSincePlain + 1;
    plainSteps += counts.empty();
  }
  for (Entry *entry : order)
    for (Text &text : entry->texts)
      text.proposal.clear();
}

void Scheduler::addProposals(StepSegment &segment, uint64_t count) {
  Text &text = textOf(segment);
  const BlockPool::Append append = {&text.sequence, 1 + count};
  // Nobody is to lose blocks for them.
  if (!pool.reserve({&append, 1})) {
    const uint64_t room =
        text.sequence.blocks().size() * SANDWICH_KV_BLOCK_TOKENS;
    count = std::min(count, room - text.sequence.length() - 1);
  }
  if (count == 0)
    return;
  text.speculated.assign(1, text.tokens.back());
  text.speculated.insert(text.speculated.end(), text.proposal.begin(),
                         text.proposal.begin() +
                             static_cast<std::ptrdiff_t>(count));
  segment.tokens = text.speculated;
  segment.proposed = count;
}

//===----------------------------------------------------------------------===//
// What came of it
//===----------------------------------------------------------------------===//

uint64_t StepSegment::drawn(std::span<const ChosenToken> chosen) const {
  if (proposed == 0)
    return samples;
  assert(!chosen.empty() && "every step gives a token");
  uint64_t count = 1;
  while (count <= proposed && count < chosen.size() &&
         !chosen[count - 1].ends && chosen[count - 1].token == tokens[count])
    ++count;
  return count;
}

void Scheduler::noteProposals(Text &text, const StepSegment &segment,
                              std::span<const ChosenToken> drawn) {
  const ChosenToken &last = drawn.back();
  // The last one may be the one that was proposed, and end the text.
  const bool lastAccepted = drawn.size() <= segment.proposed &&
                            last.token == segment.tokens[drawn.size()];
  const uint64_t accepted = drawn.size() - 1 + (lastAccepted ? 1 : 0);
  const bool refused = accepted < segment.proposed && !last.ends;
  text.acceptance.observe(accepted, refused);
  acceptance.observe(accepted, refused);
  speculation.proposedTokens += segment.proposed;
  speculation.acceptedTokens += accepted;
}
