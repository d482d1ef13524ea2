//===- SchedulerChaosTest.cpp - The scheduler under random events ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Arrivals, steps, failures, cancellations and jumps of the clock at random,
/// with limits and pools at random, down to such as hold one request. After
/// every step all that the scheduler promises is checked, the contents of the
/// KV cache among it: tokens stand for their keys and values.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Scheduler.h"

#include "Emulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace sandwich;

static constexpr uint64_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

namespace {
using Tokens = std::vector<int32_t>;

/// What happened, so that a test can see that it was tested.
struct Counts {
  uint64_t events = 0, steps = 0, finished = 0, refused = 0, cancelled = 0,
           failed = 0, overdue = 0, preemptions = 0, hits = 0, mixed = 0,
           continuations = 0, scored = 0, onlyScored = 0, proposed = 0,
           accepted = 0, refusedTokens = 0;
  /// The longest wait for a first step, as a part of what is promised.
  double longestWait = 0;
};

class Chaos {
public:
  Chaos(unsigned seed, Counts &counts)
      : generator(seed), counts(counts), context(8 + random(90)) {
    options.limits = {.prefill = somePhase(64),
                      .decode = somePhase(8),
                      .contextLength = context};
    options.maxWaitingRequests = 1 + random(12);
    options.maxWaitingTokens = context * (1 + random(8));
    options.agingSteps = random(8);
    if (random(3) == 0)
      options.tokenObjective = 0.05 + 0.01 * static_cast<double>(random(20));
    if (random(3) == 0)
      options.firstTokenObjective = 0.1 * static_cast<double>(1 + random(30));
    if (random(3) == 0)
      options.speculation.maxTokens = 1 + random(20);
    StepCosts costs = assumedStepCosts();
    costs.secondsPerPromptPosition = 1e-5 * static_cast<double>(random(3));
    // Sometimes just enough for one request.
    const uint64_t blocks =
        BlockPool::blocksFor(context) + random(3) * random(20);
    pool = *BlockPool::create(blocks, {.prefixCache = random(8) != 0});
    memory.resize(blocks * blockTokens, -1);
    scheduler =
        *Scheduler::create(*pool, options, *StepCostModel::create(costs));
  }

  void event() {
    ++counts.events;
    const size_t kind = random(20);
    if (kind < 6)
      admit();
    else if (kind < 7)
      cancel();
    else if (kind < 8)
      jump();
    else
      step();
  }

  void end() {
    drains = true;
    for (int i = 0; i < 100000 && !scheduler->idle() && !failed(); ++i)
      step();
    EXPECT_TRUE(scheduler->idle());
    EXPECT_TRUE(alive.empty());
    EXPECT_EQ(pool->freeBlocks(), pool->blockCount());
    const SchedulerStatistics statistics = scheduler->statistics();
    EXPECT_EQ(statistics.runningRequests + statistics.waitingRequests, 0u);
    counts.preemptions += statistics.preemptions;
    counts.hits += statistics.promptTokensHit;
    counts.proposed += statistics.speculation.proposedTokens;
    counts.accepted += statistics.speculation.acceptedTokens;
  }

  bool failed() const { return testing::Test::HasFailure(); }

private:
  struct Known {
    Request request;
    int64_t rank = 0;
    uint64_t admittedIn = 0;
    /// Steps until its first one at most.
    uint64_t bound = 0;
    bool started = false;
    /// Of each text, without the prompt.
    std::vector<Tokens> generated;
    std::vector<bool> finished;
    /// Tokens of the prompt that were told, the first one among them.
    uint64_t scored = 1;
  };

  size_t random(size_t limit) { return generator() % limit; }

  SchedulerLimits::Phase somePhase(size_t most) {
    return {1 + random(most), 1 + random(most), 1 + random(most)};
  }

  uint64_t maxTexts() const {
    const SchedulerLimits::Phase &decode = options.limits.decode;
    return std::min({decode.tokens, decode.sequences, decode.logitRows});
  }

