//===- WindVESimulation.h - Queues and devices in simulated time *- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Queries that arrive at a queue manager whose devices batch all that is
/// queued (WindVE, figure 3 B), as discrete events. The queue manager is the
/// one that serves; time and devices are simulated.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_WINDVESIMULATION_H
#define SANDWICH_DEVICES_WINDVESIMULATION_H

#include "sandwich/Devices/SimulatedDevice.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sandwich {

/// The most queries of one simulation.
inline constexpr size_t maxSimulatedQueries = size_t{1} << 24;

struct WindVESystem {
  /// The most preferred first.
  std::vector<SimulatedDeviceModel> devices;
  /// Of the queue of each device: queries that wait and those of its batch.
  std::vector<uint32_t> depths;
  /// A batch that is not done after so many seconds has failed.
  double hangSeconds = 30;
  /// A device whose batch failed is closed for so many seconds.
  double closedSeconds = 10;
  uint64_t seed = 1;

  /// Errors (InvalidArgument): another number of depths than of devices, times
  /// that are not above 0 and at most `maxDeviceSeconds`.
  Status validate() const;
};

struct SimulatedQuery {
  double arrival = 0;
  /// Seconds from its arrival to its answer, or until it was refused: 0 unless
  /// its device failed and no other had room.
  double latency = 0;
  /// Who answered. Nothing: BUSY.
  std::optional<size_t> device = std::nullopt;
};

/// Serves queries that arrive at `arrivals`, in seconds, in ascending order.
/// Each idle device takes all of its queue as one batch. Where one fails, it is
/// closed for a time and all of its queries are asked of the queue manager
/// again: each query is answered once or refused once.
///
/// Errors: as `WindVESystem::validate` and `QueueManager::create`
/// (InvalidArgument); more than `maxSimulatedQueries` arrivals, or arrivals
/// that descend or are not finite.
Result<std::vector<SimulatedQuery>>
simulateWindVE(const WindVESystem &system, std::span<const double> arrivals);

/// `rounds` times `concurrency` queries at once, each round after the answers
/// of the one before (WindVE, V.A.3). Errors: as `simulateWindVE`.
Result<std::vector<SimulatedQuery>>
simulateRounds(const WindVESystem &system, uint32_t concurrency, size_t rounds);

/// The share of `queries`, of which there is one, that were answered within
/// `sloSeconds`.
double shareWithin(std::span<const SimulatedQuery> queries, double sloSeconds);

/// The maximum concurrency of section III.A, measured: the most queries at a
/// time of which a share of at least `attainment` is answered within the SLO,
/// in `rounds` rounds each, and none refused. 0: not even one is. Errors: as
/// `simulateRounds`.
Result<uint32_t> largestConcurrency(const WindVESystem &system,
                                    double sloSeconds, size_t rounds,
                                    double attainment);

} // namespace sandwich

#endif // SANDWICH_DEVICES_WINDVESIMULATION_H
