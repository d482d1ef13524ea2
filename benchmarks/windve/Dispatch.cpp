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

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {
using Clock = std::chrono::steady_clock;

struct Times {
  Clock::time_point submitted;
  Clock::time_point received;
  Clock::time_point completed;
};
} // namespace

/// Queries that come evenly to an idle device. The first tenth is not counted.
static Result<std::vector<Times>> run(uint32_t dimensions,
                                      const DispatchOptions &options) {
  const auto count =
      static_cast<size_t>(options.queriesPerSecond * options.seconds);
  std::vector<Times> times(count);
  // Made before, as an engine has its answers by then.
  std::vector<Embedding> answers(count, Embedding(dimensions, 1));
  SANDWICH_ASSIGN_OR_RETURN(
      auto device, CallableDevice::create(
                       {.name = "device", .dimensions = dimensions},
                       [&](std::span<const DeviceQuery> batch) {
                         const Clock::time_point now = Clock::now();
                         std::vector<Embedding> embeddings;
                         for (const DeviceQuery &query : batch) {
                           times[query.id].received = now;
                           embeddings.push_back(std::move(answers[query.id]));
                         }
                         return embeddings;
                       }));
  std::vector<DispatchedDevice> devices;
  devices.push_back({std::move(device), 1024, LatencyLine{0, 1e-6}});
  SANDWICH_ASSIGN_OR_RETURN(const auto dispatcher,
                            Dispatcher::create(std::move(devices), {}));
  std::atomic<size_t> completed = 0, refused = 0;
  const Clock::time_point start = Clock::now();
  for (size_t i = 0; i < count; ++i) {
    std::this_thread::sleep_until(
        start + std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(static_cast<double>(i) /
                                                  options.queriesPerSecond)));
    EmbeddingQuery query = {.id = i, .tokens = std::vector<int32_t>(64, 1)};
    times[i].submitted = Clock::now();
    dispatcher->submit(std::move(query), [&, i](QueryOutcome outcome) {
      times[i].completed = Clock::now();
      refused += outcome.refusal.has_value();
      ++completed;
    });
  }
  while (completed < count)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (refused > 0)
    return makeError(refused.load(), " queries were refused");
  times.erase(times.begin(),
              times.begin() + static_cast<std::ptrdiff_t>(count / 10));
  return times;
}

Status benchmark::printDispatch(const DispatchOptions &options) {
  std::printf(
      "Dispatch: %.0f queries a second, evenly, for %.0f s; in "
      "microseconds\n%8s   %23s   %21s\n%8s   %6s %6s %9s   %6s %6s %7s\n",
      options.queriesPerSecond, options.seconds, "numbers",
      "until the device has it", "until it is answered", "", "median", "P99",
      "P99.9", "median", "P99", "P99.9");
  for (const uint32_t dimensions : {8U, 1024U}) {
    SANDWICH_ASSIGN_OR_RETURN(const std::vector<Times> times,
                              run(dimensions, options));
    std::vector<double> received, completed;
    const auto micros = [](Clock::duration duration) {
      return std::chrono::duration<double, std::micro>(duration).count();
    };
    for (const Times &each : times) {
      received.push_back(micros(each.received - each.submitted));
      completed.push_back(micros(each.completed - each.submitted));
    }
    std::printf("%8u   %6.1f %6.1f %9.1f   %6.1f %6.1f %7.1f\n", dimensions,
                quantile(received, 0.5), quantile(received, 0.99),
                quantile(received, 0.999), quantile(completed, 0.5),
                quantile(completed, 0.99), quantile(completed, 0.999));
  }
  return {};
}
