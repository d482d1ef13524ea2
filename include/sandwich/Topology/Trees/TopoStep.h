//===- TopoStep.h - One group or remove of a TopoTree -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_TREES_TOPOSTEP_H
#define SANDWICH_TOPOLOGY_TREES_TOPOSTEP_H

#include "sandwich/Topology/Trees/TopoTree.h"

#include <string_view>
#include <vector>

namespace sandwich {

/// A transformation with its arguments, as `TopoTree::derivation` writes them.
struct TopoStep {
  enum class Kind { Group, Remove };
  Kind kind = Kind::Group;
  /// Nodes in a group, or nodes removed of each parent.
  unsigned count = 0;
  /// Of a group.
  unsigned stride = 1;
  unsigned depth = 0;

  bool operator==(const TopoStep &) const = default;
};

/// Reads "group(4,1,3) remove(1,4)"; no steps from an empty text. Errors name
/// the step that is not one.
Result<std::vector<TopoStep>> parseSteps(std::string_view text);

/// The steps that make `tree` of its fundamental tree.
std::vector<TopoStep> stepsOf(const TopoTree &tree);

/// `tree.group` or `tree.remove`, with their errors.
Result<TopoTree> apply(const TopoStep &step, const TopoTree &tree);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_TOPOSTEP_H
