//===- MachineMeasurement.h - What this machine's parts can do --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Measures the parameters of the latency model on the machine that runs this
/// program, in about ten seconds and up to a minute more where many cores may
/// share what no topology tells. Machines are noisy, so everything is
/// repeated, and readings of memory take turns.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_MACHINEMEASUREMENT_H
#define SANDWICH_TUNING_MACHINEMEASUREMENT_H

#include "sandwich/Machine/MachineDescription.h"
#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Result.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Hears what is being measured, and how much of it is done, from 0 to 1. An
/// error ends the measurement with it.
using MeasurementProgress =
    std::function<Status(std::string_view stage, double done)>;

struct MachineMeasurement {
  MachineDescription description;
  /// What could not be measured, so that what `describeMachine` tells is kept,
  /// and why; a sentence each.
  std::vector<std::string> unmeasured;
  /// What was seen, but no value tells, as of cores that share something or of
  /// reading that was unsteady; a sentence each.
  std::vector<std::string> notes;
};

/// Two CPUs, and the kind of the smallest part that has both.
struct CpuPair {
  std::string kind;
  unsigned first = 0, second = 0;
};

/// A pair for each kind that is the smallest common part of some two CPUs, as
/// far apart in that part as it gets.
std::vector<CpuPair> handoffPairs(const MachineNode &machine);

/// Seconds that a cache line takes from one CPU to another: two threads pinned
/// to them write it in turn. The median of rounds, half a second of them at
/// most. Errors: this process may not use one of the CPUs; that of `progress`.
Result<double> measureHandoff(unsigned first, unsigned second,
                              const MeasurementProgress &progress = {});

/// Floating-point operations per second of matmuls on one CPU, operands in its
/// nearest caches, with the best instructions for weights of bf16 or f32, or of
/// `int8` by inputs that are rounded to it. The median of some runs. Errors:
/// those of `getTarget("host")`; this process may not use the CPU; the CPU has
/// no such instructions; that of `progress`.
Result<double> measureCoreFlops(unsigned cpu, MatrixElement element,
                                const MeasurementProgress &progress = {});

/// What the system's own work takes of CPUs that are all busy, and would not if
/// one of them were idle.
struct SystemWork {
  /// Times that each CPU was taken away, in a second, and for how long in the
  /// mean.
  double wakeupsPerSecond = 0;
  double wakeupSeconds = 0;
};

/// Watches `cpus`, all of them and all but the last in turn, for three seconds.
/// Whatever keeps one for less than 20 microseconds is not counted, nor what an
/// idle CPU does not prevent: work that is bound to a CPU, and what a virtual
/// machine's neighbours take. Errors: fewer than two CPUs; this process may not
/// use one of them; that of `progress`.
Result<SystemWork> measureSystemWork(const std::vector<unsigned> &cpus,
                                     const MeasurementProgress &progress = {});

/// A sentence that tells of samples of what all cores of `memory`, "numa 0",
/// read of it, at least one, if they differ by more than the machine's own work
/// explains.
std::optional<std::string>
unsteadyReading(std::string_view memory,
                const std::vector<double> &bytesPerSecond);

/// The description of `machine`, which must be the host as
/// `readMachineTopology` shows it to this process; of a core only the first CPU
/// works. Bandwidths are medians of many rounds, in each of which all readings
/// take their turn: where other guests take bandwidth away for seconds, that is
/// what a server gets there mostly, and a note tells of it. Errors: those of
/// `getTarget("host")`; too little memory; a CPU that this process may not use;
/// that of `progress`.
Result<MachineMeasurement>
measureMachine(const Machine &machine,
               const MeasurementProgress &progress = {});

} // namespace sandwich

#endif // SANDWICH_TUNING_MACHINEMEASUREMENT_H
