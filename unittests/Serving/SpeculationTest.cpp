//===- SpeculationTest.cpp - Proposed tokens, and whether they pay --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestService.h"

#include "sandwich/Serving/PromptLookup.h"
#include "sandwich/Serving/Speculation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace sandwich;

using Tokens = std::vector<int32_t>;

//===----------------------------------------------------------------------===//
// Prompt lookup
//===----------------------------------------------------------------------===//

TEST(PromptLookupTest, FindsTheLongestAndLastRepetition) {
  RepetitionIndex index;
  // "1 2 3" was followed by 4, and then by 5; "9 1 2 3" by 4 only.
  const Tokens tokens = {9, 1, 2, 3, 4, 8, 1, 2, 3, 5, 7, 9, 1, 2, 3};
  EXPECT_EQ(index.propose(tokens, 3), (Tokens{4, 8, 1}));
  Tokens other = tokens;
  other.insert(other.end(), {6, 1, 2, 3});
  EXPECT_EQ(index.propose(other, 2), (Tokens{6, 1}));
}

TEST(PromptLookupTest, NothingIsProposedOnLessThanThreeTokens) {
  RepetitionIndex index;
  EXPECT_TRUE(index.propose({}, 5).empty());
  EXPECT_TRUE(index.propose(Tokens{1, 2}, 5).empty());
  EXPECT_TRUE(index.propose(Tokens{1, 2, 3, 4, 2, 3}, 5).empty());
  EXPECT_EQ(index.propose(Tokens{1, 2, 3, 4, 2, 3, 4}, 5),
            (Tokens{2, 3, 4, 2, 3}));
}

TEST(PromptLookupTest, RepetitionsGoOnBeyondTheText) {
  RepetitionIndex index;
  EXPECT_EQ(index.propose(Tokens{7, 7, 7, 7}, 6), Tokens(6, 7));
  RepetitionIndex two;
  EXPECT_EQ(two.propose(Tokens{1, 2, 1, 2, 1, 2}, 5), (Tokens{1, 2, 1, 2, 1}));
}

/// The definition, without an index.
static Tokens lookUpNaively(const Tokens &tokens, size_t most) {
  size_t longest = RepetitionIndex::leastMatch - 1, next = 0;
  for (size_t place = tokens.size() - 1; place-- > 0;) {
    size_t length = 0;
    while (length <= place && length < RepetitionIndex::longestMatch &&
           tokens[place - length] == tokens[tokens.size() - 1 - length])
      ++length;
    if (length > longest) {
      longest = length;
      next = place + 1;
    }
  }
  Tokens proposal;
  if (longest < RepetitionIndex::leastMatch)
    return proposal;
  for (size_t i = next; proposal.size() < most; ++i)
    proposal.push_back(i < tokens.size() ? tokens[i]
                                         : proposal[i - tokens.size()]);
  return proposal;
}

TEST(PromptLookupTest, IsTheDefinitionAsATextGrows) {
  std::mt19937 random(1);
  uint64_t proposed = 0;
  for (int text = 0; text < 40; ++text) {
    RepetitionIndex index;
    Tokens tokens;
    // So few places end alike that all of them are looked at.
    for (int step = 0; step < 60; ++step) {
      for (size_t more = random() % 4; more > 0; --more)
        tokens.push_back(static_cast<int32_t>(random() % 6));
      if (tokens.empty())
        continue;
      const size_t most = 1 + random() % 8;
      const Tokens proposal = index.propose(tokens, most);
      ASSERT_EQ(proposal, lookUpNaively(tokens, most));
      proposed += proposal.size();
    }
  }
  EXPECT_GT(proposed, 1000u);
}

