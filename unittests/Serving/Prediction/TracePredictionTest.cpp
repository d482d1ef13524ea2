//===- TracePredictionTest.cpp - How long requests will take --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Prediction/TracePrediction.h"

#include "sandwich/Serving/Prediction/ModelledEvaluator.h"
#include "sandwich/Serving/Prediction/StepCostPrediction.h"
#include "sandwich/Target/Target.h"

#include "PaperMachines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace sandwich;

/// A step takes a second whatever it does.
static double second(const StepShape & /*shape*/) { return 1; }

static double costOf(const ServingTrace &trace, const StepSeconds &seconds,
                     const TracePredictionOptions &options = {}) {
  Result<TracePrediction> prediction = TracePrediction::create(trace, options);
  EXPECT_TRUE(prediction) << prediction.error().message;
  return prediction ? prediction->cost(seconds) : -1;
}

TEST(TracePrediction, AddsUpTheStepsOfATrace) {
  EXPECT_NEAR(costOf({{10, 5, {}}}, second), 5, 1e-6);
  EXPECT_NEAR(costOf({{10, 1, {}}}, second), 1, 1e-6);
  EXPECT_NEAR(costOf({{10, 0, {}}}, second), 1, 1e-6);
  EXPECT_EQ(costOf({}, second), 0);
  // Prompts in pieces.
  EXPECT_NEAR(costOf({{10, 5, {}}}, second, {.maxBatch = 1, .stepTokens = 4}),
              7, 1e-6);
  // One after the other, each from when the one before is done.
  EXPECT_NEAR(costOf({{10, 5, {}}, {10, 3, {}}}, second), 4, 1e-6);
  // Together: both prompts in a step, then four steps for both.
  EXPECT_NEAR(costOf({{10, 5, 0.}, {10, 5, 0.}}, second), 5, 1e-6);
  EXPECT_NEAR(costOf({{10, 5, 0.}, {10, 5, 0.}}, second, {.maxBatch = 1}), 7.5,
              1e-6);
  // The second one's prompt comes into a step of the first.
  EXPECT_NEAR(costOf({{10, 5, 0.}, {10, 1, 1.5}}, second), (5 + 1.5) / 2, 1e-6);
  // Nothing happens before the first one comes.
  EXPECT_NEAR(costOf({{10, 5, 100.}}, second), 5, 1e-6);
}

/// Weights for all, and positions for each.
static StepCosts plausibleCosts() {
  return {.prefill = {{1, 1e-3}, {16, 1.2e-3}, {512, 0.05}},
          .decode = {{1, 1e-3}, {64, 5e-3}},
          .secondsPerPromptPosition = 1e-8,
          .secondsPerDecodePosition = 1e-6};
}

TEST(TracePrediction, RunsAreWhatAStepAfterTheOtherTakes) {
  std::minstd_rand random(7);
  auto upTo = [&](unsigned most) {
    return static_cast<int64_t>(random() % most) + 1;
  };
  // Costs that are right change no more, however often they are observed.
  Result<StepCostModel> costs = StepCostModel::create(plausibleCosts());
  ASSERT_TRUE(costs);
  auto plausible = [&](const StepShape &shape) {
    return costs->seconds(shape);
  };
  for (uint64_t batch : {1, 3, 64})
    for (bool arrive : {false, true}) {
      ServingTrace trace;
      double arrival = 0;
      for (int i = 0; i < 40; ++i) {
        arrival += static_cast<double>(random() % 1000) * 2e-4;
        trace.push_back({upTo(300), upTo(400), {}});
        if (arrive)
          trace.back().arrivalSeconds = arrival;
      }
      const SchedulerLimits::Phase decode = {batch, batch, batch};
      SchedulerOptions options;
      options.limits = {
          .prefill = {std::max<uint64_t>(batch, 128), batch, batch},
          .decode = decode,
          .contextLength = 700};
      auto serve = [&](auto simulate) {
        auto pool = BlockPool::create(64 * 44, {.prefixCache = false});
        EXPECT_TRUE(pool);
        auto scheduler = Scheduler::create(**pool, options, *costs);
        EXPECT_TRUE(scheduler) << scheduler.error().message;
        return simulate(**scheduler);
      };
      uint64_t steps = 0, runs = 0;
      const std::vector<RequestTimes> times = serve([&](Scheduler &scheduler) {
        std::vector<RequestTimes> all = simulateRequests(
            scheduler, trace, plausible, [&](const StepRun &run) {
              steps += run.count;
              ++runs;
            });
        EXPECT_EQ(scheduler.statistics().usedBlocks, 0u);
        return all;
      });
      uint64_t single = 0;
      const std::vector<SimulatedRequest> served =
          serve([&](Scheduler &scheduler) {
            return simulateServing(scheduler, trace,
                                   [&](const StepShape &shape) {
                                     ++single;
                                     return plausible(shape);
                                   });
          });
      EXPECT_EQ(steps, single);
      EXPECT_LT(runs * 5, steps) << batch;
      for (size_t i = 0; i < trace.size(); ++i) {
        const double tolerance = 1e-6 * times[i].lastToken;
        EXPECT_NEAR(times[i].arrival, served[i].arrival, tolerance);
        EXPECT_NEAR(times[i].firstToken, served[i].tokenTimes.front(),
                    tolerance);
        EXPECT_NEAR(times[i].lastToken, served[i].tokenTimes.back(), tolerance)
            << batch << " " << arrive << " " << i;
      }
    }
}

