//===- DeviceCost.h - How many devices a service needs ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a deployment costs with and without overflow to the CPU (WindVE,
/// equations 4 to 6 and III.B): by the peak, so that every query keeps the SLO,
/// or by the average, so that queries wait at peaks.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEVICECOST_H
#define SANDWICH_DEVICES_DEVICECOST_H

#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// The most queries a second or at once, and the highest price: no product of
/// them, of shares of devices and of devices of an instance overflows.
inline constexpr double maxCostNumber = 1e9;

/// The most parts of a day: one for each second.
inline constexpr size_t maxDayParts = 86400;

struct PricedDevice {
  std::string name;
  /// Absent: not told.
  std::optional<LatencyLine> line = std::nullopt;
  /// P: of one device.
  double price = 0;
  /// D: devices of one instance.
  uint64_t devicesPerInstance = 1;
};

struct CostDescription {
  /// T of equations 7 to 10.
  double sloSeconds = 1;
  PricedDevice accelerator = {.name = "accelerator"};
  /// Of one CPU instance, which serves the overflow of a machine. Its price is
  /// what it costs beyond the server, where it is anyway: 0 as a rule.
  PricedDevice cpu = {.name = "cpu"};
  /// Accelerator instances that share one CPU instance.
  uint64_t instancesPerMachine = 1;
  /// Of equal parts of a day (figure 2); their mean is N of equation 5.
  std::vector<double> queriesPerSecond = {};
  /// N_peak of equation 6: queries that come at once. Absent: those of the
  /// busiest second.
  std::optional<double> peakQueries = std::nullopt;
  /// Behind each price; may be empty.
  std::string currency = {};
};

/// Reads the members `slo_seconds`, `accelerator`, `cpu`,
/// `instances_per_machine`, `queries_per_second`, `peak_queries` and
/// `currency`. A device has `name`, `price`, `devices_per_instance`, and either
/// `alpha` and `beta` in seconds or `profiles`, pairs of a concurrency and
/// seconds, to which a line is fitted. All may be absent. Errors name the field
/// and the reason.
Result<CostDescription> parseCostDescription(std::string_view json);

/// The same from a file, which errors name.
Result<CostDescription> readCostDescription(const std::string &path);

/// What one instance can do.
struct InstanceCapacity {
  /// C: queries at a time within the SLO.
  uint32_t depth = 0;
  /// t_proc: of a batch of so many; 0 where there is none.
  double batchSeconds = 0;
  /// T of equation 5: such batches one after another.
  double queriesPerSecond = 0;
  /// n of equation 4: batches that may be processed while a query waits.
  uint64_t waitingBatches = 0;
};

/// Devices that are bought, and what they cost.
struct Deployment {
  uint64_t instances = 0;
  uint64_t devices = 0;
  uint64_t machines = 0;
  double cost = 0;
};

struct CostComparison {
  /// N or N_peak.
  double queries = 0;
  Deployment alone;
  Deployment withOverflow;
  /// What overflow adds to what one accelerator instance can do: C_CPU / C_NPU
  /// by the peak.
  double gain = 0;

  /// Of the cost, where parts of devices could be bought: C_CPU / (C_CPU +
  /// C_NPU) by the peak (III.B).
  double idealSavedShare() const { return gain / (1 + gain); }
  /// Of the cost, in whole devices; below 0 where the CPUs' price is more than
  /// they save.
  double savedShare() const {
    return alone.cost > 0 ? 1 - withOverflow.cost / alone.cost : 0;
  }
};

struct DeviceCost {
  InstanceCapacity accelerator;
  /// Of one CPU instance. A depth of 0: it takes no overflow.
  InstanceCapacity cpu;
  /// Equation 11 holds: the CPU is too slow for a single query.
  bool cpuIsTooSlow = false;
  /// Equation 6.
  CostComparison byPeak;
  /// Equation 5.
  CostComparison byAverage;

  /// Errors (InvalidArgument): no line of the accelerator, or one that takes
  /// longer than the SLO for a single query; no queries, more than
  /// `maxDayParts` or `maxCostNumber` of them; other numbers out of their
  /// ranges.
  static Result<DeviceCost> compute(const CostDescription &description);
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEVICECOST_H
