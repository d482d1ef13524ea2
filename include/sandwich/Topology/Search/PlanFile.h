//===- PlanFile.h - Reading plans back -------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_SEARCH_PLANFILE_H
#define SANDWICH_TOPOLOGY_SEARCH_PLANFILE_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Machine/PlanCores.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Topology/Trees/TopoTree.h"

#include <optional>
#include <string>

namespace sandwich {

/// What a plan says of the machine that it was made for.
struct PlanMachine {
  /// The model of its CPUs, else what its topology was read from.
  std::string name;
  /// Of the tree without groups and removes: "package x 4, numa x 2, core x
  /// 24".
  std::string description;
  /// Of that tree's levels with the sizes of caches, and of the indexes of its
  /// CPUs and NUMA nodes: 32 hexadecimal digits. Sizes of memories are no part
  /// of it, as the kernel keeps more or less for itself each time it starts.
  std::string hash;
};

/// `tree` is of the largest symmetric part of `machine`, cores being its
/// leaves.
PlanMachine planMachine(const Machine &machine, const TopoTree &tree);

/// The same for the machine's own tree. Whoever reads a plan makes this of the
/// machine that it runs on, so it does not tell how much of the machine a plan
/// uses. Errors: those of `largestSymmetricPart` and `TopoTree::fromMachine`.
Result<PlanMachine> planMachine(const Machine &machine);

/// {"name", "description", "hash"}.
Json toJson(const PlanMachine &machine);

/// The cores of the first configuration in the file `path`, which `toJson` of a
/// plan wrote; of several instances of the model those of `instance`, counted
/// from 0, or if it is nothing the processes of all. Errors name the file and
/// field: no plan, one for another machine than `machine` (the error names
/// both), no such instance, processes that differ between the phases or have no
/// cores, a CPU that `machine` does not have or that is there twice. A plan
/// without the member "machine" is judged by its CPUs alone.
Result<PlanCores> readPlanCores(const std::string &path, const Machine &machine,
                                std::optional<unsigned> instance = 0U);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_SEARCH_PLANFILE_H
