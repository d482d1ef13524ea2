//===- Scheduler.cpp - Who is computed when -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Scheduler.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

using namespace sandwich;

/// Blocks that are kept free for each text that runs before another may begin.
/// While it gets as many tokens others end, in the mean; more would be idle,
/// and less lets texts preempt each other.
static constexpr uint64_t growthOfText = 3;

/// How much of the mean is the last one.
static constexpr double weightOfLast = 0.1;

uint64_t Scheduler::Entry::liveTexts() const {
  return static_cast<uint64_t>(
      std::ranges::count(texts, false, &Text::finished));
}

size_t Scheduler::Entry::firstLive() const {
  return static_cast<size_t>(std::ranges::find(texts, false, &Text::finished) -
                             texts.begin());
}

std::span<const int32_t> Scheduler::Entry::claimable(const Text &text) const {
  const std::span<const int32_t> tokens(text.tokens);
  return scores() ? tokens.first(scoredTokens + 1) : tokens;
}

uint64_t Scheduler::Entry::growth() const {
  uint64_t blocks = 0;
  for (const Text &text : texts) {
    if (text.finished)
      continue;
    const uint64_t has = text.joined ? text.sequence.blocks().size()
                                     : promptLength / SANDWICH_KV_BLOCK_TOKENS;
    blocks += std::min(BlockPool::blocksFor(longest) - has, growthOfText);
  }
  return blocks;
}

//===----------------------------------------------------------------------===//
// What comes of steps
//===----------------------------------------------------------------------===//

void Scheduler::joinTexts(Entry &entry) {
  const Text &trunk = entry.texts[entry.trunk];
  if (trunk.sequence.length() < entry.promptLength)
    return;
  for (Text &text : entry.texts) {
    if (text.joined || text.finished)
      continue;
    if (text.tokens.empty())
      text.tokens.assign(trunk.tokens.begin(),
                         trunk.tokens.begin() +
                             static_cast<std::ptrdiff_t>(entry.promptLength));
    text.sequence = trunk.sequence.fork();
    text.sequence.truncate(entry.promptLength);
    text.joined = true;
  }
}

void Scheduler::accept(Entry &entry, uint32_t index, const ChosenToken &sampled,
                       double now, StepEvents &events) {
  Text &text = entry.texts[index];
  text.tokens.push_back(sampled.token);
  ++entry.generatedTokens;
  ++generatedTokens;
  if (!entry.firstTokenAt)
    entry.firstTokenAt = now;
  std::optional<FinishReason> finish = sampled.ends;
  if (!finish &&
      text.tokens.size() - entry.promptLength == entry.request.maxTokens)
    finish = FinishReason::MaxTokens;
  // The token itself has no place any more.
  if (!finish && text.tokens.size() > options.limits.contextLength)
    finish = FinishReason::ContextFull;
  if (finish) {
    text.finished = true;
    text.sequence.clear();
  }
  events.tokens.push_back({entry.id, index, sampled.token, finish});
}

void Scheduler::noteScores(Entry &entry, const StepSegment &segment,
                           StepEvents &events) {
  const uint64_t computed =
      std::min(segment.sequence->length(), entry.promptLength);
  if (computed > entry.scoredTokens) {
    // The row of a token is about the one after it.
    if (!segment.scored.empty())
      events.scores.push_back(
          {entry.id, entry.scoredTokens + 1, segment.scored.size()});
    entry.scoredTokens = computed;
  }
  if (entry.request.maxTokens > 0 || computed < entry.promptLength)
    return;
  for (Text &text : entry.texts) {
    text.finished = true;
    text.sequence.clear();
  }
}

void Scheduler::countSteps(const StepPlan &plan, uint64_t count,
                           double seconds) {
  PhaseStatistics &phase =
      plan.phase() == StepPhase::Prefill ? prefill : decode;
  phase.steps += count;
  phase.tokens += count * plan.shape.tokens();
  // The caller's clock may be set back.
  phase.seconds += std::max(0.0, seconds);
}

void Scheduler::append(const StepSegment &segment,
                       std::span<const ChosenToken> drawn) {
  if (segment.proposed == 0) {
    segment.sequence->append(segment.tokens);
    return;
  }
  // Behind a token that was not drawn, what was computed is of no use. What was
  // written there is written again.
  segment.sequence->append(segment.tokens.first(drawn.size()));
  pool.releaseUnused(*segment.sequence);
  noteProposals(textOf(segment), segment, drawn);
}

