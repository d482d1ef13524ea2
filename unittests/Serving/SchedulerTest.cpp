//===- SchedulerTest.cpp - Who is computed when ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestService.h"

#include "sandwich/Serving/ServingSimulator.h"

#include <gtest/gtest.h>

using namespace sandwich;

TEST(SchedulerTest, RefusesOptionsThatCannotWork) {
  auto pool = *BlockPool::create(10);
  auto refused = [&](auto change) {
    SchedulerOptions options = usualOptions();
    change(options);
    return !Scheduler::create(*pool, options, plausibleModel());
  };
  EXPECT_FALSE(refused([](SchedulerOptions &) {}));
  using Options = SchedulerOptions;
  EXPECT_TRUE(refused([](Options &o) { o.limits.prefill.logitRows = 0; }));
  EXPECT_TRUE(refused([](Options &o) { o.limits.decode.tokens = 0; }));
  EXPECT_TRUE(refused([](Options &o) { o.limits.contextLength = 0; }));
  EXPECT_TRUE(refused([](Options &o) { o.maxWaitingRequests = 0; }));
  EXPECT_TRUE(refused([](Options &o) { o.maxWaitingTokens = 4095; }));
  EXPECT_TRUE(refused([](Options &o) { o.tokenObjective = 0; }));
  EXPECT_TRUE(refused([](Options &o) { o.slowdown = 1; }));
}

TEST(SchedulerTest, RefusesWithReasons) {
  SchedulerOptions options = usualOptions();
  options.maxWaitingRequests = 2;
  options.maxWaitingTokens = 4096;
  TestService service(20, options);
  auto expect = [&](const Request &request, ErrorKind kind,
                    const char *message) {
    const Error error = service.refusal(request);
    EXPECT_EQ(error.kind, kind);
    EXPECT_EQ(error.message, message);
  };
  expect(requestOf(0), ErrorKind::InvalidArgument, "the prompt has no tokens");
  expect(requestOf(1, 0), ErrorKind::InvalidArgument,
         "a text cannot get at most 0 tokens");
  Request many = requestOf(1);
  many.continuations = 65;
  expect(many, ErrorKind::InvalidArgument,
         "65 texts are asked for, and 1 to 64 can be generated together");
  many.continuations = 0;
  expect(many, ErrorKind::InvalidArgument,
         "0 texts are asked for, and 1 to 64 can be generated together");
  Request important = requestOf(1);
  important.priority = 8;
  expect(important, ErrorKind::InvalidArgument,
         "priority 8 is above the highest, 7");
  expect(requestOf(4097), ErrorKind::ContextExceeded,
         "the prompt has 4097 tokens, and the context 4096");
  expect(requestOf(300, 22), ErrorKind::CacheFull,
         "the request may need 21 blocks of the KV cache, which has 20; ask "
         "for fewer tokens");
  Request late = requestOf(1);
  late.deadline = 0;
  expect(late, ErrorKind::DeadlineExceeded,
         "the request's deadline has passed");
  late.deadline = 0.05;
  EXPECT_EQ(service.refusal(late).kind, ErrorKind::DeadlineExceeded);

  service.admit(requestOf(300, 21));
  service.admit(requestOf(16));
  expect(requestOf(1), ErrorKind::Overloaded,
         "2 requests are waiting, and no more may; try again later");
  service.finish();
  EXPECT_EQ(service.ends.size(), 2u);
}

TEST(SchedulerTest, BoundsWaitingTokens) {
  SchedulerOptions options = usualOptions();
  options.maxWaitingTokens = 4096;
  TestService service(1000, options);
  service.admit(requestOf(4000));
  EXPECT_EQ(service.refusal(requestOf(100)).message,
            "prompts of 4000 tokens are waiting, and at most 4096 may; try "
            "again later");
  service.admit(requestOf(96));
}

