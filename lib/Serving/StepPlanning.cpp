//===- StepPlanning.cpp - What the next step computes ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Why nothing waits forever. Every plan goes through the requests in their
/// order, and the first in it takes sequences and blocks from whoever has them.
/// As it alone fits into the pool (`checkRequest`), it gets all it needs: in
/// each step that is for its kind of tokens, streams or prompts, at least one
/// of them is computed. Where the kinds alternate, each has every second step.
/// Nobody preempts the first, so that nothing it has computed is lost while it
/// is the first, and it ends. Requests that come later get before a waiting one
/// only while the aging of its priority lasts, so it becomes the first.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Scheduler.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <ranges>

using namespace sandwich;

static constexpr double unlimited = std::numeric_limits<double>::infinity();

/// What is left of a step's limits for prompts.
class Scheduler::Budget {
public:
  Budget(const Scheduler &scheduler, const StepKind &kind)
      : scheduler(scheduler), limits(scheduler.options.limits.prefill),
        seconds(kind.seconds) {
    // The streams get their tokens first, whatever their place in the order.
    if (kind.streams)
      shape = scheduler.streamsShape();
    shape.phase = StepPhase::Prefill;
    segments = rows = shape.decodeSequences;
  }

  /// Tokens of a prompt, behind `computed` others, that fit into the step, of
  /// `due`, each of which wants a row of logits if the prompt is scored. The
  /// first prompt gets some in any case, or else it would wait for streams that
  /// never leave room.
  uint64_t piece(uint64_t computed, uint64_t due, bool scores) const {
    // Every segment may want a row.
    if (segments >= limits.sequences || rows >= limits.logitRows ||
        shape.tokens() >= limits.tokens)
      return 0;
    uint64_t most = std::min(due, limits.tokens - shape.tokens());
    if (scores)
      most = std::min(most, limits.logitRows - rows);
    const uint64_t least = std::min(most, leastPiece);
    const uint64_t fits =
        scheduler.mostPromptTokens(shape, computed, most, seconds);
    if (shape.promptTokens == 0)
      return std::max(fits, least);
    return fits < least ? 0 : fits;
  }

  bool hasRoom() const { return piece(0, 1, /*scores=*/false) > 0; }

  void add(uint64_t computed, uint64_t tokens, bool scores) {
    shape.addPiece(computed, tokens);
    ++segments;
    rows += scores ? tokens : 1;
  }

private:
  const Scheduler &scheduler;
  const SchedulerLimits::Phase &limits;
  double seconds;
  StepShape shape;
  uint64_t segments;
  uint64_t rows;
};

StepPlan Scheduler::next(double now) {
  assert(!stepUnderWay && "one step at a time");
  endOverdue(now);
  StepPlan plan;
  plan.number = ++steps;
  plan.ended = takeEnded();
  StepKind kind = chooseKind();
  fill(plan, kind);
  if (plan.segments.empty()) {
    // No prompt could begin, or a prompt took the blocks of all streams.
    kind = {!kind.streams, !kind.prompts, unlimited};
    fill(plan, kind);
  }
  streamsWereLast = kind.streams;
  if (options.speculation.maxTokens > 0)
    speculate(plan);
  finishPlan(plan, now);
  return plan;
}

