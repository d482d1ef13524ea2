//===- SvgLayout.h - Where rectangles stand ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TOPOLOGY_DRAWING_SVGLAYOUT_H
#define SANDWICH_LIB_TOPOLOGY_DRAWING_SVGLAYOUT_H

#include "sandwich/Machine/MachineTopology.h"

#include <string>
#include <vector>

namespace sandwich::svg {

// All lengths are in pixels.
inline constexpr double coreTitle = 15;
inline constexpr double cpuHeight = 16;
inline constexpr double boxTitle = 19;
inline constexpr double padding = 6;
inline constexpr double gap = 5;
/// Of the body font at 12 pixels, for breaking lines and fitting titles.
inline constexpr double characterWidth = 6.6;

/// A rectangle that is drawn: a core with what is its own, or a part of the
/// machine around others.
struct Box {
  const MachineNode *node = nullptr;
  /// The parts that a core shares with nobody, outermost first; the last is
  /// the core itself. Empty for other boxes.
  std::vector<const MachineNode *> own;
  std::vector<Box> children;
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// "NUMA 0 · 64 GiB".
std::string titleOf(const MachineNode &node);

/// The boxes of `node` and everything in it, each with its place in the box
/// around it.
Box arrangeBoxes(const MachineNode &node);

} // namespace sandwich::svg

#endif // SANDWICH_LIB_TOPOLOGY_DRAWING_SVGLAYOUT_H