StepEvents Scheduler::complete(const StepPlan &plan,
                               std::span<const ChosenToken> sampled,
                               double now) {
  assert(stepUnderWay && plan.number == steps &&
         "only the step under way ends");
  stepUnderWay = false;
  costs.observe(plan.shape, now - plan.plannedAt);
  countSteps(plan, 1, now - plan.plannedAt);
  StepEvents events;
  const SpeculationStatistics before = speculation;
  for (const StepSegment &segment : plan.segments) {
    const uint64_t count = segment.drawn(sampled);
    assert(count <= sampled.size() && "every row gives its tokens");
    const auto own = sampled.first(count);
    sampled = sampled.subspan(count);
    Entry &entry = entries.at(segment.request);
    if (entry.outcome)
      continue;
    append(segment, own);
    joinTexts(entry);
    if (!entry.promptDone && segment.sequence->length() >= entry.promptLength) {
      entry.promptDone = true;
      promptTokens += entry.promptLength;
    }
    if (entry.request.scoresPrompt)
      noteScores(entry, segment, events);
    for (uint32_t i = 0; i < count; ++i)
      accept(entry, segment.text + (segment.proposed > 0 ? 0 : i), own[i], now,
             events);
    if (entry.liveTexts() == 0)
      end(entry, {}, now);
  }
  if (const uint64_t proposed =
          speculation.proposedTokens - before.proposedTokens) {
    ++speculation.steps;
    probes.observe(probed, proposed,
                   speculation.acceptedTokens - before.acceptedTokens);
  }
  events.ended = takeEnded();
  return events;
}

uint64_t Scheduler::steadySteps(const StepPlan &plan) const {
  const uint64_t running = runningTexts();
  if (plan.phase() != StepPhase::Decode || plan.shape.promptTokens > 0 ||
      plan.segments.size() != running)
    return 1;
  uint64_t count = options.limits.contextLength;
  for (const Entry *entry : order) {
    // Who waits for a sequence goes on to, unless it may take one from others.
    const bool waits =
        !entry->running && entry != order.front() && running == maxTexts();
    if (entry->outcome || entry->request.deadline ||
        entry->request.priority != order.front()->request.priority ||
        !(entry->running || waits))
      return 1;
    for (const Text &text : entry->texts) {
      if (!entry->running || text.finished)
        continue;
      if (!text.streams(entry->promptLength))
        return 1;
      const uint64_t generated = text.tokens.size() - entry->promptLength;
      count = std::min({count, entry->request.maxTokens - generated,
                        options.limits.contextLength - text.sequence.length()});
    }
  }
  uint64_t blocks = 0;
  for (const StepSegment &segment : plan.segments)
    blocks += pool.blocksNeeded({segment.sequence, count});
  return blocks <= pool.freeBlocks() ? count : 1;
}

StepEvents Scheduler::completeSteady(const StepPlan &plan, uint64_t count,
                                     double lastSeconds, double now) {
  assert(count >= 1 && count <= steadySteps(plan) && "steps that are alike");
  const uint64_t before = count - 1;
  std::vector<BlockPool::Append> appends;
  for (const StepSegment &segment : plan.segments)
    appends.push_back({segment.sequence, count});
  const bool reserved = static_cast<bool>(pool.reserve(appends));
  assert(reserved && "the blocks were counted");
  (void)reserved;
  steps += before;
  countSteps(plan, before, now - lastSeconds - plan.plannedAt);
  generatedTokens += before * plan.segments.size();
  StepPlan last = plan;
  last.number = steps;
  last.plannedAt = now - lastSeconds;
  last.shape.decodePositions += before * plan.shape.decodeSequences;
  for (StepSegment &segment : last.segments) {
    Entry &entry = entries.at(segment.request);
    entry.plannedIn = steps;
    entry.generatedTokens += before;
    Text &text = entry.texts[segment.text];
    const uint64_t computed = text.sequence.length();
    text.tokens.insert(text.tokens.end(), before, 0);
    text.sequence.append(std::span(text.tokens).subspan(computed, before));
    segment.tokens = std::span(text.tokens).subspan(computed + before, 1);
  }
  const std::vector<ChosenToken> sampled(last.segments.size(), {.token = 0});
  return complete(last, sampled, now);
}