  void admit() {
    if (drains)
      return;
    Request request;
    const auto text = static_cast<int32_t>(random(3));
    request.prompt.resize(random(40) ? 1 + random(context) : random(200));
    for (size_t i = 0; i < request.prompt.size(); ++i)
      request.prompt[i] =
          random(60) ? text : static_cast<int32_t>(3 + random(5));
    request.maxTokens = random(40) ? 1 + random(30) : random(1000);
    if (random(4) == 0)
      request.continuations = static_cast<uint32_t>(random(4));
    if (random(3) == 0)
      request.priority = static_cast<uint32_t>(random(9));
    if (random(6) == 0)
      request.deadline = now + 0.05 * static_cast<double>(random(60));
    request.salt = random(5) == 0;
    request.scoresPrompt = random(5) == 0;
    if (request.scoresPrompt && random(2))
      request.maxTokens = 0;
    Result<RequestId> id = scheduler->admit(request, now);
    if (!id) {
      ++counts.refused;
      EXPECT_NE(id.error().kind, ErrorKind::Unclassified);
      return;
    }
    Known &known = alive[*id];
    known.rank = static_cast<int64_t>(steps) -
                 static_cast<int64_t>(request.priority * options.agingSteps);
    known.admittedIn = steps;
    known.generated.resize(request.continuations);
    known.finished.resize(request.continuations);
    mostSteps = std::max(mostSteps, scheduler->mostSteps(request));
    known.bound = (maxPriority - request.priority) * options.agingSteps +
                  (options.maxWaitingRequests + maxTexts()) * mostSteps;
    counts.continuations += request.continuations > 1;
    known.request = std::move(request);
  }

  void cancel() {
    if (alive.empty())
      return;
    const RequestId id = 1 + random(alive.rbegin()->first);
    const bool wasAlive = alive.contains(id) && !cancelled.contains(id);
    EXPECT_EQ(scheduler->cancel(id, now), wasAlive);
    if (wasAlive) {
      ++counts.cancelled;
      cancelled.insert(id);
    }
  }

  void jump() {
    now += random(2) ? 0.1 * static_cast<double>(random(100))
                     : -0.1 * static_cast<double>(random(20));
  }

  /// Proposes tokens of which about one in two will be drawn.
  void propose() {
    for (const ProposalRequest &text : scheduler->wantedProposals()) {
      const Known &known = alive[text.request];
      const Tokens &generated = known.generated[text.text];
      ASSERT_EQ(text.tokens.size(),
                known.request.prompt.size() + generated.size());
      ASSERT_TRUE(
          std::ranges::equal(text.tokens.last(generated.size()), generated));
      ASSERT_GE(text.most, 1u);
      ASSERT_LE(text.most, options.speculation.maxTokens);
      if (random(30) == 0)
        random(2) ? admit() : cancel();
      Tokens tokens(random(text.most + 2));
      for (int32_t &token : tokens)
        token = static_cast<int32_t>(random(2));
      scheduler->propose(text.request, text.text, tokens);
      if (random(50) == 0)
        scheduler->noteProposing(tokens.size(), 0.01);
    }
  }

  void step() {
    propose();
    StepPlan plan = scheduler->next(now);
    ++steps;
    note(plan.ended);
    if (plan.segments.empty()) {
      EXPECT_TRUE(alive.empty());
      EXPECT_TRUE(scheduler->idle());
      return;
    }
    ++counts.steps;
    checkLimits(plan);
    checkProgress(plan);
    makeCopies();
    for (const StepSegment &segment : plan.segments)
      compute(segment);
    const uint64_t used = pool->blockCount() - pool->freeBlocks();
    for (size_t i = random(3); i > 0; --i)
      random(2) ? admit() : cancel();
    // Blocks may be free at once only where the step does not write.
    for (const StepSegment &segment : plan.segments)
      ASSERT_GE(segment.sequence->blocks().size(),
                BlockPool::blocksFor(segment.sequence->length() +
                                     segment.tokens.size()));
    ASSERT_LE(pool->blockCount() - pool->freeBlocks(), used);
    now += std::exp(static_cast<double>(random(5)) - 2) * plan.predictedSeconds;
    if (random(40) == 0)
      fail(plan);
    else
      complete(plan);
    if (random(500) == 0)
      pool->clearPrefixCache();
  }