TEST(TracePrediction, SumsOfRunsAreExactWithBends) {
  StepRun run;
  for (uint64_t computed : {5, 9, 300})
    run.first.addDecode(computed);
  for (double bend : {0.0, 400.0, 1000.0, 1e9})
    for (uint64_t count : {0, 1, 2, 3, 37, 1000}) {
      auto seconds = [&](const StepShape &shape) {
        const auto positions = static_cast<double>(shape.decodePositions);
        return 1 + 0.25 * positions + std::max(0.0, positions - bend);
      };
      double expected = 0;
      for (uint64_t i = 0; i < count; ++i)
        expected += seconds(run.step(i));
      EXPECT_NEAR(runSeconds(run, count, seconds), expected, 1e-9 * expected)
          << bend << " " << count;
    }
}

TEST(TracePrediction, CountsTokensOfFullInstances) {
  // Four prompts in a step, then four steps for all.
  const ServingTrace four(4, {10, 5, {}});
  TracePredictionOptions options = {.objective = PlanObjective::Throughput};
  EXPECT_NEAR(costOf(four, second, options), 5.0 / 20, 1e-9);
  // Steps take as long for two requests each.
  options.instances = 2;
  EXPECT_NEAR(costOf(four, second, options), 5.0 / 20, 1e-9);
  // One after the other, by one instance and by two.
  options.maxBatch = 1;
  EXPECT_NEAR(costOf(four, second, options), 10.0 / 20, 1e-9);
  EXPECT_NEAR(costOf(four, second,
                     {.maxBatch = 1, .objective = PlanObjective::Throughput}),
              1, 1e-9);
}

TEST(TracePrediction, InstancesGetRequestsInTurn) {
  const ServingTrace two = {{10, 5, 0.}, {10, 5, 0.}};
  EXPECT_NEAR(costOf(two, second, {.maxBatch = 1}), 7.5, 1e-6);
  EXPECT_NEAR(costOf(two, second, {.maxBatch = 1, .instances = 2}), 5, 1e-6);
  // Whose turn it is does not matter where there is one request at a time.
  EXPECT_NEAR(costOf({{10, 5, {}}, {10, 3, {}}}, second, {.instances = 2}), 4,
              1e-6);
}

TEST(TracePrediction, CountsRequestsThatGetWhatTheyAreToGet) {
  TracePredictionOptions options = {.maxBatch = 1,
                                    .objective = PlanObjective::Goodput,
                                    .objectives = {.firstToken = 1.5}};
  // The second one would wait for the first.
  const ServingTrace three = {{10, 1, 0.}, {10, 1, 0.}, {10, 1, 10.}};
  EXPECT_NEAR(costOf(three, second, options), 11.0 / 2, 1e-6);
  options.instances = 2;
  EXPECT_NEAR(costOf(three, second, options), 11.0 / 3, 1e-6);
  // Tokens that come too slowly are no good either.
  options = {.objective = PlanObjective::Goodput, .objectives = {.token = 0.5}};
  EXPECT_EQ(costOf({{10, 5, 0.}}, second, options), INFINITY);
  options.objectives.token = 1;
  EXPECT_NEAR(costOf({{10, 5, 0.}}, second, options), 5, 1e-6);
}

