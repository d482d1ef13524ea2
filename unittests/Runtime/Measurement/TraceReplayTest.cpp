//===- TraceReplayTest.cpp - Serving a trace in real time -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/TraceReplay.h"

#include "HashModel.h"
#include "TemporaryFolder.h"
#include "sandwich/Runtime/Measurement/StepMeasurement.h"

#include <gtest/gtest.h>

using namespace sandwich;
using namespace sandwich::test;

namespace {
class TraceReplayTest : public ::testing::Test {
protected:
  std::unique_ptr<Engine> load(uint64_t kvCacheTokens,
                               uint32_t contextLength = 100) {
    std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, {.contextLength = contextLength});
    EXPECT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(std::move(*artifact), {.kvCacheTokens = kvCacheTokens});
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }
  std::unique_ptr<Service> serve(uint64_t kvCacheTokens,
                                 const ServiceOptions &options = {},
                                 uint32_t contextLength = 100) {
    Result<std::unique_ptr<Service>> service = Service::create(
        load(kvCacheTokens, contextLength), std::nullopt, options);
    EXPECT_TRUE(service) << service.error().message;
    return std::move(*service);
  }

  TemporaryFolder folder;
};
} // namespace

TEST(FittedTrace, CutsPromptsFirst) {
  FittedTrace fitted =
      fitTrace({{50, 51, 1.}, {50, 52, 2.}, {101, 9, 3.}, {100, 0, 4.}}, 100);
  EXPECT_EQ(fitted.cut, 2u);
  EXPECT_EQ(
      fitted.requests,
      (ServingTrace{{50, 51, 1.}, {50, 51, 2.}, {100, 1, 3.}, {100, 0, 4.}}));
  EXPECT_EQ(replayTokens(fitted.requests, 1), 100u);
  EXPECT_EQ(replayTokens(fitted.requests, 64), 400u);
}

TEST_F(TraceReplayTest, ServesOneAfterTheOther) {
  std::unique_ptr<Service> service = serve(0);
  const ServingTrace trace = {
      {5, 4, {}}, {100, 1, {}}, {3, 0, {}}, {40, 61, {}}};
  size_t done = 0;
  Result<std::vector<ServedRequest>> served = replayTrace(
      *service, trace, {.progress = [&](size_t count) { done = count; }});
  ASSERT_TRUE(served) << served.error().message;
  ASSERT_EQ(served->size(), trace.size());
  EXPECT_EQ(done, trace.size());
  double before = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    const ServedRequest &request = (*served)[i];
    EXPECT_EQ(request.promptTokens,
              static_cast<uint64_t>(trace[i].promptTokens));
    EXPECT_EQ(request.outputTokens,
              static_cast<uint64_t>(trace[i].outputTokens));
    EXPECT_LE(before, request.arrival);
    EXPECT_LT(request.arrival, request.firstToken);
    EXPECT_EQ(request.gaps.size(),
              std::max<uint64_t>(request.outputTokens, 1) - 1);
    EXPECT_LE(request.firstToken, request.lastToken);
    before = request.lastToken;
  }
  // All blocks came back.
  EXPECT_EQ(service->statistics().scheduler.usedBlocks, 0u);
}

TEST_F(TraceReplayTest, BatchesWhoIsThere) {
  // The first goes on for as long as a busy machine may take to begin the
  // second.
  const ServingTrace trace = {{5, 2000, 0.}, {5, 2000, 0.}, {5, 2, 0.2}};
  Result<std::vector<ServedRequest>> together =
      replayTrace(*serve(5000, {}, 2500), trace);
  ASSERT_TRUE(together) << together.error().message;
  const std::vector<ServedRequest> &served = *together;
  // Both prompts come before anybody's last token, and nobody before its time.
  EXPECT_LT(served[1].firstToken, served[0].lastToken);
  EXPECT_GE(served[2].firstToken, 0.2);
  EXPECT_EQ(served[2].arrival, 0.2);
  // With room for one at a time they follow each other.
  Result<std::vector<ServedRequest>> single =
      replayTrace(*serve(5000, {.maxSequences = 1}, 2500), trace);
  ASSERT_TRUE(single) << single.error().message;
  EXPECT_GE((*single)[1].firstToken, (*single)[0].lastToken);
}

/// Else the second rate of an experiment would find what the first one
/// computed.
TEST_F(TraceReplayTest, ATraceThatIsReplayedAgainHasOtherTokens) {
  std::unique_ptr<Service> service = serve(5000);
  const ServingTrace trace = {{64, 2, 0.}, {64, 2, 0.}, {64, 2, {}}};
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(replayTrace(*service, trace));
    EXPECT_EQ(service->statistics().scheduler.promptTokensHit, 0u);
  }
  EXPECT_GT(service->statistics().scheduler.promptTokensQueried, 0u);
}

