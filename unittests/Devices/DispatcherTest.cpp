//===- DispatcherTest.cpp - Queries to devices, and back ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Dispatcher.h"

#include "Outcomes.h"
#include "sandwich/Devices/CallableDevice.h"
#include "sandwich/Devices/TimedSimulatedDevice.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sandwich;
using namespace sandwich::test;
using Ids = std::vector<uint64_t>;

namespace {

/// A dispatcher in front of devices that the test completes.
class DispatcherTest : public ::testing::Test {
protected:
  /// Of each device its depth.
  void make(std::vector<uint32_t> depths, DispatcherOptions options = {},
            DeviceFacts facts = {.dimensions = 2},
            std::optional<LatencyLine> line = std::nullopt) {
    std::vector<DispatchedDevice> devices;
    for (const uint32_t depth : depths) {
      facts.name = "device" + std::to_string(devices.size());
      hands.push_back(std::make_unique<ManualDevice::Hands>());
      devices.push_back(
          {std::make_unique<ManualDevice>(*hands.back(), facts), depth, line});
    }
    auto made = Dispatcher::create(std::move(devices), std::move(options));
    ASSERT_TRUE(made) << made.error().message;
    dispatcher = *std::move(made);
  }

  /// A query whose first token, and embedding, is its id.
  QueryTicket submit(uint64_t id, size_t tokens = 1,
                     std::optional<double> deadline = std::nullopt) {
    return dispatcher->submit(
        {.id = id,
         .tokens = std::vector<int32_t>(tokens, static_cast<int32_t>(id)),
         .deadlineSeconds = deadline},
        outcomes.callback());
  }

  bool isAnswered(uint64_t id, size_t device) {
    const QueryOutcome outcome = outcomes.of(id);
    return !outcome.refusal && outcome.device == device &&
           outcome.embedding == Embedding{static_cast<float>(id), 1};
  }
  ErrorKind refusalOf(uint64_t id) {
    const QueryOutcome outcome = outcomes.of(id);
    return outcome.refusal ? outcome.refusal->kind : ErrorKind::Unclassified;
  }
  DeviceCounters countersOf(size_t device) {
    return dispatcher->counters().devices.at(device);
  }