TEST(PromptLookupTest, TextsAreApartAndForgotten) {
  PromptLookup lookup;
  const Tokens one = {1, 2, 3, 4, 1, 2, 3}, other = {1, 2, 3, 5, 1, 2, 3};
  const ProposalRequest texts[] = {{7, 0, one, 1}, {7, 1, other, 1}};
  EXPECT_EQ(lookup.propose(texts), (std::vector<Tokens>{{4}, {5}}));
  lookup.forget(6);
  lookup.forget(7);
  // Another text of the same name.
  const Tokens third = {9};
  const ProposalRequest again[] = {{7, 0, third, 1}};
  EXPECT_EQ(lookup.propose(again), (std::vector<Tokens>{{}}));
}

//===----------------------------------------------------------------------===//
// Estimates
//===----------------------------------------------------------------------===//

TEST(SpeculationTest, AcceptanceIsEstimatedFromWhatCameOfIt) {
  AcceptanceRate rate(32);
  EXPECT_DOUBLE_EQ(rate.estimate(0.6, 4), 0.6);
  for (int i = 0; i < 200; ++i)
    rate.observe(3, /*refused=*/true);
  EXPECT_NEAR(rate.estimate(0.6, 4), 0.75, 0.03);
  // It changes its mind.
  for (int i = 0; i < 100; ++i)
    rate.observe(0, /*refused=*/true);
  EXPECT_LT(rate.estimate(0, 0.001), 0.05);
  rate.observe(0, /*refused=*/false);
  EXPECT_LT(rate.estimate(0, 0.001), 0.05);
}

TEST(SpeculationTest, ExpectsAGeometricNumber) {
  EXPECT_EQ(expectedAccepted(0.5, 0), 0);
  EXPECT_DOUBLE_EQ(expectedAccepted(0.5, 3), 0.875);
  EXPECT_DOUBLE_EQ(expectedAccepted(1, 5), 5);
  EXPECT_DOUBLE_EQ(expectedAccepted(0, 5), 0);
}

TEST(SpeculationTest, ProbesMoreAndMoreSeldom) {
  ProbeSchedule probes;
  auto untilDue = [&] {
    uint64_t steps = 1;
    while (!probes.skip())
      ++steps;
    return steps;
  };
  EXPECT_EQ(untilDue(), ProbeSchedule::least);
  for (int i = 0; i < 20; ++i)
    probes.observe(/*probed=*/true, 4, 0);
  EXPECT_EQ(untilDue(), ProbeSchedule::most);
  // What paid before may stop to.
  probes.observe(/*probed=*/false, 4, 1);
  probes.observe(/*probed=*/true, 4, 2);
  EXPECT_EQ(untilDue(), ProbeSchedule::most);
  probes.observe(/*probed=*/false, 4, 2);
  EXPECT_EQ(untilDue(), ProbeSchedule::least);
}

//===----------------------------------------------------------------------===//
// The scheduler
//===----------------------------------------------------------------------===//

namespace {
/// A service whose texts are 0, 1, 2, ..., and whose proposals are right with
/// some probability each.
struct GuessingService : TestService {
  explicit GuessingService(double rightness, uint64_t maxTokens = 8,
                           SchedulerOptions options = usualOptions())
      : TestService(2000, with(options, maxTokens),
                    // A step for any tokens is dearer than one for streams, and
                    // each token counts.
                    {.prefill = {{1, 0.095}, {16, 0.125}, {1016, 2.1}},
                     .decode = {{1, 0.0901}, {1001, 0.1901}}}),
        rightness(rightness) {}

  static SchedulerOptions with(SchedulerOptions options, uint64_t maxTokens) {
    options.speculation.maxTokens = maxTokens;
    return options;
  }

  /// A step, with proposals that take `seconds` for each token.
  StepPlan guessAndStep(double seconds = 0) {
    uint64_t depth = 0;
    for (const ProposalRequest &text : scheduler->wantedProposals()) {
      Tokens guesses;
      for (uint64_t i = 0; i < text.most; ++i)
        guesses.push_back(std::uniform_real_distribution(0.0, 1.0)(random) <
                                  rightness
                              ? next(text.tokens.size() + i)
                              : -1);
      scheduler->propose(text.request, text.text, guesses);
      depth = std::max(depth, text.most);
      asked += text.most;
    }
    if (depth > 0)
      scheduler->noteProposing(depth, static_cast<double>(depth) * seconds);
    now += static_cast<double>(depth) * seconds;
    const StepPlan planned = plan();
    if (!planned.segments.empty())
      finishStep(planned);
    return planned;
  }

