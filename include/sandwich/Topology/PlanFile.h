//===- PlanFile.h - Reading plans back -------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_PLANFILE_H
#define SANDWICH_TOPOLOGY_PLANFILE_H

#include "sandwich/Support/Result.h"
#include "sandwich/Topology/MachineTopology.h"
#include "sandwich/Topology/PlanCores.h"

#include <string>

namespace sandwich {

/// The cores of the first configuration in the file `path`, which `toJson` of a
/// search's result wrote. Errors name the file and field: no plan, processes
/// that differ between the phases or have no cores, a CPU that `machine` does
/// not have or that is there twice.
Result<PlanCores> readPlanCores(const std::string &path,
                                const MachineNode &machine);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_PLANFILE_H