  std::vector<std::unique_ptr<ManualDevice::Hands>> hands;
  Outcomes outcomes;
  std::unique_ptr<Dispatcher> dispatcher;
};

/// What comes while a batch runs is the next batch.
TEST_F(DispatcherTest, BatchesFormWhileTheFormerRuns) {
  make({8});
  for (uint64_t id = 1; id <= 4; ++id)
    submit(id);
  EXPECT_EQ(hands[0]->count(), 1u);
  EXPECT_EQ(hands[0]->ids(0), Ids{1});
  hands[0]->answer(0);
  EXPECT_EQ(hands[0]->ids(1), (Ids{2, 3, 4}));
  EXPECT_EQ(outcomes.size(), 1u);
  hands[0]->answer(1);
  ASSERT_TRUE(outcomes.come(4));
  for (uint64_t id = 1; id <= 4; ++id)
    EXPECT_TRUE(isAnswered(id, 0)) << id;
  EXPECT_EQ(countersOf(0).queued, 0u);
}

TEST_F(DispatcherTest, ATokenBudgetClosesABatch) {
  make({8}, {}, {.dimensions = 2, .batchTokens = 10});
  submit(1);
  submit(2, 6);
  submit(3, 4);
  submit(4, 1);
  submit(5, 20);
  submit(6, 1);
  for (size_t i = 0; i < 4; ++i)
    hands[0]->answer(i);
  EXPECT_EQ(hands[0]->ids(1), (Ids{2, 3}));
  EXPECT_EQ(hands[0]->ids(2), Ids{4});
  // Longer than the budget: alone.
  EXPECT_EQ(hands[0]->ids(3), Ids{5});
  EXPECT_EQ(hands[0]->ids(4), Ids{6});
  EXPECT_EQ(countersOf(0).batchTokens, 1u + 10 + 1 + 20 + 1);
}

TEST_F(DispatcherTest, TheNumberOfQueriesClosesABatch) {
  make({8}, {}, {.dimensions = 2, .batchQueries = 2});
  for (uint64_t id = 1; id <= 4; ++id)
    submit(id);
  hands[0]->answer(0);
  EXPECT_EQ(hands[0]->ids(1), (Ids{2, 3}));
}

/// Algorithm 1.
TEST_F(DispatcherTest, OverflowsAndIsBusy) {
  make({2, 1});
  for (uint64_t id = 1; id <= 4; ++id)
    submit(id);
  EXPECT_EQ(hands[0]->ids(0), Ids{1});
  EXPECT_EQ(hands[1]->ids(0), Ids{3});
  EXPECT_EQ(refusalOf(4), ErrorKind::Overloaded);
  EXPECT_GT(outcomes.of(4).refusal->retryAfterSeconds.value_or(0), 0);
  EXPECT_EQ(countersOf(0).accepted, 2u);
  EXPECT_EQ(countersOf(0).overflowed, 2u);
  EXPECT_EQ(countersOf(1).overflowed, 1u);
  EXPECT_EQ(countersOf(0).queued, 2u);
  EXPECT_EQ(dispatcher->counters().busy, 1u);
  // Room, as soon as the batch is answered.
  hands[0]->answer(0);
  submit(5);
  hands[0]->answer(1);
  EXPECT_EQ(hands[0]->ids(2), Ids{5});
}

/// The rest of the batch under way, by the line.
TEST_F(DispatcherTest, TellsWhenToComeAgain) {
  make({3, 1}, {}, {.dimensions = 2}, LatencyLine{10, 5});
  EXPECT_DOUBLE_EQ(dispatcher->retryAfterSeconds(), 1e-3);
  for (uint64_t id = 1; id <= 5; ++id)
    submit(id);
  EXPECT_NEAR(outcomes.of(5).refusal->retryAfterSeconds.value(), 15, 1);
  // 2 and 3 are a batch of 25 s then, 4 still one of 15 s.
  hands[0]->answer(0);
  EXPECT_NEAR(dispatcher->retryAfterSeconds(), 15, 1);
  hands[1]->answer(0);
  EXPECT_NEAR(dispatcher->retryAfterSeconds(), 1e-3, 1e-6);
}

TEST_F(DispatcherTest, AfterADepthFellTheNextBatchCountsToo) {
  make({4}, {}, {.dimensions = 2}, LatencyLine{10, 5});
  for (uint64_t id = 1; id <= 4; ++id)
    submit(id);
  ASSERT_TRUE(dispatcher->setDepth(0, 2));
  EXPECT_NEAR(dispatcher->retryAfterSeconds(), 15 + 35, 1);
  EXPECT_FALSE(dispatcher->setDepth(1, 2));
}

TEST_F(DispatcherTest, RefusesWhatNoDeviceTakes) {
  make({1}, {}, {.dimensions = 2, .queryTokens = 4});
  submit(1, 0);
  EXPECT_EQ(refusalOf(1), ErrorKind::InvalidArgument);
  submit(2, 5);
  EXPECT_EQ(refusalOf(2), ErrorKind::ContextExceeded);
  EXPECT_EQ(outcomes.of(2).refusal->message,
            "the query has 5 tokens; it may have 4");
  submit(3, 4, 0);
  EXPECT_EQ(refusalOf(3), ErrorKind::DeadlineExceeded);
  submit(4, 4, std::nan(""));
  EXPECT_EQ(hands[0]->count(), 1u);
}

TEST_F(DispatcherTest, ADeadlinePassesInTheQueueAndInABatch) {
  make({3});
  submit(1, 1, 0.05);
  submit(2, 1, 0.02);
  submit(3);
  ASSERT_TRUE(outcomes.come(2));
  EXPECT_EQ(refusalOf(1), ErrorKind::DeadlineExceeded);
  EXPECT_EQ(refusalOf(2), ErrorKind::DeadlineExceeded);
  // The one that waited has given its slot back; the device has the other.
  EXPECT_EQ(countersOf(0).queued, 2u);
  hands[0]->answer(0);
  EXPECT_EQ(hands[0]->ids(1), Ids{3});
  hands[0]->answer(1);
  ASSERT_TRUE(outcomes.come(3));
  EXPECT_TRUE(isAnswered(3, 0));
  EXPECT_EQ(countersOf(0).queued, 0u);
  EXPECT_EQ(dispatcher->counters().expired, 2u);
}

TEST_F(DispatcherTest, CancelsInTheQueueAndInABatch) {
  make({3});
  const QueryTicket first = submit(1), second = submit(2);
  EXPECT_TRUE(dispatcher->cancel(second));
  EXPECT_FALSE(dispatcher->cancel(second));
  EXPECT_EQ(countersOf(0).queued, 1u);
  EXPECT_TRUE(dispatcher->cancel(first));
  EXPECT_EQ(countersOf(0).queued, 1u);
  hands[0]->answer(0);
  EXPECT_EQ(countersOf(0).queued, 0u);
  EXPECT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(refusalOf(1), ErrorKind::Cancelled);
  EXPECT_EQ(refusalOf(2), ErrorKind::Cancelled);
  const QueryTicket third = submit(3);
  hands[0]->answer(1);
  EXPECT_FALSE(dispatcher->cancel(third));
  EXPECT_TRUE(isAnswered(3, 0));
  EXPECT_FALSE(dispatcher->cancel(QueryTicket()));
}

/// Those of its batch and those that wait, in their order.
TEST_F(DispatcherTest, AFailedDeviceLosesItsQueriesToTheOthers) {
  make({3, 8});
  for (uint64_t id = 1; id <= 5; ++id)
    submit(id);
  hands[0]->fail(0, DeviceErrorKind::Failed);
  EXPECT_TRUE(countersOf(0).closed);
  EXPECT_EQ(countersOf(0).moved, 3u);
  EXPECT_EQ(countersOf(0).failed, 1u);
  EXPECT_EQ(countersOf(0).queued, 0u);
  hands[1]->answer(0);
  EXPECT_EQ(hands[1]->ids(1), (Ids{1, 2, 3, 5}));
  hands[1]->answer(1);
  ASSERT_TRUE(outcomes.come(5));
  for (uint64_t id = 1; id <= 5; ++id)
    EXPECT_TRUE(isAnswered(id, 1)) << id;
  // Nothing goes to it any more.
  submit(6);
  EXPECT_EQ(hands[1]->ids(2), Ids{6});
}

TEST_F(DispatcherTest, QueriesThatFindNoOtherDeviceAreRefused) {
  make({2, 1});
  for (uint64_t id = 1; id <= 3; ++id)
    submit(id);
  hands[0]->fail(0, DeviceErrorKind::Unreachable);
  ASSERT_TRUE(outcomes.come(2));
  EXPECT_EQ(refusalOf(1), ErrorKind::Overloaded);
  EXPECT_EQ(refusalOf(2), ErrorKind::Overloaded);
  hands[1]->fail(0, DeviceErrorKind::Unreachable);
  EXPECT_EQ(refusalOf(3), ErrorKind::Unavailable);
  EXPECT_GT(outcomes.of(3).refusal->retryAfterSeconds.value_or(0), 0);
}

TEST_F(DispatcherTest, AnAnswerOfAnotherDimensionIsAFailure) {
  make({1, 1});
  submit(1);
  hands[0]->batches[0].second({.embeddings = {{1, 2, 3}}});
  EXPECT_EQ(countersOf(0).failed, 1u);
  hands[1]->answer(0);
  EXPECT_TRUE(isAnswered(1, 1));
}

/// It may answer all the same, but to nobody.
TEST_F(DispatcherTest, ABatchThatHangsIsGivenUp) {
  make({1, 1}, {.hangSeconds = 0.03});
  submit(1);
  ASSERT_TRUE(becomes([&] { return hands[1]->count() == 1; }));
  hands[0]->answer(0);
  EXPECT_EQ(outcomes.size(), 0u);
  EXPECT_EQ(countersOf(0).late, 1u);
  hands[1]->answer(0);
  ASSERT_TRUE(outcomes.come(1));
  EXPECT_TRUE(isAnswered(1, 1));
  hands[1]->answer(0);
  EXPECT_EQ(countersOf(1).late, 1u);
  EXPECT_EQ(outcomes.size(), 1u);
}

TEST_F(DispatcherTest, AQueryOnWhichDevicesFailDoesNotBringAllDown) {
  make({2, 2, 2}, {.mostAttempts = 2});
  submit(1);
  hands[0]->fail(0, DeviceErrorKind::Failed);
  hands[1]->fail(0, DeviceErrorKind::Failed);
  EXPECT_EQ(refusalOf(1), ErrorKind::Unavailable);
  EXPECT_EQ(hands[2]->count(), 0u);
  EXPECT_FALSE(countersOf(2).closed);
}

/// Probed at growing intervals, and opened when it is alive.
TEST_F(DispatcherTest, AClosedDeviceIsProbedAndOpened) {
  std::mutex mutex;
  std::vector<std::string> messages;
  DispatcherOptions options;
  options.closing = {.openSeconds = 0.01, .growth = 3, .jitter = 0};
  options.log = [&](LogLevel, const std::string &message) {
    const std::lock_guard lock(mutex);
    messages.push_back(message);
  };
  make({1}, std::move(options));
  submit(1);
  hands[0]->fail(0, DeviceErrorKind::Unreachable);
  ASSERT_TRUE(becomes([&] { return hands[0]->probeCount() == 1; }));
  const auto start = std::chrono::steady_clock::now();
  hands[0]->endProbe(0, false);
  ASSERT_TRUE(becomes([&] { return hands[0]->probeCount() == 2; }));
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(30));
  submit(2);
  EXPECT_EQ(refusalOf(2), ErrorKind::Unavailable);
  hands[0]->endProbe(1, true);
  EXPECT_FALSE(countersOf(0).closed);
  submit(3);
  hands[0]->answer(1);
  EXPECT_TRUE(isAnswered(3, 0));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_TRUE(messages[0].starts_with("device 'device0' unreachable: as the "
                                      "test wants; it is probed in "))
      << messages[0];
  EXPECT_EQ(messages[1], "device 'device0' works again");
}

