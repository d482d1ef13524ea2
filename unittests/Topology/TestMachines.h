//===- TestMachines.h - Made-up machines ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_TOPOLOGY_TESTMACHINES_H
#define SANDWICH_UNITTESTS_TOPOLOGY_TESTMACHINES_H

#include "sandwich/Topology/Trees/TopoTree.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sandwich::test {

/// Levels of parts, outermost first, with how many each part above has.
using MachineLevels = std::vector<std::pair<std::string, unsigned>>;

inline void addParts(MachineNode &node, const MachineLevels &levels,
                     size_t level, std::map<std::string, int64_t> &counts) {
  if (level == levels.size())
    return;
  for (unsigned i = 0; i < levels[level].second; ++i) {
    const std::string &kind = levels[level].first;
    MachineNode &part = node.children.emplace_back();
    part.kind = kind;
    part.index = counts[kind]++;
    addParts(part, levels, level + 1, counts);
  }
}

/// A symmetric machine; parts of a kind are numbered as they stand.
inline MachineNode makeMachine(const MachineLevels &levels) {
  MachineNode machine;
  machine.kind = "machine";
  std::map<std::string, int64_t> counts;
  addParts(machine, levels, 0, counts);
  return machine;
}

inline TopoTree makeTree(const MachineLevels &levels) {
  auto tree = TopoTree::fromMachine(makeMachine(levels));
  EXPECT_TRUE(tree) << (tree ? "" : tree.error().message);
  return *tree;
}

/// Four Kunpeng 920 as system tools show them: 8 NUMA nodes of 24 cores, whose
/// clusters of 4 are hidden.
inline TopoTree makeKunpeng() {
  return makeTree({{"package", 4},
                   {"die", 2},
                   {"numa", 1},
                   {"l3", 1},
                   {"l2", 24},
                   {"l1d", 1},
                   {"core", 1},
                   {"cpu", 1}});
}

/// `cores` cores in one machine, one CPU each.
inline TopoTree makeFlat(unsigned cores) {
  return makeTree({{"numa", 1}, {"core", cores}, {"cpu", 1}});
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_TOPOLOGY_TESTMACHINES_H
