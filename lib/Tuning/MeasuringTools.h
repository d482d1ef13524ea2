//===- MeasuringTools.h - What measurements of a machine share --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TUNING_MEASURINGTOOLS_H
#define SANDWICH_LIB_TUNING_MEASURINGTOOLS_H

#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Tuning/MachineMeasurement.h"

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

namespace sandwich::measuring {

using Clock = std::chrono::steady_clock;

/// Tells `progress`, if there is one. Error: that of `progress`.
Status report(const MeasurementProgress &progress, std::string_view stage,
              double done);

/// A team with one thread on each of `cpus`. Error: this process may not use
/// one of them. (A team runs unpinned where the system refuses to pin it, and
/// would measure something else.)
Result<std::unique_ptr<PhaseTeam>>
createPinnedTeam(const std::vector<unsigned> &cpus);

/// The parts of a kind in `node`, itself included.
std::vector<const MachineNode *> partsOf(const MachineNode &node,
                                         std::string_view kind);

/// The first or last CPU of a part.
unsigned cpuAtEnd(const MachineNode &node, bool last);

/// The first CPU of each core of a part, of those that this process may use.
std::vector<unsigned> firstCpusOfCores(const MachineNode &part);

bool hasCpu(const MachineNode &part, unsigned cpu);

/// The first CPU of the first of the fastest cores.
unsigned fastestCpu(const MachineNode &machine);

} // namespace sandwich::measuring

#endif // SANDWICH_LIB_TUNING_MEASURINGTOOLS_H