TEST_F(DispatcherTest, AProbeThatHangsIsAFailedOne) {
  DispatcherOptions options;
  options.probeSeconds = 0.25;
  options.closing = {.openSeconds = 0.01, .jitter = 0};
  make({1}, std::move(options));
  submit(1);
  hands[0]->fail(0, DeviceErrorKind::Failed);
  ASSERT_TRUE(becomes([&] { return hands[0]->probeCount() == 2; }));
  // The first one is of the past.
  hands[0]->endProbe(0, true);
  EXPECT_TRUE(countersOf(0).closed);
  hands[0]->endProbe(1, true);
  EXPECT_FALSE(countersOf(0).closed);
}

TEST_F(DispatcherTest, SeveralFailuresMayBeNeeded) {
  DispatcherOptions options;
  options.closing.failures = 2;
  make({4}, std::move(options));
  submit(1);
  submit(2);
  hands[0]->fail(0, DeviceErrorKind::Failed);
  EXPECT_FALSE(countersOf(0).closed);
  // What waited runs, and the failed one again after it.
  EXPECT_EQ(hands[0]->ids(1), Ids{2});
  hands[0]->answer(1);
  hands[0]->answer(2);
  ASSERT_TRUE(outcomes.come(2));
  EXPECT_TRUE(isAnswered(1, 0));
  EXPECT_TRUE(isAnswered(2, 0));
}

