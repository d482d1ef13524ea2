//===- WindVESimulation.cpp - Queues and devices in simulated time --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/WindVESimulation.h"

#include "sandwich/Devices/QueueManager.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

using namespace sandwich;

static constexpr double never = std::numeric_limits<double>::infinity();

Status WindVESystem::validate() const {
  if (depths.size() != devices.size())
    return makeError(ErrorKind::InvalidArgument, "there are ", depths.size(),
                     " depths for ", devices.size(), " devices");
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the time of a hang", hangSeconds));
  return checkSeconds("the time that a device is closed", closedSeconds);
}

namespace {
/// One device with what it does at the moment.
struct Worker {
  SimulatedDevice device;
  std::vector<size_t> queue = {};
  /// Empty: idle.
  std::vector<size_t> batch = {};
  /// When the batch ends, and whether it is answered then.
  double end = never;
  bool answers = false;
  /// When the device is opened again.
  double opening = never;
};

class Simulation {
public:
  Simulation(const WindVESystem &system, QueueManager &manager)
      : system(system), manager(manager) {
    for (size_t i = 0; i < system.devices.size(); ++i)
      // Neighbouring seeds of this generator have nothing in common.
      workers.push_back({SimulatedDevice(system.devices[i], system.seed + i)});
  }

  /// Serves one query that arrives at each of `arrivals`, until all are
  /// answered or refused.
  void serve(std::span<const double> arrivals) {
    size_t arrived = 0;
    while (arrived < arrivals.size() || isBusy()) {
      const double arrival =
          arrived < arrivals.size() ? arrivals[arrived] : never;
      now = std::min(arrival, nextEvent());
      for (size_t i = 0; i < workers.size(); ++i)
        settle(i);
      for (; arrived < arrivals.size() && arrivals[arrived] <= now; ++arrived) {
        queries.push_back({arrivals[arrived]});
        ask(queries.size() - 1);
      }
      // Those that arrive at once are one batch.
      for (Worker &worker : workers)
        start(worker);
    }
  }

  /// When the last query was answered or refused.
  double time() const { return now; }
  std::vector<SimulatedQuery> take() { return std::move(queries); }

private:
  bool isBusy() const {
    return std::ranges::any_of(
        workers, [](const Worker &worker) { return !worker.batch.empty(); });
  }

  double nextEvent() const {
    double next = never;
    for (const Worker &worker : workers)
      next = std::min({next, worker.end, worker.opening});
    return next;
  }

  /// What ends by now at a device.
  void settle(size_t index) {
    Worker &worker = workers[index];
    if (worker.opening <= now) {
      worker.opening = never;
      manager.reopen(index);
    }
    if (worker.end > now)
      return;
    worker.end = never;
    const std::vector<size_t> ended = std::exchange(worker.batch, {});
    for ([[maybe_unused]] size_t query : ended)
      manager.release(index);
    if (worker.answers) {
      for (size_t query : ended) {
        queries[query].latency = now - queries[query].arrival;
        queries[query].device = index;
      }
      return;
    }
    manager.close(index);
    worker.opening = now + system.closedSeconds;
    const std::vector<size_t> waiting = std::exchange(worker.queue, {});
    for ([[maybe_unused]] size_t query : waiting)
      manager.release(index);
    for (const auto *moved : {&ended, &waiting})
      for (size_t query : *moved)
        ask(query);
  }

  void ask(size_t query) {
    if (const std::optional<size_t> device = manager.admit())
      workers[*device].queue.push_back(query);
    else
      queries[query].latency = now - queries[query].arrival;
  }

  void start(Worker &worker) {
    if (!worker.batch.empty() || worker.queue.empty())
      return;
    worker.batch = std::exchange(worker.queue, {});
    const SimulatedBatch outcome =
        worker.device.run(static_cast<uint32_t>(worker.batch.size()));
    const bool hangs =
        outcome.end == BatchEnd::Hung || outcome.seconds > system.hangSeconds;
    worker.answers = outcome.end == BatchEnd::Done && !hangs;
    worker.end = now + (hangs ? system.hangSeconds : outcome.seconds);
  }

  const WindVESystem &system;
  QueueManager &manager;
  std::vector<Worker> workers;
  std::vector<SimulatedQuery> queries;
  double now = 0;
};
} // namespace

static Status checkArrivals(std::span<const double> arrivals) {
  if (arrivals.size() > maxSimulatedQueries)
    return makeError(ErrorKind::InvalidArgument, "there are ", arrivals.size(),
                     " queries; at most ", maxSimulatedQueries,
                     " are simulated");
  double before = 0;
  for (const double arrival : arrivals) {
    if (!(arrival >= before && std::isfinite(arrival)))
      return makeError(ErrorKind::InvalidArgument, "a query arrives at ",
                       arrival, " seconds, after one at ", before);
    before = arrival;
  }
  return {};
}

Result<std::vector<SimulatedQuery>>
sandwich::simulateWindVE(const WindVESystem &system,
                         std::span<const double> arrivals) {
  SANDWICH_RETURN_IF_ERROR(system.validate());
  SANDWICH_RETURN_IF_ERROR(checkArrivals(arrivals));
  SANDWICH_ASSIGN_OR_RETURN(const std::unique_ptr<QueueManager> manager,
                            QueueManager::create(system.depths));
  Simulation simulation(system, *manager);
  simulation.serve(arrivals);
  return simulation.take();
}

Result<std::vector<SimulatedQuery>>
sandwich::simulateRounds(const WindVESystem &system, uint32_t concurrency,
                         size_t rounds) {
  SANDWICH_RETURN_IF_ERROR(system.validate());
  if (concurrency < 1 || rounds > maxSimulatedQueries / concurrency)
    return makeError(ErrorKind::InvalidArgument, rounds, " rounds of ",
                     concurrency, " queries cannot be simulated");
  SANDWICH_ASSIGN_OR_RETURN(const std::unique_ptr<QueueManager> manager,
                            QueueManager::create(system.depths));
  Simulation simulation(system, *manager);
  for (size_t round = 0; round < rounds; ++round)
    simulation.serve(std::vector<double>(concurrency, simulation.time()));
  return simulation.take();
}

double sandwich::shareWithin(std::span<const SimulatedQuery> queries,
                             double sloSeconds) {
  const auto within = std::ranges::count_if(queries, [&](const auto &query) {
    return query.device && keepsSlo(query.latency, sloSeconds);
  });
  return static_cast<double>(within) / static_cast<double>(queries.size());
}

Result<uint32_t> sandwich::largestConcurrency(const WindVESystem &system,
                                              double sloSeconds, size_t rounds,
                                              double attainment) {
  SANDWICH_RETURN_IF_ERROR(system.validate());
  // What is above all depths is refused.
  const uint64_t room =
      std::accumulate(system.depths.begin(), system.depths.end(), uint64_t{0});
  uint32_t kept = 0;
  auto broken = static_cast<uint32_t>(room + 1);
  while (broken - kept > 1) {
    const uint32_t tried = kept + (broken - kept) / 2;
    SANDWICH_ASSIGN_OR_RETURN(const std::vector<SimulatedQuery> queries,
                              simulateRounds(system, tried, rounds));
    (shareWithin(queries, sloSeconds) >= attainment ? kept : broken) = tried;
  }
  return kept;
}
