//===- SvgLayout.h - Where rectangles stand ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TOPOLOGY_DRAWING_SVGLAYOUT_H
#define SANDWICH_LIB_TOPOLOGY_DRAWING_SVGLAYOUT_H

#include "Bundle.h"

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
/// machine around others, for all in its bundle.
struct Box {
  Bundle bundle;
  /// The parts that a core shares with nobody, outermost first; the last is
  /// the core itself. Empty for other boxes.
  std::vector<Bundle> own;
  /// The CPUs of a core.
  std::vector<Bundle> cpus;
  std::vector<Box> children;
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// "NUMA 0 · 64 GiB", "4 x L3 · 32 MiB".
std::string titleOf(const Bundle &bundle);

/// "core 3", "64 x core 0-63", "cpu 0,64".
std::string labelOf(const Bundle &bundle);

/// What stands in the box of a core.
std::string coreLabelOf(const Box &box);

/// The boxes of `bundle` and everything in it, each with its place in the box
/// around it.
Box arrangeBoxes(const Bundle &bundle, const Bundles &bundles);

} // namespace sandwich::svg

#endif // SANDWICH_LIB_TOPOLOGY_DRAWING_SVGLAYOUT_H