/// Requests that take a second each and come at random are turned away while
/// another one is computed, since what is left of its step might be all of it.
/// Such a system without a queue serves a share of 1 / (1 + rate) (Erlang).
TEST(TracePrediction, FindsTheHighestRateThatIsServedWell) {
  const ServingTrace trace(4000, {10, 1, {}});
  TracePredictionOptions options = {.maxBatch = 1,
                                    .objective = PlanObjective::Goodput,
                                    .objectives = {.firstToken = 1.5}};
  const double cost = costOf(trace, second, options);
  EXPECT_NEAR(0.9 / cost, 0.1, 0.01);
  // Four instances in turn get four times as many, and less by chance.
  options.instances = 4;
  EXPECT_LT(costOf(trace, second, options), cost / 4);
  // A request that nobody waits for ends the trace, not its rate.
  options = {.objective = PlanObjective::Goodput,
             .objectives = {.firstToken = 1000}};
  EXPECT_NEAR(costOf(ServingTrace(64, {10, 5, {}}), second, options), 8.0 / 64,
              0.06);
  // No rate is good enough.
  options.objectives.firstToken = 0.5;
  EXPECT_EQ(costOf(trace, second, options), INFINITY);
}

TEST(TracePrediction, EndsWhateverTheNumbersAre) {
  for (double each : {double(NAN), double(INFINITY)}) {
    auto seconds = [&](const StepShape &) { return each; };
    for (PlanObjective objective :
         {PlanObjective::Throughput, PlanObjective::Goodput}) {
      const TracePredictionOptions options = {.objective = objective,
                                              .objectives = {.firstToken = 1}};
      EXPECT_EQ(costOf({{1, 5, 0.}, {1, 5, 1.}}, seconds, options), INFINITY);
      EXPECT_EQ(costOf({{1, 5, {}}}, seconds, options), INFINITY);
    }
    EXPECT_EQ(costOf({{1, 5, 0.}, {1, 5, 1.}}, seconds), INFINITY);
    EXPECT_EQ(costOf({{1, 5, {}}, {1, 5, {}}}, seconds), INFINITY);
  }
}

TEST(TracePrediction, RefusesStepsThatHoldNothing) {
  Result<TracePrediction> refused =
      TracePrediction::create({{1, 5, {}}}, {.maxBatch = 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            "steps of 512 tokens and 0 sequences hold nothing");
  const auto messageOf = [](const TracePredictionOptions &options) {
    Result<TracePrediction> made =
        TracePrediction::create({{1, 5, {}}}, options);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(messageOf({.instances = 0}), "0 instances serve nothing");
  EXPECT_EQ(messageOf({.objective = PlanObjective::Goodput}),
            "goodput needs to know what requests are to get");
  EXPECT_NE(messageOf({.objective = PlanObjective::Goodput,
                       .objectives = {.firstToken = -1}}),
            "");
}

/// What a scheduler begins with is what the latency model says of each step.
TEST(StepCostPrediction, TellsWhatTheLatencyModelSays) {
  Result<Machine> machine = readMachineTopology("synthetic:numa:2 core:4 pu:1");
  ASSERT_TRUE(machine) << machine.error().message;
  Result<LatencyModel> model = LatencyModel::create(
      machine->root, describeMachine(*machine, *getTarget("x86-64-avx2")),
      MatrixElement::BF16);
  ASSERT_TRUE(model) << model.error().message;
  const ModelWork work = test::llama1B(2);
  const PlanCores cores = {.prefill = {{0, 1, 2, 3}, {4, 5, 6, 7}},
                           .decode = {{0, 1}, {4, 5}}};
  const SchedulerLimits limits = {
      .prefill = {512, 16, 16}, .decode = {16, 16, 16}, .contextLength = 2048};
  Result<StepCosts> costs = predictStepCosts(*model, work, cores, limits);
  ASSERT_TRUE(costs) << costs.error().message;
  EXPECT_EQ(costs->prefill.back().tokens, 512U);
  EXPECT_EQ(costs->decode.back().tokens, 16U);
  Result<StepCostModel> scheduler = StepCostModel::create(*costs);
  ASSERT_TRUE(scheduler) << scheduler.error().message;
  const TeamSpeed prefill = *model->speedOf(cores.prefill);
  const TeamSpeed decode =
      *model->speedOf(cores.decode, *model->memoriesOf(cores.prefill));
  StepShape prompt = {.phase = StepPhase::Prefill}, streams;
  prompt.addPiece(0, 512);
  for (int i = 0; i < 16; ++i)
    streams.addDecode(100);
  for (const StepShape &shape : {prompt, streams})
    EXPECT_NEAR(scheduler->seconds(shape),
                predictStep(prefill, decode, work, shape),
                0.1 * scheduler->seconds(shape));
  EXPECT_FALSE(predictStepCosts(*model, work, {{{99}}, {{99}}}, limits));
}