  void checkLimits(const StepPlan &plan) {
    ASSERT_EQ(plan.number, steps);
    const SchedulerLimits::Phase &limits = plan.phase() == StepPhase::Prefill
                                               ? options.limits.prefill
                                               : options.limits.decode;
    uint64_t tokens = 0, rows = 0, ones = 0;
    std::set<const Sequence *> sequences;
    std::set<int32_t> written;
    for (const StepSegment &segment : plan.segments) {
      tokens += segment.tokens.size();
      rows += segment.rows();
      ones += segment.tokens.size() == 1;
      ASSERT_TRUE(sequences.insert(segment.sequence).second);
      ASSERT_FALSE(segment.tokens.empty());
      const uint64_t begin = segment.sequence->length();
      const uint64_t end = begin + segment.tokens.size();
      ASSERT_LE(end, context);
      ASSERT_LE(BlockPool::blocksFor(end), segment.sequence->blocks().size());
      for (uint64_t block = begin / blockTokens;
           block < BlockPool::blocksFor(end); ++block)
        ASSERT_TRUE(written.insert(segment.sequence->blocks()[block]).second);
    }
    ASSERT_LE(tokens, limits.tokens);
    ASSERT_LE(plan.segments.size(), limits.sequences);
    ASSERT_LE(rows, limits.logitRows);
    ASSERT_TRUE(plan.phase() == StepPhase::Prefill ||
                ones == plan.segments.size());
    ASSERT_EQ(plan.shape.tokens(), tokens);
    counts.mixed += ones > 0 && ones < plan.segments.size();
    // Nothing that is read is written.
    for (const StepSegment &segment : plan.segments)
      for (uint64_t i = 0; i < segment.sequence->length() / blockTokens; ++i)
        ASSERT_FALSE(written.contains(segment.sequence->blocks()[i]));
  }

  /// The first in the order is computed in every second step at least, and
  /// nobody waits longer than was promised.
  void checkProgress(const StepPlan &plan) {
    std::set<RequestId> planned;
    for (const StepSegment &segment : plan.segments)
      planned.insert(segment.request);
    for (RequestId id : planned) {
      ASSERT_TRUE(alive.contains(id) && !cancelled.contains(id));
      alive[id].started = true;
    }
    RequestId first = 0;
    for (const auto &[id, known] : alive) {
      if (first == 0 || known.rank < alive[first].rank)
        first = id;
      if (!known.started) {
        const uint64_t waited = steps - known.admittedIn;
        ASSERT_LE(waited, known.bound);
        counts.longestWait =
            std::max(counts.longestWait, static_cast<double>(waited) /
                                             static_cast<double>(known.bound));
      }
    }
    stepsOfFirst = first == lastFirst ? stepsOfFirst + 1 : 1;
    lastFirst = first;
    ASSERT_LE(stepsOfFirst, scheduler->mostSteps(alive[first].request));
    const bool progresses = planned.contains(first);
    ASSERT_TRUE(progresses || first != stalled);
    stalled = progresses ? 0 : first;
    for (RequestId id : plan.preempted)
      ASSERT_NE(id, first);
  }

  void makeCopies() {
    for (BlockCopy copy : pool->pendingCopies())
      std::copy_n(memory.begin() + copy.from * long(blockTokens), blockTokens,
                  memory.begin() + copy.to * long(blockTokens));
    pool->copiesMade(pool->pendingCopies().size());
  }

  int32_t &slot(const Sequence &sequence, uint64_t position) {
    return memory[static_cast<size_t>(
                      sequence.blocks()[position / blockTokens]) *
                      blockTokens +
                  position % blockTokens];
  }