TEST(SchedulerTest, RefusesWhatWouldComeTooLate) {
  SchedulerOptions options = usualOptions();
  options.firstTokenObjective = 2.2;
  TestService service(1000, options);
  service.admit(requestOf(1000));
  const Error error = service.refusal(requestOf(1000));
  EXPECT_EQ(error.kind, ErrorKind::Overloaded);
  // What is more important comes first, so that it need not wait.
  Request important = requestOf(1000);
  important.priority = 1;
  service.admit(important);
  // A short one behind both would.
  EXPECT_EQ(service.refusal(requestOf(1)).kind, ErrorKind::Overloaded);
}

TEST(SchedulerTest, AnIdleServiceServesEverybody) {
  SchedulerOptions options = usualOptions();
  options.firstTokenObjective = 1;
  TestService service(1000, options);
  for (int i = 0; i < 2; ++i) {
    // 2.22 s, if the costs are right. Nothing else would tell.
    service.admit(requestOf(1200));
    EXPECT_EQ(service.refusal(requestOf(16)).kind, ErrorKind::Overloaded);
    service.finish();
  }
}

TEST(SchedulerTest, PredictsFirstTokensBesideStreams) {
  SchedulerOptions options = usualOptions();
  options.tokenObjective = 0.3;
  for (uint64_t ahead : {0, 1, 4, 20})
    for (uint64_t prompt : {1, 20, 300, 1000}) {
      TestService service(4000, options);
      for (int i = 0; i < 8; ++i)
        service.admit(requestOf(16, 1000));
      service.step();
      service.step();
      const StepPlan underWay = service.plan();
      for (uint64_t i = 0; i < ahead; ++i)
        service.admit(requestOf(prompt, 1000));
      const Request last = requestOf(prompt);
      const double predicted = service.scheduler->predictFirstToken(last);
      const double begin = service.now;
      const RequestId id = service.admit(last);
      service.complete(underWay);
      while (!service.times.contains({id, 0}))
        service.step();
      const double taken = service.times.at({id, 0})[0] - begin;
      EXPECT_NEAR(predicted / taken, 1, 0.15)
          << ahead << " prompts of " << prompt << " tokens ahead";
    }
}

TEST(SchedulerTest, TellsWhenToTryAgain) {
  // An objective that others keep the first token from, a queue that is full of
  // requests, and one that is full of tokens.
  for (int why = 0; why < 3; ++why) {
    SchedulerOptions options = usualOptions();
    options.limits.prefill.tokens = 512;
    if (why == 0)
      options.firstTokenObjective = 4;
    if (why == 1)
      options.maxWaitingRequests = 5;
    if (why == 2)
      options.maxWaitingTokens = 5000;
    TestService service(2000, options);
    EXPECT_EQ(service.scheduler->retryAfterSeconds(1), 1);
    Result<RequestId> last = RequestId(0);
    while ((last = service.scheduler->admit(requestOf(1000, 10), service.now)))
      continue;
    ASSERT_EQ(last.error().kind, ErrorKind::Overloaded);
    const double begin = service.now;
    const double wait = service.scheduler->retryAfterSeconds(1000);
    EXPECT_GE(wait, 1);
    EXPECT_LT(wait, 20);
    // The queue may have room as soon as its first requests have begun, but
    // what is predicted has to happen.
    while (why == 0 && service.now < begin + wait / 2)
      service.step();
    if (why == 0) {
      EXPECT_FALSE(service.scheduler->admit(requestOf(1000, 10), service.now));
    }
    while (service.now < begin + wait * 1.1)
      service.step();
    EXPECT_TRUE(service.scheduler->admit(requestOf(1000, 10), service.now))
        << why << " after " << wait;
    service.finish();
  }
}

TEST(SchedulerTest, TimesToTryAgainAreNeverEndless) {
  SchedulerOptions options = usualOptions();
  options.firstTokenObjective = 1e-6;
  options.limits.decode = {1, 1, 1};
  auto pool = *BlockPool::create(10);
  const StepCosts slow = {.prefill = {{1, 1e5}}, .decode = {{1, 1e5}}};
  auto scheduler =
      *Scheduler::create(*pool, options, *StepCostModel::create(slow));
  EXPECT_EQ(scheduler->retryAfterSeconds(0), 3600);
  EXPECT_EQ(scheduler->retryAfterSeconds(UINT64_MAX), 3600);
}

