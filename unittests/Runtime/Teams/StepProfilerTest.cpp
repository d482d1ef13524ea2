//===- StepProfilerTest.cpp - Where the time of steps goes ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/StepProfiler.h"

#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"
#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Runtime/Measurement/Benchmark.h"

#include <gtest/gtest.h>

#include <thread>

using namespace sandwich;
using namespace sandwich::test;

static proto::Phase makePhase() {
  proto::Phase phase;
  phase.set_name("decode");
  phase.set_threads(2);
  for (const char *name : {"first", "second", "never"})
    phase.add_operations()->set_name(name);
  return phase;
}

TEST(StepProfiler, TimesAreMeansOfThreadsAndAddUp) {
  proto::Phase phase = makePhase();
  StepProfiler profiler(phase);
  EXPECT_EQ(profiler.profile().steps, 0u);
  EXPECT_EQ(profiler.profile().seconds, 0);
  for (int repetition = 0; repetition < 3; ++repetition) {
    SandwichStep step{};
    profiler.begin(step);
    for (int32_t thread : {0, 1}) {
      profiler.enter(thread);
      // Thread 1 alone takes time, and in the second operation only.
      step.mark(step.profile, thread, 0);
      step.mark(step.profile, thread, 0);
      if (thread == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(4));
      step.mark(step.profile, thread, 1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    profiler.end();
  }
  PhaseProfile profile = profiler.profile();
  EXPECT_EQ(profile.phase, "decode");
  EXPECT_EQ(profile.steps, 3u);
  ASSERT_EQ(profile.operations.size(), 3u);
  EXPECT_EQ(profile.operations[0].name, "first");
  EXPECT_EQ(profile.operations[0].calls, 6u);
  EXPECT_EQ(profile.operations[1].calls, 3u);
  EXPECT_EQ(profile.operations[2].calls, 0u);
  EXPECT_EQ(profile.operations[2].seconds, 0);
  EXPECT_GE(profile.operations[1].seconds, 3 * 0.004 / 2);
  EXPECT_LE(profile.operations[1].seconds, profile.seconds / 2);
  EXPECT_GE(profile.otherSeconds(), 3 * 0.002);
  double sum = profile.otherSeconds();
  for (const OperationProfile &operation : profile.operations)
    sum += operation.seconds;
  EXPECT_NEAR(sum, profile.seconds, 1e-9);
}

TEST(StepProfiler, CostsFollowFromWhatTheStepsHad) {
  proto::Phase phase = makePhase();
  phase.mutable_operations(0)->set_bytes(1000);
  phase.mutable_operations(0)->set_flops_per_token(3);
  phase.mutable_operations(0)->set_flops_per_logit_row(100);
  phase.mutable_operations(1)->set_bytes_per_position(10);
  phase.mutable_operations(1)->set_flops_per_attended(7);
  StepProfiler profiler(phase);
  // Positions 4 and 5 of one sequence, then one of each of two sequences; the
  // first operation runs twice in each step.
  struct {
    std::vector<SandwichSegment> segments;
    int64_t logitRows;
  } const steps[] = {{{{0, 2, 4, 0}}, 1}, {{{0, 1, 4, 0}, {1, 1, 5, 1}}, 2}};
  for (const auto &each : steps) {
    SandwichStep step{};
    step.segments = each.segments.data();
    step.num_segments = static_cast<int64_t>(each.segments.size());
    step.num_tokens = 2;
    step.num_logit_rows = each.logitRows;
    profiler.begin(step);
    for (int32_t thread : {0, 1}) {
      profiler.enter(thread);
      for (int32_t operation : {0, 0, 1})
        step.mark(step.profile, thread, operation);
    }
    profiler.end();
  }
  PhaseProfile profile = profiler.profile();
  EXPECT_EQ(profile.operations[0].bytes, 4 * 1000);
  EXPECT_EQ(profile.operations[0].flops, 2 * (4 * 3 + 3 * 100));
  EXPECT_EQ(profile.operations[1].bytes, (6 + 5 + 6) * 10);
  EXPECT_EQ(profile.operations[1].flops, (5 + 6 + 5 + 6) * 7);
  EXPECT_EQ(profile.operations[2].bytes, 0);
  EXPECT_EQ(profile.operations[2].flops, 0);
}

TEST(StepProfiler, WhatHasOneNameIsToldTogether) {
  proto::Phase phase = makePhase();
  phase.mutable_operations(2)->set_name(phase.operations(0).name());
  phase.mutable_operations(0)->set_flops_per_token(3);
  phase.mutable_operations(2)->set_flops_per_logit_row(5);
  StepProfiler profiler(phase);
  const SandwichSegment segment = {0, 2, 0, 0};
  SandwichStep step{};
  step.segments = &segment;
  step.num_segments = 1;
  step.num_tokens = 2;
  step.num_logit_rows = 1;
  profiler.begin(step);
  for (int32_t thread : {0, 1}) {
    profiler.enter(thread);
    for (int32_t operation : {0, 0, 1, 2})
      step.mark(step.profile, thread, operation);
  }
  profiler.end();
  PhaseProfile profile = profiler.profile();
  ASSERT_EQ(profile.operations.size(), 2u);
  EXPECT_EQ(profile.operations[0].calls, 3);
  EXPECT_EQ(profile.operations[0].flops, 2 * 2 * 3 + 5);
  EXPECT_EQ(profile.operations[1].calls, 1);
}

TEST(StepProfiler, BenchmarkProfilesMeasuredRepetitionsOnly) {
  TemporaryFolder folder;
  std::string path = folder.file("model.sandwich");
  ASSERT_TRUE(writeHashModel(path, {.threads = 3}));
  Result<Artifact> artifact = Artifact::open(path);
  ASSERT_TRUE(artifact) << artifact.error().message;
  auto engine = Engine::create(std::move(*artifact), {});
  ASSERT_TRUE(engine) << engine.error().message;
  BenchmarkOptions options;
  // Steps of 8 and 1 tokens: a prefill and a decode step.
  options.promptLengths = {9};
  options.generatedTokens = {4};
  options.contexts = {5};
  options.repetitions = 2;
  options.profile = true;
  auto results = runBenchmark(**engine, options);
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), 2u);
  const BenchmarkResult &prompt = results->front();
  ASSERT_EQ(prompt.profile.size(), 2u);
  EXPECT_EQ(prompt.profile[0].phase, "prefill");
  EXPECT_EQ(prompt.profile[0].steps, 2u);
  EXPECT_EQ(prompt.profile[1].phase, "decode");
  EXPECT_EQ(prompt.profile[1].steps, 2u);
  EXPECT_EQ(prompt.profile[0].operations[HASH_MODEL_APPEND].flops, 2 * 8 * 3);
  EXPECT_EQ(prompt.profile[0].operations[HASH_MODEL_LOGITS].flops, 0);
  const BenchmarkResult &generation = results->back();
  EXPECT_EQ(generation.test, "tg4@5");
  ASSERT_EQ(generation.profile.size(), 1u);
  const PhaseProfile &decode = generation.profile.front();
  EXPECT_EQ(decode.steps, 8u);
  EXPECT_EQ(decode.operations[HASH_MODEL_BARRIER].calls, 16u);
  EXPECT_EQ(decode.operations[HASH_MODEL_ATTEND].bytes,
            2 * (6 + 7 + 8 + 9) * 8);
  EXPECT_EQ(decode.operations[HASH_MODEL_LOGITS].flops, 8 * 7);
  EXPECT_GE(decode.otherSeconds(), 0);

  // Without being asked nothing is told.
  options.profile = false;
  results = runBenchmark(**engine, options);
  ASSERT_TRUE(results);
  EXPECT_TRUE(results->front().profile.empty());
}

