//===- MachineDrawing.h - Machines for people -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_DRAWING_MACHINEDRAWING_H
#define SANDWICH_TOPOLOGY_DRAWING_MACHINEDRAWING_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Machine/PlanCores.h"

#include <optional>
#include <string>
#include <vector>

namespace sandwich {

struct TextDrawingOptions {
  /// Draws every part, also of machines with many.
  bool full = false;
  /// Colours for a terminal.
  bool colours = false;
};

/// The machine in lines of text: its name and how many parts of each kind it
/// has; the tree; memories outside it; the distances of its NUMA nodes; what
/// was left out.
///
/// A part that is alone in its parent stands on its parent's line, and so do
/// the CPUs of a core. Where the tree takes more than a screen, equal
/// neighbours are drawn once, as "6 x group 0-5 to 42-47": six in each parent,
/// with the indexes in the first and in the last parent, of long lists their
/// beginning and end.
std::string drawText(const Machine &machine,
                     const TextDrawingOptions &options = {});

/// The machine as an SVG document that needs nothing else: nested rectangles,
/// what there is to know about each of them as its tooltip, a legend, and what
/// was left out. With a plan, the left half of each CPU shows prefill and the
/// right half decode: in the colour of the process that runs on it, or hatched
/// where it sleeps. Of more than 512 CPUs, equal siblings are drawn once, as a
/// pile with "64 x core 0-63": with a plan those only whose CPUs run the same
/// processes and sleep alike.
std::string drawSvg(const Machine &machine,
                    const std::optional<PlanCores> &plan = std::nullopt);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_DRAWING_MACHINEDRAWING_H