TEST(SchedulerTest, CountsStepsOfBothPhases) {
  TestService service(1000);
  const RequestId id = service.admit(requestOf(100, 3));
  EXPECT_FALSE(service.scheduler->statistics().phase);
  StepPlan plan = service.plan();
  EXPECT_EQ(service.scheduler->statistics().phase, StepPhase::Prefill);
  service.complete(plan);
  service.step();
  const double beforeLast = service.now;
  plan = service.plan();
  EXPECT_EQ(service.scheduler->statistics().phase, StepPhase::Decode);
  service.complete(plan);
  const SchedulerStatistics statistics = service.scheduler->statistics();
  EXPECT_FALSE(statistics.phase);
  EXPECT_EQ(statistics.prefill.steps, 1u);
  EXPECT_EQ(statistics.prefill.tokens, 100u);
  EXPECT_DOUBLE_EQ(statistics.prefill.seconds, 0.09 + 84 * 0.0018);
  EXPECT_EQ(statistics.decode.steps, 2u);
  EXPECT_EQ(statistics.decode.tokens, 2u);
  EXPECT_DOUBLE_EQ(statistics.decode.seconds, 2 * 0.0901);
  EXPECT_EQ(statistics.promptTokens, 100u);
  EXPECT_EQ(statistics.generatedTokens, 3u);
  const RequestEnd &end = service.ends.at(id);
  EXPECT_EQ(end.admittedAt, 0);
  EXPECT_EQ(end.startedAt, 0);
  EXPECT_DOUBLE_EQ(*end.firstTokenAt, 0.09 + 84 * 0.0018);
  EXPECT_EQ(end.endedAt, service.now);
  EXPECT_LT(beforeLast, service.now);
}

TEST(SchedulerTest, ComputesAPromptAndThenItsTokens) {
  TestService service(1000);
  const RequestId id = service.admit(requestOf(100, 3));
  StepPlan plan = service.plan();
  ASSERT_EQ(plan.segments.size(), 1u);
  EXPECT_EQ(plan.phase(), StepPhase::Prefill);
  EXPECT_EQ(plan.segments[0].request, id);
  EXPECT_EQ(plan.segments[0].tokens.size(), 100u);
  EXPECT_EQ(plan.segments[0].samples, 1u);
  EXPECT_EQ(plan.segments[0].sequence->blocks().size(), 7u);
  service.complete(plan);
  for (int i = 0; i < 2; ++i) {
    plan = service.plan();
    ASSERT_EQ(plan.segments.size(), 1u);
    EXPECT_EQ(plan.phase(), StepPhase::Decode);
    EXPECT_EQ(plan.segments[0].tokens[0], 7);
    EXPECT_DOUBLE_EQ(plan.predictedSeconds, 0.0901);
    service.complete(plan);
  }
  ASSERT_TRUE(service.ends.contains(id));
  const RequestEnd &end = service.ends.at(id);
  EXPECT_TRUE(end.status);
  EXPECT_EQ(service.finishes.at({id, 0}), FinishReason::MaxTokens);
  EXPECT_EQ(end.generatedTokens, 3u);
  EXPECT_EQ(end.queueSeconds, 0);
  EXPECT_DOUBLE_EQ(end.prefillSeconds, 0.09 + 84 * 0.0018);
  EXPECT_DOUBLE_EQ(end.decodeSeconds, 2 * 0.0901);
  EXPECT_TRUE(service.scheduler->idle());
  EXPECT_EQ(service.pool->freeBlocks(), 1000u);
}

TEST(SchedulerTest, TextsEndWithReasons) {
  SchedulerOptions options = usualOptions();
  options.limits.contextLength = 20;
  TestService service(1000, options);
  const RequestId full = service.admit(requestOf(18, 100));
  const RequestId exact = service.admit(requestOf(20, 100));
  service.finish();
  EXPECT_EQ(service.finishes.at({full, 0}), FinishReason::ContextFull);
  // The last token is one that no place in the context is needed for.
  EXPECT_EQ(service.ends.at(full).generatedTokens, 3u);
  EXPECT_EQ(service.ends.at(exact).generatedTokens, 1u);

  service.admit(requestOf(5, 100));
  StepPlan plan = service.plan();
  ChosenToken last = {.token = 1, .ends = FinishReason::EndOfText};
  StepEvents events = service.scheduler->complete(plan, {&last, 1}, 1);
  ASSERT_EQ(events.tokens.size(), 1u);
  EXPECT_EQ(events.tokens[0].finish, FinishReason::EndOfText);
  ASSERT_EQ(events.ended.size(), 1u);
  EXPECT_TRUE(events.ended[0].status);
}