void Scheduler::endOverdue(double now) {
  for (Entry *entry : order)
    if (entry->request.deadline && *entry->request.deadline <= now &&
        !entry->outcome)
      end(*entry,
          makeError(ErrorKind::DeadlineExceeded,
                    "the request's deadline has passed"),
          now);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

bool Scheduler::preemptBehind(const Entry &entry, bool lowerOnly,
                              StepPlan &plan) {
  Entry *victim = nullptr;
  for (Entry *other : std::views::reverse(order)) {
    if (other == &entry)
      break;
    if (!other->running ||
        (lowerOnly && other->request.priority >= entry.request.priority))
      continue;
    victim = other;
    // Nobody is the one twice in a row if there is another.
    if (other->id != lastPreempted)
      break;
  }
  if (victim)
    preempt(*victim, plan);
  return victim;
}

void Scheduler::preempt(Entry &entry, StepPlan &plan) {
  release(entry);
  ++entry.preemptions;
  ++preemptions;
  lastPreempted = entry.id;
  plan.preempted.push_back(entry.id);
}

uint64_t Scheduler::blocksToStart(const Entry &entry) const {
  const Text &trunk = entry.texts[entry.firstLive()];
  const BlockPool::Prefix prefix =
      pool.findPrefix(entry.claimable(trunk), entry.request.salt);
  uint64_t blocks = BlockPool::blocksFor(trunk.tokens.size()) -
                    prefix.tokens / SANDWICH_KV_BLOCK_TOKENS +
                    prefix.freeBlocks;
  // The others share the prompt's full blocks, and go on.
  for (const Text &text : entry.texts) {
    if (text.finished || &text == &trunk)
      continue;
    const uint64_t begun = std::min(entry.promptLength + 1, entry.longest);
    blocks += BlockPool::blocksFor(std::max(text.tokens.size(), begun)) -
              entry.promptLength / SANDWICH_KV_BLOCK_TOKENS;
  }
  return blocks;
}

bool Scheduler::start(Entry &entry, uint64_t growthAhead, StepPlan &plan) {
  const bool first = order.front() == &entry;
  if (!first &&
      runningTexts() + entry.liveTexts() > affordableTexts(streamsShape()))
    return false;
  // Or those ahead would preempt it before it got far.
  while (runningTexts() + entry.liveTexts() > maxTexts() ||
         blocksToStart(entry) + growthAhead > pool.freeBlocks())
    if (!preemptBehind(entry, /*lowerOnly=*/!first, plan))
      return false;
  entry.trunk = entry.firstLive();
  Text &trunk = entry.texts[entry.trunk];
  const uint64_t found =
      trunk.sequence.claimPrefix(entry.claimable(trunk), entry.request.salt);
  if (!entry.startedAt)
    entry.cachedTokens = std::min(found, entry.promptLength);
  trunk.joined = true;
  entry.running = true;
  const bool ready = makeReady(entry, plan);
  assert(ready && "its blocks were counted");
  return ready;
}

bool Scheduler::makeReady(Entry &entry, StepPlan &plan) {
  std::vector<BlockPool::Append> appends;
  for (Text &text : entry.texts)
    if (text.runs())
      appends.push_back({&text.sequence, text.due()});
  while (!pool.reserve(appends))
    if (!preemptBehind(entry, /*lowerOnly=*/false, plan)) {
      preempt(entry, plan);
      return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Filling a step
//===----------------------------------------------------------------------===//

void Scheduler::fill(StepPlan &plan, const StepKind &kind) {
  Budget budget(*this, kind);
  bool mayStart = kind.prompts;
  uint64_t growthAhead = 0;
  for (Entry *entry : order) {
    if (!entry->running) {
      // Nobody overtakes who waits, so that large requests get their turn.
      mayStart =
          mayStart && budget.hasRoom() && start(*entry, growthAhead, plan);
      // What is cached may leave it one token to compute, as a stream has, for
      // which the budget has set nothing aside.
      if (mayStart)
        addPieces(*entry, /*streamsToo=*/true, budget, plan);
    } else if (makeReady(*entry, plan)) {
      if (kind.streams)
        addStreams(*entry, plan);
      if (kind.prompts)
        addPieces(*entry, /*streamsToo=*/false, budget, plan);
    }
    if (entry->running)
      growthAhead += entry->growth();
  }
}

void Scheduler::addStreams(Entry &entry, StepPlan &plan) {
  for (size_t i = 0; i < entry.texts.size(); ++i)
    if (entry.texts[i].streams(entry.promptLength))
      addSegment(entry, i, 1, plan);
}

void Scheduler::addPieces(Entry &entry, bool streamsToo, Budget &budget,
                          StepPlan &plan) {
  for (size_t i = 0; i < entry.texts.size(); ++i) {
    const Text &text = entry.texts[i];
    if (!text.runs() || (!streamsToo && text.streams(entry.promptLength)))
      continue;
    const uint64_t computed = text.sequence.length();
    const bool scores = entry.scores() && computed >= entry.scoredTokens;
    // What was told already ends before what was not.
    const uint64_t due =
        entry.scores() && !scores ? entry.scoredTokens - computed : text.due();
    const uint64_t tokens = budget.piece(computed, due, scores);
    if (tokens == 0)
      return;
    budget.add(computed, tokens, scores);
    addSegment(entry, i, tokens, plan);
  }
}

std::span<const int32_t>
Scheduler::scoredBy(const Entry &entry, const Text &text, uint64_t tokens) {
  const uint64_t computed = text.sequence.length();
  if (!entry.scores() || computed < entry.scoredTokens)
    return {};
  // Behind the prompt's last token is none that is known.
  return std::span(text.tokens)
      .subspan(computed + 1,
               std::min(tokens, entry.promptLength - computed - 1));
}

void Scheduler::addSegment(Entry &entry, size_t index, uint64_t tokens,
                           StepPlan &plan) {
  Text &text = entry.texts[index];
  uint32_t samples = 0;
  if (tokens == text.due() && entry.request.maxTokens > 0)
    // All continuations begin with the prompt's last logits.
    samples = text.tokens.size() == entry.promptLength
                  ? entry.request.continuations
                  : 1;
  if (entry.plannedIn != plan.number)
    entry.plannedPieces = 0;
  if (!text.streams(entry.promptLength))
    entry.plannedPieces += tokens;
  plan.segments.push_back(
      {.request = entry.id,
       .text = static_cast<uint32_t>(index),
       .sequence = &text.sequence,
       .tokens = std::span(text.tokens).subspan(text.sequence.length(), tokens),
       .samples = samples,
       .scored = scoredBy(entry, text, tokens)});
  entry.plannedIn = plan.number;
}

void Scheduler::finishPlan(StepPlan &plan, double now) {
  for (const StepSegment &segment : plan.segments) {
    Entry &entry = entries.at(segment.request);
    if (!entry.startedAt)
      entry.startedAt = now;
    if (segment.tokens.size() == 1)
      plan.shape.addDecode(segment.sequence->length());
    else
      plan.shape.addPiece(segment.sequence->length(), segment.tokens.size());
  }
  plan.shape.phase =
      plan.shape.promptTokens > 0 || plan.segments.size() > maxTexts()
          ? StepPhase::Prefill
          : StepPhase::Decode;
  plan.plannedAt = now;
  plan.predictedSeconds = costs.seconds(plan.shape);
  predictedSeconds = plan.predictedSeconds;
  phaseUnderWay = plan.phase();
  stepUnderWay = !plan.segments.empty();
}