  void finishStep(const StepPlan &plan) {
    now += costs.seconds(plan.shape);
    pool->copiesMade(pool->pendingCopies().size());
    std::vector<ChosenToken> sampled;
    for (const StepSegment &segment : plan.segments) {
      const uint64_t rows = 1 + segment.proposed;
      const uint64_t known =
          segment.sequence->length() + segment.tokens.size() - segment.proposed;
      std::vector<ChosenToken> own;
      for (uint64_t row = 0; row < rows && segment.samples > 0; ++row)
        own.push_back({.token = next(known + row)});
      own.resize(segment.samples > 0 ? segment.drawn(own) : 0);
      sampled.insert(sampled.end(), own.begin(), own.end());
    }
    const StepEvents events = scheduler->complete(plan, sampled, now);
    for (const TokenEvent &event : events.tokens)
      texts[event.request].push_back(event.token);
    note(events.ended);
  }

  /// The token at a place of any text.
  static int32_t next(uint64_t place) {
    return static_cast<int32_t>(place % 1000);
  }

  /// Tokens a second of `requests` requests that get `tokens` tokens each.
  double rate(unsigned requests, uint64_t tokens, double secondsPerProposal) {
    for (unsigned i = 0; i < requests; ++i)
      admit(requestOf(16, tokens));
    const double begin = now;
    while (!scheduler->idle())
      guessAndStep(secondsPerProposal);
    uint64_t made = 0;
    for (const auto &[id, text] : texts)
      made += text.size();
    EXPECT_EQ(made, requests * tokens);
    return static_cast<double>(made) / (now - begin);
  }

  SpeculationStatistics speculation() const {
    return scheduler->statistics().speculation;
  }

  double rightness;
  std::mt19937 random{1};
  uint64_t asked = 0;
  std::map<RequestId, Tokens> texts;
};
} // namespace

static SchedulerOptions takingAll() {
  SchedulerOptions options = usualOptions();
  options.speculation.always = true;
  return options;
}

TEST(SpeculationTest, TokensThatAreRightComeTogether) {
  GuessingService service(1, 4, takingAll());
  const RequestId id = service.admit(requestOf(30, 12));
  service.guessAndStep();
  const uint64_t blocks = service.pool->freeBlocks();
  StepPlan plan = service.guessAndStep();
  ASSERT_EQ(plan.segments.size(), 1u);
  EXPECT_EQ(plan.phase(), StepPhase::Prefill);
  EXPECT_EQ(plan.segments[0].proposed, 4u);
  EXPECT_EQ(plan.shape.promptTokens, 5u);
  EXPECT_EQ(service.texts[id].size(), 1u + 5u);
  EXPECT_EQ(service.pool->freeBlocks(), blocks - 1);
  while (!service.scheduler->idle())
    service.guessAndStep();
  // 5 more, and the last one, which nothing is proposed behind.
  EXPECT_EQ(service.scheduler->statistics().steps, 1u + 2u + 1u);
  Tokens expected(12);
  std::iota(expected.begin(), expected.end(), 30);
  EXPECT_EQ(service.texts[id], expected);
  EXPECT_EQ(service.speculation().steps, 2u);
  EXPECT_EQ(service.speculation().proposedTokens, 8u);
  EXPECT_EQ(service.speculation().acceptedTokens, 8u);
}