TEST(SchedulerTest, ContinuationsShareThePrompt) {
  TestService service(1000);
  Request request = requestOf(100, 5);
  request.continuations = 3;
  const RequestId id = service.admit(request);
  StepPlan plan = service.plan();
  ASSERT_EQ(plan.segments.size(), 1u);
  EXPECT_EQ(plan.segments[0].samples, 3u);
  service.complete(plan);
  plan = service.plan();
  ASSERT_EQ(plan.segments.size(), 3u);
  EXPECT_EQ(service.pool->blockCount() - service.pool->freeBlocks(), 6u + 3);
  EXPECT_EQ(service.pool->pendingCopies().size(), 2u);
  service.complete(plan);
  service.finish();
  for (uint32_t text = 0; text < 3; ++text)
    EXPECT_EQ(service.times.at({id, text}).size(), 5u);
  EXPECT_EQ(service.ends.at(id).generatedTokens, 15u);
}

TEST(SchedulerTest, FindsPrefixesAgain) {
  TestService service(1000);
  Request request = requestOf(100);
  service.admit(request);
  service.finish();
  const RequestId id = service.admit(request);
  const StepPlan plan = service.plan();
  EXPECT_EQ(plan.segments[0].tokens.size(), 4u);
  service.complete(plan);
  service.finish();
  EXPECT_EQ(service.ends.at(id).cachedTokens, 96u);
  EXPECT_EQ(service.scheduler->statistics().promptTokensHit, 96u);
}

TEST(SchedulerTest, PromptsThatAreScoredHaveRowsForAllTokens) {
  SchedulerOptions options = usualOptions();
  options.limits.prefill.logitRows = 40;
  TestService service(1000, options);
  Request request = requestOf(100, 2);
  service.admit(request);
  service.finish();
  // What the cache knows has no logits.
  request.scoresPrompt = true;
  const RequestId id = service.admit(request);
  uint64_t told = 1;
  for (const uint64_t tokens : {40, 40, 20}) {
    const StepPlan plan = service.plan();
    ASSERT_EQ(plan.segments.size(), 1u);
    EXPECT_EQ(plan.segments[0].tokens.size(), tokens);
    EXPECT_EQ(plan.segments[0].rows(), tokens);
    EXPECT_EQ(plan.segments[0].scored[0], request.prompt[told]);
    told += plan.segments[0].scored.size();
    service.complete(plan);
  }
  EXPECT_EQ(told, 100u);
  service.finish();
  EXPECT_EQ(service.ends.at(id).cachedTokens, 0u);
  EXPECT_EQ(service.ends.at(id).generatedTokens, 2u);
  EXPECT_EQ(service.scores.at(id), (std::vector<uint64_t>{1, 41, 81}));
}

TEST(SchedulerTest, PromptsMayBeScoredAndNothingElse) {
  TestService service(1000);
  Request request = requestOf(100, 0);
  request.scoresPrompt = true;
  request.continuations = 2;
  const RequestId id = service.admit(request);
  Request single = requestOf(1, 0);
  single.scoresPrompt = true;
  const RequestId none = service.admit(single);
  service.finish();
  EXPECT_TRUE(service.ends.at(id).status);
  EXPECT_EQ(service.ends.at(id).generatedTokens, 0u);
  EXPECT_EQ(service.scores.at(id), (std::vector<uint64_t>{1, 65}));
  EXPECT_TRUE(service.ends.at(none).status);
  EXPECT_FALSE(service.scores.contains(none));
  EXPECT_EQ(service.pool->freeBlocks(), 1000u);
}

