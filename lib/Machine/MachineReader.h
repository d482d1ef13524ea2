//===- MachineReader.h - hwloc's objects as a machine -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_MACHINE_MACHINEREADER_H
#define SANDWICH_LIB_MACHINE_MACHINEREADER_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Result.h"

#include <hwloc.h>

#include <vector>

namespace sandwich {

/// Fills in all of `machine` but its name from a loaded topology, with the CPUs
/// that the calling thread may use, and without the levels of groups that are
/// made up (`LoadableDescription`). Errors: it has no CPU, too many, or none
/// that may be used.
Status convertTopology(hwloc_topology_t topology, Machine &machine,
                       const std::vector<bool> &madeUpGroups = {});

} // namespace sandwich

#endif // SANDWICH_LIB_MACHINE_MACHINEREADER_H