TEST(SpeculationTest, TokensThatAreWrongLeaveNothing) {
  GuessingService service(0, 8, takingAll());
  const RequestId id = service.admit(requestOf(30, 10));
  service.guessAndStep();
  const StepPlan plan = service.guessAndStep();
  EXPECT_GT(plan.segments[0].proposed, 1u);
  EXPECT_EQ(service.texts[id].size(), 2u);
  // 31 tokens, of which one block is full.
  EXPECT_EQ(service.pool->freeBlocks(), 2000u - 2);
  EXPECT_EQ(service.pool->cachedBlocks(), 1u);
  while (!service.scheduler->idle())
    service.guessAndStep();
  EXPECT_EQ(service.texts[id].size(), 10u);
  EXPECT_EQ(service.speculation().acceptedTokens, 0u);
  EXPECT_GT(service.speculation().proposedTokens, 0u);
}

TEST(SpeculationTest, ATextEndsAmongTheTokensThatAreRight) {
  GuessingService service(1, 8, takingAll());
  const RequestId id = service.admit(requestOf(30, 100));
  service.guessAndStep();
  for (const ProposalRequest &text : service.scheduler->wantedProposals())
    service.scheduler->propose(text.request, text.text, Tokens{31, 32, 33, 34});
  const StepPlan plan = service.plan();
  ASSERT_EQ(plan.segments[0].proposed, 4u);
  const std::vector<ChosenToken> sampled = {{31},
                                            {32, FinishReason::EndOfText}};
  const StepEvents events =
      service.scheduler->complete(plan, sampled, service.now + 1);
  ASSERT_EQ(events.tokens.size(), 2u);
  EXPECT_FALSE(events.tokens[0].finish);
  EXPECT_EQ(events.tokens[1].finish, FinishReason::EndOfText);
  ASSERT_EQ(events.ended.size(), 1u);
  EXPECT_EQ(events.ended[0].request, id);
  EXPECT_EQ(service.pool->freeBlocks(), 2000u);
}

TEST(SpeculationTest, ProposalsNeverTakeTheLastBlocks) {
  // The text's 3 blocks are all there are.
  SchedulerOptions options = takingAll();
  options.speculation.maxTokens = 8;
  TestService service(3, options);
  service.admit(requestOf(30, 19));
  service.step();
  for (uint64_t room : {8, 7}) {
    const uint64_t length = 30 + service.times.begin()->second.size() - 1;
    for (const ProposalRequest &text : service.scheduler->wantedProposals())
      service.scheduler->propose(text.request, text.text, Tokens(room, 1));
    const StepPlan plan = service.plan();
    EXPECT_LE(length + plan.segments[0].tokens.size(), 48u);
    EXPECT_GT(plan.segments[0].proposed, 0u);
    service.complete(plan);
  }
  service.finish();
  EXPECT_TRUE(service.preempted.empty());
}

TEST(SpeculationTest, IsOnWherePays) {
  const double none = GuessingService(1, 0).rate(1, 400, 0);
  const double right = GuessingService(0.9).rate(1, 400, 0);
  EXPECT_GT(right, 3.5 * none);
  // 64 streams fill a step that takes longer for each token more, and so does a
  // step of 16 of them.
  EXPECT_GT(GuessingService(0.9).rate(4, 400, 0),
            2 * GuessingService(0.9, 0).rate(4, 400, 0));
  const double many = GuessingService(0, 0).rate(64, 400, 0);
  GuessingService busy(0.3);
  EXPECT_GT(busy.rate(64, 400, 0), 0.99 * many);
}

TEST(SpeculationTest, CostsLittleWhereNothingIsRight) {
  for (unsigned requests : {1, 8, 64}) {
    const double none = GuessingService(0, 0).rate(requests, 1000, 0);
    GuessingService wrong(0);
    EXPECT_GT(wrong.rate(requests, 1000, 0), 0.98 * none) << requests;
    EXPECT_GT(wrong.speculation().steps, 2u);
    EXPECT_LT(wrong.speculation().steps, 150u);
  }
}

