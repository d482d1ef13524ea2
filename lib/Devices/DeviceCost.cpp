//===- DeviceCost.cpp - How many devices a service needs ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceCost.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace sandwich;

/// Of an instance, and of a machine.
static constexpr uint64_t mostDevices = 1024;

static Status checkNumber(const std::string &name, double number) {
  if (!(number >= 0 && number <= maxCostNumber))
    return makeError(ErrorKind::InvalidArgument, name, " is ", number,
                     "; it must be 0 to ", maxCostNumber);
  return {};
}

static Status checkCount(const std::string &name, uint64_t count) {
  if (count < 1 || count > mostDevices)
    return makeError(ErrorKind::InvalidArgument, name, " is ", count,
                     "; it must be 1 to ", mostDevices);
  return {};
}

static Status checkDevice(const PricedDevice &device) {
  SANDWICH_RETURN_IF_ERROR(
      checkNumber("the price of " + device.name, device.price));
  SANDWICH_RETURN_IF_ERROR(
      checkCount("the number of devices of " + device.name + " for an instance",
                 device.devicesPerInstance));
  if (!device.line)
    return {};
  if (!(device.line->alpha >= 0 && device.line->beta >= 0))
    return makeError(ErrorKind::InvalidArgument, "alpha and beta of ",
                     device.name, " must not be below 0");
  const std::string name = "a query on " + device.name;
  SANDWICH_RETURN_IF_ERROR(checkSeconds(name.c_str(), device.line->seconds(1)));
  // Quotients of seconds become counts.
  constexpr double shortest = 1e-9;
  if (device.line->seconds(1) < shortest)
    return makeError(ErrorKind::InvalidArgument, name, " is ",
                     device.line->seconds(1), " s; it must be at least ",
                     shortest);
  return {};
}

static Status check(const CostDescription &description) {
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the SLO", description.sloSeconds));
  for (const PricedDevice *device :
       {&description.accelerator, &description.cpu})
    SANDWICH_RETURN_IF_ERROR(checkDevice(*device));
  SANDWICH_RETURN_IF_ERROR(checkCount("the number of instances of a machine",
                                      description.instancesPerMachine));
  const std::vector<double> &day = description.queriesPerSecond;
  if (day.empty() || day.size() > maxDayParts)
    return makeError(ErrorKind::InvalidArgument, "the queries of a day are in ",
                     day.size(), " parts; it must be 1 to ", maxDayParts);
  for (const double queries : day)
    SANDWICH_RETURN_IF_ERROR(checkNumber("a number of queries", queries));
  if (description.peakQueries)
    SANDWICH_RETURN_IF_ERROR(checkNumber("the number of queries at the peak",
                                         *description.peakQueries));
  if (!description.accelerator.line)
    return makeError(ErrorKind::InvalidArgument,
                     "alpha and beta of the accelerator are not told");
  return {};
}

static InstanceCapacity capacityOf(const LatencyLine &line, double sloSeconds) {
  InstanceCapacity capacity;
  capacity.depth = line.depthFor(sloSeconds);
  if (capacity.depth == 0)
    return capacity;
  capacity.batchSeconds = line.seconds(capacity.depth);
  capacity.queriesPerSecond = capacity.depth / capacity.batchSeconds;
  const double waiting =
      (sloSeconds - capacity.batchSeconds) / capacity.batchSeconds;
  capacity.waitingBatches =
      static_cast<uint64_t>(std::ceil(std::max(0.0, waiting)));
  return capacity;
}

/// For `queries`, where an accelerator instance takes `own` of them and the CPU
/// of each machine `overflow`.
static Deployment deploy(const CostDescription &description, double queries,
                         double own, double overflow) {
  const uint64_t together = description.instancesPerMachine;
  auto machinesOf = [&](uint64_t instances) {
    return divideUp(instances, together);
  };
  auto holds = [&](uint64_t instances) {
    return static_cast<double>(instances) * own +
               static_cast<double>(machinesOf(instances)) * overflow >=
           queries;
  };
  // `own` is at least one query in the longest SLO, so that this is at most
  // 1e15; one more for what the division rounds.
  uint64_t few = 0, enough = static_cast<uint64_t>(queries / own) + 2;
  if (holds(0))
    enough = 0;
  while (enough > few + 1) {
    const uint64_t middle = few + (enough - few) / 2;
    (holds(middle) ? enough : few) = middle;
  }
  Deployment deployment;
  deployment.instances = enough;
  deployment.devices = enough * description.accelerator.devicesPerInstance;
  deployment.machines = machinesOf(enough);
  deployment.cost =
      static_cast<double>(deployment.devices) * description.accelerator.price;
  if (overflow > 0)
    deployment.cost += static_cast<double>(deployment.machines) *
                       static_cast<double>(description.cpu.devicesPerInstance) *
                       description.cpu.price;
  return deployment;
}

static CostComparison compare(const CostDescription &description,
                              double queries, double own, double overflow) {
  CostComparison comparison;
  comparison.queries = queries;
  comparison.alone = deploy(description, queries, own, 0);
  comparison.withOverflow = deploy(description, queries, own, overflow);
  comparison.gain =
      overflow / (own * static_cast<double>(description.instancesPerMachine));
  return comparison;
}

Result<DeviceCost> DeviceCost::compute(const CostDescription &description) {
  SANDWICH_RETURN_IF_ERROR(check(description));
  DeviceCost cost;
  cost.accelerator =
      capacityOf(*description.accelerator.line, description.sloSeconds);
  if (cost.accelerator.depth == 0)
    return makeError(ErrorKind::InvalidArgument, "a single query takes ",
                     description.accelerator.line->seconds(1), " s on ",
                     description.accelerator.name, ", longer than the SLO of ",
                     description.sloSeconds, " s");
  if (description.cpu.line) {
    cost.cpu = capacityOf(*description.cpu.line, description.sloSeconds);
    cost.cpuIsTooSlow = cost.cpu.depth == 0;
  }
  const std::vector<double> &day = description.queriesPerSecond;
  cost.byPeak = compare(description,
                        description.peakQueries.value_or(std::ranges::max(day)),
                        cost.accelerator.depth, cost.cpu.depth);
  cost.byAverage =
      compare(description,
              std::accumulate(day.begin(), day.end(), 0.0) /
                  static_cast<double>(day.size()),
              cost.accelerator.queriesPerSecond, cost.cpu.queriesPerSecond);
  return cost;
}
