//===- Dispatch.cpp - What a dispatch takes -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dispatch.h"

#include "sandwich/Devices/CallableDevice.h"
#include "sandwich/Devices/Dispatcher.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <thread>
#include <vector>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {
using Clock = std::chrono::steady_clock;

/// Of one query.
struct Times {
  Clock::time_point submitted;
  Clock::time_point received;
  Clock::time_point completed;
};

/// Queries by one way to a device, and back.
struct Way {
  Way(size_t count, uint32_t dimensions)
      : times(count), answers(count, Embedding(dimensions, 1)) {}

  /// A device that takes no time.
  Result<std::unique_ptr<CallableDevice>> makeDevice() {
    return CallableDevice::create(
        {.name = "device",
         .dimensions = static_cast<uint32_t>(answers[0].size())},
        [this](std::span<const DeviceQuery> batch) {
          const Clock::time_point now = Clock::now();
          std::vector<Embedding> embeddings;
          for (const DeviceQuery &query : batch) {
            times[query.id].received = now;
            embeddings.push_back(std::move(answers[query.id]));
          }
          return embeddings;
        });
  }

  std::vector<Times> times;
  /// Made before, as an engine has its answers by then.
  std::vector<Embedding> answers;
  std::atomic<size_t> completed = 0;
  std::atomic<size_t> refused = 0;
};
} // namespace

static void print(const char *name, uint32_t dimensions, const Way &way) {
  std::vector<double> received, completed;
  const auto micros = [](Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  };
  // The first tenth warms up.
  for (size_t i = way.times.size() / 10; i < way.times.size(); ++i) {
    const Times &each = way.times[i];
    received.push_back(micros(each.received - each.submitted));
    completed.push_back(micros(each.completed - each.submitted));
  }
  std::printf("%-13s %7u   %6.1f %7.1f %8.1f   %6.1f %7.1f %8.1f\n", name,
              dimensions, quantile(received, 0.5), quantile(received, 0.99),
              quantile(received, 0.999), quantile(completed, 0.5),
              quantile(completed, 0.99), quantile(completed, 0.999));
}

/// Queries that come evenly to an idle device, and between any two of them one
/// to a device without a dispatcher: what the machine alone takes at that time.
static Status measure(uint32_t dimensions, const DispatchOptions &options) {
  const auto count = std::max<size_t>(
      1, static_cast<size_t>(options.queriesPerSecond * options.seconds));
  Way dispatched(count, dimensions), alone(count, dimensions);
  SANDWICH_ASSIGN_OR_RETURN(auto behind, dispatched.makeDevice());
  SANDWICH_ASSIGN_OR_RETURN(const auto bare, alone.makeDevice());
  std::vector<DispatchedDevice> devices;
  devices.push_back({std::move(behind), 1024, LatencyLine{0, 1e-6}});
  SANDWICH_ASSIGN_OR_RETURN(const auto dispatcher,
                            Dispatcher::create(std::move(devices), {}));
  const Clock::time_point start = Clock::now();
  const auto waitFor = [&](double query) {
    std::this_thread::sleep_until(
        start +
        std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(query / options.queriesPerSecond)));
  };
  for (size_t i = 0; i < count; ++i) {
    waitFor(static_cast<double>(i));
    EmbeddingQuery query = {.id = i, .tokens = std::vector<int32_t>(64, 1)};
    dispatched.times[i].submitted = Clock::now();
    dispatcher->submit(std::move(query), [&, i](QueryOutcome outcome) {
      dispatched.times[i].completed = Clock::now();
      dispatched.refused += outcome.refusal.has_value();
      ++dispatched.completed;
    });
    waitFor(static_cast<double>(i) + 0.5);
    DeviceBatch batch = {
        {i, std::make_shared<const std::vector<int32_t>>(64, 1)}};
    alone.times[i].submitted = Clock::now();
    bare->submit(std::move(batch), [&, i](BatchAnswer answer) {
      alone.times[i].completed = Clock::now();
      ++alone.completed;
    });
  }
  while (dispatched.completed < count || alone.completed < count)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (dispatched.refused > 0)
    return makeError(dispatched.refused.load(), " queries were refused");
  print("dispatched", dimensions, dispatched);
  print("device alone", dimensions, alone);
  return {};
}

Status benchmark::printDispatch(const DispatchOptions &options) {
  std::printf("Dispatch: %.0f queries a second, evenly, for %.0f s; in "
              "microseconds\n%-13s %7s   %23s   %23s\n%-13s %7s   %6s %7s %8s  "
              " %6s %7s %8s\n",
              options.queriesPerSecond, options.seconds, "", "numbers",
              "until the device has it", "until it is answered", "", "",
              "median", "P99", "P99.9", "median", "P99", "P99.9");
  for (const uint32_t dimensions : {8U, 1024U})
    SANDWICH_RETURN_IF_ERROR(measure(dimensions, options));
  return {};
}