  /// Reads all before, writes its own.
  void compute(const StepSegment &segment) {
    const Known &known = alive[segment.request];
    Tokens tokens = known.request.prompt;
    const Tokens &generated = known.generated[segment.text];
    tokens.insert(tokens.end(), generated.begin(), generated.end());
    const uint64_t computed = segment.sequence->length();
    for (uint64_t i = 0; i < computed; ++i)
      ASSERT_EQ(slot(*segment.sequence, i), tokens[i]);
    const uint64_t givenTokens = segment.tokens.size() - segment.proposed;
    ASSERT_LE(computed + givenTokens, tokens.size());
    ASSERT_TRUE(
        segment.proposed == 0 ||
        (givenTokens == 1 && computed + 1 == tokens.size() &&
         generated.size() + segment.proposed < known.request.maxTokens));
    for (uint64_t i = 0; i < segment.tokens.size(); ++i) {
      if (i < givenTokens) {
        ASSERT_EQ(segment.tokens[i], tokens[computed + i]);
      }
      slot(*segment.sequence, computed + i) = segment.tokens[i];
    }
    uint32_t samples = 0;
    if (computed + givenTokens == tokens.size() && known.request.maxTokens > 0)
      samples = generated.empty() ? known.request.continuations : 1;
    ASSERT_EQ(segment.samples, samples);
    for (uint64_t i = 0; i < segment.scored.size(); ++i)
      ASSERT_EQ(segment.scored[i], known.request.prompt[computed + 1 + i]);
    ASSERT_LE(segment.scored.size(), segment.tokens.size());
  }

  void complete(const StepPlan &plan) {
    std::vector<ChosenToken> sampled;
    std::vector<std::pair<RequestId, uint32_t>> expected;
    for (const StepSegment &segment : plan.segments) {
      const uint64_t most = segment.proposed > 0 ? 1 + segment.proposed
                                                 : uint64_t{segment.samples};
      for (uint32_t i = 0; i < most; ++i) {
        ChosenToken token = {.token = static_cast<int32_t>(random(2))};
        if (random(30) == 0)
          token.ends =
              random(2) ? FinishReason::EndOfText : FinishReason::Stopped;
        sampled.push_back(token);
        if (!cancelled.contains(segment.request))
          expected.emplace_back(segment.request,
                                segment.text + (segment.proposed > 0 ? 0 : i));
        if (i == segment.proposed || segment.proposed == 0)
          continue;
        counts.refusedTokens += token.token != segment.tokens[i + 1];
        if (token.ends || token.token != segment.tokens[i + 1])
          break;
      }
    }
    const StepEvents events = scheduler->complete(plan, sampled, now);
    for (const ScoreEvent &event : events.scores)
      noteScores(event);
    ASSERT_EQ(events.tokens.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const TokenEvent &event = events.tokens[i];
      ASSERT_EQ(std::pair(event.request, event.text), expected[i]);
      accept(event);
    }
    note(events.ended);
  }

  void noteScores(const ScoreEvent &event) {
    ASSERT_FALSE(cancelled.contains(event.request));
    Known &known = alive[event.request];
    ASSERT_TRUE(known.request.scoresPrompt);
    ASSERT_EQ(event.first, known.scored);
    ASSERT_GT(event.count, 0u);
    known.scored += event.count;
    counts.scored += event.count;
  }

  void accept(const TokenEvent &event) {
    Known &known = alive[event.request];
    if (known.request.scoresPrompt) {
      ASSERT_EQ(known.scored, known.request.prompt.size());
    }
    Tokens &generated = known.generated[event.text];
    ASSERT_FALSE(known.finished[event.text]);
    generated.push_back(event.token);
    known.finished[event.text] = event.finish.has_value();
    const bool most = generated.size() == known.request.maxTokens;
    const bool full =
        known.request.prompt.size() + generated.size() == context + 1;
    ASSERT_TRUE(event.finish || !(most || full));
    if (event.finish == FinishReason::MaxTokens) {
      ASSERT_TRUE(most);
    } else if (event.finish == FinishReason::ContextFull) {
      ASSERT_TRUE(full);
    }
  }