std::vector<RequestEnd> Scheduler::fail(const StepPlan &plan,
                                        const Error &error, double now) {
  assert(stepUnderWay && plan.number == steps &&
         "only the step under way ends");
  stepUnderWay = false;
  for (const StepSegment &segment : plan.segments)
    if (Entry &entry = entries.at(segment.request); !entry.outcome)
      end(entry, error, now);
  return takeEnded();
}

std::vector<RequestEnd> Scheduler::loseCache(const Error &error, double now) {
  assert(!stepUnderWay && "a step ends before the cache is lost");
  for (Entry *entry : order)
    if (entry->running && !entry->outcome)
      end(*entry, error, now);
  pool.clearPrefixCache();
  return takeEnded();
}

bool Scheduler::cancel(RequestId id, double now) {
  return cancel(
      id, makeError(ErrorKind::Cancelled, "the request was cancelled"), now);
}

bool Scheduler::cancel(RequestId id, const Error &reason, double now) {
  auto found = entries.find(id);
  if (found == entries.end() || found->second.outcome)
    return false;
  end(found->second, reason, now);
  return true;
}

void Scheduler::end(Entry &entry, Status outcome, double now) {
  entry.outcome = std::move(outcome);
  entry.endedAt = now;
  if (!stepUnderWay || entry.plannedIn != steps)
    release(entry);
}

void Scheduler::release(Entry &entry) {
  entry.running = false;
  for (Text &text : entry.texts) {
    text.sequence.clear();
    text.joined = false;
  }
}

std::vector<RequestEnd> Scheduler::takeEnded() {
  std::vector<RequestEnd> ended;
  // The caller's clock may be set back.
  auto between = [](std::optional<double> from, std::optional<double> to) {
    return from && to ? std::max(0.0, *to - *from) : 0.0;
  };
  for (const Entry *entry : order) {
    if (!entry->outcome)
      continue;
    ended.push_back(
        {.request = entry->id,
         .status = *entry->outcome,
         .queueSeconds = between(entry->admittedAt,
                                 entry->startedAt.value_or(entry->endedAt)),
         .prefillSeconds = between(
             entry->startedAt, entry->firstTokenAt.value_or(entry->endedAt)),
         .decodeSeconds = between(entry->firstTokenAt, entry->endedAt),
         .admittedAt = entry->admittedAt,
         .startedAt = entry->startedAt,
         .firstTokenAt = entry->firstTokenAt,
         .endedAt = entry->endedAt,
         .promptTokens = entry->promptLength,
         .cachedTokens = entry->cachedTokens,
         .generatedTokens = entry->generatedTokens,
         .preemptions = entry->preemptions});
    if (!*entry->outcome)
      continue;
    const double ran = between(entry->startedAt, entry->endedAt);
    meanRunSeconds = meanRunSeconds == 0
                         ? ran
                         : std::lerp(meanRunSeconds, ran, weightOfLast);
  }
  if (!ended.empty())
    std::erase_if(order, [](const Entry *entry) { return entry->outcome; });
  for (const RequestEnd &each : ended)
    entries.erase(each.request);
  return ended;
}

SchedulerStatistics Scheduler::statistics() const {
  SchedulerStatistics statistics;
  for (const Entry *entry : order) {
    if (entry->running) {
      ++statistics.runningRequests;
      statistics.runningTexts += entry->liveTexts();
    } else if (!entry->outcome) {
      ++statistics.waitingRequests;
      statistics.waitingTokens += entry->knownTokens();
    }
  }
  statistics.usedBlocks = pool.blockCount() - pool.freeBlocks();
  statistics.steps = steps;
  statistics.preemptions = preemptions;
  statistics.promptTokensQueried = pool.statistics().promptTokensQueried;
  statistics.promptTokensHit = pool.statistics().promptTokensHit;
  statistics.prefill = prefill;
  statistics.decode = decode;
  statistics.promptTokens = promptTokens;
  statistics.generatedTokens = generatedTokens;
  statistics.speculation = speculation;
  if (stepUnderWay)
    statistics.phase = phaseUnderWay;
  return statistics;
}
