//===- Bundle.h - Equal parts that are drawn once ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TOPOLOGY_DRAWING_BUNDLE_H
#define SANDWICH_LIB_TOPOLOGY_DRAWING_BUNDLE_H

#include "sandwich/Machine/MachineTopology.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sandwich {

/// Nodes that are drawn as one: equal ones, `eachParent` from each parent,
/// where the parents are one bundle, too.
struct Bundle {
  std::vector<const MachineNode *> nodes;
  size_t eachParent = 1;

  const MachineNode &node() const { return *nodes.front(); }
};

/// "0-3", or "0,1 to 6,7" for those in the first and in the last parent; of
/// long lists the beginning and the end. Empty for parts without indexes.
std::string indexesOf(const Bundle &bundle);

/// Which parts of a machine are drawn as one.
class Bundles {
public:
  enum class Merge {
    /// Every part is drawn.
    Nothing,
    /// The CPUs of a part are one.
    Cpus,
    /// And so are equal parts that are neighbours.
    Neighbours,
    /// Equal parts of one parent are one, wherever they stand.
    Siblings,
  };

  /// Parts are equal if all that is drawn of them and in them is but the
  /// indexes. What else is drawn of a CPU tells `stateOf`, where `Siblings` are
  /// merged.
  Bundles(
      const MachineNode &root, Merge merge,
      const std::function<std::string(const MachineNode &cpu)> &stateOf = {});

  /// What is below `bundle`, in the order of the first of each.
  std::vector<Bundle> childrenOf(const Bundle &bundle) const;

private:
  size_t
  addShapes(const MachineNode &node,
            const std::function<std::string(const MachineNode &cpu)> &stateOf,
            std::map<std::string, size_t> &numbers);
  /// Whether neighbours are drawn as one, where not all siblings are.
  bool areAlike(const MachineNode &left, const MachineNode &right) const;

  Merge merge;
  /// Equal for nodes that are drawn alike.
  std::map<const MachineNode *, size_t> shapes;
};

} // namespace sandwich

#endif // SANDWICH_LIB_TOPOLOGY_DRAWING_BUNDLE_H