  void fail(const StepPlan &plan) {
    std::set<RequestId> affected;
    for (const StepSegment &segment : plan.segments)
      affected.insert(segment.request);
    const std::vector<RequestEnd> ended =
        scheduler->fail(plan, makeError(ErrorKind::Internal, "no"), now);
    for (const RequestEnd &each : ended)
      affected.erase(each.request);
    ASSERT_TRUE(affected.empty());
    note(ended);
  }

  void note(const std::vector<RequestEnd> &ended) {
    for (const RequestEnd &each : ended) {
      auto found = alive.find(each.request);
      ASSERT_NE(found, alive.end());
      const Known &known = found->second;
      const bool finished = std::ranges::count(known.finished, false) == 0;
      if (each.status) {
        const bool scores = known.request.scoresPrompt;
        const bool only = scores && known.request.maxTokens == 0;
        ASSERT_TRUE(finished || only);
        ASSERT_EQ(known.scored, scores ? known.request.prompt.size() : 1);
        ++counts.finished;
        counts.onlyScored += only;
      } else {
        counts.overdue +=
            each.status.error().kind == ErrorKind::DeadlineExceeded;
        counts.failed += each.status.error().kind == ErrorKind::Internal;
        ASSERT_EQ(each.status.error().kind == ErrorKind::Cancelled,
                  cancelled.contains(each.request));
      }
      uint64_t generated = 0;
      for (const Tokens &tokens : known.generated)
        generated += tokens.size();
      ASSERT_EQ(each.generatedTokens, generated);
      cancelled.erase(each.request);
      alive.erase(found);
    }
  }

  std::mt19937_64 generator;
  Counts &counts;
  uint64_t context;
  SchedulerOptions options;
  std::unique_ptr<BlockPool> pool;
  Tokens memory;
  std::unique_ptr<Scheduler> scheduler;
  /// Nobody comes any more.
  bool drains = false;
  double now = 0;
  uint64_t steps = 0;
  std::map<RequestId, Known> alive;
  std::set<RequestId> cancelled;
  uint64_t mostSteps = 0;
  /// The first in the order, if the last step had nothing of it.
  RequestId stalled = 0;
  /// The first in the order in the last step, and since how many steps.
  RequestId lastFirst = 0;
  uint64_t stepsOfFirst = 0;
};
} // namespace

TEST(SchedulerChaosTest, KeepsItsPromises) {
  const char *wanted = std::getenv("SANDWICH_TEST_EVENTS");
  const uint64_t events =
      wanted ? std::strtoull(wanted, nullptr, 10)
             : test::timesToRepeat<uint64_t>(1'000'000, 50'000);
  Counts counts;
  for (unsigned seed = 0; counts.events < events && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Chaos chaos(seed, counts);
    for (int i = 0; i < 500 && !HasFailure(); ++i)
      chaos.event();
    if (!HasFailure())
      chaos.end();
  }
  // All of it is among what was tested.
  EXPECT_GT(counts.steps, events / 4);
  for (uint64_t each :
       {counts.finished, counts.refused, counts.cancelled, counts.failed,
        counts.overdue, counts.preemptions, counts.hits, counts.mixed,
        counts.continuations, counts.scored, counts.onlyScored, counts.accepted,
        counts.refusedTokens})
    EXPECT_GT(each, events / 1000);
  std::printf("%llu events, %llu steps, %llu requests finished, %llu "
              "preemptions, %llu of %llu proposed tokens drawn, longest wait "
              "%.3f of the bound\n",
              static_cast<unsigned long long>(counts.events),
              static_cast<unsigned long long>(counts.steps),
              static_cast<unsigned long long>(counts.finished),
              static_cast<unsigned long long>(counts.preemptions),
              static_cast<unsigned long long>(counts.accepted),
              static_cast<unsigned long long>(counts.proposed),
              counts.longestWait);
}
