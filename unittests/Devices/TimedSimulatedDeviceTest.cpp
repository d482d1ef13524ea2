//===- TimedSimulatedDeviceTest.cpp - Numbers that take time --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/TimedSimulatedDevice.h"

#include "Outcomes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>

using namespace sandwich;
using namespace std::chrono_literals;

static std::unique_ptr<TimedSimulatedDevice> make(SimulatedDeviceModel model) {
  model.name = "simulated";
  auto device =
      TimedSimulatedDevice::create(std::move(model), {.dimensions = 4}, 1);
  EXPECT_TRUE(device) << device.error().message;
  return device ? *std::move(device) : nullptr;
}

namespace {
/// What is waited for; it keeps its promise, which a device that hangs lets go.
template <typename T> struct Awaited {
  std::shared_ptr<std::promise<T>> promise =
      std::make_shared<std::promise<T>>();
  std::future<T> future = promise->get_future();

  T get() { return future.get(); }
  bool comesWithin(std::chrono::milliseconds time) {
    return future.wait_for(time) == std::future_status::ready;
  }
};
} // namespace

static Awaited<BatchAnswer> ask(Device &device, size_t queries) {
  DeviceBatch batch;
  for (size_t i = 0; i < queries; ++i)
    batch.push_back({i, std::make_shared<const std::vector<int32_t>>(
                            std::vector<int32_t>{static_cast<int32_t>(i)})});
  Awaited<BatchAnswer> answer;
  device.submit(std::move(batch), [promise = answer.promise](BatchAnswer told) {
    promise->set_value(std::move(told));
  });
  return answer;
}

static Awaited<bool> probe(Device &device) {
  Awaited<bool> alive;
  device.probe([promise = alive.promise](std::optional<DeviceError> error) {
    promise->set_value(!error);
  });
  return alive;
}

/// alpha * batch + beta, and one batch after another.
TEST(TimedSimulatedDeviceTest, TakesTheTimeOfItsLine) {
  const auto device = make({.line = {0.005, 0.02}});
  const auto start = std::chrono::steady_clock::now();
  Awaited<BatchAnswer> first = ask(*device, 4), second = ask(*device, 2);
  EXPECT_EQ(first.get().embeddings.size(), 4u);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 40ms);
  EXPECT_EQ(second.get().embeddings.size(), 2u);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 70ms);
  EXPECT_EQ(device->facts().name, "simulated");
}

TEST(TimedSimulatedDeviceTest, EmbeddingsDependOnTheTokensOnly) {
  const std::vector<int32_t> text = {1, 2, 3}, other = {1, 3, 2};
  const Embedding embedding = TimedSimulatedDevice::embed(text, 64);
  EXPECT_EQ(embedding, TimedSimulatedDevice::embed(text, 64));
  EXPECT_NE(embedding, TimedSimulatedDevice::embed(other, 64));
  double squares = 0;
  for (const float number : embedding)
    squares += static_cast<double>(number) * number;
  EXPECT_NEAR(squares, 1, 1e-5);
  const auto device = make({.line = {0, 1e-4}});
  const BatchAnswer answer = ask(*device, 1).get();
  EXPECT_EQ(answer.embeddings.at(0),
            TimedSimulatedDevice::embed(std::vector<int32_t>{0}, 4));
}

TEST(TimedSimulatedDeviceTest, FailsAsItsModelSays) {
  const auto failing = make({.line = {0, 1e-4}, .failureProbability = 1});
  EXPECT_EQ(ask(*failing, 1).get().error.value().kind, DeviceErrorKind::Failed);
  const auto hanging = make({.line = {0, 1e-4}, .hangProbability = 1});
  EXPECT_FALSE(ask(*hanging, 1).comesWithin(20ms));
}

TEST(TimedSimulatedDeviceTest, IsKilledAndComesBack) {
  const auto device = make({.line = {0, 0.02}});
  Awaited<BatchAnswer> underWay = ask(*device, 1);
  device->inject(InjectedFault::Killed);
  EXPECT_EQ(ask(*device, 1).get().error.value().kind,
            DeviceErrorKind::Unreachable);
  EXPECT_FALSE(probe(*device).get());
  EXPECT_EQ(underWay.get().error.value().kind, DeviceErrorKind::Unreachable);
  device->inject(InjectedFault::None);
  EXPECT_TRUE(probe(*device).get());
  EXPECT_FALSE(ask(*device, 1).get().error);
}

TEST(TimedSimulatedDeviceTest, HangsUntilItDoesNot) {
  const auto device = make({.line = {0, 1e-4}});
  device->inject(InjectedFault::Hanging);
  Awaited<BatchAnswer> batch = ask(*device, 1);
  Awaited<bool> probed = probe(*device);
  EXPECT_FALSE(batch.comesWithin(20ms));
  EXPECT_FALSE(probed.comesWithin(0ms));
  device->inject(InjectedFault::None);
  EXPECT_TRUE(probe(*device).get());
  EXPECT_FALSE(ask(*device, 1).get().error);
}

TEST(TimedSimulatedDeviceTest, IsSlow) {
  const auto device = make({.line = {0, 0.005}, .slowFactor = 8});
  device->inject(InjectedFault::Slow);
  const auto start = std::chrono::steady_clock::now();
  (void)ask(*device, 1).get();
  EXPECT_GE(std::chrono::steady_clock::now() - start, 40ms);
}

TEST(TimedSimulatedDeviceTest, AnswersNonsenseInEachWay) {
  const auto device = make({.line = {0, 1e-4}});
  device->inject(InjectedFault::Nonsense);
  for (int i = 0; i < 6; ++i) {
    const BatchAnswer answer = ask(*device, 3).get();
    EXPECT_FALSE(answer.error);
    EXPECT_TRUE(checkEmbeddings(answer.embeddings, 3, 4));
  }
}

TEST(TimedSimulatedDeviceTest, EndsWithBatchesUnderWay) {
  const auto device = make({.line = {0, 1000}});
  (void)ask(*device, 1);
}