TEST(SchedulerTest, PreemptedPromptsAreScoredOnce) {
  SchedulerOptions options = usualOptions();
  options.limits.prefill = {32, 64, 32};
  TestService service(12, options);
  Request scored = requestOf(150, 3);
  scored.scoresPrompt = true;
  const RequestId id = service.admit(scored);
  for (int i = 0; i < 2; ++i)
    service.step();
  Request important = requestOf(100, 2);
  important.priority = 7;
  service.admit(important);
  service.finish();
  EXPECT_EQ(service.ends.at(id).preemptions, 1u);
  EXPECT_EQ(service.scores.at(id), (std::vector<uint64_t>{1, 33, 65, 97, 129}));
}

TEST(SchedulerTest, CancelledRequestsGiveTheirBlocksBack) {
  TestService service(1000);
  const RequestId waiting = service.admit(requestOf(50));
  EXPECT_TRUE(service.scheduler->cancel(waiting, 0));
  EXPECT_FALSE(service.scheduler->cancel(waiting, 0));
  const RequestId planned = service.admit(requestOf(50));
  StepPlan plan = service.plan();
  EXPECT_EQ(service.ends.at(waiting).status.error().kind, ErrorKind::Cancelled);
  EXPECT_TRUE(service.scheduler->cancel(planned, 0));
  // The step may still be writing.
  EXPECT_EQ(service.pool->freeBlocks(), 996u);
  service.complete(plan);
  EXPECT_EQ(service.pool->freeBlocks(), 1000u);
  EXPECT_TRUE(service.times.empty());
  EXPECT_TRUE(service.ends.contains(planned));

  const RequestId running = service.admit(requestOf(50));
  service.step();
  EXPECT_TRUE(service.scheduler->cancel(running, 0));
  EXPECT_EQ(service.pool->freeBlocks(), 1000u);
  EXPECT_FALSE(service.scheduler->cancel(99, 0));
}

TEST(SchedulerTest, NothingRemainsOfAFailedStep) {
  TestService service(1000);
  const RequestId id = service.admit(requestOf(50));
  StepPlan plan = service.plan();
  const RequestId later = service.admit(requestOf(50));
  std::vector<RequestEnd> ended =
      service.scheduler->fail(plan, makeError(ErrorKind::Internal, "no"), 1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].request, id);
  EXPECT_EQ(ended[0].status.error().message, "no");
  EXPECT_EQ(service.pool->freeBlocks(), 1000u);
  EXPECT_EQ(service.pool->cachedBlocks(), 0u);
  service.finish();
  EXPECT_TRUE(service.ends.at(later).status);
}

TEST(SchedulerTest, DeadlinesEndRequests) {
  TestService service(1000);
  Request request = requestOf(50, 1000);
  request.deadline = 1;
  const RequestId id = service.admit(request);
  service.finish();
  EXPECT_EQ(service.ends.at(id).status.error().kind,
            ErrorKind::DeadlineExceeded);
  EXPECT_GT(service.times.at({id, 0}).size(), 5u);
  EXPECT_LT(service.times.at({id, 0}).back(), 1.1);
}

TEST(SchedulerTest, TheYoungestGivesWayAndGoesOnLater) {
  // Each may need 7 blocks, both together get 8.
  TestService service(8);
  const RequestId old = service.admit(requestOf(20, 80));
  const RequestId young = service.admit(requestOf(20, 80));
  service.finish();
  for (RequestId id : {old, young})
    EXPECT_EQ(service.ends.at(id).generatedTokens, 80u);
  ASSERT_FALSE(service.preempted.empty());
  EXPECT_EQ(service.ends.at(old).preemptions, 0u);
  EXPECT_EQ(service.ends.at(young).preemptions, service.preempted.size());
  EXPECT_EQ(service.scheduler->statistics().preemptions,
            service.preempted.size());
}

