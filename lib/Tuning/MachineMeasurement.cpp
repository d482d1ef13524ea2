//===- MachineMeasurement.cpp - What this machine's parts can do ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MachineMeasurement.h"

#include "MeasuringTools.h"
#include "MemoryMeasurement.h"

using namespace sandwich;
using namespace sandwich::measuring;

Result<MachineMeasurement>
sandwich::measureMachine(const MachineNode &machine, bool bf16Weights,
                         const MeasurementProgress &progress) {
  if (partsOf(machine, "core").empty())
    return makeError("the machine has no cores");
  MachineMeasurement result;
  result.parameters = assumedParameters();
  SANDWICH_ASSIGN_OR_RETURN(
      result.parameters.coreFlopsPerSecond,
      measureCoreFlops(fastestCpu(machine), bf16Weights, progress));
  SANDWICH_RETURN_IF_ERROR(measureMemory(machine, result, progress));
  const std::vector<CpuPair> pairs = handoffPairs(machine);
  if (pairs.empty())
    result.assumed.emplace_back(
        "handoff_ns: this process may use only one CPU");
  for (const CpuPair &pair : pairs) {
    SANDWICH_ASSIGN_OR_RETURN(
        result.parameters.parts[pair.kind].handoffSeconds,
        measureHandoff(pair.first, pair.second, progress));
  }
  // What is assumed of parts that the machine lacks means nothing here.
  std::erase_if(result.parameters.parts, [&](const auto &part) {
    return countParts(machine, part.first) == 0;
  });
  return result;
}
