//===- SymmetricPart.h - What is the same everywhere ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A TopoTree is symmetric (the paper's assumption A.1), machines are not
/// always: some have efficiency cores, some give this process three cores of
/// one package and eight of the other.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_TREES_SYMMETRICPART_H
#define SANDWICH_TOPOLOGY_TREES_SYMMETRICPART_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Result.h"

#include <string>
#include <vector>

namespace sandwich {

struct SymmetricPart {
  /// All parts of one level have the same kind, the same number of children
  /// and the same sizes; all cores the same speed.
  MachineNode root;
  /// What of the machine is not in it, and why; one sentence each. Empty for a
  /// symmetric machine.
  std::vector<std::string> leftOut;
};

/// The largest part of the tree `machine` that is symmetric.
///
/// A part is what remains when subtrees are taken away, and it is symmetric
/// if all paths from the root to a CPU name the same kinds, all cores have the
/// same speed, and all nodes of a level have the same number of children. Of
/// all such parts this is the one with the most cores, each counted by its
/// speed; of equals, the one with faster cores, then with more CPUs in each
/// core, then with more children in the lowest level where they differ. Of
/// equal subtrees the first are kept.
///
/// Sizes break no symmetry: caches and memories of one level that differ all
/// count as the smallest, which is noted.
///
/// Paths with the same kinds and speed are searched together. From the CPUs
/// upwards, each level's number of children is one of those that occur: any
/// number between two of them would drop children and gain no parent. Nodes
/// with fewer children than chosen drop out, and a branch ends when the nodes
/// that remain cannot hold more cores than the best part found. The number of
/// branches is the product, over the levels, of how many different numbers of
/// children occur: one, on a symmetric machine.
///
/// Error: the tree has no CPU.
Result<SymmetricPart> largestSymmetricPart(const MachineNode &machine);

/// Ways to leave at least `cores` cores of `machine` to others, the system or a
/// front end, of which `part` is the largest symmetric part: what of it
/// remains, the most cores first.
///
/// Cores that are not in `part` count first. Of the others go the first
/// children of each node of a level, as many of each, since interrupts and
/// daemons keep to the first cores where nobody says otherwise. Which number of
/// cores can be divided among processes only a model can tell: 63 of 64 are one
/// process for most. So beside what keeps the most cores there is what keeps
/// the most if only one level gives some, for each level, and if those that do
/// keep a multiple of 2, 4, 8 or 16 children; nothing twice, and nothing with
/// less than half of the most cores. Of equals those that keep the most parts
/// at the topmost level where they differ: one core of each of two packages
/// rather than one package. Of more than `maxComparedCores` cores there is one
/// way, with a multiple of 16 if that costs no more than a sixteenth.
///
/// Error: no core would remain.
Result<std::vector<SymmetricPart>>
partsWithReservedCores(const MachineNode &machine, const SymmetricPart &part,
                       uint64_t cores);

/// Of larger machines no two parts are compared, as each takes seconds.
inline constexpr uint64_t maxComparedCores = 1024;

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_SYMMETRICPART_H
