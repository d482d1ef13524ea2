//===- CallableDeviceTest.cpp - A function as a device --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/CallableDevice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <stdexcept>

using namespace sandwich;

static std::unique_ptr<CallableDevice> make(CallableDevice::Function function) {
  auto device = CallableDevice::create({.name = "cpu", .dimensions = 2},
                                       std::move(function));
  EXPECT_TRUE(device) << device.error().message;
  return device ? *std::move(device) : nullptr;
}

static DeviceBatch batchOf(std::vector<std::vector<int32_t>> texts) {
  DeviceBatch batch;
  for (std::vector<int32_t> &tokens : texts)
    batch.push_back({batch.size(), std::make_shared<const std::vector<int32_t>>(
                                       std::move(tokens))});
  return batch;
}

static BatchAnswer ask(Device &device, DeviceBatch batch) {
  std::promise<BatchAnswer> answer;
  device.submit(std::move(batch),
                [&](BatchAnswer told) { answer.set_value(std::move(told)); });
  return answer.get_future().get();
}

TEST(CallableDeviceTest, CallsItsFunctionWithOneBatchAfterAnother) {
  const auto device = make([](std::span<const DeviceQuery> batch) {
    std::vector<Embedding> embeddings;
    for (const DeviceQuery &query : batch)
      embeddings.push_back({static_cast<float>(query.tokens->size()), 0});
    return embeddings;
  });
  const BatchAnswer answer = ask(*device, batchOf({{1, 2, 3}, {4}}));
  EXPECT_FALSE(answer.error);
  EXPECT_EQ(answer.embeddings, (std::vector<Embedding>{{3, 0}, {1, 0}}));
  EXPECT_EQ(ask(*device, batchOf({{1}})).embeddings.size(), 1u);
}

/// A vector has the same memory where it is made and where it is received.
TEST(CallableDeviceTest, MovesEmbeddings) {
  const float *made = nullptr;
  const auto device =
      make([&](std::span<const DeviceQuery>) -> std::vector<Embedding> {
        Embedding embedding(1024, 1);
        made = embedding.data();
        std::vector<Embedding> embeddings;
        embeddings.push_back(std::move(embedding));
        return embeddings;
      });
  const BatchAnswer answer = ask(*device, batchOf({{1}}));
  EXPECT_EQ(answer.embeddings.at(0).data(), made);
}

TEST(CallableDeviceTest, ErrorsAndExceptionsAreTold) {
  const auto kindOf = [](ErrorKind kind) {
    const auto device = make(
        [kind](std::span<const DeviceQuery>) -> Result<std::vector<Embedding>> {
          return makeError(kind, "no");
        });
    return ask(*device, batchOf({{1}})).error.value().kind;
  };
  EXPECT_EQ(kindOf(ErrorKind::ContextExceeded), DeviceErrorKind::Rejected);
  EXPECT_EQ(kindOf(ErrorKind::InvalidArgument), DeviceErrorKind::Rejected);
  EXPECT_EQ(kindOf(ErrorKind::Overloaded), DeviceErrorKind::Busy);
  EXPECT_EQ(kindOf(ErrorKind::Internal), DeviceErrorKind::Failed);
  const auto throwing =
      make([](std::span<const DeviceQuery>) -> Result<std::vector<Embedding>> {
        throw std::runtime_error("thrown");
      });
  const BatchAnswer answer = ask(*throwing, batchOf({{1}}));
  EXPECT_EQ(answer.error.value().kind, DeviceErrorKind::Failed);
  EXPECT_EQ(answer.error.value().message, "thrown");
}

TEST(CallableDeviceTest, AProbeWaitsForItsTurn) {
  std::promise<void> goOn;
  const auto device =
      make([&](std::span<const DeviceQuery>) -> Result<std::vector<Embedding>> {
        goOn.get_future().wait();
        return std::vector<Embedding>{{1, 2}};
      });
  device->submit(batchOf({{1}}), [](BatchAnswer) {});
  std::promise<bool> alive;
  std::future<bool> answer = alive.get_future();
  device->probe(
      [&](std::optional<DeviceError> error) { alive.set_value(!error); });
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(20)),
            std::future_status::timeout);
  goOn.set_value();
  EXPECT_TRUE(answer.get());
}

TEST(CallableDeviceTest, RefusesFactsThatAreNone) {
  const auto refusal = [](DeviceFacts facts) {
    auto device = CallableDevice::create(
        std::move(facts),
        [](std::span<const DeviceQuery>) { return std::vector<Embedding>(); });
    return device ? "" : device.error().message;
  };
  EXPECT_EQ(refusal({.name = "", .dimensions = 2}), "a device has no name");
  EXPECT_EQ(refusal({.name = "x"}), "device 'x' has embeddings of 0 numbers; "
                                    "these must be 1 to 65536");
  EXPECT_EQ(refusal({.name = "x", .dimensions = 2, .batchTokens = 0}),
            "device 'x' has batches of no tokens");
  EXPECT_EQ(refusal({.name = "x", .dimensions = 2, .batchQueries = 0}),
            "device 'x' has batches of 0 queries; these must be 1 to 1048576");
  EXPECT_EQ(refusal({.name = "x", .dimensions = 2, .queryTokens = 0}),
            "device 'x' takes no query of any length");
}

TEST(DeviceTest, AnswersAreChecked) {
  const std::vector<Embedding> right = {{1, 2}, {3, 4}};
  EXPECT_FALSE(checkEmbeddings(right, 2, 2));
  const auto wrong = [](std::vector<Embedding> embeddings) {
    const auto error = checkEmbeddings(embeddings, 2, 2);
    return error && error->kind == DeviceErrorKind::WrongAnswer ? error->message
                                                                : "";
  };
  EXPECT_EQ(wrong({{1, 2}}), "there are 1 embeddings of 2 queries");
  EXPECT_EQ(wrong({{1, 2}, {3}}), "embedding 1 has 1 numbers instead of 2");
  for (const float number : {INFINITY, -INFINITY, NAN})
    EXPECT_EQ(wrong({{1, 2}, {3, number}}),
              "embedding 1 has a number that is not finite");
}