/// 429: it works, and gets nothing for as long as it told.
TEST_F(DispatcherTest, ABusyDeviceIsLeftAloneForAsLongAsItTells) {
  make({2, 2});
  submit(1);
  submit(2);
  const auto start = std::chrono::steady_clock::now();
  hands[0]->fail(0, DeviceErrorKind::Busy, 0.05);
  EXPECT_TRUE(countersOf(0).closed);
  EXPECT_EQ(countersOf(0).busy, 1u);
  EXPECT_EQ(countersOf(0).failed, 0u);
  EXPECT_EQ(hands[1]->ids(0), (Ids{1, 2}));
  hands[1]->answer(0);
  ASSERT_TRUE(outcomes.come(2));
  ASSERT_TRUE(becomes([&] { return !countersOf(0).closed; }));
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(50));
  EXPECT_EQ(hands[0]->probeCount(), 0u);
}

TEST_F(DispatcherTest, WhereAllAreBusySoIsTheService) {
  make({1});
  submit(1);
  hands[0]->fail(0, DeviceErrorKind::Busy, 7);
  EXPECT_EQ(refusalOf(1), ErrorKind::Overloaded);
  EXPECT_NEAR(outcomes.of(1).refusal->retryAfterSeconds.value(), 7, 0.5);
}