TEST_F(TraceReplayTest, WaitsForRoomInTheCache) {
  // Three blocks of 16 tokens: one of two requests at a time.
  std::unique_ptr<Service> service = serve(48);
  Result<std::vector<ServedRequest>> served =
      replayTrace(*service, {{20, 10, 0.}, {20, 10, 0.}});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_GE((*served)[1].firstToken, (*served)[0].lastToken);
  served = replayTrace(*service, {{20, 10, 0.}, {40, 30, 0.}});
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().message, "request 2 of the trace has 69 tokens; the "
                                    "KV cache holds 48");
  served = replayTrace(*service, {{90, 20, 0.}});
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().message,
            "request 1 of the trace has 109 tokens; the "
            "model's context holds 100");
}

TEST_F(TraceReplayTest, CountsWhoIsRefused) {
  ServiceOptions options;
  options.scheduling.maxWaitingRequests = 1;
  options.scheduling.maxWaitingTokens = 100;
  options.maxSequences = 1;
  ServingTrace trace(20, {60, 40, 0.});
  Result<std::vector<ServedRequest>> served =
      replayTrace(*serve(100, options), trace);
  ASSERT_TRUE(served) << served.error().message;
  ASSERT_EQ(served->size(), trace.size());
  const auto refused = std::ranges::count_if(*served, &ServedRequest::refused);
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 20);
  // Where there is room for all, nobody is.
  makeRoomFor(trace, options.scheduling);
  served = replayTrace(*serve(100, options), trace);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(std::ranges::count_if(*served, &ServedRequest::refused), 0);
}

TEST_F(TraceReplayTest, ObjectivesThatNobodyKeepsRefuseAllButTheFirst) {
  ServiceOptions options;
  options.scheduling.firstTokenObjective = 1e-9;
  Result<std::vector<ServedRequest>> served =
      replayTrace(*serve(100, options), {{60, 40, 0.}, {5, 4, 0.}});
  ASSERT_TRUE(served) << served.error().message;
  ASSERT_EQ(served->size(), 2u);
  EXPECT_FALSE(served->front().refused);
  EXPECT_TRUE(served->back().refused);
}

TEST_F(TraceReplayTest, StopsBetweenSteps) {
  std::unique_ptr<Service> service = serve(0);
  size_t done = 0;
  TraceReplayOptions options;
  options.progress = [&](size_t count) { done = count; };
  // On a busy machine both may be done before anybody looks.
  options.stop = [&] { return done >= 1; };
  Result<std::vector<ServedRequest>> served =
      replayTrace(*service, {{5, 4, {}}, {5, 4, {}}, {5, 4, 1e9}}, options);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_GE(served->size(), 1u);
  EXPECT_LE(served->size(), 2u);
}

TEST_F(TraceReplayTest, StepsAreMeasuredOnTheSameEngine) {
  const StepGrid grid{{1, 20}, {1, 4}, {10, 99}};
  std::unique_ptr<Engine> engine =
      load(StepMeasurement::cacheTokens(grid) +
           16 * StepMeasurement::cacheSequences(grid));
  Result<StepMeasurement> steps = StepMeasurement::create(*engine, grid);
  ASSERT_TRUE(steps) << steps.error().message;
  for (int round = 0; round < 3; ++round) {
    Result<InterpolatedSteps> times = steps->measure();
    ASSERT_TRUE(times) << times.error().message;
    StepShape prompt = {.phase = StepPhase::Prefill};
    prompt.addPiece(0, 20);
    StepShape token;
    token.addDecode(99);
    EXPECT_GT(times->seconds(prompt), 1e-8);
    EXPECT_GT(times->seconds(token), 1e-8);
  }
  Result<StepMeasurement> stopped =
      StepMeasurement::create(*engine, grid, [] { return true; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "interrupted");
}

TEST_F(TraceReplayTest, ShowsRequestsInTheirOrderUntilNoMoreAreNeeded) {
  std::unique_ptr<Service> service = serve(0);
  // The first one takes longest.
  const ServingTrace trace = {
      {5, 80, 0.}, {5, 1, 0.}, {5, 2, 0.}, {5, 1, 1000.}};
  std::vector<uint64_t> shown;
  TraceReplayOptions options;
  options.observe = [&](const ServedRequest &request) {
    shown.push_back(request.outputTokens);
    return shown.size() < 3;
  };
  Result<std::vector<ServedRequest>> served =
      replayTrace(*service, trace, options);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(shown, (std::vector<uint64_t>{80, 1, 2}));
  EXPECT_EQ(served->size(), 3u);
}
