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
  if (!entry.firstTokenAt)
    entry.firstTokenAt = now;
  std::optional<FinishReason> finish = sampled.ends;
  if (!finish &&
      text.tokens.size() - entry.promptLength == entry.request.maxTokens)
    finish = FinishReason::MaxTokens;
  // The token itself has no place any more.
  if (!finish && text.sequence.length() == options.limits.contextLength)
    finish = FinishReason::ContextFull;
  if (finish) {
    text.finished = true;
    text.sequence.clear();
  }
  events.tokens.push_back({entry.id, index, sampled.token, finish});
}

StepEvents Scheduler::complete(const StepPlan &plan,
                               std::span<const ChosenToken> sampled,
                               double now) {
  assert(stepUnderWay && plan.number == steps &&
         "only the step under way ends");
  stepUnderWay = false;
  costs.observe(plan.shape, now - plan.plannedAt);
  StepEvents events;
  for (const StepSegment &segment : plan.segments) {
    assert(segment.samples <= sampled.size() && "every row gives its tokens");
    const auto own = sampled.first(segment.samples);
    sampled = sampled.subspan(segment.samples);
    Entry &entry = entries.at(segment.request);
    if (entry.outcome)
      continue;
    segment.sequence->append(segment.tokens);
    joinTexts(entry);
    for (uint32_t i = 0; i < segment.samples; ++i)
      accept(entry, segment.text + i, own[i], now, events);
    if (entry.liveTexts() == 0)
      end(entry, {}, now);
  }
  events.ended = takeEnded();
  return events;
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
  auto found = entries.find(id);
  if (found == entries.end() || found->second.outcome)
    return false;
  end(found->second,
      makeError(ErrorKind::Cancelled, "the request was cancelled"), now);
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
  return statistics;
}