/// The others of its batch are answered.
TEST_F(DispatcherTest, ARejectedBatchIsTakenApart) {
  make({4});
  for (uint64_t id = 1; id <= 4; ++id)
    submit(id);
  hands[0]->answer(0);
  hands[0]->fail(1, DeviceErrorKind::Rejected);
  EXPECT_EQ(hands[0]->ids(2), Ids{2});
  hands[0]->answer(2);
  hands[0]->fail(3, DeviceErrorKind::Rejected);
  hands[0]->answer(4);
  ASSERT_TRUE(outcomes.come(4));
  EXPECT_TRUE(isAnswered(2, 0));
  EXPECT_EQ(refusalOf(3), ErrorKind::InvalidArgument);
  EXPECT_TRUE(isAnswered(4, 0));
  EXPECT_FALSE(countersOf(0).closed);
  EXPECT_EQ(countersOf(0).queued, 0u);
}

TEST_F(DispatcherTest, TheEndRefusesWhatIsUnderWay) {
  make({2, 1});
  for (uint64_t id = 1; id <= 3; ++id)
    submit(id);
  dispatcher.reset();
  ASSERT_TRUE(outcomes.come(3));
  for (uint64_t id = 1; id <= 3; ++id)
    EXPECT_EQ(refusalOf(id), ErrorKind::Unavailable);
}

TEST_F(DispatcherTest, CallbacksMaySubmitAndCancel) {
  make({1});
  QueryTicket ticket;
  bool cancelled = true;
  ticket =
      dispatcher->submit({.id = 1, .tokens = {1}}, [&](QueryOutcome outcome) {
        EXPECT_FALSE(outcome.refusal);
        cancelled = dispatcher->cancel(ticket);
        // Its slot is free by now.
        submit(2);
      });
  hands[0]->answer(0);
  EXPECT_FALSE(cancelled);
  hands[0]->answer(1);
  EXPECT_TRUE(isAnswered(2, 0));
}

