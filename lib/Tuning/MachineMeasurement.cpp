//===- MachineMeasurement.cpp - What this machine's parts can do ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MachineMeasurement.h"

#include "LatentMeasurement.h"
#include "MeasuringTools.h"
#include "MemoryMeasurement.h"

#include <algorithm>
#include <utility>
#include <vector>

using namespace sandwich;
using namespace sandwich::measuring;

/// A value of this machine.
static MachineValue measured(double value, std::string how) {
  return {value, ValueOrigin::Measured, std::move(how)};
}

static Status measureCore(const Machine &machine, const Target &target,
                          MachineMeasurement &result,
                          const MeasurementProgress &progress) {
  const unsigned cpu = fastestCpu(machine.root);
  MatmulRates &rates = result.description.coreFlopsPerSecond;
  std::vector<std::pair<MatrixElement, MachineValue *>> elements = {
      {MatrixElement::F32, &rates.f32}, {MatrixElement::BF16, &rates.bf16}};
  // Beside tiles, integers are for few rows, which wait for memory.
  const bool hasTiles =
      std::ranges::any_of(target.matrixISAs, sandwich::hasTiles);
  if (!hasTiles && std::ranges::any_of(target.matrixISAs, multipliesIntegers))
    elements.emplace_back(MatrixElement::Int8, &rates.int8);
  for (auto [element, rate] : elements) {
    SANDWICH_ASSIGN_OR_RETURN(double flops,
                              measureCoreFlops(cpu, element, progress));
    *rate = measured(flops, "micro-kernels with operands in caches");
  }
  if (hasTiles)
    rates.int8 = rates.bf16;
  return {};
}

static Status measureHandoffs(const Machine &machine,
                              MachineMeasurement &result,
                              const MeasurementProgress &progress) {
  const std::vector<CpuPair> pairs = handoffPairs(machine.root);
  if (pairs.empty())
    result.unmeasured.emplace_back(
        "handoff_ns: this process may use only one CPU");
  for (const CpuPair &pair : pairs) {
    SANDWICH_ASSIGN_OR_RETURN(
        double seconds, measureHandoff(pair.first, pair.second, progress));
    result.description.parts[pair.kind].handoffSeconds =
        measured(seconds, "one line written in turn");
  }
  return {};
}

static Status measureSystem(const MachineNode &machine,
                            MachineMeasurement &result,
                            const MeasurementProgress &progress) {
  // All hardware threads, as the system's work finds an idle one.
  std::vector<unsigned> cpus;
  for (const MachineNode *cpu : partsOf(machine, "cpu"))
    cpus.push_back(static_cast<unsigned>(cpu->index));
  const std::string field = "wakeups_per_core_per_second: ";
  if (cpus.size() < 2) {
    result.unmeasured.push_back(field + "this process may use only one CPU");
    return {};
  }
  SANDWICH_ASSIGN_OR_RETURN(SystemWork work, measureSystemWork(cpus, progress));
  // No system does so much by itself: other programs run.
  constexpr double mostShare = 0.05;
  if (work.wakeupsPerSecond * work.wakeupSeconds > mostShare) {
    result.unmeasured.push_back(field + "other programs keep the CPUs busy");
    return {};
  }
  const char *how = "gaps in the time that busy CPUs see, less those that "
                    "remain while one is idle";
  MachineDescription &description = result.description;
  description.wakeupsPerCorePerSecond = measured(work.wakeupsPerSecond, how);
  description.wakeupSeconds = measured(work.wakeupSeconds, how);
  return {};
}

Result<MachineMeasurement>
sandwich::measureMachine(const Machine &machine,
                         const MeasurementProgress &progress) {
  if (partsOf(machine.root, "core").empty())
    return makeError("the machine has no cores");
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget("host"));
  MachineMeasurement result;
  result.description = describeMachine(machine, target);
  SANDWICH_RETURN_IF_ERROR(measureCore(machine, target, result, progress));
  SANDWICH_RETURN_IF_ERROR(measureMemory(machine.root, result, progress));
  SANDWICH_RETURN_IF_ERROR(measureHandoffs(machine, result, progress));
  SANDWICH_RETURN_IF_ERROR(measureLatentGroups(machine.root, result, progress));
  SANDWICH_RETURN_IF_ERROR(measureSystem(machine.root, result, progress));
  return result;
}
