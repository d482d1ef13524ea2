//===- DispatcherFaultsTest.cpp - Each query once, come what may ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Outcomes.h"
#include "sandwich/Devices/TimedSimulatedDevice.h"
#include "sandwich/Support/RandomNumbers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

using namespace sandwich;
using namespace sandwich::test;

namespace {

constexpr size_t queryCount = 100'000;
constexpr uint32_t dimensions = 8;

/// What became of each query, without a lock that would order the threads.
struct Ledger {
  std::vector<std::atomic<uint8_t>> told =
      std::vector<std::atomic<uint8_t>>(queryCount);
  std::atomic<size_t> all = 0, answered = 0, wrong = 0, cancelled = 0;

  QueryCallback callback(std::vector<int32_t> tokens) {
    return [this, tokens = std::move(tokens)](QueryOutcome outcome) {
      told[outcome.id].fetch_add(1);
      if (!outcome.refusal) {
        ++answered;
        if (outcome.embedding !=
            TimedSimulatedDevice::embed(tokens, dimensions))
          ++wrong;
      } else if (outcome.refusal->kind == ErrorKind::Cancelled) {
        ++cancelled;
      } else if (outcome.refusal->kind != ErrorKind::Overloaded &&
                 outcome.refusal->kind != ErrorKind::Unavailable &&
                 outcome.refusal->kind != ErrorKind::DeadlineExceeded) {
        ++wrong;
      }
      ++all;
    };
  }
};

} // namespace

/// Three devices that fail, hang and are slow by themselves, and are killed,
/// made to hang, slowed and made to answer nonsense from outside, some of them
/// for so short that they flap, while threads submit, cancel and set deadlines.
TEST(DispatcherFaultsTest, EachOf100000QueriesIsAnsweredOrRefusedOnce) {
  std::vector<DispatchedDevice> devices;
  std::vector<TimedSimulatedDevice *> simulated;
  for (uint64_t i = 0; i < 3; ++i) {
    SimulatedDeviceModel model;
    model.name = "device" + std::to_string(i);
    model.line = {2e-6, 2e-4};
    model.noise = 0.1;
    model.slowFactor = 20;
    model.slowProbability = 0.01;
    model.failureProbability = 0.005;
    model.hangProbability = 0.002;
    auto device = TimedSimulatedDevice::create(
        model, {.dimensions = dimensions, .batchTokens = 512}, i);
    ASSERT_TRUE(device) << device.error().message;
    simulated.push_back(device->get());
    devices.push_back({*std::move(device), 512, model.line});
  }
  DispatcherOptions options;
  options.sloSeconds = 0.02;
  // Some batches that are merely slow are given up, and come late.
  options.hangSeconds = 0.01;
  options.probeSeconds = 0.005;
  options.closing = {.openSeconds = 0.001, .mostOpenSeconds = 0.01};
  options.drift = DriftOptions{};
  options.leastDepth = 64;
  options.mostDepth = 1024;
  auto made = Dispatcher::create(std::move(devices), std::move(options));
  ASSERT_TRUE(made) << made.error().message;
  Dispatcher &dispatcher = **made;

  Ledger ledger;
  std::atomic<bool> done = false;
  std::thread saboteur([&] {
    std::mt19937_64 random(7);
    constexpr std::array faults = {
        InjectedFault::None, InjectedFault::None,    InjectedFault::None,
        InjectedFault::None, InjectedFault::Killed,  InjectedFault::Hanging,
        InjectedFault::Slow, InjectedFault::Nonsense};
    while (!done) {
      simulated[random() % simulated.size()]->inject(
          faults[random() % faults.size()]);
      std::this_thread::sleep_for(
          std::chrono::microseconds(200 + random() % 3000));
    }
    for (TimedSimulatedDevice *device : simulated)
      device->inject(InjectedFault::None);
  });
  constexpr size_t submitters = 4;
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < submitters; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (size_t id = thread; id < queryCount; id += submitters) {
        std::vector<int32_t> tokens(1 + random() % 8, static_cast<int32_t>(id));
        std::optional<double> deadline;
        if (random() % 8 == 0)
          deadline = 0.02 * drawUniform(random);
        const QueryTicket ticket = dispatcher.submit(
            {.id = id, .tokens = tokens, .deadlineSeconds = deadline},
            ledger.callback(tokens));
        if (random() % 32 == 0)
          dispatcher.cancel(ticket);
        // Mostly less than the queues hold, so that more than BUSY happens.
        if (id / submitters % 32 == 0 || ledger.all + 1000 < id)
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  done = true;
  saboteur.join();
  EXPECT_TRUE(becomes([&] { return ledger.all == queryCount; }))
      << ledger.all << " of " << queryCount;
  // Nothing comes twice.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(ledger.all, queryCount);
  for (const std::atomic<uint8_t> &count : ledger.told)
    ASSERT_EQ(count, 1);
  EXPECT_EQ(ledger.wrong, 0u);
  const DispatcherCounters counters = dispatcher.counters();
  EXPECT_EQ(counters.submitted, queryCount);
  EXPECT_EQ(counters.answered, ledger.answered);
  EXPECT_EQ(counters.cancelled, ledger.cancelled);
  EXPECT_EQ(counters.answered + counters.busy + counters.unavailable +
                counters.invalid + counters.expired + counters.cancelled,
            queryCount);
  uint64_t failed = 0, moved = 0;
  for (const DeviceCounters &device : counters.devices) {
    failed += device.failed;
    moved += device.moved;
  }
  // The faults were seen, and most of the queries served all the same.
  EXPECT_GT(failed, 10u);
  EXPECT_GT(moved, 100u);
  EXPECT_GT(counters.answered, queryCount / 4);
  const auto record = [](const char *name, uint64_t count) {
    ::testing::Test::RecordProperty(name, static_cast<int>(count));
  };
  record("answered", counters.answered);
  record("busy", counters.busy);
  record("unavailable", counters.unavailable);
  record("expired", counters.expired);
  record("failed_batches", failed);
  record("moved", moved);
  // Once all batches have ended, no slot is held.
  EXPECT_TRUE(becomes([&] {
    for (const DeviceCounters &device : dispatcher.counters().devices)
      if (device.queued > 0)
        return false;
    return true;
  }));
}

/// The end comes while all of it goes on.
TEST(DispatcherFaultsTest, EndsWithQueriesUnderWay) {
  for (uint64_t round = 0; round < 50; ++round) {
    Outcomes outcomes;
    size_t submitted = 0;
    {
      std::vector<DispatchedDevice> devices;
      for (uint64_t i = 0; i < 2; ++i) {
        SimulatedDeviceModel model;
        model.name = "device" + std::to_string(i);
        model.line = {0, 1e-4};
        model.failureProbability = 0.3;
        auto device = TimedSimulatedDevice::create(
            model, {.dimensions = dimensions}, round + i);
        ASSERT_TRUE(device);
        devices.push_back({*std::move(device), 16});
      }
      DispatcherOptions options;
      options.closing = {.openSeconds = 1e-4, .mostOpenSeconds = 1e-3};
      auto made = Dispatcher::create(std::move(devices), std::move(options));
      ASSERT_TRUE(made);
      for (; submitted < 100; ++submitted) {
        (*made)->submit({.id = submitted, .tokens = {1, 2}},
                        outcomes.callback());
        if (submitted % 10 == 9)
          std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    EXPECT_EQ(outcomes.size(), submitted);
  }
}