/// The numbers of an answer are those that the device made.
TEST(DispatcherMovesTest, EmbeddingsAreNeverCopied) {
  const float *made = nullptr;
  auto device = CallableDevice::create(
      {.name = "cpu", .dimensions = 1024},
      [&](std::span<const DeviceQuery>) -> Result<std::vector<Embedding>> {
        std::vector<Embedding> embeddings;
        embeddings.emplace_back(1024, 1.0F);
        made = embeddings[0].data();
        return embeddings;
      });
  ASSERT_TRUE(device);
  std::vector<DispatchedDevice> devices;
  devices.push_back({*std::move(device), 1});
  auto dispatcher = Dispatcher::create(std::move(devices), {});
  ASSERT_TRUE(dispatcher);
  std::atomic<const float *> received = nullptr;
  Embedding kept;
  (*dispatcher)->submit({.tokens = {1}}, [&](QueryOutcome outcome) {
    kept = std::move(outcome.embedding);
    received = kept.data();
  });
  ASSERT_TRUE(becomes([&] { return received.load() != nullptr; }));
  EXPECT_EQ(received.load(), made);
}

TEST(DispatcherOptionsTest, RefusesWhatMakesNoSense) {
  const auto refusal = [](DispatcherOptions options) {
    const Status status = options.validate();
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.sloSeconds = 0}), "");
  EXPECT_NE(refusal({.hangSeconds = -1}), "");
  EXPECT_NE(refusal({.probeSeconds = 0}), "");
  EXPECT_NE(refusal({.closing = {.failures = 0}}), "");
  EXPECT_NE(refusal({.busySeconds = 0}), "");
  EXPECT_NE(refusal({.mostAttempts = 0}), "");
  EXPECT_NE(refusal({.drift = DriftOptions{.slack = 0}}), "");
  EXPECT_NE(refusal({.leastDepth = 5, .mostDepth = 4}), "");
}

TEST(DispatcherOptionsTest, RefusesDevicesThatDoNotFit) {
  const auto refusal = [](std::vector<DeviceFacts> facts) {
    static ManualDevice::Hands hands;
    std::vector<DispatchedDevice> devices;
    for (DeviceFacts &each : facts)
      devices.push_back(
          {std::make_unique<ManualDevice>(hands, std::move(each)), 1});
    auto made = Dispatcher::create(std::move(devices), {});
    return made ? "" : made.error().message;
  };
  EXPECT_EQ(refusal({}), "there are 0 devices; there must be 1 to 64");
  EXPECT_EQ(
      refusal({{.name = "a", .dimensions = 2}, {.name = "a", .dimensions = 2}}),
      "two devices are named 'a'");
  EXPECT_EQ(
      refusal({{.name = "a", .dimensions = 2}, {.name = "b", .dimensions = 3}}),
      "device 'b' has embeddings of 3 numbers, and the first one of 2");
}

/// A device that gets slower, while it serves: its depth falls, and nobody
/// waits for it.
TEST(DispatcherDriftTest, DepthsFollowTheDevice) {
  const SimulatedDeviceModel model = {
      .name = "drifting", .line = {1e-4, 2e-3}, .slowFactor = 3};
  auto device = TimedSimulatedDevice::create(model, {.dimensions = 2}, 1);
  ASSERT_TRUE(device);
  TimedSimulatedDevice &simulated = **device;
  const double slo = 0.012;
  std::vector<DispatchedDevice> devices;
  devices.push_back({*std::move(device), model.line.depthFor(slo), model.line});
  auto made = Dispatcher::create(std::move(devices),
                                 {.sloSeconds = slo, .drift = DriftOptions{}});
  ASSERT_TRUE(made) << made.error().message;
  Dispatcher &dispatcher = **made;
  simulated.inject(InjectedFault::Slow);
  Outcomes outcomes;
  size_t submitted = 0;
  EXPECT_TRUE(becomes([&] {
    if (submitted - outcomes.size() < 8)
      dispatcher.submit({.id = submitted++, .tokens = {1}},
                        outcomes.callback());
    return dispatcher.counters().devices[0].drifts > 0;
  }));
  const DeviceCounters counters = dispatcher.counters().devices[0];
  EXPECT_LT(counters.depth, model.line.depthFor(slo) / 2);
  EXPECT_GE(counters.depth, 1u);
  EXPECT_GT(counters.line->seconds(1), 2 * model.line.seconds(1));
  EXPECT_TRUE(outcomes.come(submitted));
}

} // namespace