TEST(SchedulerTest, NobodyIsPreemptedTwiceBeforeOthers) {
  // Two that may need 4 blocks each.
  TestService service(9);
  const RequestId older = service.admit(requestOf(33, 30));
  const RequestId younger = service.admit(requestOf(33, 30));
  service.step();
  for (int i = 0; i < 2; ++i) {
    Request important = requestOf(60, 2);
    important.priority = 2;
    const RequestId id = service.admit(important);
    while (!service.ends.contains(id))
      service.step();
    // The others both run again.
    service.step();
    EXPECT_EQ(service.scheduler->statistics().runningRequests, 2u);
  }
  EXPECT_EQ(service.preempted, (std::vector<RequestId>{younger, older}));
  service.finish();
  EXPECT_EQ(service.ends.size(), 4u);
}

TEST(SchedulerTest, WhatAPromptSharesTakesNoBlocks) {
  TestService service(8);
  Request request = requestOf(80, 10);
  service.admit(request);
  service.step();
  // Of its 5 blocks it shares 4; another one stays for the first to go on.
  service.admit(request);
  service.step();
  EXPECT_EQ(service.scheduler->statistics().runningRequests, 2u);
  service.finish();
  EXPECT_TRUE(service.preempted.empty());
}

TEST(SchedulerTest, CachedBlocksThatAreClaimedAreNotFree) {
  TestService service(6);
  Request request = requestOf(81, 1);
  service.admit(request);
  service.finish();
  EXPECT_EQ(service.pool->cachedBlocks(), 5u);
  // The first will need another block, which the second would leave it only if
  // those that it finds again were not counted.
  service.admit(requestOf(10, 20));
  service.step();
  request.prompt.resize(80);
  service.admit(request);
  service.step();
  EXPECT_EQ(service.scheduler->statistics().runningRequests, 1u);
  service.finish();
  EXPECT_TRUE(service.preempted.empty());
}

TEST(SchedulerTest, PreemptedContinuationsShareThePromptAgain) {
  TestService service(12);
  Request several = requestOf(40, 30);
  several.continuations = 3;
  const RequestId id = service.admit(several);
  for (int i = 0; i < 20; ++i)
    service.step();
  Request important = requestOf(150, 4);
  important.priority = 7;
  service.admit(important);
  service.finish();
  EXPECT_EQ(service.ends.at(id).preemptions, 1u);
  EXPECT_EQ(service.ends.at(id).generatedTokens, 90u);
}

TEST(SchedulerTest, HigherPrioritiesComeFirst) {
  SchedulerOptions options = usualOptions();
  options.limits.decode = {1, 1, 1};
  TestService service(1000, options);
  const RequestId low = service.admit(requestOf(10, 10));
  Request important = requestOf(10, 10);
  important.priority = 3;
  const RequestId high = service.admit(important);
  service.finish();
  EXPECT_LT(service.times.at({high, 0}).back(),
            service.times.at({low, 0}).front());
}

TEST(SchedulerTest, AlternatesWherePhasesCannotMix) {
  SchedulerOptions options = usualOptions();
  options.limits.prefill.sequences = 1;
  TestService service(1000, options);
  const RequestId first = service.admit(requestOf(16, 100));
  service.step();
  service.admit(requestOf(1000, 2));
  for (int i = 0; i < 6; ++i) {
    const StepPlan plan = service.step();
    EXPECT_EQ(plan.phase(), i % 2 ? StepPhase::Prefill : StepPhase::Decode);
    EXPECT_EQ(plan.segments.size(), 1u);
  }
  EXPECT_EQ(service.times.at({first, 0}).size(), 4u);
}

TEST(SchedulerTest, TheSameCallsGiveTheSamePlans) {
  auto served = [] {
    SchedulerOptions options = usualOptions();
    options.tokenObjective = 0.15;
    auto pool = *BlockPool::create(60);
    auto scheduler = *Scheduler::create(*pool, options, plausibleModel());
    const ServingTrace trace = *makeServingTrace("lmsys", 40, 2, 1);
    std::vector<double> times;
    for (const SimulatedRequest &request :
         simulateServing(*scheduler, trace, [](const StepShape &shape) {
           return plausibleModel().seconds(shape);
         }))
      times.insert(times.end(), request.tokenTimes.begin(),
                   request.tokenTimes.end());
    return times;
  };
  const std::vector<double> once = served();
  EXPECT_GT(once.size(), 1000u);
  EXPECT_EQ(once, served());
}