TEST(StepProfiler, BenchmarkRefusesContextsBeyondTheModels) {
  proto::ModelConfiguration model;
  model.set_context_length(100);
  BenchmarkOptions options;
  options.promptLengths = {100};
  options.generatedTokens = {4};
  options.contexts = {0, 96};
  options.sequences = {1, 3};
  auto needs = benchmarkNeeds(model, options);
  ASSERT_TRUE(needs) << needs.error().message;
  EXPECT_EQ(needs->tokens, 100u);
  EXPECT_EQ(needs->allTokens, 300u);
  EXPECT_EQ(needs->sequences, 3u);
  EXPECT_EQ(benchmarkTests(options).back().name(), "tg4@96x3");
  options.sequences = {1};
  for (uint64_t context : {uint64_t{97}, UINT64_MAX}) {
    options.contexts = {context};
    needs = benchmarkNeeds(model, options);
    ASSERT_FALSE(needs);
    EXPECT_EQ(needs.error().message,
              "tg4@" + std::to_string(context) +
                  " is longer than the model's context of 100 tokens");
  }
  options.contexts = {0};
  options.sequences = {0};
  EXPECT_FALSE(benchmarkNeeds(model, options));
  options.sequences = {UINT64_MAX};
  EXPECT_FALSE(benchmarkNeeds(model, options));
}
