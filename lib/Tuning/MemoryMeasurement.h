//===- MemoryMeasurement.h - How fast cores read memory ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TUNING_MEMORYMEASUREMENT_H
#define SANDWICH_LIB_TUNING_MEMORYMEASUREMENT_H

#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Tuning/MachineMeasurement.h"

namespace sandwich {

/// Memory of one NUMA node, far larger than the caches of its cores, and
/// written. Errors: too little memory; a CPU that this process may not use.
Result<AnonymousMemory> memoryOf(const MachineNode &node);

/// Fills into `result` what a core reads alone, all cores of each NUMA node and
/// of an L3, and a core from other nodes, as `measureMachine` tells. Errors:
/// too little memory; a CPU that this process may not use; that of `progress`.
Status measureMemory(const MachineNode &machine, MachineMeasurement &result,
                     const MeasurementProgress &progress);

} // namespace sandwich

#endif // SANDWICH_LIB_TUNING_MEMORYMEASUREMENT_H
