//===- LatentMeasurement.h - Groups of cores, looked for --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TUNING_LATENTMEASUREMENT_H
#define SANDWICH_LIB_TUNING_LATENTMEASUREMENT_H

#include "sandwich/Machine/LatentGroups.h"
#include "sandwich/Tuning/MachineMeasurement.h"

#include <memory>

namespace sandwich {

/// Measures the first CPUs of the cores of `machine`, which is the host and
/// outlives the probe, with a pinned thread for each core that it is asked for.
/// Errors of its measurements: too little memory; a CPU that this process may
/// not use; no more threads.
std::unique_ptr<PairProbe> createHostProbe(const MachineNode &machine);

/// Fills into `result` the latent groups of the host, with their limits as the
/// latency model has them, and what else was seen. Errors as those of the
/// probe, and that of `progress`.
Status measureLatentGroups(const MachineNode &machine,
                           MachineMeasurement &result,
                           const MeasurementProgress &progress);

} // namespace sandwich

#endif // SANDWICH_LIB_TUNING_LATENTMEASUREMENT_H