TEST(SpeculationTest, ProposalsThatTakeTimeAreAskedForWhereTheyPay) {
  const double none = GuessingService(0, 0).rate(1, 1000, 0);
  // A third of a step each.
  GuessingService dear(0.3);
  EXPECT_GT(dear.rate(1, 1000, 0.03), 0.97 * none);
  EXPECT_LT(dear.asked, 400u);
  GuessingService cheap(0.9);
  EXPECT_GT(cheap.rate(1, 1000, 0.005), 2.5 * none);
}

TEST(SpeculationTest, LearnsWhatStepsTakeWithoutProposals) {
  // Steps without proposals are taken to be four times as long as they are.
  SchedulerOptions options = usualOptions();
  options.speculation.maxTokens = 4;
  auto pool = *BlockPool::create(1000);
  auto scheduler = *Scheduler::create(
      *pool, options,
      *StepCostModel::create({.prefill = {{1, 0.12}, {16, 0.12}},
                              .decode = {{1, 0.4}, {64, 0.4}}}));
  ASSERT_TRUE(scheduler->admit(requestOf(4, 2000), 0));
  double now = 0;
  while (!scheduler->idle()) {
    for (const ProposalRequest &text : scheduler->wantedProposals())
      scheduler->propose(text.request, text.text, Tokens(text.most, 2));
    const StepPlan plan = scheduler->next(now);
    now += plan.phase() == StepPhase::Decode ? 0.1 : 0.12;
    std::vector<ChosenToken> sampled(1, {.token = 1});
    (void)scheduler->complete(plan, sampled, now);
  }
  // Nothing is right.
  EXPECT_LT(scheduler->statistics().speculation.steps, 100u);
}

TEST(SpeculationTest, TriesAgainWhereTextsChange) {
  GuessingService service(0);
  service.admit(requestOf(16, 3000));
  for (int i = 0; i < 300; ++i)
    service.guessAndStep();
  const uint64_t before = service.speculation().acceptedTokens;
  service.rightness = 1;
  for (int i = 0; i < 600; ++i)
    service.guessAndStep();
  EXPECT_GT(service.speculation().acceptedTokens, before + 1000);
}

TEST(SpeculationTest, StreamsWithoutProposalsDoNotWaitForOthers) {
  SchedulerOptions options = usualOptions();
  options.speculation.maxTokens = 64;
  // Each token takes as long as the step.
  auto pool = *BlockPool::create(100);
  auto scheduler = *Scheduler::create(
      *pool, options,
      *StepCostModel::create({.prefill = {{1, 1}, {2, 1.05}, {66, 3}},
                              .decode = {{1, 1}, {64, 1.01}}}));
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(scheduler->admit(requestOf(4, 500), 0));
  StepPlan plan = scheduler->next(0);
  const std::vector<ChosenToken> sampled(2, {.token = 1});
  for (double now = 1; now < 6; ++now) {
    (void)scheduler->complete(plan, sampled, now);
    plan = scheduler->next(now);
  }
  (void)scheduler->complete(plan, sampled, 6);
  const std::vector<ProposalRequest> wanted = scheduler->wantedProposals();
  ASSERT_EQ(wanted.size(), 2u);
  scheduler->propose(wanted[0].request, 0, Tokens(64, 1));
  plan = scheduler->next(6);
  EXPECT_GT(plan.segments[0].proposed, 0u);
  EXPECT_LE(plan.predictedSeconds, 1.8 * 1.02);
}

TEST(SpeculationTest, TakesAllWhereItIsToldTo) {
  GuessingService service(0, 6, takingAll());
  service.admit(requestOf(16, 300));
  service.admit(requestOf(16, 300));
  service.guessAndStep(1);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(service.guessAndStep(1).shape.promptTokens, 2u * 7);
}

TEST(SpeculationTest, RefusesTooManyTokens) {
  auto pool = *BlockPool::create(10);
  SchedulerOptions options = usualOptions();
  options.speculation.maxTokens = 65;
  EXPECT_FALSE(Scheduler::create(*pool, options, plausibleModel()));
}
